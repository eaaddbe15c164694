// SPDX-License-Identifier: MIT
// Misuse: frees a block twice. glibc mostly notices and aborts; jemalloc, as it is built here, does
// not: the block is handed out twice. Known and said; the test is there to notice a change.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    void *volatile block = malloc(100);
    free(block);
    free(block);
    void *volatile first = malloc(100);
    void *volatile second = malloc(100);
    puts(first == second ? "handed out twice" : "handed out once");
    return 0;
}
