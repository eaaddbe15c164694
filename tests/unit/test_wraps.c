// SPDX-License-Identifier: MIT
//
// The wrap table against a plain list: random adds, removals and look-ups of wraps that share
// pointers, scopes and contexts; staleness; threads.
#include "unit.h"

#include <pthread.h>

#include "wraps.h"

#define LIST_MAX 3000

static struct gh_wrap list[LIST_MAX]; // one entry for each wrap; `count` is not used
static unsigned list_count;
static char contexts[4];

static struct gh_wrap random_wrap(void) {
    struct gh_wrap wrap = {
        .pointer = (1 + unit_below(400)) * PAGE,
        .size_bytes = (1 + unit_below(6)) * PAGE,
        .context = &contexts[unit_below(4)],
        .scope = (uint16_t)unit_below(3),
        .count = 1,
        .has_pieces = unit_below(3) == 0,
    };
    return wrap;
}

// The order of wraps.h: of this context, then stale, then small.
static bool goes_first(const struct gh_wrap *one, const struct gh_wrap *other, const void *context) {
    if ((one->context == context) != (other->context == context))
        return one->context == context;
    if (one->stale != other->stale)
        return one->stale;
    return one->size_bytes < other->size_bytes;
}

static int next_to_remove(uintptr_t pointer, unsigned scope, const void *context) {
    int best = -1;
    for (unsigned i = 0; i < list_count; i++) {
        if (list[i].pointer == pointer && list[i].scope == scope &&
            (best < 0 || goes_first(&list[i], &list[best], context)))
            best = (int)i;
    }
    return best;
}

static void list_take(const struct gh_wrap *wrap) {
    for (unsigned i = 0; i < list_count; i++) {
        if (list[i].pointer == wrap->pointer && list[i].scope == wrap->scope && list[i].context == wrap->context &&
            list[i].size_bytes == wrap->size_bytes && list[i].stale == wrap->stale &&
            list[i].has_pieces == wrap->has_pieces) {
            list[i] = list[--list_count];
            return;
        }
    }
    cr_assert_fail("a wrap came out that never went in");
}

static void random_remove(void) {
    struct gh_wrap asked = list_count != 0 && unit_below(4) != 0 ? list[unit_below(list_count)] : random_wrap();
    void *context = unit_below(4) == 0 ? &contexts[unit_below(4)] : asked.context;
    bool with_pieces = unit_below(2) == 0;
    int best = next_to_remove(asked.pointer, asked.scope, context);
    struct gh_wrap got;
    enum gh_wraps_taken taken = gh_wraps_remove(asked.pointer, asked.scope, context, with_pieces, &got);
    if (best < 0) {
        cr_assert_eq(taken, GH_WRAPS_NONE);
        return;
    }
    if (taken == GH_WRAPS_HAS_PIECES) {
        cr_assert_not(with_pieces);
        return;
    }
    cr_assert_eq(taken, GH_WRAPS_TAKEN);
    cr_assert_eq(got.count, 1);
    cr_assert_eq(got.pointer, asked.pointer);
    // The best one, or its equal in everything that counts.
    cr_assert(!goes_first(&list[best], &got, context), "a wrap that others go before was taken");
    list_take(&got);
}

static void random_find(void) {
    struct gh_wrap asked = list_count != 0 && unit_below(2) == 0 ? list[unit_below(list_count)] : random_wrap();
    size_t largest = 0;
    bool any = false;
    bool any_fresh = false;
    for (unsigned i = 0; i < list_count; i++) {
        if (list[i].pointer != asked.pointer || list[i].scope != asked.scope)
            continue;
        any = true;
        any_fresh = any_fresh || !list[i].stale;
        if (!list[i].stale && list[i].size_bytes > largest)
            largest = list[i].size_bytes;
    }
    struct gh_wrap got;
    cr_assert_eq(gh_wraps_find(asked.pointer, asked.scope, &got), any);
    if (!any)
        return;
    cr_assert_eq(got.stale, !any_fresh);
    cr_assert(got.stale || got.size_bytes == largest);
}

