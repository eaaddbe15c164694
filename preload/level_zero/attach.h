// SPDX-License-Identifier: MIT
//
// Attaching to a Level Zero driver: what it can do, which scope its imports have, which scope a
// context belongs to.
#ifndef GH_LEVEL_ZERO_ATTACH_H
#define GH_LEVEL_ZERO_ATTACH_H

#include "driver.h"

// A context was created for these devices (none given: for all of the driver's), or is the
// driver's default one. The first call attaches. Afterwards the whole heap is visible in the
// context. Calls the driver; no lock held.
GH_HIDDEN void gh_ze_attach(struct gh_ze_driver *driver, ze_driver_handle_t handle, ze_context_handle_t context,
                            uint32_t device_count, ze_device_handle_t *devices);

// A context is about to be destroyed: its wraps are forgotten, and its imports released when they
// are its own.
GH_HIDDEN void gh_ze_detach(struct gh_ze_driver *driver, ze_context_handle_t context);

// False while it is not known yet whether the driver takes imports: before the first context, or
// when it failed to answer. True in a fork child of a process that had attached.
GH_HIDDEN bool gh_ze_is_settled(const struct gh_ze_driver *driver);

// True while this thread is in a driver that a door called to make a context, or that we called on
// our own behalf. What that driver then calls may be behind a door too, when it is a proxy that hands
// on the functions of another one: such calls pass as they are, and only the outer driver is attached.
extern GH_HIDDEN GH_TLS bool gh_ze_in_driver;

// In a fork child of a process that had attached: has it made no context of its own? Then all that
// it can free is its parent's.
GH_HIDDEN bool gh_ze_has_only_parents(void);

// The scope that imports for this context belong to, or GH_NO_SCOPE. Lock-free.
GH_HIDDEN unsigned gh_ze_scope_of(struct gh_ze_driver *driver, ze_context_handle_t context);

// In a fork child: the locks of threads that are not there.
GH_HIDDEN void gh_ze_fork_child(void);

// Brings what is pending; the slow way of every door.
GH_HIDDEN void gh_ze_bring_pending(void);

static inline void gh_ze_pass(void) {
    if (gh_unlikely(gh_gpu_has_pending()))
        gh_ze_bring_pending();
}

#endif
