// SPDX-License-Identifier: MIT
//
// Wraps that lie on several imports: each other's, a region's, or several of one wrap.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "cases.h"

#define P(n) ((n) * WT_PAGE)

void case_three_pieces(void) {
    unsigned char *m = case_pages(12);
    case_wrap(m + P(1), P(2));
    case_wrap(m + P(6), P(2));
    CHECK(case_imports() == 2, "two wraps");
    case_wrap(m + 100, P(9)); // over both, and the rest
    CHECK(case_imports() == 5, "only what was missing: %llu", (unsigned long long)case_imports());
    for (size_t page = 0; page < 10; page++)
        CHECK(wt_type(case_unit, m + P(page)) == KEEP, "page %zu", page);
    CHECK(wt_type(case_unit, m + P(10)) == GONE, "nobody wrapped it");
    void *base;
    size_t size;
    CHECK(zeMemGetAddressRange(case_unit->context, m + 100, &base, &size) == ZE_RESULT_SUCCESS && base == m + 100 &&
              size == P(9), "the wrap is what it was made as");
    case_must_add1(m + 100, 16384); // from the first piece on into the others
    unsigned char *heap = malloc(P(9));
    memset(heap, 0, P(9));
    ze_result_t result = zeCommandListAppendMemoryCopy(case_queue.list, heap, m + 100, P(9), NULL, 0, NULL);
    CHECK(result == ZE_RESULT_SUCCESS && memcmp(heap, m + 100, P(9)) == 0, "copy out: 0x%x", (unsigned)result);
    memset(heap, 0x5a, P(9));
    result = zeCommandListAppendMemoryCopy(case_queue.list, m + 101, heap, P(9) - 1, NULL, 0, NULL);
    CHECK(result == ZE_RESULT_SUCCESS && memcmp(heap, m + 101, P(9) - 1) == 0, "copy in: 0x%x", (unsigned)result);
    free(heap);
    CHECK(zeContextMakeMemoryResident(case_unit->context, case_unit->device, m + 100, P(9)) == ZE_RESULT_SUCCESS, "all of it");
    case_unwrap(m + P(1)); // the big one still lies there
    CHECK(case_imports() == 5 && wt_type(case_unit, m + P(1)) == KEEP, "somebody needs it");
    case_unwrap(m + 100);
    CHECK(case_imports() == 1 && wt_type(case_unit, m + P(6)) == KEEP, "one is left");
    case_unwrap(m + P(6));
    CHECK(wt_unwrap(case_unit, m + P(6)) != ZE_RESULT_SUCCESS, "freed twice");
    munmap(m, P(12));
}

