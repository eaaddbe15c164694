// SPDX-License-Identifier: MIT
//
// mmap, munmap, madvise. New mappings come straight from the kernel: a preloaded shim that
// interposes mmap and allocates in it would re-enter the heap. Memory is given back through
// libc's munmap and madvise, once they are known, so that whoever keeps a cache of registered
// memory by watching those (MPI libraries do) learns of it. Called under the pool lock and inside
// jemalloc hooks.
#include "os_mem.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

// How many aligned places below the hint are tried before the slower way of mapping too much
// and trimming. The slower way needs `alignment` more address space for a moment, which a
// process with RLIMIT_AS may not have.
#define GH_OS_HINT_TRIES 8

// jemalloc does not look at the answer of its first small mappings, made while it boots: when the
// kernel has no memory then, they get these pages, and the boot fails in order.
#define SPARE_BYTES (24 * GH_PAGE_SIZE)
static _Alignas(4096) char spare[SPARE_BYTES];
static _Atomic size_t spare_used;

static bool is_spare(const void *address) {
    return (uintptr_t)address - (uintptr_t)spare < SPARE_BYTES;
}

// What one thread gives back, the kernel may hand to the next. ThreadSanitizer does not see that
// order in raw system calls and would report the two as a race.
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *address);
void __tsan_release(void *address);
static char kernel_order;
#define GH_BEFORE_UNMAP() __tsan_release(&kernel_order)
#define GH_AFTER_MAP() __tsan_acquire(&kernel_order)
#else
#define GH_BEFORE_UNMAP() ((void)0)
#define GH_AFTER_MAP() ((void)0)
#endif

int gh_os_munmap(void *address, size_t size_bytes) {
    GH_BEFORE_UNMAP();
    return is_spare(address) ? 0 : (int)syscall(SYS_munmap, address, size_bytes);
}

int gh_os_madvise(void *address, size_t size_bytes, int advice) {
    return (int)syscall(SYS_madvise, address, size_bytes, advice);
}

void *gh_os_mmap(void *address, size_t size_bytes, int protection, int flags, int file, long offset) {
    void *mapped = (void *)(uintptr_t)syscall(SYS_mmap, address, size_bytes, protection, flags, file, offset);
    GH_AFTER_MAP();
    if (gh_unlikely(mapped == MAP_FAILED) && address == NULL && size_bytes <= SPARE_BYTES) {
        size_t start = atomic_fetch_add_explicit(&spare_used, gh_align_up(size_bytes, GH_PAGE_SIZE),
                                                 memory_order_relaxed);
        if (start + size_bytes <= SPARE_BYTES)
            mapped = spare + start;
    }
    return mapped;
}

static struct gh_os_release_ops release = { gh_os_munmap, gh_os_madvise };

void gh_os_set_release_ops(const struct gh_os_release_ops *ops) {
    release = *ops;
}

struct gh_os_release_ops gh_os_release_by_kernel(void) {
    struct gh_os_release_ops before = release;
    release = (struct gh_os_release_ops){ gh_os_munmap, gh_os_madvise };
    return before;
}

static _Atomic uintptr_t place_hint; // racy on purpose: a wrong hint costs one more try

static void *map_raw(void *address, size_t size_bytes, int protection, int flags) {
    long result = syscall(SYS_mmap, address, size_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0L);
    GH_AFTER_MAP();
    return result == -1 ? NULL : (void *)(uintptr_t)result;
}

static void *map_at_hint(size_t total_bytes, size_t alignment) {
    uintptr_t hint = atomic_load_explicit(&place_hint, memory_order_relaxed);
    if (hint == 0) {
        // Ask the kernel once where it would put things; start in the aligned slot below.
        void *probe = map_raw(NULL, GH_PAGE_SIZE, PROT_NONE, MAP_NORESERVE);
        if (probe == NULL)
            return NULL;
        hint = (uintptr_t)probe;
        syscall(SYS_munmap, probe, GH_PAGE_SIZE);
    }
    for (int tries = 0; tries < GH_OS_HINT_TRIES && hint > total_bytes + alignment; tries++) {
        uintptr_t wanted = gh_align_down(hint - total_bytes, alignment);
        void *got = map_raw((void *)wanted, total_bytes, PROT_NONE, MAP_NORESERVE | MAP_FIXED_NOREPLACE);
        if (got == (void *)wanted) {
            atomic_store_explicit(&place_hint, wanted, memory_order_relaxed);
            return got;
        }
        if (got != NULL)
            syscall(SYS_munmap, got, total_bytes); // a kernel older than MAP_FIXED_NOREPLACE
        else if (errno == ENOMEM)
            return NULL;
        hint = wanted;
    }
    return NULL;
}

