// SPDX-License-Identifier: MIT
//
// Finds the executable segments of a driver library (driver_text.h). Ranges are only ever added:
// drivers stay loaded, and a range too many makes memory plain, never wrong.
#include "driver_text.h"

#include <link.h>

#include "allocator/lock.h"

struct gh_driver_text_range gh_driver_text[GH_DRIVER_TEXT_MAX];
_Atomic unsigned gh_driver_text_count;

static struct gh_lock add_lock = GH_LOCK_INIT(GH_RANK_LIFE);

static int visit(struct dl_phdr_info *info, size_t size, void *wanted_base) {
    (void)size;
    uintptr_t lowest = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_vaddr < lowest)
            lowest = info->dlpi_phdr[i].p_vaddr;
    }
    if (lowest == UINTPTR_MAX || info->dlpi_addr + gh_align_down(lowest, GH_PAGE_SIZE) != (uintptr_t)wanted_base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        unsigned count = atomic_load_explicit(&gh_driver_text_count, memory_order_relaxed);
        if (segment->p_type != PT_LOAD || (segment->p_flags & PF_X) == 0 || count == GH_DRIVER_TEXT_MAX)
            continue;
        atomic_store_explicit(&gh_driver_text[count].start, info->dlpi_addr + segment->p_vaddr, memory_order_relaxed);
        atomic_store_explicit(&gh_driver_text[count].size, segment->p_memsz, memory_order_relaxed);
        atomic_store_explicit(&gh_driver_text_count, count + 1, memory_order_release);
    }
    return 1;
}

void gh_driver_text_add(const void *base) {
    gh_lock_acquire(&add_lock);
    dl_iterate_phdr(visit, (void *)(uintptr_t)base);
    gh_lock_release(&add_lock);
}

void gh_driver_text_fork_child(void) {
    gh_lock_reset(&add_lock);
}
