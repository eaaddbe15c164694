// SPDX-License-Identifier: MIT
//
// The operations that are about more than one area: fork, and threads that come and go.
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "wt_events.h"

static _Noreturn void child(const struct worker *worker) {
    struct rng rng = worker->rng;
    void *blocks[64] = { NULL };
    alarm(30); // a lock that nobody gives back
    for (int i = 0; i < 400; i++) {
        size_t at = rng_below(&rng, 64);
        size_t size = 1 + rng_below(&rng, 20000);
        blocks[at] = wt_realloc(blocks[at], size);
        if (blocks[at] == NULL)
            _exit(2);
        memset(blocks[at], 1, size);
        if (rng_below(&rng, 3) == 0) {
            wt_free(blocks[at]);
            blocks[at] = NULL;
        }
    }
    struct area *pages = worker->own[0];
    if (pages->pages[0] == PAGE_THERE) { // its copy, not the parent's page
        memset(pages->bytes, 0xee, WT_PAGE);
        if (wt_madvise(pages->bytes, WT_PAGE, MADV_DONTNEED) != 0 || pages->bytes[0] != 0 ||
            wt_munmap(pages->bytes, WT_PAGE) != 0)
            _exit(3);
    }
    for (unsigned i = 0; i < WORKER_OWN_AREAS; i++) {
        const struct area *area = worker->own[i];
        if (area->kind == AREA_HEAP && memcmp(area->bytes, area->shadow, area->size_bytes) != 0)
            _exit(4);
    }
    _exit(0);
}

void worker_fork(struct worker *worker) {
    pid_t pid = fork();
    if (pid == 0)
        child(worker);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        wt_fail("the forked child ended with status 0x%x", (unsigned)status);
    for (unsigned i = 0; i < WORKER_OWN_AREAS; i++) {
        const struct area *area = worker->own[i];
        if (area->kind == AREA_HEAP || area->kind == AREA_STACK)
            area_verify(area, area->bytes, area->size_bytes, "fork");
    }
    if (worker->own[0]->pages[0] == PAGE_THERE)
        area_verify(worker->own[0], worker->own[0]->bytes, WT_PAGE, "fork");
}

struct guest {
    struct worker *worker;
    const struct wt_unit *unit;
    unsigned char *wrapped;
    bool frees;
};

// The worker waits meanwhile, so its queues are the guest's.
static void *guest_main(void *argument) {
    struct guest *guest = argument;
    unsigned char bytes[20000];
    struct wt_queue *queue = &guest->worker->queues[guest->unit - wt_units];
    memset(bytes, 5, sizeof bytes);
    const struct wt_range range = wt_rounded(bytes, sizeof bytes);
    guest->wrapped = range.start;
    if (wt_wrap(guest->unit, range.start, range.size_bytes, false) != ZE_RESULT_SUCCESS)
        wt_fail("REFUSED: wrap of a guest's stack %p+%zu", (void *)range.start, range.size_bytes);
    if (wt_add1(queue, bytes + 1, sizeof bytes - 1) != ZE_RESULT_SUCCESS)
        wt_fail("launch on a guest's stack failed");
    for (size_t i = 1; i < sizeof bytes; i++) {
        if (bytes[i] != 6)
            wt_fail("WRONG BYTES on a guest's stack");
    }
    if (guest->frees && wt_unwrap(guest->unit, range.start) != ZE_RESULT_SUCCESS)
        wt_fail("unwrap of a guest's stack failed");
    return NULL;
}

// One guest at a time: their stacks are the same memory.
void worker_guest(struct worker *worker) {
    static pthread_mutex_t guest_lock = PTHREAD_MUTEX_INITIALIZER;
    struct guest guest = { worker, &wt_units[rng_below(&worker->rng, wt_unit_count)], NULL,
                           rng_below(&worker->rng, 2) != 0 };
    pthread_t thread;
    pthread_mutex_lock(&guest_lock);
    if (pthread_create(&thread, NULL, guest_main, &guest) != 0 || pthread_join(thread, NULL) != 0)
        wt_fail("no guest thread");
    if (wt_type(guest.unit, guest.wrapped) != ZE_MEMORY_TYPE_UNKNOWN)
        wt_fail("the stack of a thread that ended is not unknown");
    if (!guest.frees && wt_unwrap(guest.unit, guest.wrapped) != ZE_RESULT_SUCCESS)
        wt_fail("unwrap of the stack of a thread that ended failed");
    pthread_mutex_unlock(&guest_lock);
}
