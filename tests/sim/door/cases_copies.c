// SPDX-License-Identifier: MIT
//
// Copies and fills that touch more than one import, or one and memory that is none. The driver
// aborts where a call leaves the import that it started in.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cases.h"

#define WIDTH 100u
#define HEIGHT 90u
#define DEPTH 3u
#define PITCH 160u
#define SLICE (PITCH * 120u)

// Twenty pages in five pieces, each of another size.
static unsigned char *wrapped_in_pieces(ze_context_handle_t context) {
    static const struct {
        size_t start, pages;
    } parts[] = { { 1, 2 }, { 3, 1 }, { 6, 5 }, { 0, 20 } };
    unsigned char *m = client_pages(20);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        OK(client_wrap(context, m + P(parts[i].start), P(parts[i].pages)));
    CHECK(client_pieces() >= 5, "%llu pieces", (unsigned long long)client_pieces());
    return m;
}

static void count_up(unsigned char *at, size_t size) {
    for (size_t i = 0; i < size; i++)
        at[i] = (unsigned char)(i * 7 + i / 251);
}

static void must_be_box(const unsigned char *to, const ze_copy_region_t *to_box, uint32_t to_pitch, uint32_t to_slice,
                        const unsigned char *from, const ze_copy_region_t *from_box, uint32_t from_pitch,
                        uint32_t from_slice) {
    uint32_t planes = to_box->depth == 0 ? 1 : to_box->depth;
    for (size_t z = 0; z < planes; z++) {
        for (size_t y = 0; y < to_box->height; y++) {
            const unsigned char *a = to + (z + to_box->originZ) * to_slice + (y + to_box->originY) * to_pitch + to_box->originX;
            const unsigned char *b =
                from + (z + from_box->originZ) * from_slice + (y + from_box->originY) * from_pitch + from_box->originX;
            CHECK(memcmp(a, b, to_box->width) == 0, "plane %zu, row %zu", z, y);
        }
    }
}

static ze_result_t copy_box(void *to, const ze_copy_region_t *to_box, const void *from, const ze_copy_region_t *from_box,
                            ze_event_handle_t event) {
    return client.lists.t.pfnAppendMemoryCopyRegion(client.list, to, to_box, PITCH, SLICE, from, from_box, PITCH, SLICE,
                                                    event, 0, NULL);
}

void case_boxes(void) {
    client_open();
    unsigned char *m = wrapped_in_pieces(client.context);
    unsigned char *block = malloc(P(20));
    ze_event_handle_t event = client_event();
    const ze_copy_region_t here = { .originX = 20, .originY = 5, .originZ = 0, .width = WIDTH, .height = HEIGHT, .depth = DEPTH };
    const ze_copy_region_t there = { .originX = 3, .originY = 11, .originZ = 1, .width = WIDTH, .height = HEIGHT, .depth = DEPTH };
    const ze_copy_region_t flat = { .originX = 60, .originY = 90, .width = 77, .height = 30, .depth = 0 };
    // Out of the pieces, into them, and from one place in them to another.
    count_up(m, P(20));
    memset(block, 0, P(20));
    OK(copy_box(block, &there, m, &here, event));
    must_be_box(block, &there, PITCH, SLICE, m, &here, PITCH, SLICE);
    CHECK(client.events.t.pfnQueryStatus(event) == ZE_RESULT_SUCCESS, "the event of a copy in parts");
    CHECK(block[0] == 0 && block[SLICE] == 0 && block[P(20) - 1] == 0, "only the box");
    memset(m, 0, P(20));
    count_up(block, P(20));
    OK(copy_box(m, &here, block, &there, NULL));
    must_be_box(m, &here, PITCH, SLICE, block, &there, PITCH, SLICE);
    CHECK(m[0] == 0 && m[P(20) - 1] == 0, "only the box");
    count_up(m, P(20));
    OK(client.lists.t.pfnAppendMemoryCopyRegion(client.list, m + P(10) + 17, &flat, 321, 0, m + 5, &flat, PITCH, 0, NULL, 0, NULL));
    must_be_box(m + P(10) + 17, &flat, 321, 0, m + 5, &flat, PITCH, 0);
    // A box whose rows all lie in one import is the driver's in one.
    uint64_t before = client_calls("zeCommandListAppendMemoryCopyRegion");
    OK(copy_box(block, &here, block + P(10), &flat, NULL) == ZE_RESULT_SUCCESS ? ZE_RESULT_ERROR_UNKNOWN : ZE_RESULT_SUCCESS); // not alike
    OK(copy_box(block, &flat, block + P(10), &flat, NULL));
    CHECK(client_calls("zeCommandListAppendMemoryCopyRegion") == before + 2, "in one");
}

