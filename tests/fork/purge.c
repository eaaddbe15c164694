// SPDX-License-Identifier: MIT
//
// What a fork child frees goes back to the kernel there, with and without a GPU in the parent:
// the child's heap has no imports that would keep its pages. Prints the child's resident set.
// Run with GPUHOST_DECAY_MS=0. Usage: purge
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 64
#define BLOCK ((size_t)1 << 20)

static size_t resident_kib(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*s %zu", &pages) != 1)
        abort();
    fclose(file);
    return pages * 4;
}

int main(void) {
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = memset(malloc(BLOCK), 1, BLOCK);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < BLOCKS; i++)
            memset(blocks[i], 2, BLOCK); // its own pages now
        size_t full = resident_kib();
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
        size_t after = resident_kib();
        printf("child: %zu KiB full, %zu KiB after all was freed\n", full, after);
        fflush(stdout);
        _exit(after + BLOCKS * (BLOCK >> 10) * 3 / 4 < full ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i][0] != 1 || blocks[i][BLOCK - 1] != 1)
            return 3;
    printf("child's status %d, the parent's bytes are its own\n", status);
    return status != 0;
}
