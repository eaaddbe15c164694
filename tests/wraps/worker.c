// SPDX-License-Identifier: MIT
//
// The operations on one area: wrap, unwrap, use, ask, change. What each must answer follows from
// the area's model (area.h).
#include "worker.h"

#include <stdlib.h>
#include <string.h>

static struct area_wrap *pick_wrap(struct area *area, struct rng *rng, bool live, bool writable) {
    for (int attempt = 0; attempt < 6 && area->wrap_count != 0; attempt++) {
        struct area_wrap *wrap = &area->wraps[rng_below(rng, area->wrap_count)];
        if (!(live && wrap->stale) && !(writable && wrap->read_only))
            return wrap;
    }
    return NULL;
}

static void unwrap(struct area *area, struct area_wrap *wrap) {
    const struct wt_unit *unit = &wt_units[wrap->unit];
    ze_result_t result = wt_unwrap(unit, wrap->start);
    if (result != ZE_RESULT_SUCCESS)
        wt_fail("unwrap of %p+%zu (kind %d, unit %u, stale %d): 0x%x", (void *)wrap->start, wrap->size_bytes,
                (int)area->kind, wrap->unit, wrap->stale, (unsigned)result);
    for (unsigned i = 0; i < area->wrap_count; i++) {
        struct area_wrap *other = &area->wraps[i];
        if (other->start == wrap->start && wt_units[other->unit].driver_index == unit->driver_index)
            other->shared_free = true;
    }
    *wrap = area->wraps[--area->wrap_count];
}

void worker_unwrap_all(struct area *area) {
    while (area->wrap_count != 0)
        unwrap(area, &area->wraps[area->wrap_count - 1]);
}

static void must_be_host(const struct area *area, const struct area_wrap *wrap, const unsigned char *at,
                         const char *when) {
    ze_memory_type_t type = wt_type(&wt_units[wrap->unit], at);
    if (type != ZE_MEMORY_TYPE_HOST)
        wt_fail("%p in the wrap %p+%zu (kind %d, unit %u) has type %d %s", (const void *)at, (void *)wrap->start,
                wrap->size_bytes, (int)area->kind, wrap->unit, (int)type, when);
}

static void do_wrap(struct worker *worker, struct area *area) {
    struct rng *rng = &worker->rng;
    struct area_wrap wrap = { .unit = (uint8_t)rng_below(rng, wt_unit_count) };
    if (area->wrap_count == AREA_WRAPS_MAX)
        unwrap(area, &area->wraps[rng_below(rng, area->wrap_count)]);
    if (!area_pick(area, rng, &wrap.start, &wrap.size_bytes))
        return;
    if (rng_below(rng, 3) != 0) { // as oneAPI.jl does
        const struct wt_range range = wt_rounded(wrap.start, wrap.size_bytes);
        wrap.start = range.start;
        wrap.size_bytes = range.size_bytes;
    }
    // A read-only wrap that becomes writable is imported anew: only where no other thread looks.
    bool is_alone = area->kind != AREA_SLICE && area->kind != AREA_CONSTANT;
    wrap.read_only = area->kind == AREA_FILE_READ || (is_alone && rng_below(rng, 10) == 0);
    ze_result_t result = wt_wrap(&wt_units[wrap.unit], wrap.start, wrap.size_bytes, wrap.read_only);
    if (result != ZE_RESULT_SUCCESS)
        wt_fail("REFUSED: wrap of %p+%zu (kind %d, unit %u, read-only %d): 0x%x", (void *)wrap.start, wrap.size_bytes,
                (int)area->kind, wrap.unit, wrap.read_only, (unsigned)result);
    area->wraps[area->wrap_count++] = wrap;
    must_be_host(area, &wrap, wrap.start, "after the wrap");
    must_be_host(area, &wrap, wrap.start + wrap.size_bytes - 1, "after the wrap");
}

static void do_unwrap(struct worker *worker, struct area *area) {
    if (area->wrap_count == 0)
        return;
    struct area_wrap *wrap = &area->wraps[rng_below(&worker->rng, area->wrap_count)];
    const struct wt_unit *unit = &wt_units[wrap->unit];
    if (!wrap->stale && rng_below(&worker->rng, 2) != 0 &&
        zeContextEvictMemory(unit->context, unit->device, wrap->start, wrap->size_bytes) != ZE_RESULT_SUCCESS)
        wt_fail("evict of %p+%zu failed", (void *)wrap->start, wrap->size_bytes);
    unwrap(area, wrap);
}

