// SPDX-License-Identifier: MIT
//
// Threads and their caches: one for each thread from the first block on, from a region, which starts with
// few blocks; later for one that only frees; none for a thread whose memory for it is refused, and
// then everything goes on without.
#include "unit.h"

#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "allocator/arena_set.h"
#include "allocator/cache_start.h"
#include "allocator/je_api.h"
#include "gate.h"
#include "../syscall_words.h"

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static _Atomic bool refusing; // every mapping
static _Atomic unsigned refused;

// Not every caller gives six arguments.
__attribute__((no_sanitize_address)) long __wrap_syscall(long number, ...) {
    TEST_SYSCALL_WORDS(a, number);
    if (number == SYS_mmap && refusing) {
        refused++;
        errno = ENOMEM;
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static bool has_cache(void) {
    bool enabled = false;
    size_t length = sizeof(enabled);
    cr_assert_eq(gh_je_mallctl("thread.tcache.enabled", &enabled, &length, NULL, 0), 0);
    return enabled;
}

// Each size class of the thread's cache, and above.
static void use_all_sizes(void) {
    for (size_t size = 1; size < 200000; size = size * 5 / 4 + 1) {
        unsigned char *block = gh_allocate(size, 0, false, NULL);
        if (block == NULL) {
            cr_assert(refusing, "%zu bytes", size);
            continue;
        }
        cr_assert_not_null(gh_region_find(block));
        memset(block, 3, size);
        block = gh_reallocate(block, size + 1, NULL);
        if (block != NULL) {
            cr_assert_eq(block[size - 1], 3);
            gh_deallocate(block);
        }
    }
}

static void *use_and_tell(void *had_cache) {
    use_all_sizes();
    *(bool *)had_cache = has_cache();
    refusing = false;
    use_all_sizes();
    cr_assert_eq(has_cache(), *(bool *)had_cache);
    return NULL;
}

static bool run_thread(void) {
    pthread_t thread;
    bool had_cache = false;
    cr_assert_eq(pthread_create(&thread, NULL, use_and_tell, &had_cache), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    return had_cache;
}

Test(cache_start, every_thread_has_one) {
    cr_assert(has_cache());
    for (int i = 0; i < 20; i++)
        cr_assert(run_thread());
}

// Blocks of the class of `SIZE` that no slab has, in a thread's cache or in use.
#define SIZE 640
static size_t blocks_out(void) {
    uint64_t epoch = 1;
    size_t count = 0;
    size_t length = sizeof(count);
    char name[64];
    for (unsigned bin = 0;; bin++) {
        size_t size = 0;
        snprintf(name, sizeof(name), "arenas.bin.%u.size", bin);
        cr_assert_eq(gh_je_mallctl(name, &size, &length, NULL, 0), 0);
        if (size != SIZE)
            continue;
        snprintf(name, sizeof(name), "stats.arenas.%u.bins.%u.curregs", MALLCTL_ARENAS_ALL, bin);
        cr_assert_eq(gh_je_mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)), 0);
        cr_assert_eq(gh_je_mallctl(name, &count, &length, NULL, 0), 0);
        return count;
    }
}

#define BLOCKS 150
static void *blocks[BLOCKS];
static pthread_barrier_t barrier;

static size_t out_after[BLOCKS];

static void *fill_slowly(void *unused) {
    size_t before = blocks_out();
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = gh_je_malloc(SIZE);
        out_after[i] = blocks_out() - before;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        gh_je_free(blocks[i]);
    return unused;
}

Test(cache_start, a_cache_starts_small) {
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, fill_slowly, NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    for (size_t i = 0; i < BLOCKS; i++) // 16, 32 more, then 64 at a time: half of what the cache holds
        cr_assert_eq(out_after[i], i < 16 ? 16 : i < 48 ? 48 : 48 + (i - 48) / 64 * 64 + 64, "%zu after %zu", out_after[i],
                     i);
}

static void *only_free(void *unused) {
    errno = 77;
    for (size_t i = 0; i < BLOCKS; i++)
        gh_je_free(blocks[i]);
    cr_assert_eq(errno, 77);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

// The first go straight to their slabs; from some number on they are cached.
Test(cache_start, a_thread_that_only_frees) {
    pthread_t thread;
    for (size_t i = 0; i < BLOCKS; i++)
        blocks[i] = gh_je_malloc(SIZE);
    gh_arena_set_flush_cache();
    size_t before = blocks_out();
    cr_assert_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
    cr_assert_eq(pthread_create(&thread, NULL, only_free, NULL), 0);
    pthread_barrier_wait(&barrier);
    size_t freed = before - blocks_out();
    cr_assert_eq(freed, 63, "%zu of %d", freed, BLOCKS);
    pthread_barrier_wait(&barrier);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(before - blocks_out(), BLOCKS);
}

// Until the heap has no run of this size any more.
static void fill_heap(size_t smallest) {
    for (size_t size = 1 << 20; size >= smallest; size /= 2) {
        while (gh_je_mallocx(size, MALLOCX_TCACHE_NONE) != NULL)
            ;
    }
}

Test(cache_start, a_thread_without_memory_goes_without) {
    static const size_t fill[] = { 1 << 14, 1 << 12, 16 };
    for (size_t i = 0; i < sizeof(fill) / sizeof(fill[0]); i++) {
        refusing = true;
        fill_heap(fill[i]);
        cr_assert_not(run_thread(), "the heap was not full, %zu", fill[i]);
        cr_assert_gt(refused, 0);
        cr_assert(has_cache(), "this thread had one before");
        cr_assert(run_thread());
    }
    cr_assert(gh_region_pool_is_valid(gh_arena_set_heap()));
}

// It looks whether jemalloc is the one that it knows: the second time it is not as it must be.
Test(cache_start, not_twice) {
    cr_assert_eq(gh_cache_start(), ENOTSUP);
    cr_assert(has_cache());
    cr_assert(run_thread());
}
