// SPDX-License-Identifier: MIT
//
// Command queues and fences. Execute runs the lists on the calling thread, in order, and is done
// when it returns; so synchronising is trivial. Queues and fences are not thread-safe, as the
// specification has it.
#include "sim_internal.h"

struct sim_fence { struct sim_handle handle; bool signalled; };
struct sim_queue {
    struct sim_handle handle;
    struct sim_context *context;
    struct sim_device *device;
    uint32_t ordinal, index;
};

static ze_result_t sim_zeCommandQueueCreate(struct sim_context *context, struct sim_device *device,
                                            const ze_command_queue_desc_t *desc, struct sim_queue **out)
{
    SIM_ENTER(zeCommandQueueCreate, context, SIM_CONTEXT);
    if (!device) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!desc || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->ordinal > 1 || desc->index > 3) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    struct sim_queue *queue = sim_new(sizeof *queue, SIM_QUEUE);
    if (!queue) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    queue->context = context;
    queue->device = device;
    queue->ordinal = desc->ordinal;
    queue->index = desc->index;
    *out = queue;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandQueueDestroy(struct sim_queue *queue)
{
    SIM_ENTER(zeCommandQueueDestroy, queue, SIM_QUEUE);
    sim_delete(queue);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandQueueExecuteCommandLists(struct sim_queue *queue, uint32_t count,
                                                         struct sim_list **lists, struct sim_fence *fence)
{
    SIM_ENTER(zeCommandQueueExecuteCommandLists, queue, SIM_QUEUE);
    if (count == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
    if (!lists) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    for (uint32_t i = 0; i < count; i++) {
        if (!lists[i]) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
        if (lists[i]->handle.magic != SIM_MAGIC || lists[i]->handle.kind != SIM_LIST)
            return sim_violation(GHSIM_BAD_HANDLE, "zeCommandQueueExecuteCommandLists got list %p", (void *)lists[i]);
        if (lists[i]->immediate || !lists[i]->closed || lists[i]->ordinal != queue->ordinal)
            return ZE_RESULT_ERROR_INVALID_ARGUMENT;
        const ze_result_t result = sim_execute_list(lists[i]);
        if (result != ZE_RESULT_SUCCESS) return result;
    }
    if (fence) fence->signalled = true;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandQueueSynchronize(struct sim_queue *queue, uint64_t timeout)
{
    SIM_ENTER(zeCommandQueueSynchronize, queue, SIM_QUEUE);
    (void)timeout;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandQueueGetOrdinal(struct sim_queue *queue, uint32_t *out)
{
    SIM_ENTER(zeCommandQueueGetOrdinal, queue, SIM_QUEUE);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = queue->ordinal;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeCommandQueueGetIndex(struct sim_queue *queue, uint32_t *out)
{
    SIM_ENTER(zeCommandQueueGetIndex, queue, SIM_QUEUE);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = queue->index;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeFenceCreate(struct sim_queue *queue, const ze_fence_desc_t *desc, struct sim_fence **out)
{
    SIM_ENTER(zeFenceCreate, queue, SIM_QUEUE);
    if (!desc || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    struct sim_fence *fence = sim_new(sizeof *fence, SIM_FENCE);
    if (!fence) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    fence->signalled = (desc->flags & ZE_FENCE_FLAG_SIGNALED) != 0;
    *out = fence;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeFenceDestroy(struct sim_fence *fence)
{
    SIM_ENTER(zeFenceDestroy, fence, SIM_FENCE);
    sim_delete(fence);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeFenceHostSynchronize(struct sim_fence *fence, uint64_t timeout)
{
    SIM_ENTER(zeFenceHostSynchronize, fence, SIM_FENCE);
    (void)timeout; // a fence that is not signalled now belongs to no running work
    return fence->signalled ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

static ze_result_t sim_zeFenceQueryStatus(struct sim_fence *fence)
{
    SIM_ENTER(zeFenceQueryStatus, fence, SIM_FENCE);
    return fence->signalled ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

static ze_result_t sim_zeFenceReset(struct sim_fence *fence)
{
    SIM_ENTER(zeFenceReset, fence, SIM_FENCE);
    fence->signalled = false;
    return ZE_RESULT_SUCCESS;
}

const struct sim_slot sim_queue_slots[] = {
    SIM_SLOT(QUEUE, 0, 0, sim_zeCommandQueueCreate),
    SIM_SLOT(QUEUE, 1, 0, sim_zeCommandQueueDestroy),
    SIM_SLOT(QUEUE, 2, 0, sim_zeCommandQueueExecuteCommandLists),
    SIM_SLOT(QUEUE, 3, 0, sim_zeCommandQueueSynchronize),
    SIM_SLOT(QUEUE, 4, 9, sim_zeCommandQueueGetOrdinal),
    SIM_SLOT(QUEUE, 5, 9, sim_zeCommandQueueGetIndex),
    SIM_SLOT(FENCE, 0, 0, sim_zeFenceCreate),
    SIM_SLOT(FENCE, 1, 0, sim_zeFenceDestroy),
    SIM_SLOT(FENCE, 2, 0, sim_zeFenceHostSynchronize),
    SIM_SLOT(FENCE, 3, 0, sim_zeFenceQueryStatus),
    SIM_SLOT(FENCE, 4, 0, sim_zeFenceReset),
    SIM_SLOTS_END,
};
