// SPDX-License-Identifier: MIT
//
// Sizes and lifetimes as real programs have them: mix_table.h holds how often a block of each
// size lived for how many further allocations, recorded with mix_record.c. Each thread draws from
// it and frees each block when its time has come. A block is read before it is freed, since the
// list of what is due runs through the blocks themselves.
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct mix_entry {
    uint32_t size;     // bytes, the middle of what it stands for
    uint32_t lifetime; // in allocations, likewise; MIX_LONG: longer than was watched
    uint32_t weight;
};

#define MIX_LONG UINT32_MAX
#include "mix_table.h"

#define MIX_ENTRIES (sizeof(mix_table) / sizeof(mix_table[0]))
#define STEPS 8000000u
#define DRAWS 65536u   // the draws are made before the work begins, and used again and again
#define WHEEL 262144u  // longest lifetime; a power of two
#define LONG_LIVED 60000u

struct link {
    struct link *next;
};

struct mix_thread {
    uint64_t seed;
    uint32_t steps;
    const struct mix_entry **draws;
};

static void spin(void *opaque) {
    struct mix_thread *thread = opaque;
    struct link **wheel = bench_calloc_block(WHEEL * sizeof(struct link *));
    void **old = bench_calloc_block(LONG_LIVED * sizeof(void *));
    for (uint32_t step = 0; step < thread->steps; step++) {
        struct link *due = wheel[step % WHEEL];
        wheel[step % WHEEL] = NULL;
        while (due != NULL) {
            struct link *next = due->next;
            free(due);
            due = next;
        }
        const struct mix_entry *draw = thread->draws[(step * 7919u + (step >> 16)) % DRAWS];
        struct link *block = bench_malloc(draw->size);
        if (draw->size > 64)
            bench_touch(block, draw->size, step);
        if (draw->lifetime == MIX_LONG) {
            void **place = &old[bench_below(&thread->seed, LONG_LIVED)];
            free(*place);
            *place = block;
        } else {
            struct link **list = &wheel[(step + draw->lifetime) % WHEEL];
            block->next = *list;
            *list = block;
        }
    }
    for (uint32_t i = 0; i < WHEEL; i++) {
        while (wheel[i] != NULL) {
            struct link *next = wheel[i]->next;
            free(wheel[i]);
            wheel[i] = next;
        }
    }
    for (uint32_t i = 0; i < LONG_LIVED; i++)
        free(old[i]);
    free(wheel);
    free(old);
}

static const struct mix_entry **draw_all(void) {
    const struct mix_entry **draws = bench_malloc(DRAWS * sizeof(*draws));
    uint64_t sum = 0;
    for (size_t i = 0; i < MIX_ENTRIES; i++)
        sum += mix_table[i].weight;
    uint64_t seed = bench_seed(500);
    for (unsigned k = 0; k < DRAWS; k++) {
        uint64_t dice = bench_random(&seed) % sum;
        size_t i = 0;
        while (dice >= mix_table[i].weight)
            dice -= mix_table[i++].weight;
        draws[k] = &mix_table[i];
    }
    return draws;
}

void bench_mix(const struct bench_work *work) {
    const struct mix_entry **draws = draw_all();
    struct mix_thread threads[BENCH_THREADS_MAX];
    for (unsigned i = 0; i < work->threads; i++)
        threads[i] = (struct mix_thread){ bench_seed(i), (uint32_t)((uint64_t)STEPS * work->percent / 100), draws };
    bench_parallel(work->threads, spin, threads, sizeof(threads[0]));
    free(draws);
}
