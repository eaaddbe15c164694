// SPDX-License-Identifier: MIT
//
// The pieces of each scope, in a treap ordered by address. All of it under the import lock; only
// pieces.c uses it.
#ifndef GH_PRELOAD_PIECE_TREE_H
#define GH_PRELOAD_PIECE_TREE_H

#include "gpu.h"

struct gh_piece {
    uintptr_t start;
    uintptr_t end;
    uint64_t sequence; // of the cover that made it; later covers have higher ones
    uint32_t refs;
    uint32_t priority;
    bool read_only; // the driver was asked for no more
    bool kept;      // one of the references is ours: it stays until its memory goes
    bool suspended; // its import is released for the moment
    struct gh_piece *left;
    struct gh_piece *right;
};

extern GH_HIDDEN struct gh_piece *gh_piece_roots[GH_SCOPE_MAX];

// A node with everything zero but its priority, or NULL; and back.
GH_HIDDEN struct gh_piece *gh_piece_take(void);
GH_HIDDEN void gh_piece_give(struct gh_piece *piece);

// Both keep gh_pieces_count. The piece overlaps none that is there.
GH_HIDDEN void gh_piece_insert(unsigned scope, struct gh_piece *piece);
GH_HIDDEN void gh_piece_remove(unsigned scope, struct gh_piece *piece);

// The first piece that ends above `address`: the one that holds it, or the next one.
GH_HIDDEN struct gh_piece *gh_piece_first_above(unsigned scope, uintptr_t address);

// The last piece that starts below `address`.
GH_HIDDEN struct gh_piece *gh_piece_last_below(unsigned scope, uintptr_t address);

// In a fork child: whatever another thread was doing to them, there are none.
GH_HIDDEN void gh_piece_forget_all(void);

#endif
