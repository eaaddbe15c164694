// SPDX-License-Identifier: MIT
//
// Scopes, pending work, imports of regions (gpu.h). Order of events for a region: it appears
// (flag), a drain pins it and imports it into each scope; it becomes wholly free (flag), a drain
// releases its imports and discards it. A region that no scope took is unpinned again, so its
// pages can be purged like any others.
#include "gpu.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "allocator/arena_set.h"
#include "allocator/lock.h"
#include "gpu_lines.h"
#include "idle_memory.h"
#include "log.h"
#include "memory_limit.h"
#include "piece_tree.h"
#include "pieces.h"
#include "service_thread.h"
#include "stats.h"

_Atomic uint8_t gh_gpu_pending;
_Atomic uint64_t gh_gpu_imported[GH_REGION_MAX + 1];

struct scope {
    const struct gh_gpu_backend_ops *ops; // NULL: closed
    void *data;
    bool takes_nothing; // answered ENOTSUP once
};

// All under the import lock; `open_scopes` is also read without it.
static struct gh_lock import_lock = GH_LOCK_INIT(GH_RANK_IMPORT);
static struct scope scopes[GH_SCOPE_MAX];
static _Atomic uint64_t open_scopes;
static uint64_t refused[GH_REGION_MAX + 1]; // bit s: scope s refused this region
static uint32_t seen_generation[GH_REGION_MAX + 1];
static size_t imported_size[GH_REGION_MAX + 1]; // counted in imported_bytes
static bool held_by_driver[GH_REGION_MAX + 1]; // an import could not be released: never unmapped
static uint16_t highest_id;
static uint64_t imported_bytes;
static bool limit_was_hit;
static bool waits_for_pieces; // a region is not imported because pieces lie on it
static atomic_bool orphan;
static atomic_bool closing;

// True while this thread is in a driver on our behalf: what the driver then calls through its
// own tables must pass.
static GH_TLS bool inside;
static GH_TLS int cancel_state_before;

enum { PENDING_NOTHING, PENDING_RAISED, PENDING_DRAINING }; // of gh_gpu_pending

void gh_gpu_raise_pending(void) {
    atomic_store_explicit(&gh_gpu_pending, PENDING_RAISED, memory_order_release);
}

static void region_appeared(void) {
    if (atomic_load_explicit(&open_scopes, memory_order_relaxed) != 0)
        gh_gpu_raise_pending();
}

const struct gh_region_ops gh_gpu_region_ops = { .appeared = region_appeared, .retired = gh_gpu_raise_pending };

// A thread that is cancelled in here would never release the lock, and drivers and /proc have
// cancellation points.
void gh_gpu_lock(void) {
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    inside = true; // before, and until after: a signal handler may map or unmap memory
    gh_lock_acquire(&import_lock);
    cancel_state_before = cancel_state;
}

void gh_gpu_unlock(void) {
    int cancel_state = cancel_state_before;
    gh_lock_release(&import_lock);
    inside = false;
    pthread_setcancelstate(cancel_state, NULL);
}

bool gh_gpu_try_enter(void) {
    if (inside)
        return false;
    gh_gpu_lock();
    return true;
}

int gh_gpu_import_piece(unsigned scope, void *base, size_t size_bytes, bool read_only, const char **why_out) {
    if (scopes[scope].ops == NULL) {
        *why_out = "the context is gone";
        return EINVAL;
    }
    return scopes[scope].ops->import(scopes[scope].data, base, size_bytes, read_only, why_out);
}

int gh_gpu_release_piece(unsigned scope, void *base, size_t size_bytes) {
    int error = 0;
    if (scopes[scope].ops != NULL)
        error = scopes[scope].ops->release(scopes[scope].data, base, size_bytes);
    if (error != 0)
        gh_gpu_say_kept();
    if (waits_for_pieces) {
        waits_for_pieces = false;
        gh_gpu_raise_pending();
    }
    return error;
}

