// SPDX-License-Identifier: MIT
//
// What is used again after it was given up, linked: contexts beyond the 64 scopes, and the id of
// a region for a larger one while GPUHOST_HIDE counts wraps by page.
//
//   inject_reuse DRIVER contexts|hide
#include <stdio.h>
#include <string.h>

#include "../stress/door_client.h"
#include "allocator/region.h"
#include "config.h"
#include "gate.h"
#include "hide.h"

#define PAGE GH_PAGE_SIZE

// Contexts that got no scope leave nothing behind: when all are gone, a new one sees the heap.
static void contexts(void) {
    ze_context_handle_t handles[70];
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned i = 0; i < 70; i++)
            handles[i] = door_context_create();
        for (unsigned i = 70; i-- > 0;)
            CHECK(door.context.pfnDestroy(handles[i]) == ZE_RESULT_SUCCESS);
    }
    ze_context_handle_t last = door_context_create();
    void *block = gh_allocate(100000, 0, false, NULL);
    CHECK(block != NULL && door_type(last, block) == ZE_MEMORY_TYPE_HOST);
    gh_deallocate(block);
}

static char *allocate_region(size_t bytes, uint16_t *id_out) {
    char *block = gh_allocate(bytes, 0, false, NULL);
    CHECK(block != NULL && gh_region_find(block) != NULL);
    *id_out = gh_region_find(block)->id;
    return block;
}

// The larger region has pages that the smaller one's counters do not reach.
static void hide(void) {
    const size_t small_bytes = 8 << 20;
    const size_t large_bytes = (size_t)1 << 30;
    uint16_t old_id;
    uint16_t new_id;
    CHECK(gh_config.hide);
    ze_context_handle_t context = door_context_create();
    char *block = allocate_region(small_bytes, &old_id);
    CHECK(door_type(context, block) == ZE_MEMORY_TYPE_UNKNOWN);
    CHECK(door_wrap(context, block, PAGE) == ZE_RESULT_SUCCESS);
    CHECK(door_type(context, block) == ZE_MEMORY_TYPE_HOST);
    CHECK(door.mem.pfnFree(context, block) == ZE_RESULT_SUCCESS);
    gh_deallocate(block);
    CHECK(door_type(context, &context) == ZE_MEMORY_TYPE_UNKNOWN); // lets the retired region go
    block = allocate_region(large_bytes, &new_id);
    CHECK(new_id == old_id);
    for (size_t at = 0; at < large_bytes; at += 1 << 20)
        CHECK(door_type(context, block + at) == ZE_MEMORY_TYPE_UNKNOWN);
    CHECK(door_wrap(context, block + large_bytes - PAGE, PAGE) == ZE_RESULT_SUCCESS);
    CHECK(door_type(context, block + large_bytes - 1) == ZE_MEMORY_TYPE_HOST);
    CHECK(door.mem.pfnFree(context, block + large_bytes - PAGE) == ZE_RESULT_SUCCESS);
    CHECK(door_type(context, block + large_bytes - 1) == ZE_MEMORY_TYPE_UNKNOWN);
    gh_deallocate(block);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    door_open(argv[1]);
    if (strcmp(argv[2], "hide") == 0)
        hide();
    else
        contexts();
    printf("ok\n");
    return 0;
}
