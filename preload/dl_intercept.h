// SPDX-License-Identifier: MIT
//
// What dlsym and dlopen do before they jump on to the real ones (dl_entry.S has the entries).
#ifndef GH_PRELOAD_DL_INTERCEPT_H
#define GH_PRELOAD_DL_INTERCEPT_H

#include "allocator/util.h"

// Non-NULL: the answer of dlsym(handle, name). NULL: not ours, jump on.
GH_HIDDEN void *gh_dlsym_answer(void *handle, const char *name);

// The flags for the real dlopen: those given, less RTLD_DEEPBIND.
GH_HIDDEN int gh_dlopen_flags(int flags);

#endif
