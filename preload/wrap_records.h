// SPDX-License-Identifier: MIT
//
// The wraps that do not fit a word of the page table (wrap_pages.h): a hash table of records by
// pointer, in shards with a lock each. wraps.c decides what goes where; nobody else calls this.
//
// Its memory is mapped by itself. Locks: GH_RANK_WRAPS, never malloc under it.
#ifndef GH_PRELOAD_WRAP_RECORDS_H
#define GH_PRELOAD_WRAP_RECORDS_H

#include "wraps.h"

struct gh_wrap_shard;

// The shard of all records at this pointer, locked.
GH_HIDDEN struct gh_wrap_shard *gh_wrap_records_lock(uintptr_t pointer);
GH_HIDDEN void gh_wrap_records_unlock(struct gh_wrap_shard *shard);

// The next four: under the shard's lock.
GH_HIDDEN int gh_wrap_records_add(struct gh_wrap_shard *shard, const struct gh_wrap *wrap); // 0 or ENOMEM
GH_HIDDEN struct gh_wrap *gh_wrap_records_best(struct gh_wrap_shard *shard, uintptr_t pointer, unsigned scope,
                                               const void *context, bool remove);
GH_HIDDEN void gh_wrap_records_take(struct gh_wrap_shard *shard, struct gh_wrap *record, struct gh_wrap *out);
GH_HIDDEN bool gh_wrap_records_any(const struct gh_wrap_shard *shard, uintptr_t pointer);

// Which of two wraps at one pointer is the better answer? For removing: see wraps.h. For finding:
// the one that says most.
GH_HIDDEN bool gh_wrap_goes_first(const struct gh_wrap *one, const struct gh_wrap *other, const void *context,
                                  bool remove);

// Wraps without a context are the older import functions'; neither kind frees the other.
static inline bool gh_wrap_may_free(const struct gh_wrap *wrap, const void *context) {
    return (wrap->context == NULL) == (context == NULL);
}

// Any record of this context (NULL: of the scope), and its shard, locked; NULL: none is left.
// `*cursor` is 0 at first.
GH_HIDDEN struct gh_wrap_shard *gh_wrap_records_next(void *context, unsigned scope, unsigned *cursor,
                                                     struct gh_wrap **record_out);

GH_HIDDEN uint64_t gh_wrap_records_live(void);
GH_HIDDEN void gh_wrap_records_fork_child(void);
GH_HIDDEN bool gh_wrap_records_is_valid(bool (*is_known)(uintptr_t pointer));

#endif
