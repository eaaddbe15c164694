// SPDX-License-Identifier: MIT
// Not a misuse: what libc and ld.so allocated before main goes through free and realloc.
#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    setlocale(LC_ALL, "C.UTF-8");
    setlocale(LC_ALL, "C");
    for (int i = 0; i < 200; i++) { // environ grows by realloc from what start-up left
        char name[32];
        snprintf(name, sizeof(name), "GH_TEST_%d", i);
        setenv(name, "value", 1);
    }
    clearenv();
    dlerror();
    void *math = dlopen("libm.so.6", RTLD_NOW);
    puts(math != NULL ? "loaded" : "not loaded");
    return math == NULL || dlclose(math) != 0;
}
