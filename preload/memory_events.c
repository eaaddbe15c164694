// SPDX-License-Identifier: MIT
//
// Memory that goes away under an import: munmap, mremap, mmap over something, brk, madvise and
// shmdt, interposed. Imports of the pages are released before the kernel call goes through; what
// a wrap still says about them is then an error, never somebody else's memory.
//
// A process without pieces and without imported regions pays one load. Only what the program
// calls through libc is seen; glibc's own unmapping (thread stacks, dlclose) is not, but for the
// stack of a thread that wrapped parts of it (stack_watch.c). Memory that went away unseen is
// found out when the program maps something there again.
//
// The kernel call is made without a lock: it may be patched by others who watch memory, and theirs
// are the locks to fear. So a call that the kernel will refuse must be known before; what cannot
// be known (no memory, a range of several mappings for mremap) leaves wraps stale that need not be.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/types.h>
#include <unistd.h>

#include "allocator/os_mem.h"
#include "config.h"
#include "driver_text.h"
#include "export.h"
#include "gpu.h"
#include "log.h"
#include "memory_events.h"
#include "own_maps.h"
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

// The kernel refuses to lower the break further than where it was at first.
static uintptr_t lowest_break;

void gh_memory_events_start(void) {
    lowest_break = (uintptr_t)real_sbrk()(0);
    (void)real_mmap();
    (void)real_mremap();
    (void)real_brk();
    (void)real_shmdt();
    struct gh_os_release_ops ops = { real_munmap(), real_madvise() };
    gh_os_set_release_ops(&ops);
}

// The kernel takes whole pages only.
static bool is_plausible(const void *address, size_t size) {
    return size != 0 && (uintptr_t)address + size > (uintptr_t)address && ((uintptr_t)address & GH_PAGE_MASK) == 0 &&
           size < (size_t)1 << GH_ADDRESS_BITS;
}

// Is anything to be done before memory goes? A driver's own memory is no piece, and another thread
// may hold the import lock and wait for this one.
#define IS_WATCHED()                                                                                                   \
    (gh_unlikely(atomic_load_explicit(&gh_pieces_count, memory_order_relaxed) != 0) &&                                 \
     !gh_driver_text_has(__builtin_return_address(0)))

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

// With IS_WATCHED only.
static void about_to_go(const void *address, size_t size) {
    if (is_plausible(address, size))
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
    if (gh_config.mmap)
        gh_own_maps_remove((uintptr_t)address, size);
    if (IS_WATCHED())
        about_to_go(address, size);
    return real_munmap()(address, size);
}

static bool is_mappable(int flags, int file) {
    return (flags & MAP_ANONYMOUS) != 0 || fcntl(file, F_GETFD) != -1;
}

GH_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    bool watched = IS_WATCHED();
    if (gh_unlikely((flags & MAP_FIXED) != 0)) {
        if (hits_imported_heap(address, size)) {
            refuse_heap("mmap with MAP_FIXED");
            return MAP_FAILED;
        }
        if (gh_config.mmap)
            gh_own_maps_remove((uintptr_t)address, size);
        if (watched && is_mappable(flags, file))
            about_to_go(address, size);
    }
    void *mapped = real_mmap()(address, size, protection, flags, file, offset);
    if (mapped == MAP_FAILED)
        return mapped;
    // A piece that is here now is of memory that went away unseen.
    if (watched)
        about_to_go(mapped, size);
    if (gh_config.mmap && (flags & (MAP_ANONYMOUS | MAP_PRIVATE)) == (MAP_ANONYMOUS | MAP_PRIVATE))
        gh_own_maps_add((uintptr_t)mapped, size);
    return mapped;
}

// The same function, so that it sees its caller. off_t has 64 bits.
GH_EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int file, off_t offset)
    __attribute__((alias("mmap")));

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
    bool watched = IS_WATCHED();
    if ((watched || gh_config.mmap) && is_plausible(address, gh_max(old_size, 1)) && is_plausible(address, new_size)) {
        if (target == NULL && new_size <= old_size) { // in place
            uintptr_t gone = (uintptr_t)address + gh_align_up(new_size, GH_PAGE_SIZE);
            size_t gone_size = gh_align_up(old_size, GH_PAGE_SIZE) - gh_align_up(new_size, GH_PAGE_SIZE);
            if (gh_config.mmap)
                gh_own_maps_remove(gone, gone_size);
            if (watched)
                about_to_go((void *)gone, gone_size);
            return real_mremap()(address, old_size, new_size, flags, target);
        }
        // Growing in place takes nothing away: the kernel does so when it can, so ask for that first.
        if (target == NULL && old_size != 0 && (flags & ~MREMAP_MAYMOVE) == 0) {
            void *same = real_mremap()(address, old_size, new_size, 0, target);
            if (same != MAP_FAILED || (flags & MREMAP_MAYMOVE) == 0)
                return same;
        }
        if (gh_config.mmap) {
            gh_own_maps_remove((uintptr_t)address, old_size);
            gh_own_maps_remove((uintptr_t)target, target == NULL ? 0 : new_size);
        }
        if (watched) {
            about_to_go(address, old_size);
            if (target != NULL)
                about_to_go(target, new_size);
        }
    }
    void *mapped = real_mremap()(address, old_size, new_size, flags, target);
    if (watched && mapped != MAP_FAILED && mapped != address)
        about_to_go(mapped, new_size);
    return mapped;
}

