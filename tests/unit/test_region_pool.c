// SPDX-License-Identifier: MIT
//
// The region pool: growth, borders, guard pages, return and retirement of regions, and what
// happens when the kernel says no at each of the calls that it can say it to (syscall and munmap
// are wrapped by the link).
#include "unit.h"

#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "allocator/region_pool.h"
#include "region_events.h"
#include "../syscall_words.h"

static struct gh_region_pool pool = { .region_min_bytes = 16 * GH_MIB, .region_max_bytes = 4 * GH_GIB, .ops = &ops };

// What the wrapped calls do: the n-th mmap from now fails; bytes mapped and not unmapped.
static _Atomic long fail_in = -1;
static _Atomic bool mmap_failed;
static _Atomic long balance;

long __real_syscall(long number, ...);
int __real_munmap(void *address, size_t size);
long __wrap_syscall(long number, ...);
int __wrap_munmap(void *address, size_t size);

long __wrap_syscall(long number, ...) {
    TEST_SYSCALL_WORDS(a, number);
    if (number == SYS_mmap && fail_in > 0 && --fail_in == 0) { // one thread when it is used
        mmap_failed = true;
        errno = ENOMEM;
        return -1;
    }
    long result = __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (number == SYS_mmap && result != -1 && (a[3] & MAP_FIXED) == 0)
        balance += a[1];
    if (number == SYS_munmap && result == 0)
        balance -= a[1];
    return result;
}

int __wrap_munmap(void *address, size_t size) {
    int result = __real_munmap(address, size);
    if (result == 0)
        balance -= (long)size;
    return result;
}

static void *take(size_t size) {
    bool zeroed = false;
    return gh_region_pool_take(&pool, size, PAGE, &zeroed);
}

// N GiB of heap are some tens of imports, and what is mapped but not used is an eighth at most.
Test(region_pool, growth_of_a_mixed_heap) {
    unit_seed();
    size_t in_use = 0;
    while (in_use < 8 * GH_GIB) {
        static const size_t largest[] = { 16, 64, 512, 2048 }; // pages
        size_t size = PAGE * (1 + unit_below(largest[unit_below(4)]));
        cr_assert_not_null(take(size));
        in_use += size;
        cr_assert_eq(pool.mapped_bytes - pool.free_bytes, in_use);
        if (pool.mapped_bytes >= 64 * GH_MIB)
            cr_assert_leq(pool.free_bytes, pool.mapped_bytes / 8 + 48 * GH_MIB, "at %zu MiB: %zu KiB free",
                          in_use / GH_MIB, pool.free_bytes / GH_KIB);
    }
    cr_assert_leq(pool.free_bytes, pool.mapped_bytes / 8);
    cr_assert_leq(pool.region_count, 64, "%u regions", pool.region_count);
    cr_assert_eq(appeared, pool.region_count);
    cr_assert(gh_region_pool_is_valid(&pool));
}

// A row of equal arrays, each larger than a normal region's eighth, leaves no tail.
Test(region_pool, growth_with_equal_arrays) {
    for (unsigned i = 0; i < 500; i++)
        cr_assert_not_null(take(2500 * GH_KIB));
    cr_assert_leq(pool.free_bytes, pool.mapped_bytes / 8 + 2500 * GH_KIB);
    cr_assert_leq(pool.region_count, 64, "%u regions", pool.region_count);
    cr_assert(gh_region_pool_is_valid(&pool));
}

Test(region_pool, a_large_block_has_a_region_of_its_own_that_goes_back) {
    char *block = take(100 * GH_MIB);
    struct gh_region *region = gh_region_find(block);
    cr_assert_not_null(region);
    cr_assert_eq(region->base, (uintptr_t)block);
    cr_assert_eq(region->size_bytes, 100 * GH_MIB);
    cr_assert_eq(pool.region_count, 1);
    block[0] = block[100 * GH_MIB - 1] = 1;
    gh_region_pool_give(&pool, block, 100 * GH_MIB);
    cr_assert_eq(pool.region_count, 0);
    cr_assert_eq(pool.mapped_bytes, 0);
    cr_assert_eq(pool.regions_returned, 1);
    cr_assert_eq(retired, 0);
    cr_assert_null(gh_region_find(block));
    cr_assert_not(unit_readable(block));
    cr_assert_eq(balance, 0, "%ld bytes stayed mapped", balance);
}

