// SPDX-License-Identifier: MIT
// Misuse: frees a static array.
#include <stdio.h>
#include <stdlib.h>

static _Alignas(16) char block[64];

int main(void) {
    char *volatile pointer = block + 16;
    puts("before");
    fflush(stdout);
    free(pointer);
    puts("after");
    return 0;
}
