// SPDX-License-Identifier: MIT
//
// The slow half of the futex mutex (lock.h) and the rank check of debug builds. Makes the
// futex system call and nothing else; usable wherever the lock is.
#include "lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

// How often a waiter looks again before it sleeps: sections under these locks are short, and
// a futex round trip costs some microseconds.
#define GH_LOCK_SPINS 100

void gh_lock_wait(struct gh_lock *lock) {
    int saved_errno = errno;
    for (int spin = 0; spin < GH_LOCK_SPINS; spin++) {
        int expected = 0;
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(&lock->word, &expected, 1, memory_order_acquire,
                                                    memory_order_relaxed))
            return;
        __builtin_ia32_pause();
    }
    // From here on whoever gets the lock leaves it at 2: it cannot know that it was the last waiter.
    while (atomic_exchange_explicit(&lock->word, 2, memory_order_acquire) != 0)
        syscall(SYS_futex, &lock->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    errno = saved_errno;
}

void gh_lock_wake(struct gh_lock *lock) {
    int saved_errno = errno;
    syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved_errno;
}

#ifdef GH_DEBUG_LOCKS
static GH_TLS unsigned held_ranks; // bit per rank that this thread holds

void gh_lock_rank_enter(int rank) {
    if (held_ranks >> rank)
        gh_fatal("lock rank violated");
    held_ranks |= 1u << rank;
}

void gh_lock_rank_leave(int rank) {
    held_ranks &= ~(1u << rank);
}

void gh_lock_forget_ranks(void) {
    held_ranks = 0;
}
#else
void gh_lock_forget_ranks(void) {
}
#endif
