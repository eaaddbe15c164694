// SPDX-License-Identifier: MIT
//
// The region pool as a sequence of operations against a list of what was taken. The clock and the
// kernel's refusals come from the input: clock_gettime and syscall are wrapped by the link.
//
// Every range that is out carries its number in its first and its last word, so that a page that
// is handed out twice, or dropped while somebody has it, is seen.
#include "fuzz.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "allocator/region_pool.h"
#include "../syscall_words.h"

#define RANGES 128u
#define PINS 8u

struct range {
    char *start;
    size_t bytes; // 0: unused
    uint64_t mark;
};

static struct gh_region_pool pool;
static struct range ranges[RANGES];
static uint16_t pins[PINS]; // ids; 0: unused
static uint64_t next_mark;
static uint64_t clock_ms;
static unsigned fail_mmap;   // the n-th from now
static unsigned fail_madvise;
static long balance; // bytes mapped and not unmapped

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out) {
    if (clock != CLOCK_MONOTONIC_COARSE)
        return __real_clock_gettime(clock, out);
    out->tv_sec = (time_t)(clock_ms / 1000);
    out->tv_nsec = (long)(clock_ms % 1000) * 1000000;
    return 0;
}

static bool now_fails(unsigned *countdown) {
    return *countdown != 0 && --*countdown == 0;
}

