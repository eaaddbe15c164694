// SPDX-License-Identifier: MIT
//
// Chooses the part of a mapping to import (mapping_part.h). Under the import lock; looks at
// /proc/self/maps, so for new imports only.
#include "mapping_part.h"

#include "allocator/region.h"
#include "stack_watch.h"
#include "vma.h"

// Smaller mappings are hardly arenas, and thread stacks and library data are among them.
#define MAPPING_MIN GH_MIB
#define BLOCK (2 * GH_MIB)

bool gh_mapping_part_around(uintptr_t start, uintptr_t end, struct gh_mapping_part *out) {
    struct gh_vma vma;
    if (!gh_vma_find(start, &vma) || end > vma.end || vma.inode != 0 || !vma.is_private || !vma.writable ||
        vma.is_special || vma.end - vma.start < MAPPING_MIN || gh_stack_is_own(start))
        return false;
    out->start = vma.start;
    out->end = vma.end;
    // The kernel joins neighbours: a region of the heap may be part of the same mapping.
    uintptr_t below = start;
    while (below > out->start && gh_region_find((void *)(below - 1)) == NULL)
        below = gh_max(out->start, gh_align_down(below - 1, GH_SLOT_SIZE));
    out->start = below;
    uintptr_t above = end;
    while (above < out->end && gh_region_find((void *)above) == NULL)
        above = gh_min(out->end, gh_align_down(above, GH_SLOT_SIZE) + GH_SLOT_SIZE);
    out->end = above;
    if (!gh_vma_is_resident(out->start, out->end)) {
        out->start = gh_max(out->start, gh_align_down(start, BLOCK));
        out->end = gh_min(out->end, gh_align_up(end, BLOCK));
    }
    return true;
}
