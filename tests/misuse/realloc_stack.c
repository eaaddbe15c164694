// SPDX-License-Identifier: MIT
// Misuse: reallocates a variable on the stack.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char block[64];
    char *volatile pointer = block + 16 - (size_t)block % 16;
    puts("before");
    fflush(stdout);
    pointer = realloc(pointer, 1000);
    printf("after %d\n", pointer != NULL);
    return 0;
}
