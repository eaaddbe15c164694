// SPDX-License-Identifier: MIT
//
// Pieces (pieces.h): who needs which, and when the driver is called for them. All of it under
// the import lock; piece_tree.c keeps them in order.
#include "pieces.h"

#include <errno.h>
#include <sys/mman.h>

#include "allocator/os_mem.h"
#include "config.h"
#include "gpu.h"
#include "mapping_part.h"
#include "piece_tree.h"
#include "vma.h"
#include "wraps.h"

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

static uintptr_t next_slot(uintptr_t address) {
    return gh_align_down(address, GH_SLOT_SIZE) + GH_SLOT_SIZE;
}

// On a walk from `start` by slots: the region at `at`, if the walk has not met it before.
static const struct gh_region *region_first_seen_at(uintptr_t at, uintptr_t start) {
    const struct gh_region *region = gh_region_find((void *)at);
    return at != start && region == gh_region_find((void *)(at - GH_SLOT_SIZE)) ? NULL : region;
}

// A piece on a region that is not imported (refused, over the limit, plain) pins it, so that the
// pages stay.
static void unpin_regions(uintptr_t start, uintptr_t end);

static bool pin_regions(uintptr_t start, uintptr_t end) {
    uintptr_t base;
    size_t size;
    for (uintptr_t at = start; at < end; at = next_slot(at)) {
        const struct gh_region *region = region_first_seen_at(at, start);
        if (region != NULL && !gh_region_pool_pin(region->id, &base, &size)) {
            unpin_regions(start, at); // wholly free: nobody's memory
            return false;
        }
    }
    return true;
}

