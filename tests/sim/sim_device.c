// SPDX-License-Identifier: MIT
//
// zeDevice… queries: GHSIM_DEVICES root devices without sub-devices. What they report is plain;
// only maxMemAllocSize and the shared system USM capability matter to the rules of this driver.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim_internal.h"

struct sim_device sim_devices[SIM_MAX_DEVICES];

// Fills `*count` the Level Zero way; true if the caller has room for elements.
static bool want_list(uint32_t *count, const void *list, uint32_t have)
{
    const bool fill = list && *count > 0;
    if (*count == 0 || *count > have) *count = have;
    return fill;
}

static ze_result_t sim_zeDeviceGet(struct sim_handle *driver, uint32_t *count, struct sim_device **devices)
{
    SIM_ENTER(zeDeviceGet, driver, SIM_DRIVER);
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (want_list(count, devices, sim_config.devices))
        for (uint32_t i = 0; i < *count; i++) devices[i] = &sim_devices[i];
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetSubDevices(struct sim_device *device, uint32_t *count, struct sim_device **devices)
{
    SIM_ENTER(zeDeviceGetSubDevices, device, SIM_DEVICE);
    (void)devices;
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *count = 0;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetRootDevice(struct sim_device *device, struct sim_device **root)
{
    SIM_ENTER(zeDeviceGetRootDevice, device, SIM_DEVICE);
    if (!root) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *root = NULL; // it is a root device itself
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetProperties(struct sim_device *device, ze_device_properties_t *p)
{
    SIM_ENTER(zeDeviceGetProperties, device, SIM_DEVICE);
    if (!p) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    const ze_structure_type_t stype = p->stype;
    void *next = p->pNext;
    *p = (ze_device_properties_t){
        .stype = stype, .pNext = next, .type = SIM_IS_NPU ? ZE_DEVICE_TYPE_VPU : ZE_DEVICE_TYPE_GPU,
        .vendorId = 0x1234, .deviceId = 0x5100u + device->index, .flags = ZE_DEVICE_PROPERTY_FLAG_INTEGRATED,
        .coreClockRate = 1000, .maxMemAllocSize = sim_config.max_alloc, .maxHardwareContexts = 65536,
        .numThreadsPerEU = 8, .physicalEUSimdWidth = 8, .numEUsPerSubslice = 8, .numSubslicesPerSlice = 4,
        .numSlices = 1, .timerResolution = stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2 ? 1000000000 : 1,
        .timestampValidBits = 64, .kernelTimestampValidBits = 64};
    memset(p->uuid.id, SIM_IS_NPU ? 0x4e : 0x47, sizeof p->uuid.id);
    p->uuid.id[0] = (uint8_t)device->index;
    snprintf(p->name, sizeof p->name, "libgpuhost simulated %s %u", SIM_IS_NPU ? "NPU" : "GPU", device->index);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetComputeProperties(struct sim_device *device, ze_device_compute_properties_t *p)
{
    SIM_ENTER(zeDeviceGetComputeProperties, device, SIM_DEVICE);
    if (!p) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *p = (ze_device_compute_properties_t){
        .stype = p->stype, .pNext = p->pNext, .maxTotalGroupSize = 1024, .maxGroupSizeX = 1024,
        .maxGroupSizeY = 1024, .maxGroupSizeZ = 1024, .maxGroupCountX = UINT32_MAX, .maxGroupCountY = UINT32_MAX,
        .maxGroupCountZ = UINT32_MAX, .maxSharedLocalMemory = 65536, .numSubGroupSizes = 3,
        .subGroupSizes = {8, 16, 32}};
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetModuleProperties(struct sim_device *device, ze_device_module_properties_t *p)
{
    SIM_ENTER(zeDeviceGetModuleProperties, device, SIM_DEVICE);
    if (!p) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    const ze_device_fp_flags_t fp = ZE_DEVICE_FP_FLAG_DENORM | ZE_DEVICE_FP_FLAG_INF_NAN | ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST;
    *p = (ze_device_module_properties_t){
        .stype = p->stype, .pNext = p->pNext, .spirvVersionSupported = 0, // native modules only
        .flags = ZE_DEVICE_MODULE_FLAG_FP64 | ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS, .fp32flags = fp, .fp64flags = fp,
        .maxArgumentsSize = SIM_MAX_ARGS * 8, .printfBufferSize = 0};
    memcpy(p->nativeKernelSupported.id, "ghsim-elf-so-v1", 16);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetCommandQueueGroupProperties(struct sim_device *device, uint32_t *count,
                                                              ze_command_queue_group_properties_t *p)
{
    SIM_ENTER(zeDeviceGetCommandQueueGroupProperties, device, SIM_DEVICE);
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (want_list(count, p, 2)) {
        for (uint32_t i = 0; i < *count; i++) {
            p[i].flags = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY;
            if (i == 0)
                p[i].flags |= ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS;
            p[i].maxMemoryFillPatternSize = 128;
            p[i].numQueues = 4;
        }
    }
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetMemoryProperties(struct sim_device *device, uint32_t *count,
                                                   ze_device_memory_properties_t *p)
{
    SIM_ENTER(zeDeviceGetMemoryProperties, device, SIM_DEVICE);
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (want_list(count, p, 1)) {
        p->flags = 0;
        p->maxClockRate = 0;
        p->maxBusWidth = 64;
        p->totalSize = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        snprintf(p->name, sizeof p->name, "host memory");
    }
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetMemoryAccessProperties(struct sim_device *device,
                                                         ze_device_memory_access_properties_t *p)
{
    SIM_ENTER(zeDeviceGetMemoryAccessProperties, device, SIM_DEVICE);
    if (!p) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    const ze_memory_access_cap_flags_t all = ZE_MEMORY_ACCESS_CAP_FLAG_RW | ZE_MEMORY_ACCESS_CAP_FLAG_ATOMIC |
                                             ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT | ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT_ATOMIC;
    p->hostAllocCapabilities = p->deviceAllocCapabilities = p->sharedSingleDeviceAllocCapabilities = all;
    p->sharedCrossDeviceAllocCapabilities = all;
    p->sharedSystemAllocCapabilities = sim_config.system_usm ? all : 0;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetCacheProperties(struct sim_device *device, uint32_t *count,
                                                  ze_device_cache_properties_t *p)
{
    SIM_ENTER(zeDeviceGetCacheProperties, device, SIM_DEVICE);
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (want_list(count, p, 1)) {
        p->flags = 0;
        p->cacheSize = (size_t)1 << 20;
    }
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetImageProperties(struct sim_device *device, ze_device_image_properties_t *p)
{
    SIM_ENTER(zeDeviceGetImageProperties, device, SIM_DEVICE);
    if (!p) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *p = (ze_device_image_properties_t){.stype = p->stype, .pNext = p->pNext}; // no images
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetExternalMemoryProperties(struct sim_device *device,
                                                           ze_device_external_memory_properties_t *p)
{
    SIM_ENTER(zeDeviceGetExternalMemoryProperties, device, SIM_DEVICE);
    if (!p) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *p = (ze_device_external_memory_properties_t){.stype = p->stype, .pNext = p->pNext};
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetP2PProperties(struct sim_device *device, struct sim_device *peer,
                                                ze_device_p2p_properties_t *p)
{
    SIM_ENTER(zeDeviceGetP2PProperties, device, SIM_DEVICE);
    if (!peer) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!p) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    p->flags = ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceCanAccessPeer(struct sim_device *device, struct sim_device *peer, ze_bool_t *value)
{
    SIM_ENTER(zeDeviceCanAccessPeer, device, SIM_DEVICE);
    if (!peer) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!value) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *value = 1;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetStatus(struct sim_device *device)
{
    SIM_ENTER(zeDeviceGetStatus, device, SIM_DEVICE);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceGetGlobalTimestamps(struct sim_device *device, uint64_t *host, uint64_t *at_device)
{
    SIM_ENTER(zeDeviceGetGlobalTimestamps, device, SIM_DEVICE);
    if (!host || !at_device) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *host = *at_device = sim_now_ns();
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDevicePciGetPropertiesExt(struct sim_device *device, ze_pci_ext_properties_t *p)
{
    SIM_ENTER(zeDevicePciGetPropertiesExt, device, SIM_DEVICE);
    if (!p) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *p = (ze_pci_ext_properties_t){.stype = p->stype, .pNext = p->pNext};
    p->address.device = device->index;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDeviceSynchronize(struct sim_device *device)
{
    SIM_ENTER(zeDeviceSynchronize, device, SIM_DEVICE);
    return ZE_RESULT_SUCCESS; // commands are done when their append or execute call returns
}

const struct sim_slot sim_device_slots[] = {
    SIM_SLOT(DEVICE, 0, 0, sim_zeDeviceGet),
    SIM_SLOT(DEVICE, 1, 0, sim_zeDeviceGetSubDevices),
    SIM_SLOT(DEVICE, 2, 0, sim_zeDeviceGetProperties),
    SIM_SLOT(DEVICE, 3, 0, sim_zeDeviceGetComputeProperties),
    SIM_SLOT(DEVICE, 4, 0, sim_zeDeviceGetModuleProperties),
    SIM_SLOT(DEVICE, 5, 0, sim_zeDeviceGetCommandQueueGroupProperties),
    SIM_SLOT(DEVICE, 6, 0, sim_zeDeviceGetMemoryProperties),
    SIM_SLOT(DEVICE, 7, 0, sim_zeDeviceGetMemoryAccessProperties),
    SIM_SLOT(DEVICE, 8, 0, sim_zeDeviceGetCacheProperties),
    SIM_SLOT(DEVICE, 9, 0, sim_zeDeviceGetImageProperties),
    SIM_SLOT(DEVICE, 10, 0, sim_zeDeviceGetExternalMemoryProperties),
    SIM_SLOT(DEVICE, 11, 0, sim_zeDeviceGetP2PProperties),
    SIM_SLOT(DEVICE, 12, 0, sim_zeDeviceCanAccessPeer),
    SIM_SLOT(DEVICE, 13, 0, sim_zeDeviceGetStatus),
    SIM_SLOT(DEVICE, 14, 1, sim_zeDeviceGetGlobalTimestamps),
    SIM_SLOT(DEVICE, 17, 3, sim_zeDevicePciGetPropertiesExt),
    SIM_SLOT(DEVICE, 18, 7, sim_zeDeviceGetRootDevice),
    SIM_SLOT(DEVICE, 22, 14, sim_zeDeviceSynchronize),
    SIM_SLOTS_END,
};
