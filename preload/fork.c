// SPDX-License-Identifier: MIT
//
// The fork handlers (fork.h). In the child they reset locks and forget imports; they allocate
// nothing, start nothing and call no driver.
#include "fork.h"

#include <pthread.h>

#include "allocator/arena_set.h"
#include "allocator/lock.h"
#include "allocator/os_mem.h"
#include "driver_text.h"
#include "gpu.h"
#include "level_zero/attach.h"
#include "own_maps.h"
#include "service_thread.h"
#include "wraps.h"

static void prepare(void) {
    gh_region_pool_fork_prepare();
}

static void in_parent(void) {
    gh_region_pool_fork_parent();
}

static void in_child(void) {
    // What patches libc's functions may have locks that a thread of the parent holds.
    struct gh_os_release_ops ops = gh_os_release_by_kernel();
    gh_lock_forget_ranks();
    gh_gpu_fork_child();
    gh_wraps_fork_child();
    gh_own_maps_fork_child();
    gh_service_thread_fork_child();
    gh_ze_fork_child();
    gh_driver_text_fork_child();
    gh_arena_set_fork_child();
    gh_region_pool_fork_child(gh_arena_set_heap());
    gh_region_pool_fork_child(gh_arena_set_plain());
    gh_os_set_release_ops(&ops);
}

void gh_fork_register(void) {
    pthread_atfork(prepare, in_parent, in_child);
}
