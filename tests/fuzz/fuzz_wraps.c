// SPDX-License-Identifier: MIT
//
// Wraps and pieces as a sequence of operations against a list of the live wraps. After each
// operation: a wrap that is not stale is covered by imports, only a wrap whose memory went away
// or whose import was refused may be stale, and no import is there that no wrap needs.
#include "fuzz.h"

#include <sys/mman.h>

#include "config.h"
#include "fuzz_wraps_fake.h"
#include "gpu.h"
#include "own_maps.h"
#include "piece_tree.h"
#include "pieces.h"
#include "wraps.h"

#define PAGE GH_PAGE_SIZE
#define WRAPS 64u

struct model_wrap {
    uintptr_t pointer; // 0: unused
    size_t bytes;
    unsigned scope;
    void *context;
    bool read_only;
    bool may_be_stale;
    bool may_be_read_only; // an import was refused while it was made
};

static struct model_wrap wraps[WRAPS];
static char contexts[FAKE_SCOPES][2];
static bool kept_ever; // the driver was told to keep an import: then some stay that nobody needs




static uintptr_t first_page(const struct model_wrap *wrap) {
    return gh_align_down(wrap->pointer, PAGE);
}

static uintptr_t end_page(const struct model_wrap *wrap) {
    return gh_align_up(wrap->pointer + wrap->bytes, PAGE);
}

static bool touches(const struct model_wrap *wrap, uintptr_t start, uintptr_t end) {
    return wrap->pointer != 0 && first_page(wrap) < end && start < end_page(wrap);
}

static void check_covered(const struct model_wrap *wrap) {
    for (uintptr_t page = first_page(wrap); page < end_page(wrap); page += PAGE) {
        bool writable = false;
        FUZZ_CHECK(fake_covers(wrap->scope, page, &writable));
        FUZZ_CHECK(writable || wrap->read_only || wrap->may_be_read_only || !fake_is_writable(page));
        struct gh_segment segment = gh_pieces_segment(wrap->scope, page, end_page(wrap));
        FUZZ_CHECK(segment.kind != GH_SEGMENT_NONE && segment.end > page);
    }
}

static void check_wrap(const struct model_wrap *wrap) {
    struct gh_wrap found;
    FUZZ_CHECK(gh_wraps_find(wrap->pointer, wrap->scope, &found));
    FUZZ_CHECK(found.pointer == wrap->pointer && found.scope == wrap->scope);
    if (!wrap->may_be_stale) {
        FUZZ_CHECK(!found.stale && found.size_bytes >= wrap->bytes);
        check_covered(wrap);
    } else if (!found.stale) {
        struct model_wrap there = *wrap;
        there.bytes = found.size_bytes;
        there.read_only = true;
        check_covered(&there);
    }
}

// Somebody needs each import.
static void check_imports(void) {
    for (unsigned scope = 0; scope < FAKE_SCOPES; scope++) {
        for (unsigned i = 0; i < fake_import_end[scope]; i++) {
            const struct fake_import *import = &fake_imports[scope][i];
            bool needed = import->start == 0 || gh_config.mmap || kept_ever;
            for (unsigned w = 0; w < WRAPS && !needed; w++)
                needed = wraps[w].scope == scope && touches(&wraps[w], import->start, import->end);
            FUZZ_CHECK(needed);
        }
    }
}

static void check_all(void) {
    uint64_t live = 0;
    uint64_t expected = 0;
    uint64_t covered;
    for (unsigned w = 0; w < WRAPS; w++) {
        if (wraps[w].pointer == 0)
            continue;
        expected++;
        check_wrap(&wraps[w]);
    }
    check_imports();
    gh_wraps_count(&live, &covered);
    FUZZ_CHECK(live == expected);
    FUZZ_CHECK(gh_pieces_is_valid());
}

// An import was refused: what it was for may be stale, or read-only.
static void after(unsigned refusals_before) {
    for (unsigned w = 0; w < WRAPS && fake_refusals != refusals_before; w++) {
        wraps[w].may_be_stale = true;
        wraps[w].may_be_read_only = true;
    }
}

