// SPDX-License-Identifier: MIT
//
// zeCommandListAppend… for everything but kernels. Ranges are checked here, as real drivers do,
// and again when the command runs, since an import may have gone in between.
#include <string.h>

#include "sim_internal.h"

// Takes over signal and wait list; a broken handle in the list is a violation.
ze_result_t sim_command_events(struct sim_command *command, struct sim_event *signal, uint32_t count,
                               struct sim_event **waits)
{
    if (count > 0 && !waits) return ZE_RESULT_ERROR_INVALID_SIZE;
    command->signal = signal;
    command->wait_count = count;
    if (count == 0) return ZE_RESULT_SUCCESS;
    command->waits = sim_alloc(count * sizeof *waits);
    if (!command->waits) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(command->waits, waits, count * sizeof *waits);
    for (uint32_t i = 0; i < count; i++)
        if (!waits[i] || waits[i]->handle.magic != SIM_MAGIC || waits[i]->handle.kind != SIM_EVENT)
            return sim_violation(GHSIM_BAD_HANDLE, "wait list has %p", (void *)waits[i]);
    return ZE_RESULT_SUCCESS;
}

ze_result_t sim_submit_with(struct sim_list *list, struct sim_command *command, struct sim_event *signal,
                            uint32_t count, struct sim_event **waits)
{
    const ze_result_t result = sim_command_events(command, signal, count, waits);
    if (result != ZE_RESULT_SUCCESS) {
        sim_command_clear(command);
        return result;
    }
    return sim_submit(list, command);
}

static ze_result_t append_copy(struct sim_list *list, void *target, struct sim_context *from, const void *source,
                               size_t size, struct sim_event *signal, uint32_t count, struct sim_event **waits)
{
    if (!target || !source) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    ze_result_t result = sim_check_range(list, list->context, target, size, false, "copy target");
    if (result == ZE_RESULT_SUCCESS) result = sim_check_range(list, from, source, size, false, "copy source");
    if (result != ZE_RESULT_SUCCESS) return result;
    struct sim_command command = {.op = SIM_OP_COPY, .target = target, .source = source, .size = size, .source_context = from};
    return sim_submit_with(list, &command, signal, count, waits);
}

static ze_result_t sim_zeCommandListAppendMemoryCopy(struct sim_list *list, void *target, const void *source, size_t size,
                                                     struct sim_event *signal, uint32_t count, struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendMemoryCopy, list, SIM_LIST);
    return append_copy(list, target, list->context, source, size, signal, count, waits);
}

static ze_result_t sim_zeCommandListAppendMemoryCopyWithParameters(struct sim_list *list, void *target, const void *source,
                                                                   size_t size, const void *next, struct sim_event *signal,
                                                                   uint32_t count, struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendMemoryCopyWithParameters, list, SIM_LIST);
    (void)next;
    return append_copy(list, target, list->context, source, size, signal, count, waits);
}

static ze_result_t sim_zeCommandListAppendMemoryCopyFromContext(struct sim_list *list, void *target,
                                                                struct sim_context *from, const void *source, size_t size,
                                                                struct sim_event *signal, uint32_t count,
                                                                struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendMemoryCopyFromContext, list, SIM_LIST);
    return append_copy(list, target, from ? from : list->context, source, size, signal, count, waits);
}

static ze_result_t append_fill(struct sim_list *list, void *target, const void *pattern, size_t pattern_size, size_t size,
                               struct sim_event *signal, uint32_t count, struct sim_event **waits)
{
    if (!target || !pattern) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (pattern_size == 0 || pattern_size > 128 || (pattern_size & (pattern_size - 1)) != 0)
        return ZE_RESULT_ERROR_INVALID_SIZE;
    const ze_result_t result = sim_check_range(list, list->context, target, size, false, "fill");
    if (result != ZE_RESULT_SUCCESS) return result;
    struct sim_command command = {.op = SIM_OP_FILL, .target = target, .size = size, .pattern_size = pattern_size};
    command.pattern = sim_alloc(pattern_size);
    if (!command.pattern) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(command.pattern, pattern, pattern_size);
    return sim_submit_with(list, &command, signal, count, waits);
}

