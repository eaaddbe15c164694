// SPDX-License-Identifier: MIT
//
// The seed's table: 100 arrays back to back of each of 16 B to 40 KB, 20 of 4 MB; and the check that
// every byte of them is memory of the GPU's: first, middle and last byte of each block.
#include "client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const struct {
    size_t size_bytes;
    size_t count;
} table[] = {{16, 100}, {256, 100}, {2048, 100}, {4096, 100}, {40 * 1024, 100}, {4 * 1024 * 1024, 20}};

#define TABLE_ROWS (sizeof table / sizeof table[0])

static size_t mapping_bytes(size_t size_bytes) {
    return (size_bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

struct block_set blocks_allocate(const struct client *client) {
    struct block_set set = {NULL, 0};
    for (size_t row = 0; row < TABLE_ROWS; row++) {
        set.count += table[row].count;
    }
    set.blocks = calloc(set.count, sizeof *set.blocks);
    if (set.blocks == NULL) {
        abort();
    }
    struct block *block = set.blocks;
    for (size_t row = 0; row < TABLE_ROWS; row++) {
        for (size_t i = 0; i < table[row].count; i++, block++) {
            block->size_bytes = table[row].size_bytes;
            if (client->plain) {
                void *mapping = mmap(NULL, mapping_bytes(block->size_bytes), PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                block->address = mapping == MAP_FAILED ? NULL : mapping;
            } else {
                block->address = malloc(block->size_bytes);
            }
            if (block->address == NULL) {
                abort();
            }
            memset(block->address, (int)(i & 0xff), block->size_bytes);
        }
    }
    return set;
}

void blocks_free(const struct client *client, struct block_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        if (client->plain) {
            munmap(set->blocks[i].address, mapping_bytes(set->blocks[i].size_bytes));
        } else {
            free(set->blocks[i].address);
        }
    }
    free(set->blocks);
    set->blocks = NULL;
    set->count = 0;
}

void blocks_check_visible(const struct client *client, ze_context_handle_t context,
                          const struct block_set *set, const char *when) {
    for (size_t i = 0; i < set->count; i++) {
        const struct block *block = &set->blocks[i];
        const size_t offsets[] = {0, block->size_bytes / 2, block->size_bytes - 1};
        for (size_t k = 0; k < 3; k++) {
            ze_memory_type_t type = client_memory_type(context, block->address + offsets[k]);
            CHECK(type == ZE_MEMORY_TYPE_HOST, "%s: byte %zu of %zu is HOST, not %d", when, offsets[k],
                  block->size_bytes, (int)type);
        }
        // After a call through the door: new memory may wait for the next one.
        if (!client->plain) {
            CHECK(client_is_visible(block->address, block->size_bytes) == 1,
                  "%s: %zu bytes at %p are visible", when, block->size_bytes, (void *)block->address);
        }
    }
}
