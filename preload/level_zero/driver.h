// SPDX-License-Identifier: MIT
//
// The Level Zero drivers in the process, a slot for each library, and how the door gets into
// them: the loader asks a driver for its function tables by name; we answer with functions that
// ask the driver and put our entries into the tables.
#ifndef GH_LEVEL_ZERO_DRIVER_H
#define GH_LEVEL_ZERO_DRIVER_H

#include <stdatomic.h>

#include "allocator/util.h"
#include "../gpu.h"
#include "ze_compat.h"

#define GH_ZE_DRIVER_MAX 8u

// The tables that have a door in them. The order is that of the names in driver.c.
enum gh_ze_table {
    GH_ZE_TABLE_DRIVER,
    GH_ZE_TABLE_CONTEXT,
    GH_ZE_TABLE_MEM,
    GH_ZE_TABLE_COMMAND_LIST,
    GH_ZE_TABLE_COMMAND_LIST_EXP,
    GH_ZE_TABLE_COMMAND_QUEUE,
    GH_ZE_TABLE_KERNEL,
    GH_ZE_TABLE_KERNEL_EXP,
    GH_ZE_TABLE_RUNTIME, // zer: the functions that need no handles
    GH_ZE_TABLE_COUNT
};

// A driver fills in tables that may be longer than the installed header knows.
#define GH_ZE_TABLE_ENTRIES 128u

typedef void (*gh_ze_any_fn)(void);
typedef ze_result_t(ZE_APICALL *gh_ze_get_table_fn)(ze_api_version_t version, void *table);

enum gh_ze_attach_state { GH_ZE_NEW, GH_ZE_ATTACHED, GH_ZE_USELESS };

struct gh_ze_context {
    _Atomic(ze_context_handle_t) handle; // NULL: free
    unsigned scope;
    void *scope_data; // backend.h
};

#define GH_ZE_CONTEXT_MAX 256u

struct gh_ze_driver {
    // Written before the slot is published.
    const void *library_base;
    void *library; // the loader's handle of it
    char name[48];
    unsigned slot;
    gh_ze_get_table_fn get_table[GH_ZE_TABLE_COUNT];

    // The driver's own functions, as it filled them in; entries it lacks are NULL.
    union {
        gh_ze_any_fn entries[GH_ZE_TABLE_ENTRIES];
        ze_driver_dditable_t driver;
        ze_context_dditable_t context;
        ze_mem_dditable_t mem;
        ze_command_list_dditable_t command_list;
    } real[GH_ZE_TABLE_COUNT];

    ze_api_version_t version; // that the loader asks tables for
    gh_ze_any_fn device_table[GH_ZE_TABLE_ENTRIES]; // no door in it; for our own questions

    // attach.c; under its lock, `state` also read without.
    _Atomic int state; // enum gh_ze_attach_state
    ze_driver_handle_t handle;
    ze_context_handle_t own_context; // holds the imports of a driver-wide scope
    unsigned scope;                  // driver-wide, or GH_NO_SCOPE
    bool per_context;
    uint8_t refused_probes; // imports that it said it does not support
    bool said_later;        // that an attempt to attach failed
    bool all_system; // every device uses all system memory as it is
    uint64_t max_import_bytes; // above: the relaxed-limits descriptor
    uint32_t device_count;
    ze_device_handle_t devices[16];
    struct gh_ze_context contexts[GH_ZE_CONTEXT_MAX];
};

extern GH_HIDDEN struct gh_ze_driver gh_ze_drivers[GH_ZE_DRIVER_MAX];

#define gh_ze_real_driver(d) ((d)->real[GH_ZE_TABLE_DRIVER].driver)
#define gh_ze_real_context(d) ((d)->real[GH_ZE_TABLE_CONTEXT].context)
#define gh_ze_real_mem(d) ((d)->real[GH_ZE_TABLE_MEM].mem)
#define gh_ze_real_list(d) ((d)->real[GH_ZE_TABLE_COMMAND_LIST].command_list)

// dlsym(handle, name) when the name is a table's and the handle's library a driver: our function.
// NULL otherwise. On the way a new driver gets its slot.
GH_HIDDEN void *gh_ze_driver_symbol(void *handle, const char *name);

// The driver's device functions, or NULL.
GH_HIDDEN const ze_device_dditable_t *gh_ze_device_table(struct gh_ze_driver *driver);

GH_HIDDEN void gh_ze_driver_fork_child(void);

#endif