static ze_result_t sim_zeCommandListAppendMemoryFill(struct sim_list *list, void *target, const void *pattern,
                                                     size_t pattern_size, size_t size, struct sim_event *signal,
                                                     uint32_t count, struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendMemoryFill, list, SIM_LIST);
    return append_fill(list, target, pattern, pattern_size, size, signal, count, waits);
}

static ze_result_t sim_zeCommandListAppendMemoryFillWithParameters(struct sim_list *list, void *target, const void *pattern,
                                                                   size_t pattern_size, size_t size, const void *next,
                                                                   struct sim_event *signal, uint32_t count,
                                                                   struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendMemoryFillWithParameters, list, SIM_LIST);
    (void)next;
    return append_fill(list, target, pattern, pattern_size, size, signal, count, waits);
}

static ze_result_t sim_zeCommandListAppendMemoryCopyRegion(struct sim_list *list, void *target, const ze_copy_region_t *to,
                                                           uint32_t to_pitch, uint32_t to_slice, const void *source,
                                                           const ze_copy_region_t *from, uint32_t from_pitch,
                                                           uint32_t from_slice, struct sim_event *signal, uint32_t count,
                                                           struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendMemoryCopyRegion, list, SIM_LIST);
    if (!target || !source || !to || !from) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (to->width != from->width || to->height != from->height || to->depth != from->depth)
        return ZE_RESULT_ERROR_INVALID_SIZE;
    struct sim_command command = {.op = SIM_OP_REGION, .target = target, .source = source, .source_context = list->context,
                                  .to = {*to, to_pitch, to_slice}, .from = {*from, from_pitch, from_slice}};
    size_t first;
    size_t span = sim_region_span(&command.to, &first);
    ze_result_t result = sim_check_range(list, list->context, (char *)target + first, span, false, "region target");
    span = sim_region_span(&command.from, &first);
    if (result == ZE_RESULT_SUCCESS)
        result = sim_check_range(list, list->context, (const char *)source + first, span, false, "region source");
    if (result != ZE_RESULT_SUCCESS) return result;
    return sim_submit_with(list, &command, signal, count, waits);
}

static ze_result_t sim_zeCommandListAppendWriteGlobalTimestamp(struct sim_list *list, uint64_t *target,
                                                               struct sim_event *signal, uint32_t count,
                                                               struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendWriteGlobalTimestamp, list, SIM_LIST);
    if (!target) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    const ze_result_t result = sim_check_range(list, list->context, target, sizeof *target, false, "timestamp");
    if (result != ZE_RESULT_SUCCESS) return result;
    struct sim_command command = {.op = SIM_OP_TIMESTAMP, .target = target, .size = sizeof *target};
    return sim_submit_with(list, &command, signal, count, waits);
}

static ze_result_t sim_zeCommandListAppendBarrier(struct sim_list *list, struct sim_event *signal, uint32_t count,
                                                  struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendBarrier, list, SIM_LIST);
    struct sim_command command = {.op = SIM_OP_NOTHING};
    return sim_submit_with(list, &command, signal, count, waits);
}

static ze_result_t sim_zeCommandListAppendMemoryRangesBarrier(struct sim_list *list, uint32_t ranges, const size_t *sizes,
                                                              const void **starts, struct sim_event *signal, uint32_t count,
                                                              struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendMemoryRangesBarrier, list, SIM_LIST);
    if (ranges > 0 && (!sizes || !starts)) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    for (uint32_t i = 0; i < ranges; i++) {
        const ze_result_t result = sim_check_range(list, list->context, starts[i], sizes[i], false, "barrier");
        if (result != ZE_RESULT_SUCCESS) return result;
    }
    struct sim_command command = {.op = SIM_OP_NOTHING};
    return sim_submit_with(list, &command, signal, count, waits);
}

