// SPDX-License-Identifier: MIT
//
// Every way to end a process, after the heap was used by several threads: the status must be the
// one that the program asked for.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *use_heap(void *argument) {
    for (size_t size = 1; size < 1000000; size = size * 2 + 1)
        free(memset(malloc(size), 1, size));
    return argument;
}

static void free_and_allocate(void) {
    free(malloc(100000));
}

static void end_by_return(void) { exit(21); }
static void end_by_underscore(void) { _exit(22); }
static void end_by_quick_exit(void) {
    at_quick_exit(free_and_allocate);
    quick_exit(23);
}
static void end_by_abort(void) { abort(); }
static void end_by_kill(void) { raise(SIGKILL); }
static void end_by_exec(void) { execl("/bin/sh", "sh", "-c", "exit 24", (char *)NULL); }
static void *exit_from_thread(void *argument) {
    (void)argument;
    exit(25);
}
static void end_from_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, exit_from_thread, NULL);
    pthread_join(thread, NULL);
}
static void end_main_thread(void) { pthread_exit(NULL); }

int main(void) {
    static const struct { const char *name; void (*end)(void); } ends[] = {
        { "exit", end_by_return },       { "_exit", end_by_underscore }, { "quick_exit", end_by_quick_exit },
        { "abort", end_by_abort },       { "SIGKILL", end_by_kill },     { "exec", end_by_exec },
        { "exit in a thread", end_from_thread }, { "pthread_exit of main", end_main_thread },
    };
    struct rlimit no_core = { 0, 0 };
    setrlimit(RLIMIT_CORE, &no_core);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t threads[4];
            for (int t = 0; t < 4; t++)
                pthread_create(&threads[t], NULL, use_heap, NULL);
            for (int t = 0; t < 4; t++)
                pthread_join(threads[t], NULL);
            atexit(free_and_allocate);
            alarm(20);
            ends[i].end();
            _exit(99);
        }
        int status = -1;
        waitpid(child, &status, 0);
        printf("%s: exit status %d, signal %d\n", ends[i].name, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
               WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    return 0;
}
