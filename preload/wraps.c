// SPDX-License-Identifier: MIT
//
// The wrap table (wraps.h). Most wraps start on a page, lie in regions, and are the only kind at
// their pointer: those are one word in the page table, changed by one compare-and-swap. All others
// are records, and the bit OTHERS in the word of their page says so; while it is set, everything
// at that page goes by the lock of the records' shard.
#include "wraps.h"

#include <errno.h>

#include "wrap_pages.h"
#include "wrap_records.h"

// A word: how many wraps (0: none), which owner, how many pages, OTHERS.
#define COUNT_MASK UINT64_C(0xffff)
#define OWNER_SHIFT 16u
#define PAGES_SHIFT 24u
#define PAGES_LIMIT (UINT64_C(1) << 39)
#define OTHERS (UINT64_C(1) << 63)
#define KEY_MASK (~(COUNT_MASK | OTHERS))

// Owners: a context and its scope, by a number that fits a word. One that finds no place among a
// few has no number, and its wraps are records.
#define OWNERS 256u
#define OWNER_PLACES 4u
#define NO_OWNER OWNERS
#define OWNER_USED (UINT64_C(1) << 63)
static _Atomic uint64_t owners[OWNERS]; // context | scope << 48 | OWNER_USED

// Counters of what came and went, each by the 2 MiB it lies in: threads at work in different
// blocks share none.
#define COUNTERS 64u
static struct {
    _Alignas(64) _Atomic uint64_t added; // to words
    _Atomic uint64_t removed;
    _Atomic uint64_t covered; // to records, without a driver call; what words hold all is
} counters[COUNTERS];

static unsigned counter_of(uintptr_t pointer) {
    return pointer >> 21 & (COUNTERS - 1);
}

static unsigned owner_of(const void *context, unsigned scope) {
    uintptr_t handle = (uintptr_t)context;
    uint64_t wanted = handle | (uint64_t)scope << 48 | OWNER_USED;
    if (handle >> 48 != 0)
        return NO_OWNER;
    unsigned first = (unsigned)((handle >> 4 ^ handle >> 12 ^ scope * 7) % OWNERS) & ~(OWNER_PLACES - 1);
    for (unsigned i = first; i < first + OWNER_PLACES; i++) {
        if (atomic_load_explicit(&owners[i], memory_order_acquire) == wanted)
            return i;
    }
    for (unsigned i = first; i < first + OWNER_PLACES; i++) {
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&owners[i], &expected, wanted) || expected == wanted)
            return i;
    }
    return NO_OWNER;
}

static void forget_owners(const void *context, unsigned scope) {
    for (unsigned i = 0; i < OWNERS; i++) {
        uint64_t owner = atomic_load_explicit(&owners[i], memory_order_relaxed);
        if ((owner & OWNER_USED) != 0 && (owner >> 48 & 0x7fff) == scope &&
            (context == NULL || (owner & ((UINT64_C(1) << 48) - 1)) == (uintptr_t)context))
            atomic_store_explicit(&owners[i], 0, memory_order_release);
    }
}

// The wrap as owner and pages of a word; 0: it needs a record. Only wraps with pieces can become
// stale, and only they have a sequence.
static uint64_t key_of(const struct gh_wrap *wrap) {
    uint64_t pages = wrap->size_bytes >> GH_PAGE_SHIFT;
    if (wrap->has_pieces || wrap->passed_on || (wrap->size_bytes & GH_PAGE_MASK) != 0 || pages == 0 ||
        pages >= PAGES_LIMIT)
        return 0;
    unsigned owner = owner_of(wrap->context, wrap->scope);
    return owner == NO_OWNER ? 0 : pages << PAGES_SHIFT | (uint64_t)owner << OWNER_SHIFT;
}

static struct gh_wrap wrap_in(uint64_t word, uintptr_t pointer) {
    uint64_t owner = atomic_load_explicit(&owners[(word & KEY_MASK) >> OWNER_SHIFT & (OWNERS - 1)],
                                          memory_order_acquire);
    return (struct gh_wrap){
        .pointer = pointer,
        .size_bytes = (size_t)((word & KEY_MASK) >> PAGES_SHIFT) << GH_PAGE_SHIFT,
        .context = (void *)(uintptr_t)(owner & ((UINT64_C(1) << 48) - 1)),
        .count = (uint32_t)(word & COUNT_MASK),
        .scope = (uint16_t)(owner >> 48 & 0x7fff),
    };
}

static bool add_to_word(_Atomic uint64_t *word, uint64_t key) {
    uint64_t now = atomic_load_explicit(word, memory_order_relaxed);
    uint64_t next;
    do {
        uint64_t count = now & COUNT_MASK;
        if ((now & OTHERS) != 0 || (count != 0 && (now & KEY_MASK) != key) || count == COUNT_MASK)
            return false;
        next = key | (count + 1);
    } while (!atomic_compare_exchange_weak_explicit(word, &now, next, memory_order_acq_rel, memory_order_relaxed));
    return true;
}

