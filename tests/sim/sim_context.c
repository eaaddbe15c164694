// SPDX-License-Identifier: MIT
//
// Contexts and residency. In context scope a context owns its imports: destroying it releases
// them. In driver scope they stay, as in Intel's driver.
#include "sim_internal.h"

static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_context *default_context; // under default_lock

static struct sim_context *make_context(struct sim_device *first)
{
    struct sim_context *context = sim_new(sizeof *context, SIM_CONTEXT);
    if (!context) return NULL;
    context->first_device = first;
    pthread_rwlock_wrlock(&sim_memory_lock);
    context->space.next = sim_spaces;
    sim_spaces = &context->space;
    pthread_rwlock_unlock(&sim_memory_lock);
    SIM_COUNT(contexts_live, 1);
    return context;
}

struct sim_context *sim_default_context(void)
{
    pthread_mutex_lock(&default_lock);
    if (!default_context) default_context = make_context(&sim_devices[0]);
    struct sim_context *context = default_context;
    pthread_mutex_unlock(&default_lock);
    return context;
}

static ze_result_t create(const ze_context_desc_t *desc, struct sim_device *first, struct sim_context **out)
{
    if (!desc || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    struct sim_context *context = make_context(first);
    if (!context) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    *out = context;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeContextCreate(struct sim_handle *driver, const ze_context_desc_t *desc, struct sim_context **out)
{
    SIM_ENTER(zeContextCreate, driver, SIM_DRIVER);
    return create(desc, &sim_devices[0], out);
}

static ze_result_t sim_zeContextCreateEx(struct sim_handle *driver, const ze_context_desc_t *desc, uint32_t count,
                                         struct sim_device **devices, struct sim_context **out)
{
    SIM_ENTER(zeContextCreateEx, driver, SIM_DRIVER);
    if (count > 0 && !devices) return ZE_RESULT_ERROR_INVALID_SIZE;
    return create(desc, count > 0 ? devices[0] : &sim_devices[0], out);
}

static ze_result_t sim_zeContextDestroy(struct sim_context *context)
{
    SIM_ENTER(zeContextDestroy, context, SIM_CONTEXT);
    sim_release_space(&context->space);
    pthread_rwlock_wrlock(&sim_memory_lock);
    struct sim_space **link = &sim_spaces;
    while (*link && *link != &context->space) link = &(*link)->next;
    if (*link) *link = context->space.next;
    pthread_rwlock_unlock(&sim_memory_lock);
    SIM_UNCOUNT(contexts_live, 1);
    sim_delete(context);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeContextGetStatus(struct sim_context *context)
{
    SIM_ENTER(zeContextGetStatus, context, SIM_CONTEXT);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeContextSystemBarrier(struct sim_context *context, struct sim_device *device)
{
    SIM_ENTER(zeContextSystemBarrier, context, SIM_CONTEXT);
    return device ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
}

static ze_result_t sim_zeContextMakeMemoryResident(struct sim_context *context, struct sim_device *device,
                                                   const void *pointer, size_t size)
{
    SIM_ENTER(zeContextMakeMemoryResident, context, SIM_CONTEXT);
    if (!device) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!pointer) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    SIM_COUNT(residency_calls, 1);
    return sim_set_resident(context, pointer, size, true);
}

static ze_result_t sim_zeContextEvictMemory(struct sim_context *context, struct sim_device *device,
                                            const void *pointer, size_t size)
{
    SIM_ENTER(zeContextEvictMemory, context, SIM_CONTEXT);
    if (!device) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!pointer) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    SIM_COUNT(evictions, 1);
    return sim_set_resident(context, pointer, size, false);
}

const struct sim_slot sim_context_slots[] = {
    SIM_SLOT(CONTEXT, 0, 0, sim_zeContextCreate),
    SIM_SLOT(CONTEXT, 1, 0, sim_zeContextDestroy),
    SIM_SLOT(CONTEXT, 2, 0, sim_zeContextGetStatus),
    SIM_SLOT(CONTEXT, 3, 0, sim_zeContextSystemBarrier),
    SIM_SLOT(CONTEXT, 4, 0, sim_zeContextMakeMemoryResident),
    SIM_SLOT(CONTEXT, 5, 0, sim_zeContextEvictMemory),
    SIM_SLOT(CONTEXT, 8, 1, sim_zeContextCreateEx),
    SIM_SLOTS_END,
};
