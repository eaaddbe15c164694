// SPDX-License-Identifier: MIT
//
// The code of the loaded GPU drivers. What a driver allocates for itself must not lie in memory
// that the driver has imported: it maps its buffers at the same GPU addresses, and unmapping one
// would punch a hole into the import. So a block of a page or more is plain memory when the
// return address of the allocating call lies in a driver's text.
#ifndef GH_PRELOAD_DRIVER_TEXT_H
#define GH_PRELOAD_DRIVER_TEXT_H

#include <stdatomic.h>

#include "allocator/util.h"

struct gh_driver_text_range {
    _Atomic uintptr_t start;
    _Atomic uintptr_t size;
};

#define GH_DRIVER_TEXT_MAX 32u
extern GH_HIDDEN struct gh_driver_text_range gh_driver_text[GH_DRIVER_TEXT_MAX];
extern GH_HIDDEN _Atomic unsigned gh_driver_text_count;

// Lock-free; a handful of comparisons.
static inline bool gh_driver_text_has(const void *address) {
    unsigned count = atomic_load_explicit(&gh_driver_text_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++) {
        if ((uintptr_t)address - atomic_load_explicit(&gh_driver_text[i].start, memory_order_relaxed) <
            atomic_load_explicit(&gh_driver_text[i].size, memory_order_relaxed))
            return true;
    }
    return false;
}

// Adds the executable segments of the library that is loaded at `base`. Not inside malloc.
GH_HIDDEN void gh_driver_text_add(const void *base);

GH_HIDDEN void gh_driver_text_fork_child(void);

#endif
