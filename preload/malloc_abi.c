// SPDX-License-Identifier: MIT
//
// The C allocation functions that the library exports, with glibc's answers at the edges. Each
// is jemalloc's function behind the gate (gate.h); what is not on the fast path is in gate.c.
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "allocator/je_api.h"
#include "allocator/region.h"
#include "export.h"
#include "gate.h"
#include "malloc_abi.h"

#define CALLER __builtin_return_address(0)

#define SMALLEST 16u // of glibc's alignments

GH_EXPORT void *malloc(size_t size) {
    if (gh_gate_passes(size)) {
        void *block = gh_je_malloc(size);
        if (gh_likely(block != NULL))
            return block;
    }
    return gh_allocate(size, 0, false, CALLER);
}

GH_EXPORT void free(void *pointer) {
    if (gh_likely(gh_is_heap_block(pointer))) {
        gh_je_free(pointer); // by a jump
        return;
    }
    gh_deallocate(pointer);
}

GH_EXPORT void *calloc(size_t count, size_t size) {
    size_t total;
    if (gh_unlikely(__builtin_mul_overflow(count, size, &total))) {
        errno = ENOMEM;
        return NULL;
    }
    if (gh_gate_passes(total)) {
        void *block = gh_je_calloc(1, total);
        if (gh_likely(block != NULL))
            return block;
    }
    return gh_allocate(total, 0, true, CALLER);
}

GH_EXPORT void *realloc(void *pointer, size_t size) {
    if (gh_likely(gh_gate_passes(size) && size != 0 && gh_is_heap_block(pointer))) {
        void *block = gh_je_realloc(pointer, size);
        if (gh_likely(block != NULL))
            return block; // else once more, the slow way, which also sets errno: this one leaves it
    }
    return gh_reallocate(pointer, size, CALLER);
}

GH_EXPORT void *reallocarray(void *pointer, size_t count, size_t size) {
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return gh_reallocate(pointer, total, CALLER);
}

// C23: the size and alignment are promises of the caller that nothing here depends on. A wrong
// one is undefined; ignoring it is the safe course.
GH_EXPORT void free_sized(void *pointer, size_t size) {
    (void)size;
    free(pointer);
}

GH_EXPORT void free_aligned_sized(void *pointer, size_t alignment, size_t size) {
    (void)alignment;
    (void)size;
    free(pointer);
}

GH_EXPORT void cfree(void *pointer) {
    free(pointer);
}

// glibc's memalign takes any alignment: it rounds up to a power of two.
static void *allocate_aligned(size_t alignment, size_t size, const void *caller) {
    if (alignment > (SIZE_MAX >> 1) + 1) {
        errno = EINVAL;
        return NULL;
    }
    size_t rounded = SMALLEST;
    while (rounded < alignment)
        rounded <<= 1;
    if (size > PTRDIFF_MAX || rounded > PTRDIFF_MAX || size > PTRDIFF_MAX - rounded) {
        errno = ENOMEM;
        return NULL;
    }
    return gh_allocate(size, rounded, false, caller);
}

GH_EXPORT void *memalign(size_t alignment, size_t size) {
    return allocate_aligned(alignment, size, CALLER);
}

GH_EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    return allocate_aligned(alignment, size, CALLER);
}

GH_EXPORT int posix_memalign(void **pointer_out, size_t alignment, size_t size) {
    if (!gh_is_power_of_two(alignment) || alignment % sizeof(void *) != 0)
        return EINVAL;
    int saved_errno = errno; // the answer is the return value; errno stays
    void *block = allocate_aligned(alignment, size, CALLER);
    errno = saved_errno;
    if (block == NULL)
        return ENOMEM;
    *pointer_out = block;
    return 0;
}

GH_EXPORT void *valloc(size_t size) {
    return allocate_aligned(GH_PAGE_SIZE, size, CALLER);
}

GH_EXPORT void *pvalloc(size_t size) {
    if (size > PTRDIFF_MAX - GH_PAGE_SIZE) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate_aligned(GH_PAGE_SIZE, gh_align_up(size, GH_PAGE_SIZE), CALLER);
}

GH_EXPORT size_t malloc_usable_size(void *pointer) {
    return gh_usable_size(pointer);
}
