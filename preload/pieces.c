// SPDX-License-Identifier: MIT
//
// Pieces (pieces.h): who needs which, and when the driver is called for them. All of it under
// the import lock; piece_tree.c keeps them in order.
#include "pieces.h"

#include <errno.h>

#include "config.h"
#include "gpu.h"
#include "mapping_part.h"
#include "piece_tree.h"

_Atomic size_t gh_pieces_count;

static uint64_t last_sequence;

// The imported region that holds `address`, or NULL.
static const struct gh_region *imported_region(unsigned scope, uintptr_t address) {
    const struct gh_region *region = gh_region_find((void *)address);
    return region != NULL && gh_gpu_covers(scope, (void *)address, 1) ? region : NULL;
}

// Where the next imported region after `address` starts, at most `limit`. Regions start on slots.
static uintptr_t next_region(unsigned scope, uintptr_t address, uintptr_t limit) {
    uintptr_t slot = gh_align_down(address, GH_SLOT_SIZE) + GH_SLOT_SIZE;
    for (; slot < limit; slot += GH_SLOT_SIZE) {
        if (gh_region_entry((void *)slot) != 0 && imported_region(scope, slot) != NULL)
            return slot;
    }
    return limit;
}

// A piece on a region that is not imported (refused, over the limit, plain) pins it, so that the
// pages stay.
static void pin_regions(uintptr_t start, uintptr_t end, bool pin) {
    for (uintptr_t at = start; at < end; at = gh_align_down(at, GH_SLOT_SIZE) + GH_SLOT_SIZE) {
        const struct gh_region *region = gh_region_find((void *)at);
        if (region == NULL || (at != start && region == gh_region_find((void *)(at - GH_SLOT_SIZE))))
            continue; // each region once, however many slots it has
        uintptr_t base;
        size_t size;
        if (!pin)
            gh_region_pool_unpin(region->id);
        else if (!gh_region_pool_pin(region->id, &base, &size))
            continue;
    }
}

static int piece_make(unsigned scope, const struct gh_piece *wanted, const char **why_out) {
    struct gh_piece *piece = gh_piece_take();
    if (piece == NULL) {
        *why_out = "no memory";
        return ENOMEM;
    }
    pin_regions(wanted->start, wanted->end, true);
    int error = gh_gpu_import_piece(scope, (void *)wanted->start, wanted->end - wanted->start, wanted->read_only,
                                    why_out);
    if (error != 0) {
        pin_regions(wanted->start, wanted->end, false);
        gh_piece_give(piece);
        return error;
    }
    uint32_t priority = piece->priority;
    *piece = *wanted;
    piece->priority = priority;
    piece->left = NULL;
    piece->right = NULL;
    gh_piece_insert(scope, piece);
    return 0;
}

static void piece_release(unsigned scope, struct gh_piece *piece, bool call_driver) {
    gh_piece_remove(scope, piece);
    if (call_driver && !piece->suspended)
        gh_gpu_release_piece(scope, (void *)piece->start, piece->end - piece->start);
    pin_regions(piece->start, piece->end, false);
    gh_piece_give(piece);
}

// A writable wrap on a read-only piece: imports it again. Its wraps keep their references.
static int piece_make_writable(unsigned scope, struct gh_piece *piece, const char **why_out) {
    void *base = (void *)piece->start;
    size_t size = piece->end - piece->start;
    gh_gpu_release_piece(scope, base, size);
    int error = gh_gpu_import_piece(scope, base, size, false, why_out);
    if (error == 0) {
        piece->read_only = false;
        return 0;
    }
    const char *ignored;
    if (gh_gpu_import_piece(scope, base, size, true, &ignored) != 0) {
        piece->suspended = true;
        piece_release(scope, piece, true); // gone; its wraps are stale
    }
    return error;
}

static void uncover(unsigned scope, uintptr_t start, uintptr_t end, uint64_t sequence) {
    for (struct gh_piece *piece = gh_piece_first_above(scope, start); piece != NULL && piece->start < end;) {
        uintptr_t piece_end = piece->end;
        // One that is younger than the wrap took the place of memory that went away under it.
        if (piece->sequence <= sequence && --piece->refs == 0)
            piece_release(scope, piece, true);
        piece = gh_piece_first_above(scope, piece_end);
    }
}

