// SPDX-License-Identifier: MIT
//
// Drivers that do not answer at first, or never take an import: what the program wraps meanwhile
// must not be in the way later, and it runs.
#include <stdlib.h>
#include <string.h>

#include "cases.h"

#define HEAP_BYTES ((size_t)200000)

// The first attempt fails, a later one succeeds. Run with one failure each time, among them
// GHSIM_FAIL=import:1, zeContextCreateEx:1, zeMemGetAllocProperties:1.
void case_fails_once(void) {
    unsigned char *block = malloc(HEAP_BYTES);
    unsigned char *m = client_pages(4);
    client_load();
    client.context = client_context();
    CHECK(client_sim().faults_injected == 1, "nothing failed");
    OK(client_wrap(client.context, block, HEAP_BYTES));
    OK(client_wrap(client.context, m, P(4)));
    ze_context_handle_t other = client_context(); // its imports would meet the driver's own ones
    client.list = client_list(client.context, client.devices[0]);
    OK(client_fill(client.list, block, HEAP_BYTES));
    CHECK(client_type(other, block) == ZE_MEMORY_TYPE_HOST, "the heap");
    OK(client_unwrap(client.context, block));
    OK(client_unwrap(client.context, m));
    CHECK(client_pieces() == 0, "released");
    CHECK(client_type(client.context, block) == ZE_MEMORY_TYPE_HOST, "the heap stays");
}

// Run with GHSIM_FAIL=import:0.
void case_fails_always(void) {
    unsigned char *block = malloc(HEAP_BYTES);
    client_open();
    ze_context_handle_t other = client_context();
    for (int i = 0; i < 3; i++)
        CHECK(client_wrap(i == 1 ? other : client.context, block, HEAP_BYTES) == ZE_RESULT_ERROR_NOT_AVAILABLE, "wrap %d", i);
    CHECK(client_sim().imports_live == 0 && client_stats().scopes == 0, "imports");
    CHECK(client_type(client.context, block) == ZE_MEMORY_TYPE_UNKNOWN, "type");
    CHECK(client_unwrap(client.context, block) != ZE_RESULT_SUCCESS, "nothing to free");
    memset(block, 3, HEAP_BYTES);
    free(block);
}

// It says twice that it takes none, which is believed: afterwards wraps are the driver's to answer.
// Run with GHSIM_REFUSE_MEMMAP=1.
void case_refuses_twice(void) {
    unsigned char *block = malloc(HEAP_BYTES);
    client_open();
    CHECK(client_wrap(client.context, block, HEAP_BYTES) == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, "the driver's answer");
    uint64_t before = client_sim().imports_refused;
    (void)client_context();
    CHECK(client_sim().imports_refused == before, "asked for good");
    CHECK(client_wrap(client.context, block, HEAP_BYTES) == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, "the driver's answer");
    CHECK(client_sim().imports_refused == before + 1, "asked for the program only");
}

// Run with GHSIM_NO_MEMMAP=1.
void case_no_memmap(void) {
    unsigned char *block = malloc(HEAP_BYTES);
    client_open();
    CHECK(client_sim().imports_refused == 0, "asked for what it does not have");
    CHECK(client_wrap(client.context, block, HEAP_BYTES) == ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION, "the driver's answer");
    const ze_host_mem_alloc_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC };
    void *own = NULL;
    OK(client.mem.t.pfnAllocHost(client.context, &desc, P(3), 0, &own));
    OK(client_fill(client.list, own, P(3)));
    OK(client_unwrap(client.context, own));
}

// The program alone imports. Run with GPUHOST_IMPORT=never.
void case_never(void) {
    unsigned char *m = client_pages(4);
    client_open();
    CHECK(client_sim().imports == 0, "nothing is imported");
    OK(client_wrap(client.context, m, P(4)));
    OK(client_fill(client.list, m, P(4)));
    CHECK(client_stats().wraps_live == 0 && client_sim().imports_live == 1, "it is the driver's");
    OK(client_unwrap(client.context, m));
    OK(client.contexts.t.pfnDestroy(client.context));
}
