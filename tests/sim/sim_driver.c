// SPDX-License-Identifier: MIT
//
// zeInit, zeInitDrivers and the zeDriver… queries. One driver handle, static; its first words are
// the embedded function tables, and zeDriverGetProperties says so unless GHSIM_DDI=0.
#include <string.h>

#include "sim_internal.h"

struct sim_handle sim_driver;
static atomic_bool initialised;

#if SIM_IS_NPU
#define INIT_FLAG ZE_INIT_FLAG_VPU_ONLY
#define TYPE_FLAG 2u
#define UUID_BYTE 0x4e
#else
#define INIT_FLAG ZE_INIT_FLAG_GPU_ONLY
#define TYPE_FLAG 1u
#define UUID_BYTE 0x47
#endif

static ze_result_t give_driver(uint32_t *count, struct sim_handle **drivers)
{
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (drivers && *count >= 1) drivers[0] = &sim_driver;
    if (*count == 0 || *count > 1) *count = 1;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeInit(ze_init_flags_t flags)
{
    SIM_ENTER(zeInit, NULL, SIM_ANY);
    if (flags != 0 && (flags & INIT_FLAG) == 0) return ZE_RESULT_ERROR_UNINITIALIZED;
    atomic_store(&initialised, true);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeInitDrivers(uint32_t *count, struct sim_handle **drivers, const struct sim_init_desc *desc)
{
    SIM_ENTER(zeInitDrivers, NULL, SIM_ANY);
    if (!desc) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if ((desc->flags & TYPE_FLAG) == 0) return ZE_RESULT_ERROR_UNINITIALIZED;
    atomic_store(&initialised, true);
    return give_driver(count, drivers);
}

static ze_result_t sim_zeDriverGet(uint32_t *count, struct sim_handle **drivers)
{
    SIM_ENTER(zeDriverGet, NULL, SIM_ANY);
    if (!atomic_load(&initialised)) return ZE_RESULT_ERROR_UNINITIALIZED;
    return give_driver(count, drivers);
}

static ze_result_t sim_zeDriverGetApiVersion(struct sim_handle *driver, uint32_t *version)
{
    SIM_ENTER(zeDriverGetApiVersion, driver, SIM_DRIVER);
    if (!version) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *version = SIM_API_VERSION;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDriverGetProperties(struct sim_handle *driver, ze_driver_properties_t *properties)
{
    SIM_ENTER(zeDriverGetProperties, driver, SIM_DRIVER);
    if (!properties) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    memset(properties->uuid.id, UUID_BYTE, sizeof properties->uuid.id);
    properties->driverVersion = 0x01000001;
    for (struct sim_ddi_properties *link = properties->pNext; link; link = link->pNext)
        if ((uint32_t)link->stype == SIM_STYPE_DDI_HANDLES) link->flags = sim_config.ddi ? 1 : 0;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDriverGetIpcProperties(struct sim_handle *driver, ze_driver_ipc_properties_t *properties)
{
    SIM_ENTER(zeDriverGetIpcProperties, driver, SIM_DRIVER);
    if (!properties) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    properties->flags = 0;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDriverGetExtensionProperties(struct sim_handle *driver, uint32_t *count,
                                                      ze_driver_extension_properties_t *properties)
{
    SIM_ENTER(zeDriverGetExtensionProperties, driver, SIM_DRIVER);
    static const struct { const char *name; uint32_t version; } all[] = {
        {"ZE_experimental_relaxed_allocation_limits", 0x10000},
        {"ZE_extension_relaxed_allocation_limits", 0x10000},
        {"ZE_extension_memory_free_policies", 0x10000},
        {"ZE_experimental_global_offset", 0x10000},
        {"ZE_experimental_immediate_command_list_append", 0x10000},
        {"ZE_extension_driver_ddi_handles", 0x10001},
        {"ZE_extension_external_memmap_sysmem", 0x10000},
    };
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    uint32_t have = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (sim_config.no_memmap && strstr(all[i].name, "memmap")) continue;
        if (!sim_config.ddi && strstr(all[i].name, "ddi_handles")) continue;
        if (properties && have < *count) {
            memset(properties[have].name, 0, sizeof properties[have].name);
            memcpy(properties[have].name, all[i].name, strlen(all[i].name));
            properties[have].version = all[i].version;
        }
        have++;
    }
    if (*count == 0 || *count > have) *count = have;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeDriverGetLastErrorDescription(struct sim_handle *driver, const char **text)
{
    SIM_ENTER(zeDriverGetLastErrorDescription, driver, SIM_DRIVER);
    if (!text) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *text = "";
    return ZE_RESULT_SUCCESS;
}

// Returns a handle, not a result: an injected fault makes it NULL.
static struct sim_context *sim_zeDriverGetDefaultContext(struct sim_handle *driver)
{
    (void)driver;
    return sim_in_child() ? NULL : sim_default_context();
}

static struct sim_context *sim_zerGetDefaultContext(void)
{
    return sim_in_child() ? NULL : sim_default_context();
}

const struct sim_slot sim_driver_slots[] = {
    SIM_SLOT(GLOBAL, 0, 0, sim_zeInit),
    SIM_SLOT(GLOBAL, 1, 10, sim_zeInitDrivers),
    SIM_SLOT(DRIVER, 0, 0, sim_zeDriverGet),
    SIM_SLOT(DRIVER, 1, 0, sim_zeDriverGetApiVersion),
    SIM_SLOT(DRIVER, 2, 0, sim_zeDriverGetProperties),
    SIM_SLOT(DRIVER, 3, 0, sim_zeDriverGetIpcProperties),
    SIM_SLOT(DRIVER, 4, 0, sim_zeDriverGetExtensionProperties),
    SIM_SLOT(DRIVER, 6, 6, sim_zeDriverGetLastErrorDescription),
    SIM_SLOT(DRIVER, 8, 14, sim_zeDriverGetDefaultContext),
    SIM_SLOT(RUNTIME, 3, 14, sim_zerGetDefaultContext),
    SIM_SLOTS_END,
};
