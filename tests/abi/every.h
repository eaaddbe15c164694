// SPDX-License-Identifier: MIT
//
// Every allocation function, each as one small self-checking call. For the programs that try all
// of them at a certain moment of a process's or a thread's life.
#ifndef GH_TEST_EVERY_H
#define GH_TEST_EVERY_H

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Fills and frees; 1 when the block is what was asked for.
static inline int every_block(void *block, size_t size, size_t alignment) {
    if (block == NULL || (uintptr_t)block % alignment != 0 || malloc_usable_size(block) < size)
        return 0;
    memset(block, 0x77, size);
    free(block);
    return 1;
}

static inline int every_malloc(void) { return every_block(malloc(100), 100, 16); }
static inline int every_malloc_large(void) { return every_block(malloc(300000), 300000, 16); }
static inline int every_free(void) { free(NULL); return 1; }
static inline int every_realloc(void) { return every_block(realloc(realloc(NULL, 10), 5000), 5000, 16); }
static inline int every_reallocarray(void) { return every_block(reallocarray(NULL, 10, 10), 100, 16); }
static inline int every_aligned_alloc(void) { return every_block(aligned_alloc(64, 44), 44, 64); }
static inline int every_memalign(void) { return every_block(memalign(8192, 44), 44, 8192); }
static inline int every_valloc(void) { return every_block(valloc(44), 44, 4096); }
static inline int every_pvalloc(void) { return every_block(pvalloc(44), 4096, 4096); }
static inline int every_malloc_trim(void) { return (malloc_trim(0) | 1) == 1; }
static inline int every_mallinfo2(void) { return mallinfo2().uordblks < (size_t)1 << 40; }
static inline int every_usable_size(void) { return malloc_usable_size(NULL) == 0; }
static inline int every_mallopt(void) { return mallopt(M_MXFAST, -1) == 0; }

static inline int every_calloc(void) {
    char *block = calloc(30, 10);
    for (int i = 0; block != NULL && i < 300; i++)
        if (block[i] != 0)
            return 0;
    return every_block(block, 300, 16);
}

static inline int every_posix_memalign(void) {
    void *block = NULL;
    return posix_memalign(&block, 256, 44) == 0 && every_block(block, 44, 256);
}

static inline int every_refusal(void) {
    volatile size_t all = SIZE_MAX; // the compiler would warn
    return malloc(all) == NULL && calloc(all, 2) == NULL && memalign(all, 1) == NULL;
}

static const struct every {
    const char *name;
    int (*call)(void);
} every[] = {
    { "malloc", every_malloc }, { "malloc_large", every_malloc_large }, { "free", every_free },
    { "realloc", every_realloc }, { "reallocarray", every_reallocarray }, { "aligned_alloc", every_aligned_alloc },
    { "memalign", every_memalign }, { "valloc", every_valloc }, { "pvalloc", every_pvalloc },
    { "malloc_trim", every_malloc_trim }, { "mallinfo2", every_mallinfo2 }, { "usable_size", every_usable_size },
    { "mallopt", every_mallopt }, { "calloc", every_calloc }, { "posix_memalign", every_posix_memalign },
    { "refusal", every_refusal },
};
#define EVERY_COUNT (sizeof(every) / sizeof(every[0]))

// Calls all of them; the number that failed.
static inline int every_all(const char *moment) {
    int failed = 0;
    for (size_t i = 0; i < EVERY_COUNT; i++) {
        if (!every[i].call()) {
            printf("%s: %s FAILED\n", moment, every[i].name);
            failed++;
        }
    }
    return failed;
}

#endif
