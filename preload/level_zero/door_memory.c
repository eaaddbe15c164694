// SPDX-License-Identifier: MIT
//
// The doors of the memory table: wraps are made and freed here, and questions about them
// answered.
#include <errno.h>
#include <string.h>

#include "../config.h"
#include "../hide.h"
#include "../log.h"
#include "../pieces.h"
#include "../stack_watch.h"
#include "../stats.h"
#include "../wraps.h"
#include "attach.h"
#include "backend.h"
#include "door.h"
#include "wrap.h"

static void say_refused(const void *pointer, size_t size, const char *why) {
    struct gh_text line;
    gh_text_start(&line);
    gh_text_add(&line, "a wrap of ");
    gh_text_add_number(&line, size);
    gh_text_add(&line, " bytes at ");
    gh_text_add_hex(&line, (uintptr_t)pointer);
    gh_text_add(&line, " could not be made: ");
    gh_text_add(&line, why);
    gh_log_text(GH_LOG_INFO, &line);
}

ze_result_t gh_ze_wrap(struct gh_ze_driver *driver, unsigned scope, ze_context_handle_t context, void *pointer,
                       size_t size, bool read_only) {
    struct gh_wrap wrap = {
        .pointer = (uintptr_t)pointer, .size_bytes = size, .context = context, .count = 1, .scope = (uint16_t)scope
    };
    bool writable = driver->all_system || gh_gpu_covers(scope, pointer, size);
    const char *why = "no memory";
    int error;
    if (gh_likely(writable))
        error = gh_wraps_add(&wrap);
    else
        error = gh_pieces_wrap(&wrap, read_only, &writable, &why);
    if (error != 0) {
        gh_stats_add(&gh_stats.wraps_refused, 1);
        say_refused(pointer, size, why);
        return error == ENOMEM    ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
               : error == ENOTSUP ? ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
                                  : ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    if (read_only && writable)
        gh_stats_add(&gh_stats.wraps_read_only, 1); // served by an import that is writable
    if (wrap.passed_on)
        gh_stats_add(&gh_stats.wraps_passed_on, 1);
    if (wrap.has_pieces)
        gh_stack_watch(gh_align_down((uintptr_t)pointer, GH_PAGE_SIZE),
                       gh_align_up((uintptr_t)pointer + size, GH_PAGE_SIZE));
    if (gh_unlikely(gh_config.hide != 0))
        gh_hide_count((uintptr_t)pointer, size, true);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t gh_alloc_host(struct gh_ze_driver *driver, ze_context_handle_t context,
                                 const ze_host_mem_alloc_desc_t *descriptor, size_t size, size_t alignment,
                                 void **out) {
    const gh_ze_memmap_desc_t *memmap =
        descriptor == NULL ? NULL : gh_ze_chain_find(descriptor->pNext, GH_ZE_STYPE_MEMMAP);
    if (gh_ze_in_driver)
        return gh_ze_real_mem(driver).pfnAllocHost(context, descriptor, size, alignment, out);
    unsigned scope = gh_ze_scope_of(driver, context);
    if (memmap == NULL) {
        // Serialised with releases: see release in backend.c.
        if (scope == GH_NO_SCOPE || driver->all_system || !gh_gpu_try_enter())
            return gh_ze_real_mem(driver).pfnAllocHost(context, descriptor, size, alignment, out);
        ze_result_t result = gh_ze_real_mem(driver).pfnAllocHost(context, descriptor, size, alignment, out);
        gh_gpu_unlock();
        return result;
    }
    if (!gh_ze_is_settled(driver)) {
        // An import that the driver makes now would be in the way of ours when we attach after all.
        gh_ze_attach(driver, driver->handle, context, 0, NULL);
        if (!gh_ze_is_settled(driver))
            return ZE_RESULT_ERROR_NOT_AVAILABLE;
        scope = gh_ze_scope_of(driver, context);
    }
    gh_ze_pass();
    void *pointer = memmap->pSystemMemory;
    uintptr_t last = (uintptr_t)pointer + memmap->size;
    if (scope == GH_NO_SCOPE || out == NULL)
        return gh_ze_real_mem(driver).pfnAllocHost(context, descriptor, size, alignment, out);
    // A range that is empty, wraps round, or ends where rounding to pages would: nobody's memory.
    if (pointer == NULL || memmap->size == 0 || last < (uintptr_t)pointer || last > UINTPTR_MAX - GH_PAGE_SIZE)
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    ze_result_t result = gh_ze_wrap(driver, scope, context, pointer, memmap->size,
                                    (descriptor->flags & GH_ZE_HOST_READ_ONLY) != 0);
    if (result == ZE_RESULT_SUCCESS)
        *out = pointer;
    return result;
}
GH_DOOR(ze_result_t, alloc_host,
        (ze_context_handle_t c, const ze_host_mem_alloc_desc_t *d, size_t s, size_t a, void **o), (, c, d, s, a, o))

void gh_ze_wrap_ended(const struct gh_wrap *wrap) {
    if (gh_unlikely(gh_config.hide != 0))
        gh_hide_count(wrap->pointer, wrap->size_bytes, false);
}

bool gh_ze_unwrap(unsigned scope, ze_context_handle_t context, void *pointer) {
    struct gh_wrap wrap;
    if (!gh_pieces_unwrap((uintptr_t)pointer, scope, context, &wrap))
        return false;
    gh_ze_wrap_ended(&wrap);
    return true;
}

// True when the door answers; `*result` is then the answer. The driver's own free of a pointer
// into an import would free the whole import.
static bool free_answered(struct gh_ze_driver *driver, ze_context_handle_t context, void *pointer,
                          ze_result_t *result) {
    unsigned scope = gh_ze_scope_of(driver, context);
    *result = ZE_RESULT_SUCCESS;
    if (gh_gpu_is_orphan()) {
        // A copy of what the parent has: freeing it here would free the parent's, whose device it is.
        const struct gh_region *region = gh_region_find(pointer);
        return gh_ze_has_only_parents() || (region != NULL && !region->plain);
    }
    if (scope == GH_NO_SCOPE || pointer == NULL)
        return false;
    if (gh_ze_unwrap(scope, context, pointer))
        return true;
    *result = ZE_RESULT_ERROR_INVALID_ARGUMENT;
    const struct gh_region *region = gh_region_find(pointer);
    if (region != NULL)
        return !region->plain; // plain memory is the driver's own
    return gh_pieces_segment(scope, (uintptr_t)pointer, (uintptr_t)pointer + 1).kind != GH_SEGMENT_NONE;
}

static ze_result_t gh_free(struct gh_ze_driver *driver, ze_context_handle_t context, void *pointer) {
    ze_result_t result;
    if (free_answered(driver, context, pointer, &result))
        return result;
    return gh_ze_real_mem(driver).pfnFree(context, pointer);
}
GH_DOOR(ze_result_t, free, (ze_context_handle_t c, void *p), (, c, p))

static ze_result_t gh_free_ext(struct gh_ze_driver *driver, ze_context_handle_t context,
                               const ze_memory_free_ext_desc_t *descriptor, void *pointer) {
    ze_result_t result;
    if (free_answered(driver, context, pointer, &result))
        return result;
    return gh_ze_real_mem(driver).pfnFreeExt(context, descriptor, pointer);
}
GH_DOOR(ze_result_t, free_ext, (ze_context_handle_t c, const ze_memory_free_ext_desc_t *d, void *p), (, c, d, p))

static ze_result_t gh_get_properties(struct gh_ze_driver *driver, ze_context_handle_t context, const void *pointer,
                                     ze_memory_allocation_properties_t *properties, ze_device_handle_t *device) {
    gh_ze_pass();
    ze_result_t result = gh_ze_real_mem(driver).pfnGetAllocProperties(context, pointer, properties, device);
    unsigned scope = gh_ze_scope_of(driver, context);
    if (result != ZE_RESULT_SUCCESS || scope == GH_NO_SCOPE || properties == NULL)
        return result;
    struct gh_wrap wrap;
    if (driver->all_system && properties->type == ZE_MEMORY_TYPE_UNKNOWN &&
        (gh_region_find(pointer) != NULL || gh_wraps_find((uintptr_t)pointer, scope, &wrap))) {
        properties->type = ZE_MEMORY_TYPE_HOST;
        properties->id = (uintptr_t)pointer >> GH_PAGE_SHIFT;
        properties->pageSize = GH_PAGE_SIZE;
        if (device != NULL)
            *device = NULL;
    }
    if (gh_config.hide && gh_hide_applies(pointer)) {
        properties->type = ZE_MEMORY_TYPE_UNKNOWN;
        properties->id = 0;
        properties->pageSize = 0;
    }
    return result;
}
GH_DOOR(ze_result_t, get_properties,
        (ze_context_handle_t c, const void *p, ze_memory_allocation_properties_t *q, ze_device_handle_t *d),
        (, c, p, q, d))

// At the start of a wrap: the wrap. Elsewhere, and when its memory went away, the driver's answer:
// the import, or nothing.
static ze_result_t gh_get_range(struct gh_ze_driver *driver, ze_context_handle_t context, const void *pointer,
                                void **base_out, size_t *size_out) {
    gh_ze_pass();
    unsigned scope = gh_ze_scope_of(driver, context);
    struct gh_wrap wrap;
    if (scope != GH_NO_SCOPE && gh_wraps_find((uintptr_t)pointer, scope, &wrap) && !wrap.stale) {
        if (base_out != NULL)
            *base_out = (void *)wrap.pointer;
        if (size_out != NULL)
            *size_out = wrap.size_bytes;
        return ZE_RESULT_SUCCESS;
    }
    return gh_ze_real_mem(driver).pfnGetAddressRange(context, pointer, base_out, size_out);
}
GH_DOOR(ze_result_t, get_range, (ze_context_handle_t c, const void *p, void **b, size_t *s), (, c, p, b, s))
