// SPDX-License-Identifier: MIT
//
// Intel's real driver without hardware, met by a plain C program: links nothing but libc, opens the
// loader itself, allocates with malloc, and wraps, fills, copies and launches on what malloc gave.
//
//   intel_client [--init-drivers] [--kernels DIR] [--devices N] [--release | --hide | --plain | --overlap]
//
// Without --plain it expects libgpuhost in the process (weak symbols of gpuhost.h). --plain: the bare
// driver, each block a mapping of its own. --overlap: only two wraps of one malloc'ed block that share a
// page, which the bare driver answers by aborting. --release: memory given back to the kernel. --hide: for
// a run with GPUHOST_HIDE=1. One thread. Exit status 0: every check held.
#include "client.h"

#include "gpuhost.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int failed_checks;

bool check_(bool holds, const char *file, int line, const char *format, ...) {
    enum { MOST_PRINTED = 40 };
    if (!holds && ++failed_checks <= MOST_PRINTED) {
        va_list arguments;
        va_start(arguments, format);
        printf("%s:%d: FAILED: ", file, line);
        vprintf(format, arguments);
        putchar('\n');
        fflush(stdout);
        va_end(arguments);
    }
    return holds;
}

int client_is_visible(const void *address, size_t size_bytes) {
    return gpuhost_is_visible == NULL ? -1 : gpuhost_is_visible(address, size_bytes);
}

ze_memory_type_t client_memory_type(ze_context_handle_t context, const void *address) {
    ze_memory_allocation_properties_t properties = {
        .stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
    };
    ze_device_handle_t device = NULL;
    ze_result_t result = ze.zeMemGetAllocProperties(context, address, &properties, &device);
    CHECK(result == ZE_RESULT_SUCCESS, "zeMemGetAllocProperties, not 0x%x", (unsigned)result);
    return properties.type;
}

ze_context_handle_t client_context(const struct client *client) {
    ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    ze_context_handle_t context = NULL;
    ze_result_t result = ze.zeContextCreate(client->driver, &desc, &context);
    if (result != ZE_RESULT_SUCCESS) {
        printf("zeContextCreate: 0x%x\n", (unsigned)result);
        exit(2);
    }
    return context;
}

// The bare driver and no shared pages: everything that the real run checks works at all.
static void run_plain(const struct client *client) {
    ze_context_handle_t context = client_context(client);
    struct block_set set = blocks_allocate(client);
    wraps_check_table(client, context, &set, true);
    blocks_check_visible(client, context, &set, "wrapped");
    work_check(client, context, &set);
    work_check_refused(client, context);
    own_buffers_check(client, context);
    for (size_t i = 0; i < set.count; i++) {
        ze.zeMemFree(context, set.blocks[i].address);
    }
    blocks_free(client, &set);
    CHECK(ze.zeContextDestroy(context) == ZE_RESULT_SUCCESS, "context destroyed");
}

static void check_stats(void) {
    struct gpuhost_stats stats;
    if (!CHECK(gpuhost_stats(&stats) == 0, "statistics can be read")) {
        return;
    }
    CHECK(stats.scopes > 0 && stats.regions > 0 && stats.imports > 0,
          "%llu regions, %llu imports in %llu scopes", (unsigned long long)stats.regions,
          (unsigned long long)stats.imports, (unsigned long long)stats.scopes);
    CHECK(stats.bytes_refused == 0 && stats.bytes_imported > 0 && stats.bytes_imported <= stats.bytes_mapped,
          "%llu of %llu bytes imported, %llu refused", (unsigned long long)stats.bytes_imported,
          (unsigned long long)stats.bytes_mapped, (unsigned long long)stats.bytes_refused);
    CHECK(stats.wraps_refused == 0 && stats.wraps_passed_on == 0,
          "%llu wraps in the heap were refused, %llu passed on", (unsigned long long)stats.wraps_refused,
          (unsigned long long)stats.wraps_passed_on);
}

