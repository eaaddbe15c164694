// SPDX-License-Identifier: MIT
//
// The slow way of allocation: sizes at the edges, errno, early blocks, and blocks of the C
// library's own heap, wherever the kernel put them.
#include "unit.h"

#include "allocator/region.h"
#include "early_heap.h"
#include "gate.h"
#include "lifecycle.h"

void *__libc_malloc(size_t size);
void __libc_free(void *pointer);

Test(gate, sizes_at_the_edges) {
    cr_assert(gh_is_serving());
    errno = 0;
    cr_assert_null(gh_allocate((size_t)PTRDIFF_MAX + 1, 0, false, NULL));
    cr_assert_eq(errno, ENOMEM);
    errno = 0;
    cr_assert_null(gh_allocate(PTRDIFF_MAX, 0, false, NULL));
    cr_assert_eq(errno, ENOMEM);
    errno = 0;
    cr_assert_null(gh_allocate(SIZE_MAX, 4096, true, NULL));
    cr_assert_eq(errno, ENOMEM);
    errno = 4711;
    char *block = gh_allocate(0, 0, false, NULL);
    cr_assert_not_null(block);
    cr_assert_eq(errno, 4711);
    gh_deallocate(block);
    gh_deallocate(NULL);
    cr_assert_eq(errno, 4711);
    cr_assert_eq(gh_usable_size(NULL), 0);
}

Test(gate, realloc_at_the_edges) {
    char *block = gh_reallocate(NULL, 100, NULL);
    memset(block, 5, 100);
    errno = 0;
    cr_assert_null(gh_reallocate(block, SIZE_MAX, NULL));
    cr_assert_eq(errno, ENOMEM);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(block[i], 5, "a realloc that failed changed the block");
    errno = 4711;
    cr_assert_null(gh_reallocate(block, 0, NULL));
    cr_assert_eq(errno, 4711);
}

Test(gate, early_blocks) {
    char *early = gh_early_take(100, 0);
    memset(early, 6, 100);
    cr_assert_eq(gh_usable_size(early), 100);
    char *block = gh_reallocate(early, 5000, NULL);
    cr_assert_not(gh_early_has(block));
    cr_assert_not_null(gh_region_find(block));
    for (int i = 0; i < 100; i++)
        cr_assert_eq(block[i], 6);
    gh_deallocate(early); // again: never reused, so it does no harm
    cr_assert_eq(early[50], 6);
    gh_deallocate(block);
}

// The C library's blocks, which its own functions hand out however malloc is interposed. Large
// ones are mapped wherever the kernel likes: also in the slot that a region starts in.
Test(gate, foreign_blocks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    cr_skip_test("the C library's heap is not this process's");
#else
    bool same_slot = false;
    char *keep = gh_allocate(100, 0, false, NULL);
    for (size_t size = 10; size < 100 * GH_MIB; size = size * 3 / 2) {
        char *block = __libc_malloc(size);
        cr_assert_not_null(block);
        same_slot = same_slot || gh_region_entry(block) != 0;
        cr_assert_null(gh_region_find(block));
        memset(block, 7, size);
        cr_assert_geq(gh_usable_size(block), size);
        if (size % 2 == 0) {
            gh_deallocate(block);
            continue;
        }
        block = gh_reallocate(block, size + 100000, NULL);
        cr_assert_not_null(block);
        cr_assert_eq(block[size - 1], 7);
        gh_deallocate(block);
    }
    cr_assert_not_null(gh_region_find(keep));
    if (!same_slot)
        cr_log_info("no block shared a slot with a region");
#endif
}
