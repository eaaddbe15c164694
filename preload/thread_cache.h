// SPDX-License-Identifier: MIT
//
// jemalloc gives a thread its cache at the first allocation. A thread that only frees (a consumer
// of a queue) never gets one, and each of its frees takes an arena's lock. So a thread that has
// freed a number of blocks allocates one.
#ifndef GH_PRELOAD_THREAD_CACHE_H
#define GH_PRELOAD_THREAD_CACHE_H

#include "allocator/util.h"

#define GH_FREES_SETTLED 255u // this thread has a cache

extern GH_HIDDEN GH_TLS uint8_t gh_thread_frees;

GH_HIDDEN void gh_thread_cache_count_slow(void);

// Before each free: one comparison, once the thread has a cache.
static inline void gh_thread_cache_count_free(void) {
    if (gh_unlikely(gh_thread_frees != GH_FREES_SETTLED))
        gh_thread_cache_count_slow();
}

#endif
