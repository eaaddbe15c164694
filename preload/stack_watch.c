// SPDX-License-Identifier: MIT
//
// A thread-specific key whose destructor releases the pieces on the thread's stack
// (stack_watch.h). The main thread's stack lives as long as the process.
#include "stack_watch.h"

#include <pthread.h>
#include <unistd.h>

#include "pieces.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;

static GH_TLS uintptr_t stack_start;
static GH_TLS uintptr_t stack_end;

static void thread_ends(void *unused) {
    (void)unused;
    gh_pieces_invalidate(stack_start, stack_end);
}

static void make_key(void) {
    have_key = pthread_key_create(&key, thread_ends) == 0;
}

static bool find_stack(void) {
    pthread_attr_t attributes;
    if (stack_end != 0)
        return true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    void *base = NULL;
    size_t size = 0;
    if (pthread_attr_getstack(&attributes, &base, &size) == 0) {
        stack_start = (uintptr_t)base;
        stack_end = stack_start + size;
    }
    pthread_attr_destroy(&attributes);
    return stack_end != 0;
}

void gh_stack_watch(uintptr_t start, uintptr_t end) {
    if (gettid() == getpid() || !find_stack() || start >= stack_end || end <= stack_start)
        return;
    pthread_once(&once, make_key);
    if (have_key)
        pthread_setspecific(key, &stack_start); // any value but NULL runs the destructor
}
