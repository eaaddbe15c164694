// SPDX-License-Identifier: MIT
//
// The decisions behind the interposed dlopen and dlsym (dl_intercept.h).
//
// dlopen: RTLD_DEEPBIND is masked. A deep-bound library would take glibc's free for blocks that
// glibc itself got from our malloc (strdup, getline).
//
// dlsym: the Level Zero loader looks up "zeGet...ProcAddrTable" in each driver it loads; those
// names get functions of ours, which is the one place where the door is put in.
#include "dl_intercept.h"

#include <dlfcn.h>
#include <string.h>

#include "config.h"
#include "level_zero/driver.h"
#include "lifecycle.h"
#include "log.h"

int gh_dlopen_flags(int flags) {
    if ((flags & RTLD_DEEPBIND) == 0 || !gh_is_serving())
        return flags;
    static atomic_flag said = ATOMIC_FLAG_INIT;
    struct gh_text line;
    gh_text_start(&line);
    gh_text_add(&line, "dlopen with RTLD_DEEPBIND: the flag is masked, it would mix two heaps");
    gh_log_once(&said, GH_LOG_DEBUG, &line);
    return flags & ~RTLD_DEEPBIND;
}

void *gh_dlsym_answer(void *handle, const char *name) {
    // Two letters decide for nearly every call of the process.
    if (gh_likely(name == NULL || name[0] != 'z' || name[1] != 'e') || handle == RTLD_DEFAULT || handle == RTLD_NEXT)
        return NULL;
    if (!gh_is_serving() || gh_config.backend == GH_BACKEND_NONE)
        return NULL;
    return gh_ze_driver_symbol(handle, name);
}
