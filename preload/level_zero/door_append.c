// SPDX-License-Identifier: MIT
//
// The doors of copies and fills. A driver looks a range up by its start and takes it to lie in
// one import, so a range over several is issued in parts, cut at the borders of imports. The
// parts of one call wait for what the call waits for, and a barrier behind them signals its event.
#include <string.h>

#include "../pieces.h"
#include "attach.h"
#include "door.h"

// How far from `at` one import (or whatever else lies there) goes, at most to `end`. Memory that
// no import of ours covers is the driver's own or an error that the driver reports: not cut.
static uintptr_t border(unsigned scope, uintptr_t at, uintptr_t end) {
    struct gh_segment segment = gh_pieces_segment(scope, at, end);
    return segment.kind == GH_SEGMENT_NONE ? end : segment.end;
}

// A command list does not tell its context in old drivers; scopes of one driver have the same
// regions, and pieces of contexts that differ are rare: the first scope that has the address.
static unsigned scope_for(struct gh_ze_driver *driver, const void *pointer) {
    if (!driver->per_context)
        return driver->scope;
    for (unsigned i = 0; i < GH_ZE_CONTEXT_MAX; i++) {
        if (atomic_load_explicit(&driver->contexts[i].handle, memory_order_acquire) == NULL)
            continue;
        unsigned scope = driver->contexts[i].scope;
        if (scope != GH_NO_SCOPE &&
            gh_pieces_segment(scope, (uintptr_t)pointer, (uintptr_t)pointer + 1).kind != GH_SEGMENT_NONE)
            return scope;
    }
    return GH_NO_SCOPE;
}

static bool is_whole(struct gh_ze_driver *driver, const void *pointer, size_t size) {
    uintptr_t at = (uintptr_t)pointer;
    if (size == 0 || at + size < at || driver->all_system ||
        atomic_load_explicit(&driver->state, memory_order_acquire) != GH_ZE_ATTACHED || gh_gpu_is_orphan())
        return true;
    // The usual cases, without a lock: a block of the heap, or memory while there are no pieces.
    const struct gh_region *region = gh_region_find(pointer);
    if (region != NULL)
        return size <= region->base + region->size_bytes - at;
    if (atomic_load_explicit(&gh_pieces_count, memory_order_relaxed) == 0)
        return true;
    unsigned scope = scope_for(driver, pointer);
    return scope == GH_NO_SCOPE || border(scope, at, at + size) == at + size;
}

static ze_result_t finish(struct gh_ze_driver *driver, ze_command_list_handle_t list, ze_event_handle_t signal) {
    if (signal == NULL)
        return ZE_RESULT_SUCCESS;
    return gh_ze_real_list(driver).pfnAppendBarrier(list, signal, 0, NULL);
}

static ze_result_t gh_append_copy(struct gh_ze_driver *driver, ze_command_list_handle_t list, void *to,
                                  const void *from, size_t size, ze_event_handle_t signal, uint32_t wait_count,
                                  ze_event_handle_t *waits) {
    gh_ze_pass(driver);
    ze_pfnCommandListAppendMemoryCopy_t real = gh_ze_real_list(driver).pfnAppendMemoryCopy;
    if (gh_likely(is_whole(driver, to, size) && is_whole(driver, from, size)))
        return real(list, to, from, size, signal, wait_count, waits);
    unsigned scope_to = scope_for(driver, to);
    unsigned scope_from = scope_for(driver, from);
    uintptr_t at_to = (uintptr_t)to;
    uintptr_t at_from = (uintptr_t)from;
    ze_result_t result = ZE_RESULT_SUCCESS;
    while (size != 0 && result == ZE_RESULT_SUCCESS) {
        size_t part = size;
        if (scope_to != GH_NO_SCOPE)
            part = gh_min(part, border(scope_to, at_to, at_to + size) - at_to);
        if (scope_from != GH_NO_SCOPE)
            part = gh_min(part, border(scope_from, at_from, at_from + size) - at_from);
        result = real(list, (void *)at_to, (const void *)at_from, part, NULL, wait_count, waits);
        at_to += part;
        at_from += part;
        size -= part;
    }
    return result == ZE_RESULT_SUCCESS ? finish(driver, list, signal) : result;
}
GH_DOOR(ze_result_t, append_copy,
        (ze_command_list_handle_t l, void *t, const void *f, size_t s, ze_event_handle_t e, uint32_t n,
         ze_event_handle_t *w),
        (, l, t, f, s, e, n, w))

#define PATTERN_MAX 256u

static ze_result_t gh_append_fill(struct gh_ze_driver *driver, ze_command_list_handle_t list, void *to,
                                  const void *pattern, size_t pattern_size, size_t size, ze_event_handle_t signal,
                                  uint32_t wait_count, ze_event_handle_t *waits) {
    gh_ze_pass(driver);
    ze_pfnCommandListAppendMemoryFill_t real = gh_ze_real_list(driver).pfnAppendMemoryFill;
    if (gh_likely(is_whole(driver, to, size)) || pattern == NULL || pattern_size == 0 || pattern_size > PATTERN_MAX)
        return real(list, to, pattern, pattern_size, size, signal, wait_count, waits);
    unsigned scope = scope_for(driver, to);
    uintptr_t start = (uintptr_t)to;
    uintptr_t end = start + size;
    ze_result_t result = ZE_RESULT_SUCCESS;
    for (uintptr_t at = start; at < end && result == ZE_RESULT_SUCCESS;) {
        // A part begins in the middle of the pattern when its border does.
        unsigned char turned[PATTERN_MAX];
        size_t phase = (at - start) % pattern_size;
        for (size_t i = 0; i < pattern_size; i++)
            turned[i] = ((const unsigned char *)pattern)[(phase + i) % pattern_size];
        size_t part = border(scope, at, end) - at;
        if (part < pattern_size) { // too short for the pattern: byte by byte
            for (size_t i = 0; i < part && result == ZE_RESULT_SUCCESS; i++)
                result = real(list, (void *)(at + i), &turned[i], 1, 1, NULL, wait_count, waits);
        } else {
            result = real(list, (void *)at, turned, pattern_size, part, NULL, wait_count, waits);
        }
        at += part;
    }
    return result == ZE_RESULT_SUCCESS ? finish(driver, list, signal) : result;
}
GH_DOOR(ze_result_t, append_fill,
        (ze_command_list_handle_t l, void *t, const void *p, size_t q, size_t s, ze_event_handle_t e, uint32_t n,
         ze_event_handle_t *w),
        (, l, t, p, q, s, e, n, w))
