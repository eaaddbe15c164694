// SPDX-License-Identifier: MIT
//
// A process that has all the mappings that the kernel allows (vm.max_map_count): malloc gives what
// it has, then NULL and ENOMEM; blocks keep their bytes, frees work, and with the mappings gone
// everything works again. With KERNELS a GPU has the heap meanwhile. Usage: maps [KERNELS]
#include "../fork/gpu_use.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define PAIRS_MOST ((size_t)200000) // more than vm.max_map_count allows on any usual machine

static int failed;

static void check(int good, const char *what) {
    printf("%s: %s\n", what, good ? "yes" : "NO");
    failed += !good;
}

// Every second page with another protection: each is a mapping of its own.
static size_t use_up(char *room) {
    size_t pairs = 0;
    while (pairs < PAIRS_MOST && mprotect(room + pairs * 2 * PAGE, PAGE, PROT_READ) == 0)
        pairs++;
    return pairs;
}

// Up to `count` blocks; the first that is refused must be refused properly.
static size_t take(unsigned char **blocks, size_t count, size_t size) {
    size_t got = 0;
    for (; got < count; got++) {
        errno = 0;
        blocks[got] = malloc(size);
        if (blocks[got] == NULL) {
            if (errno != ENOMEM)
                check(0, "a refusal is ENOMEM");
            break;
        }
        memset(blocks[got], (int)got, size);
    }
    return got;
}

static int give(unsigned char **blocks, size_t count, size_t size) {
    int right = 1;
    for (size_t i = 0; i < count; i++) {
        right &= blocks[i][0] == (unsigned char)i && blocks[i][size - 1] == (unsigned char)i;
        free(blocks[i]);
    }
    return right;
}

int main(int argc, char **argv) {
    static unsigned char *before[1000];
    static unsigned char *blocks[300];
    static const size_t sizes[] = { 16, 100, 3000, 20000, 300000, 5000000 };
    if (argc > 1)
        gpu_use_open(argv[1]);
    check(take(before, 1000, 2000) == 1000, "blocks before");
    char *room = mmap(NULL, PAIRS_MOST * 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED || use_up(room) == PAIRS_MOST) {
        printf("SKIP: this machine allows more mappings than %zu\n", PAIRS_MOST);
        return 77;
    }
    int right = 1;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            size_t got = take(blocks, 300, sizes[i]);
            right &= give(blocks, got, sizes[i]);
        }
    }
    check(right, "blocks keep their bytes without a mapping left");
    check(give(before, 1000, 2000), "blocks from before too");
    check(take(before, 500, 2000) == 500, "what was freed can be had again");
    if (argc > 1) // a wrap may need a mapping of the driver's; the heap's own does not
        gpu_use_is_right();
    munmap(room, PAIRS_MOST * 2 * PAGE);
    check(give(before, 500, 2000), "and freed");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t got = take(blocks, 100, sizes[i]);
        check(got == 100 && give(blocks, got, sizes[i]), "everything works with the mappings gone");
    }
    if (argc > 1) {
        check(gpu_use_is_right(), "the GPU too");
        gpu_use_close();
    }
    return failed != 0;
}
