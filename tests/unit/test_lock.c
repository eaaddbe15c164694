// SPDX-License-Identifier: MIT
//
// The futex mutex and its rank check. lock.c is compiled into this program with the check on,
// whatever the build type.
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "allocator/lock.h"

#define THREADS 8
#define ROUNDS 50000

static struct gh_lock lock = GH_LOCK_INIT(GH_RANK_POOL);
static uint64_t counter; // protected by the lock, not atomic on purpose
static bool use_try;

static void *count_up(void *unused) {
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        if (!use_try)
            gh_lock_acquire(&lock);
        else
            while (!gh_lock_try(&lock))
                ;
        counter++;
        if (i % 1000 == 0) // long enough that waiters sleep in the kernel
            nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
        gh_lock_release(&lock);
    }
    return NULL;
}

static void run_threads(unsigned count) {
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < count; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(counter, (uint64_t)count * ROUNDS);
    cr_assert_eq(atomic_load(&lock.word), 0);
}

Test(lock, excludes) {
    run_threads(THREADS);
}

Test(lock, try_excludes) {
    use_try = true;
    run_threads(2);
}

Test(lock, try_of_a_held_lock) {
    cr_assert(gh_lock_try(&lock));
    gh_lock_forget_ranks();
    cr_assert_not(gh_lock_try(&lock));
    gh_lock_release(&lock);
    cr_assert(gh_lock_try(&lock));
}

static void *release_later(void *unused) {
    (void)unused;
    gh_lock_acquire(&lock);
    counter = 1;
    nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    counter = 2;
    gh_lock_release(&lock);
    return NULL;
}

Test(lock, waiting_keeps_errno) {
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, release_later, NULL), 0);
    bool waited = false;
    while (!waited) {
        errno = 4711;
        gh_lock_acquire(&lock);
        cr_assert_eq(errno, 4711);
        cr_assert_neq(counter, 1);
        waited = counter == 2;
        gh_lock_release(&lock);
        cr_assert_eq(errno, 4711);
    }
    pthread_join(thread, NULL);
}

Test(lock, reset_as_in_a_fork_child) {
    gh_lock_acquire(&lock);
    gh_lock_reset(&lock);
    gh_lock_forget_ranks();
    gh_lock_acquire(&lock);
    gh_lock_release(&lock);
}

static struct gh_lock import = GH_LOCK_INIT(GH_RANK_IMPORT);
static struct gh_lock wraps = GH_LOCK_INIT(GH_RANK_WRAPS);
static struct gh_lock wraps_too = GH_LOCK_INIT(GH_RANK_WRAPS);

Test(lock, ranks_that_rise_are_fine) {
    for (int i = 0; i < 2; i++) {
        gh_lock_acquire(&import);
        gh_lock_acquire(&wraps);
        gh_lock_acquire(&lock);
        gh_lock_release(&wraps); // the order of release is free
        gh_lock_release(&lock);
        gh_lock_release(&import);
    }
}

Test(lock, a_lower_rank_aborts, .signal = SIGABRT) {
    gh_lock_acquire(&lock);
    gh_lock_acquire(&import);
}

Test(lock, the_same_rank_aborts, .signal = SIGABRT) {
    gh_lock_acquire(&wraps);
    gh_lock_acquire(&wraps_too);
}

Test(lock, trying_counts_too, .signal = SIGABRT) {
    cr_assert(gh_lock_try(&wraps));
    gh_lock_acquire(&import);
}
