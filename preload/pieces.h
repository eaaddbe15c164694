// SPDX-License-Identifier: MIT
//
// Imports of memory outside the imported regions, made for the program's own wraps. A piece is
// one driver import of whole pages; pieces of a scope never overlap each other or an imported
// region. A wrap holds a reference to every piece it lies on, and a piece is released with its
// last reference.
//
// Everything here takes the import lock itself, and may call the driver under it.
#ifndef GH_PRELOAD_PIECES_H
#define GH_PRELOAD_PIECES_H

#include <stdatomic.h>

#include "allocator/util.h"

// How many pieces are there in all scopes; munmap and its kin look here first.
extern GH_HIDDEN _Atomic size_t gh_pieces_count;

struct gh_cover {
    uint64_t sequence;   // to hand to gh_pieces_uncover
    bool has_pieces;     // false: regions alone cover it, nothing to give back
    unsigned segments;   // imports that the range lies on
    unsigned imported;   // imports made just now
};

// Sees to it that [start, end), whole pages, is covered in the scope: imports what no import
// covers yet, in as few pieces as possible, and takes references. `read_only` memory may be
// imported so; a piece that is read-only is imported again for a wrap that is not. Returns 0 or an
// errno (nothing is kept then).
GH_HIDDEN int gh_pieces_cover(unsigned scope, uintptr_t start, uintptr_t end, bool read_only, struct gh_cover *out,
                              const char **why_out);

GH_HIDDEN void gh_pieces_uncover(unsigned scope, uintptr_t start, uintptr_t end, uint64_t sequence);

enum gh_segment_kind { GH_SEGMENT_NONE, GH_SEGMENT_REGION, GH_SEGMENT_PIECE };

struct gh_segment {
    enum gh_segment_kind kind;
    uintptr_t end;  // where it, or the gap, ends; cut to the limit given
    uint32_t users; // references, for a piece
};

// What lies at `at`: an import and its end, or a gap and its end.
GH_HIDDEN struct gh_segment gh_pieces_segment(unsigned scope, uintptr_t at, uintptr_t limit);

// The memory in [start, end) is about to go away or change: its pieces are released in every
// scope; what remains of a piece outside the range is imported again.
// Takes the import lock.
GH_HIDDEN void gh_pieces_invalidate(uintptr_t start, uintptr_t end);

// The pages in [start, end) are about to be replaced by others: pieces on them are released in
// every scope, `advise` is called and answers, and what wraps still hold is imported again.
GH_HIDDEN int gh_pieces_around(uintptr_t start, uintptr_t end, int (*advise)(void *, size_t, int), int advice);

// Under the import lock: releases the pieces in the range, remainders and all.
GH_HIDDEN void gh_pieces_drop_range(unsigned scope, uintptr_t start, uintptr_t end);

// Under the import lock: does any piece of the scope lie in the range?
GH_HIDDEN bool gh_pieces_overlap(unsigned scope, uintptr_t start, uintptr_t end);

// Under the import lock, when a scope closes.
GH_HIDDEN void gh_pieces_drop_scope(unsigned scope, bool release);

// Takes the import lock; walks everything.
GH_HIDDEN bool gh_pieces_is_valid(void);

#endif
