// SPDX-License-Identifier: MIT
//
// Each allocation function at the moments when allocators go wrong: in a first constructor, as a
// thread's first call, in a fork child, in the destructors of thread data, in exit handlers.
#include <pthread.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "every.h"

static int constructor_failed = -1;

__attribute__((constructor(101))) static void construct(void) {
    constructor_failed = every_all("constructor");
}

__attribute__((destructor(101))) static void destruct(void) {
    printf("destructor: %d failed\n", every_all("destructor"));
    fflush(stdout);
}

static void *kept_for_exit;

static void at_exit(void) {
    free(kept_for_exit);
    printf("atexit handler: %d failed\n", every_all("atexit"));
}

static void *first_call(void *argument) {
    return (void *)(intptr_t)every[(uintptr_t)argument].call();
}

// As a thread's first call, and its only one.
static void print_first_calls(void) {
    for (uintptr_t i = 0; i < EVERY_COUNT; i++) {
        pthread_t thread;
        void *answer = NULL;
        pthread_create(&thread, NULL, first_call, (void *)i);
        pthread_join(thread, &answer);
        printf("%s as a thread's first call: %s\n", every[i].name, answer != NULL ? "right" : "WRONG");
    }
}

static void *hand_over(void *argument) {
    (void)argument;
    return memset(malloc(5000), 3, 5000);
}

static void *only_free(void *block) {
    free(block);
    return NULL;
}

// A block from a thread that is gone, freed by a thread that never allocated.
static void print_free_as_first(void) {
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        void *block = NULL;
        pthread_create(&thread, NULL, hand_over, NULL);
        pthread_join(thread, &block);
        pthread_create(&thread, NULL, only_free, block);
        pthread_join(thread, NULL);
    }
    printf("free as a thread's first call: done\n");
}

static pthread_key_t key;
static int passes;
static int pass_failures;

// Comes back until glibc gives up (PTHREAD_DESTRUCTOR_ITERATIONS), after jemalloc's own cleanup.
static void destroy_key(void *block) {
    free(block);
    passes++;
    pass_failures += every_all("thread data destructor");
    pthread_setspecific(key, malloc(777));
}

static void *use_key(void *argument) {
    (void)argument;
    pthread_setspecific(key, malloc(777));
    return NULL;
}

static void print_key_destructor(void) {
    pthread_t thread;
    pthread_key_create(&key, destroy_key);
    for (int i = 0; i < 20; i++) {
        pthread_create(&thread, NULL, use_key, NULL);
        pthread_join(thread, NULL);
    }
    pthread_key_delete(key);
    printf("thread data destructor: %d passes, %d failed\n", passes, pass_failures);
}

static void print_fork_children(void) {
    for (size_t i = 0; i < EVERY_COUNT; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            _exit(every[i].call() ? 0 : 1);
        int status = -1;
        waitpid(child, &status, 0);
        printf("%s in a fork child: status %d\n", every[i].name, status);
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        print_first_calls(); // threads in a child
        fflush(stdout);
        _exit(every_all("fork child"));
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf("all in one fork child: status %d\n", status);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    atexit(at_exit);
    kept_for_exit = malloc(12345);
    printf("constructor of priority 101: %d failed\n", constructor_failed);
    printf("main: %d failed\n", every_all("main"));
    print_first_calls();
    print_free_as_first();
    print_key_destructor();
    print_fork_children();
    return 0;
}
