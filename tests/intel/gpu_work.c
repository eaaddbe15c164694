// SPDX-License-Identifier: MIT
//
// Real commands on malloc'ed memory, for every device: fills and copies in a closed list, the same in an
// immediate list, and kernels compiled from SPIR-V by the real compiler. Without hardware commands are
// discarded after they were built, so what is checked is that the driver accepts them: a fill of memory
// that it does not know is refused (work_check_refused shows that on the bare driver).
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SPIRV_BYTES = 1 << 16 };

static void expect_success(ze_result_t result, const char *what, size_t size_bytes) {
    CHECK(result == ZE_RESULT_SUCCESS, "%s of %zu bytes, not 0x%x", what, size_bytes, (unsigned)result);
}

static ze_command_list_handle_t new_list(ze_context_handle_t context, ze_device_handle_t device) {
    ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    ze_command_list_handle_t list = NULL;
    expect_success(ze.zeCommandListCreate(context, device, &desc, &list), "command list", 0);
    return list;
}

static ze_command_queue_desc_t queue_desc(void) {
    return (ze_command_queue_desc_t){
        .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
        .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS,
    };
}

static void execute(ze_context_handle_t context, ze_device_handle_t device, ze_command_list_handle_t list) {
    ze_command_queue_desc_t desc = queue_desc();
    ze_command_queue_handle_t queue = NULL;
    expect_success(ze.zeCommandQueueCreate(context, device, &desc, &queue), "command queue", 0);
    expect_success(ze.zeCommandListClose(list), "close", 0);
    expect_success(ze.zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL), "execute", 0);
    expect_success(ze.zeCommandQueueSynchronize(queue, UINT64_MAX), "synchronize", 0);
    expect_success(ze.zeCommandQueueDestroy(queue), "queue destroy", 0);
}

static void append_fill(ze_command_list_handle_t list, void *target, size_t size_bytes) {
    const unsigned char pattern = 0x5a;
    expect_success(
        ze.zeCommandListAppendMemoryFill(list, target, &pattern, 1, size_bytes, NULL, 0, NULL), "fill",
        size_bytes);
}

static void append_copy(ze_command_list_handle_t list, void *target, const void *source, size_t size_bytes) {
    expect_success(ze.zeCommandListAppendMemoryCopy(list, target, source, size_bytes, NULL, 0, NULL), "copy",
                   size_bytes);
}

// Every 10th block, and its neighbour as the copy's target: each size of the table comes up.
static void fill_and_copy(ze_command_list_handle_t list, const struct block_set *set) {
    for (size_t i = 0; i + 1 < set->count; i += 10) {
        const struct block *block = &set->blocks[i];
        append_fill(list, block->address, block->size_bytes);
        append_fill(list, block->address + block->size_bytes - 1, 1);
        append_copy(list, set->blocks[i + 1].address, block->address, block->size_bytes);
    }
}

static void check_lists(ze_context_handle_t context, ze_device_handle_t device, const struct block_set *set) {
    ze_command_list_handle_t list = new_list(context, device);
    fill_and_copy(list, set);

    ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    const struct block *last = &set->blocks[set->count - 1];
    void *device_memory = NULL;
    expect_success(ze.zeMemAllocDevice(context, &desc, last->size_bytes, 0, device, &device_memory),
                   "device memory", last->size_bytes);
    append_copy(list, device_memory, last->address, last->size_bytes);
    append_copy(list, last->address, device_memory, last->size_bytes);
    execute(context, device, list);
    expect_success(ze.zeCommandListDestroy(list), "list destroy", 0);
    expect_success(ze.zeMemFree(context, device_memory), "device memory free", 0);

    ze_command_queue_desc_t immediate_desc = queue_desc();
    ze_command_list_handle_t immediate = NULL;
    expect_success(ze.zeCommandListCreateImmediate(context, device, &immediate_desc, &immediate),
                   "immediate list", 0);
    fill_and_copy(immediate, set);
    expect_success(ze.zeCommandListDestroy(immediate), "immediate list destroy", 0);
}

static void check_kernel(const struct client *client, ze_context_handle_t context, ze_device_handle_t device,
                         const char *name, const struct block_set *set) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.spv", client->kernel_dir, name);
    FILE *file = fopen(path, "rb");
    if (!CHECK(file != NULL, "%s can be read", path)) {
        return;
    }
    uint8_t *spirv = malloc(MAX_SPIRV_BYTES);
    size_t spirv_bytes = spirv == NULL ? 0 : fread(spirv, 1, MAX_SPIRV_BYTES, file);
    fclose(file);

    ze_module_desc_t module_desc = {
        .stype = ZE_STRUCTURE_TYPE_MODULE_DESC,
        .format = ZE_MODULE_FORMAT_IL_SPIRV,
        .inputSize = spirv_bytes,
        .pInputModule = spirv,
    };
    ze_module_handle_t module = NULL;
    ze_result_t result = ze.zeModuleCreate(context, device, &module_desc, &module, NULL);
    free(spirv);
    if (!CHECK(result == ZE_RESULT_SUCCESS, "module %s compiles, not 0x%x", name, (unsigned)result)) {
        return;
    }
    ze_kernel_desc_t kernel_desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = name};
    ze_kernel_handle_t kernel = NULL;
    result = ze.zeKernelCreate(module, &kernel_desc, &kernel);
    if (!CHECK(result == ZE_RESULT_SUCCESS, "kernel %s is in its module, not 0x%x", name, (unsigned)result)) {
        return;
    }
    expect_success(ze.zeKernelSetGroupSize(kernel, 1, 1, 1), "group size", 0);

    ze_command_list_handle_t list = new_list(context, device);
    for (size_t i = 0; i < set->count; i += 10) {
        void *argument = set->blocks[i].address;
        expect_success(ze.zeKernelSetArgumentValue(kernel, 0, sizeof argument, &argument), "kernel argument",
                       set->blocks[i].size_bytes);
        // Both kernels' elements are at most 4 bytes, the smallest block has 16.
        ze_group_count_t groups = {4, 1, 1};
        expect_success(ze.zeCommandListAppendLaunchKernel(list, kernel, &groups, NULL, 0, NULL), "launch",
                       set->blocks[i].size_bytes);
    }
    execute(context, device, list);
    expect_success(ze.zeCommandListDestroy(list), "list destroy", 0);
    expect_success(ze.zeKernelDestroy(kernel), "kernel destroy", 0);
    expect_success(ze.zeModuleDestroy(module), "module destroy", 0);
}

void work_check(const struct client *client, ze_context_handle_t context, const struct block_set *set) {
    for (uint32_t i = 0; i < client->device_count; i++) {
        check_lists(context, client->devices[i], set);
        if (client->kernel_dir != NULL) {
            check_kernel(client, context, client->devices[i], "sin2", set);
            check_kernel(client, context, client->devices[i], "add1_u8", set);
        }
    }
}

void work_check_refused(const struct client *client, ze_context_handle_t context) {
    const unsigned char pattern = 0x5a;
    unsigned char *block = malloc(1 << 16);
    if (block == NULL) {
        abort();
    }
    memset(block, 7, 1 << 16);
    ze_command_list_handle_t list = new_list(context, client->devices[0]);
    ze_result_t result = ze.zeCommandListAppendMemoryFill(list, block, &pattern, 1, 64, NULL, 0, NULL);
    CHECK(result == ZE_RESULT_ERROR_INVALID_ARGUMENT, "a fill of unknown memory is refused, not 0x%x",
          (unsigned)result);
    expect_success(ze.zeCommandListDestroy(list), "list destroy", 0);
    free(block);
}
