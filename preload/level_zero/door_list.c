// SPDX-License-Identifier: MIT
//
// The doors through which command lists come and go: a list's scope is remembered for drivers
// whose imports belong to a context.
#include "attach.h"
#include "door.h"
#include "list_scope.h"

static ze_result_t made(struct gh_ze_driver *driver, ze_context_handle_t context, ze_result_t result,
                        ze_command_list_handle_t *list) {
    if (!driver->per_context || result != ZE_RESULT_SUCCESS || list == NULL ||
        gh_ze_list_made(*list, gh_ze_scope_of(driver, context)))
        return result;
    gh_ze_real_list(driver).pfnDestroy(*list); // its copies could not be cut where they must be
    *list = NULL;
    return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

static ze_result_t gh_list_create(struct gh_ze_driver *driver, ze_context_handle_t context, ze_device_handle_t device,
                                  const ze_command_list_desc_t *descriptor, ze_command_list_handle_t *out) {
    gh_ze_pass();
    return made(driver, context, gh_ze_real_list(driver).pfnCreate(context, device, descriptor, out), out);
}
GH_DOOR(ze_result_t, list_create,
        (ze_context_handle_t c, ze_device_handle_t d, const ze_command_list_desc_t *e, ze_command_list_handle_t *o),
        (, c, d, e, o))

static ze_result_t gh_list_create_immediate(struct gh_ze_driver *driver, ze_context_handle_t context,
                                            ze_device_handle_t device, const ze_command_queue_desc_t *descriptor,
                                            ze_command_list_handle_t *out) {
    gh_ze_pass();
    return made(driver, context, gh_ze_real_list(driver).pfnCreateImmediate(context, device, descriptor, out), out);
}
GH_DOOR(ze_result_t, list_create_immediate,
        (ze_context_handle_t c, ze_device_handle_t d, const ze_command_queue_desc_t *e, ze_command_list_handle_t *o),
        (, c, d, e, o))

static ze_result_t gh_list_destroy(struct gh_ze_driver *driver, ze_command_list_handle_t list) {
    if (driver->per_context)
        gh_ze_list_gone(list);
    return gh_ze_real_list(driver).pfnDestroy(list);
}
GH_DOOR(ze_result_t, list_destroy, (ze_command_list_handle_t l), (, l))
