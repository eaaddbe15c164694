// SPDX-License-Identifier: MIT
//
// Finds real functions (real_symbols.h). The versions are glibc's for x86-64: since 2.34 the
// functions live in libc.so under a new version, before that in libdl.so under the oldest.
#include "real_symbols.h"

#include <dlfcn.h>
#include <stdatomic.h>

static void *find_versioned(const char *name) {
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.34");
    return found != NULL ? found : dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5");
}

static void *find_once(_Atomic(void *) *cache, const char *name) {
    void *found = atomic_load_explicit(cache, memory_order_acquire);
    if (gh_unlikely(found == NULL)) {
        found = find_versioned(name);
        if (found == NULL)
            gh_fatal("the C library has no dlsym or no dlopen");
        atomic_store_explicit(cache, found, memory_order_release);
    }
    return found;
}

void *gh_real_dlsym(void) {
    static _Atomic(void *) cache;
    return find_once(&cache, "dlsym");
}

void *gh_real_dlopen(void) {
    static _Atomic(void *) cache;
    return find_once(&cache, "dlopen");
}

void *gh_real_symbol(const char *name) {
    void *(*real)(void *, const char *) = (void *(*)(void *, const char *))gh_real_dlsym();
    return real(RTLD_NEXT, name);
}
