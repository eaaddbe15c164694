// SPDX-License-Identifier: MIT
//
// The wrap table (wraps.h): open addressing with linear probing and backward-shift deletion in
// each shard, so look-ups never meet tombstones however many wraps come and go.
#include "wraps.h"

#include <errno.h>
#include <string.h>

#include "allocator/lock.h"
#include "allocator/os_mem.h"

#define SHARD_BITS 8u
#define SHARDS (1u << SHARD_BITS)
#define FIRST_CAPACITY 64u

struct shard {
    _Alignas(64) struct gh_lock lock; // GH_RANK_WRAPS; protects everything below
    struct gh_wrap *records;          // a record is free when its count is 0
    uint32_t capacity;                // a power of two
    uint32_t used;
    uint32_t with_pieces; // of them
    uint64_t live;
    uint64_t covered_ever;
};

static struct shard shards[SHARDS] = { [0 ... SHARDS - 1] = { .lock = GH_LOCK_INIT(GH_RANK_WRAPS) } };

// The top bits choose the shard, the low bits the place. Wraps of neighbouring pages, as arrays are
// made, stand side by side: one cache line and one TLB entry serve several.
static uint64_t hash_of(uintptr_t pointer, unsigned scope) {
    uint64_t within_page = pointer & GH_PAGE_MASK; // 0 for a client that rounds to pages
    uint64_t mixed = (((uint64_t)pointer >> 15) ^ (within_page << 34) ^ ((uint64_t)scope << 48)) *
                     UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= mixed >> 32;
    return (mixed & ~UINT64_C(7)) | ((uint64_t)pointer >> GH_PAGE_SHIFT & 7);
}

static struct shard *shard_of(uint64_t hash) {
    return &shards[hash >> (64 - SHARD_BITS)];
}

static bool is_at(const struct gh_wrap *record, uintptr_t pointer, unsigned scope) {
    return record->pointer == pointer && record->scope == scope;
}

static void place(struct gh_wrap *records, uint32_t capacity, const struct gh_wrap *wrap) {
    uint32_t mask = capacity - 1;
    uint32_t at = (uint32_t)hash_of(wrap->pointer, wrap->scope) & mask;
    while (records[at].count != 0)
        at = (at + 1) & mask;
    records[at] = *wrap;
}

static int grow(struct shard *shard) {
    uint32_t capacity = shard->capacity == 0 ? FIRST_CAPACITY : shard->capacity * 2;
    struct gh_wrap *records = gh_os_map_table(gh_align_up(capacity * sizeof(*records), GH_PAGE_SIZE));
    if (records == NULL)
        return ENOMEM;
    for (uint32_t i = 0; i < shard->capacity; i++) {
        if (shard->records[i].count != 0)
            place(records, capacity, &shard->records[i]);
    }
    if (shard->records != NULL)
        gh_os_unmap(shard->records, gh_align_up(shard->capacity * sizeof(*records), GH_PAGE_SIZE));
    shard->records = records;
    shard->capacity = capacity;
    return 0;
}

int gh_wraps_add(const struct gh_wrap *wrap) {
    uint64_t hash = hash_of(wrap->pointer, wrap->scope);
    struct shard *shard = shard_of(hash);
    int error = 0;
    gh_lock_acquire(&shard->lock);
    if ((uint64_t)shard->used * 2 >= shard->capacity)
        error = grow(shard);
    if (error != 0) {
        gh_lock_release(&shard->lock);
        return error;
    }
    uint32_t mask = shard->capacity - 1;
    uint32_t at = (uint32_t)hash & mask;
    struct gh_wrap *same = NULL;
    for (; shard->records[at].count != 0; at = (at + 1) & mask) {
        struct gh_wrap *record = &shard->records[at];
        if (is_at(record, wrap->pointer, wrap->scope) && record->size_bytes == wrap->size_bytes &&
            record->context == wrap->context && record->has_pieces == wrap->has_pieces && !record->stale &&
            record->count != UINT32_MAX) {
            same = record;
            break;
        }
    }
    if (same != NULL) {
        same->count++;
    } else {
        shard->records[at] = *wrap;
        shard->records[at].count = 1;
        shard->used++;
    }
    shard->live++;
    shard->with_pieces += wrap->has_pieces;
    shard->covered_ever += !wrap->passed_on;
    gh_lock_release(&shard->lock);
    return 0;
}

// Frees the record at `hole` and moves later ones of its cluster up.
static void erase(struct shard *shard, uint32_t hole) {
    uint32_t mask = shard->capacity - 1;
    shard->records[hole].count = 0;
    shard->used--;
    for (uint32_t at = (hole + 1) & mask; shard->records[at].count != 0; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)hash_of(shard->records[at].pointer, shard->records[at].scope) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) { // it may live as early as the hole
            shard->records[hole] = shard->records[at];
            shard->records[at].count = 0;
            hole = at;
        }
    }
}

static void take_one(struct shard *shard, uint32_t at, struct gh_wrap *out) {
    *out = shard->records[at];
    out->count = 1;
    shard->live--;
    shard->with_pieces -= out->has_pieces;
    if (--shard->records[at].count == 0)
        erase(shard, at);
}

// Which of two wraps at one pointer is the better answer? For removing: see wraps.h. For finding:
// the one that says most.
static bool is_better(const struct gh_wrap *one, const struct gh_wrap *other, const void *context, bool remove) {
    if (remove && (one->context == context) != (other->context == context))
        return one->context == context;
    if (one->stale != other->stale)
        return one->stale == remove;
    return (one->size_bytes < other->size_bytes) == remove;
}