// What to import for the gap [at, gap_end): the gap, or with GPUHOST_MMAP more of its mapping.
static int import_gap(unsigned scope, uintptr_t at, uintptr_t gap_end, struct gh_piece *wanted, const char **why_out) {
    wanted->start = at;
    wanted->end = gap_end;
    wanted->refs = 1;
    wanted->kept = false;
    struct gh_mapping_part part;
    if (gh_config.mmap && gh_mapping_part_around(at, gap_end, &part)) {
        // Cut at what is covered already: pieces, and regions of any kind.
        const struct gh_piece *before = gh_piece_last_below(scope, at);
        const struct gh_piece *after = gh_piece_first_above(scope, gap_end - 1);
        if (before != NULL && before->end > part.start)
            part.start = before->end;
        if (after != NULL && after->start < part.end)
            part.end = after->start;
        struct gh_piece wider = *wanted;
        wider.start = part.start;
        wider.end = part.end;
        wider.refs = 2;
        wider.kept = true;
        if ((wider.start != at || wider.end != gap_end) && piece_make(scope, &wider, why_out) == 0) {
            *wanted = wider;
            return 0;
        }
    }
    return piece_make(scope, wanted, why_out);
}

int gh_pieces_cover(unsigned scope, uintptr_t start, uintptr_t end, bool read_only, struct gh_cover *out,
                    const char **why_out) {
    *out = (struct gh_cover){ 0 };
    gh_gpu_lock();
    uint64_t sequence = ++last_sequence;
    int error = 0;
    uintptr_t at = start;
    while (at < end && error == 0) {
        const struct gh_region *region = imported_region(scope, at);
        out->segments++;
        if (region != NULL) {
            at = region->base + region->size_bytes;
            continue;
        }
        out->has_pieces = true;
        struct gh_piece *piece = gh_piece_first_above(scope, at);
        if (piece != NULL && piece->start <= at) {
            uintptr_t piece_end = piece->end;
            if (piece->read_only && !read_only)
                error = piece_make_writable(scope, piece, why_out);
            if (error == 0) {
                piece->refs++;
                at = piece_end;
            }
            continue;
        }
        uintptr_t gap_end = next_region(scope, at, end);
        if (piece != NULL && piece->start < gap_end)
            gap_end = piece->start;
        struct gh_piece wanted = { .sequence = sequence, .read_only = read_only };
        error = import_gap(scope, at, gap_end, &wanted, why_out);
        if (error == 0) {
            out->imported++;
            at = wanted.end;
        }
    }
    if (error != 0 && at > start)
        uncover(scope, start, at, sequence);
    out->sequence = sequence;
    gh_gpu_unlock();
    return error;
}

void gh_pieces_uncover(unsigned scope, uintptr_t start, uintptr_t end, uint64_t sequence) {
    gh_gpu_lock();
    uncover(scope, start, end, sequence);
    gh_gpu_unlock();
}

struct gh_segment gh_pieces_segment(unsigned scope, uintptr_t at, uintptr_t limit) {
    struct gh_segment segment = { GH_SEGMENT_NONE, limit, 0 };
    const struct gh_region *region = imported_region(scope, at);
    if (region != NULL) {
        segment.kind = GH_SEGMENT_REGION;
        segment.end = gh_min(limit, region->base + region->size_bytes);
        return segment;
    }
    if (atomic_load_explicit(&gh_pieces_count, memory_order_relaxed) != 0) {
        gh_gpu_lock();
        const struct gh_piece *piece = gh_piece_first_above(scope, at);
        if (piece != NULL && piece->start <= at) {
            segment.kind = GH_SEGMENT_PIECE;
            segment.end = gh_min(limit, piece->end);
            segment.users = piece->refs;
        } else if (piece != NULL) {
            segment.end = gh_min(limit, piece->start);
        }
        gh_gpu_unlock();
    }
    if (segment.kind == GH_SEGMENT_NONE)
        segment.end = next_region(scope, at, segment.end);
    return segment;
}

