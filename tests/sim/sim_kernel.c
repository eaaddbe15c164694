// SPDX-License-Identifier: MIT
//
// zeKernel…: arguments, group sizes and queries. A kernel is not thread-safe, as the specification
// has it; its arguments are copied when a launch is appended.
#include <stdio.h>
#include <string.h>

#include "sim_internal.h"

#define MAX_GROUP 1024

ze_result_t sim_kernel_set_arg(struct sim_kernel *kernel, uint32_t index, size_t size, const void *value)
{
    if (index >= SIM_MAX_ARGS || (kernel->arg_sizes && index >= kernel->arg_count))
        return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX;
    if (size == 0 || size > SIM_MAX_ARG_BYTES || (kernel->arg_sizes && size != kernel->arg_sizes[index]))
        return ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE;
    struct sim_arg *arg = &kernel->args[index];
    arg->size = (uint32_t)size;
    if (value) memcpy(arg->bytes, value, size);
    else memset(arg->bytes, 0, size);
    if (!kernel->arg_sizes && index >= kernel->arg_count) kernel->arg_count = index + 1;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelDestroy(struct sim_kernel *kernel)
{
    SIM_ENTER(zeKernelDestroy, kernel, SIM_KERNEL);
    sim_delete(kernel);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelSetCacheConfig(struct sim_kernel *kernel, uint32_t flags)
{
    SIM_ENTER(zeKernelSetCacheConfig, kernel, SIM_KERNEL);
    (void)flags;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelSetGroupSize(struct sim_kernel *kernel, uint32_t x, uint32_t y, uint32_t z)
{
    SIM_ENTER(zeKernelSetGroupSize, kernel, SIM_KERNEL);
    if (x == 0 || y == 0 || z == 0 || (uint64_t)x * y > MAX_GROUP || (uint64_t)x * y * z > MAX_GROUP)
        return ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION;
    kernel->group[0] = x;
    kernel->group[1] = y;
    kernel->group[2] = z;
    return ZE_RESULT_SUCCESS;
}

static uint32_t divisor_up_to(uint32_t size, uint32_t limit)
{
    uint32_t best = 1;
    while (best * 2 <= limit && size != 0 && size % (best * 2) == 0) best *= 2;
    return best;
}

static ze_result_t sim_zeKernelSuggestGroupSize(struct sim_kernel *kernel, uint32_t x, uint32_t y, uint32_t z,
                                                uint32_t *group_x, uint32_t *group_y, uint32_t *group_z)
{
    SIM_ENTER(zeKernelSuggestGroupSize, kernel, SIM_KERNEL);
    if (!group_x || !group_y || !group_z) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *group_x = divisor_up_to(x, 256);
    *group_y = divisor_up_to(y, 256 / *group_x);
    *group_z = divisor_up_to(z, 256 / (*group_x * *group_y));
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelSuggestMaxCooperativeGroupCount(struct sim_kernel *kernel, uint32_t *count)
{
    SIM_ENTER(zeKernelSuggestMaxCooperativeGroupCount, kernel, SIM_KERNEL);
    if (!count) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *count = 1024;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelSetArgumentValue(struct sim_kernel *kernel, uint32_t index, size_t size, const void *value)
{
    SIM_ENTER(zeKernelSetArgumentValue, kernel, SIM_KERNEL);
    return sim_kernel_set_arg(kernel, index, size, value);
}

static ze_result_t sim_zeKernelSetIndirectAccess(struct sim_kernel *kernel, uint32_t flags)
{
    SIM_ENTER(zeKernelSetIndirectAccess, kernel, SIM_KERNEL);
    kernel->indirect = flags;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelGetIndirectAccess(struct sim_kernel *kernel, uint32_t *flags)
{
    SIM_ENTER(zeKernelGetIndirectAccess, kernel, SIM_KERNEL);
    if (!flags) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *flags = kernel->indirect;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelGetSourceAttributes(struct sim_kernel *kernel, uint32_t *size, char **text)
{
    SIM_ENTER(zeKernelGetSourceAttributes, kernel, SIM_KERNEL);
    if (!size) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (text && *text && *size > 0) **text = '\0';
    *size = 1;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelGetProperties(struct sim_kernel *kernel, ze_kernel_properties_t *p)
{
    SIM_ENTER(zeKernelGetProperties, kernel, SIM_KERNEL);
    if (!p) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *p = (ze_kernel_properties_t){.stype = p->stype, .pNext = p->pNext, .numKernelArgs = kernel->arg_count,
                                  .maxSubgroupSize = 32, .maxNumSubgroups = MAX_GROUP / 32};
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelGetName(struct sim_kernel *kernel, size_t *size, char *name)
{
    SIM_ENTER(zeKernelGetName, kernel, SIM_KERNEL);
    if (!size) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (name) snprintf(name, *size, "%s", kernel->name);
    *size = strlen(kernel->name) + 1;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelSetGlobalOffsetExp(struct sim_kernel *kernel, uint32_t x, uint32_t y, uint32_t z)
{
    SIM_ENTER(zeKernelSetGlobalOffsetExp, kernel, SIM_KERNEL);
    if (y != 0 || z != 0) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE; // items are numbered in one dimension
    kernel->offset[0] = x;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeKernelSchedulingHintExp(struct sim_kernel *kernel, const void *hint)
{
    SIM_ENTER(zeKernelSchedulingHintExp, kernel, SIM_KERNEL);
    return hint ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_NULL_POINTER;
}

const struct sim_slot sim_kernel_slots[] = {
    SIM_SLOT(KERNEL, 1, 0, sim_zeKernelDestroy),
    SIM_SLOT(KERNEL, 2, 0, sim_zeKernelSetCacheConfig),
    SIM_SLOT(KERNEL, 3, 0, sim_zeKernelSetGroupSize),
    SIM_SLOT(KERNEL, 4, 0, sim_zeKernelSuggestGroupSize),
    SIM_SLOT(KERNEL, 5, 0, sim_zeKernelSuggestMaxCooperativeGroupCount),
    SIM_SLOT(KERNEL, 6, 0, sim_zeKernelSetArgumentValue),
    SIM_SLOT(KERNEL, 7, 0, sim_zeKernelSetIndirectAccess),
    SIM_SLOT(KERNEL, 8, 0, sim_zeKernelGetIndirectAccess),
    SIM_SLOT(KERNEL, 9, 0, sim_zeKernelGetSourceAttributes),
    SIM_SLOT(KERNEL, 10, 0, sim_zeKernelGetProperties),
    SIM_SLOT(KERNEL, 11, 0, sim_zeKernelGetName),
    SIM_SLOT(KERNEL_EXP, 0, 1, sim_zeKernelSetGlobalOffsetExp),
    SIM_SLOT(KERNEL_EXP, 1, 2, sim_zeKernelSchedulingHintExp),
    SIM_SLOTS_END,
};
