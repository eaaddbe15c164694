// SPDX-License-Identifier: MIT
//
// What stands under pieces.c in the fuzz target: a driver that keeps books and aborts on what a
// real one would abort on, the kernel's list of mappings, and two regions.
#ifndef GH_TESTS_FUZZ_WRAPS_FAKE_H
#define GH_TESTS_FUZZ_WRAPS_FAKE_H

#include "allocator/region.h"

#define FAKE_SCOPES 2u
#define FAKE_IMPORTS 192u

// Two windows of memory, each over the start of a region. Region 0 is imported in scope 0 only,
// region 1 in none.
#define FAKE_BASE UINT64_C(0x200000000000)
#define FAKE_BEFORE 32u        // pages in front of the region, and of the region, and after it
#define FAKE_REGION 16u
#define FAKE_AFTER 24u
#define FAKE_PAGES (FAKE_BEFORE + FAKE_REGION + FAKE_AFTER)

struct fake_import {
    uintptr_t start; // 0: unused
    uintptr_t end;
    bool read_only;
};

extern struct fake_import fake_imports[FAKE_SCOPES][FAKE_IMPORTS];
extern unsigned fake_import_end[FAKE_SCOPES]; // the entries in use lie below
extern unsigned fake_fail_in; // the n-th import from now is refused
extern unsigned fake_keep_in; // the same for a release
extern unsigned fake_refusals;
extern long fake_pins[2]; // of the regions

void fake_start(void); // once
void fake_reset(void); // everything is anonymous, private, writable; nothing is imported
void fake_protect(uintptr_t page, unsigned kind);
uintptr_t fake_page(unsigned window, unsigned index);
bool fake_is_writable(uintptr_t page);
bool fake_is_dropped_by_madvise(uintptr_t page);

// Is the page in an import of the scope, or in a region that is?
bool fake_covers(unsigned scope, uintptr_t page, bool *writable_out);

#endif
