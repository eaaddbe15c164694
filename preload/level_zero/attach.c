// SPDX-License-Identifier: MIT
//
// Attach and detach (attach.h). The attach lock (GH_RANK_LIFE) is held while the driver is asked
// what it can do; malloc takes no lock of that rank.
//
// Scope: imports go into a context of our own, so that they outlive the program's contexts. Then
// one page is imported there and asked for in the program's context: known, and one import is
// good for the whole driver; unknown, and each context is a scope of its own.
#include "attach.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "../config.h"
#include "../log.h"
#include "../pieces.h"
#include "allocator/lock.h"
#include "allocator/os_mem.h"
#include "backend.h"
#include "wrap.h"

static struct gh_lock attach_lock = GH_LOCK_INIT(GH_RANK_LIFE);

GH_TLS bool gh_ze_in_driver;
static atomic_bool made_as_orphan; // a context, in this fork child

static void say(int level, const struct gh_ze_driver *driver, const char *what) {
    struct gh_text line;
    gh_text_start(&line);
    gh_text_add(&line, driver->name);
    gh_text_add(&line, ": ");
    gh_text_add(&line, what);
    gh_log_text(level, &line);
}

// The devices of the first context are those that the imports are made for: a driver maps an
// import for the first of them only.
static void find_devices(struct gh_ze_driver *driver, uint32_t wanted_count, const ze_device_handle_t *wanted) {
    // The device table is not behind the door; the driver's exported getter has it.
    driver->max_import_bytes = 0;
    driver->all_system = false;
    driver->device_count = 0;
    const ze_device_dditable_t *table = gh_ze_device_table(driver);
    if (table == NULL || table->pfnGet == NULL)
        return;
    uint32_t count = sizeof(driver->devices) / sizeof(driver->devices[0]);
    if (table->pfnGet(driver->handle, &count, driver->devices) != ZE_RESULT_SUCCESS)
        return;
    if (wanted_count != 0 && wanted_count <= sizeof(driver->devices) / sizeof(driver->devices[0])) {
        memcpy(driver->devices, wanted, wanted_count * sizeof(*wanted));
        count = wanted_count;
    }
    driver->device_count = count;
    driver->all_system = count != 0;
    for (uint32_t i = 0; i < count; i++) {
        ze_device_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES };
        if (table->pfnGetProperties(driver->devices[i], &properties) == ZE_RESULT_SUCCESS &&
            (driver->max_import_bytes == 0 || properties.maxMemAllocSize < driver->max_import_bytes))
            driver->max_import_bytes = properties.maxMemAllocSize;
        ze_device_memory_access_properties_t access = { .stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES };
        bool system = table->pfnGetMemoryAccessProperties(driver->devices[i], &access) == ZE_RESULT_SUCCESS &&
                      (access.sharedSystemAllocCapabilities & ZE_MEMORY_ACCESS_CAP_FLAG_RW) != 0;
        driver->all_system = driver->all_system && system;
    }
}

static bool has_memmap(struct gh_ze_driver *driver) {
    uint32_t count = 0;
    ze_pfnDriverGetExtensionProperties_t get = gh_ze_real_driver(driver).pfnGetExtensionProperties;
    if (get == NULL || get(driver->handle, &count, NULL) != ZE_RESULT_SUCCESS || count == 0)
        return false;
    size_t bytes = gh_align_up(count * sizeof(ze_driver_extension_properties_t), GH_PAGE_SIZE);
    ze_driver_extension_properties_t *list = gh_os_map_table(bytes);
    bool found = false;
    if (list != NULL && get(driver->handle, &count, list) == ZE_RESULT_SUCCESS) {
        for (uint32_t i = 0; i < count; i++)
            found = found || strncmp(list[i].name, GH_ZE_MEMMAP_EXTENSION, sizeof(list[i].name)) == 0;
    }
    if (list != NULL)
        gh_os_unmap(list, bytes);
    return found;
}

static bool create_own_context(struct gh_ze_driver *driver) {
    ze_context_desc_t descriptor = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
    if (gh_ze_real_context(driver).pfnCreateEx != NULL && driver->device_count != 0)
        return gh_ze_real_context(driver).pfnCreateEx(driver->handle, &descriptor, driver->device_count,
                                                      driver->devices, &driver->own_context) == ZE_RESULT_SUCCESS;
    return gh_ze_real_context(driver).pfnCreate(driver->handle, &descriptor, &driver->own_context) == ZE_RESULT_SUCCESS;
}

