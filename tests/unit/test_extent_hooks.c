// SPDX-License-Identifier: MIT
//
// The extent hooks: between the private jemalloc and the hooks stand functions that keep a list
// of all extents. At any time the extents that jemalloc holds and the pool's free pages tile the
// regions exactly, no extent lies in two regions, and what comes back is what was given out.
#include "unit.h"

#include "allocator/extent_hooks.h"

struct extent {
    uintptr_t start;
    size_t size;
};

static struct gh_region_pool pool = { .region_min_bytes = GH_MIB, .region_max_bytes = 16 * GH_MIB };
static struct gh_extent_hooks inner;
static extent_hooks_t outer;

static struct extent extents[65536]; // sorted by start
static size_t extent_count;
static size_t extent_bytes;
static unsigned allocs, deallocs, splits, merges, refused_merges, destroys;

static size_t find(uintptr_t start) { // the first that does not start before
    size_t low = 0;
    size_t high = extent_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (extents[middle].start < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void must(bool condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "extents: %s\n", what);
        abort(); // inside a hook: Criterion's own way out would leave jemalloc's locks held
    }
}

static void insert(uintptr_t start, size_t size) {
    size_t at = find(start);
    must(extent_count < 65536, "the test's list is full");
    must(at == extent_count || extents[at].start >= start + size, "overlaps the next one");
    must(at == 0 || extents[at - 1].start + extents[at - 1].size <= start, "overlaps the one before");
    struct gh_region *region = gh_region_find((void *)start);
    must(region != NULL && gh_region_find((void *)(start + size - 1)) == region, "is not in one region");
    memmove(&extents[at + 1], &extents[at], (extent_count - at) * sizeof(extents[0]));
    extents[at] = (struct extent){ start, size };
    extent_count++;
    extent_bytes += size;
}

static void erase(uintptr_t start, size_t size) {
    size_t at = find(start);
    must(at < extent_count && extents[at].start == start && extents[at].size == size, "comes back as it was not given");
    extent_count--;
    memmove(&extents[at], &extents[at + 1], (extent_count - at) * sizeof(extents[0]));
    extent_bytes -= size;
}

static void *log_alloc(extent_hooks_t *table, void *address, size_t size, size_t alignment, bool *zero, bool *commit,
                       unsigned arena) {
    (void)table;
    bool wanted_zero = *zero;
    char *got = inner.table.alloc(&inner.table, address, size, alignment, zero, commit, arena);
    if (got == NULL)
        return NULL;
    must(address == NULL || got == address, "is not at the address that was asked for");
    must((uintptr_t)got % alignment == 0, "is not aligned");
    must(*zero || !wanted_zero, "is not said to be zero");
    for (size_t i = 0; *zero && i < size; i += 512)
        must(got[i] == 0, "is said to be zero and is not");
    insert((uintptr_t)got, size);
    allocs++;
    return got;
}

static bool log_dalloc(extent_hooks_t *table, void *address, size_t size, bool committed, unsigned arena) {
    (void)table;
    erase((uintptr_t)address, size);
    deallocs++;
    return inner.table.dalloc(&inner.table, address, size, committed, arena);
}

static void log_destroy(extent_hooks_t *table, void *address, size_t size, bool committed, unsigned arena) {
    (void)table;
    erase((uintptr_t)address, size);
    destroys++;
    inner.table.destroy(&inner.table, address, size, committed, arena);
}

static bool log_split(extent_hooks_t *table, void *address, size_t size, size_t size_a, size_t size_b, bool committed,
                      unsigned arena) {
    (void)table;
    must(size == size_a + size_b, "is split into something else");
    if (inner.table.split(&inner.table, address, size, size_a, size_b, committed, arena))
        must(false, "cannot be split: jemalloc would give it up");
    erase((uintptr_t)address, size);
    insert((uintptr_t)address, size_a);
    insert((uintptr_t)address + size_a, size_b);
    splits++;
    return false;
}

static bool log_merge(extent_hooks_t *table, void *address_a, size_t size_a, void *address_b, size_t size_b,
                      bool committed, unsigned arena) {
    (void)table;
    if (inner.table.merge(&inner.table, address_a, size_a, address_b, size_b, committed, arena)) {
        refused_merges++;
        return true;
    }
    erase((uintptr_t)address_a, size_a);
    erase((uintptr_t)address_b, size_b);
    insert((uintptr_t)address_a, size_a + size_b);
    merges++;
    return false;
}

