// SPDX-License-Identifier: MIT
//
// The Level Zero backend: imports and releases by the memmap extension.
#ifndef GH_LEVEL_ZERO_BACKEND_H
#define GH_LEVEL_ZERO_BACKEND_H

#include "../gpu_backend.h"
#include "driver.h"

// What a scope's backend functions are given.
struct gh_ze_scope {
    struct gh_ze_driver *driver;
    ze_context_handle_t context;
};

extern GH_HIDDEN const struct gh_gpu_backend_ops gh_ze_memmap_ops;
extern GH_HIDDEN const struct gh_gpu_backend_ops gh_ze_system_ops; // nothing needs an import

// The scope data for a context, until it is freed. NULL: 64 are in use. Under the attach lock.
GH_HIDDEN struct gh_ze_scope *gh_ze_scope_data(struct gh_ze_driver *driver, ze_context_handle_t context);
GH_HIDDEN void gh_ze_scope_data_free(struct gh_ze_scope *scope);

enum gh_ze_answer { GH_ZE_NO, GH_ZE_YES, GH_ZE_FAILED };

// Does the driver know the pointer, in this context?
GH_HIDDEN enum gh_ze_answer gh_ze_is_known(struct gh_ze_driver *driver, ze_context_handle_t context,
                                           const void *pointer);

#endif
