// SPDX-License-Identifier: MIT
//
// The functions of include/gpuhost.h, which has their contracts.
#define GPUHOST_API __attribute__((visibility("default"), used))
#include "include/gpuhost.h"

#include <errno.h>

#include "gpu.h"
#include "lifecycle.h"
#include "stats.h"

const char *gpuhost_version(void) {
    return GH_VERSION;
}

int gpuhost_active(void) {
    return gh_is_serving() ? 1 : 0;
}

int gpuhost_is_visible(const void *pointer, size_t size_bytes) {
    uint64_t open = gh_gpu_open_scopes();
    if (open == 0)
        return 0;
    for (unsigned scope = 0; scope < GH_SCOPE_MAX; scope++) {
        if ((open >> scope & 1) != 0 && !gh_gpu_covers(scope, pointer, gh_max(size_bytes, 1)))
            return 0;
    }
    return 1;
}

int gpuhost_stats(struct gpuhost_stats *out) {
    if (out == NULL)
        return -1;
    int saved_errno = errno;
    gh_stats_collect(out);
    errno = saved_errno;
    return 0;
}
