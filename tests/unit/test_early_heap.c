// SPDX-License-Identifier: MIT
//
// The early heap: zeroed, aligned, apart from each other, recognised, and at its end ENOMEM.
#include "unit.h"

#include "early_heap.h"

Test(early_heap, blocks) {
    char *before = NULL;
    for (size_t size = 0; size < 300; size += 7) {
        char *block = gh_early_take(size, 0);
        cr_assert_not_null(block);
        cr_assert_eq((uintptr_t)block % 16, 0);
        cr_assert(gh_early_has(block));
        cr_assert_eq(gh_early_size(block), size);
        cr_assert(block > before);
        for (size_t i = 0; i < size; i++)
            cr_assert_eq(block[i], 0);
        memset(block, 0xff, size);
        before = block + size - 1;
    }
    int local;
    cr_assert_not(gh_early_has(&local));
    cr_assert_not(gh_early_has(NULL));
    cr_assert_not(gh_early_has(gh_early_bytes + GH_EARLY_BYTES));
    cr_assert_not(gh_early_has(gh_early_bytes - 1));
}

Test(early_heap, alignments) {
    for (size_t alignment = 1; alignment <= 16384; alignment *= 2) {
        char *block = gh_early_take(24, alignment);
        cr_assert_not_null(block);
        cr_assert_eq((uintptr_t)block % alignment, 0, "alignment %zu", alignment);
        cr_assert_eq(gh_early_size(block), 24);
        memset(block, 1, 24);
    }
}

Test(early_heap, its_end) {
    errno = 0;
    cr_assert_null(gh_early_take(GH_EARLY_BYTES, 0));
    cr_assert_eq(errno, ENOMEM);
    cr_assert_null(gh_early_take(SIZE_MAX, 0));
    cr_assert_null(gh_early_take(SIZE_MAX - 8, 16));
    cr_assert_null(gh_early_take(16, (size_t)1 << 40));
    cr_assert_null(gh_early_take(0, (size_t)1 << 40));
    cr_assert_null(gh_early_take(16, (size_t)1 << 63));
    size_t total = 0;
    char *block;
    while ((block = gh_early_take(3000, 0)) != NULL) {
        memset(block, 1, 3000);
        cr_assert(gh_early_has(block + 2999));
        total += 3000;
    }
    cr_assert_gt(total, GH_EARLY_BYTES * 9 / 10);
    cr_assert_not_null(gh_early_take(1, 0)); // what is left still serves smaller ones
}
