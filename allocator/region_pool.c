// SPDX-License-Identifier: MIT
//
// The region pool (region_pool.h): how big regions are, who gets which pages, when a region goes
// back to the kernel. The lock is held for table work and for mapping a region, never while
// pages are purged or a region is unmapped: those take time that grows with their size.
#include "region_pool.h"

#include <sched.h>
#include <time.h>

#include "lock.h"
#include "os_mem.h"

// Growth: a new region is a seventh of what is mapped of its kind, so N GiB need some tens of
// regions, and the part of the newest one that nobody has used yet is an eighth at most of the
// kind, and of the heap.
#define GROWTH_DIVISOR 7u
// What a trimmed region keeps to grow into.
#define TRIM_MARGIN_PAGES 256u

// Kept pages are looked through so often in their time.
#define SWEEPS_PER_DECAY 8u

#define REGION_COUNT_FINE (GH_REGION_MAX / 4)

// A page at least that nobody can touch after each region: neighbours never touch, and a client
// that looks one past the end meets nothing.
#define GUARD_BYTES GH_PAGE_SIZE

_Static_assert(GH_SLOT_SIZE % GH_PAGE_SIZE == 0, "slots are whole pages");

static struct gh_lock pool_lock = GH_LOCK_INIT(GH_RANK_POOL);

static void list_append(struct gh_region_pool *pool, struct gh_region *region) {
    region->previous = pool->last;
    region->next = NULL;
    if (pool->last != NULL)
        pool->last->next = region;
    else
        pool->first = region;
    pool->last = region;
}

static void list_remove(struct gh_region_pool *pool, struct gh_region *region) {
    if (region->previous != NULL)
        region->previous->next = region->next;
    else
        pool->first = region->next;
    if (region->next != NULL)
        region->next->previous = region->previous;
    else
        pool->last = region->previous;
    region->previous = NULL;
    region->next = NULL;
}

// How large the region for a request should be that no existing region can serve.
static size_t region_size_for(const struct gh_region_pool *pool, size_t size_bytes) {
    bool large = size_bytes >= GH_POOL_LARGE;
    size_t of_kind = large ? pool->large_mapped_bytes : pool->mapped_bytes - pool->large_mapped_bytes;
    size_t smallest = large ? 2 * pool->region_min_bytes : pool->region_min_bytes;
    size_t step = gh_max(gh_align_up(of_kind / GROWTH_DIVISOR, 2 * GH_MIB), smallest);
    if (pool->region_count < REGION_COUNT_FINE) // else a low maximum would use up the descriptors
        step = gh_min(step, gh_max(pool->region_max_bytes, pool->region_min_bytes));
    if (size_bytes >= step)
        return size_bytes; // a region of its own
    if (size_bytes > step / GROWTH_DIVISOR) {
        // Whole multiples of a big block: a row of equal arrays leaves no unusable tail.
        size_t count = step / size_bytes;
        return gh_align_up(size_bytes * count, GH_PAGE_SIZE);
    }
    return step;
}

static struct gh_region *region_map_new(struct gh_region_pool *pool, size_t size_bytes, size_t alignment, bool large) {
    if (size_bytes > (size_t)UINT32_MAX * GH_PAGE_SIZE / 2)
        return NULL; // page numbers are 32 bits: 8 TiB for one block
    struct gh_region *region = gh_region_reserve();
    if (region == NULL)
        return NULL;
    size_t guard = GUARD_BYTES;
    if (pool->whole_slots)
        guard = gh_align_up(size_bytes + GUARD_BYTES, GH_SLOT_SIZE) - size_bytes;
    void *base = gh_os_map(size_bytes, gh_max(alignment, GH_SLOT_SIZE), guard);
    if (base != NULL && gh_page_runs_init(&region->runs, (uint32_t)(size_bytes / GH_PAGE_SIZE)) != 0) {
        gh_os_unmap(base, size_bytes + guard);
        base = NULL;
    }
    if (base == NULL) {
        gh_region_withdraw(region);
        return NULL;
    }
    if (pool->hugepages && size_bytes >= 2 * GH_MIB)
        gh_os_advise_hugepage(base, size_bytes);
    region->base = (uintptr_t)base;
    region->size_bytes = size_bytes;
    region->guard_bytes = guard;
    region->shares_slot = !pool->whole_slots;
    region->plain = pool->plain;
    region->for_large = large;
    region->state = GH_REGION_ACTIVE;
    region->pins = 0;
    region->purges_running = 0;
    list_append(pool, region);
    pool->mapped_bytes += size_bytes;
    pool->large_mapped_bytes += large ? size_bytes : 0;
    pool->free_bytes += size_bytes;
    pool->region_count++;
    pool->regions_mapped_ever++;
    gh_region_publish(region);
    if (!pool->plain && pool->ops != NULL && pool->ops->appeared != NULL)
        pool->ops->appeared();
    return region;
}

