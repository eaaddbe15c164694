// SPDX-License-Identifier: MIT
//
// The GHSIM_ environment, read once when the library is loaded, and the common prologue of every
// Level Zero function: refused in a fork child, handle checked, counted, failed if GHSIM_FAIL
// says so. No lock on the way in but for a function's first call.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_internal.h"

struct sim_config sim_config;

struct fault { char name[64]; uint64_t call; ze_result_t result; };
static struct fault faults[32];
static unsigned fault_count;

static pthread_mutex_t site_lock = PTHREAD_MUTEX_INITIALIZER; // list of sites; a leaf
static struct sim_site *sites;
static atomic_bool child;
static atomic_bool late;

bool sim_in_child(void)
{
    return atomic_load_explicit(&child, memory_order_relaxed);
}

static void mark_child(void)
{
    atomic_store(&child, true);
}

// Real drivers tear themselves down in an exit handler; what calls them afterwards meets ruins.
static void mark_late(void)
{
    atomic_store(&late, true);
}

static bool flag(const char *name, bool otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strcmp(value, "0") != 0 : otherwise;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

static void text(const char *name, char *out, size_t size)
{
    const char *value = getenv(name);
    if (value) snprintf(out, size, "%s", value);
}

// function:n[:result], separated by commas; n = 0 means every call.
static void parse_faults(const char *list)
{
    while (list && *list && fault_count < sizeof faults / sizeof faults[0]) {
        struct fault *fault = &faults[fault_count];
        const size_t length = strcspn(list, ",");
        const size_t name = strcspn(list, ":,");
        if (name < length && name < sizeof fault->name) {
            char *rest;
            memcpy(fault->name, list, name);
            fault->call = strtoull(list + name + 1, &rest, 0);
            fault->result = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
            if (*rest == ':') fault->result = (ze_result_t)strtoul(rest + 1, NULL, 0);
            fault_count++;
        } else {
            fprintf(stderr, "ghsim: GHSIM_FAIL: cannot read \"%.*s\"\n", (int)length, list);
        }
        list += length;
        if (*list == ',') list++;
    }
}

__attribute__((constructor)) static void read_environment(void)
{
    struct sim_config *c = &sim_config;
    const char *strict = getenv("GHSIM_STRICT"), *scope = getenv("GHSIM_SCOPE");
    const char *type = getenv("GHSIM_HOST_TYPE"), *pages = getenv("GHSIM_PAGE_CHECK");
    const char *in_child = getenv("GHSIM_CHILD"), *after_exit = getenv("GHSIM_LATE");
    c->refuse = strict && strcmp(strict, "refuse") == 0;
    c->context_scope = SIM_DEFAULT_CONTEXT_SCOPE;
    if (scope && *scope) c->context_scope = strcmp(scope, "context") == 0;
    c->host_type = type && strcmp(type, "host_imported") == 0 ? SIM_TYPE_HOST_IMPORTED : ZE_MEMORY_TYPE_HOST;
    c->page_check = SIM_PAGES_ALWAYS;
    if (pages && strcmp(pages, "release") == 0) c->page_check = SIM_PAGES_RELEASE;
    if (pages && (strcmp(pages, "off") == 0 || strcmp(pages, "0") == 0)) c->page_check = SIM_PAGES_OFF;
    c->child_abort = in_child && strcmp(in_child, "abort") == 0;
    c->late_abort = after_exit && strcmp(after_exit, "abort") == 0;
    c->first_device_only = flag("GHSIM_FIRST_DEVICE_ONLY", false);
    c->explicit_residency = flag("GHSIM_EXPLICIT_RESIDENCY", false);
    c->system_usm = flag("GHSIM_SYSTEM_USM", false);
    c->no_memmap = flag("GHSIM_NO_MEMMAP", false);
    c->refuse_memmap = flag("GHSIM_REFUSE_MEMMAP", false);
    c->other_address = flag("GHSIM_OTHER_ADDRESS", false);
    c->no_older = flag("GHSIM_NO_ZEX", false);
    c->noisy = flag("GHSIM_NOISY", false);
    c->plain_copy = flag("GHSIM_PLAIN_COPY", false);
    c->leak_check = flag("GHSIM_LEAKCHECK", false);
    c->ddi = flag("GHSIM_DDI", true);
    c->pin = flag("GHSIM_PIN", true);
    c->devices = (unsigned)number("GHSIM_DEVICES", 1);
    if (c->devices < 1 || c->devices > SIM_MAX_DEVICES) c->devices = 1;
    c->max_alloc = number("GHSIM_MAX_ALLOC", UINT64_C(0xffff0000));
    c->memory_limit = number("GHSIM_MEMORY_LIMIT", UINT64_MAX);
    c->delay_us = number("GHSIM_DELAY_US", 0);
    c->delay_us_per_mib = number("GHSIM_DELAY_US_PER_MIB", 0);
    c->wait_ms = number("GHSIM_WAIT_MS", 10000);
    text("GHSIM_LOG", c->log, sizeof c->log);
    text("GHSIM_REPORT", c->report, sizeof c->report);
    parse_faults(getenv("GHSIM_FAIL"));

    sim_handle_init(&sim_driver, SIM_DRIVER);
    for (unsigned i = 0; i < SIM_MAX_DEVICES; i++) {
        sim_handle_init(&sim_devices[i].handle, SIM_DEVICE);
        sim_devices[i].index = i;
    }
    pthread_atfork(NULL, NULL, mark_child);
    sim_pages_at_fork();
    if (c->late_abort) atexit(mark_late);
}

ze_result_t sim_fault(const char *name, uint64_t call)
{
    for (unsigned i = 0; i < fault_count; i++) {
        if ((faults[i].call == 0 || faults[i].call == call) && strcmp(faults[i].name, name) == 0) {
            SIM_COUNT(faults_injected, 1);
            sim_log("fault %s call %llu", name, (unsigned long long)call);
            return faults[i].result;
        }
    }
    return ZE_RESULT_SUCCESS;
}

ze_result_t sim_enter(struct sim_site *site, const void *handle, enum sim_kind kind)
{
    if (atomic_load_explicit(&late, memory_order_relaxed))
        return sim_violation(GHSIM_LATE_CALL, "%s after the driver's exit handler", site->name);
    if (sim_in_child()) {
        // A real driver hangs or misbehaves here; an error lets a careful program go on.
        SIM_COUNT(calls_in_child, 1);
        if (sim_config.child_abort) sim_violation(GHSIM_CHILD_CALL, "%s in a fork child", site->name);
        sim_log("child-call %s", site->name);
        return ZE_RESULT_ERROR_DEVICE_LOST;
    }
    if (!atomic_load_explicit(&site->known, memory_order_acquire)) {
        pthread_mutex_lock(&site_lock);
        if (!atomic_load_explicit(&site->known, memory_order_relaxed)) {
            site->next = sites;
            sites = site;
            atomic_store_explicit(&site->known, true, memory_order_release);
        }
        pthread_mutex_unlock(&site_lock);
    }
    const uint64_t call = atomic_fetch_add_explicit(&site->calls, 1, memory_order_relaxed) + 1;
    if (kind != SIM_ANY) {
        const struct sim_handle *h = handle;
        if (!h) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
        if (h->magic != SIM_MAGIC || h->kind != (uint32_t)kind)
            return sim_violation(GHSIM_BAD_HANDLE, "%s got handle %p", site->name, handle);
    }
    return fault_count ? sim_fault(site->name, call) : ZE_RESULT_SUCCESS;
}

uint64_t ghsim_calls(const char *function)
{
    uint64_t calls = 0;
    pthread_mutex_lock(&site_lock);
    for (const struct sim_site *site = sites; site; site = site->next)
        if (strcmp(site->name, function) == 0) calls += atomic_load(&site->calls);
    pthread_mutex_unlock(&site_lock);
    return calls;
}
