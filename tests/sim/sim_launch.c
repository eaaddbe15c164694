// SPDX-License-Identifier: MIT
//
// zeCommandListAppendLaunch…: the arguments of the kernel are copied now, pointers are judged when
// the kernel runs, as on a device.
#include <stdio.h>
#include <string.h>

#include "sim_internal.h"

static ze_result_t prepare(struct sim_list *list, struct sim_kernel *kernel, struct sim_command *command)
{
    if (!kernel) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (kernel->handle.magic != SIM_MAGIC || kernel->handle.kind != SIM_KERNEL)
        return sim_violation(GHSIM_BAD_HANDLE, "launch of kernel %p", (void *)kernel);
    if (list->ordinal != 0) return ZE_RESULT_ERROR_INVALID_ARGUMENT; // the second group only copies
    struct sim_launch *launch = &command->launch;
    *command = (struct sim_command){.op = SIM_OP_LAUNCH};
    launch->function = kernel->function;
    snprintf(launch->name, sizeof launch->name, "%s", kernel->name);
    launch->pointer_mask = kernel->pointer_mask;
    launch->arg_count = kernel->arg_count;
    memcpy(launch->group, kernel->group, sizeof launch->group);
    memcpy(launch->offset, kernel->offset, sizeof launch->offset);
    launch->args = sim_alloc((kernel->arg_count ? kernel->arg_count : 1) * sizeof *launch->args);
    if (!launch->args) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(launch->args, kernel->args, kernel->arg_count * sizeof *launch->args);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t append_launch(struct sim_list *list, struct sim_kernel *kernel, const ze_group_count_t *count,
                                 struct sim_event *signal, uint32_t waits_count, struct sim_event **waits)
{
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    struct sim_command command;
    const ze_result_t result = prepare(list, kernel, &command);
    if (result != ZE_RESULT_SUCCESS) return result;
    command.launch.count = *count;
    return sim_submit_with(list, &command, signal, waits_count, waits);
}

static ze_result_t sim_zeCommandListAppendLaunchKernel(struct sim_list *list, struct sim_kernel *kernel,
                                                       const ze_group_count_t *count, struct sim_event *signal,
                                                       uint32_t waits_count, struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendLaunchKernel, list, SIM_LIST);
    return append_launch(list, kernel, count, signal, waits_count, waits);
}

static ze_result_t sim_zeCommandListAppendLaunchCooperativeKernel(struct sim_list *list, struct sim_kernel *kernel,
                                                                  const ze_group_count_t *count, struct sim_event *signal,
                                                                  uint32_t waits_count, struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendLaunchCooperativeKernel, list, SIM_LIST);
    return append_launch(list, kernel, count, signal, waits_count, waits);
}

static ze_result_t sim_zeCommandListAppendLaunchKernelWithParameters(struct sim_list *list, struct sim_kernel *kernel,
                                                                     const ze_group_count_t *count, const void *next,
                                                                     struct sim_event *signal, uint32_t waits_count,
                                                                     struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendLaunchKernelWithParameters, list, SIM_LIST);
    (void)next;
    return append_launch(list, kernel, count, signal, waits_count, waits);
}

static ze_result_t sim_zeCommandListAppendLaunchKernelWithArguments(struct sim_list *list, struct sim_kernel *kernel,
                                                                    ze_group_count_t count, struct sim_group_size group,
                                                                    void **arguments, const void *next,
                                                                    struct sim_event *signal, uint32_t waits_count,
                                                                    struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendLaunchKernelWithArguments, list, SIM_LIST);
    (void)next;
    if (!kernel) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!kernel->arg_sizes) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE; // the module does not export the sizes
    if (!arguments && kernel->arg_count > 0) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (group.x == 0 || group.y == 0 || group.z == 0 || (uint64_t)group.x * group.y * group.z > 1024)
        return ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
    for (uint32_t i = 0; i < kernel->arg_count; i++) {
        const ze_result_t result = sim_kernel_set_arg(kernel, i, kernel->arg_sizes[i], arguments[i]);
        if (result != ZE_RESULT_SUCCESS) return result;
    }
    kernel->group[0] = group.x;
    kernel->group[1] = group.y;
    kernel->group[2] = group.z;
    return append_launch(list, kernel, &count, signal, waits_count, waits);
}

static ze_result_t sim_zeCommandListAppendLaunchKernelIndirect(struct sim_list *list, struct sim_kernel *kernel,
                                                               const ze_group_count_t *count, struct sim_event *signal,
                                                               uint32_t waits_count, struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendLaunchKernelIndirect, list, SIM_LIST);
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ze_result_t result = sim_check_range(list, list->context, count, sizeof *count, false, "group counts");
    if (result != ZE_RESULT_SUCCESS) return result;
    struct sim_command command;
    result = prepare(list, kernel, &command);
    if (result != ZE_RESULT_SUCCESS) return result;
    command.launch.indirect_count = count;
    return sim_submit_with(list, &command, signal, waits_count, waits);
}

static ze_result_t sim_zeCommandListAppendLaunchMultipleKernelsIndirect(
    struct sim_list *list, uint32_t kernels_count, struct sim_kernel **kernels, const uint32_t *run_count,
    const ze_group_count_t *counts, struct sim_event *signal, uint32_t waits_count, struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendLaunchMultipleKernelsIndirect, list, SIM_LIST);
    if (!kernels || !run_count || !counts) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ze_result_t result = sim_check_range(list, list->context, run_count, sizeof *run_count, false, "kernel count");
    if (result == ZE_RESULT_SUCCESS)
        result = sim_check_range(list, list->context, counts, kernels_count * sizeof *counts, false, "group counts");
    struct sim_command wait = {.op = SIM_OP_NOTHING}, done = {.op = SIM_OP_NOTHING};
    if (result == ZE_RESULT_SUCCESS) result = sim_submit_with(list, &wait, NULL, waits_count, waits);
    for (uint32_t i = 0; i < kernels_count && result == ZE_RESULT_SUCCESS; i++) {
        struct sim_command command;
        result = prepare(list, kernels[i], &command);
        if (result != ZE_RESULT_SUCCESS) return result;
        command.launch.indirect_count = &counts[i];
        command.launch.kernel_count = run_count;
        command.launch.kernel_index = i;
        result = sim_submit(list, &command);
    }
    return result == ZE_RESULT_SUCCESS ? sim_submit_with(list, &done, signal, 0, NULL) : result;
}

const struct sim_slot sim_launch_slots[] = {
    SIM_SLOT(LIST, 22, 0, sim_zeCommandListAppendLaunchKernel),
    SIM_SLOT(LIST, 23, 0, sim_zeCommandListAppendLaunchCooperativeKernel),
    SIM_SLOT(LIST, 24, 0, sim_zeCommandListAppendLaunchKernelIndirect),
    SIM_SLOT(LIST, 25, 0, sim_zeCommandListAppendLaunchMultipleKernelsIndirect),
    SIM_SLOT(LIST, 36, 14, sim_zeCommandListAppendLaunchKernelWithParameters),
    SIM_SLOT(LIST, 37, 14, sim_zeCommandListAppendLaunchKernelWithArguments),
    SIM_SLOTS_END,
};
