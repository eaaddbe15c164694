// SPDX-License-Identifier: MIT
//
// What the table programs share: the sizes and alignments at the edges, and one printed line for
// each case. The programs are run without and with the library, and their outputs must be equal,
// so a line says only what may be relied on: block or NULL, errno after a failure, aligned or not.
#ifndef GH_TEST_EDGES_H
#define GH_TEST_EDGES_H

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// glibc's alignment of every block.
#define EDGE_ALIGNMENT 16u

static const size_t edge_sizes[] = {
    0, 1, 8, 15, 16, 17, 44, 4095, 4096, 16383, 16384, (size_t)1 << 20, (size_t)3 << 20,
    (size_t)1 << 47, PTRDIFF_MAX - 4096, PTRDIFF_MAX - 1, PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX - 4096,
    SIZE_MAX - 1, SIZE_MAX,
};
#define EDGE_SIZES (sizeof(edge_sizes) / sizeof(edge_sizes[0]))

static const size_t edge_alignments[] = {
    0, 1, 2, 3, 4, 8, 16, 24, 4096, (size_t)2 << 20, (size_t)1 << 30, SIZE_MAX / 4 + 1, SIZE_MAX / 2 + 1, SIZE_MAX,
};
#define EDGE_ALIGNMENTS (sizeof(edge_alignments) / sizeof(edge_alignments[0]))

#define EDGE_ERRNO 4242 // no function sets this one

// Writes the usable part, so that a block that is too short meets its neighbour; but not all of
// what glibc leaves behind a block that was aligned to 1 GiB.
#define EDGE_WRITE_MAX ((size_t)4 << 20)

static inline void edge_print(const char *what, void *block, int error, size_t alignment, size_t size) {
    if (block == NULL) {
        printf("%s: NULL, errno %d\n", what, error);
        return;
    }
    size_t usable = malloc_usable_size(block);
    memset(block, 0x5a, usable < EDGE_WRITE_MAX ? usable : EDGE_WRITE_MAX);
    printf("%s: block, %s, %s\n", what, (uintptr_t)block % alignment == 0 ? "aligned" : "NOT ALIGNED",
           usable >= size ? "large enough" : "TOO SMALL");
}

// free must keep errno, whatever it does inside.
static inline void edge_free(void *block) {
    errno = EDGE_ERRNO;
    free(block);
    if (errno != EDGE_ERRNO)
        printf("free changed errno to %d\n", errno);
}

// The weakest alignment that glibc's rounding of `asked` gives.
static inline size_t edge_rounded(size_t asked) {
    size_t rounded = EDGE_ALIGNMENT;
    while (rounded < asked && rounded <= SIZE_MAX / 4)
        rounded <<= 1;
    return rounded;
}

#endif
