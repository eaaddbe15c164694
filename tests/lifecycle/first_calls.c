// SPDX-License-Identifier: MIT
//
// Each function that the library exports, as the first call of a thread of its own: the thread has
// no cache and no arena then. Later calls of the same thread are ordinary. The names are those of
// exports.map, and a name without a row here fails. Usage: first_calls EXPORTS.MAP
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

// A way of calling; `given` is a block (or mapping) that another thread made.
typedef int (*way_fn)(void *function, void *given);

static int usable(void *block, size_t size, size_t alignment) {
    int good = block != NULL && (uintptr_t)block % alignment == 0;
    if (good)
        memset(block, 1, size);
    free(block);
    return good;
}

static int takes_size(void *f, void *given) { (void)given; return usable(((void *(*)(size_t))f)(100), 100, 16); }
static int takes_size_flags(void *f, void *given) { (void)given; return usable(((void *(*)(size_t, int))f)(100, 0), 100, 16); }
static int takes_two(void *f, void *given) { (void)given; return usable(((void *(*)(size_t, size_t))f)(64, 128), 128, 64); }
static int takes_count(void *f, void *given) { (void)given; return usable(((void *(*)(size_t, size_t))f)(10, 10), 100, 16); }
static int takes_size_alignment(void *f, void *given) { (void)given; return usable(((void *(*)(size_t, size_t))f)(100, 64), 100, 64); }
static int takes_size_alignment_tag(void *f, void *given) { (void)given; return usable(((void *(*)(size_t, size_t, const char *))f)(100, 64, ""), 100, 64); }
static int takes_size_tag(void *f, void *given) { (void)given; return usable(((void *(*)(size_t, const char *))f)(100, ""), 100, 16); }
static int resizes(void *f, void *given) { return usable(((void *(*)(void *, size_t))f)(given, 9000), 9000, 16); }
static int resizes_array(void *f, void *given) { return usable(((void *(*)(void *, size_t, size_t))f)(given, 90, 100), 9000, 16); }
static int resizes_flags(void *f, void *given) { return usable(((void *(*)(void *, size_t, int))f)(given, 9000, 0), 9000, 16); }
static int takes_out(void *f, void *given) {
    void *block = NULL;
    (void)given;
    return ((int (*)(void **, size_t, size_t))f)(&block, 256, 100) == 0 && usable(block, 100, 256);
}
static int frees(void *f, void *given) { ((void (*)(void *))f)(given); return 1; }
static int frees_size(void *f, void *given) { ((void (*)(void *, size_t))f)(given, 100); return 1; }
static int frees_alignment(void *f, void *given) { ((void (*)(void *, size_t))f)(given, 16); return 1; }
static int frees_two(void *f, void *given) { ((void (*)(void *, size_t, size_t))f)(given, 16, 100); return 1; }
static int frees_size_alignment(void *f, void *given) { ((void (*)(void *, size_t, size_t))f)(given, 100, 16); return 1; }
static int frees_alignment_tag(void *f, void *given) { ((void (*)(void *, size_t, const char *))f)(given, 16, ""); return 1; }
static int frees_tag(void *f, void *given) { ((void (*)(void *, const char *))f)(given, ""); return 1; }
static int frees_flags(void *f, void *given) { ((void (*)(void *, int))f)(given, 0); return 1; }
static int frees_size_flags(void *f, void *given) { ((void (*)(void *, size_t, int))f)(given, 100, 0); return 1; }

