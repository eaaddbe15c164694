// SPDX-License-Identifier: MIT
// Misuse: frees a misaligned address in the program's own text.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    void *volatile pointer = (char *)(uintptr_t)main + 1;
    puts("before");
    fflush(stdout);
    free(pointer);
    puts("after");
    return 0;
}
