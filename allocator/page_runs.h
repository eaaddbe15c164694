// SPDX-License-Identifier: MIT
//
// The free pages of one region, as runs that are always coalesced. Good fit from segregated
// bins, boundary tags, constant time but for a bounded scan of one bin. The tags live in a
// table beside the region, never in it: a free page of a region is not touched.
//
// Not synchronised (the pool lock does that), no system calls after gh_page_runs_init.
#ifndef GH_ALLOCATOR_PAGE_RUNS_H
#define GH_ALLOCATOR_PAGE_RUNS_H

#include "util.h"

#define GH_RUN_BINS 128u
#define GH_NO_PAGE UINT32_MAX

struct gh_page_tag;

struct gh_page_runs {
    uint32_t pages;      // of the region
    uint32_t free_pages; // in all runs
    uint32_t kept_runs;  // runs that hold kept pages
    uint64_t filled[GH_RUN_BINS / 64]; // bit set: the bin is not empty
    uint32_t *heads;                   // of the bins; one table with
    struct gh_page_tag *tags;          // the tags
    size_t table_bytes;
};

// All pages free and known to be zero. Returns 0 or ENOMEM.
GH_HIDDEN int gh_page_runs_init(struct gh_page_runs *runs, uint32_t pages);
GH_HIDDEN void gh_page_runs_destroy(struct gh_page_runs *runs);

// Takes `pages` pages whose first index is a multiple of `alignment_pages` (a power of two; the
// region's base is aligned at least as well). Returns GH_NO_PAGE when no run fits. `*zeroed_out`
// says whether every page of it is known to be zero.
GH_HIDDEN uint32_t gh_page_runs_take(struct gh_page_runs *runs, uint32_t pages, uint32_t alignment_pages,
                                     bool *zeroed_out);

// How well such a request fits: the smaller the better, UINT64_MAX not at all. A run whose pages may
// hold memory already goes before one that is known to be zero.
GH_HIDDEN uint64_t gh_page_runs_fit(const struct gh_page_runs *runs, uint32_t pages, uint32_t alignment_pages);

// Takes exactly [first, first + pages), for growth in place. False when it is not free.
GH_HIDDEN bool gh_page_runs_take_at(struct gh_page_runs *runs, uint32_t first, uint32_t pages, bool *zeroed_out);

// Gives [first, first + pages) back; it need not be what one take returned.
GH_HIDDEN void gh_page_runs_give(struct gh_page_runs *runs, uint32_t first, uint32_t pages, bool zeroed);

// The same for pages that were in use until `now_ms` and keep what they hold, for reuse. A run
// that such pages become part of is as young as they are.
GH_HIDDEN void gh_page_runs_keep(struct gh_page_runs *runs, uint32_t first, uint32_t pages, uint32_t now_ms);

// Takes a kept run out that is `age_ms` old or older, for the caller to purge and give back. False
// when there is none. Times are in milliseconds and may wrap round.
GH_HIDDEN bool gh_page_runs_take_aged(struct gh_page_runs *runs, uint32_t now_ms, uint32_t age_ms,
                                      uint32_t *first_out, uint32_t *pages_out);

// Takes the free pages at the end away, but `keep_pages` of them, whatever they hold; not when all are
// free. Returns the number of pages that there are now.
GH_HIDDEN uint32_t gh_page_runs_cut_tail(struct gh_page_runs *runs, uint32_t keep_pages);

// Is every page free, and none younger than `age_ms`?
GH_HIDDEN bool gh_page_runs_is_idle(const struct gh_page_runs *runs, uint32_t now_ms, uint32_t age_ms);

// Walks everything; for tests and debug builds.
GH_HIDDEN bool gh_page_runs_is_valid(const struct gh_page_runs *runs);

#endif
