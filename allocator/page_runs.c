// SPDX-License-Identifier: MIT
//
// Free page runs of a region (page_runs.h). A tag is in force on the first and on the last page
// of a free run and nowhere else; whoever takes or merges a run clears the tags that stop being
// at its ends.
#include "page_runs.h"

#include <errno.h>
#include <string.h>

#include "os_mem.h"

#define TAG_FREE 1u
#define TAG_ZERO 2u // no page of the run holds anything but zeros
#define TAG_KEPT 4u // some page of the run was kept as it was, at the time in the tag

// How many runs of one bin are looked at: a bin spans a quarter of a power of two, so a run in
// it may be too small, but every run of the next bin fits an unaligned request.
#define SCAN_LIMIT 64

struct gh_page_tag {
    uint32_t pages; // of the run, on both of its ends
    uint32_t flags;
    uint32_t next; // links of the bin, on the first page only
    uint32_t previous;
    uint32_t kept_ms; // on the first page, with TAG_KEPT
};

static unsigned bin_of(uint32_t pages) {
    if (pages < 8)
        return pages;
    unsigned log2_pages = 31u - (unsigned)__builtin_clz(pages);
    return (log2_pages - 1) * 4 + ((pages >> (log2_pages - 2)) & 3u);
}

static void bin_insert(struct gh_page_runs *runs, uint32_t first) {
    unsigned bin = bin_of(runs->tags[first].pages);
    uint32_t head = runs->heads[bin];
    runs->tags[first].next = head;
    runs->tags[first].previous = GH_NO_PAGE;
    if (head != GH_NO_PAGE)
        runs->tags[head].previous = first;
    runs->heads[bin] = first;
    runs->filled[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static void bin_remove(struct gh_page_runs *runs, uint32_t first) {
    struct gh_page_tag *tag = &runs->tags[first];
    unsigned bin = bin_of(tag->pages);
    if (tag->next != GH_NO_PAGE)
        runs->tags[tag->next].previous = tag->previous;
    if (tag->previous != GH_NO_PAGE)
        runs->tags[tag->previous].next = tag->next;
    else
        runs->heads[bin] = tag->next;
    if (runs->heads[bin] == GH_NO_PAGE)
        runs->filled[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
}

static void run_add(struct gh_page_runs *runs, uint32_t first, uint32_t pages, uint32_t flags, uint32_t kept_ms) {
    struct gh_page_tag *last = &runs->tags[first + pages - 1];
    last->pages = pages;
    last->flags = flags;
    runs->tags[first].pages = pages;
    runs->tags[first].flags = flags;
    runs->tags[first].kept_ms = kept_ms;
    runs->kept_runs += (flags & TAG_KEPT) != 0;
    bin_insert(runs, first);
}

static void run_remove(struct gh_page_runs *runs, uint32_t first) {
    bin_remove(runs, first);
    runs->kept_runs -= (runs->tags[first].flags & TAG_KEPT) != 0;
    runs->tags[first + runs->tags[first].pages - 1].flags = 0;
    runs->tags[first].flags = 0;
}

int gh_page_runs_init(struct gh_page_runs *runs, uint32_t pages) {
    memset(runs, 0, sizeof(*runs));
    size_t heads_bytes = GH_RUN_BINS * sizeof(*runs->heads);
    runs->table_bytes = gh_align_up(heads_bytes + (size_t)pages * sizeof(struct gh_page_tag), GH_PAGE_SIZE);
    char *table = gh_os_map_table(runs->table_bytes);
    if (table == NULL)
        return ENOMEM;
    runs->heads = (uint32_t *)(void *)table;
    runs->tags = (struct gh_page_tag *)(void *)(table + heads_bytes);
    for (unsigned bin = 0; bin < GH_RUN_BINS; bin++)
        runs->heads[bin] = GH_NO_PAGE;
    runs->pages = pages;
    runs->free_pages = pages;
    run_add(runs, 0, pages, TAG_FREE | TAG_ZERO, 0);
    return 0;
}

void gh_page_runs_destroy(struct gh_page_runs *runs) {
    gh_os_unmap(runs->heads, runs->table_bytes);
    runs->heads = NULL;
    runs->tags = NULL;
}

// Cuts [start, start + pages) out of the free run that begins at `first`; what is left over on
// either side stays free.
static void carve(struct gh_page_runs *runs, uint32_t first, uint32_t start, uint32_t pages, bool *zeroed_out) {
    uint32_t run_pages = runs->tags[first].pages;
    uint32_t flags = runs->tags[first].flags;
    uint32_t kept_ms = runs->tags[first].kept_ms;
    run_remove(runs, first);
    if (start > first)
        run_add(runs, first, start - first, flags, kept_ms);
    if (start + pages < first + run_pages)
        run_add(runs, start + pages, first + run_pages - start - pages, flags, kept_ms);
    runs->free_pages -= pages;
    *zeroed_out = (flags & TAG_ZERO) != 0;
}

static unsigned next_filled_bin(const struct gh_page_runs *runs, unsigned bin) {
    for (unsigned word = bin / 64; word < GH_RUN_BINS / 64; word++) {
        uint64_t bits = runs->filled[word];
        if (word == bin / 64)
            bits &= ~UINT64_C(0) << (bin % 64);
        if (bits != 0)
            return word * 64 + (unsigned)__builtin_ctzll(bits);
    }
    return GH_RUN_BINS;
}

// The run that such a request is served from, and where in it; GH_NO_PAGE.
static uint32_t find(const struct gh_page_runs *runs, uint32_t pages, uint32_t alignment_pages, uint32_t *start_out) {
    if (pages > runs->free_pages)
        return GH_NO_PAGE;
    for (unsigned bin = next_filled_bin(runs, bin_of(pages)); bin < GH_RUN_BINS; bin = next_filled_bin(runs, bin + 1)) {
        unsigned scanned = 0;
        for (uint32_t first = runs->heads[bin]; first != GH_NO_PAGE && scanned < SCAN_LIMIT;
             first = runs->tags[first].next, scanned++) {
            uint64_t start = gh_align_up(first, alignment_pages);
            if (start + pages > (uint64_t)first + runs->tags[first].pages)
                continue;
            *start_out = (uint32_t)start;
            return first;
        }
        if (bin + 1 >= GH_RUN_BINS)
            break;
    }
    return GH_NO_PAGE;
}

uint32_t gh_page_runs_take(struct gh_page_runs *runs, uint32_t pages, uint32_t alignment_pages, bool *zeroed_out) {
    uint32_t start;
    uint32_t first = find(runs, pages, alignment_pages, &start);
    if (first == GH_NO_PAGE)
        return GH_NO_PAGE;
    carve(runs, first, start, pages, zeroed_out);
    return start;
}

uint64_t gh_page_runs_fit(const struct gh_page_runs *runs, uint32_t pages, uint32_t alignment_pages) {
    uint32_t start;
    uint32_t first = find(runs, pages, alignment_pages, &start);
    if (first == GH_NO_PAGE)
        return UINT64_MAX;
    const struct gh_page_tag *tag = &runs->tags[first];
    return tag->pages + ((tag->flags & TAG_ZERO) != 0 ? UINT64_C(1) << 32 : 0);
}

bool gh_page_runs_take_at(struct gh_page_runs *runs, uint32_t first, uint32_t pages, bool *zeroed_out) {
    // Whoever grows in place owns the page before, so a free run can only begin at `first`.
    if (first >= runs->pages || (runs->tags[first].flags & TAG_FREE) == 0 || runs->tags[first].pages < pages ||
        (first > 0 && (runs->tags[first - 1].flags & TAG_FREE) != 0))
        return false;
    // A one-tag look cannot tell a run's first page from its last; the partner tag can.
    uint32_t last = first + runs->tags[first].pages - 1;
    if (last >= runs->pages || runs->tags[last].pages != runs->tags[first].pages ||
        (runs->tags[last].flags & TAG_FREE) == 0)
        return false;
    carve(runs, first, first, pages, zeroed_out);
    return true;
}

// What a run of two is: zero if both are, kept if one is, and then as young as the younger.
static void merge(uint32_t *flags, uint32_t *kept_ms, const struct gh_page_tag *other) {
    bool other_kept = (other->flags & TAG_KEPT) != 0;
    if (other_kept && ((*flags & TAG_KEPT) == 0 || (int32_t)(other->kept_ms - *kept_ms) > 0))
        *kept_ms = other->kept_ms;
    *flags = TAG_FREE | (*flags & other->flags & TAG_ZERO) | ((*flags | other->flags) & TAG_KEPT);
}

static void add(struct gh_page_runs *runs, uint32_t first, uint32_t pages, uint32_t flags, uint32_t kept_ms) {
    uint32_t start = first;
    uint32_t end = first + pages;
    if (start > 0 && (runs->tags[start - 1].flags & TAG_FREE) != 0) {
        uint32_t neighbour = start - runs->tags[start - 1].pages;
        merge(&flags, &kept_ms, &runs->tags[neighbour]);
        run_remove(runs, neighbour);
        start = neighbour;
    }
    if (end < runs->pages && (runs->tags[end].flags & TAG_FREE) != 0) {
        uint32_t neighbour = end;
        merge(&flags, &kept_ms, &runs->tags[neighbour]);
        end += runs->tags[neighbour].pages;
        run_remove(runs, neighbour);
    }
    run_add(runs, start, end - start, flags, kept_ms);
    runs->free_pages += pages;
}

void gh_page_runs_give(struct gh_page_runs *runs, uint32_t first, uint32_t pages, bool zeroed) {
    add(runs, first, pages, TAG_FREE | (zeroed ? TAG_ZERO : 0), 0);
}

void gh_page_runs_keep(struct gh_page_runs *runs, uint32_t first, uint32_t pages, uint32_t now_ms) {
    add(runs, first, pages, TAG_FREE | TAG_KEPT, now_ms);
}

bool gh_page_runs_take_aged(struct gh_page_runs *runs, uint32_t now_ms, uint32_t age_ms, uint32_t *first_out,
                            uint32_t *pages_out) {
    for (unsigned bin = next_filled_bin(runs, 0); runs->kept_runs != 0 && bin < GH_RUN_BINS;
         bin = next_filled_bin(runs, bin + 1)) {
        for (uint32_t first = runs->heads[bin]; first != GH_NO_PAGE; first = runs->tags[first].next) {
            const struct gh_page_tag *tag = &runs->tags[first];
            if ((tag->flags & TAG_KEPT) == 0 || (int32_t)(now_ms - tag->kept_ms) < (int32_t)age_ms)
                continue;
            *first_out = first;
            *pages_out = tag->pages;
            bool zeroed;
            carve(runs, first, first, tag->pages, &zeroed);
            return true;
        }
    }
    return false;
}

uint32_t gh_page_runs_cut_tail(struct gh_page_runs *runs, uint32_t keep_pages) {
    const struct gh_page_tag *last = &runs->tags[runs->pages - 1];
    if ((last->flags & TAG_FREE) == 0 || last->pages <= keep_pages || last->pages == runs->pages)
        return runs->pages;
    uint32_t first = runs->pages - last->pages;
    uint32_t cut = last->pages - keep_pages;
    uint32_t flags = runs->tags[first].flags;
    uint32_t kept_ms = runs->tags[first].kept_ms;
    run_remove(runs, first);
    runs->pages -= cut;
    runs->free_pages -= cut;
    if (keep_pages != 0)
        run_add(runs, first, keep_pages, flags, kept_ms);
    return runs->pages;
}

bool gh_page_runs_is_idle(const struct gh_page_runs *runs, uint32_t now_ms, uint32_t age_ms) {
    if (runs->free_pages != runs->pages)
        return false;
    const struct gh_page_tag *tag = &runs->tags[0]; // one run then
    return (tag->flags & TAG_KEPT) == 0 || (int32_t)(now_ms - tag->kept_ms) >= (int32_t)age_ms;
}

bool gh_page_runs_is_valid(const struct gh_page_runs *runs) {
    uint64_t free_pages = 0;
    for (unsigned bin = 0; bin < GH_RUN_BINS; bin++) {
        bool filled = (runs->filled[bin / 64] >> (bin % 64) & 1) != 0;
        if (filled != (runs->heads[bin] != GH_NO_PAGE))
            return false;
        uint32_t previous = GH_NO_PAGE;
        for (uint32_t first = runs->heads[bin]; first != GH_NO_PAGE; first = runs->tags[first].next) {
            const struct gh_page_tag *tag = &runs->tags[first];
            if (tag->pages == 0 || first + (uint64_t)tag->pages > runs->pages || bin_of(tag->pages) != bin ||
                tag->previous != previous || (tag->flags & TAG_FREE) == 0)
                return false;
            const struct gh_page_tag *last = &runs->tags[first + tag->pages - 1];
            if (last->pages != tag->pages || last->flags != tag->flags)
                return false;
            bool touches_free_before = first > 0 && (runs->tags[first - 1].flags & TAG_FREE) != 0;
            uint32_t after = first + tag->pages;
            bool touches_free_after = after < runs->pages && (runs->tags[after].flags & TAG_FREE) != 0;
            if (touches_free_before || touches_free_after)
                return false;
            free_pages += tag->pages;
            if (free_pages > runs->pages)
                return false;
            previous = first;
        }
    }
    return free_pages == runs->free_pages;
}
