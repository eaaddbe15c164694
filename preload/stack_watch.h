// SPDX-License-Identifier: MIT
//
// Stacks that were wrapped: glibc unmaps or reuses a thread's stack without a call that we see,
// so the thread itself tells when it ends.
#ifndef GH_PRELOAD_STACK_WATCH_H
#define GH_PRELOAD_STACK_WATCH_H

#include "allocator/util.h"

// After [start, end) was covered by pieces: when it lies on the calling thread's stack, its
// pieces are released when the thread ends. At the door, no lock held; may malloc.
GH_HIDDEN void gh_stack_watch(uintptr_t start, uintptr_t end);

#endif
