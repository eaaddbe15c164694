// SPDX-License-Identifier: MIT
//
// Small things every file needs: page arithmetic, branch hints, the fatal error. Header only
// but for gh_fatal (os_mem.c). Usable at start-up, inside jemalloc hooks and after fork.
#ifndef GH_ALLOCATOR_UTIL_H
#define GH_ALLOCATOR_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GH_PAGE_SHIFT 12u
#define GH_PAGE_SIZE ((size_t)1 << GH_PAGE_SHIFT)
#define GH_PAGE_MASK (GH_PAGE_SIZE - 1)

#define GH_KIB ((size_t)1 << 10)
#define GH_MIB ((size_t)1 << 20)
#define GH_GIB ((size_t)1 << 30)

#define gh_likely(x) __builtin_expect(!!(x), 1)
#define gh_unlikely(x) __builtin_expect(!!(x), 0)

#define GH_HIDDEN __attribute__((visibility("hidden")))

// Our thread-local variables are few and read on hot paths: one instruction each.
#define GH_TLS _Thread_local __attribute__((tls_model("initial-exec")))

static inline bool gh_is_power_of_two(size_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

// Rounds up to a power-of-two alignment; the caller has excluded overflow.
static inline size_t gh_align_up(size_t value, size_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

static inline size_t gh_align_down(size_t value, size_t alignment) {
    return value & ~(alignment - 1);
}

static inline size_t gh_min(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t gh_max(size_t a, size_t b) {
    return a > b ? a : b;
}

// A broken invariant: writes one line and aborts. Never for anything a user can cause.
_Noreturn GH_HIDDEN void gh_fatal(const char *constant_text);

#endif
