// SPDX-License-Identifier: MIT
//
// Frees and questions, functions that the driver hands out by name, the older import functions.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#define HEAP_BYTES ((size_t)200000)

static ze_result_t free_ext(ze_context_handle_t context, void *pointer) {
    const ze_memory_free_ext_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
                                             .freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE };
    return client.mem.t.pfnFreeExt(context, &desc, pointer);
}

// zeMemFreeExt frees what zeMemFree frees, and nothing else.
void case_free_ext(void) {
    unsigned char *block = malloc(HEAP_BYTES);
    unsigned char *m = client_pages(4);
    const ze_host_mem_alloc_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
    void *own = NULL;
    client_open();
    OK(client_wrap(client.context, block + 10, 1000));
    OK(client_wrap(client.context, m, P(4)));
    OK(client.mem.t.pfnAllocHost(client.context, &desc, P(3), 0, &own));
    uint64_t before = client_calls("zeMemFreeExt");
    OK(free_ext(client.context, block + 10));
    CHECK(free_ext(client.context, block + 10) == ZE_RESULT_ERROR_INVALID_ARGUMENT, "freed twice");
    CHECK(free_ext(client.context, block) == ZE_RESULT_ERROR_INVALID_ARGUMENT, "the heap is nobody's wrap");
    CHECK(free_ext(client.context, m + P(1)) == ZE_RESULT_ERROR_INVALID_ARGUMENT, "a wrap is freed by its start");
    CHECK(client_calls("zeMemFreeExt") == before, "the driver was asked to free an import");
    CHECK(client_type(client.context, block) == ZE_MEMORY_TYPE_HOST && client_pieces() == 1, "nothing went with it");
    OK(client_fill(client.list, m, P(4)));
    OK(free_ext(client.context, m));
    CHECK(client_pieces() == 0, "released");
    OK(free_ext(client.context, own));
    CHECK(client_sim().usm_live == 0, "the driver's own");
    CHECK(free_ext(client.context, m) != ZE_RESULT_SUCCESS && free_ext(client.context, NULL) != ZE_RESULT_SUCCESS,
          "the driver refuses it");
    CHECK(client_calls("zeMemFreeExt") == before + 3, "%llu calls", (unsigned long long)client_calls("zeMemFreeExt"));
}

static void must_be_range(const void *pointer, const void *base, size_t size) {
    void *got_base = NULL;
    size_t got_size = 0;
    OK(client.mem.t.pfnGetAddressRange(client.context, pointer, &got_base, &got_size));
    CHECK(got_base == base && got_size == size, "%p+%zu, not %p+%zu", got_base, got_size, base, size);
}

void case_ranges(void) {
    unsigned char *block = malloc(HEAP_BYTES);
    unsigned char *m = client_pages(4);
    client_open();
    OK(client_wrap(client.context, block + 10, 1000));
    OK(client_wrap(client.context, m + 1, 5000));
    must_be_range(block + 10, block + 10, 1000);
    must_be_range(m + 1, m + 1, 5000);
    must_be_range(m + 100, m, P(2)); // the import
    size_t size = 0;
    void *base = NULL;
    OK(client.mem.t.pfnGetAddressRange(client.context, m + 1, NULL, &size));
    OK(client.mem.t.pfnGetAddressRange(client.context, m + 1, &base, NULL));
    CHECK(size == 5000 && base == m + 1, "one of the two");
    OK(client.mem.t.pfnGetAddressRange(client.context, block + 2000, &base, &size));
    CHECK((unsigned char *)base <= block && (unsigned char *)base + size >= block + HEAP_BYTES, "the whole block lies in it");
    CHECK(client.mem.t.pfnGetAddressRange(client.context, m + P(3), &base, &size) != ZE_RESULT_SUCCESS, "nobody's");
    OK(client_unwrap(client.context, block + 10));
    OK(client_unwrap(client.context, m + 1));
    // Ranges that are none.
    CHECK(client_wrap(client.context, NULL, P(1)) == ZE_RESULT_ERROR_INVALID_ARGUMENT, "NULL");
    CHECK(client_wrap(client.context, m, 0) == ZE_RESULT_ERROR_INVALID_ARGUMENT, "empty");
    CHECK(client_wrap(client.context, m, SIZE_MAX) == ZE_RESULT_ERROR_INVALID_ARGUMENT, "wraps round");
    CHECK(client_wrap(client.context, (void *)(UINTPTR_MAX - P(2)), P(2)) == ZE_RESULT_ERROR_INVALID_ARGUMENT, "the end");
    CHECK(client.mem.t.pfnAllocHost(client.context, NULL, P(1), 0, &base) != ZE_RESULT_SUCCESS, "no description");
}

