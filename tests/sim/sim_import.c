// SPDX-License-Identifier: MIT
//
// The import table: one for the whole driver (GPU scope) or one per context (NPU scope), and the
// rules that make this driver stricter than real ones. sim_memory_lock protects the tables; it is
// held across no malloc, so the node of a new import is made first.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim_internal.h"

pthread_rwlock_t sim_memory_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct sim_space driver_space;
struct sim_space *sim_spaces = &driver_space;
struct sim_range *sim_usm_root;

uint64_t sim_next_id(void)
{
    static _Atomic uint64_t id;
    return atomic_fetch_add(&id, 1) + 1;
}

struct sim_space *sim_space_of(struct sim_context *context)
{
    return sim_config.context_scope && context ? &context->space : &driver_space;
}

static struct sim_import *import_at(struct sim_space *space, uintptr_t begin, uintptr_t end)
{
    return (struct sim_import *)(void *)sim_ranges_overlap(space->imports, begin, end);
}

static ze_result_t refused(ze_result_t result, const char *why, const struct sim_import_request *r)
{
    SIM_COUNT(imports_refused, 1);
    sim_log("refused %p+%zu %s", r->pointer, r->size, why);
    return result;
}

static ze_result_t broken(enum ghsim_reason reason, const char *why, const struct sim_import_request *r,
                          const struct sim_range *other)
{
    SIM_COUNT(imports_refused, 1);
    return sim_violation(reason, "import %p+%zu %s [%#lx,%#lx)", r->pointer, r->size, why,
                         other ? (unsigned long)other->begin : 0, other ? (unsigned long)other->end : 0);
}

static void spend_time(const struct sim_import_request *r)
{
    const uint64_t us = sim_config.delay_us + sim_config.delay_us_per_mib * (r->size >> 20);
    if (us) nanosleep(&(struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000}, NULL);
    if (sim_config.noisy) sim_noise();
}

// What an import meets in the table: served by it (then `*done`), in conflict, or nothing.
static ze_result_t meet(struct sim_import *old, const struct sim_import_request *r, uintptr_t begin,
                        uintptr_t end, bool *done)
{
    *done = true;
    if (r->older != old->older)
        return broken(GHSIM_OVERLAP, "second kind of import over", r, &old->range);
    const bool inside = begin >= old->range.begin && end <= old->range.end;
    if (r->older) // as Intel's: a covered range succeeds and holds nothing
        return inside ? ZE_RESULT_SUCCESS
                      : refused(ZE_RESULT_ERROR_OVERLAPPING_REGIONS, "overlaps an older import", r);
    if (sim_config.context_scope)
        return refused(ZE_RESULT_ERROR_INVALID_ARGUMENT, "already imported in this context", r);
    if (!inside) return broken(GHSIM_OVERLAP, "overlaps", r, &old->range);
    if (old->read_only && !r->read_only)
        return refused(ZE_RESULT_ERROR_INVALID_ARGUMENT, "inside a read-only import", r);
    old->references++;
    SIM_COUNT(imports_nested, 1);
    SIM_COUNT(references_live, 1);
    sim_log("nested %p+%zu references=%llu", r->pointer, r->size, (unsigned long long)old->references);
    return ZE_RESULT_SUCCESS;
}

static ze_result_t check_request(const struct sim_import_request *r)
{
    const uintptr_t begin = (uintptr_t)r->pointer;
    if (!r->pointer) return refused(ZE_RESULT_ERROR_INVALID_NULL_POINTER, "null", r);
    if (r->size == 0) return refused(ZE_RESULT_ERROR_UNSUPPORTED_SIZE, "size 0", r);
    if (r->size > UINTPTR_MAX - 2 * SIM_PAGE - begin)
        return refused(ZE_RESULT_ERROR_INVALID_ARGUMENT, "wraps around", r);
    if (!r->older && ((begin | r->size) & (SIM_PAGE - 1)) != 0)
        return broken(GHSIM_MISALIGNED, "is not made of whole pages", r, NULL);
    if (r->size > sim_config.max_alloc && !r->relaxed)
        return refused(ZE_RESULT_ERROR_UNSUPPORTED_SIZE, "above maxMemAllocSize", r);
    return ZE_RESULT_SUCCESS;
}

