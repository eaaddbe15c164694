// SPDX-License-Identifier: MIT
//
// What is mapped at an address, as the kernel tells it.
#ifndef GH_PRELOAD_VMA_H
#define GH_PRELOAD_VMA_H

#include "allocator/util.h"

struct gh_vma {
    uintptr_t start;
    uintptr_t end;
    uint64_t inode; // 0: anonymous
    bool writable;
    bool is_private;
};

// The mapping that holds `address`. False when there is none, or /proc is not there. Allocates
// nothing; the cost grows with the number of mappings (some tens of microseconds).
GH_HIDDEN bool gh_vma_find(uintptr_t address, struct gh_vma *out);

// True when every page of [start, end) is in RAM.
GH_HIDDEN bool gh_vma_is_resident(uintptr_t start, uintptr_t end);

// Zeroes pages that may be written, for when the mappings cannot be read. False: some may not be,
// or the kernel does not do it; part may be zeroed then.
GH_HIDDEN bool gh_vma_zero_writable(uintptr_t start, size_t size_bytes);

// Zeroes pages of private memory that the program protected against writing. False: it cannot be
// done (no /proc).
GH_HIDDEN bool gh_vma_zero_protected(uintptr_t start, size_t size_bytes);

#endif
