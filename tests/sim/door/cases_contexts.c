// SPDX-License-Identifier: MIT
//
// Contexts: made for some devices, made by nobody, destroyed with what was wrapped in them, more
// of them than there is room for; residency.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cases.h"

#define HEAP_BYTES ((size_t)200000)

static unsigned char *heap_block(size_t size) {
    unsigned char *block = malloc(size);
    CHECK(block != NULL, "no memory");
    memset(block, 1, size);
    return block;
}

static bool is_known(ze_context_handle_t context, const void *pointer) {
    return client_type(context, pointer) != ZE_MEMORY_TYPE_UNKNOWN;
}

// Imports are mapped for the first device of the first context that the program makes.
// Run with GHSIM_DEVICES=2, GHSIM_FIRST_DEVICE_ONLY=1.
void case_context_of_devices(void) {
    const ze_context_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
    ze_context_handle_t context = NULL;
    unsigned char *block = heap_block(HEAP_BYTES);
    client_load();
    CHECK(client.device_count == 2, "%u devices", client.device_count);
    CHECK(client.contexts.t.pfnCreateEx(client.driver, NULL, 1, &client.devices[1], &context) != ZE_RESULT_SUCCESS, "no description");
    CHECK(client_stats().scopes == 0, "nothing was made, so nothing is attached");
    OK(client.contexts.t.pfnCreateEx(client.driver, &desc, 1, &client.devices[1], &context));
    CHECK(is_known(context, block), "the heap");
    ze_command_list_handle_t list = client_list(context, client.devices[1]);
    OK(client_fill(list, block, HEAP_BYTES));
    CHECK(block[0] == 0 && block[HEAP_BYTES - 1] == 0, "filled");
    unsigned char *m = client_pages(2);
    OK(client_wrap(context, m, P(2)));
    OK(client_fill(list, m, P(2)));
    OK(client_unwrap(context, m));
}

static void use_default_context(ze_context_handle_t context, const unsigned char *block) {
    CHECK(context != NULL, "the driver gives none");
    CHECK(is_known(context, block), "the heap");
    ze_command_list_handle_t list = client_list(context, client.devices[0]);
    unsigned char *later = heap_block((size_t)12 << 20); // a region that is newer than the context
    OK(client_fill(list, later, (size_t)12 << 20));
    unsigned char *m = client_pages(2);
    OK(client_wrap(context, m, P(2)));
    OK(client_fill(list, m, P(2)));
    OK(client_unwrap(context, m));
    CHECK(client_pieces() == 0, "released");
}

// The context that the driver has ready; nobody creates it.
void case_default_context(void) {
    unsigned char *block = heap_block(HEAP_BYTES);
    client_load();
    ze_context_handle_t (*get)(ze_driver_handle_t) =
        (ze_context_handle_t(*)(ze_driver_handle_t))client.driver_table.entries[8];
    CHECK(get != NULL, "the driver has no such function");
    use_default_context(get(client.driver), block);
    CHECK(get(client.driver) == get(client.driver) && client_stats().scopes == 1, "asking again attaches nothing");
}

// The same without a driver handle.
void case_runtime_context(void) {
    unsigned char *block = heap_block(HEAP_BYTES);
    client_load();
    ze_context_handle_t (*get)(void) = (ze_context_handle_t(*)(void))client.runtime.entries[3];
    CHECK(get != NULL, "the driver has no such function");
    use_default_context(get(), block);
}

// What was wrapped in a context goes with it, what others wrapped stays.
void case_destroyed_with_wraps(void) {
    unsigned char *block = heap_block(HEAP_BYTES);
    unsigned char *m = client_pages(6);
    client_open();
    ze_context_handle_t other = client_context();
    OK(client_wrap(client.context, m, P(2)));
    uint64_t pieces = client_pieces();
    OK(client_wrap(other, m + P(1), P(4)));
    OK(client_wrap(other, block, HEAP_BYTES));
    OK(client_wrap(other, block, HEAP_BYTES));
    OK(client_wrap(other, block + 64, 64));
    CHECK(client_stats().wraps_live == 5 && client_pieces() > pieces, "wraps");
    OK(client.contexts.t.pfnDestroy(other));
    CHECK(client_stats().wraps_live == 1, "%llu wraps live", (unsigned long long)client_stats().wraps_live);
    CHECK(client_pieces() == pieces, "%llu pieces", (unsigned long long)client_pieces());
    CHECK(!is_known(client.context, m + P(4)) && is_known(client.context, m) && is_known(client.context, block), "types");
    OK(client_fill(client.list, m, P(2)));
    OK(client_fill(client.list, block, HEAP_BYTES));
    OK(client_unwrap(client.context, m));
    CHECK(client_pieces() == 0, "the last one");
    munmap(m, P(6)); // nobody's any more
    OK(client.lists.t.pfnDestroy(client.list));
    OK(client.contexts.t.pfnDestroy(client.context));
    CHECK(client.contexts.t.pfnDestroy(NULL) != ZE_RESULT_SUCCESS, "nobody's context");
}

