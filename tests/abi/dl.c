// SPDX-License-Identifier: MIT
//
// dlopen and dlsym are interposed and must not be noticed: deep-bound libraries, the caller's
// RUNPATH, RTLD_NEXT seen from a library, and the texts of errors. Linked with dl_library and
// dl_neighbour, in that order. Usage: dl PATH_OF_DL_LIBRARY_COPY
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int runpath_applies(void);
const char *next_of_which(void);
int neighbour_answer(void);

static void print_error(const char *what) {
    const char *text = dlerror();
    printf("%s: %s\n", what, text == NULL ? "no error" : text);
    text = dlerror();
    printf("%s, asked again: %s\n", what, text == NULL ? "no error" : text);
}

static void print_errors(void) {
    void *self = dlopen(NULL, RTLD_LAZY);
    print_error("dlopen of the program");
    if (dlopen("/does/not/exist.so", RTLD_NOW) == NULL)
        print_error("dlopen of nothing");
    if (dlopen("libdoes_not_exist.so", RTLD_NOW | RTLD_DEEPBIND) == NULL)
        print_error("dlopen of an unknown name");
    if (dlopen("/etc/passwd", RTLD_NOW) == NULL)
        print_error("dlopen of a text file");
    if (dlopen("libc.so.6", 0) == NULL)
        print_error("dlopen without a mode");
    if (dlopen("libnot_loaded.so", RTLD_NOW | RTLD_NOLOAD) == NULL)
        print_error("dlopen of what is not loaded");
    if (dlsym(self, "no_such_symbol") == NULL)
        print_error("dlsym of nothing");
    if (dlsym(self, "zeGetNothingProcAddrTable") == NULL)
        print_error("dlsym of a name like a driver's");
    if (dlsym(RTLD_DEFAULT, "zeInit") == NULL)
        print_error("dlsym of zeInit");
    if (dlsym(RTLD_NEXT, "no_such_symbol") == NULL)
        print_error("dlsym of nothing next");
    if (dlsym(RTLD_DEFAULT, "neighbour_answer") == (void *)neighbour_answer)
        print_error("dlsym of a function");
    // A found symbol whose value is NULL is told from a failure by dlerror, which must be clear.
    dlerror();
    printf("dlvsym: %d\n", dlvsym(RTLD_DEFAULT, "printf", "GLIBC_2.2.5") != NULL);
    dlclose(self);
}

static void *in_thread(void *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    int (*use)(void) = library == NULL ? NULL : (int (*)(void))dlsym(library, "use_libc_blocks");
    int good = use != NULL && use();
    if (library != NULL)
        dlclose(library);
    return good ? path : NULL;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    print_errors();
    printf("deep-bound library: %s\n", in_thread(argv[1]) != NULL ? "right" : "WRONG");
    void *answer = NULL;
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, argv[1]);
    pthread_join(thread, &answer);
    printf("deep-bound library in a thread: %s\n", answer != NULL ? "right" : "WRONG");
    printf("the caller's RUNPATH: %d\n", runpath_applies());
    printf("RTLD_NEXT from a library: %s\n", next_of_which());
    const char *(*first)(void) = (const char *(*)(void))dlsym(RTLD_DEFAULT, "which");
    printf("RTLD_DEFAULT: %s\n", first == NULL ? "none" : first());
    const char *(*next)(void) = (const char *(*)(void))dlsym(RTLD_NEXT, "which");
    printf("RTLD_NEXT from the program: %s\n", next == NULL ? "none" : next());
    return 0;
}
