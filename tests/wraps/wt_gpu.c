// SPDX-License-Identifier: MIT
//
// See wt_gpu.h. What cannot fail on a working driver ends the process with a line.
#include "wt_gpu.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct wt_unit wt_units[WT_UNITS_MAX];
unsigned wt_unit_count;
unsigned wt_driver_count;
static void *sims[WT_UNITS_MAX];

// Layouts and numbers of the Level Zero specification; Debian 12's headers lack them.
#define STYPE_MEMMAP ((ze_structure_type_t)0x00020037)
#define HOST_READ_ONLY ((ze_host_mem_alloc_flags_t)(1u << 4))
struct memmap_desc {
    ze_structure_type_t stype;
    const void *next;
    void *pointer;
    uint64_t size_bytes;
};

_Noreturn void wt_fail(const char *format, ...) {
    char line[512];
    va_list more;
    va_start(more, format);
    int length = vsnprintf(line, sizeof line - 1, format, more);
    va_end(more);
    if (length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    (void)!write(2, line, (size_t)length);
    if (getenv("WT_ABORT") != NULL)
        abort();
    _exit(1);
}

static void must(ze_result_t result, const char *what) {
    if (result != ZE_RESULT_SUCCESS)
        wt_fail("%s: error 0x%x", what, (unsigned)result);
}

static void *read_file(const char *path, size_t *size_out) {
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (file == NULL || fstat(fileno(file), &status) != 0)
        wt_fail("cannot read %s", path);
    unsigned char *bytes = malloc((size_t)status.st_size);
    *size_out = fread(bytes, 1, (size_t)status.st_size, file);
    fclose(file);
    return bytes;
}

static ze_module_handle_t make_module(const struct wt_unit *unit, const char *kernels) {
    struct stat status;
    size_t size;
    if (kernels == NULL || (stat(kernels, &status) == 0 && S_ISDIR(status.st_mode)))
        return NULL; // a real driver without hardware: no results to look at
    void *bytes = read_file(kernels, &size);
    ze_module_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .format = ZE_MODULE_FORMAT_NATIVE,
                              .inputSize = size, .pInputModule = bytes };
    ze_module_handle_t module = NULL;
    must(zeModuleCreate(unit->context, unit->device, &desc, &module, NULL), "zeModuleCreate");
    free(bytes);
    return module;
}

// The simulated drivers in the order of ZE_ENABLE_ALT_DRIVERS, which is the loader's.
static void find_sims(void) {
    const char *list = getenv("ZE_ENABLE_ALT_DRIVERS");
    for (unsigned i = 0; list != NULL && *list != '\0' && i < wt_driver_count; i++) {
        char path[1024];
        size_t length = strcspn(list, ",");
        snprintf(path, sizeof path, "%.*s", (int)length, list);
        sims[i] = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
        list += length + (list[length] == ',');
    }
}

void wt_open(const char *kernels, unsigned contexts_of_each_driver) {
    ze_driver_handle_t drivers[WT_UNITS_MAX];
    wt_driver_count = WT_UNITS_MAX;
    must(zeInit(0), "zeInit");
    must(zeDriverGet(&wt_driver_count, drivers), "zeDriverGet");
    if (wt_driver_count == 0)
        wt_fail("no Level Zero driver");
    find_sims();
    for (unsigned i = 0; i < wt_driver_count; i++) {
        uint32_t devices = 1;
        ze_device_handle_t device = NULL;
        must(zeDeviceGet(drivers[i], &devices, &device), "zeDeviceGet");
        for (unsigned k = 0; k < contexts_of_each_driver && wt_unit_count < WT_UNITS_MAX; k++) {
            struct wt_unit *unit = &wt_units[wt_unit_count++];
            const ze_context_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
            *unit = (struct wt_unit){ .driver = drivers[i], .device = device, .driver_index = i };
            must(zeContextCreate(drivers[i], &desc, &unit->context), "zeContextCreate");
            unit->module = make_module(unit, kernels);
        }
    }
}

void wt_close(void) {
    for (unsigned i = 0; i < wt_unit_count; i++) {
        if (wt_units[i].module != NULL)
            must(zeModuleDestroy(wt_units[i].module), "zeModuleDestroy");
        must(zeContextDestroy(wt_units[i].context), "zeContextDestroy");
    }
    wt_unit_count = 0;
}

