// SPDX-License-Identifier: MIT
//
// Records what a program allocates: preloaded, it counts blocks by size and by how many further
// allocations they lived for, and at exit appends lines "SIZE LIFETIME COUNT" to the file named by
// MIX_RECORD (%p: the process id). mix_table.py makes mix_table.h of such files. Needs glibc. One
// lock; the table of live blocks is a mapping of its own.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define SIZES 112u     // four to each doubling, from 16 bytes
#define LIFETIMES 20u  // one for each doubling; the last one also takes what was never freed
#define LIVE_MAX (1u << 22)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

struct live {
    uintptr_t block; // 0: free; 1: was in use
    uint32_t born;
    uint8_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects everything below
static struct live *table;
static uint32_t clock_now;
static uint64_t counts[SIZES][LIFETIMES];

static unsigned size_bucket(size_t size) {
    if (size <= 16)
        return 0;
    unsigned bits = 63u - (unsigned)__builtin_clzll(size - 1);
    unsigned bucket = (bits - 4) * 4 + (unsigned)((size - 1) >> (bits - 2) & 3) + 1;
    return bucket < SIZES ? bucket : SIZES - 1;
}

static size_t bucket_size(unsigned bucket) { // the largest size in it
    if (bucket == 0)
        return 16;
    unsigned bits = (bucket - 1) / 4 + 4;
    return ((size_t)1 << bits) + ((size_t)((bucket - 1) % 4 + 1) << (bits - 2));
}

static struct live *find(uintptr_t block, int for_insertion) {
    uint32_t at = (uint32_t)((block * UINT64_C(0x9e3779b97f4a7c15)) >> 42) & (LIVE_MAX - 1);
    for (unsigned tries = 0; tries < 64; tries++, at = (at + 1) & (LIVE_MAX - 1)) {
        if (table[at].block == block || (for_insertion && table[at].block <= 1))
            return &table[at];
        if (table[at].block == 0)
            return NULL;
    }
    return NULL; // too full around here: the block is not counted
}

static void born(void *block, size_t size) {
    if (block == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (table == NULL) {
        void *memory = mmap(NULL, LIVE_MAX * sizeof(*table), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        table = memory == MAP_FAILED ? NULL : memory;
    }
    struct live *place = table == NULL ? NULL : find((uintptr_t)block, 1);
    if (place != NULL)
        *place = (struct live){ (uintptr_t)block, clock_now, (uint8_t)size_bucket(size) };
    clock_now++;
    pthread_mutex_unlock(&lock);
}

static void died(void *block) {
    if (block == NULL)
        return;
    pthread_mutex_lock(&lock);
    struct live *place = table == NULL ? NULL : find((uintptr_t)block, 0);
    if (place != NULL) {
        uint32_t age = clock_now - place->born;
        unsigned lifetime = age < 2 ? 0 : 31u - (unsigned)__builtin_clz(age);
        counts[place->size][lifetime < LIFETIMES ? lifetime : LIFETIMES - 1]++;
        place->block = 1;
    }
    pthread_mutex_unlock(&lock);
}

EXPORT void *malloc(size_t size) {
    void *block = __libc_malloc(size);
    born(block, size);
    return block;
}

EXPORT void *calloc(size_t count, size_t size) {
    void *block = __libc_calloc(count, size);
    born(block, count * size);
    return block;
}

EXPORT void *realloc(void *block, size_t size) {
    died(block);
    void *moved = __libc_realloc(block, size);
    if (size != 0)
        born(moved, size);
    return moved;
}

EXPORT void free(void *block) {
    died(block);
    __libc_free(block);
}

__attribute__((destructor)) static void write_counts(void) {
    const char *name = getenv("MIX_RECORD");
    char path[4096];
    char line[96];
    if (name == NULL || table == NULL)
        return;
    const char *mark = strstr(name, "%p");
    if (mark == NULL)
        snprintf(path, sizeof(path), "%s", name);
    else
        snprintf(path, sizeof(path), "%.*s%d%s", (int)(mark - name), name, (int)getpid(), mark + 2);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0)
        return;
    for (uint32_t i = 0; i < LIVE_MAX; i++) {
        if (table[i].block > 1)
            counts[table[i].size][LIFETIMES - 1]++;
    }
    for (unsigned size = 0; size < SIZES; size++) {
        for (unsigned lifetime = 0; lifetime < LIFETIMES; lifetime++) {
            if (counts[size][lifetime] == 0)
                continue;
            int length = snprintf(line, sizeof(line), "%zu %u %llu\n", bucket_size(size),
                                  lifetime == LIFETIMES - 1 ? UINT32_MAX : 1u << lifetime,
                                  (unsigned long long)counts[size][lifetime]);
            if (write(file, line, (size_t)length) != length)
                break;
        }
    }
    close(file);
}
