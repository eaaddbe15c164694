// SPDX-License-Identifier: MIT
//
// Every way to make a process, from a program whose threads use the heap: fork, vfork,
// posix_spawn, clone with and without shared memory, a fork in a fork, in a thread, in a thread's
// signal handler, _Fork. With an argument the program has a GPU open all the while, and what a
// kernel does to the parent's blocks is looked at after each. Usage: kinds [KERNELS]
#include "gpu_use.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 200 // a child that hangs hangs for ever; a busy machine may keep one waiting

static _Atomic int stop;
static int with_gpu;
static int failed;
static char *from_parent;

static void *churn(void *argument) {
    while (!atomic_load(&stop))
        for (size_t size = 16; size < 2000000; size *= 3)
            free(malloc(size));
    return argument;
}

static int use_heap(void) {
    for (size_t size = 1; size < (size_t)64 << 20; size = size * 2 + 3) {
        char *block = malloc(size);
        if (block == NULL)
            return 10;
        block[size - 1] = 1;
        block = realloc(block, size * 2);
        free(block);
    }
    if (strcmp(from_parent, "from the parent") != 0)
        return 11;
    free(from_parent);
    return 0;
}

static void report(const char *what, pid_t child, int expected) {
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        status = -2;
    int right = !with_gpu || gpu_use_is_right();
    printf("%s: status %d%s\n", what, status, !with_gpu ? "" : right ? ", the GPU is right" : ", the GPU is WRONG");
    failed += status != expected || !right;
}

static void try_fork(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        _exit(use_heap());
    }
    report("fork", child, 0);
}

static void try_double_fork(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        free(malloc(100000));
        pid_t grandchild = fork();
        if (grandchild == 0) {
            alarm(CHILD_SECONDS);
            _exit(use_heap());
        }
        int status = -1;
        waitpid(grandchild, &status, 0);
        int own = use_heap();
        _exit(status != 0 ? 1 : own);
    }
    report("fork in a fork", child, 0);
}

static void *thread_in_child(void *argument) {
    *(int *)argument = use_heap();
    return NULL;
}

static void try_threads_in_child(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        int answer = 1;
        pthread_t thread;
        pthread_create(&thread, NULL, thread_in_child, &answer);
        pthread_join(thread, NULL);
        _exit(answer);
    }
    report("threads in a fork child", child, 0);
}

static void try_vfork(void) {
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    report("vfork and exec", child, 0);
    child = vfork();
    if (child == 0)
        _exit(0);
    report("vfork and _exit", child, 0);
}

static void try_spawn(void) {
    char *arguments[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "x=$(echo 1); exit $((x + 6))" }, NULL };
    pid_t child = -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    int error = posix_spawn(&child, "/bin/sh", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    report(error == 0 ? "posix_spawn" : "posix_spawn FAILED", child, 7 << 8);
}

// Without fork's handlers: no lock is reset, so nobody else may be inside the heap just then. A GPU
// brings a thread of its own: there such a child may only exec, as with any allocator.
static int clone_child(void *unused) {
    (void)unused;
    if (with_gpu)
        execl("/bin/true", "true", (char *)NULL);
    return use_heap();
}

static void try_without_handlers(void) {
    size_t size = (size_t)256 << 10;
    char *stack = malloc(size);
    report("clone without CLONE_VM", clone(clone_child, stack + size, SIGCHLD, NULL), 0);
    free(stack);
    pid_t child = _Fork();
    if (child == 0)
        _exit(clone_child(NULL));
    report("_Fork", child, 0);
}

static void *given;
static void *taken;

// In the parent's memory: frees what the parent allocated, and leaves it something to free.
static int clone_in_memory(void *unused) {
    (void)unused;
    free(given);
    taken = memset(malloc(300000), 5, 300000);
    for (size_t size = 1; size < 3000000; size = size * 2 + 3)
        free(malloc(size));
    return 3;
}

static void try_clone_in_memory(int flags, const char *what) {
    size_t size = (size_t)256 << 10;
    char *stack = malloc(size);
    given = malloc(300000);
    taken = NULL;
    report(what, clone(clone_in_memory, stack + size, CLONE_VM | SIGCHLD | flags, NULL), 3 << 8);
    failed += taken == NULL;
    printf("the child's block: %s\n", taken != NULL && ((char *)taken)[299999] == 5 ? "there" : "MISSING");
    free(taken);
    free(stack);
}

static _Atomic pid_t made_by_handler;

static void on_signal(int signal) {
    (void)signal;
    pid_t child = fork();
    if (child == 0) {
        alarm(CHILD_SECONDS);
        _exit(use_heap());
    }
    atomic_store(&made_by_handler, child);
}

// Not inside the heap when the signal comes: that would be the program's own mistake.
static void *wait_for_child(void *argument) {
    free(malloc(50000));
    while (atomic_load(&made_by_handler) == 0)
        usleep(100);
    return argument;
}

static void try_signal_handler(void) {
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGUSR1, &action, NULL);
    pthread_t thread;
    atomic_store(&made_by_handler, 0);
    pthread_create(&thread, NULL, wait_for_child, NULL);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    report("fork in a thread's signal handler", atomic_load(&made_by_handler), 0);
}

static void *fork_in_thread(void *argument) {
    (void)argument;
    try_fork();
    return NULL;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    with_gpu = argc > 1;
    if (with_gpu)
        gpu_use_open(argv[1]);
    from_parent = strdup("from the parent");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < (with_gpu ? 5 : 20); i++) {
        try_fork();
        try_vfork();
        try_spawn();
        try_clone_in_memory(CLONE_VFORK, "clone with CLONE_VM, parent suspended");
        try_clone_in_memory(0, "clone with CLONE_VM");
        try_signal_handler();
    }
    try_double_fork();
    try_threads_in_child();
    pthread_t thread;
    pthread_create(&thread, NULL, fork_in_thread, NULL);
    pthread_join(thread, NULL);
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    try_without_handlers();
    printf("the parent's block: %s\n", from_parent);
    if (with_gpu)
        gpu_use_close();
    return failed != 0;
}
