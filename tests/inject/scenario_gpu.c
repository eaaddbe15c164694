// SPDX-License-Identifier: MIT
//
// The GPU's part (scenario.h): two contexts, the heap in place, wraps that overlap, memory that
// goes away under them. A call may answer an error when something was made to fail during it, or
// when the process has no scope; else it must not.
#include "scenario.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "level_zero/ze_compat.h"

#define PAGE ((size_t)4096)
#define AREA_PAGES 16u

struct place {
    ze_context_handle_t handle; // NULL: it could not be made
    ze_command_list_handle_t list;
    bool good; // has a scope
};

static const struct world *world;
static struct place first;
static struct place second;

static void open_place(struct place *place) {
    ze_context_desc_t descriptor = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
    ze_command_queue_desc_t queue = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                      .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS };
    unsigned scopes = world->scopes();
    uint64_t before = world->faults();
    *place = (struct place){ 0 };
    if (world->context.pfnCreate(world->driver, &descriptor, &place->handle) != ZE_RESULT_SUCCESS) {
        MUST(world->faults() != before);
        place->handle = NULL;
        return;
    }
    place->good = world->per_context ? world->scopes() > scopes : world->scopes() > 0;
    MUST(place->good || !world->takes_imports || !world->single || world->faults() != 0);
    if (world->list.pfnCreateImmediate(place->handle, world->device, &queue, &place->list) != ZE_RESULT_SUCCESS)
        place->list = NULL;
}

static void close_place(struct place *place) {
    if (place->list != NULL)
        world->list.pfnDestroy(place->list);
    if (place->handle != NULL)
        world->context.pfnDestroy(place->handle);
    *place = (struct place){ 0 };
}

static bool wrap(const struct place *place, void *pointer, size_t bytes, bool read_only) {
    if (place->handle == NULL)
        return false;
    if (!place->good && (((uintptr_t)pointer | bytes) & (PAGE - 1)) != 0) // the driver's own rule then
        return false;
    gh_ze_memmap_desc_t memmap = { .stype = GH_ZE_STYPE_MEMMAP, .pSystemMemory = pointer, .size = bytes };
    ze_host_mem_alloc_desc_t descriptor = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = &memmap,
                                            .flags = read_only ? GH_ZE_HOST_READ_ONLY : 0 };
    void *out = NULL;
    uint64_t before = world->faults();
    ze_result_t result = world->mem.pfnAllocHost(place->handle, &descriptor, bytes, PAGE, &out);
    if (result == ZE_RESULT_SUCCESS && out != pointer) { // GHSIM_OTHER_ADDRESS, without a scope
        MUST(!place->good);
        world->mem.pfnFree(place->handle, out);
        return false;
    }
    MUST(result == ZE_RESULT_SUCCESS || !place->good || !world->takes_imports || !world->single ||
         world->faults() != before);
    return result == ZE_RESULT_SUCCESS;
}

static void unwrap(const struct place *place, void *pointer, bool wrapped) {
    if (!wrapped)
        return;
    uint64_t before = world->faults();
    ze_result_t result = world->mem.pfnFree(place->handle, pointer);
    MUST(result == ZE_RESULT_SUCCESS || world->faults() != before);
}

// Fills through the GPU. `must`: nothing but a failure during the call excuses an error.
static void fill(const struct place *place, void *pointer, size_t bytes, bool must) {
    static unsigned char value;
    unsigned char *at = pointer;
    if (place->list == NULL)
        return;
    value++;
    uint64_t before = world->faults();
    ze_result_t result = world->list.pfnAppendMemoryFill(place->list, pointer, &value, 1, bytes, NULL, 0, NULL);
    if (result != ZE_RESULT_SUCCESS) {
        MUST(!must || world->faults() != before);
        return;
    }
    for (size_t i = 0; i < bytes; i++)
        MUST(at[i] == value);
}

