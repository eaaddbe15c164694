// SPDX-License-Identifier: MIT
//
// The driver, the mappings and the regions under pieces.c (fuzz_wraps_fake.h). Replaces gpu.c,
// vma.c and the region pool; region.c is the real one.
#include "fuzz_wraps_fake.h"

#include <errno.h>
#include <sys/mman.h>

#include "allocator/region_pool.h"
#include "fuzz.h"
#include "gpu.h"
#include "vma.h"

#define PAGE GH_PAGE_SIZE

struct fake_import fake_imports[FAKE_SCOPES][FAKE_IMPORTS];
unsigned fake_import_end[FAKE_SCOPES];
unsigned fake_fail_in;
unsigned fake_keep_in;
unsigned fake_refusals;
long fake_pins[2];

static uint8_t kinds[2][FAKE_PAGES]; // bit 0: read-only, bit 1: shared, bit 2: of a file
static struct gh_region *regions[2];
static bool locked;

static uintptr_t region_base(unsigned window) {
    return FAKE_BASE + window * GH_SLOT_SIZE;
}

uintptr_t fake_page(unsigned window, unsigned index) {
    return region_base(window) + index * PAGE - FAKE_BEFORE * PAGE;
}

void fake_start(void) {
    for (unsigned window = 0; window < 2; window++) {
        void *wanted = (void *)fake_page(window, 0);
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        FUZZ_CHECK(mmap(wanted, FAKE_PAGES * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == wanted);
        regions[window] = gh_region_reserve();
        regions[window]->base = region_base(window);
        regions[window]->size_bytes = FAKE_REGION * PAGE;
        regions[window]->state = GH_REGION_ACTIVE;
        gh_region_publish(regions[window]);
    }
}

void fake_reset(void) {
    memset(fake_imports, 0, sizeof(fake_imports));
    memset(fake_import_end, 0, sizeof(fake_import_end));
    memset(kinds, 0, sizeof(kinds));
    memset(fake_pins, 0, sizeof(fake_pins));
    fake_fail_in = 0;
    fake_keep_in = 0;
    fake_refusals = 0;
}

static uint8_t *kind_of(uintptr_t address) {
    for (unsigned window = 0; window < 2; window++) {
        uintptr_t first = fake_page(window, 0);
        if (address >= first && address < first + FAKE_PAGES * PAGE)
            return &kinds[window][(address - first) / PAGE];
    }
    return NULL;
}

void fake_protect(uintptr_t page, unsigned kind) {
    if (gh_region_find((void *)page) == NULL)
        *kind_of(page) = (uint8_t)(kind & 7);
}

bool fake_is_writable(uintptr_t page) {
    return (*kind_of(page) & 1) == 0;
}

bool fake_is_dropped_by_madvise(uintptr_t page) {
    return (*kind_of(page) & 7) == 4 || (*kind_of(page) & 7) == 5; // private, of a file
}

bool gh_vma_find(uintptr_t address, struct gh_vma *out) {
    const uint8_t *kind = kind_of(address);
    if (kind == NULL)
        return false;
    uintptr_t page = gh_align_down(address, PAGE);
    out->start = page;
    out->end = page + PAGE;
    for (const uint8_t *at; (at = kind_of(out->start - PAGE)) != NULL && *at == *kind;)
        out->start -= PAGE;
    for (const uint8_t *at; (at = kind_of(out->end)) != NULL && *at == *kind;)
        out->end += PAGE;
    out->writable = (*kind & 1) == 0;
    out->is_private = (*kind & 2) == 0;
    out->inode = (*kind & 6) != 0 ? 7 : 0; // shared memory has an inode too
    return true;
}

bool gh_vma_is_resident(uintptr_t start, uintptr_t end) {
    return (start / PAGE + end / PAGE) % 2 == 0; // now and then
}

void gh_gpu_lock(void) {
    FUZZ_CHECK(!locked);
    locked = true;
}

void gh_gpu_unlock(void) {
    FUZZ_CHECK(locked);
    locked = false;
}

bool gh_gpu_try_enter(void) {
    if (locked)
        return false;
    locked = true;
    return true;
}

bool gh_gpu_covers(unsigned scope, const void *pointer, size_t size_bytes) {
    const struct gh_region *region = gh_region_find(pointer);
    return region == regions[0] && scope == 0 &&
           size_bytes <= region->base + region->size_bytes - (uintptr_t)pointer;
}

bool fake_covers(unsigned scope, uintptr_t page, bool *writable_out) {
    *writable_out = true;
    if (gh_gpu_covers(scope, (void *)page, PAGE))
        return true;
    for (unsigned i = 0; i < fake_import_end[scope]; i++) {
        const struct fake_import *import = &fake_imports[scope][i];
        if (import->start != 0 && import->start <= page && page < import->end) {
            *writable_out = !import->read_only;
            return true;
        }
    }
    return false;
}

int gh_gpu_import_piece(unsigned scope, void *base, size_t size, bool read_only, const char **why_out) {
    uintptr_t start = (uintptr_t)base;
    uintptr_t end = start + size;
    FUZZ_CHECK(locked && scope < FAKE_SCOPES && size != 0 && (start | end) % PAGE == 0);
    *why_out = "refused";
    if (fake_fail_in != 0 && --fake_fail_in == 0) {
        fake_refusals++;
        return ENOMEM;
    }
    struct fake_import *unused = NULL;
    for (unsigned i = 0; i < fake_import_end[scope]; i++) {
        struct fake_import *import = &fake_imports[scope][i];
        FUZZ_CHECK(import->start == 0 || import->end <= start || import->start >= end); // drivers abort
        unused = import->start == 0 ? import : unused;
    }
    if (unused == NULL)
        unused = &fake_imports[scope][fake_import_end[scope]++];
    FUZZ_CHECK(fake_import_end[scope] <= FAKE_IMPORTS);
    for (uintptr_t page = start; page < end; page += PAGE) {
        FUZZ_CHECK(!gh_gpu_covers(scope, (void *)page, PAGE));
        if (!read_only && !fake_is_writable(page)) {
            fake_refusals++;
            return EINVAL;
        }
    }
    *unused = (struct fake_import){ start, end, read_only };
    return 0;
}

int gh_gpu_release_piece(unsigned scope, void *base, size_t size) {
    FUZZ_CHECK(locked);
    if (fake_keep_in != 0 && --fake_keep_in == 0) {
        fake_refusals++;
        return EIO;
    }
    for (unsigned i = 0; i < fake_import_end[scope]; i++) {
        struct fake_import *import = &fake_imports[scope][i];
        if (import->start == (uintptr_t)base) {
            FUZZ_CHECK(import->end == import->start + size);
            import->start = 0;
            return 0;
        }
    }
    FUZZ_CHECK(!"a release of something that is not imported");
    return EINVAL;
}

bool gh_region_pool_pin(uint16_t id, uintptr_t *base_out, size_t *size_out) {
    unsigned window = id == regions[0]->id ? 0 : 1;
    fake_pins[window]++;
    *base_out = regions[window]->base;
    *size_out = regions[window]->size_bytes;
    return true;
}

void gh_region_pool_unpin(uint16_t id) {
    long *pins = &fake_pins[id == regions[0]->id ? 0 : 1];
    FUZZ_CHECK(*pins > 0);
    --*pins;
}

bool gh_gpu_is_closing(void) {
    return false;
}
