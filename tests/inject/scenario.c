// SPDX-License-Identifier: MIT
//
// The heap's part and the fork's part (scenario.h).
#include "scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 48u

struct slot {
    unsigned char *at;
    size_t bytes;
    unsigned seed;
};

static struct slot slots[SLOTS];
static uint64_t random_state;

void scenario_check(bool condition, const char *text, const char *file, int line) {
    if (condition)
        return;
    fprintf(stderr, "inject: %s:%d: failed: %s\n", file, line, text);
    _exit(1);
}

static size_t below(size_t limit) { // xorshift64
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (size_t)(random_state % limit);
}

static unsigned char byte_at(const struct slot *slot, size_t i) {
    return (unsigned char)(slot->seed + i * 7 + (i >> 8));
}

static void paint(struct slot *slot) {
    slot->seed = (unsigned)below(256);
    for (size_t i = 0; i < slot->bytes; i++)
        slot->at[i] = byte_at(slot, i);
}

static bool holds(const struct slot *slot, size_t bytes) {
    size_t i = 0;
    while (i < bytes && slot->at[i] == byte_at(slot, i))
        i++;
    return i == bytes;
}

static size_t any_size(void) {
    static const size_t largest[] = { 64, 2048, 20000, 80000, 5000000 };
    return 1 + below(largest[below(60) == 0 ? 4 : below(4)]);
}

// A block, or NULL because something failed; what fails once works the second time.
static void *ask(const struct world *world, size_t bytes, size_t alignment, bool zero) {
    uint64_t before = world->faults();
    errno = 0;
    void *block = world->allocate(bytes, alignment, zero);
    if (block == NULL) {
        MUST(errno == ENOMEM);
        MUST(!world->single || world->faults() != before);
        block = world->allocate(bytes, alignment, zero);
        MUST(block != NULL || !world->single);
    }
    MUST(((uintptr_t)block & (alignment == 0 ? 15 : alignment - 1)) == 0);
    return block;
}

static void refill(const struct world *world, struct slot *slot) {
    size_t alignment = below(6) == 0 ? (size_t)32 << below(12) : 0;
    bool zero = alignment == 0 && below(3) == 0;
    slot->bytes = any_size();
    slot->at = ask(world, slot->bytes, alignment, zero);
    if (slot->at == NULL)
        return;
    for (size_t i = 0; zero && i < slot->bytes; i++)
        MUST(slot->at[i] == 0);
    paint(slot);
}

static void resize(const struct world *world, struct slot *slot) {
    size_t bytes = any_size();
    uint64_t before = world->faults();
    void *moved = world->resize(slot->at, bytes);
    MUST(moved != NULL || !world->single || world->faults() != before);
    if (moved != NULL) {
        slot->at = moved;
        MUST(holds(slot, bytes < slot->bytes ? bytes : slot->bytes));
        slot->bytes = bytes;
        paint(slot);
    }
}

void scenario_heap(const struct world *world) {
    random_state = 88172645463325252u;
    for (unsigned i = 0; i < 200; i++) {
        struct slot *slot = &slots[below(SLOTS)];
        if (slot->at == NULL) {
            refill(world, slot);
        } else if (below(3) == 0) {
            resize(world, slot);
        } else {
            MUST(holds(slot, slot->bytes));
            world->release(slot->at);
            slot->at = NULL;
        }
    }
}

void scenario_fork(const struct world *world) {
    struct slot own = { .bytes = 100000 };
    pid_t child = fork();
    if (child == -1) // a limit of the process
        return;
    if (child == 0) {
        for (unsigned i = 0; i < SLOTS; i++)
            MUST(slots[i].at == NULL || holds(&slots[i], slots[i].bytes));
        own.at = ask(world, own.bytes, 0, false);
        if (own.at != NULL) {
            paint(&own);
            MUST(holds(&own, own.bytes));
        }
        for (unsigned i = 0; i < SLOTS; i++)
            world->release(slots[i].at);
        world->release(own.at);
        _exit(0);
    }
    int status = 0;
    MUST(waitpid(child, &status, 0) == child);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (unsigned i = 0; i < SLOTS; i++)
        MUST(slots[i].at == NULL || holds(&slots[i], slots[i].bytes));
}
