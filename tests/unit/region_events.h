// SPDX-License-Identifier: MIT
//
// Counts what a pool calls back.
#ifndef GH_TESTS_REGION_EVENTS_H
#define GH_TESTS_REGION_EVENTS_H

#include "allocator/region_ops.h"

static unsigned appeared;
static unsigned retired;

static void on_appeared(void) {
    appeared++;
}
static void on_retired(void) {
    retired++;
}
static const struct gh_region_ops ops = { .appeared = on_appeared, .retired = on_retired };

#endif
