// SPDX-License-Identifier: MIT
//
// Every replaceable operator new and delete, by their mangled names. They are here so that a
// driver's own buffers are seen (its libstdc++ would call malloc, and the caller would be
// libstdc++), and because they are malloc's fast path without a detour.
//
// When memory runs out, the same operator of the caller's own C++ runtime takes over: it tries once
// more, through our malloc, calls its new-handler and throws its bad_alloc. There may be several
// runtimes in a process (libstdc++, libc++, one linked into a plug-in), and only the right one
// has the right handler, and a catch clause for the nothrow forms. This file is compiled so that
// exceptions pass through it.
#include <dlfcn.h>
#include <stdlib.h>

#include "allocator/je_api.h"
#include "allocator/region.h"
#include "driver_text.h"
#include "export.h"
#include "gate.h"
#include "real_symbols.h"

#define CALLER __builtin_return_address(0)

static void *symbol_of_loaded(const char *library, const char *name) {
    void *(*find)(void *, const char *) = (void *(*)(void *, const char *))gh_real_dlsym();
    void *(*open)(const char *, int) = (void *(*)(const char *, int))gh_real_dlopen();
    void *handle = open(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return NULL;
    void *symbol = find(handle, name);
    dlclose(handle); // only the reference that we took: the caller's frame keeps the code loaded
    return symbol;
}

// The operator `name` that the code at `caller` would have without us, or NULL.
static void *operator_without_us(const char *name, const void *ours, const void *caller) {
    Dl_info info;
    void *found = NULL;
    if (dladdr(caller, &info) != 0 && info.dli_fname != NULL)
        found = symbol_of_loaded(info.dli_fname, name);
    if (found == NULL || found == ours) // the program itself, whose scope begins with us
        found = gh_real_symbol(name);
    if (found == NULL)
        found = symbol_of_loaded("libstdc++.so.6", name); // a plug-in brought it
    return found == ours ? NULL : found;
}

// What a driver gets must not come from the heap, which the runtime's second try would ask. A size
// that nobody can serve leaves its handler and its exception.
static size_t size_to_fail(size_t size, const void *caller) {
    return gh_driver_text_has(caller) ? (size_t)PTRDIFF_MAX : size;
}

static inline void *allocate(size_t size, const void *caller) {
    return gh_gate_passes(size) ? gh_je_malloc(size) : gh_allocate(size, 0, false, caller);
}

// Sized forms ignore the size: programs get it wrong, and glibc's free never looked at it.
static inline void deallocate(void *pointer) {
    if (gh_unlikely(!gh_is_heap_block(pointer))) {
        gh_deallocate(pointer);
        return;
    }
    gh_je_free(pointer);
}

// Our own address is taken from a hidden name: the exported one may mean somebody in front of us.
#define NEW(mangled, parameters, arguments, first_try, nothrow)                                                        \
    GH_EXPORT void *gh_new_##mangled parameters __asm__(#mangled);                                                     \
    extern __typeof__(gh_new_##mangled) gh_own_##mangled __attribute__((alias(#mangled), visibility("hidden")));       \
    GH_EXPORT void *gh_new_##mangled parameters {                                                                      \
        void *block = first_try;                                                                                       \
        if (gh_likely(block != NULL))                                                                                  \
            return block;                                                                                              \
        void *(*real) parameters =                                                                                     \
            (void *(*) parameters)operator_without_us(#mangled, (void *)gh_own_##mangled, CALLER);                     \
        size = size_to_fail(size, CALLER);                                                                             \
        if (real != NULL)                                                                                              \
            return real arguments;                                                                                     \
        if (nothrow)                                                                                                   \
            return NULL;                                                                                               \
        abort(); /* no C++ runtime: nobody could catch */                                                              \
    }
#define DELETE(mangled, parameters)                                                                                    \
    GH_EXPORT void gh_delete_##mangled parameters __asm__(#mangled);                                                   \
    GH_EXPORT void gh_delete_##mangled parameters {                                                                    \
        deallocate(pointer);                                                                                           \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define PLAIN allocate(size, CALLER)
#define ALIGNED gh_allocate(size, alignment, false, CALLER)

NEW(_Znwm, (size_t size), (size), PLAIN, false)
NEW(_Znam, (size_t size), (size), PLAIN, false)
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), (size, tag), PLAIN, true)
NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), (size, tag), PLAIN, true)
NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), (size, alignment), ALIGNED, false)
NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), (size, alignment), ALIGNED, false)
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *tag), (size, alignment, tag),
    ALIGNED, true)
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *tag), (size, alignment, tag),
    ALIGNED, true)

DELETE(_ZdlPv, (void *pointer))
DELETE(_ZdaPv, (void *pointer))
DELETE(_ZdlPvm, (void *pointer, size_t size))
DELETE(_ZdaPvm, (void *pointer, size_t size))
DELETE(_ZdlPvRKSt9nothrow_t, (void *pointer, const void *tag))
DELETE(_ZdaPvRKSt9nothrow_t, (void *pointer, const void *tag))
DELETE(_ZdlPvSt11align_val_t, (void *pointer, size_t alignment))
DELETE(_ZdaPvSt11align_val_t, (void *pointer, size_t alignment))
DELETE(_ZdlPvmSt11align_val_t, (void *pointer, size_t size, size_t alignment))
DELETE(_ZdaPvmSt11align_val_t, (void *pointer, size_t size, size_t alignment))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *pointer, size_t alignment, const void *tag))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *pointer, size_t alignment, const void *tag))
