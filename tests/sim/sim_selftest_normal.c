// SPDX-License-Identifier: MIT
//
// Cases of normal operation: what a careful client gets, in both scopes.
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim_selftest.h"

ze_memory_type_t type_in(struct fixture *f, ze_context_handle_t context, const void *pointer)
{
    ze_memory_allocation_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
    OK(zeMemGetAllocProperties(context ? context : f->context, pointer, &properties, NULL));
    return properties.type;
}

static void import_release(struct fixture *f)
{
    char *p = map_pages(8);
    void *base;
    size_t size;
    CHECK(type_in(f, NULL, p) == ZE_MEMORY_TYPE_UNKNOWN);
    OK(wrap(f, NULL, p + PAGE, 4 * PAGE));
    CHECK(type_in(f, NULL, p) == ZE_MEMORY_TYPE_UNKNOWN);
    CHECK(type_in(f, NULL, p + PAGE) == ZE_MEMORY_TYPE_HOST);
    CHECK(type_in(f, NULL, p + 5 * PAGE - 1) == ZE_MEMORY_TYPE_HOST);
    CHECK(type_in(f, NULL, p + 5 * PAGE) == ZE_MEMORY_TYPE_UNKNOWN);
    OK(zeMemGetAddressRange(f->context, p + 3 * PAGE + 7, &base, &size));
    CHECK(base == p + PAGE && size == 4 * PAGE);
    CHECK(stats_of(f).imports_live == 1 && stats_of(f).bytes_live == 4 * PAGE);
    OK(zeMemFree(f->context, p + PAGE));
    CHECK(stats_of(f).imports_live == 0 && stats_of(f).releases == 1 && stats_of(f).bytes_live == 0);
    CHECK(zeMemFree(f->context, p + PAGE) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    CHECK(stats_of(f).free_unknown == 1);
    CHECK(f->calls("zeMemFree") == 2);
}

static void nested_references(struct fixture *f)
{
    char *p = map_pages(8);
    OK(wrap(f, NULL, p, 8 * PAGE));
    OK(wrap(f, NULL, p + 2 * PAGE, PAGE));
    OK(wrap(f, NULL, p, 8 * PAGE));
    CHECK(stats_of(f).imports == 1 && stats_of(f).imports_nested == 2 && stats_of(f).references_live == 3);
    OK(zeMemFree(f->context, p + 2 * PAGE));
    OK(zeMemFree(f->context, p));
    OK(launch1(f, "add1_u8", 16, p));
    OK(zeMemFree(f->context, p));
    CHECK(stats_of(f).imports_live == 0);
}

static void scope_of_driver(struct fixture *f)
{
    char *p = map_pages(1);
    ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    ze_context_handle_t other;
    OK(zeContextCreate(f->driver, &desc, &other));
    OK(wrap(f, other, p, PAGE));
    CHECK(type_in(f, NULL, p) == ZE_MEMORY_TYPE_HOST);
    OK(zeContextDestroy(other));
    CHECK(type_in(f, NULL, p) == ZE_MEMORY_TYPE_HOST);
    OK(zeMemFree(f->context, p));
}

static void scope_of_context(struct fixture *f)
{
    char *p = map_pages(4);
    ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    ze_context_handle_t other;
    OK(zeContextCreate(f->driver, &desc, &other));
    OK(wrap(f, NULL, p, 2 * PAGE));
    CHECK(wrap(f, NULL, p, 2 * PAGE) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    CHECK(wrap(f, NULL, p + PAGE, PAGE) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    CHECK(wrap(f, NULL, p + PAGE, 2 * PAGE) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    CHECK(type_in(f, other, p) == ZE_MEMORY_TYPE_UNKNOWN);
    OK(wrap(f, other, p, 2 * PAGE));
    OK(zeMemFree(f->context, p));
    CHECK(type_in(f, other, p) == ZE_MEMORY_TYPE_HOST);
    OK(zeContextDestroy(other));
    CHECK(stats_of(f).imports_live == 0 && stats_of(f).imports_refused == 3);
}

static void kernels(struct fixture *f)
{
    const uint32_t items = 300000; // enough for several threads
    float *a = map_pages(300);
    OK(wrap(f, NULL, a, 300 * PAGE));
    for (uint32_t i = 0; i < items; i++) a[i] = (float)(i % 1000) * 0.01f;
    OK(launch1(f, "sin2", items, a));
    for (uint32_t i = 0; i < items; i++) CHECK(fabsf(a[i] - sinf((float)(i % 1000) * 0.01f) * 2.0f) < 1e-5f);
    uint8_t *bytes = (uint8_t *)a;
    memset(bytes, 3, 8192);
    OK(launch1(f, "add1_u8", 4096, bytes));
    CHECK(bytes[0] == 4 && bytes[4095] == 4 && bytes[4096] == 3);
    const uint8_t seven = 7;
    OK(launch(f, f->list, "fill_u8", 4096, &bytes, sizeof bytes, &seven, 1, NULL, 0));
    ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    uint64_t *sum, n = 4100;
    OK(zeMemAllocHost(f->context, &desc, sizeof *sum, 8, (void **)&sum));
    *sum = 1;
    OK(launch(f, f->list, "sum_u64", 8192, &bytes, sizeof bytes, &n, sizeof n, &sum, sizeof sum));
    CHECK(*sum == 1 + 4096 * 7 + 4 * 3);
    OK(zeMemFree(f->context, sum));
    OK(zeMemFree(f->context, a));
    CHECK(stats_of(f).launches == 4 && stats_of(f).usm_live == 0);
}

static void copies_and_events(struct fixture *f)
{
    char *p = map_pages(8);
    ze_command_list_desc_t list_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    ze_fence_desc_t fence_desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
    ze_command_list_handle_t list;
    ze_command_queue_handle_t queue;
    ze_fence_handle_t fence;
    ze_event_handle_t event = make_event(f);
    const uint32_t pattern = 0x04030201;
    OK(wrap(f, NULL, p, 8 * PAGE));
    OK(zeCommandListCreate(f->context, f->devices[0], &list_desc, &list));
    OK(zeCommandQueueCreate(f->context, f->devices[0], &queue_desc, &queue));
    OK(zeFenceCreate(queue, &fence_desc, &fence));
    OK(zeCommandListAppendMemoryFill(list, p, &pattern, 4, 2 * PAGE, NULL, 0, NULL));
    OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    OK(zeCommandListAppendMemoryCopy(list, p + 2 * PAGE, p, PAGE, event, 0, NULL));
    const ze_copy_region_t to = {4, 0, 0, 8, 3, 1}, from = {0, 1, 0, 8, 3, 1};
    OK(zeCommandListAppendMemoryCopyRegion(list, p + 4 * PAGE, &to, 64, 0, p, &from, 32, 0, NULL, 1, &event));
    OK(zeCommandListClose(list));
    CHECK(p[0] == 0 && zeFenceQueryStatus(fence) == ZE_RESULT_NOT_READY && zeEventQueryStatus(event) == ZE_RESULT_NOT_READY);
    OK(zeCommandQueueExecuteCommandLists(queue, 1, &list, fence));
    OK(zeCommandQueueSynchronize(queue, UINT64_MAX));
    OK(zeFenceHostSynchronize(fence, UINT64_MAX));
    OK(zeEventHostSynchronize(event, UINT64_MAX));
    CHECK(p[1] == 2 && p[2 * PAGE + 3] == 4 && p[3 * PAGE] == 0);
    CHECK(p[4 * PAGE + 3] == 0 && p[4 * PAGE + 4] == 1 && p[4 * PAGE + 128 + 11] == 4 && p[4 * PAGE + 12] == 0);
    ze_kernel_timestamp_result_t time;
    OK(zeEventQueryKernelTimestamp(event, &time));
    CHECK(time.global.kernelEnd > time.global.kernelStart);
    OK(zeCommandListAppendWriteGlobalTimestamp(f->list, (uint64_t *)(void *)p, NULL, 0, NULL));
    CHECK(*(uint64_t *)(void *)p >= time.global.kernelEnd);
    OK(zeEventHostReset(event));
    CHECK(zeEventHostSynchronize(event, 1000000) == ZE_RESULT_NOT_READY);
    CHECK(stats_of(f).copies == 2 && stats_of(f).fills == 1);
    OK(zeCommandListReset(list));
    OK(zeCommandListDestroy(list));
    OK(zeFenceDestroy(fence));
    OK(zeCommandQueueDestroy(queue));
    OK(zeMemFree(f->context, p));
}

static void not_imported(struct fixture *f)
{
    char *p = map_pages(4), zero = 0;
    CHECK(zeCommandListAppendMemoryFill(f->list, p, &zero, 1, PAGE, NULL, 0, NULL) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(wrap(f, NULL, p, PAGE));
    OK(zeCommandListAppendMemoryFill(f->list, p, &zero, 1, PAGE, NULL, 0, NULL));
    CHECK(zeCommandListAppendMemoryCopy(f->list, p, p + PAGE, 1, NULL, 0, NULL) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    CHECK(zeContextMakeMemoryResident(f->context, f->devices[0], p + PAGE, PAGE) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(zeMemFree(f->context, p));
}

static void size_limit(struct fixture *f)
{
    char *p = map_pages(512);
    void *out;
    CHECK(wrap(f, NULL, p, 512 * PAGE) == ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    struct memmap_desc map = {0x20037, NULL, p, 512 * PAGE};
    struct relaxed_desc relaxed = {0x20001, &map, 1};
    ze_host_mem_alloc_desc_t desc = {ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, &relaxed, 0};
    OK(zeMemAllocHost(f->context, &desc, 512 * PAGE, PAGE, &out)); // first in the chain
    OK(zeMemFree(f->context, p));
    relaxed.pNext = NULL;
    map.pNext = &relaxed;
    desc.pNext = &map; // second: not honoured
    CHECK(zeMemAllocHost(f->context, &desc, 512 * PAGE, PAGE, &out) == ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
    CHECK(stats_of(f).imports_refused == 2);
}

static void bad_pages(struct fixture *f)
{
    char *p = map_pages(4);
    CHECK(munmap(p + 2 * PAGE, PAGE) == 0);
    CHECK(wrap(f, NULL, p, 4 * PAGE) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    CHECK(mprotect(p, PAGE, PROT_READ) == 0);
    CHECK(wrap(f, NULL, p, 2 * PAGE) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(wrap_flags(f, p, PAGE, 16)); // read-only flag
    OK(zeMemFree(f->context, p));
    CHECK(mprotect(p, PAGE, PROT_NONE) == 0);
    CHECK(wrap(f, NULL, p, PAGE) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    char *q = map_pages(4);
    OK(wrap(f, NULL, q, 4 * PAGE)); // never touched: populated now
    unsigned char resident[4];
    CHECK(mincore(q, 4 * PAGE, resident) == 0 && (resident[0] & resident[3] & 1));
    OK(zeMemFree(f->context, q));
}

static void older_functions(struct fixture *f)
{
    char *p = map_pages(8);
    void *address, *base, *driver = raw_driver(f);
    ze_result_t (*import)(void *, void *, size_t), (*release)(void *, void *), (*base_of)(void *, void *, void **);
    OK(zeDriverGetExtensionFunctionAddress(f->driver, "zexDriverImportExternalPointer", &address));
    memcpy(&import, &address, sizeof address);
    OK(zeDriverGetExtensionFunctionAddress(f->driver, "zexDriverReleaseImportedPointer", &address));
    memcpy(&release, &address, sizeof address);
    OK(zeDriverGetExtensionFunctionAddress(f->driver, "zexDriverGetHostPointerBaseAddress", &address));
    memcpy(&base_of, &address, sizeof address);
    CHECK(zeDriverGetExtensionFunctionAddress(f->driver, "zexNoSuchThing", &address) != ZE_RESULT_SUCCESS);
    CHECK(base_of(driver, p, &base) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    OK(import(driver, p, 4 * PAGE));
    OK(import(driver, p + PAGE, PAGE)); // covered
    CHECK(import(driver, p + 2 * PAGE, 4 * PAGE) == ZE_RESULT_ERROR_OVERLAPPING_REGIONS);
    OK(base_of(driver, p + 3 * PAGE, &base));
    CHECK(base == p);
    OK(launch1(f, "add1_u8", 16, p));
    OK(release(driver, p));
    CHECK(release(driver, p) != ZE_RESULT_SUCCESS && stats_of(f).imports_live == 0);
}

// A pinned page stays its parent's: both write after the fork, and the parent goes on using it.
static void fork_parent(struct fixture *f)
{
    char *p = map_pages(100);
    int go[2];
    char byte = 0;
    OK(wrap(f, NULL, p, 100 * PAGE));
    CHECK(pipe(go) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(go[1]); // so that a parent that fails lets this child go
        if (read(go[0], &byte, 1) != 1) _exit(2); // alive while the parent writes: pages are shared
        memset(p, 9, 100 * PAGE);
        _exit(zeMemFree(f->context, p) == ZE_RESULT_ERROR_DEVICE_LOST ? 0 : 3);
    }
    memset(p, 5, 100 * PAGE);
    OK(launch1(f, "add1_u8", 16, p));
    CHECK(write(go[1], &byte, 1) == 1);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(p[0] == 6 && p[99 * PAGE] == 5);
    OK(zeMemFree(f->context, p));
}

static void many_imports(struct fixture *f)
{
    const size_t count = 100000;
    char *p = mmap(NULL, 2 * count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct timespec a, b;
    CHECK(p != MAP_FAILED);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (size_t i = 0; i < count; i++) OK(wrap(f, NULL, p + 2 * ((i * 7919) % count) * PAGE, PAGE));
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("FIGURE sim_import_100k_mean %.0f ns\n", (double)((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec) / (double)count);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (size_t i = 0; i < count; i++) CHECK(type_in(f, NULL, p + 2 * i * PAGE + 5) == ZE_MEMORY_TYPE_HOST);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("FIGURE sim_lookup_100k_mean %.0f ns\n", (double)((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec) / (double)count);
    fflush(stdout);
    CHECK(stats_of(f).imports_live == count);
    for (size_t i = 0; i < count; i++) OK(zeMemFree(f->context, p + 2 * i * PAGE));
    CHECK(stats_of(f).imports_live == 0);
}

static void *import_in_thread(void *argument)
{
    struct fixture *f = argument;
    ze_command_list_handle_t list = immediate(f, f->devices[0]);
    char *p = map_pages(64);
    const char one = 1;
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < 64; i += 4) OK(wrap(f, NULL, p + i * PAGE, 3 * PAGE));
        for (size_t i = 0; i < 64; i += 4) OK(zeCommandListAppendMemoryFill(list, p + i * PAGE, &one, 1, 3 * PAGE, NULL, 0, NULL));
        for (size_t i = 0; i < 64; i += 4) OK(zeMemFree(f->context, p + i * PAGE));
    }
    OK(zeCommandListDestroy(list));
    return NULL;
}

static void threads(struct fixture *f)
{
    pthread_t ids[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&ids[i], NULL, import_in_thread, f) == 0);
    for (int i = 0; i < 4; i++) pthread_join(ids[i], NULL);
    CHECK(stats_of(f).imports == 4 * 200 * 16 && stats_of(f).imports_live == 0);
}

// What only newer loaders export; skipped where one is missing.
static void newer_functions(struct fixture *f)
{
    struct group_size { uint32_t x, y, z; } group = {32, 1, 1};
    ze_result_t (*append)(ze_command_list_handle_t, ze_kernel_handle_t, ze_group_count_t, struct group_size, void **,
                          const void *, ze_event_handle_t, uint32_t, ze_event_handle_t *);
    ze_result_t (*append_lists)(ze_command_list_handle_t, uint32_t, ze_command_list_handle_t *, ze_event_handle_t,
                                uint32_t, ze_event_handle_t *);
    ze_result_t (*synchronize)(ze_command_list_handle_t, uint64_t);
    ze_context_handle_t (*default_context)(ze_driver_handle_t);
    *(void **)(void *)&append = dlsym(RTLD_DEFAULT, "zeCommandListAppendLaunchKernelWithArguments");
    *(void **)(void *)&append_lists = dlsym(RTLD_DEFAULT, "zeCommandListImmediateAppendCommandListsExp");
    *(void **)(void *)&synchronize = dlsym(RTLD_DEFAULT, "zeCommandListHostSynchronize");
    *(void **)(void *)&default_context = dlsym(RTLD_DEFAULT, "zeDriverGetDefaultContext");
    if (!append || !append_lists || !synchronize || !default_context) _Exit(SKIP);
    char *p = map_pages(1);
    OK(wrap(f, NULL, p, PAGE));
    OK(launch1(f, "add1_u8", 1, p)); // loads the module
    ze_kernel_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = "fill_u8"};
    ze_kernel_handle_t kernel;
    OK(zeKernelCreate(f->module, &desc, &kernel));
    uint8_t value = 42;
    void *arguments[] = {&p, &value};
    const ze_group_count_t count = {2, 1, 1};
    OK(append(f->list, kernel, count, group, arguments, NULL, NULL, 0, NULL));
    CHECK(p[0] == 42 && p[63] == 42 && p[64] == 0);
    ze_command_list_desc_t list_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    ze_command_list_handle_t list;
    OK(zeCommandListCreate(f->context, f->devices[0], &list_desc, &list));
    OK(zeCommandListAppendMemoryCopy(list, p + 100, p, 10, NULL, 0, NULL));
    OK(zeCommandListClose(list));
    OK(append_lists(f->list, 1, &list, NULL, 0, NULL));
    OK(synchronize(f->list, UINT64_MAX));
    CHECK(p[109] == 42 && p[110] == 0);
    ze_context_handle_t context = default_context(f->driver);
    CHECK(context && context == default_context(f->driver));
    CHECK(type_in(f, context, p) == (f->context_scope ? ZE_MEMORY_TYPE_UNKNOWN : ZE_MEMORY_TYPE_HOST));
}

static void modules(struct fixture *f)
{
    ze_module_build_log_handle_t log;
    ze_module_handle_t module;
    char text[256] = "";
    size_t size = sizeof text;
    ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .format = ZE_MODULE_FORMAT_IL_SPIRV,
                             .inputSize = 4, .pInputModule = (const uint8_t *)"abcd"};
    CHECK(zeModuleCreate(f->context, f->devices[0], &desc, &module, &log) == ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
    if (raw_driver(f) == f->driver) { // a loader 1.8 that wraps handles forgets to wrap the log of a failed build
        OK(zeModuleBuildLogGetString(log, &size, text));
        CHECK(strstr(text, "native"));
        OK(zeModuleBuildLogDestroy(log));
    }
    desc.format = ZE_MODULE_FORMAT_NATIVE; // no ELF
    CHECK(zeModuleCreate(f->context, f->devices[0], &desc, &module, NULL) == ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
    char *p = map_pages(1);
    OK(wrap(f, NULL, p, PAGE));
    OK(launch1(f, "add1_u8", 1, p)); // loads the module
    uint32_t names = 0;
    const char *list[16];
    OK(zeModuleGetKernelNames(f->module, &names, NULL));
    CHECK(names >= 6 && names <= 16);
    OK(zeModuleGetKernelNames(f->module, &names, list));
    CHECK(strcmp(list[0], "sin2") == 0);
    ze_kernel_desc_t kernel_desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = "no_such_kernel"};
    ze_kernel_handle_t kernel;
    CHECK(zeKernelCreate(f->module, &kernel_desc, &kernel) == ZE_RESULT_ERROR_INVALID_KERNEL_NAME);
    kernel_desc.pKernelName = "fill_u8";
    OK(zeKernelCreate(f->module, &kernel_desc, &kernel));
    CHECK(zeKernelSetArgumentValue(kernel, 2, 1, p) == ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX);
    CHECK(zeKernelSetArgumentValue(kernel, 1, 4, p) == ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
    OK(zeKernelDestroy(kernel));
    OK(zeModuleDestroy(f->module));
    OK(zeMemFree(f->context, p));
}

#define NORMAL(name, env, scope) {#name, name, env, scope, -1, 0, NULL}
const struct test_case normal_cases[] = {
    NORMAL(import_release, "GHSIM_LEAKCHECK=1", ANY_SCOPE),
    NORMAL(nested_references, "GHSIM_LEAKCHECK=1", DRIVER_SCOPE),
    NORMAL(scope_of_driver, "GHSIM_LEAKCHECK=1", DRIVER_SCOPE),
    NORMAL(scope_of_context, "GHSIM_LEAKCHECK=1", CONTEXT_SCOPE),
    NORMAL(kernels, "GHSIM_LEAKCHECK=1", ANY_SCOPE),
    NORMAL(copies_and_events, "GHSIM_LEAKCHECK=1", ANY_SCOPE),
    NORMAL(not_imported, "GHSIM_LEAKCHECK=1", ANY_SCOPE),
    NORMAL(size_limit, "GHSIM_MAX_ALLOC=0x100000 GHSIM_LEAKCHECK=1", ANY_SCOPE),
    NORMAL(bad_pages, "GHSIM_LEAKCHECK=1", ANY_SCOPE),
    NORMAL(older_functions, "GHSIM_LEAKCHECK=1", ANY_SCOPE),
    NORMAL(fork_parent, "GHSIM_LEAKCHECK=1", ANY_SCOPE),
    {"fork_parent_unpinned", fork_parent, "GHSIM_PIN=0 GHSIM_LEAKCHECK=1", ANY_SCOPE, -1, 0, NULL},
    NORMAL(many_imports, "GHSIM_LEAKCHECK=1", ANY_SCOPE),
    NORMAL(threads, "GHSIM_LEAKCHECK=1", ANY_SCOPE),
    NORMAL(newer_functions, "", ANY_SCOPE),
    NORMAL(modules, "GHSIM_LEAKCHECK=1", ANY_SCOPE),
    {"gpu_in_context_scope", scope_of_context, "GHSIM_SCOPE=context", DRIVER_SCOPE, -1, 0, NULL},
    {"npu_in_driver_scope", scope_of_driver, "GHSIM_SCOPE=driver", CONTEXT_SCOPE, -1, 0, NULL},
    {NULL, NULL, NULL, ANY_SCOPE, -1, 0, NULL},
};
