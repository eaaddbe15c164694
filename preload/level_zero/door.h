// SPDX-License-Identifier: MIT
//
// The doors: the driver functions that we stand in. Each exists once for each driver slot (the
// arrays below), because the tables of two drivers must not mix; all logic is in functions that
// get the driver as their first argument.
//
// A thread in a door holds no lock of malloc's and none of the driver's.
#ifndef GH_LEVEL_ZERO_DOOR_H
#define GH_LEVEL_ZERO_DOOR_H

#include "driver.h"

extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_driver_get_properties[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_driver_get_function[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_driver_default_context[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_runtime_default_context[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_context_create[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_context_create_ex[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_context_destroy[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_make_resident[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_evict[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_alloc_host[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_free[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_free_ext[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_get_properties[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_get_range[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_list_create[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_list_create_immediate[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_list_destroy[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_append_copy[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_append_copy_from[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_append_copy_region[GH_ZE_DRIVER_MAX];
extern GH_HIDDEN const gh_ze_any_fn gh_ze_door_append_fill[GH_ZE_DRIVER_MAX];

// Defines gh_ze_door_NAME: functions with `parameters` that call gh_NAME(driver, ...). The
// parentheses of `parameters` and `arguments` are part of them.
#define GH_DOOR_UNWRAP(...) __VA_ARGS__
#define GH_DOOR_SLOT(slot, result, name, parameters, arguments)                                                        \
    static result ZE_APICALL door_##name##_##slot(GH_DOOR_UNWRAP parameters) {                                         \
        return gh_##name(&gh_ze_drivers[slot] GH_DOOR_UNWRAP arguments);                                               \
    }
#define GH_DOOR_ENTRY(slot, name) (gh_ze_any_fn) door_##name##_##slot
// `arguments` begins with a comma, so that there may be none.
#define GH_DOOR(result, name, parameters, arguments)                                                                   \
    GH_DOOR_SLOT(0, result, name, parameters, arguments)                                                               \
    GH_DOOR_SLOT(1, result, name, parameters, arguments)                                                               \
    GH_DOOR_SLOT(2, result, name, parameters, arguments)                                                               \
    GH_DOOR_SLOT(3, result, name, parameters, arguments)                                                               \
    GH_DOOR_SLOT(4, result, name, parameters, arguments)                                                               \
    GH_DOOR_SLOT(5, result, name, parameters, arguments)                                                               \
    GH_DOOR_SLOT(6, result, name, parameters, arguments)                                                               \
    GH_DOOR_SLOT(7, result, name, parameters, arguments)                                                               \
    const gh_ze_any_fn gh_ze_door_##name[GH_ZE_DRIVER_MAX] = {                                                         \
        GH_DOOR_ENTRY(0, name), GH_DOOR_ENTRY(1, name), GH_DOOR_ENTRY(2, name), GH_DOOR_ENTRY(3, name),                \
        GH_DOOR_ENTRY(4, name), GH_DOOR_ENTRY(5, name), GH_DOOR_ENTRY(6, name), GH_DOOR_ENTRY(7, name),                \
    };

#endif
