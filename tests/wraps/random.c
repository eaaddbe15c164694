// SPDX-License-Identifier: MIT
//
// The random test of wraps: threads wrap, use, unwrap, map and unmap, each step checked against
// the model (area.h) and by the simulated driver, which aborts on any overlap, on a page that
// went away under an import, and on a pointer outside every import.
//     wraps_random KERNELS [--seed N] [--operations N] [--threads N] [--seconds N] [--forks 0|1]
// With one thread a seed is one run; with more, each thread's choices are. Exit status: 0 right,
// 1 not, 2 usage.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "area_memory.h"
#include "gpuhost.h"
#include "worker.h"
#include "wt_events.h"

#define THREADS_MAX 16u
#define SLICE_BYTES 10007u // so that neighbours share pages
#define CONSTANT_BYTES 100000u
#define BREAK_BYTES 400000u

struct area *shared_areas[SHARED_AREAS];
static pthread_mutex_t shared_locks[SHARED_AREAS];
static struct worker workers[THREADS_MAX];
static unsigned char slices[THREADS_MAX * SLICE_BYTES + 123];
static unsigned char constant_bytes[CONSTANT_BYTES];
static uint64_t end_time;
static bool forks = true;

static uint64_t seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

static struct area *new_area(void) {
    struct area *area = calloc(1, sizeof *area);
    if (area == NULL)
        wt_fail("no memory for the model");
    area->file = -1;
    return area;
}

static struct area *new_over(enum area_kind kind, unsigned char *bytes, size_t size_bytes) {
    struct area *area = new_area();
    area_init(area, kind, bytes, size_bytes);
    return area;
}

static void create_areas(struct worker *worker) {
    static const enum area_kind kinds[] = { AREA_PAGES, AREA_PAGES, AREA_FLOAT, AREA_FILE_SHARED, AREA_FILE_PRIVATE,
                                            AREA_FILE_READ, AREA_SHM, AREA_HEAP, AREA_HEAP, AREA_HEAP, AREA_FLOAT,
                                            AREA_HEAP };
    _Static_assert(sizeof kinds / sizeof kinds[0] == WORKER_OWN_AREAS - 2, "slice and stack are the others");
    for (unsigned i = 0; i < WORKER_OWN_AREAS - 2; i++) {
        worker->own[i] = new_area();
        area_create(worker->own[i], kinds[i], &worker->rng);
    }
    unsigned char *slice = slices + 77 + worker->index * SLICE_BYTES;
    worker->own[WORKER_OWN_AREAS - 2] = new_over(AREA_SLICE, slice, SLICE_BYTES);
    worker->constant = new_over(AREA_CONSTANT, constant_bytes, CONSTANT_BYTES);
}

static struct area *pick_area(struct worker *worker) {
    size_t choice = rng_below(&worker->rng, WORKER_OWN_AREAS + SHARED_AREAS + 2);
    if (choice < WORKER_OWN_AREAS)
        return worker->own[choice];
    choice -= WORKER_OWN_AREAS;
    return choice < SHARED_AREAS ? shared_areas[choice] : worker->constant;
}

static void *worker_main(void *argument) {
    struct worker *worker = argument;
    unsigned char stack[50000];
    memset(stack, 3, sizeof stack);
    for (unsigned i = 0; i < wt_unit_count; i++)
        wt_queue_open(&worker->queues[i], &wt_units[i]);
    create_areas(worker);
    worker->own[WORKER_OWN_AREAS - 1] = new_over(AREA_STACK, stack + rng_below(&worker->rng, 4096), 40000);
    for (uint64_t i = 0; i < worker->operations && (end_time == 0 || (i & 255) != 0 || seconds_now() < end_time); i++) {
        __atomic_store_n(&worker->done, i + 1, __ATOMIC_RELAXED);
        size_t dice = rng_below(&worker->rng, 6000);
        if (dice == 0 && forks)
            worker_fork(worker);
        else if (dice < 16)
            worker_guest(worker);
        else
            worker_step(worker, pick_area(worker));
    }
    for (unsigned i = 0; i < WORKER_OWN_AREAS; i++) {
        struct area *area = worker->own[i];
        for (size_t page = 0; page < area_page_count(area); page++) {
            unsigned char *start = area_page_start(area, page);
            size_t size = WT_PAGE;
            if (area->kind == AREA_PAGES && area->pages[page] == PAGE_THERE)
                area_verify(area, start, size, "the run");
        }
        if (area->kind != AREA_STACK) // those wraps outlive their memory
            worker_unwrap_all(area);
        else
            area_all_gone(area);
    }
    worker_unwrap_all(worker->constant);
    for (unsigned i = 0; i < wt_unit_count; i++)
        wt_queue_close(&worker->queues[i]);
    return NULL;
}

static void create_shared(struct rng *rng) {
    for (unsigned i = 0; i < SHARED_AREAS; i++) {
        pthread_mutex_init(&shared_locks[i], NULL);
        if (i + 1 < SHARED_AREAS) {
            shared_areas[i] = new_area();
            area_create(shared_areas[i], AREA_PAGES, rng);
        } else {
            unsigned char *start = wt_sbrk(1000);
            shared_areas[i] = new_over(AREA_BREAK, start, 1000);
            area_reserve_model(shared_areas[i], BREAK_BYTES);
            memset(shared_areas[i]->shadow, 0, BREAK_BYTES);
            memcpy(shared_areas[i]->shadow, start, 1000);
        }
        shared_areas[i]->lock = &shared_locks[i];
    }
}

