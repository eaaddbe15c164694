// SPDX-License-Identifier: MIT
//
// Runs commands, on the calling thread and, for large launches, on one thread per core. Here a
// pointer meets the import table: what a device would fault on, aborts.
#include <sched.h>
#include <string.h>

#include "sim_internal.h"

#define ITEMS_PER_THREAD ((size_t)1 << 16)
#define MAX_THREADS 64

// `running`: the command is about to touch the memory, so there is no clean error left.
ze_result_t sim_check_range(struct sim_list *list, struct sim_context *context, const void *pointer, size_t size,
                            bool running, const char *what)
{
    if (sim_config.system_usm || size == 0) return ZE_RESULT_SUCCESS;
    struct sim_hit hit;
    sim_lookup(context, pointer, size, true, &hit);
    if (hit.where == SIM_STRADDLES)
        return sim_violation(GHSIM_STRADDLE, "%s %p+%zu leaves [%#lx,+%#zx)", what, pointer, size,
                             (unsigned long)hit.base, hit.size);
    if (hit.where == SIM_NOWHERE) {
        if (sim_config.plain_copy) {
            // Real drivers import the range for the time of the copy: that may meet an import.
            if (!sim_touches_import(context, (uintptr_t)pointer, (uintptr_t)pointer + size)) return ZE_RESULT_SUCCESS;
            return sim_violation(GHSIM_OVERLAP, "%s %p+%zu runs into an import", what, pointer, size);
        }
        if (running) return sim_violation(GHSIM_ILLEGAL_ADDRESS, "%s %p+%zu is gone", what, pointer, size);
        sim_log("refused %s %p+%zu not imported", what, pointer, size);
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    if (hit.only_device && hit.only_device != list->device)
        return sim_violation(GHSIM_WRONG_DEVICE, "%s %p on device %u", what, pointer, list->device->index);
    return ZE_RESULT_SUCCESS;
}

size_t sim_region_span(const struct sim_region *region, size_t *first)
{
    const ze_copy_region_t *a = &region->area;
    const size_t depth = a->depth ? a->depth : 1;
    *first = (size_t)a->originZ * region->slice_pitch + (size_t)a->originY * region->pitch + a->originX;
    if (a->width == 0 || a->height == 0) return 0;
    return (depth - 1) * region->slice_pitch + (size_t)(a->height - 1) * region->pitch + a->width;
}

static ze_result_t run_copy(struct sim_list *list, const struct sim_command *c)
{
    ze_result_t result = sim_check_range(list, list->context, c->target, c->size, true, "copy target");
    if (result == ZE_RESULT_SUCCESS)
        result = sim_check_range(list, c->source_context, c->source, c->size, true, "copy source");
    if (result != ZE_RESULT_SUCCESS) return result;
    memmove(c->target, c->source, c->size);
    SIM_COUNT(copies, 1);
    SIM_COUNT(copy_bytes, c->size);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t run_region(struct sim_list *list, const struct sim_command *c)
{
    size_t to_first, from_first;
    const size_t to_span = sim_region_span(&c->to, &to_first), from_span = sim_region_span(&c->from, &from_first);
    char *to = (char *)c->target + to_first;
    const char *from = (const char *)c->source + from_first;
    ze_result_t result = sim_check_range(list, list->context, to, to_span, true, "region target");
    if (result == ZE_RESULT_SUCCESS)
        result = sim_check_range(list, list->context, from, from_span, true, "region source");
    if (result != ZE_RESULT_SUCCESS) return result;
    const size_t depth = c->to.area.depth ? c->to.area.depth : 1;
    for (size_t z = 0; z < depth; z++)
        for (size_t y = 0; y < c->to.area.height; y++)
            memmove(to + z * c->to.slice_pitch + y * c->to.pitch, from + z * c->from.slice_pitch + y * c->from.pitch,
                    c->to.area.width);
    SIM_COUNT(copies, 1);
    SIM_COUNT(copy_bytes, depth * c->to.area.height * c->to.area.width);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t run_fill(struct sim_list *list, const struct sim_command *c)
{
    const ze_result_t result = sim_check_range(list, list->context, c->target, c->size, true, "fill");
    if (result != ZE_RESULT_SUCCESS) return result;
    unsigned char *to = c->target;
    if (c->pattern_size == 1) memset(to, c->pattern[0], c->size);
    else
        for (size_t i = 0; i < c->size; i++) to[i] = c->pattern[i & (c->pattern_size - 1)];
    SIM_COUNT(fills, 1);
    return ZE_RESULT_SUCCESS;
}

struct slice { sim_kernel_fn function; size_t begin, end; void **args; };

static void *run_slice(void *argument)
{
    const struct slice *slice = argument;
    slice->function(slice->begin, slice->end, slice->args);
    return NULL;
}

static void run_items(sim_kernel_fn function, size_t begin, size_t end, void **args)
{
    cpu_set_t set;
    size_t threads = 1 + (end - begin) / ITEMS_PER_THREAD;
    const size_t cores = sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
    if (threads > cores) threads = cores;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    struct slice slices[MAX_THREADS];
    pthread_t ids[MAX_THREADS];
    bool started[MAX_THREADS] = {false};
    const size_t step = (end - begin) / threads;
    for (size_t i = 0; i < threads; i++) {
        slices[i] = (struct slice){function, begin + i * step, i + 1 == threads ? end : begin + (i + 1) * step, args};
        if (i > 0) started[i] = pthread_create(&ids[i], NULL, run_slice, &slices[i]) == 0;
    }
    for (size_t i = 0; i < threads; i++)
        if (!started[i]) run_slice(&slices[i]); // the first one, and any whose thread did not start
    for (size_t i = 1; i < threads; i++)
        if (started[i]) pthread_join(ids[i], NULL);
}

static ze_result_t check_pointer(struct sim_list *list, const struct sim_launch *launch, uint32_t index)
{
    void *pointer;
    memcpy(&pointer, launch->args[index].bytes, sizeof pointer);
    if (!pointer || sim_config.system_usm) return ZE_RESULT_SUCCESS;
    struct sim_hit hit;
    sim_lookup(list->context, pointer, 1, true, &hit);
    if (hit.where == SIM_NOWHERE)
        return sim_violation(GHSIM_ILLEGAL_ADDRESS, "kernel %s argument %u is %p", launch->name, index, pointer);
    if (hit.only_device && hit.only_device != list->device)
        return sim_violation(GHSIM_WRONG_DEVICE, "kernel %s argument %u is %p", launch->name, index, pointer);
    if (!hit.resident)
        return sim_violation(GHSIM_NOT_RESIDENT, "kernel %s argument %u is %p", launch->name, index, pointer);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t run_launch(struct sim_list *list, const struct sim_launch *launch)
{
    ze_group_count_t count = launch->count;
    ze_result_t result = ZE_RESULT_SUCCESS;
    if (launch->kernel_count) {
        result = sim_check_range(list, list->context, launch->kernel_count, sizeof(uint32_t), true, "kernel count");
        if (result == ZE_RESULT_SUCCESS && launch->kernel_index >= *launch->kernel_count) return ZE_RESULT_SUCCESS;
    }
    if (result == ZE_RESULT_SUCCESS && launch->indirect_count) {
        result = sim_check_range(list, list->context, launch->indirect_count, sizeof count, true, "group counts");
        if (result == ZE_RESULT_SUCCESS) count = *launch->indirect_count;
    }
    void *args[SIM_MAX_ARGS];
    for (uint32_t i = 0; i < launch->arg_count && result == ZE_RESULT_SUCCESS; i++) {
        args[i] = launch->args[i].bytes;
        if (launch->args[i].size == sizeof(void *) && (launch->pointer_mask >> i) & 1)
            result = check_pointer(list, launch, i);
    }
    if (result != ZE_RESULT_SUCCESS) return result;
    const size_t items = (size_t)count.groupCountX * count.groupCountY * count.groupCountZ * launch->group[0] *
                         launch->group[1] * launch->group[2];
    if (items > 0) run_items(launch->function, launch->offset[0], launch->offset[0] + items, args);
    SIM_COUNT(launches, 1);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t run_query(struct sim_list *list, const struct sim_command *c)
{
    for (uint32_t i = 0; i < c->event_count; i++) {
        ze_kernel_timestamp_result_t time = {0};
        char *to = (char *)c->target + c->offsets[i];
        if (!sim_event_time(c->events[i], &time)) return ZE_RESULT_NOT_READY;
        const ze_result_t result = sim_check_range(list, list->context, to, sizeof time, true, "timestamps");
        if (result != ZE_RESULT_SUCCESS) return result;
        memcpy(to, &time, sizeof time);
    }
    return ZE_RESULT_SUCCESS;
}

static ze_result_t run(struct sim_list *list, const struct sim_command *c)
{
    switch (c->op) {
    case SIM_OP_COPY: return run_copy(list, c);
    case SIM_OP_REGION: return run_region(list, c);
    case SIM_OP_FILL: return run_fill(list, c);
    case SIM_OP_LAUNCH: return run_launch(list, &c->launch);
    case SIM_OP_QUERY_TIMES: return run_query(list, c);
    case SIM_OP_TIMESTAMP: {
        const ze_result_t result = sim_check_range(list, list->context, c->target, c->size, true, "timestamp");
        const uint64_t now = sim_now_ns();
        if (result == ZE_RESULT_SUCCESS) memcpy(c->target, &now, sizeof now);
        return result;
    }
    case SIM_OP_EVENT_RESET:
        for (uint32_t i = 0; i < c->event_count; i++) sim_event_clear(c->events[i]);
        return ZE_RESULT_SUCCESS;
    case SIM_OP_NOTHING: break;
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t sim_execute(struct sim_list *list, const struct sim_command *command)
{
    for (uint32_t i = 0; i < command->wait_count; i++)
        if (sim_event_wait(command->waits[i], sim_config.wait_ms * 1000000u) != ZE_RESULT_SUCCESS)
            return sim_violation(GHSIM_LOST_EVENT, "nobody signalled event %p in %llu ms", (void *)command->waits[i],
                                 (unsigned long long)sim_config.wait_ms);
    const uint64_t start = sim_now_ns();
    const ze_result_t result = run(list, command);
    if (result == ZE_RESULT_SUCCESS && command->signal) sim_event_signal(command->signal, start);
    return result;
}
