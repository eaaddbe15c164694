// SPDX-License-Identifier: MIT
//
// Modules and kernels. A native module is a shared object: its bytes go into a memfd and through
// dlopen. A kernel NAME is
//     void NAME(size_t begin, size_t end, void **args);
// over global work-item numbers; args[i] points at the bytes of argument i. Beside it the module may export
//     const unsigned NAME_arg_sizes[]    sizes in bytes, 0 at the end (needed for launches WithArguments)
//     const unsigned NAME_pointer_args   bit i: argument i is a pointer (default: every 8-byte one)
//     const char *const ghsim_kernel_names[]   NULL at the end, for zeModuleGetKernelNames
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim_internal.h"

struct sim_module {
    struct sim_handle handle;
    void *library;
    size_t size;
    unsigned char *bytes; // the binary, for zeModuleGetNativeBinary
};
struct sim_build_log { struct sim_handle handle; char text[512]; };

static bool write_all(int fd, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n <= 0) return false;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

// dlopen compares names first, and descriptor numbers are used again: every path must be new. The
// number of this load is spelled in harmless slashes and dots.
static void unique_path(char *path, size_t size, int fd)
{
    static _Atomic unsigned loads;
    const unsigned load = atomic_fetch_add(&loads, 1);
    size_t used = (size_t)snprintf(path, size, "/proc/self/fd");
    for (unsigned bit = 0; bit < 24; bit++)
        used += (size_t)snprintf(path + used, size - used, (load >> bit) & 1 ? "/." : "/");
    snprintf(path + used, size - used, "/%d", fd);
}

static void *load_library(const unsigned char *bytes, size_t size, char *error, size_t error_size)
{
    char path[128];
    const int fd = memfd_create("ghsim-module", MFD_CLOEXEC);
    if (fd < 0 || !write_all(fd, bytes, size)) {
        snprintf(error, error_size, "cannot store the module");
        if (fd >= 0) close(fd);
        return NULL;
    }
    unique_path(path, sizeof path, fd);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) snprintf(error, error_size, "%s", dlerror());
    close(fd);
    return library;
}

