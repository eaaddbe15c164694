// SPDX-License-Identifier: MIT
//
// The GPU side that no particular GPU API knows: which scopes are open, which region is imported
// in which scope, what is pending. A scope is whatever one import is good for: a driver, or one
// context of a driver.
//
// Regions are imported and released here and only here: at the door (gh_gpu_drain) and on the
// service thread. The import lock (GH_RANK_IMPORT) is held meanwhile; malloc never takes it.
#ifndef GH_PRELOAD_GPU_H
#define GH_PRELOAD_GPU_H

#include <stdatomic.h>

#include "allocator/region_pool.h"
#include "gpu_backend.h"

#define GH_SCOPE_MAX 64u
#define GH_NO_SCOPE GH_SCOPE_MAX

// Nonzero when something may be waiting: a new region, a retired region, a new driver. The door
// reads it with one load (the assembler thunks too: keep it one byte).
extern GH_HIDDEN _Atomic uint8_t gh_gpu_pending;

// Bit s of an entry: the region with this id is imported in scope s. Readers take no lock.
extern GH_HIDDEN _Atomic uint64_t gh_gpu_imported[GH_REGION_MAX + 1];

// The callbacks for the allocator.
extern GH_HIDDEN const struct gh_region_ops gh_gpu_region_ops;

static inline bool gh_gpu_has_pending(void) {
    return atomic_load_explicit(&gh_gpu_pending, memory_order_relaxed) != 0;
}

GH_HIDDEN void gh_gpu_raise_pending(void);

// Brings every region into every open scope and releases what is retired. Slow; call it when
// gh_gpu_has_pending. Not inside malloc, not with a lock held.
GH_HIDDEN void gh_gpu_drain(void);

// Opens a scope; its imports happen at the next drain. GH_NO_SCOPE when 64 are open or this is a
// fork child of a process that had scopes.
GH_HIDDEN unsigned gh_gpu_scope_open(const struct gh_gpu_backend_ops *ops, void *data);

// Closes it: releases every import in it when `release` is true (false: the driver has dropped
// them itself, or must not be called any more).
GH_HIDDEN void gh_gpu_scope_close(unsigned scope, bool release);

// Is the whole range in regions that are imported in this scope? Lock-free.
GH_HIDDEN bool gh_gpu_covers(unsigned scope, const void *pointer, size_t size_bytes);

GH_HIDDEN uint64_t gh_gpu_open_scopes(void); // as bits

// The import lock, for what else must be serialised with imports (pieces of foreign memory).
GH_HIDDEN void gh_gpu_lock(void);
GH_HIDDEN void gh_gpu_unlock(void);

// The same, but false when this very thread holds it already: then a driver, or we on behalf of
// one, called something that we interpose, and it is no business of ours.
GH_HIDDEN bool gh_gpu_try_enter(void);

// Under the import lock: the scope's backend, for memory that is no region.
GH_HIDDEN int gh_gpu_import_piece(unsigned scope, void *base, size_t size_bytes, bool read_only,
                                  const char **why_out);
// Returns 0, or an errno: the driver keeps the import.
GH_HIDDEN int gh_gpu_release_piece(unsigned scope, void *base, size_t size_bytes);

// From the exit handler on that runs before the driver's own: what the program does to its memory no
// longer leads to a call of the driver. What it calls itself still goes through.
GH_HIDDEN void gh_gpu_close_down(void);
GH_HIDDEN bool gh_gpu_is_closing(void);

// True in a fork child of a process that had scopes: its driver handles are its parent's, so no
// import and no release is ever made here.
GH_HIDDEN bool gh_gpu_is_orphan(void);
GH_HIDDEN void gh_gpu_fork_child(void);

#endif
