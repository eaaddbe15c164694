// SPDX-License-Identifier: MIT
//
// A program that may open no file any more (RLIMIT_NOFILE 3: a limit that ld.so does not survive,
// so it is set once the program runs): its heap, threads and fork, and with KERNELS a GPU whose
// context comes when nothing can be read any more (a build WITH_GPU). Usage: few_files
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef WITH_GPU
#include "../demo/gpu.h"

static struct gpu gpu;

static void start_driver(void) {
    uint32_t count = 1;
    ze_driver_handle_t driver;
    if (zeInit(0) != ZE_RESULT_SUCCESS || zeDriverGet(&count, &driver) != ZE_RESULT_SUCCESS)
        abort();
}

// A kernel comes from a file; a copy in place does not.
static int gpu_is_right(void) {
    enum { SIZE = 100000 };
    static char from_static[SIZE];
    char *to = memset(aligned_alloc(4096, 102400), 1, SIZE);
    struct gpu_wrap wraps[2];
    memset(from_static, 7, SIZE);
    int right = gpu_wrap(&gpu, to, SIZE, &wraps[0]) == ZE_RESULT_SUCCESS &&
                gpu_wrap(&gpu, from_static, SIZE, &wraps[1]) == ZE_RESULT_SUCCESS &&
                gpu_copy(&gpu, to, from_static, SIZE) == ZE_RESULT_SUCCESS && memcmp(to, from_static, SIZE) == 0 &&
                gpu_unwrap(&gpu, wraps[0]) == ZE_RESULT_SUCCESS && gpu_unwrap(&gpu, wraps[1]) == ZE_RESULT_SUCCESS;
    free(to);
    return right;
}
#endif

static void *use_heap(void *argument) {
    for (size_t size = 1; size < 20000000; size = size * 2 + 1) {
        char *block = malloc(size);
        block[size - 1] = 1;
        free(realloc(block, size + size / 2));
    }
    return argument;
}

static void close_files(void) {
    struct rlimit limit = { 3, 3 };
    setrlimit(RLIMIT_NOFILE, &limit);
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
#ifdef WITH_GPU
    start_driver();
#endif
    close_files();
#ifdef WITH_GPU
    gpu_open(&gpu, "");
#endif
    printf("open: %s\n", open("/dev/null", O_RDONLY) == -1 && errno == EMFILE ? "refused" : "NOT REFUSED");
    use_heap(NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, use_heap, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        use_heap(NULL);
        _exit(5);
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf("child's status %d\n", status);
#ifdef WITH_GPU
    printf("the GPU is %s\n", gpu_is_right() ? "right" : "WRONG");
    gpu_close(&gpu);
#endif
    return 0;
}
