// SPDX-License-Identifier: MIT
//
// What a wrap costs, and what the library adds to a call that it only passes on. Single wraps are
// timed with the time stamp counter, whose own cost (the least that two readings differ) is taken
// off; calls of a few nanoseconds are timed a thousand at a time.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include "bench.h"
#include "gpu_client.h"

#define PAGE ((size_t)4096)
#define SAMPLES 40000u
#define BLOCK_PAGES (1u << 20) // of the block that wraps are made in: 4 GiB, never touched
#define FOREIGN_PAGES 4096u

static struct gpu_client gpu;
static double ns_per_tick;
static uint64_t empty_ticks;

static uint64_t ticks(void) {
    unsigned processor;
    _mm_lfence();
    uint64_t now = __rdtscp(&processor);
    _mm_lfence();
    return now;
}

static void calibrate(void) {
    uint64_t start_ns = now_ns();
    uint64_t start = ticks();
    while (now_ns() - start_ns < 50000000) {
    }
    ns_per_tick = (double)(now_ns() - start_ns) / (double)(ticks() - start);
    empty_ticks = UINT64_MAX;
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t first = ticks();
        uint64_t second = ticks();
        if (second - first < empty_ticks)
            empty_ticks = second - first;
    }
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double quantile(uint64_t *samples, unsigned count, double part) {
    qsort(samples, count, sizeof(*samples), compare);
    uint64_t taken = samples[(unsigned)((double)(count - 1) * part)];
    return (double)(taken > empty_ticks ? taken - empty_ticks : 0) * ns_per_tick;
}

// Pages of the block in an order that no cache foresees.
static char *page_of(char *block, uint32_t i) {
    return block + (size_t)(i * 668265261u % BLOCK_PAGES) * PAGE;
}

static char *next_page(char *block, uint32_t i) {
    return block + (size_t)(i % BLOCK_PAGES) * PAGE;
}

static char *foreign_page(char *mapping, uint32_t i) {
    return mapping + (size_t)(i * 2654435761u % FOREIGN_PAGES) * PAGE;
}