long __wrap_syscall(long number, ...) {
    TEST_SYSCALL_WORDS(a, number);
    if ((number == SYS_mmap && now_fails(&fail_mmap)) ||
        (number == SYS_madvise && a[2] == MADV_DONTNEED && now_fails(&fail_madvise))) {
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

static struct range *find_unused(void) {
    for (unsigned i = 0; i < RANGES; i++) {
        if (ranges[i].bytes == 0)
            return &ranges[i];
    }
    return NULL;
}

static uint64_t *first_word(const struct range *range) {
    return (uint64_t *)(void *)range->start;
}

static uint64_t *last_word(const struct range *range) {
    return (uint64_t *)(void *)(range->start + range->bytes - sizeof(uint64_t));
}

static void check_zero(const struct range *range) {
    for (size_t at = 0; at < range->bytes; at += GH_PAGE_SIZE) {
        const uint64_t *page = (const uint64_t *)(const void *)(range->start + at);
        FUZZ_CHECK(page[0] == 0 && page[GH_PAGE_SIZE / sizeof(uint64_t) - 1] == 0);
    }
}

static void check_range(const struct range *range) {
    FUZZ_CHECK(*first_word(range) == range->mark && *last_word(range) == range->mark);
}

// A range that came out of the pool.
static void enter(struct range *range, char *start, size_t bytes, bool zeroed) {
    struct gh_region *region = gh_region_find(start);
    FUZZ_CHECK(region != NULL && region == gh_region_find(start + bytes - 1));
    FUZZ_CHECK(region->state == GH_REGION_ACTIVE);
    for (unsigned i = 0; i < RANGES; i++)
        FUZZ_CHECK(ranges[i].bytes == 0 || ranges[i].start + ranges[i].bytes <= start || ranges[i].start >= start + bytes);
    range->start = start;
    range->bytes = bytes;
    range->mark = ++next_mark;
    if (zeroed)
        check_zero(range);
    *first_word(range) = range->mark;
    *last_word(range) = range->mark;
}

static void take(struct fuzz_input *input) {
    struct range *range = find_unused();
    size_t pages = (size_t)fuzz_byte(input) + 1;
    uint8_t kind = fuzz_byte(input);
    if (kind >= 240)
        pages *= 64; // up to 64 MiB: a region of its own
    size_t alignment = GH_PAGE_SIZE << (kind % 8 == 7 ? 10 + kind / 64 * 3 : kind % 8);
    bool zeroed = false;
    if (range == NULL)
        return;
    unsigned failing = fail_mmap;
    char *got = gh_region_pool_take(&pool, pages * GH_PAGE_SIZE, alignment, &zeroed);
    FUZZ_CHECK(got != NULL || failing != 0);
    if (got == NULL)
        return;
    FUZZ_CHECK(((uintptr_t)got & (alignment - 1)) == 0);
    enter(range, got, pages * GH_PAGE_SIZE, zeroed);
}

static void grow(struct range *range, size_t pages) {
    bool zeroed = false;
    size_t bytes = pages * GH_PAGE_SIZE;
    char *end = range->start + range->bytes;
    bool free_there = gh_region_find(end) == gh_region_find(range->start) &&
                      gh_region_find(end + bytes - 1) == gh_region_find(range->start);
    for (unsigned i = 0; i < RANGES; i++)
        free_there = free_there && (ranges[i].bytes == 0 || ranges[i].start >= end + bytes ||
                                    ranges[i].start + ranges[i].bytes <= end);
    bool taken = gh_region_pool_take_at(&pool, end, bytes, &zeroed);
    FUZZ_CHECK(taken == free_there);
    if (!taken)
        return;
    struct range more = { .start = end, .bytes = bytes };
    if (zeroed)
        check_zero(&more);
    *last_word(range) = 0;
    range->bytes += bytes;
    *last_word(range) = range->mark;
}

// Gives or keeps the last `pages` of a range, or all of it.
static void shrink(struct range *range, size_t pages, bool keep) {
    size_t bytes = gh_min(pages * GH_PAGE_SIZE, range->bytes);
    char *start = range->start + range->bytes - bytes;
    check_range(range);
    range->bytes -= bytes;
    if (range->bytes != 0)
        *last_word(range) = range->mark;
    if (keep)
        gh_region_pool_keep(&pool, start, bytes);
    else
        gh_region_pool_give(&pool, start, bytes);
}

static void discard_retired(void) {
    struct gh_region *region;
    while ((region = gh_region_pool_pop_retired(&pool)) != NULL) {
        for (unsigned i = 0; i < PINS; i++)
            pins[i] = pins[i] == region->id ? 0 : pins[i];
        gh_region_pool_discard(region);
    }
}

static void pin(const struct range *range, uint16_t *slot) {
    uintptr_t base;
    size_t bytes;
    if (*slot != 0) {
        gh_region_pool_unpin(*slot);
        *slot = 0;
        return;
    }
    struct gh_region *region = gh_region_find(range->start);
    FUZZ_CHECK(gh_region_pool_pin(region->id, &base, &bytes));
    FUZZ_CHECK(base <= (uintptr_t)range->start && (uintptr_t)range->start + range->bytes <= base + bytes);
    *slot = region->id;
}

static void step(struct fuzz_input *input) {
    uint8_t what = fuzz_byte(input);
    struct range *range = &ranges[fuzz_byte(input) % RANGES];
    for (unsigned i = 0; i < RANGES && range->bytes == 0; i++) // one that is out, if there is any
        range = &ranges[(size_t)(range - ranges + 1) % RANGES];
    bool out = range->bytes != 0;
    switch (what % 12) {
    case 0: case 1: case 2: take(input); break;
    case 3: if (out) grow(range, (size_t)fuzz_byte(input) + 1); break;
    case 4: if (out) shrink(range, SIZE_MAX / GH_PAGE_SIZE, false); break;
    case 5: if (out) shrink(range, SIZE_MAX / GH_PAGE_SIZE, true); break;
    case 6: if (out) shrink(range, (size_t)fuzz_byte(input) + 1, (what & 128) != 0); break;
    case 7: gh_region_pool_sweep(&pool, (what & 128) != 0); break;
    case 8: if (out) pin(range, &pins[what / 16 % PINS]); break;
    case 9: discard_retired(); break;
    case 10: clock_ms += (uint64_t)fuzz_byte(input) * 8; break;
    default:
        if ((what & 128) != 0)
            fail_madvise = 1 + what / 12 % 4;
        else
            fail_mmap = 1 + what / 12 % 8;
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = { data, size < 2048 ? size : 2048 };
    static const uint32_t decays[] = { 0, 100, 1000, 10000 };
    uint8_t form = fuzz_byte(&input);
    memset(&pool, 0, sizeof(pool));
    pool.region_min_bytes = (64 * GH_KIB) << (form % 8);
    pool.region_max_bytes = pool.region_min_bytes << (form / 8 % 4 * 2);
    pool.decay_ms = decays[form / 32 % 4];
    pool.hugepages = (form & 128) != 0;
    memset(pins, 0, sizeof(pins));
    memset(ranges, 0, sizeof(ranges));
    clock_ms = UINT32_MAX - 1000; // milliseconds are 32 bits in there: let them wrap round
    balance = 0;
    while (input.left != 0) {
        step(&input);
        FUZZ_CHECK(gh_region_pool_is_valid(&pool));
    }
    for (unsigned i = 0; i < RANGES; i++) {
        if (ranges[i].bytes != 0)
            check_range(&ranges[i]);
    }
    // What was mapped goes back, to the last byte.
    fail_mmap = 0;
    fail_madvise = 0;
    for (unsigned i = 0; i < PINS; i++) {
        if (pins[i] != 0)
            gh_region_pool_unpin(pins[i]);
        pins[i] = 0;
    }
    for (unsigned i = 0; i < RANGES; i++) {
        if (ranges[i].bytes != 0)
            shrink(&ranges[i], SIZE_MAX / GH_PAGE_SIZE, i % 2 == 0);
    }
    discard_retired();
    gh_region_pool_sweep(&pool, true);
    FUZZ_CHECK(gh_region_pool_is_valid(&pool));
    FUZZ_CHECK(pool.region_count == 0 && pool.mapped_bytes == 0 && pool.free_bytes == 0);
    FUZZ_CHECK(balance == 0);
    return 0;
}
