// SPDX-License-Identifier: MIT
//
// The kernel's memory calls, and nothing else: no policy, no state but a hint. Every function
// keeps errno, because free() must not change it (glibc promises that since 2.33).
#ifndef GH_ALLOCATOR_OS_MEM_H
#define GH_ALLOCATOR_OS_MEM_H

#include "util.h"

// Maps `size_bytes` readable, writable, private, zero, at a multiple of `alignment` (a power of
// two), followed by `guard_bytes` that nobody can touch and nothing else can be mapped over.
// NULL when the kernel says no.
GH_HIDDEN void *gh_os_map(size_t size_bytes, size_t alignment, size_t guard_bytes);

// Would the kernel map so much now? For start-up, where jemalloc does not look at every answer.
GH_HIDDEN bool gh_os_has_room(size_t size_bytes);

// For tables: reserves no swap, is not dumped with core files, costs only what is touched.
GH_HIDDEN void *gh_os_map_table(size_t size_bytes);

GH_HIDDEN void gh_os_unmap(void *address, size_t size_bytes);

// Makes the first `guard_bytes` of the range untouchable and unmaps the rest: pages that nobody has
// used, so nobody who watches memory needs to know. By system calls: for use with a lock held.
GH_HIDDEN void gh_os_cut(void *address, size_t size_bytes, size_t guard_bytes);

// Gives the pages back; they read as zero afterwards. False when the kernel refused: then the
// contents are unchanged.
GH_HIDDEN bool gh_os_purge(void *address, size_t size_bytes);

// Who gives memory back. The kernel's calls until the glue names libc's functions, which those
// who watch for memory that goes away (caches of registered memory) may have patched.
struct gh_os_release_ops {
    int (*unmap)(void *address, size_t size_bytes);
    int (*advise)(void *address, size_t size_bytes, int advice);
};
GH_HIDDEN void gh_os_set_release_ops(const struct gh_os_release_ops *ops); // before threads exist
GH_HIDDEN struct gh_os_release_ops gh_os_release_by_kernel(void); // the old ones; until set again

// What the private jemalloc calls instead of libc's functions of these names, which are ours.
GH_HIDDEN void *gh_os_mmap(void *address, size_t size_bytes, int protection, int flags, int file, long offset);
GH_HIDDEN int gh_os_munmap(void *address, size_t size_bytes);
GH_HIDDEN int gh_os_madvise(void *address, size_t size_bytes, int advice);

// The environment and the links that it sees: none.
GH_HIDDEN char *gh_os_no_variable(const char *name);
GH_HIDDEN char *gh_os_no_secure_variable(const char *name);
GH_HIDDEN long gh_os_no_link(const char *path, char *buffer, size_t size_bytes);

GH_HIDDEN void gh_os_advise_hugepage(void *address, size_t size_bytes);

#endif
