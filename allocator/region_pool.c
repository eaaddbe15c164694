// SPDX-License-Identifier: MIT
//
// The region pool (region_pool.h): how big regions are, who gets which pages, when a region goes
// back to the kernel. The lock is held for table work and for mapping a region, never while
// pages are purged or a region is unmapped: those take time that grows with their size.
#include "region_pool_impl.h"

#include <time.h>

#include "os_mem.h"

// Growth: a new region is a seventh of what is mapped of its kind, so N GiB need some tens of
// regions, and the part of the newest one that nobody has used yet is an eighth at most of the
// kind, and of the heap.
#define GROWTH_DIVISOR 7u
// Kept pages are looked through so often in their time.
#define SWEEPS_PER_DECAY 8u

#define REGION_COUNT_FINE (GH_REGION_MAX / 4)

_Static_assert(GH_SLOT_SIZE % GH_PAGE_SIZE == 0, "slots are whole pages");

struct gh_lock gh_region_pool_lock = GH_LOCK_INIT(GH_RANK_POOL);

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
    if (pool->populated) // what nobody uses costs memory: at first a quarter of what there is
        smallest = gh_align_up(gh_min(smallest / 4, gh_max(smallest / 32, of_kind / 4)), GH_PAGE_SIZE);
    else if (size_bytes >= GH_POOL_HUGE)
        smallest = gh_max(smallest, pool->huge_region_min_bytes);
    size_t seventh = of_kind / GROWTH_DIVISOR;
    size_t step = gh_max(gh_align_up(seventh, seventh < 2 * GH_MIB ? GH_PAGE_SIZE : 2 * GH_MIB), smallest);
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

size_t gh_region_pool_guard(const struct gh_region_pool *pool, size_t size_bytes) {
    if (!pool->whole_slots)
        return GH_GUARD_BYTES;
    return gh_align_up(size_bytes + GH_GUARD_BYTES, GH_SLOT_SIZE) - size_bytes;
}

// A wholly free region enters the pool.
static void region_attach(struct gh_region_pool *pool, struct gh_region *region) {
    list_append(pool, region);
    pool->mapped_bytes += region->size_bytes;
    pool->large_mapped_bytes += region->for_large ? region->size_bytes : 0;
    pool->free_bytes += region->size_bytes;
    pool->region_count++;
}

static struct gh_region *region_map_new(struct gh_region_pool *pool, size_t size_bytes, size_t alignment,
                                        size_t request_bytes) {
    if (size_bytes > (size_t)UINT32_MAX * GH_PAGE_SIZE / 2)
        return NULL; // page numbers are 32 bits: 8 TiB for one block
    struct gh_region *region = gh_region_reserve();
    if (region == NULL)
        return NULL;
    size_t guard = gh_region_pool_guard(pool, size_bytes);
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
    region->for_large = request_bytes >= GH_POOL_LARGE;
    region->for_huge = request_bytes >= GH_POOL_HUGE;
    region->state = GH_REGION_ACTIVE;
    region->pins = 0;
    region->purges_running = 0;
    region_attach(pool, region);
    pool->regions_mapped_ever++;
    gh_region_publish(region);
    return region;
}

static void *take_from(struct gh_region_pool *pool, struct gh_region *region, size_t size_bytes, size_t alignment,
                       bool *zeroed_out) {
    // The base is a multiple of the slot size; a stricter alignment holds for pages only when
    // the base has it too.
    if (alignment > GH_SLOT_SIZE && (region->base & (alignment - 1)) != 0)
        return NULL;
    size_t alignment_pages = gh_max(alignment, GH_PAGE_SIZE) >> GH_PAGE_SHIFT;
    uint32_t page = gh_page_runs_take(&region->runs, (uint32_t)(size_bytes >> GH_PAGE_SHIFT),
                                      (uint32_t)alignment_pages, zeroed_out);
    if (page == GH_NO_PAGE)
        return NULL;
    bool was_idle = region->runs.free_pages + (size_bytes >> GH_PAGE_SHIFT) == region->runs.pages;
    if (was_idle && region->pins == 0 && !pool->plain && pool->ops != NULL && pool->ops->appeared != NULL)
        pool->ops->appeared(); // nobody imports a region of which nothing is in use
    pool->free_bytes -= size_bytes;
    return (void *)(region->base + ((size_t)page << GH_PAGE_SHIFT));
}

// Small requests fill old regions first, so that young ones can be returned.
static void *take_oldest(struct gh_region_pool *pool, size_t size_bytes, size_t alignment, bool *zeroed_out) {
    void *address = NULL;
    for (struct gh_region *region = pool->first; region != NULL && address == NULL; region = region->next) {
        if (!region->for_large)
            address = take_from(pool, region, size_bytes, alignment, zeroed_out);
    }
    return address;
}

