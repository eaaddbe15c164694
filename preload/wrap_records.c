// SPDX-License-Identifier: MIT
//
// Records of wraps (wrap_records.h): open addressing with linear probing and backward-shift
// deletion in each shard, so look-ups never meet tombstones however many wraps come and go.
#include "wrap_records.h"

#include <errno.h>

#include "allocator/lock.h"
#include "allocator/os_mem.h"

#define SHARD_BITS 8u
#define SHARDS (1u << SHARD_BITS)
#define FIRST_CAPACITY 64u

struct gh_wrap_shard {
    _Alignas(64) struct gh_lock lock; // GH_RANK_WRAPS; protects everything below
    struct gh_wrap *records;          // a record is free when its count is 0
    uint32_t capacity;                // a power of two
    uint32_t used;
    uint32_t with_pieces; // of them
};

static struct gh_wrap_shard shards[SHARDS] = { [0 ... SHARDS - 1] = { .lock = GH_LOCK_INIT(GH_RANK_WRAPS) } };

// The top bits choose the shard, the low bits the place. All wraps at a pointer are in one shard;
// those of neighbouring pages stand side by side.
static uint64_t hash_of(uintptr_t pointer) {
    uint64_t within_page = pointer & GH_PAGE_MASK; // 0 for a client that rounds to pages
    uint64_t mixed = (((uint64_t)pointer >> 15) ^ (within_page << 34)) * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= mixed >> 32;
    return (mixed & ~UINT64_C(7)) | ((uint64_t)pointer >> GH_PAGE_SHIFT & 7);
}

static struct gh_wrap_shard *shard_of(uintptr_t pointer) {
    return &shards[hash_of(pointer) >> (64 - SHARD_BITS)];
}

static uint32_t home_of(const struct gh_wrap_shard *shard, uintptr_t pointer) {
    return (uint32_t)hash_of(pointer) & (shard->capacity - 1);
}

struct gh_wrap_shard *gh_wrap_records_lock(uintptr_t pointer) {
    struct gh_wrap_shard *shard = shard_of(pointer);
    gh_lock_acquire(&shard->lock);
    return shard;
}

void gh_wrap_records_unlock(struct gh_wrap_shard *shard) {
    gh_lock_release(&shard->lock);
}

static void place(struct gh_wrap *records, uint32_t capacity, const struct gh_wrap *wrap) {
    uint32_t mask = capacity - 1;
    uint32_t at = (uint32_t)hash_of(wrap->pointer) & mask;
    while (records[at].count != 0)
        at = (at + 1) & mask;
    records[at] = *wrap;
}