static void clean_up(unsigned threads) {
    for (unsigned t = 0; t < threads; t++) {
        for (unsigned i = 0; i < WORKER_OWN_AREAS; i++) {
            worker_unwrap_all(workers[t].own[i]);
            area_release(workers[t].own[i]);
            area_free_model(workers[t].own[i]);
            free(workers[t].own[i]);
        }
        area_free_model(workers[t].constant);
        free(workers[t].constant);
    }
    for (unsigned i = 0; i < SHARED_AREAS; i++) {
        worker_unwrap_all(shared_areas[i]);
        area_release(shared_areas[i]);
        area_free_model(shared_areas[i]);
        free(shared_areas[i]);
    }
}

// What is imported now is the regions and nothing else. The heap still gives regions back in the
// background, so the two figures may be of different moments: look again.
static bool nothing_left(struct gpuhost_stats *stats, uint64_t *live_out) {
    for (int attempt = 0; attempt < 100; attempt++) {
        uint64_t live = 0;
        for (unsigned i = 0; i < wt_driver_count; i++) {
            struct ghsim_stats sim;
            if (!wt_sim_stats(i, &sim))
                wt_fail("driver %u is not the simulated one", i);
            if (sim.violations != 0)
                wt_fail("%" PRIu64 " rules of driver %u were broken", sim.violations, i);
            live += sim.imports_live;
        }
        gpuhost_stats(stats);
        *live_out = live;
        if (live == stats->imports - stats->releases)
            return true;
        for (unsigned i = 0; i < wt_unit_count; i++)
            (void)wt_type(&wt_units[i], stats); // passes the door
        usleep(100000);
    }
    return false;
}

static uint64_t number(const char *text) {
    char *end;
    uint64_t value = strtoull(text, &end, 0);
    if (*text == '\0' || *end != '\0')
        wt_fail("not a number: %s", text);
    return value;
}

int main(int argc, char **argv) {
    uint64_t seed = (uint64_t)time(NULL) * 1000003u ^ (uint64_t)getpid();
    uint64_t operations = 100000;
    uint64_t threads = 8;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0)
            seed = number(argv[i + 1]);
        else if (strcmp(argv[i], "--operations") == 0)
            operations = number(argv[i + 1]);
        else if (strcmp(argv[i], "--threads") == 0)
            threads = number(argv[i + 1]);
        else if (strcmp(argv[i], "--seconds") == 0)
            end_time = seconds_now() + number(argv[i + 1]);
        else if (strcmp(argv[i], "--forks") == 0)
            forks = number(argv[i + 1]) != 0;
        else
            argc = 0;
    }
    if (argc < 2 || argc % 2 != 0 || threads == 0 || threads > THREADS_MAX) {
        fprintf(stderr, "usage: wraps_random KERNELS [--seed N] [--operations N] [--threads N] [--seconds N] [--forks 0|1]\n");
        return 2;
    }
    printf("seed %" PRIu64 ", %" PRIu64 " operations, %" PRIu64 " threads\n", seed, operations, threads);
    fflush(stdout);
    if (gpuhost_stats == NULL)
        wt_fail("libgpuhost is not preloaded");
    struct rng rng = { seed };
    const char *quiet = getenv("GPUHOST_MMAP");
    area_quiet_moves = quiet != NULL && strcmp(quiet, "0") != 0;
    for (size_t i = 0; i < sizeof slices; i++)
        slices[i] = (unsigned char)(i * 7);
    for (size_t i = 0; i < sizeof constant_bytes; i++)
        constant_bytes[i] = (unsigned char)(i * 13);
    wt_open(argv[1], 2);
    create_shared(&rng);
    for (unsigned t = 0; t < threads; t++) {
        workers[t].index = t;
        workers[t].rng.state = seed + t * UINT64_C(0x1234567);
        workers[t].operations = end_time != 0 ? UINT64_MAX : operations / threads;
        if (pthread_create(&workers[t].thread, NULL, worker_main, &workers[t]) != 0)
            wt_fail("no thread");
    }
    uint64_t done = 0;
    for (unsigned t = 0; t < threads; t++) {
        pthread_join(workers[t].thread, NULL);
        done += workers[t].done;
    }
    clean_up((unsigned)threads);
    struct gpuhost_stats stats = { 0 };
    uint64_t live = 0;
    bool clean = nothing_left(&stats, &live);
    printf("%" PRIu64 " operations; wraps covered %" PRIu64 ", passed on %" PRIu64 ", read-only %" PRIu64
           ", refused %" PRIu64 ", left %" PRIu64 "; imports left %" PRIu64 ", regions %" PRIu64 " in %" PRIu64
           " scopes\n", done, stats.wraps_covered, stats.wraps_passed_on, stats.wraps_read_only, stats.wraps_refused,
           stats.wraps_live, live, stats.regions, stats.scopes);
    if (!clean)
        wt_fail("a piece is left: %" PRIu64 " imports, %" PRIu64 " of regions", live, stats.imports - stats.releases);
    if (stats.wraps_live != 0 || stats.wraps_refused != 0)
        wt_fail("wraps are left or were refused");
    wt_close();
    printf("ok\n");
    return 0;
}