void gh_pieces_drop_range(unsigned scope, uintptr_t start, uintptr_t end) {
    for (struct gh_piece *piece = gh_piece_first_above(scope, start); piece != NULL && piece->start < end;) {
        struct gh_piece old = *piece;
        piece_release(scope, piece, true);
        const char *why;
        struct gh_piece left = old;
        struct gh_piece right = old;
        left.end = start;
        right.start = end;
        // What stays keeps its references; a driver that refuses now leaves those wraps stale,
        // which their next use is told. What only we kept is not worth an import.
        bool is_wanted = old.refs > (old.kept ? 1u : 0u);
        if (is_wanted && old.start < start)
            (void)piece_make(scope, &left, &why);
        if (is_wanted && old.end > end)
            (void)piece_make(scope, &right, &why);
        piece = gh_piece_first_above(scope, gh_max(old.end < end ? old.end : end, start));
    }
}

void gh_pieces_invalidate(uintptr_t start, uintptr_t end) {
    if (atomic_load_explicit(&gh_pieces_count, memory_order_relaxed) == 0 || !gh_gpu_try_enter())
        return;
    start = gh_align_down(start, GH_PAGE_SIZE);
    end = gh_align_up(end, GH_PAGE_SIZE);
    for (unsigned scope = 0; scope < GH_SCOPE_MAX; scope++)
        gh_pieces_drop_range(scope, start, end);
    gh_gpu_unlock();
}

static void suspend(unsigned scope, uintptr_t start, uintptr_t end) {
    for (struct gh_piece *piece = gh_piece_first_above(scope, start); piece != NULL && piece->start < end;) {
        uintptr_t piece_end = piece->end;
        if (piece->kept && piece->refs == 1) {
            piece_release(scope, piece, true);
        } else {
            gh_gpu_release_piece(scope, (void *)piece->start, piece->end - piece->start);
            piece->suspended = true;
        }
        piece = gh_piece_first_above(scope, piece_end);
    }
}

static void resume(unsigned scope, uintptr_t start, uintptr_t end) {
    for (struct gh_piece *piece = gh_piece_first_above(scope, start); piece != NULL && piece->start < end;) {
        uintptr_t piece_end = piece->end;
        const char *why;
        if (gh_gpu_import_piece(scope, (void *)piece->start, piece->end - piece->start, piece->read_only, &why) == 0)
            piece->suspended = false;
        else
            piece_release(scope, piece, true);
        piece = gh_piece_first_above(scope, piece_end);
    }
}

int gh_pieces_around(uintptr_t start, uintptr_t end, int (*advise)(void *, size_t, int), int advice) {
    if (!gh_gpu_try_enter())
        return advise((void *)start, end - start, advice);
    for (unsigned scope = 0; scope < GH_SCOPE_MAX; scope++)
        suspend(scope, start, end);
    int result = advise((void *)start, end - start, advice);
    int saved_errno = errno;
    for (unsigned scope = 0; scope < GH_SCOPE_MAX; scope++)
        resume(scope, start, end);
    gh_gpu_unlock();
    errno = saved_errno;
    return result;
}

bool gh_pieces_overlap(unsigned scope, uintptr_t start, uintptr_t end) {
    const struct gh_piece *piece = gh_piece_first_above(scope, start);
    return piece != NULL && piece->start < end;
}

void gh_pieces_drop_scope(unsigned scope, bool release) {
    while (gh_piece_roots[scope] != NULL)
        piece_release(scope, gh_piece_roots[scope], release);
}

bool gh_pieces_is_valid(void) {
    bool valid = true;
    size_t count = 0;
    gh_gpu_lock();
    for (unsigned scope = 0; scope < GH_SCOPE_MAX; scope++) {
        uintptr_t last_end = 0;
        for (const struct gh_piece *piece = gh_piece_first_above(scope, 0); piece != NULL; piece = gh_piece_first_above(scope, last_end)) {
            valid = valid && piece->start >= last_end && piece->start < piece->end && piece->refs != 0 &&
                    (piece->start | piece->end) % GH_PAGE_SIZE == 0;
            valid = valid && next_region(scope, piece->start - 1, piece->end) == piece->end;
            last_end = piece->end;
            count++;
        }
    }
    valid = valid && count == atomic_load_explicit(&gh_pieces_count, memory_order_relaxed);
    gh_gpu_unlock();
    return valid;
}
