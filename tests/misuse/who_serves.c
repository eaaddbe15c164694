// SPDX-License-Identifier: MIT
//
// Says whose heap malloc's blocks come from: glibc's small blocks lie below the program's break.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../preload/include/gpuhost.h"

int main(void) {
    void *volatile block = malloc(24);
    uintptr_t end = (uintptr_t)sbrk(0);
    int in_break = (uintptr_t)block < end && (uintptr_t)block > end - ((size_t)64 << 20);
    printf("active %d, %s\n", gpuhost_active ? gpuhost_active() : -1, in_break ? "glibc's heap" : "another heap");
    block = realloc(block, 5000000);
    free(block);
    return 0;
}