// Is what our own context imports known in the program's?
static enum gh_ze_answer probe_driver_wide(struct gh_ze_driver *driver, ze_context_handle_t context) {
    struct gh_ze_scope scope = { driver, driver->own_context };
    const char *why = "";
    char *page = gh_os_map_table(GH_PAGE_SIZE);
    enum gh_ze_answer wide = GH_ZE_FAILED;
    if (page == NULL)
        return wide;
    page[0] = 1;
    gh_gpu_lock();
    int error = gh_ze_memmap_ops.import(&scope, page, GH_PAGE_SIZE, false, &why);
    if (error == 0) {
        wide = gh_ze_is_known(driver, context, page);
        if (gh_ze_memmap_ops.release(&scope, page, GH_PAGE_SIZE) != 0)
            page = NULL; // still the driver's; one page is lost
    } else if (error == ENOTSUP) {
        driver->refused_probes++;
    }
    gh_gpu_unlock();
    if (page != NULL)
        gh_os_unmap(page, GH_PAGE_SIZE);
    return wide;
}

#define REFUSALS_THAT_COUNT 2u

// Or never, when the driver has said often enough that it takes no imports.
static void try_again_later(struct gh_ze_driver *driver, const char *what) {
    if (driver->own_context != NULL)
        gh_ze_real_context(driver).pfnDestroy(driver->own_context);
    driver->own_context = NULL;
    if (driver->refused_probes >= REFUSALS_THAT_COUNT) {
        say(GH_LOG_WARNING, driver, "refuses imports of host memory; its devices do not see the heap in place (a newer "
                                    "driver may; GPUHOST_BACKEND=none stops the attempts)");
        return;
    }
    say(driver->said_later ? GH_LOG_DEBUG : GH_LOG_WARNING, driver, what);
    driver->said_later = true; // each context comes here again
    atomic_store_explicit(&driver->state, GH_ZE_NEW, memory_order_release);
}

static void choose_scope(struct gh_ze_driver *driver, ze_context_handle_t context, uint32_t device_count,
                         const ze_device_handle_t *devices) {
    atomic_store_explicit(&driver->state, GH_ZE_USELESS, memory_order_release);
    if (gh_config.import == GH_IMPORT_NEVER)
        return;
    find_devices(driver, device_count, devices);
    const struct gh_gpu_backend_ops *ops = &gh_ze_memmap_ops;
    if (driver->all_system && gh_config.import == GH_IMPORT_AUTO) {
        ops = &gh_ze_system_ops;
    } else {
        driver->all_system = false;
        if (!has_memmap(driver)) {
            say(GH_LOG_WARNING, driver, "has no " GH_ZE_MEMMAP_EXTENSION "; its devices do not see the heap in place "
                                        "(a newer driver does)");
            return;
        }
        if (!create_own_context(driver)) {
            try_again_later(driver, "gives us no context; its devices do not see the heap in place for now");
            return;
        }
        enum gh_ze_answer wide = context == NULL ? GH_ZE_YES : probe_driver_wide(driver, context);
        if (wide == GH_ZE_FAILED) {
            try_again_later(driver, "does not answer what its imports are good for; its devices do not see the heap "
                                    "in place for now");
            return;
        }
        driver->per_context = wide == GH_ZE_NO;
    }
    if (!driver->per_context) {
        struct gh_ze_scope *data = gh_ze_scope_data(driver, driver->own_context);
        driver->scope = data == NULL ? GH_NO_SCOPE : gh_gpu_scope_open(ops, data);
    }
    if (driver->device_count > 1 && !driver->all_system)
        say(GH_LOG_INFO, driver, "has several devices; the first one of the first context sees the heap in place "
                                 "(ZE_AFFINITY_MASK chooses it)");
    say(GH_LOG_INFO, driver, driver->all_system    ? "its devices use all system memory as it is; nothing is imported"
                             : driver->per_context ? "attached; each context gets imports of its own"
                                                   : "attached; one import serves all its contexts");
    atomic_store_explicit(&driver->state, GH_ZE_ATTACHED, memory_order_release);
}

static void register_context(struct gh_ze_driver *driver, ze_context_handle_t context) {
    for (unsigned i = 0; i < GH_ZE_CONTEXT_MAX; i++) {
        struct gh_ze_context *entry = &driver->contexts[i];
        if (atomic_load_explicit(&entry->handle, memory_order_relaxed) != NULL)
            continue;
        struct gh_ze_scope *data = gh_ze_scope_data(driver, context);
        unsigned scope = data == NULL ? GH_NO_SCOPE : gh_gpu_scope_open(&gh_ze_memmap_ops, data);
        if (scope == GH_NO_SCOPE) {
            if (data != NULL)
                gh_ze_scope_data_free(data);
            else
                say(GH_LOG_WARNING, driver, "64 of its contexts see the heap in place; this one does not");
            return;
        }
        entry->scope_data = data;
        entry->scope = scope;
        atomic_store_explicit(&entry->handle, context, memory_order_release);
        return;
    }
    say(GH_LOG_WARNING, driver, "more than 256 contexts; further ones do not see the heap in place");
}

