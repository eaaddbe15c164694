// SPDX-License-Identifier: MIT
//
// The cases of wraps_cases: each is a function, run in a process of its own, that ends the process
// with a line when something is not as it must be. cases.c is the list and the helpers.
#ifndef GPUHOST_TESTS_WRAPS_CASES_H
#define GPUHOST_TESTS_WRAPS_CASES_H

#include <string.h>
#include <sys/mman.h>

#include "gpuhost.h"
#include "wt_gpu.h"

// The condition, then a printf format and its arguments that say more.
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            case_failed(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                  \
    } while (0)

_Noreturn void case_failed(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define KEEP ZE_MEMORY_TYPE_HOST
#define GONE ZE_MEMORY_TYPE_UNKNOWN

extern struct wt_queue case_queue; // of the first unit
extern const struct wt_unit *case_unit;

unsigned char *case_pages(size_t pages); // anonymous, private, filled with page number + 1
uint64_t case_imports(void);             // live in all simulated drivers, without those of regions
uint64_t case_imports_ever(void);        // the same, ever made
void case_must_add1(unsigned char *start, size_t size); // a kernel adds 1; every byte is looked at
void case_wrap(void *pointer, size_t size);
void case_unwrap(void *pointer);

void case_three_pieces(void);
void case_pattern_phase(void);
void case_events(void);
void case_around_region(void);
void case_rest_of_piece(void);
void case_evict(void);
void case_statistics(void);

void case_stale(void);
void case_stale_and_new(void);
void case_failed_calls(void);
void case_grows_in_place(void);
void case_uneven_sizes(void);
void case_advice(void);
void case_advice_file(void);
void case_break(void);
void case_stack(void);
void case_unseen(void);
void case_segment(void);

void case_two_contexts(void);
void case_two_drivers(void);
void case_context_scope(void);
void case_read_only(void);
void case_read_only_file(void);
void case_older(void);
void case_older_overlaps(void);

void case_fork_handlers(void);
void case_advice_untouched(void);
void case_advice_newer(void);

void case_pool(void);
void case_pool_borders(void);
void case_reserve(void);

#endif
