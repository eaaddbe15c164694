// SPDX-License-Identifier: MIT
//
// With GPUHOST_MMAP: the program's own large private anonymous mappings, as it asked for them. The
// kernel joins neighbours, so /proc cannot tell a pool of the program's from the thread stack or
// the other thread's pool beside it; what is imported around a wrap must end where the pool ends.
#ifndef GH_PRELOAD_OWN_MAPS_H
#define GH_PRELOAD_OWN_MAPS_H

#include "allocator/util.h"

// Smaller mappings are hardly arenas.
#define GH_OWN_MAP_MIN GH_MIB

// After mmap; what is small is not remembered.
GH_HIDDEN void gh_own_maps_add(uintptr_t start, size_t size_bytes);

// Before anything else takes the place, or nothing: what remains of a mapping stays remembered.
GH_HIDDEN void gh_own_maps_remove(uintptr_t start, size_t size_bytes);

// The mapping that holds [start, end). False: none does.
GH_HIDDEN bool gh_own_maps_find(uintptr_t start, uintptr_t end, uintptr_t *start_out, uintptr_t *end_out);

GH_HIDDEN void gh_own_maps_fork_child(void); // remembers none

#endif