static unsigned make_arena(void) {
    gh_extent_hooks_init(&inner, &pool);
    outer = (extent_hooks_t){ .alloc = log_alloc, .dalloc = log_dalloc, .destroy = log_destroy, .split = log_split,
                              .merge = log_merge };
    unsigned arena = 0;
    size_t length = sizeof(arena);
    extent_hooks_t *table = &outer;
    cr_assert_eq(gh_je_mallctl("arenas.create", &arena, &length, &table, sizeof(table)), 0);
    return arena;
}

static void command(const char *format, unsigned arena) {
    char name[64];
    snprintf(name, sizeof(name), format, arena);
    cr_assert_eq(gh_je_mallctl(name, NULL, NULL, NULL, 0), 0, "%s", name);
}

#define BLOCKS 2000

Test(extent_hooks, extents_tile_the_regions, .timeout = 240) {
    unit_seed();
    unsigned arena = make_arena();
    static void *blocks[BLOCKS];
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    for (int step = 0; step < 150000; step++) {
        size_t at = unit_below(BLOCKS);
        size_t size = 1 + unit_below((size_t)1 << (4 + unit_below(17)));
        if (blocks[at] == NULL) {
            blocks[at] = gh_je_mallocx(size, flags | (unit_below(4) == 0 ? MALLOCX_ZERO : 0));
            cr_assert_not_null(blocks[at]);
        } else if (unit_below(3) == 0) {
            blocks[at] = gh_je_rallocx(blocks[at], size, flags);
            cr_assert_not_null(blocks[at]);
        } else {
            gh_je_dallocx(blocks[at], MALLOCX_TCACHE_NONE);
            blocks[at] = NULL;
        }
        if (blocks[at] != NULL) {
            struct gh_region *region = gh_region_find(blocks[at]);
            size_t usable = gh_je_sallocx(blocks[at], 0);
            cr_assert_not_null(region);
            cr_assert_eq(region, gh_region_find((char *)blocks[at] + usable - 1));
            memset(blocks[at], 0x5a, gh_min(usable, 64));
        }
        cr_assert_eq(pool.mapped_bytes, pool.free_bytes + extent_bytes, "step %d", step);
        if (step % 20000 == 0) {
            cr_assert(gh_region_pool_is_valid(&pool));
            command("arena.%u.purge", arena);
        }
    }
    cr_assert(allocs > 20 && deallocs > 20 && splits > 20 && merges > 20, "%u allocs, %u deallocs, %u splits, %u merges",
              allocs, deallocs, splits, merges);
    for (int at = 0; at < BLOCKS; at++)
        gh_je_dallocx(blocks[at] == NULL ? gh_je_mallocx(1, flags) : blocks[at], MALLOCX_TCACHE_NONE);
    command("arena.%u.destroy", arena);
    cr_assert_eq(pool.mapped_bytes, pool.free_bytes + extent_bytes);
    // What jemalloc keeps of a destroyed arena are its own structures: a few pages.
    cr_assert_leq(extent_bytes, 4 * GH_MIB, "%zu KiB in %zu extents, %u alloc %u dalloc %u destroy",
                  extent_bytes / GH_KIB, extent_count, allocs, deallocs, destroys);
    cr_assert(gh_region_pool_is_valid(&pool));
}

// I1: two extents that touch across a region's border never become one.
Test(extent_hooks, no_merge_across_regions) {
    gh_extent_hooks_init(&inner, &pool);
    bool zero = false;
    bool commit = false;
    char *a = inner.table.alloc(&inner.table, NULL, 20 * GH_MIB, PAGE, &zero, &commit, 0);
    char *b = inner.table.alloc(&inner.table, NULL, 20 * GH_MIB, PAGE, &zero, &commit, 0);
    cr_assert(commit);
    cr_assert_not(inner.table.merge(&inner.table, a, PAGE, a + PAGE, PAGE, true, 0));
    cr_assert(inner.table.merge(&inner.table, a, 20 * GH_MIB, b, 20 * GH_MIB, true, 0));
    cr_assert_not(inner.table.split(&inner.table, a, 2 * PAGE, PAGE, PAGE, true, 0));
}

// A block that the kernel refuses: NULL, and the arena goes on.
Test(extent_hooks, a_refused_extent) {
    unsigned arena = make_arena();
    int flags = MALLOCX_ARENA(arena) | MALLOCX_TCACHE_NONE;
    cr_assert_null(gh_je_mallocx((size_t)1 << 46, flags));
    void *block = gh_je_mallocx(GH_MIB, flags);
    cr_assert_not_null(block);
    cr_assert_not_null(gh_region_find(block));
}
