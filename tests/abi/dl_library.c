// SPDX-License-Identifier: MIT
//
// The library of dl.c. Its functions free what glibc allocated for them; deep-bound, such a
// library would take glibc's free for blocks of another malloc.
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int use_libc_blocks(void) {
    char *line = NULL;
    size_t room = 0;
    char *text = NULL;
    FILE *file = fopen("/proc/self/status", "r");
    int lines = 0;
    while (file != NULL && getline(&line, &room, file) > 0)
        lines++;
    if (file != NULL)
        fclose(file);
    if (asprintf(&text, "%d lines and a tail that takes a large block: %20000d", lines, 7) < 0)
        return 0;
    char *copy = strdup(text);
    char *path = realpath(".", NULL);
    int good = copy != NULL && strcmp(copy, text) == 0 && path != NULL && malloc_usable_size(copy) > 20000;
    copy = realloc(copy, 40000);
    free(copy);
    free(text);
    free(line);
    free(path);
    return good;
}

// Found by the RUNPATH of this library, which the program does not have.
int runpath_applies(void) {
    void *handle = dlopen("libabi_dl_far.so", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        printf("%s\n", dlerror());
        return 0;
    }
    int (*answer)(void) = (int (*)(void))dlsym(handle, "far_answer");
    int good = answer != NULL && answer() == 4711;
    dlclose(handle);
    return good;
}

// Both libraries define it; from here, "next" is the one that was loaded after this one.
const char *which(void) {
    return "first";
}

const char *next_of_which(void) {
    const char *(*next)(void) = (const char *(*)(void))dlsym(RTLD_NEXT, "which");
    return next == NULL ? "none" : next();
}
