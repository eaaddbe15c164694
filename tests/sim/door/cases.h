// SPDX-License-Identifier: MIT
//
// The cases of door_cases. Each is run in a process of its own, with the environment that
// CMakeLists.txt gives it, and ends the process with a line when something is not as it must be.
#ifndef GPUHOST_TESTS_SIM_DOOR_CASES_H
#define GPUHOST_TESTS_SIM_DOOR_CASES_H

#include "client.h"

void case_context_of_devices(void);
void case_default_context(void);
void case_runtime_context(void);
void case_destroyed_with_wraps(void);
void case_contexts_come_and_go(void);
void case_too_many_contexts(void);
void case_residency(void);
void case_handles_without_tables(void);

void case_boxes(void);
void case_boxes_refused(void);
void case_from_context(void);
void case_gaps(void);
void case_short_parts(void);
void case_part_fails(void);
void case_many_lists(void);

void case_free_ext(void);
void case_ranges(void);
void case_by_name(void);
void case_kinds_of_release(void);
void case_older_first(void);
void case_child_frees(void);

void case_fails_once(void);
void case_fails_always(void);
void case_refuses_twice(void);
void case_no_memmap(void);
void case_never(void);

void case_protected(void);
void case_protected_parts(void);
void case_unreadable_maps(void);
void case_unreadable_protected(void);
void case_plain_retired(void);
void case_late_unmap(void);

void case_cancelled_wrap(void);
void case_cancelled_attach(void);
void case_cancelled_older(void);
void case_signals(void);
void case_proxy(void);
void case_watched(void);

#endif
