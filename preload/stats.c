// SPDX-License-Identifier: MIT
//
// Collects and prints the figures (stats.h). Printing happens once, at exit, with functions that
// do not malloc.
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "allocator/arena_set.h"
#include "config.h"
#include "gpu.h"
#include "lifecycle.h"
#include "log.h"
#include "wraps.h"

struct gh_stats_counters gh_stats;

void gh_stats_collect(struct gpuhost_stats *out) {
    memset(out, 0, sizeof(*out));
    if (!gh_is_serving())
        return;
    struct gh_arena_totals totals;
    gh_arena_set_get_totals(&totals);
    uint64_t mapped = totals.heap.mapped_bytes;
    uint64_t in_use = mapped - totals.heap.idle_bytes;
    out->regions = totals.heap.region_count;
    out->bytes_mapped = mapped;
    out->bytes_imported = atomic_load_explicit(&gh_stats.bytes_imported, memory_order_relaxed);
    if (gh_gpu_open_scopes() != 0 && in_use > out->bytes_imported)
        out->bytes_refused = in_use - out->bytes_imported;
    out->bytes_live = totals.allocated_bytes;
    out->bytes_plain = totals.plain.mapped_bytes;
    out->scopes = (uint64_t)__builtin_popcountll(gh_gpu_open_scopes());
    gh_wraps_count(&out->wraps_live, &out->wraps_covered);
    out->wraps_passed_on = atomic_load_explicit(&gh_stats.wraps_passed_on, memory_order_relaxed);
    out->wraps_refused = atomic_load_explicit(&gh_stats.wraps_refused, memory_order_relaxed);
    out->wraps_read_only = atomic_load_explicit(&gh_stats.wraps_read_only, memory_order_relaxed);
    out->imports = atomic_load_explicit(&gh_stats.imports, memory_order_relaxed);
    out->import_nanoseconds = atomic_load_explicit(&gh_stats.import_nanoseconds, memory_order_relaxed);
    out->releases = atomic_load_explicit(&gh_stats.releases, memory_order_relaxed);
    out->regions_returned = totals.heap.regions_returned;
}

static void add_line(struct gh_text *block, const char *name, uint64_t value, const char *unit) {
    gh_text_add(block, "  ");
    gh_text_add(block, name);
    for (size_t column = strlen(name); column < 24; column++)
        gh_text_add(block, " ");
    gh_text_add_number(block, value);
    gh_text_add(block, unit);
    gh_text_add(block, "\n");
}

static void build_block(struct gh_text *block) {
    struct gpuhost_stats stats;
    gh_stats_collect(&stats);
    gh_text_start(block);
    gh_text_add(block, "gpuhost statistics, process ");
    gh_text_add_number(block, (uint64_t)getpid());
    gh_text_add(block, "\n");
    add_line(block, "regions", stats.regions, "");
    add_line(block, "mapped", stats.bytes_mapped / GH_KIB, " KiB");
    add_line(block, "live", stats.bytes_live / GH_KIB, " KiB");
    add_line(block, "plain", stats.bytes_plain / GH_KIB, " KiB");
    add_line(block, "imported", stats.bytes_imported / GH_KIB, " KiB");
    add_line(block, "not imported", stats.bytes_refused / GH_KIB, " KiB");
    add_line(block, "scopes", stats.scopes, "");
    add_line(block, "imports", stats.imports, "");
    add_line(block, "import time", stats.import_nanoseconds / 1000, " us");
    add_line(block, "releases", stats.releases, "");
    add_line(block, "wraps covered", stats.wraps_covered, "");
    add_line(block, "wraps passed on", stats.wraps_passed_on, "");
    add_line(block, "wraps refused", stats.wraps_refused, "");
    add_line(block, "wraps live", stats.wraps_live, "");
}

// GPUHOST_STATS with every %p replaced by the process id.
static bool build_path(char *path, size_t size, const char *pattern) {
    size_t at = 0;
    for (const char *from = pattern; *from != '\0'; from++) {
        if (from[0] == '%' && from[1] == 'p') {
            struct gh_text id;
            gh_text_start(&id);
            gh_text_add_number(&id, (uint64_t)getpid());
            if (at + id.length + 1 > size)
                return false;
            memcpy(path + at, id.bytes, id.length);
            at += id.length;
            from++;
        } else {
            if (at + 2 > size)
                return false;
            path[at++] = *from;
        }
    }
    path[at] = '\0';
    return true;
}

void gh_stats_print_at_exit(void) {
    if (gh_config.stats == NULL || !gh_is_serving())
        return;
    struct gh_text block;
    build_block(&block);
    if (strcmp(gh_config.stats, "stderr") == 0) {
        gh_log_raw(gh_text_get(&block));
        return;
    }
    char path[4096];
    int file = -1;
    if (build_path(path, sizeof(path), gh_config.stats))
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) {
        gh_log(GH_LOG_WARNING, "the file that GPUHOST_STATS names cannot be written; no statistics");
        return;
    }
    if (write(file, block.bytes, block.length) != (ssize_t)block.length)
        gh_log(GH_LOG_WARNING, "writing the file that GPUHOST_STATS names failed");
    close(file);
}
