// SPDX-License-Identifier: MIT
//
// What a GPU API has to give: one small table. Its functions are called under the import lock
// only, never inside malloc, never after fork in a child; they may malloc, block and start
// threads, as drivers do.
#ifndef GH_PRELOAD_GPU_BACKEND_H
#define GH_PRELOAD_GPU_BACKEND_H

#include "allocator/util.h"

struct gh_gpu_backend_ops {
    const char *name;

    // True when imported pages must stay in place (no purge, no unmap) until the release.
    bool pins;

    // Makes [base, base + size) visible in the scope, for reading only if so asked and possible.
    // Returns 0 or an errno; `*why_out` is then a constant text for the log. ENOTSUP: this scope
    // will never take any import.
    int (*import)(void *scope_data, void *base, size_t size_bytes, bool read_only, const char **why_out);

    // Undoes one import, named by the base it was made with. Returns 0 or an errno.
    int (*release)(void *scope_data, void *base, size_t size_bytes);
};

#endif
