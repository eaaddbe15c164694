// SPDX-License-Identifier: MIT
//
// Fetches the tables and wraps the calls that need descriptors (door_client.h).
#include "door_client.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "level_zero/driver.h"
#include "level_zero/ze_compat.h"

struct door_client door;

void door_check(bool condition, const char *text, const char *file, int line) {
    if (condition)
        return;
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
    abort();
}

// `behind_door`: by the way that the interposed dlsym goes.
static void get_table(void *library, const char *name, void *table, bool behind_door) {
    void *found = behind_door ? gh_ze_driver_symbol(library, name) : dlsym(library, name);
    CHECK(found != NULL);
    ze_result_t (*get)(ze_api_version_t, void *);
    memcpy(&get, &found, sizeof(get));
    CHECK(get(ZE_API_VERSION_CURRENT, table) == ZE_RESULT_SUCCESS);
}

void door_open(const char *driver_path) {
    void *library = dlopen(driver_path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    ze_global_dditable_t global = { 0 };
    get_table(library, "zeGetGlobalProcAddrTable", &global, false);
    get_table(library, "zeGetDeviceProcAddrTable", &door.device, false);
    get_table(library, "zeGetDriverProcAddrTable", &door.driver, true);
    get_table(library, "zeGetContextProcAddrTable", &door.context, true);
    get_table(library, "zeGetMemProcAddrTable", &door.mem, true);
    get_table(library, "zeGetCommandListProcAddrTable", &door.list, true);
    void *stats = dlsym(library, "ghsim_stats");
    memcpy(&door.stats, &stats, sizeof(stats));
    CHECK(door.stats != NULL);
    CHECK(global.pfnInit(0) == ZE_RESULT_SUCCESS);
    uint32_t count = 1;
    CHECK(door.driver.pfnGet(&count, &door.handle) == ZE_RESULT_SUCCESS && count == 1);
    count = 1;
    CHECK(door.device.pfnGet(door.handle, &count, &door.gpu) == ZE_RESULT_SUCCESS && count == 1);
}

ze_context_handle_t door_context_create(void) {
    ze_context_desc_t descriptor = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
    ze_context_handle_t context = NULL;
    CHECK(door.context.pfnCreate(door.handle, &descriptor, &context) == ZE_RESULT_SUCCESS);
    return context;
}

ze_command_list_handle_t door_list_create(ze_context_handle_t context) {
    ze_command_queue_desc_t descriptor = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC };
    ze_command_list_handle_t list = NULL;
    CHECK(door.list.pfnCreateImmediate(context, door.gpu, &descriptor, &list) == ZE_RESULT_SUCCESS);
    return list;
}

ze_result_t door_wrap(ze_context_handle_t context, void *pointer, size_t size) {
    gh_ze_memmap_desc_t memmap = { .stype = GH_ZE_STYPE_MEMMAP, .pSystemMemory = pointer, .size = size };
    ze_host_mem_alloc_desc_t descriptor = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = &memmap };
    void *out = NULL;
    ze_result_t result = door.mem.pfnAllocHost(context, &descriptor, size, GH_PAGE_SIZE, &out);
    CHECK(result != ZE_RESULT_SUCCESS || out == pointer);
    return result;
}

ze_memory_type_t door_type(ze_context_handle_t context, const void *pointer) {
    ze_memory_allocation_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES };
    CHECK(door.mem.pfnGetAllocProperties(context, pointer, &properties, NULL) == ZE_RESULT_SUCCESS);
    return properties.type;
}
