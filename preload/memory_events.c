// SPDX-License-Identifier: MIT
//
// Memory that goes away under an import: munmap, mremap, mmap over something, brk, madvise and
// shmdt, interposed. Imports of the pages are released before the kernel call goes through; what
// a wrap still says about them is then an error, never somebody else's memory.
//
// A process without pieces and without imported regions pays one load. Only what the program
// calls through libc is seen; glibc's own unmapping (thread stacks, dlclose) is not, but for the
// stack of a thread that wrapped parts of it (stack_watch.c).
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/types.h>
#include <unistd.h>

#include "allocator/os_mem.h"
#include "export.h"
#include "gpu.h"
#include "log.h"
#include "memory_events.h"
#include "pieces.h"
#include "real_symbols.h"
#include "vma.h"

// The next definition of `name`, looked up once.
#define REAL(type, name)                                                                                               \
    static _Atomic(void *) real_##name##_address;                                                                      \
    static type real_##name(void) {                                                                                    \
        void *found = atomic_load_explicit(&real_##name##_address, memory_order_relaxed);                              \
        if (gh_unlikely(found == NULL)) {                                                                              \
            found = gh_real_symbol(#name);                                                                             \
            if (found == NULL)                                                                                         \
                gh_fatal("the C library has no " #name);                                                               \
            atomic_store_explicit(&real_##name##_address, found, memory_order_relaxed);                                \
        }                                                                                                              \
        return (type)found;                                                                                            \
    }

typedef void *(*mmap_fn)(void *, size_t, int, int, int, off_t);
typedef int (*munmap_fn)(void *, size_t);
typedef void *(*mremap_fn)(void *, size_t, size_t, int, ...);
typedef int (*madvise_fn)(void *, size_t, int);
typedef int (*brk_fn)(void *);
typedef void *(*sbrk_fn)(intptr_t);
typedef int (*shmdt_fn)(const void *);
REAL(mmap_fn, mmap)
REAL(munmap_fn, munmap)
REAL(mremap_fn, mremap)
REAL(madvise_fn, madvise)
REAL(brk_fn, brk)
REAL(sbrk_fn, sbrk)
REAL(shmdt_fn, shmdt)

void gh_memory_events_start(void) {
    struct gh_os_release_ops ops = { real_munmap(), real_madvise() };
    gh_os_set_release_ops(&ops);
}

static bool is_plausible(const void *address, size_t size) {
    return size != 0 && (uintptr_t)address + size > (uintptr_t)address;
}

// True when part of the range is heap that a GPU sees. The caller then must not move its pages.
static bool hits_imported_heap(const void *address, size_t size) {
    if (gh_likely(gh_gpu_open_scopes() == 0) || !is_plausible(address, size))
        return false;
    uintptr_t end = (uintptr_t)address + size;
    for (uintptr_t at = (uintptr_t)address; at < end; at = gh_align_down(at, GH_SLOT_SIZE) + GH_SLOT_SIZE) {
        const struct gh_region *region = gh_region_find((void *)at);
        if (region != NULL && atomic_load_explicit(&gh_gpu_imported[region->id], memory_order_acquire) != 0)
            return true;
    }
    return false;
}

static void about_to_go(const void *address, size_t size) {
    if (gh_unlikely(atomic_load_explicit(&gh_pieces_count, memory_order_relaxed) != 0) && is_plausible(address, size))
        gh_pieces_invalidate((uintptr_t)address, (uintptr_t)address + size);
}

static int refuse_heap(const char *call) {
    static atomic_flag said = ATOMIC_FLAG_INIT;
    struct gh_text line;
    gh_text_start(&line);
    gh_text_add(&line, call);
    gh_text_add(&line, " of memory that malloc handed out and a GPU sees: refused, it is freed by free "
                       "(GPUHOST_BACKEND=none allows it)");
    gh_log_once(&said, GH_LOG_WARNING, &line);
    errno = EINVAL;
    return -1;
}

GH_EXPORT int munmap(void *address, size_t size) {
    if (gh_unlikely(hits_imported_heap(address, size)))
        return refuse_heap("munmap");
    about_to_go(address, size);
    return real_munmap()(address, size);
}

GH_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    if (gh_unlikely((flags & MAP_FIXED) != 0)) {
        if (hits_imported_heap(address, size)) {
            refuse_heap("mmap with MAP_FIXED");
            return MAP_FAILED;
        }
        about_to_go(address, size);
    }
    return real_mmap()(address, size, protection, flags, file, offset);
}

GH_EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    return mmap(address, size, protection, flags, file, offset);
}

GH_EXPORT void *mremap(void *address, size_t old_size, size_t new_size, int flags, ...) {
    void *target = NULL;
    if ((flags & MREMAP_FIXED) != 0) {
        va_list more;
        va_start(more, flags);
        target = va_arg(more, void *);
        va_end(more);
    }
    bool hits = hits_imported_heap(address, gh_max(old_size, 1)) ||
                (target != NULL && hits_imported_heap(target, new_size));
    if (gh_unlikely(hits)) {
        refuse_heap("mremap");
        return MAP_FAILED;
    }
    // Shrinking keeps what stays; anything else may move all of it.
    if ((flags & MREMAP_MAYMOVE) == 0 && new_size < old_size)
        about_to_go((char *)address + new_size, old_size - new_size);
    else if (new_size < old_size || (flags & MREMAP_MAYMOVE) != 0)
        about_to_go(address, old_size);
    if (target != NULL)
        about_to_go(target, new_size);
    return real_mremap()(address, old_size, new_size, flags, target);
}

// Zero-fill by hand, for pages that must stay where they are.
static int zero_heap(void *address, size_t size, int advice) {
    if (((uintptr_t)address & GH_PAGE_MASK) != 0) {
        errno = EINVAL;
        return -1;
    }
    if (advice == MADV_DONTNEED)
        memset(address, 0, gh_align_up(size, GH_PAGE_SIZE));
    return 0; // MADV_FREE allows the old contents
}

GH_EXPORT int madvise(void *address, size_t size, int advice) {
    bool drops = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
    if (gh_likely(!drops))
        return real_madvise()(address, size, advice);
    if (gh_unlikely(advice != MADV_REMOVE && hits_imported_heap(address, size)))
        return zero_heap(address, size, advice);
    if (gh_likely(atomic_load_explicit(&gh_pieces_count, memory_order_relaxed) == 0) || !is_plausible(address, size))
        return real_madvise()(address, size, advice);
    return gh_pieces_around((uintptr_t)address, (uintptr_t)address + size, real_madvise(), advice);
}

GH_EXPORT int brk(void *end) {
    if (gh_unlikely(atomic_load_explicit(&gh_pieces_count, memory_order_relaxed) != 0)) {
        uintptr_t now = (uintptr_t)real_sbrk()(0);
        if ((uintptr_t)end < now)
            about_to_go(end, now - (uintptr_t)end);
    }
    return real_brk()(end);
}

GH_EXPORT void *sbrk(intptr_t increment) {
    if (gh_unlikely(increment < 0 && atomic_load_explicit(&gh_pieces_count, memory_order_relaxed) != 0)) {
        uintptr_t now = (uintptr_t)real_sbrk()(0);
        uintptr_t shrink = (uintptr_t)0 - (uintptr_t)increment;
        if (shrink <= now)
            about_to_go((void *)(now - shrink), shrink);
    }
    return real_sbrk()(increment);
}

GH_EXPORT int shmdt(const void *address) {
    struct gh_vma vma;
    uintptr_t at = (uintptr_t)address;
    uint64_t inode = 0;
    // A segment is one mapping, or several when its protection was changed in parts.
    while (gh_unlikely(atomic_load_explicit(&gh_pieces_count, memory_order_relaxed) != 0) && gh_vma_find(at, &vma) &&
           !vma.is_private && (inode == 0 || inode == vma.inode)) {
        inode = vma.inode;
        about_to_go((void *)vma.start, vma.end - vma.start);
        at = vma.end;
    }
    return real_shmdt()(address);
}