void gh_gpu_close_down(void) {
    atomic_store_explicit(&closing, true, memory_order_relaxed);
}

bool gh_gpu_is_closing(void) {
    return atomic_load_explicit(&closing, memory_order_relaxed);
}

uint64_t gh_gpu_open_scopes(void) {
    return atomic_load_explicit(&open_scopes, memory_order_acquire);
}

bool gh_gpu_is_orphan(void) {
    return atomic_load_explicit(&orphan, memory_order_relaxed);
}

static uint64_t nanoseconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// What a driver allocates to keep an import in mind lives as long as the import: in the heap, it
// would lie in the very regions that can then never be wholly free. Under the import lock.
static bool is_in_plain;
static unsigned arena_before;

static void leave_plain(void) {
    if (is_in_plain)
        gh_arena_set_leave_plain(arena_before);
    is_in_plain = false;
}

// One region into one scope. The region is pinned.
static bool import_into(unsigned index, uint16_t id, uintptr_t base, size_t size) {
    struct scope *scope = &scopes[index];
    const char *why = "no reason given";
    if (gh_pieces_overlap(index, base, base + size)) {
        // Memory that was wrapped while its region was not imported; the wraps keep it visible.
        waits_for_pieces = true;
        return false;
    }
    if (!scope->takes_nothing && !is_in_plain)
        is_in_plain = gh_arena_set_enter_plain(&arena_before);
    uint64_t start = nanoseconds_now();
    int error = scope->takes_nothing ? ENOTSUP : scope->ops->import(scope->data, (void *)base, size, false, &why);
    gh_stats_add(&gh_stats.import_nanoseconds, nanoseconds_now() - start);
    if (error == 0) {
        gh_stats_add(&gh_stats.imports, 1);
        atomic_fetch_or_explicit(&gh_gpu_imported[id], UINT64_C(1) << index, memory_order_release);
        return true;
    }
    if (!scope->takes_nothing)
        gh_gpu_say_refused(scope->ops->name, size, why);
    scope->takes_nothing = scope->takes_nothing || error == ENOTSUP;
    refused[id] |= UINT64_C(1) << index;
    return false;
}

// Is the region imported in a scope whose imports need the pages to stay?
static bool needs_pin(uint16_t id) {
    uint64_t bits = atomic_load_explicit(&gh_gpu_imported[id], memory_order_relaxed);
    for (unsigned index = 0; index < GH_SCOPE_MAX; index++) {
        if ((bits >> index & 1) != 0 && scopes[index].ops->pins)
            return true;
    }
    return false;
}

// Pins stand for imports: one pin while the region is imported anywhere.
static void import_region(uint16_t id, uint64_t wanted) {
    uintptr_t base;
    size_t size;
    if (!gh_region_pool_pin(id, &base, &size))
        return;
    // Pinned, it stays what it is. Since the look it may have become another one.
    if (gh_regions[id].generation != seen_generation[id] || gh_regions[id].plain) {
        gh_region_pool_unpin(id);
        gh_gpu_raise_pending();
        return;
    }
    bool was_imported = atomic_load_explicit(&gh_gpu_imported[id], memory_order_relaxed) != 0;
    bool had_pin = needs_pin(id);
    uint64_t limit = gh_memory_limit_bytes();
    if (!was_imported && imported_bytes + size > limit) {
        refused[id] |= wanted;
        limit_was_hit = true;
        gh_gpu_say_limit(limit);
    } else {
        for (unsigned index = 0; index < GH_SCOPE_MAX; index++) {
            if ((wanted >> index & 1) != 0)
                import_into(index, id, base, size);
        }
    }
    bool is_imported = atomic_load_explicit(&gh_gpu_imported[id], memory_order_relaxed) != 0;
    if (is_imported && !was_imported) {
        imported_size[id] = size;
        imported_bytes += size;
    }
    if (had_pin || !needs_pin(id))
        gh_region_pool_unpin(id);
    gh_stats_set(&gh_stats.bytes_imported, imported_bytes);
}

