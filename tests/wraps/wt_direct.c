// SPDX-License-Identifier: MIT
//
// The client's Level Zero without a loader and without preload, for the build under TSan: the
// driver's tables come through the door as the loader would get them, the heap is called by its
// inner names. One driver, the first of ZE_ENABLE_ALT_DRIVERS.
#include <dlfcn.h>
#include <level_zero/ze_ddi.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"
#include "gpuhost.h"
#include "level_zero/driver.h"
#include "memory_events.h"
#include "stats.h"
#include "wt_events.h"
#include "wt_gpu.h"

static ze_driver_dditable_t driver_table;
static ze_device_dditable_t device_table;
static ze_context_dditable_t context_table;
static ze_mem_dditable_t mem_table;
static ze_module_dditable_t module_table;
static ze_kernel_dditable_t kernel_table;
static ze_command_list_dditable_t list_table;

static void get_table(void *library, const char *name, void *table) {
    void *found = gh_ze_driver_symbol(library, name);
    if (found == NULL) // a table without a door
        found = dlsym(library, name);
    ze_result_t (*get)(ze_api_version_t, void *) = (ze_result_t(*)(ze_api_version_t, void *))found;
    if (get == NULL || get(ZE_API_VERSION_CURRENT, table) != ZE_RESULT_SUCCESS)
        wt_fail("the driver has no %s", name);
}

ze_result_t zeInit(ze_init_flags_t flags) {
    const char *path = getenv("ZE_ENABLE_ALT_DRIVERS");
    void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        wt_fail("no driver at ZE_ENABLE_ALT_DRIVERS");
    ze_global_dditable_t global_table;
    get_table(library, "zeGetGlobalProcAddrTable", &global_table);
    get_table(library, "zeGetDriverProcAddrTable", &driver_table);
    get_table(library, "zeGetDeviceProcAddrTable", &device_table);
    get_table(library, "zeGetContextProcAddrTable", &context_table);
    get_table(library, "zeGetMemProcAddrTable", &mem_table);
    get_table(library, "zeGetModuleProcAddrTable", &module_table);
    get_table(library, "zeGetKernelProcAddrTable", &kernel_table);
    get_table(library, "zeGetCommandListProcAddrTable", &list_table);
    gh_memory_events_start();
    return global_table.pfnInit(flags);
}

// Defines a function of the API by the table's entry.
#define THROUGH(name, entry, parameters, arguments)                                                                    \
    ze_result_t name parameters {                                                                                      \
        return entry arguments;                                                                                        \
    }
THROUGH(zeDriverGet, driver_table.pfnGet, (uint32_t *n, ze_driver_handle_t *d), (n, d))
THROUGH(zeDeviceGet, device_table.pfnGet, (ze_driver_handle_t d, uint32_t *n, ze_device_handle_t *v), (d, n, v))
THROUGH(zeContextCreate, context_table.pfnCreate,
        (ze_driver_handle_t d, const ze_context_desc_t *s, ze_context_handle_t *c), (d, s, c))
THROUGH(zeContextDestroy, context_table.pfnDestroy, (ze_context_handle_t c), (c))
THROUGH(zeContextMakeMemoryResident, context_table.pfnMakeMemoryResident,
        (ze_context_handle_t c, ze_device_handle_t d, void *p, size_t s), (c, d, p, s))
THROUGH(zeContextEvictMemory, context_table.pfnEvictMemory,
        (ze_context_handle_t c, ze_device_handle_t d, void *p, size_t s), (c, d, p, s))
THROUGH(zeMemAllocHost, mem_table.pfnAllocHost,
        (ze_context_handle_t c, const ze_host_mem_alloc_desc_t *d, size_t s, size_t a, void **p), (c, d, s, a, p))
THROUGH(zeMemFree, mem_table.pfnFree, (ze_context_handle_t c, void *p), (c, p))
THROUGH(zeMemGetAllocProperties, mem_table.pfnGetAllocProperties,
        (ze_context_handle_t c, const void *p, ze_memory_allocation_properties_t *q, ze_device_handle_t *d),
        (c, p, q, d))
THROUGH(zeMemGetAddressRange, mem_table.pfnGetAddressRange,
        (ze_context_handle_t c, const void *p, void **b, size_t *s), (c, p, b, s))
THROUGH(zeModuleCreate, module_table.pfnCreate,
        (ze_context_handle_t c, ze_device_handle_t d, const ze_module_desc_t *s, ze_module_handle_t *m,
         ze_module_build_log_handle_t *l),
        (c, d, s, m, l))
THROUGH(zeModuleDestroy, module_table.pfnDestroy, (ze_module_handle_t m), (m))
THROUGH(zeKernelCreate, kernel_table.pfnCreate,
        (ze_module_handle_t m, const ze_kernel_desc_t *d, ze_kernel_handle_t *k), (m, d, k))
THROUGH(zeKernelDestroy, kernel_table.pfnDestroy, (ze_kernel_handle_t k), (k))
THROUGH(zeKernelSetGroupSize, kernel_table.pfnSetGroupSize, (ze_kernel_handle_t k, uint32_t x, uint32_t y, uint32_t z),
        (k, x, y, z))
THROUGH(zeKernelSetArgumentValue, kernel_table.pfnSetArgumentValue,
        (ze_kernel_handle_t k, uint32_t i, size_t s, const void *v), (k, i, s, v))
THROUGH(zeCommandListCreateImmediate, list_table.pfnCreateImmediate,
        (ze_context_handle_t c, ze_device_handle_t d, const ze_command_queue_desc_t *q, ze_command_list_handle_t *l),
        (c, d, q, l))
THROUGH(zeCommandListDestroy, list_table.pfnDestroy, (ze_command_list_handle_t l), (l))
THROUGH(zeCommandListAppendMemoryCopy, list_table.pfnAppendMemoryCopy,
        (ze_command_list_handle_t l, void *t, const void *f, size_t s, ze_event_handle_t e, uint32_t n,
         ze_event_handle_t *w),
        (l, t, f, s, e, n, w))
THROUGH(zeCommandListAppendMemoryFill, list_table.pfnAppendMemoryFill,
        (ze_command_list_handle_t l, void *t, const void *p, size_t q, size_t s, ze_event_handle_t e, uint32_t n,
         ze_event_handle_t *w),
        (l, t, p, q, s, e, n, w))
THROUGH(zeCommandListAppendLaunchKernel, list_table.pfnAppendLaunchKernel,
        (ze_command_list_handle_t l, ze_kernel_handle_t k, const ze_group_count_t *g, ze_event_handle_t e, uint32_t n,
         ze_event_handle_t *w),
        (l, k, g, e, n, w))

int gpuhost_stats(struct gpuhost_stats *out) {
    gh_stats_collect(out);
    return 0;
}

void *wt_malloc(size_t size) {
    return gh_allocate(size, 0, false, NULL);
}

void wt_free(void *block) {
    gh_deallocate(block);
}

void *wt_realloc(void *block, size_t size) {
    return gh_reallocate(block, size, NULL);
}
