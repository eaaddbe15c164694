// SPDX-License-Identifier: MIT
//
// What the parts of the intel test client share. One thread. A check that fails prints one line on
// stdout and is counted; the process goes on, so that one run shows everything that is wrong.
//
// "plain" runs have no libgpuhost preloaded: blocks then come from mmap, a mapping each, so that their
// wraps can never share a page; they prove that the checks themselves work on the bare driver.
#ifndef GPUHOST_TESTS_INTEL_CLIENT_H
#define GPUHOST_TESTS_INTEL_CLIENT_H

#include "ze_dl.h"

#include <stdbool.h>

#define MAX_DEVICES 8
#define PAGE_BYTES ((size_t)4096)

struct client {
    bool plain;
    const char *kernel_dir; // NULL: no kernels
    ze_driver_handle_t driver;
    ze_device_handle_t devices[MAX_DEVICES];
    uint32_t device_count;
};

extern int failed_checks;

// CHECK(condition, "format", ...): what was expected, said with its circumstances.
#define CHECK(condition, ...) check_((condition), __FILE__, __LINE__, __VA_ARGS__)
bool check_(bool holds, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

ze_context_handle_t client_context(const struct client *client);

// 1 or 0 as gpuhost_is_visible says, -1 when libgpuhost is not in the process.
int client_is_visible(const void *address, size_t size_bytes);
ze_memory_type_t client_memory_type(ze_context_handle_t context, const void *address);

// A wrap the way oneAPI.jl asks for it: the range rounded to pages, imported by zeMemAllocHost.
struct wrap {
    void *address;
    size_t size_bytes;
};
struct wrap wrap_pages(const void *address, size_t size_bytes);
ze_result_t wrap_create(ze_context_handle_t context, const struct wrap *wrap);

// blocks.c: the seed's table of arrays, allocated back to back.
struct block {
    unsigned char *address;
    size_t size_bytes;
};
struct block_set {
    struct block *blocks;
    size_t count;
};
struct block_set blocks_allocate(const struct client *client);
void blocks_free(const struct client *client, struct block_set *set);
void blocks_check_visible(const struct client *client, ze_context_handle_t context,
                          const struct block_set *set, const char *when);

// wraps.c
void wraps_check_table(const struct client *client, ze_context_handle_t context,
                       const struct block_set *set, bool keep);
void wraps_check_overlaps(ze_context_handle_t context);
void wraps_check_foreign_free(ze_context_handle_t context);

// gpu_work.c
void work_check(const struct client *client, ze_context_handle_t context, const struct block_set *set);
void work_check_refused(const struct client *client, ze_context_handle_t context);

// own_buffers.c
void own_buffers_check(const struct client *client, ze_context_handle_t context);
void release_check(const struct client *client, ze_context_handle_t context);

#endif
