// SPDX-License-Identifier: MIT
//
// The parent's GPU (gpu_use.h).
#include "gpu_use.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../demo/gpu.h"

#define BLOCKS 16

static struct gpu gpu;
static ze_kernel_handle_t kernel;
static uint8_t *blocks[BLOCKS];
static struct gpu_wrap wraps[BLOCKS];
static unsigned rounds;

static size_t size_of(unsigned i) {
    return (size_t)100 + (size_t)i * i * 900;
}

void gpu_use_open(const char *kernels) {
    gpu_open(&gpu, kernels);
    kernel = gpu_kernel(&gpu, "add1_u8");
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = memset(malloc(size_of(i)), (int)i, size_of(i));
        if (gpu_wrap(&gpu, blocks[i], size_of(i), &wraps[i]) != ZE_RESULT_SUCCESS)
            abort();
    }
}

static int runs_on(uint8_t *block, size_t size, uint8_t expected) {
    if (gpu_run(&gpu, kernel, block, size) != ZE_RESULT_SUCCESS)
        return 0;
    size_t i = 0;
    while (i < size && block[i] == expected)
        i++;
    return i == size;
}

int gpu_use_is_right(void) {
    int right = 1;
    rounds++;
    for (unsigned i = 0; i < BLOCKS; i++)
        right &= runs_on(blocks[i], size_of(i), (uint8_t)(i + rounds));
    struct gpu_wrap wrap;
    size_t size = (size_t)200000 + (rounds * 7919) % 400000;
    uint8_t *fresh = memset(aligned_alloc(4096, (size + 4095) & ~(size_t)4095), 9, size);
    right &= gpu_wrap(&gpu, fresh, size, &wrap) == ZE_RESULT_SUCCESS && runs_on(fresh, size, 10) &&
             gpu_unwrap(&gpu, wrap) == ZE_RESULT_SUCCESS;
    free(fresh);
    return right;
}

void gpu_use_close(void) {
    for (unsigned i = 0; i < BLOCKS; i++) {
        gpu_unwrap(&gpu, wraps[i]);
        free(blocks[i]);
    }
    gpu_close(&gpu);
}
