// SPDX-License-Identifier: MIT
//
// The library's own mutex: a futex word, so that it needs no initialisation (first malloc of
// the process), never allocates, and can be reset in a fork child, which pthread's cannot.
//
// Ranks are data: a thread may take a lock only if it holds none of the same or a higher rank.
// jemalloc's own mutexes sit between GH_RANK_PLAIN and GH_RANK_POOL: a holder of anything from
// GH_RANK_POOL up must not malloc. Checked in builds with GH_DEBUG_LOCKS.
#ifndef GH_ALLOCATOR_LOCK_H
#define GH_ALLOCATOR_LOCK_H

#include <stdatomic.h>

#include "util.h"

enum gh_rank {
    GH_RANK_LIFE = 1,   // attach, detach, service thread
    GH_RANK_IMPORT = 2, // the only lock that may be held while a driver is called
    GH_RANK_WRAPS = 3,  // one shard of the wrap table; never malloc under it
    GH_RANK_PLAIN = 4,  // the making of the plain arena, inside a malloc of a driver
    GH_RANK_POOL = 5,   // region pool, taken inside jemalloc's hooks
    GH_RANK_COUNT
};

struct gh_lock {
    atomic_int word; // 0 free, 1 held, 2 held and somebody waits
    int rank;        // constant after the initialiser
};

#define GH_LOCK_INIT(lock_rank) { .word = 0, .rank = (lock_rank) }

GH_HIDDEN void gh_lock_wait(struct gh_lock *lock);
GH_HIDDEN void gh_lock_wake(struct gh_lock *lock);

#ifdef GH_DEBUG_LOCKS
GH_HIDDEN void gh_lock_rank_enter(int rank);
GH_HIDDEN void gh_lock_rank_leave(int rank);
#else
static inline void gh_lock_rank_enter(int rank) {
    (void)rank;
}
static inline void gh_lock_rank_leave(int rank) {
    (void)rank;
}
#endif

static inline void gh_lock_acquire(struct gh_lock *lock) {
    gh_lock_rank_enter(lock->rank);
    int expected = 0;
    if (gh_unlikely(!atomic_compare_exchange_strong_explicit(&lock->word, &expected, 1, memory_order_acquire,
                                                             memory_order_relaxed)))
        gh_lock_wait(lock);
}

static inline bool gh_lock_try(struct gh_lock *lock) {
    int expected = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &expected, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    gh_lock_rank_enter(lock->rank);
    return true;
}

static inline void gh_lock_release(struct gh_lock *lock) {
    gh_lock_rank_leave(lock->rank);
    if (gh_unlikely(atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2))
        gh_lock_wake(lock);
}

// In a fork child, where the holder may not exist any more. The child is single-threaded.
static inline void gh_lock_reset(struct gh_lock *lock) {
    atomic_store_explicit(&lock->word, 0, memory_order_relaxed);
}

// Forgets what this thread holds (fork child of a thread that held locks around fork).
GH_HIDDEN void gh_lock_forget_ranks(void);

#endif
