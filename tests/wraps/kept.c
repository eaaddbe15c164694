// SPDX-License-Identifier: MIT
//
// A driver that does not let go of a wrap's import: heap that nobody has any more stays mapped under
// it, and is nobody's again.
//     wraps_kept KERNELS
// With GPUHOST_LIMIT below the block's size, so that the wrap is a piece of its own, and with a
// driver that refuses every zeMemFree. Exit status: 0 right, 1 not.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpuhost.h"
#include "wt_gpu.h"

#define BLOCK_BYTES ((size_t)32 << 20)
#define WAITS 1000

static uint64_t imports_live(void) {
    struct ghsim_stats sim;
    if (!wt_sim_stats(0, &sim))
        wt_fail("no simulated driver");
    return sim.imports_live;
}

static uint64_t region_count(void) {
    struct gpuhost_stats stats;
    gpuhost_stats(&stats);
    return stats.regions;
}

int main(int argc, char **argv) {
    if (argc != 2 || gpuhost_stats == NULL)
        wt_fail("usage: wraps_kept KERNELS, with libgpuhost preloaded");
    wt_open(argv[1], 1);
    unsigned char *block = malloc(BLOCK_BYTES);
    if (block == NULL)
        wt_fail("no memory");
    memset(block, 1, BLOCK_BYTES);
    const uint64_t before = imports_live();
    if (wt_wrap(&wt_units[0], block, BLOCK_BYTES, false) != ZE_RESULT_SUCCESS || imports_live() != before + 1)
        wt_fail("the wrap is no import of its own");
    const uint64_t regions = region_count();
    const volatile uintptr_t at = (uintptr_t)block; // its address only
    free(block);
    for (int i = 0; region_count() == regions; i++) {
        if (i == WAITS)
            wt_fail("the region did not retire");
        usleep(10000);
    }
    (void)wt_type(&wt_units[0], &argc); // passes the door: what is retired is released now
    unsigned char present;
    if (imports_live() != before + 1)
        wt_fail("the driver has let go");
    if (mincore((void *)at, WT_PAGE, &present) != 0)
        wt_fail("unmapped while the driver has it");
    return 0; // the driver looks at its pages once more
}
