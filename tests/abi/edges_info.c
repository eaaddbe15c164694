// SPDX-License-Identifier: MIT
//
// The functions that tell about and tune the heap, one line a case (edges.h). Figures differ
// between allocators; that they move with the heap must not.
#include <limits.h>
#include <unistd.h>

#include "edges.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // mallinfo is tested for being there

#define BLOCKS 200
#define BLOCK ((size_t)50000)

static void print_mallinfo(void) {
    struct mallinfo2 before = mallinfo2();
    static void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = memset(malloc(BLOCK), 1, BLOCK);
    struct mallinfo2 full = mallinfo2();
    struct mallinfo narrow = mallinfo();
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    struct mallinfo2 after = mallinfo2();
    size_t bytes = BLOCKS * BLOCK;
    printf("mallinfo2 in use grows: %d\n", full.uordblks >= before.uordblks + bytes);
    printf("mallinfo2 in use shrinks: %d\n", after.uordblks + bytes <= full.uordblks);
    printf("mallinfo2 holds at least what is in use: %d\n", full.arena + full.hblkhd >= full.uordblks);
    printf("mallinfo agrees: %d\n", (size_t)narrow.uordblks >= bytes && (size_t)narrow.uordblks < 2 * bytes + (1 << 20));
    printf("malloc_trim after all was freed: %d\n", malloc_trim(0));
    int again = malloc_trim(SIZE_MAX);
    printf("malloc_trim answers 0 or 1: %d\n", again == 0 || again == 1);
}

static void print_malloc_info(void) {
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    printf("malloc_info(0): %d\n", malloc_info(0, stream));
    fclose(stream);
    printf("it is an XML element: %d, ended: %d, in lines: %d\n", strncmp(text, "<malloc version=\"", 17) == 0,
           strstr(text, "</malloc>\n") != NULL, text[length - 1] == '\n');
    free(text);
    printf("malloc_info(1): %d\n", malloc_info(1, stdout));
    printf("malloc_info(-1): %d\n", malloc_info(-1, stdout));
}

// To stderr in both; here the two lines that every version of glibc has.
static void print_malloc_stats(void) {
    int ends[2];
    char text[8192];
    fflush(stderr);
    int kept = dup(2);
    if (pipe(ends) != 0 || dup2(ends[1], 2) < 0)
        abort();
    close(ends[1]);
    malloc_stats();
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    size_t length = 0;
    ssize_t got;
    while (length < sizeof(text) - 1 && (got = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    text[length] = '\0';
    printf("malloc_stats: system bytes %d, in use bytes %d\n", strstr(text, "system bytes     =") != NULL,
           strstr(text, "in use bytes     =") != NULL);
}

static void print_mallopt(void) {
    static const struct { const char *name; int parameter; int value; } cases[] = {
        { "M_MXFAST 0", M_MXFAST, 0 },
        { "M_MXFAST 160", M_MXFAST, 160 },
        { "M_MXFAST 161", M_MXFAST, 161 },
        { "M_MXFAST -1", M_MXFAST, -1 },
        { "M_TRIM_THRESHOLD 0", M_TRIM_THRESHOLD, 0 },
        { "M_TRIM_THRESHOLD -1", M_TRIM_THRESHOLD, -1 },
        { "M_TOP_PAD 4096", M_TOP_PAD, 4096 },
        { "M_MMAP_THRESHOLD 1M", M_MMAP_THRESHOLD, 1 << 20 },
        { "M_MMAP_THRESHOLD 32M", M_MMAP_THRESHOLD, 32 << 20 },
        { "M_MMAP_THRESHOLD 32M+1", M_MMAP_THRESHOLD, (32 << 20) + 1 },
        { "M_MMAP_THRESHOLD max", M_MMAP_THRESHOLD, INT_MAX },
        { "M_MMAP_THRESHOLD -1", M_MMAP_THRESHOLD, -1 },
        { "M_MMAP_MAX 0", M_MMAP_MAX, 0 },
        { "M_CHECK_ACTION 1", M_CHECK_ACTION, 1 },
        { "M_PERTURB 0", M_PERTURB, 0 },
        { "M_ARENA_TEST 0", M_ARENA_TEST, 0 },
        { "M_ARENA_TEST 1", M_ARENA_TEST, 1 },
        { "M_ARENA_MAX 0", M_ARENA_MAX, 0 },
        { "M_ARENA_MAX 2", M_ARENA_MAX, 2 },
        { "unknown", 12345, 1 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        printf("mallopt %s: %d\n", cases[i].name, mallopt(cases[i].parameter, cases[i].value));
    // Tuned as it may be now, the heap still answers.
    void *block = malloc((size_t)3 << 20);
    edge_print("malloc after mallopt", block, errno, EDGE_ALIGNMENT, (size_t)3 << 20);
    edge_free(block);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    print_mallinfo();
    print_malloc_info();
    print_malloc_stats();
    print_mallopt();
    return 0;
}