static void *take_from(struct gh_region_pool *pool, struct gh_region *region, size_t size_bytes, size_t alignment,
                       bool *zeroed_out) {
    // The base is a multiple of the slot size; a stricter alignment holds for pages only when
    // the base has it too.
    if (alignment > GH_SLOT_SIZE && (region->base & (alignment - 1)) != 0)
        return NULL;
    size_t alignment_pages = gh_max(alignment, GH_PAGE_SIZE) >> GH_PAGE_SHIFT;
    if (alignment_pages > UINT32_MAX / 2)
        return NULL;
    uint32_t page = gh_page_runs_take(&region->runs, (uint32_t)(size_bytes >> GH_PAGE_SHIFT),
                                      (uint32_t)alignment_pages, zeroed_out);
    if (page == GH_NO_PAGE)
        return NULL;
    pool->free_bytes -= size_bytes;
    return (void *)(region->base + ((size_t)page << GH_PAGE_SHIFT));
}

void *gh_region_pool_take(struct gh_region_pool *pool, size_t size_bytes, size_t alignment, bool *zeroed_out) {
    if (size_bytes > (size_t)UINT32_MAX * GH_PAGE_SIZE / 2)
        return NULL;
    bool large = size_bytes >= GH_POOL_LARGE;
    gh_lock_acquire(&pool_lock);
    void *address = NULL;
    if (size_bytes <= pool->free_bytes) {
        for (struct gh_region *region = pool->first; region != NULL && address == NULL; region = region->next) {
            if (region->for_large == large)
                address = take_from(pool, region, size_bytes, alignment, zeroed_out);
        }
    }
    if (address == NULL) {
        struct gh_region *region = NULL;
        // Little address space left: smaller ones, at last just what is needed.
        for (size_t wanted = region_size_for(pool, size_bytes); region == NULL && wanted > size_bytes; wanted /= 4)
            region = region_map_new(pool, gh_align_up(wanted, GH_PAGE_SIZE), alignment, large);
        if (region == NULL)
            region = region_map_new(pool, size_bytes, alignment, large);
        if (region != NULL)
            address = take_from(pool, region, size_bytes, alignment, zeroed_out);
    }
    gh_lock_release(&pool_lock);
    return address;
}

bool gh_region_pool_take_at(struct gh_region_pool *pool, void *address, size_t size_bytes, bool *zeroed_out) {
    bool taken = false;
    gh_lock_acquire(&pool_lock);
    struct gh_region *region = gh_region_find(address);
    if (region != NULL && region->plain == pool->plain && region->state == GH_REGION_ACTIVE) {
        size_t offset = (uintptr_t)address - region->base;
        if (size_bytes <= region->size_bytes - offset)
            taken = gh_page_runs_take_at(&region->runs, (uint32_t)(offset >> GH_PAGE_SHIFT),
                                         (uint32_t)(size_bytes >> GH_PAGE_SHIFT), zeroed_out);
        if (taken)
            pool->free_bytes -= size_bytes;
    }
    gh_lock_release(&pool_lock);
    return taken;
}

// Takes the region out of the pool; afterwards nobody but the caller knows it.
static void region_detach(struct gh_region_pool *pool, struct gh_region *region) {
    list_remove(pool, region);
    pool->mapped_bytes -= region->size_bytes;
    pool->large_mapped_bytes -= region->for_large ? region->size_bytes : 0;
    pool->free_bytes -= region->size_bytes;
    pool->region_count--;
    pool->regions_returned++;
}

// With the lock, which it releases: unmapping a big region takes long. The map entries go first,
// because the addresses may be somebody else's the moment they are unmapped.
static void region_unmap(struct gh_region *region) {
    void *base = (void *)region->base;
    size_t size_bytes = region->size_bytes + region->guard_bytes;
    struct gh_page_runs runs = region->runs;
    gh_region_withdraw(region);
    gh_lock_release(&pool_lock);
    gh_page_runs_destroy(&runs);
    gh_os_unmap(base, size_bytes);
}

