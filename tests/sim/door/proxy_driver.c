// SPDX-License-Identifier: MIT
//
// A Level Zero driver that has nothing of its own: it hands on the tables of the driver at
// PROXY_DRIVER, which it looks up by name as a loader does.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#include "../ghsim.h"

static void *find(const char *name) {
    static void *library;
    if (library == NULL)
        library = dlopen(getenv("PROXY_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    void *found = library == NULL ? NULL : dlsym(library, name);
    if (found == NULL)
        abort();
    return found;
}

#define HAND_ON(name)                                                                                                  \
    GHSIM_API int name(uint32_t version, void *table);                                                                 \
    int name(uint32_t version, void *table) {                                                                          \
        return ((int (*)(uint32_t, void *))find(#name))(version, table);                                               \
    }
HAND_ON(zeGetGlobalProcAddrTable)
HAND_ON(zeGetDriverProcAddrTable)
HAND_ON(zeGetDeviceProcAddrTable)
HAND_ON(zeGetContextProcAddrTable)
HAND_ON(zeGetMemProcAddrTable)
HAND_ON(zeGetCommandListProcAddrTable)
HAND_ON(zeGetEventPoolProcAddrTable)
HAND_ON(zeGetEventProcAddrTable)

void ghsim_stats(struct ghsim_stats *out) {
    ((void (*)(struct ghsim_stats *))find("ghsim_stats"))(out);
}

uint64_t ghsim_calls(const char *function) {
    return ((uint64_t(*)(const char *))find("ghsim_calls"))(function);
}
