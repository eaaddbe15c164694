// SPDX-License-Identifier: MIT
//
// Boots and steers the private jemalloc (arena_set.h). gh_arena_set_start runs inside the first
// malloc of the process, so it allocates nothing and formats its option string by hand.
#include "arena_set.h"

#include <errno.h>
#include <string.h>

#include "cache_start.h"
#include "extent_hooks.h"
#include "lock.h"
#include "os_mem.h"

// Whatever I1, I2 and I5 need is said here, in the last of the sources that jemalloc reads:
// retain:false        free extents come back through our hook, adjacent ones merge
// oversize_threshold  no huge arena, which could not be given hooks before its first block
// dss:disabled        no sbrk memory
// muzzy_decay_ms:0    one stage of decay; the pool does what the second stage would do
// zero_realloc:free   realloc(p, 0) frees and answers NULL, as glibc does
// tcache_gc_incr_bytes  thread caches are collected less often than jemalloc does: measured, it
//                       takes a sixth off patterns with many small blocks, and memory stays equal
// tcache_nslots_small_max  a thread's cache holds up to 64 KiB of a small class, if that is 1000 blocks:
//                       a program that makes thousands of them and drops them meets a lock seldom; it
//                       begins with few (cache_start.c)
// tcache_max            blocks of up to 64 KiB are cached too, ten of a class: a tenth off programs that
//                       grow blocks or clear them
static const char fixed_options[] =
    "retain:false,oversize_threshold:0,dss:disabled,muzzy_decay_ms:0,zero_realloc:free,background_thread:false,"
    "percpu_arena:disabled,hpa:false,metadata_thp:disabled,thp:default,abort_conf:false,confirm_conf:false,"
    "tcache_gc_incr_bytes:4194304,tcache_nslots_small_max:1000,"
    "tcache_max:65536,tcache_nslots_large:10,"
    "dirty_decay_ms:";

static char option_string[sizeof(fixed_options) + 640];

static struct gh_region_pool heap_pool;
static struct gh_region_pool plain_pool = { .plain = true };
static struct gh_extent_hooks heap_hooks;
static struct gh_extent_hooks plain_hooks;

_Atomic int gh_arena_plain_flags;
static struct gh_lock plain_lock = GH_LOCK_INIT(GH_RANK_PLAIN);

static char *append_text(char *at, const char *text) {
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
}

static char *append_number(char *at, uint64_t number) {
    char digits[20];
    unsigned count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count != 0)
        *at++ = digits[--count];
    return at;
}

// How many pages a slab of each small class has. jemalloc's own are the fewest that leave nothing
// over; several of those at once make a slab fill and empty less often, which costs a lock each.
static char *append_slab_sizes(char *at) {
    static const struct {
        unsigned char quarters; // of a power of two
        unsigned char pages;
    } slabs[] = { { 4, 8 }, { 5, 10 }, { 6, 9 }, { 7, 7 } };
    at = append_text(at, ",slab_sizes:16-48:8");
    for (unsigned power = 64; power <= 8192; power *= 2) {
        for (unsigned i = 0; i < sizeof(slabs) / sizeof(slabs[0]); i++) {
            unsigned size = power / 4 * slabs[i].quarters;
            at = append_text(at, "|");
            at = append_number(at, size);
            at = append_text(at, "-");
            at = append_number(at, size);
            at = append_text(at, ":");
            at = append_number(at, slabs[i].pages);
        }
    }
    return at;
}

static void configure(const struct gh_arena_options *options) {
    char *at = append_text(option_string, fixed_options);
    at = append_number(at, options->decay_ms);
    at = append_text(at, ",narenas:");
    at = append_number(at, options->arenas);
    at = append_slab_sizes(at);
    *at = '\0';
    gh_je_malloc_conf_2_conf_harder = option_string;
    je_opt_cache_oblivious = false;

    heap_pool.region_min_bytes = options->region_min_bytes;
    heap_pool.huge_region_min_bytes = options->huge_region_min_bytes;
    heap_pool.region_max_bytes = options->region_max_bytes;
    heap_pool.decay_ms = (uint32_t)options->decay_ms;
    plain_pool.decay_ms = (uint32_t)options->decay_ms;
    heap_pool.whole_slots = options->whole_slots;
    plain_pool.whole_slots = options->whole_slots;
    heap_pool.hugepages = options->hugepages;
    heap_pool.ops = options->ops;
    plain_pool.ops = options->ops;
    plain_pool.region_min_bytes = options->region_min_bytes;
    plain_pool.region_max_bytes = options->region_max_bytes;
    gh_extent_hooks_init(&heap_hooks, &heap_pool);
    gh_extent_hooks_init(&plain_hooks, &plain_pool);
}

