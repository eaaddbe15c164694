// SPDX-License-Identifier: MIT
//
// A thread's cache, from its first moment: jemalloc 5.3.0 does not look whether it got memory for
// one and crashes with the next block. Here a thread that gets none goes without, which is slower
// and right; the fast path is as it was.
//
// And jemalloc gives a thread its cache at the first allocation. A thread that only frees (a consumer
// of a queue) never gets one, and each of its frees takes an arena's lock; here it gets one after
// a number of frees.
#ifndef GH_ALLOCATOR_CACHE_START_H
#define GH_ALLOCATOR_CACHE_START_H

#include "util.h"

// Gives the thread that booted jemalloc its cache, and from now on each new thread one of its own.
// Called once, when regions can be had: memory that jemalloc took before lies outside of them. 0,
// ENOMEM, or ENOTSUP when this jemalloc is laid out differently.
GH_HIDDEN int gh_cache_start(void);

#endif
