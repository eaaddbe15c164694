// SPDX-License-Identifier: MIT
//
// door_stress DRIVER.so [SECONDS [THREADS]]: threads malloc and free, hand blocks to each other,
// wrap, unwrap, copy, fill and query their memory, and create and destroy contexts, through the
// door of a simulated driver that aborts on any rule broken. Every byte is checked against a
// shadow. At the end nothing may be left: no wrap, no piece, no import but those of the regions.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allocator/arena_set.h"
#include "door_client.h"
#include "door_memory.h"
#include "gate.h"
#include "gpu.h"
#include "lifecycle.h"
#include "pieces.h"
#include "wraps.h"

#define AREAS 48
#define EXCHANGE 64

static ze_context_handle_t common; // every thread's lists, wraps and queries
static _Atomic bool stop;
static _Atomic uint64_t operations;
static _Atomic uint64_t spans;
static _Atomic(size_t *) exchange[EXCHANGE]; // blocks that one thread allocates and another frees

struct worker {
    struct random random;
    ze_command_list_handle_t list;
    struct area areas[AREAS];
};

static size_t block_size(struct random *random) {
    static const size_t largest[] = { 64, 1024, 4096, 16384, 65536 };
    if (random_below(random, 32) == 0)
        return 1 + random_below(random, 3 * GH_MIB);
    return 1 + random_below(random, largest[random_below(random, 5)]);
}

static void drop_wraps(struct area *area) {
    while (area->wrap_count != 0)
        CHECK(door.mem.pfnFree(common, area->wraps[--area->wrap_count]) == ZE_RESULT_SUCCESS);
}

// A heap block may be freed before its wraps: they are stale then, and freeing them still works.
static void replace(struct worker *worker, struct area *area) {
    bool wraps_first = area->kind != AREA_HEAP || random_below(&worker->random, 2) == 0;
    void *late[WRAPS_MAX];
    unsigned late_count = 0;
    if (wraps_first) {
        drop_wraps(area);
    } else {
        late_count = area->wrap_count;
        memcpy(late, area->wraps, sizeof(late));
    }
    if (area->kind != AREA_NONE)
        area_drop(area);
    while (late_count != 0)
        CHECK(door.mem.pfnFree(common, late[--late_count]) == ZE_RESULT_SUCCESS);
    size_t kind = random_below(&worker->random, 16);
    if (kind == 0 && area_make_span(area, &worker->random))
        atomic_fetch_add(&spans, 1);
    else if (kind < 4 && area_make_foreign(area, 1 + random_below(&worker->random, 40), &worker->random))
        return;
    else if (area->kind == AREA_NONE)
        area_make_heap(area, block_size(&worker->random), &worker->random);
}

// As oneAPI.jl does it: the pages around a part of the area. What is on them beside the area is
// the heap's, or the thread's own.
static void wrap(struct worker *worker, struct area *area) {
    if (area->wrap_count == WRAPS_MAX)
        return drop_wraps(area);
    size_t first = random_below(&worker->random, area->size);
    size_t size = 1 + random_below(&worker->random, area->size - first);
    uintptr_t start = gh_align_down((uintptr_t)area->bytes + first, GH_PAGE_SIZE);
    uintptr_t end = gh_align_up((uintptr_t)area->bytes + first + size, GH_PAGE_SIZE);
    for (unsigned i = 0; i < area->wrap_count; i++) {
        if (area->wraps[i] == (void *)start)
            return; // which of two wraps of one pointer a free means is not told
    }
    CHECK(door_wrap(common, (void *)start, end - start) == ZE_RESULT_SUCCESS);
    area->wraps[area->wrap_count++] = (void *)start;
    CHECK(door_type(common, (void *)start) == ZE_MEMORY_TYPE_HOST);
    CHECK(door_type(common, (void *)(end - 1)) == ZE_MEMORY_TYPE_HOST);
    CHECK(door.context.pfnMakeMemoryResident(common, door.gpu, (void *)start, end - start) == ZE_RESULT_SUCCESS);
    if (random_below(&worker->random, 4) == 0 && area->kind == AREA_HEAP)
        CHECK(door.context.pfnEvictMemory(common, door.gpu, (void *)start, end - start) == ZE_RESULT_SUCCESS);
}

static void unwrap(struct worker *worker, struct area *area) {
    if (area->wrap_count == 0)
        return;
    unsigned at = (unsigned)random_below(&worker->random, area->wrap_count);
    CHECK(door.mem.pfnFree(common, area->wraps[at]) == ZE_RESULT_SUCCESS);
    area->wraps[at] = area->wraps[--area->wrap_count];
}

