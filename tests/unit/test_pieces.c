// SPDX-License-Identifier: MIT
//
// Wraps of memory outside regions, and across a region's border, with a GPU that keeps books and
// aborts on overlap (fake_gpu.h). After each step: what a live wrap covers is imported, no import
// is without a wrap on it, and nothing was refused.
#include "fake_gpu.h"

#include <sys/mman.h>

#include "allocator/arena_set.h"
#include "config.h"
#include "gate.h"
#include "pieces.h"
#include "wraps.h"

#define PAGES 96u
#define LIVE_MAX 64

static struct fake_gpu gpu;
static unsigned scope;
static char *area;      // PAGES pages
static size_t own_end;  // of them, how many are foreign memory; the rest is a region's

struct live {
    uintptr_t start;
    size_t size;
    void *context;
    bool stale;
};
static struct live live[LIVE_MAX];
static unsigned live_count;
static char contexts[3];

static void open_scope(void) {
    gh_config.log = GH_LOG_NONE;
    scope = gh_gpu_scope_open(&fake_ops, &gpu);
    gh_gpu_drain();
}

static void map_foreign(void) {
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(area, MAP_FAILED);
    own_end = PAGES;
}

// Half foreign memory, half the first pages of a region. False: the place below is taken.
static bool map_across(void) {
    char *block = gh_allocate(64 * GH_MIB, 0, false, NULL);
    const struct gh_region *region = gh_region_find(block);
    char *below = block - PAGES / 2 * PAGE;
    if (region->base != (uintptr_t)block || mmap(below, PAGES / 2 * PAGE, PROT_READ | PROT_WRITE,
                                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != below)
        return false;
    area = below;
    own_end = PAGES / 2;
    gh_gpu_drain();
    return true;
}

static bool overlaps(const struct live *wrap, uintptr_t start, uintptr_t end) {
    return wrap->start < end && gh_align_up(wrap->start + wrap->size, PAGE) > start;
}

static void check(void) {
    cr_assert(gh_pieces_is_valid());
    cr_assert(gh_wraps_is_valid());
    gh_gpu_lock();
    for (unsigned i = 0; i < live_count; i++) {
        for (uintptr_t at = gh_align_down(live[i].start, PAGE); !live[i].stale && at < live[i].start + live[i].size;
             at += PAGE)
            cr_assert(fake_has(&gpu, (void *)at, PAGE), "page %zu of a live wrap is not imported",
                      (at - (uintptr_t)area) / PAGE);
    }
    uintptr_t end = (uintptr_t)area + own_end * PAGE;
    for (unsigned i = 0; i < gpu.count; i++) {
        if (gpu.live[i].end <= (uintptr_t)area || gpu.live[i].start >= end)
            continue;
        bool used = false;
        for (unsigned w = 0; w < live_count; w++)
            used = used || overlaps(&live[w], gpu.live[i].start, gpu.live[i].end);
        cr_assert(used, "pages [%zu, %zu) are imported and nobody wraps them",
                  (gpu.live[i].start - (uintptr_t)area) / PAGE, (gpu.live[i].end - (uintptr_t)area) / PAGE);
    }
    gh_gpu_unlock();
}

static int wrap_range(uintptr_t start, size_t size, void *context) {
    struct gh_wrap wrap = { .pointer = start, .size_bytes = size, .context = context, .count = 1,
                            .scope = (uint16_t)scope };
    const char *why = "";
    bool writable = false;
    int error = gh_pieces_wrap(&wrap, unit_below(4) == 0, &writable, &why);
    if (error == 0)
        live[live_count++] = (struct live){ start, size, context, false };
    return error;
}

static void random_wrap(bool may_fail) {
    if (live_count == LIVE_MAX)
        return;
    size_t first = unit_below(PAGES * PAGE);
    size_t size = 1 + unit_below(gh_min(PAGES * PAGE - first, (1 + unit_below(40)) * PAGE));
    if (unit_below(2) == 0) { // as most clients do
        first = gh_align_down(first, PAGE);
        size = gh_min(gh_align_up(size, PAGE), PAGES * PAGE - first);
    }
    int error = wrap_range((uintptr_t)area + first, size, &contexts[unit_below(3)]);
    cr_assert(error == 0 || may_fail, "a valid wrap was refused: %s", strerror(error));
}

// The order of wraps.h.
static void random_unwrap(void) {
    if (live_count == 0)
        return;
    struct live *asked = &live[unit_below(live_count)];
    struct live *best = asked;
    for (unsigned i = 0; i < live_count; i++) {
        struct live *other = &live[i];
        if (other->start == asked->start && other->context == asked->context &&
            (other->stale != best->stale ? other->stale : other->size < best->size))
            best = other;
    }
    struct gh_wrap got;
    cr_assert(gh_pieces_unwrap(asked->start, scope, asked->context, &got));
    cr_assert_eq(got.size_bytes, best->size);
    *best = live[--live_count];
}

static void random_invalidate(void) {
    size_t first = unit_below(own_end);
    size_t pages = 1 + unit_below(gh_min(own_end - first, 12));
    uintptr_t start = (uintptr_t)area + first * PAGE;
    gh_pieces_invalidate(start, start + pages * PAGE);
    for (unsigned i = 0; i < live_count; i++)
        live[i].stale = live[i].stale || overlaps(&live[i], start, start + pages * PAGE);
    gh_gpu_lock();
    cr_assert_not(gh_pieces_overlap(scope, start, start + pages * PAGE));
    gh_gpu_unlock();
}

static void run_random(int steps, bool with_failures) {
    unit_seed();
    for (int step = 0; step < steps; step++) {
        size_t kind = unit_below(20);
        if (with_failures && unit_below(8) == 0) {
            gh_gpu_lock();
            gpu.fail_in = 1 + (unsigned)unit_below(3);
            gh_gpu_unlock();
        }
        if (kind < 9)
            random_wrap(with_failures);
        else if (kind < 18)
            random_unwrap();
        else if (!with_failures) // a remainder that is refused makes wraps stale
            random_invalidate();
        check();
    }
    while (live_count != 0) {
        random_unwrap();
        check();
    }
    cr_assert_eq(atomic_load(&gh_pieces_count), 0);
    gh_gpu_scope_close(scope, true);
    cr_assert_eq(gpu.count, 0);
    cr_assert_eq(gpu.imports, gpu.releases);
}

Test(pieces, random_in_foreign_memory) {
    open_scope();
    map_foreign();
    run_random(UNIT_STEPS(15000), false);
}

Test(pieces, random_across_a_region_s_border) {
    open_scope();
    if (!map_across())
        cr_skip_test("the place below the region is taken");
    run_random(UNIT_STEPS(15000), false);
}

Test(pieces, random_with_refusals) {
    open_scope();
    map_foreign();
    run_random(UNIT_STEPS(15000), true);
}

static bool unwrap(uintptr_t start) {
    struct gh_wrap got;
    return gh_pieces_unwrap(start, scope, contexts, &got);
}

// What is covered is not imported again; the last one on a piece releases it.
Test(pieces, few_imports) {
    open_scope();
    map_foreign();
    unsigned before = gpu.imports;
    uintptr_t start = (uintptr_t)area;
    cr_assert_eq(wrap_range(start + 4 * PAGE, 4 * PAGE, contexts), 0);
    cr_assert_eq(wrap_range(start + 5 * PAGE, PAGE, contexts), 0);
    cr_assert_eq(gpu.imports, before + 1);
    cr_assert_eq(wrap_range(start, 12 * PAGE, contexts), 0); // a gap on either side
    cr_assert_eq(gpu.imports, before + 3);
    cr_assert(unwrap(start + 4 * PAGE));
    cr_assert(unwrap(start + 5 * PAGE));
    cr_assert_eq(gpu.releases, 0);
    cr_assert(unwrap(start));
    cr_assert_eq(gpu.releases, 3);
    cr_assert_not(unwrap(start));
}

// Memory goes away in the middle of a piece that two wraps hold, one of them only its left part.
Test(pieces, what_remains_is_held_by_those_who_need_it) {
    open_scope();
    map_foreign();
    uintptr_t start = (uintptr_t)area;
    cr_assert_eq(wrap_range(start, 8 * PAGE, contexts), 0);
    cr_assert_eq(wrap_range(start, 4 * PAGE, &contexts[1]), 0);
    gh_pieces_invalidate(start + 4 * PAGE, start + 5 * PAGE);
    cr_assert(unwrap(start));
    struct gh_wrap got;
    cr_assert(gh_pieces_unwrap(start, scope, &contexts[1], &got));
    cr_assert_eq(atomic_load(&gh_pieces_count), 0, "a piece stayed behind");
}

// The n-th import is refused: nothing of the wrap is kept.
Test(pieces, every_import_fails_once) {
    open_scope();
    map_foreign();
    uintptr_t start = (uintptr_t)area;
    for (unsigned i = 0; i < 5; i++) // pieces with gaps between them
        cr_assert_eq(wrap_range(start + (4 + 8 * i) * PAGE, 2 * PAGE, contexts), 0);
    for (unsigned n = 1; n <= 7; n++) {
        gpu.fail_in = n;
        unsigned count = gpu.count;
        int error = wrap_range(start, 48 * PAGE, contexts);
        cr_assert_eq(error != 0, n <= 6, "n = %u", n);
        if (error != 0)
            cr_assert_eq(gpu.count, count, "n %u: %u != %u", n, gpu.count, count);
        check();
    }
}

Test(pieces, segments) {
    open_scope();
    map_foreign();
    uintptr_t start = (uintptr_t)area;
    cr_assert_eq(wrap_range(start + 4 * PAGE, 4 * PAGE, contexts), 0);
    cr_assert_eq(wrap_range(start + 8 * PAGE, 2 * PAGE, contexts), 0);
    static const struct {
        size_t at;
        enum gh_segment_kind kind;
        size_t end;
    } wanted[] = { { 0, GH_SEGMENT_NONE, 4 }, { 4, GH_SEGMENT_PIECE, 8 }, { 7, GH_SEGMENT_PIECE, 8 },
                   { 8, GH_SEGMENT_PIECE, 10 }, { 10, GH_SEGMENT_NONE, 12 } };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        struct gh_segment got = gh_pieces_segment(scope, start + wanted[i].at * PAGE, start + 12 * PAGE);
        cr_assert_eq(got.kind, wanted[i].kind, "page %zu", wanted[i].at);
        cr_assert_eq(got.end, start + wanted[i].end * PAGE, "page %zu", wanted[i].at);
    }
}

