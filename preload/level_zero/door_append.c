// SPDX-License-Identifier: MIT
//
// The doors of copies and fills. A driver looks a range up by its start and takes it to lie in
// one import, so a range over several is issued in parts, cut at the borders of imports. The
// parts of one call wait for what the call waits for, and a barrier behind them signals its event.
#include <string.h>

#include "../pieces.h"
#include "attach.h"
#include "door.h"
#include "list_scope.h"

// How far from `at` one import goes, or what lies before the next one, at most to `end`. What no
// import of ours covers is the driver's own, or memory that it can copy by itself: by itself only
// as far as no import begins.
static uintptr_t border(unsigned scope, uintptr_t at, uintptr_t end) {
    return gh_pieces_segment(scope, at, end).end;
}

static unsigned scope_for(struct gh_ze_driver *driver, ze_command_list_handle_t list) {
    return driver->per_context ? gh_ze_list_scope(list) : driver->scope;
}

// The scope is asked for when it is needed: `list`'s, or `context`'s when that is not NULL.
static __attribute__((noinline)) bool is_whole_elsewhere(struct gh_ze_driver *driver, ze_command_list_handle_t list,
                                                         ze_context_handle_t context, uintptr_t at, size_t size) {
    if (at + size < at || driver->all_system ||
        atomic_load_explicit(&driver->state, memory_order_acquire) != GH_ZE_ATTACHED || gh_gpu_is_orphan())
        return true;
    unsigned scope = context == NULL ? scope_for(driver, list) : gh_ze_scope_of(driver, context);
    return scope == GH_NO_SCOPE || border(scope, at, at + size) == at + size;
}

// In one region: then one import holds it all, or none does (plain memory). The same question as
// gh_region_find's, with one look at each field. The entry 0 is no region, and has no bytes.
static inline bool is_in_region(const void *pointer, size_t size) {
    const struct gh_region *region = &gh_regions[gh_region_entry(pointer) & (uint16_t)~GH_REGION_LOOK_BIT];
    uintptr_t offset = (uintptr_t)pointer - atomic_load_explicit(&region->base, memory_order_relaxed);
    size_t region_bytes = atomic_load_explicit(&region->size_bytes, memory_order_relaxed);
    return offset < region_bytes && size <= region_bytes - offset;
}

static bool is_whole(struct gh_ze_driver *driver, ze_command_list_handle_t list, ze_context_handle_t context,
                     const void *pointer, size_t size) {
    return size == 0 || is_in_region(pointer, size) ||
           is_whole_elsewhere(driver, list, context, (uintptr_t)pointer, size);
}

// The usual case of each door is short, takes no lock and ends in a jump to the driver: nothing waits
// for its import, and it is about blocks of the heap. So it is a function of its own.
#define USUAL_CASE static inline __attribute__((always_inline)) ze_result_t
#define OTHER_CASES static __attribute__((noinline)) ze_result_t

static ze_result_t finish(struct gh_ze_driver *driver, ze_command_list_handle_t list, ze_event_handle_t signal) {
    if (signal == NULL)
        return ZE_RESULT_SUCCESS;
    return gh_ze_real_list(driver).pfnAppendBarrier(list, signal, 0, NULL);
}

// A copy in parts, none of which signals. `source_context` is NULL for the plain form.
static ze_result_t copy_in_parts(struct gh_ze_driver *driver, ze_command_list_handle_t list, uintptr_t to,
                                 ze_context_handle_t source_context, uintptr_t from, size_t size, uint32_t wait_count,
                                 ze_event_handle_t *waits) {
    unsigned to_scope = scope_for(driver, list);
    unsigned from_scope = source_context == NULL ? to_scope : gh_ze_scope_of(driver, source_context);
    ze_result_t result = ZE_RESULT_SUCCESS;
    while (size != 0 && result == ZE_RESULT_SUCCESS) {
        size_t part = size;
        if (to_scope != GH_NO_SCOPE)
            part = gh_min(part, border(to_scope, to, to + size) - to);
        if (from_scope != GH_NO_SCOPE)
            part = gh_min(part, border(from_scope, from, from + size) - from);
        if (source_context == NULL)
            result = gh_ze_real_list(driver).pfnAppendMemoryCopy(list, (void *)to, (const void *)from, part, NULL,
                                                                 wait_count, waits);
        else
            result = gh_ze_real_list(driver).pfnAppendMemoryCopyFromContext(
                list, (void *)to, source_context, (const void *)from, part, NULL, wait_count, waits);
        to += part;
        from += part;
        size -= part;
    }
    return result;
}

