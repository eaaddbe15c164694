// SPDX-License-Identifier: MIT
//
// GPUHOST_MMAP: how much of the program's own mapping to import around a wrap in it, so that later
// wraps there are a look-up. Julia's pools, other allocators' arenas, stay where they are and
// keep all their meaning; nothing is imported before the first wrap.
#ifndef GH_PRELOAD_MAPPING_PART_H
#define GH_PRELOAD_MAPPING_PART_H

#include "allocator/util.h"

struct gh_mapping_part {
    uintptr_t start;
    uintptr_t end;
};

// The part around [start, end), at least that: the whole mapping when all of it is in RAM, else
// the 2 MiB blocks of it that the range lies in, so that a reserve that nobody touched costs no
// memory. False when the range is not in one large private anonymous writable mapping.
GH_HIDDEN bool gh_mapping_part_around(uintptr_t start, uintptr_t end, struct gh_mapping_part *out);

#endif
