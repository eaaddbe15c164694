// SPDX-License-Identifier: MIT
//
// Imports of memory outside the imported regions, made for the program's own wraps. A piece is
// one driver import of whole pages; pieces of a scope never overlap each other or an imported
// region. A wrap holds a reference to every piece it lies on, and a piece is released with its
// last reference. Wraps with pieces enter and leave the wrap table under the import lock, so that
// the table tells at any moment who needs a piece.
//
// Everything here takes the import lock itself, and may call the driver under it.
#ifndef GH_PRELOAD_PIECES_H
#define GH_PRELOAD_PIECES_H

#include <stdatomic.h>

#include "allocator/util.h"

// How many pieces are there in all scopes; munmap and its kin look here first.
extern GH_HIDDEN _Atomic size_t gh_pieces_count;

struct gh_wrap;
struct gh_wraps_cursor;

// Sees to it that the wrap's pages are covered in its scope: imports what no import covers yet, in
// as few pieces as possible, takes references, and enters the wrap into the table (wraps.h); its
// `has_pieces`, `sequence` and `passed_on` are set here. `read_only` memory may be imported so; a
// piece that is read-only is imported again for a wrap that is not. `*writable_out`: an import
// that is writable serves part of it. Returns 0 or an errno (nothing is kept then).
GH_HIDDEN int gh_pieces_wrap(struct gh_wrap *wrap, bool read_only, bool *writable_out, const char **why_out);

// Takes a wrap off the table and gives back what it holds; which one: gh_wraps_remove, or any of
// the context. False when there is none.
GH_HIDDEN bool gh_pieces_unwrap(uintptr_t pointer, unsigned scope, void *context, struct gh_wrap *out);
GH_HIDDEN bool gh_pieces_unwrap_of(void *context, unsigned scope, struct gh_wraps_cursor *cursor, struct gh_wrap *out);

enum gh_segment_kind { GH_SEGMENT_NONE, GH_SEGMENT_REGION, GH_SEGMENT_PIECE };

struct gh_segment {
    enum gh_segment_kind kind;
    uintptr_t end; // where it, or the gap, ends; cut to the limit given
};

// What lies at `at`: an import and its end, or a gap and its end.
GH_HIDDEN struct gh_segment gh_pieces_segment(unsigned scope, uintptr_t at, uintptr_t limit);

// The memory in [start, end) is about to go away: its pieces are released in every scope, and the
// wraps that lie on them are stale; what remains of a piece outside the range, and is still
// needed, is imported again. Takes the import lock, unless this thread has it: then it is a driver
// that unmaps, and its memory is no piece.
GH_HIDDEN void gh_pieces_invalidate(uintptr_t start, uintptr_t end);

#define GH_MADV_GUARD_INSTALL 102 // Linux 6.13: pages go, and nobody may touch their places

// The contents of the pages in [start, end) are about to be dropped by `advise`, which is called
// and answers. Private anonymous pages that a wrap lies on are zeroed where they are; other pages
// are released in every scope, and imported again afterwards.
GH_HIDDEN int gh_pieces_around(uintptr_t start, uintptr_t end, int (*advise)(void *, size_t, int), int advice);

// Under the import lock: releases the pieces in the range, remainders and all. False when a driver
// keeps one: then the pages must never be anything else again.
GH_HIDDEN bool gh_pieces_drop_range(unsigned scope, uintptr_t start, uintptr_t end);

// Under the import lock: does any piece of the scope lie in the range?
GH_HIDDEN bool gh_pieces_overlap(unsigned scope, uintptr_t start, uintptr_t end);

// Under the import lock, when a scope closes.
GH_HIDDEN void gh_pieces_drop_scope(unsigned scope, bool release);

// Takes the import lock; walks everything.
GH_HIDDEN bool gh_pieces_is_valid(void);

#endif