typedef ze_result_t (*named_copy_fn)(ze_command_list_handle_t, void *, const void *, size_t, const void *,
                                     ze_event_handle_t, uint32_t, ze_event_handle_t *);
typedef ze_result_t (*named_fill_fn)(ze_command_list_handle_t, void *, const void *, size_t, size_t, const void *,
                                     ze_event_handle_t, uint32_t, ze_event_handle_t *);
typedef ze_result_t (*nothing_fn)(ze_command_list_handle_t);

// A block in a region of its own that no driver has seen yet. As the driver would refuse it.
static unsigned char *new_region(unsigned char byte) {
    const size_t size = (size_t)12 << 20;
    unsigned char *block = malloc(size);
    CHECK(block != NULL, "no memory");
    memset(block, byte, size);
    return block;
}

// Commands by name pass the door as those of the tables do: what is pending is imported before
// them, and each is called with all its arguments, those on the stack too.
void case_by_name(void) {
    client_open();
    named_copy_fn copy = (named_copy_fn)client_function("zexCommandListAppendMemoryCopyWithParameters");
    named_fill_fn fill = (named_fill_fn)client_function("zexCommandListAppendMemoryFillWithParameters");
    CHECK(copy != NULL && fill != NULL, "the driver has none");
    ze_event_handle_t event = client_event();
    for (int round = 0; round < 3; round++) {
        unsigned char *from = new_region(7);
        unsigned char *to = new_region(0);
        OK(copy(client.list, to + 5, from + 3, 5000, NULL, event, 0, NULL));
        CHECK(to[4] == 0 && to[5] == 7 && to[5004] == 7 && to[5005] == 0, "copied");
        OK(client.events.t.pfnQueryStatus(event));
        OK(client.events.t.pfnHostReset(event));
        const unsigned char pattern[2] = { 4, 5 };
        unsigned char *fresh = new_region(1);
        OK(fill(client.list, fresh, pattern, 2, 1000, NULL, event, 0, NULL));
        CHECK(fresh[998] == 4 && fresh[999] == 5 && fresh[1000] == 1, "filled");
        OK(client.events.t.pfnQueryStatus(event));
        OK(client.events.t.pfnHostReset(event));
    }
    CHECK(client_function("zexCommandListAppendMemoryCopyWithParameters") == (void *)copy, "another one each time");
    // More names than there is room for, and a name that is too long: the driver's own functions.
    void *first = NULL;
    for (int i = 0; i < 24; i++) {
        char name[160];
        snprintf(name, sizeof(name), "zexCommandListAppendNothing%0*d", i == 20 ? 100 : 2, i);
        nothing_fn nothing = (nothing_fn)client_function(name);
        CHECK(nothing != NULL, "%s", name);
        uint64_t before = client_calls("zexCommandListAppendNothing");
        OK(nothing(client.list));
        CHECK(client_calls("zexCommandListAppendNothing") == before + 1, "%s does not reach the driver", name);
        if (i == 0)
            first = (void *)nothing;
        CHECK(i == 0 || (void *)nothing != first, "%s is another one's", name);
    }
    CHECK(client_function("zexCommandListAppendNothing00") == first, "the first of them");
    CHECK(client_function("zexKernelNobodyHasThis") == NULL && client_function("zeNobodyHasThis") == NULL, "unknown names");
    void *found;
    CHECK(client.driver_table.t.pfnGetExtensionFunctionAddress(client.driver, NULL, &found) != ZE_RESULT_SUCCESS &&
              client.driver_table.t.pfnGetExtensionFunctionAddress(client.driver, "zexKernel", NULL) != ZE_RESULT_SUCCESS,
          "NULL is the driver's to refuse");
}

static ze_result_t (*older_import)(ze_driver_handle_t, void *, size_t);
static ze_result_t (*older_release)(ze_driver_handle_t, void *);
static ze_result_t (*older_base)(ze_driver_handle_t, void *, void **);

static void find_older(void) {
    *(void **)(void *)&older_import = client_function("zexDriverImportExternalPointer");
    *(void **)(void *)&older_release = client_function("zexDriverReleaseImportedPointer");
    *(void **)(void *)&older_base = client_function("zexDriverGetHostPointerBaseAddress");
    CHECK(older_import != NULL && older_release != NULL && older_base != NULL, "the driver has none");
}