static void count_import(const struct sim_import_request *r, size_t bytes)
{
    SIM_COUNT(imports, 1);
    if (r->older) SIM_COUNT(imports_older, 1);
    SIM_COUNT(imports_live, 1);
    SIM_COUNT(references_live, 1);
    SIM_COUNT(bytes_total, bytes);
    const uint64_t live = SIM_COUNT(bytes_live, bytes);
    if (live > __atomic_load_n(&sim_stats.bytes_peak, __ATOMIC_RELAXED))
        __atomic_store_n(&sim_stats.bytes_peak, live, __ATOMIC_RELAXED); // under the write lock
}

static void drop(struct sim_import *import)
{
    sim_unpin(import);
    pthread_mutex_destroy(&import->frame_lock);
    sim_free(import);
}

ze_result_t sim_import(const struct sim_import_request *r)
{
    static _Atomic uint64_t attempts;
    const ze_result_t fault = sim_fault("import", atomic_fetch_add(&attempts, 1) + 1);
    if (fault != ZE_RESULT_SUCCESS) return refused(fault, "by GHSIM_FAIL", r);
    ze_result_t result = check_request(r);
    if (result != ZE_RESULT_SUCCESS) return result;
    const uintptr_t begin = (uintptr_t)r->pointer & ~(SIM_PAGE - 1);
    const uintptr_t end = ((uintptr_t)r->pointer + r->size + SIM_PAGE - 1) & ~(SIM_PAGE - 1);

    spend_time(r);
    struct sim_import *import = sim_alloc(sizeof *import);
    if (!import) return refused(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, "no memory", r);
    import->generation = sim_pages_generation();
    if (!sim_pages_populate(begin, end, r->read_only)) {
        sim_free(import);
        return refused(ZE_RESULT_ERROR_INVALID_ARGUMENT, "pages not mapped or not writable", r);
    }
    import->range = (struct sim_range){.begin = begin, .end = end};
    import->references = 1;
    import->id = sim_next_id();
    import->older = r->older;
    import->read_only = r->read_only;
    atomic_store(&import->resident, !sim_config.explicit_residency);
    if (sim_config.first_device_only && !r->older && r->context) import->only_device = r->context->first_device;
    pthread_mutex_init(&import->frame_lock, NULL);

    sim_pin(import);
    struct sim_space *space = sim_space_of(r->context);
    bool done = false;
    pthread_rwlock_wrlock(&sim_memory_lock);
    struct sim_import *old = import_at(space, begin, end);
    if (!old) old = import_at(&driver_space, begin, end); // older imports, in context scope
    if (old) {
        result = meet(old, r, begin, end, &done);
    } else if (sim_own_overlaps(begin, end)) {
        result = broken(GHSIM_DRIVER_MEMORY, "covers the driver's own memory", r, NULL);
    } else if (end - begin > sim_config.memory_limit ||
               __atomic_load_n(&sim_stats.bytes_live, __ATOMIC_RELAXED) > sim_config.memory_limit - (end - begin)) {
        result = refused(ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, "above GHSIM_MEMORY_LIMIT", r);
    } else {
        sim_pages_record(import);
        sim_ranges_insert(&space->imports, &import->range);
        count_import(r, end - begin);
        if (import->pinned) SIM_COUNT(imports_pinned, 1);
        import = NULL;
    }
    pthread_rwlock_unlock(&sim_memory_lock);
    if (import) drop(import);
    else sim_log("import %p+%zu%s", r->pointer, r->size, r->older ? " older" : "");
    return result;
}

static void forget(struct sim_space *space, struct sim_import *import)
{
    sim_ranges_remove(&space->imports, &import->range);
    SIM_COUNT(releases, 1);
    SIM_UNCOUNT(imports_live, 1);
    SIM_UNCOUNT(references_live, import->references);
    SIM_UNCOUNT(bytes_live, import->range.end - import->range.begin);
}

static void check_pages(struct sim_import *import, const char *when)
{
    if (!sim_pages_same(import))
        sim_violation(GHSIM_PAGE_MOVED, "in import [%#lx,%#lx) %s", (unsigned long)import->range.begin,
                      (unsigned long)import->range.end, when);
}

