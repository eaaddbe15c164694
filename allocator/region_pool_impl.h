// SPDX-License-Identifier: MIT
//
// What the two halves of the region pool share: region_pool.c takes and gives pages,
// region_pool_life.c pins, trims and forks. Nobody else includes this.
#ifndef GH_ALLOCATOR_REGION_POOL_IMPL_H
#define GH_ALLOCATOR_REGION_POOL_IMPL_H

#include "lock.h"
#include "region_pool.h"

// A page at least that nobody can touch after each region: neighbours never touch, and a client
// that looks one past the end meets nothing.
#define GH_GUARD_BYTES GH_PAGE_SIZE

extern GH_HIDDEN struct gh_lock gh_region_pool_lock;

// How many bytes of guard belong behind a region of this size.
GH_HIDDEN size_t gh_region_pool_guard(const struct gh_region_pool *pool, size_t size_bytes);

// With the lock, both. Detach takes a wholly free region out of the pool; afterwards nobody but the
// caller knows it.
GH_HIDDEN void gh_region_pool_detach(struct gh_region_pool *pool, struct gh_region *region);
GH_HIDDEN struct gh_region *gh_region_pool_largest_idle(struct gh_region_pool *pool, bool pinned,
                                                        size_t below_bytes);

// With the lock, which it releases: takes the map entries away, then unmaps.
GH_HIDDEN void gh_region_pool_unmap(struct gh_region *region);

#endif
