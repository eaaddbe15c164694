// SPDX-License-Identifier: MIT
//
// The aligned forms at their edges, one line a case (edges.h).
#include "edges.h"

typedef void *(*aligned_fn)(size_t alignment, size_t size);

static void print_aligned(const char *name, aligned_fn function) {
    char what[80];
    for (size_t a = 0; a < EDGE_ALIGNMENTS; a++) {
        for (size_t s = 0; s < EDGE_SIZES; s++) {
            size_t alignment = edge_alignments[a];
            errno = EDGE_ERRNO;
            void *block = function(alignment, edge_sizes[s]);
            snprintf(what, sizeof(what), "%s(%zu, %zu)", name, alignment, edge_sizes[s]);
            edge_print(what, block, errno, edge_rounded(alignment), edge_sizes[s]);
            edge_free(block);
        }
    }
}

static void print_posix_memalign(void) {
    char what[80];
    for (size_t a = 0; a < EDGE_ALIGNMENTS; a++) {
        for (size_t s = 0; s < EDGE_SIZES; s++) {
            char mark;
            void *block = &mark; // must stay when nothing is handed out
            errno = EDGE_ERRNO;
            int answer = posix_memalign(&block, edge_alignments[a], edge_sizes[s]);
            snprintf(what, sizeof(what), "posix_memalign(%zu, %zu) = %d%s", edge_alignments[a], edge_sizes[s], answer,
                     answer != 0 && block != &mark ? " TOUCHED ITS RESULT" : "");
            edge_print(what, answer == 0 ? block : NULL, 0, edge_rounded(edge_alignments[a]), edge_sizes[s]);
            edge_free(answer == 0 ? block : NULL);
        }
    }
}

static void print_paged(void) {
    char what[80];
    for (size_t s = 0; s < EDGE_SIZES; s++) {
        size_t size = edge_sizes[s];
        errno = EDGE_ERRNO;
        void *block = valloc(size);
        snprintf(what, sizeof(what), "valloc(%zu)", size);
        edge_print(what, block, errno, 4096, size);
        edge_free(block);
        errno = EDGE_ERRNO;
        block = pvalloc(size);
        snprintf(what, sizeof(what), "pvalloc(%zu)", size);
        edge_print(what, block, errno, 4096, block == NULL ? 0 : (size + 4095) & ~(size_t)4095);
        edge_free(block);
    }
}

// An aligned block through realloc: bytes stay, and the result is an ordinary block.
static void print_moved(void) {
    static const size_t sizes[] = { 1, 44, 5000, 20000, (size_t)3 << 20 };
    char what[80];
    for (size_t a = 0; a < EDGE_ALIGNMENTS; a++) {
        for (size_t from = 0; from < 5; from++) {
            for (size_t to = 0; to < 5; to++) {
                if (edge_alignments[a] > (size_t)2 << 20)
                    continue;
                unsigned char *block = memalign(edge_alignments[a], sizes[from]);
                memset(block, 0xa5, sizes[from]);
                block = realloc(block, sizes[to]);
                size_t common = sizes[from] < sizes[to] ? sizes[from] : sizes[to];
                bool same = block != NULL;
                for (size_t at = 0; same && at < common; at++)
                    same = block[at] == 0xa5;
                snprintf(what, sizeof(what), "realloc(memalign(%zu, %zu), %zu)%s", edge_alignments[a], sizes[from],
                         sizes[to], same ? "" : " LOST ITS BYTES");
                edge_print(what, block, errno, EDGE_ALIGNMENT, sizes[to]);
                edge_free(block);
            }
        }
    }
}

int main(void) {
    print_aligned("memalign", memalign);
    print_aligned("aligned_alloc", aligned_alloc);
    print_posix_memalign();
    print_paged();
    print_moved();
    return 0;
}