static ze_result_t sim_zeCommandListAppendMemoryPrefetch(struct sim_list *list, const void *pointer, size_t size)
{
    SIM_ENTER(zeCommandListAppendMemoryPrefetch, list, SIM_LIST);
    if (!pointer) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    return sim_check_range(list, list->context, pointer, size, false, "prefetch");
}

static ze_result_t sim_zeCommandListAppendMemAdvise(struct sim_list *list, struct sim_device *device, const void *pointer,
                                                    size_t size, ze_memory_advice_t advice)
{
    SIM_ENTER(zeCommandListAppendMemAdvise, list, SIM_LIST);
    (void)advice;
    if (!device) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!pointer) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    return sim_check_range(list, list->context, pointer, size, false, "advice");
}

static ze_result_t sim_zeCommandListAppendSignalEvent(struct sim_list *list, struct sim_event *event)
{
    SIM_ENTER(zeCommandListAppendSignalEvent, list, SIM_LIST);
    if (!event) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    struct sim_command command = {.op = SIM_OP_NOTHING};
    return sim_submit_with(list, &command, event, 0, NULL);
}

static ze_result_t sim_zeCommandListAppendWaitOnEvents(struct sim_list *list, uint32_t count, struct sim_event **events)
{
    SIM_ENTER(zeCommandListAppendWaitOnEvents, list, SIM_LIST);
    if (!events) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    struct sim_command command = {.op = SIM_OP_NOTHING};
    return sim_submit_with(list, &command, NULL, count, events);
}

static struct sim_event **copy_events(struct sim_event *const *events, uint32_t count)
{
    struct sim_event **copy = sim_alloc(count * sizeof *copy);
    if (copy) memcpy(copy, events, count * sizeof *copy);
    return copy;
}

static ze_result_t sim_zeCommandListAppendEventReset(struct sim_list *list, struct sim_event *event)
{
    SIM_ENTER(zeCommandListAppendEventReset, list, SIM_LIST);
    if (!event) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    struct sim_command command = {.op = SIM_OP_EVENT_RESET, .events = copy_events(&event, 1), .event_count = 1};
    if (!command.events) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    return sim_submit_with(list, &command, NULL, 0, NULL);
}

static ze_result_t sim_zeCommandListAppendQueryKernelTimestamps(struct sim_list *list, uint32_t events_count,
                                                                struct sim_event **events, void *target,
                                                                const size_t *offsets, struct sim_event *signal,
                                                                uint32_t count, struct sim_event **waits)
{
    SIM_ENTER(zeCommandListAppendQueryKernelTimestamps, list, SIM_LIST);
    if (!events || !target) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (events_count == 0) return ZE_RESULT_ERROR_INVALID_SIZE;
    struct sim_command command = {.op = SIM_OP_QUERY_TIMES, .target = target, .event_count = events_count,
                                  .events = copy_events(events, events_count),
                                  .offsets = sim_alloc(events_count * sizeof(size_t))};
    if (!command.events || !command.offsets) {
        sim_command_clear(&command);
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    }
    for (uint32_t i = 0; i < events_count; i++)
        command.offsets[i] = offsets ? offsets[i] : i * sizeof(ze_kernel_timestamp_result_t);
    return sim_submit_with(list, &command, signal, count, waits);
}

