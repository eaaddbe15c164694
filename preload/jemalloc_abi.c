// SPDX-License-Identifier: MIT
//
// jemalloc's own interface, for programs that are linked with a jemalloc and call it beside
// malloc (redis does): without these, mallocx would take from one heap and free give to another.
//
// Questions are answered by the jemalloc inside. What would change where memory comes from
// (arenas, hooks, their decay) is refused with EPERM: the regions depend on it.
#include <errno.h>
#include <string.h>

#include "allocator/je_api.h"
#include "allocator/region.h"
#include "export.h"
#include "gate.h"
#include "jemalloc_abi.h"
#include "lifecycle.h"

// Controls that may be written to or run: they concern caches and counters only.
static const char *const writable[] = { "epoch", "thread.tcache.", "tcache.", "stats.", "thread.peak." };

static bool may_write(const char *name) {
    for (size_t i = 0; i < sizeof(writable) / sizeof(writable[0]); i++) {
        if (strncmp(name, writable[i], strlen(writable[i])) == 0)
            return true;
    }
    // Purging an arena gives pages back to the pool, which decides; "arena.<i>.purge", ".decay".
    const char *last = strrchr(name, '.');
    return strncmp(name, "arena.", 6) == 0 && (strcmp(last, ".purge") == 0 || strcmp(last, ".decay") == 0);
}

GH_EXPORT int mallctl(const char *name, void *old, size_t *old_length, void *new_value, size_t new_length) {
    if (!gh_is_serving())
        return ENOENT;
    // Controls without old and new values are commands.
    bool writes = new_value != NULL || old == NULL || strcmp(name, "arenas.create") == 0;
    if (writes && !may_write(name))
        return EPERM;
    return gh_je_mallctl(name, old, old_length, new_value, new_length);
}

GH_EXPORT int mallctlnametomib(const char *name, size_t *mib, size_t *mib_length) {
    return gh_is_serving() ? gh_je_mallctlnametomib(name, mib, mib_length) : ENOENT;
}

// A number path does not tell its name, so writing by it is limited to what programs write in
// loops: the statistics epoch.
GH_EXPORT int mallctlbymib(const size_t *mib, size_t mib_length, void *old, size_t *old_length, void *new_value,
                           size_t new_length) {
    if (!gh_is_serving())
        return ENOENT;
    size_t epoch[1];
    size_t epoch_length = 1;
    bool is_epoch = gh_je_mallctlnametomib("epoch", epoch, &epoch_length) == 0 && mib_length == 1 && mib[0] == epoch[0];
    if ((new_value != NULL || old == NULL) && !is_epoch)
        return EPERM;
    return gh_je_mallctlbymib(mib, mib_length, old, old_length, new_value, new_length);
}

GH_EXPORT void malloc_stats_print(void (*write_line)(void *, const char *), void *cookie, const char *options) {
    if (gh_is_serving())
        gh_je_malloc_stats_print(write_line, cookie, options);
}

// An arena that is named in the flags is none that could have been created here: ignored.
#define ARENA_BITS (~(int)((1u << 20) - 1))

static bool is_served(const void *pointer) {
    return gh_region_entry(pointer) != 0;
}

GH_EXPORT void *mallocx(size_t size, int flags) {
    if (!gh_gate_passes(size))
        return gh_allocate(size, (size_t)1 << (flags & 63), (flags & MALLOCX_ZERO) != 0, __builtin_return_address(0));
    return gh_je_mallocx(size == 0 ? 1 : size, flags & ~ARENA_BITS);
}

GH_EXPORT void *rallocx(void *pointer, size_t size, int flags) {
    const struct gh_region *region = gh_region_find(pointer);
    if (region == NULL || region->plain || (!gh_gate_passes(size) && (flags & (MALLOCX_ZERO | 63)) == 0))
        return gh_reallocate(pointer, size, __builtin_return_address(0));
    return gh_je_rallocx(pointer, size, flags & ~ARENA_BITS);
}

GH_EXPORT size_t xallocx(void *pointer, size_t size, size_t extra, int flags) {
    return is_served(pointer) ? gh_je_xallocx(pointer, size, extra, flags & ~ARENA_BITS) : gh_usable_size(pointer);
}

GH_EXPORT size_t sallocx(const void *pointer, int flags) {
    (void)flags;
    return gh_usable_size((void *)(uintptr_t)pointer);
}

GH_EXPORT void dallocx(void *pointer, int flags) {
    (void)flags;
    gh_deallocate(pointer);
}

GH_EXPORT void sdallocx(void *pointer, size_t size, int flags) {
    (void)size;
    (void)flags;
    gh_deallocate(pointer);
}

GH_EXPORT size_t nallocx(size_t size, int flags) {
    return gh_is_serving() ? gh_je_nallocx(size, flags & ~ARENA_BITS) : size;
}