// What is no box is the driver's to refuse.
void case_boxes_refused(void) {
    client_open();
    unsigned char *m = wrapped_in_pieces(client.context);
    unsigned char *block = malloc(P(20));
    const ze_copy_region_t box = { .width = WIDTH, .height = HEIGHT, .depth = 1 };
    const ze_copy_region_t thin = { .width = 0, .height = HEIGHT, .depth = 1 };
    const ze_copy_region_t low = { .width = WIDTH, .height = 0, .depth = 1 };
    CHECK(copy_box(block, NULL, m, &box, NULL) != ZE_RESULT_SUCCESS, "no box");
    CHECK(copy_box(block, &box, m, NULL, NULL) != ZE_RESULT_SUCCESS, "no box");
    memset(block, 9, P(20));
    OK(copy_box(block, &thin, m, &thin, NULL));
    OK(copy_box(block, &low, m, &low, NULL));
    for (size_t i = 0; i < P(20); i++)
        CHECK(block[i] == 9, "byte %zu of an empty box", i);
    const unsigned char one = 1;
    ze_pfnCommandListAppendMemoryFill_t fill = client.lists.t.pfnAppendMemoryFill;
    CHECK(fill(client.list, block, NULL, 1, P(1), NULL, 0, NULL) != ZE_RESULT_SUCCESS, "no pattern");
    CHECK(fill(client.list, block, &one, 0, P(1), NULL, 0, NULL) != ZE_RESULT_SUCCESS, "an empty pattern");
    OK(fill(client.list, m, &one, 1, 0, NULL, 0, NULL));
    OK(client.lists.t.pfnAppendMemoryCopy(client.list, block, m, 0, NULL, 0, NULL));
    CHECK(block[0] == 9, "nothing to copy");
}

// The source belongs to another context, and is cut at that context's borders.
void case_from_context(void) {
    client_open();
    ze_context_handle_t other = client_context();
    unsigned char *m = wrapped_in_pieces(other);
    unsigned char *block = malloc(P(20));
    ze_event_handle_t event = client_event();
    ze_pfnCommandListAppendMemoryCopyFromContext_t copy = client.lists.t.pfnAppendMemoryCopyFromContext;
    count_up(m, P(20));
    memset(block, 0, P(20));
    OK(copy(client.list, block, other, m, P(20), event, 0, NULL));
    CHECK(memcmp(block, m, P(20)) == 0, "all of it");
    CHECK(client.events.t.pfnQueryStatus(event) == ZE_RESULT_SUCCESS, "the event of a copy in parts");
    uint64_t before = client_calls("zeCommandListAppendMemoryCopyFromContext");
    OK(copy(client.list, block, other, m + P(1), P(2), NULL, 0, NULL));
    OK(copy(client.list, block, client.context, block + P(10), P(5), NULL, 0, NULL));
    OK(copy(client.list, block, NULL, block + P(10), P(5), NULL, 0, NULL)); // the list's own
    CHECK(client_calls("zeCommandListAppendMemoryCopyFromContext") == before + 3, "in one each");
    // The target is cut too.
    unsigned char *n = wrapped_in_pieces(client.context);
    OK(copy(client.list, n, other, m, P(20), NULL, 0, NULL));
    CHECK(memcmp(n, m, P(20)) == 0, "pieces to pieces");
}

// Plain memory, which real drivers copy by themselves, as far as no import begins.
// Run with GHSIM_PLAIN_COPY=1.
void case_gaps(void) {
    client_open();
    unsigned char *m = client_pages(16);
    unsigned char *n = client_pages(16);
    OK(client_wrap(client.context, m + P(8), P(1)));
    OK(client_wrap(client.context, n + P(3), P(2)));
    ze_pfnCommandListAppendMemoryCopy_t copy = client.lists.t.pfnAppendMemoryCopy;
    static const struct {
        size_t to, from, size;
    } copies[] = {
        { P(10), P(7), P(2) },          // from a gap into a piece
        { P(10), P(8), P(2) },          // from a piece into a gap
        { P(10), P(6), P(5) },          // over it
        { P(2), P(10), P(2) },          // to a gap, then a piece
        { P(1) + 9, P(6) + 5, P(5) },   // both
        { P(12), P(12), P(2) },         // neither
    };
    for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
        count_up(m, P(16));
        memset(n, 0, P(16));
        OK(copy(client.list, n + copies[i].to, m + copies[i].from, copies[i].size, NULL, 0, NULL));
        CHECK(memcmp(n + copies[i].to, m + copies[i].from, copies[i].size) == 0, "copy %zu", i);
        CHECK(n[copies[i].to - 1] == 0 && n[copies[i].to + copies[i].size] == 0, "around copy %zu", i);
        OK(client_fill(client.list, n + copies[i].to, copies[i].size));
        CHECK(n[copies[i].to] == 0 && n[copies[i].to + copies[i].size - 1] == 0, "fill %zu", i);
    }
    const ze_copy_region_t box = { .width = 3000, .height = 4, .depth = 1 };
    count_up(m, P(16));
    OK(client.lists.t.pfnAppendMemoryCopyRegion(client.list, n, &box, 5000, 0, m + P(6), &box, 4096, 0, NULL, 0, NULL));
    must_be_box(n, &box, 5000, 0, m + P(6), &box, 4096, 0);
}

