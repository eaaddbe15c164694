// SPDX-License-Identifier: MIT
//
// Shared by the self-test of the simulated driver: what a case is, and a fixture that reaches one
// driver through the real loader. Plain C, no libgpuhost. Every case runs in a forked child that
// loads the loader's drivers itself, so that its environment and its abort are its own.
#ifndef SIM_SELFTEST_H
#define SIM_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <level_zero/ze_api.h>

#include "ghsim.h"

#define PAGE ((size_t)4096)
#define SKIP 77

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);     \
            _Exit(1);                                                                   \
        }                                                                               \
    } while (0)
#define OK(call)                                                                        \
    do {                                                                                \
        const ze_result_t ok_ = (call);                                                 \
        if (ok_ != ZE_RESULT_SUCCESS) {                                                 \
            fprintf(stderr, "%s:%d: %s = %#x\n", __FILE__, __LINE__, #call, (unsigned)ok_); \
            _Exit(1);                                                                   \
        }                                                                               \
    } while (0)

struct memmap_desc { uint32_t stype; const void *pNext; void *pSystemMemory; uint64_t size; };
struct relaxed_desc { uint32_t stype; const void *pNext; uint32_t flags; };

struct fixture {
    ze_driver_handle_t driver;
    ze_device_handle_t devices[16];
    uint32_t device_count;
    bool context_scope;
    ze_context_handle_t context;
    ze_command_list_handle_t list; // immediate, first device
    ze_module_handle_t module;
    void *sim;                     // dlopen handle of this driver
    void (*stats)(struct ghsim_stats *);
    uint64_t (*calls)(const char *);
};

enum scope { ANY_SCOPE, DRIVER_SCOPE, CONTEXT_SCOPE };
struct test_case {
    const char *name;
    void (*run)(struct fixture *);
    const char *environment;      // "NAME=VALUE NAME=VALUE"
    enum scope scope;
    int reason;                   // -1: must exit 0; else must abort for this reason
    int exit_code;                // for reason -1
    const char *stderr_part;      // must be seen on stderr, if not NULL
};
extern const struct test_case normal_cases[], switch_cases[], strict_cases[]; // end with a NULL name

ze_memory_type_t type_in(struct fixture *f, ze_context_handle_t context, const void *pointer);
void *map_pages(size_t count);
ze_result_t wrap(struct fixture *f, ze_context_handle_t context, void *pointer, size_t size);
ze_result_t wrap_flags(struct fixture *f, void *pointer, size_t size, uint32_t flags);
ze_result_t launch(struct fixture *f, ze_command_list_handle_t list, const char *kernel, uint32_t items,
                   const void *arg0, size_t size0, const void *arg1, size_t size1, const void *arg2, size_t size2);
ze_result_t launch1(struct fixture *f, const char *kernel, uint32_t items, void *pointer);
ze_command_list_handle_t immediate(struct fixture *f, ze_device_handle_t device);
ze_event_handle_t make_event(struct fixture *f);
struct ghsim_stats stats_of(struct fixture *f);
void *raw_driver(struct fixture *f); // the driver's own handle, whatever the loader wraps
void serve_driver_from(void *memory, size_t size); // the next posix_memalign that fits comes from there
extern uintptr_t last_memalign;      // what posix_memalign gave out last

#endif
