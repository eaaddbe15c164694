// SPDX-License-Identifier: MIT
//
// The driver's own memory: its USM buffers must not lie in the heap (it maps them at the same GPU
// address, so a page would be mapped twice), and the heap must not live on in the driver after the
// process gave pages back: newer drivers keep a freed import for reuse, and would hand heap pages out as
// their own next time (debug key ExperimentalEnableHostAllocationCache brings that about here).
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const size_t buffer_bytes[] = {4096, 64 * 1024, 1 << 20, 8 << 20, 64 << 20};
enum { BUFFERS = sizeof buffer_bytes / sizeof buffer_bytes[0] };

static void check_plain(const char *kind, const void *address, size_t size_bytes) {
    CHECK(client_is_visible(address, 1) != 1 && client_is_visible(address, size_bytes) != 1,
          "a %s buffer of %zu bytes is not in a region", kind, size_bytes);
}

void own_buffers_check(const struct client *client, ze_context_handle_t context) {
    ze_host_mem_alloc_desc_t host_desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
    ze_device_mem_alloc_desc_t device_desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    void *buffers[BUFFERS][3] = {{NULL}};

    for (size_t i = 0; i < BUFFERS; i++) {
        size_t size_bytes = buffer_bytes[i];
        ze_result_t host = ze.zeMemAllocHost(context, &host_desc, size_bytes, 0, &buffers[i][0]);
        ze_result_t shared = ze.zeMemAllocShared(context, &device_desc, &host_desc, size_bytes, 0,
                                                 client->devices[0], &buffers[i][1]);
        ze_result_t device = ze.zeMemAllocDevice(context, &device_desc, size_bytes, 0, client->devices[0],
                                                 &buffers[i][2]);
        CHECK(host == ZE_RESULT_SUCCESS && shared == ZE_RESULT_SUCCESS && device == ZE_RESULT_SUCCESS,
              "plain buffers of %zu bytes: host 0x%x, shared 0x%x, device 0x%x", size_bytes, (unsigned)host,
              (unsigned)shared, (unsigned)device);
        memset(buffers[i][0], 0x11, size_bytes);
        check_plain("host", buffers[i][0], size_bytes);
        check_plain("shared", buffers[i][1], size_bytes);
        check_plain("device", buffers[i][2], size_bytes);
        CHECK(client_memory_type(context, buffers[i][0]) == ZE_MEMORY_TYPE_HOST, "host buffer is HOST");
        CHECK(client_memory_type(context, buffers[i][1]) == ZE_MEMORY_TYPE_SHARED, "shared is SHARED");
        CHECK(client_memory_type(context, buffers[i][2]) == ZE_MEMORY_TYPE_DEVICE, "device is DEVICE");
    }
    for (size_t i = 0; i < BUFFERS; i++) {
        for (size_t kind = 0; kind < 3; kind++) {
            ze_result_t result = ze.zeMemFree(context, buffers[i][kind]);
            CHECK(result == ZE_RESULT_SUCCESS, "free of a plain buffer, not 0x%x", (unsigned)result);
        }
    }
}

static bool is_mapped(void *address) {
    return msync((void *)((uintptr_t)address & ~(PAGE_BYTES - 1)), PAGE_BYTES, MS_ASYNC) == 0 ||
           errno != ENOMEM;
}

// Blocks big enough for regions of their own: used, freed, and waited for until their pages are gone.
// From then on the driver must not know them, and its next buffers must not be them.
void release_check(const struct client *client, ze_context_handle_t context) {
    enum { BLOCKS = 6, WAIT_MS = 3000 };
    static const size_t block_bytes = (size_t)48 << 20;
    unsigned char *blocks[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(block_bytes);
        if (blocks[i] == NULL) {
            abort();
        }
        memset(blocks[i], 1, block_bytes);
        CHECK(client_memory_type(context, blocks[i]) == ZE_MEMORY_TYPE_HOST, "a 48 MiB block is HOST");
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    size_t still_mapped = BLOCKS;
    for (int waited_ms = 0; waited_ms < WAIT_MS && still_mapped > 0; waited_ms += 20) {
        nanosleep(&(struct timespec){0, 20 * 1000 * 1000}, NULL);
        (void)client_memory_type(context, &blocks); // passes the door
        still_mapped = 0;
        for (size_t i = 0; i < BLOCKS; i++) {
            still_mapped += is_mapped(blocks[i]);
        }
    }
    CHECK(still_mapped == 0, "%zu of %d big free blocks are still mapped", still_mapped, BLOCKS);
    for (size_t i = 0; i < BLOCKS; i++) {
        if (!is_mapped(blocks[i])) {
            ze_memory_type_t type = client_memory_type(context, blocks[i]);
            CHECK(type == ZE_MEMORY_TYPE_UNKNOWN, "a block that was given back is unknown, not %d",
                  (int)type);
        }
    }
    // A kept import would be handed out as one of these, and crash or share pages with the heap.
    own_buffers_check(client, context);
}
