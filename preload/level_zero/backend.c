// SPDX-License-Identifier: MIT
//
// Imports and releases in Level Zero (backend.h). Called under the import lock or the attach
// lock; the driver may do anything meanwhile, malloc included.
#include "backend.h"

#include <errno.h>

#include "../config.h"
#include "../log.h"
#include "attach.h"

// Larger than any driver's memory, so it always fails; see release().
#define ABSURD_BYTES (UINT64_C(1) << 60)

static struct gh_ze_scope scope_pool[GH_SCOPE_MAX];

struct gh_ze_scope *gh_ze_scope_data(struct gh_ze_driver *driver, ze_context_handle_t context) {
    for (unsigned i = 0; i < GH_SCOPE_MAX; i++) {
        if (scope_pool[i].driver == NULL) {
            scope_pool[i] = (struct gh_ze_scope){ driver, context };
            return &scope_pool[i];
        }
    }
    return NULL;
}

void gh_ze_scope_data_free(struct gh_ze_scope *scope) {
    scope->driver = NULL;
}

enum gh_ze_answer gh_ze_is_known(struct gh_ze_driver *driver, ze_context_handle_t context, const void *pointer) {
    ze_memory_allocation_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES };
    ze_device_handle_t device = NULL;
    if (gh_ze_real_mem(driver).pfnGetAllocProperties(context, pointer, &properties, &device) != ZE_RESULT_SUCCESS)
        return GH_ZE_FAILED;
    return properties.type != ZE_MEMORY_TYPE_UNKNOWN ? GH_ZE_YES : GH_ZE_NO;
}

static const char *reason(ze_result_t result) {
    switch ((unsigned)result) {
    case ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY:
        return "out of host memory";
    case ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY:
        return "out of device memory";
    case ZE_RESULT_ERROR_UNSUPPORTED_SIZE:
        return "size not supported";
    case ZE_RESULT_ERROR_UNSUPPORTED_FEATURE:
    case ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION:
    case ZE_RESULT_ERROR_UNSUPPORTED_VERSION:
        return "the driver does not have the memmap extension";
    case ZE_RESULT_ERROR_DEVICE_LOST:
        return "device lost";
    case ZE_RESULT_ERROR_INVALID_ARGUMENT:
        return "invalid argument";
    default:
        return "the driver gave an error";
    }
}

static int error_of(ze_result_t result) {
    switch ((unsigned)result) {
    case ZE_RESULT_ERROR_UNSUPPORTED_FEATURE:
    case ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION:
    case ZE_RESULT_ERROR_UNSUPPORTED_VERSION:
    case ZE_RESULT_ERROR_UNINITIALIZED:
    case ZE_RESULT_ERROR_DEVICE_LOST:
        return ENOTSUP;
    case ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY:
    case ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY:
        return ENOMEM;
    default:
        return EINVAL;
    }
}

static ze_result_t alloc_host(const struct gh_ze_scope *scope, const void *chain, ze_host_mem_alloc_flags_t flags,
                              size_t size, void **out) {
    ze_host_mem_alloc_desc_t descriptor = {
        .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = chain, .flags = flags
    };
    *out = NULL;
    return gh_ze_real_mem(scope->driver).pfnAllocHost(scope->context, &descriptor, size, 0, out);
}

static void make_resident(const struct gh_ze_scope *scope, void *base, size_t size) {
    if (!gh_config.resident || gh_ze_real_context(scope->driver).pfnMakeMemoryResident == NULL)
        return;
    // The result is not needed: without residency now, the driver brings the memory at launch.
    for (uint32_t i = 0; i < scope->driver->device_count; i++)
        gh_ze_real_context(scope->driver).pfnMakeMemoryResident(scope->context, scope->driver->devices[i], base, size);
}

static int import(const struct gh_ze_scope *scope, void *base, size_t size, bool read_only, const char **why_out) {
    gh_ze_memmap_desc_t memmap = { .stype = GH_ZE_STYPE_MEMMAP, .pSystemMemory = base, .size = size };
    // Read only when it comes first in the chain; a driver without it ignores or refuses it, so
    // only for sizes that would be refused anyway.
    ze_relaxed_allocation_limits_exp_desc_t relaxed = {
        .stype = ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
        .pNext = &memmap,
        .flags = ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE,
    };
    const void *chain = size > scope->driver->max_import_bytes ? (const void *)&relaxed : (const void *)&memmap;
    void *got = NULL;
    ze_result_t result = alloc_host(scope, chain, read_only ? GH_ZE_HOST_READ_ONLY : 0, size, &got);
    if (result != ZE_RESULT_SUCCESS) {
        *why_out = reason(result);
        return error_of(result);
    }
    if (got != base) {
        gh_ze_real_mem(scope->driver).pfnFree(scope->context, got);
        *why_out = "the driver imported it at another address";
        return ENOTSUP;
    }
    make_resident(scope, base, size);
    return 0;
}

// Intel's driver keeps what zeMemFree gives it in a cache of host memory on newer GPUs, imports
// included: the import stays alive, and the next zeMemAllocHost of a fitting size is answered
// with our address. A request that cannot be met makes it empty the cache. Callers of
// zeMemAllocHost wait at the door meanwhile (the import lock).
static int release(const struct gh_ze_scope *scope, void *base) {
    ze_result_t result = gh_ze_real_mem(scope->driver).pfnFree(scope->context, base);
    if (result != ZE_RESULT_SUCCESS)
        return gh_ze_is_known(scope->driver, scope->context, base) == GH_ZE_NO ? 0 : EIO;
    if (gh_ze_is_known(scope->driver, scope->context, base) == GH_ZE_NO)
        return 0;
    ze_relaxed_allocation_limits_exp_desc_t relaxed = {
        .stype = ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
        .flags = ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE,
    };
    void *absurd = NULL;
    if (alloc_host(scope, &relaxed, 0, ABSURD_BYTES, &absurd) == ZE_RESULT_SUCCESS && absurd != NULL)
        gh_ze_real_mem(scope->driver).pfnFree(scope->context, absurd);
    return gh_ze_is_known(scope->driver, scope->context, base) == GH_ZE_NO ? 0 : EIO;
}

static int memmap_import(void *scope_data, void *base, size_t size, bool read_only, const char **why_out) {
    bool before = gh_ze_in_driver;
    gh_ze_in_driver = true;
    int error = import(scope_data, base, size, read_only, why_out);
    gh_ze_in_driver = before;
    return error;
}

static int memmap_release(void *scope_data, void *base, size_t size) {
    (void)size;
    bool before = gh_ze_in_driver;
    gh_ze_in_driver = true;
    int error = release(scope_data, base);
    gh_ze_in_driver = before;
    return error;
}

const struct gh_gpu_backend_ops gh_ze_memmap_ops = {
    .name = "Level Zero",
    .import = memmap_import,
    .release = memmap_release,
    .pins = true,
};

static int system_import(void *scope_data, void *base, size_t size, bool read_only, const char **why_out) {
    (void)scope_data, (void)base, (void)size, (void)read_only, (void)why_out;
    return 0;
}

static int system_release(void *scope_data, void *base, size_t size) {
    (void)scope_data, (void)base, (void)size;
    return 0;
}

// Every device of the driver reaches all memory of the process by itself.
const struct gh_gpu_backend_ops gh_ze_system_ops = {
    .name = "Level Zero, shared system memory",
    .import = system_import,
    .release = system_release,
    .pins = false,
};