static ze_result_t append_lists(struct sim_list *list, uint32_t lists_count, struct sim_list **lists,
                                struct sim_event *signal, uint32_t count, struct sim_event **waits)
{
    if (!lists) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (!list->immediate || lists_count == 0) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    struct sim_command wait = {.op = SIM_OP_NOTHING}, done = {.op = SIM_OP_NOTHING};
    ze_result_t result = sim_submit_with(list, &wait, NULL, count, waits);
    for (uint32_t i = 0; i < lists_count && result == ZE_RESULT_SUCCESS; i++) {
        if (!lists[i]) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
        result = lists[i]->closed ? sim_execute_list(lists[i]) : ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    return result == ZE_RESULT_SUCCESS ? sim_submit_with(list, &done, signal, 0, NULL) : result;
}

static ze_result_t sim_zeCommandListImmediateAppendCommandListsExp(struct sim_list *list, uint32_t lists_count,
                                                                   struct sim_list **lists, struct sim_event *signal,
                                                                   uint32_t count, struct sim_event **waits)
{
    SIM_ENTER(zeCommandListImmediateAppendCommandListsExp, list, SIM_LIST);
    return append_lists(list, lists_count, lists, signal, count, waits);
}

static ze_result_t sim_zeCommandListImmediateAppendCommandListsWithParameters(
    struct sim_list *list, uint32_t lists_count, struct sim_list **lists, const void *next, struct sim_event *signal,
    uint32_t count, struct sim_event **waits)
{
    SIM_ENTER(zeCommandListImmediateAppendCommandListsWithParameters, list, SIM_LIST);
    (void)next;
    return append_lists(list, lists_count, lists, signal, count, waits);
}

// Does nothing under many names, to see how many a caller can take.
static ze_result_t sim_zexCommandListAppendNothing(struct sim_list *list)
{
    SIM_ENTER(zexCommandListAppendNothing, list, SIM_LIST);
    return ZE_RESULT_SUCCESS;
}

sim_fn sim_command_by_name(const char *name)
{
    if (strcmp(name, "zexCommandListAppendMemoryCopyWithParameters") == 0)
        return (sim_fn)sim_zeCommandListAppendMemoryCopyWithParameters;
    if (strcmp(name, "zexCommandListAppendMemoryFillWithParameters") == 0)
        return (sim_fn)sim_zeCommandListAppendMemoryFillWithParameters;
    if (strncmp(name, "zexCommandListAppendNothing", 27) == 0) return (sim_fn)sim_zexCommandListAppendNothing;
    return NULL;
}

const struct sim_slot sim_append_slots[] = {
    SIM_SLOT(LIST, 5, 0, sim_zeCommandListAppendWriteGlobalTimestamp),
    SIM_SLOT(LIST, 6, 0, sim_zeCommandListAppendBarrier),
    SIM_SLOT(LIST, 7, 0, sim_zeCommandListAppendMemoryRangesBarrier),
    SIM_SLOT(LIST, 8, 0, sim_zeCommandListAppendMemoryCopy),
    SIM_SLOT(LIST, 9, 0, sim_zeCommandListAppendMemoryFill),
    SIM_SLOT(LIST, 10, 0, sim_zeCommandListAppendMemoryCopyRegion),
    SIM_SLOT(LIST, 11, 0, sim_zeCommandListAppendMemoryCopyFromContext),
    SIM_SLOT(LIST, 16, 0, sim_zeCommandListAppendMemoryPrefetch),
    SIM_SLOT(LIST, 17, 0, sim_zeCommandListAppendMemAdvise),
    SIM_SLOT(LIST, 18, 0, sim_zeCommandListAppendSignalEvent),
    SIM_SLOT(LIST, 19, 0, sim_zeCommandListAppendWaitOnEvents),
    SIM_SLOT(LIST, 20, 0, sim_zeCommandListAppendEventReset),
    SIM_SLOT(LIST, 21, 0, sim_zeCommandListAppendQueryKernelTimestamps),
    SIM_SLOT(LIST, 38, 16, sim_zeCommandListAppendMemoryCopyWithParameters),
    SIM_SLOT(LIST, 39, 16, sim_zeCommandListAppendMemoryFillWithParameters),
    SIM_SLOT(LIST, 40, 16, sim_zeCommandListImmediateAppendCommandListsWithParameters),
    SIM_SLOT(LIST_EXP, 1, 9, sim_zeCommandListImmediateAppendCommandListsExp),
    SIM_SLOTS_END,
};
