// SPDX-License-Identifier: MIT
//
// What the loader asks for: zeGet…ProcAddrTable, and the tables that newer loaders find embedded
// in handles. Tables are arrays of slots that only ever grow at the end, so a slot number and the
// API version that introduced it are all that is needed, whatever the headers. Nothing is written
// behind the end of a table as the asking version knows it. Functions that exist but are not
// simulated answer UNSUPPORTED_FEATURE.
#include <string.h>

#include "sim_internal.h"

#define MAX_SLOTS 48

struct slot { sim_fn function; unsigned minor; };
static struct slot slots[SIM_T_COUNT][MAX_SLOTS];
static pthread_once_t built = PTHREAD_ONCE_INIT;

// The embedded form. The order of the tables is that of Level Zero 1.13 and later.
struct ddi_core { uint32_t version; uint8_t valid; const void *tables[32]; };
struct ddi_none { uint32_t version; uint8_t valid; const void *tables[64]; };
static sim_fn embedded[SIM_T_COUNT][MAX_SLOTS];
static struct ddi_core core;
static const struct ddi_none none; // valid is 0: loaders answer UNINITIALIZED

static ze_result_t unsupported(void)
{
    return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
}

// Slots that exist, by first and last number and the API version; those left empty are unsupported.
static const struct { enum sim_table table; unsigned first, last, minor; } known[] = {
    {SIM_T_DRIVER, 0, 4, 0}, {SIM_T_DRIVER, 7, 7, 13}, {SIM_T_DEVICE, 15, 16, 2}, {SIM_T_DEVICE, 19, 20, 12},
    {SIM_T_DEVICE, 21, 21, 13}, {SIM_T_DEVICE_EXP, 0, 0, 4}, {SIM_T_CONTEXT, 6, 7, 0}, {SIM_T_LIST, 12, 15, 0},
    {SIM_T_LIST, 26, 27, 3}, {SIM_T_LIST, 34, 35, 12}, {SIM_T_LIST_EXP, 0, 5, 9}, {SIM_T_IMAGE, 0, 2, 0},
    {SIM_T_IMAGE, 3, 3, 3}, {SIM_T_IMAGE_EXP, 0, 1, 2}, {SIM_T_MEM, 6, 8, 0}, {SIM_T_MEM, 10, 10, 6},
    {SIM_T_MEM, 11, 11, 9}, {SIM_T_POOL, 2, 4, 0}, {SIM_T_POOL, 5, 5, 6}, {SIM_T_EVENT, 7, 7, 6},
    {SIM_T_EVENT_EXP, 0, 0, 2}, {SIM_T_MODULE, 8, 8, 3}, {SIM_T_SAMPLER, 0, 1, 0}, {SIM_T_PHYSICAL, 0, 1, 0},
    {SIM_T_RUNTIME, 0, 2, 14}, {SIM_T_VIRTUAL, 0, 6, 0}, {SIM_T_VERTEX, 0, 3, 4}, {SIM_T_EDGE, 0, 2, 4},
};

static void add(const struct sim_slot *list)
{
    for (; list->table != SIM_T_COUNT; list++)
        slots[list->table][list->index] = (struct slot){list->function, list->minor};
}

static void build(void)
{
    add(sim_driver_slots);
    add(sim_device_slots);
    add(sim_context_slots);
    add(sim_mem_slots);
    add(sim_event_slots);
    add(sim_queue_slots);
    add(sim_module_slots);
    add(sim_kernel_slots);
    add(sim_list_slots);
    add(sim_append_slots);
    add(sim_launch_slots);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        for (unsigned s = known[i].first; s <= known[i].last; s++)
            if (!slots[known[i].table][s].function)
                slots[known[i].table][s] = (struct slot){(sim_fn)unsupported, known[i].minor};
    for (unsigned t = 0; t < SIM_T_COUNT; t++)
        for (unsigned s = 0; s < MAX_SLOTS; s++) embedded[t][s] = slots[t][s].function;
    // Places 0 to 3 (ray tracing) and 30, 31 (graphs) stay NULL: loaders check.
    static const enum sim_table order[] = {
        SIM_T_GLOBAL, SIM_T_DRIVER, SIM_T_COUNT, SIM_T_DEVICE, SIM_T_DEVICE_EXP, SIM_T_CONTEXT, SIM_T_QUEUE,
        SIM_T_LIST, SIM_T_LIST_EXP, SIM_T_IMAGE, SIM_T_IMAGE_EXP, SIM_T_MEM, SIM_T_COUNT, SIM_T_FENCE, SIM_T_POOL,
        SIM_T_EVENT, SIM_T_EVENT_EXP, SIM_T_MODULE, SIM_T_BUILD_LOG, SIM_T_KERNEL, SIM_T_KERNEL_EXP, SIM_T_SAMPLER,
        SIM_T_PHYSICAL, SIM_T_VIRTUAL, SIM_T_VERTEX, SIM_T_EDGE};
    core.version = SIM_API_VERSION;
    core.valid = 1;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (order[i] != SIM_T_COUNT) core.tables[4 + i] = embedded[order[i]];
}

