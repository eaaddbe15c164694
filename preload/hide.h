// SPDX-License-Identifier: MIT
//
// GPUHOST_HIDE: which pages of the heap the program has wrapped itself. Clients that choose a
// transport by what a driver says of a pointer (UCX, MPI libraries) then see the rest of the heap
// as the ordinary memory it is for them. Without the option nothing here is called.
#ifndef GH_PRELOAD_HIDE_H
#define GH_PRELOAD_HIDE_H

#include "allocator/util.h"

// A wrap of heap memory was made or freed. Lock-free; parts outside regions are passed over.
GH_HIDDEN void gh_hide_count(uintptr_t pointer, size_t size_bytes, bool made);

// Is the pointer heap that nobody wrapped?
GH_HIDDEN bool gh_hide_applies(const void *pointer);

#endif
