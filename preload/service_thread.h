// SPDX-License-Identifier: MIT
//
// One thread, started at the first attach and never in a process without a GPU: it lets freed
// memory decay while the program is idle, and imports and releases regions ahead of the door.
#ifndef GH_PRELOAD_SERVICE_THREAD_H
#define GH_PRELOAD_SERVICE_THREAD_H

#include "allocator/util.h"

// At the door, no lock held. Without a thread (the limits do not allow one) everything still
// works; memory then goes back when the program next passes the door or mallocs.
GH_HIDDEN void gh_service_thread_start(void);

// In an exit handler: returns when the thread is outside every driver and will not enter one.
GH_HIDDEN void gh_service_thread_stop(void);

GH_HIDDEN void gh_service_thread_fork_child(void);

#endif
