// SPDX-License-Identifier: MIT
//
// Regions of which nothing is in use: not imported, and gone when a new region comes instead of them;
// and how large the new ones are, before and after there are imports.
#include "unit.h"

#include "allocator/region_pool.h"
#include "region_events.h"

static struct gh_region_pool pool = {
    .region_min_bytes = 16 * GH_MIB,
    .huge_region_min_bytes = 512 * GH_MIB,
    .region_max_bytes = 4 * GH_GIB,
    .decay_ms = 60000,
    .ops = &ops,
};

static char *take(size_t size) {
    bool zeroed = false;
    char *block = gh_region_pool_take(&pool, size, PAGE, &zeroed);
    cr_assert_not_null(block);
    return block;
}

static void keep(char *block, size_t size) {
    gh_region_pool_keep(&pool, block, size);
    cr_assert(gh_region_pool_is_valid(&pool));
}

static void pin(const void *block) {
    uintptr_t base;
    size_t size;
    cr_assert(gh_region_pool_pin(gh_region_find(block)->id, &base, &size));
}

static bool is_importable(const void *block) {
    struct gh_region_look look;
    cr_assert(gh_region_pool_look(gh_region_find(block)->id, &look));
    return look.importable;
}

Test(region_idle, huge_blocks_share_a_region) {
    char *first = take(30 * GH_MIB);
    const struct gh_region *region = gh_region_find(first);
    cr_assert_geq(region->size_bytes, 480 * GH_MIB);
    for (int i = 0; i < 30; i++)
        cr_assert_eq(gh_region_find(take(8 * GH_MIB + (size_t)i * PAGE)), region);
    cr_assert_eq(gh_region_find(take(PAGE))->size_bytes, 16 * GH_MIB); // small ones have their own
    char *large = take(3 * GH_MIB); // and those in between
    cr_assert_neq(gh_region_find(large), region);
    cr_assert_leq(gh_region_find(large)->size_bytes, 80 * GH_MIB);
    cr_assert_eq(gh_region_find(take(GH_MIB)), gh_region_find(large));
    cr_assert_eq(gh_region_find(take(9 * GH_MIB)), gh_region_find(large), "where it fits best");
    pool.populated = true; // then each page counts, and there is room
    keep(take(9 * GH_MIB), 9 * GH_MIB);
    for (int i = 0; i < 30; i++)
        cr_assert_not_null(take(3 * GH_MIB));
    cr_assert_eq(pool.region_count, 3);
}

// Where mapped memory is limited no such size is asked for; the ordinary one is the least.
Test(region_idle, huge_regions_without_room) {
    pool.huge_region_min_bytes = 2 * pool.region_min_bytes;
    cr_assert_eq(gh_region_find(take(8 * GH_MIB))->size_bytes, 32 * GH_MIB);
    pool.huge_region_min_bytes = 0;
    cr_assert_eq(gh_region_find(take(40 * GH_MIB))->size_bytes, 40 * GH_MIB);
}

// Each page that nobody has asked for is memory once there are imports: a quarter of a small heap at
// most, and half a MiB to begin with.
Test(region_idle, imported_heaps_grow_in_small_steps) {
    pool.populated = true;
    size_t in_use = 0;
    while (in_use < 16 * GH_MIB) {
        take(8 * PAGE);
        in_use += 8 * PAGE;
        cr_assert_leq(pool.mapped_bytes - in_use, GH_MIB / 2 + in_use / 4, "%zu in use, %zu mapped", in_use,
                      pool.mapped_bytes);
    }
    cr_assert_leq(pool.region_count, 24, "%u", pool.region_count);
}

Test(region_idle, an_idle_region_goes_for_a_new_one) {
    pool.populated = true;
    char *used = take(30 * GH_MIB);
    char *block = take(40 * GH_MIB);
    keep(block, 40 * GH_MIB);
    cr_assert_not_null(gh_region_find(block));
    struct gh_region_pool_stats stats;
    gh_region_pool_get_stats(&pool, &stats);
    cr_assert_eq(stats.idle_bytes, 40 * GH_MIB);
    char *smaller = take(35 * GH_MIB); // it serves what fits
    cr_assert_eq(gh_region_find(smaller), gh_region_find(block));
    keep(smaller, 35 * GH_MIB);
    char *larger = take(50 * GH_MIB);
    cr_assert_neq(gh_region_find(larger), NULL);
    cr_assert(larger == block || gh_region_find(block) == NULL || gh_region_find(block) == gh_region_find(larger));
    cr_assert_eq(pool.region_count, 2, "the idle one stayed");
    cr_assert_eq(pool.mapped_bytes, 80 * GH_MIB);
    cr_assert_eq(gh_region_find(used)->size_bytes, 30 * GH_MIB);
    gh_region_pool_get_stats(&pool, &stats);
    cr_assert_eq(stats.idle_bytes, 0);
    cr_assert_eq(retired, 0); // there was nothing to release
}

