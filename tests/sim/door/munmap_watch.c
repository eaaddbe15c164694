// SPDX-License-Identifier: MIT
//
// Another preloaded library, behind libgpuhost, that watches munmap as MPI libraries do: it keeps a
// list of what went away, and so allocates inside munmap.
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

struct entry {
    void *start;
    size_t size;
    struct entry *next;
};
static struct entry *_Atomic entries;
static _Atomic long count;
static int (*_Atomic real)(void *, size_t);

EXPORT long munmap_watched(void);
EXPORT int munmap(void *start, size_t size);

long munmap_watched(void) {
    return count;
}

__attribute__((constructor)) static void find(void) {
    real = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "munmap");
}

int munmap(void *start, size_t size) {
    struct entry *entry = malloc(sizeof(*entry));
    if (entry != NULL) {
        *entry = (struct entry){ start, size, entries };
        entries = entry;
    }
    void *volatile block = malloc((size_t)40 << 20); // of any size: it takes the heap's locks
    free(block);
    count++;
    if (real == NULL)
        find();
    return real(start, size);
}
