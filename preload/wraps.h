// SPDX-License-Identifier: MIT
//
// The live wraps: what the program imported itself and will free. Wraps of different blocks on
// different threads share no lock, and those that lie in regions take none. Knows nothing of
// regions, pieces or drivers.
//
// Its memory is mapped by itself: it may be used while the heap is being looked at, and a wrap
// costs no malloc. Not inside a jemalloc hook.
#ifndef GH_PRELOAD_WRAPS_H
#define GH_PRELOAD_WRAPS_H

#include "allocator/util.h"

struct gh_wrap {
    uintptr_t pointer;
    size_t size_bytes;
    void *context;      // of the GPU API, to forget its wraps when it is destroyed
    uint64_t sequence;  // when it was made; meaningful with `has_pieces`
    uint32_t count;     // wraps with the same pointer, size, context: they are one record
    uint16_t scope;
    bool has_pieces;    // holds references to imports outside regions
    bool stale;         // memory under it went away; only with `has_pieces`
    bool passed_on;     // needed a driver call
};

// Returns 0 or ENOMEM. A wrap joins an equal record that is not stale: they lie on the same pieces.
GH_HIDDEN int gh_wraps_add(const struct gh_wrap *wrap);

enum gh_wraps_taken { GH_WRAPS_NONE, GH_WRAPS_TAKEN, GH_WRAPS_HAS_PIECES };

// Takes one wrap at this pointer off. Which, when there are several: one of this context before
// those of others, then a stale one, then the smallest, so that what the others cover stays
// covered. One with pieces is left alone unless `with_pieces`: those come and go under the import
// lock (pieces.h).
GH_HIDDEN enum gh_wraps_taken gh_wraps_remove(uintptr_t pointer, unsigned scope, void *context, bool with_pieces,
                                              struct gh_wrap *out);

// The largest wrap at this pointer that is not stale; else a stale one.
GH_HIDDEN bool gh_wraps_find(uintptr_t pointer, unsigned scope, struct gh_wrap *out);

// Takes off any one wrap of this context; false when none is left. NULL: of the whole scope.
// The cursor is all 0 at first and remembers how far the search came.
struct gh_wraps_cursor {
    uintptr_t page;
    unsigned shard;
};
GH_HIDDEN bool gh_wraps_remove_of(void *context, unsigned scope, struct gh_wraps_cursor *cursor, struct gh_wrap *out);

// Wraps with pieces that touch [start, end): marks them stale; counts those that are not older
// than `sequence`. Both look at every wrap there is.
GH_HIDDEN void gh_wraps_mark_stale(unsigned scope, uintptr_t start, uintptr_t end);
GH_HIDDEN uint32_t gh_wraps_count_over(unsigned scope, uintptr_t start, uintptr_t end, uint64_t sequence);

GH_HIDDEN void gh_wraps_count(uint64_t *live_out, uint64_t *covered_ever_out);

GH_HIDDEN void gh_wraps_fork_child(void); // none of the parent's wraps are the child's

GH_HIDDEN bool gh_wraps_is_valid(void);

#endif
