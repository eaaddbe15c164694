// SPDX-License-Identifier: MIT
//
// Edits function tables (table.h). Functions with a door of their own get it by their place in
// the table; every other function of the command list, queue and kernel tables gets a thunk that
// brings pending imports and jumps on, so functions that are newer than the installed header are
// behind the door too. Tables only ever grow at their end, which makes places stable.
#include "table.h"

#include <string.h>

#include "door.h"
#include "thunks.h"

#define PLACE(type, member) (offsetof(type, member) / sizeof(gh_ze_any_fn))

struct door_entry {
    uint8_t table;
    uint8_t place;
    const gh_ze_any_fn *doors; // one for each slot
};

// Places of functions that the oldest header lacks.
#define PLACE_DRIVER_GET_DEFAULT_CONTEXT 8
#define PLACE_RUNTIME_GET_DEFAULT_CONTEXT 3

#define DOOR(table, type, member, name) { table, PLACE(type, member), gh_ze_door_##name }

static const struct door_entry door_entries[] = {
    DOOR(GH_ZE_TABLE_DRIVER, ze_driver_dditable_t, pfnGetProperties, driver_get_properties),
    DOOR(GH_ZE_TABLE_DRIVER, ze_driver_dditable_t, pfnGetExtensionFunctionAddress, driver_get_function),
    { GH_ZE_TABLE_DRIVER, PLACE_DRIVER_GET_DEFAULT_CONTEXT, gh_ze_door_driver_default_context },
    { GH_ZE_TABLE_RUNTIME, PLACE_RUNTIME_GET_DEFAULT_CONTEXT, gh_ze_door_runtime_default_context },
    DOOR(GH_ZE_TABLE_CONTEXT, ze_context_dditable_t, pfnCreate, context_create),
    DOOR(GH_ZE_TABLE_CONTEXT, ze_context_dditable_t, pfnCreateEx, context_create_ex),
    DOOR(GH_ZE_TABLE_CONTEXT, ze_context_dditable_t, pfnDestroy, context_destroy),
    DOOR(GH_ZE_TABLE_CONTEXT, ze_context_dditable_t, pfnMakeMemoryResident, make_resident),
    DOOR(GH_ZE_TABLE_CONTEXT, ze_context_dditable_t, pfnEvictMemory, evict),
    DOOR(GH_ZE_TABLE_MEM, ze_mem_dditable_t, pfnAllocHost, alloc_host),
    DOOR(GH_ZE_TABLE_MEM, ze_mem_dditable_t, pfnFree, free),
    DOOR(GH_ZE_TABLE_MEM, ze_mem_dditable_t, pfnFreeExt, free_ext),
    DOOR(GH_ZE_TABLE_MEM, ze_mem_dditable_t, pfnGetAllocProperties, get_properties),
    DOOR(GH_ZE_TABLE_MEM, ze_mem_dditable_t, pfnGetAddressRange, get_range),
    DOOR(GH_ZE_TABLE_COMMAND_LIST, ze_command_list_dditable_t, pfnCreate, list_create),
    DOOR(GH_ZE_TABLE_COMMAND_LIST, ze_command_list_dditable_t, pfnCreateImmediate, list_create_immediate),
    DOOR(GH_ZE_TABLE_COMMAND_LIST, ze_command_list_dditable_t, pfnDestroy, list_destroy),
    DOOR(GH_ZE_TABLE_COMMAND_LIST, ze_command_list_dditable_t, pfnAppendMemoryCopy, append_copy),
    DOOR(GH_ZE_TABLE_COMMAND_LIST, ze_command_list_dditable_t, pfnAppendMemoryCopyFromContext, append_copy_from),
    DOOR(GH_ZE_TABLE_COMMAND_LIST, ze_command_list_dditable_t, pfnAppendMemoryCopyRegion, append_copy_region),
    DOOR(GH_ZE_TABLE_COMMAND_LIST, ze_command_list_dditable_t, pfnAppendMemoryFill, append_fill),
};

static gh_ze_any_fn replacement(const struct gh_ze_driver *driver, unsigned table, unsigned place) {
    for (size_t i = 0; i < sizeof(door_entries) / sizeof(door_entries[0]); i++) {
        if (door_entries[i].table == table && door_entries[i].place == place)
            return door_entries[i].doors[driver->slot];
    }
    return gh_ze_thunk(driver->slot, table, place);
}

// The driver fills a buffer of ours first: what it writes there for this version is what the
// caller's table has room for, whatever header either was built with.
static ze_result_t get_table(unsigned slot, unsigned table, ze_api_version_t version, gh_ze_any_fn *out) {
    struct gh_ze_driver *driver = &gh_ze_drivers[slot];
    gh_ze_any_fn filled[GH_ZE_TABLE_ENTRIES] = { 0 };
    if (out == NULL)
        return driver->get_table[table](version, out);
    ze_result_t result = driver->get_table[table](version, (void *)filled);
    if (table != GH_ZE_TABLE_RUNTIME)
        driver->version = version;
    if (result != ZE_RESULT_SUCCESS)
        return result;
    for (unsigned place = 0; place < GH_ZE_TABLE_ENTRIES; place++) {
        if (filled[place] == NULL)
            continue;
        driver->real[table].entries[place] = filled[place];
        gh_ze_thunk_set(slot, table, place, filled[place]);
        gh_ze_any_fn ours = replacement(driver, table, place);
        out[place] = ours != NULL ? ours : filled[place];
    }
    return result;
}

#define GETTER(slot, table)                                                                                            \
    static ze_result_t ZE_APICALL get_##slot##_##table(ze_api_version_t version, void *out) {                          \
        return get_table(slot, table, version, out);                                                                   \
    }
#define GETTERS(slot)                                                                                                  \
    GETTER(slot, 0) GETTER(slot, 1) GETTER(slot, 2) GETTER(slot, 3) GETTER(slot, 4) GETTER(slot, 5) GETTER(slot, 6)    \
    GETTER(slot, 7) GETTER(slot, 8)
#define GETTER_ROW(slot)                                                                                               \
    { get_##slot##_0, get_##slot##_1, get_##slot##_2, get_##slot##_3,                                                  \
      get_##slot##_4, get_##slot##_5, get_##slot##_6, get_##slot##_7, \
      get_##slot##_8 }

_Static_assert(GH_ZE_TABLE_COUNT == 9 && GH_ZE_DRIVER_MAX == 8, "the getters below are one for each");
GETTERS(0) GETTERS(1) GETTERS(2) GETTERS(3) GETTERS(4) GETTERS(5) GETTERS(6) GETTERS(7)

static const gh_ze_get_table_fn getters[GH_ZE_DRIVER_MAX][GH_ZE_TABLE_COUNT] = {
    GETTER_ROW(0), GETTER_ROW(1), GETTER_ROW(2), GETTER_ROW(3), GETTER_ROW(4), GETTER_ROW(5), GETTER_ROW(6), GETTER_ROW(7),
};

gh_ze_get_table_fn gh_ze_table_getter(unsigned slot, unsigned table) {
    return getters[slot][table];
}
