// SPDX-License-Identifier: MIT
//
// THE boundary of the allocator: what it calls upwards. Everything else goes downwards by plain
// function calls (region_pool.h). A table without functions is fine: nothing is told.
//
// Contract: both callbacks run under the pool lock, usually inside one of jemalloc's extent
// hooks with jemalloc mutexes held. They must not malloc or free, call a driver, block, or call
// back into the pool. Raising a flag that another thread, or this one at a safe place, acts on
// is what they are for.
#ifndef GH_ALLOCATOR_REGION_OPS_H
#define GH_ALLOCATOR_REGION_OPS_H

struct gh_region_ops {
    // Something of a region is in use of which nothing was, and it is not pinned: a new one, or one that
    // was idle. Plain regions are not told.
    void (*appeared)(void);
    // A pinned region became wholly free, or may go in exchange: gh_region_pool_pop_retired may return it.
    void (*retired)(void);
};

#endif
