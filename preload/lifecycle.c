// SPDX-License-Identifier: MIT
//
// Start-up (lifecycle.h). Start-up reads the
// environment block directly, boots jemalloc with our hooks and publishes the result last.
#include "lifecycle.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "allocator/arena_set.h"
#include "aside.h"
#include "config.h"
#include "fork.h"
#include "gate.h"
#include "gpu.h"
#include "log.h"
#include "memory_events.h"

_Atomic int gh_life;
static GH_TLS bool starting_here;

// An arena for two processors, and 16 at most: the threads' caches keep them apart, and memory that
// is idle in one arena is no use to another.
static unsigned arenas_for(unsigned processors) {
    return processors <= 2 ? 1 : processors < 32 ? processors / 2 : 16;
}

static unsigned count_processors(void) {
    unsigned long mask[128]; // 8192 processors; the call itself: libc's may be interposed
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
    unsigned count = 0;
    for (long i = 0; i < bytes / (long)sizeof(mask[0]); i++)
        count += (unsigned)__builtin_popcountl(mask[i]);
    return count == 0 ? 1 : count;
}

static const char *program_path(void) {
    const char *path = (const char *)getauxval(AT_EXECFN); // NOLINT: the kernel's own string
    return path == NULL ? "" : path;
}

extern void *__libc_stack_end; // ld.so's: where the kernel put argc, argv and the environment

// libc sets `environ` in its own initialiser, which may run after the first allocation.
static char **find_environment(void) {
    if (environ != NULL)
        return environ;
    const long *stack = __libc_stack_end;
    return stack == NULL ? NULL : (char **)(uintptr_t)(stack + stack[0] + 2);
}

static const char *environment_value(const char *name) {
    char **environment = find_environment();
    size_t length = strlen(name);
    for (; environment != NULL && *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    }
    return NULL;
}

static bool is_limited(int resource) {
    struct rlimit limit;
    return syscall(SYS_prlimit64, 0, resource, NULL, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

// vm.overcommit_memory=2: what is mapped counts, whether it is used or not.
static bool overcommit_is_strict(void) {
    char policy = '0';
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        syscall(SYS_read, file, &policy, 1);
        syscall(SYS_close, file);
    }
    return policy == '2';
}

// Huge blocks share few regions, where what one leaves fits the next: a tenth less memory in programs that
// make and drop arrays. Only where it is no matter how much is mapped.
static size_t huge_region_min(size_t region_min) {
    bool matters = is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA) || overcommit_is_strict();
    return region_min * (matters ? 2 : 32);
}

static int start_heap(void) {
    struct gh_arena_options options = {
        .arenas = gh_config.arenas != 0 ? (unsigned)gh_config.arenas : arenas_for(count_processors()),
        .decay_ms = gh_config.decay_ms,
        .region_min_bytes = gh_align_up(gh_config.region_min, GH_PAGE_SIZE),
        .huge_region_min_bytes = gh_align_up(huge_region_min(gh_config.region_min), GH_PAGE_SIZE),
        .region_max_bytes = gh_align_up(gh_config.region_max, GH_PAGE_SIZE),
        .hugepages = gh_config.hugepages != 0,
        .whole_slots = !is_limited(RLIMIT_AS),
        .ops = &gh_gpu_region_ops,
    };
    // Before jemalloc registers its own: prepare handlers run last-registered-first, and the
    // pool's lock comes after jemalloc's.
    gh_fork_register();
    return gh_arena_set_start(&options);
}

static int start_as_starter(void) {
    int saved_errno = errno;
    starting_here = true;
    gh_log_start();
    bool privileged = getauxval(AT_SECURE) != 0;
    gh_config_read(find_environment(), privileged);
    int result = GH_LIFE_SERVING;
    if (!gh_config.enable || gh_config_lists(gh_config.exclude, program_path())) {
        result = GH_LIFE_ASIDE;
    } else if (gh_aside_find_sanitizer()) {
        gh_log(GH_LOG_WARNING, "this program is built with a sanitizer, whose malloc must stay its malloc; not active (if the sanitizer reports false errors, put its runtime first in LD_PRELOAD)");
        result = GH_LIFE_ASIDE;
    } else if (start_heap() != 0) {
        gh_log(GH_LOG_ERROR, "the heap could not be started (too little address space?); malloc is glibc's");
        result = GH_LIFE_ASIDE;
    }
    const char *help = privileged ? NULL : environment_value("GPUHOST_HELP");
    if (help != NULL && *help != '\0')
        gh_config_print(help);
    starting_here = false;
    atomic_store_explicit(&gh_life, result, memory_order_release);
    if (result == GH_LIFE_SERVING)
        gh_gate_open();
    if (gh_memory_events_start != NULL)
        gh_memory_events_start();
    errno = saved_errno;
    return result;
}

void gh_stay_aside(const char *why) {
    int expected = GH_LIFE_NEW;
    if (!atomic_compare_exchange_strong(&gh_life, &expected, GH_LIFE_STARTING))
        return;
    starting_here = true;
    gh_log_start();
    gh_config_read(find_environment(), getauxval(AT_SECURE) != 0);
    if (gh_config.enable && !gh_config_lists(gh_config.exclude, program_path()))
        gh_log(GH_LOG_WARNING, why);
    starting_here = false;
    atomic_store_explicit(&gh_life, GH_LIFE_ASIDE, memory_order_release);
    if (gh_memory_events_start != NULL)
        gh_memory_events_start();
}

int gh_start(void) {
    int expected = GH_LIFE_NEW;
    if (atomic_compare_exchange_strong(&gh_life, &expected, GH_LIFE_STARTING))
        return start_as_starter();
    while (expected == GH_LIFE_STARTING && !starting_here) {
        sched_yield();
        expected = atomic_load_explicit(&gh_life, memory_order_acquire);
    }
    return expected;
}
