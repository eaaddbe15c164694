// SPDX-License-Identifier: MIT
//
// Gives idle memory back (idle_memory.h). A phase with most of the heap free is used for a few
// attempts, since each door that is passed serves one thread; then it is left alone for a while.
#include "idle_memory.h"

#include <stdatomic.h>

#include "allocator/arena_set.h"
#include "config.h"
#include "gpu.h"

#define IDLE_MIN_BYTES (8 * GH_MIB)
#define ATTEMPTS 4u
#define PAUSE_MIN_MS 1000u
#define DECAY_MAX_MS 60000u // who asks for more wants to keep memory

static atomic_uint asked; // how often
static GH_TLS unsigned given;

// Of the service thread alone.
static unsigned attempts;
static unsigned waited_ms;

static bool is_mostly_free(void) {
    struct gh_region_pool_stats heap;
    gh_region_pool_get_stats(gh_arena_set_heap(), &heap);
    return heap.free_bytes >= IDLE_MIN_BYTES && heap.free_bytes > heap.mapped_bytes / 2;
}

void gh_idle_memory_look(unsigned period_ms) {
    waited_ms += period_ms;
    if (gh_config.decay_ms > DECAY_MAX_MS || !is_mostly_free() ||
        waited_ms > gh_max(4 * gh_config.decay_ms, PAUSE_MIN_MS)) {
        attempts = 0;
        waited_ms = 0;
        return;
    }
    if (attempts == ATTEMPTS)
        return;
    if (attempts++ > 0)
        gh_arena_set_purge(); // what the threads have given since
    atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
    gh_gpu_raise_pending();
}

void gh_idle_memory_give_cache(void) {
    unsigned now = atomic_load_explicit(&asked, memory_order_relaxed);
    if (now == given)
        return;
    given = now;
    gh_arena_set_flush_cache();
}