Test(region_pool, look_ups_and_the_guard_page) {
    char *block = take(100 * GH_MIB);
    char *end = block + 100 * GH_MIB;
    cr_assert_null(gh_region_find(block - 1));
    cr_assert_not_null(gh_region_find(block));
    cr_assert_not_null(gh_region_find(block + 50 * GH_MIB));
    cr_assert_not_null(gh_region_find(end - 1));
    cr_assert_null(gh_region_find(end));
    cr_assert(unit_readable(end - 1));
    cr_assert_not(unit_readable(end));
    // Nobody can map anything there.
    void *got = mmap(end, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    cr_assert_eq(got, MAP_FAILED);
    cr_assert_eq(errno, EEXIST);
}

Test(region_pool, alignments_to_one_gib) {
    for (size_t alignment = PAGE; alignment <= GH_GIB; alignment *= 2) {
        for (size_t size = PAGE; size <= 8 * GH_MIB; size *= 8) {
            bool zeroed = false;
            char *block = gh_region_pool_take(&pool, size, alignment, &zeroed);
            cr_assert_not_null(block, "%zu at %zu", size, alignment);
            cr_assert_eq((uintptr_t)block % alignment, 0);
            cr_assert(zeroed);
            struct gh_region *region = gh_region_find(block);
            cr_assert_eq(region, gh_region_find(block + size - 1));
            cr_assert(gh_region_pool_is_valid(&pool));
        }
    }
}

Test(region_pool, freed_pages_are_zero_again_unless_pinned) {
    unit_seed();
    char *keep = take(PAGE);
    char *block = take(16 * PAGE);
    struct gh_region *region = gh_region_find(block);
    cr_assert_eq(region, gh_region_find(keep));
    bool zeroed = false;
    memset(block, 7, 16 * PAGE);
    gh_region_pool_give(&pool, block, 16 * PAGE);
    cr_assert_eq(gh_region_pool_take(&pool, 16 * PAGE, PAGE, &zeroed), block);
    cr_assert(zeroed);
    for (size_t i = 0; i < 16 * PAGE; i++)
        cr_assert_eq(block[i], 0);

    uintptr_t base;
    size_t size;
    cr_assert(gh_region_pool_pin(region->id, &base, &size));
    cr_assert_eq(base, region->base);
    cr_assert_eq(size, region->size_bytes);
    memset(block, 7, 16 * PAGE);
    gh_region_pool_give(&pool, block, 16 * PAGE);
    cr_assert_eq(block[5 * PAGE], 7, "a pinned page was purged");
    cr_assert_eq(gh_region_pool_take(&pool, 16 * PAGE, PAGE, &zeroed), block);
    cr_assert_not(zeroed);
}

static void wait_ms(long milliseconds) {
    nanosleep(&(struct timespec){ .tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000 }, NULL);
}

// Kept pages hold what they held until they are old; then they are zero, and idle regions go.
Test(region_pool, kept_pages_age) {
    pool.decay_ms = 200;
    char *stay = take(PAGE);
    char *block = take(16 * PAGE);
    char *large = take(100 * GH_MIB);
    block[0] = large[0] = 7;
    gh_region_pool_keep(&pool, block, 16 * PAGE);
    gh_region_pool_keep(&pool, large, 100 * GH_MIB);
    cr_assert_not(gh_region_pool_sweep(&pool, false));
    cr_assert_eq(block[0], 7);
    cr_assert_eq(pool.region_count, 2);
    bool zeroed = true;
    cr_assert_eq(gh_region_pool_take(&pool, 100 * GH_MIB, PAGE, &zeroed), large, "kept memory is used again");
    cr_assert_not(zeroed);
    gh_region_pool_keep(&pool, large, 100 * GH_MIB);
    wait_ms(260);
    cr_assert(gh_region_pool_sweep(&pool, false));
    cr_assert_eq(block[0], 0);
    cr_assert_eq(pool.region_count, 1);
    cr_assert_not(unit_readable(large));
    cr_assert_not(gh_region_pool_sweep(&pool, false), "there is nothing any more");
    cr_assert(gh_region_pool_is_valid(&pool));
    gh_region_pool_give(&pool, stay, PAGE);
    cr_assert_eq(pool.region_count, 0);
    cr_assert_eq(balance, 0, "%ld bytes stayed mapped", balance);
}

Test(region_pool, a_sweep_of_everything) {
    pool.decay_ms = 100000;
    char *stay = take(PAGE);
    char *block = take(16 * PAGE);
    char *large = take(100 * GH_MIB);
    block[0] = 7;
    gh_region_pool_keep(&pool, block, 16 * PAGE);
    gh_region_pool_keep(&pool, large, 100 * GH_MIB);
    cr_assert(gh_region_pool_sweep(&pool, true));
    cr_assert_eq(block[0], 0);
    cr_assert_eq(pool.region_count, 1);
    cr_assert_not(gh_region_pool_sweep(&pool, true));
    (void)stay;
}

// I5: a pin holds kept pages too; the region retires once it is idle.
Test(region_pool, pinned_kept_pages_are_not_swept) {
    pool.decay_ms = 100000;
    char *stay = take(PAGE);
    char *block = take(16 * PAGE);
    uintptr_t base;
    size_t size;
    block[0] = 7;
    cr_assert(gh_region_pool_pin(gh_region_find(block)->id, &base, &size));
    gh_region_pool_keep(&pool, block, 16 * PAGE);
    gh_region_pool_sweep(&pool, true);
    cr_assert_eq(block[0], 7);
    gh_region_pool_keep(&pool, stay, PAGE);
    cr_assert_eq(retired, 0);
    gh_region_pool_sweep(&pool, true);
    cr_assert_eq(retired, 1);
    cr_assert_eq(block[0], 7);
    gh_region_pool_discard(gh_region_pool_pop_retired(&pool));
    cr_assert_eq(pool.region_count, 0);
    cr_assert_eq(balance, 0, "%ld bytes stayed mapped", balance);
}

Test(region_pool, pinned_regions_retire) {
    char *block = take(100 * GH_MIB);
    struct gh_region *region = gh_region_find(block);
    uintptr_t base;
    size_t size;
    cr_assert(gh_region_pool_pin(region->id, &base, &size));
    block[0] = 9;
    gh_region_pool_give(&pool, block, 100 * GH_MIB);
    cr_assert_eq(retired, 1);
    cr_assert_eq(pool.region_count, 0);
    cr_assert_eq(region->state, GH_REGION_RETIRED);
    cr_assert_eq(block[0], 9);
    cr_assert_not(gh_region_pool_pin(region->id, &base, &size), "a retired region was pinned again");
    cr_assert_eq(gh_region_pool_pop_retired(&pool), region);
    char *other = take(100 * GH_MIB); // never one that is being released
    cr_assert_neq(other, block);
    cr_assert_null(gh_region_pool_pop_retired(&pool));
    gh_region_pool_discard(region);
    cr_assert_null(gh_region_find(block));
    cr_assert_not(unit_readable(block));
    gh_region_pool_give(&pool, other, 100 * GH_MIB);
    cr_assert_eq(balance, 0, "%ld bytes stayed mapped", balance);
    cr_assert(gh_region_pool_is_valid(&pool));
}

// Until somebody begins to release it, a retired region serves again, pins and all.
Test(region_pool, retired_regions_serve_again) {
    char *block = take(100 * GH_MIB);
    struct gh_region *region = gh_region_find(block);
    uint32_t generation = region->generation;
    uintptr_t base;
    size_t size;
    bool zeroed = true;
    cr_assert(gh_region_pool_pin(region->id, &base, &size));
    block[0] = 9;
    gh_region_pool_give(&pool, block, 100 * GH_MIB);
    char *small = take(PAGE); // too small for it
    cr_assert_neq(gh_region_find(small), region);
    char *larger = take(101 * GH_MIB);
    cr_assert_neq(gh_region_find(larger), region);
    appeared = 0;
    cr_assert_eq(gh_region_pool_take(&pool, 90 * GH_MIB, PAGE, &zeroed), block);
    cr_assert_not(zeroed);
    cr_assert_eq(block[0], 9);
    cr_assert_eq(appeared, 1);
    cr_assert_eq(region->pins, 1);
    cr_assert_eq(region->generation, generation);
    cr_assert_null(gh_region_pool_pop_retired(&pool));
    cr_assert(gh_region_pool_is_valid(&pool));
    gh_region_pool_give(&pool, block, 90 * GH_MIB);
    gh_region_pool_give(&pool, small, PAGE);
    gh_region_pool_give(&pool, larger, 101 * GH_MIB);
    cr_assert_null(gh_region_pool_take(&pool, 90 * GH_MIB, (size_t)1 << 46, &zeroed)); // never so aligned
    cr_assert_eq(gh_region_pool_pop_retired(&pool), region);
    gh_region_pool_discard(region);
    cr_assert_eq(pool.region_count, 0);
    cr_assert_eq(balance, 0, "%ld bytes stayed mapped", balance);
}

Test(region_pool, pins_are_counted) {
    char *block = take(100 * GH_MIB);
    uint16_t id = gh_region_find(block)->id;
    uintptr_t base;
    size_t size;
    cr_assert(gh_region_pool_pin(id, &base, &size));
    cr_assert(gh_region_pool_pin(id, &base, &size));
    gh_region_pool_unpin(id);
    gh_region_pool_unpin(id);
    gh_region_pool_give(&pool, block, 100 * GH_MIB);
    cr_assert_eq(retired, 0);
    cr_assert_null(gh_region_find(block));
    cr_assert_not(gh_region_pool_pin(id, &base, &size));
    gh_region_pool_unpin(id); // of a region that is gone: nothing happens
}

Test(region_pool, growth_in_place) {
    bool zeroed = false;
    char *block = take(PAGE);
    struct gh_region *region = gh_region_find(block);
    cr_assert(gh_region_pool_take_at(&pool, block + PAGE, 3 * PAGE, &zeroed));
    cr_assert(zeroed);
    cr_assert_not(gh_region_pool_take_at(&pool, block + 2 * PAGE, PAGE, &zeroed), "taken twice");
    size_t rest = region->size_bytes - 4 * PAGE;
    cr_assert_not(gh_region_pool_take_at(&pool, block + 4 * PAGE, rest + PAGE, &zeroed), "beyond the end");
    cr_assert(gh_region_pool_take_at(&pool, block + 4 * PAGE, rest, &zeroed));
    cr_assert_not(gh_region_pool_take_at(&pool, block + region->size_bytes, PAGE, &zeroed), "the guard page");
    static struct gh_region_pool other = { .region_min_bytes = 4 * GH_MIB, .region_max_bytes = GH_GIB, .plain = true };
    char *plain = gh_region_pool_take(&other, PAGE, PAGE, &zeroed);
    cr_assert_not(gh_region_pool_take_at(&pool, plain + PAGE, PAGE, &zeroed), "another pool's");
    cr_assert(gh_region_pool_is_valid(&pool));
    cr_assert(gh_region_pool_is_valid(&other));
}

Test(region_pool, plain_regions_are_not_told) {
    static struct gh_region_pool plain = { .region_min_bytes = 4 * GH_MIB, .region_max_bytes = GH_GIB, .plain = true,
                                           .ops = &ops };
    bool zeroed = false;
    char *block = gh_region_pool_take(&plain, PAGE, PAGE, &zeroed);
    cr_assert_eq(appeared, 0);
    cr_assert(gh_region_find(block)->plain);
    cr_assert_eq(gh_region_entry(block) & GH_REGION_LOOK_BIT, GH_REGION_LOOK_BIT);
}

// The n-th mmap fails, for n = 1, 2, ... until none does. Nothing may leak or stay half done.
Test(region_pool, every_mmap_fails_once) {
    for (long n = 1;; n++) {
        struct gh_region_pool_stats before;
        gh_region_pool_get_stats(&pool, &before);
        long balance_before = balance;
        fail_in = n;
        mmap_failed = false;
        errno = 4711;
        bool zeroed = false;
        char *block = gh_region_pool_take(&pool, 5 * GH_MIB, 128 * GH_MIB, &zeroed);
        cr_assert_eq(errno, 4711, "errno changed");
        fail_in = -1;
        cr_assert(gh_region_pool_is_valid(&pool));
        if (block == NULL)
            cr_assert(mmap_failed);
        else
            gh_region_pool_give(&pool, block, 5 * GH_MIB);
        struct gh_region_pool_stats after;
        gh_region_pool_get_stats(&pool, &after);
        cr_assert_eq(after.mapped_bytes, before.mapped_bytes);
        cr_assert_eq(balance, balance_before, "n = %ld: %ld bytes leaked", n, balance - balance_before);
        if (!mmap_failed)
            break;
        cr_assert_lt(n, 50);
    }
}

static bool limit_address_space(size_t room) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu", &pages) != 1)
        return false;
    fclose(file);
    struct rlimit limit = { .rlim_cur = pages * PAGE + room, .rlim_max = pages * PAGE + room };
    return setrlimit(RLIMIT_AS, &limit) == 0;
}

