// SPDX-License-Identifier: MIT
//
// Declarations of the exported allocation functions, for the compiler: some of them are in no
// header of this C library.
#ifndef GH_PRELOAD_MALLOC_ABI_H
#define GH_PRELOAD_MALLOC_ABI_H

#include <malloc.h>
#include <stdlib.h>

void cfree(void *pointer);
void free_sized(void *pointer, size_t size);
void free_aligned_sized(void *pointer, size_t alignment, size_t size);

#endif
