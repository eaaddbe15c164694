// SPDX-License-Identifier: MIT
//
// A Level Zero client without the loader: takes the simulated driver's function tables as the
// loader gets them, through gh_ze_driver_symbol, so that the door is in them.
#ifndef GH_TESTS_DOOR_CLIENT_H
#define GH_TESTS_DOOR_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>

#include "ghsim.h"

struct door_client {
    ze_driver_dditable_t driver;
    ze_context_dditable_t context;
    ze_mem_dditable_t mem;
    ze_command_list_dditable_t list;
    ze_device_dditable_t device;
    ze_driver_handle_t handle;
    ze_device_handle_t gpu;
    void (*stats)(struct ghsim_stats *);
};

extern struct door_client door;

// Prints the text and aborts, unless the condition holds. For any thread.
void door_check(bool condition, const char *text, const char *file, int line);
#define CHECK(condition) door_check(condition, #condition, __FILE__, __LINE__)

void door_open(const char *driver_path);
ze_context_handle_t door_context_create(void);
ze_command_list_handle_t door_list_create(ze_context_handle_t context);

// As an application makes a wrap: the memmap descriptor at zeMemAllocHost.
ze_result_t door_wrap(ze_context_handle_t context, void *pointer, size_t size);
ze_memory_type_t door_type(ze_context_handle_t context, const void *pointer);

#endif
