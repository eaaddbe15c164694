// SPDX-License-Identifier: MIT
//
// Start-up and the life of the process. Start-up runs inside the first allocation, which ld.so
// makes before any constructor, or in our constructor when nobody allocated before.
#ifndef GH_PRELOAD_LIFECYCLE_H
#define GH_PRELOAD_LIFECYCLE_H

#include <stdatomic.h>

#include "allocator/util.h"

enum gh_life {
    GH_LIFE_NEW = 0,  // nothing has run yet
    GH_LIFE_STARTING, // one thread is inside gh_start
    GH_LIFE_SERVING,  // malloc is ours
    GH_LIFE_ASIDE,    // malloc is glibc's: disabled, excluded, or jemalloc could not boot
};

extern GH_HIDDEN _Atomic int gh_life;

static inline bool gh_is_serving(void) {
    return atomic_load_explicit(&gh_life, memory_order_acquire) == GH_LIFE_SERVING;
}

// Returns the state to act on: SERVING or ASIDE; or STARTING when this very thread is inside
// gh_start, whose allocations come from the early heap. Other threads wait.
GH_HIDDEN int gh_start(void);

// Instead of gh_start, when the program's malloc is another one: says why, and stays out of the
// process for good. Does nothing when start-up has run.
GH_HIDDEN void gh_stay_aside(const char *why);

#endif