// Coarse on purpose: read for every large free.
static uint32_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000);
}

// With the lock, which it releases: lets a wholly free region go.
static void region_let_go(struct gh_region_pool *pool, struct gh_region *region) {
    region_detach(pool, region);
    if (region->pins != 0) {
        region->state = GH_REGION_RETIRED;
        region->next = pool->retired;
        pool->retired = region;
        if (pool->ops != NULL && pool->ops->retired != NULL)
            pool->ops->retired();
        gh_lock_release(&pool_lock);
        return;
    }
    region_unmap(region);
}

static struct gh_region *region_of_extent(const void *address, size_t size_bytes) {
    struct gh_region *region = gh_region_find(address);
    if (region == NULL || size_bytes > region->base + region->size_bytes - (uintptr_t)address)
        gh_fatal("an extent outside every region was given back");
    return region;
}

// With the lock: purges pages that nobody has, and gives them to the runs. Releases the lock
// meanwhile; pinned pages are only given.
static void purge_and_give(struct gh_region *region, uint32_t page, uint32_t pages) {
    bool zeroed = false;
    if (region->pins == 0) {
        region->purges_running++;
        gh_lock_release(&pool_lock);
        zeroed = gh_os_purge((void *)(region->base + ((size_t)page << GH_PAGE_SHIFT)), (size_t)pages << GH_PAGE_SHIFT);
        gh_lock_acquire(&pool_lock);
        region->purges_running--;
    }
    gh_page_runs_give(&region->runs, page, pages, zeroed);
}

void gh_region_pool_give(struct gh_region_pool *pool, void *address, size_t size_bytes) {
    struct gh_region *region = region_of_extent(address, size_bytes);
    uint32_t page = (uint32_t)(((uintptr_t)address - region->base) >> GH_PAGE_SHIFT);
    uint32_t pages = (uint32_t)(size_bytes >> GH_PAGE_SHIFT);

    gh_lock_acquire(&pool_lock);
    bool last_pages = region->runs.free_pages + pages == region->runs.pages && region->purges_running == 0;
    if (last_pages) // the whole region will go, now or at a sweep: not worth a purge
        gh_page_runs_give(&region->runs, page, pages, false);
    else
        purge_and_give(region, page, pages);
    pool->free_bytes += size_bytes;
    if (region->purges_running == 0 && gh_page_runs_is_idle(&region->runs, now_ms(), pool->decay_ms))
        region_let_go(pool, region);
    else
        gh_lock_release(&pool_lock);
}

void gh_region_pool_keep(struct gh_region_pool *pool, void *address, size_t size_bytes) {
    if (pool->decay_ms == 0) {
        gh_region_pool_give(pool, address, size_bytes);
        return;
    }
    struct gh_region *region = region_of_extent(address, size_bytes);
    uint32_t page = (uint32_t)(((uintptr_t)address - region->base) >> GH_PAGE_SHIFT);
    uint32_t now = now_ms();
    gh_lock_acquire(&pool_lock);
    gh_page_runs_keep(&region->runs, page, (uint32_t)(size_bytes >> GH_PAGE_SHIFT), now);
    pool->free_bytes += size_bytes;
    bool is_time = now - pool->last_sweep_ms >= pool->decay_ms / SWEEPS_PER_DECAY;
    gh_lock_release(&pool_lock);
    if (is_time)
        gh_region_pool_sweep(pool, false);
}

bool gh_region_pool_sweep(struct gh_region_pool *pool, bool everything) {
    uint32_t now = now_ms();
    uint32_t age = everything ? 0 : pool->decay_ms;
    bool came_back = false;
    gh_lock_acquire(&pool_lock);
    pool->last_sweep_ms = now;
    // Each system call is made without the lock, so the walk begins anew after it.
    for (struct gh_region *region = pool->first; region != NULL;) {
        uint32_t first;
        uint32_t pages;
        if (region->purges_running == 0 && gh_page_runs_is_idle(&region->runs, now, age)) {
            region_let_go(pool, region);
            came_back = true;
            gh_lock_acquire(&pool_lock);
            region = pool->first;
        } else if (region->pins == 0 && region->runs.free_pages != region->runs.pages &&
                   gh_page_runs_take_aged(&region->runs, now, age, &first, &pages)) {
            purge_and_give(region, first, pages);
            came_back = true;
            region = pool->first;
        } else {
            region = region->next;
        }
    }
    gh_lock_release(&pool_lock);
    return came_back;
}

