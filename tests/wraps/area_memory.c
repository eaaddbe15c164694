// SPDX-License-Identifier: MIT
//
// Where areas get their memory from and how they give it back.
#include "area_memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "wt_events.h"

#define SPACE_PAGES 1024u
#define SMALL_PAGES 24u

static unsigned char *must_map(void *at, size_t size, int protection, int flags, int file) {
    unsigned char *got = wt_mmap(at, size, protection, flags, file, 0);
    if (got == MAP_FAILED)
        wt_fail("mmap of %zu bytes failed", size);
    return got;
}

// Unusable pages around it keep the kernel from joining it with mappings of other threads.
unsigned char *area_space_reserve(size_t size_bytes) {
    return WT_PAGE +
           must_map(NULL, size_bytes + 2 * WT_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

bool area_space_again(unsigned char *start, size_t size_bytes) {
    void *got = wt_mmap(start, size_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    return got == start;
}

void area_space_release(struct area *area) {
    size_t pages = area_page_count(area);
    for (size_t page = 0; page < pages;) {
        size_t run = 0;
        while (page + run < pages && area->pages[page + run] != PAGE_LOST)
            run++;
        if (run != 0)
            wt_munmap(area_page_start(area, page), run * WT_PAGE);
        page += run + 1;
    }
    if (area->file < 0) { // its guards are its own
        wt_munmap(area->bytes - WT_PAGE, WT_PAGE);
        wt_munmap(area->bytes + area->size_bytes, WT_PAGE);
    }
}

void area_fill_random(struct area *area, struct rng *rng) {
    for (size_t at = 0; at < area->size_bytes; at += 509)
        area->bytes[at] = (unsigned char)rng_next(rng);
}

static void create_file(struct area *area, struct rng *rng) {
    unsigned char page[WT_PAGE];
    size_t pages = 1 + rng_below(rng, SMALL_PAGES);
    int file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0)
        file = memfd_create("wraps", MFD_CLOEXEC);
    for (size_t i = 0; i < pages; i++) {
        memset(page, (int)rng_next(rng), sizeof page);
        if (write(file, page, sizeof page) != (ssize_t)sizeof page)
            wt_fail("cannot write a file of %zu pages", pages);
    }
    int protection = area->kind == AREA_FILE_READ ? PROT_READ : PROT_READ | PROT_WRITE;
    int flags = area->kind == AREA_FILE_SHARED ? MAP_SHARED : MAP_PRIVATE;
    area_init(area, area->kind, must_map(NULL, pages * WT_PAGE, protection, flags, file), pages * WT_PAGE);
    area->file = file;
}

static void create_segment(struct area *area, struct rng *rng) {
    size_t size = (1 + rng_below(rng, SMALL_PAGES)) * WT_PAGE;
    area->file = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    unsigned char *at = area->file < 0 ? MAP_FAILED : shmat(area->file, NULL, 0);
    if (at == MAP_FAILED)
        wt_fail("no System V segment of %zu bytes", size);
    shmctl(area->file, IPC_RMID, NULL); // goes with its last user, also when the test dies
    area_fill_random(&(struct area){ .bytes = at, .size_bytes = size }, rng);
    area_init(area, AREA_SHM, at, size);
}

static void create_pages(struct area *area, struct rng *rng, size_t pages) {
    unsigned char *space = area_space_reserve(pages * WT_PAGE);
    size_t there = area->kind == AREA_FLOAT ? 1 + rng_below(rng, pages) : pages / 2;
    if (mprotect(space, there * WT_PAGE, PROT_READ | PROT_WRITE) != 0)
        wt_fail("mprotect of %zu pages failed", there);
    area->bytes = space;
    area->size_bytes = pages * WT_PAGE;
    area_reserve_model(area, area->size_bytes);
    memset(area->shadow, 0, area->size_bytes);
    memset(area->pages, PAGE_NONE, pages);
    memset(area->pages, PAGE_THERE, there);
    area->file = -1;
}

static void create_block(struct area *area, struct rng *rng) {
    size_t size = 16 + rng_below(rng, rng_below(rng, 4) == 0 ? 200000 : 9000);
    if (rng_below(rng, 200) == 0)
        size = 1000000 + rng_below(rng, 8000000); // regions come and go
    unsigned char *block = wt_malloc(size);
    if (block == NULL)
        wt_fail("malloc of %zu bytes failed", size);
    memset(block, (int)rng_next(rng), size);
    area_init(area, AREA_HEAP, block, size);
}

void area_create(struct area *area, enum area_kind kind, struct rng *rng) {
    area->kind = kind;
    switch (kind) {
    case AREA_PAGES:
        create_pages(area, rng, SPACE_PAGES);
        break;
    case AREA_FLOAT:
        create_pages(area, rng, SMALL_PAGES);
        break;
    case AREA_SHM:
        create_segment(area, rng);
        break;
    case AREA_HEAP:
        create_block(area, rng);
        break;
    case AREA_FILE_SHARED:
    case AREA_FILE_PRIVATE:
    case AREA_FILE_READ:
        create_file(area, rng);
        break;
    default:
        wt_fail("an area of kind %d cannot be created", (int)kind);
    }
}

void area_release(struct area *area) {
    switch (area->kind) {
    case AREA_PAGES:
    case AREA_FLOAT:
        area_space_release(area);
        break;
    case AREA_SHM:
        if (wt_shmdt(area->bytes) != 0)
            wt_fail("shmdt failed");
        break;
    case AREA_HEAP:
        wt_free(area->bytes);
        break;
    case AREA_FILE_SHARED:
    case AREA_FILE_PRIVATE:
    case AREA_FILE_READ:
        if (wt_munmap(area->bytes, area->size_bytes) != 0)
            wt_fail("munmap failed");
        close(area->file);
        break;
    default:
        break;
    }
    area_all_gone(area);
}
