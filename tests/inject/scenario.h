// SPDX-License-Identifier: MIT
//
// What a program does while something is made to fail: heap, contexts, wraps, copies, memory that
// goes away. Checks every byte and every promise that holds in spite of the failure. Used by the
// program that links the library's parts (direct.c) and by the preloaded one (victim.c).
#ifndef GH_TESTS_INJECT_SCENARIO_H
#define GH_TESTS_INJECT_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>

#include "../sim/ghsim.h"

struct world {
    void *(*allocate)(size_t bytes, size_t alignment, bool zero);
    void *(*resize)(void *block, size_t bytes);
    void (*release)(void *block);
    int (*unmap)(void *start, size_t bytes);
    int (*drop)(void *start, size_t bytes); // madvise, MADV_DONTNEED
    bool (*visible)(const void *pointer, size_t bytes);
    unsigned (*scopes)(void);
    uint64_t (*regions)(void);
    uint64_t (*faults)(void); // that happened so far
    bool single;              // one call fails, the next one like it does not

    ze_driver_handle_t driver; // NULL: no GPU
    ze_device_handle_t device;
    ze_context_dditable_t context;
    ze_mem_dditable_t mem;
    ze_command_list_dditable_t list;
    void (*sim_stats)(struct ghsim_stats *);
    bool per_context;   // each context is a scope of its own
    bool takes_imports; // the driver is one that takes them
    bool keeps_imports; // the driver may refuse to release: then it may hold on to pages that went
};

void scenario_heap(const struct world *world);
void scenario_gpu(const struct world *world);
void scenario_fork(const struct world *world);

// Ends the process with status 1 and a line, unless the condition holds.
void scenario_check(bool condition, const char *text, const char *file, int line);
#define MUST(condition) scenario_check(condition, #condition, __FILE__, __LINE__)

// How the process ends when all went well.
enum { SCENARIO_FIRED = 0, SCENARIO_NOTHING_FAILED = 10 };

#endif
