// SPDX-License-Identifier: MIT
//
// Declarations of the exported allocation functions, for the compiler: some of them are in no
// header of this C library.
#ifndef GH_PRELOAD_MALLOC_ABI_H
#define GH_PRELOAD_MALLOC_ABI_H

#include "allocator/util.h"

#include <malloc.h>
#include <stdlib.h>

// Our malloc, whoever else defines one.
GH_HIDDEN void *gh_own_malloc(size_t size);

void cfree(void *pointer);
void free_sized(void *pointer, size_t size);
void free_aligned_sized(void *pointer, size_t alignment, size_t size);

#endif
