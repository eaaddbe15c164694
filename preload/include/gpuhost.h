// SPDX-License-Identifier: MIT
//
// libgpuhost's public interface. A program that also runs without the library declares nothing
// more than this and asks whether a function is there before it calls it:
//
//     if (gpuhost_is_visible && gpuhost_is_visible(data, size) == 1)
//         launch_in_place(data);
//     else
//         launch_with_copies(data);
//
// All functions are thread-safe, never fail with a signal, keep errno, and neither allocate nor
// call a GPU driver. None of them makes memory visible: that happens at the door, when the
// program calls its GPU API.
#ifndef GPUHOST_H
#define GPUHOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef GPUHOST_API
#define GPUHOST_API __attribute__((weak))
#endif

// "MAJOR.MINOR.PATCH"; static storage.
GPUHOST_API const char *gpuhost_version(void);

// 1 when the heap is this library's, 0 when it stays out of this process (GPUHOST_ENABLE=0, an
// excluded program, a late dlopen). A program started without the library has no such function.
GPUHOST_API int gpuhost_active(void);

// 1 when every byte of [pointer, pointer + size_bytes) is heap that is imported in every GPU driver
// scope that the process has opened, and at least one is open; 0 otherwise (other memory that the
// program wrapped itself is not looked at). A size of 0 asks for the
// one byte at `pointer`. Memory that malloc handed out after the last call through the GPU API
// may still be waiting for its import; the next such call brings it.
GPUHOST_API int gpuhost_is_visible(const void *pointer, size_t size_bytes);

struct gpuhost_stats {
    uint64_t regions;              // mapped now
    uint64_t bytes_mapped;         // in them
    uint64_t bytes_imported;       // of them, visible in at least one scope, now
    uint64_t bytes_refused;        // of them, that a driver or the limit refused or that wait for their import, now
                                   // (regions of which nothing is in use are not imported: they are in neither)
    uint64_t bytes_live;           // in blocks that the program has not freed
    uint64_t bytes_plain;          // mapped for memory that is deliberately not visible
    uint64_t scopes;               // driver scopes (a driver, or a context of one) open now
    uint64_t wraps_live;           // wraps that the program holds now
    uint64_t wraps_covered;        // wraps answered without a driver call, ever
    uint64_t wraps_passed_on;      // wraps that needed a driver call, ever
    uint64_t wraps_refused;        // wraps answered with an error, ever
    uint64_t imports;              // driver imports of regions, ever
    uint64_t import_nanoseconds;   // spent in them
    uint64_t releases;             // driver releases of regions, ever
    uint64_t regions_returned;     // to the kernel, ever
    uint64_t wraps_read_only;      // read-only wraps that a writable import serves, ever
    uint64_t reserved[16];         // zero
};

// Fills `*out`. Returns 0, or -1 when `out` is NULL. The figures are each right on their own and
// not a snapshot of one moment.
GPUHOST_API int gpuhost_stats(struct gpuhost_stats *out);

#ifdef __cplusplus
}
#endif

#endif