// The index of the best record at the pointer; UINT32_MAX: none.
static uint32_t search(const struct shard *shard, uint64_t hash, uintptr_t pointer, unsigned scope,
                       const void *context, bool remove) {
    uint32_t best = UINT32_MAX;
    if (shard->capacity == 0)
        return best;
    uint32_t mask = shard->capacity - 1;
    for (uint32_t at = (uint32_t)hash & mask; shard->records[at].count != 0; at = (at + 1) & mask) {
        if (!is_at(&shard->records[at], pointer, scope))
            continue;
        // Wraps without a context are the older import functions'; neither kind frees the other.
        if (remove && (shard->records[at].context == NULL) != (context == NULL))
            continue;
        if (best == UINT32_MAX || is_better(&shard->records[at], &shard->records[best], context, remove))
            best = at;
    }
    return best;
}

enum gh_wraps_taken gh_wraps_remove(uintptr_t pointer, unsigned scope, void *context, bool with_pieces,
                                    struct gh_wrap *out) {
    uint64_t hash = hash_of(pointer, scope);
    struct shard *shard = shard_of(hash);
    enum gh_wraps_taken taken = GH_WRAPS_NONE;
    gh_lock_acquire(&shard->lock);
    uint32_t at = search(shard, hash, pointer, scope, context, true);
    if (at != UINT32_MAX) {
        taken = GH_WRAPS_TAKEN;
        if (!with_pieces && shard->records[at].has_pieces)
            taken = GH_WRAPS_HAS_PIECES;
        else
            take_one(shard, at, out);
    }
    gh_lock_release(&shard->lock);
    return taken;
}

bool gh_wraps_find(uintptr_t pointer, unsigned scope, struct gh_wrap *out) {
    uint64_t hash = hash_of(pointer, scope);
    struct shard *shard = shard_of(hash);
    gh_lock_acquire(&shard->lock);
    uint32_t at = search(shard, hash, pointer, scope, NULL, false);
    if (at != UINT32_MAX)
        *out = shard->records[at];
    gh_lock_release(&shard->lock);
    return at != UINT32_MAX;
}

bool gh_wraps_remove_of(void *context, unsigned scope, unsigned *cursor, struct gh_wrap *out) {
    for (; *cursor < SHARDS; ++*cursor) {
        struct shard *shard = &shards[*cursor];
        gh_lock_acquire(&shard->lock);
        for (uint32_t at = 0; shard->used != 0 && at < shard->capacity; at++) {
            const struct gh_wrap *record = &shard->records[at];
            if (record->count == 0 || record->scope != scope || (context != NULL && record->context != context))
                continue;
            take_one(shard, at, out);
            gh_lock_release(&shard->lock);
            return true;
        }
        gh_lock_release(&shard->lock);
    }
    return false;
}

static bool touches(const struct gh_wrap *record, unsigned scope, uintptr_t start, uintptr_t end) {
    return record->count != 0 && record->has_pieces && record->scope == scope &&
           gh_align_down(record->pointer, GH_PAGE_SIZE) < end &&
           start < gh_align_up(record->pointer + record->size_bytes, GH_PAGE_SIZE);
}

void gh_wraps_mark_stale(unsigned scope, uintptr_t start, uintptr_t end) {
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &shards[i];
        gh_lock_acquire(&shard->lock);
        for (uint32_t at = 0; shard->with_pieces != 0 && at < shard->capacity; at++) {
            if (touches(&shard->records[at], scope, start, end))
                shard->records[at].stale = true;
        }
        gh_lock_release(&shard->lock);
    }
}

uint32_t gh_wraps_count_over(unsigned scope, uintptr_t start, uintptr_t end, uint64_t sequence) {
    uint32_t count = 0;
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &shards[i];
        gh_lock_acquire(&shard->lock);
        for (uint32_t at = 0; shard->with_pieces != 0 && at < shard->capacity; at++) {
            const struct gh_wrap *record = &shard->records[at];
            if (touches(record, scope, start, end) && record->sequence >= sequence)
                count += record->count;
        }
        gh_lock_release(&shard->lock);
    }
    return count;
}

void gh_wraps_count(uint64_t *live_out, uint64_t *covered_ever_out) {
    uint64_t live = 0;
    uint64_t covered = 0;
    for (unsigned i = 0; i < SHARDS; i++) {
        gh_lock_acquire(&shards[i].lock);
        live += shards[i].live;
        covered += shards[i].covered_ever;
        gh_lock_release(&shards[i].lock);
    }
    *live_out = live;
    *covered_ever_out = covered;
}

void gh_wraps_fork_child(void) {
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &shards[i];
        gh_lock_reset(&shard->lock);
        if (shard->records != NULL)
            gh_os_unmap(shard->records, gh_align_up(shard->capacity * sizeof(*shard->records), GH_PAGE_SIZE));
        shard->records = NULL;
        shard->capacity = 0;
        shard->used = 0;
        shard->with_pieces = 0;
        shard->live = 0;
    }
}

bool gh_wraps_is_valid(void) {
    bool valid = true;
    for (unsigned i = 0; i < SHARDS; i++) {
        struct shard *shard = &shards[i];
        gh_lock_acquire(&shard->lock);
        uint32_t used = 0;
        uint64_t live = 0;
        for (uint32_t at = 0; at < shard->capacity; at++) {
            const struct gh_wrap *record = &shard->records[at];
            if (record->count == 0)
                continue;
            used++;
            live += record->count;
            uint64_t hash = hash_of(record->pointer, record->scope);
            uint32_t found = search(shard, hash, record->pointer, record->scope, NULL, false);
            valid = valid && shard_of(hash) == shard && found != UINT32_MAX;
        }
        valid = valid && used == shard->used && live == shard->live;
        gh_lock_release(&shard->lock);
    }
    return valid;
}
