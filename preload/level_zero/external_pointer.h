// SPDX-License-Identifier: MIT
//
// Intel's older import (zexDriverImportExternalPointer and its companions), which knows nothing
// of the memmap imports: on memory that is imported already it would make a second buffer object.
// Answered from the same tables as wraps.
#ifndef GH_LEVEL_ZERO_EXTERNAL_POINTER_H
#define GH_LEVEL_ZERO_EXTERNAL_POINTER_H

#include "driver.h"

// What zeDriverGetExtensionFunctionAddress answers for `name`: our function, or `real`.
GH_HIDDEN void *gh_ze_external_pointer_function(struct gh_ze_driver *driver, const char *name, void *real);

#endif
