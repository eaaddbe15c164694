// SPDX-License-Identifier: MIT
//
// Judges whether imported pages stayed. On import all pages are made present (written to, contents
// unchanged), and the page frame numbers of up to 64 of them are remembered; later they must be
// the same frames, since a GPU would go on using the old ones.
//
// fork: the kernel copies really pinned pages (sim_pin.c) for the child. Of unpinned ones (those
// that are imported for reading only, mostly), the first write after a fork in the parent moves the
// parent's page. The fork handlers therefore start a new generation; frames of an older one are
// taken afresh, after writing to the pages so that the copying has happened. Frames that are taken
// while a fork runs, from the first handler before it to the last one after it, belong to no
// generation: nobody here knows whether the kernel has copied yet. (A fork by raw system call is not
// seen.)
//
// Honest gaps: without privileges /proc/self/pagemap hides frame numbers, then only presence is
// compared. Of unpinned imports: frames that the kernel collapses into a huge page are accepted, a
// really pinned page would have stayed; swapped pages are skipped; migration by compaction would be
// reported as a move (GHSIM_PAGE_CHECK=release or off); a dropped page that got its old frame back
// is missed.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim_internal.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define PM_PRESENT (UINT64_C(1) << 63)
#define PM_SWAPPED (UINT64_C(1) << 62)
#define PM_FILE (UINT64_C(1) << 61) // of a file, or of shared memory
#define PM_FRAME ((UINT64_C(1) << 55) - 1)
#define KPF_THP 22
#define EAGER_IMPORTS 4096 // with more imports than this the frames are taken at the next use

static _Atomic uint64_t fork_generation = 1; // goes up before and after each fork
static _Atomic uint64_t forks_running;       // raised before the first step, lowered after the second
static _Thread_local bool forking;           // this thread's fork is one of them
#define NO_GENERATION 0

// True if every page of the range is mapped with the wanted access, by /proc/self/maps.
static bool maps_allow(uintptr_t begin, uintptr_t end, bool read_only)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps) return false;
    char line[512], access[5];
    unsigned long from, to;
    while (begin < end && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %4s", &from, &to, access) != 3 || to <= begin) continue;
        if (from > begin || access[0] != 'r' || (!read_only && access[1] != 'w')) break;
        begin = to;
    }
    fclose(maps);
    return begin >= end;
}

bool sim_pages_populate(uintptr_t begin, uintptr_t end, bool read_only)
{
    const int advice = read_only ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
    while (madvise((void *)begin, end - begin, advice) != 0) {
        if (errno == EINTR || errno == EAGAIN) continue;
        // EINVAL: read-only pages, or a kernel that does not know the advice.
        if (errno != EINVAL || !maps_allow(begin, end, read_only)) return false;
        for (uintptr_t at = begin; at < end; at += SIM_PAGE) {
            if (read_only) (void)*(volatile const char *)at;
            else __atomic_fetch_or((unsigned char *)at, 0, __ATOMIC_RELAXED);
        }
        return true;
    }
    return true;
}

static uintptr_t sample_address(const struct sim_import *import, unsigned i)
{
    const size_t pages = (import->range.end - import->range.begin) / SIM_PAGE;
    const size_t page = pages <= SIM_SAMPLES ? i : i * (pages - 1) / (SIM_SAMPLES - 1);
    return import->range.begin + page * SIM_PAGE;
}

static unsigned sample_count(const struct sim_import *import)
{
    const size_t pages = (import->range.end - import->range.begin) / SIM_PAGE;
    return pages < SIM_SAMPLES ? (unsigned)pages : SIM_SAMPLES;
}

// Reads the page map entries of all samples; false if there is no page map.
static bool read_entries(const struct sim_import *import, uint64_t *entries)
{
    const unsigned count = sample_count(import);
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    bool good = true;
    if ((import->range.end - import->range.begin) / SIM_PAGE == count) {
        const ssize_t want = (ssize_t)(count * sizeof *entries);
        good = pread(fd, entries, (size_t)want, (off_t)(import->range.begin / SIM_PAGE * 8)) == want;
    } else {
        for (unsigned i = 0; i < count && good; i++)
            good = pread(fd, &entries[i], 8, (off_t)(sample_address(import, i) / SIM_PAGE * 8)) == 8;
    }
    close(fd);
    return good;
}

// Without a page map: is each sample resident? Entries get the present bit only.
static void read_presence(const struct sim_import *import, uint64_t *entries)
{
    for (unsigned i = 0; i < sample_count(import); i++) {
        unsigned char resident = 0;
        const int r = mincore((void *)sample_address(import, i), SIM_PAGE, &resident);
        entries[i] = r == 0 && (resident & 1) ? PM_PRESENT : 0;
    }
}

static void take_frames(struct sim_import *import, uint64_t *entries)
{
    if (!read_entries(import, entries)) read_presence(import, entries);
}

