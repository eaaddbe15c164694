// SPDX-License-Identifier: MIT
//
// Pages of imports that the program protects, drops or unmaps.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "cases.h"

// What custom allocators do to give memory back: protect it, drop it, and open it again. The pages
// are the GPU's and stay; the program must find zeros.
void case_protected(void) {
    const size_t size = (size_t)4 << 20;
    static const int kinds[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE };
    client_open();
    unsigned char *block = aligned_alloc(PAGE, size);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        memset(block, 9, size);
        OK(client_fill(client.list, block, 1)); // imported by now
        CHECK(mprotect(block, size / 2, kinds[i]) == 0, "mprotect");
        errno = 77;
        CHECK(madvise(block, size / 2, MADV_DONTNEED) == 0 && errno == 77, "errno %d", errno);
        CHECK(madvise(block, size / 2, MADV_FREE) == 0, "MADV_FREE");
        CHECK(mprotect(block, size / 2, PROT_READ | PROT_WRITE) == 0, "mprotect");
        for (size_t at = 0; at < size; at++)
            CHECK(block[at] == (at < size / 2 ? 0 : 9), "kind %zu, byte %zu", i, at);
        CHECK(client_moved() == 0, "the GPU sees other pages than the program");
    }
    free(block);
}

// Some pages of the range are protected, some are not; and ranges that madvise refuses.
void case_protected_parts(void) {
    client_open();
    unsigned char *block = aligned_alloc(PAGE, P(64));
    memset(block, 9, P(64));
    OK(client_fill(client.list, block + P(63), 1));
    CHECK(mprotect(block + P(3), P(1), PROT_NONE) == 0 && mprotect(block + P(5), P(2), PROT_READ) == 0, "mprotect");
    CHECK(madvise(block + P(1), P(8) + 10, MADV_DONTNEED) == 0, "madvise");
    CHECK(mprotect(block, P(64), PROT_READ | PROT_WRITE) == 0, "mprotect");
    for (size_t at = 0; at < P(63); at++)
        CHECK(block[at] == (at < P(1) || at >= P(10) ? 9 : 0), "byte %zu", at);
    CHECK(madvise(block + 1, P(1), MADV_DONTNEED) == -1 && errno == EINVAL, "EINVAL");
    CHECK(madvise(block, (size_t)1 << 40, MADV_DONTNEED) == -1 && errno == ENOMEM, "ENOMEM");
    CHECK(block[0] == 9, "nothing was dropped");
    // The heap that a GPU sees is given back by free and by nothing else.
    CHECK(munmap(block, P(1)) == -1 && errno == EINVAL, "munmap");
    CHECK(mmap(block, P(1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED && errno == EINVAL, "mmap");
    CHECK(mremap(block, P(1), P(2), MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL, "mremap");
    unsigned char *m = client_pages(2);
    CHECK(mremap(m, P(1), P(1), MREMAP_MAYMOVE | MREMAP_FIXED, block) == MAP_FAILED && errno == EINVAL, "mremap to it");
    CHECK(m[0] == 1 && block[0] == 9 && client_moved() == 0, "nothing moved");
    free(block);
}

static int advise_without_files(void *start, size_t size) {
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0, "getrlimit");
    struct rlimit none = { 0, before.rlim_max };
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0, "setrlimit");
    int result = madvise(start, size, MADV_DONTNEED);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0, "setrlimit");
    return result;
}

// No file can be opened, so the mappings cannot be read: the pages stay all the same.
void case_unreadable_maps(void) {
    client_open();
    unsigned char *block = aligned_alloc(PAGE, P(64));
    memset(block, 9, P(64));
    OK(client_fill(client.list, block + P(63), 1));
    CHECK(advise_without_files(block + P(1), P(40)) == 0, "madvise");
    for (size_t at = 0; at < P(63); at++)
        CHECK(block[at] == (at < P(1) || at >= P(41) ? 9 : 0), "byte %zu", at);
    CHECK(client_moved() == 0, "the GPU sees other pages than the program");
}

// And some may not be written: the zeros that the program waits for count most.
// Run with GHSIM_PAGE_CHECK=off.
void case_unreadable_protected(void) {
    client_open();
    unsigned char *block = aligned_alloc(PAGE, P(64));
    memset(block, 9, P(64));
    OK(client_fill(client.list, block + P(63), 1));
    CHECK(mprotect(block + P(1), P(1), PROT_READ) == 0 && advise_without_files(block, P(4)) == 0, "madvise");
    CHECK(mprotect(block + P(1), P(1), PROT_READ | PROT_WRITE) == 0, "mprotect");
    for (size_t at = 0; at < P(63); at++)
        CHECK(block[at] == (at < P(4) ? 0 : 9), "byte %zu", at);
}

static long kib_of(const char *key) {
    char line[200];
    long value = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0)
            value = strtol(line + strlen(key), NULL, 10);
    }
    CHECK(file != NULL, "no /proc");
    fclose(file);
    return value;
}

// Plain blocks, freed while a wrap holds them, as a garbage collector may do.
// Run with GPUHOST_MIN_SIZE=1G, GPUHOST_DECAY_MS=0.
void case_plain_retired(void) {
    const size_t size = (size_t)48 << 20; // a region of its own
    client_open();
    for (int i = 0; i < 12; i++) {
        unsigned char *block = aligned_alloc(PAGE, size);
        void *volatile wrapped = block; // the compiler warns of what is done here
        memset(block, 1, size);
        OK(client_wrap(client.context, wrapped, size));
        free(block);
        OK(client_unwrap(client.context, wrapped));
    }
    CHECK(client_pieces() == 0, "pieces");
    CHECK(kib_of("VmRSS:") < 4 * (long)(size >> 10), "%ld KiB are still resident", kib_of("VmRSS:"));
}

static unsigned char *late_pages;

static void unmap_late(void) {
    munmap(late_pages, P(16)); // a static object's destructor does such things
    mremap(late_pages + P(32), P(16), P(8), 0);
    void *again = mmap(late_pages, P(16), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(again == late_pages, "mmap");
    madvise(late_pages + P(60), P(4), MADV_DONTNEED);
}

// Memory that goes away in an exit handler of the program that runs after the driver's own.
// Run with GHSIM_LATE=abort, GHSIM_PAGE_CHECK=off.
void case_late_unmap(void) {
    CHECK(atexit(unmap_late) == 0, "atexit"); // before the driver is there
    client_open();
    late_pages = client_pages(64);
    OK(client_wrap(client.context, late_pages, P(16)));
    OK(client_wrap(client.context, late_pages + P(32), P(32)));
}
