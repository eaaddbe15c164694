// SPDX-License-Identifier: MIT
//
// The counters, and the block that GPUHOST_STATS prints at exit. Counters are added to at the
// door, never on malloc's fast path.
#ifndef GH_PRELOAD_STATS_H
#define GH_PRELOAD_STATS_H

#include <stdatomic.h>

#include "allocator/util.h"
#include "include/gpuhost.h"

struct gh_stats_counters {
    _Atomic uint64_t bytes_imported;
    _Atomic uint64_t wraps_passed_on;
    _Atomic uint64_t wraps_refused;
    _Atomic uint64_t wraps_read_only;
    _Atomic uint64_t imports;
    _Atomic uint64_t import_nanoseconds;
    _Atomic uint64_t releases;
};

extern GH_HIDDEN struct gh_stats_counters gh_stats;

static inline void gh_stats_add(_Atomic uint64_t *counter, uint64_t amount) {
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

static inline void gh_stats_set(_Atomic uint64_t *counter, uint64_t value) {
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

// Fills the public struct.
GH_HIDDEN void gh_stats_collect(struct gpuhost_stats *out);

// Prints to where GPUHOST_STATS says, once per process. For exit.
GH_HIDDEN void gh_stats_print_at_exit(void);

#endif
