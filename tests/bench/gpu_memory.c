// SPDX-License-Identifier: MIT
//
// What it costs to make a heap visible, how many imports it takes, and how memory behaves over
// time once it is. "visible" is asked of the library itself and, for the time to it, of a door
// call's return.
#include <string.h>

#include "bench.h"
#include "gpu_client.h"

#define MIB ((size_t)1 << 20)

void *bench_malloc(size_t size) {
    void *block = malloc(size);
    if (block == NULL) {
        fputs("bench: out of memory\n", stderr);
        exit(3);
    }
    return block;
}

struct heap {
    char **blocks;
    size_t *sizes;
    size_t count;
};

// Kinds: "equal" arrays of a 64th of the heap, "mixed" sizes from 16 bytes to 64 MiB of which
// each kind of size has an equal part in bytes; with "_touched", every page is written; with
// "_attached", the GPU has them from the first block on, and is called after each of 1 MiB and more.
static struct heap build_heap(const char *kind, size_t mib, const struct gpu_client *attached) {
    bool equal = strncmp(kind, "equal", 5) == 0;
    bool touched = strstr(kind, "_touched") != NULL;
    uint64_t seed = bench_seed(3);
    size_t most = 64 + mib * MIB / 700;
    struct heap heap = { .blocks = malloc(most * sizeof(char *)), .sizes = malloc(most * sizeof(size_t)) };
    size_t largest = mib * MIB / 16 < 64 * MIB ? mib * MIB / 16 : 64 * MIB;
    size_t made = 0;
    size_t small = 0;
    while (made < mib * MIB && heap.count < most) {
        size_t size = mib * MIB / 64;
        if (!equal) {
            // A quarter of the bytes in blocks below 4 KiB, the rest log-uniform above.
            bool is_small = small * 4 < made;
            size = is_small ? bench_log_size(&seed, 9, 12) : bench_log_size(&seed, 12, 26);
            size = size > largest ? largest : size;
            small += is_small ? size : 0;
        }
        heap.blocks[heap.count] = bench_malloc(size);
        heap.sizes[heap.count] = size;
        if (touched)
            bench_touch(heap.blocks[heap.count], size, 1);
        if (attached != NULL && size >= MIB)
            gpu_knock(attached, heap.blocks[heap.count]);
        made += size;
        heap.count++;
    }
    printf("heap_mib %.1f\n", (double)made / (double)MIB);
    return heap;
}

void gpu_bench_import(const char *kind, size_t mib) {
    struct gpu_client gpu;
    gpu_find(&gpu);
    bool attached = strstr(kind, "_attached") != NULL;
    if (attached)
        gpu_attach(&gpu);
    struct heap heap = build_heap(kind, mib, attached ? &gpu : NULL);
    double before = resident_mib();
    uint64_t start = now_ns();
    if (!attached)
        gpu_attach(&gpu);
    gpu_knock(&gpu, heap.blocks[0]);
    double milliseconds = (double)(now_ns() - start) / 1e6;
    size_t invisible = 0;
    for (size_t i = 0; i < heap.count; i++)
        invisible += gpuhost_is_visible != NULL && gpuhost_is_visible(heap.blocks[i], heap.sizes[i]) != 1;
    printf("attach_ms %.3f\ninvisible_blocks %zu\nresident_before_mib %.1f\nresident_after_mib %.1f\n", milliseconds,
           invisible, before, resident_mib());
    struct gpuhost_stats stats;
    if (gpuhost_stats != NULL && gpuhost_stats(&stats) == 0) {
        printf("imports %llu\nregions %llu\nimported_mib %.1f\nlive_mib %.1f\nimport_ms %.3f\n",
               (unsigned long long)stats.imports, (unsigned long long)stats.regions,
               (double)stats.bytes_imported / (double)MIB, (double)stats.bytes_live / (double)MIB,
               (double)stats.import_nanoseconds / 1e6);
    }
    gpu_must(zeContextDestroy(gpu.context), "zeContextDestroy");
}

// ---- a long churn, then everything freed ----

#define SLOTS 20000u

struct store {
    void *blocks[SLOTS];
    uint64_t seed;
};

// Sizes whose mix shifts with time: what was right for one phase is holes in the next.
static void churn_store(struct store *store, unsigned phase) {
    for (unsigned i = 0; i < 20000; i++) {
        void **place = &store->blocks[bench_below(&store->seed, SLOTS)];
        unsigned high = 9 + phase % 6;
        size_t size = bench_log_size(&store->seed, 4, i % 400 == 0 ? 20 : high);
        free(*place);
        *place = bench_malloc(size);
        bench_touch(*place, size, i);
    }
}

void gpu_bench_memory(int attach, unsigned seconds) {
    struct gpu_client gpu;
    static struct store store;
    store.seed = bench_seed(9);
    if (attach) {
        gpu_find(&gpu);
        gpu_attach(&gpu);
        free(bench_malloc(4 * MIB));
    }
    double start_mib = resident_mib();
    printf("start_mib %.1f\n", start_mib);
    double peak = 0;
    uint64_t start = now_ns();
    uint64_t next_sample = start;
    unsigned rounds = 0;
    for (; now_ns() - start < (uint64_t)seconds * 1000000000u; rounds++) {
        churn_store(&store, (unsigned)((now_ns() - start) / 2000000000u));
        if (attach)
            gpu_knock(&gpu, store.blocks[1] != NULL ? store.blocks[1] : (void *)&store);
        double now_mib = resident_mib();
        peak = now_mib > peak ? now_mib : peak;
        if (now_ns() >= next_sample) {
            printf("sample %.1f %.1f\n", (double)(now_ns() - start) / 1e9, now_mib);
            next_sample += 500000000u;
        }
    }
    printf("rounds %u\npeak_mib %.1f\n", rounds, peak);
    for (unsigned i = 0; i < SLOTS; i++)
        free(store.blocks[i]);
    printf("freed_mib %.1f\n", resident_mib());
    for (unsigned second = 1; second <= 10; second++) {
        sleep(1);
        if (attach)
            gpu_knock(&gpu, &store);
        printf("sample %.1f %.1f\n", (double)(now_ns() - start) / 1e9, resident_mib());
    }
    printf("after_10s_mib %.1f\nabove_start_mib %.1f\n", resident_mib(), resident_mib() - start_mib);
}
