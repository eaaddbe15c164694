// SPDX-License-Identifier: MIT
//
// The region pool's other half (region_pool.h): trimming before the first import, pins, retired
// regions, fork. One lock with region_pool.c.
#include <sched.h>

#include "os_mem.h"
#include "region_pool_impl.h"

// What a trimmed region keeps to grow into.
#define TRIM_MARGIN_PAGES 64u

// With the lock: the region's free end goes.
static size_t cut_end(struct gh_region_pool *pool, struct gh_region *region) {
    size_t old_bytes = region->size_bytes;
    size_t new_bytes = (size_t)gh_page_runs_cut_tail(&region->runs, TRIM_MARGIN_PAGES) << GH_PAGE_SHIFT;
    if (new_bytes == old_bytes)
        return 0;
    gh_region_shrink(region, new_bytes);
    pool->mapped_bytes -= old_bytes - new_bytes;
    pool->large_mapped_bytes -= region->for_large ? old_bytes - new_bytes : 0;
    pool->free_bytes -= old_bytes - new_bytes;
    // Under the lock: the addresses must not become another region's before they are unmapped.
    size_t gone = old_bytes - new_bytes + region->guard_bytes;
    region->guard_bytes = gh_min(gh_region_pool_guard(pool, new_bytes), gone);
    gh_os_cut((void *)(region->base + new_bytes), gone, region->guard_bytes);
    return old_bytes - new_bytes;
}

bool gh_region_pool_trim(struct gh_region_pool *pool) {
    size_t gone = 0;
    gh_lock_acquire(&gh_region_pool_lock);
    // Bounded: who watches munmap may allocate in it, and leave an idle region each time.
    uint32_t idle_left = pool->region_count;
    for (struct gh_region *region = pool->first; region != NULL;) {
        if (region->pins == 0 && region->purges_running != 0) {
            gh_lock_release(&gh_region_pool_lock);
            sched_yield();
            gh_lock_acquire(&gh_region_pool_lock);
            region = pool->first; // whatever was cut is short already
        } else if (region->pins == 0 && region->runs.free_pages == region->runs.pages && idle_left != 0) {
            idle_left--;
            gone += region->size_bytes;
            gh_region_pool_detach(pool, region);
            gh_region_pool_unmap(region);
            gh_lock_acquire(&gh_region_pool_lock);
            region = pool->first;
        } else {
            gone += region->pins == 0 ? cut_end(pool, region) : 0;
            region = region->next;
        }
    }
    gh_lock_release(&gh_region_pool_lock);
    return gone != 0;
}

void gh_region_pool_populate(struct gh_region_pool *pool) {
    gh_lock_acquire(&gh_region_pool_lock);
    pool->populated = true; // first, so that no large region comes meanwhile
    gh_lock_release(&gh_region_pool_lock);
    gh_region_pool_trim(pool);
}

bool gh_region_pool_look(uint16_t id, struct gh_region_look *out) {
    const struct gh_region *region = &gh_regions[id];
    gh_lock_acquire(&gh_region_pool_lock);
    bool used = region->id != 0;
    out->generation = region->generation;
    out->base = region->base;
    out->size_bytes = region->size_bytes;
    out->heap = region->state == GH_REGION_ACTIVE && !region->plain;
    out->importable = out->heap && (region->runs.free_pages != region->runs.pages || region->pins != 0);
    gh_lock_release(&gh_region_pool_lock);
    return used;
}

bool gh_region_pool_pin(uint16_t id, uintptr_t *base_out, size_t *size_out) {
    struct gh_region *region = &gh_regions[id];
    gh_lock_acquire(&gh_region_pool_lock);
    while (region->state == GH_REGION_ACTIVE && region->purges_running != 0) {
        gh_lock_release(&gh_region_pool_lock);
        sched_yield();
        gh_lock_acquire(&gh_region_pool_lock);
    }
    bool ok = region->state == GH_REGION_ACTIVE;
    if (ok) {
        region->pins++;
        *base_out = region->base;
        *size_out = region->size_bytes;
    }
    gh_lock_release(&gh_region_pool_lock);
    return ok;
}