// A wrap of heap that is not imported (over the limit), then room for the whole region: the
// pieces go first or the region waits; never both.
Test(pieces, a_region_under_pieces) {
    gh_config.limit = 64 * GH_KIB;
    open_scope();
    area = gh_allocate(20 * GH_MIB, 0, false, NULL);
    own_end = PAGES;
    gh_gpu_drain();
    cr_assert_not(gh_gpu_covers(scope, area, 1));
    cr_assert_eq(wrap_range((uintptr_t)area + 3 * PAGE, 3 * PAGE, contexts), 0);
    check();
    gh_config.limit = GH_GIB;
    char *other = gh_allocate(20 * GH_MIB, 0, false, NULL); // something happens
    gh_gpu_drain();
    check();
    cr_assert(unwrap((uintptr_t)area + 3 * PAGE));
    live_count = 0;
    gh_gpu_drain();
    check();
    // The block goes with a wrap on it; later frees of the wrap still answer.
    cr_assert_eq(wrap_range((uintptr_t)area, 3 * PAGE, contexts), 0);
    gh_deallocate(area);
    gh_deallocate(other);
    gh_arena_set_purge();
    gh_gpu_drain();
    cr_assert(unwrap((uintptr_t)area));
    cr_assert_eq(atomic_load(&gh_pieces_count), 0);
    cr_assert(gh_region_pool_is_valid(gh_arena_set_heap()));
}
