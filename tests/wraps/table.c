// SPDX-License-Identifier: MIT
//
// The seed's table for memory that malloc never handed out: arrays back to back on the stack, in
// static storage, in the program's own mappings, and by turns in all of them and the heap. Each is
// wrapped as oneAPI.jl does; all wraps of a row live together; a kernel adds 1 in place.
//     wraps_table KERNELS|- NAME
// With "-" there is no GPU that gives results (Intel's driver without hardware): then fills, copies
// and questions must succeed, and the bytes stay. One thread. Exit status: 0 every array was
// wrapped and right, 1 not.
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wt_gpu.h"

#define STATIC_BYTES ((size_t)88 << 20)
#define STACK_BYTES ((size_t)120 << 20)
#define MAIN_STACK_BYTES ((size_t)5 << 20) // of the 8 MiB that it has
#define ARRAYS_MAX 100u

static unsigned char static_bytes[STATIC_BYTES];
static const size_t sizes[] = { 16, 256, 2048, 4096, 40960, 4194304 };
static const char *const kinds[] = { "stack", "static", "mmap", "mixed" };

struct row {
    const char *kind;
    size_t size;
    size_t count;
    unsigned char *arrays[ARRAYS_MAX];
    bool wrapped[ARRAYS_MAX];
    bool wrong[ARRAYS_MAX];
    size_t wrapped_count;
    size_t right_count;
};

static struct wt_queue queue;
static bool has_results;

static unsigned char pattern(size_t array, size_t byte) {
    return (unsigned char)(array * 31 + byte * 7 + byte / 251);
}

static bool is_right(const struct row *row, size_t i, unsigned times) {
    for (size_t k = 0; k < row->size; k++) {
        if (row->arrays[i][k] != (unsigned char)(pattern(i, k) + times))
            return false;
    }
    return true;
}

static unsigned char *map(size_t size) {
    void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        wt_fail("mmap of %zu bytes failed", size);
    return mapped;
}

// A pool for all, as Julia has for small arrays; or a mapping for each.
static void place(struct row *row, const char *kind, unsigned char *stack, size_t first, size_t step) {
    size_t pool_bytes = (row->count + 1) * row->size + 4096;
    unsigned char *pool = row->size < 40960 ? map(pool_bytes) : NULL;
    for (size_t i = first; i < row->count; i += step) {
        if (strcmp(kind, "malloc") == 0)
            row->arrays[i] = malloc(row->size);
        else if (strcmp(kind, "stack") == 0)
            row->arrays[i] = stack + 40 + i * row->size;
        else if (strcmp(kind, "static") == 0)
            row->arrays[i] = static_bytes + 24 + i * row->size;
        else
            row->arrays[i] = pool != NULL ? pool + 64 + i * row->size : map(row->size + 64) + 64;
    }
}

static bool wrap(const struct row *row, size_t i) {
    const struct wt_unit *unit = queue.unit;
    const struct wt_range range = wt_rounded(row->arrays[i], row->size);
    if (wt_wrap(unit, range.start, range.size_bytes, false) != ZE_RESULT_SUCCESS)
        return false;
    ze_result_t resident = zeContextMakeMemoryResident(unit->context, unit->device, range.start, range.size_bytes);
    // Without hardware Intel's driver has nothing to make resident and says UNINITIALIZED.
    return resident == ZE_RESULT_SUCCESS || (!has_results && resident == ZE_RESULT_ERROR_UNINITIALIZED);
}

// Where no kernel gives results: the driver must know every byte of it as the host's.
static bool ask(const struct row *row, size_t i) {
    unsigned char *array = row->arrays[i];
    static const unsigned char zero = 0;
    const struct wt_range range = wt_rounded(array, row->size);
    void *base = NULL;
    size_t size = 0;
    return wt_type(queue.unit, array) == ZE_MEMORY_TYPE_HOST &&
           wt_type(queue.unit, array + row->size - 1) == ZE_MEMORY_TYPE_HOST &&
           zeMemGetAddressRange(queue.unit->context, range.start, &base, &size) == ZE_RESULT_SUCCESS &&
           base == range.start && size >= range.size_bytes &&
           zeCommandListAppendMemoryFill(queue.list, array, &zero, 1, row->size, NULL, 0, NULL) == ZE_RESULT_SUCCESS &&
           zeCommandListAppendMemoryCopy(queue.list, array, row->arrays[0], row->size, NULL, 0, NULL) ==
               ZE_RESULT_SUCCESS;
}