// Pages of files and of shared memory stay when they are taken out of the page table (MADV_DONTNEED).
// Puts those back that were there once; false: there are none.
static bool put_back(const struct sim_import *import, const uint64_t *now)
{
    bool some = false;
    for (unsigned i = 0; i < import->frame_count; i++) {
        const uintptr_t at = sample_address(import, i);
        if ((import->frames[i] & PM_FILE) && !(now[i] & (PM_PRESENT | PM_SWAPPED)))
            some = sim_pages_populate(at, at + SIM_PAGE, true) || some;
    }
    return some;
}

static bool is_huge(uint64_t frame)
{
    uint64_t flags = 0;
    const int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    if (pread(fd, &flags, sizeof flags, (off_t)(frame * 8)) != (ssize_t)sizeof flags) flags = 0;
    close(fd);
    return (flags >> KPF_THP) & 1;
}

uint64_t sim_pages_generation(void)
{
    return atomic_load(&fork_generation);
}

// Caller holds the frame lock. Writes to the samples first if there was a fork since the pages
// were last written to: that ends their sharing with the child.
static void record_locked(struct sim_import *import)
{
    for (;;) {
        const uint64_t generation = atomic_load(&fork_generation);
        for (unsigned i = 0; generation != import->generation && i < sample_count(import); i++) {
            const uintptr_t at = sample_address(import, i);
            // A pin for reading would have ended the sharing as well, where the memory is writable.
            if (!sim_pages_populate(at, at + SIM_PAGE, false) && import->read_only)
                sim_pages_populate(at, at + SIM_PAGE, true);
        }
        take_frames(import, import->frames);
        import->generation = atomic_load(&forks_running) ? NO_GENERATION : generation;
        if (generation == atomic_load(&fork_generation)) break;
    }
    import->frame_count = sample_count(import);
}

void sim_pages_record(struct sim_import *import)
{
    if (sim_config.page_check == SIM_PAGES_OFF) return;
    pthread_mutex_lock(&import->frame_lock);
    record_locked(import);
    pthread_mutex_unlock(&import->frame_lock);
}

bool sim_pages_same(struct sim_import *import)
{
    if (sim_config.page_check == SIM_PAGES_OFF) return true;
    uint64_t now[SIM_SAMPLES];
    bool same = true, collapsed = false;
    pthread_mutex_lock(&import->frame_lock);
    if (import->pinned || import->generation == atomic_load(&fork_generation)) {
        take_frames(import, now);
        if (put_back(import, now)) take_frames(import, now);
        for (unsigned i = 0; i < import->frame_count && same; i++) {
            const uint64_t was = import->frames[i] & PM_FRAME, is = now[i] & PM_FRAME;
            if (now[i] & PM_SWAPPED) continue;
            if ((now[i] & PM_PRESENT) == 0) same = false;
            else if (was != is && was != 0 && is != 0) {
                if (is_huge(is) && !is_huge(was)) collapsed = true;
                else same = false;
            }
        }
    }
    if (import->pinned && !same && !sim_pin_alive(import)) import->pinned = false;
    // A fork since the frames were taken, even just now: they prove nothing, take them afresh.
    if (!import->pinned && import->generation != atomic_load(&fork_generation)) {
        same = true;
        record_locked(import);
    } else if (same && collapsed) {
        SIM_COUNT(pages_collapsed, 1);
        record_locked(import);
    }
    pthread_mutex_unlock(&import->frame_lock);
    return same;
}

typedef void (*visit_fn)(struct sim_import *import, uint64_t *count);

static void visit(struct sim_range *range, visit_fn fn, uint64_t *count)
{
    if (!range) return;
    visit(range->left, fn, count);
    fn((struct sim_import *)(void *)range, count);
    visit(range->right, fn, count);
}

static void visit_all(visit_fn fn, uint64_t *count)
{
    pthread_rwlock_rdlock(&sim_memory_lock);
    for (const struct sim_space *space = sim_spaces; space; space = space->next)
        visit(space->imports, fn, count);
    pthread_rwlock_unlock(&sim_memory_lock);
}

static void count_moved(struct sim_import *import, uint64_t *count)
{
    if (!sim_pages_same(import)) ++*count;
}

uint64_t ghsim_check_pages(void)
{
    uint64_t moved = 0;
    visit_all(count_moved, &moved);
    return moved;
}

static void record_again(struct sim_import *import, uint64_t *count)
{
    (void)count;
    if (!import->pinned) sim_pages_record(import);
}

static void before_fork(void)
{
    if (sim_in_child()) return;
    forking = true;
    atomic_fetch_add(&forks_running, 1);
    atomic_fetch_add(&fork_generation, 1);
}

static void after_fork_in_parent(void)
{
    if (sim_in_child()) return;
    atomic_fetch_add(&fork_generation, 1);
    // The driver may have been loaded while this thread was between the handlers.
    if (forking) atomic_fetch_sub(&forks_running, 1);
    forking = false;
    if (__atomic_load_n(&sim_stats.imports_live, __ATOMIC_RELAXED) <= EAGER_IMPORTS)
        visit_all(record_again, NULL);
}

void sim_pages_at_fork(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, NULL);
}
