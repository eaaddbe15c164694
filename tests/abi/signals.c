// SPDX-License-Identifier: MIT
//
// A profiler's life: SIGPROF at 5 kHz, its handler takes a backtrace, while threads allocate.
// glibc survives this, so it must be survived. backtrace() walks through our frames, so this also
// tells that they can be unwound.
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define THREADS 4
#define TICKS 3000u // under a second when the machine has time; signals coalesce when it has not

static _Atomic unsigned long ticks;
static _Atomic int stop;

static void on_tick(int signal) {
    void *frames[32];
    (void)signal;
    atomic_fetch_add(&ticks, backtrace(frames, 32) > 0);
}

static void *churn(void *argument) {
    unsigned seed = (unsigned)(size_t)argument;
    void *blocks[64] = { NULL };
    while (!atomic_load(&stop)) {
        unsigned slot = (unsigned)rand_r(&seed) % 64;
        size_t size = (size_t)1 << ((unsigned)rand_r(&seed) % 19);
        switch (rand_r(&seed) % 4) {
        case 0:
            free(blocks[slot]);
            blocks[slot] = malloc(size);
            break;
        case 1:
            blocks[slot] = realloc(blocks[slot], size);
            break;
        case 2:
            free(blocks[slot]);
            blocks[slot] = aligned_alloc(64, size);
            break;
        default:
            free(blocks[slot]);
            blocks[slot] = calloc(1, size);
        }
        if (blocks[slot] == NULL)
            abort();
    }
    for (int i = 0; i < 64; i++)
        free(blocks[i]);
    return NULL;
}

int main(void) {
    void *frame;
    backtrace(&frame, 1); // loads libgcc here, not in the handler
    struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
    sigaction(SIGPROF, &action, NULL);
    // One timer of the process counts CPU time at the kernel's tick at best; threads that send
    // the signal to themselves are not needed: a real-time timer is fine grained.
    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF };
    struct itimerspec period = { { 0, 200000 }, { 0, 200000 } };
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &period, NULL) != 0)
        return 2;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    while (atomic_load(&ticks) < TICKS) { // this thread gets most of the signals, so it allocates too
        for (int i = 0; i < 1000; i++)
            free(malloc((size_t)i * 40));
    }
    atomic_store(&stop, 1);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    timer_delete(timer);
    printf("survived\n");
    return 0;
}
