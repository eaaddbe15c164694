// SPDX-License-Identifier: MIT
//
// What a region is, and the constant-time way from any address to its region.
//
// The map is one flat table of 16-bit ids, an entry for each 64 MiB slot of the address space.
// A slot belongs to one region at most, and unless the process may not use much address space,
// nothing else is in it (regions start on slot borders, a big one covers many
// slots), so one load answers "is this address ours, and whose". The table is zero pages of the
// library's own data until a slot is used: 4 MiB of address space, a few pages of memory.
//
// Readers take no lock: an address that is in use keeps its region alive. Writers hold the pool
// lock.
#ifndef GH_ALLOCATOR_REGION_H
#define GH_ALLOCATOR_REGION_H

#include <stdatomic.h>

#include "page_runs.h"
#include "util.h"

#if !defined(__x86_64__) || !defined(__linux__)
#error "libgpuhost is for Linux on x86-64: the address map and the tail jumps are written for it"
#endif

#define GH_SLOT_SHIFT 26u // 64 MiB
#define GH_SLOT_SIZE ((size_t)1 << GH_SLOT_SHIFT)
#define GH_ADDRESS_BITS 47u
#define GH_SLOT_COUNT ((size_t)1 << (GH_ADDRESS_BITS - GH_SLOT_SHIFT))

// Ids 1 .. GH_REGION_MAX are regions. The top bit of a map entry says: look closer; the region is
// plain memory, or shares its last slot with mappings of others.
#define GH_REGION_MAX 16383u
#define GH_REGION_LOOK_BIT 0x8000u

enum gh_region_state {
    GH_REGION_EMPTY = 0, // the slot in gh_regions is unused
    GH_REGION_ACTIVE,    // page runs may be taken from it
    GH_REGION_RETIRED,   // wholly free but pinned: waits until the pin is taken off
};

struct gh_region {
    // Constant from publication until the region is unmapped; atomic for readers who ask about an
    // address that is nobody's while a region comes or goes.
    _Atomic uintptr_t base;
    _Atomic size_t size_bytes;
    _Atomic bool plain; // never to be made visible to a GPU
    bool shares_slot;   // of the address map, as is `plain`, when it is published
    uint16_t id;        // of this descriptor; constant once it was used

    // Under the pool lock.
    size_t guard_bytes;  // behind the region
    bool for_large;      // serves large requests, or else small ones
    bool for_huge;       // those from GH_POOL_HUGE on alone, as long as there is no import
    uint32_t generation; // tells this region from an earlier one with the same id
    uint8_t state;            // enum gh_region_state
    uint32_t pins;            // above 0: its pages must stay; no purge, no unmap
    uint32_t purges_running;  // give-backs that run outside the lock; no pin until they end
    struct gh_page_runs runs;
    struct gh_region *previous;
    struct gh_region *next;
};

extern GH_HIDDEN _Atomic uint16_t gh_region_ids[GH_SLOT_COUNT];
extern GH_HIDDEN struct gh_region gh_regions[GH_REGION_MAX + 1];

// The map entry of an address: 0 when no region is near. An address above the 47 bits that
// Linux gives out by default is folded into the table; who needs certainty uses gh_region_find.
static inline uint16_t gh_region_entry(const void *address) {
    return atomic_load_explicit(&gh_region_ids[((uintptr_t)address >> GH_SLOT_SHIFT) & (GH_SLOT_COUNT - 1)],
                                memory_order_relaxed);
}

// The region that holds the address, or NULL. Lock-free; the answer stays true as long as the
// caller knows of a block in the region.
static inline struct gh_region *gh_region_find(const void *address) {
    uint16_t id = gh_region_entry(address) & (uint16_t)~GH_REGION_LOOK_BIT;
    if (id == 0)
        return NULL;
    struct gh_region *region = &gh_regions[id];
    uintptr_t base = atomic_load_explicit(&region->base, memory_order_relaxed);
    return (uintptr_t)address - base < atomic_load_explicit(&region->size_bytes, memory_order_relaxed) ? region : NULL;
}

// Both under the pool lock. Reserve gives an unused descriptor or NULL when all are in use.
GH_HIDDEN struct gh_region *gh_region_reserve(void);
GH_HIDDEN void gh_region_publish(struct gh_region *region);
GH_HIDDEN void gh_region_withdraw(struct gh_region *region);

// Makes a published region smaller; the caller unmaps what is cut off.
GH_HIDDEN void gh_region_shrink(struct gh_region *region, size_t size_bytes);

#endif