Test(region_pool, no_address_space_left) {
    cr_assert(limit_address_space(GH_GIB));
    static char *blocks[4096];
    unsigned count = 0;
    while (count < 4096 && (blocks[count] = take(GH_MIB)) != NULL)
        count++;
    cr_assert_gt(count, 900, "%u MiB of 1024 could be had", count);
    cr_assert_lt(count, 4096);
    cr_assert(gh_region_pool_is_valid(&pool));
    for (unsigned i = 0; i < count; i++)
        gh_region_pool_give(&pool, blocks[i], GH_MIB);
    cr_assert_eq(pool.region_count, 0);
    cr_assert_not_null(take(GH_MIB));
}

// The process has as many mappings as vm.max_map_count allows: NULL, and nothing half done.
Test(region_pool, no_mappings_left) {
    char *block = take(100 * GH_MIB);
    size_t size = (size_t)512 << 20;
    char *area = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq(area, MAP_FAILED);
    size_t at = 0;
    while (at < size && mprotect(area + at, PAGE, PROT_READ) == 0)
        at += 2 * PAGE;
    if (at >= size)
        cr_skip_test("vm.max_map_count is above 131072");
    cr_assert_null(take(100 * GH_MIB));
    cr_assert_null(take(PAGE));
    cr_assert(gh_region_pool_is_valid(&pool));
    gh_region_pool_give(&pool, block, 100 * GH_MIB);
    cr_assert_eq(pool.region_count, 0);
    munmap(area, size);
    cr_assert_not_null(take(PAGE));
    cr_assert(gh_region_pool_is_valid(&pool));
}

