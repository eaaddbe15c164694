// SPDX-License-Identifier: MIT
//
// The Level Zero loader, opened at run time: the client must link nothing but libc, as programs do that
// reach Level Zero through a language binding. One thread; loaded once, never closed.
//
// The two descriptors that Debian 12's headers (loader 1.8) are too old for are declared here under
// names of our own, so that newer headers do not clash with them.
#ifndef GPUHOST_TESTS_INTEL_ZE_DL_H
#define GPUHOST_TESTS_INTEL_ZE_DL_H

#include <level_zero/ze_api.h>
#include <stddef.h>
#include <stdint.h>

#define ZE_DL_FUNCTIONS(X)                                                                                   \
    X(zeInit)                                                                                                \
    X(zeDriverGet)                                                                                           \
    X(zeDriverGetExtensionFunctionAddress)                                                                   \
    X(zeDeviceGet)                                                                                           \
    X(zeDeviceGetProperties)                                                                                 \
    X(zeContextCreate)                                                                                       \
    X(zeContextDestroy)                                                                                      \
    X(zeContextMakeMemoryResident)                                                                           \
    X(zeContextEvictMemory)                                                                                  \
    X(zeMemAllocHost)                                                                                        \
    X(zeMemAllocShared)                                                                                      \
    X(zeMemAllocDevice)                                                                                      \
    X(zeMemFree)                                                                                             \
    X(zeMemGetAllocProperties)                                                                               \
    X(zeMemGetAddressRange)                                                                                  \
    X(zeCommandQueueCreate)                                                                                  \
    X(zeCommandQueueDestroy)                                                                                 \
    X(zeCommandQueueExecuteCommandLists)                                                                     \
    X(zeCommandQueueSynchronize)                                                                             \
    X(zeCommandListCreate)                                                                                   \
    X(zeCommandListCreateImmediate)                                                                          \
    X(zeCommandListDestroy)                                                                                  \
    X(zeCommandListClose)                                                                                    \
    X(zeCommandListAppendMemoryCopy)                                                                         \
    X(zeCommandListAppendMemoryFill)                                                                         \
    X(zeCommandListAppendLaunchKernel)                                                                       \
    X(zeModuleCreate)                                                                                        \
    X(zeModuleDestroy)                                                                                       \
    X(zeKernelCreate)                                                                                        \
    X(zeKernelDestroy)                                                                                       \
    X(zeKernelSetGroupSize)                                                                                  \
    X(zeKernelSetArgumentValue)

struct ze_dl {
#define X(name) __typeof__(name) *name;
    ZE_DL_FUNCTIONS(X)
#undef X
};

// Layouts and numbers from the Level Zero specification, "External Memory Mapping" and "Init Drivers".
#define ZE_DL_STYPE_MEMMAP_SYSMEM 0x00020037
#define ZE_DL_STYPE_INIT_DRIVERS 0x00020021

struct ze_dl_memmap_desc {
    uint32_t stype;
    const void *next;
    void *address;
    uint64_t size_bytes;
};

extern struct ze_dl ze;

// Opens the loader and finds the driver, through zeInit and zeDriverGet or, if asked, through
// zeInitDrivers. Ends the process with a line on stderr when there is no loader or no driver.
ze_driver_handle_t ze_dl_open(int use_init_drivers);

#endif