// Gives arena `index` our hooks. Writing the default hooks first makes jemalloc create the arena
// with them, so that its metadata stays outside regions; the second write is for extents only.
static int hook_arena(unsigned index) {
    size_t mib[3];
    size_t mib_length = 3;
    int error = gh_je_mallctlnametomib("arena.0.extent_hooks", mib, &mib_length);
    if (error != 0)
        return error;
    mib[1] = index;
    extent_hooks_t *hooks = NULL;
    size_t length = sizeof(hooks);
    error = gh_je_mallctlbymib(mib, mib_length, &hooks, &length, NULL, 0);
    if (error == 0)
        error = gh_je_mallctlbymib(mib, mib_length, NULL, NULL, &hooks, sizeof(hooks));
    hooks = &heap_hooks.table;
    if (error == 0)
        error = gh_je_mallctlbymib(mib, mib_length, NULL, NULL, &hooks, sizeof(hooks));
    return error;
}

// From this size on jemalloc gives an extent back the moment it is free; the pool keeps it for
// DECAY_MS. The option of the same name is for the huge arena only.
static int give_large_extents(unsigned index) {
    size_t mib[3];
    size_t mib_length = 3;
    size_t threshold = GH_EXTENT_LARGE;
    int error = gh_je_mallctlnametomib("arena.0.oversize_threshold", mib, &mib_length);
    mib[1] = index;
    return error == 0 ? gh_je_mallctlbymib(mib, mib_length, NULL, NULL, &threshold, sizeof(threshold)) : error;
}

// glibc aligns every block to 16 bytes, jemalloc one of 8 or less to 8. The smallest class is
// taken out of its table, which costs nothing for each malloc.
static int drop_smallest_class(void) {
    je_sz_size2index_tab[0] = je_sz_size2index_tab[2];
    je_sz_size2index_tab[1] = je_sz_size2index_tab[2];
    return gh_je_nallocx(1, 0) == 16 ? 0 : ENOTSUP;
}

// The first region must be there before the first block is asked for, or start-up has failed. One
// page holds it: a small process does not map and unmap its only region over and over either.
static int anchor_first_region(void) {
    bool zeroed;
    return gh_region_pool_take(&heap_pool, GH_PAGE_SIZE, GH_PAGE_SIZE, &zeroed) == NULL ? ENOMEM : 0;
}

// Metadata of an arena or two, and a small region.
#define ROOM_TO_START (8 * GH_MIB)

int gh_arena_set_start(const struct gh_arena_options *options) {
    if (!gh_os_has_room(ROOM_TO_START))
        return ENOMEM;
    configure(options);
    unsigned arenas = 0;
    size_t length = sizeof(arenas);
    int error = gh_je_mallctl("opt.narenas", &arenas, &length, NULL, 0); // boots jemalloc
    for (unsigned index = 0; error == 0 && index < arenas; index++)
        error = hook_arena(index) != 0 ? ENOMEM : give_large_extents(index);
    if (error == 0)
        error = drop_smallest_class();
    if (error == 0)
        error = anchor_first_region();
    return error == 0 ? gh_cache_start() : error;
}

int gh_arena_set_plain_flags(void) {
    int flags = atomic_load_explicit(&gh_arena_plain_flags, memory_order_acquire);
    if (flags != 0)
        return flags;
    gh_lock_acquire(&plain_lock);
    flags = atomic_load_explicit(&gh_arena_plain_flags, memory_order_relaxed);
    unsigned index = 0;
    size_t length = sizeof(index);
    extent_hooks_t *hooks = &plain_hooks.table;
    if (flags == 0 && gh_je_mallctl("arenas.create", &index, &length, &hooks, sizeof(hooks)) == 0) {
        flags = MALLOCX_ARENA(index) | MALLOCX_TCACHE_NONE;
        atomic_store_explicit(&gh_arena_plain_flags, flags, memory_order_release);
    }
    gh_lock_release(&plain_lock);
    return flags;
}

