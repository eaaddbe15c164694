// SPDX-License-Identifier: MIT
//
// Preloaded behind libgpuhost: makes the n-th mmap, munmap, madvise or pthread_create of the
// library fail. INJECT=KIND:N, or KIND:N:from for the n-th and all later ones. The library maps by
// syscall() and unmaps by the next definition of munmap, and this is it for both, from the first
// malloc of the process on: so nothing here may need libc to be ready.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dlfcn.h>

#include "../syscall_words.h"

#define API __attribute__((visibility("default")))

API long syscall(long number, ...);
API unsigned long inject_fired(void);

static char kind[16];
static unsigned long fail_at;
static bool from;
static _Atomic int known; // 0: INJECT was not read yet
static _Atomic unsigned long calls;
static _Atomic unsigned long fired;

static long call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static long answer(long result) {
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

// The environment as the kernel has it.
static void read_spec(void) {
    static char text[65536];
    static const char name[] = "INJECT=";
    long file = call(SYS_openat, AT_FDCWD, (long)"/proc/self/environ", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    long length = file < 0 ? 0 : call(SYS_read, file, (long)text, sizeof(text) - 1, 0, 0, 0);
    if (file >= 0)
        call(SYS_close, file, 0, 0, 0, 0, 0);
    for (long at = 0; at < length; at += (long)strlen(text + at) + 1) {
        if (strncmp(text + at, name, sizeof(name) - 1) != 0)
            continue;
        const char *value = text + at + sizeof(name) - 1;
        size_t word = strcspn(value, ":");
        if (word >= sizeof(kind))
            continue;
        memcpy(kind, value, word);
        for (value += word + (value[word] == ':'); *value >= '0' && *value <= '9'; value++)
            fail_at = fail_at * 10 + (unsigned long)(*value - '0');
        from = strcmp(value, ":from") == 0;
    }
    known = 1;
}

static bool fails(const char *what) {
    if (known == 0) // one thread is there when the first call comes
        read_spec();
    if (strcmp(kind, what) != 0)
        return false;
    unsigned long number = ++calls;
    bool now = from ? number >= fail_at : number == fail_at;
    fired += now;
    return now;
}

API unsigned long inject_fired(void) {
    return fired;
}

long syscall(long number, ...) {
    TEST_SYSCALL_WORDS(a, number);
    if ((number == SYS_mmap && fails("mmap")) || (number == SYS_munmap && fails("munmap")) ||
        (number == SYS_madvise && fails("madvise")))
        return answer(-ENOMEM);
    return answer(call(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

API int munmap(void *start, size_t bytes) {
    return (int)answer(fails("munmap") ? -ENOMEM : call(SYS_munmap, (long)start, (long)bytes, 0, 0, 0, 0));
}

API int madvise(void *start, size_t bytes, int advice) {
    return (int)answer(fails("madvise") ? -ENOMEM : call(SYS_madvise, (long)start, (long)bytes, advice, 0, 0, 0));
}

API int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (fails("thread"))
        return EAGAIN;
    if (real == NULL) {
        void *found = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&real, &found, sizeof(real));
    }
    return real(thread, attributes, run, argument);
}
