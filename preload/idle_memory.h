// SPDX-License-Identifier: MIT
//
// Memory that nobody uses but that is imported, and so resident: after a program has freed a big
// heap, the caches of threads that are idle now hold the last of its blocks, and each of those
// holds a region. Once most of the heap is free, threads that come to the door give their caches
// back, and what that leaves free goes back at once.
#ifndef GH_PRELOAD_IDLE_MEMORY_H
#define GH_PRELOAD_IDLE_MEMORY_H

#include "allocator/util.h"

// One look, of the service thread, `period_ms` after the last one.
GH_HIDDEN void gh_idle_memory_look(unsigned period_ms);

// At the door, no lock held: this thread's cache, if it was asked for.
GH_HIDDEN void gh_idle_memory_give_cache(void);

#endif