OTHER_CASES copy_otherwise(struct gh_ze_driver *driver, ze_command_list_handle_t list, void *to, const void *from,
                           size_t size, ze_event_handle_t signal, uint32_t wait_count, ze_event_handle_t *waits) {
    gh_ze_pass();
    if (is_whole(driver, list, NULL, to, size) && is_whole(driver, list, NULL, from, size))
        return gh_ze_real_list(driver).pfnAppendMemoryCopy(list, to, from, size, signal, wait_count, waits);
    ze_result_t result =
        copy_in_parts(driver, list, (uintptr_t)to, NULL, (uintptr_t)from, size, wait_count, waits);
    return result == ZE_RESULT_SUCCESS ? finish(driver, list, signal) : result;
}

USUAL_CASE gh_append_copy(struct gh_ze_driver *driver, ze_command_list_handle_t list, void *to, const void *from,
                          size_t size, ze_event_handle_t signal, uint32_t wait_count, ze_event_handle_t *waits) {
    if (gh_likely(!gh_gpu_has_pending() && is_in_region(to, size) && is_in_region(from, size)))
        return gh_ze_real_list(driver).pfnAppendMemoryCopy(list, to, from, size, signal, wait_count, waits);
    return copy_otherwise(driver, list, to, from, size, signal, wait_count, waits);
}
GH_DOOR(ze_result_t, append_copy,
        (ze_command_list_handle_t l, void *t, const void *f, size_t s, ze_event_handle_t e, uint32_t n,
         ze_event_handle_t *w),
        (, l, t, f, s, e, n, w))

OTHER_CASES copy_from_otherwise(struct gh_ze_driver *driver, ze_command_list_handle_t list, void *to,
                                ze_context_handle_t source, const void *from, size_t size, ze_event_handle_t signal,
                                uint32_t wait_count, ze_event_handle_t *waits) {
    gh_ze_pass();
    if (is_whole(driver, list, NULL, to, size) && is_whole(driver, list, source, from, size))
        return gh_ze_real_list(driver).pfnAppendMemoryCopyFromContext(list, to, source, from, size, signal,
                                                                      wait_count, waits);
    ze_result_t result =
        copy_in_parts(driver, list, (uintptr_t)to, source, (uintptr_t)from, size, wait_count, waits);
    return result == ZE_RESULT_SUCCESS ? finish(driver, list, signal) : result;
}

USUAL_CASE gh_append_copy_from(struct gh_ze_driver *driver, ze_command_list_handle_t list, void *to,
                               ze_context_handle_t source, const void *from, size_t size, ze_event_handle_t signal,
                               uint32_t wait_count, ze_event_handle_t *waits) {
    if (gh_likely(!gh_gpu_has_pending() && is_in_region(to, size) && is_in_region(from, size)))
        return gh_ze_real_list(driver).pfnAppendMemoryCopyFromContext(list, to, source, from, size, signal,
                                                                      wait_count, waits);
    return copy_from_otherwise(driver, list, to, source, from, size, signal, wait_count, waits);
}
GH_DOOR(ze_result_t, append_copy_from,
        (ze_command_list_handle_t l, void *t, ze_context_handle_t c, const void *f, size_t s, ze_event_handle_t e,
         uint32_t n, ze_event_handle_t *w),
        (, l, t, c, f, s, e, n, w))

// Where a box of rows lies from its base: the offset of its first byte and the bytes to its last.
static size_t box_start(const ze_copy_region_t *box, uint32_t pitch, uint32_t slice) {
    return (size_t)box->originZ * slice + (size_t)box->originY * pitch + box->originX;
}

static size_t box_bytes(const ze_copy_region_t *box, uint32_t pitch, uint32_t slice) {
    size_t planes = box->depth == 0 ? 1 : box->depth;
    return (planes - 1) * slice + (size_t)(box->height - 1) * pitch + box->width;
}

