// SPDX-License-Identifier: MIT
//
// Forks while memory is imported, file pages that are mapped anew, advice of newer kernels: the
// pages stay, whatever /proc says about them for a moment.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"

#define P(n) ((n) * WT_PAGE)

// Handlers that are registered before the driver's: the first runs after the driver's before the
// kernel's fork, the second before the driver's after it. Another thread could do the same just then.
static void (*before_kernel_forks)(void);
static void (*after_kernel_forked)(void);

static void before(void) {
    if (before_kernel_forks != NULL)
        before_kernel_forks();
}

static void after(void) {
    if (after_kernel_forked != NULL)
        after_kernel_forked();
}

__attribute__((constructor)) static void register_early(void) {
    pthread_atfork(before, after, NULL);
}

static unsigned char *pages[WT_UNITS_MAX];

static void import_for_reading(void) {
    for (unsigned i = 0; i < wt_unit_count; i++)
        CHECK(wt_wrap(&wt_units[i], pages[i], P(2), true) == ZE_RESULT_SUCCESS, "unit %u", i);
}

// The child has the pages now, so what is written to is copied, unless a driver has pinned it.
static void write_and_release(void) {
    for (unsigned i = 0; i < wt_unit_count; i++) {
        memset(pages[i], 7, P(1));
        CHECK(wt_unwrap(&wt_units[i], pages[i]) == ZE_RESULT_SUCCESS, "unit %u", i);
    }
}

static void fork_and_wait(void) {
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0, "pipe");
    pid_t pid = fork();
    if (pid == 0) { // stays until the parent is through
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    close(ends[1]);
    int status = -1;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child: 0x%x", (unsigned)status);
}

// A wrap for reading, made between a driver's handler and the kernel's fork, and freed before the
// fork is over; one that is there before and after.
void case_fork_handlers(void) {
    for (unsigned i = 0; i < wt_unit_count; i++)
        pages[i] = case_pages(2);
    before_kernel_forks = import_for_reading;
    after_kernel_forked = write_and_release;
    fork_and_wait();
    after_kernel_forked = NULL;
    fork_and_wait();
    before_kernel_forks = NULL;
    fork_and_wait();
    write_and_release();
    import_for_reading();
    after_kernel_forked = write_and_release;
    fork_and_wait();
    after_kernel_forked = NULL;
    for (unsigned i = 0; i < wt_unit_count; i++)
        munmap(pages[i], P(2));
}

static int open_file(bool on_disk) {
    int file = on_disk ? open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : memfd_create("case", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, P(4)) == 0, "file");
    return file;
}

// MADV_DONTNEED takes shared pages out of the page table; they stay the file's. The driver goes on
// with them before the program has touched them again.
void case_advice_untouched(void) {
    for (int on_disk = 0; on_disk < 2; on_disk++) {
        int file = open_file(on_disk != 0);
        unsigned char *m = mmap(NULL, P(4), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        CHECK(m != MAP_FAILED, "mmap");
        memset(m, 1, P(4));
        case_wrap(m, P(4));
        CHECK(madvise(m, P(3), MADV_DONTNEED) == 0, "DONTNEED");
        CHECK(wt_add1(&case_queue, m, P(4)) == ZE_RESULT_SUCCESS && m[0] == 2 && m[P(4) - 1] == 2, "used untouched");
        CHECK(madvise(m + P(1), P(2), MADV_DONTNEED) == 0, "DONTNEED");
        case_unwrap(m); // untouched
        CHECK(m[P(1)] == 2 && m[P(3) - 1] == 2, "the file has them");
        munmap(m, P(4));
        close(file);
    }
}

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif

// Newer advice that drops pages. A kernel that does not know it refuses, and nothing changes.
void case_advice_newer(void) {
    unsigned char *m = case_pages(4);
    case_wrap(m, P(4));
    unsigned char *heap = aligned_alloc(WT_PAGE, P(4));
    memset(heap, 3, P(4));
    if (madvise(m, P(2), MADV_DONTNEED_LOCKED) == 0) {
        CHECK(m[0] == 0 && m[P(2) - 1] == 0 && m[P(2)] == 3, "dropped");
        CHECK(madvise(heap, P(2), MADV_DONTNEED_LOCKED) == 0 && heap[0] == 0 && heap[P(2)] == 3, "heap");
    }
    case_must_add1(m, P(4));
    case_must_add1(heap, P(4));
    CHECK(madvise(heap, P(1), MADV_GUARD_INSTALL) == -1, "the heap stays");
    case_must_add1(heap, P(4));
    if (madvise(m, P(1), MADV_GUARD_INSTALL) == 0) {
        CHECK(wt_type(case_unit, m) == GONE, "nobody may use it now");
        CHECK(madvise(m, P(1), MADV_GUARD_REMOVE) == 0 && m[0] == 0, "a new page");
    } else {
        case_must_add1(m, P(4));
    }
    case_unwrap(m);
    munmap(m, P(4));
    free(heap);
}