void gh_ze_attach(struct gh_ze_driver *driver, ze_driver_handle_t handle, ze_context_handle_t context,
                  uint32_t device_count, ze_device_handle_t *devices) {
    if (gh_gpu_is_orphan()) {
        atomic_store_explicit(&made_as_orphan, true, memory_order_relaxed);
        static atomic_flag said = ATOMIC_FLAG_INIT;
        struct gh_text line;
        gh_text_start(&line);
        gh_text_add(&line, "a forked child uses a GPU that its parent had opened; the heap is not visible in place here "
                           "(start the child with exec, or open the GPU after fork)");
        gh_log_once(&said, GH_LOG_WARNING, &line);
        return;
    }
    if (gh_ze_in_driver)
        return;
    gh_ze_in_driver = true;
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); // nobody would release the lock
    gh_lock_acquire(&attach_lock);
    uint32_t count = 1;
    if (handle == NULL && gh_ze_real_driver(driver).pfnGet != NULL &&
        gh_ze_real_driver(driver).pfnGet(&count, &handle) != ZE_RESULT_SUCCESS)
        handle = NULL;
    if (atomic_load_explicit(&driver->state, memory_order_relaxed) == GH_ZE_NEW && handle != NULL) {
        driver->handle = handle;
        choose_scope(driver, context, device_count, devices);
    }
    if (driver->per_context && context != NULL && gh_ze_scope_of(driver, context) == GH_NO_SCOPE)
        register_context(driver, context);
    gh_lock_release(&attach_lock);
    gh_ze_in_driver = false;
    pthread_setcancelstate(cancel_state, NULL);
    gh_ze_pass();
}

static void forget_wraps(unsigned scope, ze_context_handle_t context) {
    struct gh_wrap wrap;
    struct gh_wraps_cursor cursor = { 0 };
    while (gh_pieces_unwrap_of(context, scope, &cursor, &wrap))
        gh_ze_wrap_ended(&wrap);
}

void gh_ze_detach(struct gh_ze_driver *driver, ze_context_handle_t context) {
    unsigned scope = gh_ze_scope_of(driver, context);
    if (scope == GH_NO_SCOPE)
        return;
    forget_wraps(scope, context);
    if (!driver->per_context)
        return;
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    gh_lock_acquire(&attach_lock);
    gh_gpu_scope_close(scope, true);
    for (unsigned i = 0; i < GH_ZE_CONTEXT_MAX; i++) {
        if (atomic_load_explicit(&driver->contexts[i].handle, memory_order_relaxed) != context)
            continue;
        gh_ze_scope_data_free(driver->contexts[i].scope_data);
        atomic_store_explicit(&driver->contexts[i].handle, NULL, memory_order_release);
    }
    gh_lock_release(&attach_lock);
    pthread_setcancelstate(cancel_state, NULL);
}

bool gh_ze_has_only_parents(void) {
    return gh_gpu_is_orphan() && !atomic_load_explicit(&made_as_orphan, memory_order_relaxed);
}

bool gh_ze_is_settled(const struct gh_ze_driver *driver) {
    return gh_gpu_is_orphan() || atomic_load_explicit(&driver->state, memory_order_acquire) != GH_ZE_NEW;
}

unsigned gh_ze_scope_of(struct gh_ze_driver *driver, ze_context_handle_t context) {
    if (context == NULL) // the driver's to refuse; free entries of the table look like it
        return GH_NO_SCOPE;
    if (atomic_load_explicit(&driver->state, memory_order_acquire) != GH_ZE_ATTACHED || gh_gpu_is_orphan())
        return GH_NO_SCOPE;
    if (!driver->per_context)
        return driver->scope;
    for (unsigned i = 0; i < GH_ZE_CONTEXT_MAX; i++) {
        if (atomic_load_explicit(&driver->contexts[i].handle, memory_order_acquire) == context)
            return driver->contexts[i].scope;
    }
    return GH_NO_SCOPE;
}

void gh_ze_fork_child(void) {
    gh_lock_reset(&attach_lock);
    gh_ze_driver_fork_child();
}

void gh_ze_bring_pending(void) {
    gh_gpu_drain();
}