// Bytes of the area that the wrap covers, at most `limit`.
static bool pick_bytes(const struct area *area, const struct area_wrap *wrap, struct rng *rng, size_t limit,
                       unsigned char **start_out, size_t *size_out) {
    unsigned char *start = wrap->start < area->bytes ? area->bytes : wrap->start;
    unsigned char *end = wrap->start + wrap->size_bytes;
    if (end > area->bytes + area->size_bytes)
        end = area->bytes + area->size_bytes;
    if (start >= end)
        return false;
    if (rng_below(rng, 3) != 0)
        start += rng_below(rng, (size_t)(end - start));
    size_t room = (size_t)(end - start) < limit ? (size_t)(end - start) : limit;
    *start_out = start;
    *size_out = rng_below(rng, 3) == 0 ? room : 1 + rng_below(rng, room);
    return true;
}

static void must(ze_result_t result, const char *what, const struct area *area, const struct area_wrap *wrap,
                 const unsigned char *start, size_t size) {
    if (result != ZE_RESULT_SUCCESS)
        wt_fail("%s of %p+%zu in the wrap %p+%zu (kind %d, unit %u): 0x%x", what, (const void *)start, size,
                (void *)wrap->start, wrap->size_bytes, (int)area->kind, wrap->unit, (unsigned)result);
}

static void do_fill(struct worker *worker, struct area *area) {
    struct area_wrap *wrap = pick_wrap(area, &worker->rng, true, true);
    unsigned char *start;
    size_t size;
    if (wrap == NULL || !pick_bytes(area, wrap, &worker->rng, 65536, &start, &size))
        return;
    uint64_t pattern = rng_next(&worker->rng);
    size_t pattern_size = (size_t)1 << rng_below(&worker->rng, 4);
    size -= size % pattern_size;
    if (size == 0)
        return;
    struct wt_queue *queue = &worker->queues[wrap->unit];
    must(zeCommandListAppendMemoryFill(queue->list, start, &pattern, pattern_size, size, NULL, 0, NULL), "fill", area,
         wrap, start, size);
    unsigned char *shadow = area_shadow(area, start);
    for (size_t i = 0; i < size; i++)
        shadow[i] = ((const unsigned char *)&pattern)[i % pattern_size];
    area_verify(area, start, size, "a fill");
}

static void do_launch(struct worker *worker, struct area *area) {
    struct area_wrap *wrap = pick_wrap(area, &worker->rng, true, true);
    unsigned char *start;
    size_t size;
    if (wrap == NULL || !pick_bytes(area, wrap, &worker->rng, 16384, &start, &size))
        return;
    must(wt_add1(&worker->queues[wrap->unit], start, size), "launch", area, wrap, start, size);
    unsigned char *shadow = area_shadow(area, start);
    for (size_t i = 0; i < size; i++)
        shadow[i]++;
    area_verify(area, start, size, "a kernel");
}

// From any area of this thread's, or the constant one, into this one.
static void do_copy(struct worker *worker, struct area *area) {
    struct rng *rng = &worker->rng;
    struct area_wrap *to = pick_wrap(area, rng, true, true);
    size_t choice = rng_below(rng, WORKER_OWN_AREAS + 2);
    struct area *source = choice == 0 ? area : choice == 1 ? worker->constant : worker->own[choice - 2];
    struct area_wrap *from = pick_wrap(source, rng, true, false);
    unsigned char *target;
    unsigned char *start;
    size_t size;
    size_t source_size;
    if (to == NULL || from == NULL || to->unit != from->unit ||
        !pick_bytes(area, to, rng, 65536, &target, &size) || !pick_bytes(source, from, rng, size, &start, &source_size))
        return;
    size = source_size < size ? source_size : size;
    if (start < target + size && target < start + size)
        return;
    struct wt_queue *queue = &worker->queues[to->unit];
    if (rng_below(rng, 3) == 0 && size <= 16384)
        must(wt_copy_kernel(queue, target, start, size), "copy by a kernel", area, to, target, size);
    else
        must(zeCommandListAppendMemoryCopy(queue->list, target, start, size, NULL, 0, NULL), "copy", area, to, target,
             size);
    memcpy(area_shadow(area, target), area_shadow(source, start), size);
    area_verify(area, target, size, "a copy");
}

