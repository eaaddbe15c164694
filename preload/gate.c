// SPDX-License-Identifier: MIT
//
// The slow way of allocation (gate.h): decides between heap, plain memory, the early heap and
// glibc's heap. Takes no lock of ours and calls no driver.
//
// A pointer that is in no region and not early is glibc's (a library that was bound to glibc's
// malloc made it) or nobody's; either way glibc's free gives the answer that the program would
// get without us.
#include "gate.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "allocator/arena_set.h"
#include "allocator/je_api.h"
#include "aside.h"
#include "config.h"
#include "driver_text.h"
#include "early_heap.h"
#include "lifecycle.h"
#include "real_symbols.h"

// A driver's GPU buffers are pages, so smaller blocks of it may lie anywhere.
#define DRIVER_BLOCK_MIN GH_PAGE_SIZE

#define SMALLEST 16u // bytes and alignment of the smallest block

_Atomic size_t gh_gate_size;

void gh_gate_open(void) {
    if (gh_config.min_size != 0 || gh_config.exclusive_pages)
        return; // every block is looked at
    atomic_store_explicit(&gh_gate_size, SIZE_MAX, memory_order_release);
}

void gh_gate_driver_loaded(void) {
    size_t open = SIZE_MAX;
    atomic_compare_exchange_strong(&gh_gate_size, &open, DRIVER_BLOCK_MIN);
}

static void *out_of_memory(void) {
    errno = ENOMEM;
    return NULL;
}

static bool wants_plain(size_t size, const void *caller) {
    if (size < gh_config.min_size)
        return true;
    return size >= DRIVER_BLOCK_MIN && gh_driver_text_has(caller);
}

static int flags_for(size_t *size, size_t alignment, bool zero, int plain_flags) {
    int flags = plain_flags | (zero ? MALLOCX_ZERO : 0);
    if (gh_config.exclusive_pages) {
        alignment = gh_max(alignment, GH_PAGE_SIZE);
        if (*size <= PTRDIFF_MAX)
            *size = gh_align_up(*size, GH_PAGE_SIZE);
    }
    if (alignment > SMALLEST)
        flags |= MALLOCX_LG_ALIGN(__builtin_ctzll(alignment));
    return flags;
}

// jemalloc's plain functions are shorter than mallocx.
static void *take(size_t size, int flags) {
    if (flags == 0)
        return gh_je_malloc(size);
    return flags == MALLOCX_ZERO ? gh_je_calloc(1, size) : gh_je_mallocx(size, flags);
}

// No address space is left: what is free but kept for reuse goes back, so that a second try may
// succeed, as it would with glibc. Not for a block larger than all that is mapped, which could
// hardly fit: a program that asks for the impossible again and again shall not pay for it.
static bool make_room(size_t size) {
    struct gh_region_pool_stats heap;
    gh_region_pool_get_stats(gh_arena_set_heap(), &heap);
    return size <= heap.mapped_bytes && gh_arena_set_make_room();
}

static void *take_aside(size_t size, size_t alignment, bool zero) {
    if (alignment <= SMALLEST)
        return zero ? gh_aside.calloc(1, size) : gh_aside.malloc(size);
    void *block = gh_aside.memalign(alignment, size);
    return block != NULL && zero ? memset(block, 0, size) : block;
}

void *gh_allocate(size_t size, size_t alignment, bool zero, const void *caller) {
    int life = atomic_load_explicit(&gh_life, memory_order_acquire);
    if (gh_unlikely(life != GH_LIFE_SERVING)) {
        life = gh_start();
        if (life == GH_LIFE_STARTING)
            return gh_early_take(size, alignment);
        if (life == GH_LIFE_ASIDE)
            return take_aside(size, alignment, zero);
    }
    if (size > PTRDIFF_MAX)
        return out_of_memory();
    size = gh_max(size, SMALLEST);
    bool plain = wants_plain(size, caller);
    int plain_flags = plain ? gh_arena_set_plain_flags() : 0;
    if (gh_unlikely(plain && plain_flags == 0)) // no memory for its arena; a driver's must not be heap
        return take_aside(size, alignment, zero);
    int flags = flags_for(&size, alignment, zero, plain_flags);
    void *block = take(size, flags);
    if (gh_unlikely(block == NULL) && make_room(size))
        block = take(size, flags);
    return block != NULL ? block : out_of_memory();
}

void *gh_reallocate(void *pointer, size_t size, const void *caller) {
    if (pointer == NULL)
        return gh_allocate(size, 0, false, caller);
    const struct gh_region *region = gh_region_find(pointer);
    bool early = gh_early_has(pointer);
    if (region == NULL && !early)
        return gh_aside.realloc(pointer, size); // see the head of this file
    if (size == 0) {
        gh_deallocate(pointer);
        return NULL;
    }
    if (size > PTRDIFF_MAX)
        return out_of_memory();
    bool plain = !early && wants_plain(gh_max(size, SMALLEST), caller);
    if (!early && region->plain == plain) {
        size_t wanted = gh_max(size, SMALLEST);
        int flags = flags_for(&wanted, 0, false, plain ? gh_arena_set_plain_flags() : 0);
        void *block = flags == 0 ? gh_je_realloc(pointer, wanted) : gh_je_rallocx(pointer, wanted, flags);
        if (gh_unlikely(block == NULL) && make_room(wanted))
            block = gh_je_rallocx(pointer, wanted, flags);
        return block != NULL ? block : out_of_memory();
    }
    void *block = gh_allocate(size, 0, false, caller);
    if (block == NULL)
        return NULL;
    memcpy(block, pointer, gh_min(size, gh_usable_size(pointer)));
    gh_deallocate(pointer);
    return block;
}

void gh_deallocate(void *pointer) {
    if (pointer == NULL)
        return;
    const struct gh_region *region = gh_region_find(pointer);
    if (region != NULL && !region->plain)
        gh_je_free(pointer);
    else if (region != NULL)
        gh_je_dallocx(pointer, GH_PLAIN_FREE_FLAGS);
    else if (!gh_early_has(pointer)) // early blocks are never reused
        gh_aside.free(pointer);
}

size_t gh_usable_size(void *pointer) {
    if (pointer == NULL)
        return 0;
    if (gh_region_find(pointer) != NULL)
        return gh_je_malloc_usable_size(pointer);
    if (gh_early_has(pointer))
        return gh_early_size(pointer);
    size_t (*real)(void *) = (size_t(*)(void *))gh_real_symbol("malloc_usable_size");
    return real == NULL ? 0 : real(pointer);
}
