// SPDX-License-Identifier: MIT
//
// A small hash table from list handle to scope (list_scope.h), under a lock of its own. Lists are
// made and destroyed rarely, and only drivers with a scope for each context use it.
#include "list_scope.h"

#include "allocator/lock.h"
#include "allocator/os_mem.h"

struct entry {
    ze_command_list_handle_t list; // NULL: free
    unsigned scope;
};

#define FIRST_CAPACITY 256u

static struct gh_lock table_lock = GH_LOCK_INIT(GH_RANK_WRAPS);
static struct entry *entries;
static size_t capacity; // a power of two
static size_t used;

static size_t home_of(ze_command_list_handle_t list) {
    return (size_t)(((uintptr_t)list * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (capacity - 1);
}

// The entry of the list, or the free one where it belongs.
static struct entry *find(ze_command_list_handle_t list) {
    size_t at = home_of(list);
    while (entries[at].list != NULL && entries[at].list != list)
        at = (at + 1) & (capacity - 1);
    return &entries[at];
}

static size_t table_bytes(size_t count) {
    return gh_align_up(count * sizeof(struct entry), GH_PAGE_SIZE);
}

static bool grow(void) {
    struct entry *old = entries;
    size_t old_capacity = capacity;
    size_t wanted = capacity == 0 ? FIRST_CAPACITY : capacity * 2;
    struct entry *fresh = gh_os_map_table(table_bytes(wanted));
    if (fresh == NULL)
        return false;
    entries = fresh;
    capacity = wanted;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].list != NULL)
            *find(old[i].list) = old[i];
    }
    if (old != NULL)
        gh_os_unmap(old, table_bytes(old_capacity));
    return true;
}

bool gh_ze_list_made(ze_command_list_handle_t list, unsigned scope) {
    gh_lock_acquire(&table_lock);
    bool has_room = used * 2 < capacity || grow();
    if (has_room) {
        struct entry *entry = find(list);
        used += entry->list == NULL;
        *entry = (struct entry){ list, scope };
    }
    gh_lock_release(&table_lock);
    return has_room;
}

void gh_ze_list_gone(ze_command_list_handle_t list) {
    gh_lock_acquire(&table_lock);
    struct entry *entry = capacity == 0 ? NULL : find(list);
    if (entry != NULL && entry->list != NULL) {
        entry->list = NULL;
        used--;
        // Later entries of the cluster may have been pushed past this one: put them in anew.
        for (size_t at = (size_t)(entry - entries + 1) & (capacity - 1); entries[at].list != NULL;
             at = (at + 1) & (capacity - 1)) {
            struct entry moved = entries[at];
            entries[at].list = NULL;
            *find(moved.list) = moved;
        }
    }
    gh_lock_release(&table_lock);
}

unsigned gh_ze_list_scope(ze_command_list_handle_t list) {
    gh_lock_acquire(&table_lock);
    const struct entry *entry = capacity == 0 ? NULL : find(list);
    unsigned scope = entry == NULL || entry->list == NULL ? GH_NO_SCOPE : entry->scope;
    gh_lock_release(&table_lock);
    return scope;
}

void gh_ze_list_fork_child(void) {
    gh_lock_reset(&table_lock);
}
