// SPDX-License-Identifier: MIT
//
// Preloaded: jemalloc's own interface, as a program linked with a jemalloc calls it beside malloc.
// One heap answers both, and what would change where memory comes from is refused.
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"

static struct {
    void *(*mallocx)(size_t, int);
    void *(*rallocx)(void *, size_t, int);
    size_t (*xallocx)(void *, size_t, size_t, int);
    size_t (*sallocx)(const void *, int);
    void (*dallocx)(void *, int);
    void (*sdallocx)(void *, size_t, int);
    size_t (*nallocx)(size_t, int);
    int (*mallctl)(const char *, void *, size_t *, void *, size_t);
    int (*mallctlnametomib)(const char *, size_t *, size_t *);
    int (*mallctlbymib)(const size_t *, size_t, void *, size_t *, void *, size_t);
    void (*malloc_stats_print)(void (*)(void *, const char *), void *, const char *);
} je;

#define ZERO 0x40
#define LG_ALIGN(lg) (lg)
#define ARENA(index) (((index) + 1) << 20)

static void find(const char *name, void *function) {
    void *found = dlsym(RTLD_DEFAULT, name);
    MUST(found != NULL);
    memcpy(function, &found, sizeof(found));
}

static void blocks(void) {
    unsigned char *block = je.mallocx(1000, ZERO);
    MUST(block != NULL && block[0] == 0 && block[999] == 0 && je.sallocx(block, 0) >= 1000);
    memset(block, 7, 1000);
    block = je.rallocx(block, 5000, 0);
    MUST(block != NULL && block[999] == 7 && je.nallocx(5000, 0) <= je.sallocx(block, 0));
    MUST(je.xallocx(block, 5000, 0, 0) >= 5000);
    free(block);                             // the other interface's free
    block = je.mallocx(3000, LG_ALIGN(13));
    MUST(((uintptr_t)block & 8191) == 0);
    je.dallocx(block, 0);
    block = malloc(300);
    memset(block, 9, 300);
    block = je.rallocx(block, 100000, ZERO); // zeros from the real size on
    MUST(block[299] == 9 && block[8192] == 0 && block[99999] == 0);
    je.sdallocx(block, 100000, 0);
    je.dallocx(je.mallocx(64, ARENA(0)), ARENA(0));
    errno = 0;
    MUST(je.mallocx((size_t)1 << 62, 0) == NULL);
    block = je.mallocx(20000, LG_ALIGN(6));
    MUST(je.rallocx(block, 20, 0) != NULL);
}

static bool printed;
static void write_line(void *cookie, const char *line) {
    (void)cookie;
    printed = printed || *line != '\0';
}

static void controls(void) {
    uint64_t epoch = 1;
    size_t mib[8];
    size_t mib_length = 8;
    size_t value = 0;
    size_t length = sizeof(value);
    bool no = false;
    unsigned index = 0;
    size_t index_length = sizeof(index);
    MUST(je.mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch)) == 0); // adds the counters up
    MUST(je.mallctl("stats.allocated", &value, &length, NULL, 0) == 0 && value != 0);
    MUST(je.mallctl("thread.tcache.flush", NULL, NULL, NULL, 0) == 0);
    MUST(je.mallctl("arena.0.purge", NULL, NULL, NULL, 0) == 0);
    MUST(je.mallctl("arena.0.reset", NULL, NULL, NULL, 0) == EPERM);
    MUST(je.mallctl("arenas.create", &index, &index_length, NULL, 0) == EPERM);
    MUST(je.mallctl("background_thread", NULL, NULL, &no, sizeof(no)) == EPERM);
    MUST(je.mallctl("no.such", &value, &length, NULL, 0) == ENOENT);
    MUST(je.mallctlnametomib("epoch", mib, &mib_length) == 0);
    MUST(je.mallctlbymib(mib, mib_length, NULL, NULL, &epoch, sizeof(epoch)) == 0);
    mib_length = 8;
    MUST(je.mallctlnametomib("arena.0.reset", mib, &mib_length) == 0);
    MUST(je.mallctlbymib(mib, mib_length, NULL, NULL, NULL, 0) == EPERM);
    mib_length = 8;
    length = sizeof(value);
    MUST(je.mallctlnametomib("stats.active", mib, &mib_length) == 0);
    MUST(je.mallctlbymib(mib, mib_length, &value, &length, NULL, 0) == 0);
    je.malloc_stats_print(write_line, NULL, "a");
    MUST(printed);
}

int main(void) {
    find("mallocx", &je.mallocx);
    find("rallocx", &je.rallocx);
    find("xallocx", &je.xallocx);
    find("sallocx", &je.sallocx);
    find("dallocx", &je.dallocx);
    find("sdallocx", &je.sdallocx);
    find("nallocx", &je.nallocx);
    find("mallctl", &je.mallctl);
    find("mallctlnametomib", &je.mallctlnametomib);
    find("mallctlbymib", &je.mallctlbymib);
    find("malloc_stats_print", &je.malloc_stats_print);
    blocks();
    controls();
    printf("ok\n");
    return 0;
}