static char *map_foreign(void) {
    char *mapping = mmap(NULL, FOREIGN_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        exit(3);
    memset(mapping, 1, FOREIGN_PAGES * PAGE);
    return mapping;
}

// Wraps and unwraps `count` times, one at a time, one page each at pages[i].
static void time_wraps(char *(*place)(char *, uint32_t), char *block, unsigned count, const char *name,
                       const char *unwrap_name) {
    uint64_t *wraps = malloc(count * sizeof(*wraps));
    uint64_t *unwraps = malloc(count * sizeof(*unwraps));
    for (uint32_t i = 0; i < count; i++) {
        char *pages = place(block, i);
        uint64_t start = ticks();
        ze_result_t result = gpu_wrap(&gpu, pages, PAGE);
        uint64_t middle = ticks();
        gpu_must(result, "wrap");
        uint64_t again = ticks();
        result = zeMemFree(gpu.context, pages);
        uint64_t end = ticks();
        gpu_must(result, "unwrap");
        wraps[i] = middle - start;
        unwraps[i] = end - again;
    }
    printf("%s_median %.1f\n", name, quantile(wraps, count, 0.5));
    printf("%s_p99 %.1f\n", name, quantile(wraps, count, 0.99));
    if (unwrap_name != NULL)
        printf("%s_median %.1f\n", unwrap_name, quantile(unwraps, count, 0.5));
    free(wraps);
    free(unwraps);
}

// ---- several threads at once ----

struct lane {
    char *pages;
    uint64_t nanoseconds;
};
static pthread_barrier_t together;
#define LANE_ROUNDS 300000u

static void *run_lane(void *opaque) {
    struct lane *lane = opaque;
    pthread_barrier_wait(&together);
    uint64_t start = now_ns();
    for (unsigned i = 0; i < LANE_ROUNDS; i++) {
        char *pages = lane->pages + (size_t)(i % 256) * PAGE;
        gpu_must(gpu_wrap(&gpu, pages, PAGE), "wrap");
        gpu_must(zeMemFree(gpu.context, pages), "unwrap");
    }
    lane->nanoseconds = now_ns() - start;
    return NULL;
}

// Nanoseconds of processor time for a wrap and its unwrap, so that 8 threads on 2 processors
// are not charged for waiting for each other's turn.
static double wrap_in_threads(char *block, unsigned threads) {
    pthread_t ids[64];
    struct lane lanes[64];
    struct timespec before;
    struct timespec after;
    pthread_barrier_init(&together, NULL, threads);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    for (unsigned i = 0; i < threads; i++) {
        lanes[i].pages = block + (size_t)i * 256 * PAGE;
        if (pthread_create(&ids[i], NULL, run_lane, &lanes[i]) != 0)
            exit(3);
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    pthread_barrier_destroy(&together);
    double spent = (double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec);
    return spent / threads / LANE_ROUNDS;
}

void gpu_bench_wraps(void) {
    calibrate();
    gpu_find(&gpu);
    gpu_attach(&gpu);
    if (gpuhost_is_visible == NULL) { // without the library: the driver's own import
        time_wraps(foreign_page, map_foreign(), 4000, "driver_import", "driver_release");
        return;
    }
    char *block = aligned_alloc(PAGE, BLOCK_PAGES * PAGE);
    if (block == NULL)
        exit(3);
    gpu_knock(&gpu, block);
    time_wraps(page_of, block, SAMPLES, "wrap_covered_warm", NULL);
    time_wraps(page_of, block, SAMPLES, "wrap_covered", "unwrap_covered");
    time_wraps(foreign_page, map_foreign(), 4000, "wrap_one_page", "unwrap_one_page");
    double one = wrap_in_threads(block, 1);
    double eight = wrap_in_threads(block, 8);
    printf("wrap_unwrap_1_thread %.1f\nwrap_unwrap_8_threads %.1f\n", one, eight);
    // More and more live wraps, each at a page of its own, as are those that are timed.
    uint32_t live = 0;
    for (uint32_t wanted = 100000; wanted <= 1000000; wanted *= 10) {
        for (; live < wanted; live++)
            gpu_must(gpu_wrap(&gpu, page_of(block, (SAMPLES + live) % BLOCK_PAGES), PAGE), "wrap");
        // In the order of addresses, as programs wrap arrays that they made one after the other; and
        // each somewhere else, where most of the time is the table's cold cache line.
        time_wraps(next_page, block, SAMPLES, wanted == 100000 ? "wrap_covered_100k" : "wrap_covered_1m",
                   wanted == 100000 ? "unwrap_covered_100k" : "unwrap_covered_1m");
        time_wraps(page_of, block, SAMPLES, wanted == 100000 ? "wrap_covered_100k_random" : "wrap_covered_1m_random",
                   NULL);
    }
}

// ---- the door, with nothing pending ----

#define DOOR_BATCHES 400u
#define DOOR_BATCH 1000u

// The quarter of the batches that was disturbed least ends where this says.
static double door_quartile(void (*call)(void *), void *argument) {
    static uint64_t samples[DOOR_BATCHES];
    for (unsigned batch = 0; batch < DOOR_BATCHES; batch++) {
        uint64_t start = now_ns();
        for (unsigned i = 0; i < DOOR_BATCH; i++)
            call(argument);
        samples[batch] = now_ns() - start;
    }
    qsort(samples, DOOR_BATCHES, sizeof(samples[0]), compare);
    return (double)samples[DOOR_BATCHES / 4] / DOOR_BATCH;
}

// The driver has next to nothing to do (a null kernel, a copy or fill of nothing): what is timed
// is the way there and back.
static void call_set_argument(void *list) {
    (void)list;
    zeKernelSetArgumentValue(NULL, 0, sizeof(void *), NULL);
}

// Blocks of the heap, and nothing of them, or no pattern: the driver does the same with and without the
// library.
static char *block_from;
static char *block_to;

static void call_copy(void *list) {
    zeCommandListAppendMemoryCopy(list, block_to, block_from, 0, NULL, 0, NULL);
}

static void call_fill(void *list) {
    zeCommandListAppendMemoryFill(list, block_to, &list, 0, 64, NULL, 0, NULL);
}

void gpu_bench_door(void) {
    gpu_find(&gpu);
    gpu_attach(&gpu);
    block_from = bench_malloc(64);
    block_to = bench_malloc(64);
    gpu_knock(&gpu, block_to);
    ze_command_list_handle_t list = NULL;
    const ze_command_queue_desc_t queue = { .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                            .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS };
    gpu_must(zeCommandListCreateImmediate(gpu.context, gpu.device, &queue, &list), "zeCommandListCreateImmediate");
    free(malloc(100));
    printf("door_set_argument %.2f\n", door_quartile(call_set_argument, list));
    printf("door_copy %.2f\n", door_quartile(call_copy, list));
    printf("door_fill %.2f\n", door_quartile(call_fill, list));
}