// Imports are not released in malloc. Until somebody works on them the region serves on.
Test(region_idle, a_pinned_one_serves_until_imports_are_worked_on) {
    pool.populated = true;
    char *block = take(40 * GH_MIB);
    pin(block);
    keep(block, 40 * GH_MIB);
    cr_assert_null(gh_region_pool_pop_retired(&pool));
    char *larger = take(50 * GH_MIB);
    pin(larger);
    cr_assert_eq(retired, 1);
    struct gh_region *region = gh_region_find(block);
    cr_assert_eq(region->state, GH_REGION_ACTIVE);
    cr_assert_eq(take(30 * GH_MIB), block);
    cr_assert_null(gh_region_pool_pop_retired(&pool), "something of it is in use");
    keep(block, 30 * GH_MIB);
    cr_assert_null(gh_region_pool_pop_retired(&pool), "what was asked for has been forgotten");
    char *largest = take(70 * GH_MIB);
    cr_assert_eq(retired, 2);
    cr_assert_eq(gh_region_pool_pop_retired(&pool), region);
    cr_assert_eq(region->state, GH_REGION_RETIRED);
    cr_assert_null(gh_region_pool_pop_retired(&pool), "the others are in use");
    gh_region_pool_discard(region);
    cr_assert_eq(pool.region_count, 2);
    cr_assert_eq(pool.mapped_bytes, 120 * GH_MIB);
    keep(largest, 70 * GH_MIB);
}

// No more goes than comes.
Test(region_idle, exchange_is_by_size) {
    pool.populated = true;
    char *blocks[4];
    for (int i = 0; i < 4; i++) {
        blocks[i] = take((size_t)(20 + i) * GH_MIB);
        pin(blocks[i]);
    }
    for (int i = 0; i < 4; i++)
        keep(blocks[i], (size_t)(20 + i) * GH_MIB);
    take(30 * GH_MIB);
    struct gh_region *first = gh_region_pool_pop_retired(&pool);
    struct gh_region *second = gh_region_pool_pop_retired(&pool);
    cr_assert_eq(first->size_bytes, 23 * GH_MIB); // the largest first
    cr_assert_eq(second->size_bytes, 22 * GH_MIB);
    cr_assert_null(gh_region_pool_pop_retired(&pool));
    gh_region_pool_discard(first);
    gh_region_pool_discard(second);
    cr_assert_eq(pool.region_count, 3);
    cr_assert(gh_region_pool_is_valid(&pool));
}

Test(region_idle, only_what_is_in_use_is_imported) {
    char *block = take(GH_MIB);
    cr_assert(is_importable(block));
    cr_assert_eq(appeared, 1);
    char *second = take(GH_MIB);
    cr_assert_eq(appeared, 1, "it was known");
    keep(second, GH_MIB);
    cr_assert(is_importable(block));
    keep(block, GH_MIB);
    cr_assert_not(is_importable(block));
    cr_assert_eq(take(2 * GH_MIB), block);
    cr_assert_eq(appeared, 2, "somebody has to import it now");
    cr_assert(is_importable(block));
    pin(block);
    keep(block, 2 * GH_MIB);
    cr_assert(is_importable(block), "into the scopes that come later");
    take(2 * GH_MIB);
    cr_assert_eq(appeared, 2, "pinned, so imported");
}

// Before the first import: free ends go, dirty or not, and what is idle goes whole.
Test(region_idle, trimming_what_was_freed) {
    char *used = take(9 * GH_MIB);
    char *freed = take(20 * GH_MIB);
    const struct gh_region *region = gh_region_find(used);
    cr_assert_eq(gh_region_find(freed), region);
    memset(freed, 7, 20 * GH_MIB);
    keep(freed, 20 * GH_MIB);
    keep(take(2 * GH_MIB), 2 * GH_MIB);
    cr_assert_eq(pool.region_count, 2);
    gh_region_pool_populate(&pool);
    cr_assert_eq(pool.region_count, 1);
    cr_assert_leq(region->size_bytes, 10 * GH_MIB);
    cr_assert(gh_region_pool_is_valid(&pool));
    cr_assert_not(unit_readable(used + 10 * GH_MIB));
    bool zeroed = true;
    char *rest = gh_region_pool_take(&pool, region->size_bytes - 9 * GH_MIB, PAGE, &zeroed); // small: elsewhere
    cr_assert_neq(gh_region_find(rest), region);
    cr_assert_not(gh_region_pool_trim(&pool) && gh_region_pool_trim(&pool), "there is always more");
    cr_assert(gh_region_pool_is_valid(&pool));
}

// An idle region that is large enough, and at a wrong address, stays: both are needed in turn.
Test(region_idle, alignment_is_no_reason_to_go) {
    pool.populated = true;
    bool zeroed;
    char *block = take(65 * GH_MIB);
    keep(block, 65 * GH_MIB);
    char *aligned = gh_region_pool_take(&pool, 64 * GH_MIB, GH_GIB, &zeroed);
    cr_assert_not_null(aligned);
    unsigned most = pool.region_count;
    for (int i = 0; i < 5; i++) {
        keep(aligned, 64 * GH_MIB);
        cr_assert_eq(take(65 * GH_MIB), block);
        keep(block, 65 * GH_MIB);
        cr_assert_eq(gh_region_pool_take(&pool, 64 * GH_MIB, GH_GIB, &zeroed), aligned);
        cr_assert_leq(pool.region_count, most);
    }
}
