// SPDX-License-Identifier: MIT
//
// Thunks (thunks.S): functions that look whether anything is pending, bring it if so, and jump to
// the driver's function with all arguments as they came, whatever its signature. Nothing pending:
// one compare and two jumps.
#ifndef GH_LEVEL_ZERO_THUNKS_H
#define GH_LEVEL_ZERO_THUNKS_H

#include "driver.h"

// The layout of a slot's thunks; thunks.S has the total.
#define GH_ZE_THUNKS_LIST 96u
#define GH_ZE_THUNKS_LIST_EXP 32u
#define GH_ZE_THUNKS_QUEUE 32u
#define GH_ZE_THUNKS_KERNEL 48u
#define GH_ZE_THUNKS_KERNEL_EXP 16u
#define GH_ZE_THUNKS_PER_SLOT 224u

// NULL when this table has no thunks or not so many: the entry then stays the driver's.
GH_HIDDEN gh_ze_any_fn gh_ze_thunk(unsigned slot, unsigned table, unsigned place);
GH_HIDDEN void gh_ze_thunk_set(unsigned slot, unsigned table, unsigned place, gh_ze_any_fn real);

// A thunk for a function that the driver hands out by name. NULL: all are in use.
GH_HIDDEN gh_ze_any_fn gh_ze_thunk_for_name(unsigned slot, const char *name, gh_ze_any_fn real);

// Called by the thunks when something is pending.
GH_HIDDEN void gh_ze_thunk_slow(void);

#endif
