// SPDX-License-Identifier: MIT
//
// Scopes and the imports of regions, with a GPU that only keeps books (fake_gpu.h).
#include "fake_gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "allocator/arena_set.h"
#include "config.h"
#include "gate.h"
#include "log.h"
#include "pieces.h"
#include "stats.h"
#include "wraps.h"

static struct fake_gpu gpu;

static unsigned open_scope(struct fake_gpu *data) {
    gh_config.log = GH_LOG_NONE;
    unsigned scope = gh_gpu_scope_open(&fake_ops, data);
    cr_assert_neq(scope, GH_NO_SCOPE);
    gh_gpu_drain();
    return scope;
}

static char *block_of(size_t size) {
    char *block = gh_allocate(size, 0, false, NULL);
    cr_assert_not_null(block);
    return block;
}

static void pass(void) {
    if (gh_gpu_has_pending())
        gh_gpu_drain();
}

static unsigned region_count(void) {
    struct gh_region_pool_stats stats;
    gh_region_pool_get_stats(gh_arena_set_heap(), &stats);
    return stats.region_count;
}

Test(gpu, what_was_there_and_what_comes) {
    char *early = block_of(100);
    unsigned scope = open_scope(&gpu);
    cr_assert(fake_has(&gpu, early, 100));
    cr_assert(gh_gpu_covers(scope, early, 100));
    for (int i = 0; i < 50; i++) {
        char *block = block_of(GH_MIB << (i % 5));
        pass();
        cr_assert(fake_has(&gpu, block, GH_MIB << (i % 5)));
        cr_assert(gh_gpu_covers(scope, block, GH_MIB << (i % 5)));
    }
    gh_gpu_lock();
    cr_assert_eq(gpu.count, region_count());
    gh_gpu_unlock();
    int local;
    cr_assert_not(gh_gpu_covers(scope, &local, 1));
}

// Nothing of it is in use when the second scope opens, and the first one's import keeps it.
Test(gpu, an_idle_region_in_two_scopes) {
    static struct fake_gpu other;
    unsigned scope = open_scope(&gpu);
    char *block = block_of(40 * GH_MIB);
    pass();
    gh_deallocate(block);
    unsigned second = open_scope(&other);
    cr_assert_eq(block_of(40 * GH_MIB), block);
    pass();
    cr_assert(gh_gpu_covers(scope, block, 40 * GH_MIB));
    cr_assert(gh_gpu_covers(second, block, 40 * GH_MIB));
}

// Wraps a page where the next region will probably come; it goes away unseen. The region that comes there,
// or NULL.
static char *region_over_a_stale_piece(unsigned scope) {
    char *block = block_of(40 * GH_MIB);
    pass();
    uintptr_t place = gh_region_find(block)->base - GH_SLOT_SIZE;
    void *mine = mmap((void *)place, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                      -1, 0);
    if ((uintptr_t)mine != place)
        return NULL;
    struct gh_wrap wrap = { .pointer = place, .size_bytes = PAGE, .context = &gpu, .count = 1,
                            .scope = (uint16_t)scope };
    bool writable;
    const char *why = "";
    cr_assert_eq(gh_pieces_wrap(&wrap, false, &writable, &why), 0, "%s", why);
    syscall(SYS_munmap, mine, PAGE);
    char *there = block_of(40 * GH_MIB);
    return gh_region_find(there)->base == place ? there : NULL;
}

// And is idle when it is looked at first.
Test(gpu, a_stale_piece_under_an_idle_region) {
    unsigned scope = open_scope(&gpu);
    char *there = NULL;
    for (int attempt = 0; there == NULL; attempt++) {
        cr_assert_lt(attempt, 50, "regions never come where they should");
        there = region_over_a_stale_piece(scope);
    }
    uintptr_t place = gh_region_find(there)->base;
    gh_deallocate(there);
    pass();
    cr_assert_not(gh_pieces_overlap(scope, place, place + PAGE));
    cr_assert_eq(block_of(40 * GH_MIB), there);
    pass();
    cr_assert(gh_gpu_covers(scope, there, 40 * GH_MIB));
}

