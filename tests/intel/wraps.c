// SPDX-License-Identifier: MIT
//
// Wraps of malloc'ed memory: the seed's table, overlapping ranges of one block, and the guarantee that
// freeing a wrap (or something that is none) never takes the heap around it away from the GPU.
#include "client.h"

#include <stdlib.h>
#include <string.h>

struct wrap wrap_pages(const void *address, size_t size_bytes) {
    uintptr_t first = (uintptr_t)address & ~(PAGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)address + size_bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
    // Through an integer on purpose: a wrap may begin before the block that it is for.
    return (struct wrap){(void *)first, end - first};
}

ze_result_t wrap_create(ze_context_handle_t context, const struct wrap *wrap) {
    struct ze_dl_memmap_desc memmap = {ZE_DL_STYPE_MEMMAP_SYSMEM, NULL, wrap->address, wrap->size_bytes};
    ze_host_mem_alloc_desc_t desc = {
        .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC,
        .pNext = &memmap,
    };
    void *result = NULL;
    ze_result_t error = ze.zeMemAllocHost(context, &desc, wrap->size_bytes, PAGE_BYTES, &result);
    if (error == ZE_RESULT_SUCCESS) {
        CHECK(result == wrap->address, "a wrap of %p answers its own address, not %p", wrap->address, result);
    }
    return error;
}

// Wraps every block of the table, as oneAPI.jl does: import, make resident. Then frees all wraps, or
// leaves them to the context's end.
void wraps_check_table(const struct client *client, ze_context_handle_t context,
                       const struct block_set *set, bool keep) {
    for (size_t i = 0; i < set->count; i++) {
        struct wrap wrap = wrap_pages(set->blocks[i].address, set->blocks[i].size_bytes);
        ze_result_t result = wrap_create(context, &wrap);
        CHECK(result == ZE_RESULT_SUCCESS, "wrap of %zu bytes, not 0x%x", set->blocks[i].size_bytes,
              (unsigned)result);
        // Without hardware the driver has nothing to make resident and says UNINITIALIZED.
        result = ze.zeContextMakeMemoryResident(context, client->devices[0], wrap.address, wrap.size_bytes);
        CHECK(result == ZE_RESULT_SUCCESS || result == ZE_RESULT_ERROR_UNINITIALIZED,
              "wrap of %zu bytes made resident, not 0x%x", set->blocks[i].size_bytes, (unsigned)result);
        void *base = NULL;
        size_t size_bytes = 0;
        result = ze.zeMemGetAddressRange(context, wrap.address, &base, &size_bytes);
        CHECK(result == ZE_RESULT_SUCCESS && (uintptr_t)base <= (uintptr_t)wrap.address &&
                  (uintptr_t)base + size_bytes >= (uintptr_t)wrap.address + wrap.size_bytes,
              "the address range holds the wrap of %zu bytes (0x%x)", set->blocks[i].size_bytes,
              (unsigned)result);
    }
    if (keep) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        struct wrap wrap = wrap_pages(set->blocks[i].address, set->blocks[i].size_bytes);
        ze_result_t result = ze.zeMemFree(context, wrap.address);
        CHECK(result == ZE_RESULT_SUCCESS, "free of a wrap of %zu bytes, not 0x%x",
              set->blocks[i].size_bytes, (unsigned)result);
    }
}

// Pages [0,2) and [1,3) of one block: the bare driver aborts the process on the second. Then a wrap
// around both, one inside, and frees in an order that is neither first nor last in, first out.
void wraps_check_overlaps(ze_context_handle_t context) {
    enum { PAGES = 8 };
    unsigned char *block = malloc(PAGES * PAGE_BYTES);
    if (block == NULL) {
        abort();
    }
    memset(block, 7, PAGES * PAGE_BYTES);
    static const struct {
        size_t first_page;
        size_t pages;
    } ranges[] = {{0, 2}, {1, 2}, {0, 5}, {2, 1}, {3, 4}, {0, 2}};
    static const size_t free_order[] = {2, 0, 4, 1, 5, 3};
    enum { RANGES = sizeof ranges / sizeof ranges[0] };

    struct wrap wraps[RANGES];
    for (size_t i = 0; i < RANGES; i++) {
        wraps[i] = wrap_pages(block + ranges[i].first_page * PAGE_BYTES, ranges[i].pages * PAGE_BYTES);
        ze_result_t result = wrap_create(context, &wraps[i]);
        CHECK(result == ZE_RESULT_SUCCESS, "overlapping wrap %zu, not 0x%x", i, (unsigned)result);
    }
    for (size_t i = 0; i < RANGES; i++) {
        ze_result_t result = ze.zeMemFree(context, wraps[free_order[i]].address);
        CHECK(result == ZE_RESULT_SUCCESS, "free of overlapping wrap %zu, not 0x%x", free_order[i],
              (unsigned)result);
        for (size_t page = 0; page < PAGES; page++) {
            ze_memory_type_t type = client_memory_type(context, block + page * PAGE_BYTES);
            CHECK(type == ZE_MEMORY_TYPE_HOST, "page %zu stays HOST after free %zu, not %d", page, i,
                  (int)type);
        }
    }
    free(block);
}

// A pointer into the heap that is no wrap: the bare driver would release the whole import around it.
void wraps_check_foreign_free(ze_context_handle_t context) {
    unsigned char *block = malloc(1 << 20);
    if (block == NULL) {
        abort();
    }
    memset(block, 7, 1 << 20);
    ze_result_t result = ze.zeMemFree(context, block + (1 << 19) + 64);
    CHECK(result == ZE_RESULT_ERROR_INVALID_ARGUMENT, "zeMemFree into the heap is refused, not 0x%x",
          (unsigned)result);
    ze_memory_type_t type = client_memory_type(context, block);
    CHECK(type == ZE_MEMORY_TYPE_HOST, "the heap stays HOST after it, not %d", (int)type);
    free(block);
}
