// SPDX-License-Identifier: MIT
//
// Cases that break a rule: the driver must abort with one line that names it (or, when the runner
// repeats them under GHSIM_STRICT=refuse, count it and go on; so every case also returns cleanly).
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim_selftest.h"

static void overlap_tail(struct fixture *f)
{
    char *p = map_pages(8);
    OK(wrap(f, NULL, p, 4 * PAGE));
    CHECK(wrap(f, NULL, p + 3 * PAGE, 4 * PAGE) != ZE_RESULT_SUCCESS);
}

static void overlap_cover(struct fixture *f)
{
    char *p = map_pages(8);
    OK(wrap(f, NULL, p + 2 * PAGE, PAGE));
    CHECK(wrap(f, NULL, p, 8 * PAGE) != ZE_RESULT_SUCCESS);
}

static void overlap_older(struct fixture *f)
{
    char *p = map_pages(8);
    ze_result_t (*import)(void *, void *, size_t);
    void *address;
    OK(zeDriverGetExtensionFunctionAddress(f->driver, "zexDriverImportExternalPointer", &address));
    memcpy(&import, &address, sizeof address);
    OK(import(raw_driver(f), p, 4 * PAGE));
    CHECK(wrap(f, NULL, p, 4 * PAGE) != ZE_RESULT_SUCCESS);
}

static void misaligned_pointer(struct fixture *f)
{
    char *p = map_pages(4);
    CHECK(wrap(f, NULL, p + 64, PAGE) != ZE_RESULT_SUCCESS);
}

static void misaligned_size(struct fixture *f)
{
    CHECK(wrap(f, NULL, map_pages(4), PAGE + 1) != ZE_RESULT_SUCCESS);
}

static void two_neighbours(struct fixture *f, char **p)
{
    *p = map_pages(8);
    OK(wrap(f, NULL, *p, 4 * PAGE));
    OK(wrap(f, NULL, *p + 4 * PAGE, 4 * PAGE));
}

static void straddle_copy(struct fixture *f)
{
    char *p, *q = map_pages(4);
    two_neighbours(f, &p);
    OK(wrap(f, NULL, q, 4 * PAGE));
    CHECK(zeCommandListAppendMemoryCopy(f->list, q, p + 3 * PAGE, 2 * PAGE, NULL, 0, NULL) != ZE_RESULT_SUCCESS);
}

static void straddle_fill(struct fixture *f)
{
    char *p, zero = 0;
    two_neighbours(f, &p);
    CHECK(zeCommandListAppendMemoryFill(f->list, p + 3 * PAGE, &zero, 1, 2 * PAGE, NULL, 0, NULL) != ZE_RESULT_SUCCESS);
}

static void straddle_region(struct fixture *f)
{
    char *p, *q = map_pages(8);
    two_neighbours(f, &p);
    OK(wrap(f, NULL, q, 8 * PAGE));
    const ze_copy_region_t region = {0, 0, 0, 16, 5, 1}; // five rows, a page apart
    CHECK(zeCommandListAppendMemoryCopyRegion(f->list, p, &region, PAGE, 0, q, &region, PAGE, 0, NULL, 0, NULL) !=
          ZE_RESULT_SUCCESS);
}

static void straddle_end(struct fixture *f)
{
    char *p = map_pages(8), zero = 0;
    OK(wrap(f, NULL, p, 4 * PAGE));
    CHECK(zeCommandListAppendMemoryFill(f->list, p, &zero, 1, 4 * PAGE + 1, NULL, 0, NULL) != ZE_RESULT_SUCCESS);
}

static void illegal_address(struct fixture *f)
{
    CHECK(launch1(f, "add1_u8", 16, map_pages(1)) != ZE_RESULT_SUCCESS);
}

static void illegal_other_context(struct fixture *f)
{
    char *p = map_pages(1);
    ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
    ze_context_handle_t other;
    OK(zeContextCreate(f->driver, &desc, &other));
    OK(wrap(f, other, p, PAGE));
    CHECK(launch1(f, "add1_u8", 16, p) != ZE_RESULT_SUCCESS);
}

static void illegal_after_interior_free(struct fixture *f)
{
    char *p = map_pages(4);
    OK(wrap(f, NULL, p, 4 * PAGE));
    OK(zeMemFree(f->context, p + 2 * PAGE + 8)); // frees the whole import
    CHECK(stats_of(f).imports_live == 0 && stats_of(f).interior_frees == 1);
    CHECK(launch1(f, "add1_u8", 16, p) != ZE_RESULT_SUCCESS);
}

