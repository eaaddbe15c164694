// SPDX-License-Identifier: MIT
//
// The library's one constructor and one destructor.
#include <dlfcn.h>

#include "lifecycle.h"
#include "malloc_abi.h"
#include "memory_events.h"
#include "real_symbols.h"
#include "stats.h"

// 101 is the first priority that is not the implementation's: before jemalloc's own constructor,
// which would boot it without our options.
__attribute__((constructor(101))) static void construct(void) {
    // Nobody has called our malloc yet: make sure that somebody will.
    void *(*find)(void *, const char *) = (void *(*)(void *, const char *))gh_real_dlsym();
    if (atomic_load_explicit(&gh_life, memory_order_acquire) == GH_LIFE_NEW &&
        find(RTLD_DEFAULT, "malloc") != (void *)gh_own_malloc)
        gh_stay_aside("the process has another malloc (libgpuhost was loaded late, or after another allocator); not "
                      "active (put it first in LD_PRELOAD)");
    gh_start();
    gh_memory_events_start();
}

__attribute__((destructor)) static void destruct(void) {
    gh_stats_print_at_exit();
}
