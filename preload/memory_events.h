// SPDX-License-Identifier: MIT
//
// The interposed mapping functions (memory_events.c are their definitions).
#ifndef GH_PRELOAD_MEMORY_EVENTS_H
#define GH_PRELOAD_MEMORY_EVENTS_H

#include "allocator/util.h"

// In the constructor: the allocator's own unmapping goes through libc's functions from here on.
GH_HIDDEN void gh_memory_events_start(void);

#endif
