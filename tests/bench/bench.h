// SPDX-License-Identifier: MIT
//
// What the allocation patterns share: their arguments, a deterministic random number generator
// (each thread has its own state) and threads that start together. No pattern depends on time:
// the same arguments give the same calls, so allocators are compared on equal work.
#ifndef GH_BENCH_H
#define GH_BENCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A pattern runs `threads` threads and does `percent` of its usual work.
struct bench_work {
    unsigned threads;
    unsigned percent;
};

#define BENCH_THREADS_MAX 64u

void bench_larson(const struct bench_work *work);
void bench_producer(const struct bench_work *work);
void bench_churn(const struct bench_work *work);
void bench_arrays(const struct bench_work *work);
void bench_regrow(const struct bench_work *work);
void bench_calloc(const struct bench_work *work);
void bench_short_threads(const struct bench_work *work);
void bench_mix(const struct bench_work *work);

static inline uint64_t bench_random(uint64_t *state) {
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint32_t bench_below(uint64_t *state, uint32_t bound) {
    return (uint32_t)(((bench_random(state) >> 32) * bound) >> 32);
}

static inline uint64_t bench_seed(unsigned number) {
    return UINT64_C(0x9e3779b97f4a7c15) * (number + 1);
}

// Log-uniform between 1 << low_bits and 1 << high_bits: as many blocks between 1 and 2 KiB as
// between 1 and 2 MiB.
static inline size_t bench_log_size(uint64_t *state, unsigned low_bits, unsigned high_bits) {
    unsigned bits = low_bits + bench_below(state, high_bits - low_bits);
    return ((size_t)1 << bits) + (bench_random(state) & (((size_t)1 << bits) - 1));
}

// malloc, calloc and realloc that end the program when there is no memory.
void *bench_malloc(size_t size);
void *bench_calloc_block(size_t size);
void *bench_realloc(void *block, size_t size);

// Runs body(argument + i * size) in `threads` threads and waits for them. One thread: in the caller.
void bench_parallel(unsigned threads, void (*body)(void *), void *arguments, size_t argument_size);

// As programs use blocks: the first and the last bytes, and one in each page.
static inline void bench_touch(void *block, size_t size, unsigned value) {
    volatile unsigned char *bytes = block;
    for (size_t at = 0; at < size; at += 4096)
        bytes[at] = (unsigned char)value;
    bytes[size - 1] = (unsigned char)value;
}

#endif
