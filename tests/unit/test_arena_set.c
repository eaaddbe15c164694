// SPDX-License-Identifier: MIT
//
// The heap as its callers see it, under the environment that the ctest sets: where blocks lie,
// what they share, what comes back. GPUHOST_DECAY_MS is 100 in every run.
#include "unit.h"

#include <time.h>

#include "allocator/arena_set.h"
#include "allocator/je_api.h"
#include "allocator/lock.h"
#include "config.h"
#include "driver_text.h"
#include "gate.h"
#include "lifecycle.h"

#define BLOCKS 8000

struct block {
    uintptr_t start;
    size_t size;   // asked for
    size_t usable;
};

static struct block blocks[BLOCKS];

static bool is_plain(const void *pointer) {
    return (gh_region_entry(pointer) & GH_REGION_LOOK_BIT) != 0;
}

// GPUHOST_MIN_SIZE makes small blocks plain memory.
static bool should_be_plain(size_t size) {
    return (size < 16 ? 16 : size) < gh_config.min_size;
}

static void check_block(const struct block *block) {
    char *first = (char *)block->start;
    char *last = first + block->usable - 1;
    const struct gh_region *region = gh_region_find(first);
    cr_assert_not_null(region, "%zu bytes at %p lie in no region", block->size, (void *)first);
    cr_assert_eq(region, gh_region_find(last));
    cr_assert_geq(block->usable, block->size);
    cr_assert_eq(block->start % 16, 0, "%zu bytes at %p", block->size, (void *)first);
    cr_assert_eq(is_plain(first), should_be_plain(block->size), "%zu bytes", block->size);
    cr_assert_eq(region->plain, is_plain(first));
    if (block->size >= 16 * GH_KIB || gh_config.exclusive_pages) {
        cr_assert_eq(block->start % PAGE, 0, "%zu bytes at %p", block->size, (void *)first);
        cr_assert_eq(block->usable % PAGE, 0);
    }
}

static int by_start(const void *a, const void *b) {
    const struct block *one = a;
    const struct block *other = b;
    return one->start < other->start ? -1 : one->start > other->start;
}

static bool owns_its_pages(const struct block *block) {
    return block->size >= 16 * GH_KIB || gh_config.exclusive_pages;
}

static void check_no_shared_pages(void) {
    static struct block sorted[BLOCKS];
    size_t count = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        if (blocks[i].start != 0)
            sorted[count++] = blocks[i];
    }
    qsort(sorted, count, sizeof(sorted[0]), by_start);
    for (size_t i = 1; i < count; i++) {
        uintptr_t end = sorted[i - 1].start + sorted[i - 1].usable;
        cr_assert_leq(end, sorted[i].start, "two blocks overlap");
        if (owns_its_pages(&sorted[i - 1]) || owns_its_pages(&sorted[i]))
            cr_assert_lt((end - 1) / PAGE, sorted[i].start / PAGE, "blocks of %zu and %zu bytes share a page",
                         sorted[i - 1].size, sorted[i].size);
    }
}

static void take(struct block *block, size_t size, void *pointer) {
    cr_assert_not_null(pointer);
    *block = (struct block){ (uintptr_t)pointer, size, gh_usable_size(pointer) };
    check_block(block);
    memset(pointer, 0x5a, size < 64 ? size : 64);
    ((char *)pointer)[size == 0 ? 0 : size - 1] = 0x5a;
}

Test(arena_set, a_million_mixed_blocks, .timeout = 280) {
    unit_seed();
    cr_assert(gh_is_serving());
    int steps = gh_config.exclusive_pages || gh_config.min_size != 0 ? 300000 : 2200000;
    int mallocs = 0;
    for (int step = 0; step < steps; step++) {
        struct block *block = &blocks[unit_below(BLOCKS)];
        size_t size = unit_below((size_t)1 << (3 + unit_below(unit_below(16) == 0 ? 18 : 10)));
        if (block->start == 0) {
            size_t alignment = unit_below(8) == 0 ? (size_t)16 << unit_below(10) : 0;
            char *pointer = gh_allocate(size, alignment, unit_below(4) == 0, NULL);
            cr_assert(alignment == 0 || (uintptr_t)pointer % alignment == 0);
            take(block, size, pointer);
            mallocs++;
        } else if (unit_below(3) == 0 && size != 0) {
            char first = *(char *)block->start;
            char *pointer = gh_reallocate((void *)block->start, size, NULL);
            cr_assert_eq(*pointer, first);
            take(block, size, pointer);
            mallocs++;
        } else {
            gh_deallocate((void *)block->start);
            block->start = 0;
        }
        if (step % 100000 == 0)
            check_no_shared_pages();
    }
    check_no_shared_pages();
    cr_assert_gt(mallocs, steps * 45 / 100, "%d", mallocs);
    cr_assert(gh_region_pool_is_valid(gh_arena_set_heap()));
    cr_assert(gh_region_pool_is_valid(gh_arena_set_plain()));
    for (size_t i = 0; i < BLOCKS; i++)
        gh_deallocate((void *)blocks[i].start);
}

Test(arena_set, smallest_blocks) {
    for (size_t size = 0; size <= 48; size++) {
        for (int i = 0; i < 100; i++) {
            struct block block;
            take(&block, size, gh_allocate(size, 0, false, NULL));
        }
    }
}

Test(arena_set, zeroed_blocks_are_zero) {
    unit_seed();
    for (int i = 0; i < 3000; i++) {
        size_t size = 1 + unit_below((size_t)1 << (4 + unit_below(17)));
        char *pointer = gh_allocate(size, 0, true, NULL);
        for (size_t at = 0; at < size; at += size > 4096 ? 97 : 1)
            cr_assert_eq(pointer[at], 0);
        memset(pointer, 0xff, size);
        gh_deallocate(pointer);
    }
}