static void make(struct fuzz_input *input, uint8_t what) {
    struct model_wrap *wrap = NULL;
    for (unsigned w = 0; w < WRAPS && wrap == NULL; w++)
        wrap = wraps[w].pointer == 0 ? &wraps[w] : NULL;
    unsigned window = what >> 4 & 1;
    unsigned page = fuzz_byte(input) % FAKE_PAGES;
    uint8_t length = fuzz_byte(input);
    unsigned pages = 1 + length % 32;
    if (wrap == NULL || page + pages > FAKE_PAGES)
        return;
    struct model_wrap made = {
        .pointer = fake_page(window, page) + (length >> 5 & 1) * 100,
        .bytes = pages * PAGE - (length >> 6) * 1000,
        .scope = what >> 5 & 1,
        .read_only = (what & 128) != 0,
    };
    if (end_page(&made) > fake_page(window, FAKE_PAGES - 1) + PAGE)
        return;
    made.context = &contexts[made.scope][what >> 6 & 1];
    unsigned refusals = fake_refusals;
    fake_keep_in = 0; // no release here but of read-only pieces, to import them again
    struct gh_wrap record = { .pointer = made.pointer, .size_bytes = made.bytes, .context = made.context, .count = 1,
                              .scope = (uint16_t)made.scope };
    bool writable = gh_gpu_covers(made.scope, (void *)made.pointer, made.bytes);
    const char *why = "";
    int error = writable ? gh_wraps_add(&record) : gh_pieces_wrap(&record, made.read_only, &writable, &why);
    FUZZ_CHECK(error == 0 || fake_refusals != refusals);
    after(refusals);
    if (error != 0)
        return;
    made.may_be_read_only = fake_refusals != refusals;
    *wrap = made;
}

static void forget(const struct gh_wrap *gone) {
    struct model_wrap *best = NULL;
    for (unsigned w = 0; w < WRAPS; w++) {
        struct model_wrap *wrap = &wraps[w];
        if (wrap->pointer != gone->pointer || wrap->bytes != gone->size_bytes || wrap->scope != gone->scope ||
            wrap->context != gone->context || (gone->stale && !wrap->may_be_stale))
            continue;
        if (best == NULL || (!wrap->may_be_stale && best->may_be_stale))
            best = wrap;
    }
    FUZZ_CHECK(best != NULL);
    best->pointer = 0;
}

static void unmake(uint8_t which, uint8_t what) {
    struct gh_wrap gone;
    unsigned at = which % WRAPS;
    for (unsigned i = 0; i < WRAPS && wraps[at].pointer == 0; i++)
        at = (at + 1) % WRAPS;
    const struct model_wrap *wrap = &wraps[at];
    unsigned scope = what >> 5 & 1;
    void *context = &contexts[scope][what >> 6 & 1];
    if ((what & 128) != 0) {
        struct gh_wraps_cursor cursor = { 0 };
        while (gh_pieces_unwrap_of(context, scope, &cursor, &gone)) {
            FUZZ_CHECK(gone.context == context);
            forget(&gone);
        }
        for (unsigned w = 0; w < WRAPS; w++)
            FUZZ_CHECK(wraps[w].pointer == 0 || wraps[w].context != context);
    } else if (wrap->pointer != 0) {
        uintptr_t pointer = wrap->pointer;
        FUZZ_CHECK(gh_pieces_unwrap(pointer, wrap->scope, wrap->context, &gone));
        FUZZ_CHECK(gone.pointer == pointer && gone.context == wrap->context);
        forget(&gone);
    }
}

