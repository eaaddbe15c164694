// SPDX-License-Identifier: MIT
//
// One thread of the random test, and the operations that it chooses from.
#ifndef GPUHOST_TESTS_WRAPS_WORKER_H
#define GPUHOST_TESTS_WRAPS_WORKER_H

#include "area.h"

#define WORKER_OWN_AREAS 14u
#define SHARED_AREAS 3u

struct worker {
    struct rng rng;
    unsigned index;
    uint64_t operations; // to do
    uint64_t done;       // read by the watcher without a lock, for the failure line only
    struct area *own[WORKER_OWN_AREAS];
    struct area *constant; // this thread's view of it
    struct wt_queue queues[WT_UNITS_MAX];
    pthread_t thread;
};

extern struct area *shared_areas[SHARED_AREAS];

// One operation on the area, under its lock if it has one.
void worker_step(struct worker *worker, struct area *area);

void worker_unwrap_all(struct area *area);

// A child that uses its heap and the areas, and ends; then the parent's bytes are looked at.
void worker_fork(struct worker *worker);

// A thread that wraps its own stack and ends with the wrap.
void worker_guest(struct worker *worker);

#endif
