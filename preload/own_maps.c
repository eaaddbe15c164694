// SPDX-License-Identifier: MIT
//
// A sorted array (own_maps.h): programs have few large mappings, and change them rarely. When it
// is full, further ones are not remembered, and wraps in them import their own pages only.
#include "own_maps.h"

#include <string.h>

#include "allocator/lock.h"

#define MAPS_MAX 4096u

struct map {
    uintptr_t start;
    uintptr_t end;
};

// Under the lock. Nothing else is taken under it.
static struct gh_lock maps_lock = GH_LOCK_INIT(GH_RANK_WRAPS);
static struct map maps[MAPS_MAX];
static size_t map_count;

// A signal handler may map or unmap while its own thread is in here, and cannot wait for it. What it
// did is not known then: all is forgotten, which only makes what wraps import smaller.
static GH_TLS volatile bool inside;
static GH_TLS volatile bool missed;

static bool enter(void) {
    if (inside) {
        missed = true;
        return false;
    }
    inside = true; // before, and until after
    gh_lock_acquire(&maps_lock);
    return true;
}

static void leave(void) {
    gh_lock_release(&maps_lock);
    inside = false;
    while (gh_unlikely(missed)) {
        missed = false;
        if (!enter())
            return;
        map_count = 0;
        gh_lock_release(&maps_lock);
        inside = false;
    }
}

// The first map that ends above `address`.
static size_t first_above(uintptr_t address) {
    size_t low = 0;
    size_t high = map_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (maps[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void insert(uintptr_t start, uintptr_t end) {
    if (end - start < GH_OWN_MAP_MIN || map_count == MAPS_MAX)
        return;
    size_t at = first_above(start);
    memmove(&maps[at + 1], &maps[at], (map_count - at) * sizeof(maps[0]));
    maps[at] = (struct map){ start, end };
    map_count++;
}

static void take_out(uintptr_t start, uintptr_t end) {
    for (size_t at = first_above(start); at < map_count && maps[at].start < end; at = first_above(start)) {
        struct map old = maps[at];
        map_count--;
        memmove(&maps[at], &maps[at + 1], (map_count - at) * sizeof(maps[0]));
        if (old.start < start)
            insert(old.start, start);
        if (old.end > end) {
            insert(end, old.end);
            return;
        }
    }
}

static uintptr_t end_of(uintptr_t start, size_t size_bytes) {
    uintptr_t end = start + size_bytes;
    return end < start || end > UINTPTR_MAX - GH_PAGE_SIZE ? 0 : gh_align_up(end, GH_PAGE_SIZE);
}

void gh_own_maps_add(uintptr_t start, size_t size_bytes) {
    uintptr_t end = end_of(start, size_bytes);
    if (!enter())
        return;
    take_out(start, end);
    insert(start, end);
    leave();
}

void gh_own_maps_remove(uintptr_t start, size_t size_bytes) {
    if (size_bytes == 0 || (start & GH_PAGE_MASK) != 0)
        return; // the kernel will refuse
    if (!enter())
        return;
    take_out(start, end_of(start, size_bytes));
    leave();
}

bool gh_own_maps_find(uintptr_t start, uintptr_t end, uintptr_t *start_out, uintptr_t *end_out) {
    if (!enter())
        return false;
    size_t at = first_above(start);
    bool found = at < map_count && maps[at].start <= start && end <= maps[at].end;
    if (found) {
        *start_out = maps[at].start;
        *end_out = maps[at].end;
    }
    leave();
    return found;
}

void gh_own_maps_fork_child(void) {
    gh_lock_reset(&maps_lock);
    inside = false;
    map_count = 0;
}
