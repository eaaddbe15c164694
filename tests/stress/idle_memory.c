// SPDX-License-Identifier: MIT
//
// A program with a GPU frees a big heap of small blocks and goes on with little: what it does not
// use goes back, though its threads' caches hold the last blocks of many regions. It mallocs
// nothing meanwhile; it only calls the GPU.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../demo/gpu.h"
#include "gpuhost.h"

#define BLOCKS 600000u
#define THREADS 3
#define LEFT_BYTES ((size_t)64 << 20) // of more than four times that: the first region, the array of pointers, some more
#define TRIES 600 // of 50 ms; it takes four or five, on a machine that does nothing else

static struct gpu gpu;
static void **blocks;
static atomic_bool done;
static pthread_barrier_t filled;
static pthread_barrier_t seen;

static void knock(void *memory) {
    ze_memory_allocation_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES };
    if (zeMemGetAllocProperties(gpu.context, memory, &properties, NULL) != ZE_RESULT_SUCCESS)
        exit(3);
}

// Each fills its part with blocks from 16 bytes to 1 KiB, frees them, and calls the GPU.
static void *work(void *argument) {
    unsigned part = (unsigned)(uintptr_t)argument;
    for (unsigned i = part; i < BLOCKS; i += THREADS) {
        size_t size = 16 + (i * 2654435761u >> 22);
        blocks[i] = memset(malloc(size), 1, size);
    }
    pthread_barrier_wait(&filled);
    pthread_barrier_wait(&seen);
    for (unsigned i = part; i < BLOCKS; i += THREADS)
        free(blocks[i]);
    while (!atomic_load(&done)) {
        knock(blocks);
        usleep(5000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2 || gpuhost_stats == NULL) {
        fputs("usage: LD_PRELOAD=libgpuhost.so idle_memory KERNELS\n", stderr);
        return 2;
    }
    gpu_open(&gpu, argv[1]);
    blocks = calloc(BLOCKS, sizeof(*blocks));
    pthread_t threads[THREADS];
    pthread_barrier_init(&filled, NULL, THREADS + 1);
    pthread_barrier_init(&seen, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            return 3;
    }
    struct gpuhost_stats stats = { .bytes_mapped = 0 };
    pthread_barrier_wait(&filled);
    knock(blocks);
    if (gpuhost_stats(&stats) != 0)
        return 3;
    size_t most = stats.bytes_imported;
    pthread_barrier_wait(&seen);
    int tries = 0;
    for (; tries < TRIES; tries++) {
        usleep(50000);
        if (gpuhost_stats(&stats) != 0)
            return 3;
        if (stats.bytes_imported < LEFT_BYTES)
            break;
    }
    atomic_store(&done, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("imported: %zu MiB at most, %zu MiB in the end, after %d ms\n", most >> 20,
           (size_t)stats.bytes_imported >> 20, tries * 50);
    free(blocks);
    gpu_close(&gpu);
    return tries == TRIES || most < 4 * LEFT_BYTES;
}
