// SPDX-License-Identifier: MIT
//
// fork. Only the pool's lock is taken around it, inside jemalloc's; the import lock is not: its
// holder may be in a driver that mallocs, and jemalloc's locks are held by then. The child drops
// everything that the import lock protects.
#ifndef GH_PRELOAD_FORK_H
#define GH_PRELOAD_FORK_H

#include "allocator/util.h"

// Before jemalloc boots (see lifecycle.c).
GH_HIDDEN void gh_fork_register(void);

#endif
