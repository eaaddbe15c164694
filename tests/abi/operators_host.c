// SPDX-License-Identifier: MIT
//
// A C program that knows no C++ and loads the plug-in of operators.cc the way plug-ins are
// loaded: RTLD_LOCAL, with the C++ runtime coming in behind it.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    int (*run)(void) = plugin == NULL ? NULL : (int (*)(void))dlsym(plugin, "cxx_operators");
    if (run == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    return run();
}
