// SPDX-License-Identifier: MIT
//
// Fork while a GPU has the heap: the child reads and writes everything, frees and allocates, makes
// no driver call (the simulated driver aborts it if it does) and can give its pages back. The
// parent's bytes, and what a kernel sees of them, stay the parent's.
// Run with the simulated driver, GHSIM_CHILD=abort and GPUHOST_DECAY_MS=0.
// Usage: gpu_parent KERNELS
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../demo/gpu.h"
#include "../sim/ghsim.h"

#define BLOCKS 1000

static uint8_t *blocks[BLOCKS];
static struct gpu_wrap wraps[BLOCKS];

static size_t size_of(int i) {
    return (size_t)1000 + (size_t)(i % 50) * 3000;
}

static uint8_t byte_of(int i) {
    return (uint8_t)(i * 31 + 7);
}

static size_t resident_kib(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*s %zu", &pages) != 1)
        abort();
    fclose(file);
    return pages * 4;
}

static int count_wrong(int added) {
    int wrong = 0;
    for (int i = 0; i < BLOCKS; i++) {
        uint8_t expected = (uint8_t)(byte_of(i) + added);
        for (size_t at = 0; at < size_of(i); at++) {
            if (blocks[i][at] != expected) {
                wrong++;
                break;
            }
        }
    }
    return wrong;
}

static int child(int round) {
    alarm(60);
    int wrong = count_wrong(round);
    for (int i = 0; i < BLOCKS; i++)
        memset(blocks[i], 0xee, size_of(i));
    void *large = memset(malloc((size_t)64 << 20), 1, (size_t)64 << 20);
    size_t full = resident_kib();
    free(large);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    size_t after = resident_kib();
    for (size_t size = 1; size < (size_t)16 << 20; size = size * 3 / 2 + 1)
        free(memset(malloc(size), 2, size));
    // 73 MB were touched here, most of them in pages that an import pins in the parent only.
    int purged = after + 100000 < full;
    printf("child: %d blocks differ, %s\n", wrong, purged ? "memory goes back" : "MEMORY STAYS");
    if (!purged)
        printf("child: %zu KiB, then %zu KiB\n", full, after);
    fflush(stdout);
    return wrong != 0 || !purged;
}

static int fork_once(int round) {
    pid_t process = fork();
    if (process == 0)
        _exit(child(round));
    int status = -1;
    waitpid(process, &status, 0);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    struct gpu gpu;
    void (*get_stats)(struct ghsim_stats *) = NULL;
    uint64_t (*check_pages)(void) = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    gpu_open(&gpu, argv[1]);
    const char *driver = getenv("ZE_ENABLE_ALT_DRIVERS");
    void *sim = driver == NULL ? NULL : dlopen(driver, RTLD_NOW | RTLD_NOLOAD);
    if (sim != NULL) {
        get_stats = (void (*)(struct ghsim_stats *))dlsym(sim, "ghsim_stats");
        check_pages = (uint64_t(*)(void))dlsym(sim, "ghsim_check_pages");
    }
    if (get_stats == NULL || check_pages == NULL)
        return 3;
    void *large = malloc((size_t)64 << 20); // the child takes a block like it out of imported memory
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = memset(malloc(size_of(i)), byte_of(i), size_of(i));
        if (gpu_wrap(&gpu, blocks[i], size_of(i), &wraps[i]) != ZE_RESULT_SUCCESS)
            return 4;
    }
    free(large);
    ze_kernel_handle_t kernel = gpu_kernel(&gpu, "add1_u8");
    int failed = 0;
    for (int round = 0; round < 3; round++) {
        int status = fork_once(round);
        int wrong = count_wrong(round);
        for (int i = 0; i < BLOCKS; i++)
            if (gpu_run(&gpu, kernel, blocks[i], size_of(i)) != ZE_RESULT_SUCCESS)
                return 5;
        int unseen = count_wrong(round + 1);
        printf("round %d: child's status %d, %d blocks differ, %d blocks not as the kernel left them\n", round, status,
               wrong, unseen);
        failed += status != 0 || wrong != 0 || unseen != 0;
    }
    struct ghsim_stats stats;
    get_stats(&stats);
    uint64_t moved = check_pages();
    printf("imports with moved pages %d, violations %d, launches %d\n", (int)moved, (int)stats.violations,
           stats.launches >= 3 * BLOCKS);
    failed += moved != 0 || stats.violations != 0;
    for (int i = 0; i < BLOCKS; i++) {
        gpu_unwrap(&gpu, wraps[i]);
        free(blocks[i]);
    }
    gpu_close(&gpu);
    return failed != 0;
}