static int sizes(void *f, void *given) { return ((size_t (*)(void *))f)(given) >= 100 && usable(given, 100, 16); }
static int sizes_flags(void *f, void *given) { return ((size_t (*)(void *, int))f)(given, 0) >= 100 && usable(given, 100, 16); }
static int resizes_in_place(void *f, void *given) { return ((size_t (*)(void *, size_t, size_t, int))f)(given, 100, 0, 0) >= 100 && usable(given, 100, 16); }
static int asks_size(void *f, void *given) { (void)given; return ((size_t (*)(size_t, int))f)(100, 0) >= 100; }
static int trims(void *f, void *given) { (void)given; return (((int (*)(size_t))f)(0) | 1) == 1; }
static int sets(void *f, void *given) { (void)given; (void)((int (*)(int, int))f)(M_MXFAST, -1); return 1; }
static int tells(void *f, void *given) { (void)given; return ((struct mallinfo2 (*)(void))f)().uordblks < (size_t)1 << 40; }
static int tells_short(void *f, void *given) { (void)given; ((struct mallinfo (*)(void))f)(); return 1; }
static int prints(void *f, void *given) { (void)given; ((void (*)(void))f)(); return 1; }
static void keep_quiet(void *count, const char *text) { *(size_t *)count += strlen(text); }
static int prints_to(void *f, void *given) {
    size_t count = 0;
    (void)given;
    ((void (*)(void (*)(void *, const char *), void *, const char *))f)(keep_quiet, &count, "a");
    return count != 0;
}
static int prints_to_file(void *f, void *given) {
    FILE *file = fopen("/dev/null", "w");
    (void)given;
    int good = file != NULL && ((int (*)(int, FILE *))f)(0, file) == 0;
    if (file != NULL)
        fclose(file);
    return good;
}
static int controls(void *f, void *given) {
    unsigned arenas = 0;
    size_t length = sizeof(arenas);
    (void)given;
    return ((int (*)(const char *, void *, size_t *, void *, size_t))f)("arenas.narenas", &arenas, &length, NULL, 0) == 0 && arenas != 0;
}
static int finds_mib(void *f, void *given) {
    size_t mib[2];
    size_t length = 2;
    (void)given;
    return ((int (*)(const char *, size_t *, size_t *))f)("arenas.narenas", mib, &length) == 0 && length == 2;
}
static int controls_by_mib(void *f, void *given) {
    size_t mib[2] = { SIZE_MAX, SIZE_MAX }; // no such node: it must be refused, not crash
    unsigned arenas = 0;
    size_t length = sizeof(arenas);
    (void)given;
    return ((int (*)(const size_t *, size_t, void *, size_t *, void *, size_t))f)(mib, 2, &arenas, &length, NULL, 0) != 0;
}

