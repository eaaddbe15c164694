// SPDX-License-Identifier: MIT
//
// Areas and their shadows (door_memory.h).
#include "door_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "allocator/region.h"
#include "door_client.h"
#include "gate.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define SPAN_PAGES 8 // on each side of the border

uint64_t random_next(struct random *random) { // splitmix64
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

size_t random_below(struct random *random, size_t limit) {
    return (size_t)(random_next(random) % limit);
}

static void start(struct area *area, enum area_kind kind, void *bytes, size_t size, struct random *random) {
    area->kind = kind;
    area->bytes = bytes;
    area->size = size;
    area->shadow = malloc(size);
    CHECK(area->shadow != NULL);
    memset(area->bytes, (int)random_next(random), size);
    memcpy(area->shadow, area->bytes, size);
}

void area_make_heap(struct area *area, size_t size, struct random *random) {
    bool zero = random_below(random, 4) == 0;
    unsigned char *block = gh_allocate(size, random_below(random, 8) == 0 ? 4096 : 0, zero, NULL);
    CHECK(block != NULL && gh_usable_size(block) >= size && (uintptr_t)block % 16 == 0);
    const struct gh_region *region = gh_region_find(block);
    CHECK(region != NULL && region == gh_region_find(block + size - 1));
    for (size_t i = 0; zero && i < size; i += 64)
        CHECK(block[i] == 0);
    start(area, AREA_HEAP, block, size, random);
}

bool area_make_foreign(struct area *area, size_t pages, struct random *random) {
    size_t size = pages * GH_PAGE_SIZE;
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return false;
    start(area, AREA_FOREIGN, bytes, size, random);
    return true;
}

bool area_make_span(struct area *area, struct random *random) {
    size_t size = 5 * GH_MIB + random_below(random, 64) * GH_PAGE_SIZE;
    char *block = gh_allocate(size, 0, false, NULL);
    CHECK(block != NULL);
    const struct gh_region *region = gh_region_find(block);
    char *below = block - SPAN_PAGES * GH_PAGE_SIZE;
    void *got = MAP_FAILED;
    if (region->base == (uintptr_t)block)
        got = mmap(below, SPAN_PAGES * GH_PAGE_SIZE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != (void *)below) {
        if (got != MAP_FAILED)
            munmap(got, SPAN_PAGES * GH_PAGE_SIZE);
        gh_deallocate(block);
        return false;
    }
    area->block = block;
    area->block_size = size;
    start(area, AREA_SPAN, below, 2 * SPAN_PAGES * GH_PAGE_SIZE, random);
    return true;
}

void area_verify(const struct area *area) {
    if (memcmp(area->bytes, area->shadow, area->size) == 0)
        return;
    size_t at = 0;
    while (area->bytes[at] == area->shadow[at])
        at++;
    fprintf(stderr, "area kind %d at %p, %zu bytes: byte %zu is %#x, not %#x\n", (int)area->kind, (void *)area->bytes,
            area->size, at, area->bytes[at], area->shadow[at]);
    abort();
}

void area_drop(struct area *area) {
    area_verify(area);
    if (area->kind == AREA_HEAP)
        gh_deallocate(area->bytes);
    else if (area->kind == AREA_FOREIGN)
        CHECK(munmap(area->bytes, area->size) == 0);
    if (area->kind == AREA_SPAN) {
        CHECK(munmap(area->bytes, SPAN_PAGES * GH_PAGE_SIZE) == 0);
        gh_deallocate(area->block);
    }
    free(area->shadow);
    *area = (struct area){ 0 };
}