static void illegal_deferred(struct fixture *f)
{
    char *p = map_pages(2);
    ze_command_list_desc_t list_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
    ze_command_list_handle_t list;
    ze_command_queue_handle_t queue;
    OK(wrap(f, NULL, p, 2 * PAGE));
    OK(zeCommandListCreate(f->context, f->devices[0], &list_desc, &list));
    OK(zeCommandQueueCreate(f->context, f->devices[0], &queue_desc, &queue));
    OK(zeCommandListAppendMemoryCopy(list, p, p + PAGE, PAGE, NULL, 0, NULL));
    OK(zeCommandListClose(list));
    OK(zeMemFree(f->context, p));
    CHECK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL) != ZE_RESULT_SUCCESS);
}

static void not_resident_evicted(struct fixture *f)
{
    char *p = map_pages(2);
    OK(wrap(f, NULL, p, 2 * PAGE));
    OK(launch1(f, "add1_u8", 16, p));
    OK(zeContextEvictMemory(f->context, f->devices[0], p + PAGE, 1));
    CHECK(launch1(f, "add1_u8", 16, p) != ZE_RESULT_SUCCESS);
}

static void not_resident_explicit(struct fixture *f)
{
    char *p;
    two_neighbours(f, &p);
    OK(zeContextMakeMemoryResident(f->context, f->devices[0], p, 8 * PAGE)); // only the first import
    CHECK(stats_of(f).residency_partial == 1);
    OK(launch1(f, "add1_u8", 16, p));
    CHECK(launch1(f, "add1_u8", 16, p + 4 * PAGE) != ZE_RESULT_SUCCESS);
}

static void wrong_device(struct fixture *f)
{
    char *p = map_pages(1);
    CHECK(f->device_count == 2);
    OK(wrap(f, NULL, p, PAGE));
    OK(launch1(f, "add1_u8", 16, p));
    ze_command_list_handle_t second = immediate(f, f->devices[1]);
    CHECK(launch(f, second, "add1_u8", 16, &p, sizeof p, NULL, 0, NULL, 0) != ZE_RESULT_SUCCESS);
}

static void page_dontneed_kernel(struct fixture *f)
{
    char *p = map_pages(16);
    OK(wrap(f, NULL, p, 16 * PAGE));
    CHECK(madvise(p + 5 * PAGE, PAGE, MADV_DONTNEED) == 0);
    (void)launch1(f, "add1_u8", 16, p);
}

static void page_dontneed_touched(struct fixture *f)
{
    char *p = map_pages(16);
    OK(wrap(f, NULL, p, 16 * PAGE));
    CHECK(madvise(p, 16 * PAGE, MADV_DONTNEED) == 0);
    memset(p, 1, 16 * PAGE); // present again, other frames
    (void)zeMemFree(f->context, p);
}

static void page_unmapped(struct fixture *f)
{
    char *p = map_pages(16);
    OK(wrap(f, NULL, p, 16 * PAGE));
    CHECK(munmap(p + 15 * PAGE, PAGE) == 0);
    (void)zeMemFree(f->context, p);
}

static void page_mapped_over(struct fixture *f)
{
    char *p = map_pages(16), zero = 0;
    OK(wrap(f, NULL, p, 16 * PAGE));
    if (stats_of(f).imports_pinned == 0) { // the new page would often get the old frame
        printf("skip: no io_uring to pin pages with\n");
        fflush(stdout);
        _Exit(SKIP);
    }
    CHECK(mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0) == p);
    (void)zeCommandListAppendMemoryFill(f->list, p, &zero, 1, PAGE, NULL, 0, NULL);
}

static void driver_malloc_in_import(struct fixture *f)
{
    char *p = map_pages(16);
    ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    void *out;
    OK(wrap(f, NULL, p, 16 * PAGE));
    serve_driver_from(p + 4 * PAGE, 4 * PAGE);
    (void)zeMemAllocDevice(f->context, &desc, 2 * PAGE, 64, f->devices[0], &out);
}

static void import_of_driver_memory(struct fixture *f)
{
    char *p = map_pages(16);
    ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
    void *out;
    serve_driver_from(p + 4 * PAGE, 4 * PAGE);
    OK(zeMemAllocDevice(f->context, &desc, 2 * PAGE, 64, f->devices[0], &out));
    CHECK(out == p + 4 * PAGE);
    CHECK(wrap(f, NULL, p, 16 * PAGE) != ZE_RESULT_SUCCESS);
}

static void bad_handle(struct fixture *f)
{
    void *base;
    size_t size;
    ze_context_handle_t not_a_context = (ze_context_handle_t)(void *)f->devices[0];
    CHECK(zeMemGetAddressRange(not_a_context, map_pages(1), &base, &size) != ZE_RESULT_SUCCESS);
}

static void lost_event(struct fixture *f)
{
    ze_event_handle_t event = make_event(f);
    CHECK(zeCommandListAppendWaitOnEvents(f->list, 1, &event) != ZE_RESULT_SUCCESS);
}

