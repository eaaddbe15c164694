// SPDX-License-Identifier: MIT
//
// Every way for a process to end, or for the Level Zero loader to go, while a GPU has imports of
// the heap; what the heap does afterwards must not reach a driver that is no longer there.
// Usage: ends WAY KERNELS CLIENT-LIBRARY; `ends list` prints WAY and the status that it must end
// with, as a shell sees it.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *kernels;
static const char *library;
static const char *self;
static void *client;
static void *kept[64];

static void load(void) {
    client = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (client == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(90);
    }
    int (*open)(const char *) = (int (*)(const char *))dlsym(client, "client_open");
    if (open == NULL || !open(kernels))
        _exit(91);
}

static void close_tidily(void) {
    ((void (*)(void))dlsym(client, "client_close"))();
}

static void *use_heap(void *argument) {
    for (int round = 0; round < 4; round++) {
        void *blocks[60];
        for (size_t i = 0; i < 60; i++) {
            size_t size = i < 50 ? i * i * 13 + 1 : i * 50000;
            blocks[i] = memset(malloc(size), 1, size);
        }
        for (size_t i = 0; i < 60; i++)
            free(blocks[i]);
    }
    return argument;
}

static void use_heap_in_threads(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, use_heap, NULL) != 0)
            _exit(92);
    use_heap(NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void free_kept(void) {
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        free(kept[i]), kept[i] = NULL;
    use_heap(NULL);
}

static _Atomic int running;
static void *for_ever(void *argument) {
    atomic_fetch_add(&running, 1);
    for (;;)
        use_heap(argument);
    return argument;
}

static void *exit_here(void *argument) {
    (void)argument;
    exit(27);
}

static void end_exit(void) { exit(21); }
static void end_main_thread(void) { pthread_exit(NULL); }
static void end_underscore(void) { _exit(22); }
static void end_quick(void) {
    at_quick_exit(free_kept);
    quick_exit(23);
}
static void end_abort(void) { abort(); }
static void end_kill(void) { raise(SIGKILL); }
static void end_exec(void) { execl("/bin/sh", "sh", "-c", "x=$(echo 25); exit $x", (char *)NULL); }
static void end_exec_again(void) { execl(self, self, "exit", kernels, library, (char *)NULL); }
static void end_in_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, exit_here, NULL);
    pthread_join(thread, NULL);
}
static void end_with_detached(void) {
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, for_ever, NULL);
        pthread_detach(thread);
    }
    while (atomic_load(&running) < 4)
        usleep(1000);
    exit(29);
}
static void end_after_tidy_close(void) {
    close_tidily();
    dlclose(client);
    use_heap_in_threads();
    exit(30);
}
static void end_after_close(void) { // wraps and context are left
    dlclose(client);
    use_heap_in_threads();
    exit(31);
}
static void end_after_reopen(void) {
    for (int i = 0; i < 3; i++) {
        close_tidily();
        dlclose(client);
        use_heap_in_threads();
        load();
        use_heap_in_threads();
    }
    exit(32);
}
static void close_at_exit(void) { dlclose(client); }
static void end_close_at_exit(void) {
    atexit(free_kept); // runs after the next one
    atexit(close_at_exit);
    exit(33);
}
static void end_close_then_exec(void) {
    dlclose(client);
    use_heap_in_threads();
    end_exec();
}

static const struct {
    const char *name;
    void (*end)(void);
    int status;
} ways[] = {
    { "exit", end_exit, 21 },
    { "_exit", end_underscore, 22 },
    { "main_thread_first", end_main_thread, 0 },
    { "quick_exit", end_quick, 23 },
    { "abort", end_abort, 128 + SIGABRT },
    { "kill", end_kill, 128 + SIGKILL },
    { "exec", end_exec, 25 },
    { "exec_again", end_exec_again, 21 },
    { "exit_in_thread", end_in_thread, 27 },
    { "detached_threads", end_with_detached, 29 },
    { "loader_closed_tidily", end_after_tidy_close, 30 },
    { "loader_closed", end_after_close, 31 },
    { "loader_opened_again", end_after_reopen, 32 },
    { "loader_closed_at_exit", end_close_at_exit, 33 },
    { "loader_closed_then_exec", end_close_then_exec, 25 },
};

int main(int argc, char **argv) {
    size_t count = sizeof(ways) / sizeof(ways[0]);
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < count; i++)
            printf("%s %d\n", ways[i].name, ways[i].status);
        return 0;
    }
    if (argc != 4)
        return 2;
    self = argv[0];
    kernels = argv[2];
    library = argv[3];
    alarm(200);
    struct rlimit no_core = { 0, 0 };
    setrlimit(RLIMIT_CORE, &no_core);
    atexit(free_kept); // before any driver's handlers are there, so after they ran
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        kept[i] = memset(malloc(i * 5000 + 1), 1, i * 5000 + 1);
    load();
    use_heap_in_threads();
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ways[i].name, argv[1]) == 0)
            ways[i].end();
    }
    return 93;
}
