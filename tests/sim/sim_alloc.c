// SPDX-License-Identifier: MIT
//
// The driver's own memory. Every byte comes from plain malloc or posix_memalign called from this
// file's text, as Intel's driver calls operator new from its own: an allocator that serves such a
// caller from imported memory is caught here, at the call and again at each import.
//
// Blocks of a page or more are page-aligned and page-rounded, so that they share no page with
// anybody and any overlap with an import is the allocator's fault. Takes sim_memory_lock, never
// across a malloc.
#include <stdlib.h>
#include <string.h>

#include "sim_internal.h"

struct own_block { struct sim_range range; };
static struct sim_range *own_root; // under sim_memory_lock

bool sim_own_overlaps(uintptr_t begin, uintptr_t end)
{
    return sim_ranges_overlap(own_root, begin, end) != NULL;
}

static bool lies_in_import(uintptr_t begin, uintptr_t end)
{
    for (const struct sim_space *space = sim_spaces; space; space = space->next)
        if (sim_ranges_overlap(space->imports, begin, end)) return true;
    return false;
}

void *sim_alloc(size_t size)
{
    if (size > PTRDIFF_MAX - SIM_PAGE) return NULL;
    if (size < SIM_PAGE) {
        void *small = malloc(size ? size : 1);
        if (small) memset(small, 0, size);
        return small;
    }
    size = (size + SIM_PAGE - 1) & ~(SIM_PAGE - 1);
    struct own_block *block = malloc(sizeof *block);
    void *pointer = NULL;
    if (!block || posix_memalign(&pointer, SIM_PAGE, size) != 0) {
        free(block);
        return NULL;
    }
    block->range = (struct sim_range){.begin = (uintptr_t)pointer, .end = (uintptr_t)pointer + size};
    pthread_rwlock_wrlock(&sim_memory_lock);
    const bool bad = lies_in_import(block->range.begin, block->range.end);
    sim_ranges_insert(&own_root, &block->range);
    pthread_rwlock_unlock(&sim_memory_lock);
    SIM_COUNT(own_bytes, size);
    if (bad)
        sim_violation(GHSIM_DRIVER_MEMORY, "own malloc of %zu bytes at %p lies in an import", size, pointer);
    memset(pointer, 0, size);
    return pointer;
}

void sim_free(void *pointer)
{
    if (((uintptr_t)pointer & (SIM_PAGE - 1)) == 0 && pointer) {
        const uintptr_t at = (uintptr_t)pointer;
        pthread_rwlock_wrlock(&sim_memory_lock);
        struct sim_range *range = sim_ranges_overlap(own_root, at, at + 1);
        if (range) sim_ranges_remove(&own_root, range);
        pthread_rwlock_unlock(&sim_memory_lock);
        if (range) {
            SIM_UNCOUNT(own_bytes, range->end - range->begin);
            free(range);
        }
    }
    free(pointer);
}

void sim_handle_init(struct sim_handle *handle, enum sim_kind kind)
{
    *handle = (struct sim_handle){.core = sim_ddi_core(), .tools = sim_ddi_none(),
                                  .sysman = sim_ddi_none(), .runtime = sim_ddi_none(),
                                  .magic = SIM_MAGIC, .kind = kind};
}

void *sim_new(size_t size, enum sim_kind kind)
{
    struct sim_handle *object = sim_alloc(size);
    if (object) sim_handle_init(object, kind);
    return object;
}

void sim_delete(void *object)
{
    if (object) memset(object, 0xdd, sizeof(struct sim_handle));
    sim_free(object);
}
