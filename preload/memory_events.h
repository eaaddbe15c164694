// SPDX-License-Identifier: MIT
//
// The interposed mapping functions (memory_events.c are their definitions).
#ifndef GH_PRELOAD_MEMORY_EVENTS_H
#define GH_PRELOAD_MEMORY_EVENTS_H

#include "allocator/util.h"

// At the end of start-up: looks the real functions up (later, a look-up could meet a lock of ld.so
// that the caller's waiter holds), and lets the allocator's own unmapping go through libc's. Weak:
// programs that link the code without its exports have none of it.
GH_HIDDEN __attribute__((weak)) void gh_memory_events_start(void);

#endif
