// SPDX-License-Identifier: MIT
//
// Putting our entries into a driver's function tables.
#ifndef GH_LEVEL_ZERO_TABLE_H
#define GH_LEVEL_ZERO_TABLE_H

#include "driver.h"

// The function that the loader gets for a table of the driver in `slot`.
GH_HIDDEN gh_ze_get_table_fn gh_ze_table_getter(unsigned slot, unsigned table);

#endif
