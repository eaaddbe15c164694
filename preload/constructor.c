// SPDX-License-Identifier: MIT
//
// The library's one constructor and one destructor.
#include <stdio.h>

#include "lifecycle.h"
#include "stats.h"

// 101 is the first priority that is not the implementation's: before constructors that come with
// whatever else is linked in.
__attribute__((constructor(101))) static void construct(void) {
    // Nobody has called our malloc yet: make sure that somebody will. libc is made to call the
    // program's malloc. Addresses are not compared, they may be entries of the program's linkage
    // table; nor do we call malloc, which would be ours when loaded late with RTLD_DEEPBIND.
    if (atomic_load_explicit(&gh_life, memory_order_acquire) == GH_LIFE_NEW) {
        FILE *probe = fopencookie(NULL, "r", (cookie_io_functions_t){ NULL, NULL, NULL, NULL });
        if (probe != NULL)
            fclose(probe);
        if (atomic_load_explicit(&gh_life, memory_order_acquire) == GH_LIFE_NEW)
            gh_stay_aside("the process has another malloc (its own, another preloaded one, or libgpuhost was loaded late); "
                          "not active");
    }
    gh_start();
}

__attribute__((destructor)) static void destruct(void) {
    gh_stats_print_at_exit();
}
