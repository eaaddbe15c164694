// SPDX-License-Identifier: MIT
//
// Command lists: creation, closing, queries, and the way of a command: an immediate list runs it
// at once, a regular one keeps it until a queue executes the list. Lists are not thread-safe, as
// the specification has it.
#include <string.h>

#include "sim_internal.h"

static struct sim_list *make_list(struct sim_context *context, struct sim_device *device)
{
    struct sim_list *list = sim_new(sizeof *list, SIM_LIST);
    if (!list) return NULL;
    list->context = context;
    list->device = device;
    return list;
}

static ze_result_t sim_zeCommandListCreate(struct sim_context *context, struct sim_device *device,
                                           const ze_command_list_desc_t *desc, struct sim_list **out)
{
    SIM_ENTER(zeCommandListCreate, context, SIM_CONTEXT);
    if (!device) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!desc || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->commandQueueGroupOrdinal > 1) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    struct sim_list *list = make_list(context, device);
    if (!list) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    list->ordinal = desc->commandQueueGroupOrdinal;
    list->flags = desc->flags;
    *out = list;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandListCreateImmediate(struct sim_context *context, struct sim_device *device,
                                                    const ze_command_queue_desc_t *desc, struct sim_list **out)
{
    SIM_ENTER(zeCommandListCreateImmediate, context, SIM_CONTEXT);
    if (!device) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!desc || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->ordinal > 1 || desc->index > 3) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    struct sim_list *list = make_list(context, device);
    if (!list) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    list->ordinal = desc->ordinal;
    list->index = desc->index;
    list->immediate = true;
    *out = list;
    return ZE_RESULT_SUCCESS;
}

void sim_command_clear(struct sim_command *command)
{
    sim_free(command->waits);
    sim_free(command->pattern);
    sim_free(command->launch.args);
    sim_free(command->events);
    sim_free(command->offsets);
    memset(command, 0, sizeof *command);
}

static void drop_commands(struct sim_list *list)
{
    for (size_t i = 0; i < list->count; i++) sim_command_clear(&list->commands[i]);
    list->count = 0;
}

static ze_result_t keep(struct sim_list *list, struct sim_command *command)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? list->capacity * 2 : 4;
        struct sim_command *more = sim_alloc(capacity * sizeof *more);
        if (!more) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
        if (list->count) memcpy(more, list->commands, list->count * sizeof *more);
        sim_free(list->commands);
        list->commands = more;
        list->capacity = capacity;
    }
    list->commands[list->count++] = *command;
    return ZE_RESULT_SUCCESS;
}

ze_result_t sim_submit(struct sim_list *list, struct sim_command *command)
{
    ze_result_t result;
    if (list->closed) {
        result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    } else if (list->immediate) {
        result = sim_execute(list, command);
        sim_command_clear(command);
        return result;
    } else {
        result = keep(list, command);
    }
    if (result != ZE_RESULT_SUCCESS) sim_command_clear(command);
    return result;
}

ze_result_t sim_execute_list(struct sim_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const ze_result_t result = sim_execute(list, &list->commands[i]);
        if (result != ZE_RESULT_SUCCESS) return result;
    }
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandListDestroy(struct sim_list *list)
{
    SIM_ENTER(zeCommandListDestroy, list, SIM_LIST);
    drop_commands(list);
    sim_free(list->commands);
    sim_delete(list);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandListClose(struct sim_list *list)
{
    SIM_ENTER(zeCommandListClose, list, SIM_LIST);
    if (list->immediate) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    list->closed = true;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandListReset(struct sim_list *list)
{
    SIM_ENTER(zeCommandListReset, list, SIM_LIST);
    drop_commands(list);
    list->closed = false;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandListHostSynchronize(struct sim_list *list, uint64_t timeout)
{
    SIM_ENTER(zeCommandListHostSynchronize, list, SIM_LIST);
    (void)timeout;
    return list->immediate ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

static ze_result_t sim_zeCommandListGetDeviceHandle(struct sim_list *list, struct sim_device **out)
{
    SIM_ENTER(zeCommandListGetDeviceHandle, list, SIM_LIST);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = list->device;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandListGetContextHandle(struct sim_list *list, struct sim_context **out)
{
    SIM_ENTER(zeCommandListGetContextHandle, list, SIM_LIST);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = list->context;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandListGetOrdinal(struct sim_list *list, uint32_t *out)
{
    SIM_ENTER(zeCommandListGetOrdinal, list, SIM_LIST);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = list->ordinal;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandListImmediateGetIndex(struct sim_list *list, uint32_t *out)
{
    SIM_ENTER(zeCommandListImmediateGetIndex, list, SIM_LIST);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = list->index;
    return list->immediate ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

static ze_result_t sim_zeCommandListIsImmediate(struct sim_list *list, ze_bool_t *out)
{
    SIM_ENTER(zeCommandListIsImmediate, list, SIM_LIST);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = list->immediate;
    return ZE_RESULT_SUCCESS;
}

const struct sim_slot sim_list_slots[] = {
    SIM_SLOT(LIST, 0, 0, sim_zeCommandListCreate),
    SIM_SLOT(LIST, 1, 0, sim_zeCommandListCreateImmediate),
    SIM_SLOT(LIST, 2, 0, sim_zeCommandListDestroy),
    SIM_SLOT(LIST, 3, 0, sim_zeCommandListClose),
    SIM_SLOT(LIST, 4, 0, sim_zeCommandListReset),
    SIM_SLOT(LIST, 28, 6, sim_zeCommandListHostSynchronize),
    SIM_SLOT(LIST, 29, 9, sim_zeCommandListGetDeviceHandle),
    SIM_SLOT(LIST, 30, 9, sim_zeCommandListGetContextHandle),
    SIM_SLOT(LIST, 31, 9, sim_zeCommandListGetOrdinal),
    SIM_SLOT(LIST, 32, 9, sim_zeCommandListImmediateGetIndex),
    SIM_SLOT(LIST, 33, 9, sim_zeCommandListIsImmediate),
    SIM_SLOTS_END,
};
