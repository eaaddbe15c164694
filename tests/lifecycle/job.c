// SPDX-License-Identifier: MIT
//
// An ordinary GPU program that is run under limits: the device copies into blocks of its heap, a
// static array and a mapping, in place. (No kernel: the simulated driver needs /proc to load one.)
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../demo/gpu.h"

#define SIZE ((size_t)300000)

static struct gpu gpu;
static uint8_t *source; // the device's, full of 4
static int filled;

static void try_memory(const char *what, uint8_t *memory) {
    struct gpu_wrap wrap;
    ze_result_t result = gpu_wrap(&gpu, memory, SIZE, &wrap);
    memset(memory, 4, SIZE);
    if (result == ZE_RESULT_SUCCESS && !filled)
        result = gpu_copy(&gpu, source, memory, SIZE);
    filled = 1;
    memset(memory, 3, SIZE);
    if (result == ZE_RESULT_SUCCESS)
        result = gpu_copy(&gpu, memory, source, SIZE);
    size_t right = 0;
    while (right < SIZE && memory[right] == 4)
        right++;
    if (result == ZE_RESULT_SUCCESS)
        result = gpu_unwrap(&gpu, wrap);
    printf("%s: 0x%x, %s\n", what, (unsigned)result, right == SIZE ? "changed in place" : "NOT CHANGED");
}

int main(void) {
    static _Alignas(4096) uint8_t own[SIZE + 4096];
    gpu_open(&gpu, "");
    source = gpu_device_memory(&gpu, SIZE);
    try_memory("a static array, for the device to read", own);
    for (int i = 0; i < 50; i++) {
        uint8_t *block = aligned_alloc(4096, SIZE + 4096 - SIZE % 4096);
        try_memory("a block", block);
        free(block);
    }
    try_memory("a static array", own);
    uint8_t *mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    try_memory("a mapping", mapped);
    munmap(mapped, SIZE);
    gpu_close(&gpu);
    return 0;
}
