// SPDX-License-Identifier: MIT
//
// Making and freeing a wrap, for the doors that do either (zeMemAllocHost, zeMemFree, and the
// older import functions).
#ifndef GH_LEVEL_ZERO_WRAP_H
#define GH_LEVEL_ZERO_WRAP_H

#include "../wraps.h"
#include "driver.h"

// The range is not empty and does not wrap round; it need not be aligned. Calls the driver when
// no import covers it yet. No lock held.
GH_HIDDEN ze_result_t gh_ze_wrap(struct gh_ze_driver *driver, unsigned scope, ze_context_handle_t context,
                                 void *pointer, size_t size, bool read_only);

// False when no wrap starts at the pointer. A wrap of this context goes before those of others.
GH_HIDDEN bool gh_ze_unwrap(unsigned scope, ze_context_handle_t context, void *pointer);

// After a wrap was taken out of the table.
GH_HIDDEN void gh_ze_wrap_ended(const struct gh_wrap *wrap);

#endif
