// SPDX-License-Identifier: MIT
//
// The model of the random test: an area is a range of bytes that one thread at a time owns, what
// those bytes must be, and the wraps that were made in it. Whether a wrap must work is decided by
// the area alone: it must until one of its pages goes away, and never again after that.
//
// An area is used by one thread, or under its lock. Nothing here calls a driver.
#ifndef GPUHOST_TESTS_WRAPS_AREA_H
#define GPUHOST_TESTS_WRAPS_AREA_H

#include <pthread.h>

#include "wt_gpu.h"

enum area_kind {
    AREA_PAGES,        // anonymous pages in a reserved range: mapped, unmapped, moved, dropped one by one
    AREA_FLOAT,        // one anonymous mapping that grows, shrinks and moves by mremap
    AREA_FILE_SHARED,  // a mapped file
    AREA_FILE_PRIVATE, // the same, copied on write
    AREA_FILE_READ,    // the same, read-only
    AREA_SHM,          // a System V segment
    AREA_HEAP,         // a block of malloc's
    AREA_SLICE,        // bytes of a static array; the neighbours' bytes are on the same pages
    AREA_STACK,        // bytes on a thread's stack
    AREA_BREAK,        // memory of sbrk
    AREA_CONSTANT,     // bytes that nobody writes, used by all threads at once
    AREA_KINDS
};

struct area_wrap {
    unsigned char *start;
    size_t size_bytes;
    uint8_t unit;
    bool read_only;
    bool stale;
    bool shared_free; // another wrap at this pointer was freed: a free names no size, so which is left?
};

#define AREA_WRAPS_MAX 48u

enum area_page { PAGE_NONE, PAGE_THERE, PAGE_LOST }; // lost: somebody else mapped something there

struct area {
    enum area_kind kind;
    unsigned char *bytes; // the area is [bytes, bytes + size_bytes); need not begin on a page
    size_t size_bytes;
    unsigned char *shadow; // what they must be, where the page is there
    uint8_t *pages;        // enum area_page of each page that the area touches
    size_t capacity_bytes; // of shadow
    unsigned wrap_count;
    int file; // descriptor, or segment id
    pthread_mutex_t *lock; // NULL: one thread's
    struct area_wrap wraps[AREA_WRAPS_MAX];
};

struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *rng);
size_t rng_below(struct rng *rng, size_t limit); // limit 0 answers 0

// Areas over memory that is there already.
void area_init(struct area *area, enum area_kind kind, unsigned char *bytes, size_t size_bytes);
// Areas that get their memory here; its contents are random.
void area_create(struct area *area, enum area_kind kind, struct rng *rng);
// Gives the memory back; wraps that are left are stale then.
void area_release(struct area *area);
void area_free_model(struct area *area);

// One random change of what is mapped; false when the kind has none or it was not possible now.
bool area_change(struct area *area, struct rng *rng);

// A random run of pages that are there, as bytes of the area. False: there is none.
bool area_pick(const struct area *area, struct rng *rng, unsigned char **start_out, size_t *size_out);

void area_verify(const struct area *area, const unsigned char *start, size_t size_bytes, const char *after);
unsigned char *area_shadow(const struct area *area, const unsigned char *at);

extern bool area_quiet_moves; // mappings never land where the kernel likes, only in places of our own

#endif