// More regions than a low maximum and the descriptors allow: regions get larger instead.
Test(region_pool, a_low_maximum_does_not_use_up_the_descriptors) {
    pool.region_min_bytes = 64 * GH_KIB;
    pool.region_max_bytes = 64 * GH_KIB;
    for (unsigned i = 0; i < UNIT_STEPS(100000); i++)
        cr_assert_not_null(take(64 * GH_KIB), "block %u", i);
    cr_assert_lt(pool.region_count, GH_REGION_MAX / 2);
    cr_assert(gh_region_pool_is_valid(&pool));
}

static void *churn(void *argument) {
    uint64_t state = (uintptr_t)argument;
    char *blocks[32] = { 0 };
    size_t sizes[32];
    for (int i = 0; i < UNIT_STEPS(20000); i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        unsigned at = (unsigned)(state >> 33) % 32;
        if (blocks[at] != NULL) {
            if (blocks[at][0] != (char)at || blocks[at][sizes[at] - 1] != (char)at)
                abort();
            if (i % 3 == 0)
                gh_region_pool_keep(&pool, blocks[at], sizes[at]);
            else
                gh_region_pool_give(&pool, blocks[at], sizes[at]);
            blocks[at] = NULL;
            continue;
        }
        sizes[at] = PAGE * (1 + (state >> 40) % 600);
        blocks[at] = take(sizes[at]);
        if (blocks[at] == NULL)
            abort();
        blocks[at][0] = blocks[at][sizes[at] - 1] = (char)at;
    }
    for (int at = 0; at < 32; at++) {
        if (blocks[at] != NULL)
            gh_region_pool_give(&pool, blocks[at], sizes[at]);
    }
    return NULL;
}

// While others take and give, one thread pins and unpins: what it pinned does not go away.
Test(region_pool, threads) {
    pthread_t threads[4];
    pool.decay_ms = 5;
    pool.region_min_bytes = GH_MIB;
    pool.region_max_bytes = 4 * GH_MIB;
    for (uintptr_t i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int round = 0; round < UNIT_STEPS(20000); round++) {
        uint16_t id = (uint16_t)(1 + round % 64);
        uintptr_t base;
        size_t size;
        if (!gh_region_pool_pin(id, &base, &size))
            continue;
        cr_assert_eq(gh_regions[id].base, base);
        cr_assert(unit_readable((void *)(base + size - 1)));
        gh_region_pool_unpin(id);
        struct gh_region *region;
        while ((region = gh_region_pool_pop_retired(&pool)) != NULL)
            gh_region_pool_discard(region);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    gh_region_pool_sweep(&pool, true);
    struct gh_region *region;
    while ((region = gh_region_pool_pop_retired(&pool)) != NULL)
        gh_region_pool_discard(region);
    cr_assert_eq(pool.region_count, 0);
    cr_assert_eq(pool.mapped_bytes, 0);
    cr_assert(gh_region_pool_is_valid(&pool));
}
