// SPDX-License-Identifier: MIT
//
// One allocation pattern in one process: gh-bench-malloc PATTERN [THREADS [PERCENT]]. Prints
// nothing: who starts it measures time and memory from outside, the same way for every allocator.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const struct {
    const char *name;
    void (*run)(const struct bench_work *);
} patterns[] = {
    { "larson", bench_larson },
    { "producer", bench_producer },
    { "churn", bench_churn },
    { "arrays", bench_arrays },
    { "regrow", bench_regrow },
    { "calloc", bench_calloc },
    { "short_threads", bench_short_threads },
    { "mix", bench_mix },
};

static void *checked(void *block) {
    if (block == NULL) {
        fputs("gh-bench-malloc: out of memory\n", stderr);
        exit(3);
    }
    return block;
}

void *bench_malloc(size_t size) {
    return checked(malloc(size));
}

void *bench_calloc_block(size_t size) {
    return checked(calloc(1, size));
}

void *bench_realloc(void *block, size_t size) {
    return checked(realloc(block, size));
}

struct start {
    void (*body)(void *);
    void *argument;
    pthread_barrier_t *barrier;
};

static void *enter(void *opaque) {
    struct start *start = opaque;
    pthread_barrier_wait(start->barrier);
    start->body(start->argument);
    return NULL;
}

void bench_parallel(unsigned threads, void (*body)(void *), void *arguments, size_t argument_size) {
    if (threads == 1) {
        body(arguments);
        return;
    }
    pthread_t ids[BENCH_THREADS_MAX];
    struct start starts[BENCH_THREADS_MAX];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        starts[i] = (struct start){ body, (char *)arguments + i * argument_size, &barrier };
        if (pthread_create(&ids[i], NULL, enter, &starts[i]) != 0) {
            fputs("gh-bench-malloc: no thread\n", stderr);
            exit(3);
        }
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&barrier);
}

int main(int count, char **words) {
    struct bench_work work = { .threads = 1, .percent = 100 };
    if (count > 2)
        work.threads = (unsigned)strtoul(words[2], NULL, 10);
    if (count > 3)
        work.percent = (unsigned)strtoul(words[3], NULL, 10);
    bool sane = count > 1 && work.threads >= 1 && work.threads <= BENCH_THREADS_MAX && work.percent >= 1;
    for (size_t i = 0; sane && i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        if (strcmp(patterns[i].name, words[1]) == 0) {
            patterns[i].run(&work);
            return 0;
        }
    }
    fputs("usage: gh-bench-malloc PATTERN [THREADS [PERCENT]]; patterns:", stderr);
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
        fprintf(stderr, " %s", patterns[i].name);
    fputs("\n", stderr);
    return 2;
}
