// SPDX-License-Identifier: MIT
//
// The few Level Zero steps that the demo needs: one device, one context, one
// synchronous command list, a kernel by name, and a wrap as oneAPI.jl makes it.
// An ordinary client: it knows nothing of libgpuhost. One thread.
#ifndef GH_DEMO_GPU_H
#define GH_DEMO_GPU_H

#include <level_zero/ze_api.h>
#include <stdbool.h>
#include <stddef.h>

struct gpu {
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    ze_command_list_handle_t list; // immediate and synchronous: a call returns when its work is done
    const char *kernels;           // folder with NAME.spv, or one native module with every kernel
    char name[ZE_MAX_DEVICE_NAME];
};

struct gpu_wrap {
    void *base; // page-aligned, covers the array
    size_t size;
};

// Takes the first GPU of the first driver that has one. Ends the program if there is none.
void gpu_open(struct gpu *gpu, const char *kernels);
void gpu_close(struct gpu *gpu);

// Rounds [array, array + size) out to pages, imports them and makes them resident.
// Answers what the driver answered; *out is written on success only.
ze_result_t gpu_wrap(struct gpu *gpu, void *array, size_t size, struct gpu_wrap *out);
ze_result_t gpu_unwrap(struct gpu *gpu, struct gpu_wrap wrap);

ze_kernel_handle_t gpu_kernel(struct gpu *gpu, const char *name);
// Runs the kernel with one work item for each of the items, on what pointer points at.
ze_result_t gpu_run(struct gpu *gpu, ze_kernel_handle_t kernel, void *pointer, size_t items);
void *gpu_device_memory(struct gpu *gpu, size_t size);
ze_result_t gpu_copy(struct gpu *gpu, void *to, const void *from, size_t size);

#endif