// What the GPU gets at the first scope is what is in use, or little more, whatever was freed before.
Test(gpu, what_was_freed_before_is_not_imported) {
    char *used = block_of(2 * GH_MIB);
    char *row[10];
    for (size_t i = 0; i < 10; i++)
        row[i] = memset(block_of((1 + 3 * i) * GH_MIB), 1, (1 + 3 * i) * GH_MIB);
    for (size_t i = 0; i < 10; i++)
        gh_deallocate(row[i]);
    unsigned scope = open_scope(&gpu);
    cr_assert(gh_gpu_covers(scope, used, 2 * GH_MIB));
    cr_assert_leq(gh_stats.bytes_imported, 8 * GH_MIB, "%lu KiB", (unsigned long)gh_stats.bytes_imported >> 10);
    char *next = block_of(20 * GH_MIB);
    pass();
    cr_assert(gh_gpu_covers(scope, next, 20 * GH_MIB));
    cr_assert_leq(gh_stats.bytes_imported, 40 * GH_MIB, "%lu KiB", (unsigned long)gh_stats.bytes_imported >> 10);
}

Test(gpu, a_region_that_goes_is_released_first_and_once) {
    unsigned scope = open_scope(&gpu);
    char *block = block_of(100 * GH_MIB);
    pass();
    cr_assert(gh_gpu_covers(scope, block, 100 * GH_MIB));
    uint16_t id = gh_region_entry(block);
    unsigned releases = gpu.releases;
    gh_deallocate(block);
    gh_arena_set_purge();
    pass();
    gh_gpu_lock();
    cr_assert_eq(gpu.releases, releases + 1);
    gh_gpu_unlock();
    cr_assert_null(gh_region_find(block));
    cr_assert_eq(atomic_load(&gh_gpu_imported[id]), 0);
}

// I5: what is imported keeps its pages when it is freed and purged.
Test(gpu, imported_pages_stay) {
    open_scope(&gpu);
    char *keep = block_of(5 * GH_MIB);
    char *block = block_of(GH_MIB);
    pass();
    memset(block, 9, GH_MIB);
    gh_deallocate(block);
    gh_arena_set_purge();
    if (gh_region_find(block) != NULL && gh_region_find(block)->state == GH_REGION_ACTIVE)
        cr_assert_eq(block[GH_MIB / 2], 9, "a page of an imported region was dropped");
    (void)keep;
}

// The n-th import is refused, for n = 1, 2, ...: malloc serves on, the others are imported.
Test(gpu, every_import_fails_once) {
    open_scope(&gpu);
    for (unsigned n = 1; n < 12; n++) {
        gh_gpu_lock();
        gpu.fail_in = n;
        gh_gpu_unlock();
        char *blocks[16];
        unsigned visible = 0;
        for (int i = 0; i < 16; i++) {
            blocks[i] = block_of(40 * GH_MIB);
            pass();
            blocks[i][0] = 1;
        }
        gh_gpu_lock();
        for (int i = 0; i < 16; i++)
            visible += fake_has(&gpu, blocks[i], 40 * GH_MIB);
        gpu.fail_in = 0;
        gh_gpu_unlock();
        cr_assert_geq(visible, 8, "n = %u: %u of 16 blocks", n, visible);
        for (int i = 0; i < 16; i++)
            gh_deallocate(blocks[i]);
        gh_arena_set_purge();
        pass();
        cr_assert(gh_region_pool_is_valid(gh_arena_set_heap()));
    }
}

Test(gpu, a_refusal_is_asked_once_and_not_repeated) {
    open_scope(&gpu);
    gh_gpu_lock();
    gpu.fail_with = ENOMEM;
    gh_gpu_unlock();
    char *block = block_of(100 * GH_MIB);
    pass();
    unsigned asked = gpu.asked;
    for (int i = 0; i < 5; i++) {
        block_of(100 * GH_MIB);
        pass();
    }
    cr_assert_eq(gpu.asked, asked + 5);
    cr_assert_not(fake_has(&gpu, block, 1));
    struct gpuhost_stats stats;
    gh_stats_collect(&stats);
    cr_assert_geq(stats.bytes_refused, 600 * GH_MIB);
}