void case_pattern_phase(void) {
    static const unsigned char pattern[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
    unsigned char *m = case_pages(6);
    case_wrap(m + P(1), P(1));
    case_wrap(m + P(3), P(1));
    case_wrap(m, P(6));
    for (size_t pattern_size = 1; pattern_size <= 16; pattern_size *= 2) {
        for (size_t shift = 0; shift < 17; shift++) {
            memset(m, 0, P(6));
            unsigned char *start = m + P(1) - 3 * 16 + shift; // the borders cut the pattern
            size_t size = P(3) + 6 * 16;
            ze_result_t result = zeCommandListAppendMemoryFill(case_queue.list, start, pattern, pattern_size, size, NULL,
                                                               0, NULL);
            CHECK(result == ZE_RESULT_SUCCESS, "0x%x", (unsigned)result);
            for (size_t i = 0; i < size; i++)
                CHECK(start[i] == pattern[i % pattern_size], "pattern %zu, shift %zu, byte %zu", pattern_size, shift, i);
            CHECK(start[-1] == 0 && start[size] == 0, "around it");
        }
    }
    case_unwrap(m);
    case_unwrap(m + P(1));
    case_unwrap(m + P(3));
    munmap(m, P(6));
}

struct signaller {
    ze_event_handle_t first;
    ze_event_handle_t then;
    const unsigned char *bytes;
};

// While the queue waits for the first event, nothing has happened yet.
static void *signal_later(void *argument) {
    const struct signaller *signaller = argument;
    usleep(100000);
    CHECK(signaller->bytes[2] == 1 && signaller->bytes[P(1)] == 2, "it waits");
    CHECK(zeEventQueryStatus(signaller->then) == ZE_RESULT_NOT_READY, "it waits");
    CHECK(zeEventHostSignal(signaller->first) == ZE_RESULT_SUCCESS, "signal");
    return NULL;
}

// All parts wait for what the call waits for, and its event comes after all of them.
void case_events(void) {
    ze_event_pool_desc_t pool_desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 3,
                                       .flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE };
    ze_event_pool_handle_t pool;
    ze_event_handle_t events[3];
    ze_command_list_handle_t list;
    ze_command_queue_handle_t queue;
    const ze_command_list_desc_t list_desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC };
    const ze_command_queue_desc_t queue_desc = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                                 .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS };
    ze_device_handle_t device = case_unit->device;
    CHECK(zeEventPoolCreate(case_unit->context, &pool_desc, 1, &device, &pool) == ZE_RESULT_SUCCESS, "pool");
    for (uint32_t i = 0; i < 3; i++) {
        const ze_event_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = i };
        CHECK(zeEventCreate(pool, &desc, &events[i]) == ZE_RESULT_SUCCESS, "event");
    }
    CHECK(zeCommandListCreate(case_unit->context, device, &list_desc, &list) == ZE_RESULT_SUCCESS &&
              zeCommandQueueCreate(case_unit->context, device, &queue_desc, &queue) == ZE_RESULT_SUCCESS, "list");
    unsigned char *m = case_pages(8);
    case_wrap(m + P(1), P(1));
    case_wrap(m, P(8));
    const uint32_t pattern = 0x14131211;
    CHECK(zeCommandListAppendMemoryFill(list, m + 2, &pattern, 4, P(3), events[1], 1, &events[0]) == ZE_RESULT_SUCCESS &&
              zeCommandListAppendMemoryCopy(list, m + P(4), m + 2, P(3), events[2], 1, &events[1]) ==
                  ZE_RESULT_SUCCESS && zeCommandListClose(list) == ZE_RESULT_SUCCESS, "appended");
    struct signaller signaller = { events[0], events[1], m };
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, signal_later, &signaller) == 0, "thread");
    CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL) == ZE_RESULT_SUCCESS, "executed");
    pthread_join(thread, NULL);
    CHECK(zeEventHostSynchronize(events[2], UINT64_C(5000000000)) == ZE_RESULT_SUCCESS, "the last event comes");
    CHECK(zeEventQueryStatus(events[1]) == ZE_RESULT_SUCCESS, "so did the first");
    for (size_t i = 0; i < P(3); i++)
        CHECK(m[2 + i] == i % 4 + 0x11 && m[P(4) + i] == m[2 + i], "byte %zu", i);
    CHECK(zeCommandQueueSynchronize(queue, UINT64_MAX) == ZE_RESULT_SUCCESS, "queue");
    zeCommandListDestroy(list);
    zeCommandQueueDestroy(queue);
    for (uint32_t i = 0; i < 3; i++)
        zeEventDestroy(events[i]);
    zeEventPoolDestroy(pool);
    case_unwrap(m);
    case_unwrap(m + P(1));
    munmap(m, P(8));
}