// Sees to it that all of the area is visible. A heap block is by itself.
static void make_visible(struct area *area) {
    if (area->kind == AREA_HEAP)
        return;
    if (area->wrap_count == WRAPS_MAX)
        drop_wraps(area);
    for (unsigned i = 0; i < area->wrap_count; i++) {
        if (area->wraps[i] == area->bytes) {
            CHECK(door.mem.pfnFree(common, area->wraps[i]) == ZE_RESULT_SUCCESS);
            area->wraps[i] = area->wraps[--area->wrap_count];
            break;
        }
    }
    CHECK(door_wrap(common, area->bytes, area->size) == ZE_RESULT_SUCCESS);
    area->wraps[area->wrap_count++] = area->bytes;
}

static void copy(struct worker *worker, struct area *to, struct area *from) {
    if (to == from)
        return;
    make_visible(to);
    make_visible(from);
    size_t from_at = random_below(&worker->random, from->size);
    size_t to_at = random_below(&worker->random, to->size);
    size_t room = gh_min(from->size - from_at, to->size - to_at);
    size_t size = 1 + random_below(&worker->random, room);
    CHECK(door.list.pfnAppendMemoryCopy(worker->list, to->bytes + to_at, from->bytes + from_at, size, NULL, 0, NULL) ==
          ZE_RESULT_SUCCESS);
    memcpy(to->shadow + to_at, from->shadow + from_at, size);
}

static void fill(struct worker *worker, struct area *area) {
    make_visible(area);
    uint64_t pattern = random_next(&worker->random);
    size_t pattern_size = (size_t)1 << random_below(&worker->random, 4);
    size_t at = random_below(&worker->random, area->size);
    size_t count = (area->size - at) / pattern_size;
    if (count == 0)
        return;
    size_t size = pattern_size * (1 + random_below(&worker->random, count));
    CHECK(door.list.pfnAppendMemoryFill(worker->list, area->bytes + at, &pattern, pattern_size, size, NULL, 0, NULL) ==
          ZE_RESULT_SUCCESS);
    for (size_t i = 0; i < size; i++)
        area->shadow[at + i] = ((const unsigned char *)&pattern)[i % pattern_size];
}

static void query(struct worker *worker, struct area *area) {
    if (area->kind == AREA_HEAP) {
        size_t at = random_below(&worker->random, area->size);
        CHECK(door_type(common, area->bytes) == ZE_MEMORY_TYPE_HOST);
        CHECK(door_type(common, area->bytes + at) == ZE_MEMORY_TYPE_HOST);
        CHECK(door_type(common, area->bytes + area->size - 1) == ZE_MEMORY_TYPE_HOST);
        // A pointer that nobody wrapped is not the driver's to free.
        if ((uintptr_t)area->bytes % GH_PAGE_SIZE != 0)
            CHECK(door.mem.pfnFree(common, area->bytes) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    area_verify(area);
}

static void context_life(struct worker *worker, struct area *area) {
    ze_context_handle_t context = door_context_create();
    if (area->kind == AREA_HEAP)
        CHECK(door_type(context, area->bytes) == ZE_MEMORY_TYPE_HOST);
    uintptr_t start = gh_align_down((uintptr_t)area->bytes, GH_PAGE_SIZE);
    size_t size = gh_align_up((uintptr_t)area->bytes + area->size, GH_PAGE_SIZE) - start;
    CHECK(door_wrap(context, (void *)start, size) == ZE_RESULT_SUCCESS);
    CHECK(door_type(context, area->bytes + area->size / 2) == ZE_MEMORY_TYPE_HOST);
    void *own = NULL;
    ze_host_mem_alloc_desc_t descriptor = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
    CHECK(door.mem.pfnAllocHost(context, &descriptor, 5000, 64, &own) == ZE_RESULT_SUCCESS);
    CHECK(door.mem.pfnFree(context, own) == ZE_RESULT_SUCCESS);
    // The wrap that is left to the context goes with it.
    CHECK(door.context.pfnDestroy(context) == ZE_RESULT_SUCCESS);
    (void)worker;
}

static void hand_over(struct worker *worker) {
    size_t size = sizeof(size_t) + block_size(&worker->random);
    size_t *block = gh_allocate(size, 0, false, NULL);
    CHECK(block != NULL);
    memset(block, (int)size, size);
    block[0] = size;
    block = atomic_exchange(&exchange[random_below(&worker->random, EXCHANGE)], block);
    if (block == NULL)
        return;
    size = block[0];
    for (size_t i = sizeof(size_t); i < size; i += 61)
        CHECK(((unsigned char *)block)[i] == (unsigned char)size);
    if (random_below(&worker->random, 2) == 0) {
        size_t larger = size * 2;
        block = gh_reallocate(block, larger, NULL);
        CHECK(block != NULL && block[0] == size);
        CHECK(size < 16 || ((unsigned char *)block)[size - 1] == (unsigned char)size);
    }
    gh_deallocate(block);
}

static void *run(void *argument) {
    struct worker *worker = argument;
    worker->list = door_list_create(common);
    for (unsigned i = 0; i < AREAS; i++)
        replace(worker, &worker->areas[i]);
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        struct area *area = &worker->areas[random_below(&worker->random, AREAS)];
        switch (random_below(&worker->random, 16)) {
        case 0:
        case 1:
        case 2:
            replace(worker, area);
            break;
        case 3:
        case 4:
            wrap(worker, area);
            break;
        case 5:
            unwrap(worker, area);
            break;
        case 6:
        case 7:
        case 8:
            copy(worker, area, &worker->areas[random_below(&worker->random, AREAS)]);
            break;
        case 9:
        case 10:
            fill(worker, area);
            break;
        case 11:
        case 12:
            query(worker, area);
            break;
        case 13:
            if (random_below(&worker->random, 8) == 0)
                context_life(worker, area);
            break;
        default:
            hand_over(worker);
            break;
        }
        atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed);
    }
    for (unsigned i = 0; i < AREAS; i++) {
        drop_wraps(&worker->areas[i]);
        area_drop(&worker->areas[i]);
    }
    CHECK(door.list.pfnDestroy(worker->list) == ZE_RESULT_SUCCESS);
    return NULL;
}

