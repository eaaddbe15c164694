// SPDX-License-Identifier: MIT
//
// Page runs against the simplest model there is: one entry for each page. The regions are small
// enough (at most 60 runs) that the bounded scan of a bin is a complete one, so the answer "does
// not fit" is checked too.
#include "unit.h"

#include "allocator/page_runs.h"

#define PAGES 120u

static struct gh_page_runs runs;
static bool used[PAGES];
static bool zero[PAGES]; // of a free page: known to be zero
static bool kept[PAGES]; // of a free page: kept as it was, and when
static uint32_t kept_at[PAGES];
static uint32_t now; // wraps round during the test

static bool fits(uint32_t pages, uint32_t alignment) {
    for (uint32_t first = 0; first + pages <= PAGES; first += alignment) {
        uint32_t length = 0;
        while (length < pages && !used[first + length])
            length++;
        if (length == pages)
            return true;
    }
    return false;
}

static void took(uint32_t first, uint32_t pages, bool zeroed) {
    for (uint32_t page = first; page < first + pages; page++) {
        cr_assert(!used[page], "page %u was given out twice", page);
        cr_assert(!zeroed || zero[page], "page %u is called zero and is not", page);
        used[page] = true;
        kept[page] = false;
    }
}

static uint32_t count_free(void) {
    uint32_t count = 0;
    for (uint32_t page = 0; page < PAGES; page++)
        count += !used[page];
    return count;
}

static void start(void) {
    cr_assert_eq(gh_page_runs_init(&runs, PAGES), 0);
    memset(used, 0, sizeof(used));
    memset(zero, 1, sizeof(zero));
    memset(kept, 0, sizeof(kept));
    now = UINT32_MAX - 1500;
}

static void random_take(void) {
    uint32_t pages = 1 + (uint32_t)unit_below(unit_below(4) == 0 ? PAGES : 12);
    uint32_t alignment = 1u << unit_below(unit_below(2) == 0 ? 1 : 6);
    bool zeroed = false;
    uint32_t first = gh_page_runs_take(&runs, pages, alignment, &zeroed);
    if (first == GH_NO_PAGE) {
        cr_assert(!fits(pages, alignment), "%u pages aligned to %u fit and were refused", pages, alignment);
        return;
    }
    cr_assert_eq(first % alignment, 0);
    cr_assert(first + pages <= PAGES);
    took(first, pages, zeroed);
}

// In place, behind a used page, as its contract wants.
static void random_take_at(void) {
    uint32_t first = 1 + (uint32_t)unit_below(PAGES - 1);
    if (!used[first - 1])
        return;
    uint32_t pages = 1 + (uint32_t)unit_below(8);
    bool is_free = first + pages <= PAGES;
    for (uint32_t i = 0; is_free && i < pages; i++)
        is_free = !used[first + i];
    bool zeroed = false;
    bool taken = gh_page_runs_take_at(&runs, first, pages, &zeroed);
    cr_assert_eq(taken, is_free, "%u pages at %u", pages, first);
    if (taken)
        took(first, pages, zeroed);
}

static void random_give(void) {
    uint32_t first = (uint32_t)unit_below(PAGES);
    if (!used[first])
        return;
    uint32_t pages = 1;
    uint32_t wanted = 1 + (uint32_t)unit_below(16);
    while (pages < wanted && first + pages < PAGES && used[first + pages])
        pages++;
    bool keep = unit_below(3) == 0;
    bool zeroed = !keep && unit_below(2) == 0;
    if (keep)
        gh_page_runs_keep(&runs, first, pages, now);
    else
        gh_page_runs_give(&runs, first, pages, zeroed);
    for (uint32_t page = first; page < first + pages; page++) {
        used[page] = false;
        zero[page] = zeroed;
        kept[page] = keep;
        kept_at[page] = now;
    }
}

// A run is as young as its youngest kept page; what is taken out is a whole run, old enough. It
// may hold no kept page any more: the parts of a run that is cut stay what the run was.
static void random_take_aged(void) {
    uint32_t age = (uint32_t)unit_below(200);
    uint32_t first = 0;
    uint32_t pages = 0;
    if (!gh_page_runs_take_aged(&runs, now, age, &first, &pages))
        return;
    cr_assert(first == 0 || used[first - 1]);
    cr_assert(first + pages == PAGES || used[first + pages]);
    for (uint32_t page = first; page < first + pages; page++) {
        cr_assert(!kept[page] || now - kept_at[page] >= age, "page %u is younger than %u", page, age);
    }
    took(first, pages, false);
}