static void use_heap(const struct place *place, size_t bytes) {
    unsigned char *block = world->allocate(bytes, 0, false);
    unsigned char *other = world->allocate(bytes, 0, true);
    ze_memory_allocation_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES };
    if (block != NULL && other != NULL && place->handle != NULL) {
        memset(block, 0xa5, bytes);
        world->mem.pfnGetAllocProperties(place->handle, block, &properties, NULL); // brings what is pending
        bool visible = place->good && world->visible(block, bytes);
        fill(place, block, bytes, visible);
        bool whole = wrap(place, block, bytes, false);
        bool part = place->good && wrap(place, block + bytes / 2, bytes / 4, false);
        fill(place, block, bytes, whole);
        uint64_t before = world->faults();
        bool copied = place->list != NULL && whole && visible && world->visible(other, bytes);
        if (copied) {
            ze_result_t result = world->list.pfnAppendMemoryCopy(place->list, other, block, bytes, NULL, 0, NULL);
            MUST(result == ZE_RESULT_SUCCESS || world->faults() != before);
            MUST(result != ZE_RESULT_SUCCESS || memcmp(block, other, bytes) == 0);
        }
        unwrap(place, block, whole);
        fill(place, block + bytes / 2, bytes / 4, part);
        unwrap(place, block + bytes / 2, part);
    }
    world->release(block);
    world->release(other);
}

// Wraps of memory that malloc did not hand out, one over the other.
static void use_area(unsigned char *area) {
    unsigned char *a = area + 2 * PAGE;
    unsigned char *b = area + 4 * PAGE + 100;
    bool read = wrap(&first, a, 4 * PAGE, true);
    bool write = wrap(&first, b, 5 * PAGE, false); // over the read-only one
    bool all = wrap(&second, area, AREA_PAGES * PAGE, false);
    fill(&first, b, 5 * PAGE, write);
    fill(&second, area, AREA_PAGES * PAGE, all);
    bool again = wrap(&first, a, 4 * PAGE, false);
    fill(&first, b, 5 * PAGE, write);
    fill(&first, a, 4 * PAGE, again);
    unwrap(&first, a, again);
    fill(&first, b, 5 * PAGE, write);
    if (first.handle != NULL && write) {
        world->context.pfnMakeMemoryResident(first.handle, world->device, b, 5 * PAGE);
        world->context.pfnEvictMemory(first.handle, world->device, b, 5 * PAGE);
        fill(&first, b, 5 * PAGE, write);
    }
    unwrap(&first, a, read);
    fill(&first, b, 5 * PAGE, write);
    memset(area, 7, AREA_PAGES * PAGE);
    if (world->drop(area + 5 * PAGE, 2 * PAGE) == 0) {
        for (size_t i = 0; i < AREA_PAGES * PAGE; i++)
            MUST(area[i] == (i / PAGE == 5 || i / PAGE == 6 ? 0 : 7));
        fill(&first, b, 5 * PAGE, write);
    }
    fill(&second, area, 8 * PAGE, all);
    unwrap(&first, b, write);
    if (!world->keeps_imports && world->unmap(area + 12 * PAGE, 4 * PAGE) == 0) {
        fill(&second, area, 12 * PAGE, false); // stale now: an error is fine, a wrong byte is not
        bool new_part = wrap(&first, area, 12 * PAGE, false);
        fill(&first, area, 12 * PAGE, new_part);
        unwrap(&first, area, new_part);
    }
    unwrap(&second, area, all);
}

// Are there imports beside those of the regions?
static bool leaks(struct ghsim_stats *stats) {
    ze_memory_allocation_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES };
    uint64_t most = world->regions() * (world->scopes() == 0 ? 1 : world->scopes());
    if (first.handle != NULL)
        world->mem.pfnGetAllocProperties(first.handle, stats, &properties, NULL); // releases what is retired
    world->sim_stats(stats);
    if (world->keeps_imports)
        most += stats->faults_injected;
    return stats->references_live > most;
}

static void check_leaks(void) {
    struct ghsim_stats stats = { 0 };
    // The service thread may be about to release a region that is none any more.
    for (unsigned i = 0; i < 1000 && leaks(&stats); i++)
        nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
    MUST(!leaks(&stats));
    MUST(stats.violations == (world->keeps_imports ? stats.reason[GHSIM_PAGE_MOVED] : 0));
}

void scenario_gpu(const struct world *in) {
    world = in;
    open_place(&first);
    use_heap(&first, 200000);
    open_place(&second);
    unsigned char *area = mmap(NULL, AREA_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area != MAP_FAILED && (first.good || first.handle == NULL) && (second.good || second.handle == NULL))
        use_area(area);
    use_heap(&second, 20000000); // a region of its own, which comes and goes
    use_heap(&first, 24000);
    bool left = area != MAP_FAILED && second.good && wrap(&second, area + PAGE, 3 * PAGE, false);
    fill(&second, area + PAGE, 3 * PAGE, left);
    close_place(&second); // with a live wrap
    use_heap(&first, 1000000);
    check_leaks();
    if (area != MAP_FAILED && !world->keeps_imports)
        world->unmap(area, 12 * PAGE);
    close_place(&first);
}
