// SPDX-License-Identifier: MIT
//
// Whether malloc answers as it should when memory is short: NULL and ENOMEM when there is no more,
// most of what the limit leaves before that, and blocks again once some were freed.
// Usage: answers LIMIT_IN_MIB (0: none). Says nothing that differs from run to run; its exit
// status tells as well, for runs without a stdout.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP ((size_t)64 << 10)

static int failed;

static void check(int good, const char *what) {
    printf("%s: %s\n", what, good ? "yes" : "NO");
    failed += !good;
}

// A chain of blocks of `size`, until there is no more or `most` bytes are taken.
static size_t fill(void **chain, size_t size, size_t most) {
    size_t taken = 0;
    *chain = NULL;
    while (taken < most) {
        errno = 0;
        void **block = malloc(size);
        if (block == NULL)
            break;
        memset(block, 1, size);
        *block = *chain;
        *chain = block;
        taken += size;
    }
    return taken;
}

static void drain(void *chain) {
    while (chain != NULL) {
        void *next = *(void **)chain;
        free(chain);
        chain = next;
    }
}

int main(int argc, char **argv) {
    size_t limit = argc > 1 ? (size_t)atol(argv[1]) << 20 : 0;
    size_t most = limit == 0 ? (size_t)64 << 20 : limit;
    void *chain;
    check(fill(&chain, 100, (size_t)1 << 20) >= (size_t)1 << 20, "small blocks");
    drain(chain);
    if (limit != 0) {
        errno = 0;
        void *block = malloc(limit * 2);
        check(block == NULL && errno == ENOMEM, "more than the limit is NULL and ENOMEM");
        errno = 0;
        block = calloc(2, limit);
        check(block == NULL && errno == ENOMEM, "calloc too");
        errno = 0;
        check(posix_memalign(&block, 4096, limit * 2) == ENOMEM, "posix_memalign too");
        char *kept = strcpy(malloc(100), "kept");
        errno = 0;
        check(realloc(kept, limit * 2) == NULL && errno == ENOMEM && strcmp(kept, "kept") == 0, "realloc too");
        free(kept);
    }
    for (int round = 0; round < 3; round++) {
        size_t taken = fill(&chain, STEP, most * 2);
        int error = errno;
        if (limit != 0)
            check(error == ENOMEM, "filled up to ENOMEM");
        check(taken >= most / 2, "with at least half of what there is");
        void *last = malloc(10); // may be NULL, must not crash
        free(last);
        drain(chain);
    }
    size_t taken = fill(&chain, 48, most / 4);
    check(taken >= most / 4, "small blocks out of freed large ones");
    drain(chain);
    void *block = malloc(most / 4);
    check(block != NULL, "a large block out of freed small ones");
    if (block != NULL)
        memset(block, 1, most / 4);
    block = realloc(block, most / 8);
    free(block);
    return failed;
}
