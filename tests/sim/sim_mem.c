// SPDX-License-Identifier: MIT
//
// zeMem… and the older import functions that zeDriverGetExtensionFunctionAddress hands out. USM of
// any kind is host memory from the driver's own malloc, kept in a table of its own.
#include <string.h>

#include "sim_internal.h"

static ze_result_t allocate(struct sim_context *context, struct sim_device *device, ze_memory_type_t type,
                            size_t size, size_t alignment, bool relaxed, void **out)
{
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (size == 0) return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    if (alignment > SIM_PAGE || (alignment & (alignment - 1)) != 0) return ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT;
    if (size > sim_config.max_alloc && !relaxed) return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
    struct sim_usm *usm = sim_alloc(sizeof *usm);
    const size_t rounded = (size + SIM_PAGE - 1) & ~(SIM_PAGE - 1);
    void *memory = usm && rounded >= size ? sim_alloc(rounded) : NULL;
    if (!memory) {
        sim_free(usm);
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    const uintptr_t begin = (uintptr_t)memory;
    *usm = (struct sim_usm){.range = {.begin = begin, .end = begin + rounded}, .type = type,
                            .id = sim_next_id(), .size = size, .device = device, .context = context};
    pthread_rwlock_wrlock(&sim_memory_lock);
    sim_ranges_insert(&sim_usm_root, &usm->range);
    pthread_rwlock_unlock(&sim_memory_lock);
    SIM_COUNT(usm_live, 1);
    *out = memory;
    return ZE_RESULT_SUCCESS;
}

// The relaxed-limits descriptor counts only as the first of the chain (DESIGN.md, fact 4).
static bool relaxed_first(const void *next)
{
    const struct sim_relaxed_desc *desc = next;
    return desc && ((uint32_t)desc->stype == SIM_STYPE_RELAXED_EXP || (uint32_t)desc->stype == SIM_STYPE_RELAXED_EXT) &&
           (desc->flags & 1u) != 0;
}

static const struct sim_memmap_desc *find_memmap(const void *next)
{
    for (const struct sim_chain *link = next; link; link = link->pNext)
        if ((uint32_t)link->stype == SIM_STYPE_MEMMAP) return (const struct sim_memmap_desc *)(const void *)link;
    return NULL;
}

static ze_result_t import_memmap(struct sim_context *context, const ze_host_mem_alloc_desc_t *desc,
                                 const struct sim_memmap_desc *map, size_t size, void **out)
{
    if (sim_config.no_memmap || sim_config.refuse_memmap) {
        SIM_COUNT(imports_refused, 1);
        return sim_config.no_memmap ? ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION : ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    }
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (size != 0 && size != map->size) {
        SIM_COUNT(imports_refused, 1);
        return ZE_RESULT_ERROR_INVALID_SIZE; // the call and its descriptor disagree
    }
    if (sim_config.other_address) // a driver that copies instead of mapping
        return allocate(context, NULL, ZE_MEMORY_TYPE_HOST, map->size, SIM_PAGE, true, out);
    const ze_result_t result = sim_import(&(struct sim_import_request){
        .context = context, .pointer = map->pSystemMemory, .size = map->size,
        .relaxed = relaxed_first(desc->pNext), .read_only = (desc->flags & SIM_FLAG_READ_ONLY) != 0});
    if (result == ZE_RESULT_SUCCESS) *out = map->pSystemMemory;
    return result;
}

static ze_result_t sim_zeMemAllocHost(struct sim_context *context, const ze_host_mem_alloc_desc_t *desc,
                                      size_t size, size_t alignment, void **out)
{
    SIM_ENTER(zeMemAllocHost, context, SIM_CONTEXT);
    if (!desc) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    const struct sim_memmap_desc *map = find_memmap(desc->pNext);
    if (map) return import_memmap(context, desc, map, size, out);
    return allocate(context, NULL, ZE_MEMORY_TYPE_HOST, size, alignment, relaxed_first(desc->pNext), out);
}

static ze_result_t sim_zeMemAllocShared(struct sim_context *context, const ze_device_mem_alloc_desc_t *desc,
                                        const ze_host_mem_alloc_desc_t *host, size_t size, size_t alignment,
                                        struct sim_device *device, void **out)
{
    SIM_ENTER(zeMemAllocShared, context, SIM_CONTEXT);
    if (!desc || !host) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    return allocate(context, device, ZE_MEMORY_TYPE_SHARED, size, alignment, relaxed_first(desc->pNext), out);
}

static ze_result_t sim_zeMemAllocDevice(struct sim_context *context, const ze_device_mem_alloc_desc_t *desc,
                                        size_t size, size_t alignment, struct sim_device *device, void **out)
{
    SIM_ENTER(zeMemAllocDevice, context, SIM_CONTEXT);
    if (!desc) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (!device) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    return allocate(context, device, ZE_MEMORY_TYPE_DEVICE, size, alignment, relaxed_first(desc->pNext), out);
}

static ze_result_t free_any(struct sim_context *context, void *pointer)
{
    if (!pointer) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    const uintptr_t at = (uintptr_t)pointer;
    pthread_rwlock_wrlock(&sim_memory_lock);
    struct sim_range *range = sim_ranges_overlap(sim_usm_root, at, at + 1);
    const bool base = range && range->begin == at;
    if (base) sim_ranges_remove(&sim_usm_root, range);
    pthread_rwlock_unlock(&sim_memory_lock);
    if (!range) return sim_release(context, pointer, false);
    if (!base) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    SIM_UNCOUNT(usm_live, 1);
    sim_free(pointer);
    sim_free(range);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeMemFree(struct sim_context *context, void *pointer)
{
    SIM_ENTER(zeMemFree, context, SIM_CONTEXT);
    return free_any(context, pointer);
}

static ze_result_t sim_zeMemFreeExt(struct sim_context *context, const void *desc, void *pointer)
{
    SIM_ENTER(zeMemFreeExt, context, SIM_CONTEXT);
    if (!desc) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    return free_any(context, pointer);
}

static ze_result_t sim_zeMemGetAllocProperties(struct sim_context *context, const void *pointer,
                                               ze_memory_allocation_properties_t *properties,
                                               struct sim_device **device)
{
    SIM_ENTER(zeMemGetAllocProperties, context, SIM_CONTEXT);
    if (!pointer || !properties) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    struct sim_hit hit;
    sim_lookup(context, pointer, 1, false, &hit);
    const bool known = hit.where != SIM_NOWHERE;
    properties->type = known ? hit.type : ZE_MEMORY_TYPE_UNKNOWN;
    properties->id = known ? hit.id : 0;
    properties->pageSize = known ? SIM_PAGE : 0;
    if (device) *device = known ? hit.device : NULL;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeMemGetAddressRange(struct sim_context *context, const void *pointer, void **base,
                                            size_t *size)
{
    SIM_ENTER(zeMemGetAddressRange, context, SIM_CONTEXT);
    if (!pointer) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    struct sim_hit hit;
    sim_lookup(context, pointer, 1, false, &hit);
    if (hit.where == SIM_NOWHERE) return SIM_ADDRESS_NOT_FOUND;
    if (base) *base = (void *)hit.base;
    if (size) *size = hit.size;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zexDriverImportExternalPointer(struct sim_handle *driver, void *pointer, size_t size)
{
    SIM_ENTER(zexDriverImportExternalPointer, driver, SIM_DRIVER);
    if (!pointer || size == 0) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    return sim_import(&(struct sim_import_request){.pointer = pointer, .size = size, .older = true, .relaxed = true});
}

static ze_result_t sim_zexDriverReleaseImportedPointer(struct sim_handle *driver, void *pointer)
{
    SIM_ENTER(zexDriverReleaseImportedPointer, driver, SIM_DRIVER);
    return sim_release(NULL, pointer, true);
}

static ze_result_t sim_zexDriverGetHostPointerBaseAddress(struct sim_handle *driver, void *pointer, void **base)
{
    SIM_ENTER(zexDriverGetHostPointerBaseAddress, driver, SIM_DRIVER);
    struct sim_hit hit;
    sim_lookup(NULL, pointer, 1, false, &hit);
    if (hit.where == SIM_NOWHERE || !hit.is_import) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (base) *base = (void *)hit.base;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDriverGetExtensionFunctionAddress(struct sim_handle *driver, const char *name, void **out)
{
    SIM_ENTER(zeDriverGetExtensionFunctionAddress, driver, SIM_DRIVER);
    static const struct { const char *name; sim_fn function; } older[] = {
        {"zexDriverImportExternalPointer", (sim_fn)sim_zexDriverImportExternalPointer},
        {"zexDriverReleaseImportedPointer", (sim_fn)sim_zexDriverReleaseImportedPointer},
        {"zexDriverGetHostPointerBaseAddress", (sim_fn)sim_zexDriverGetHostPointerBaseAddress},
    };
    if (!name || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    for (size_t i = 0; i < sizeof older / sizeof older[0] && !sim_config.no_older; i++) {
        if (strcmp(older[i].name, name) != 0) continue;
        memcpy(out, &older[i].function, sizeof *out);
        return ZE_RESULT_SUCCESS;
    }
    const sim_fn command = sim_command_by_name(name);
    if (!command) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    memcpy(out, &command, sizeof *out);
    return ZE_RESULT_SUCCESS;
}

const struct sim_slot sim_mem_slots[] = {
    SIM_SLOT(DRIVER, 5, 1, sim_zeDriverGetExtensionFunctionAddress),
    SIM_SLOT(MEM, 0, 0, sim_zeMemAllocShared),
    SIM_SLOT(MEM, 1, 0, sim_zeMemAllocDevice),
    SIM_SLOT(MEM, 2, 0, sim_zeMemAllocHost),
    SIM_SLOT(MEM, 3, 0, sim_zeMemFree),
    SIM_SLOT(MEM, 4, 0, sim_zeMemGetAllocProperties),
    SIM_SLOT(MEM, 5, 0, sim_zeMemGetAddressRange),
    SIM_SLOT(MEM, 9, 3, sim_zeMemFreeExt),
    SIM_SLOTS_END,
};
