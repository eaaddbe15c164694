// SPDX-License-Identifier: MIT
//
// A GPU client as a library of its own, which brings the Level Zero loader with it and takes it
// away again. One thread.
#include "client.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../demo/gpu.h"

#define BLOCKS 12
#define SIZE(i) ((size_t)500 + (size_t)(i) * 21000)

static struct gpu gpu;
static uint8_t *blocks[BLOCKS];
static struct gpu_wrap wraps[BLOCKS];
static uint8_t own[40000]; // of this library: gone with it

// It goes with the library, or at exit; the heap must still work then.
__attribute__((destructor)) static void leave(void) {
    free(memset(malloc(70000), 1, 70000));
}

int client_open(const char *kernels) {
    gpu_open(&gpu, kernels);
    ze_kernel_handle_t kernel = gpu_kernel(&gpu, "add1_u8");
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = memset(malloc(SIZE(i)), i, SIZE(i));
        if (gpu_wrap(&gpu, blocks[i], SIZE(i), &wraps[i]) != ZE_RESULT_SUCCESS ||
            gpu_run(&gpu, kernel, blocks[i], SIZE(i)) != ZE_RESULT_SUCCESS)
            return 0;
        for (size_t at = 0; at < SIZE(i); at++)
            if (blocks[i][at] != (uint8_t)(i + 1))
                return 0;
    }
    struct gpu_wrap wrap;
    return gpu_wrap(&gpu, own, sizeof(own), &wrap) == ZE_RESULT_SUCCESS && gpu_unwrap(&gpu, wrap) == ZE_RESULT_SUCCESS;
}

void client_close(void) {
    for (int i = 0; i < BLOCKS; i++) {
        gpu_unwrap(&gpu, wraps[i]);
        free(blocks[i]);
    }
    gpu_close(&gpu);
}
