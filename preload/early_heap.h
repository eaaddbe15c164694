// SPDX-License-Identifier: MIT
//
// Memory for allocations that start-up itself causes (a shim that interposes something we call
// and allocates in it). A static array, so that its blocks are recognised by address for ever;
// they are never reused. Only the thread inside gh_start takes from it.
#ifndef GH_PRELOAD_EARLY_HEAP_H
#define GH_PRELOAD_EARLY_HEAP_H

#include "allocator/util.h"

#define GH_EARLY_BYTES ((size_t)64 << 10)

extern GH_HIDDEN char gh_early_bytes[GH_EARLY_BYTES];

static inline bool gh_early_has(const void *pointer) {
    return (uintptr_t)pointer - (uintptr_t)gh_early_bytes < GH_EARLY_BYTES;
}

// Zeroed. NULL with errno ENOMEM when the array is used up.
GH_HIDDEN void *gh_early_take(size_t size, size_t alignment);
GH_HIDDEN size_t gh_early_size(const void *pointer);

#endif