static void random_mark(void) {
    uintptr_t start = (1 + unit_below(400)) * PAGE;
    uintptr_t end = start + (1 + unit_below(3)) * PAGE;
    unsigned scope = (unsigned)unit_below(3);
    gh_wraps_mark_stale(scope, start, end);
    for (unsigned i = 0; i < list_count; i++) {
        if (list[i].scope == scope && list[i].has_pieces && list[i].pointer < end &&
            list[i].pointer + list[i].size_bytes > start)
            list[i].stale = true;
    }
}

static void check_counts(void) {
    uint64_t live;
    uint64_t covered;
    gh_wraps_count(&live, &covered);
    cr_assert_eq(live, list_count);
    cr_assert(gh_wraps_is_valid());
}

Test(wraps, random_against_a_list) {
    unit_seed();
    for (int step = 0; step < 60000; step++) {
        bool grow = step / 6000 % 2 == 0;
        size_t kind = unit_below(100);
        if (kind < (grow ? 55u : 35u) && list_count < LIST_MAX) {
            struct gh_wrap wrap = random_wrap();
            wrap.sequence = (uint64_t)step;
            cr_assert_eq(gh_wraps_add(&wrap), 0);
            list[list_count++] = wrap;
        } else if (kind < 90) {
            random_remove();
        } else if (kind < 99) {
            random_find();
        } else {
            random_mark();
        }
        if (step % 500 == 0)
            check_counts();
    }
    check_counts();
    for (unsigned scope = 0; scope < 3; scope++) {
        for (int c = 0; c < 5; c++) {
            struct gh_wrap got;
            struct gh_wraps_cursor cursor = { 0 };
            void *context = c == 4 ? NULL : &contexts[c];
            while (gh_wraps_remove_of(context, scope, &cursor, &got)) {
                cr_assert(context == NULL || got.context == context);
                cr_assert_eq(got.scope, scope);
                list_take(&got);
            }
        }
    }
    cr_assert_eq(list_count, 0);
    check_counts();
}

// What one context frees is its own, though another has a smaller wrap there.
Test(wraps, a_context_frees_its_own) {
    struct gh_wrap large = { .pointer = PAGE, .size_bytes = 8 * PAGE, .context = &contexts[0], .count = 1 };
    struct gh_wrap small = { .pointer = PAGE, .size_bytes = PAGE, .context = &contexts[1], .count = 1 };
    struct gh_wrap got;
    cr_assert_eq(gh_wraps_add(&large), 0);
    cr_assert_eq(gh_wraps_add(&small), 0);
    cr_assert_eq(gh_wraps_remove(PAGE, 0, &contexts[0], true, &got), GH_WRAPS_TAKEN);
    cr_assert_eq(got.size_bytes, 8 * PAGE);
    cr_assert(gh_wraps_find(PAGE, 0, &got));
    cr_assert_eq(got.context, &contexts[1]);
}

Test(wraps, equal_wraps_are_one_record_and_count) {
    struct gh_wrap wrap = { .pointer = PAGE, .size_bytes = PAGE, .context = contexts, .count = 1 };
    struct gh_wrap got;
    for (int i = 0; i < 100000; i++)
        cr_assert_eq(gh_wraps_add(&wrap), 0);
    for (int i = 0; i < 100000; i++)
        cr_assert_eq(gh_wraps_remove(PAGE, 0, contexts, false, &got), GH_WRAPS_TAKEN);
    cr_assert_eq(gh_wraps_remove(PAGE, 0, contexts, false, &got), GH_WRAPS_NONE);
}

