// SPDX-License-Identifier: MIT
//
// Really pins imported pages, as a GPU driver does: they are registered as fixed buffers of an
// io_uring that never does any I/O. The kernel then neither migrates nor frees the frames, gives a
// fork child copies of them, and leaves the old frame in place when the page is dropped, so that a
// dropped page is always seen (sim_pages.c). Where io_uring is not to be had (old kernel, seccomp,
// a program that closed the descriptor, read-only pages) imports stay unpinned and the page checks
// fall back to imitation. GHSIM_PIN=0 forces that.
//
// pin_lock protects rings and slots; sim_memory_lock may be taken inside it, never the reverse.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sim_internal.h"

#define RING_SLOTS 16384u // the kernel's limit
#define MAX_RINGS 64u
#define CHUNK ((size_t)1 << 30) // the kernel's limit for one buffer

struct ring { int fd; uint32_t free_count; uint16_t *free_slots; };
static pthread_mutex_t pin_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ring rings[MAX_RINGS];
static uint32_t ring_count;
static bool unavailable;

static bool add_ring(void)
{
    if (ring_count == MAX_RINGS) return false;
    struct ring *ring = &rings[ring_count];
    struct io_uring_params params = {0};
    int fd = (int)syscall(SYS_io_uring_setup, 1, &params);
    if (fd < 0) return false;
    // Out of the way of programs that count on low descriptor numbers.
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    struct io_uring_rsrc_register sparse = {.nr = RING_SLOTS, .flags = IORING_RSRC_REGISTER_SPARSE};
    ring->free_slots = sim_alloc(RING_SLOTS * sizeof *ring->free_slots);
    if (!ring->free_slots || syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS2, &sparse, sizeof sparse) != 0) {
        sim_free(ring->free_slots);
        close(fd);
        return false;
    }
    for (uint32_t i = 0; i < RING_SLOTS; i++) ring->free_slots[i] = (uint16_t)(RING_SLOTS - 1 - i);
    ring->fd = fd;
    ring->free_count = RING_SLOTS;
    ring_count++;
    return true;
}

static bool set_slot(uint32_t pin, uintptr_t begin, size_t size)
{
    struct iovec buffer = {.iov_base = (void *)begin, .iov_len = size};
    struct io_uring_rsrc_update2 update = {.offset = pin % RING_SLOTS, .data = (uintptr_t)&buffer, .nr = 1};
    return syscall(SYS_io_uring_register, rings[pin / RING_SLOTS].fd, IORING_REGISTER_BUFFERS_UPDATE, &update,
                   sizeof update) == 1;
}

// Under pin_lock.
static bool pin_chunk(uintptr_t begin, size_t size, uint32_t *pin)
{
    uint32_t r = ring_count;
    while (r > 0 && rings[r - 1].free_count == 0) r--;
    if (r == 0) {
        if (!add_ring()) return false;
        r = ring_count;
    }
    struct ring *ring = &rings[r - 1];
    *pin = (r - 1) * RING_SLOTS + ring->free_slots[ring->free_count - 1];
    if (!set_slot(*pin, begin, size)) return false;
    ring->free_count--;
    return true;
}

void sim_unpin(struct sim_import *import)
{
    pthread_mutex_lock(&pin_lock);
    for (uint32_t i = 0; i < import->pin_count; i++) {
        struct ring *ring = &rings[import->pins[i] / RING_SLOTS];
        set_slot(import->pins[i], 0, 0);
        ring->free_slots[ring->free_count++] = (uint16_t)(import->pins[i] % RING_SLOTS);
    }
    import->pin_count = 0;
    pthread_mutex_unlock(&pin_lock);
}

void sim_pin(struct sim_import *import)
{
    if (import->read_only || !sim_config.pin) return;
    const uintptr_t end = import->range.end;
    bool good = true;
    pthread_mutex_lock(&pin_lock);
    if (!unavailable && ring_count == 0 && !add_ring()) unavailable = true;
    good = !unavailable;
    for (uintptr_t at = import->range.begin; at < end && good; at += CHUNK) {
        const size_t size = end - at < CHUNK ? end - at : CHUNK;
        good = import->pin_count < SIM_MAX_PINS && pin_chunk(at, size, &import->pins[import->pin_count]);
        if (good) import->pin_count++;
    }
    pthread_mutex_unlock(&pin_lock);
    import->pinned = good;
    if (!good) sim_unpin(import);
}

// Has the program closed our descriptor (and perhaps put another file in its place)?
bool sim_pin_alive(const struct sim_import *import)
{
    for (uint32_t i = 0; i < import->pin_count; i++) {
        char path[32], target[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", rings[import->pins[i] / RING_SLOTS].fd);
        const ssize_t n = readlink(path, target, sizeof target - 1);
        if (n <= 0) return false;
        target[n] = '\0';
        if (!strstr(target, "io_uring")) return false;
    }
    return true;
}