static ze_result_t gh_append_copy_region(struct gh_ze_driver *driver, ze_command_list_handle_t list, void *to,
                                         const ze_copy_region_t *to_box, uint32_t to_pitch, uint32_t to_slice,
                                         const void *from, const ze_copy_region_t *from_box, uint32_t from_pitch,
                                         uint32_t from_slice, ze_event_handle_t signal, uint32_t wait_count,
                                         ze_event_handle_t *waits) {
    gh_ze_pass();
    bool whole = to_box == NULL || from_box == NULL || to_box->width == 0 || to_box->height == 0 ||
                 from_box->width == 0 || from_box->height == 0;
    uintptr_t to_first = 0;
    uintptr_t from_first = 0;
    if (!whole) {
        to_first = (uintptr_t)to + box_start(to_box, to_pitch, to_slice);
        from_first = (uintptr_t)from + box_start(from_box, from_pitch, from_slice);
        whole = is_whole(driver, list, NULL, (const void *)to_first, box_bytes(to_box, to_pitch, to_slice)) &&
                is_whole(driver, list, NULL, (const void *)from_first, box_bytes(from_box, from_pitch, from_slice));
    }
    if (gh_likely(whole))
        return gh_ze_real_list(driver).pfnAppendMemoryCopyRegion(list, to, to_box, to_pitch, to_slice, from, from_box,
                                                                 from_pitch, from_slice, signal, wait_count, waits);
    ze_result_t result = ZE_RESULT_SUCCESS;
    uint32_t planes = to_box->depth == 0 ? 1 : to_box->depth;
    for (uint32_t plane = 0; plane < planes && result == ZE_RESULT_SUCCESS; plane++) {
        for (uint32_t row = 0; row < to_box->height && result == ZE_RESULT_SUCCESS; row++) {
            uintptr_t row_to = to_first + (size_t)plane * to_slice + (size_t)row * to_pitch;
            uintptr_t row_from = from_first + (size_t)plane * from_slice + (size_t)row * from_pitch;
            result = copy_in_parts(driver, list, row_to, NULL, row_from, to_box->width, wait_count, waits);
        }
    }
    return result == ZE_RESULT_SUCCESS ? finish(driver, list, signal) : result;
}
GH_DOOR(ze_result_t, append_copy_region,
        (ze_command_list_handle_t l, void *t, const ze_copy_region_t *tb, uint32_t tp, uint32_t ts, const void *f,
         const ze_copy_region_t *fb, uint32_t fp, uint32_t fs, ze_event_handle_t e, uint32_t n, ze_event_handle_t *w),
        (, l, t, tb, tp, ts, f, fb, fp, fs, e, n, w))

#define PATTERN_MAX 256u

OTHER_CASES fill_otherwise(struct gh_ze_driver *driver, ze_command_list_handle_t list, void *to, const void *pattern,
                           size_t pattern_size, size_t size, ze_event_handle_t signal, uint32_t wait_count,
                           ze_event_handle_t *waits) {
    gh_ze_pass();
    ze_pfnCommandListAppendMemoryFill_t real = gh_ze_real_list(driver).pfnAppendMemoryFill;
    if (is_whole(driver, list, NULL, to, size) || pattern == NULL || pattern_size == 0 || pattern_size > PATTERN_MAX)
        return real(list, to, pattern, pattern_size, size, signal, wait_count, waits);
    unsigned scope = scope_for(driver, list);
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

USUAL_CASE gh_append_fill(struct gh_ze_driver *driver, ze_command_list_handle_t list, void *to, const void *pattern,
                          size_t pattern_size, size_t size, ze_event_handle_t signal, uint32_t wait_count,
                          ze_event_handle_t *waits) {
    if (gh_likely(!gh_gpu_has_pending() && is_in_region(to, size)))
        return gh_ze_real_list(driver).pfnAppendMemoryFill(list, to, pattern, pattern_size, size, signal, wait_count,
                                                           waits);
    return fill_otherwise(driver, list, to, pattern, pattern_size, size, signal, wait_count, waits);
}
GH_DOOR(ze_result_t, append_fill,
        (ze_command_list_handle_t l, void *t, const void *p, size_t q, size_t s, ze_event_handle_t e, uint32_t n,
         ze_event_handle_t *w),
        (, l, t, p, q, s, e, n, w))
