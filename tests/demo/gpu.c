// SPDX-License-Identifier: MIT
//
// See gpu.h. What cannot fail on a working driver ends the program with a line;
// what the demo is about (wraps, launches) is answered to the caller.
#include "gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Loader headers before 1.14 or so do not have the extension's struct.
#ifndef ZE_EXTERNAL_MEMORY_MAPPING_EXT_NAME
typedef struct _ze_external_memmap_sysmem_ext_desc_t {
    ze_structure_type_t stype;
    const void *pNext;
    void *pSystemMemory;
    uint64_t size;
} ze_external_memmap_sysmem_ext_desc_t;
#define GPU_STYPE_MEMMAP ((ze_structure_type_t)0x00020037)
#else
#define GPU_STYPE_MEMMAP ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC
#endif

static void must(ze_result_t result, const char *what)
{
    if (result == ZE_RESULT_SUCCESS) return;
    fprintf(stderr, "demo: %s: error 0x%x\n", what, (unsigned)result);
    exit(3);
}

void gpu_open(struct gpu *gpu, const char *kernels)
{
    memset(gpu, 0, sizeof *gpu);
    gpu->kernels = kernels;
    const ze_result_t started = zeInit(0);
    uint32_t count = 0;
    if (started != ZE_RESULT_SUCCESS || zeDriverGet(&count, NULL) != ZE_RESULT_SUCCESS || count == 0) {
        fprintf(stderr, "demo: no Level Zero driver (zeInit answered 0x%x)\n", (unsigned)started);
        exit(3);
    }
    ze_driver_handle_t drivers[16];
    if (count > 16) count = 16;
    must(zeDriverGet(&count, drivers), "zeDriverGet");
    for (uint32_t i = 0; i < count && !gpu->device; i++) {
        ze_device_handle_t devices[16];
        uint32_t found = 16;
        if (zeDeviceGet(drivers[i], &found, devices) != ZE_RESULT_SUCCESS) continue;
        for (uint32_t k = 0; k < found && !gpu->device; k++) {
            ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
            must(zeDeviceGetProperties(devices[k], &properties), "zeDeviceGetProperties");
            if (properties.type != ZE_DEVICE_TYPE_GPU) continue;
            gpu->driver = drivers[i];
            gpu->device = devices[k];
            memcpy(gpu->name, properties.name, sizeof gpu->name);
        }
    }
    if (!gpu->device) {
        fprintf(stderr, "demo: no GPU among %" PRIu32 " Level Zero drivers\n", count);
        exit(3);
    }
    const ze_context_desc_t context = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    must(zeContextCreate(gpu->driver, &context, &gpu->context), "zeContextCreate");
    const ze_command_queue_desc_t queue = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                           .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS};
    must(zeCommandListCreateImmediate(gpu->context, gpu->device, &queue, &gpu->list), "zeCommandListCreateImmediate");
}

void gpu_close(struct gpu *gpu)
{
    must(zeCommandListDestroy(gpu->list), "zeCommandListDestroy");
    must(zeContextDestroy(gpu->context), "zeContextDestroy");
}

ze_result_t gpu_wrap(struct gpu *gpu, void *array, size_t size, struct gpu_wrap *out)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)array & ~(page - 1);
    const uintptr_t end = ((uintptr_t)array + size + page - 1) & ~(page - 1);
    const ze_external_memmap_sysmem_ext_desc_t memmap = {
        .stype = GPU_STYPE_MEMMAP, .pSystemMemory = (void *)begin, .size = end - begin};
    const ze_host_mem_alloc_desc_t host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = &memmap};
    void *base = NULL;
    ze_result_t result = zeMemAllocHost(gpu->context, &host, end - begin, page, &base);
    if (result != ZE_RESULT_SUCCESS) return result;
    if (base != (void *)begin) {
        zeMemFree(gpu->context, base);
        return ZE_RESULT_ERROR_UNKNOWN; // a copy would not be in place
    }
    result = zeContextMakeMemoryResident(gpu->context, gpu->device, base, end - begin);
    if (result != ZE_RESULT_SUCCESS) {
        zeMemFree(gpu->context, base);
        return result;
    }
    *out = (struct gpu_wrap){base, end - begin};
    return ZE_RESULT_SUCCESS;
}

ze_result_t gpu_unwrap(struct gpu *gpu, struct gpu_wrap wrap)
{
    const ze_result_t evicted = zeContextEvictMemory(gpu->context, gpu->device, wrap.base, wrap.size);
    const ze_result_t freed = zeMemFree(gpu->context, wrap.base);
    return freed != ZE_RESULT_SUCCESS ? freed : evicted;
}

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (!file || fstat(fileno(file), &status) != 0) {
        perror(path);
        exit(3);
    }
    *size = (size_t)status.st_size;
    void *bytes = malloc(*size);
    if (!bytes || fread(bytes, 1, *size, file) != *size) {
        perror(path);
        exit(3);
    }
    fclose(file);
    return bytes;
}

ze_kernel_handle_t gpu_kernel(struct gpu *gpu, const char *name)
{
    struct stat status;
    char path[4096];
    const bool folder = stat(gpu->kernels, &status) == 0 && S_ISDIR(status.st_mode);
    snprintf(path, sizeof path, folder ? "%s/%s.spv" : "%s", gpu->kernels, name);
    size_t size;
    uint8_t *bytes = read_file(path, &size);
    const ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC,
                                   .format = folder ? ZE_MODULE_FORMAT_IL_SPIRV : ZE_MODULE_FORMAT_NATIVE,
                                   .inputSize = size,
                                   .pInputModule = bytes};
    ze_module_handle_t module;
    must(zeModuleCreate(gpu->context, gpu->device, &desc, &module, NULL), "zeModuleCreate");
    free(bytes);
    const ze_kernel_desc_t kernel_desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = name};
    ze_kernel_handle_t kernel;
    must(zeKernelCreate(module, &kernel_desc, &kernel), "zeKernelCreate");
    return kernel;
}

ze_result_t gpu_run(struct gpu *gpu, ze_kernel_handle_t kernel, void *pointer, size_t items)
{
    uint32_t group = 256; // exactly `items` work items: the kernels have no bound of their own
    while (items % group != 0) group /= 2;
    ze_result_t result = zeKernelSetGroupSize(kernel, group, 1, 1);
    if (result == ZE_RESULT_SUCCESS) result = zeKernelSetArgumentValue(kernel, 0, sizeof pointer, &pointer);
    if (result != ZE_RESULT_SUCCESS) return result;
    const ze_group_count_t groups = {(uint32_t)(items / group), 1, 1};
    return zeCommandListAppendLaunchKernel(gpu->list, kernel, &groups, NULL, 0, NULL);
}

void *gpu_device_memory(struct gpu *gpu, size_t size)
{
    const ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    void *memory = NULL;
    must(zeMemAllocDevice(gpu->context, &desc, size, 4096, gpu->device, &memory), "zeMemAllocDevice");
    return memory;
}

ze_result_t gpu_copy(struct gpu *gpu, void *to, const void *from, size_t size)
{
    return zeCommandListAppendMemoryCopy(gpu->list, to, from, size, NULL, 0, NULL);
}
