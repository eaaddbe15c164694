// SPDX-License-Identifier: MIT
//
// The treap of pieces (piece_tree.h). Nodes come from chunks that are mapped for them: the heap
// must not be touched while imports are made.
#include "piece_tree.h"

#include <string.h>

#include "allocator/os_mem.h"
#include "pieces.h"

struct gh_piece *gh_piece_roots[GH_SCOPE_MAX];
static struct gh_piece *unused; // linked by `right`
static uint32_t random_state = 2463534242u;

#define CHUNK_BYTES (64 * GH_KIB)

struct gh_piece *gh_piece_take(void) {
    if (unused == NULL) {
        struct gh_piece *chunk = gh_os_map_table(CHUNK_BYTES);
        if (chunk == NULL)
            return NULL;
        for (size_t i = 0; i < CHUNK_BYTES / sizeof(*chunk); i++) {
            chunk[i].right = unused;
            unused = &chunk[i];
        }
    }
    struct gh_piece *piece = unused;
    unused = piece->right;
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    *piece = (struct gh_piece){ .priority = random_state };
    return piece;
}

void gh_piece_give(struct gh_piece *piece) {
    piece->right = unused;
    unused = piece;
}

// Everything that starts below `address` goes left.
static void split(struct gh_piece *tree, uintptr_t address, struct gh_piece **left, struct gh_piece **right) {
    if (tree == NULL) {
        *left = NULL;
        *right = NULL;
    } else if (tree->start < address) {
        *left = tree;
        split(tree->right, address, &tree->right, right);
    } else {
        *right = tree;
        split(tree->left, address, left, &tree->left);
    }
}

static struct gh_piece *join(struct gh_piece *left, struct gh_piece *right) {
    if (left == NULL)
        return right;
    if (right == NULL)
        return left;
    if (left->priority > right->priority) {
        left->right = join(left->right, right);
        return left;
    }
    right->left = join(left, right->left);
    return right;
}

void gh_piece_insert(unsigned scope, struct gh_piece *piece) {
    struct gh_piece *left;
    struct gh_piece *right;
    split(gh_piece_roots[scope], piece->start, &left, &right);
    gh_piece_roots[scope] = join(join(left, piece), right);
    atomic_fetch_add_explicit(&gh_pieces_count, 1, memory_order_relaxed);
}

void gh_piece_remove(unsigned scope, struct gh_piece *piece) {
    struct gh_piece **link = &gh_piece_roots[scope];
    while (*link != piece)
        link = piece->start < (*link)->start ? &(*link)->left : &(*link)->right;
    *link = join(piece->left, piece->right);
    atomic_fetch_sub_explicit(&gh_pieces_count, 1, memory_order_relaxed);
}

// The first piece that ends above `address`: the one that holds it, or the next one.
struct gh_piece *gh_piece_first_above(unsigned scope, uintptr_t address) {
    struct gh_piece *best = NULL;
    for (struct gh_piece *piece = gh_piece_roots[scope]; piece != NULL;) {
        if (piece->end > address) {
            best = piece;
            piece = piece->left;
        } else {
            piece = piece->right;
        }
    }
    return best;
}

// The last piece that starts below `address`.
struct gh_piece *gh_piece_last_below(unsigned scope, uintptr_t address) {
    struct gh_piece *best = NULL;
    for (struct gh_piece *piece = gh_piece_roots[scope]; piece != NULL;) {
        if (piece->start < address) {
            best = piece;
            piece = piece->right;
        } else {
            piece = piece->left;
        }
    }
    return best;
}

void gh_piece_forget_all(void) {
    memset(gh_piece_roots, 0, sizeof(gh_piece_roots));
    unused = NULL; // the nodes stay lost: the list may be half-linked
    atomic_store_explicit(&gh_pieces_count, 0, memory_order_relaxed);
}
