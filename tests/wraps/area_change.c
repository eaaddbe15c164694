// SPDX-License-Identifier: MIT
//
// What programs do to memory that is wrapped: map over it, unmap it, move it, drop it, shrink and
// grow it; and calls that fail, after which everything must be as before.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "area_memory.h"
#include "wt_events.h"

static void set_pages(struct area *area, size_t first, size_t count, enum area_page state) {
    memset(area->pages + first, state, count);
    if (state == PAGE_THERE)
        memset(area->shadow + first * WT_PAGE, 0, count * WT_PAGE);
}

static bool pick_own(const struct area *area, struct rng *rng, size_t *first, size_t *count) {
    return area_pick_pages(area, rng, rng_below(rng, 2) != 0 ? PAGE_THERE : PAGE_NONE, first, count);
}

static bool map_over(struct area *area, struct rng *rng, int protection) {
    size_t first;
    size_t count;
    if (!pick_own(area, rng, &first, &count))
        return false;
    unsigned char *start = area_page_start(area, first);
    area_pages_gone(area, first, count);
    if (wt_mmap(start, count * WT_PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) !=
        start)
        wt_fail("mmap over %p failed", (void *)start);
    set_pages(area, first, count, protection == PROT_NONE ? PAGE_NONE : PAGE_THERE);
    return true;
}

static bool make_usable(struct area *area, struct rng *rng) {
    size_t first;
    size_t count;
    if (!area_pick_pages(area, rng, PAGE_NONE, &first, &count))
        return false;
    if (mprotect(area_page_start(area, first), count * WT_PAGE, PROT_READ | PROT_WRITE) != 0)
        return false;
    set_pages(area, first, count, PAGE_THERE);
    return true;
}

static void leave_hole(struct area *area, size_t first, size_t count) {
    bool ours = area_space_again(area_page_start(area, first), count * WT_PAGE);
    set_pages(area, first, count, ours ? PAGE_NONE : PAGE_LOST);
}

static bool unmap(struct area *area, struct rng *rng) {
    size_t first;
    size_t count;
    if (!pick_own(area, rng, &first, &count))
        return false;
    area_pages_gone(area, first, count);
    if (wt_munmap(area_page_start(area, first), count * WT_PAGE) != 0)
        wt_fail("munmap failed");
    leave_hole(area, first, count);
    return true;
}

// To another place in the area. The kernel refuses to move several mappings at once: then the
// target may be gone, but the source must be as it was.
static bool move_pages(struct area *area, struct rng *rng) {
    size_t from;
    size_t to;
    size_t count;
    size_t target_count;
    if (!area_pick_pages(area, rng, PAGE_THERE, &from, &count) || !pick_own(area, rng, &to, &target_count))
        return false;
    count = count < target_count ? count : target_count;
    if (from < to + count && to < from + count)
        return false;
    unsigned char *source = area_page_start(area, from);
    unsigned char *target = area_page_start(area, to);
    area_pages_gone(area, to, count);
    if (wt_mremap(source, count * WT_PAGE, count * WT_PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) == target) {
        area_pages_gone(area, from, count);
        set_pages(area, to, count, PAGE_THERE);
        memcpy(area->shadow + to * WT_PAGE, area->shadow + from * WT_PAGE, count * WT_PAGE);
        leave_hole(area, from, count);
    } else {
        leave_hole(area, to, count); // where the target went: if it did, it may be somebody else's by now
        area_verify(area, source, count * WT_PAGE, "a move that failed");
    }
    return true;
}

static bool drop_pages(struct area *area, struct rng *rng) {
    size_t first;
    size_t count;
    if (!area_pick_pages(area, rng, PAGE_THERE, &first, &count))
        return false;
    unsigned char *start = area_page_start(area, first);
    size_t size = count * WT_PAGE;
    if (rng_below(rng, 3) == 0) { // after MADV_FREE the old bytes may be there or not
        if (wt_madvise(start, size, MADV_FREE) != 0)
            wt_fail("MADV_FREE failed");
        memset(start, (int)rng_next(rng), size);
        memcpy(area->shadow + first * WT_PAGE, start, size);
    } else {
        if (wt_madvise(start, size, MADV_DONTNEED) != 0)
            wt_fail("MADV_DONTNEED failed");
        memset(area->shadow + first * WT_PAGE, 0, size);
    }
    area_verify(area, start, size, "madvise");
    return true;
}

