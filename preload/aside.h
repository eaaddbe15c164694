// SPDX-License-Identifier: MIT
//
// The malloc of a process that we stay out of: glibc's own, or a sanitizer's.
#ifndef GH_PRELOAD_ASIDE_H
#define GH_PRELOAD_ASIDE_H

#include "allocator/util.h"

struct gh_aside_ops {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *pointer, size_t size);
    void *(*memalign)(size_t alignment, size_t size);
    void (*free)(void *pointer);
};

// Constant after start-up.
extern GH_HIDDEN struct gh_aside_ops gh_aside;

// Is there a sanitizer's runtime in the process? Then gh_aside is its malloc. At start-up only.
GH_HIDDEN bool gh_aside_find_sanitizer(void);

#endif
