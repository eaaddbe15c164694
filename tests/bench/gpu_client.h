// SPDX-License-Identifier: MIT
//
// The Level Zero steps that the GPU measurements share, as an ordinary client takes them, and
// what they print: "name value" lines, which bench_gpu.py reads. One thread opens; the handles
// are then good for all.
#ifndef GH_BENCH_GPU_CLIENT_H
#define GH_BENCH_GPU_CLIENT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "preload/include/gpuhost.h"
#include "preload/level_zero/ze_compat.h"

struct gpu_client {
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
};

static inline void gpu_must(ze_result_t result, const char *what) {
    if (result == ZE_RESULT_SUCCESS)
        return;
    fprintf(stderr, "bench: %s: error 0x%x\n", what, (unsigned)result);
    exit(3);
}

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Everything but the context, so that its creation can be timed alone.
static inline void gpu_find(struct gpu_client *gpu) {
    uint32_t one = 1;
    prctl(PR_SET_TIMERSLACK, 1ul); // the simulated driver's delays are of microseconds
    gpu_must(zeInit(0), "zeInit");
    gpu_must(zeDriverGet(&one, &gpu->driver), "zeDriverGet");
    one = 1;
    gpu_must(zeDeviceGet(gpu->driver, &one, &gpu->device), "zeDeviceGet");
}

static inline void gpu_attach(struct gpu_client *gpu) {
    const ze_context_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
    gpu_must(zeContextCreate(gpu->driver, &desc, &gpu->context), "zeContextCreate");
}

static inline ze_result_t gpu_wrap(const struct gpu_client *gpu, void *pages, size_t size) {
    const gh_ze_memmap_desc_t memmap = { .stype = GH_ZE_STYPE_MEMMAP, .pSystemMemory = pages, .size = size };
    const ze_host_mem_alloc_desc_t host = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = &memmap };
    void *answer = NULL;
    return zeMemAllocHost(gpu->context, &host, size, 4096, &answer);
}

// A look-up at the door: what is waiting is imported before it answers.
static inline void gpu_knock(const struct gpu_client *gpu, const void *pointer) {
    ze_memory_allocation_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES };
    gpu_must(zeMemGetAllocProperties(gpu->context, pointer, &properties, NULL), "zeMemGetAllocProperties");
}

static inline double resident_mib(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        exit(3);
    fclose(file);
    return (double)pages * 4096 / (1 << 20);
}

void gpu_bench_wraps(void);
void gpu_bench_door(void);
void gpu_bench_import(const char *kind, size_t mib);
void gpu_bench_memory(int attach, unsigned seconds);

#endif
