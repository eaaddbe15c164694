// SPDX-License-Identifier: MIT
//
// The page table of wraps (wrap_pages.h).
#include "wrap_pages.h"

#include <string.h>

#include "allocator/os_mem.h"

_Atomic(void *) gh_wrap_nodes[GH_WRAP_NODES];

// Two threads may both map; one of them wins.
static void *table_of(_Atomic(void *) *place, size_t size_bytes) {
    void *table = atomic_load_explicit(place, memory_order_acquire);
    if (table != NULL)
        return table;
    void *made = gh_os_map_table(size_bytes);
    if (made == NULL)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(place, &table, made, memory_order_acq_rel, memory_order_acquire))
        return made;
    gh_os_unmap(made, size_bytes);
    return table;
}

_Atomic uint64_t *gh_wrap_page_make(uintptr_t page) {
    uintptr_t number = page >> (GH_PAGE_SHIFT + GH_WRAP_LEAF_BITS);
    struct gh_wrap_node *node = table_of(&gh_wrap_nodes[number >> GH_WRAP_NODE_BITS],
                                         sizeof(struct gh_wrap_node));
    if (node == NULL)
        return NULL;
    struct gh_wrap_leaf *leaf = table_of(&node->leaves[number & ((1u << GH_WRAP_NODE_BITS) - 1)],
                                         sizeof(struct gh_wrap_leaf));
    return leaf == NULL ? NULL : &leaf->words[page >> GH_PAGE_SHIFT & ((1u << GH_WRAP_LEAF_BITS) - 1)];
}

_Atomic uint64_t *gh_wrap_page_next(uintptr_t *page) {
    const uintptr_t leaf_bytes = (uintptr_t)1 << (GH_PAGE_SHIFT + GH_WRAP_LEAF_BITS);
    const uintptr_t node_bytes = leaf_bytes << GH_WRAP_NODE_BITS;
    uintptr_t at = *page;
    while (at >> GH_WRAP_ADDRESS_BITS == 0) {
        _Atomic uint64_t *word = gh_wrap_page_find(at);
        if (word == NULL) {
            bool has_node = atomic_load_explicit(&gh_wrap_nodes[at / node_bytes], memory_order_acquire) != NULL;
            uintptr_t step = has_node ? leaf_bytes : node_bytes;
            at = gh_align_down(at, step) + step;
            continue;
        }
        for (uintptr_t end = gh_align_down(at, leaf_bytes) + leaf_bytes; at < end; at += GH_PAGE_SIZE, word++) {
            if (atomic_load_explicit(word, memory_order_relaxed) != 0) {
                *page = at;
                return word;
            }
        }
    }
    return NULL;
}

void gh_wrap_pages_clear(void) {
    for (unsigned n = 0; n < GH_WRAP_NODES; n++) {
        struct gh_wrap_node *node = atomic_load_explicit(&gh_wrap_nodes[n], memory_order_relaxed);
        for (unsigned l = 0; node != NULL && l < 1u << GH_WRAP_NODE_BITS; l++) {
            struct gh_wrap_leaf *leaf = atomic_load_explicit(&node->leaves[l], memory_order_relaxed);
            if (leaf != NULL && !gh_os_purge(leaf, sizeof(*leaf)))
                memset(leaf, 0, sizeof(*leaf)); // the child may not say madvise
        }
    }
}
