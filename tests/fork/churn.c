// SPDX-License-Identifier: MIT
//
// Threads allocate, free and purge as fast as they can while the main thread forks; each child
// uses the heap in many sizes and ends. A lock that the child inherits taken would hang it: the
// child's own alarm ends it then, and the test fails. A busy machine may not get to all forks in the
// time allowed; at least FORKS_MIN must have been made. With KERNELS the program has a GPU open: the
// threads' regions are imported and released all the while, and a kernel changes blocks in place
// after each fork. Usage: churn FORKS SECONDS [KERNELS]
#include "gpu_use.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define THREADS_GPU 3 // each of their regions is imported, and its pages are looked at
#define SLOTS 8
#define FORKS_MIN 100
#define FORKS_MIN_GPU 20
#define CHILD_SECONDS 200 // a child that hangs hangs for ever; a busy machine may keep one waiting

static _Atomic int stop;
static unsigned sizes = 12;

static void *churn(void *argument) {
    unsigned seed = (unsigned)(size_t)argument;
    char *blocks[SLOTS] = { NULL };
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        unsigned slot = (unsigned)rand_r(&seed) % SLOTS;
        size_t size = (size_t)4096 << ((unsigned)rand_r(&seed) % sizes); // 4 KiB to 8 MiB, with a GPU to 512 KiB
        free(blocks[slot]);
        blocks[slot] = malloc(size);
        if (blocks[slot] == NULL)
            abort();
        blocks[slot][0] = 1;
        blocks[slot][size - 1] = 1;
    }
    for (int i = 0; i < SLOTS; i++)
        free(blocks[i]);
    return NULL;
}

static int use_heap(void) {
    char *blocks[100];
    for (size_t i = 0; i < 100; i++) {
        size_t size = i < 90 ? i * i * 7 + 1 : i * 20000;
        blocks[i] = malloc(size);
        if (blocks[i] == NULL)
            return 0;
        blocks[i][0] = 1;
        blocks[i][size - 1] = 1;
    }
    for (size_t i = 0; i < 100; i++)
        free(blocks[i]);
    return 1;
}

int main(int argc, char **argv) {
    int forks = argc > 1 ? atoi(argv[1]) : 2000;
    time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 600);
    pthread_t threads[THREADS];
    if (argc > 3)
        gpu_use_open(argv[3]);
    sizes = argc > 3 ? 8 : sizes;
    size_t count = argc > 3 ? THREADS_GPU : THREADS;
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) != 0)
            return 2;
    int least = argc > 3 ? FORKS_MIN_GPU : FORKS_MIN;
    int failed = 0;
    int done = 0;
    for (int i = 0; i < forks && failed == 0 && (i < least || time(NULL) < end); i++) {
        pid_t child = fork();
        if (child < 0)
            return 3;
        if (child == 0) {
            alarm(CHILD_SECONDS);
            _exit(use_heap() ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status != 0) {
            printf("fork %d: the child ended with status %#x%s\n", i, (unsigned)status,
                   WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? " (it hung)" : "");
            failed++;
        }
        if (argc > 3 && !gpu_use_is_right()) {
            printf("fork %d: a kernel's work is not in the parent's blocks\n", i);
            failed++;
        }
        done++;
    }
    atomic_store(&stop, 1);
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    if (argc > 3)
        gpu_use_close();
    printf("%d of %d forks, %d failed\n", done, forks, failed);
    return failed != 0;
}