const void *sim_ddi_core(void)
{
    pthread_once(&built, build);
    return &core;
}

const void *sim_ddi_none(void)
{
    return &none;
}

static ze_result_t fill(enum sim_table table, uint32_t version, void *out)
{
    if (!out) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (version >> 16 != 1) return ZE_RESULT_ERROR_UNSUPPORTED_VERSION;
    pthread_once(&built, build);
    sim_fn *functions = out;
    for (unsigned s = 0; s < MAX_SLOTS; s++)
        if (slots[table][s].function && slots[table][s].minor <= (version & 0xffff))
            functions[s] = slots[table][s].function;
    return ZE_RESULT_SUCCESS;
}

#define GETTER(name, table) NAMED_GETTER(zeGet##name, table)
#define NAMED_GETTER(name, table)                                                                   \
    GHSIM_API ze_result_t name##ProcAddrTable(uint32_t version, void *out);                         \
    ze_result_t name##ProcAddrTable(uint32_t version, void *out)                                    \
    {                                                                                               \
        return fill(SIM_T_##table, version, out);                                                   \
    }
GETTER(Global, GLOBAL)
GETTER(Driver, DRIVER)
GETTER(Device, DEVICE)
GETTER(DeviceExp, DEVICE_EXP)
GETTER(Context, CONTEXT)
GETTER(CommandQueue, QUEUE)
GETTER(CommandList, LIST)
GETTER(CommandListExp, LIST_EXP)
GETTER(Image, IMAGE)
GETTER(ImageExp, IMAGE_EXP)
GETTER(Mem, MEM)
GETTER(Fence, FENCE)
GETTER(EventPool, POOL)
GETTER(Event, EVENT)
GETTER(EventExp, EVENT_EXP)
GETTER(Module, MODULE)
GETTER(ModuleBuildLog, BUILD_LOG)
GETTER(Kernel, KERNEL)
GETTER(KernelExp, KERNEL_EXP)
GETTER(Sampler, SAMPLER)
GETTER(PhysicalMem, PHYSICAL)
GETTER(VirtualMem, VIRTUAL)
GETTER(FabricVertexExp, VERTEX)
GETTER(FabricEdgeExp, EDGE)
NAMED_GETTER(zerGetGlobal, RUNTIME)

// Tools and system management: 1.8 does not initialise a driver without these tables. They stay
// empty; loaders answer for a NULL function.
#define EMPTY(name)                                                 \
    GHSIM_API ze_result_t name##ProcAddrTable(uint32_t, void *);    \
    ze_result_t name##ProcAddrTable(uint32_t version, void *out)    \
    {                                                               \
        (void)version;                                              \
        return out ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_NULL_POINTER; \
    }
EMPTY(zesGetDevice)
EMPTY(zesGetDiagnostics)
EMPTY(zesGetDriver)
EMPTY(zesGetEngine)
EMPTY(zesGetFabricPort)
EMPTY(zesGetFan)
EMPTY(zesGetFirmware)
EMPTY(zesGetFrequency)
EMPTY(zesGetLed)
EMPTY(zesGetMemory)
EMPTY(zesGetPerformanceFactor)
EMPTY(zesGetPower)
EMPTY(zesGetPsu)
EMPTY(zesGetRas)
EMPTY(zesGetScheduler)
EMPTY(zesGetStandby)
EMPTY(zesGetTemperature)
EMPTY(zetGetCommandList)
EMPTY(zetGetContext)
EMPTY(zetGetDebug)
EMPTY(zetGetDevice)
EMPTY(zetGetKernel)
EMPTY(zetGetMetricGroupExp)
EMPTY(zetGetMetricGroup)
EMPTY(zetGetMetric)
EMPTY(zetGetMetricQueryPool)
EMPTY(zetGetMetricQuery)
EMPTY(zetGetMetricStreamer)
EMPTY(zetGetModule)
EMPTY(zetGetTracerExp)
