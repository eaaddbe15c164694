// SPDX-License-Identifier: MIT
//
// The hooks (extent_hooks.h). Splitting never fails: jemalloc would give the extent up for good.
// Merging fails across regions, so that a block lies in one region and so in one import. There
// are no purge and no commit hooks: when jemalloc has kept an extent for DECAY_MS it gives it
// back whole, and the pool decides what may happen to the pages.
//
// Each hook keeps errno: it may run below free().
#include "extent_hooks.h"

#include <string.h>

static struct gh_region_pool *pool_of(extent_hooks_t *table) {
    return ((struct gh_extent_hooks *)(void *)table)->pool;
}

static void *hook_alloc(extent_hooks_t *table, void *new_address, size_t size, size_t alignment, bool *zero,
                        bool *commit, unsigned arena) {
    (void)arena;
    struct gh_region_pool *pool = pool_of(table);
    bool zeroed = false;
    void *address = new_address;
    if (new_address == NULL)
        address = gh_region_pool_take(pool, size, alignment, &zeroed);
    else if (!gh_region_pool_take_at(pool, new_address, size, &zeroed))
        address = NULL;
    if (address == NULL)
        return NULL;
    if (*zero && !zeroed)
        memset(address, 0, size);
    *zero = *zero || zeroed;
    *commit = true;
    return address;
}

static bool hook_dalloc(extent_hooks_t *table, void *address, size_t size, bool committed, unsigned arena) {
    (void)committed;
    (void)arena;
    // From before the hooks: the first thread's cache, which goes when that thread ends before the
    // process does (pthread_exit in main). It stays mapped and unused: what is refused jemalloc would
    // hand out again, and that would be a block outside every region.
    if (gh_region_find(address) == NULL)
        return false;
    // A large extent comes right after its block was freed (arena_set.c), a small one when jemalloc
    // has kept it long enough.
    if (size >= GH_EXTENT_LARGE)
        gh_region_pool_keep(pool_of(table), address, size);
    else
        gh_region_pool_give(pool_of(table), address, size);
    return false;
}

static void hook_destroy(extent_hooks_t *table, void *address, size_t size, bool committed, unsigned arena) {
    (void)committed;
    (void)arena;
    gh_region_pool_give(pool_of(table), address, size);
}

static bool hook_split(extent_hooks_t *table, void *address, size_t size, size_t size_a, size_t size_b, bool committed,
                       unsigned arena) {
    (void)table, (void)address, (void)size, (void)size_a, (void)size_b, (void)committed, (void)arena;
    return false;
}

static bool hook_merge(extent_hooks_t *table, void *address_a, size_t size_a, void *address_b, size_t size_b,
                       bool committed, unsigned arena) {
    (void)table, (void)size_a, (void)size_b, (void)committed, (void)arena;
    bool same_region = gh_region_find(address_a) == gh_region_find(address_b);
    return !same_region; // jemalloc: true means refused
}

void gh_extent_hooks_init(struct gh_extent_hooks *hooks, struct gh_region_pool *pool) {
    hooks->table = (extent_hooks_t){
        .alloc = hook_alloc,
        .dalloc = hook_dalloc,
        .destroy = hook_destroy,
        .split = hook_split,
        .merge = hook_merge,
    };
    hooks->pool = pool;
}
