// SPDX-License-Identifier: MIT
//
// The live wraps: what the program imported itself and will free. A hash table of records by
// pointer and scope, in shards with a lock each, so that wraps of different blocks on different
// threads do not meet. Knows nothing of regions, pieces or drivers.
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
};

// Returns 0 or ENOMEM. A wrap without pieces joins an equal record.
GH_HIDDEN int gh_wraps_add(const struct gh_wrap *wrap);

// Takes one wrap at this pointer off; the smallest when there are several, so that what the
// others cover stays covered. False when there is none.
GH_HIDDEN bool gh_wraps_remove(uintptr_t pointer, unsigned scope, struct gh_wrap *out);

// The largest wrap at this pointer.
GH_HIDDEN bool gh_wraps_find(uintptr_t pointer, unsigned scope, struct gh_wrap *out);

// Takes off any one wrap of this context; false when none is left. NULL: of the whole scope.
GH_HIDDEN bool gh_wraps_remove_of(void *context, unsigned scope, struct gh_wrap *out);

GH_HIDDEN void gh_wraps_count(uint64_t *live_out, uint64_t *covered_ever_out);

GH_HIDDEN void gh_wraps_fork_child(void); // none of the parent's wraps are the child's

GH_HIDDEN bool gh_wraps_is_valid(void);

#endif
