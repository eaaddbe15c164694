// SPDX-License-Identifier: MIT
//
// Counts a thread's first frees (thread_cache.h).
#include "thread_cache.h"

#include "allocator/je_api.h"

// Threads that free less than this stay without a cache, which is cheaper for them.
#define FREES_BEFORE_CACHE 64u

GH_TLS uint8_t gh_thread_frees;

void gh_thread_cache_count_slow(void) {
    if (++gh_thread_frees < FREES_BEFORE_CACHE)
        return;
    gh_thread_frees = GH_FREES_SETTLED;
    gh_je_free(gh_je_malloc(1)); // a thread that has a cache already loses nothing
}
