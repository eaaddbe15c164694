// SPDX-License-Identifier: MIT
//
// The doors of the driver and context tables: contexts come and go, residency, and the two driver
// functions through which the loader and SYCL could go round the door.
#include <string.h>

#include "../config.h"
#include "../pieces.h"
#include "../wraps.h"
#include "attach.h"
#include "door.h"
#include "external_pointer.h"

static ze_result_t gh_context_create(struct gh_ze_driver *driver, ze_driver_handle_t handle,
                                     const ze_context_desc_t *descriptor, ze_context_handle_t *out) {
    bool before = gh_ze_in_driver;
    gh_ze_in_driver = true;
    ze_result_t result = gh_ze_real_context(driver).pfnCreate(handle, descriptor, out);
    gh_ze_in_driver = before;
    if (result == ZE_RESULT_SUCCESS && out != NULL)
        gh_ze_attach(driver, handle, *out, 0, NULL);
    return result;
}
GH_DOOR(ze_result_t, context_create, (ze_driver_handle_t h, const ze_context_desc_t *d, ze_context_handle_t *o),
        (, h, d, o))

static ze_result_t gh_context_create_ex(struct gh_ze_driver *driver, ze_driver_handle_t handle,
                                        const ze_context_desc_t *descriptor, uint32_t count,
                                        ze_device_handle_t *devices, ze_context_handle_t *out) {
    bool before = gh_ze_in_driver;
    gh_ze_in_driver = true;
    ze_result_t result = gh_ze_real_context(driver).pfnCreateEx(handle, descriptor, count, devices, out);
    gh_ze_in_driver = before;
    if (result == ZE_RESULT_SUCCESS && out != NULL)
        gh_ze_attach(driver, handle, *out, count, devices);
    return result;
}
GH_DOOR(ze_result_t, context_create_ex,
        (ze_driver_handle_t h, const ze_context_desc_t *d, uint32_t n, ze_device_handle_t *v, ze_context_handle_t *o),
        (, h, d, n, v, o))

static ze_result_t gh_context_destroy(struct gh_ze_driver *driver, ze_context_handle_t context) {
    gh_ze_detach(driver, context);
    return gh_ze_real_context(driver).pfnDestroy(context);
}
GH_DOOR(ze_result_t, context_destroy, (ze_context_handle_t c), (, c))

typedef ze_context_handle_t(ZE_APICALL *default_of_driver_fn)(ze_driver_handle_t);
typedef ze_context_handle_t(ZE_APICALL *default_of_runtime_fn)(void);

// Contexts that nobody creates: the driver has them ready.
static ze_context_handle_t gh_driver_default_context(struct gh_ze_driver *driver, ze_driver_handle_t handle) {
    default_of_driver_fn real = (default_of_driver_fn)driver->real[GH_ZE_TABLE_DRIVER].entries[8];
    bool before = gh_ze_in_driver;
    gh_ze_in_driver = true;
    ze_context_handle_t context = real(handle);
    gh_ze_in_driver = before;
    if (context != NULL)
        gh_ze_attach(driver, handle, context, 0, NULL);
    return context;
}
GH_DOOR(ze_context_handle_t, driver_default_context, (ze_driver_handle_t h), (, h))

static ze_context_handle_t gh_runtime_default_context(struct gh_ze_driver *driver) {
    default_of_runtime_fn real = (default_of_runtime_fn)driver->real[GH_ZE_TABLE_RUNTIME].entries[3];
    bool before = gh_ze_in_driver;
    gh_ze_in_driver = true;
    ze_context_handle_t context = real();
    gh_ze_in_driver = before;
    if (context != NULL)
        gh_ze_attach(driver, driver->handle, context, 0, NULL);
    return context;
}
GH_DOOR(ze_context_handle_t, runtime_default_context, (void), ())

// With this flag the loader goes round the tables, through tables in the driver's handles, when
// there is more than one driver.
static ze_result_t gh_driver_get_properties(struct gh_ze_driver *driver, ze_driver_handle_t handle,
                                            ze_driver_properties_t *properties) {
    ze_result_t result = gh_ze_real_driver(driver).pfnGetProperties(handle, properties);
    if (result == ZE_RESULT_SUCCESS && properties != NULL) {
        gh_ze_ddi_handles_t *handles =
            (gh_ze_ddi_handles_t *)(uintptr_t)gh_ze_chain_find(properties->pNext, GH_ZE_STYPE_DDI_HANDLES);
        if (handles != NULL)
            handles->flags &= ~1u;
    }
    return result;
}
GH_DOOR(ze_result_t, driver_get_properties, (ze_driver_handle_t h, ze_driver_properties_t *p), (, h, p))

static ze_result_t gh_driver_get_function(struct gh_ze_driver *driver, ze_driver_handle_t handle, const char *name,
                                          void **out) {
    ze_result_t result = gh_ze_real_driver(driver).pfnGetExtensionFunctionAddress(handle, name, out);
    if (result == ZE_RESULT_SUCCESS && name != NULL && out != NULL)
        *out = gh_ze_external_pointer_function(driver, name, *out);
    return result;
}
GH_DOOR(ze_result_t, driver_get_function, (ze_driver_handle_t h, const char *n, void **o), (, h, n, o))

// Residency goes to every import that the range lies on. A range on none is the driver's.
static ze_result_t gh_make_resident(struct gh_ze_driver *driver, ze_context_handle_t context, ze_device_handle_t device,
                                    void *pointer, size_t size) {
    gh_ze_pass();
    ze_pfnContextMakeMemoryResident_t real = gh_ze_real_context(driver).pfnMakeMemoryResident;
    unsigned scope = gh_ze_scope_of(driver, context);
    uintptr_t at = (uintptr_t)pointer;
    uintptr_t end = at + size;
    if (scope == GH_NO_SCOPE || size == 0 || end < at)
        return real(context, device, pointer, size);
    ze_result_t result = ZE_RESULT_SUCCESS;
    while (at < end && result == ZE_RESULT_SUCCESS) {
        struct gh_segment segment = gh_pieces_segment(scope, at, end);
        if (segment.kind == GH_SEGMENT_NONE && at == (uintptr_t)pointer)
            return real(context, device, pointer, size);
        if (!driver->all_system)
            result = real(context, device, (void *)at, segment.end - at);
        at = segment.end;
    }
    return result;
}
GH_DOOR(ze_result_t, make_resident, (ze_context_handle_t c, ze_device_handle_t d, void *p, size_t s), (, c, d, p, s))

// What we imported stays resident while it is imported, whatever one wrap's owner wants: others may
// lie on the same import, and nobody would make it resident again for them.
static ze_result_t gh_evict(struct gh_ze_driver *driver, ze_context_handle_t context, ze_device_handle_t device,
                            void *pointer, size_t size) {
    ze_pfnContextEvictMemory_t real = gh_ze_real_context(driver).pfnEvictMemory;
    if (gh_ze_has_only_parents()) // a finalizer's, before it frees
        return ZE_RESULT_SUCCESS;
    unsigned scope = gh_ze_scope_of(driver, context);
    uintptr_t at = (uintptr_t)pointer;
    if (scope == GH_NO_SCOPE || size == 0 || gh_pieces_segment(scope, at, at + 1).kind == GH_SEGMENT_NONE)
        return real(context, device, pointer, size);
    return ZE_RESULT_SUCCESS;
}
GH_DOOR(ze_result_t, evict, (ze_context_handle_t c, ze_device_handle_t d, void *p, size_t s), (, c, d, p, s))
