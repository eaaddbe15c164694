// SPDX-License-Identifier: MIT
//
// See client.h. What cannot fail on a working driver ends the process with a line.
#include "client.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct client client;

#define API_VERSION 0x10010u // 1.16

// Layout and number of the Level Zero specification; Debian 12's headers lack them.
struct memmap_desc {
    ze_structure_type_t stype;
    const void *next;
    void *pointer;
    uint64_t size;
};
#define STYPE_MEMMAP ((ze_structure_type_t)0x00020037)

_Noreturn void client_failed(const char *file, int line, const char *condition, const char *format, ...) {
    char text[600];
    va_list more;
    int length = snprintf(text, sizeof(text), "%s:%d: %s: ", file, line, condition);
    va_start(more, format);
    vsnprintf(text + length, sizeof(text) - (size_t)length, format, more);
    va_end(more);
    length = (int)strlen(text);
    text[length++] = '\n'; // over the final zero
    (void)!write(STDERR_FILENO, text, (size_t)length);
    _exit(1);
}

static void *symbol(const char *name) {
    void *found = dlsym(client.library, name);
    CHECK(found != NULL, "the driver has no %s", name);
    return found;
}

static void get_table(const char *name, void *table) {
    ze_result_t (*get)(uint32_t, void *) = (ze_result_t(*)(uint32_t, void *))symbol(name);
    OK(get(API_VERSION, table));
}

void client_load(void) {
    const char *path = getenv("ZE_ENABLE_ALT_DRIVERS");
    CHECK(path != NULL, "no driver");
    client.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(client.library != NULL, "%s", dlerror());
    get_table("zeGetGlobalProcAddrTable", &client.global);
    get_table("zeGetDriverProcAddrTable", &client.driver_table);
    get_table("zeGetDeviceProcAddrTable", &client.device_table);
    get_table("zeGetContextProcAddrTable", &client.contexts);
    get_table("zeGetMemProcAddrTable", &client.mem);
    get_table("zeGetCommandListProcAddrTable", &client.lists);
    get_table("zeGetEventPoolProcAddrTable", &client.pools);
    get_table("zeGetEventProcAddrTable", &client.events);
    if (dlsym(client.library, "zerGetGlobalProcAddrTable") != NULL)
        get_table("zerGetGlobalProcAddrTable", &client.runtime);
    uint32_t one = 1;
    OK(client.global.t.pfnInit(0));
    OK(client.driver_table.t.pfnGet(&one, &client.driver));
    client.device_count = sizeof(client.devices) / sizeof(client.devices[0]);
    OK(client.device_table.t.pfnGet(client.driver, &client.device_count, client.devices));
}

ze_context_handle_t client_context(void) {
    const ze_context_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
    ze_context_handle_t context = NULL;
    OK(client.contexts.t.pfnCreate(client.driver, &desc, &context));
    return context;
}

ze_command_list_handle_t client_list(ze_context_handle_t context, ze_device_handle_t device) {
    const ze_command_queue_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                           .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS };
    ze_command_list_handle_t list = NULL;
    OK(client.lists.t.pfnCreateImmediate(context, device, &desc, &list));
    return list;
}

void client_open(void) {
    client_load();
    client.context = client_context();
    client.list = client_list(client.context, client.devices[0]);
}

ze_event_handle_t client_event(void) {
    const ze_event_pool_desc_t pool_desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 1,
                                             .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE };
    const ze_event_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_DESC };
    ze_event_pool_handle_t pool = NULL;
    ze_event_handle_t event = NULL;
    OK(client.pools.t.pfnCreate(client.context, &pool_desc, 1, client.devices, &pool));
    OK(client.events.t.pfnCreate(pool, &desc, &event));
    return event;
}

ze_result_t client_wrap_flags(ze_context_handle_t context, void *pointer, size_t size, ze_host_mem_alloc_flags_t flags) {
    const struct memmap_desc memmap = { .stype = STYPE_MEMMAP, .pointer = pointer, .size = size };
    const ze_host_mem_alloc_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = &memmap,
                                            .flags = flags };
    void *base = NULL;
    ze_result_t result = client.mem.t.pfnAllocHost(context, &desc, size, PAGE, &base);
    return result == ZE_RESULT_SUCCESS && base != pointer ? ZE_RESULT_ERROR_UNKNOWN : result;
}

ze_result_t client_wrap(ze_context_handle_t context, void *pointer, size_t size) {
    return client_wrap_flags(context, pointer, size, 0);
}

ze_result_t client_unwrap(ze_context_handle_t context, void *pointer) {
    return client.mem.t.pfnFree(context, pointer);
}

ze_memory_type_t client_type(ze_context_handle_t context, const void *pointer) {
    ze_memory_allocation_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES };
    ze_device_handle_t device = NULL;
    OK(client.mem.t.pfnGetAllocProperties(context, pointer, &properties, &device));
    return properties.type;
}

ze_result_t client_fill(ze_command_list_handle_t list, void *pointer, size_t size) {
    const unsigned char zero = 0;
    return client.lists.t.pfnAppendMemoryFill(list, pointer, &zero, 1, size, NULL, 0, NULL);
}

void *client_function(const char *name) {
    void *found = NULL;
    ze_result_t result = client.driver_table.t.pfnGetExtensionFunctionAddress(client.driver, name, &found);
    return result == ZE_RESULT_SUCCESS ? found : NULL;
}

unsigned char *client_pages(size_t pages) {
    unsigned char *start = mmap(NULL, P(pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED, "no memory");
    for (size_t i = 0; i < pages; i++)
        memset(start + P(i), (int)i + 1, PAGE);
    return start;
}

struct ghsim_stats client_sim(void) {
    struct ghsim_stats stats;
    ((void (*)(struct ghsim_stats *))symbol("ghsim_stats"))(&stats);
    return stats;
}

uint64_t client_calls(const char *function) {
    return ((uint64_t(*)(const char *))symbol("ghsim_calls"))(function);
}

uint64_t client_moved(void) {
    return ((uint64_t(*)(void))symbol("ghsim_check_pages"))();
}

struct gpuhost_stats client_stats(void) {
    struct gpuhost_stats stats;
    CHECK(gpuhost_stats != NULL && gpuhost_stats(&stats) == 0, "libgpuhost is not preloaded");
    return stats;
}

uint64_t client_pieces(void) {
    struct gpuhost_stats stats = client_stats();
    return client_sim().imports_live - (stats.imports - stats.releases);
}
