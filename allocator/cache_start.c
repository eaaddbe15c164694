// SPDX-License-Identifier: MIT
//
// Takes the place of the function by which jemalloc gives a thread its cache (cache_start.h): the
// build makes jemalloc's own a weak symbol. Runs as a thread's first call of jemalloc does, with
// no lock held; allocates nothing but the cache.
//
// jemalloc knows by one flag, the first byte of a thread's data, whether the thread has a cache.
// It sets the flag before it asks for the memory; here it is set after, if there is memory.
#include "cache_start.h"

#include <errno.h>
#include <stdatomic.h>

#include "je_api.h"

#if JEMALLOC_VERSION_MAJOR == 5 && JEMALLOC_VERSION_MINOR == 3 && JEMALLOC_VERSION_BUGFIX == 0

static void *first_thread;       // its data: it came before there was a region
static _Atomic bool has_started; // threads get caches

static bool give_cache(void *thread) {
    if (je_tsd_tcache_data_init(thread))
        return false;
    *(bool *)thread = true;
    je_tsd_slow_update(thread);
    return true;
}

bool je_tsd_tcache_enabled_data_init(void *thread) {
    if (atomic_load_explicit(&has_started, memory_order_acquire))
        (void)give_cache(thread);
    else
        first_thread = thread;
    return false;
}

static bool has_cache(void) {
    bool enabled = false;
    size_t length = sizeof(enabled);
    return gh_je_mallctl("thread.tcache.enabled", &enabled, &length, NULL, 0) == 0 && enabled;
}

int gh_cache_start(void) {
    if (first_thread == NULL || has_cache()) // then ours was not called
        return ENOTSUP;
    if (!give_cache(first_thread))
        return ENOMEM;
    atomic_store_explicit(&has_started, true, memory_order_release);
    return has_cache() ? 0 : ENOTSUP;
}

#else

int gh_cache_start(void) {
    return 0; // a jemalloc that takes care of it
}

#endif
