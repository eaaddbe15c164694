// SPDX-License-Identifier: MIT
//
// A program that locks its memory must not pay for what the heap has mapped and not used. Under preload;
// 77 where memory cannot be locked.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1 << 20)
#define BLOCKS 10
// The library's tables are some 20 MiB that are hardly touched otherwise.
#define LOCKED_MAX (64 * MIB)

static long resident(void) {
    char text[128] = "";
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fgets(text, sizeof(text), file) == NULL || sscanf(text, "%*d %ld", &pages) != 1)
        exit(77);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void must(int right, const char *what, long bytes) {
    if (!right) {
        printf("%s: %ld KiB\n", what, bytes >> 10);
        exit(1);
    }
}

static char *block_of(size_t size) {
    char *block = malloc(size);
    must(block != NULL, "no block of", (long)size);
    memset(block, 1, size);
    return block;
}

int main(void) {
    char *small = block_of(100);
    char *large = block_of(2 * MIB);
    free(block_of(9 * MIB)); // its pages are not the program's any more
    free(block_of(3 * MIB));
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
        perror("SKIP: mlockall");
        return 77;
    }
    long locked = resident();
    must(locked < LOCKED_MAX, "resident once locked", locked);
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = block_of(2 * MIB);
    long grown = resident() - locked;
    must(grown < 3 * BLOCKS * MIB, "added by 20 MiB", grown);
    must(small[99] == 1 && large[2 * MIB - 1] == 1, "lost", 1);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    free(small);
    free(large);
    must(munlockall() == 0, "munlockall", 0);
    printf("locked %ld KiB, then %ld KiB more\n", locked >> 10, grown >> 10);
    return 0;
}
