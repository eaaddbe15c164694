// SPDX-License-Identifier: MIT
//
// Patterns in which one thread frees what another allocated: a server whose work passes from
// thread to thread (after Larson and Krishnan), producers and consumers with bulk frees, and
// many threads that live for a moment.
#include <stdlib.h>
#include <string.h>

#include "bench.h"

// ---- larson: each generation of threads takes over the blocks of the one before ----

#define LARSON_BLOCKS 4000u
#define LARSON_GENERATIONS 40u
#define LARSON_REPLACEMENTS 400000u

struct larson_table {
    void *blocks[LARSON_BLOCKS];
    uint64_t seed;
    uint32_t replacements;
};

static void larson_serve(void *opaque) {
    struct larson_table *table = *(struct larson_table **)opaque;
    for (uint32_t i = 0; i < table->replacements; i++) {
        uint64_t dice = bench_random(&table->seed);
        void **place = &table->blocks[(uint32_t)dice % LARSON_BLOCKS];
        size_t size = 16 + (dice >> 40) % 1000;
        free(*place);
        *place = bench_malloc(size);
        bench_touch(*place, size, (unsigned)i);
    }
}

static void *larson_thread(void *opaque) {
    larson_serve(opaque);
    return NULL;
}

void bench_larson(const struct bench_work *work) {
    struct larson_table *tables[BENCH_THREADS_MAX];
    for (unsigned i = 0; i < work->threads; i++) {
        tables[i] = bench_calloc_block(sizeof(*tables[i]));
        tables[i]->seed = bench_seed(i);
        tables[i]->replacements = LARSON_REPLACEMENTS * work->percent / 100;
    }
    for (unsigned generation = 0; generation < LARSON_GENERATIONS; generation++) {
        pthread_t threads[BENCH_THREADS_MAX];
        struct larson_table *served[BENCH_THREADS_MAX];
        for (unsigned i = 0; i < work->threads; i++) {
            served[i] = tables[(i + generation) % work->threads];
            if (pthread_create(&threads[i], NULL, larson_thread, &served[i]) != 0)
                abort();
        }
        for (unsigned i = 0; i < work->threads; i++)
            pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < work->threads; i++) {
        for (unsigned k = 0; k < LARSON_BLOCKS; k++)
            free(tables[i]->blocks[k]);
        free(tables[i]);
    }
}

// ---- producer: batches of messages, freed all at once by the thread that read them ----

#define BATCH_MESSAGES 400u
#define BATCHES 24000u
#define QUEUE_BATCHES 16u

struct batch {
    void *messages[BATCH_MESSAGES];
};

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct batch *batches[QUEUE_BATCHES];
    unsigned head; // taken so far
    unsigned tail; // put so far
    unsigned total;
};

static struct batch *make_batch(uint64_t *seed) {
    struct batch *batch = bench_malloc(sizeof(*batch));
    for (unsigned i = 0; i < BATCH_MESSAGES; i++) {
        size_t size = i % 32 == 0 ? 1024 + bench_below(seed, 8192) : 24 + bench_below(seed, 400);
        batch->messages[i] = bench_malloc(size);
        bench_touch(batch->messages[i], size, i);
    }
    return batch;
}

static void drop_batch(struct batch *batch) {
    for (unsigned i = 0; i < BATCH_MESSAGES; i++)
        free(batch->messages[i]);
    free(batch);
}

static void produce(struct queue *queue) {
    uint64_t seed = bench_seed(7);
    for (unsigned i = 0; i < queue->total; i++) {
        struct batch *batch = make_batch(&seed);
        pthread_mutex_lock(&queue->mutex);
        while (queue->tail - queue->head == QUEUE_BATCHES)
            pthread_cond_wait(&queue->changed, &queue->mutex);
        queue->batches[queue->tail++ % QUEUE_BATCHES] = batch;
        pthread_cond_signal(&queue->changed);
        pthread_mutex_unlock(&queue->mutex);
    }
}

static void consume(struct queue *queue) {
    for (unsigned i = 0; i < queue->total; i++) {
        pthread_mutex_lock(&queue->mutex);
        while (queue->tail == queue->head)
            pthread_cond_wait(&queue->changed, &queue->mutex);
        struct batch *batch = queue->batches[queue->head++ % QUEUE_BATCHES];
        pthread_cond_signal(&queue->changed);
        pthread_mutex_unlock(&queue->mutex);
        drop_batch(batch);
    }
}

struct side {
    struct queue *queue;
    bool produces;
};

static void run_side(void *opaque) {
    struct side *side = opaque;
    (side->produces ? produce : consume)(side->queue);
}

// One thread: it fills the queue and drains it, in turn.
static void produce_alone(unsigned batches) {
    uint64_t seed = bench_seed(7);
    struct batch *queue[QUEUE_BATCHES];
    for (unsigned i = 0; i < batches; i += QUEUE_BATCHES) {
        for (unsigned k = 0; k < QUEUE_BATCHES; k++)
            queue[k] = make_batch(&seed);
        for (unsigned k = 0; k < QUEUE_BATCHES; k++)
            drop_batch(queue[k]);
    }
}

void bench_producer(const struct bench_work *work) {
    unsigned batches = BATCHES * work->percent / 100;
    if (work->threads == 1) {
        produce_alone(batches);
        return;
    }
    unsigned pairs = work->threads / 2;
    struct queue *queues = bench_calloc_block(pairs * sizeof(*queues));
    struct side sides[BENCH_THREADS_MAX];
    for (unsigned i = 0; i < pairs; i++) {
        pthread_mutex_init(&queues[i].mutex, NULL);
        pthread_cond_init(&queues[i].changed, NULL);
        queues[i].total = batches;
        sides[2 * i] = (struct side){ &queues[i], true };
        sides[2 * i + 1] = (struct side){ &queues[i], false };
    }
    bench_parallel(2 * pairs, run_side, sides, sizeof(sides[0]));
    free(queues);
}

// ---- short_threads: a thread for each request, a part of whose blocks outlives it ----

#define SHORT_LIVES 24000u
#define SHORT_BLOCKS 200u
#define SHORT_LEFT 20u

struct short_life {
    uint64_t seed;
    void *left[SHORT_LEFT];
};

static void *live_shortly(void *opaque) {
    struct short_life *life = opaque;
    void *blocks[SHORT_BLOCKS];
    for (unsigned i = 0; i < SHORT_BLOCKS; i++) {
        size_t size = bench_log_size(&life->seed, 4, 11);
        blocks[i] = bench_malloc(size);
        bench_touch(blocks[i], size, i);
    }
    for (unsigned i = SHORT_LEFT; i < SHORT_BLOCKS; i++)
        free(blocks[i]);
    memcpy(life->left, blocks, sizeof(life->left));
    return NULL;
}

void bench_short_threads(const struct bench_work *work) {
    unsigned rounds = SHORT_LIVES * work->percent / 100 / work->threads;
    struct short_life lives[BENCH_THREADS_MAX];
    pthread_t threads[BENCH_THREADS_MAX];
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < work->threads; i++) {
            lives[i].seed = bench_seed(round * work->threads + i);
            if (pthread_create(&threads[i], NULL, live_shortly, &lives[i]) != 0)
                abort();
        }
        for (unsigned i = 0; i < work->threads; i++) {
            pthread_join(threads[i], NULL);
            for (unsigned k = 0; k < SHORT_LEFT; k++)
                free(lives[i].left[k]);
        }
    }
}
