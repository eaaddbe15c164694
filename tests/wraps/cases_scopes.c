// SPDX-License-Identifier: MIT
//
// Several contexts, several drivers, wraps for reading only, the older import functions.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cases.h"

#define P(n) ((n) * WT_PAGE)

static void not_with_these(bool wanted, const char *what) {
    if (wanted)
        return;
    printf("skip: needs %s\n", what);
    fflush(stdout);
    _exit(77);
}

// Contexts of one driver: what one frees, or takes with it when it goes, is its own.
void case_two_contexts(void) {
    const struct wt_unit *other = &wt_units[1];
    ze_context_desc_t desc = { .stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC };
    struct wt_unit third = *case_unit;
    CHECK(zeContextCreate(third.driver, &desc, &third.context) == ZE_RESULT_SUCCESS, "context");
    unsigned char *m = case_pages(4);
    CHECK(wt_wrap(&third, m, P(4), false) == ZE_RESULT_SUCCESS, "third");
    CHECK(wt_wrap(other, m, P(2), false) == ZE_RESULT_SUCCESS, "other");
    case_wrap(m, P(4));
    CHECK(wt_unwrap(&third, m) == ZE_RESULT_SUCCESS, "its own, not the smallest");
    CHECK(zeContextDestroy(third.context) == ZE_RESULT_SUCCESS, "destroy");
    CHECK(wt_type(other, m + P(1)) == KEEP && wt_type(case_unit, m + P(3)) == KEEP, "the others' wraps");
    case_must_add1(m, P(4));
    // One that goes with live wraps takes them with it, and no more.
    CHECK(zeContextCreate(third.driver, &desc, &third.context) == ZE_RESULT_SUCCESS, "context");
    unsigned char *n = case_pages(2);
    CHECK(wt_wrap(&third, n, P(2), false) == ZE_RESULT_SUCCESS && wt_wrap(&third, m, P(1), false) == ZE_RESULT_SUCCESS,
          "wraps");
    CHECK(zeContextDestroy(third.context) == ZE_RESULT_SUCCESS, "destroy");
    CHECK(wt_type(case_unit, n) == GONE && wt_type(case_unit, m) == KEEP, "gone with it");
    CHECK(wt_unwrap(other, m) == ZE_RESULT_SUCCESS, "other");
    case_must_add1(m, P(4));
    case_unwrap(m);
    munmap(m, P(4));
    munmap(n, P(2));
}

void case_two_drivers(void) {
    not_with_these(wt_driver_count == 2, "two drivers");
    const struct wt_unit *other = &wt_units[2];
    CHECK(other->driver_index == 1, "units");
    unsigned char *m = case_pages(4);
    case_wrap(m, P(4));
    CHECK(wt_type(other, m) == GONE, "that driver has not got it");
    CHECK(wt_wrap(other, m + P(1), P(2), false) == ZE_RESULT_SUCCESS && case_imports() == 2, "each its own");
    CHECK(wt_type(other, m + P(1)) == KEEP && wt_type(other, m) == GONE, "exactly");
    munmap(m + P(3), P(1)); // cuts the one and does not touch the other
    CHECK(wt_type(case_unit, m) == KEEP && wt_type(other, m + P(2)) == KEEP, "rests");
    munmap(m + P(2), P(1));
    CHECK(wt_type(case_unit, m + P(2)) == GONE && wt_type(other, m + P(2)) == GONE, "in both");
    CHECK(wt_unwrap(other, m + P(1)) == ZE_RESULT_SUCCESS, "other");
    case_must_add1(m, P(2));
    case_unwrap(m);
    munmap(m, P(2));
}

void case_context_scope(void) {
    unsigned char *m = case_pages(2);
    unsigned char *heap = malloc(10000);
    case_wrap(m, P(2));
    not_with_these(wt_type(&wt_units[1], m) == GONE, "a driver whose imports are a context's");
    CHECK(wt_type(&wt_units[1], heap) == KEEP && wt_type(case_unit, heap) == KEEP, "the heap is everywhere");
    CHECK(wt_unwrap(&wt_units[1], m) != ZE_RESULT_SUCCESS, "not wrapped there");
    CHECK(wt_wrap(&wt_units[1], m + P(1), P(1), false) == ZE_RESULT_SUCCESS && case_imports() == 2, "wrapped there");
    // A copy is cut at the borders of its own context's imports.
    const unsigned char zero = 0;
    CHECK(zeCommandListAppendMemoryFill(case_queue.list, m, &zero, 1, P(2), NULL, 0, NULL) == ZE_RESULT_SUCCESS, "fill");
    struct wt_queue queue;
    wt_queue_open(&queue, &wt_units[1]);
    CHECK(zeCommandListAppendMemoryCopy(queue.list, m + P(1), heap, P(1), NULL, 0, NULL) == ZE_RESULT_SUCCESS, "copy");
    wt_queue_close(&queue);
    case_unwrap(m);
    CHECK(wt_unwrap(&wt_units[1], m + P(1)) == ZE_RESULT_SUCCESS, "unwrap");
    munmap(m, P(2));
    free(heap);
}

