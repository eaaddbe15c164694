// SPDX-License-Identifier: MIT
//
// Memory that goes away, or seems to, under a wrap. Run with GHSIM_STRICT=refuse where the driver
// must be asked about memory that is gone.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"

#define P(n) ((n) * WT_PAGE)

static bool has_range(const void *pointer) {
    void *base = NULL;
    size_t size = 0;
    return zeMemGetAddressRange(case_unit->context, pointer, &base, &size) == ZE_RESULT_SUCCESS && base != NULL;
}

static bool is_fillable(void *pointer, size_t size) {
    const unsigned char zero = 0;
    return zeCommandListAppendMemoryFill(case_queue.list, pointer, &zero, 1, size, NULL, 0, NULL) == ZE_RESULT_SUCCESS;
}

static void must_be_gone(unsigned char *pointer, size_t size) {
    CHECK(wt_type(case_unit, pointer) == GONE, "type");
    CHECK(!has_range(pointer), "range");
    CHECK(zeContextMakeMemoryResident(case_unit->context, case_unit->device, pointer, size) != ZE_RESULT_SUCCESS, "resident");
    CHECK(!is_fillable(pointer, size), "fill");
}

void case_stale(void) {
    unsigned char *m = case_pages(4);
    case_wrap(m, P(4));
    munmap(m, P(4));
    CHECK(case_imports() == 0, "released before the memory went");
    must_be_gone(m, P(4));
    // Somebody else's memory now: still nothing of that wrap's.
    CHECK(mmap(m, P(4), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == m, "again");
    memset(m, 3, P(4));
    must_be_gone(m, P(4));
    CHECK(m[0] == 3 && m[P(4) - 1] == 3, "untouched");
    case_unwrap(m); // ends the old wrap
    CHECK(wt_unwrap(case_unit, m) != ZE_RESULT_SUCCESS, "freed twice");
    // Mapped over, moved away, and part of it only.
    case_wrap(m, P(2));
    CHECK(mmap(m, P(4), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == m, "over it");
    must_be_gone(m, P(2));
    case_unwrap(m);
    case_wrap(m, P(4));
    unsigned char *there = mremap(m, P(4), P(64), MREMAP_MAYMOVE | MREMAP_FIXED, case_pages(64));
    CHECK(there != MAP_FAILED && there != m, "moved");
    must_be_gone(m, P(4));
    CHECK(wt_type(case_unit, there) == GONE, "nobody wrapped it there");
    case_unwrap(m);
    munmap(there, P(64));
}

// A stale wrap and a new, smaller one share their pointer: who frees the old one frees no other.
void case_stale_and_new(void) {
    unsigned char *m = case_pages(4);
    case_wrap(m, P(4));
    CHECK(mmap(m, P(4), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == m, "over it");
    case_wrap(m, P(1));
    void *base;
    size_t size = 0;
    CHECK(zeMemGetAddressRange(case_unit->context, m, &base, &size) == ZE_RESULT_SUCCESS && size == P(1),
          "the new one answers, not %zu", size);
    case_unwrap(m);
    case_must_add1(m, P(1));
    case_unwrap(m);
    CHECK(wt_type(case_unit, m) == GONE, "both freed");
    munmap(m, P(4));
}

void case_failed_calls(void) {
    unsigned char *m = case_pages(4);
    case_wrap(m, P(4));
    CHECK(munmap(m + 1, P(1)) == -1 && munmap(m, 0) == -1, "EINVAL");
    CHECK(mmap(m, P(1), PROT_READ, MAP_PRIVATE | MAP_FIXED, 9999, 0) == MAP_FAILED && errno == EBADF, "EBADF");
    CHECK(mmap(m + 1, P(1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED, "EINVAL");
    CHECK(mremap(m, P(4), (size_t)1 << 60, MREMAP_MAYMOVE) == MAP_FAILED, "ENOMEM");
    CHECK(mremap(m + 1, P(1), P(2), MREMAP_MAYMOVE) == MAP_FAILED, "EINVAL");
    CHECK(shmdt(m) == -1, "no segment");
    CHECK(madvise(m + 1, P(1), MADV_DONTNEED) == -1, "EINVAL");
    CHECK(case_imports() == 1, "as it was");
    case_must_add1(m, P(4));
    case_unwrap(m);
    munmap(m, P(4));
}

// Somebody may map something into the place behind it just then: once more, elsewhere.
void case_grows_in_place(void) {
    for (int attempt = 0;; attempt++) {
        unsigned char *m = case_pages(8);
        case_wrap(m, P(4));
        munmap(m + P(4), P(4));
        uint64_t before = case_imports_ever();
        unsigned char *same = mremap(m, P(4), P(6), MREMAP_MAYMOVE);
        CHECK(same != MAP_FAILED && (same == m || attempt < 100), "somebody is always behind it");
        if (same != m) {
            case_unwrap(m);
            munmap(same, P(6));
            continue;
        }
        CHECK(case_imports_ever() == before, "nothing went away");
        case_must_add1(m, P(4));
        CHECK(mremap(m, P(6), P(3), 0) == m, "shrunk");
        CHECK(wt_type(case_unit, m + P(3)) == GONE && wt_type(case_unit, m) == KEEP, "only the end went");
        case_unwrap(m);
        munmap(m, P(3));
        return;
    }
}

// The kernel counts in pages: what the last bytes of a page are left off for takes no page away,
// and never the next mapping's.
void case_uneven_sizes(void) {
    unsigned char *m = case_pages(6);
    case_wrap(m, P(6));
    uint64_t before = case_imports_ever();
    CHECK(mremap(m, P(5), P(4) + 1, 0) == m && mremap(m, P(4) + 2, P(4) + 1, 0) == m, "in place");
    CHECK(wt_type(case_unit, m + P(5)) == KEEP && wt_type(case_unit, m + P(4)) == KEEP, "nothing went away");
    CHECK(case_imports_ever() == before, "nothing went away");
    case_must_add1(m, P(6));
    CHECK(mremap(m, P(6), P(3) + 1, 0) == m, "shrunk");
    CHECK(wt_type(case_unit, m + P(4)) == GONE && wt_type(case_unit, m + P(4) - 1) == KEEP, "only the end went");
    case_unwrap(m);
    munmap(m, P(4));
}

// The CPU's and the GPU's view stay the same, without a driver call.
void case_advice(void) {
    unsigned char *m = case_pages(8);
    case_wrap(m + P(1), P(3));
    case_wrap(m + P(5), P(1));
    uint64_t before = case_imports_ever();
    CHECK(madvise(m, P(8), MADV_DONTNEED) == 0, "DONTNEED");
    for (size_t i = 0; i < P(8); i++)
        CHECK(m[i] == 0, "byte %zu", i);
    case_must_add1(m + P(1), P(3));
    memset(m, 9, P(8));
    CHECK(madvise(m, P(8), MADV_FREE) == 0, "FREE");
    memset(m, 8, P(8));
    case_must_add1(m + P(1), P(3));
    CHECK(case_imports_ever() == before && case_imports() == 2, "the pages stayed");
    CHECK(madvise(m, P(3) + 5, MADV_DONTNEED) == 0 && m[P(4) - 1] == 0 && m[P(4)] == 8, "to the end of the page");
    case_unwrap(m + P(1));
    case_unwrap(m + P(5));
    munmap(m, P(8));
}

static int make_file(void) {
    unsigned char page[WT_PAGE];
    int file = memfd_create("case", MFD_CLOEXEC);
    for (int i = 0; i < 4; i++) {
        memset(page, 'a' + i, sizeof page);
        CHECK(write(file, page, sizeof page) == (ssize_t)sizeof page, "file");
    }
    return file;
}

void case_advice_file(void) {
    int file = make_file();
    unsigned char *m = mmap(NULL, P(4), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    case_wrap(m, P(4));
    case_must_add1(m, P(4));
    CHECK(madvise(m, P(2), MADV_DONTNEED) == 0 && m[0] == 'a' && m[P(1)] == 'b', "the file's bytes again");
    CHECK(m[P(2)] == 'c' + 1, "the others are ours");
    case_must_add1(m, P(4));
    case_unwrap(m);
    munmap(m, P(4));
    m = mmap(NULL, P(4), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    case_wrap(m, P(4));
    case_must_add1(m, P(4));
    CHECK(madvise(m, P(4), MADV_DONTNEED) == 0 && m[0] == 'a' + 1, "the file has them");
    case_must_add1(m, P(4));
    CHECK(madvise(m, P(1), MADV_REMOVE) == 0 && m[0] == 0, "a hole");
    case_must_add1(m, P(4));
    case_unwrap(m);
    munmap(m, P(4));
    close(file);
}

void case_break(void) {
    unsigned char *start = sbrk(0);
    CHECK(sbrk((intptr_t)P(5)) != (void *)-1, "sbrk");
    unsigned char *m = (unsigned char *)(((uintptr_t)start + WT_PAGE - 1) & ~(WT_PAGE - 1));
    memset(m, 1, P(4));
    case_wrap(m, P(4));
    sbrk(-(intptr_t)(P(2) + 100)); // ends inside a page, which stays
    unsigned char *end = sbrk(0);
    unsigned char *kept = (unsigned char *)(((uintptr_t)end + WT_PAGE - 1) & ~(WT_PAGE - 1));
    CHECK(wt_type(case_unit, kept) == GONE, "what is gone");
    CHECK(wt_type(case_unit, kept - 1) == KEEP, "the page of the new end");
    case_must_add1(m, (size_t)(kept - m));
    case_unwrap(m);
    CHECK(brk(start) == 0, "brk");
    // A break that the kernel refuses, or takes for a question, takes nothing away.
    static unsigned char fixed[P(3)];
    case_wrap(fixed, sizeof fixed);
    CHECK(brk(NULL) == 0 && brk((void *)P(16)) == 0 && sbrk(0) == start, "as it was");
    case_must_add1(fixed, sizeof fixed);
    case_unwrap(fixed);
}

static void *wrap_own_stack(void *out) {
    unsigned char bytes[30000];
    memset(bytes, 1, sizeof bytes);
    const struct wt_range range = wt_rounded(bytes, sizeof bytes);
    case_wrap(range.start, range.size_bytes);
    case_must_add1(bytes, sizeof bytes);
    *(unsigned char **)out = range.start;
    return NULL;
}

// The next thread gets the same stack, and wraps it again; the first one's wrap is none of that.
void case_stack(void) {
    unsigned char *first = NULL;
    unsigned char *second = NULL;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wrap_own_stack, &first) == 0 && pthread_join(thread, NULL) == 0, "thread");
    CHECK(case_imports() == 0, "released when the thread ended");
    must_be_gone(first, P(7));
    CHECK(pthread_create(&thread, NULL, wrap_own_stack, &second) == 0 && pthread_join(thread, NULL) == 0, "thread");
    CHECK(case_imports() == 0, "released when the thread ended");
    case_unwrap(first);
    case_unwrap(second);
}

// Unmapped by what we do not see, as glibc does; found out when the place is mapped again.
void case_unseen(void) {
    unsigned char *m = case_pages(4);
    case_wrap(m, P(4));
    CHECK(syscall(SYS_munmap, m, P(4)) == 0, "munmap");
    unsigned char *n = mmap(m, P(4), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(n == m, "the place is taken");
    memset(n, 4, P(4));
    must_be_gone(m, P(4));
    case_wrap(n, P(2));
    case_must_add1(n, P(2));
    case_unwrap(m);
    case_must_add1(n, P(2));
    case_unwrap(n);
    munmap(n, P(4));
}

// Two attachments of one segment side by side: only the first one goes.
void case_segment(void) {
    int id = shmget(IPC_PRIVATE, P(2), IPC_CREAT | 0600);
    unsigned char *place = mmap(NULL, P(6), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(place, P(6));
    unsigned char *one = shmat(id, place, 0);
    unsigned char *two = shmat(id, place + P(2), 0);
    shmctl(id, IPC_RMID, NULL);
    CHECK(one == place && two == place + P(2), "segments");
    case_wrap(one, P(2));
    case_wrap(two, P(2));
    case_must_add1(two, P(2));
    CHECK(shmdt(one) == 0, "shmdt");
    CHECK(wt_type(case_unit, one) == GONE, "gone");
    case_must_add1(two, P(2));
    case_unwrap(one);
    case_unwrap(two);
    CHECK(shmdt(two) == 0, "shmdt");
}
