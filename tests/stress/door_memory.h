// SPDX-License-Identifier: MIT
//
// The memory that one thread of the stress test works on, and what it must hold: each area has
// a shadow, so every byte that the GPU or the CPU wrote can be checked at any time.
#ifndef GH_TESTS_DOOR_MEMORY_H
#define GH_TESTS_DOOR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum area_kind {
    AREA_NONE,
    AREA_HEAP,    // a block of the heap
    AREA_FOREIGN, // pages that the thread mapped
    AREA_SPAN,    // pages that the thread mapped right below a region, and the region's first ones
};

#define WRAPS_MAX 12

struct area {
    enum area_kind kind;
    unsigned char *bytes;
    size_t size;
    unsigned char *shadow; // of the test's own malloc, not of the heap under test
    char *block;           // AREA_SPAN: the heap block of its own region
    size_t block_size;
    unsigned wrap_count;
    void *wraps[WRAPS_MAX]; // in the common context
};

struct random {
    uint64_t state;
};
uint64_t random_next(struct random *random);
size_t random_below(struct random *random, size_t limit);

// All fill the area with something and its shadow with the same.
void area_make_heap(struct area *area, size_t size, struct random *random);
bool area_make_foreign(struct area *area, size_t pages, struct random *random);
bool area_make_span(struct area *area, struct random *random); // false: the place is taken

// Compares every byte; aborts when one differs.
void area_verify(const struct area *area);

// Verifies, then frees or unmaps. The caller has freed the wraps of a foreign area.
void area_drop(struct area *area);

#endif