// False when a driver keeps an import: then the pages must never be anything else again.
static bool release_imports(uint16_t id, uintptr_t base, size_t size, uint64_t which) {
    uint64_t bits = atomic_load_explicit(&gh_gpu_imported[id], memory_order_relaxed) & which;
    bool all_released = true;
    for (unsigned index = 0; index < GH_SCOPE_MAX; index++) {
        if ((bits >> index & 1) == 0)
            continue;
        int error = scopes[index].ops->release(scopes[index].data, (void *)base, size);
        gh_stats_add(&gh_stats.releases, 1);
        if (error != 0) {
            gh_log(GH_LOG_ERROR, "a driver refused to release an import; its pages are kept");
            all_released = false;
        }
    }
    return all_released;
}

static void forget_imports(uint16_t id, uint64_t which) {
    uint64_t before = atomic_fetch_and_explicit(&gh_gpu_imported[id], ~which, memory_order_release);
    if (before != 0 && (before & ~which) == 0) {
        imported_bytes -= imported_size[id];
        imported_size[id] = 0;
    }
    refused[id] &= ~which;
    gh_stats_set(&gh_stats.bytes_imported, imported_bytes);
}

// Of either pool: plain memory may be wrapped too, and is then held by pieces.
static struct gh_region *next_retired(void) {
    struct gh_region *region = gh_region_pool_pop_retired(gh_arena_set_heap());
    return region != NULL ? region : gh_region_pool_pop_retired(gh_arena_set_plain());
}

static void release_retired(void) {
    struct gh_region *region;
    while ((region = next_retired()) != NULL) {
        uintptr_t base = region->base;
        bool released = true;
        for (unsigned index = 0; index < GH_SCOPE_MAX; index++)
            released = gh_pieces_drop_range(index, base, base + region->size_bytes) && released;
        released = release_imports(region->id, base, region->size_bytes, ~UINT64_C(0)) && released;
        forget_imports(region->id, ~UINT64_C(0));
        if (released && !held_by_driver[region->id])
            gh_region_pool_discard(region);
        if (limit_was_hit) { // there is room again: ask for everything that was left out
            memset(refused, 0, sizeof(refused));
            limit_was_hit = false;
            gh_gpu_raise_pending();
        }
    }
}

static void import_new(void) {
    // Each look takes the pool lock, so a region that appears either is seen here or sees that a
    // scope is open, and raises the flag.
    uint64_t open = gh_gpu_open_scopes();
    struct gh_region_look look;
    // Ids are given out from 1 up and reused; an id that was never used ends the walk.
    for (uint16_t id = 1; id <= GH_REGION_MAX && gh_region_pool_look(id, &look); id++) {
        highest_id = id > highest_id ? id : highest_id;
        if (seen_generation[id] != look.generation) {
            // An unpinned region may be unmapped, and its id used again, without a word to us.
            seen_generation[id] = look.generation;
            forget_imports(id, ~UINT64_C(0));
            // Pieces that lie where the region is now are of memory that went away unseen.
            for (unsigned index = 0; index < GH_SCOPE_MAX && look.heap; index++)
                gh_pieces_drop_range(index, look.base, look.base + look.size_bytes);
        }
        uint64_t done = atomic_load_explicit(&gh_gpu_imported[id], memory_order_relaxed) | refused[id];
        uint64_t wanted = open & ~done;
        if (wanted != 0 && look.importable) {
            release_retired(); // imports take their time: memory that was let go meanwhile goes first
            import_region(id, wanted);
        }
    }
}

void gh_gpu_drain(void) {
    if (inside)
        return;
    gh_idle_memory_give_cache();
    gh_gpu_lock();
    // The flag stays up until the imports are made: a thread whose block lies in one of them would
    // pass the door otherwise. A driver mallocs while it imports, which can map a region: look
    // again, but not for ever.
    for (int round = 0; round < 8 && gh_gpu_has_pending(); round++) {
        atomic_store_explicit(&gh_gpu_pending, PENDING_DRAINING, memory_order_seq_cst);
        if (!gh_gpu_is_orphan()) {
            release_retired();
            import_new();
            leave_plain();
        }
        uint8_t draining = PENDING_DRAINING;
        atomic_compare_exchange_strong(&gh_gpu_pending, &draining, PENDING_NOTHING);
    }
    gh_gpu_unlock();
}