// Large ones go where they fit best, and where pages are kept already.
static void *take_best(struct gh_region_pool *pool, size_t size_bytes, size_t alignment, bool *zeroed_out) {
    uint32_t pages = (uint32_t)(size_bytes >> GH_PAGE_SHIFT);
    struct gh_region *best = NULL;
    uint64_t best_fit = UINT64_MAX;
    for (struct gh_region *region = pool->first; region != NULL; region = region->next) {
        if (!region->for_large || (region->base & (alignment - 1) & ~(GH_SLOT_SIZE - 1)) != 0 ||
            (!pool->populated && region->for_huge && size_bytes < GH_POOL_HUGE))
            continue;
        uint64_t fit = gh_page_runs_fit(&region->runs, pages, (uint32_t)(gh_max(alignment, GH_PAGE_SIZE) >> GH_PAGE_SHIFT));
        if (fit < best_fit) {
            best_fit = fit;
            best = region;
        }
    }
    return best == NULL ? NULL : take_from(pool, best, size_bytes, alignment, zeroed_out);
}

// A retired region that is still pinned, and so still imported, serves again: a program that frees and
// mallocs faster than imports are released would have ever more of them. Not one much larger than
// the region that would be made otherwise, which a small block would hold.
static struct gh_region *region_revive(struct gh_region_pool *pool, size_t size_bytes, size_t most_bytes,
                                       size_t alignment, bool large) {
    struct gh_region **link = &pool->retired;
    while (*link != NULL &&
           ((*link)->for_large != large || (*link)->size_bytes < size_bytes || (*link)->size_bytes > most_bytes ||
            ((*link)->base & (alignment - 1) & ~(GH_SLOT_SIZE - 1)) != 0))
        link = &(*link)->next;
    struct gh_region *region = *link;
    if (region == NULL)
        return NULL;
    *link = region->next;
    region->state = GH_REGION_ACTIVE;
    region_attach(pool, region);
    pool->regions_returned--;
    if (!pool->plain && pool->ops != NULL && pool->ops->appeared != NULL)
        pool->ops->appeared(); // to a scope that was opened meanwhile
    return region;
}

bool gh_region_pool_take_at(struct gh_region_pool *pool, void *address, size_t size_bytes, bool *zeroed_out) {
    bool taken = false;
    gh_lock_acquire(&gh_region_pool_lock);
    struct gh_region *region = gh_region_find(address);
    if (region != NULL && region->plain == pool->plain && region->state == GH_REGION_ACTIVE) {
        size_t offset = (uintptr_t)address - region->base;
        if (size_bytes <= region->size_bytes - offset)
            taken = gh_page_runs_take_at(&region->runs, (uint32_t)(offset >> GH_PAGE_SHIFT),
                                         (uint32_t)(size_bytes >> GH_PAGE_SHIFT), zeroed_out);
        if (taken)
            pool->free_bytes -= size_bytes;
    }
    gh_lock_release(&gh_region_pool_lock);
    return taken;
}

void gh_region_pool_detach(struct gh_region_pool *pool, struct gh_region *region) {
    list_remove(pool, region);
    pool->mapped_bytes -= region->size_bytes;
    pool->large_mapped_bytes -= region->for_large ? region->size_bytes : 0;
    pool->free_bytes -= region->size_bytes;
    pool->region_count--;
    pool->regions_returned++;
}

// With the lock, which it releases: unmapping a big region takes long. The map entries go first,
// because the addresses may be somebody else's the moment they are unmapped.
void gh_region_pool_unmap(struct gh_region *region) {
    void *base = (void *)region->base;
    size_t size_bytes = region->size_bytes + region->guard_bytes;
    struct gh_page_runs runs = region->runs;
    gh_region_withdraw(region);
    gh_lock_release(&gh_region_pool_lock);
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
    gh_region_pool_detach(pool, region);
    if (region->pins != 0) {
        region->state = GH_REGION_RETIRED;
        region->next = pool->retired;
        pool->retired = region;
        if (pool->ops != NULL && pool->ops->retired != NULL)
            pool->ops->retired();
        gh_lock_release(&gh_region_pool_lock);
        return;
    }
    gh_region_pool_unmap(region);
}

// The largest region for large blocks of which nothing is in use, of those that are smaller than this.
struct gh_region *gh_region_pool_largest_idle(struct gh_region_pool *pool, bool pinned, size_t below_bytes) {
    struct gh_region *largest = NULL;
    for (struct gh_region *region = pool->first; region != NULL; region = region->next) {
        if (region->for_large && (region->pins != 0) == pinned && region->runs.free_pages == region->runs.pages &&
            region->purges_running == 0 && region->size_bytes < below_bytes &&
            (largest == NULL || region->size_bytes > largest->size_bytes))
            largest = region;
    }
    return largest;
}

