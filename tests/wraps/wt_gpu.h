// SPDX-License-Identifier: MIT
//
// The Level Zero client of the wrap tests: every driver that the loader offers, two contexts on
// each, wraps as oneAPI.jl makes them. An ordinary client: whether libgpuhost stands behind it is
// not its business. Opened by one thread; a queue belongs to the thread that opened it.
//
// wt_direct.c gives the same ze functions without a loader, for the build under TSan.
#ifndef GPUHOST_TESTS_WRAPS_WT_GPU_H
#define GPUHOST_TESTS_WRAPS_WT_GPU_H

#include <level_zero/ze_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../sim/ghsim.h"

#define WT_PAGE ((size_t)4096)
#define WT_UNITS_MAX 8u

struct wt_unit { // one context
    ze_driver_handle_t driver;
    ze_device_handle_t device;
    ze_context_handle_t context;
    ze_module_handle_t module; // NULL: this driver runs no kernels of ours
    unsigned driver_index;
};

struct wt_queue {
    const struct wt_unit *unit;
    ze_command_list_handle_t list; // immediate, synchronous
    ze_kernel_handle_t add1;
    ze_kernel_handle_t copy;
};

extern struct wt_unit wt_units[WT_UNITS_MAX];
extern unsigned wt_unit_count;
extern unsigned wt_driver_count;

// `kernels`: the simulated driver's module, a folder with NAME.spv, or NULL for none. Ends the
// process with a line when there is no driver.
void wt_open(const char *kernels, unsigned contexts_of_each_driver);
void wt_close(void);
void wt_queue_open(struct wt_queue *queue, const struct wt_unit *unit);
void wt_queue_close(struct wt_queue *queue);

// A wrap of exactly these bytes. The driver's answer; UNKNOWN when it answers another address.
ze_result_t wt_wrap(const struct wt_unit *unit, void *pointer, size_t size_bytes, bool read_only);
ze_result_t wt_unwrap(const struct wt_unit *unit, void *pointer);

// The whole pages around a range.
struct wt_range {
    unsigned char *start;
    size_t size_bytes;
};
struct wt_range wt_rounded(const void *pointer, size_t size_bytes);

// UNKNOWN also when the driver answers an error.
ze_memory_type_t wt_type(const struct wt_unit *unit, const void *pointer);

ze_result_t wt_add1(struct wt_queue *queue, void *pointer, size_t size_bytes);
ze_result_t wt_copy_kernel(struct wt_queue *queue, void *to, const void *from, size_t size_bytes);

// The n-th simulated driver's statistics; false when that driver is no simulated one.
bool wt_sim_stats(unsigned driver_index, struct ghsim_stats *out);

// Printed and counted; the process ends with status 1.
_Noreturn void wt_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
