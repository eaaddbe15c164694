// SPDX-License-Identifier: MIT
//
// Chooses the part of a mapping to import (mapping_part.h). Under the import lock; looks at
// /proc/self/maps, so for new imports only.
#include "mapping_part.h"

#include "own_maps.h"
#include "vma.h"

#define BLOCK (2 * GH_MIB)

bool gh_mapping_part_around(uintptr_t start, uintptr_t end, struct gh_mapping_part *out) {
    struct gh_vma vma;
    uintptr_t own_start;
    uintptr_t own_end;
    if (!gh_own_maps_find(start, end, &own_start, &own_end) || !gh_vma_find(start, &vma) || end > vma.end ||
        vma.inode != 0 || !vma.is_private || !vma.writable)
        return false;
    out->start = gh_max(vma.start, own_start);
    out->end = gh_min(vma.end, own_end);
    if (!gh_vma_is_resident(out->start, out->end)) {
        out->start = gh_max(out->start, gh_align_down(start, BLOCK));
        out->end = gh_min(out->end, gh_align_up(end, BLOCK));
    }
    return true;
}
