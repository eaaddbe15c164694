// SPDX-License-Identifier: MIT
//
// malloc, calloc, realloc, reallocarray and free at their edges, one line a case (edges.h).
#include "edges.h"

static void print_malloc(void) {
    char what[80];
    for (size_t i = 0; i < EDGE_SIZES; i++) {
        size_t size = edge_sizes[i];
        errno = EDGE_ERRNO;
        void *block = malloc(size);
        snprintf(what, sizeof(what), "malloc(%zu)", size);
        edge_print(what, block, errno, EDGE_ALIGNMENT, size);
        edge_free(block);
    }
}

static bool is_zero(const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static void print_one_calloc(size_t count, size_t size) {
    char what[80];
    size_t total;
    bool fits = !__builtin_mul_overflow(count, size, &total);
    // A used block of the same size first, so that memory with something in it is there to take.
    void *used = fits ? malloc(total) : NULL;
    if (used != NULL)
        memset(used, 0xff, total);
    free(used);
    errno = EDGE_ERRNO;
    char *block = calloc(count, size);
    int error = errno;
    if (block != NULL && !is_zero(block, total))
        printf("calloc(%zu, %zu) is NOT ZERO\n", count, size);
    snprintf(what, sizeof(what), "calloc(%zu, %zu)", count, size);
    edge_print(what, block, error, EDGE_ALIGNMENT, fits ? total : 0);
    edge_free(block);
}

static void print_calloc(void) {
    for (size_t i = 0; i < EDGE_SIZES; i++) {
        print_one_calloc(1, edge_sizes[i]);
        print_one_calloc(edge_sizes[i], 1);
        print_one_calloc(edge_sizes[i], 2);
        print_one_calloc(edge_sizes[i], 0);
        print_one_calloc(0, edge_sizes[i]);
    }
    print_one_calloc((size_t)1 << 32, (size_t)1 << 32);
    print_one_calloc(((size_t)1 << 32) + 1, (size_t)1 << 32);
    print_one_calloc(SIZE_MAX / 3 + 1, 3);
}

static void print_realloc(void) {
    char what[80];
    for (size_t i = 0; i < EDGE_SIZES; i++) {
        size_t size = edge_sizes[i];
        errno = EDGE_ERRNO;
        void *block = realloc(NULL, size);
        snprintf(what, sizeof(what), "realloc(NULL, %zu)", size);
        edge_print(what, block, errno, EDGE_ALIGNMENT, size);
        edge_free(block);
    }
    for (size_t from = 0; from < EDGE_SIZES; from++) {
        for (size_t to = 0; to < EDGE_SIZES; to++) {
            size_t old_size = edge_sizes[from];
            size_t new_size = edge_sizes[to];
            char *old = malloc(old_size);
            if (old == NULL)
                continue;
            for (size_t at = 0; at < old_size; at++)
                old[at] = (char)(at * 7 + 1);
            errno = EDGE_ERRNO;
            char *block = realloc(old, new_size);
            int error = errno;
            snprintf(what, sizeof(what), "realloc(block of %zu, %zu)", old_size, new_size);
            // After a failure the old block is as it was; after a size of 0 it is gone.
            char *kept = block != NULL ? block : new_size != 0 ? old : NULL;
            size_t common = block != NULL && new_size < old_size ? new_size : old_size;
            for (size_t at = 0; kept != NULL && at < common; at++)
                if (kept[at] != (char)(at * 7 + 1)) {
                    printf("%s LOST ITS BYTES at %zu\n", what, at);
                    break;
                }
            edge_print(what, block, new_size == 0 ? 0 : error, EDGE_ALIGNMENT, new_size);
            edge_free(kept);
        }
    }
}

static void print_reallocarray(void) {
    static const size_t pairs[][2] = {
        { 0, 0 }, { 0, 7 }, { 7, 0 }, { 1, 44 }, { 44, 1 }, { 100, 100 }, { 3, (size_t)1 << 20 },
        { (size_t)1 << 32, (size_t)1 << 32 }, { SIZE_MAX, 2 }, { SIZE_MAX / 3 + 1, 3 }, { PTRDIFF_MAX, 1 },
    };
    char what[80];
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        for (int with_block = 0; with_block < 2; with_block++) {
            char *old = with_block ? strcpy(malloc(8), "seven..") : NULL;
            size_t total = pairs[i][0] * pairs[i][1];
            errno = EDGE_ERRNO;
            char *block = reallocarray(old, pairs[i][0], pairs[i][1]);
            int error = errno;
            snprintf(what, sizeof(what), "reallocarray(%s, %zu, %zu)", with_block ? "block" : "NULL", pairs[i][0],
                     pairs[i][1]);
            if (with_block && block != NULL && total >= 8 && strcmp(block, "seven..") != 0)
                printf("%s LOST ITS BYTES\n", what);
            if (with_block && block == NULL && total != 0 && strcmp(old, "seven..") != 0)
                printf("%s HARMED THE OLD BLOCK\n", what);
            bool gone = block != NULL || (with_block && total == 0 && error == EDGE_ERRNO);
            edge_print(what, block, error, EDGE_ALIGNMENT, total);
            edge_free(block);
            if (!gone)
                edge_free(old);
        }
    }
}

int main(void) {
    print_malloc();
    print_calloc();
    print_realloc();
    print_reallocarray();
    edge_free(NULL);
    printf("malloc_usable_size(NULL): %zu\n", malloc_usable_size(NULL));
    // Blocks of glibc's own mmap class, so that free's munmap is on the way too.
    for (size_t size = 1; size < (size_t)64 << 20; size = size * 3 + 1)
        edge_free(malloc(size));
    return 0;
}
