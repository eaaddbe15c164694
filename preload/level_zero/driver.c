// SPDX-License-Identifier: MIT
//
// Driver slots and the interposed table getters (driver.h). Runs in whatever thread initialises
// the loader; a slot is filled in under a lock and published by its library address.
#include "driver.h"

#include <dlfcn.h>
#include <string.h>

#include "../config.h"
#include "../driver_text.h"
#include "../gate.h"
#include "../log.h"
#include "../real_symbols.h"
#include "allocator/arena_set.h"
#include "allocator/lock.h"
#include "list_scope.h"
#include "table.h"

struct gh_ze_driver gh_ze_drivers[GH_ZE_DRIVER_MAX];
static unsigned driver_count;
static struct gh_lock slots_lock = GH_LOCK_INIT(GH_RANK_LIFE);

static const char *const table_names[GH_ZE_TABLE_COUNT] = {
    [GH_ZE_TABLE_DRIVER] = "zeGetDriverProcAddrTable",
    [GH_ZE_TABLE_CONTEXT] = "zeGetContextProcAddrTable",
    [GH_ZE_TABLE_MEM] = "zeGetMemProcAddrTable",
    [GH_ZE_TABLE_COMMAND_LIST] = "zeGetCommandListProcAddrTable",
    [GH_ZE_TABLE_COMMAND_LIST_EXP] = "zeGetCommandListExpProcAddrTable",
    [GH_ZE_TABLE_COMMAND_QUEUE] = "zeGetCommandQueueProcAddrTable",
    [GH_ZE_TABLE_KERNEL] = "zeGetKernelProcAddrTable",
    [GH_ZE_TABLE_KERNEL_EXP] = "zeGetKernelExpProcAddrTable",
    [GH_ZE_TABLE_RUNTIME] = "zerGetGlobalProcAddrTable",
};

// Loader and layers have functions of the same names; those hand on what the drivers gave.
static bool is_loader_or_layer(const char *path) {
    static const char *const names[] = { "libze_loader.", "libze_validation_layer.", "libze_tracing_layer." };
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

static void copy_name(char *to, size_t size, const char *path) {
    const char *slash = strrchr(path, '/');
    const char *base = slash == NULL ? path : slash + 1;
    size_t length = gh_min(strlen(base), size - 1);
    memcpy(to, base, length);
    to[length] = '\0';
}

static struct gh_ze_driver *slot_for(const Dl_info *library, void *handle) {
    for (unsigned i = 0; i < driver_count; i++) {
        if (gh_ze_drivers[i].library_base == library->dli_fbase)
            return &gh_ze_drivers[i];
    }
    if (driver_count == GH_ZE_DRIVER_MAX) {
        gh_log(GH_LOG_WARNING, "more than 8 Level Zero drivers; further ones do not see the heap");
        return NULL;
    }
    struct gh_ze_driver *driver = &gh_ze_drivers[driver_count];
    driver->library_base = library->dli_fbase;
    driver->library = handle;
    driver->slot = driver_count;
    driver->scope = GH_NO_SCOPE;
    copy_name(driver->name, sizeof(driver->name), library->dli_fname);
    driver_count++;
    return driver;
}

void *gh_ze_driver_symbol(void *handle, const char *name) {
    unsigned table = 0;
    while (table < GH_ZE_TABLE_COUNT && strcmp(table_names[table], name) != 0)
        table++;
    if (table == GH_ZE_TABLE_COUNT)
        return NULL;
    void *(*find)(void *, const char *) = (void *(*)(void *, const char *))gh_real_dlsym();
    void *real = find(handle, name);
    Dl_info library;
    if (real == NULL || dladdr(real, &library) == 0 || library.dli_fname == NULL ||
        is_loader_or_layer(library.dli_fname))
        return NULL;
    gh_lock_acquire(&slots_lock);
    unsigned before = driver_count;
    struct gh_ze_driver *driver = slot_for(&library, handle);
    if (driver != NULL)
        driver->get_table[table] = (gh_ze_get_table_fn)real;
    bool is_new = driver_count != before;
    gh_lock_release(&slots_lock);
    if (is_new) {
        // A program may close the loader, which closes its drivers; imports and doors outlive that.
        void *(*open)(const char *, int) = (void *(*)(const char *, int))gh_real_dlopen();
        (void)open(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        gh_driver_text_add(library.dli_fbase);
        gh_arena_set_plain_flags(); // now, so that the driver's first page does not make it
        gh_gate_driver_loaded();
    }
    return driver == NULL ? NULL : (void *)gh_ze_table_getter(driver->slot, table);
}

const ze_device_dditable_t *gh_ze_device_table(struct gh_ze_driver *driver) {
    void *(*find)(void *, const char *) = (void *(*)(void *, const char *))gh_real_dlsym();
    gh_ze_get_table_fn get = (gh_ze_get_table_fn)find(driver->library, "zeGetDeviceProcAddrTable");
    if (get == NULL || get(driver->version, (void *)driver->device_table) != ZE_RESULT_SUCCESS)
        return NULL;
    return (const ze_device_dditable_t *)(const void *)driver->device_table;
}

void gh_ze_driver_fork_child(void) {
    gh_lock_reset(&slots_lock);
    gh_ze_list_fork_child();
}
