// SPDX-License-Identifier: MIT
//
// Preloaded after libgpuhost, it makes any program a user of the GPU: with BENCH_ATTACH=1 it
// creates a context when the program starts and passes the door every 10 ms, as a program that
// works with its GPU does, so that new memory is imported while the program runs. With
// BENCH_ATTACH=0 it does nothing. A fork child is left alone.
#include <dlfcn.h>
#include <level_zero/ze_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef ze_result_t (*init_fn)(ze_init_flags_t);
typedef ze_result_t (*driver_get_fn)(uint32_t *, ze_driver_handle_t *);
typedef ze_result_t (*context_create_fn)(ze_driver_handle_t, const ze_context_desc_t *, ze_context_handle_t *);
typedef ze_result_t (*properties_fn)(ze_context_handle_t, const void *, ze_memory_allocation_properties_t *,
                                     ze_device_handle_t *);

static properties_fn properties;
static ze_context_handle_t context;
static atomic_bool stop;
static pthread_t thread;
static pid_t owner;

static void *knock(void *unused) {
    (void)unused;
    while (!atomic_load(&stop)) {
        ze_memory_allocation_properties_t answer = { .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES };
        properties(context, &stop, &answer, NULL);
        nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
    }
    return NULL;
}

__attribute__((constructor)) static void attach(void) {
    const char *wanted = getenv("BENCH_ATTACH");
    if (wanted == NULL || strcmp(wanted, "1") != 0)
        return;
    void *loader = dlopen("libze_loader.so.1", RTLD_NOW);
    ze_driver_handle_t driver = NULL;
    uint32_t one = 1;
    const ze_context_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
    if (loader == NULL || ((init_fn)(uintptr_t)dlsym(loader, "zeInit"))(0) != ZE_RESULT_SUCCESS ||
        ((driver_get_fn)(uintptr_t)dlsym(loader, "zeDriverGet"))(&one, &driver) != ZE_RESULT_SUCCESS ||
        ((context_create_fn)(uintptr_t)dlsym(loader, "zeContextCreate"))(driver, &desc, &context) !=
            ZE_RESULT_SUCCESS) {
        fputs("bench: no simulated driver to attach to\n", stderr);
        _exit(9);
    }
    properties = (properties_fn)(uintptr_t)dlsym(loader, "zeMemGetAllocProperties");
    owner = getpid();
    if (pthread_create(&thread, NULL, knock, NULL) != 0)
        _exit(9);
}

__attribute__((destructor)) static void detach(void) {
    if (owner == 0 || owner != getpid())
        return;
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}
