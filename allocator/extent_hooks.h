// SPDX-License-Identifier: MIT
//
// jemalloc's extent hooks over a region pool. jemalloc calls them with its own mutexes held, so
// they do page bookkeeping and nothing else.
#ifndef GH_ALLOCATOR_EXTENT_HOOKS_H
#define GH_ALLOCATOR_EXTENT_HOOKS_H

#include "je_api.h"
#include "region_pool.h"

// Extents from this size on are kept for reuse by the pool, not by jemalloc: the pool joins them
// whichever arena they were in.
#define GH_EXTENT_LARGE GH_POOL_LARGE

// The table is the first member: jemalloc hands each hook the address of its table, which is how
// a hook finds its pool without a global.
struct gh_extent_hooks {
    extent_hooks_t table;
    struct gh_region_pool *pool;
};

GH_HIDDEN void gh_extent_hooks_init(struct gh_extent_hooks *hooks, struct gh_region_pool *pool);

#endif
