// SPDX-License-Identifier: MIT
//
// The next definition of a function that we interpose. Resolved by the real dlsym, which itself
// is found by dlvsym, because dlsym is ours.
#ifndef GH_PRELOAD_REAL_SYMBOLS_H
#define GH_PRELOAD_REAL_SYMBOLS_H

#include "allocator/util.h"

// Any thread, after start-up, not inside a jemalloc hook. NULL when there is none.
GH_HIDDEN void *gh_real_symbol(const char *name);

// The real dlsym and dlopen. Never NULL: without them the process cannot go on.
GH_HIDDEN void *gh_real_dlsym(void);
GH_HIDDEN void *gh_real_dlopen(void);

#endif
