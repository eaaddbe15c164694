// SPDX-License-Identifier: MIT
//
// Forwarding for processes that we stay out of (aside.h). glibc's entries are linked by name: they
// are there before anything could be looked up.
#include "aside.h"

#include <dlfcn.h>

#include "real_symbols.h"

// The C library's own heap, whoever interposes malloc.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *pointer, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *pointer);

struct gh_aside_ops gh_aside = { __libc_malloc, __libc_calloc, __libc_realloc, __libc_memalign, __libc_free };

// Whose malloc can be called from the start: the address sanitizers' can. The others' crash when
// called while they initialise, so their programs get glibc's heap, and all but heap checks.
static const struct {
    const char *mark;
    bool forward;
} runtimes[] = {
    { "__asan_init", true },  { "__hwasan_init", true }, { "__lsan_init", true },
    { "__tsan_init", false }, { "__msan_init", false },
};

bool gh_aside_find_sanitizer(void) {
    void *(*find)(void *, const char *) = (void *(*)(void *, const char *))gh_real_dlsym();
    size_t count = sizeof(runtimes) / sizeof(runtimes[0]);
    size_t i = 0;
    while (i < count && find(RTLD_DEFAULT, runtimes[i].mark) == NULL)
        i++;
    if (i == count)
        return false;
    if (!runtimes[i].forward)
        return true;
    struct gh_aside_ops next = {
        (void *(*)(size_t))gh_real_symbol("malloc"),
        (void *(*)(size_t, size_t))gh_real_symbol("calloc"),
        (void *(*)(void *, size_t))gh_real_symbol("realloc"),
        (void *(*)(size_t, size_t))gh_real_symbol("memalign"),
        (void (*)(void *))gh_real_symbol("free"),
    };
    if (next.malloc != NULL && next.calloc != NULL && next.realloc != NULL && next.memalign != NULL && next.free != NULL)
        gh_aside = next;
    return true;
}