static void use(struct row *row) {
    // Every second array first: their neighbours must stay as they are.
    for (size_t odd = 0; odd < 2; odd++) {
        for (size_t i = odd; i < row->count; i += 2) {
            if (row->wrapped[i] &&
                !(has_results ? wt_add1(&queue, row->arrays[i], row->size) == ZE_RESULT_SUCCESS : ask(row, i)))
                row->wrong[i] = true;
        }
        for (size_t i = 0; i < row->count; i++) {
            unsigned times = has_results && row->wrapped[i] && i % 2 <= odd && !row->wrong[i];
            if (!is_right(row, i, times))
                row->wrong[i] = true;
        }
    }
}

static void run_placed(struct row *row) {
    for (size_t i = 0; i < row->count; i++) {
        for (size_t k = 0; k < row->size; k++)
            row->arrays[i][k] = pattern(i, k);
    }
    for (size_t i = 0; i < row->count; i++)
        row->wrapped_count += row->wrapped[i] = wrap(row, i);
    use(row);
    for (size_t i = 0; i < row->count; i++) {
        const struct wt_range range = wt_rounded(row->arrays[i], row->size);
        row->right_count += row->wrapped[i] && !row->wrong[i];
        if (row->wrapped[i] && wt_unwrap(queue.unit, range.start) != ZE_RESULT_SUCCESS)
            row->right_count = 0;
    }
    for (size_t i = 0; i < row->count; i++) {
        if (!row->wrong[i] && !is_right(row, i, has_results && row->wrapped[i]))
            row->right_count = 0; // the end of a wrap changed something
    }
}

static void *run_on_stack(void *argument) {
    struct row *row = argument;
    unsigned char *stack = alloca((row->count + 1) * row->size + 64);
    static const char *const turns[] = { "malloc", "mmap", "static", "stack" };
    if (strcmp(row->kind, "mixed") != 0)
        place(row, row->kind, stack, 0, 1);
    else
        for (size_t i = 0; i < 4; i++)
            place(row, turns[i], stack, i, 4);
    run_placed(row);
    return NULL;
}

static void run(struct row *row) {
    pthread_attr_t attributes;
    pthread_t thread;
    if ((row->count + 1) * row->size < MAIN_STACK_BYTES) {
        run_on_stack(row);
        return;
    }
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK_BYTES) != 0 ||
        pthread_create(&thread, &attributes, run_on_stack, row) != 0 || pthread_join(thread, NULL) != 0)
        wt_fail("no thread with a large stack");
}

static void print_size(char *out, size_t room, size_t size) {
    if (size % (1 << 20) == 0)
        snprintf(out, room, "%zuMB", size >> 20);
    else if (size % 1024 == 0)
        snprintf(out, room, "%zuKB", size >> 10);
    else
        snprintf(out, room, "%zuB", size);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: wraps_table KERNELS|- NAME\n");
        return 2;
    }
    has_results = strcmp(argv[1], "-") != 0;
    wt_open(has_results ? argv[1] : NULL, 1);
    wt_queue_open(&queue, &wt_units[0]);
    bool bad = false;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            struct row row = { .kind = kinds[k], .size = sizes[s], .count = sizes[s] < (1 << 20) ? 100 : 20 };
            char size[24];
            run(&row);
            print_size(size, sizeof size, row.size);
            printf("FIGURE %s_%s_wrapped_%s %zu of_%zu\n", argv[2], row.kind, size, row.wrapped_count, row.count);
            printf("FIGURE %s_%s_right_%s %zu of_%zu\n", argv[2], row.kind, size, row.right_count, row.count);
            bad = bad || row.wrapped_count != row.count || row.right_count != row.count;
        }
    }
    wt_queue_close(&queue);
    wt_close();
    return bad ? 1 : 0;
}
