// SPDX-License-Identifier: MIT
//
// The log: one line at a time to stderr, by one write. Never allocates, takes no lock, keeps
// errno; may be called anywhere but under the pool lock. Whoever first knows a cause logs it.
#ifndef GH_PRELOAD_LOG_H
#define GH_PRELOAD_LOG_H

#include <stdatomic.h>

#include "allocator/util.h"

enum { GH_LOG_NONE, GH_LOG_ERROR, GH_LOG_WARNING, GH_LOG_INFO, GH_LOG_DEBUG };

// A line under construction. What does not fit is cut, and the line still ends.
struct gh_text {
    size_t length;
    char bytes[640];
};

GH_HIDDEN void gh_text_start(struct gh_text *text);
GH_HIDDEN void gh_text_add(struct gh_text *text, const char *part);
GH_HIDDEN void gh_text_add_part(struct gh_text *text, const char *part, size_t length);
GH_HIDDEN void gh_text_add_number(struct gh_text *text, uint64_t number);
GH_HIDDEN void gh_text_add_hex(struct gh_text *text, uint64_t number);
// "64 KiB", "4 MiB": exact multiples get the larger unit.
GH_HIDDEN void gh_text_add_size(struct gh_text *text, uint64_t bytes);
GH_HIDDEN const char *gh_text_get(struct gh_text *text); // terminated

// Remembers which file stderr is. A daemon may close it and open something else in its place:
// then nothing is written any more.
GH_HIDDEN void gh_log_start(void);

// "gpuhost: TEXT\n" when the configured level is `level` or more.
GH_HIDDEN void gh_log(int level, const char *text);
GH_HIDDEN void gh_log_text(int level, struct gh_text *text);

// The same, for the first call with this flag only.
GH_HIDDEN void gh_log_once(atomic_flag *said, int level, struct gh_text *text);

// As it is, whatever the level: answers to a question the user asked.
GH_HIDDEN void gh_log_raw(const char *text);

#endif
