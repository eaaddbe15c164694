// SPDX-License-Identifier: MIT
//
// A treap of disjoint address ranges: insert, remove and look-up in O(log n), so that a test with
// 10^5 imports measures the library and not this driver. Nodes belong to the caller; nothing here
// allocates or locks.
#include "sim_internal.h"

static _Atomic uint32_t priority_state = 0x9e3779b9u;

static uint32_t next_priority(void)
{
    // A Weyl sequence through a mixer: any thread may draw, order does not matter.
    uint32_t x = atomic_fetch_add_explicit(&priority_state, 0x9e3779b9u, memory_order_relaxed);
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

static struct sim_range *merge(struct sim_range *low, struct sim_range *high)
{
    if (!low) return high;
    if (!high) return low;
    if (low->priority > high->priority) {
        low->right = merge(low->right, high);
        return low;
    }
    high->left = merge(low, high->left);
    return high;
}

static void split(struct sim_range *root, uintptr_t at, struct sim_range **low, struct sim_range **high)
{
    if (!root) {
        *low = *high = NULL;
    } else if (root->begin < at) {
        split(root->right, at, &root->right, high);
        *low = root;
    } else {
        split(root->left, at, low, &root->left);
        *high = root;
    }
}

void sim_ranges_insert(struct sim_range **root, struct sim_range *range)
{
    range->priority = next_priority();
    while (*root && (*root)->priority >= range->priority)
        root = range->begin < (*root)->begin ? &(*root)->left : &(*root)->right;
    split(*root, range->begin, &range->left, &range->right);
    *root = range;
}

void sim_ranges_remove(struct sim_range **root, struct sim_range *range)
{
    while (*root && *root != range)
        root = range->begin < (*root)->begin ? &(*root)->left : &(*root)->right;
    if (*root) *root = merge(range->left, range->right);
}

// The lowest range that shares a byte with [begin, end), or NULL.
struct sim_range *sim_ranges_overlap(struct sim_range *root, uintptr_t begin, uintptr_t end)
{
    struct sim_range *best = NULL;
    while (root) {
        if (root->end > begin) {
            best = root;
            root = root->left;
        } else {
            root = root->right;
        }
    }
    return best && best->begin < end ? best : NULL;
}
