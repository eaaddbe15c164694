// SPDX-License-Identifier: MIT
//
// Many short threads, threads with the smallest stack, and detached threads that still allocate
// while the process exits. Memory of dead threads must come back: a bound on the resident set.
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 10000
#define AT_ONCE 8

static size_t resident_kib(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*s %zu", &pages) != 1)
        abort();
    fclose(file);
    return pages * 4;
}

static void *short_life(void *argument) {
    unsigned seed = (unsigned)(size_t)argument;
    void *blocks[16];
    for (int i = 0; i < 16; i++) {
        size_t size = (size_t)(rand_r(&seed) % 20000) + 1;
        blocks[i] = memset(malloc(size), 1, size);
    }
    for (int i = 0; i < 16; i++)
        free(blocks[i]);
    return NULL;
}

static void run_short(size_t first, size_t count) {
    pthread_t threads[AT_ONCE];
    for (size_t i = first; i < first + count; i += AT_ONCE) {
        for (size_t j = 0; j < AT_ONCE; j++)
            if (pthread_create(&threads[j], NULL, short_life, (void *)(i + j)) != 0)
                abort();
        for (size_t j = 0; j < AT_ONCE; j++)
            pthread_join(threads[j], NULL);
    }
}

static char ran; // its address is the answer

static void *first_frames(void *argument) {
    void *block = malloc(100000);
    char *text = NULL;
    int length = asprintf(&text, "%p", block);
    free(text);
    free(block);
    (void)argument;
    return length > 0 ? &ran : NULL;
}

static void print_smallest_stack(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *answer = NULL;
    pthread_attr_init(&attributes);
    // glibc refuses less; part of it goes to thread-local data, of which the library has some.
    int error = pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    if (error == 0)
        error = pthread_create(&thread, &attributes, first_frames, NULL);
    if (error == 0)
        pthread_join(thread, &answer);
    printf("thread with %d bytes of stack: %s\n", PTHREAD_STACK_MIN, error != 0 ? strerror(error) : answer == &ran ? "ran" : "?");
    pthread_attr_destroy(&attributes);
}

static _Atomic int running;

static void *for_ever(void *argument) {
    atomic_fetch_add(&running, 1);
    for (unsigned seed = 1;; seed++)
        short_life(argument == NULL ? (void *)(size_t)seed : argument);
    return NULL;
}

int main(void) {
    run_short(0, 2000);
    size_t before = resident_kib();
    run_short(2000, THREADS - 2000);
    size_t after = resident_kib();
    printf("%d short threads: %s\n", THREADS,
           after < before + 16384 ? "memory comes back" : "MEMORY GROWS WITH EACH THREAD");
    print_smallest_stack();
    for (int i = 0; i < AT_ONCE; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, for_ever, NULL);
        pthread_detach(thread);
    }
    while (atomic_load(&running) < AT_ONCE)
        usleep(1000);
    printf("exit with %d detached threads allocating\n", AT_ONCE);
    return 0;
}