// Zero-fill by hand, for pages that must stay where they are; `address` is a page's.
static int zero_heap(void *address, size_t size, int advice) {
    const struct gh_region *region = gh_region_find(address);
    uintptr_t end = gh_align_up((uintptr_t)address + size, GH_PAGE_SIZE);
    struct gh_vma vma;
    if (region == NULL || end > region->base + region->size_bytes) {
        errno = ENOMEM; // not all of it is mapped
        return -1;
    }
    for (uintptr_t at = (uintptr_t)address; advice != MADV_FREE && at < end; at = vma.end) {
        if (!gh_vma_find(at, &vma)) // no /proc, or no file may be opened
            return gh_vma_zero_writable(at, end - at) ? 0 : real_madvise()((void *)at, end - at, advice);
        size_t part = gh_min(vma.end, end) - at;
        if (vma.writable)
            memset((void *)at, 0, part);
        else if (!gh_vma_zero_protected(at, part))
            return real_madvise()((void *)at, part, advice);
    }
    return 0; // MADV_FREE allows the old contents
}

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

static bool drops_pages(int advice) {
    return advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED || advice == MADV_FREE || advice == MADV_REMOVE ||
           advice == GH_MADV_GUARD_INSTALL;
}

// Under the import lock, so that no import begins meanwhile.
static int advise_heap(void *address, size_t size, int advice) {
    if (!gh_gpu_try_enter())
        return real_madvise()(address, size, advice);
    int result;
    if (!hits_imported_heap(address, size))
        result = real_madvise()(address, size, advice);
    else if (advice == GH_MADV_GUARD_INSTALL)
        result = refuse_heap("MADV_GUARD_INSTALL");
    else
        result = zero_heap(address, size, advice);
    int saved_errno = errno;
    gh_gpu_unlock();
    errno = saved_errno;
    return result;
}

GH_EXPORT int madvise(void *address, size_t size, int advice) {
    if (gh_likely(!drops_pages(advice)))
        return real_madvise()(address, size, advice);
    if (gh_unlikely(advice != MADV_REMOVE && gh_region_find(address) != NULL) && !gh_gpu_is_orphan())
        return advise_heap(address, size, advice);
    if (gh_likely(!IS_WATCHED()) || !is_plausible(address, size))
        return real_madvise()(address, size, advice);
    return gh_pieces_around((uintptr_t)address, (uintptr_t)address + size, real_madvise(), advice);
}

// The page that holds the new end stays.
static void break_goes_to(uintptr_t end) {
    uintptr_t now = (uintptr_t)real_sbrk()(0);
    uintptr_t gone = gh_align_up(end, GH_PAGE_SIZE);
    if (gone < now && end >= lowest_break)
        about_to_go((void *)gone, now - gone);
}

GH_EXPORT int brk(void *end) {
    if (IS_WATCHED())
        break_goes_to((uintptr_t)end);
    return real_brk()(end);
}

GH_EXPORT void *sbrk(intptr_t increment) {
    if (gh_unlikely(increment < 0) && IS_WATCHED())
        break_goes_to((uintptr_t)real_sbrk()(0) + (uintptr_t)increment);
    return real_sbrk()(increment);
}

// A segment's inode is its id, and it is as long as the system says, in one mapping or several
// when its protection was changed in parts. Another mapping of shared memory is no segment: the
// kernel will refuse.
GH_EXPORT int shmdt(const void *address) {
    struct gh_vma vma;
    struct shmid_ds segment;
    if (IS_WATCHED() && gh_vma_find((uintptr_t)address, &vma) && !vma.is_private &&
        vma.start == (uintptr_t)address && shmctl((int)vma.inode, IPC_STAT, &segment) == 0)
        about_to_go(address, segment.shm_segsz);
    return real_shmdt()(address);
}
