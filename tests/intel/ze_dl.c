// SPDX-License-Identifier: MIT
//
// Opens the Level Zero loader by dlopen and dlsym and starts the driver, see ze_dl.h. One thread.
#include "ze_dl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct ze_dl ze;

struct init_drivers_desc {
    uint32_t stype;
    const void *next;
    uint32_t flags;
};

typedef ze_result_t (*init_drivers_fn)(uint32_t *, ze_driver_handle_t *, struct init_drivers_desc *);

static void *find(void *library, const char *name) {
    void *function = dlsym(library, name);
    if (function == NULL) {
        fprintf(stderr, "the loader has no %s\n", name);
        exit(2);
    }
    return function;
}

ze_driver_handle_t ze_dl_open(int use_init_drivers) {
    void *library = dlopen("libze_loader.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "no Level Zero loader: %s\n", dlerror());
        exit(2);
    }
#define X(name) ze.name = (__typeof__(ze.name))find(library, #name);
    ZE_DL_FUNCTIONS(X)
#undef X

    ze_driver_handle_t driver = NULL;
    uint32_t count = 1;
    ze_result_t result;
    if (use_init_drivers) {
        init_drivers_fn init_drivers = (init_drivers_fn)find(library, "zeInitDrivers");
        struct init_drivers_desc desc = {ZE_DL_STYPE_INIT_DRIVERS, NULL, UINT32_MAX};
        result = init_drivers(&count, &driver, &desc);
    } else {
        result = ze.zeInit(0);
        if (result == ZE_RESULT_SUCCESS) {
            result = ze.zeDriverGet(&count, &driver);
        }
    }
    if (result != ZE_RESULT_SUCCESS || count == 0 || driver == NULL) {
        fprintf(stderr, "no Level Zero driver: 0x%x\n", (unsigned)result);
        exit(2);
    }
    return driver;
}
