// SPDX-License-Identifier: MIT
//
// Loads a library whose constructor waits for a thread that maps and unmaps (first_call_library.c):
// ld.so's lock is held meanwhile, so nothing that the thread calls may look a symbol up. These are
// the process's first calls of their kind. Usage: first_call LIBRARY
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    alarm(30); // a deadlock ends with SIGALRM
    void *library = dlopen(argv[1], RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int *done = (int *)dlsym(library, "first_calls_done");
    return done != NULL && *done == 9 ? 0 : 1;
}
