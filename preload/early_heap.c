// SPDX-License-Identifier: MIT
//
// The early heap (early_heap.h): a bump allocator with the size in front of each block.
#include "early_heap.h"

#include <errno.h>

#define HEADER 16u

_Alignas(4096) char gh_early_bytes[GH_EARLY_BYTES];
static size_t used;

void *gh_early_take(size_t size, size_t alignment) {
    alignment = gh_max(alignment, HEADER);
    uintptr_t base = (uintptr_t)gh_early_bytes;
    size_t start = GH_EARLY_BYTES;
    if (alignment <= GH_EARLY_BYTES) // of the address: the array itself is aligned to a page only
        start = gh_align_up(base + used + HEADER, alignment) - base;
    if (start >= GH_EARLY_BYTES || size > GH_EARLY_BYTES - start) {
        errno = ENOMEM;
        return NULL;
    }
    *(size_t *)(void *)(gh_early_bytes + start - HEADER) = size;
    used = gh_align_up(start + size, HEADER);
    return gh_early_bytes + start;
}

size_t gh_early_size(const void *pointer) {
    return *(const size_t *)((uintptr_t)pointer - HEADER);
}
