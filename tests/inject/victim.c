// SPDX-License-Identifier: MIT
//
// The program that runs with libgpuhost preloaded while something fails: the scenario through
// malloc and the real Level Zero loader, two threads, a fork. Prints one line at its end with the
// number of failures that it met.
//
//   inject_victim [DRIVER]      DRIVER: the simulated driver that the loader was told of
// INJECT_SINGLE: one call fails, the next one like it does not. INJECT_REFUSES: the driver takes
// no imports. INJECT_KEEPS: it may refuse to release them.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpuhost.h"
#include "scenario.h"

#define RUN_SECONDS 20

static struct world world;
static unsigned long (*shim_fired)(void);

static void *allocate(size_t bytes, size_t alignment, bool zero) {
    return zero ? calloc(1, bytes) : alignment == 0 ? malloc(bytes) : aligned_alloc(alignment, bytes);
}

static int drop(void *start, size_t bytes) {
    return madvise(start, bytes, MADV_DONTNEED);
}

static bool visible(const void *pointer, size_t bytes) {
    return gpuhost_is_visible != NULL && gpuhost_is_visible(pointer, bytes) == 1;
}

static struct gpuhost_stats stats(void) {
    struct gpuhost_stats now = { 0 };
    if (gpuhost_stats != NULL)
        gpuhost_stats(&now);
    return now;
}

static unsigned scopes(void) {
    return (unsigned)stats().scopes;
}

static uint64_t regions(void) {
    return stats().regions;
}

static uint64_t faults(void) {
    struct ghsim_stats sim = { 0 };
    if (world.sim_stats != NULL)
        world.sim_stats(&sim);
    return sim.faults_injected + (shim_fired == NULL ? 0 : shim_fired());
}

static void *churn(void *unused) {
    for (size_t i = 1; i < 3000; i++) {
        size_t bytes = i * 37 % 9000 + 1;
        unsigned char *block = malloc(bytes);
        if (block == NULL)
            continue;
        memset(block, (int)i, bytes);
        MUST(block[0] == (unsigned char)i && block[bytes - 1] == (unsigned char)i);
        free(block);
    }
    return unused;
}

static void use_threads(void) {
    pthread_t threads[2];
    unsigned count = 0;
    for (unsigned i = 0; i < 2; i++)
        count += pthread_create(&threads[count], NULL, churn, NULL) == 0;
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    MUST(found != NULL);
    memcpy(function, &found, sizeof(found));
}

// False when a call on the way failed.
static bool open_driver(const char *path) {
    void *loader = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_LOCAL);
    ze_result_t (*init)(ze_init_flags_t);
    ze_pfnDriverGet_t driver_get;
    ze_pfnDeviceGet_t device_get;
    if (loader == NULL) { // no memory, then
        MUST(!world.single || faults() != 0);
        return false;
    }
    find(loader, "zeInit", &init);
    find(loader, "zeDriverGet", &driver_get);
    find(loader, "zeDeviceGet", &device_get);
    find(loader, "zeContextCreate", &world.context.pfnCreate);
    find(loader, "zeContextDestroy", &world.context.pfnDestroy);
    find(loader, "zeContextMakeMemoryResident", &world.context.pfnMakeMemoryResident);
    find(loader, "zeContextEvictMemory", &world.context.pfnEvictMemory);
    find(loader, "zeMemAllocHost", &world.mem.pfnAllocHost);
    find(loader, "zeMemFree", &world.mem.pfnFree);
    find(loader, "zeMemGetAllocProperties", &world.mem.pfnGetAllocProperties);
    find(loader, "zeCommandListCreateImmediate", &world.list.pfnCreateImmediate);
    find(loader, "zeCommandListDestroy", &world.list.pfnDestroy);
    find(loader, "zeCommandListAppendMemoryFill", &world.list.pfnAppendMemoryFill);
    find(loader, "zeCommandListAppendMemoryCopy", &world.list.pfnAppendMemoryCopy);
    ze_result_t result = init(0);
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL)
        return false;
    find(library, "ghsim_stats", &world.sim_stats);
    uint32_t count = 1;
    if (result != ZE_RESULT_SUCCESS || driver_get(&count, &world.driver) != ZE_RESULT_SUCCESS || count == 0)
        return false;
    count = 1;
    return device_get(world.driver, &count, &world.device) == ZE_RESULT_SUCCESS && count == 1;
}

int main(int argc, char **argv) {
    alarm(RUN_SECONDS);
    void *found = dlsym(RTLD_DEFAULT, "inject_fired");
    memcpy(&shim_fired, &found, sizeof(found));
    world = (struct world){
        .allocate = allocate, .resize = realloc, .release = free, .unmap = munmap, .drop = drop, .visible = visible,
        .scopes = scopes, .regions = regions, .faults = faults, .single = getenv("INJECT_SINGLE") != NULL,
        .takes_imports = getenv("INJECT_REFUSES") == NULL, .keeps_imports = getenv("INJECT_KEEPS") != NULL,
        .per_context = argc > 1 && strstr(argv[1], "npu") != NULL,
    };
    bool active = gpuhost_active != NULL && gpuhost_active() == 1;
    world.takes_imports = world.takes_imports && active;
    scenario_heap(&world);
    use_threads();
    if (argc > 1 && open_driver(argv[1]))
        scenario_gpu(&world);
    scenario_heap(&world);
    scenario_fork(&world);
    printf("victim: active %d, failures %llu\n", active, (unsigned long long)faults());
    return 0;
}
