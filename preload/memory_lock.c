// SPDX-License-Identifier: MIT
//
// mlockall, interposed: it makes memory of all that is mapped, or will be. The free ends of regions are
// given up first, and the heap grows in small steps from then on, as with a GPU.
#include <stddef.h>
#include <sys/mman.h>

#include "allocator/arena_set.h"
#include "export.h"
#include "lifecycle.h"
#include "real_symbols.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

GH_EXPORT int mlockall(int flags) {
    int (*real)(int) = (int (*)(int))gh_real_symbol("mlockall");
    if (real == NULL)
        gh_fatal("the C library has no mlockall");
    if ((flags & (MCL_CURRENT | MCL_FUTURE)) != 0 && (flags & MCL_ONFAULT) == 0 && gh_start() == GH_LIFE_SERVING) {
        gh_region_pool_populate(gh_arena_set_heap());
        gh_region_pool_populate(gh_arena_set_plain());
    }
    return real(flags);
}
