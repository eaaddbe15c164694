// SPDX-License-Identifier: MIT
// Misuse, almost: blocks of glibc's own heap in our free, realloc and malloc_usable_size. They come
// from code that was bound to glibc's malloc. Many large ones, so that some lie beside a region.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t size);
void *__libc_memalign(size_t alignment, size_t size);

int main(void) {
    static void *ours[64];
    int wrong = 0;
    for (int i = 0; i < 64; i++)
        ours[i] = memset(malloc((size_t)3 << 20), 1, (size_t)3 << 20);
    for (size_t i = 0; i < 600; i++) {
        size_t size = i % 4 == 0 ? 1 + i : 150000 * (i % 9 + 1);
        char *block = i % 7 == 0 ? __libc_memalign(8192, size) : __libc_malloc(size);
        block[size - 1] = 7;
        wrong += malloc_usable_size(block) < size || malloc_usable_size(block) > size + 20000;
        if (i % 3 == 0) {
            block = realloc(block, size * 2);
            wrong += block[size - 1] != 7;
        }
        if (i % 2 == 0) // the others stay, and fill the gaps between regions
            free(block);
    }
    for (int i = 0; i < 64; i++)
        free(ours[i]);
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
