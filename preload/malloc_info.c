// SPDX-License-Identifier: MIT
//
// glibc's functions that tell about or tune the heap: mallinfo, malloc_stats and their kin. The
// figures are ours; a knob of glibc's allocator that has no meaning here is accepted.
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "allocator/arena_set.h"
#include "export.h"
#include "lifecycle.h"
#include "log.h"
#include "real_symbols.h"

// The C library's function, in a process that we stay out of: the heap to tell about is its own.
#define REAL_IF_ASIDE(name) ((__typeof__(name) *)real_if_aside(#name))

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // mallinfo is exported, not used

static void *real_if_aside(const char *name) {
    bool aside = atomic_load_explicit(&gh_life, memory_order_acquire) == GH_LIFE_ASIDE;
    return aside ? gh_real_symbol(name) : NULL;
}

static void fill(struct mallinfo2 *out) {
    memset(out, 0, sizeof(*out));
    if (!gh_is_serving())
        return;
    struct gh_arena_totals totals;
    gh_arena_set_get_totals(&totals);
    size_t mapped = totals.heap.mapped_bytes + totals.plain.mapped_bytes;
    out->hblks = totals.heap.region_count + totals.plain.region_count;
    out->hblkhd = mapped;
    out->uordblks = totals.allocated_bytes;
    out->fordblks = mapped > totals.allocated_bytes ? mapped - totals.allocated_bytes : 0;
    out->keepcost = totals.heap.free_bytes + totals.plain.free_bytes;
}

GH_EXPORT struct mallinfo2 mallinfo2(void) {
    __typeof__(mallinfo2) *real = REAL_IF_ASIDE(mallinfo2);
    if (real != NULL)
        return real();
    struct mallinfo2 info;
    fill(&info);
    return info;
}

static int clamp(size_t value) {
    return value > INT_MAX ? INT_MAX : (int)value;
}

GH_EXPORT struct mallinfo mallinfo(void) {
    __typeof__(mallinfo) *real = REAL_IF_ASIDE(mallinfo);
    if (real != NULL)
        return real();
    struct mallinfo2 wide;
    fill(&wide);
    return (struct mallinfo){
        .hblks = clamp(wide.hblks),
        .hblkhd = clamp(wide.hblkhd),
        .uordblks = clamp(wide.uordblks),
        .fordblks = clamp(wide.fordblks),
        .keepcost = clamp(wide.keepcost),
    };
}

// The padding that glibc would leave at the top has no counterpart.
GH_EXPORT int malloc_trim(size_t padding) {
    __typeof__(malloc_trim) *real = REAL_IF_ASIDE(malloc_trim);
    if (real != NULL)
        return real(padding);
    return gh_is_serving() && gh_arena_set_purge() ? 1 : 0;
}

// No knob of glibc's allocator has a meaning here; each is accepted, as glibc accepts unknown
// ones, but for the one range that glibc checks.
GH_EXPORT int mallopt(int parameter, int value) {
    __typeof__(mallopt) *real = REAL_IF_ASIDE(mallopt);
    if (real != NULL)
        return real(parameter, value);
    if (parameter == M_MXFAST)
        return value >= 0 && (size_t)value <= 80 * sizeof(size_t) / 4;
    return 1;
}

GH_EXPORT void malloc_stats(void) {
    __typeof__(malloc_stats) *real = REAL_IF_ASIDE(malloc_stats);
    if (real != NULL) {
        real();
        return;
    }
    struct mallinfo2 info = mallinfo2();
    struct gh_text block;
    gh_text_start(&block);
    gh_text_add(&block, "libgpuhost: ");
    gh_text_add_number(&block, info.hblks);
    gh_text_add(&block, " regions\nsystem bytes     = ");
    gh_text_add_number(&block, info.hblkhd);
    gh_text_add(&block, "\nin use bytes     = ");
    gh_text_add_number(&block, info.uordblks);
    gh_text_add(&block, "\n");
    fputs(gh_text_get(&block), stderr); // as glibc: to what the program has as stderr now
}

GH_EXPORT int malloc_info(int options, FILE *stream) {
    __typeof__(malloc_info) *real = REAL_IF_ASIDE(malloc_info);
    if (real != NULL)
        return real(options, stream);
    if (options != 0)
        return EINVAL;
    struct mallinfo2 info = mallinfo2();
    fprintf(stream,
            "<malloc version=\"libgpuhost\">\n<system type=\"current\" size=\"%zu\"/>\n"
            "<total type=\"regions\" count=\"%zu\" size=\"%zu\"/>\n<total type=\"rest\" size=\"%zu\"/>\n</malloc>\n",
            info.hblkhd, info.hblks, info.hblkhd, info.fordblks);
    return 0;
}
