// SPDX-License-Identifier: MIT
//
// Stderr into a pipe, and what was written to it. The log learns of the new file.
#ifndef GH_TESTS_CAPTURED_H
#define GH_TESTS_CAPTURED_H

#include <fcntl.h>

#include "log.h"
#include "unit.h"

static int captured_end;
static char captured_text[65536];

static inline void capture_start(void) {
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    captured_end = ends[0];
    fcntl(captured_end, F_SETFL, O_NONBLOCK);
    gh_log_start();
}

// All that was written since the last call.
static inline const char *captured(void) {
    size_t length = 0;
    ssize_t got;
    while (length < sizeof(captured_text) - 1 &&
           (got = read(captured_end, captured_text + length, sizeof(captured_text) - 1 - length)) > 0)
        length += (size_t)got;
    captured_text[length] = '\0';
    return captured_text;
}

#endif
