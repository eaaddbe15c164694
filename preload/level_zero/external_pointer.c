// SPDX-License-Identifier: MIT
//
// The older import functions (external_pointer.h). They take a driver, not a context. While we
// are attached with a driver-wide scope they make and free ordinary wraps; otherwise they are the
// driver's.
#include "external_pointer.h"

#include <string.h>

#include "../pieces.h"
#include "../wraps.h"
#include "attach.h"
#include "door.h"
#include "thunks.h"
#include "wrap.h"

typedef ze_result_t(ZE_APICALL *import_fn)(ze_driver_handle_t, void *, size_t);
typedef ze_result_t(ZE_APICALL *release_fn)(ze_driver_handle_t, void *);
typedef ze_result_t(ZE_APICALL *base_fn)(ze_driver_handle_t, void *, void **);

static struct {
    import_fn import;
    release_fn release;
    base_fn base;
} real[GH_ZE_DRIVER_MAX];

// Wraps of these functions belong to no context of the program's.
#define NO_CONTEXT NULL

static unsigned scope_of(const struct gh_ze_driver *driver) {
    bool attached = atomic_load_explicit(&driver->state, memory_order_acquire) == GH_ZE_ATTACHED;
    return attached && !driver->per_context && !gh_gpu_is_orphan() ? driver->scope : GH_NO_SCOPE;
}

static ze_result_t gh_external_import(struct gh_ze_driver *driver, ze_driver_handle_t handle, void *pointer,
                                      size_t size) {
    if (!gh_ze_is_settled(driver)) // no context yet: attach now, or its import would be in our way
        gh_ze_attach(driver, handle, NULL, 0, NULL);
    gh_ze_pass();
    unsigned scope = scope_of(driver);
    if (scope == GH_NO_SCOPE)
        return real[driver->slot].import(handle, pointer, size);
    uintptr_t last = (uintptr_t)pointer + size;
    if (pointer == NULL || size == 0 || last < (uintptr_t)pointer || last > UINTPTR_MAX - GH_PAGE_SIZE)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    return gh_ze_wrap(driver, scope, NO_CONTEXT, pointer, size, false);
}

static ze_result_t gh_external_release(struct gh_ze_driver *driver, ze_driver_handle_t handle, void *pointer) {
    if (gh_ze_has_only_parents())
        return ZE_RESULT_SUCCESS;
    unsigned scope = scope_of(driver);
    if (scope != GH_NO_SCOPE && gh_ze_unwrap(scope, NO_CONTEXT, pointer))
        return ZE_RESULT_SUCCESS;
    return real[driver->slot].release(handle, pointer);
}

static ze_result_t gh_external_base(struct gh_ze_driver *driver, ze_driver_handle_t handle, void *pointer,
                                    void **base_out) {
    unsigned scope = scope_of(driver);
    struct gh_wrap wrap;
    if (scope != GH_NO_SCOPE && base_out != NULL) {
        if (gh_wraps_find((uintptr_t)pointer, scope, &wrap) && !wrap.stale) {
            *base_out = (void *)wrap.pointer;
            return ZE_RESULT_SUCCESS;
        }
        struct gh_region *region = gh_region_find(pointer);
        if (region != NULL && gh_gpu_covers(scope, pointer, 1)) {
            *base_out = (void *)region->base;
            return ZE_RESULT_SUCCESS;
        }
    }
    return real[driver->slot].base(handle, pointer, base_out);
}

GH_DOOR(ze_result_t, external_import, (ze_driver_handle_t h, void *p, size_t s), (, h, p, s))
GH_DOOR(ze_result_t, external_release, (ze_driver_handle_t h, void *p), (, h, p))
GH_DOOR(ze_result_t, external_base, (ze_driver_handle_t h, void *p, void **b), (, h, p, b))

void *gh_ze_external_pointer_function(struct gh_ze_driver *driver, const char *name, void *driver_function) {
    unsigned slot = driver->slot;
    if (driver_function == NULL)
        return NULL;
    if (strcmp(name, "zexDriverImportExternalPointer") == 0) {
        real[slot].import = (import_fn)driver_function;
        return (void *)gh_ze_door_external_import[slot];
    }
    if (strcmp(name, "zexDriverReleaseImportedPointer") == 0) {
        real[slot].release = (release_fn)driver_function;
        return (void *)gh_ze_door_external_release[slot];
    }
    if (strcmp(name, "zexDriverGetHostPointerBaseAddress") == 0) {
        real[slot].base = (base_fn)driver_function;
        return (void *)gh_ze_door_external_base[slot];
    }
    // Other commands by name pass the door like those of the tables.
    if (strncmp(name, "zexCommandList", 14) == 0 || strncmp(name, "zexKernel", 9) == 0) {
        gh_ze_any_fn thunk = gh_ze_thunk_for_name(slot, name, (gh_ze_any_fn)driver_function);
        return thunk != NULL ? (void *)thunk : driver_function;
    }
    return driver_function;
}
