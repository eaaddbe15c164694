// SPDX-License-Identifier: MIT
//
// How many bytes may be imported: GPUHOST_LIMIT, or a part of what the machine and the cgroup
// allow. Imported memory cannot be swapped or purged, so it must leave room for the rest.
#ifndef GH_PRELOAD_MEMORY_LIMIT_H
#define GH_PRELOAD_MEMORY_LIMIT_H

#include "allocator/util.h"

// In bytes. The first call reads /proc and /sys, so: at the door, not inside malloc. Any thread.
GH_HIDDEN uint64_t gh_memory_limit_bytes(void);

#endif