int gh_wraps_add(const struct gh_wrap *wrap) {
    _Atomic uint64_t *word = NULL;
    if (gh_likely(gh_wrap_page_has_word(wrap->pointer))) {
        word = gh_wrap_page_find(wrap->pointer);
        if (gh_unlikely(word == NULL) && (word = gh_wrap_page_make(wrap->pointer)) == NULL)
            return ENOMEM;
        uint64_t key = key_of(wrap);
        if (gh_likely(key != 0 && add_to_word(word, key))) {
            atomic_fetch_add_explicit(&counters[counter_of(wrap->pointer)].added, 1, memory_order_relaxed);
            return 0;
        }
    }
    struct gh_wrap_shard *shard = gh_wrap_records_lock(wrap->pointer);
    int error = gh_wrap_records_add(shard, wrap);
    if (error == 0 && word != NULL)
        atomic_fetch_or_explicit(word, OTHERS, memory_order_acq_rel);
    gh_wrap_records_unlock(shard);
    if (error == 0 && !wrap->passed_on)
        atomic_fetch_add_explicit(&counters[counter_of(wrap->pointer)].covered, 1, memory_order_relaxed);
    return error;
}

// A word's wrap as an answer for this scope; for removing, one that this context may free.
static bool answers(uint64_t word, uintptr_t pointer, unsigned scope, const void *context, bool remove,
                    struct gh_wrap *out) {
    if ((word & COUNT_MASK) == 0)
        return false;
    *out = wrap_in(word, pointer);
    return out->scope == scope && (!remove || gh_wrap_may_free(out, context));
}

// Takes one off the word as it was read; false when it has changed meanwhile.
static bool take_from_word(_Atomic uint64_t *word, uint64_t now) {
    uint64_t next = (now & COUNT_MASK) == 1 ? now & OTHERS : now - 1;
    return atomic_compare_exchange_strong_explicit(word, &now, next, memory_order_acq_rel, memory_order_relaxed);
}

static void taken_from_word(struct gh_wrap *out) {
    out->count = 1;
    atomic_fetch_add_explicit(&counters[counter_of(out->pointer)].removed, 1, memory_order_relaxed);
}

// Under the shard's lock.
static void take_record(struct gh_wrap_shard *shard, struct gh_wrap *record, struct gh_wrap *out) {
    gh_wrap_records_take(shard, record, out);
    if (gh_wrap_page_has_word(out->pointer) && !gh_wrap_records_any(shard, out->pointer))
        atomic_fetch_and_explicit(gh_wrap_page_find(out->pointer), ~OTHERS, memory_order_acq_rel);
}

// Under the shard's lock, when there are records or may be.
static enum gh_wraps_taken remove_locked(struct gh_wrap_shard *shard, _Atomic uint64_t *word, uintptr_t pointer,
                                         unsigned scope, void *context, bool with_pieces, struct gh_wrap *out) {
    struct gh_wrap *record = gh_wrap_records_best(shard, pointer, scope, context, true);
    uint64_t now = word == NULL ? 0 : atomic_load_explicit(word, memory_order_acquire);
    struct gh_wrap in_word;
    if (answers(now, pointer, scope, context, true, &in_word) &&
        (record == NULL || gh_wrap_goes_first(&in_word, record, context, true))) {
        // OTHERS may have been taken off before the lock was ours.
        while (!take_from_word(word, now)) {
            now = atomic_load_explicit(word, memory_order_acquire);
            if (!answers(now, pointer, scope, context, true, &in_word))
                return GH_WRAPS_NONE;
        }
        *out = in_word;
        taken_from_word(out);
        return GH_WRAPS_TAKEN;
    }
    if (record == NULL)
        return GH_WRAPS_NONE;
    if (!with_pieces && record->has_pieces)
        return GH_WRAPS_HAS_PIECES;
    take_record(shard, record, out);
    return GH_WRAPS_TAKEN;
}

enum gh_wraps_taken gh_wraps_remove(uintptr_t pointer, unsigned scope, void *context, bool with_pieces,
                                    struct gh_wrap *out) {
    _Atomic uint64_t *word = NULL;
    if (gh_likely(gh_wrap_page_has_word(pointer))) {
        word = gh_wrap_page_find(pointer);
        if (word == NULL)
            return GH_WRAPS_NONE;
        uint64_t now;
        while (((now = atomic_load_explicit(word, memory_order_acquire)) & OTHERS) == 0) {
            if (!answers(now, pointer, scope, context, true, out))
                return GH_WRAPS_NONE;
            if (gh_likely(take_from_word(word, now))) {
                taken_from_word(out);
                return GH_WRAPS_TAKEN;
            }
        }
    }
    struct gh_wrap_shard *shard = gh_wrap_records_lock(pointer);
    enum gh_wraps_taken taken = remove_locked(shard, word, pointer, scope, context, with_pieces, out);
    gh_wrap_records_unlock(shard);
    return taken;
}