static void ask_stale(const struct area *area, const struct area_wrap *wrap) {
    if (area->kind != AREA_PAGES)
        return;
    size_t page = (size_t)(wrap->start - area->bytes) / WT_PAGE;
    if (area->pages[page] != PAGE_NONE)
        return; // mapped again, and perhaps wrapped again
    const struct wt_unit *unit = &wt_units[wrap->unit];
    void *base;
    size_t size;
    if (wt_type(unit, wrap->start) != ZE_MEMORY_TYPE_UNKNOWN)
        wt_fail("%p is gone but not unknown (unit %u)", (void *)wrap->start, wrap->unit);
    if (zeMemGetAddressRange(unit->context, wrap->start, &base, &size) == ZE_RESULT_SUCCESS && base != NULL)
        wt_fail("%p is gone but has the range %p+%zu (unit %u)", (void *)wrap->start, base, size, wrap->unit);
    if (zeContextMakeMemoryResident(unit->context, unit->device, wrap->start, wrap->size_bytes) == ZE_RESULT_SUCCESS)
        wt_fail("%p is gone but was made resident (unit %u)", (void *)wrap->start, wrap->unit);
}

static void do_ask(struct worker *worker, struct area *area) {
    const struct area_wrap *wrap = pick_wrap(area, &worker->rng, false, false);
    if (wrap == NULL)
        return;
    if (wrap->stale) {
        ask_stale(area, wrap);
        return;
    }
    const struct wt_unit *unit = &wt_units[wrap->unit];
    void *base = NULL;
    size_t size = 0;
    must(zeMemGetAddressRange(unit->context, wrap->start, &base, &size), "address range", area, wrap, wrap->start, 1);
    bool contains = (unsigned char *)base <= wrap->start && (unsigned char *)base + size > wrap->start;
    if (!contains || (!wrap->shared_free && (base != wrap->start || size < wrap->size_bytes)))
        wt_fail("the wrap %p+%zu (kind %d) has the address range %p+%zu", (void *)wrap->start, wrap->size_bytes,
                (int)area->kind, base, size);
    must_be_host(area, wrap, wrap->start + rng_below(&worker->rng, wrap->size_bytes), "when asked");
}

static void do_residency(struct worker *worker, struct area *area) {
    const struct area_wrap *wrap = pick_wrap(area, &worker->rng, true, false);
    if (wrap == NULL)
        return;
    const struct wt_unit *unit = &wt_units[wrap->unit];
    if (rng_below(&worker->rng, 2) != 0)
        must(zeContextEvictMemory(unit->context, unit->device, wrap->start, wrap->size_bytes), "evict", area, wrap,
             wrap->start, wrap->size_bytes);
    must(zeContextMakeMemoryResident(unit->context, unit->device, wrap->start, wrap->size_bytes), "make resident", area,
         wrap, wrap->start, wrap->size_bytes);
}

static void step(struct worker *worker, struct area *area) {
    size_t dice = rng_below(&worker->rng, 100);
    if (dice < 24)
        do_wrap(worker, area);
    else if (dice < 42)
        do_unwrap(worker, area);
    else if (dice < 52)
        do_fill(worker, area);
    else if (dice < 62)
        do_launch(worker, area);
    else if (dice < 74)
        do_copy(worker, area);
    else if (dice < 82)
        do_ask(worker, area);
    else if (dice < 86)
        do_residency(worker, area);
    else
        area_change(area, &worker->rng);
}

// Nobody may write the constant bytes.
static void step_constant(struct worker *worker, struct area *area) {
    size_t dice = rng_below(&worker->rng, 10);
    if (dice < 4)
        do_wrap(worker, area);
    else if (dice < 7)
        do_unwrap(worker, area);
    else
        do_ask(worker, area);
}

void worker_step(struct worker *worker, struct area *area) {
    if (area->lock != NULL)
        pthread_mutex_lock(area->lock);
    if (area->kind == AREA_CONSTANT)
        step_constant(worker, area);
    else
        step(worker, area);
    if (area->lock != NULL)
        pthread_mutex_unlock(area->lock);
}