static void plain_copy_overlap(struct fixture *f)
{
    char *p = map_pages(8), *q = map_pages(8);
    OK(wrap(f, NULL, p + 4 * PAGE, 2 * PAGE));
    OK(zeCommandListAppendMemoryCopy(f->list, q, p, 4 * PAGE, NULL, 0, NULL)); // both plain
    CHECK(zeCommandListAppendMemoryCopy(f->list, q, p, 5 * PAGE, NULL, 0, NULL) != ZE_RESULT_SUCCESS);
}

// The call is made in a fork child of this process.
static void call_in_child(struct fixture *f)
{
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)zeMemFree(f->context, map_pages(1));
        _exit(5);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static ze_result_t (*late_free)(ze_context_handle_t, void *);
static ze_context_handle_t late_context;

// The program's own destructors run after all exit handlers.
__attribute__((destructor)) static void free_late(void)
{
    if (late_free) (void)late_free(late_context, map_pages(1));
}

// In a process that ends while the test goes on to look at how it ended.
static void late_call(struct fixture *f)
{
    ze_result_t (*get)(uint32_t, void *);
    void *table[64] = {NULL};
    *(void **)(void *)&get = dlsym(f->sim, "zeGetMemProcAddrTable");
    CHECK(get);
    OK(get(0x10000, table));
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        *(void **)(void *)&late_free = table[3]; // pfnFree: not through a loader, which may be gone by then
        late_context = f->context;
        exit(5);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

#define STRICT(name, env, scope, reason) {#name, name, env, scope, reason, 0, NULL}
const struct test_case strict_cases[] = {
    STRICT(overlap_tail, "", DRIVER_SCOPE, GHSIM_OVERLAP),
    STRICT(overlap_cover, "", DRIVER_SCOPE, GHSIM_OVERLAP),
    STRICT(overlap_older, "", ANY_SCOPE, GHSIM_OVERLAP),
    STRICT(misaligned_pointer, "", ANY_SCOPE, GHSIM_MISALIGNED),
    STRICT(misaligned_size, "", ANY_SCOPE, GHSIM_MISALIGNED),
    STRICT(straddle_copy, "", ANY_SCOPE, GHSIM_STRADDLE),
    STRICT(straddle_fill, "", ANY_SCOPE, GHSIM_STRADDLE),
    STRICT(straddle_region, "", ANY_SCOPE, GHSIM_STRADDLE),
    STRICT(straddle_end, "", ANY_SCOPE, GHSIM_STRADDLE),
    STRICT(illegal_address, "", ANY_SCOPE, GHSIM_ILLEGAL_ADDRESS),
    STRICT(illegal_other_context, "", CONTEXT_SCOPE, GHSIM_ILLEGAL_ADDRESS),
    STRICT(illegal_after_interior_free, "", ANY_SCOPE, GHSIM_ILLEGAL_ADDRESS),
    STRICT(illegal_deferred, "", ANY_SCOPE, GHSIM_ILLEGAL_ADDRESS),
    STRICT(not_resident_evicted, "", ANY_SCOPE, GHSIM_NOT_RESIDENT),
    STRICT(not_resident_explicit, "GHSIM_EXPLICIT_RESIDENCY=1", ANY_SCOPE, GHSIM_NOT_RESIDENT),
    STRICT(wrong_device, "GHSIM_DEVICES=2 GHSIM_FIRST_DEVICE_ONLY=1", ANY_SCOPE, GHSIM_WRONG_DEVICE),
    STRICT(page_dontneed_kernel, "", ANY_SCOPE, GHSIM_PAGE_MOVED),
    STRICT(page_dontneed_touched, "", ANY_SCOPE, GHSIM_PAGE_MOVED),
    STRICT(page_unmapped, "", ANY_SCOPE, GHSIM_PAGE_MOVED),
    STRICT(page_mapped_over, "", ANY_SCOPE, GHSIM_PAGE_MOVED),
    STRICT(driver_malloc_in_import, "", ANY_SCOPE, GHSIM_DRIVER_MEMORY),
    STRICT(import_of_driver_memory, "", ANY_SCOPE, GHSIM_DRIVER_MEMORY),
    STRICT(bad_handle, "", ANY_SCOPE, GHSIM_BAD_HANDLE),
    STRICT(lost_event, "GHSIM_WAIT_MS=50", ANY_SCOPE, GHSIM_LOST_EVENT),
    STRICT(plain_copy_overlap, "GHSIM_PLAIN_COPY=1", ANY_SCOPE, GHSIM_OVERLAP),
    {"late_call", late_call, "GHSIM_LATE=abort", ANY_SCOPE, -1, 0, "ghsim: ABORT: call after exit: zeMemFree"},
    {"call_in_child", call_in_child, "GHSIM_CHILD=abort", ANY_SCOPE, -1, 0, "ghsim: ABORT: call in child: zeMemFree"},
    {NULL, NULL, NULL, ANY_SCOPE, -1, 0, NULL},
};