Test(gpu, a_scope_that_takes_nothing_is_left_alone) {
    static struct fake_gpu none = { .fail_with = ENOTSUP };
    unsigned scope = open_scope(&none);
    for (int i = 0; i < 5; i++) {
        block_of(100 * GH_MIB);
        pass();
    }
    cr_assert_eq(none.asked, 1);
    gh_gpu_scope_close(scope, true);
    cr_assert_eq(none.releases, 0);
}

Test(gpu, the_limit) {
    gh_config.limit = 256 * GH_MIB;
    unsigned scope = open_scope(&gpu);
    char *blocks[6];
    for (int i = 0; i < 6; i++) {
        blocks[i] = block_of(60 * GH_MIB);
        pass();
    }
    unsigned covered = 0;
    for (int i = 0; i < 6; i++)
        covered += gh_gpu_covers(scope, blocks[i], 60 * GH_MIB);
    cr_assert(covered >= 3 && covered <= 4, "%u", covered);
    cr_assert_leq(atomic_load(&gh_stats.bytes_imported), 256 * GH_MIB);
    // Room again: what was left out comes in.
    for (int i = 0; i < 3; i++)
        gh_deallocate(blocks[i]);
    gh_arena_set_purge();
    for (int i = 0; i < 4; i++)
        pass();
    for (int i = 3; i < 6; i++)
        cr_assert(gh_gpu_covers(scope, blocks[i], 60 * GH_MIB), "block %d", i);
}

Test(gpu, scopes_open_and_close) {
    static struct fake_gpu gpus[3];
    char *block = block_of(50 * GH_MIB);
    for (int round = 0; round < 20; round++) {
        unsigned scopes[3];
        for (int i = 0; i < 3; i++) {
            scopes[i] = open_scope(&gpus[i]);
            cr_assert(gh_gpu_covers(scopes[i], block, 50 * GH_MIB));
        }
        cr_assert_eq(__builtin_popcountll(gh_gpu_open_scopes()), 3);
        char *other = block_of((40 + (size_t)round) * GH_MIB);
        pass();
        cr_assert(gh_gpu_covers(scopes[2], other, 40 * GH_MIB));
        gh_gpu_scope_close(scopes[round % 3], true);
        cr_assert_eq(gpus[round % 3].count, 0);
        cr_assert_not(gh_gpu_covers(scopes[round % 3], block, 1));
        gh_deallocate(other);
        gh_arena_set_purge();
        pass();
        for (int i = 0; i < 3; i++) {
            if (i != round % 3)
                gh_gpu_scope_close(scopes[i], true);
            cr_assert_eq(gpus[i].count, 0);
            cr_assert_eq(gpus[i].imports, gpus[i].releases);
        }
        cr_assert_eq(gh_gpu_open_scopes(), 0);
        cr_assert_eq(atomic_load(&gh_stats.bytes_imported), 0);
        cr_assert(gh_region_pool_is_valid(gh_arena_set_heap()));
    }
}

Test(gpu, closing_without_release_calls_nobody) {
    unsigned scope = open_scope(&gpu);
    block_of(50 * GH_MIB);
    pass();
    gh_gpu_scope_close(scope, false);
    cr_assert_eq(gpu.releases, 0);
    cr_assert_eq(gh_gpu_open_scopes(), 0);
}

Test(gpu, sixty_four_scopes_and_no_more) {
    static struct fake_gpu gpus[GH_SCOPE_MAX];
    unsigned scopes[GH_SCOPE_MAX];
    for (unsigned i = 0; i < GH_SCOPE_MAX; i++)
        scopes[i] = open_scope(&gpus[i]);
    cr_assert_eq(gh_gpu_scope_open(&fake_ops, &gpu), GH_NO_SCOPE);
    char *block = block_of(50 * GH_MIB);
    pass();
    for (unsigned i = 0; i < GH_SCOPE_MAX; i++)
        cr_assert(gh_gpu_covers(scopes[i], block, 50 * GH_MIB));
    gh_gpu_scope_close(scopes[63], true);
    cr_assert_eq(open_scope(&gpus[63]), scopes[63]);
    gh_gpu_scope_close(GH_NO_SCOPE, true);
}