// A pointer anywhere in an import gives back a reference to the whole of it (DESIGN.md, fact 2).
ze_result_t sim_release(struct sim_context *context, void *pointer, bool older)
{
    const uintptr_t at = (uintptr_t)pointer;
    struct sim_space *space = sim_space_of(older ? NULL : context);
    struct sim_import *gone = NULL;
    pthread_rwlock_wrlock(&sim_memory_lock);
    struct sim_import *import = import_at(space, at, at + 1);
    if (!import || import->older != older) {
        pthread_rwlock_unlock(&sim_memory_lock);
        SIM_COUNT(free_unknown, 1);
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    check_pages(import, "at release");
    if (at != import->range.begin && import->references == 1 && !older) SIM_COUNT(interior_frees, 1);
    if (import->references > 1) {
        import->references--;
        SIM_UNCOUNT(references_live, 1);
    } else {
        forget(space, import);
        gone = import;
    }
    pthread_rwlock_unlock(&sim_memory_lock);
    sim_log("release %p%s", pointer, gone ? "" : " (still referenced)");
    if (gone) drop(gone);
    return ZE_RESULT_SUCCESS;
}

void sim_release_space(struct sim_space *space)
{
    for (;;) {
        pthread_rwlock_wrlock(&sim_memory_lock);
        struct sim_import *import = (struct sim_import *)(void *)space->imports;
        if (import) {
            check_pages(import, "when its context goes");
            forget(space, import);
        }
        pthread_rwlock_unlock(&sim_memory_lock);
        if (!import) return;
        sim_log("release %p with its context", (void *)import->range.begin);
        drop(import);
    }
}

void sim_lookup(struct sim_context *context, const void *pointer, size_t size, bool use, struct sim_hit *hit)
{
    const uintptr_t begin = (uintptr_t)pointer;
    const uintptr_t end = begin + (size ? size : 1);
    *hit = (struct sim_hit){.where = SIM_NOWHERE};
    pthread_rwlock_rdlock(&sim_memory_lock);
    struct sim_range *range = sim_ranges_overlap(sim_usm_root, begin, begin + 1);
    if (range) {
        const struct sim_usm *usm = (const struct sim_usm *)(const void *)range;
        *hit = (struct sim_hit){.base = range->begin, .size = usm->size, .resident = true, .type = usm->type,
                                .id = usm->id, .device = usm->device};
    } else if ((range = sim_ranges_overlap(sim_space_of(context)->imports, begin, begin + 1)) ||
               (range = sim_ranges_overlap(driver_space.imports, begin, begin + 1))) {
        // The older imports belong to the driver even where the newer ones belong to a context.
        struct sim_import *import = (struct sim_import *)(void *)range;
        *hit = (struct sim_hit){.base = range->begin, .size = range->end - range->begin, .is_import = true,
                                .resident = atomic_load(&import->resident),
                                .type = (ze_memory_type_t)sim_config.host_type, .id = import->id,
                                .only_device = import->only_device};
    }
    if (range) hit->where = end >= begin && end <= hit->base + hit->size ? SIM_INSIDE : SIM_STRADDLES;
    if (range && use && hit->is_import && sim_config.page_check == SIM_PAGES_ALWAYS)
        check_pages((struct sim_import *)(void *)range, "in use");
    pthread_rwlock_unlock(&sim_memory_lock);
}

bool sim_touches_import(struct sim_context *context, uintptr_t begin, uintptr_t end)
{
    pthread_rwlock_rdlock(&sim_memory_lock);
    const bool touches = sim_ranges_overlap(sim_space_of(context)->imports, begin, end) != NULL;
    pthread_rwlock_unlock(&sim_memory_lock);
    return touches;
}

ze_result_t sim_set_resident(struct sim_context *context, const void *pointer, size_t size, bool resident)
{
    struct sim_hit hit;
    sim_lookup(context, pointer, size, false, &hit);
    if (hit.where == SIM_NOWHERE)
        return sim_config.system_usm ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT;
    if (hit.where == SIM_STRADDLES) SIM_COUNT(residency_partial, 1); // only the first one, as Intel's
    pthread_rwlock_rdlock(&sim_memory_lock);
    struct sim_import *import = import_at(sim_space_of(context), (uintptr_t)pointer, (uintptr_t)pointer + 1);
    if (import) atomic_store(&import->resident, resident);
    pthread_rwlock_unlock(&sim_memory_lock);
    return ZE_RESULT_SUCCESS;
}

int ghsim_is_imported(const void *pointer, size_t size)
{
    const uintptr_t begin = (uintptr_t)pointer, end = begin + (size ? size : 1);
    int found = 0;
    pthread_rwlock_rdlock(&sim_memory_lock);
    for (const struct sim_space *space = sim_spaces; space && !found; space = space->next) {
        const struct sim_range *range = sim_ranges_overlap(space->imports, begin, begin + 1);
        found = range && end <= range->end;
    }
    pthread_rwlock_unlock(&sim_memory_lock);
    return found;
}
