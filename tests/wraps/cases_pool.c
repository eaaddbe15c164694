// SPDX-License-Identifier: MIT
//
// GPUHOST_MMAP: what is imported around a wrap in the program's own large mappings, and what is
// not. With it off these are ordinary wraps, and the same checks of content hold.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cases.h"

#define P(n) ((n) * WT_PAGE)
#define MIB ((size_t)1 << 20)

static bool is_on(void) {
    const char *value = getenv("GPUHOST_MMAP");
    return value != NULL && strcmp(value, "1") == 0;
}

void case_pool(void) {
    unsigned char *m = case_pages(4 * MIB / WT_PAGE);
    case_wrap(m + P(10) + 17, 100);
    if (is_on())
        CHECK(case_imports() == 1 && wt_type(case_unit, m) == KEEP && wt_type(case_unit, m + 4 * MIB - 1) == KEEP, "whole");
    for (size_t i = 0; i < 100; i++)
        case_wrap(m + P(20) + i * 512, 512);
    CHECK(case_imports() == (is_on() ? 1 : 14), "%llu", (unsigned long long)case_imports());
    case_must_add1(m + P(20), 100 * 512 / WT_PAGE * WT_PAGE);
    for (size_t i = 0; i < 100; i++)
        case_unwrap(m + P(20) + i * 512);
    case_unwrap(m + P(10) + 17);
    CHECK(case_imports() == (is_on() ? 1u : 0u), "kept for the next wrap");
    CHECK(madvise(m, 4 * MIB, MADV_DONTNEED) == 0 && m[P(10)] == 0, "madvise");
    case_wrap(m, P(1));
    case_must_add1(m, P(1));
    CHECK(munmap(m + MIB, MIB) == 0, "a part goes"); // the rest is what the wrap needs
    case_must_add1(m, P(1));
    CHECK(wt_type(case_unit, m + MIB) == GONE, "gone");
    case_unwrap(m);
    munmap(m, MIB);
    munmap(m + 2 * MIB, 2 * MIB);
}

static void *neighbour(void *unused) {
    (void)unused;
    return NULL;
}

// Whatever the kernel joins: neither the mapping beside it nor a thread's stack is imported.
void case_pool_borders(void) {
    unsigned char *space = mmap(NULL, 8 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    munmap(space, 8 * MIB);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    unsigned char *one = mmap(space, 2 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
    unsigned char *two = mmap(space + 2 * MIB, 2 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(one == space && two == space + 2 * MIB, "side by side");
    memset(one, 1, 4 * MIB);
    pthread_attr_t attributes;
    pthread_t thread;
    unsigned char *stack = mmap(space + 4 * MIB, 2 * MIB, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(stack == space + 4 * MIB && pthread_attr_init(&attributes) == 0 &&
              pthread_attr_setstack(&attributes, stack, 2 * MIB) == 0 &&
              pthread_create(&thread, &attributes, neighbour, NULL) == 0, "thread");
    case_wrap(two + P(3), P(1));
    CHECK(wt_type(case_unit, one + 2 * MIB - 1) == GONE && wt_type(case_unit, stack) == GONE, "the neighbours");
    CHECK(wt_type(case_unit, two) == (is_on() ? KEEP : GONE), "its own");
    CHECK(munmap(one, 2 * MIB) == 0, "munmap");
    case_must_add1(two + P(3), P(1));
    pthread_join(thread, NULL);
    CHECK(munmap(stack, 2 * MIB) == 0, "munmap");
    case_must_add1(two + P(3), P(1));
    case_unwrap(two + P(3));
    munmap(two, 2 * MIB);
}

static size_t resident_kib(void) {
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "VmRSS: %zu", &kib);
    fclose(file);
    return kib;
}

// A huge reserve, used here and there, costs what is used.
void case_reserve(void) {
    const size_t size = (size_t)64 << 30;
    unsigned char *m = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned char *n = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(m != MAP_FAILED && n != MAP_FAILED, "no address space");
    CHECK(mprotect(m + size / 2, 3 * MIB, PROT_READ | PROT_WRITE) == 0, "mprotect");
    size_t before = resident_kib();
    m[size / 2 + P(5)] = 1;
    n[size / 2 + P(5)] = 1;
    case_wrap(m + size / 2 + P(5), P(1));
    case_wrap(n + size / 2 + P(5), P(1));
    case_must_add1(m + size / 2 + P(5), P(1));
    case_must_add1(n + size / 2 + P(5), P(1));
    CHECK(resident_kib() - before < 8 * 1024, "%zu KiB", resident_kib() - before);
    CHECK(wt_type(case_unit, m) == GONE && wt_type(case_unit, n) == GONE, "untouched");
    case_unwrap(m + size / 2 + P(5));
    case_unwrap(n + size / 2 + P(5));
    munmap(m, size);
    munmap(n, size);
}