// A driver that keeps an import: its pages are never anything else again.
Test(gpu, a_refused_release_keeps_the_pages) {
    open_scope(&gpu);
    char *block = block_of(100 * GH_MIB);
    block[0] = 3;
    pass();
    gh_gpu_lock();
    gpu.release_fails = 1;
    gh_gpu_unlock();
    gh_deallocate(block);
    gh_arena_set_purge();
    pass();
    cr_assert(unit_readable(block));
    cr_assert_eq(block[0], 3);
    char *other = block_of(100 * GH_MIB);
    pass();
    cr_assert(other >= block + 100 * GH_MIB || other + 100 * GH_MIB <= block);
}

static _Atomic bool run;
static _Atomic unsigned missed;
static unsigned the_scope;

// As a door function does it: whatever is pending is brought, then the block must be visible.
static void *take_and_pass(void *unused) {
    (void)unused;
    while (atomic_load(&run)) {
        size_t size = 30 * GH_MIB;
        char *block = block_of(size);
        pass();
        if (!gh_gpu_covers(the_scope, block, size))
            atomic_fetch_add(&missed, 1);
        gh_deallocate(block);
    }
    return NULL;
}

// I4, while imports take their time: nobody passes the door before his own region is in.
Test(gpu, nobody_passes_while_an_import_runs, .timeout = 60) {
    gpu.delay_ms = 1;
    the_scope = open_scope(&gpu);
    pthread_t threads[6];
    atomic_store(&run, true);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, take_and_pass, NULL), 0);
    nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
    atomic_store(&run, false);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(atomic_load(&missed), 0, "%u blocks passed the door before their region", atomic_load(&missed));
}

static void *bring(void *unused) {
    (void)unused;
    gh_gpu_drain();
    return NULL;
}

// The same, step by step: another thread is in the middle of importing this thread's region.
Test(gpu, a_door_waits_for_the_import_that_another_thread_makes) {
    unsigned scope = open_scope(&gpu);
    gh_gpu_lock();
    gpu.delay_ms = 200;
    gh_gpu_unlock();
    char *block = block_of(100 * GH_MIB);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, bring, NULL), 0);
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
    cr_assert_not(gh_gpu_covers(scope, block, 1), "the import was too fast for this test");
    pass();
    cr_assert(gh_gpu_covers(scope, block, 100 * GH_MIB));
    pthread_join(thread, NULL);
}

// I9: in a fork child there are no imports, no driver is called, and the heap works.
Test(gpu, a_fork_child_is_an_orphan) {
    unsigned scope = open_scope(&gpu);
    char *block = block_of(50 * GH_MIB);
    block[7] = 42;
    pass();
    unsigned asked = gpu.asked;
    pid_t child = fork();
    if (child == 0) {
        bool ok = gh_gpu_is_orphan() && gh_gpu_open_scopes() == 0 && !gh_gpu_covers(scope, block, 1);
        ok = ok && block[7] == 42;
        gh_deallocate(block);
        gh_arena_set_purge();
        for (int i = 0; i < 20; i++) {
            char *other = gh_allocate((size_t)30 * GH_MIB, 0, false, NULL);
            ok = ok && other != NULL;
            pass();
            gh_deallocate(other);
        }
        ok = ok && gpu.asked == asked && gpu.releases == 0;
        ok = ok && gh_gpu_scope_open(&fake_ops, &gpu) == GH_NO_SCOPE;
        ok = ok && gh_region_pool_is_valid(gh_arena_set_heap());
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert(gh_gpu_covers(scope, block, 50 * GH_MIB));
    cr_assert_not(gh_gpu_is_orphan());
}

Test(gpu, a_fork_child_without_scopes_may_open_its_own) {
#ifdef __SANITIZE_THREAD__
    // jemalloc initialises its mutexes anew in the child while they are held for the fork.
    cr_skip_test("TSan takes them for locked, and the child starts a thread that locks them");
#endif
    block_of(50 * GH_MIB);
    pid_t child = fork();
    if (child == 0) {
        unsigned scope = gh_gpu_scope_open(&fake_ops, &gpu);
        gh_gpu_drain();
        char *block = gh_allocate(50 * GH_MIB, 0, false, NULL);
        pass();
        _exit(scope != GH_NO_SCOPE && gh_gpu_covers(scope, block, 50 * GH_MIB) ? 0 : 1);
    }
    int status = 1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}
