// SPDX-License-Identifier: MIT
//
// The failure loop over the library's parts, linked: for n = 1, 2, ... the n-th mmap, munmap,
// madvise or thread start of the library fails, or the n-th call of a driver function with each of
// the error codes, until a run meets no failure. Each run is a child that loads the simulated
// driver anew; at its end the tables of the allocator, the wraps and the pieces are walked.
//
//   inject_direct DRIVER KIND      KIND: mmap, munmap, madvise, thread, or a driver function;
//                                  once: one run, in this process, with GHSIM_FAIL as it is
#include <errno.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "allocator/arena_set.h"
#include "gate.h"
#include "gpu.h"
#include "level_zero/driver.h"
#include "pieces.h"
#include "scenario.h"
#include "service_thread.h"
#include "wraps.h"
#include "../syscall_words.h"

#define RUN_SECONDS 20

// What fails: the call with this number, or with `from` every one from it on.
static const char *kind = "";
static bool armed;
static bool from;
static unsigned long fail_at;
static _Atomic unsigned long calls;
static _Atomic unsigned long fired;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

static bool fails(const char *what) {
    if (!armed || strcmp(kind, what) != 0)
        return false;
    unsigned long call = ++calls;
    bool now = from ? call >= fail_at : call == fail_at;
    fired += now;
    return now;
}

