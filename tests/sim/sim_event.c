// SPDX-License-Identifier: MIT
//
// Event pools and events. Commands run while they are appended or executed, so an event
// is signalled by the time the call returns, unless the host signals it. One lock and one
// condition for all events; a leaf lock.
#include <errno.h>
#include <time.h>

#include "sim_internal.h"

struct sim_pool {
    struct sim_handle handle;
    struct sim_context *context;
    uint32_t flags, count;
};

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t event_changed = PTHREAD_COND_INITIALIZER;

uint64_t sim_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

ze_result_t sim_event_wait(struct sim_event *event, uint64_t timeout_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const bool for_ever = timeout_ns > UINT64_C(1) << 60;
    if (!for_ever) {
        const uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns % 1000000000u;
        until.tv_sec += (time_t)(timeout_ns / 1000000000u + ns / 1000000000u);
        until.tv_nsec = (long)(ns % 1000000000u);
    }
    pthread_mutex_lock(&event_lock);
    int error = 0;
    while (!event->signalled && error != ETIMEDOUT && timeout_ns > 0)
        error = for_ever ? pthread_cond_wait(&event_changed, &event_lock)
                         : pthread_cond_timedwait(&event_changed, &event_lock, &until);
    const bool signalled = event->signalled;
    pthread_mutex_unlock(&event_lock);
    return signalled ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

void sim_event_signal(struct sim_event *event, uint64_t start_ns)
{
    const uint64_t end = sim_now_ns();
    pthread_mutex_lock(&event_lock);
    event->signalled = true;
    event->time.global.kernelStart = event->time.context.kernelStart = start_ns;
    event->time.global.kernelEnd = event->time.context.kernelEnd = end > start_ns ? end : start_ns + 1;
    pthread_cond_broadcast(&event_changed);
    pthread_mutex_unlock(&event_lock);
}

void sim_event_clear(struct sim_event *event)
{
    pthread_mutex_lock(&event_lock);
    event->signalled = false;
    pthread_mutex_unlock(&event_lock);
}

bool sim_event_time(struct sim_event *event, ze_kernel_timestamp_result_t *time)
{
    pthread_mutex_lock(&event_lock);
    const bool signalled = event->signalled;
    if (signalled) *time = event->time;
    pthread_mutex_unlock(&event_lock);
    return signalled;
}

static ze_result_t sim_zeEventPoolCreate(struct sim_context *context, const ze_event_pool_desc_t *desc, uint32_t count,
                                         struct sim_device **devices, struct sim_pool **out)
{
    SIM_ENTER(zeEventPoolCreate, context, SIM_CONTEXT);
    if (!desc || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->count == 0 || (count > 0 && !devices)) return ZE_RESULT_ERROR_INVALID_SIZE;
    struct sim_pool *pool = sim_new(sizeof *pool, SIM_POOL);
    if (!pool) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    pool->context = context;
    pool->flags = desc->flags;
    pool->count = desc->count;
    *out = pool;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeEventPoolDestroy(struct sim_pool *pool)
{
    SIM_ENTER(zeEventPoolDestroy, pool, SIM_POOL);
    sim_delete(pool);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeEventPoolGetContextHandle(struct sim_pool *pool, struct sim_context **out)
{
    SIM_ENTER(zeEventPoolGetContextHandle, pool, SIM_POOL);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = pool->context;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeEventPoolGetFlags(struct sim_pool *pool, uint32_t *out)
{
    SIM_ENTER(zeEventPoolGetFlags, pool, SIM_POOL);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = pool->flags;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeEventCreate(struct sim_pool *pool, const ze_event_desc_t *desc, struct sim_event **out)
{
    SIM_ENTER(zeEventCreate, pool, SIM_POOL);
    if (!desc || !out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (desc->index >= pool->count) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    struct sim_event *event = sim_new(sizeof *event, SIM_EVENT);
    if (!event) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    event->pool = &pool->handle;
    event->signal_scope = desc->signal;
    event->wait_scope = desc->wait;
    *out = event;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeEventDestroy(struct sim_event *event)
{
    SIM_ENTER(zeEventDestroy, event, SIM_EVENT);
    sim_delete(event);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeEventHostSignal(struct sim_event *event)
{
    SIM_ENTER(zeEventHostSignal, event, SIM_EVENT);
    sim_event_signal(event, sim_now_ns());
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeEventHostSynchronize(struct sim_event *event, uint64_t timeout)
{
    SIM_ENTER(zeEventHostSynchronize, event, SIM_EVENT);
    return sim_event_wait(event, timeout);
}

static ze_result_t sim_zeEventQueryStatus(struct sim_event *event)
{
    SIM_ENTER(zeEventQueryStatus, event, SIM_EVENT);
    return sim_event_wait(event, 0);
}

static ze_result_t sim_zeEventHostReset(struct sim_event *event)
{
    SIM_ENTER(zeEventHostReset, event, SIM_EVENT);
    sim_event_clear(event);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeEventQueryKernelTimestamp(struct sim_event *event, ze_kernel_timestamp_result_t *out)
{
    SIM_ENTER(zeEventQueryKernelTimestamp, event, SIM_EVENT);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    return sim_event_time(event, out) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

static ze_result_t sim_zeEventGetEventPool(struct sim_event *event, struct sim_handle **out)
{
    SIM_ENTER(zeEventGetEventPool, event, SIM_EVENT);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = event->pool;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeEventGetSignalScope(struct sim_event *event, uint32_t *out)
{
    SIM_ENTER(zeEventGetSignalScope, event, SIM_EVENT);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = event->signal_scope;
    return ZE_RESULT_SUCCESS;
}

static ze_result_t sim_zeEventGetWaitScope(struct sim_event *event, uint32_t *out)
{
    SIM_ENTER(zeEventGetWaitScope, event, SIM_EVENT);
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    *out = event->wait_scope;
    return ZE_RESULT_SUCCESS;
}

const struct sim_slot sim_event_slots[] = {
    SIM_SLOT(POOL, 0, 0, sim_zeEventPoolCreate),
    SIM_SLOT(POOL, 1, 0, sim_zeEventPoolDestroy),
    SIM_SLOT(POOL, 6, 9, sim_zeEventPoolGetContextHandle),
    SIM_SLOT(POOL, 7, 9, sim_zeEventPoolGetFlags),
    SIM_SLOT(EVENT, 0, 0, sim_zeEventCreate),
    SIM_SLOT(EVENT, 1, 0, sim_zeEventDestroy),
    SIM_SLOT(EVENT, 2, 0, sim_zeEventHostSignal),
    SIM_SLOT(EVENT, 3, 0, sim_zeEventHostSynchronize),
    SIM_SLOT(EVENT, 4, 0, sim_zeEventQueryStatus),
    SIM_SLOT(EVENT, 5, 0, sim_zeEventHostReset),
    SIM_SLOT(EVENT, 6, 0, sim_zeEventQueryKernelTimestamp),
    SIM_SLOT(EVENT, 8, 9, sim_zeEventGetEventPool),
    SIM_SLOT(EVENT, 9, 9, sim_zeEventGetSignalScope),
    SIM_SLOT(EVENT, 10, 9, sim_zeEventGetWaitScope),
    SIM_SLOTS_END,
};
