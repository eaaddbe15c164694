// SPDX-License-Identifier: MIT
//
// What the simulated Level Zero driver tells a test about itself, beside the Level Zero API.
// A test reaches these functions without linking the driver:
//     void *sim = dlopen("/path/libze_sim_gpu.so", RTLD_NOW | RTLD_NOLOAD);
//     void (*stats)(struct ghsim_stats *) = dlsym(sim, "ghsim_stats");
// Everything here is thread-safe. In a fork child the counters are the parent's at the fork.
#ifndef GHSIM_H
#define GHSIM_H

#include <stddef.h>
#include <stdint.h>

// Rules that the driver enforces. Under GHSIM_STRICT=abort (default) breaking one prints
// `ghsim: ABORT: <name>: ...` and aborts; under GHSIM_STRICT=refuse it is counted and answered.
enum ghsim_reason {
    GHSIM_OVERLAP,         // an import overlaps another one partly (or at all, in context scope)
    GHSIM_MISALIGNED,      // pointer or size of an import is not a multiple of the page size
    GHSIM_DRIVER_MEMORY,   // the driver's own malloc lies in an import, or an import covers it
    GHSIM_STRADDLE,        // a copy or fill leaves the import that it started in
    GHSIM_ILLEGAL_ADDRESS, // a kernel or a deferred command uses a pointer outside every import
    GHSIM_NOT_RESIDENT,    // a kernel uses an import that was evicted or never made resident
    GHSIM_WRONG_DEVICE,    // a device that the import was not mapped for
    GHSIM_PAGE_MOVED,      // an imported page was dropped, unmapped or replaced
    GHSIM_BAD_HANDLE,      // a stale or foreign handle
    GHSIM_LOST_EVENT,      // a command waits for an event that nobody signals
    GHSIM_CHILD_CALL,      // a driver call in a fork child (only with GHSIM_CHILD=abort)
    GHSIM_LATE_CALL,       // a driver call after the driver's own exit handler (only with GHSIM_LATE=abort)
    GHSIM_REASON_COUNT
};

struct ghsim_stats {
    uint64_t struct_size;      // filled by the driver: sizeof its own struct ghsim_stats
    uint64_t imports;          // imports that made a new entry in the table
    uint64_t imports_nested;   // imports answered by an entry that covers them
    uint64_t imports_older;    // of `imports`: through zexDriverImportExternalPointer
    uint64_t imports_pinned;   // of `imports`: really pinned (sim_pin.c), so page checks are exact
    uint64_t imports_live;     // entries in the table now
    uint64_t references_live;  // imports minus releases, nested ones included
    uint64_t imports_refused;  // imports answered with an error (aborts leave no count behind)
    uint64_t releases;         // entries that left the table
    uint64_t bytes_live;       // of entries in the table now
    uint64_t bytes_peak;
    uint64_t bytes_total;
    uint64_t usm_live;         // driver allocations (host, shared, device) alive
    uint64_t own_bytes;        // bytes of the driver's own mallocs of a page or more
    uint64_t copies;           // copies executed
    uint64_t copy_bytes;
    uint64_t fills;
    uint64_t launches;
    uint64_t residency_calls;
    uint64_t residency_partial; // residency calls whose range left the import: only that one counted
    uint64_t evictions;
    uint64_t contexts_live;
    uint64_t free_unknown;     // zeMemFree of a pointer that the driver does not know
    uint64_t interior_frees;   // zeMemFree of a pointer inside an import, not at its start
    uint64_t pages_collapsed;  // imported pages that the kernel gathered into a huge page (tolerated)
    uint64_t faults_injected;  // calls failed by GHSIM_FAIL
    uint64_t calls_in_child;   // driver calls in a fork child
    uint64_t violations;       // sum of the next line
    uint64_t reason[GHSIM_REASON_COUNT];
};

#define GHSIM_API __attribute__((visibility("default")))

GHSIM_API void ghsim_stats(struct ghsim_stats *out);
// How often a Level Zero function reached this driver, by name ("zeMemAllocHost").
GHSIM_API uint64_t ghsim_calls(const char *function);
// 1 if [pointer, pointer + size) lies in one import (in any context), else 0.
GHSIM_API int ghsim_is_imported(const void *pointer, size_t size);
// Compares the frames of all imports with those at import time; returns how many imports changed.
// Never aborts: for tests that want to look.
GHSIM_API uint64_t ghsim_check_pages(void);
GHSIM_API const char *ghsim_reason_name(unsigned reason);

#endif
