// SPDX-License-Identifier: MIT
//
// The gate in front of the fast path: malloc compares the size with one variable and, below it,
// is jemalloc's malloc. 0 (the initial value) sends everything the slow way: start-up, an option
// that needs a look at every block, a process that we stay out of. Once a GPU driver is loaded,
// blocks of a page and more go the slow way, which asks who is calling.
#ifndef GH_PRELOAD_GATE_H
#define GH_PRELOAD_GATE_H

#include <stdatomic.h>

#include "allocator/region.h"
#include "allocator/util.h"

extern GH_HIDDEN _Atomic size_t gh_gate_size;

static inline bool gh_gate_passes(size_t size) {
    return gh_likely(size < atomic_load_explicit(&gh_gate_size, memory_order_relaxed));
}

// Certainly a block of the heap: jemalloc's ordinary functions are right for it. False: look closer.
static inline bool gh_is_heap_block(const void *pointer) {
    return (int16_t)gh_region_entry(pointer) > 0;
}

GH_HIDDEN void gh_gate_open(void);          // start-up is done
GH_HIDDEN void gh_gate_driver_loaded(void); // from now on callers matter

// The slow way for every allocating function. `alignment` is a power of two; 0: none asked for.
// `caller` is the return address of the interposed function. NULL with errno ENOMEM.
GH_HIDDEN void *gh_allocate(size_t size, size_t alignment, bool zero, const void *caller);
GH_HIDDEN void *gh_reallocate(void *pointer, size_t size, const void *caller);
GH_HIDDEN void gh_deallocate(void *pointer);
GH_HIDDEN size_t gh_usable_size(void *pointer);

#endif
