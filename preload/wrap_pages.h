// SPDX-License-Identifier: MIT
//
// One word for each page of memory at whose start a wrap was made: a table of tables of tables by
// address, filled in as needed and never taken apart, so that it is read without a lock. What the
// words mean, wraps.c knows.
//
// Its memory is mapped by itself; 4 KiB of it serve 2 MiB of wrapped memory.
#ifndef GH_PRELOAD_WRAP_PAGES_H
#define GH_PRELOAD_WRAP_PAGES_H

#include <stdatomic.h>

#include "allocator/util.h"

#define GH_WRAP_ADDRESS_BITS 47u
#define GH_WRAP_LEAF_BITS 14u // pages of a leaf: 64 MiB
#define GH_WRAP_NODE_BITS 10u // leaves of a node

struct gh_wrap_leaf {
    _Atomic uint64_t words[1u << GH_WRAP_LEAF_BITS];
};

struct gh_wrap_node {
    _Atomic(void *) leaves[1u << GH_WRAP_NODE_BITS]; // struct gh_wrap_leaf
};

#define GH_WRAP_NODES (1u << (GH_WRAP_ADDRESS_BITS - GH_PAGE_SHIFT - GH_WRAP_LEAF_BITS - GH_WRAP_NODE_BITS))
extern GH_HIDDEN _Atomic(void *) gh_wrap_nodes[GH_WRAP_NODES]; // struct gh_wrap_node

// Does the table have a word for this pointer? The start of a page, in the lower half.
static inline bool gh_wrap_page_has_word(uintptr_t pointer) {
    return (pointer & GH_PAGE_MASK) == 0 && pointer >> GH_WRAP_ADDRESS_BITS == 0;
}

// The word of a page that has one; NULL: nothing was ever made there.
static inline _Atomic uint64_t *gh_wrap_page_find(uintptr_t page) {
    uintptr_t number = page >> (GH_PAGE_SHIFT + GH_WRAP_LEAF_BITS);
    struct gh_wrap_node *node =
        atomic_load_explicit(&gh_wrap_nodes[number >> GH_WRAP_NODE_BITS], memory_order_acquire);
    if (gh_unlikely(node == NULL))
        return NULL;
    struct gh_wrap_leaf *leaf = atomic_load_explicit(
        &node->leaves[number & ((1u << GH_WRAP_NODE_BITS) - 1)], memory_order_acquire);
    if (gh_unlikely(leaf == NULL))
        return NULL;
    return &leaf->words[page >> GH_PAGE_SHIFT & ((1u << GH_WRAP_LEAF_BITS) - 1)];
}

// The same, and makes it; NULL: no memory.
GH_HIDDEN _Atomic uint64_t *gh_wrap_page_make(uintptr_t page);

// The first word from `*page` on that is not 0; `*page` becomes its page. NULL: none.
GH_HIDDEN _Atomic uint64_t *gh_wrap_page_next(uintptr_t *page);

// In a fork child: all words are 0 again.
GH_HIDDEN void gh_wrap_pages_clear(void);

#endif