static int grow(struct gh_wrap_shard *shard) {
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

static bool is_equal(const struct gh_wrap *record, const struct gh_wrap *wrap) {
    return record->pointer == wrap->pointer && record->scope == wrap->scope &&
           record->size_bytes == wrap->size_bytes && record->context == wrap->context &&
           record->has_pieces == wrap->has_pieces && !record->stale && record->count != UINT32_MAX;
}

int gh_wrap_records_add(struct gh_wrap_shard *shard, const struct gh_wrap *wrap) {
    if ((uint64_t)shard->used * 2 >= shard->capacity) {
        int error = grow(shard);
        if (error != 0)
            return error;
    }
    uint32_t at = home_of(shard, wrap->pointer);
    while (shard->records[at].count != 0 && !is_equal(&shard->records[at], wrap))
        at = (at + 1) & (shard->capacity - 1);
    if (shard->records[at].count != 0) {
        shard->records[at].count++;
    } else {
        shard->records[at] = *wrap;
        shard->records[at].count = 1;
        shard->used++;
    }
    shard->with_pieces += wrap->has_pieces;
    return 0;
}

// Frees the record at `hole` and moves later ones of its cluster up.
static void erase(struct gh_wrap_shard *shard, uint32_t hole) {
    uint32_t mask = shard->capacity - 1;
    shard->records[hole].count = 0;
    shard->used--;
    for (uint32_t at = (hole + 1) & mask; shard->records[at].count != 0; at = (at + 1) & mask) {
        uint32_t home = home_of(shard, shard->records[at].pointer);
        if (((at - home) & mask) >= ((at - hole) & mask)) { // it may live as early as the hole
            shard->records[hole] = shard->records[at];
            shard->records[at].count = 0;
            hole = at;
        }
    }
}

void gh_wrap_records_take(struct gh_wrap_shard *shard, struct gh_wrap *record, struct gh_wrap *out) {
    *out = *record;
    out->count = 1;
    shard->with_pieces -= out->has_pieces;
    if (--record->count == 0)
        erase(shard, (uint32_t)(record - shard->records));
}

bool gh_wrap_goes_first(const struct gh_wrap *one, const struct gh_wrap *other, const void *context, bool remove) {
    if (remove && (one->context == context) != (other->context == context))
        return one->context == context;
    if (one->stale != other->stale)
        return one->stale == remove;
    return (one->size_bytes < other->size_bytes) == remove;
}

struct gh_wrap *gh_wrap_records_best(struct gh_wrap_shard *shard, uintptr_t pointer, unsigned scope,
                                     const void *context, bool remove) {
    struct gh_wrap *best = NULL;
    if (shard->capacity == 0)
        return best;
    uint32_t mask = shard->capacity - 1;
    for (uint32_t at = home_of(shard, pointer); shard->records[at].count != 0; at = (at + 1) & mask) {
        struct gh_wrap *record = &shard->records[at];
        if (record->pointer != pointer || record->scope != scope || (remove && !gh_wrap_may_free(record, context)))
            continue;
        if (best == NULL || gh_wrap_goes_first(record, best, context, remove))
            best = record;
    }
    return best;
}

bool gh_wrap_records_any(const struct gh_wrap_shard *shard, uintptr_t pointer) {
    if (shard->capacity == 0)
        return false;
    uint32_t mask = shard->capacity - 1;
    for (uint32_t at = home_of(shard, pointer); shard->records[at].count != 0; at = (at + 1) & mask) {
        if (shard->records[at].pointer == pointer)
            return true;
    }
    return false;
}

struct gh_wrap_shard *gh_wrap_records_next(void *context, unsigned scope, unsigned *cursor,
                                           struct gh_wrap **record_out) {
    for (; *cursor < SHARDS; ++*cursor) {
        struct gh_wrap_shard *shard = &shards[*cursor];
        gh_lock_acquire(&shard->lock);
        for (uint32_t at = 0; shard->used != 0 && at < shard->capacity; at++) {
            struct gh_wrap *record = &shard->records[at];
            if (record->count != 0 && record->scope == scope && (context == NULL || record->context == context)) {
                *record_out = record;
                return shard;
            }
        }
        gh_lock_release(&shard->lock);
    }
    return NULL;
}

static bool touches(const struct gh_wrap *record, unsigned scope, uintptr_t start, uintptr_t end) {
    return record->count != 0 && record->has_pieces && record->scope == scope &&
           gh_align_down(record->pointer, GH_PAGE_SIZE) < end &&
           start < gh_align_up(record->pointer + record->size_bytes, GH_PAGE_SIZE);
}

void gh_wraps_mark_stale(unsigned scope, uintptr_t start, uintptr_t end) {
    for (unsigned i = 0; i < SHARDS; i++) {
        struct gh_wrap_shard *shard = &shards[i];
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
        struct gh_wrap_shard *shard = &shards[i];
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

uint64_t gh_wrap_records_live(void) {
    uint64_t live = 0;
    for (unsigned i = 0; i < SHARDS; i++) {
        gh_lock_acquire(&shards[i].lock);
        for (uint32_t at = 0; shards[i].used != 0 && at < shards[i].capacity; at++)
            live += shards[i].records[at].count;
        gh_lock_release(&shards[i].lock);
    }
    return live;
}

void gh_wrap_records_fork_child(void) {
    for (unsigned i = 0; i < SHARDS; i++) {
        struct gh_wrap_shard *shard = &shards[i];
        gh_lock_reset(&shard->lock);
        if (shard->records != NULL)
            gh_os_unmap(shard->records, gh_align_up(shard->capacity * sizeof(*shard->records), GH_PAGE_SIZE));
        shard->records = NULL;
        shard->capacity = 0;
        shard->used = 0;
        shard->with_pieces = 0;
    }
}

bool gh_wrap_records_is_valid(bool (*is_known)(uintptr_t pointer)) {
    bool valid = true;
    for (unsigned i = 0; i < SHARDS; i++) {
        struct gh_wrap_shard *shard = &shards[i];
        gh_lock_acquire(&shard->lock);
        uint32_t used = 0;
        uint64_t with_pieces = 0;
        for (uint32_t at = 0; at < shard->capacity; at++) {
            struct gh_wrap *record = &shard->records[at];
            if (record->count == 0)
                continue;
            used++;
            with_pieces += record->has_pieces ? record->count : 0;
            valid = valid && shard_of(record->pointer) == shard && is_known(record->pointer) &&
                    gh_wrap_records_best(shard, record->pointer, record->scope, NULL, false) != NULL;
        }
        valid = valid && used == shard->used && with_pieces == shard->with_pieces;
        gh_lock_release(&shard->lock);
    }
    return valid;
}
