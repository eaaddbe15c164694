// SPDX-License-Identifier: MIT
//
// Which scope the commands of a command list use, for drivers whose imports belong to a context:
// a list does not tell its context in old drivers.
#ifndef GH_LEVEL_ZERO_LIST_SCOPE_H
#define GH_LEVEL_ZERO_LIST_SCOPE_H

#include "driver.h"

// False: no memory to remember it.
GH_HIDDEN bool gh_ze_list_made(ze_command_list_handle_t list, unsigned scope);
GH_HIDDEN void gh_ze_list_gone(ze_command_list_handle_t list);

// GH_NO_SCOPE for a list that was not seen being made.
GH_HIDDEN unsigned gh_ze_list_scope(ze_command_list_handle_t list);

GH_HIDDEN void gh_ze_list_fork_child(void);

#endif