unsigned gh_gpu_scope_open(const struct gh_gpu_backend_ops *ops, void *data) {
    if (gh_gpu_is_orphan())
        return GH_NO_SCOPE;
    gh_gpu_lock();
    uint64_t open = gh_gpu_open_scopes();
    unsigned index = open == ~UINT64_C(0) ? GH_NO_SCOPE : (unsigned)__builtin_ctzll(~open);
    if (index != GH_NO_SCOPE) {
        if (open == 0)
            gh_region_pool_populate(gh_arena_set_heap());
        scopes[index] = (struct scope){ .ops = ops, .data = data };
        for (uint16_t id = 1; id <= highest_id; id++)
            refused[id] &= ~(UINT64_C(1) << index);
        atomic_store_explicit(&open_scopes, open | UINT64_C(1) << index, memory_order_release);
        gh_gpu_raise_pending();
    }
    gh_gpu_unlock();
    if (index == GH_NO_SCOPE)
        gh_log(GH_LOG_WARNING, "64 GPU scopes are open; further ones get no heap in place");
    else
        gh_service_thread_start();
    return index;
}

void gh_gpu_scope_close(unsigned scope, bool release) {
    if (scope >= GH_SCOPE_MAX)
        return;
    uint64_t bit = UINT64_C(1) << scope;
    gh_gpu_lock();
    // First what is retired: its imports in this scope must not outlive it either.
    if (!gh_gpu_is_orphan() && release)
        release_retired();
    atomic_fetch_and_explicit(&open_scopes, ~bit, memory_order_release);
    for (uint16_t id = 1; id <= highest_id; id++) {
        if ((atomic_load_explicit(&gh_gpu_imported[id], memory_order_relaxed) & bit) == 0)
            continue;
        uintptr_t base = gh_regions[id].base;
        size_t size = gh_regions[id].size_bytes;
        // What a driver keeps stays pinned, and mapped, for good.
        bool released = !release || gh_gpu_is_orphan() || release_imports(id, base, size, bit);
        held_by_driver[id] = held_by_driver[id] || !released;
        bool had_pin = needs_pin(id);
        forget_imports(id, bit);
        if (released && had_pin && !needs_pin(id))
            gh_region_pool_unpin(id);
    }
    gh_pieces_drop_scope(scope, release && !gh_gpu_is_orphan());
    scopes[scope].ops = NULL;
    gh_gpu_unlock();
}

bool gh_gpu_covers(unsigned scope, const void *pointer, size_t size_bytes) {
    const struct gh_region *region = gh_region_find(pointer);
    if (region == NULL || region->plain)
        return false;
    uint64_t bits = atomic_load_explicit(&gh_gpu_imported[region->id], memory_order_acquire);
    return (bits >> scope & 1) != 0 && size_bytes <= region->base + region->size_bytes - (uintptr_t)pointer;
}

void gh_gpu_fork_child(void) {
    gh_lock_reset(&import_lock);
    inside = false;
    is_in_plain = false;
    atomic_store_explicit(&gh_gpu_pending, PENDING_NOTHING, memory_order_relaxed);
    if (gh_gpu_open_scopes() == 0)
        return;
    atomic_store_explicit(&orphan, true, memory_order_relaxed);
    atomic_store_explicit(&open_scopes, 0, memory_order_relaxed);
    for (uint16_t id = 1; id <= highest_id; id++)
        atomic_store_explicit(&gh_gpu_imported[id], 0, memory_order_relaxed);
    imported_bytes = 0;
    gh_stats_set(&gh_stats.bytes_imported, 0);
    gh_piece_forget_all();
}
