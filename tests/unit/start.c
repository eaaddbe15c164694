// SPDX-License-Identifier: MIT
//
// Boots the heap in programs that link the library's parts: before jemalloc's own constructor,
// which would boot it without our options. A sanitizer in the process does not matter here,
// since these programs' malloc is not ours.
#include "allocator/util.h"
#include "lifecycle.h"

bool __wrap_gh_aside_find_sanitizer(void);

bool __wrap_gh_aside_find_sanitizer(void) {
    return false;
}

__attribute__((constructor(101))) static void start(void) {
    gh_start();
}
