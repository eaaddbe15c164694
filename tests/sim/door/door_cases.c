// SPDX-License-Identifier: MIT
//
// The door with the simulated driver, one situation at a time:
//     door_cases CASE
//     door_cases --list
// Under preload, with ZE_ENABLE_ALT_DRIVERS and what the case wants in the environment
// (CMakeLists.txt). Exit status: 0 right, 1 not, 2 usage.
#include <stdio.h>
#include <string.h>

#include "cases.h"

#define CASE(name) { #name, case_##name }

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    CASE(context_of_devices), CASE(default_context),   CASE(runtime_context),  CASE(destroyed_with_wraps),
    CASE(contexts_come_and_go), CASE(too_many_contexts), CASE(residency),      CASE(handles_without_tables),
    CASE(boxes),              CASE(boxes_refused),     CASE(from_context),     CASE(gaps),
    CASE(short_parts),        CASE(part_fails),        CASE(many_lists),       CASE(free_ext),
    CASE(ranges),             CASE(by_name),           CASE(kinds_of_release), CASE(older_first),
    CASE(child_frees),        CASE(fails_once),        CASE(fails_always),     CASE(refuses_twice),
    CASE(no_memmap),          CASE(never),             CASE(protected),        CASE(protected_parts),
    CASE(unreadable_maps),     CASE(unreadable_protected), CASE(plain_retired),      CASE(late_unmap),        CASE(cancelled_wrap),   CASE(cancelled_attach),
    CASE(cancelled_older),    CASE(signals),           CASE(proxy),            CASE(watched),
};

int main(int argc, char **argv) {
    const size_t count = sizeof(cases) / sizeof(cases[0]);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++)
            puts(cases[i].name);
        return 0;
    }
    for (size_t i = 0; argc == 2 && i < count; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            CHECK(gpuhost_active != NULL && gpuhost_active() == 1, "libgpuhost is not preloaded");
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "usage: door_cases CASE | --list\n");
    return 2;
}
