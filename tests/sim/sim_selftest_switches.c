// SPDX-License-Identifier: MIT
//
// Cases for the switches of the environment: injected faults, limits, drivers that lack or refuse
// the import, other answers, delay and noise, log, report and leak check.
#include <dlfcn.h>
#include <string.h>
#include <time.h>

#include "sim_selftest.h"

static void fault_injection(struct fixture *f)
{
    char *p = map_pages(4);
    OK(wrap(f, NULL, p, PAGE));
    CHECK(wrap(f, NULL, p + PAGE, PAGE) == ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
    OK(wrap(f, NULL, p + PAGE, PAGE));
    CHECK(zeContextMakeMemoryResident(f->context, f->devices[0], p, PAGE) == ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(zeContextMakeMemoryResident(f->context, f->devices[0], p, PAGE) == ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(stats_of(f).faults_injected == 3);
    OK(zeMemFree(f->context, p));
    OK(zeMemFree(f->context, p + PAGE));
}

static void memory_limit(struct fixture *f)
{
    char *p = map_pages(8);
    OK(wrap(f, NULL, p, 3 * PAGE));
    CHECK(wrap(f, NULL, p + 4 * PAGE, 2 * PAGE) == ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    OK(wrap(f, NULL, p + 4 * PAGE, PAGE));
    OK(zeMemFree(f->context, p));
    OK(wrap(f, NULL, p + 6 * PAGE, 2 * PAGE));
}

static bool has_memmap(struct fixture *f)
{
    uint32_t count = 0;
    ze_driver_extension_properties_t list[64];
    OK(zeDriverGetExtensionProperties(f->driver, &count, NULL));
    CHECK(count > 0 && count <= 64);
    OK(zeDriverGetExtensionProperties(f->driver, &count, list));
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(list[i].name, "ZE_extension_external_memmap_sysmem") == 0) return true;
    return false;
}

static void no_memmap(struct fixture *f)
{
    CHECK(!has_memmap(f) && wrap(f, NULL, map_pages(1), PAGE) == ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION);
}

static void refuse_memmap(struct fixture *f)
{
    CHECK(has_memmap(f) && wrap(f, NULL, map_pages(1), PAGE) == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
}

static void other_address(struct fixture *f)
{
    char *p = map_pages(1);
    void *out = NULL;
    struct memmap_desc map = {0x20037, NULL, p, PAGE};
    ze_host_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, &map, 0};
    OK(zeMemAllocHost(f->context, &desc, PAGE, PAGE, &out));
    CHECK(out && out != p && type_in(f, NULL, p) == ZE_MEMORY_TYPE_UNKNOWN);
    OK(zeMemFree(f->context, out));
}

static void host_imported(struct fixture *f)
{
    char *p = map_pages(1);
    OK(wrap(f, NULL, p, PAGE));
    CHECK((int)type_in(f, NULL, p) == 4);
}

static void system_usm(struct fixture *f)
{
    char *p = map_pages(2), zero = 0;
    for (uint32_t i = 0; i < f->device_count; i++) {
        ze_device_memory_access_properties_t access = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES};
        OK(zeDeviceGetMemoryAccessProperties(f->devices[i], &access));
        CHECK(access.sharedSystemAllocCapabilities & ZE_MEMORY_ACCESS_CAP_FLAG_RW);
    }
    OK(launch1(f, "add1_u8", 16, p));
    OK(zeCommandListAppendMemoryFill(f->list, p + 100, &zero, 1, PAGE, NULL, 0, NULL));
    CHECK(f->device_count == 3 && stats_of(f).imports == 0);
}

static void delay(struct fixture *f)
{
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    OK(wrap(f, NULL, map_pages(512), 512 * PAGE)); // 2 MiB: 5 + 2 * 10 ms
    clock_gettime(CLOCK_MONOTONIC, &b);
    CHECK((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 24);
}

static void noisy(struct fixture *f)
{
    char *p = map_pages(8);
    for (int i = 0; i < 8; i++) OK(wrap(f, NULL, p + (size_t)i * PAGE, PAGE));
}

static void leak(struct fixture *f)
{
    OK(wrap(f, NULL, map_pages(1), PAGE));
}

static void fault_import(struct fixture *f)
{
    char *p = map_pages(4);
    void *out;
    ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    OK(wrap(f, NULL, p, PAGE));
    OK(zeMemAllocHost(f->context, &desc, PAGE, PAGE, &out)); // not an import: not counted
    CHECK(wrap(f, NULL, p + PAGE, PAGE) == ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY);
    OK(wrap(f, NULL, p + PAGE, PAGE));
    CHECK(stats_of(f).imports_refused == 1);
}

// Commands that are in no table, and contexts that nobody creates, without a loader between.
static void by_name(struct fixture *f)
{
    ze_result_t (*copy)(ze_command_list_handle_t, void *, const void *, size_t, const void *, ze_event_handle_t,
                        uint32_t, ze_event_handle_t *);
    ze_result_t (*get)(uint32_t, void *);
    ze_context_handle_t (*default_context)(void);
    char *p = map_pages(2);
    void *address, *table[64] = {NULL};
    p[0] = 7;
    OK(wrap(f, NULL, p, 2 * PAGE));
    OK(zeDriverGetExtensionFunctionAddress(f->driver, "zexCommandListAppendMemoryCopyWithParameters", &address));
    memcpy(&copy, &address, sizeof address);
    if (raw_driver(f) == (void *)f->driver) OK(copy(f->list, p + PAGE, p, 10, NULL, NULL, 0, NULL));
    CHECK(raw_driver(f) != (void *)f->driver || p[PAGE] == 7);
    OK(zeDriverGetExtensionFunctionAddress(f->driver, "zexCommandListAppendNothing99", &address));
    CHECK(zeDriverGetExtensionFunctionAddress(f->driver, "zexCommandListAppendSomething", &address) != ZE_RESULT_SUCCESS);
    *(void **)(void *)&get = dlsym(f->sim, "zerGetGlobalProcAddrTable");
    CHECK(get);
    OK(get(0x1000d, table));
    CHECK(!table[3]); // 1.13 does not know it
    OK(get(0x1000e, table));
    memcpy(&default_context, &table[3], sizeof default_context);
    CHECK(default_context && default_context() && default_context() == default_context());
}

#define SWITCH(name, env, scope) {#name, name, env, scope, -1, 0, NULL}
const struct test_case switch_cases[] = {
    SWITCH(fault_injection, "GHSIM_FAIL=zeMemAllocHost:2:0x70000003,zeContextMakeMemoryResident:0 GHSIM_LEAKCHECK=1", ANY_SCOPE),
    SWITCH(memory_limit, "GHSIM_MEMORY_LIMIT=16384", ANY_SCOPE),
    SWITCH(no_memmap, "GHSIM_NO_MEMMAP=1", ANY_SCOPE),
    SWITCH(refuse_memmap, "GHSIM_REFUSE_MEMMAP=1", ANY_SCOPE),
    SWITCH(other_address, "GHSIM_OTHER_ADDRESS=1", ANY_SCOPE),
    SWITCH(host_imported, "GHSIM_HOST_TYPE=host_imported", ANY_SCOPE),
    SWITCH(system_usm, "GHSIM_SYSTEM_USM=1 GHSIM_DEVICES=3", ANY_SCOPE),
    SWITCH(delay, "GHSIM_DELAY_US=5000 GHSIM_DELAY_US_PER_MIB=10000", ANY_SCOPE),
    SWITCH(noisy, "GHSIM_NOISY=1", ANY_SCOPE),
    {"leak", leak, "GHSIM_LEAKCHECK=1", ANY_SCOPE, -1, 99, "ghsim: LEAK: 1 imports, 4096 bytes"},
    {"report", leak, "GHSIM_REPORT=stderr", ANY_SCOPE, -1, 0, "ghsim: imports=1 live=1 refused=0"},
    {"log", leak, "GHSIM_LOG=stderr", ANY_SCOPE, -1, 0, "ghsim: import 0x"},
    SWITCH(by_name, "", ANY_SCOPE),
    SWITCH(fault_import, "GHSIM_FAIL=import:2", ANY_SCOPE),
    {NULL, NULL, NULL, ANY_SCOPE, -1, 0, NULL},
};