static void *map_and_trim(size_t total_bytes, size_t alignment) {
    size_t padded = total_bytes + alignment;
    if (padded < total_bytes)
        return NULL;
    char *raw = map_raw(NULL, padded, PROT_NONE, MAP_NORESERVE);
    if (raw == NULL)
        return NULL;
    char *aligned = (char *)gh_align_up((uintptr_t)raw, alignment);
    if (aligned != raw)
        syscall(SYS_munmap, raw, (size_t)(aligned - raw));
    size_t tail = padded - (size_t)(aligned - raw) - total_bytes;
    if (tail != 0)
        syscall(SYS_munmap, aligned + total_bytes, tail);
    return aligned;
}

void *gh_os_map(size_t size_bytes, size_t alignment, size_t guard_bytes) {
    int saved_errno = errno;
    size_t total = size_bytes + guard_bytes;
    void *place = NULL;
    if (total >= size_bytes) {
        place = map_at_hint(total, alignment);
        if (place == NULL)
            place = map_and_trim(total, alignment);
    }
    // The place is ours as PROT_NONE; what is used becomes ordinary memory, which also lets a
    // strict overcommit policy refuse it here, where malloc can still answer ENOMEM.
    if (place != NULL && map_raw(place, size_bytes, PROT_READ | PROT_WRITE, MAP_FIXED) == NULL) {
        syscall(SYS_munmap, place, total);
        place = NULL;
    }
    errno = saved_errno;
    return place;
}

bool gh_os_has_room(size_t size_bytes) {
    int saved_errno = errno;
    void *probe = map_raw(NULL, size_bytes, PROT_READ | PROT_WRITE, 0);
    if (probe != NULL)
        syscall(SYS_munmap, probe, size_bytes);
    errno = saved_errno;
    return probe != NULL;
}

void *gh_os_map_table(size_t size_bytes) {
    int saved_errno = errno;
    void *table = map_raw(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    if (table != NULL)
        syscall(SYS_madvise, table, size_bytes, MADV_DONTDUMP);
    errno = saved_errno;
    return table;
}

void gh_os_unmap(void *address, size_t size_bytes) {
    int saved_errno = errno;
    if (release.unmap(address, size_bytes) != 0) {
        // Splitting a mapping can exceed max_map_count; giving back the pages always works.
        gh_os_purge(address, size_bytes);
    }
    errno = saved_errno;
}

void gh_os_cut(void *address, size_t size_bytes, size_t guard_bytes) {
    int saved_errno = errno;
    map_raw(address, guard_bytes, PROT_NONE, MAP_NORESERVE | MAP_FIXED);
    if (size_bytes > guard_bytes)
        gh_os_munmap((char *)address + guard_bytes, size_bytes - guard_bytes);
    errno = saved_errno;
}

bool gh_os_purge(void *address, size_t size_bytes) {
    int saved_errno = errno;
    bool done = release.advise(address, size_bytes, MADV_DONTNEED) == 0;
    errno = saved_errno;
    return done;
}

char *gh_os_no_variable(const char *name) {
    (void)name;
    return NULL;
}

char *gh_os_no_secure_variable(const char *name) {
    return gh_os_no_variable(name);
}

long gh_os_no_link(const char *path, char *buffer, size_t size_bytes) {
    (void)path, (void)buffer, (void)size_bytes;
    errno = ENOENT;
    return -1;
}

void gh_os_advise_hugepage(void *address, size_t size_bytes) {
    int saved_errno = errno;
    gh_os_madvise(address, size_bytes, MADV_HUGEPAGE);
    errno = saved_errno;
}

void gh_fatal(const char *constant_text) {
    static const char head[] = "gpuhost: internal error, please report: ";
    if (write(2, head, sizeof(head) - 1) < 0 || write(2, constant_text, strlen(constant_text)) < 0 ||
        write(2, "\n", 1) < 0)
        abort();
    abort();
}