static int opens(void *f, void *given) {
    void *handle = ((void *(*)(const char *, int))f)("libm.so.6", RTLD_NOW);
    (void)given;
    return handle != NULL && dlclose(handle) == 0;
}
static int finds(void *f, void *given) { (void)given; return ((void *(*)(void *, const char *))f)(RTLD_DEFAULT, "malloc") != NULL; }
static int maps(void *f, void *given) {
    char *at = ((void *(*)(void *, size_t, int, int, int, off_t))f)(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)given;
    return at != MAP_FAILED && (at[0] = 1) == 1 && munmap(at, PAGE) == 0;
}
static void *one_page(void) { return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static int unmaps(void *f, void *given) { return ((int (*)(void *, size_t))f)(given, PAGE) == 0; }
static int remaps(void *f, void *given) {
    void *moved = ((void *(*)(void *, size_t, size_t, int, ...))f)(given, PAGE, 2 * (size_t)PAGE, MREMAP_MAYMOVE);
    return moved != MAP_FAILED && munmap(moved, 2 * (size_t)PAGE) == 0;
}
static int advises(void *f, void *given) { return ((int (*)(void *, size_t, int))f)(given, PAGE, MADV_DONTNEED) == 0 && munmap(given, PAGE) == 0; }
static int moves_break(void *f, void *given) { (void)given; return ((int (*)(void *))f)((void *)(uintptr_t)syscall(SYS_brk, 0)) == 0; }
static int asks_break(void *f, void *given) { (void)given; return ((void *(*)(intptr_t))f)(0) != (void *)-1; }
static int locks(void *f, void *given) { (void)given; return ((int (*)(int))f)(0) == -1 && errno == EINVAL; }
static int detaches(void *f, void *given) { (void)given; return ((int (*)(const void *))f)((void *)(uintptr_t)PAGE) == -1 && errno == EINVAL; }

static int says_version(void *f, void *given) { (void)given; return *((const char *(*)(void))f)() != '\0'; }
static int says_active(void *f, void *given) { (void)given; return ((int (*)(void))f)() == 1; }
static int says_visible(void *f, void *given) { int seen = ((int (*)(const void *, size_t))f)(given, 100); free(given); return seen == 0; }
static int counts(void *f, void *given) {
    uint64_t room[256] = { 0 };
    (void)given;
    ((int (*)(void *))f)(room);
    return 1;
}

static const struct row {
    const char *names; // separated by spaces
    way_fn way;
    enum { NOTHING, BLOCK, PAGE_GIVEN } given; // what another thread makes for it
} rows[] = {
    { "malloc valloc pvalloc _Znwm _Znam", takes_size, NOTHING },
    { "calloc", takes_count, NOTHING },
    { "realloc", resizes, BLOCK },
    { "reallocarray", resizes_array, BLOCK },
    { "free cfree _ZdlPv _ZdaPv", frees, BLOCK },
    { "free_sized _ZdlPvm _ZdaPvm", frees_size, BLOCK },
    { "free_aligned_sized", frees_two, BLOCK },
    { "posix_memalign", takes_out, NOTHING },
    { "aligned_alloc memalign", takes_two, NOTHING },
    { "malloc_usable_size", sizes, BLOCK },
    { "mallocx", takes_size_flags, NOTHING },
    { "rallocx", resizes_flags, BLOCK },
    { "xallocx", resizes_in_place, BLOCK },
    { "sallocx", sizes_flags, BLOCK },
    { "dallocx", frees_flags, BLOCK },
    { "sdallocx", frees_size_flags, BLOCK },
    { "nallocx", asks_size, NOTHING },
    { "mallctl", controls, NOTHING },
    { "mallctlnametomib", finds_mib, NOTHING },
    { "mallctlbymib", controls_by_mib, NOTHING },
    { "malloc_stats_print", prints_to, NOTHING },
    { "malloc_trim", trims, NOTHING },
    { "mallinfo", tells_short, NOTHING },
    { "mallinfo2", tells, NOTHING },
    { "malloc_stats", prints, NOTHING },
    { "malloc_info", prints_to_file, NOTHING },
    { "mallopt", sets, NOTHING },
    { "_ZnwmRKSt9nothrow_t _ZnamRKSt9nothrow_t", takes_size_tag, NOTHING },
    { "_ZnwmSt11align_val_t _ZnamSt11align_val_t", takes_size_alignment, NOTHING },
    { "_ZnwmSt11align_val_tRKSt9nothrow_t _ZnamSt11align_val_tRKSt9nothrow_t", takes_size_alignment_tag, NOTHING },
    { "_ZdlPvRKSt9nothrow_t _ZdaPvRKSt9nothrow_t", frees_tag, BLOCK },
    { "_ZdlPvSt11align_val_t _ZdaPvSt11align_val_t", frees_alignment, BLOCK },
    { "_ZdlPvmSt11align_val_t _ZdaPvmSt11align_val_t", frees_size_alignment, BLOCK },
    { "_ZdlPvSt11align_val_tRKSt9nothrow_t _ZdaPvSt11align_val_tRKSt9nothrow_t", frees_alignment_tag, BLOCK },
    { "dlopen", opens, NOTHING },
    { "dlsym", finds, NOTHING },
    { "mmap mmap64", maps, NOTHING },
    { "munmap", unmaps, PAGE_GIVEN },
    { "mremap", remaps, PAGE_GIVEN },
    { "madvise", advises, PAGE_GIVEN },
    { "brk", moves_break, NOTHING },
    { "sbrk", asks_break, NOTHING },
    { "shmdt", detaches, NOTHING },
    { "mlockall", locks, NOTHING },
    { "gpuhost_version", says_version, NOTHING },
    { "gpuhost_active", says_active, NOTHING },
    { "gpuhost_is_visible", says_visible, BLOCK },
    { "gpuhost_stats", counts, NOTHING },
};

struct call {
    const struct row *row;
    void *function;
    void *given;
    int answer;
};

static void *first_call(void *argument) {
    struct call *call = argument;
    call->answer = call->row->way(call->function, call->given);
    return NULL;
}

static const struct row *find_row(const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (const char *at = rows[i].names; (at = strstr(at, name)) != NULL; at += length)
            if ((at == rows[i].names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
                return &rows[i];
    return NULL;
}

// 1 when it was right.
static int try_name(const char *name) {
    struct call call = { .row = find_row(name), .function = dlsym(RTLD_DEFAULT, name) };
    if (call.row == NULL || call.function == NULL) {
        printf("%s: %s\n", name, call.row == NULL ? "has no row here" : "is not there");
        return 0;
    }
    for (int round = 0; round < 20; round++) {
        pthread_t thread;
        call.given = call.row->given == PAGE_GIVEN ? one_page() : call.row->given == BLOCK ? malloc(100) : NULL;
        if (call.given == MAP_FAILED || pthread_create(&thread, NULL, first_call, &call) != 0)
            return 0;
        pthread_join(thread, NULL);
        if (!call.answer) {
            printf("%s as a thread's first call: WRONG\n", name);
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    char line[512];
    int tried = 0;
    int failed = 0;
    int inside = 0;
    if (file == NULL)
        return 2;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strstr(line, "local:") != NULL)
            break;
        char *rest = NULL;
        for (char *name = strtok_r(line, "; \n", &rest); inside && name != NULL; name = strtok_r(NULL, "; \n", &rest)) {
            tried++;
            failed += !try_name(name);
        }
        inside |= strstr(line, "global:") != NULL;
    }
    fclose(file);
    printf("%d functions as a thread's first call, %d failed\n", tried, failed);
    return failed != 0 || tried < 60;
}