// Foreign pages before a region, and behind it, where its guard page was.
void case_around_region(void) {
    enum { TRIES = 8 };
    const size_t size = (size_t)6 << 20; // larger than a region of the smallest size: has its own
    unsigned char *blocks[TRIES];
    unsigned char *region = NULL;
    unsigned char *below = MAP_FAILED;
    int tries = 0;
    while (tries < TRIES && below != region - P(2)) { // the pages below some regions are a library's
        blocks[tries] = malloc(size);
        memset(blocks[tries], 9, size);
        (void)wt_type(case_unit, blocks[tries]);
        region = (unsigned char *)((uintptr_t)blocks[tries++] & ~(((uintptr_t)1 << 26) - 1));
        below = mmap(region - P(2), P(2), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    CHECK(below == region - P(2), "the pages below all regions are taken");
    unsigned char *block = blocks[tries - 1];
    memset(below, 7, P(2));
    unsigned char *end = region;
    while (gpuhost_is_visible(end, 1))
        end += WT_PAGE;
    CHECK(mmap(end, P(1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == end, "the guard");
    size_t all = (size_t)(end - below) + P(1);
    case_wrap(below, all);
    for (unsigned char *at = below; at < end + P(1); at += P(16))
        CHECK(wt_type(case_unit, at) == KEEP, "at %p", (void *)at);
    case_must_add1(below + 5, P(4)); // its start is in the foreign piece
    const unsigned char zero = 0;
    ze_result_t result = zeCommandListAppendMemoryFill(case_queue.list, end - 100, &zero, 1, 200, NULL, 0, NULL);
    CHECK(result == ZE_RESULT_SUCCESS && end[-1] == 0 && end[99] == 0, "over the end: 0x%x", (unsigned)result);
    result = zeCommandListAppendMemoryCopy(case_queue.list, below + 8, region + P(8), P(3), NULL, 0, NULL);
    CHECK(result == ZE_RESULT_SUCCESS && memcmp(below + 8, region + P(8), P(3)) == 0, "over the start: 0x%x", (unsigned)result);
    CHECK(zeContextMakeMemoryResident(case_unit->context, case_unit->device, below, all) == ZE_RESULT_SUCCESS, "all of it");
    munmap(below, P(2)); // one of three goes
    CHECK(wt_type(case_unit, below) == GONE && wt_type(case_unit, region) == KEEP, "only that one");
    case_unwrap(below);
    CHECK(wt_type(case_unit, end) == GONE && wt_type(case_unit, block) == KEEP, "the heap stays");
    mprotect(end, P(1), PROT_NONE);
    while (tries > 0)
        free(blocks[--tries]);
}

// What is left of a piece that was cut is needed by some of its wraps only.
void case_rest_of_piece(void) {
    unsigned char *m = case_pages(10);
    case_wrap(m, P(10));
    case_wrap(m + P(8), P(1));
    CHECK(case_imports() == 1, "one piece");
    munmap(m + P(5), P(1));
    CHECK(case_imports() == 2 && wt_type(case_unit, m + P(4)) == KEEP && wt_type(case_unit, m + P(6)) == KEEP, "the rests");
    case_must_add1(m + P(8), P(1));
    case_unwrap(m);
    CHECK(case_imports() == 1 && wt_type(case_unit, m) == GONE, "nobody needs the first part");
    case_must_add1(m + P(8), P(1));
    case_unwrap(m + P(8));
    munmap(m, P(10));
}

void case_evict(void) {
    unsigned char *m = case_pages(4);
    case_wrap(m, P(4));
    CHECK(zeContextEvictMemory(case_unit->context, case_unit->device, m, P(4)) == ZE_RESULT_SUCCESS, "evict");
    case_wrap(m + P(1), P(1)); // nobody makes it resident again
    case_must_add1(m + P(1), P(1));
    case_unwrap(m);
    case_must_add1(m + P(1), P(1));
    case_unwrap(m + P(1));
    munmap(m, P(4));
    unsigned char *heap = malloc(50000);
    case_wrap(heap, 50000);
    CHECK(zeContextEvictMemory(case_unit->context, case_unit->device, heap, 50000) == ZE_RESULT_SUCCESS, "evict");
    case_unwrap(heap);
    memset(heap, 1, 50000);
    case_must_add1(heap, 50000);
    free(heap);
}

void case_statistics(void) {
    struct gpuhost_stats a;
    struct gpuhost_stats b;
    unsigned char *m = case_pages(4);
    char *heap = malloc(1000);
    gpuhost_stats(&a);
    case_wrap(heap, 1000);                                                     // covered
    case_wrap(m, P(2));                                                        // passed on
    case_wrap(m + P(1), P(1));                                                 // covered
    CHECK(wt_wrap(case_unit, m, P(1), true) == ZE_RESULT_SUCCESS, "read-only"); // covered, writable
    CHECK(wt_wrap(case_unit, heap, 10, true) == ZE_RESULT_SUCCESS, "read-only"); // the same
    CHECK(wt_wrap(case_unit, m + P(3), P(1), true) == ZE_RESULT_SUCCESS, "read-only"); // passed on
    CHECK(wt_wrap(case_unit, (void *)(uintptr_t)P(1), P(1), false) != ZE_RESULT_SUCCESS, "nobody's memory");
    gpuhost_stats(&b);
    CHECK(b.wraps_covered - a.wraps_covered == 4, "covered %llu", (unsigned long long)(b.wraps_covered - a.wraps_covered));
    CHECK(b.wraps_passed_on - a.wraps_passed_on == 2, "passed on");
    CHECK(b.wraps_refused - a.wraps_refused == 1, "refused");
    CHECK(b.wraps_read_only - a.wraps_read_only == 2, "read-only");
    CHECK(b.wraps_live - a.wraps_live == 6, "live");
    case_unwrap(heap);
    case_unwrap(heap);
    case_unwrap(m);
    case_unwrap(m);
    case_unwrap(m + P(1));
    case_unwrap(m + P(3));
    free(heap);
    munmap(m, P(4));
}
