// SPDX-License-Identifier: MIT
//
// The region descriptors and the address map (region.h). Everything here runs under the pool
// lock, inside jemalloc's hooks, and touches nothing but its own tables.
#include "region.h"

_Atomic uint16_t gh_region_ids[GH_SLOT_COUNT];
struct gh_region gh_regions[GH_REGION_MAX + 1];

static uint16_t free_ids[GH_REGION_MAX + 1]; // a stack of ids that were used and returned
static uint16_t free_id_count;
static uint16_t next_unused_id = 1;

struct gh_region *gh_region_reserve(void) {
    uint16_t id;
    if (free_id_count != 0)
        id = free_ids[--free_id_count];
    else if (next_unused_id <= GH_REGION_MAX)
        id = next_unused_id++;
    else
        return NULL;
    if (gh_regions[id].id == 0) // lock-free readers look at it
        gh_regions[id].id = id;
    gh_regions[id].generation++;
    return &gh_regions[id];
}

static void set_entries(uintptr_t start, uintptr_t end, uint16_t entry) {
    size_t first = start >> GH_SLOT_SHIFT;
    size_t last = (end - 1) >> GH_SLOT_SHIFT;
    for (size_t slot = first; slot <= last; slot++)
        atomic_store_explicit(&gh_region_ids[slot & (GH_SLOT_COUNT - 1)], entry, memory_order_release);
}

void gh_region_publish(struct gh_region *region) {
    set_entries(region->base, region->base + region->size_bytes,
                region->plain || region->shares_slot ? region->id | GH_REGION_LOOK_BIT : region->id);
}

void gh_region_withdraw(struct gh_region *region) {
    if (region->size_bytes != 0) // else reserved and never published: it has no entries
        set_entries(region->base, region->base + region->size_bytes, 0);
    region->state = GH_REGION_EMPTY;
    region->base = 0;
    region->size_bytes = 0;
    free_ids[free_id_count++] = region->id;
}

void gh_region_shrink(struct gh_region *region, size_t size_bytes) {
    uintptr_t kept_slots_end = gh_align_up(region->base + size_bytes, GH_SLOT_SIZE);
    uintptr_t end = region->base + region->size_bytes;
    region->size_bytes = size_bytes;
    if (kept_slots_end < end)
        set_entries(kept_slots_end, end, 0);
}