static ze_kernel_handle_t make_kernel(const struct wt_unit *unit, const char *name) {
    ze_kernel_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = name };
    ze_kernel_handle_t kernel = NULL;
    must(zeKernelCreate(unit->module, &desc, &kernel), "zeKernelCreate");
    return kernel;
}

void wt_queue_open(struct wt_queue *queue, const struct wt_unit *unit) {
    const ze_command_queue_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                           .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS };
    *queue = (struct wt_queue){ .unit = unit };
    must(zeCommandListCreateImmediate(unit->context, unit->device, &desc, &queue->list), "zeCommandListCreateImmediate");
    if (unit->module != NULL) {
        queue->add1 = make_kernel(unit, "add1_u8");
        queue->copy = make_kernel(unit, "copy_u8");
    }
}

void wt_queue_close(struct wt_queue *queue) {
    if (queue->add1 != NULL) {
        must(zeKernelDestroy(queue->add1), "zeKernelDestroy");
        must(zeKernelDestroy(queue->copy), "zeKernelDestroy");
    }
    must(zeCommandListDestroy(queue->list), "zeCommandListDestroy");
}

struct wt_range wt_rounded(const void *pointer, size_t size_bytes) {
    const uintptr_t start = (uintptr_t)pointer & ~(WT_PAGE - 1);
    const uintptr_t end = ((uintptr_t)pointer + size_bytes + WT_PAGE - 1) & ~(WT_PAGE - 1);
    return (struct wt_range){ (unsigned char *)start, end - start };
}

ze_result_t wt_wrap(const struct wt_unit *unit, void *pointer, size_t size_bytes, bool read_only) {
    const struct memmap_desc memmap = { .stype = STYPE_MEMMAP, .pointer = pointer, .size_bytes = size_bytes };
    const ze_host_mem_alloc_desc_t host = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = &memmap,
                                            .flags = read_only ? HOST_READ_ONLY : 0 };
    void *base = NULL;
    ze_result_t result = zeMemAllocHost(unit->context, &host, size_bytes, WT_PAGE, &base);
    return result == ZE_RESULT_SUCCESS && base != pointer ? ZE_RESULT_ERROR_UNKNOWN : result;
}

ze_result_t wt_unwrap(const struct wt_unit *unit, void *pointer) {
    return zeMemFree(unit->context, pointer);
}

ze_memory_type_t wt_type(const struct wt_unit *unit, const void *pointer) {
    ze_memory_allocation_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES };
    ze_device_handle_t device = NULL;
    if (zeMemGetAllocProperties(unit->context, pointer, &properties, &device) != ZE_RESULT_SUCCESS)
        return ZE_MEMORY_TYPE_UNKNOWN;
    return properties.type;
}

// Exactly `items` work items: the kernels have no bound of their own.
static ze_result_t launch(struct wt_queue *queue, ze_kernel_handle_t kernel, size_t items) {
    uint32_t group = 256;
    while (items % group != 0)
        group /= 2;
    ze_result_t result = zeKernelSetGroupSize(kernel, group, 1, 1);
    const ze_group_count_t groups = { (uint32_t)(items / group), 1, 1 };
    return result != ZE_RESULT_SUCCESS ? result
                                       : zeCommandListAppendLaunchKernel(queue->list, kernel, &groups, NULL, 0, NULL);
}

ze_result_t wt_add1(struct wt_queue *queue, void *pointer, size_t size_bytes) {
    ze_result_t result = zeKernelSetArgumentValue(queue->add1, 0, sizeof pointer, &pointer);
    return result != ZE_RESULT_SUCCESS ? result : launch(queue, queue->add1, size_bytes);
}

ze_result_t wt_copy_kernel(struct wt_queue *queue, void *to, const void *from, size_t size_bytes) {
    ze_result_t result = zeKernelSetArgumentValue(queue->copy, 0, sizeof to, &to);
    if (result == ZE_RESULT_SUCCESS)
        result = zeKernelSetArgumentValue(queue->copy, 1, sizeof from, &from);
    return result != ZE_RESULT_SUCCESS ? result : launch(queue, queue->copy, size_bytes);
}

bool wt_sim_stats(unsigned driver_index, struct ghsim_stats *out) {
    void (*stats)(struct ghsim_stats *) = NULL;
    if (driver_index < WT_UNITS_MAX && sims[driver_index] != NULL)
        stats = (void (*)(struct ghsim_stats *))dlsym(sims[driver_index], "ghsim_stats");
    if (stats == NULL)
        return false;
    stats(out);
    return true;
}