static void run_preloaded(const struct client *client, struct block_set *early) {
    ze_context_handle_t first = client_context(client);
    blocks_check_visible(client, first, early, "allocated before the context");
    struct block_set late = blocks_allocate(client);
    blocks_check_visible(client, first, &late, "allocated after the context");

    wraps_check_table(client, first, early, false);
    blocks_check_visible(client, first, early, "after the wraps were freed");
    wraps_check_overlaps(first);
    wraps_check_foreign_free(first);
    work_check(client, first, early);
    work_check(client, first, &late);
    own_buffers_check(client, first);

    ze_context_handle_t second = client_context(client);
    blocks_check_visible(client, second, &late, "in a context made after the heap grew");
    wraps_check_table(client, first, &late, true);
    CHECK(ze.zeContextDestroy(first) == ZE_RESULT_SUCCESS, "context destroyed with live wraps");
    blocks_check_visible(client, second, early, "after another context went");
    work_check(client, second, &late);
    check_stats();

    blocks_free(client, early);
    struct block_set again = blocks_allocate(client);
    blocks_check_visible(client, second, &again, "allocated where others were freed");
    blocks_free(client, &again);
    blocks_free(client, &late);
    CHECK(ze.zeContextDestroy(second) == ZE_RESULT_SUCCESS, "last context destroyed");
}

// GPUHOST_HIDE=1: the heap answers as if it were unknown until it is wrapped, the driver's own buffers
// answer as ever.
static void run_hidden(const struct client *client, const struct block_set *early) {
    ze_context_handle_t context = client_context(client);
    for (size_t i = 0; i < early->count; i++) {
        ze_memory_type_t type = client_memory_type(context, early->blocks[i].address);
        CHECK(type == ZE_MEMORY_TYPE_UNKNOWN, "%zu bytes are hidden, not %d", early->blocks[i].size_bytes,
              (int)type);
    }
    wraps_check_table(client, context, early, true);
    // Asked at the wrap's own address: pointers further inside are not looked at here.
    for (size_t i = 0; i < early->count; i++) {
        struct wrap wrap = wrap_pages(early->blocks[i].address, early->blocks[i].size_bytes);
        ze_memory_type_t type = client_memory_type(context, wrap.address);
        CHECK(type == ZE_MEMORY_TYPE_HOST, "the wrap of %zu bytes is HOST, not %d",
              early->blocks[i].size_bytes, (int)type);
    }
    own_buffers_check(client, context);
    CHECK(ze.zeContextDestroy(context) == ZE_RESULT_SUCCESS, "context destroyed");
}

int main(int argc, char **argv) {
    struct client client = {0};
    bool init_drivers = false;
    bool overlap = false;
    bool release = false;
    bool hide = false;
    uint32_t expected_devices = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--init-drivers") == 0) {
            init_drivers = true;
        } else if (strcmp(argv[i], "--plain") == 0) {
            client.plain = true;
        } else if (strcmp(argv[i], "--overlap") == 0) {
            overlap = true;
        } else if (strcmp(argv[i], "--release") == 0) {
            release = true;
        } else if (strcmp(argv[i], "--hide") == 0) {
            hide = true;
        } else if (strcmp(argv[i], "--kernels") == 0 && i + 1 < argc) {
            client.kernel_dir = argv[++i];
        } else if (strcmp(argv[i], "--devices") == 0 && i + 1 < argc) {
            expected_devices = (uint32_t)atoi(argv[++i]);
        } else {
            fprintf(stderr, "unknown argument: %s\n", argv[i]);
            return 2;
        }
    }
    bool preloaded = !client.plain && !overlap;
    CHECK(preloaded == (gpuhost_is_visible != NULL), "libgpuhost is%s in the process",
          preloaded ? "" : " not");
    if (failed_checks > 0) {
        return 1;
    }

    struct block_set early = {NULL, 0};
    if (preloaded) {
        early = blocks_allocate(&client);
    }
    client.driver = ze_dl_open(init_drivers);
    client.device_count = MAX_DEVICES;
    ze.zeDeviceGet(client.driver, &client.device_count, client.devices);
    CHECK(client.device_count == expected_devices, "%u devices, not %u", expected_devices,
          client.device_count);

    if (overlap) {
        wraps_check_overlaps(client_context(&client));
    } else if (client.plain) {
        run_plain(&client);
    } else if (release) {
        release_check(&client, client_context(&client));
    } else if (hide) {
        run_hidden(&client, &early);
    } else {
        run_preloaded(&client, &early);
    }
    printf("%s: %d checks failed\n", failed_checks == 0 ? "ok" : "FAILED", failed_checks);
    return failed_checks == 0 ? 0 : 1;
}
