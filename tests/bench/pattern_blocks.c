// SPDX-License-Identifier: MIT
//
// Patterns in which each thread works on its own blocks: small objects with mixed lifetimes, big
// arrays, growth by realloc, calloc. Threads meet only inside the allocator.
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct task {
    uint64_t seed;
    unsigned percent;
};

static void run_tasks(const struct bench_work *work, void (*body)(void *)) {
    struct task tasks[BENCH_THREADS_MAX];
    for (unsigned i = 0; i < work->threads; i++)
        tasks[i] = (struct task){ bench_seed(i + 100), work->percent };
    bench_parallel(work->threads, body, tasks, sizeof(tasks[0]));
}

// ---- churn: most objects die at once, some after a while, a few live long ----

#define CHURN_STEPS 1300000u
#define CHURN_BURST 8u
#define CHURN_MEDIUM 8192u
#define CHURN_LONG 150000u

static void *small_object(uint64_t *seed) {
    size_t size = bench_log_size(seed, 4, 9);
    void *object = bench_malloc(size);
    bench_touch(object, size, (unsigned)size);
    return object;
}

static void churn(void *opaque) {
    struct task *task = opaque;
    void **medium = bench_calloc_block(CHURN_MEDIUM * sizeof(*medium));
    void **old = bench_calloc_block(CHURN_LONG * sizeof(*old));
    uint32_t steps = (uint32_t)((uint64_t)CHURN_STEPS * task->percent / 100);
    for (uint32_t step = 0; step < steps; step++) {
        void *burst[CHURN_BURST];
        for (unsigned i = 0; i < CHURN_BURST; i++)
            burst[i] = small_object(&task->seed);
        for (unsigned i = CHURN_BURST; i-- > 0;)
            free(burst[i]);
        void **place = &medium[step % CHURN_MEDIUM];
        free(*place);
        *place = small_object(&task->seed);
        if (step % 4 == 0) {
            place = &old[bench_below(&task->seed, CHURN_LONG)];
            free(*place);
            *place = small_object(&task->seed);
        }
    }
    for (unsigned i = 0; i < CHURN_MEDIUM; i++)
        free(medium[i]);
    for (unsigned i = 0; i < CHURN_LONG; i++)
        free(old[i]);
    free(medium);
    free(old);
}

void bench_churn(const struct bench_work *work) {
    run_tasks(work, churn);
}

// ---- arrays: 64 KiB to 64 MiB, written through once, as numerical programs make them ----

#define ARRAYS_LIVE 12u
#define ARRAYS_STEPS 600u

static void arrays(void *opaque) {
    struct task *task = opaque;
    void *live[ARRAYS_LIVE] = { NULL };
    unsigned steps = ARRAYS_STEPS * task->percent / 100;
    for (unsigned step = 0; step < steps; step++) {
        unsigned place = bench_below(&task->seed, ARRAYS_LIVE);
        size_t size = bench_log_size(&task->seed, 16, 25);
        if (step % 64 == 63)
            size = (size_t)64 << 20;
        free(live[place]);
        live[place] = bench_malloc(size);
        bench_touch(live[place], size, step);
    }
    for (unsigned i = 0; i < ARRAYS_LIVE; i++)
        free(live[i]);
}

void bench_arrays(const struct bench_work *work) {
    run_tasks(work, arrays);
}

// ---- regrow: vectors that grow by half, text that grows line by line ----

#define REGROW_ROUNDS 24u
#define REGROW_VECTORS 16u
#define REGROW_TEXTS 64u
#define REGROW_TEXT_MAX 60000u

static void grow_vectors(struct task *task) {
    char *vectors[REGROW_VECTORS] = { NULL };
    size_t sizes[REGROW_VECTORS];
    size_t limits[REGROW_VECTORS];
    for (unsigned i = 0; i < REGROW_VECTORS; i++) {
        sizes[i] = 32;
        limits[i] = bench_log_size(&task->seed, 14, 23);
        vectors[i] = bench_malloc(sizes[i]);
    }
    bool growing = true;
    while (growing) {
        growing = false;
        for (unsigned i = 0; i < REGROW_VECTORS; i++) {
            if (sizes[i] >= limits[i])
                continue;
            size_t larger = sizes[i] + sizes[i] / 2;
            vectors[i] = bench_realloc(vectors[i], larger);
            bench_touch(vectors[i] + sizes[i], larger - sizes[i], i);
            sizes[i] = larger;
            growing = true;
        }
    }
    for (unsigned i = 0; i < REGROW_VECTORS; i++) {
        vectors[i] = bench_realloc(vectors[i], sizes[i] - sizes[i] / 4); // shrink to fit
        free(vectors[i]);
    }
}

static void grow_texts(struct task *task) {
    char *texts[REGROW_TEXTS] = { NULL };
    size_t lengths[REGROW_TEXTS] = { 0 };
    for (unsigned done = 0; done < REGROW_TEXTS;) {
        unsigned i = bench_below(&task->seed, REGROW_TEXTS);
        if (lengths[i] >= REGROW_TEXT_MAX)
            i = done; // look for one that is not finished
        while (i < REGROW_TEXTS && lengths[i] >= REGROW_TEXT_MAX)
            done = ++i;
        if (i == REGROW_TEXTS)
            break;
        size_t line = 16 + bench_below(&task->seed, 240);
        texts[i] = bench_realloc(texts[i], lengths[i] + line);
        memset(texts[i] + lengths[i], 'x', line);
        lengths[i] += line;
    }
    for (unsigned i = 0; i < REGROW_TEXTS; i++)
        free(texts[i]);
}

static void regrow(void *opaque) {
    struct task *task = opaque;
    unsigned rounds = (REGROW_ROUNDS * task->percent + 99) / 100;
    for (unsigned round = 0; round < rounds; round++) {
        grow_vectors(task);
        grow_texts(task);
    }
}

void bench_regrow(const struct bench_work *work) {
    run_tasks(work, regrow);
}

// ---- calloc: cleared blocks, small and large, of which only a part is written ----

#define CALLOC_STEPS 500000u
#define CALLOC_LIVE 512u

static void clear_blocks(void *opaque) {
    struct task *task = opaque;
    void *live[CALLOC_LIVE] = { NULL };
    uint32_t steps = (uint32_t)((uint64_t)CALLOC_STEPS * task->percent / 100);
    for (uint32_t step = 0; step < steps; step++) {
        size_t size = bench_log_size(&task->seed, 6, step % 16 == 0 ? 20 : 13);
        void **place = &live[bench_below(&task->seed, CALLOC_LIVE)];
        free(*place);
        unsigned char *block = bench_calloc_block(size);
        if (block[size / 2] != 0 || block[size - 1] != 0)
            abort(); // not cleared
        bench_touch(block, size / 4 + 1, step);
        *place = block;
    }
    for (unsigned i = 0; i < CALLOC_LIVE; i++)
        free(live[i]);
}

void bench_calloc(const struct bench_work *work) {
    run_tasks(work, clear_blocks);
}
