// SPDX-License-Identifier: MIT
//
// Every way to make a process, from a program whose threads use the heap: fork, vfork,
// posix_spawn, clone without shared memory, a fork in a fork, a fork in a thread.
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

static _Atomic int stop;
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

static void report(const char *what, pid_t child) {
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child)
        status = -2;
    printf("%s: status %d\n", what, status);
}

static void try_fork(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(use_heap());
    }
    report("fork", child);
}

static void try_double_fork(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        free(malloc(100000));
        pid_t grandchild = fork();
        if (grandchild == 0) {
            alarm(20);
            _exit(use_heap());
        }
        int status = -1;
        waitpid(grandchild, &status, 0);
        int own = use_heap();
        _exit(status != 0 ? 1 : own);
    }
    report("fork in a fork", child);
}

static void *thread_in_child(void *argument) {
    *(int *)argument = use_heap();
    return NULL;
}

static void try_threads_in_child(void) {
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        int answer = 1;
        pthread_t thread;
        pthread_create(&thread, NULL, thread_in_child, &answer);
        pthread_join(thread, NULL);
        _exit(answer);
    }
    report("threads in a fork child", child);
}

static void try_vfork(void) {
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    report("vfork and exec", child);
    child = vfork();
    if (child == 0)
        _exit(0);
    report("vfork and _exit", child);
}

static void try_spawn(void) {
    char *arguments[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "x=$(echo 1); exit $((x + 6))" }, NULL };
    pid_t child = -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
    int error = posix_spawn(&child, "/bin/sh", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    report(error == 0 ? "posix_spawn" : "posix_spawn FAILED", child);
}

static int clone_child(void *unused) {
    (void)unused;
    return use_heap();
}

// Without fork's handlers: no lock is reset, so nobody else may be inside the heap just then.
static void try_clone(void) {
    size_t size = (size_t)256 << 10;
    char *stack = malloc(size);
    report("clone without CLONE_VM", clone(clone_child, stack + size, SIGCHLD, NULL));
    free(stack);
}

static void *fork_in_thread(void *argument) {
    (void)argument;
    try_fork();
    return NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    from_parent = strdup("from the parent");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < 20; i++) {
        try_fork();
        try_vfork();
        try_spawn();
    }
    try_double_fork();
    try_threads_in_child();
    pthread_t thread;
    pthread_create(&thread, NULL, fork_in_thread, NULL);
    pthread_join(thread, NULL);
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    try_clone();
    printf("the parent's block: %s\n", from_parent);
    return 0;
}