static ze_result_t sim_zeModuleCreate(struct sim_context *context, struct sim_device *device,
                                      const ze_module_desc_t *desc, struct sim_module **out,
                                      struct sim_build_log **log)
{
    SIM_ENTER(zeModuleCreate, context, SIM_CONTEXT);
    if (!device) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!desc || !desc->pInputModule || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->inputSize == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
    char error[512] = "";
    struct sim_module *module = sim_new(sizeof *module, SIM_MODULE);
    if (!module) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    module->size = desc->inputSize;
    module->bytes = sim_alloc(desc->inputSize);
    if (module->bytes) memcpy(module->bytes, desc->pInputModule, desc->inputSize);
    if (desc->format != ZE_MODULE_FORMAT_NATIVE)
        snprintf(error, sizeof error, "only native modules (ELF shared objects) are known here");
    else if (module->bytes)
        module->library = load_library(module->bytes, module->size, error, sizeof error);
    if (log) {
        *log = sim_new(sizeof **log, SIM_BUILD_LOG);
        if (*log) memcpy((*log)->text, error, sizeof error);
    }
    if (!module->library) {
        sim_log("module %s", error);
        sim_free(module->bytes);
        sim_delete(module);
        return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
    }
    *out = module;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeModuleDestroy(struct sim_module *module)
{
    SIM_ENTER(zeModuleDestroy, module, SIM_MODULE);
    dlclose(module->library);
    sim_free(module->bytes);
    sim_delete(module);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeModuleDynamicLink(uint32_t count, struct sim_module **modules, struct sim_build_log **log)
{
    SIM_ENTER(zeModuleDynamicLink, NULL, SIM_ANY);
    (void)count;
    if (!modules) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (log) *log = sim_new(sizeof **log, SIM_BUILD_LOG);
    return ZE_RESULT_SUCCESS; // modules came through dlopen with all their symbols bound
}

static ze_result_t sim_zeModuleGetNativeBinary(struct sim_module *module, size_t *size, uint8_t *bytes)
{
    SIM_ENTER(zeModuleGetNativeBinary, module, SIM_MODULE);
    if (!size) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (bytes) memcpy(bytes, module->bytes, *size < module->size ? *size : module->size);
    *size = module->size;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeModuleGetGlobalPointer(struct sim_module *module, const char *name, size_t *size, void **out)
{
    SIM_ENTER(zeModuleGetGlobalPointer, module, SIM_MODULE);
    if (!name) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    void *symbol = dlsym(module->library, name);
    if (!symbol) return ZE_RESULT_ERROR_INVALID_GLOBAL_NAME;
    if (out) *out = symbol;
    if (size) *size = 0; // an ELF look-up by name does not tell
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeModuleGetKernelNames(struct sim_module *module, uint32_t *count, const char **names)
{
    SIM_ENTER(zeModuleGetKernelNames, module, SIM_MODULE);
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    const char *const *all = dlsym(module->library, "ghsim_kernel_names");
    uint32_t have = 0;
    for (; all && all[have]; have++)
        if (names && have < *count) names[have] = all[have];
    if (*count == 0 || *count > have) *count = have;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeModuleGetProperties(struct sim_module *module, ze_module_properties_t *properties)
{
    SIM_ENTER(zeModuleGetProperties, module, SIM_MODULE);
    if (!properties) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    properties->flags = 0;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeModuleGetFunctionPointer(struct sim_module *module, const char *name, void **out)
{
    SIM_ENTER(zeModuleGetFunctionPointer, module, SIM_MODULE);
    if (!name || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    void *symbol = dlsym(module->library, name);
    if (!symbol) return ZE_RESULT_ERROR_INVALID_FUNCTION_NAME;
    *out = symbol;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeModuleBuildLogDestroy(struct sim_build_log *log)
{
    SIM_ENTER(zeModuleBuildLogDestroy, log, SIM_BUILD_LOG);
    sim_delete(log);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeModuleBuildLogGetString(struct sim_build_log *log, size_t *size, char *text)
{
    SIM_ENTER(zeModuleBuildLogGetString, log, SIM_BUILD_LOG);
    if (!size) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    const size_t length = strlen(log->text) + 1;
    if (text) snprintf(text, *size, "%s", log->text);
    *size = length;
    return ZE_RESULT_SUCCESS;
}

static const void *beside(void *library, const char *kernel, const char *suffix)
{
    char name[192];
    snprintf(name, sizeof name, "%s%s", kernel, suffix);
    return dlsym(library, name);
}

static ze_result_t sim_zeKernelCreate(struct sim_module *module, const ze_kernel_desc_t *desc, struct sim_kernel **out)
{
    SIM_ENTER(zeKernelCreate, module, SIM_MODULE);
    if (!desc || !desc->pKernelName || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    void *symbol = dlsym(module->library, desc->pKernelName);
    if (!symbol || strlen(desc->pKernelName) >= sizeof(*out)->name) return ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
    struct sim_kernel *kernel = sim_new(sizeof *kernel, SIM_KERNEL);
    if (!kernel) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    kernel->module = module;
    memcpy(&kernel->function, &symbol, sizeof symbol);
    snprintf(kernel->name, sizeof kernel->name, "%s", desc->pKernelName);
    kernel->arg_sizes = beside(module->library, kernel->name, "_arg_sizes");
    const unsigned *mask = beside(module->library, kernel->name, "_pointer_args");
    kernel->pointer_mask = mask ? *mask : UINT32_MAX;
    while (kernel->arg_sizes && kernel->arg_count < SIM_MAX_ARGS && kernel->arg_sizes[kernel->arg_count])
        kernel->arg_count++;
    kernel->group[0] = kernel->group[1] = kernel->group[2] = 1;
    *out = kernel;
    return ZE_RESULT_SUCCESS;
}

const struct sim_slot sim_module_slots[] = {
    SIM_SLOT(MODULE, 0, 0, sim_zeModuleCreate),
    SIM_SLOT(MODULE, 1, 0, sim_zeModuleDestroy),
    SIM_SLOT(MODULE, 2, 0, sim_zeModuleDynamicLink),
    SIM_SLOT(MODULE, 3, 0, sim_zeModuleGetNativeBinary),
    SIM_SLOT(MODULE, 4, 0, sim_zeModuleGetGlobalPointer),
    SIM_SLOT(MODULE, 5, 0, sim_zeModuleGetKernelNames),
    SIM_SLOT(MODULE, 6, 0, sim_zeModuleGetProperties),
    SIM_SLOT(MODULE, 7, 0, sim_zeModuleGetFunctionPointer),
    SIM_SLOT(BUILD_LOG, 0, 0, sim_zeModuleBuildLogDestroy),
    SIM_SLOT(BUILD_LOG, 1, 0, sim_zeModuleBuildLogGetString),
    SIM_SLOT(KERNEL, 0, 0, sim_zeKernelCreate),
    SIM_SLOTS_END,
};
