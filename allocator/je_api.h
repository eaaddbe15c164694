// SPDX-License-Identifier: MIT
//
// The private jemalloc: its public functions under the prefix that the build gives them, so that
// no symbol of it can meet another jemalloc in the process. Types and MALLOCX_ macros are those
// of the installed header.
#ifndef GH_ALLOCATOR_JE_API_H
#define GH_ALLOCATOR_JE_API_H

#include <jemalloc/jemalloc.h>

#include "util.h"

void *gh_je_malloc(size_t size) __attribute__((malloc));
void *gh_je_calloc(size_t count, size_t size) __attribute__((malloc));
void *gh_je_realloc(void *pointer, size_t size);
void gh_je_free(void *pointer);
void *gh_je_mallocx(size_t size, int flags) __attribute__((malloc));
void *gh_je_rallocx(void *pointer, size_t size, int flags);
size_t gh_je_xallocx(void *pointer, size_t size, size_t extra, int flags);
size_t gh_je_sallocx(const void *pointer, int flags);
void gh_je_dallocx(void *pointer, int flags);
void gh_je_sdallocx(void *pointer, size_t size, int flags);
size_t gh_je_nallocx(size_t size, int flags);
size_t gh_je_malloc_usable_size(void *pointer);
int gh_je_mallctl(const char *name, void *old, size_t *old_length, void *new_value, size_t new_length);
int gh_je_mallctlnametomib(const char *name, size_t *mib, size_t *mib_length);
int gh_je_mallctlbymib(const size_t *mib, size_t mib_length, void *old, size_t *old_length, void *new_value,
                       size_t new_length);
void gh_je_malloc_stats_print(void (*write_line)(void *, const char *), void *cookie, const char *options);

// Read when jemalloc boots; the last of its sources of options, so it wins over the environment.
extern const char *gh_je_malloc_conf_2_conf_harder;

// Read when jemalloc boots. 5.3.0 has the variable but no option that sets it: on, every large
// block starts at a random cache line of its first page and carries a page of padding.
extern bool je_opt_cache_oblivious;

// jemalloc's table from size to size class, an entry for each 8 bytes; filled in when it boots.
extern uint8_t je_sz_size2index_tab[];

// Of 5.3.0; `thread` is jemalloc's data of the calling thread. The first is the thread's share in
// its own start, which cache_start.c defines; jemalloc's data_init answers true when it failed.
GH_HIDDEN bool je_tsd_tcache_enabled_data_init(void *thread);
bool je_tsd_tcache_data_init(void *thread);
void je_tsd_slow_update(void *thread);

// Of 5.3.0, between whose objects the linker puts the functions of cache_start.c.
GH_HIDDEN void __wrap_je_arena_cache_bin_fill_small(void *thread, void *arena, void *bin, void *bin_info,
                                                    unsigned size_class, unsigned count);
void __real_je_arena_cache_bin_fill_small(void *thread, void *arena, void *bin, void *bin_info, unsigned size_class,
                                          unsigned count);
GH_HIDDEN void *__wrap_je_tsd_fetch_slow(void *thread, bool minimal);
void *__real_je_tsd_fetch_slow(void *thread, bool minimal);

#endif
