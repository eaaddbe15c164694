// SPDX-License-Identifier: MIT
//
// What the unit tests share: Criterion, a random source whose seed is printed with a failure and
// can be given again (UNIT_SEED), and the question whether an address may be touched.
#ifndef GH_TESTS_UNIT_H
#define GH_TESTS_UNIT_H

#ifdef __SANITIZE_THREAD__
#include "plain_runner.h"
#else
#include <criterion/criterion.h>
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocator/util.h"

#define PAGE GH_PAGE_SIZE

// TSan makes everything some ten times slower.
#ifdef __SANITIZE_THREAD__
#define UNIT_STEPS(steps) ((steps) / 8)
#else
#define UNIT_STEPS(steps) (steps)
#endif

static uint64_t unit_random_state;

static inline uint64_t unit_seed(void) {
    const char *given = getenv("UNIT_SEED");
    return unit_random_state = given != NULL ? strtoull(given, NULL, 0) : 20240611;
}

static inline uint64_t unit_random(void) { // splitmix64
    uint64_t z = unit_random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline size_t unit_below(size_t limit) {
    return (size_t)(unit_random() % limit);
}

// Asks the kernel, so that no signal is involved; by the call itself, which sanitizers do not watch.
static inline bool unit_readable(const void *address) {
    int ends[2];
    if (pipe(ends) != 0)
        abort();
    long written = syscall(SYS_write, ends[1], address, (size_t)1);
    close(ends[0]);
    close(ends[1]);
    return written == 1;
}

#endif