static void unpin_regions(uintptr_t start, uintptr_t end) {
    for (uintptr_t at = start; at < end; at = next_slot(at)) {
        const struct gh_region *region = region_first_seen_at(at, start);
        if (region != NULL)
            gh_region_pool_unpin(region->id);
    }
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

// May this be imported for reading only? A driver that may only read takes the pages as they are,
// and the first write would replace some by others: those that nobody has written to yet (there
// are pages first, then), and those of files that are copied when written to (so no).
static bool stays_when_read(uintptr_t start, uintptr_t end) {
    struct gh_vma vma;
    for (uintptr_t at = start; at < end && gh_vma_find(at, &vma); at = vma.end) {
        if (!vma.is_private || !vma.writable)
            continue;
        if (vma.inode != 0)
            return false;
        gh_os_madvise((void *)at, gh_min(end, vma.end) - at, MADV_POPULATE_WRITE); // older kernels: no
    }
    return true;
}

static int piece_make(unsigned scope, const struct gh_piece *wanted, const char **why_out) {
    struct gh_piece *piece = gh_piece_take();
    if (piece == NULL) {
        *why_out = "no memory";
        return ENOMEM;
    }
    if (!pin_regions(wanted->start, wanted->end)) {
        *why_out = "the memory was freed";
        gh_piece_give(piece);
        return EINVAL;
    }
    int error = gh_gpu_import_piece(scope, (void *)wanted->start, wanted->end - wanted->start, wanted->read_only,
                                    why_out);
    if (error != 0) {
        unpin_regions(wanted->start, wanted->end);
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

static bool piece_release(unsigned scope, struct gh_piece *piece, bool call_driver) {
    gh_piece_remove(scope, piece);
    bool released = !call_driver || piece->suspended ||
                    gh_gpu_release_piece(scope, (void *)piece->start, piece->end - piece->start) == 0;
    unpin_regions(piece->start, piece->end);
    gh_piece_give(piece);
    return released;
}

static bool is_protected(uintptr_t address) {
    struct gh_vma vma;
    return gh_vma_find(address, &vma) && !vma.writable;
}

// A writable wrap on a read-only piece: imports it again. Its wraps keep their references. Memory
// that the program itself cannot write to stays as it is.
static int piece_make_writable(unsigned scope, struct gh_piece *piece, const char **why_out) {
    void *base = (void *)piece->start;
    size_t size = piece->end - piece->start;
    if (is_protected(piece->start))
        return 0;
    int error = gh_gpu_release_piece(scope, base, size);
    if (error != 0) {
        *why_out = "the driver does not let a read-only import go";
        return error;
    }
    error = gh_gpu_import_piece(scope, base, size, false, why_out);
    if (error == 0) {
        piece->read_only = false;
        return 0;
    }
    const char *ignored;
    if (gh_gpu_import_piece(scope, base, size, true, &ignored) != 0) {
        gh_wraps_mark_stale(scope, piece->start, piece->end);
        piece_release(scope, piece, false);
    }
    return error;
}

static void uncover(unsigned scope, uintptr_t start, uintptr_t end, uint64_t sequence) {
    for (struct gh_piece *piece = gh_piece_first_above(scope, start); piece != NULL && piece->start < end;) {
        uintptr_t piece_end = piece->end;
        // One that is younger than the wrap took the place of memory that went away under it.
        if (piece->sequence <= sequence && piece->refs != 0)
            piece->refs--;
        // What the driver does not let go stays in the tree without references: its pages stay too,
        // and later wraps use it.
        if (piece->refs == 0 && gh_gpu_release_piece(scope, (void *)piece->start, piece->end - piece->start) == 0)
            piece_release(scope, piece, false);
        piece = gh_piece_first_above(scope, piece_end);
    }
}

// What to import for the gap [at, gap_end): the gap, or with GPUHOST_MMAP more of its mapping.
static int import_gap(unsigned scope, uintptr_t at, uintptr_t gap_end, struct gh_piece *wanted, const char **why_out) {
    wanted->start = at;
    wanted->end = gap_end;
    wanted->refs = 1;
    wanted->kept = false;
    wanted->read_only = wanted->read_only && stays_when_read(at, gap_end);
    struct gh_vma vma;
    if (wanted->read_only && gh_vma_find(at, &vma) && vma.end < gap_end)
        gap_end = vma.end; // a read-only piece is of one mapping, so that one look tells its protection
    wanted->end = gap_end;
    struct gh_mapping_part part;
    if (gh_config.mmap && gh_mapping_part_around(at, gap_end, &part)) {
        // Cut at the pieces that there are. No region is in a mapping of the program's.
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
        wider.read_only = false;
        if ((wider.start != at || wider.end != gap_end) && piece_make(scope, &wider, why_out) == 0) {
            *wanted = wider;
            return 0;
        }
    }
    int error = piece_make(scope, wanted, why_out);
    // A driver takes memory that the program cannot write to only when asked for no more, and
    // not together with other memory: one mapping at a time.
    if (error == 0 || wanted->read_only || !gh_vma_find(at, &vma) || (vma.writable && vma.end >= gap_end))
        return error;
    wanted->end = gh_min(gap_end, vma.end);
    wanted->read_only = !vma.writable;
    return piece_make(scope, wanted, why_out);
}

static uintptr_t first_page(const struct gh_wrap *wrap) {
    return gh_align_down(wrap->pointer, GH_PAGE_SIZE);
}

static uintptr_t end_page(const struct gh_wrap *wrap) {
    return gh_align_up(wrap->pointer + wrap->size_bytes, GH_PAGE_SIZE);
}

// Covers what lies at `at`, and says where that ends.
static int cover_next(struct gh_wrap *wrap, uintptr_t at, bool read_only, bool *writable_out, uintptr_t *end_out,
                      const char **why_out) {
    unsigned scope = wrap->scope;
    const struct gh_region *region = imported_region(scope, at);
    if (region != NULL) {
        *writable_out = true;
        *end_out = region->base + region->size_bytes;
        return 0;
    }
    wrap->has_pieces = true;
    struct gh_piece *piece = gh_piece_first_above(scope, at);
    if (piece != NULL && piece->start <= at) {
        int error = piece->read_only && !read_only ? piece_make_writable(scope, piece, why_out) : 0;
        if (error != 0)
            return error; // no reference was taken, so the end stays before it
        *end_out = piece->end;
        *writable_out = *writable_out || !piece->read_only;
        piece->refs++;
        return 0;
    }
    uintptr_t gap_end = next_region(scope, at, end_page(wrap));
    if (piece != NULL && piece->start < gap_end)
        gap_end = piece->start;
    struct gh_piece wanted = { .sequence = wrap->sequence, .read_only = read_only };
    int error = import_gap(scope, at, gap_end, &wanted, why_out);
    if (error == 0) {
        wrap->passed_on = true;
        *end_out = wanted.end;
    }
    return error;
}

int gh_pieces_wrap(struct gh_wrap *wrap, bool read_only, bool *writable_out, const char **why_out) {
    uintptr_t start = first_page(wrap);
    uintptr_t end = end_page(wrap);
    uintptr_t at = start;
    int error = 0;
    *writable_out = false;
    gh_gpu_lock();
    wrap->sequence = ++last_sequence;
    while (at < end && error == 0)
        error = cover_next(wrap, at, read_only, writable_out, &at, why_out);
    if (error == 0) {
        error = gh_wraps_add(wrap);
        if (error != 0)
            *why_out = "no memory";
    }
    if (error != 0 && at > start)
        uncover(wrap->scope, start, at, wrap->sequence);
    gh_gpu_unlock();
    return error;
}

static void uncover_wrap(const struct gh_wrap *wrap) {
    if (wrap->has_pieces)
        uncover(wrap->scope, first_page(wrap), end_page(wrap), wrap->sequence);
}

bool gh_pieces_unwrap(uintptr_t pointer, unsigned scope, void *context, struct gh_wrap *out) {
    enum gh_wraps_taken taken = gh_wraps_remove(pointer, scope, context, false, out);
    if (gh_unlikely(taken == GH_WRAPS_HAS_PIECES)) {
        gh_gpu_lock();
        taken = gh_wraps_remove(pointer, scope, context, true, out);
        if (taken == GH_WRAPS_TAKEN)
            uncover_wrap(out);
        gh_gpu_unlock();
    }
    return taken == GH_WRAPS_TAKEN;
}

bool gh_pieces_unwrap_of(void *context, unsigned scope, struct gh_wraps_cursor *cursor, struct gh_wrap *out) {
    gh_gpu_lock();
    bool found = gh_wraps_remove_of(context, scope, cursor, out);
    if (found)
        uncover_wrap(out);
    gh_gpu_unlock();
    return found;
}

struct gh_segment gh_pieces_segment(unsigned scope, uintptr_t at, uintptr_t limit) {
    struct gh_segment segment = { GH_SEGMENT_NONE, limit };
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
        } else if (piece != NULL) {
            segment.end = gh_min(limit, piece->start);
        }
        gh_gpu_unlock();
    }
    if (segment.kind == GH_SEGMENT_NONE)
        segment.end = next_region(scope, at, segment.end);
    return segment;
}

// What stays of a piece that was cut: as much of it as wraps need. A driver that refuses now
// leaves them stale. What only we kept is not worth an import.
static void keep_rest(unsigned scope, const struct gh_piece *old, uintptr_t start, uintptr_t end) {
    const char *why;
    struct gh_piece rest = *old;
    if (start >= end)
        return;
    rest.start = start;
    rest.end = end;
    rest.suspended = false;
    rest.refs = gh_wraps_count_over(scope, start, end, old->sequence);
    rest.kept = old->kept && rest.refs != 0;
    if (rest.refs == 0)
        return;
    rest.refs += rest.kept;
    if (piece_make(scope, &rest, &why) != 0)
        gh_wraps_mark_stale(scope, start, end);
}

bool gh_pieces_drop_range(unsigned scope, uintptr_t start, uintptr_t end) {
    bool marked = false;
    bool released = true;
    for (struct gh_piece *piece = gh_piece_first_above(scope, start); piece != NULL && piece->start < end;) {
        struct gh_piece old = *piece;
        released = piece_release(scope, piece, true) && released;
        if (old.refs > (old.kept ? 1u : 0u)) {
            if (!marked)
                gh_wraps_mark_stale(scope, start, end);
            marked = true;
            keep_rest(scope, &old, old.start, start);
            keep_rest(scope, &old, end, old.end);
        }
        piece = gh_piece_first_above(scope, gh_min(old.end, end));
    }
    return released;
}

void gh_pieces_invalidate(uintptr_t start, uintptr_t end) {
    if (atomic_load_explicit(&gh_pieces_count, memory_order_relaxed) == 0 || gh_gpu_is_closing() || !gh_gpu_try_enter())
        return;
    start = gh_align_down(start, GH_PAGE_SIZE);
    end = gh_align_up(end, GH_PAGE_SIZE);
    for (unsigned scope = 0; scope < GH_SCOPE_MAX; scope++)
        gh_pieces_drop_range(scope, start, end);
    gh_gpu_unlock();
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
            valid = valid && piece->start >= last_end && piece->start < piece->end &&
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
