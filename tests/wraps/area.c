// SPDX-License-Identifier: MIT
//
// Areas without their changes (area.h): the model's book-keeping.
#include "area.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "area_memory.h"

bool area_quiet_moves;

uint64_t rng_next(struct rng *rng) {
    uint64_t mixed = (rng->state += UINT64_C(0x9e3779b97f4a7c15));
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

size_t rng_below(struct rng *rng, size_t limit) {
    return limit == 0 ? 0 : (size_t)(rng_next(rng) % limit);
}

unsigned char *area_page_start(const struct area *area, size_t page) {
    return (unsigned char *)((uintptr_t)area->bytes & ~(WT_PAGE - 1)) + page * WT_PAGE;
}

size_t area_page_count(const struct area *area) {
    return area->size_bytes == 0 ? 0 : wt_rounded(area->bytes, area->size_bytes).size_bytes / WT_PAGE;
}

void area_reserve_model(struct area *area, size_t size_bytes) {
    if (size_bytes <= area->capacity_bytes)
        return;
    area->shadow = realloc(area->shadow, size_bytes);
    area->pages = realloc(area->pages, size_bytes / WT_PAGE + 2);
    if (area->shadow == NULL || area->pages == NULL)
        wt_fail("no memory for the model");
    area->capacity_bytes = size_bytes;
}

void area_init(struct area *area, enum area_kind kind, unsigned char *bytes, size_t size_bytes) {
    area->kind = kind;
    area->bytes = bytes;
    area->size_bytes = size_bytes;
    area_reserve_model(area, size_bytes);
    memset(area->pages, PAGE_THERE, area_page_count(area));
    memcpy(area->shadow, bytes, size_bytes);
}

void area_free_model(struct area *area) {
    free(area->shadow);
    free(area->pages);
    area->shadow = NULL;
    area->pages = NULL;
    area->capacity_bytes = 0;
}

void area_pages_gone(struct area *area, size_t first, size_t count) {
    const unsigned char *start = area_page_start(area, first);
    const unsigned char *end = start + count * WT_PAGE;
    for (unsigned i = 0; i < area->wrap_count; i++) {
        const struct wt_range range = wt_rounded(area->wraps[i].start, area->wraps[i].size_bytes);
        if (range.start < end && start < range.start + range.size_bytes)
            area->wraps[i].stale = true;
    }
}

void area_all_gone(struct area *area) {
    for (unsigned i = 0; i < area->wrap_count; i++)
        area->wraps[i].stale = true;
}

static size_t run_limit(struct rng *rng, size_t pages) {
    size_t dice = rng_below(rng, 100);
    if (dice < 70)
        return 1 + rng_below(rng, 4);
    return 1 + rng_below(rng, dice < 96 ? 32 : pages);
}

bool area_pick_pages(const struct area *area, struct rng *rng, enum area_page state, size_t *first_out,
                     size_t *count_out) {
    size_t pages = area_page_count(area);
    for (int attempt = 0; attempt < 8 && pages != 0; attempt++) {
        size_t first = rng_below(rng, pages);
        if (area->pages[first] != state)
            continue;
        size_t limit = run_limit(rng, pages);
        size_t count = 1;
        while (count < limit && first + count < pages && area->pages[first + count] == state)
            count++;
        *first_out = first;
        *count_out = count;
        return true;
    }
    return false;
}

bool area_pick(const struct area *area, struct rng *rng, unsigned char **start_out, size_t *size_out) {
    size_t first;
    size_t count;
    if (!area_pick_pages(area, rng, PAGE_THERE, &first, &count))
        return false;
    unsigned char *start = area_page_start(area, first);
    unsigned char *end = start + count * WT_PAGE;
    if (start < area->bytes)
        start = area->bytes;
    if (end > area->bytes + area->size_bytes)
        end = area->bytes + area->size_bytes;
    if (rng_below(rng, 2) != 0) { // unaligned
        start += rng_below(rng, (size_t)(end - start));
        end = start + 1 + rng_below(rng, (size_t)(end - start));
    }
    *start_out = start;
    *size_out = (size_t)(end - start);
    return true;
}

unsigned char *area_shadow(const struct area *area, const unsigned char *at) {
    return area->shadow + (at - area->bytes);
}

void area_verify(const struct area *area, const unsigned char *start, size_t size_bytes, const char *after) {
    const unsigned char *expected = area_shadow(area, start);
    if (memcmp(start, expected, size_bytes) == 0)
        return;
    size_t at = 0;
    while (start[at] == expected[at])
        at++;
    wt_fail("WRONG BYTES after %s: kind %d at %p+%zu (area %p+%zu) is %u, not %u", after, (int)area->kind,
            (const void *)start, at, (const void *)area->bytes, area->size_bytes, start[at], expected[at]);
}
