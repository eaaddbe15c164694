// SPDX-License-Identifier: MIT
//
// Kernels for the simulated driver, built as a shared object and given to zeModuleCreate as a
// native module. Each runs the global work-items [begin, end); args[i] points at argument i. May
// run on several threads at once; knows neither the driver nor libgpuhost.
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL __attribute__((visibility("default")))
#define ARG(type, i) (*(type *)args[i])
// Declares a kernel with what the driver may know of it: sizes of the arguments, and which are pointers.
#define DECLARE(name, pointers, ...)                               \
    extern KERNEL const unsigned name##_arg_sizes[];               \
    KERNEL const unsigned name##_arg_sizes[] = {__VA_ARGS__, 0};   \
    extern KERNEL const unsigned name##_pointer_args;              \
    KERNEL const unsigned name##_pointer_args = (pointers);        \
    KERNEL void name(size_t begin, size_t end, void **args)

extern KERNEL const char *const ghsim_kernel_names[];
KERNEL const char *const ghsim_kernel_names[] = {"sin2", "add1_u8", "add1_u32", "fill_u8", "sum_u64", "copy_u8", NULL};

DECLARE(sin2, 1u, sizeof(float *));
DECLARE(add1_u8, 1u, sizeof(uint8_t *));
DECLARE(add1_u32, 1u, sizeof(uint32_t *));
DECLARE(fill_u8, 1u, sizeof(uint8_t *), sizeof(uint8_t));
DECLARE(sum_u64, 5u, sizeof(uint8_t *), sizeof(uint64_t), sizeof(uint64_t *));
DECLARE(copy_u8, 3u, sizeof(uint8_t *), sizeof(uint8_t *));

void sin2(size_t begin, size_t end, void **args)
{
    float *a = ARG(float *, 0);
    for (size_t i = begin; i < end; i++) a[i] = sinf(a[i]) * 2.0f;
}

void add1_u8(size_t begin, size_t end, void **args)
{
    uint8_t *p = ARG(uint8_t *, 0);
    for (size_t i = begin; i < end; i++) p[i]++;
}

void add1_u32(size_t begin, size_t end, void **args)
{
    uint32_t *p = ARG(uint32_t *, 0);
    for (size_t i = begin; i < end; i++) p[i]++;
}

void fill_u8(size_t begin, size_t end, void **args)
{
    uint8_t *p = ARG(uint8_t *, 0);
    const uint8_t value = ARG(uint8_t, 1);
    for (size_t i = begin; i < end; i++) p[i] = value;
}

// *out += sum of p[0..n): work-items beyond n add nothing.
void sum_u64(size_t begin, size_t end, void **args)
{
    const uint8_t *p = ARG(const uint8_t *, 0);
    const uint64_t n = ARG(uint64_t, 1);
    uint64_t *out = ARG(uint64_t *, 2), sum = 0;
    for (size_t i = begin; i < end && i < n; i++) sum += p[i];
    __atomic_fetch_add(out, sum, __ATOMIC_RELAXED);
}

// to[i] = from[i]; arguments (to, from).
void copy_u8(size_t begin, size_t end, void **args)
{
    uint8_t *to = ARG(uint8_t *, 0);
    const uint8_t *from = ARG(const uint8_t *, 1);
    for (size_t i = begin; i < end; i++) to[i] = from[i];
}
