// SPDX-License-Identifier: MIT
// Misuse: frees a variable on the stack. glibc's free says so and aborts; ours hands it on.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char block[64];
    char *volatile pointer = block + 16 - (size_t)block % 16;
    puts("before");
    fflush(stdout);
    free(pointer);
    puts("after");
    return 0;
}
