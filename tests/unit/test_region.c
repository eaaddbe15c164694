// SPDX-License-Identifier: MIT
//
// The region descriptors and the address map: ids, generations, look-ups at every border.
#include "unit.h"

#include "allocator/region.h"

static struct gh_region *publish(uintptr_t base, size_t size, bool plain) {
    struct gh_region *region = gh_region_reserve();
    cr_assert_not_null(region);
    region->base = base;
    region->size_bytes = size;
    region->plain = plain;
    region->state = GH_REGION_ACTIVE;
    gh_region_publish(region);
    return region;
}

static void check_borders(const struct gh_region *region) {
    uintptr_t base = region->base;
    uintptr_t end = base + region->size_bytes;
    cr_assert_null(gh_region_find((void *)(base - 1)));
    cr_assert_eq(gh_region_find((void *)base), region);
    cr_assert_eq(gh_region_find((void *)(base + region->size_bytes / 2)), region);
    cr_assert_eq(gh_region_find((void *)(end - 1)), region);
    cr_assert_null(gh_region_find((void *)end));
}

Test(region, borders_of_small_and_large) {
    uintptr_t base = 0x100 * GH_SLOT_SIZE;
    struct gh_region *small = publish(base, PAGE, false);
    struct gh_region *whole = publish(base + 2 * GH_SLOT_SIZE, GH_SLOT_SIZE - PAGE, false);
    struct gh_region *large = publish(base + 4 * GH_SLOT_SIZE, 5 * GH_SLOT_SIZE + 3 * PAGE, true);
    check_borders(small);
    check_borders(whole);
    check_borders(large);
    cr_assert_null(gh_region_find(NULL));
    cr_assert_null(gh_region_find((void *)UINTPTR_MAX));
}

Test(region, entries_carry_the_plain_bit) {
    struct gh_region *heap = publish(64 * GH_SLOT_SIZE, GH_SLOT_SIZE, false);
    struct gh_region *plain = publish(65 * GH_SLOT_SIZE + 0, 3 * GH_SLOT_SIZE, true);
    cr_assert_eq(gh_region_entry((void *)heap->base), heap->id);
    for (size_t slot = 65; slot < 68; slot++)
        cr_assert_eq(gh_region_entry((void *)(slot * GH_SLOT_SIZE)), plain->id | GH_REGION_LOOK_BIT);
    cr_assert_eq(gh_region_entry((void *)(68 * GH_SLOT_SIZE)), 0);
    cr_assert_eq(gh_region_entry((void *)(63 * GH_SLOT_SIZE)), 0);
}

Test(region, withdrawn_ids_are_reused_under_a_new_generation) {
    struct gh_region *region = publish(64 * GH_SLOT_SIZE, GH_SLOT_SIZE, false);
    uint16_t id = region->id;
    uint32_t generation = region->generation;
    gh_region_withdraw(region);
    cr_assert_null(gh_region_find((void *)(64 * GH_SLOT_SIZE)));
    cr_assert_eq(gh_region_entry((void *)(64 * GH_SLOT_SIZE)), 0);
    region = publish(70 * GH_SLOT_SIZE, GH_SLOT_SIZE, false);
    cr_assert_eq(region->id, id);
    cr_assert_neq(region->generation, generation);
}

Test(region, ids_end_and_come_back) {
    unsigned count = 0;
    uint16_t last = 0;
    struct gh_region *region;
    while ((region = gh_region_reserve()) != NULL) {
        cr_assert_eq(region->id, last + 1);
        last = region->id;
        region->base = (uintptr_t)(count + 1) * GH_SLOT_SIZE;
        region->size_bytes = PAGE;
        count++;
    }
    cr_assert_eq(count, GH_REGION_MAX);
    gh_region_withdraw(&gh_regions[77]);
    region = gh_region_reserve();
    cr_assert_not_null(region);
    cr_assert_eq(region->id, 77);
    cr_assert_null(gh_region_reserve());
}

// Two regions that never share a slot may lie in slots that touch: each address is one's only.
Test(region, neighbouring_slots) {
    struct gh_region *first = publish(80 * GH_SLOT_SIZE, GH_SLOT_SIZE - PAGE, false);
    struct gh_region *second = publish(81 * GH_SLOT_SIZE, 2 * PAGE, false);
    cr_assert_eq(gh_region_find((void *)(81 * GH_SLOT_SIZE - PAGE - 1)), first);
    cr_assert_null(gh_region_find((void *)(81 * GH_SLOT_SIZE - 1)));
    cr_assert_eq(gh_region_find((void *)(81 * GH_SLOT_SIZE)), second);
    gh_region_withdraw(first);
    cr_assert_eq(gh_region_find((void *)(81 * GH_SLOT_SIZE)), second);
}
