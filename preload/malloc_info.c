// SPDX-License-Identifier: MIT
//
// glibc's functions that tell about or tune the heap: mallinfo, malloc_stats and their kin. The
// figures are ours; a knob of glibc's allocator that has no meaning here is accepted.
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "allocator/arena_set.h"
#include "export.h"
#include "lifecycle.h"
#include "log.h"

static void fill(struct mallinfo2 *out) {
    memset(out, 0, sizeof(*out));
    if (!gh_is_serving())
        return;
    struct gh_region_pool_stats heap;
    struct gh_region_pool_stats plain;
    size_t allocated = 0;
    size_t active = 0;
    gh_region_pool_get_stats(gh_arena_set_heap(), &heap);
    gh_region_pool_get_stats(gh_arena_set_plain(), &plain);
    gh_arena_set_usage(&allocated, &active);
    size_t mapped = heap.mapped_bytes + plain.mapped_bytes;
    out->hblks = heap.region_count + plain.region_count;
    out->hblkhd = mapped;
    out->uordblks = allocated;
    out->fordblks = mapped > allocated ? mapped - allocated : 0;
    out->keepcost = heap.free_bytes + plain.free_bytes;
}

GH_EXPORT struct mallinfo2 mallinfo2(void) {
    struct mallinfo2 info;
    fill(&info);
    return info;
}

static int clamp(size_t value) {
    return value > INT_MAX ? INT_MAX : (int)value;
}

GH_EXPORT struct mallinfo mallinfo(void) {
    struct mallinfo2 wide;
    fill(&wide);
    return (struct mallinfo){
        .hblks = clamp(wide.hblks),
        .hblkhd = clamp(wide.hblkhd),
        .uordblks = clamp(wide.uordblks),
        .fordblks = clamp(wide.fordblks),
        .keepcost = clamp(wide.keepcost),
    };
}

// The padding that glibc would leave at the top has no counterpart.
GH_EXPORT int malloc_trim(size_t padding) {
    (void)padding;
    return gh_is_serving() && gh_arena_set_purge() ? 1 : 0;
}

// No knob of glibc's allocator has a meaning here; each is accepted, as glibc accepts unknown
// ones, but for the one range that glibc checks.
GH_EXPORT int mallopt(int parameter, int value) {
    if (parameter == M_MXFAST)
        return value >= 0 && (size_t)value <= 80 * sizeof(size_t) / 4;
    return 1;
}

GH_EXPORT void malloc_stats(void) {
    struct mallinfo2 info = mallinfo2();
    struct gh_text block;
    gh_text_start(&block);
    gh_text_add(&block, "libgpuhost: ");
    gh_text_add_number(&block, info.hblks);
    gh_text_add(&block, " regions\nsystem bytes     = ");
    gh_text_add_number(&block, info.hblkhd);
    gh_text_add(&block, "\nin use bytes     = ");
    gh_text_add_number(&block, info.uordblks);
    gh_text_add(&block, "\n");
    fputs(gh_text_get(&block), stderr); // as glibc: to what the program has as stderr now
}

GH_EXPORT int malloc_info(int options, FILE *stream) {
    if (options != 0)
        return EINVAL;
    struct mallinfo2 info = mallinfo2();
    fprintf(stream,
            "<malloc version=\"libgpuhost\">\n<system type=\"current\" size=\"%zu\"/>\n"
            "<total type=\"regions\" count=\"%zu\" size=\"%zu\"/>\n<total type=\"rest\" size=\"%zu\"/>\n</malloc>\n",
            info.hblkhd, info.hblks, info.hblkhd, info.fordblks);
    return 0;
}
