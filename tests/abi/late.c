// SPDX-License-Identifier: MIT
//
// Loads the library when the program already has a heap, every way dlopen can. It must refuse or
// stay aside; the heap stays the C library's. Usage: late LIBRARY
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void use_heap(void) {
    void *blocks[100];
    for (int i = 0; i < 100; i++)
        blocks[i] = memset(malloc((size_t)i * 1000 + 1), 1, (size_t)i * 1000 + 1);
    for (int i = 0; i < 100; i++)
        free(blocks[i]);
}

static int try_flags(const char *library, const char *name, int flags) {
    char *before = strdup("from before");
    void *handle = dlopen(library, flags);
    if (handle == NULL) {
        printf("%s: refused\n", name);
        fprintf(stderr, "%s\n", dlerror());
        free(before);
        use_heap();
        return 0;
    }
    int (*active)(void) = (int (*)(void))dlsym(handle, "gpuhost_active");
    const char *(*version)(void) = (const char *(*)(void))dlsym(handle, "gpuhost_version");
    void *(*its_malloc)(size_t) = (void *(*)(size_t))dlsym(handle, "malloc");
    void (*its_free)(void *) = (void (*)(void *))dlsym(handle, "free");
    int failed = active == NULL || version == NULL || its_malloc == NULL || its_free == NULL;
    printf("%s: loaded, version %s, active %d\n", name, version == NULL ? "?" : version(), active == NULL ? -1 : active());
    // Whoever got hold of both mallocs may mix them.
    if (!failed) {
        its_free(before);
        before = its_malloc(5000);
        free(before);
        before = malloc(5000);
        before = realloc(before, 100000);
        its_free(before);
        before = its_malloc(300000);
        free(before);
        failed = active() != 0;
    }
    use_heap();
    char *text = NULL;
    if (asprintf(&text, "%20000d", 1) < 0)
        failed = 1;
    free(text);
    dlclose(handle);
    use_heap();
    return failed;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    use_heap();
    int failed = try_flags(argv[1], "local", RTLD_NOW | RTLD_LOCAL);
    failed += try_flags(argv[1], "global", RTLD_NOW | RTLD_GLOBAL);
    failed += try_flags(argv[1], "deep-bound", RTLD_NOW | RTLD_DEEPBIND);
    return failed != 0;
}