void gh_region_pool_trim(struct gh_region_pool *pool) {
    gh_lock_acquire(&pool_lock);
    for (struct gh_region *region = pool->first; region != NULL; region = region->next) {
        if (region->pins != 0 || region->purges_running != 0)
            continue;
        size_t old_bytes = region->size_bytes;
        size_t new_bytes = (size_t)gh_page_runs_cut_tail(&region->runs, TRIM_MARGIN_PAGES) << GH_PAGE_SHIFT;
        if (new_bytes == old_bytes)
            continue;
        gh_region_shrink(region, new_bytes);
        pool->mapped_bytes -= old_bytes - new_bytes;
        pool->large_mapped_bytes -= region->for_large ? old_bytes - new_bytes : 0;
        pool->free_bytes -= old_bytes - new_bytes;
        // Under the lock: the addresses must not become another region's before they are unmapped.
        size_t gone = old_bytes - new_bytes + region->guard_bytes;
        size_t guard = GUARD_BYTES;
        if (pool->whole_slots)
            guard = gh_align_up(new_bytes + GUARD_BYTES, GH_SLOT_SIZE) - new_bytes;
        region->guard_bytes = gh_min(guard, gone);
        gh_os_cut((void *)(region->base + new_bytes), gone, region->guard_bytes);
    }
    gh_lock_release(&pool_lock);
}

bool gh_region_pool_look(uint16_t id, struct gh_region_look *out) {
    const struct gh_region *region = &gh_regions[id];
    gh_lock_acquire(&pool_lock);
    bool used = region->id != 0;
    out->generation = region->generation;
    out->base = region->base;
    out->size_bytes = region->size_bytes;
    out->importable = region->state == GH_REGION_ACTIVE && !region->plain;
    gh_lock_release(&pool_lock);
    return used;
}

bool gh_region_pool_pin(uint16_t id, uintptr_t *base_out, size_t *size_out) {
    struct gh_region *region = &gh_regions[id];
    gh_lock_acquire(&pool_lock);
    while (region->state == GH_REGION_ACTIVE && region->purges_running != 0) {
        gh_lock_release(&pool_lock);
        sched_yield();
        gh_lock_acquire(&pool_lock);
    }
    bool ok = region->state == GH_REGION_ACTIVE;
    if (ok) {
        region->pins++;
        *base_out = region->base;
        *size_out = region->size_bytes;
    }
    gh_lock_release(&pool_lock);
    return ok;
}

void gh_region_pool_unpin(uint16_t id) {
    gh_lock_acquire(&pool_lock);
    if (gh_regions[id].state != GH_REGION_EMPTY && gh_regions[id].pins != 0)
        gh_regions[id].pins--;
    gh_lock_release(&pool_lock);
}

struct gh_region *gh_region_pool_pop_retired(struct gh_region_pool *pool) {
    gh_lock_acquire(&pool_lock);
    struct gh_region *region = pool->retired;
    if (region != NULL) {
        pool->retired = region->next;
        region->next = NULL;
    }
    gh_lock_release(&pool_lock);
    return region;
}

void gh_region_pool_discard(struct gh_region *region) {
    gh_lock_acquire(&pool_lock);
    region_unmap(region);
}

void gh_region_pool_get_stats(struct gh_region_pool *pool, struct gh_region_pool_stats *out) {
    gh_lock_acquire(&pool_lock);
    out->mapped_bytes = pool->mapped_bytes;
    out->free_bytes = pool->free_bytes;
    out->region_count = pool->region_count;
    out->regions_mapped_ever = pool->regions_mapped_ever;
    out->regions_returned = pool->regions_returned;
    gh_lock_release(&pool_lock);
}

void gh_region_pool_fork_prepare(void) {
    gh_lock_acquire(&pool_lock);
}

void gh_region_pool_fork_parent(void) {
    gh_lock_release(&pool_lock);
}

void gh_region_pool_fork_child(struct gh_region_pool *pool) {
    gh_lock_reset(&pool_lock);
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
    gh_lock_acquire(&pool_lock);
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
    gh_lock_release(&pool_lock);
    return valid;
}