static bool fail_calls(struct area *area, struct rng *rng) {
    size_t first;
    size_t count;
    if (!area_pick_pages(area, rng, PAGE_THERE, &first, &count))
        return false;
    unsigned char *start = area_page_start(area, first);
    bool failed = false;
    switch (rng_below(rng, 4)) {
    case 0:
        failed = wt_munmap(start + 8, WT_PAGE) == -1 && errno == EINVAL;
        break;
    case 1:
        failed = wt_mmap(start, WT_PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, 99999, 0) == MAP_FAILED && errno == EBADF;
        break;
    case 2:
        failed = wt_mremap(start, count * WT_PAGE, (size_t)1 << 50, MREMAP_MAYMOVE, NULL) == MAP_FAILED;
        break;
    default:
        failed = wt_shmdt(start) == -1 && errno == EINVAL;
    }
    if (!failed)
        wt_fail("a call that must fail did not");
    area_verify(area, start, count * WT_PAGE, "calls that failed");
    return true;
}

static bool change_pages(struct area *area, struct rng *rng) {
    switch (rng_below(rng, 10)) {
    case 0:
    case 1:
        return map_over(area, rng, PROT_READ | PROT_WRITE);
    case 2:
        return map_over(area, rng, PROT_NONE);
    case 3:
    case 4:
    case 5:
        return make_usable(area, rng);
    case 6:
        return unmap(area, rng);
    case 7:
        return move_pages(area, rng);
    case 8:
        return drop_pages(area, rng);
    default:
        return fail_calls(area, rng);
    }
}

static size_t there(const struct area *area) {
    size_t count = 0;
    while (count < area_page_count(area) && area->pages[count] == PAGE_THERE)
        count++;
    return count;
}

// The first pages of its space are the mapping; it grows in place when the kernel can.
static bool change_float(struct area *area, struct rng *rng) {
    size_t now = there(area);
    size_t pages = area_page_count(area);
    size_t wanted = 1 + rng_below(rng, pages);
    if (wanted < now) {
        area_pages_gone(area, wanted, now - wanted);
        if (wt_mremap(area->bytes, now * WT_PAGE, wanted * WT_PAGE, 0, NULL) != area->bytes)
            wt_fail("shrinking by mremap failed");
        leave_hole(area, wanted, now - wanted);
        return true;
    }
    for (size_t page = now; page < wanted; page++) {
        if (area->pages[page] != PAGE_NONE)
            return false;
    }
    if (wanted == now)
        return false;
    wt_munmap(area_page_start(area, now), (wanted - now) * WT_PAGE);
    unsigned char *target = NULL;
    int flags = rng_below(rng, 2) != 0 ? MREMAP_MAYMOVE : 0;
    if (flags != 0 && area_quiet_moves) {
        target = area_space_reserve(pages * WT_PAGE);
        flags |= MREMAP_FIXED;
    }
    unsigned char *got = wt_mremap(area->bytes, now * WT_PAGE, wanted * WT_PAGE, flags, target);
    if (got == MAP_FAILED) { // somebody mapped into the hole meanwhile
        leave_hole(area, now, wanted - now);
        return true;
    }
    if (got == area->bytes) { // nothing went away: wraps stay
        set_pages(area, now, wanted - now, PAGE_THERE);
        return true;
    }
    area_all_gone(area);
    memset(area->pages, PAGE_LOST, wanted); // the hole was ours to leave
    area_space_release(area);
    area->bytes = got;
    if (got == target) {
        memset(area->pages, PAGE_NONE, pages);
    } else {
        memset(area->pages, PAGE_LOST, pages); // and no guards: it lies where the kernel liked
        area->size_bytes = wanted * WT_PAGE;
        area->file = 0;
    }
    memset(area->shadow + now * WT_PAGE, 0, (wanted - now) * WT_PAGE);
    memset(area->pages, PAGE_THERE, wanted);
    return true;
}