void gh_arena_set_flush_cache(void) {
    gh_je_mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
}

// The thread's cache takes part: what is in it is of the arena that the thread is leaving.
static bool move_to_arena(unsigned index, unsigned *before) {
    size_t length = sizeof(*before);
    gh_arena_set_flush_cache();
    return gh_je_mallctl("thread.arena", before, &length, &index, sizeof(index)) == 0;
}

bool gh_arena_set_enter_plain(unsigned *before) {
    int flags = gh_arena_set_plain_flags();
    return flags != 0 && move_to_arena(((unsigned)flags >> 20) - 1, before);
}

void gh_arena_set_leave_plain(unsigned before) {
    unsigned plain;
    if (!move_to_arena(before, &plain))
        gh_fatal("a thread cannot go back to its arena");
}

static bool arena_command(const char *name, unsigned index) {
    size_t mib[3];
    size_t mib_length = 3;
    if (gh_je_mallctlnametomib(name, mib, &mib_length) != 0)
        return false;
    mib[1] = index;
    return gh_je_mallctlbymib(mib, mib_length, NULL, NULL, NULL, 0) == 0;
}

void gh_arena_set_decay(void) {
    arena_command("arena.0.decay", MALLCTL_ARENAS_ALL);
    gh_region_pool_sweep(&heap_pool, false);
    gh_region_pool_sweep(&plain_pool, false);
}

bool gh_arena_set_purge(void) {
    struct gh_region_pool_stats before;
    struct gh_region_pool_stats after;
    gh_region_pool_get_stats(&heap_pool, &before);
    gh_arena_set_flush_cache();
    arena_command("arena.0.purge", MALLCTL_ARENAS_ALL);
    bool swept = gh_region_pool_sweep(&heap_pool, true);
    swept = gh_region_pool_sweep(&plain_pool, true) || swept;
    gh_region_pool_get_stats(&heap_pool, &after);
    return swept || after.mapped_bytes - after.free_bytes < before.mapped_bytes - before.free_bytes;
}

bool gh_arena_set_make_room(void) {
    bool purged = gh_arena_set_purge();
    bool trimmed = gh_region_pool_trim(&heap_pool);
    return gh_region_pool_trim(&plain_pool) || trimmed || purged;
}

void gh_arena_set_get_totals(struct gh_arena_totals *out) {
    uint64_t epoch = 1; // writing it makes jemalloc add its counters up
    size_t length = sizeof(out->allocated_bytes);
    gh_region_pool_get_stats(&heap_pool, &out->heap);
    gh_region_pool_get_stats(&plain_pool, &out->plain);
    gh_je_mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
    if (gh_je_mallctl("stats.allocated", &out->allocated_bytes, &length, NULL, 0) != 0)
        out->allocated_bytes = 0;
}

struct gh_region_pool *gh_arena_set_heap(void) {
    return &heap_pool;
}

struct gh_region_pool *gh_arena_set_plain(void) {
    return &plain_pool;
}

const char *gh_arena_set_jemalloc_version(void) {
    const char *version = "unknown";
    size_t length = sizeof(version);
    gh_je_mallctl("version", &version, &length, NULL, 0);
    return version;
}

// jemalloc resets its mutexes in a child, but for the one of its address map (its issue 2019): a
// thread that made a new leaf of the map while another one forked would leave it locked for ever.
// What it protects is consistent at any moment. The mutex follows the first pointer of the map.
extern char je_arena_emap_global[];
void je_malloc_mutex_postfork_child(void *thread, void *mutex);

void gh_arena_set_fork_child(void) {
    je_malloc_mutex_postfork_child(NULL, je_arena_emap_global + sizeof(void *));
    gh_lock_reset(&plain_lock);
}