void case_read_only(void) {
    unsigned char *m = mmap(NULL, P(4), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(wt_wrap(case_unit, m, P(4), true) == ZE_RESULT_SUCCESS, "of pages that are not there yet");
    memset(m, 5, P(4)); // must not change which pages they are
    unsigned char *heap = malloc(P(4));
    CHECK(zeCommandListAppendMemoryCopy(case_queue.list, heap, m, P(4), NULL, 0, NULL) == ZE_RESULT_SUCCESS &&
              memcmp(heap, m, P(4)) == 0, "copy from it");
    case_wrap(m + P(1), P(1)); // writable from now on
    case_must_add1(m + P(1), P(1));
    case_unwrap(m + P(1));
    case_unwrap(m);
    free(heap);
    munmap(m, P(4));
}

// Also without the flag: the program itself could not write there either.
void case_read_only_file(void) {
    unsigned char page[WT_PAGE];
    int file = memfd_create("case", MFD_CLOEXEC);
    for (int i = 0; i < 4; i++) {
        memset(page, 'a' + i, sizeof page);
        CHECK(write(file, page, sizeof page) == (ssize_t)sizeof page, "file");
    }
    unsigned char *heap = malloc(P(4));
    for (int round = 0; round < 2; round++) {
        unsigned char *m = mmap(NULL, P(5), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mmap(m, P(4), PROT_READ, (round == 0 ? MAP_PRIVATE : MAP_SHARED) | MAP_FIXED, file, 0) == m, "file");
        CHECK(wt_wrap(case_unit, m, P(2), true) == ZE_RESULT_SUCCESS, "with the flag");
        case_wrap(m + P(1), P(3));
        case_wrap(m + P(2), P(3)); // and a page of another kind behind it
        CHECK(zeCommandListAppendMemoryCopy(case_queue.list, heap, m, P(4), NULL, 0, NULL) == ZE_RESULT_SUCCESS &&
                  memcmp(heap, m, P(4)) == 0 && heap[P(3)] == 'd', "copy from it");
        case_must_add1(m + P(4), P(1));
        case_unwrap(m);
        case_unwrap(m + P(1));
        case_unwrap(m + P(2));
        munmap(m, P(5));
    }
    free(heap);
    close(file);
}

typedef ze_result_t (*import_fn)(ze_driver_handle_t, void *, size_t);
typedef ze_result_t (*release_fn)(ze_driver_handle_t, void *);
typedef ze_result_t (*base_fn)(ze_driver_handle_t, void *, void **);
static import_fn older_import;
static release_fn older_release;
static base_fn older_base;
static ze_driver_handle_t older_driver;

// These functions are the driver's own: with two drivers they must not be given the loader's
// handle. The loader translates it (zelLoaderTranslateHandle; 0 means a driver's).
static ze_driver_handle_t own_handle(ze_driver_handle_t handle) {
    ze_result_t (*translate)(int, void *, void **) =
        (ze_result_t(*)(int, void *, void **))dlsym(RTLD_DEFAULT, "zelLoaderTranslateHandle");
    void *own = handle;
    if (wt_driver_count > 1)
        not_with_these(translate != NULL && translate(0, handle, &own) == ZE_RESULT_SUCCESS,
                       "a loader that translates handles");
    return own;
}

static void find_older(void) {
    ze_driver_handle_t driver = case_unit->driver;
    void *found[3] = { NULL };
    static const char *const names[] = { "zexDriverImportExternalPointer", "zexDriverReleaseImportedPointer",
                                         "zexDriverGetHostPointerBaseAddress" };
    for (int i = 0; i < 3; i++)
        zeDriverGetExtensionFunctionAddress(driver, names[i], &found[i]);
    not_with_these(found[0] != NULL && found[1] != NULL && found[2] != NULL, "the older import functions");
    older_import = (import_fn)found[0];
    older_release = (release_fn)found[1];
    older_base = (base_fn)found[2];
    older_driver = own_handle(driver);
}

void case_older(void) {
    find_older();
    ze_driver_handle_t driver = older_driver;
    unsigned char *m = case_pages(4);
    unsigned char *heap = malloc(P(4));
    void *base = NULL;
    CHECK(older_import(driver, m + 100, 5000) == ZE_RESULT_SUCCESS, "import");
    CHECK(older_base(driver, m + 100, &base) == ZE_RESULT_SUCCESS && base != NULL, "base");
    CHECK(older_import(driver, heap + 8, 100) == ZE_RESULT_SUCCESS, "heap");
    CHECK(older_base(driver, heap + 8, &base) == ZE_RESULT_SUCCESS && base != NULL, "base");
    CHECK(older_release(driver, heap + 8) == ZE_RESULT_SUCCESS && older_release(driver, m + 100) == ZE_RESULT_SUCCESS, "release");
    CHECK(older_release(driver, m + 100) != ZE_RESULT_SUCCESS, "released twice");
    memset(heap, 1, P(4));
    case_must_add1(heap, P(4)); // the heap did not go with it
    free(heap);
    munmap(m, P(4));
}

// One table for both kinds: they may overlap in any way.
void case_older_overlaps(void) {
    find_older();
    ze_driver_handle_t driver = older_driver;
    unsigned char *m = case_pages(6);
    case_wrap(m, P(6));
    not_with_these(wt_type(&wt_units[1], m) == KEEP, "a driver whose imports are the driver's");
    CHECK(older_import(driver, m + P(1), P(2)) == ZE_RESULT_SUCCESS && case_imports() == 1, "inside a wrap");
    case_unwrap(m);
    case_must_add1(m + P(1), P(2)); // still imported
    case_wrap(m + P(2), P(4));      // over its end
    CHECK(older_import(driver, m, P(6)) == ZE_RESULT_SUCCESS, "over all of them");
    case_must_add1(m, P(6));
    munmap(m + P(5), P(1));
    CHECK(older_release(driver, m) == ZE_RESULT_SUCCESS && older_release(driver, m + P(1)) == ZE_RESULT_SUCCESS, "release");
    case_must_add1(m + P(2), P(3));
    case_unwrap(m + P(2));
    munmap(m, P(5));
}