// Each kind of wrap is ended by its own kind of call.
void case_kinds_of_release(void) {
    unsigned char *block = malloc(HEAP_BYTES);
    unsigned char *m = client_pages(4);
    void *base = NULL;
    client_open();
    find_older();
    OK(client_wrap(client.context, m, P(4)));
    OK(client_wrap(client.context, block, 100));
    CHECK(older_release(client.driver, m) != ZE_RESULT_SUCCESS, "it was not imported that way");
    CHECK(older_release(client.driver, block) != ZE_RESULT_SUCCESS, "it was not imported that way");
    CHECK(client_type(client.context, m) == ZE_MEMORY_TYPE_HOST && client_pieces() == 1, "it is still there");
    OK(older_base(client.driver, m, &base));
    CHECK(base == m, "base of a wrap");
    OK(older_base(client.driver, block + 500, &base));
    CHECK((unsigned char *)base <= block, "base of the heap");
    CHECK(older_base(client.driver, client_pages(1), &base) != ZE_RESULT_SUCCESS, "nobody's");
    OK(client_unwrap(client.context, block));
    // Both on the same range: each goes by itself.
    OK(older_import(client.driver, m, P(4)));
    OK(older_release(client.driver, m));
    OK(client_fill(client.list, m, P(4)));
    OK(older_import(client.driver, m, P(4)));
    OK(client_unwrap(client.context, m));
    CHECK(client_pieces() == 1, "the older one holds it");
    OK(client_fill(client.list, m, P(4)));
    OK(older_release(client.driver, m));
    CHECK(client_pieces() == 0 && client_stats().wraps_live == 0, "none is left");
    CHECK(client_unwrap(client.context, m) != ZE_RESULT_SUCCESS && older_release(client.driver, m) != ZE_RESULT_SUCCESS, "none");
    CHECK(older_import(client.driver, NULL, P(1)) != ZE_RESULT_SUCCESS && older_import(client.driver, m, 0) != ZE_RESULT_SUCCESS &&
              older_import(client.driver, m, SIZE_MAX) != ZE_RESULT_SUCCESS, "ranges that are none");
}

// A driver-wide import before the program has a context: it must not be in the way of ours.
void case_older_first(void) {
    unsigned char *block = malloc(HEAP_BYTES);
    unsigned char *m = client_pages(4);
    void *base = NULL;
    client_load();
    find_older();
    CHECK(older_base(client.driver, m, &base) != ZE_RESULT_SUCCESS && older_release(client.driver, m) != ZE_RESULT_SUCCESS,
          "nothing is imported yet");
    OK(older_import(client.driver, block, HEAP_BYTES));
    OK(older_import(client.driver, m, P(4)));
    client.context = client_context();
    client.list = client_list(client.context, client.devices[0]);
    CHECK(client_sim().imports_older == 0, "the driver has two kinds of imports");
    OK(client_fill(client.list, block, HEAP_BYTES));
    OK(client_fill(client.list, m, P(4)));
    OK(client_wrap(client.context, block, 4096));
    OK(older_release(client.driver, block));
    OK(client_unwrap(client.context, block));
    OK(older_release(client.driver, m));
    CHECK(client_pieces() == 0 && client_type(client.context, block) == ZE_MEMORY_TYPE_HOST, "the heap stays");
}

// A finalizer in a forked child frees what the parent wrapped: a clean answer, and the driver,
// whose device the parent still uses, hears nothing. Run with GHSIM_CHILD=abort.
void case_child_frees(void) {
    unsigned char *block = malloc(HEAP_BYTES);
    unsigned char *m = client_pages(4);
    client_open();
    OK(client_wrap(client.context, block + 1, 1000));
    OK(client_wrap(client.context, m, P(4)));
    *(void **)(void *)&older_release = client_function("zexDriverReleaseImportedPointer");
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        OK(client.contexts.t.pfnEvictMemory(client.context, client.devices[0], m, P(4)));
        OK(client_unwrap(client.context, block + 1));
        OK(free_ext(client.context, block + 1));
        OK(client_unwrap(client.context, block + 1)); // once more: it cannot know
        OK(client_unwrap(client.context, m));
        OK(older_release(client.driver, m));
        munmap(m, P(4));
        free(block);
        void *volatile large = malloc((size_t)20 << 20);
        free(large);
        _exit(client_sim().calls_in_child == 0 ? 0 : 3);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child: status 0x%x", (unsigned)status);
    OK(client_fill(client.list, block, HEAP_BYTES));
    OK(client_fill(client.list, m, P(4)));
    OK(client_unwrap(client.context, block + 1));
    OK(client_unwrap(client.context, m));
}
