// SPDX-License-Identifier: MIT
//
// jemalloc as this library wants it: options that nothing in the environment can undo, our hooks
// on every arena before the first block is served, and one more arena for plain memory. The only
// file that calls mallctl.
#ifndef GH_ALLOCATOR_ARENA_SET_H
#define GH_ALLOCATOR_ARENA_SET_H

#include "region_pool.h"

struct gh_arena_options {
    unsigned arenas;       // automatic arenas; threads are spread over them
    uint64_t decay_ms;     // how long jemalloc keeps a free extent before it gives it back
    size_t region_min_bytes;
    size_t huge_region_min_bytes; // smallest region for huge blocks, before there is an import
    size_t region_max_bytes;
    bool hugepages;
    bool whole_slots; // address space is no scarce thing here
    const struct gh_region_ops *ops;
};

// Boots jemalloc. Called once, before anything else here, by one thread; nothing may have called
// jemalloc before. Returns 0, or an errno: then no allocation may be served from jemalloc.
GH_HIDDEN int gh_arena_set_start(const struct gh_arena_options *options);

// The mallocx flags for a block of plain memory; its arena is made on the first call. 0 when it
// cannot be had. Mallocs; not inside a hook.
GH_HIDDEN int gh_arena_set_plain_flags(void);

// What gh_arena_set_plain_flags answered last, without making anything.
extern GH_HIDDEN _Atomic int gh_arena_plain_flags;

GH_HIDDEN void gh_arena_set_fork_child(void);

// Until gh_arena_set_leave_plain, every block that this thread allocates is plain memory, small
// ones too. `*before` keeps what to go back to. False: nothing was changed, and is not to be undone.
GH_HIDDEN bool gh_arena_set_enter_plain(unsigned *before);
GH_HIDDEN void gh_arena_set_leave_plain(unsigned before);

// Flags for operations on a block that is plain memory: it must not pass the thread's cache,
// which would hand it out again as heap.
#define GH_PLAIN_FREE_FLAGS MALLOCX_TCACHE_NONE

// Lets time pass for jemalloc's caches of free extents: extents older than DECAY_MS come back to
// the pool. For the service thread; an active process does this by itself as it mallocs.
GH_HIDDEN void gh_arena_set_decay(void);

// No memory is to be had: the same as gh_arena_set_purge, and the free ends of regions.
GH_HIDDEN bool gh_arena_set_make_room(void);

// Gives back all free extents now, this thread's cache included (malloc_trim). True when
// something came back to the pool.
GH_HIDDEN bool gh_arena_set_purge(void);

// This thread's cache of free blocks goes back to where they came from.
GH_HIDDEN void gh_arena_set_flush_cache(void);

struct gh_arena_totals {
    struct gh_region_pool_stats heap;
    struct gh_region_pool_stats plain;
    size_t allocated_bytes; // in blocks that are in use
};

GH_HIDDEN void gh_arena_set_get_totals(struct gh_arena_totals *out);

GH_HIDDEN struct gh_region_pool *gh_arena_set_heap(void);
GH_HIDDEN struct gh_region_pool *gh_arena_set_plain(void);

// "5.3.0-0-g…", of the jemalloc inside.
GH_HIDDEN const char *gh_arena_set_jemalloc_version(void);

#endif
