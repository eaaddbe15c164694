// SPDX-License-Identifier: MIT
//
// A child that uses the GPU after its parent did. Drivers do not support that; what each call
// answers must be what it answers without the library. Compared by ../abi/both.sh.
// Usage: gpu_child KERNELS
#include <level_zero/ze_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../demo/gpu.h"

static void use_gpu(struct gpu *gpu, void *block) {
    ze_context_desc_t context_desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
    ze_host_mem_alloc_desc_t host_desc = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
    ze_memory_allocation_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES };
    ze_context_handle_t context = NULL;
    void *memory = NULL;
    printf("child: zeInit %#x\n", (unsigned)zeInit(0));
    printf("child: zeContextCreate %#x\n", (unsigned)zeContextCreate(gpu->driver, &context_desc, &context));
    printf("child: zeMemAllocHost %#x\n", (unsigned)zeMemAllocHost(gpu->context, &host_desc, 4096, 4096, &memory));
    printf("child: zeMemGetAllocProperties %#x\n",
           (unsigned)zeMemGetAllocProperties(gpu->context, block, &properties, NULL));
    (void)zeMemFree(gpu->context, block); // without the library the driver answers, with it nobody asks the driver
    printf("child: zeMemFree came back\n");
    free(block);
    free(malloc(100000));
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    struct gpu gpu;
    setvbuf(stdout, NULL, _IOLBF, 0);
    gpu_open(&gpu, argv[1]);
    void *block = aligned_alloc(4096, 4096);
    struct gpu_wrap wrap;
    printf("parent: wrap %#x\n", (unsigned)gpu_wrap(&gpu, block, 4096, &wrap));
    fflush(stdout);
    pid_t process = fork();
    if (process == 0) {
        alarm(20);
        use_gpu(&gpu, block);
        exit(7); // with handlers: the child's may not reach the driver either
    }
    int status = -1;
    waitpid(process, &status, 0);
    printf("parent: child's status %d\n", status);
    printf("parent: unwrap %#x\n", (unsigned)gpu_unwrap(&gpu, wrap));
    gpu_close(&gpu);
    return 0;
}
