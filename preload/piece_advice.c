// SPDX-License-Identifier: MIT
//
// madvise on pieces (pieces.h): the program wants the contents dropped, the driver wants the pages
// to stay. Pages that are private and anonymous stay and are zeroed; so nobody's kernel that uses
// other parts of the same piece notices. Pages of files must really be dropped.
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "gpu.h"
#include "piece_tree.h"
#include "pieces.h"
#include "vma.h"
#include "wraps.h"

// The end of the mappings from `start` on that are all private, anonymous and writable, or all
// shared; at most `end`. False: neither.
static bool mappings_of_a_kind(uintptr_t start, uintptr_t end, bool *shared_out) {
    struct gh_vma vma;
    for (uintptr_t at = start; at < end; at = vma.end) {
        if (!gh_vma_find(at, &vma) || (vma.is_private && (vma.inode != 0 || !vma.writable)) ||
            (at != start && vma.is_private == *shared_out))
            return false;
        *shared_out = !vma.is_private;
    }
    return true;
}

// Where the piece at `at` ends, in whatever scope, or the gap; at most `end`.
static uintptr_t next_border(uintptr_t at, uintptr_t end, bool *is_piece_out) {
    uintptr_t border = end;
    *is_piece_out = false;
    for (unsigned scope = 0; scope < GH_SCOPE_MAX; scope++) {
        const struct gh_piece *piece = gh_piece_first_above(scope, at);
        if (piece == NULL)
            continue;
        if (piece->start <= at) {
            *is_piece_out = true;
            border = gh_min(border, piece->end);
        } else {
            border = gh_min(border, piece->start);
        }
    }
    return border;
}

static int zero_in_place(uintptr_t start, uintptr_t end, int (*advise)(void *, size_t, int), int advice) {
    int result = 0;
    bool is_piece;
    for (uintptr_t at = start; at < end && result == 0;) {
        uintptr_t border = next_border(at, end, &is_piece);
        if (!is_piece)
            result = advise((void *)at, border - at, advice);
        else if (advice != MADV_FREE) // which allows the old contents
            memset((void *)at, 0, border - at);
        at = border;
    }
    return result;
}

// False when a driver keeps an import: then the pages must stay.
static bool suspend(unsigned scope, uintptr_t start, uintptr_t end) {
    bool suspended = true;
    for (struct gh_piece *piece = gh_piece_first_above(scope, start); piece != NULL && piece->start < end;
         piece = gh_piece_first_above(scope, piece->end)) {
        piece->suspended = gh_gpu_release_piece(scope, (void *)piece->start, piece->end - piece->start) == 0;
        suspended = suspended && piece->suspended;
    }
    return suspended;
}

static void resume(unsigned scope, uintptr_t start, uintptr_t end) {
    for (struct gh_piece *piece = gh_piece_first_above(scope, start); piece != NULL && piece->start < end;) {
        uintptr_t piece_start = piece->start;
        uintptr_t piece_end = piece->end;
        const char *why;
        if (!piece->suspended)
            ; // the driver did not let it go
        else if (gh_gpu_import_piece(scope, (void *)piece_start, piece_end - piece_start, piece->read_only, &why) == 0)
            piece->suspended = false;
        else
            gh_pieces_drop_range(scope, piece_start, piece_end);
        piece = gh_piece_first_above(scope, piece_end);
    }
}

int gh_pieces_around(uintptr_t start, uintptr_t end, int (*advise)(void *, size_t, int), int advice) {
    bool shared = false;
    bool is_piece = false;
    if ((start & GH_PAGE_MASK) != 0 || gh_gpu_is_closing() || !gh_gpu_try_enter())
        return advise((void *)start, end - start, advice);
    uintptr_t page_end = gh_align_up(end, GH_PAGE_SIZE);
    int result;
    if (!(next_border(start, page_end, &is_piece) < page_end || is_piece)) {
        gh_gpu_unlock();
        return advise((void *)start, end - start, advice);
    }
    bool stays = advice != MADV_REMOVE && advice != GH_MADV_GUARD_INSTALL;
    bool of_a_kind = stays && mappings_of_a_kind(start, page_end, &shared);
    if (of_a_kind && !shared) {
        result = zero_in_place(start, page_end, advise, advice);
    } else if (of_a_kind) { // the pages are the file's or the segment's, and stay in it
        result = advise((void *)start, end - start, advice);
    } else {
        bool suspended = true;
        for (unsigned scope = 0; scope < GH_SCOPE_MAX; scope++)
            suspended = suspend(scope, start, page_end) && suspended;
        errno = EAGAIN;
        result = suspended ? advise((void *)start, end - start, advice) : -1;
        int saved_errno = errno;
        for (unsigned scope = 0; scope < GH_SCOPE_MAX; scope++)
            resume(scope, start, page_end);
        errno = saved_errno;
    }
    int saved_errno = errno;
    gh_gpu_unlock();
    errno = saved_errno;
    return result;
}
