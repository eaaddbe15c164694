// SPDX-License-Identifier: MIT
//
// The service thread (service_thread.h). It holds no lock while it sleeps. Stopping waits for it,
// because it may be inside a driver whose destructors run next.
#include "service_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "allocator/arena_set.h"
#include "config.h"
#include "gpu.h"
#include "idle_memory.h"
#include "log.h"

#define STACK_BYTES (256 * 1024) // drivers are called on it
#define PERIOD_MIN_MS 20u
#define PERIOD_MAX_MS 1000u

enum { IDLE, STARTING, RUNNING, STOPPING, STOPPED };
static atomic_int state;
static pthread_t thread;

static void wait_while(int value, unsigned milliseconds) {
    struct timespec limit = { .tv_sec = milliseconds / 1000, .tv_nsec = (long)(milliseconds % 1000) * 1000000 };
    syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0);
}

static void set_state(int value) {
    atomic_store(&state, value);
    syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 16, NULL, NULL, 0);
}

// A program whose main thread ended by pthread_exit goes on until its last thread ends: that must
// not be ours. The kernel shows the main thread as dead, and beside it one thread.
static bool is_left_over(void) {
    char text[512];
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    long length = syscall(SYS_read, file, text, sizeof(text) - 1);
    syscall(SYS_close, file);
    text[length < 0 ? 0 : length] = '\0';
    const char *at = strrchr(text, ')'); // the program's name may hold anything
    if (at == NULL || at[1] != ' ' || at[2] != 'Z')
        return false;
    at += 2; // field 3; field 20 is the number of threads
    for (int field = 3; field < 20 && at != NULL; field++)
        at = strchr(at + 1, ' ');
    return at != NULL && atoi(at) == 2;
}

static void *run(void *unused) {
    (void)unused;
    uint64_t period = gh_config.decay_ms / 4;
    period = period < PERIOD_MIN_MS ? PERIOD_MIN_MS : period > PERIOD_MAX_MS ? PERIOD_MAX_MS : period;
    while (atomic_load(&state) == RUNNING) {
        wait_while(RUNNING, (unsigned)period);
        if (atomic_load(&state) != RUNNING)
            break;
        if (is_left_over())
            break;
        gh_arena_set_decay();
        if (gh_gpu_has_pending())
            gh_gpu_drain();
        gh_idle_memory_look((unsigned)period);
    }
    set_state(STOPPED);
    return NULL;
}

void gh_service_thread_start(void) {
    int expected = IDLE;
    if (!atomic_compare_exchange_strong(&state, &expected, STARTING))
        return;
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    sigfillset(&all); // the program's signals are not for this thread
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_attr_init(&attributes);
    if (error == 0) {
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        set_state(RUNNING);
        error = pthread_create(&thread, &attributes, run, NULL);
        pthread_attr_destroy(&attributes);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atexit(gh_service_thread_stop); // after the driver's own handlers were registered, so before them
    if (error != 0) {
        set_state(STOPPED);
        gh_log(GH_LOG_INFO, "no service thread could be started; freed memory goes back at the next GPU call");
        return;
    }
    pthread_setname_np(thread, "gpuhost");
    pthread_detach(thread);
}

void gh_service_thread_stop(void) {
    gh_gpu_close_down();
    int expected = RUNNING;
    if (!atomic_compare_exchange_strong(&state, &expected, STOPPING)) {
        if (expected != STOPPING)
            return;
    }
    syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 16, NULL, NULL, 0);
    // Bounded: exit handlers may run in a thread that the driver waits for.
    for (int tries = 0; tries < 100 && atomic_load(&state) == STOPPING; tries++)
        wait_while(STOPPING, 10);
}

void gh_service_thread_fork_child(void) {
    atomic_store(&state, IDLE);
}