long __wrap_syscall(long number, ...) {
    TEST_SYSCALL_WORDS(a, number);
    const char *what = number == SYS_mmap ? "mmap" : number == SYS_munmap ? "munmap" : number == SYS_madvise ? "madvise" : NULL;
    if (what != NULL && fails(what)) {
        errno = ENOMEM;
        return -1;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    return fails("thread") ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

static struct world world;

static void *allocate(size_t bytes, size_t alignment, bool zero) {
    return gh_allocate(bytes, alignment, zero, NULL);
}

static void *resize(void *block, size_t bytes) {
    return gh_reallocate(block, bytes, NULL);
}

static int unmap(void *start, size_t bytes) {
    gh_pieces_invalidate((uintptr_t)start, (uintptr_t)start + bytes);
    return munmap(start, bytes);
}

static int drop(void *start, size_t bytes) {
    return gh_pieces_around((uintptr_t)start, (uintptr_t)start + bytes, madvise, MADV_DONTNEED);
}

static bool visible(const void *pointer, size_t bytes) {
    uint64_t open = gh_gpu_open_scopes();
    for (unsigned scope = 0; scope < GH_SCOPE_MAX; scope++) {
        if ((open >> scope & 1) != 0 && !gh_gpu_covers(scope, pointer, bytes))
            return false;
    }
    return open != 0;
}

static unsigned scopes(void) {
    return (unsigned)__builtin_popcountll(gh_gpu_open_scopes());
}

static uint64_t regions(void) {
    struct gh_region_pool_stats stats;
    gh_region_pool_get_stats(gh_arena_set_heap(), &stats);
    return stats.region_count;
}

static uint64_t faults(void) {
    struct ghsim_stats stats = { 0 };
    if (world.sim_stats != NULL)
        world.sim_stats(&stats);
    return fired + stats.faults_injected;
}

static bool get_table(void *library, const char *name, void *table, bool behind_door) {
    void *found = behind_door ? gh_ze_driver_symbol(library, name) : dlsym(library, name);
    ze_result_t (*get)(ze_api_version_t, void *);
    memcpy(&get, &found, sizeof(get));
    return get != NULL && get(ZE_API_VERSION_CURRENT, table) == ZE_RESULT_SUCCESS;
}

// As the loader does it. False when a call on the way was made to fail.
static bool open_driver(const char *path) {
    static ze_global_dditable_t global;
    static ze_device_dditable_t device;
    static ze_driver_dditable_t driver;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(library != NULL);
    void *stats = dlsym(library, "ghsim_stats");
    memcpy(&world.sim_stats, &stats, sizeof(stats));
    MUST(get_table(library, "zeGetGlobalProcAddrTable", &global, false));
    MUST(get_table(library, "zeGetDeviceProcAddrTable", &device, false));
    MUST(get_table(library, "zeGetDriverProcAddrTable", &driver, true));
    MUST(get_table(library, "zeGetContextProcAddrTable", &world.context, true));
    MUST(get_table(library, "zeGetMemProcAddrTable", &world.mem, true));
    MUST(get_table(library, "zeGetCommandListProcAddrTable", &world.list, true));
    uint32_t count = 1;
    if (global.pfnInit(0) != ZE_RESULT_SUCCESS || driver.pfnGet(&count, &world.driver) != ZE_RESULT_SUCCESS)
        return false;
    count = 1;
    return device.pfnGet(world.driver, &count, &world.device) == ZE_RESULT_SUCCESS;
}

static int run(const char *driver) {
    alarm(RUN_SECONDS); // no hang
    armed = true;
    scenario_heap(&world);
    if (open_driver(driver))
        scenario_gpu(&world);
    scenario_heap(&world);
    armed = false;
    gh_service_thread_stop(); // it may have pages out, for a purge
    MUST(gh_region_pool_is_valid(gh_arena_set_heap()));
    MUST(gh_region_pool_is_valid(gh_arena_set_plain()));
    MUST(gh_wraps_is_valid());
    MUST(gh_pieces_is_valid());
    scenario_fork(&world);
    return faults() == 0 ? SCENARIO_NOTHING_FAILED : SCENARIO_FIRED;
}

// One child. The status it ended with; what a signal ended is 128 and more.
static int run_in_child(const char *driver) {
    pid_t child = fork();
    MUST(child != -1);
    if (child == 0)
        exit(run(driver));
    int status = 0;
    MUST(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static unsigned runs;
static unsigned bad;

#define EVERY 400u

// n = 1, 2, ... until nothing fails, or to `most`.
static void loop(const char *driver, const char *label, unsigned most) {
    for (fail_at = 1; fail_at <= most; fail_at++) {
        char fault[96];
        if (*label != '\0') {
            snprintf(fault, sizeof(fault), "%s:%lu:%s", kind, fail_at, label);
            setenv("GHSIM_FAIL", fault, 1);
        }
        int status = run_in_child(driver);
        runs++;
        if (status == SCENARIO_NOTHING_FAILED)
            return;
        if (status != SCENARIO_FIRED) {
            printf("inject: %s call %lu%s %s: status %d\n", kind, fail_at, from ? " and later" : "", label, status);
            bad++;
        }
    }
    if (most == EVERY) {
        printf("inject: %s: still failing after %u calls\n", kind, most);
        bad++;
    }
}

int main(int argc, char **argv) {
    // Each kind of answer that the library tells apart, for every n; the other codes for n = 1, 2, 3.
    static const char *const codes[] = { "0x70000002", "0x78000003", "0x7ffffffe", "0x70000001", "0x70000003",
                                         "0x78000001", "0x78000004", "0x78000008" };
    if (argc != 3)
        return 2;
    kind = argv[2];
    world = (struct world){ .allocate = allocate, .resize = resize, .release = gh_deallocate, .unmap = unmap,
                            .drop = drop, .visible = visible, .scopes = scopes, .regions = regions, .faults = faults };
    world.per_context = strstr(argv[1], "npu") != NULL;
    world.takes_imports = true;
    world.single = true;
    if (strcmp(kind, "once") == 0)
        return run(argv[1]);
    setvbuf(stdout, NULL, _IONBF, 0);
    if (strncmp(kind, "ze", 2) == 0 || strcmp(kind, "import") == 0) {
        // A driver that refuses to release keeps the pages of memory that went away.
        world.keeps_imports = strcmp(kind, "zeMemFree") == 0;
        setenv("GHSIM_STRICT", world.keeps_imports ? "refuse" : "abort", 1);
        for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
            loop(argv[1], codes[i], i < 3 ? EVERY : 3);
    } else {
        loop(argv[1], "", EVERY);
        from = true;
        world.single = false;
        loop(argv[1], "", EVERY);
    }
    printf("FIGURE inject_%s_runs %u runs\n", kind, runs);
    return bad == 0 ? 0 : 1;
}
