// SPDX-License-Identifier: MIT
//
// Every replaceable operator new and delete, by their mangled names. They are here so that a
// driver's own buffers are seen (its libstdc++ would call malloc, and the caller would be
// libstdc++), and because they are malloc's fast path without a detour.
//
// When memory runs out, the new-handler is called and std::bad_alloc thrown, by the libstdc++
// that is in the process; this file is compiled so that exceptions pass through it.
#include <dlfcn.h>
#include <stdlib.h>

#include "allocator/je_api.h"
#include "allocator/region.h"
#include "export.h"
#include "gate.h"
#include "real_symbols.h"

#define CALLER __builtin_return_address(0)

typedef void (*handler_fn)(void);

static void *libstdcxx_symbol(const char *name) {
    void *(*find)(void *, const char *) = (void *(*)(void *, const char *))gh_real_dlsym();
    void *(*open)(const char *, int) = (void *(*)(const char *, int))gh_real_dlopen();
    void *symbol = find(RTLD_DEFAULT, name);
    if (symbol != NULL)
        return symbol;
    void *library = open("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD); // a plug-in may have brought it
    return library == NULL ? NULL : find(library, name);
}

// The C++ rule for a failed allocation: ask the new-handler until it gives up, then throw.
static void *retry(size_t size, size_t alignment, bool nothrow, const void *caller) {
    for (;;) {
        handler_fn (*get_handler)(void) = (handler_fn(*)(void))libstdcxx_symbol("_ZSt15get_new_handlerv");
        handler_fn handler = get_handler == NULL ? NULL : get_handler();
        if (handler == NULL)
            break;
        handler(); // may throw; for the nothrow forms libstdc++ would turn that into NULL
        void *block = gh_allocate(size, alignment, false, caller);
        if (block != NULL)
            return block;
    }
    if (nothrow)
        return NULL;
    void (*throw_bad_alloc)(void) = (void (*)(void))libstdcxx_symbol("_ZSt17__throw_bad_allocv");
    if (throw_bad_alloc != NULL)
        throw_bad_alloc();
    abort(); // a C++ runtime of another kind: what std::terminate would do
}

static inline void *allocate(size_t size, bool nothrow, const void *caller) {
    void *block = gh_gate_passes(size) ? gh_je_malloc(size) : gh_allocate(size, 0, false, caller);
    return gh_likely(block != NULL) ? block : retry(size, 0, nothrow, caller);
}

static inline void *allocate_aligned(size_t size, size_t alignment, bool nothrow, const void *caller) {
    void *block = gh_allocate(size, alignment, false, caller);
    return gh_likely(block != NULL) ? block : retry(size, alignment, nothrow, caller);
}

// Sized forms ignore the size: programs get it wrong, and glibc's free never looked at it.
static inline void deallocate(void *pointer) {
    if (gh_likely((int16_t)gh_region_entry(pointer) > 0))
        gh_je_free(pointer);
    else
        gh_deallocate(pointer);
}

#define NEW(mangled, nothrow_parameter, nothrow)                                                                       \
    GH_EXPORT void *gh_new_##mangled nothrow_parameter __asm__(#mangled);                                              \
    GH_EXPORT void *gh_new_##mangled nothrow_parameter {                                                               \
        return allocate(size, nothrow, CALLER);                                                                        \
    }
#define NEW_ALIGNED(mangled, nothrow_parameter, nothrow)                                                               \
    GH_EXPORT void *gh_new_##mangled nothrow_parameter __asm__(#mangled);                                              \
    GH_EXPORT void *gh_new_##mangled nothrow_parameter {                                                               \
        return allocate_aligned(size, alignment, nothrow, CALLER);                                                     \
    }
#define DELETE(mangled, parameters)                                                                                    \
    GH_EXPORT void gh_delete_##mangled parameters __asm__(#mangled);                                                   \
    GH_EXPORT void gh_delete_##mangled parameters {                                                                    \
        deallocate(pointer);                                                                                           \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"

NEW(_Znwm, (size_t size), false)
NEW(_Znam, (size_t size), false)
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), true)
NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), true)
NEW_ALIGNED(_ZnwmSt11align_val_t, (size_t size, size_t alignment), false)
NEW_ALIGNED(_ZnamSt11align_val_t, (size_t size, size_t alignment), false)
NEW_ALIGNED(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *tag), true)
NEW_ALIGNED(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *tag), true)

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
