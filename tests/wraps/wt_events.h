// SPDX-License-Identifier: MIT
//
// The calls that map and unmap, as the program makes them: libc's names under preload; in the
// build without preload (wt_direct.c) what the interposed functions would do, then the call.
#ifndef GPUHOST_TESTS_WRAPS_WT_EVENTS_H
#define GPUHOST_TESTS_WRAPS_WT_EVENTS_H

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#ifdef WT_DIRECT
void *wt_malloc(size_t size);
void wt_free(void *block);
void *wt_realloc(void *block, size_t size);
void *wt_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
int wt_munmap(void *at, size_t size);
void *wt_mremap(void *at, size_t old_size, size_t size, int flags, ...);
int wt_madvise(void *at, size_t size, int advice);
void *wt_sbrk(intptr_t increment);
int wt_shmdt(const void *at);
#else
#define wt_malloc malloc
#define wt_free free
#define wt_realloc realloc
#define wt_mmap mmap
#define wt_munmap munmap
#define wt_mremap mremap
#define wt_madvise madvise
#define wt_sbrk sbrk
#define wt_shmdt shmdt
#endif

#endif