// More in a row than there is room for at a time.
void case_contexts_come_and_go(void) {
    unsigned char *block = heap_block(HEAP_BYTES);
    unsigned char *m = client_pages(2);
    client_load();
    for (int i = 0; i < 100; i++) {
        ze_context_handle_t context = client_context();
        CHECK(is_known(context, block), "context %d", i);
        OK(client_wrap(context, m, P(2)));
        OK(client.contexts.t.pfnDestroy(context));
        CHECK(client_pieces() == 0 && client_stats().wraps_live == 0, "context %d left something", i);
    }
}

#define MANY 70

// In a driver whose imports belong to a context 64 of them see the heap; another one is served by
// the driver alone, and one that goes makes room. Run with GHSIM_PIN=0.
void case_too_many_contexts(void) {
    unsigned char *block = heap_block(HEAP_BYTES);
    unsigned char *m = client_pages(2);
    ze_context_handle_t contexts[MANY];
    client_load();
    unsigned known = 0;
    for (int i = 0; i < MANY; i++) {
        contexts[i] = client_context();
        known += is_known(contexts[i], block);
    }
    CHECK(known == 64 || known == MANY, "%u contexts see the heap", known);
    ze_context_handle_t last = contexts[MANY - 1];
    OK(client_wrap(last, m, P(2)));
    CHECK(is_known(last, m), "a wrap");
    OK(client_unwrap(last, m));
    CHECK(!is_known(last, m), "and no more");
    OK(client.contexts.t.pfnDestroy(contexts[3]));
    contexts[3] = client_context();
    CHECK(is_known(contexts[3], block), "there is room again");
    for (int i = 0; i < MANY; i++)
        OK(client.contexts.t.pfnDestroy(contexts[i]));
}

static ze_result_t resident(void *pointer, size_t size) {
    return client.contexts.t.pfnMakeMemoryResident(client.context, client.devices[0], pointer, size);
}

static ze_result_t evict(void *pointer, size_t size) {
    return client.contexts.t.pfnEvictMemory(client.context, client.devices[0], pointer, size);
}

// Every import under a range is made resident, and what we import is never evicted.
// Run with GHSIM_EXPLICIT_RESIDENCY=1.
void case_residency(void) {
    unsigned char *block = heap_block(HEAP_BYTES);
    unsigned char *m = client_pages(6);
    client_open();
    OK(client_wrap(client.context, m + P(2), P(1)));
    OK(client_wrap(client.context, m, P(6))); // three pieces
    uint64_t before = client_calls("zeContextMakeMemoryResident");
    OK(resident(m, P(6)));
    CHECK(client_calls("zeContextMakeMemoryResident") - before == 3 && client_sim().residency_partial == 0,
          "each piece by itself");
    OK(resident(block + 100, 5000));
    before = client_calls("zeContextEvictMemory");
    OK(evict(m, P(6)));
    OK(evict(block + 100, 5000));
    CHECK(client_calls("zeContextEvictMemory") == before, "the driver was asked to evict");
    OK(client_fill(client.list, m, P(6)));
    // The driver's own memory is the driver's to answer for, as is a range that is none.
    const ze_host_mem_alloc_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
    void *own = NULL;
    OK(client.mem.t.pfnAllocHost(client.context, &desc, P(1), 0, &own));
    before = client_calls("zeContextEvictMemory");
    OK(resident(own, P(1)));
    OK(evict(own, P(1)));
    CHECK(client_calls("zeContextEvictMemory") == before + 1, "not asked for its own memory");
    OK(client_unwrap(client.context, own));
    before = client_calls("zeContextMakeMemoryResident");
    (void)resident(m, 0);
    (void)resident(m, SIZE_MAX);
    CHECK(client_calls("zeContextMakeMemoryResident") == before + 2, "passed on");
    (void)evict(m, 0);
    // A wrap whose end went away: the rest is made resident, then the driver says what it thinks.
    munmap(m + P(4), P(2));
    CHECK(resident(m, P(6)) != ZE_RESULT_SUCCESS, "memory that is gone");
    OK(resident(m, P(4)));
    OK(client_unwrap(client.context, m));
    OK(client_unwrap(client.context, m + P(2)));
}

struct ddi_properties {
    ze_structure_type_t stype;
    void *next;
    uint32_t flags;
};

// A loader that believed this flag would go round the tables.
void case_handles_without_tables(void) {
    client_load();
    struct ddi_properties last = { .stype = (ze_structure_type_t)0x00020027, .flags = 7 };
    struct ddi_properties first = { .stype = (ze_structure_type_t)0x0002fffe, .next = &last, .flags = 7 };
    ze_driver_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES, .pNext = &first };
    OK(client.driver_table.t.pfnGetProperties(client.driver, &properties));
    CHECK((last.flags & 1) == 0 && properties.driverVersion != 0, "flags %u", last.flags);
    CHECK(first.flags == 7, "another structure was changed");
    properties.pNext = NULL;
    OK(client.driver_table.t.pfnGetProperties(client.driver, &properties));
    CHECK(client.driver_table.t.pfnGetProperties(client.driver, NULL) != ZE_RESULT_SUCCESS, "NULL is the driver's to refuse");
}
