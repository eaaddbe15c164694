// SPDX-License-Identifier: MIT
//
// A client that is its own loader: it takes the function tables from the driver as the real loader
// does, at the newest version that the simulated driver knows, so functions that the installed
// loader or headers lack are behind the door here too. The first driver of ZE_ENABLE_ALT_DRIVERS;
// one context and one immediate list are made by client_open. Used by one thread at a time, but
// for the tables, which never change.
#ifndef GPUHOST_TESTS_SIM_DOOR_CLIENT_H
#define GPUHOST_TESTS_SIM_DOOR_CLIENT_H

#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../ghsim.h"
#include "gpuhost.h"

#define PAGE ((size_t)4096)
#define P(n) ((n) * PAGE)

// The condition, then a printf format and its arguments that say more.
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            client_failed(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                \
    } while (0)
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        ze_result_t ok_ = (call);                                                                                      \
        CHECK(ok_ == ZE_RESULT_SUCCESS, "%s = 0x%x", #call, (unsigned)ok_);                                            \
    } while (0)

_Noreturn void client_failed(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

typedef void (*any_fn)(void);
#define TABLE(type)                                                                                                    \
    union {                                                                                                            \
        any_fn entries[128];                                                                                           \
        type t;                                                                                                        \
    }

struct client {
    void *library;
    TABLE(ze_global_dditable_t) global;
    TABLE(ze_driver_dditable_t) driver_table;
    TABLE(ze_device_dditable_t) device_table;
    TABLE(ze_context_dditable_t) contexts;
    TABLE(ze_mem_dditable_t) mem;
    TABLE(ze_command_list_dditable_t) lists;
    TABLE(ze_event_pool_dditable_t) pools;
    TABLE(ze_event_dditable_t) events;
    TABLE(ze_driver_dditable_t) runtime; // zer: by place only
    ze_driver_handle_t driver;
    uint32_t device_count;
    ze_device_handle_t devices[16];
    ze_context_handle_t context;
    ze_command_list_handle_t list; // immediate, of the context's first device
};
extern struct client client;

void client_load(void); // tables, driver, devices; no context yet
void client_open(void); // client_load, then the context and the list
ze_context_handle_t client_context(void);
ze_command_list_handle_t client_list(ze_context_handle_t context, ze_device_handle_t device);
ze_event_handle_t client_event(void);

ze_result_t client_wrap(ze_context_handle_t context, void *pointer, size_t size);
ze_result_t client_wrap_flags(ze_context_handle_t context, void *pointer, size_t size, ze_host_mem_alloc_flags_t flags);
ze_result_t client_unwrap(ze_context_handle_t context, void *pointer);
ze_memory_type_t client_type(ze_context_handle_t context, const void *pointer);
ze_result_t client_fill(ze_command_list_handle_t list, void *pointer, size_t size); // with zeros
void *client_function(const char *name); // by zeDriverGetExtensionFunctionAddress; NULL: none

unsigned char *client_pages(size_t pages); // anonymous, private, page i filled with i + 1
struct ghsim_stats client_sim(void);
uint64_t client_calls(const char *function);  // that reached the driver
uint64_t client_moved(void);                  // imports whose pages are not what they were
uint64_t client_pieces(void);                 // imports that are not of regions
struct gpuhost_stats client_stats(void);

#endif
