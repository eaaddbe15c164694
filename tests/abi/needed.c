// SPDX-License-Identifier: MIT
//
// A program that is linked with the library instead of being run under it. Prints whether the heap
// is the library's, and that libc's own allocations meet the same heap.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../preload/include/gpuhost.h"

int main(void) {
    struct gpuhost_stats before;
    struct gpuhost_stats after;
    gpuhost_stats(&before);
    char *text = strndup("a text that libc allocates", 10);
    void *block = malloc((size_t)10 << 20);
    gpuhost_stats(&after);
    printf("active %d, version %s, heap grows here: %d\n", gpuhost_active(), gpuhost_version(),
           after.bytes_live >= before.bytes_live + ((size_t)10 << 20));
    free(realloc(text, 100));
    free(block);
    return gpuhost_active() == 1 ? 0 : 1;
}