static bool change_file(struct area *area, struct rng *rng) {
    size_t first;
    size_t count;
    if (!area_pick_pages(area, rng, PAGE_THERE, &first, &count))
        return false;
    if (wt_madvise(area_page_start(area, first), count * WT_PAGE, MADV_DONTNEED) != 0)
        wt_fail("MADV_DONTNEED of a file failed");
    ssize_t size = (ssize_t)(count * WT_PAGE);
    if (area->kind == AREA_FILE_PRIVATE && // what was written is forgotten
        pread(area->file, area->shadow + first * WT_PAGE, (size_t)size, (off_t)(first * WT_PAGE)) != size)
        wt_fail("pread failed");
    area_verify(area, area_page_start(area, first), (size_t)size, "madvise of a file");
    return true;
}

static bool change_block(struct area *area, struct rng *rng) {
    size_t size = 16 + rng_below(rng, 2 * area->size_bytes);
    size_t kept = size < area->size_bytes ? size : area->size_bytes;
    unsigned char *block = wt_realloc(area->bytes, size);
    if (block == NULL)
        wt_fail("realloc to %zu bytes failed", size);
    if (block != area->bytes)
        area_all_gone(area);
    for (unsigned i = 0; i < area->wrap_count; i++) { // beyond its end is no business of ours any more
        if (area->wraps[i].start + area->wraps[i].size_bytes > block + size)
            area->wraps[i].stale = true;
    }
    area->bytes = block;
    area_verify(area, block, kept, "realloc");
    memset(block + kept, 7, size - kept);
    area_init(area, AREA_HEAP, block, size);
    return true;
}

static bool change_break(struct area *area, struct rng *rng) {
    size_t room = area->capacity_bytes - area->size_bytes;
    size_t before = area_page_count(area);
    if (rng_below(rng, 2) != 0) {
        size_t more = 1 + rng_below(rng, room < 20000 ? room : 20000);
        if (room == 0 || wt_sbrk((intptr_t)more) == (void *)-1)
            return false;
        area->size_bytes += more;
        size_t after = area_page_count(area);
        memset(area->pages + before, PAGE_THERE, after - before);
        return true;
    }
    size_t less = 1 + rng_below(rng, area->size_bytes < 30000 ? area->size_bytes - 1 : 30000);
    if (area->size_bytes < 2)
        return false;
    area->size_bytes -= less;
    size_t after = area_page_count(area);
    area_pages_gone(area, after, before - after);
    unsigned char *kept = area_page_start(area, after);
    unsigned char *last = area_page_start(area, before);
    if (wt_sbrk(-(intptr_t)less) == (void *)-1)
        wt_fail("sbrk down failed");
    if ((size_t)(last - area->bytes) > area->capacity_bytes)
        last = area->bytes + area->capacity_bytes;
    memset(area_shadow(area, kept), 0, (size_t)(last - kept)); // should it grow again
    return true;
}

bool area_change(struct area *area, struct rng *rng) {
    bool renews = area->kind == AREA_SHM || area->kind == AREA_HEAP || area->kind == AREA_FLOAT ||
                  (area->kind >= AREA_FILE_SHARED && area->kind <= AREA_FILE_READ);
    if (renews && rng_below(rng, area->kind == AREA_HEAP ? 3 : 10) == 0) {
        area_release(area);
        area_create(area, area->kind, rng);
        return true;
    }
    switch (area->kind) {
    case AREA_PAGES:
        return change_pages(area, rng);
    case AREA_FLOAT:
        return change_float(area, rng);
    case AREA_FILE_SHARED:
    case AREA_FILE_PRIVATE:
    case AREA_FILE_READ:
        return change_file(area, rng);
    case AREA_HEAP:
        return change_block(area, rng);
    case AREA_BREAK:
        return change_break(area, rng);
    default:
        return false;
    }
}
