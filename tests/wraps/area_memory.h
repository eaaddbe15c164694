// SPDX-License-Identifier: MIT
//
// Between the parts of the model (area.c, area_memory.c, area_change.c).
#ifndef GPUHOST_TESTS_WRAPS_AREA_MEMORY_H
#define GPUHOST_TESTS_WRAPS_AREA_MEMORY_H

#include "area.h"

unsigned char *area_page_start(const struct area *area, size_t page);
size_t area_page_count(const struct area *area);
void area_reserve_model(struct area *area, size_t size_bytes);

// Wraps on these pages are stale from now on.
void area_pages_gone(struct area *area, size_t first, size_t count);
void area_all_gone(struct area *area);

bool area_pick_pages(const struct area *area, struct rng *rng, enum area_page state, size_t *first_out,
                     size_t *count_out);

// Address space that nobody else gets, unusable, with a page before and behind it.
unsigned char *area_space_reserve(size_t size_bytes);
// The same again for a hole in it; false when somebody else was faster.
bool area_space_again(unsigned char *start, size_t size_bytes);
// Gives back what is not lost, and the pages around it.
void area_space_release(struct area *area);

void area_fill_random(struct area *area, struct rng *rng);

#endif
