// SPDX-License-Identifier: MIT
//
// Which thunk stands for which table entry (thunks.h), and their slow way.
#include "thunks.h"

#include <string.h>

#include "allocator/lock.h"
#include "attach.h"

extern GH_HIDDEN const char gh_ze_thunk_code[]; // thunks.S
#define THUNK_BYTES 32u

GH_HIDDEN gh_ze_any_fn gh_ze_thunk_real[GH_ZE_DRIVER_MAX * GH_ZE_THUNKS_PER_SLOT];

_Static_assert(GH_ZE_THUNKS_LIST + GH_ZE_THUNKS_LIST_EXP + GH_ZE_THUNKS_QUEUE + GH_ZE_THUNKS_KERNEL +
                       GH_ZE_THUNKS_KERNEL_EXP == GH_ZE_THUNKS_PER_SLOT,
               "the tables fill a slot");
_Static_assert(GH_ZE_DRIVER_MAX * GH_ZE_THUNKS_PER_SLOT == 1792, "thunks.S repeats this often");

static const struct {
    uint16_t first;
    uint16_t count;
} layout[GH_ZE_TABLE_COUNT] = {
    [GH_ZE_TABLE_COMMAND_LIST] = { 0, GH_ZE_THUNKS_LIST },
    [GH_ZE_TABLE_COMMAND_LIST_EXP] = { GH_ZE_THUNKS_LIST, GH_ZE_THUNKS_LIST_EXP },
    [GH_ZE_TABLE_COMMAND_QUEUE] = { GH_ZE_THUNKS_LIST + GH_ZE_THUNKS_LIST_EXP, GH_ZE_THUNKS_QUEUE },
    [GH_ZE_TABLE_KERNEL] = { GH_ZE_THUNKS_LIST + GH_ZE_THUNKS_LIST_EXP + GH_ZE_THUNKS_QUEUE, GH_ZE_THUNKS_KERNEL },
    [GH_ZE_TABLE_KERNEL_EXP] = { GH_ZE_THUNKS_PER_SLOT - GH_ZE_THUNKS_KERNEL_EXP, GH_ZE_THUNKS_KERNEL_EXP },
};

static int index_of(unsigned slot, unsigned table, unsigned place) {
    if (place >= layout[table].count)
        return -1;
    return (int)(slot * GH_ZE_THUNKS_PER_SLOT + layout[table].first + place);
}

gh_ze_any_fn gh_ze_thunk(unsigned slot, unsigned table, unsigned place) {
    int index = index_of(slot, table, place);
    return index < 0 ? NULL : (gh_ze_any_fn)(uintptr_t)(gh_ze_thunk_code + (size_t)index * THUNK_BYTES);
}

void gh_ze_thunk_set(unsigned slot, unsigned table, unsigned place, gh_ze_any_fn real) {
    int index = index_of(slot, table, place);
    if (index >= 0)
        gh_ze_thunk_real[index] = real;
}

// They use the end of the table of experimental list functions, which has few entries.
#define NAMED_FIRST 16u
#define NAMED_COUNT (GH_ZE_THUNKS_LIST_EXP - NAMED_FIRST)
#define NAME_BYTES 80u

static struct gh_lock names_lock = GH_LOCK_INIT(GH_RANK_WRAPS);
static char names[GH_ZE_DRIVER_MAX][NAMED_COUNT][NAME_BYTES];

gh_ze_any_fn gh_ze_thunk_for_name(unsigned slot, const char *name, gh_ze_any_fn real) {
    size_t length = strlen(name);
    gh_ze_any_fn thunk = NULL;
    if (length >= NAME_BYTES)
        return NULL;
    gh_lock_acquire(&names_lock);
    for (unsigned i = 0; i < NAMED_COUNT && thunk == NULL; i++) {
        if (names[slot][i][0] != '\0' && strcmp(names[slot][i], name) != 0)
            continue;
        memcpy(names[slot][i], name, length + 1);
        gh_ze_thunk_set(slot, GH_ZE_TABLE_COMMAND_LIST_EXP, NAMED_FIRST + i, real);
        thunk = gh_ze_thunk(slot, GH_ZE_TABLE_COMMAND_LIST_EXP, NAMED_FIRST + i);
    }
    gh_lock_release(&names_lock);
    return thunk;
}

void gh_ze_thunk_slow(void) {
    gh_ze_bring_pending();
}
