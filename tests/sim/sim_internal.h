// SPDX-License-Identifier: MIT
//
// Everything that the files of the simulated driver share: handles, memory ranges, commands.
//
// The driver must work with loaders and headers from 1.8 on, so structs and constants newer than
// that are declared here under names of our own. Function tables are filled by slot number for the
// same reason (sim_tables.c). All functions are hidden; only the tables' getters and ghsim.h leave.
//
// Locks: sim_memory_lock (imports, allocations, own mallocs) is held across no malloc and no
// Level Zero call; the frame lock of an import nests inside it. The event lock is a leaf.
#ifndef SIM_INTERNAL_H
#define SIM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <level_zero/ze_api.h>

#include "ghsim.h"

#define SIM_PAGE ((size_t)4096)
#define SIM_API_VERSION 0x10010u // 1.16; from 1.17 on loaders take embedded tables for granted
#define SIM_MAX_DEVICES 16
#define SIM_MAX_ARGS 32
#define SIM_MAX_ARG_BYTES 256

// Level Zero values that 1.8 does not have.
#define SIM_STYPE_RELAXED_EXP 0x00020001u
#define SIM_STYPE_RELAXED_EXT 0x00010016u
#define SIM_STYPE_DDI_HANDLES 0x00020027u
#define SIM_STYPE_MEMMAP 0x00020037u
#define SIM_FLAG_READ_ONLY 0x10u
#define SIM_TYPE_HOST_IMPORTED 4
#define SIM_ADDRESS_NOT_FOUND ((ze_result_t)0x78000021)

struct sim_memmap_desc { ze_structure_type_t stype; const void *pNext; void *pSystemMemory; uint64_t size; };
struct sim_relaxed_desc { ze_structure_type_t stype; const void *pNext; uint32_t flags; };
struct sim_ddi_properties { ze_structure_type_t stype; void *pNext; uint32_t flags; };
struct sim_init_desc { ze_structure_type_t stype; const void *pNext; uint32_t flags; };
struct sim_group_size { uint32_t x, y, z; };
struct sim_chain { ze_structure_type_t stype; const void *pNext; };

// ---- configuration and entry (sim_config.c)
enum sim_page_check { SIM_PAGES_OFF, SIM_PAGES_RELEASE, SIM_PAGES_ALWAYS };
struct sim_config {
    bool refuse, context_scope, first_device_only, explicit_residency, system_usm, no_memmap;
    bool refuse_memmap, other_address, noisy, plain_copy, ddi, leak_check, child_abort, late_abort, no_older, pin;
    enum sim_page_check page_check;
    unsigned devices, host_type;
    uint64_t max_alloc, memory_limit, delay_us, delay_us_per_mib, wait_ms;
    char log[512], report[512];
};
extern struct sim_config sim_config;

