// SPDX-License-Identifier: MIT
//
// A counter for each page of each region (hide.h), in tables that are mapped when a region is
// first wrapped in and kept for the region's id.
#include "hide.h"

#include <stdatomic.h>

#include "allocator/lock.h"
#include "allocator/os_mem.h"
#include "allocator/region.h"

struct table {
    _Atomic(_Atomic uint32_t *) counts;
    size_t pages;
    uint32_t generation; // of the region that they count for
};

static struct table tables[GH_REGION_MAX + 1];
static struct gh_lock tables_lock = GH_LOCK_INIT(GH_RANK_WRAPS);

static _Atomic uint32_t *counts_of(const struct gh_region *region, bool create) {
    struct table *table = &tables[region->id];
    size_t pages = region->size_bytes >> GH_PAGE_SHIFT;
    _Atomic uint32_t *counts = atomic_load_explicit(&table->counts, memory_order_acquire);
    bool fits = counts != NULL && table->pages >= pages && table->generation == region->generation;
    if (fits || !create)
        return fits ? counts : NULL;
    gh_lock_acquire(&tables_lock);
    counts = atomic_load_explicit(&table->counts, memory_order_relaxed);
    if (counts == NULL || table->pages < pages || table->generation != region->generation) {
        // The id was another region's before: that one is gone, and its wraps with it.
        counts = gh_os_map_table(gh_align_up(pages * sizeof(*counts), GH_PAGE_SIZE));
        table->pages = counts == NULL ? 0 : pages;
        table->generation = region->generation;
        atomic_store_explicit(&table->counts, counts, memory_order_release);
    }
    gh_lock_release(&tables_lock);
    return counts;
}

void gh_hide_count(uintptr_t pointer, size_t size_bytes, bool made) {
    uintptr_t end = pointer + size_bytes;
    for (uintptr_t at = pointer; at < end;) {
        const struct gh_region *region = gh_region_find((void *)at);
        if (region == NULL) {
            at = gh_align_down(at, GH_SLOT_SIZE) + GH_SLOT_SIZE;
            continue;
        }
        _Atomic uint32_t *counts = counts_of(region, made);
        uintptr_t stop = gh_min(end, region->base + region->size_bytes);
        for (; counts != NULL && at < stop; at = gh_align_down(at, GH_PAGE_SIZE) + GH_PAGE_SIZE)
            atomic_fetch_add_explicit(&counts[(at - region->base) >> GH_PAGE_SHIFT], made ? 1 : UINT32_MAX,
                                      memory_order_relaxed);
        at = stop;
    }
}

bool gh_hide_applies(const void *pointer) {
    const struct gh_region *region = gh_region_find(pointer);
    if (region == NULL || region->plain)
        return false;
    _Atomic uint32_t *counts = counts_of(region, false);
    size_t page = ((uintptr_t)pointer - region->base) >> GH_PAGE_SHIFT;
    return counts == NULL || atomic_load_explicit(&counts[page], memory_order_relaxed) == 0;
}
