// SPDX-License-Identifier: MIT
//
// The library's interposed mapping functions under other names: a program under a sanitizer
// cannot have its libc calls interposed, so the test calls these.
#define mmap wt_mmap
#define munmap wt_munmap
#define mremap wt_mremap
#define madvise wt_madvise
#define brk wt_brk
#define sbrk wt_sbrk
#define shmdt wt_shmdt
#define alias(target) weak // mmap64 has no other name here; nobody calls it

#include "../../preload/memory_events.c"