static int advise(void *start, size_t bytes, int advice) {
    (void)advice;
    for (uintptr_t page = (uintptr_t)start; page < (uintptr_t)start + bytes; page += PAGE) {
        bool writable;
        bool is_region = gh_region_find((void *)page) != NULL;
        for (unsigned scope = 0; scope < FAKE_SCOPES && !is_region; scope++) // its pages go away now
            FUZZ_CHECK(!fake_is_dropped_by_madvise(page) || !fake_covers(scope, page, &writable));
    }
    return 0;
}

static void change(struct fuzz_input *input, uint8_t what) {
    unsigned window = what >> 4 & 1;
    unsigned page = fuzz_byte(input) % FAKE_PAGES;
    unsigned pages = gh_min(1 + fuzz_byte(input) % 16, FAKE_PAGES - page);
    uintptr_t start = fake_page(window, page);
    uintptr_t end = start + pages * PAGE;
    unsigned refusals = fake_refusals;
    fake_keep_in = 0; // of memory that goes away, what a driver keeps is lost
    for (uintptr_t at = start; at < end; at += PAGE) { // the door keeps imported heap out of this
        if (gh_region_find((void *)at) != NULL)
            return;
    }
    if (what % 8 == 5) {
        static const int advices[] = { MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DONTNEED };
        gh_pieces_around(start, end, advise, advices[what >> 5 & 3]);
        after(refusals);
        return;
    }
    gh_pieces_invalidate(start, end);
    for (unsigned w = 0; w < WRAPS; w++)
        wraps[w].may_be_stale = wraps[w].may_be_stale || touches(&wraps[w], start, end);
    after(refusals);
    if (gh_config.mmap && (what & 32) != 0)
        gh_own_maps_remove(start, end - start);
    for (uintptr_t at = start; at < end; at += PAGE) // something else is mapped there now
        fake_protect(at, (what & 64) != 0 ? what >> 5 : 0);
}

static void finish(void) {
    struct gh_wrap gone;
    FUZZ_CHECK(gh_wraps_is_valid());
    fake_fail_in = 0;
    fake_keep_in = 0;
    for (unsigned scope = 0; scope < FAKE_SCOPES; scope++) {
        struct gh_wraps_cursor cursor = { 0 };
        while (gh_pieces_unwrap_of(NULL, scope, &cursor, &gone))
            forget(&gone);
    }
    if (gh_config.mmap || kept_ever)
        gh_pieces_invalidate(fake_page(0, 0), fake_page(1, FAKE_PAGES - 1) + PAGE);
    for (unsigned scope = 0; scope < FAKE_SCOPES; scope++) {
        for (unsigned i = 0; i < fake_import_end[scope]; i++)
            FUZZ_CHECK(fake_imports[scope][i].start == 0);
    }
    FUZZ_CHECK(atomic_load(&gh_pieces_count) == 0);
    FUZZ_CHECK(fake_pins[0] == 0 && fake_pins[1] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static bool started;
    struct fuzz_input input = { data, size < 192 ? size : 192 };
    if (!started)
        fake_start();
    started = true;
    fake_reset();
    memset(wraps, 0, sizeof(wraps));
    kept_ever = false;
    gh_own_maps_fork_child();
    gh_config.mmap = fuzz_byte(&input) & 1;
    if (gh_config.mmap) {
        gh_own_maps_add(fake_page(0, 0) - GH_MIB, GH_MIB + FAKE_BEFORE * PAGE);
        gh_own_maps_add(fake_page(1, FAKE_BEFORE + FAKE_REGION), GH_MIB);
    }
    while (input.left != 0) {
        uint8_t what = fuzz_byte(&input);
        switch (what % 8) {
        case 0: case 1: case 2: make(&input, what); break;
        case 3: unmake(fuzz_byte(&input), what & 127); break;
        case 4: if (what > 200) unmake(fuzz_byte(&input), what); break;
        case 5: case 6: change(&input, what); break;
        default:
            if ((what & 128) != 0)
                fake_keep_in = what / 32 % 4 + 1, kept_ever = true;
            else
                fake_fail_in = what / 32 % 4 + 1;
            break;
        }
        check_all();
    }
    finish();
    return 0;
}
