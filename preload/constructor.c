// SPDX-License-Identifier: MIT
//
// The library's one constructor and one destructor.
#include "lifecycle.h"
#include "memory_events.h"
#include "stats.h"

// 101 is the first priority that is not the implementation's: before jemalloc's own constructor,
// which would boot it without our options.
__attribute__((constructor(101))) static void construct(void) {
    gh_start();
    gh_memory_events_start();
}

__attribute__((destructor)) static void destruct(void) {
    gh_stats_print_at_exit();
}
