// SPDX-License-Identifier: MIT
//
// Takes the place of the function by which jemalloc gives a thread its cache (cache_start.h): the
// build makes jemalloc's own a weak symbol. Runs as a thread's first call of jemalloc does, with
// no lock held; allocates nothing but the cache. Two more functions of jemalloc are called through
// ours, which the linker puts between its objects (--wrap).
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

// Threads that free less than this stay without a cache, which is cheaper for them.
#define FREES_BEFORE_CACHE 64u

static GH_TLS unsigned frees;

// How many blocks a thread's cache gets when it is empty: few at first, twice as many each time, up
// to what jemalloc says. A thread that lives for a moment takes no more from the others than it
// needs, and does not have to give it back; in one that goes on a cache can be large.
#define FIRST_FILL 16u
#define SMALL_CLASSES_MAX 64u

static GH_TLS uint8_t fills[SMALL_CLASSES_MAX]; // of each class, up to where the limit is jemalloc's

void __wrap_je_arena_cache_bin_fill_small(void *thread, void *arena, void *bin, void *bin_info, unsigned size_class,
                                          unsigned count) {
    if (size_class < SMALL_CLASSES_MAX && (FIRST_FILL << fills[size_class]) < count)
        count = FIRST_FILL << fills[size_class]++;
    __real_je_arena_cache_bin_fill_small(thread, arena, bin, bin_info, size_class, count);
}

// Called by free as long as the thread has no cache, with `minimal`: it is not to get one.
void *__wrap_je_tsd_fetch_slow(void *thread, bool minimal) {
    if (!minimal || ++frees < FREES_BEFORE_CACHE)
        return __real_je_tsd_fetch_slow(thread, minimal);
    int saved_errno = errno; // free keeps it
    thread = __real_je_tsd_fetch_slow(thread, false);
    errno = saved_errno;
    return thread;
}

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

// A jemalloc that takes care of it, and whose functions are as they are.
__asm__(".text\n"
        ".globl __wrap_je_arena_cache_bin_fill_small\n"
        "__wrap_je_arena_cache_bin_fill_small: jmp __real_je_arena_cache_bin_fill_small\n"
        ".globl __wrap_je_tsd_fetch_slow\n"
        "__wrap_je_tsd_fetch_slow: jmp __real_je_tsd_fetch_slow\n");

int gh_cache_start(void) {
    return 0;
}

#endif