void gh_region_pool_unpin(uint16_t id) {
    gh_lock_acquire(&gh_region_pool_lock);
    if (gh_regions[id].state != GH_REGION_EMPTY && gh_regions[id].pins != 0)
        gh_regions[id].pins--;
    gh_lock_release(&gh_region_pool_lock);
}

struct gh_region *gh_region_pool_pop_retired(struct gh_region_pool *pool) {
    gh_lock_acquire(&gh_region_pool_lock);
    struct gh_region *region = pool->retired;
    if (region != NULL) {
        pool->retired = region->next;
        region->next = NULL;
    } else if (pool->surplus_bytes != 0) {
        region = gh_region_pool_largest_idle(pool, true, pool->surplus_below);
        pool->surplus_bytes -= region == NULL ? pool->surplus_bytes : gh_min(region->size_bytes, pool->surplus_bytes);
        if (region != NULL) {
            gh_region_pool_detach(pool, region);
            region->state = GH_REGION_RETIRED;
        }
        if (pool->surplus_bytes == 0)
            pool->surplus_below = 0;
    }
    gh_lock_release(&gh_region_pool_lock);
    return region;
}

void gh_region_pool_discard(struct gh_region *region) {
    gh_lock_acquire(&gh_region_pool_lock);
    gh_region_pool_unmap(region);
}

void gh_region_pool_get_stats(struct gh_region_pool *pool, struct gh_region_pool_stats *out) {
    gh_lock_acquire(&gh_region_pool_lock);
    out->mapped_bytes = pool->mapped_bytes;
    out->free_bytes = pool->free_bytes;
    out->idle_bytes = 0;
    for (const struct gh_region *region = pool->first; region != NULL; region = region->next) {
        if (region->pins == 0 && region->runs.free_pages == region->runs.pages)
            out->idle_bytes += region->size_bytes;
    }
    out->region_count = pool->region_count;
    out->regions_mapped_ever = pool->regions_mapped_ever;
    out->regions_returned = pool->regions_returned;
    gh_lock_release(&gh_region_pool_lock);
}

void gh_region_pool_fork_prepare(void) {
    gh_lock_acquire(&gh_region_pool_lock);
}

void gh_region_pool_fork_parent(void) {
    gh_lock_release(&gh_region_pool_lock);
}

void gh_region_pool_fork_child(struct gh_region_pool *pool) {
    gh_lock_reset(&gh_region_pool_lock);
    for (struct gh_region *region = pool->first; region != NULL; region = region->next) {
        region->pins = 0;
        region->purges_running = 0;
    }
    struct gh_region *region;
    while ((region = gh_region_pool_pop_retired(pool)) != NULL)
        gh_region_pool_discard(region);
}

bool gh_region_pool_is_valid(struct gh_region_pool *pool) {
    bool valid = true;
    size_t mapped = 0;
    size_t free_bytes = 0;
    uint32_t count = 0;
    gh_lock_acquire(&gh_region_pool_lock);
    for (struct gh_region *region = pool->first; region != NULL; region = region->next) {
        mapped += region->size_bytes;
        free_bytes += (size_t)region->runs.free_pages << GH_PAGE_SHIFT;
        count++;
        valid = valid && region->state == GH_REGION_ACTIVE && gh_page_runs_is_valid(&region->runs) &&
                gh_region_find((void *)region->base) == region &&
                gh_region_find((void *)(region->base + region->size_bytes - 1)) == region &&
                gh_region_find((void *)(region->base + region->size_bytes)) == NULL;
    }
    valid = valid && mapped == pool->mapped_bytes && free_bytes == pool->free_bytes && count == pool->region_count;
    gh_lock_release(&gh_region_pool_lock);
    return valid;
}