Test(wraps, a_fork_child_has_none) {
    struct gh_wrap wrap = { .pointer = PAGE, .size_bytes = PAGE, .context = contexts, .count = 1 };
    struct gh_wrap got;
    for (unsigned i = 1; i < 10000; i++) {
        wrap.pointer = i * PAGE;
        gh_wraps_add(&wrap);
    }
    gh_wraps_fork_child();
    check_counts();
    cr_assert_not(gh_wraps_find(PAGE, 0, &got));
    cr_assert_eq(gh_wraps_add(&wrap), 0);
    cr_assert(gh_wraps_find(wrap.pointer, 0, &got));
}

static void *churn(void *argument) {
    uintptr_t base = (uintptr_t)argument;
    struct gh_wrap wrap = { .size_bytes = PAGE, .context = contexts, .count = 1 };
    struct gh_wrap got;
    for (int round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            wrap.pointer = base + i * PAGE;
            if (gh_wraps_add(&wrap) != 0)
                abort();
        }
        for (unsigned i = 0; i < 1000; i++) {
            uintptr_t pointer = base + (i * 7 % 1000) * PAGE;
            if (!gh_wraps_find(pointer, 0, &got) ||
                gh_wraps_remove(pointer, 0, contexts, false, &got) != GH_WRAPS_TAKEN || got.pointer != pointer)
                abort();
        }
    }
    return NULL;
}

Test(wraps, threads) {
    pthread_t threads[8];
    for (uintptr_t i = 0; i < 8; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, churn, (void *)((i + 1) << 30)), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    check_counts();
}

// More contexts than there are numbers for, at pages that wraps of several kinds share, and
// pointers that no page starts at.
Test(wraps, many_contexts) {
    static char many[2000];
    struct gh_wrap got;
    for (unsigned i = 0; i < sizeof(many); i++) {
        struct gh_wrap wrap = {
            .pointer = (1 + i % 50) * PAGE + (i % 7 == 0 ? 64 : 0),
            .size_bytes = i % 11 == 0 ? 100 : PAGE,
            .context = &many[i],
            .scope = (uint16_t)(i % 3),
            .count = 1,
        };
        cr_assert_eq(gh_wraps_add(&wrap), 0);
        list[list_count++] = wrap;
    }
    check_counts();
    for (unsigned i = 0; i < sizeof(many); i += 2) { // half of them one by one
        cr_assert_eq(gh_wraps_remove(list[i].pointer, list[i].scope, list[i].context, false, &got), GH_WRAPS_TAKEN);
        cr_assert_eq(got.context, list[i].context);
        cr_assert_eq(got.size_bytes, list[i].size_bytes);
    }
    for (unsigned i = 1; i < sizeof(many); i += 2) { // the others with their contexts
        struct gh_wraps_cursor cursor = { 0 };
        cr_assert(gh_wraps_remove_of(list[i].context, list[i].scope, &cursor, &got));
        cr_assert_eq(got.pointer, list[i].pointer);
        cr_assert_not(gh_wraps_remove_of(list[i].context, list[i].scope, &cursor, &got));
    }
    list_count = 0;
    check_counts();
}

// The same few pages from all threads, with sizes and contexts that do and do not fit together:
// each thread gets out as many as it put in.
static void *churn_shared(void *argument) {
    struct gh_wrap wrap = { .context = contexts + (uintptr_t)argument % 2, .count = 1 };
    struct gh_wrap got;
    for (unsigned i = 0; i < 40000; i++) {
        wrap.pointer = (1 + i % 5) * PAGE;
        wrap.size_bytes = (1 + i / 5 % 3) * PAGE;
        if (gh_wraps_add(&wrap) != 0 || !gh_wraps_find(wrap.pointer, 0, &got) ||
            gh_wraps_remove(wrap.pointer, 0, wrap.context, false, &got) != GH_WRAPS_TAKEN ||
            got.pointer != wrap.pointer)
            abort();
    }
    return NULL;
}

Test(wraps, threads_at_the_same_pages) {
    pthread_t threads[8];
    for (uintptr_t i = 0; i < 8; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, churn_shared, (void *)i), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    check_counts();
}