static void *as_driver(size_t size) {
    static const char code[1]; // an address that the table says is a driver's
    atomic_store(&gh_driver_text[0].start, (uintptr_t)code);
    atomic_store(&gh_driver_text[0].size, 1);
    atomic_store(&gh_driver_text_count, 1);
    return gh_allocate(size, 0, false, code);
}

Test(arena_set, a_driver_s_blocks_are_plain_and_stay_apart) {
    if (gh_config.min_size != 0)
        cr_skip_test("small blocks are plain for another reason in this run");
    void *small = as_driver(100);
    cr_assert_not(is_plain(small));
    char *plain[200];
    for (int i = 0; i < 200; i++) {
        plain[i] = as_driver(PAGE << (i % 6));
        cr_assert(is_plain(plain[i]));
        cr_assert_eq((uintptr_t)plain[i] % 16, 0);
    }
    // Freed by anybody, they are never handed out as heap.
    for (int i = 0; i < 200; i++)
        gh_deallocate(plain[i]);
    for (int i = 0; i < 2000; i++)
        cr_assert_not(is_plain(gh_allocate(PAGE << (i % 6), 0, false, NULL)));
    // realloc keeps the contents on the way between the two.
    char *block = as_driver(8192);
    memset(block, 0x33, 8192);
    block = gh_reallocate(block, 40000, NULL);
    cr_assert_not(is_plain(block));
    for (int i = 0; i < 8192; i++)
        cr_assert_eq(block[i], 0x33);
    cr_assert(gh_region_pool_is_valid(gh_arena_set_plain()));
}

// A driver mallocs while it imports, and the first time the plain arena is made then. Builds that
// check ranks say when a lock does not allow it.
Test(arena_set, a_driver_s_first_block_comes_under_the_import_lock) {
    static struct gh_lock import = GH_LOCK_INIT(GH_RANK_IMPORT);
    gh_lock_acquire(&import);
    char *block = as_driver(PAGE);
    cr_assert(is_plain(block));
    gh_lock_release(&import);
    gh_deallocate(block);
}

static size_t mapped(void) {
    struct gh_region_pool_stats stats;
    gh_region_pool_get_stats(gh_arena_set_heap(), &stats);
    cr_assert(gh_region_pool_is_valid(gh_arena_set_heap()));
    return stats.mapped_bytes;
}

static size_t in_use(void) {
    struct gh_region_pool_stats stats;
    gh_region_pool_get_stats(gh_arena_set_heap(), &stats);
    return stats.mapped_bytes - stats.free_bytes;
}

static void fill_and_free(void) {
    static char *arrays[64];
    for (int i = 0; i < 64; i++) {
        arrays[i] = gh_allocate(3 * GH_MIB, 0, false, NULL);
        memset(arrays[i], 1, 3 * GH_MIB);
    }
    cr_assert_geq(in_use(), 192 * GH_MIB);
    for (int i = 0; i < 64; i++)
        gh_deallocate(arrays[i]);
}

Test(arena_set, decay_gives_memory_back) {
    size_t before = mapped();
    fill_and_free();
    for (int i = 0; i < 40 && mapped() > before + 64 * GH_MIB; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
        gh_arena_set_decay();
    }
    cr_assert_leq(in_use(), before + 8 * GH_MIB);
    cr_assert_leq(mapped(), before + 64 * GH_MIB);
}

Test(arena_set, purging_gives_memory_back_now) {
    size_t before = mapped();
    fill_and_free();
    cr_assert(gh_arena_set_purge());
    cr_assert_leq(in_use(), before + 8 * GH_MIB);
    cr_assert_leq(mapped(), before + 64 * GH_MIB);
    gh_arena_set_purge();
    cr_assert_not(gh_arena_set_purge(), "there is nothing any more");
}

// In blocks, and in page runs that extents use.
static size_t allocated_now(size_t *active_out) {
    struct gh_arena_totals totals;
    gh_arena_set_get_totals(&totals);
    *active_out = totals.heap.mapped_bytes - totals.heap.free_bytes;
    return totals.allocated_bytes;
}

Test(arena_set, usage) {
    size_t allocated_before;
    size_t active_before;
    size_t allocated;
    size_t active;
    allocated_before = allocated_now(&active_before);
    void *block = gh_allocate(10 * GH_MIB, 0, false, NULL);
    allocated = allocated_now(&active);
    cr_assert_geq(allocated, allocated_before + 10 * GH_MIB);
    cr_assert_geq(active, 10 * GH_MIB);
    gh_deallocate(block);
    allocated = allocated_now(&active);
    cr_assert_lt(allocated, allocated_before + 10 * GH_MIB);
    cr_assert_eq(strncmp(gh_arena_set_jemalloc_version(), "5.", 2), 0);
}

// Nothing that jemalloc serves comes from before our hooks, or from around them.
Test(arena_set, options_hold) {
    static const struct {
        const char *name;
        bool value;
    } wanted[] = { { "opt.retain", false }, { "opt.background_thread", false }, { "opt.hpa", false } };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        bool value = !wanted[i].value;
        size_t length = sizeof(value);
        cr_assert_eq(gh_je_mallctl(wanted[i].name, &value, &length, NULL, 0), 0);
        cr_assert_eq(value, wanted[i].value, "%s", wanted[i].name);
    }
    const char *dss = NULL;
    size_t length = sizeof(dss);
    cr_assert_eq(gh_je_mallctl("opt.dss", &dss, &length, NULL, 0), 0);
    cr_assert_str_eq(dss, "disabled");
}
