// SPDX-License-Identifier: MIT
//
// Wraps, one situation at a time:
//     wraps_cases KERNELS CASE
//     wraps_cases --list
// Under preload, with simulated drivers. Exit status: 0 right, 1 not, 2 usage, 77 not with these
// drivers.
#include "cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct wt_queue case_queue;
const struct wt_unit *case_unit;

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    { "three_pieces", case_three_pieces },
    { "pattern_phase", case_pattern_phase },
    { "events", case_events },
    { "around_region", case_around_region },
    { "rest_of_piece", case_rest_of_piece },
    { "evict", case_evict },
    { "statistics", case_statistics },
    { "stale", case_stale },
    { "stale_and_new", case_stale_and_new },
    { "failed_calls", case_failed_calls },
    { "grows_in_place", case_grows_in_place },
    { "uneven_sizes", case_uneven_sizes },
    { "advice", case_advice },
    { "advice_file", case_advice_file },
    { "break", case_break },
    { "stack", case_stack },
    { "unseen", case_unseen },
    { "segment", case_segment },
    { "two_contexts", case_two_contexts },
    { "two_drivers", case_two_drivers },
    { "context_scope", case_context_scope },
    { "read_only", case_read_only },
    { "read_only_file", case_read_only_file },
    { "older", case_older },
    { "older_overlaps", case_older_overlaps },
    { "fork_handlers", case_fork_handlers },
    { "advice_untouched", case_advice_untouched },
    { "advice_newer", case_advice_newer },
    { "pool", case_pool },
    { "pool_borders", case_pool_borders },
    { "reserve", case_reserve },
};

_Noreturn void case_failed(const char *file, int line, const char *condition, const char *format, ...) {
    char more[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(more, sizeof more, format, arguments);
    va_end(arguments);
    wt_fail("%s:%d: %s: %s", file, line, condition, more);
}

unsigned char *case_pages(size_t pages) {
    unsigned char *start = mmap(NULL, pages * WT_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(start != MAP_FAILED, "no memory");
    for (size_t i = 0; i < pages; i++)
        memset(start + i * WT_PAGE, (int)i + 1, WT_PAGE);
    return start;
}

static void count_imports(uint64_t *live, uint64_t *ever) {
    struct gpuhost_stats stats;
    gpuhost_stats(&stats);
    *live = stats.releases - stats.imports;
    *ever = -stats.imports;
    for (unsigned i = 0; i < wt_driver_count; i++) {
        struct ghsim_stats sim;
        CHECK(wt_sim_stats(i, &sim), "driver %u is no simulated one", i);
        *live += sim.imports_live;
        *ever += sim.imports;
    }
}

uint64_t case_imports(void) {
    uint64_t live;
    uint64_t ever;
    count_imports(&live, &ever);
    return live;
}

uint64_t case_imports_ever(void) {
    uint64_t live;
    uint64_t ever;
    count_imports(&live, &ever);
    return ever;
}

void case_must_add1(unsigned char *start, size_t size) {
    unsigned char *before = malloc(size);
    memcpy(before, start, size);
    ze_result_t result = wt_add1(&case_queue, start, size);
    CHECK(result == ZE_RESULT_SUCCESS, "0x%x", (unsigned)result);
    for (size_t i = 0; i < size; i++)
        CHECK(start[i] == (unsigned char)(before[i] + 1), "byte %zu", i);
    free(before);
}

void case_wrap(void *pointer, size_t size) {
    ze_result_t result = wt_wrap(case_unit, pointer, size, false);
    CHECK(result == ZE_RESULT_SUCCESS, "wrap of %p+%zu: 0x%x", pointer, size, (unsigned)result);
}

void case_unwrap(void *pointer) {
    ze_result_t result = wt_unwrap(case_unit, pointer);
    CHECK(result == ZE_RESULT_SUCCESS, "unwrap of %p: 0x%x", pointer, (unsigned)result);
}

int main(int argc, char **argv) {
    const size_t count = sizeof cases / sizeof cases[0];
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            puts(cases[i].name);
        return 0;
    }
    for (size_t i = 0; argc == 3 && i < count; i++) {
        if (strcmp(cases[i].name, argv[2]) != 0)
            continue;
        CHECK(gpuhost_stats != NULL, "libgpuhost is not preloaded");
        wt_open(argv[1], 2);
        case_unit = &wt_units[0];
        wt_queue_open(&case_queue, case_unit);
        (void)wt_type(case_unit, &case_queue); // the heap is imported by now
        CHECK(case_imports() == 0, "before the case");
        cases[i].run();
        struct gpuhost_stats stats;
        gpuhost_stats(&stats);
        CHECK(case_imports() == 0 && stats.wraps_live == 0, "left: %llu imports, %llu wraps",
              (unsigned long long)case_imports(), (unsigned long long)stats.wraps_live);
        wt_queue_close(&case_queue);
        wt_close();
        return 0;
    }
    fprintf(stderr, "usage: wraps_cases KERNELS CASE | --list\n");
    return 2;
}
