// SPDX-License-Identifier: MIT
//
// Threads that are cancelled in the door, signal handlers that map and unmap there, a driver that
// is a proxy of another, somebody else who watches munmap.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#define READ_ONLY ((ze_host_mem_alloc_flags_t)(1u << 4))

static unsigned char *shared_pages;

static void *wrap_cancelled(void *unused) {
    (void)unused;
    pthread_cancel(pthread_self()); // whatever it calls next that is a cancellation point
    client_wrap_flags(client.context, shared_pages, P(4), READ_ONLY); // /proc is read
    client_wrap(client.context, shared_pages + P(8), P(4));           // the driver sleeps
    client_unwrap(client.context, shared_pages + P(8));
    return NULL;
}

static void *attach_cancelled(void *unused) {
    (void)unused;
    pthread_cancel(pthread_self());
    (void)client_context(); // the driver sleeps and writes
    return NULL;
}

static void run_thread(void *(*run)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, argument) == 0 && pthread_join(thread, NULL) == 0, "thread");
}

static void must_still_work(void) {
    unsigned char *m = client_pages(4);
    OK(client_wrap(client.context, m, P(4)));
    OK(client_fill(client.list, m, P(4)));
    OK(client_unwrap(client.context, m));
    OK(client.contexts.t.pfnDestroy(client_context()));
    munmap(m, P(4));
}

// Run with GHSIM_DELAY_US=1, which makes each import a cancellation point.
void case_cancelled_wrap(void) {
    alarm(60);
    client_open();
    shared_pages = client_pages(16);
    run_thread(wrap_cancelled, NULL);
    must_still_work();
}

// Run with GHSIM_DELAY_US=1, GHSIM_LOG=/dev/null, GHSIM_FAIL=zeContextCreateEx:1: a failure is
// logged, so the attach has cancellation points outside imports too.
void case_cancelled_attach(void) {
    alarm(60);
    client_load();
    run_thread(attach_cancelled, NULL);
    client.context = client_context();
    client.list = client_list(client.context, client.devices[0]);
    must_still_work();
}

// The thread's own choice is as it was afterwards.
void case_cancelled_older(void) {
    int state;
    client_open();
    for (int i = 0; i < 2; i++) {
        pthread_setcancelstate(i == 0 ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE, NULL);
        must_still_work();
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
        CHECK(state == (i == 0 ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE), "round %d", i);
    }
}

#define TRAP_FLAG 0x100u

static unsigned long steps;
static unsigned long mapped;

// After every instruction: between any two of the door's, a handler maps and unmaps.
static void step(int signal) {
    (void)signal;
    steps++;
    if (steps % 3 != 0) // not at the same places each time
        return;
    void *place = mmap(NULL, (size_t)2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place != MAP_FAILED && munmap(place, (size_t)2 << 20) == 0)
        mapped++;
}

static inline void set_trap_flag(bool on) {
    unsigned long flags;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t" // the red zone
                     "pushfq\n\t"
                     "popq %0\n\t"
                     "lea 128(%%rsp), %%rsp"
                     : "=&r"(flags)
                     :
                     : "memory");
    flags = on ? flags | TRAP_FLAG : flags & ~(unsigned long)TRAP_FLAG;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "pushq %0\n\t"
                     "popfq\n\t"
                     "lea 128(%%rsp), %%rsp"
                     :
                     : "r"(flags)
                     : "memory", "cc");
}

static void work_under_steps(unsigned char *m, unsigned char *block) {
    OK(client_wrap(client.context, m, P(2)));
    OK(client_wrap(client.context, block, 100));
    OK(client_unwrap(client.context, block));
    OK(client_unwrap(client.context, m));
    void *place = mmap(NULL, (size_t)2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(place != MAP_FAILED && munmap(place, (size_t)2 << 20) == 0, "mmap");
}

void case_signals(void) {
    alarm(120);
    client_open();
    unsigned char *m = client_pages(4);
    unsigned char *block = malloc(5000);
    OK(client_wrap(client.context, m + P(3), P(1))); // a piece, so that unmapping is looked at
    work_under_steps(m, block);
    struct sigaction action = { .sa_handler = step };
    sigaction(SIGTRAP, &action, NULL);
    for (int round = 0; round < 3; round++) {
        steps = (unsigned long)round; // another third of the instructions
        set_trap_flag(true);
        work_under_steps(m, block);
        set_trap_flag(false);
        CHECK(steps > 1000 && mapped > 300, "%lu steps, %lu maps", steps, mapped);
    }
    OK(client_unwrap(client.context, m + P(3)));
    must_still_work();
}

// The driver (proxy_driver.c) has another driver's tables, and the door stands in both.
void case_proxy(void) {
    alarm(60);
    unsigned char *block = malloc(200000);
    client_open();
    CHECK(client_type(client.context, block) == ZE_MEMORY_TYPE_HOST, "the heap");
    OK(client_fill(client.list, block, 200000));
    ze_context_handle_t other = client_context();
    unsigned char *m = client_pages(4);
    OK(client_wrap(client.context, m, P(4)));
    OK(client_wrap(other, m + P(1), P(1)));
    OK(client_fill(client.list, m, P(4)));
    OK(client_unwrap(client.context, m));
    OK(client_unwrap(other, m + P(1)));
    must_still_work();
    munmap(m, P(4));
    OK(client.contexts.t.pfnDestroy(other));
}

__attribute__((weak)) long munmap_watched(void);

// Behind us, munmap is another library's too, which allocates (munmap_watch.c). Run by itself, and
// with little address space, which makes us give some back.
void case_watched(void) {
    alarm(60);
    void *first = malloc((size_t)2 << 20);
    client_open();
    unsigned char *block = malloc(200000);
    for (size_t i = 0; i < 200; i++)
        OK(client_wrap(client.context, block + i * 100 + 1, 100)); // tables that a child gives back
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        void *volatile large = malloc((size_t)20 << 20);
        free(large);
        free(block);
        free(first);
        _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child: status 0x%x", (unsigned)status);
    for (size_t i = 0; i < 200; i++)
        OK(client_unwrap(client.context, block + i * 100 + 1));
    free(block);
    free(first);
    must_still_work();
    CHECK(munmap_watched != NULL && munmap_watched() > 0, "munmap_watch saw nothing");
}