// Parts that are shorter than the pattern, at either end.
void case_short_parts(void) {
    static const unsigned char pattern[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    client_open();
    unsigned char *m = client_pages(3);
    OK(client_wrap(client.context, m + P(1), P(1)));
    OK(client_wrap(client.context, m, P(3)));
    ze_event_handle_t event = client_event();
    for (size_t before = 1; before < 20; before++) {
        for (size_t after = 0; after < 20; after += 3) {
            unsigned char *start = m + P(1) - before;
            size_t size = before + PAGE + after;
            memset(m, 0, P(3));
            OK(client.lists.t.pfnAppendMemoryFill(client.list, start, pattern, sizeof(pattern), size, event, 0, NULL));
            for (size_t i = 0; i < size; i++)
                CHECK(start[i] == pattern[i % sizeof(pattern)], "%zu before, %zu after, byte %zu", before, after, i);
            CHECK(start[-1] == 0 && start[size] == 0, "around it");
            CHECK(client.events.t.pfnQueryStatus(event) == ZE_RESULT_SUCCESS, "the event");
            OK(client.events.t.pfnHostReset(event));
        }
    }
}

// The driver's error is the answer, and nothing is signalled.
// Run with GHSIM_FAIL=zeCommandListAppendMemoryCopy:2:0x70000001,zeCommandListAppendMemoryFill:2:0x70000001,
// zeCommandListAppendMemoryCopyFromContext:2:0x70000001
void case_part_fails(void) {
    const unsigned char one = 1;
    client_open();
    unsigned char *m = wrapped_in_pieces(client.context);
    unsigned char *block = malloc(P(20));
    ze_event_handle_t event = client_event();
    const ze_copy_region_t box = { .width = 2000, .height = 20, .depth = 1 };
    CHECK(client.lists.t.pfnAppendMemoryCopy(client.list, block, m, P(20), event, 0, NULL) == ZE_RESULT_ERROR_DEVICE_LOST, "copy");
    CHECK(client.lists.t.pfnAppendMemoryFill(client.list, m, &one, 1, P(20), event, 0, NULL) == ZE_RESULT_ERROR_DEVICE_LOST, "fill");
    CHECK(client.lists.t.pfnAppendMemoryCopyFromContext(client.list, block, client.context, m, P(20), event, 0, NULL) ==
              ZE_RESULT_ERROR_DEVICE_LOST, "copy from a context");
    CHECK(client.events.t.pfnQueryStatus(event) == ZE_RESULT_NOT_READY, "signalled");
    OK(client.lists.t.pfnAppendMemoryCopyRegion(client.list, block, &box, 4096, 0, m, &box, 4096, 0, event, 0, NULL));
    CHECK(client.events.t.pfnQueryStatus(event) == ZE_RESULT_SUCCESS, "the second failure only");
}

#define LISTS 400

// A driver whose imports belong to a context: each list is known to be of its own, however many
// there are, and whichever are gone.
void case_many_lists(void) {
    const ze_command_list_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC };
    ze_command_list_handle_t lists[LISTS];
    client_open();
    ze_context_handle_t other = client_context();
    unsigned char *m = wrapped_in_pieces(client.context);
    unsigned char *n = wrapped_in_pieces(other);
    unsigned char *block = malloc(P(20));
    for (int i = 0; i < LISTS; i++) {
        if (i % 3 == 0)
            OK(client.lists.t.pfnCreate(i % 2 ? other : client.context, client.devices[0], &desc, &lists[i]));
        else
            lists[i] = client_list(i % 2 ? other : client.context, client.devices[0]);
    }
    for (int i = 0; i < LISTS; i += 5) {
        OK(client.lists.t.pfnDestroy(lists[i]));
        lists[i] = NULL;
    }
    for (int i = 0; i < LISTS; i++) {
        const unsigned char *from = i % 2 ? n : m;
        if (lists[i] != NULL)
            OK(client.lists.t.pfnAppendMemoryCopy(lists[i], block, from, P(20), NULL, 0, NULL));
    }
    CHECK(memcmp(block, LISTS % 2 ? m : n, P(20)) == 0, "the last one");
    for (int i = 0; i < LISTS; i++) {
        if (lists[i] != NULL)
            OK(client.lists.t.pfnDestroy(lists[i]));
    }
    CHECK(client.lists.t.pfnCreate(client.context, NULL, &desc, NULL) != ZE_RESULT_SUCCESS, "nowhere to put it");
}
