// SPDX-License-Identifier: MIT
//
// GHSIM_NOISY: what real drivers do inside an import and what hurts an allocator that calls them
// under a lock of its own: a large malloc, a thread that mallocs, stdio, and a lock that another
// thread holds while it mallocs. Runs on the importing thread, without sim_memory_lock.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_internal.h"

static pthread_mutex_t noise_lock = PTHREAD_MUTEX_INITIALIZER;

static void churn(void)
{
    void *blocks[32];
    for (unsigned i = 0; i < 32; i++) {
        blocks[i] = malloc((size_t)17 << (i % 16));
        if (blocks[i]) memset(blocks[i], 1, 16);
    }
    for (unsigned i = 0; i < 32; i++) free(blocks[i]);
}

static void *malloc_in_thread(void *unused)
{
    churn();
    return unused;
}

static void *malloc_under_lock(void *barrier)
{
    pthread_mutex_lock(&noise_lock);
    pthread_barrier_wait(barrier);
    churn();
    pthread_mutex_unlock(&noise_lock);
    return NULL;
}

void sim_noise(void)
{
    pthread_t thread;
    void *big = malloc((size_t)1 << 20);
    if (big) memset(big, 1, (size_t)1 << 20);

    if (pthread_create(&thread, NULL, malloc_in_thread, NULL) == 0) pthread_join(thread, NULL);

    FILE *file = fopen("/dev/null", "ae");
    if (file) {
        fprintf(file, "import, %p\n", big);
        fclose(file);
    }

    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, malloc_under_lock, &barrier) == 0) {
        pthread_barrier_wait(&barrier); // the thread has the lock now
        pthread_mutex_lock(&noise_lock);
        pthread_mutex_unlock(&noise_lock);
        pthread_join(thread, NULL);
    }
    pthread_barrier_destroy(&barrier);
    free(big);
}