// Nothing fits a large request, so a new region comes. Regions of which nothing is in use, and which are too
// small, go in exchange, the largest first: a program whose arrays change their size would have ever
// more of them, kept for DECAY_MS. Pinned ones still serve until the imports are worked on next.
static void exchange(struct gh_region_pool *pool, size_t new_bytes, size_t request_bytes) {
    struct gh_region *idle;
    for (size_t gone = 0;
         gone < new_bytes && (idle = gh_region_pool_largest_idle(pool, false, request_bytes)) != NULL;) {
        gone += idle->size_bytes;
        region_let_go(pool, idle);
        gh_lock_acquire(&gh_region_pool_lock);
    }
    if (gh_region_pool_largest_idle(pool, true, request_bytes) == NULL)
        return;
    pool->surplus_bytes += new_bytes;
    pool->surplus_below = gh_max(pool->surplus_below, request_bytes);
    if (pool->ops != NULL && pool->ops->retired != NULL)
        pool->ops->retired();
}

void *gh_region_pool_take(struct gh_region_pool *pool, size_t size_bytes, size_t alignment, bool *zeroed_out) {
    if (gh_max(size_bytes, alignment) > (size_t)UINT32_MAX * GH_PAGE_SIZE / 2)
        return NULL; // page numbers are 32 bits
    bool large = size_bytes >= GH_POOL_LARGE;
    gh_lock_acquire(&gh_region_pool_lock);
    void *address = NULL;
    if (size_bytes <= pool->free_bytes)
        address = large ? take_best(pool, size_bytes, alignment, zeroed_out)
                        : take_oldest(pool, size_bytes, alignment, zeroed_out);
    if (address == NULL) {
        size_t wanted = region_size_for(pool, size_bytes);
        struct gh_region *region = region_revive(pool, size_bytes, 2 * wanted, alignment, large);
        if (region == NULL && large)
            exchange(pool, wanted, size_bytes);
        // Little address space left: smaller ones, at last just what is needed.
        for (; region == NULL && wanted > size_bytes; wanted /= 4)
            region = region_map_new(pool, gh_align_up(wanted, GH_PAGE_SIZE), alignment, size_bytes);
        if (region == NULL)
            region = region_map_new(pool, size_bytes, alignment, size_bytes);
        if (region != NULL)
            address = take_from(pool, region, size_bytes, alignment, zeroed_out);
    }
    gh_lock_release(&gh_region_pool_lock);
    return address;
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
        gh_lock_release(&gh_region_pool_lock);
        zeroed = gh_os_purge((void *)(region->base + ((size_t)page << GH_PAGE_SHIFT)), (size_t)pages << GH_PAGE_SHIFT);
        gh_lock_acquire(&gh_region_pool_lock);
        region->purges_running--;
    }
    gh_page_runs_give(&region->runs, page, pages, zeroed);
}

void gh_region_pool_give(struct gh_region_pool *pool, void *address, size_t size_bytes) {
    struct gh_region *region = region_of_extent(address, size_bytes);
    uint32_t page = (uint32_t)(((uintptr_t)address - region->base) >> GH_PAGE_SHIFT);
    uint32_t pages = (uint32_t)(size_bytes >> GH_PAGE_SHIFT);

    gh_lock_acquire(&gh_region_pool_lock);
    bool last_pages = region->runs.free_pages + pages == region->runs.pages && region->purges_running == 0;
    if (last_pages) // the whole region will go, now or at a sweep: not worth a purge
        gh_page_runs_give(&region->runs, page, pages, false);
    else
        purge_and_give(region, page, pages);
    pool->free_bytes += size_bytes;
    if (region->purges_running == 0 && gh_page_runs_is_idle(&region->runs, now_ms(), pool->decay_ms))
        region_let_go(pool, region);
    else
        gh_lock_release(&gh_region_pool_lock);
}

void gh_region_pool_keep(struct gh_region_pool *pool, void *address, size_t size_bytes) {
    if (pool->decay_ms == 0) {
        gh_region_pool_give(pool, address, size_bytes);
        return;
    }
    struct gh_region *region = region_of_extent(address, size_bytes);
    uint32_t page = (uint32_t)(((uintptr_t)address - region->base) >> GH_PAGE_SHIFT);
    uint32_t now = now_ms();
    gh_lock_acquire(&gh_region_pool_lock);
    gh_page_runs_keep(&region->runs, page, (uint32_t)(size_bytes >> GH_PAGE_SHIFT), now);
    pool->free_bytes += size_bytes;
    bool is_time = now - pool->last_sweep_ms >= pool->decay_ms / SWEEPS_PER_DECAY;
    gh_lock_release(&gh_region_pool_lock);
    if (is_time)
        gh_region_pool_sweep(pool, false);
}

bool gh_region_pool_sweep(struct gh_region_pool *pool, bool everything) {
    uint32_t now = now_ms();
    uint32_t age = everything ? 0 : pool->decay_ms;
    bool came_back = false;
    gh_lock_acquire(&gh_region_pool_lock);
    pool->last_sweep_ms = now;
    // Each system call is made without the lock, so the walk begins anew after it.
    for (struct gh_region *region = pool->first; region != NULL;) {
        uint32_t first;
        uint32_t pages;
        if (region->purges_running == 0 && gh_page_runs_is_idle(&region->runs, now, age)) {
            region_let_go(pool, region);
            came_back = true;
            gh_lock_acquire(&gh_region_pool_lock);
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
    gh_lock_release(&gh_region_pool_lock);
    return came_back;
}
