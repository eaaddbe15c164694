// SPDX-License-Identifier: MIT
//
// What the GPU side tells the user when something is refused: each once, or each time with
// GPUHOST_LOG=info. May be called under the import lock.
#ifndef GH_PRELOAD_GPU_LINES_H
#define GH_PRELOAD_GPU_LINES_H

#include "allocator/util.h"

GH_HIDDEN void gh_gpu_say_refused(const char *backend, size_t size, const char *why);
GH_HIDDEN void gh_gpu_say_limit(uint64_t limit);
GH_HIDDEN void gh_gpu_say_kept(void);

#endif