bool gh_wraps_find(uintptr_t pointer, unsigned scope, struct gh_wrap *out) {
    _Atomic uint64_t *word = NULL;
    if (gh_likely(gh_wrap_page_has_word(pointer))) {
        word = gh_wrap_page_find(pointer);
        if (word == NULL)
            return false;
        uint64_t now = atomic_load_explicit(word, memory_order_acquire);
        if ((now & OTHERS) == 0)
            return answers(now, pointer, scope, NULL, false, out);
    }
    struct gh_wrap_shard *shard = gh_wrap_records_lock(pointer);
    const struct gh_wrap *record = gh_wrap_records_best(shard, pointer, scope, NULL, false);
    uint64_t now = word == NULL ? 0 : atomic_load_explicit(word, memory_order_acquire);
    bool found = answers(now, pointer, scope, NULL, false, out);
    if (record != NULL && (!found || gh_wrap_goes_first(record, out, NULL, false))) {
        *out = *record;
        found = true;
    }
    gh_wrap_records_unlock(shard);
    return found;
}

static bool is_of(const struct gh_wrap *wrap, const void *context, unsigned scope) {
    return wrap->scope == scope && (context == NULL || wrap->context == context);
}

static bool remove_next_word(const void *context, unsigned scope, uintptr_t *page, struct gh_wrap *out) {
    _Atomic uint64_t *word;
    while ((word = gh_wrap_page_next(page)) != NULL) {
        uint64_t now = atomic_load_explicit(word, memory_order_acquire);
        if ((now & COUNT_MASK) != 0) {
            *out = wrap_in(now, *page);
            if (is_of(out, context, scope)) {
                if (!take_from_word(word, now))
                    continue; // look at it again
                taken_from_word(out);
                return true;
            }
        }
        *page += GH_PAGE_SIZE;
    }
    return false;
}

bool gh_wraps_remove_of(void *context, unsigned scope, struct gh_wraps_cursor *cursor, struct gh_wrap *out) {
    if (remove_next_word(context, scope, &cursor->page, out))
        return true;
    cursor->page = UINTPTR_MAX;
    struct gh_wrap *record;
    struct gh_wrap_shard *shard = gh_wrap_records_next(context, scope, &cursor->shard, &record);
    if (shard != NULL) {
        take_record(shard, record, out);
        gh_wrap_records_unlock(shard);
        return true;
    }
    forget_owners(context, scope);
    return false;
}

void gh_wraps_count(uint64_t *live_out, uint64_t *covered_ever_out) {
    uint64_t live = gh_wrap_records_live();
    uint64_t covered = 0;
    for (unsigned i = 0; i < COUNTERS; i++) {
        uint64_t removed = atomic_load_explicit(&counters[i].removed, memory_order_relaxed);
        uint64_t added = atomic_load_explicit(&counters[i].added, memory_order_relaxed);
        live += added - removed;
        covered += added + atomic_load_explicit(&counters[i].covered, memory_order_relaxed);
    }
    *live_out = live;
    *covered_ever_out = covered;
}

void gh_wraps_fork_child(void) {
    gh_wrap_records_fork_child();
    gh_wrap_pages_clear();
    for (unsigned i = 0; i < COUNTERS; i++) {
        // What was ever covered stays counted, and none is live.
        atomic_store_explicit(&counters[i].removed, atomic_load_explicit(&counters[i].added, memory_order_relaxed),
                              memory_order_relaxed);
    }
}

static bool is_known(uintptr_t pointer) {
    if (!gh_wrap_page_has_word(pointer))
        return true;
    _Atomic uint64_t *word = gh_wrap_page_find(pointer);
    return word != NULL && (atomic_load_explicit(word, memory_order_relaxed) & OTHERS) != 0;
}

bool gh_wraps_is_valid(void) {
    bool valid = gh_wrap_records_is_valid(is_known);
    uintptr_t page = 0;
    for (const _Atomic uint64_t *word; valid && (word = gh_wrap_page_next(&page)) != NULL; page += GH_PAGE_SIZE) {
        uint64_t now = atomic_load_explicit(word, memory_order_relaxed);
        if ((now & OTHERS) != 0) {
            struct gh_wrap_shard *shard = gh_wrap_records_lock(page);
            valid = gh_wrap_records_any(shard, page) ||
                    (atomic_load_explicit(word, memory_order_relaxed) & OTHERS) == 0;
            gh_wrap_records_unlock(shard);
        } else {
            valid = (now & COUNT_MASK) != 0 || now == 0; // it may have gone meanwhile
        }
    }
    return valid;
}
