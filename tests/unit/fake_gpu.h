// SPDX-License-Identifier: MIT
//
// A GPU API that does nothing but keep books, and aborts when an import overlaps another one of
// its scope, or a release names none. It can refuse the n-th import, all, or be slow.
#ifndef GH_TESTS_FAKE_GPU_H
#define GH_TESTS_FAKE_GPU_H

#include <time.h>

#include "gpu.h"
#include "unit.h"

#define FAKE_MAX 4096

struct fake_gpu {
    struct {
        uintptr_t start;
        uintptr_t end;
    } live[FAKE_MAX]; // not sorted
    unsigned count;
    unsigned imports;
    unsigned releases;
    unsigned asked;
    unsigned fail_in;      // the n-th import from now is refused
    int fail_with;         // every import is refused with this
    unsigned delay_ms;     // of an import
    unsigned release_fails; // so many releases are refused
};

static inline void fake_must(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "fake GPU: %s\n", what);
    abort();
}

static int fake_import(void *data, void *base, size_t size, bool read_only, const char **why_out) {
    struct fake_gpu *gpu = data;
    uintptr_t start = (uintptr_t)base;
    (void)read_only;
    gpu->asked++;
    fake_must(size != 0 && (start | size) % PAGE == 0, "an import of something that is not whole pages");
    if (gpu->delay_ms != 0)
        nanosleep(&(struct timespec){ .tv_nsec = (long)gpu->delay_ms * 1000000 }, NULL);
    if (gpu->fail_with != 0 || (gpu->fail_in != 0 && --gpu->fail_in == 0)) {
        *why_out = "the test wants it so";
        return gpu->fail_with != 0 ? gpu->fail_with : ENOMEM;
    }
    for (unsigned i = 0; i < gpu->count; i++)
        fake_must(gpu->live[i].end <= start || gpu->live[i].start >= start + size, "an import overlaps another one");
    fake_must(gpu->count < FAKE_MAX, "too many imports for the test");
    gpu->live[gpu->count].start = start;
    gpu->live[gpu->count++].end = start + size;
    gpu->imports++;
    return 0;
}

static int fake_release(void *data, void *base, size_t size) {
    struct fake_gpu *gpu = data;
    if (gpu->release_fails != 0) {
        gpu->release_fails--;
        return EIO;
    }
    unsigned at = 0;
    while (at < gpu->count && gpu->live[at].start != (uintptr_t)base)
        at++;
    fake_must(at < gpu->count, "a release of something that is not imported");
    fake_must(gpu->live[at].end == (uintptr_t)base + size, "a release of another size");
    gpu->live[at] = gpu->live[--gpu->count];
    gpu->releases++;
    return 0;
}

static inline bool fake_has(const struct fake_gpu *gpu, const void *pointer, size_t size) {
    for (unsigned i = 0; i < gpu->count; i++) {
        if (gpu->live[i].start <= (uintptr_t)pointer && (uintptr_t)pointer + size <= gpu->live[i].end)
            return true;
    }
    return false;
}

static const struct gh_gpu_backend_ops fake_ops = { .name = "fake", .pins = true, .import = fake_import,
                                                    .release = fake_release };

#endif
