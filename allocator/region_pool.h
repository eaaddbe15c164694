// SPDX-License-Identifier: MIT
//
// Regions in, page runs out and back, whole regions returned. jemalloc's extents come from here
// and from nowhere else. A pool is one kind of memory: the heap, or plain memory.
//
// One lock (GH_RANK_POOL) serves all pools, the region table and the address map. Everything may
// be called inside a jemalloc hook; nothing here mallocs.
#ifndef GH_ALLOCATOR_REGION_POOL_H
#define GH_ALLOCATOR_REGION_POOL_H

#include "region.h"
#include "region_ops.h"

struct gh_region_pool {
    // Constant after start-up.
    size_t region_min_bytes;
    size_t huge_region_min_bytes; // the same for huge blocks, until there is an import
    size_t region_max_bytes;
    bool plain;
    bool hugepages; // ask for transparent huge pages in regions of at least one
    uint32_t decay_ms; // how long kept pages stay
    bool populated;    // under the lock: regions are imported or locked, so what nobody has used costs memory
    bool whole_slots;  // the guard behind a region goes on to the end of its last slot
    const struct gh_region_ops *ops;

    // Under the pool lock.
    struct gh_region *first; // in order of age: old regions fill up, young ones can be returned
    struct gh_region *last;
    struct gh_region *retired;
    size_t mapped_bytes;
    size_t large_mapped_bytes; // of them in regions for large requests
    size_t free_bytes;
    // So much of pinned, idle regions may go at the next gh_region_pool_pop_retired, of smaller ones than this.
    size_t surplus_bytes;
    size_t surplus_below;
    uint32_t last_sweep_ms;
    uint32_t region_count;
    uint64_t regions_mapped_ever;
    uint64_t regions_returned;
};

struct gh_region_pool_stats {
    size_t mapped_bytes;
    size_t free_bytes; // in page runs that no extent uses; jemalloc's own caches are not in it
    size_t idle_bytes; // of them, in regions of which nothing is in use and that nobody pins
    uint32_t region_count;
    uint64_t regions_mapped_ever;
    uint64_t regions_returned;
};

// Takes `size_bytes` (a multiple of the page size) at `alignment` (a power of two). `*zeroed_out`:
// all of it is known to be zero. NULL: the kernel has no memory for us.
GH_HIDDEN void *gh_region_pool_take(struct gh_region_pool *pool, size_t size_bytes, size_t alignment,
                                    bool *zeroed_out);

// Takes exactly this range, to grow an extent in place. False when it is not free.
GH_HIDDEN bool gh_region_pool_take_at(struct gh_region_pool *pool, void *address, size_t size_bytes, bool *zeroed_out);

// Gives a range of pages of one region back. Purges it unless the region is pinned; returns the
// region to the kernel when nothing of it is in use any more.
GH_HIDDEN void gh_region_pool_give(struct gh_region_pool *pool, void *address, size_t size_bytes);

// Gives a range back that was in use just now: its pages keep what they hold and are handed out
// again, until they are DECAY_MS old. Sweeps when it is time.
GH_HIDDEN void gh_region_pool_keep(struct gh_region_pool *pool, void *address, size_t size_bytes);

// Purges kept pages that are old enough (all of them: `everything`) and returns idle regions. May
// take as long as its system calls do; not with a lock held but jemalloc's. True when anything
// came back.
GH_HIDDEN bool gh_region_pool_sweep(struct gh_region_pool *pool, bool everything);

// Gives up the free pages at the ends of regions, and regions of which nothing is in use. Waits for
// purges, so: not inside a hook. True when there were any.
GH_HIDDEN bool gh_region_pool_trim(struct gh_region_pool *pool);

// From now on what is mapped costs memory, used or not (before the first import, before mlockall): trims,
// and new regions are smaller.
GH_HIDDEN void gh_region_pool_populate(struct gh_region_pool *pool);

// Requests from this size on come from regions of their own kind, so that small blocks, some of
// which always stay, do not hold regions that big ones have left.
#define GH_POOL_LARGE GH_MIB

// And before there is an import, huge ones have theirs, where no smaller block comes: the place of a row of
// big arrays, once they are freed, would all be imported if a smaller block lay among them.
#define GH_POOL_HUGE (8 * GH_MIB)

struct gh_region_look {
    uint32_t generation;
    bool heap;       // active, and not plain
    bool importable; // and something of it is in use, or it is imported already; then also
    uintptr_t base;
    size_t size_bytes;
};

// What the region with this id is now. False for ids from the first one on that was never used.
GH_HIDDEN bool gh_region_pool_look(uint16_t id, struct gh_region_look *out);

// Pins the region with this id: until as many unpins its pages stay as they are. False when
// there is no such active region. Waits for purges that run on it, so: not inside
// a hook.
GH_HIDDEN bool gh_region_pool_pin(uint16_t id, uintptr_t *base_out, size_t *size_out);
GH_HIDDEN void gh_region_pool_unpin(uint16_t id);

// A pinned region that became wholly free and was let go, or NULL. The caller undoes what the pin stood for,
// then discards it.
GH_HIDDEN struct gh_region *gh_region_pool_pop_retired(struct gh_region_pool *pool);
GH_HIDDEN void gh_region_pool_discard(struct gh_region *region);

GH_HIDDEN void gh_region_pool_get_stats(struct gh_region_pool *pool, struct gh_region_pool_stats *out);

// Around fork. The child owns copies of all pages and none of the pins.
GH_HIDDEN void gh_region_pool_fork_prepare(void);
GH_HIDDEN void gh_region_pool_fork_parent(void);
GH_HIDDEN void gh_region_pool_fork_child(struct gh_region_pool *pool);

GH_HIDDEN bool gh_region_pool_is_valid(struct gh_region_pool *pool);

#endif