enum sim_kind {
    SIM_ANY, SIM_DRIVER, SIM_DEVICE, SIM_CONTEXT, SIM_QUEUE, SIM_LIST, SIM_POOL, SIM_EVENT,
    SIM_FENCE, SIM_MODULE, SIM_KERNEL, SIM_BUILD_LOG
};
struct sim_site { const char *name; atomic_bool known; _Atomic uint64_t calls; struct sim_site *next; };
ze_result_t sim_enter(struct sim_site *site, const void *handle, enum sim_kind kind);
ze_result_t sim_fault(const char *name, uint64_t call);
bool sim_in_child(void);
#define SIM_ENTER(function, handle, kind)                                        \
    do {                                                                         \
        static struct sim_site site_ = {.name = #function};                      \
        const ze_result_t entered_ = sim_enter(&site_, handle, kind);            \
        if (entered_ != ZE_RESULT_SUCCESS) return entered_;                      \
    } while (0)

// ---- log, violations, counters (sim_report.c)
extern struct ghsim_stats sim_stats; // fields changed with SIM_COUNT only
#define SIM_COUNT(field, n) __atomic_add_fetch(&sim_stats.field, (uint64_t)(n), __ATOMIC_RELAXED)
#define SIM_UNCOUNT(field, n) __atomic_sub_fetch(&sim_stats.field, (uint64_t)(n), __ATOMIC_RELAXED)
ze_result_t sim_violation(enum ghsim_reason reason, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- handles. They start with the pointers that newer loaders dispatch through.
struct sim_handle { const void *core, *tools, *sysman, *runtime; uint32_t magic, kind; };
#define SIM_MAGIC 0x51a51a51u
void sim_handle_init(struct sim_handle *handle, enum sim_kind kind);
void *sim_new(size_t size, enum sim_kind kind); // zeroed, handle first; NULL when out of memory
void sim_delete(void *object);                  // poisons the handle, then frees

// ---- ranges (sim_ranges.c): a treap of disjoint ranges
struct sim_range { uintptr_t begin, end; struct sim_range *left, *right; uint32_t priority; };
void sim_ranges_insert(struct sim_range **root, struct sim_range *range);
void sim_ranges_remove(struct sim_range **root, struct sim_range *range);
struct sim_range *sim_ranges_overlap(struct sim_range *root, uintptr_t begin, uintptr_t end);

// ---- the driver's own memory (sim_alloc.c)
void *sim_alloc(size_t size); // zeroed; a page or more: page-aligned, checked against imports
void sim_free(void *pointer);
bool sim_own_overlaps(uintptr_t begin, uintptr_t end); // caller holds sim_memory_lock

// ---- contexts and devices
struct sim_space { struct sim_range *imports; struct sim_space *next; };
struct sim_device { struct sim_handle handle; unsigned index; };
struct sim_context {
    struct sim_handle handle;
    struct sim_space space;         // used in context scope
    struct sim_device *first_device;
};
extern struct sim_device sim_devices[SIM_MAX_DEVICES];
extern struct sim_handle sim_driver;
struct sim_context *sim_default_context(void);

// ---- imports and driver allocations (sim_import.c, sim_usm.c)
extern pthread_rwlock_t sim_memory_lock;
extern struct sim_space *sim_spaces;  // all spaces that can hold imports; under sim_memory_lock
extern struct sim_range *sim_usm_root; // driver allocations; under sim_memory_lock
#define SIM_SAMPLES 64
#define SIM_MAX_PINS 16 // of 1 GiB each; a larger import stays unpinned
struct sim_import {
    struct sim_range range;
    uint64_t references, id;
    bool older, read_only, pinned;
    atomic_bool resident;
    struct sim_device *only_device; // NULL: every device
    pthread_mutex_t frame_lock;
    uint64_t generation;            // fork generation of `frames`
    unsigned frame_count;
    uint64_t frames[SIM_SAMPLES];
    uint32_t pin_count, pins[SIM_MAX_PINS];
};
struct sim_usm {
    struct sim_range range;
    ze_memory_type_t type;
    uint64_t id;
    size_t size; // as asked; the range is rounded to pages
    struct sim_device *device;
    struct sim_context *context;
};
struct sim_import_request {
    struct sim_context *context; // NULL for the older functions
    void *pointer;
    size_t size;
    bool older, relaxed, read_only;
};
enum sim_where { SIM_NOWHERE, SIM_STRADDLES, SIM_INSIDE };
struct sim_hit {
    enum sim_where where;
    uintptr_t base;
    size_t size;
    bool is_import, resident;
    ze_memory_type_t type;
    uint64_t id;
    struct sim_device *device, *only_device;
};
struct sim_space *sim_space_of(struct sim_context *context);
ze_result_t sim_import(const struct sim_import_request *request);
ze_result_t sim_release(struct sim_context *context, void *pointer, bool older);
void sim_release_space(struct sim_space *space); // a context of its own scope goes
// `use`: the memory is about to be used, so check its pages.
void sim_lookup(struct sim_context *context, const void *pointer, size_t size, bool use, struct sim_hit *hit);
bool sim_touches_import(struct sim_context *context, uintptr_t begin, uintptr_t end);
ze_result_t sim_set_resident(struct sim_context *context, const void *pointer, size_t size, bool resident);
uint64_t sim_next_id(void);
void sim_noise(void); // sim_noise.c

// ---- pages (sim_pages.c, sim_pin.c)
void sim_pin(struct sim_import *import);   // sets import->pinned if it could
void sim_unpin(struct sim_import *import);
bool sim_pin_alive(const struct sim_import *import);
bool sim_pages_populate(uintptr_t begin, uintptr_t end, bool read_only);
uint64_t sim_pages_generation(void); // goes into the import before its pages are populated
void sim_pages_record(struct sim_import *import);
bool sim_pages_same(struct sim_import *import); // false: an imported page is not what it was
void sim_pages_at_fork(void);                   // installs the fork handlers

// ---- events (sim_event.c)
struct sim_event {
    struct sim_handle handle;
    struct sim_handle *pool;
    uint32_t signal_scope, wait_scope;
    bool signalled; // under the event lock
    ze_kernel_timestamp_result_t time;
};
uint64_t sim_now_ns(void);
ze_result_t sim_event_wait(struct sim_event *event, uint64_t timeout_ns);
void sim_event_signal(struct sim_event *event, uint64_t start_ns);
void sim_event_clear(struct sim_event *event);
bool sim_event_time(struct sim_event *event, ze_kernel_timestamp_result_t *time);

// ---- modules and kernels (sim_module.c)
typedef void (*sim_kernel_fn)(size_t begin, size_t end, void **args);
struct sim_arg { uint32_t size; _Alignas(16) unsigned char bytes[SIM_MAX_ARG_BYTES]; };
struct sim_kernel {
    struct sim_handle handle;
    struct sim_module *module;
    sim_kernel_fn function;
    char name[128];
    const unsigned *arg_sizes;   // optional, ends with 0
    uint32_t pointer_mask, arg_count, indirect;
    uint32_t group[3], offset[3];
    struct sim_arg args[SIM_MAX_ARGS];
};
ze_result_t sim_kernel_set_arg(struct sim_kernel *kernel, uint32_t index, size_t size, const void *value);

// ---- commands (sim_list.c, sim_append.c, sim_exec.c)
enum sim_op {
    SIM_OP_NOTHING, SIM_OP_COPY, SIM_OP_REGION, SIM_OP_FILL, SIM_OP_LAUNCH,
    SIM_OP_TIMESTAMP, SIM_OP_EVENT_RESET, SIM_OP_QUERY_TIMES
};
struct sim_region { ze_copy_region_t area; uint32_t pitch, slice_pitch; };
struct sim_launch {
    sim_kernel_fn function;
    char name[128];
    uint32_t pointer_mask, arg_count, group[3], offset[3];
    ze_group_count_t count;
    const ze_group_count_t *indirect_count; // read when it runs
    const uint32_t *kernel_count;           // indirect: how many of several kernels run
    uint32_t kernel_index;
    struct sim_arg *args;
};
struct sim_command {
    enum sim_op op;
    struct sim_event *signal, **waits;
    uint32_t wait_count;
    struct sim_context *source_context;
    void *target;
    const void *source;
    size_t size, pattern_size;
    unsigned char *pattern;
    struct sim_region to, from;
    struct sim_launch launch;
    struct sim_event **events; // SIM_OP_QUERY_TIMES, SIM_OP_EVENT_RESET
    uint32_t event_count;
    size_t *offsets;
};
struct sim_list { // regular or immediate
    struct sim_handle handle;
    struct sim_context *context;
    struct sim_device *device;
    bool immediate, closed;
    uint32_t ordinal, index, flags;
    struct sim_command *commands;
    size_t count, capacity;
};
ze_result_t sim_submit(struct sim_list *list, struct sim_command *command); // takes what it points to
ze_result_t sim_execute(struct sim_list *list, const struct sim_command *command);
ze_result_t sim_execute_list(struct sim_list *list);
void sim_command_clear(struct sim_command *command);
ze_result_t sim_command_events(struct sim_command *command, struct sim_event *signal, uint32_t count,
                               struct sim_event **waits);
ze_result_t sim_submit_with(struct sim_list *list, struct sim_command *command, struct sim_event *signal,
                            uint32_t count, struct sim_event **waits);
ze_result_t sim_check_range(struct sim_list *list, struct sim_context *context, const void *pointer,
                            size_t size, bool running, const char *what);
size_t sim_region_span(const struct sim_region *region, size_t *first);
void (*sim_command_by_name(const char *name))(void); // commands that no table has; NULL: none

// ---- tables (sim_tables.c): each file lists the functions it implements
enum sim_table {
    SIM_T_GLOBAL, SIM_T_DRIVER, SIM_T_DEVICE, SIM_T_DEVICE_EXP, SIM_T_CONTEXT, SIM_T_QUEUE,
    SIM_T_LIST, SIM_T_LIST_EXP, SIM_T_IMAGE, SIM_T_IMAGE_EXP, SIM_T_MEM, SIM_T_FENCE, SIM_T_POOL,
    SIM_T_EVENT, SIM_T_EVENT_EXP, SIM_T_MODULE, SIM_T_BUILD_LOG, SIM_T_KERNEL, SIM_T_KERNEL_EXP,
    SIM_T_SAMPLER, SIM_T_PHYSICAL, SIM_T_VIRTUAL, SIM_T_VERTEX, SIM_T_EDGE,
    SIM_T_RUNTIME, // zer: functions that need no handles
    SIM_T_COUNT
};
typedef void (*sim_fn)(void);
struct sim_slot { enum sim_table table; unsigned index, minor; sim_fn function; }; // minor: of API 1.x
#define SIM_SLOT(table, index, minor, function) {SIM_T_##table, index, minor, (sim_fn)(function)}
#define SIM_SLOTS_END {SIM_T_COUNT, 0, 0, NULL}
extern const struct sim_slot sim_driver_slots[], sim_device_slots[], sim_context_slots[],
    sim_mem_slots[], sim_event_slots[], sim_queue_slots[],
    sim_module_slots[], sim_kernel_slots[], sim_list_slots[], sim_append_slots[],
    sim_launch_slots[];
const void *sim_ddi_core(void); // tables embedded in handles
const void *sim_ddi_none(void); // same for the API parts that this driver does not have

#endif
