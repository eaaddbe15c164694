// SPDX-License-Identifier: MIT
//
// Threads allocate, free and purge as fast as they can while the main thread forks; each child
// uses the heap in many sizes and ends. A lock that the child inherits taken would hang it: the
// child's own alarm ends it then, and the test fails. A busy machine may not get to all forks in the
// time allowed; at least FORKS_MIN must have been made. Usage: churn FORKS SECONDS
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define SLOTS 8
#define FORKS_MIN 100
#define CHILD_SECONDS 60 // a child that hangs hangs for ever; a busy machine may keep one waiting

static _Atomic int stop;

static void *churn(void *argument) {
    unsigned seed = (unsigned)(size_t)argument;
    char *blocks[SLOTS] = { NULL };
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        unsigned slot = (unsigned)rand_r(&seed) % SLOTS;
        size_t size = (size_t)4096 << ((unsigned)rand_r(&seed) % 12); // 4 KiB to 8 MiB
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
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) != 0)
            return 2;
    int failed = 0;
    int done = 0;
    for (int i = 0; i < forks && failed == 0 && (i < FORKS_MIN || time(NULL) < end); i++) {
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
        done++;
    }
    atomic_store(&stop, 1);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d of %d forks, %d failed\n", done, forks, failed);
    return failed != 0;
}
