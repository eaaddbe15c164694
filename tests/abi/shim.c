// SPDX-License-Identifier: MIT
//
// A preloaded library of the kind that breaks allocators at start-up: it interposes what an
// allocator calls while it starts, finds the real functions lazily, and allocates while it does.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static __thread int depth;

// Every size once, so that more than one class of the early heap is asked.
static void allocate_a_little(void) {
    if (depth++ < 3) {
        void *block = malloc(700);
        void *zeroed = calloc(3, 100);
        block = realloc(block, 1500);
        if (block == NULL || zeroed == NULL || *(char *)zeroed != 0)
            abort();
        memset(block, 1, 1500);
        free(block);
        free(zeroed);
    }
    depth--;
}

static void *next(const char *name) {
    allocate_a_little();
    return dlsym(RTLD_NEXT, name);
}

#define NEXT(type, name)                                                                                               \
    static __typeof__(type) *real;                                                                                     \
    if (real == NULL)                                                                                                  \
        real = (__typeof__(type) *)next(name);                                                                         \
    else                                                                                                               \
        allocate_a_little()

int open(const char *path, int flags, ...) {
    NEXT(int(const char *, int, ...), "open");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return real(path, flags, mode);
}

ssize_t read(int file, void *buffer, size_t size) {
    NEXT(ssize_t(int, void *, size_t), "read");
    return real(file, buffer, size);
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    NEXT(void *(void *, size_t, int, int, int, off_t), "mmap");
    return real(address, size, protection, flags, file, offset);
}

int madvise(void *address, size_t size, int advice) {
    NEXT(int(void *, size_t, int), "madvise");
    return real(address, size, advice);
}

int munmap(void *address, size_t size) {
    NEXT(int(void *, size_t), "munmap");
    return real(address, size);
}

char *getenv(const char *name) {
    NEXT(char *(const char *), "getenv");
    return real(name);
}

long sysconf(int name) {
    NEXT(long(int), "sysconf");
    return real(name);
}

pid_t getpid(void) {
    NEXT(pid_t(void), "getpid");
    return real();
}
