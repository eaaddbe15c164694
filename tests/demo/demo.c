// SPDX-License-Identifier: MIT
//
// The main job as an ordinary program would do it: malloc arrays back to back,
// wrap each for the GPU, run a kernel on each in place, look at the result.
//     demo case KERNELS SIZE COUNT     one row of the table
//     demo broadcast KERNELS FLOATS in_place|copies|cpu    one time of a = sin(a) * 2
// Knows nothing of libgpuhost: whether the wraps succeed is what it shows.
// One thread. Exit status: 0 done (the counts tell how well), 3 no GPU, 4 a wrong result.
#include "gpu.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t wraps_so_far;

// Drivers abort on overlapping imports: say how far it came, then die of it.
static void on_abort(int number)
{
    char text[64];
    int digits = wraps_so_far, at = 40;
    const char head[] = "ABORT after_wraps ";
    text[at] = '\n';
    do text[--at] = (char)('0' + digits % 10);
    while ((digits /= 10) > 0);
    (void)!write(1, head, sizeof head - 1);
    (void)!write(1, text + at, (size_t)(41 - at));
    signal(number, SIG_DFL);
    raise(number);
}

static unsigned char pattern(size_t array, size_t byte)
{
    return (unsigned char)(array * 31 + byte * 7 + byte / 251);
}

// Is array i what it must be after the kernel ran on it `times` times?
static bool is_right(const unsigned char *array, size_t i, size_t size, unsigned times)
{
    for (size_t k = 0; k < size; k++)
        if (array[k] != (unsigned char)(pattern(i, k) + times)) return false;
    return true;
}

static int run_case(const char *kernels, size_t size, size_t count)
{
    unsigned char **arrays = calloc(count, sizeof *arrays);
    struct gpu_wrap *wraps = calloc(count, sizeof *wraps);
    bool *wrapped = calloc(count, sizeof *wrapped), *wrong = calloc(count, sizeof *wrong);
    if (!arrays || !wraps || !wrapped || !wrong) return 3;
    for (size_t i = 0; i < count; i++) {
        arrays[i] = malloc(size);
        if (!arrays[i]) return 3;
        for (size_t k = 0; k < size; k++) arrays[i][k] = pattern(i, k);
    }

    struct gpu gpu;
    gpu_open(&gpu, kernels);
    printf("DEVICE %s\n", gpu.name);
    fflush(stdout);
    const ze_kernel_handle_t add1 = gpu_kernel(&gpu, "add1_u8");
    ze_result_t first_error = ZE_RESULT_SUCCESS;
    size_t wrapped_count = 0;
    for (size_t i = 0; i < count; i++) { // all wraps of a size live together
        const ze_result_t result = gpu_wrap(&gpu, arrays[i], size, &wraps[i]);
        wrapped[i] = result == ZE_RESULT_SUCCESS;
        wrapped_count += wrapped[i];
        wraps_so_far = (int)wrapped_count;
        if (!wrapped[i] && first_error == ZE_RESULT_SUCCESS) first_error = result;
    }
    // Every second array first: their neighbours must stay as they are.
    for (size_t odd = 0; odd < 2; odd++) {
        for (size_t i = odd; i < count; i += 2)
            if (wrapped[i] && gpu_run(&gpu, add1, arrays[i], size) != ZE_RESULT_SUCCESS) wrong[i] = true;
        for (size_t i = 0; i < count; i++) {
            const unsigned times = wrapped[i] && i % 2 <= odd && !wrong[i];
            if (!is_right(arrays[i], i, size, times)) wrong[i] = true;
        }
    }
    size_t right_count = 0, unwrapped_count = 0;
    for (size_t i = 0; i < count; i++) {
        right_count += wrapped[i] && !wrong[i];
        if (wrapped[i]) unwrapped_count += gpu_unwrap(&gpu, wraps[i]) == ZE_RESULT_SUCCESS;
    }
    // Releasing the wraps must not have touched the heap.
    bool intact = true;
    for (size_t i = 0; i < count; i++) {
        intact = intact && (wrong[i] || is_right(arrays[i], i, size, wrapped[i]));
        memset(arrays[i], 0, size);
        free(arrays[i]);
    }
    printf("CASE size %zu count %zu wrapped %zu right %zu unwrapped %zu first_error 0x%x\n", size, count, wrapped_count,
           right_count, unwrapped_count, (unsigned)first_error);
    gpu_close(&gpu);
    return intact && right_count == wrapped_count && unwrapped_count == wrapped_count ? 0 : 4;
}

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static float start_value(size_t i)
{
    return (float)(i % 6283u) * 1e-3f;
}