// With age 0 everything that was kept comes out, and then nothing more.
static void take_all_aged(void) {
    uint32_t first;
    uint32_t pages;
    while (gh_page_runs_take_aged(&runs, now, 0, &first, &pages))
        took(first, pages, false);
    for (uint32_t page = 0; page < PAGES; page++)
        cr_assert(used[page] || !kept[page], "kept page %u was not found", page);
    cr_assert_eq(runs.kept_runs, 0);
}

Test(page_runs, random_against_model) {
    uint64_t seed = unit_seed();
    for (int round = 0; round < 40; round++) {
        start();
        for (int step = 0; step < 3000; step++) {
            now++;
            switch (unit_below(round % 2 == 0 ? 5 : 6)) {
            case 0:
                random_take_at();
                break;
            case 1:
            case 2:
                random_take();
                break;
            case 3:
                random_take_aged();
                break;
            default:
                random_give();
                break;
            }
            cr_assert(gh_page_runs_is_valid(&runs), "seed %llu round %d step %d", (unsigned long long)seed, round, step);
            cr_assert_eq(runs.free_pages, count_free());
        }
        take_all_aged();
        gh_page_runs_destroy(&runs);
    }
}

Test(page_runs, idle) {
    start();
    bool zeroed = false;
    cr_assert(gh_page_runs_is_idle(&runs, now, 100));
    gh_page_runs_take(&runs, 10, 1, &zeroed);
    cr_assert_not(gh_page_runs_is_idle(&runs, now, 0));
    gh_page_runs_keep(&runs, 0, 10, now);
    cr_assert_not(gh_page_runs_is_idle(&runs, now + 99, 100));
    cr_assert(gh_page_runs_is_idle(&runs, now + 100, 100));
    cr_assert(gh_page_runs_is_idle(&runs, now, 0));
    gh_page_runs_destroy(&runs);
}

Test(page_runs, fresh_pages_are_zero_and_whole) {
    start();
    bool zeroed = false;
    cr_assert_eq(gh_page_runs_take(&runs, PAGES, 1, &zeroed), 0);
    cr_assert(zeroed);
    cr_assert_eq(gh_page_runs_take(&runs, 1, 1, &zeroed), GH_NO_PAGE);
    cr_assert_eq(runs.free_pages, 0);
    gh_page_runs_destroy(&runs);
}

Test(page_runs, neighbours_coalesce_in_every_order) {
    static const uint32_t orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    for (int order = 0; order < 6; order++) {
        start();
        bool zeroed = false;
        cr_assert_eq(gh_page_runs_take(&runs, PAGES, 1, &zeroed), 0);
        for (int i = 0; i < 3; i++)
            gh_page_runs_give(&runs, orders[order][i] * 40, 40, true);
        cr_assert_eq(gh_page_runs_take(&runs, PAGES, 1, &zeroed), 0);
        cr_assert(zeroed);
        gh_page_runs_destroy(&runs);
    }
}

Test(page_runs, one_dirty_page_makes_the_run_dirty) {
    start();
    bool zeroed = false;
    gh_page_runs_take(&runs, PAGES, 1, &zeroed);
    gh_page_runs_give(&runs, 0, 10, true);
    gh_page_runs_give(&runs, 11, PAGES - 11, true);
    gh_page_runs_give(&runs, 10, 1, false);
    cr_assert_eq(gh_page_runs_take(&runs, PAGES, 1, &zeroed), 0);
    cr_assert_not(zeroed);
    gh_page_runs_destroy(&runs);
}

Test(page_runs, a_validity_check_bites) {
    start();
    runs.free_pages--;
    cr_assert_not(gh_page_runs_is_valid(&runs));
    runs.free_pages++;
    cr_assert(gh_page_runs_is_valid(&runs));
    runs.filled[0] ^= 1;
    cr_assert_not(gh_page_runs_is_valid(&runs));
}

// The largest region a block may need: 2^31 pages; the tags are touched at its ends only.
Test(page_runs, largest_region) {
    struct gh_page_runs large;
    uint32_t pages = UINT32_MAX / 2;
    cr_assert_eq(gh_page_runs_init(&large, pages), 0);
    bool zeroed = false;
    cr_assert_eq(gh_page_runs_take(&large, 1, 1u << 30, &zeroed), 0);
    cr_assert_eq(gh_page_runs_take(&large, 5, 1u << 30, &zeroed), 1u << 30);
    cr_assert(gh_page_runs_is_valid(&large));
    gh_page_runs_give(&large, 0, 1, false);
    gh_page_runs_give(&large, 1u << 30, 5, false);
    cr_assert(gh_page_runs_is_valid(&large));
    cr_assert_eq(gh_page_runs_take(&large, pages, 1, &zeroed), 0);
    cr_assert_not(zeroed);
    gh_page_runs_destroy(&large);
}