static void check_nothing_left(void) {
    struct ghsim_stats stats;
    uint64_t live;
    uint64_t covered;
    for (unsigned i = 0; i < EXCHANGE; i++)
        gh_deallocate(atomic_load(&exchange[i]));
    CHECK(gh_wraps_is_valid() && gh_pieces_is_valid());
    CHECK(gh_region_pool_is_valid(gh_arena_set_heap()) && gh_region_pool_is_valid(gh_arena_set_plain()));
    gh_wraps_count(&live, &covered);
    CHECK(live == 0 && covered != 0);
    CHECK(atomic_load(&gh_pieces_count) == 0);
    gh_arena_set_purge();
    gh_gpu_drain();
    door.stats(&stats);
    struct gh_region_pool_stats heap;
    gh_region_pool_get_stats(gh_arena_set_heap(), &heap);
    printf("%llu operations, %llu spans, %llu wraps answered without the driver, %llu imports, %llu releases, "
           "%u regions of %llu ever, %llu imports live\n",
           (unsigned long long)atomic_load(&operations), (unsigned long long)atomic_load(&spans),
           (unsigned long long)covered, (unsigned long long)stats.imports, (unsigned long long)stats.releases,
           heap.region_count, (unsigned long long)heap.regions_mapped_ever, (unsigned long long)stats.imports_live);
    CHECK(stats.violations == 0 && stats.interior_frees == 0 && stats.imports_refused == 0);
    CHECK(stats.imports_live == heap.region_count);
    CHECK(door.context.pfnDestroy(common) == ZE_RESULT_SUCCESS);
}

int main(int argc, char **argv) {
    unsigned seconds = argc > 2 ? (unsigned)atoi(argv[2]) : 5;
    unsigned count = argc > 3 ? (unsigned)atoi(argv[3]) : 8;
    CHECK(argc > 1 && count >= 1 && count <= 64 && gh_is_serving());
    door_open(argv[1]);
    common = door_context_create();
    static struct worker workers[64];
    pthread_t threads[64];
    uint64_t seed = getenv("STRESS_SEED") != NULL ? strtoull(getenv("STRESS_SEED"), NULL, 0) : (uint64_t)time(NULL);
    printf("seed %llu, %u threads, %u seconds\n", (unsigned long long)seed, count, seconds);
    fflush(stdout);
    for (unsigned i = 0; i < count; i++) {
        workers[i].random.state = seed * 64 + i;
        CHECK(pthread_create(&threads[i], NULL, run, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < seconds * 10; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    check_nothing_left();
    return 0;
}