static void fill(float *a, size_t n)
{
    for (size_t i = 0; i < n; i++) a[i] = start_value(i);
}

static bool is_broadcast(const float *a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - sinf(start_value(i)) * 2.0f) <= 1e-5f)) {
            fprintf(stderr, "demo: element %zu is %g, not %g\n", i, (double)a[i], (double)(sinf(start_value(i)) * 2.0f));
            return false;
        }
    return true;
}

enum { RUNS = 3 }; // the median of so many is the time

static double median(double *t)
{
    for (int i = 1; i < RUNS; i++)
        for (int k = i; k > 0 && t[k] < t[k - 1]; k--) {
            const double swap = t[k];
            t[k] = t[k - 1];
            t[k - 1] = swap;
        }
    return t[RUNS / 2];
}

// One step of a = sin(a) * 2, timed by the caller. Answers false when the GPU refused.
static bool step(struct gpu *gpu, const char *mode, ze_kernel_handle_t sin2, float *a, void *device, size_t n)
{
    if (strcmp(mode, "cpu") == 0) {
        for (size_t i = 0; i < n; i++) a[i] = sinf(a[i]) * 2.0f;
        return true;
    }
    if (strcmp(mode, "in_place") == 0) return gpu_run(gpu, sin2, a, n) == ZE_RESULT_SUCCESS;
    return gpu_copy(gpu, device, a, n * sizeof *a) == ZE_RESULT_SUCCESS &&
           gpu_run(gpu, sin2, device, n) == ZE_RESULT_SUCCESS &&
           gpu_copy(gpu, a, device, n * sizeof *a) == ZE_RESULT_SUCCESS;
}

static int run_broadcast(const char *kernels, size_t n, const char *mode)
{
    const bool in_place = strcmp(mode, "in_place") == 0, copies = strcmp(mode, "copies") == 0;
    if (!in_place && !copies && strcmp(mode, "cpu") != 0) return 2;
    float *a = malloc(n * sizeof *a);
    if (!a) return 3;
    struct gpu gpu;
    gpu_open(&gpu, kernels);
    printf("DEVICE %s\n", gpu.name);
    const ze_kernel_handle_t sin2 = gpu_kernel(&gpu, "sin2");
    void *device = copies ? gpu_device_memory(&gpu, n * sizeof *a) : NULL;
    struct gpu_wrap wrap;
    if (in_place) {
        const double start = now_ms();
        const ze_result_t result = gpu_wrap(&gpu, a, n * sizeof *a, &wrap);
        printf("WRAP %.4f\n", now_ms() - start);
        if (result != ZE_RESULT_SUCCESS) {
            fprintf(stderr, "demo: the array cannot be wrapped: error 0x%x\n", (unsigned)result);
            return 4;
        }
    }
    bool right = true;
    double times[RUNS];
    for (int run = 0; run < RUNS; run++) {
        fill(a, n);
        const double start = now_ms();
        right = step(&gpu, mode, sin2, a, device, n) && right;
        times[run] = now_ms() - start;
        right = right && is_broadcast(a, n);
    }
    if (in_place) right = gpu_unwrap(&gpu, wrap) == ZE_RESULT_SUCCESS && is_broadcast(a, n) && right;
    if (copies) zeMemFree(gpu.context, device);
    free(a);
    gpu_close(&gpu);
    printf("TIME %.2f\n", median(times));
    return right ? 0 : 4;
}

int main(int argc, char **argv)
{
    signal(SIGABRT, on_abort);
    if (argc == 5 && strcmp(argv[1], "case") == 0)
        return run_case(argv[2], strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10));
    if (argc == 5 && strcmp(argv[1], "broadcast") == 0)
        return run_broadcast(argv[2], strtoul(argv[3], NULL, 10), argv[4]);
    fprintf(stderr, "usage: demo case KERNELS SIZE COUNT | demo broadcast KERNELS FLOATS in_place|copies|cpu\n");
    return 2;
}
