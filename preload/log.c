// SPDX-License-Identifier: MIT
//
// Builds and writes log lines (log.h). System calls are made directly: at start-up, libc's functions
// may be interposed by something that is not ready yet (a sanitizer, a tracing shim).
#include "log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "config.h"

static dev_t stderr_device;
static ino_t stderr_inode;
static bool stderr_known;

void gh_text_start(struct gh_text *text) {
    text->length = 0;
}

void gh_text_add_part(struct gh_text *text, const char *part, size_t length) {
    size_t room = sizeof(text->bytes) - 2 - text->length; // a newline and a terminator still fit
    length = gh_min(length, room);
    memcpy(text->bytes + text->length, part, length);
    text->length += length;
}

void gh_text_add(struct gh_text *text, const char *part) {
    gh_text_add_part(text, part, strlen(part));
}

static void add_digits(struct gh_text *text, uint64_t number, unsigned base) {
    char digits[24];
    size_t at = sizeof(digits);
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    gh_text_add_part(text, digits + at, sizeof(digits) - at);
}

void gh_text_add_number(struct gh_text *text, uint64_t number) {
    add_digits(text, number, 10);
}

void gh_text_add_hex(struct gh_text *text, uint64_t number) {
    gh_text_add(text, "0x");
    add_digits(text, number, 16);
}

void gh_text_add_size(struct gh_text *text, uint64_t bytes) {
    static const char *const units[] = { "", "K", "M", "G", "T" };
    unsigned unit = 0;
    while (bytes != 0 && bytes % 1024 == 0 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    gh_text_add_number(text, bytes);
    gh_text_add(text, units[unit]);
}

const char *gh_text_get(struct gh_text *text) {
    text->bytes[text->length] = '\0';
    return text->bytes;
}

void gh_log_start(void) {
    struct stat status;
    int saved_errno = errno;
    stderr_known = syscall(SYS_fstat, STDERR_FILENO, &status) == 0;
    if (stderr_known) {
        stderr_device = status.st_dev;
        stderr_inode = status.st_ino;
    }
    errno = saved_errno;
}

static bool is_our_stderr(void) {
    struct stat status;
    return stderr_known && syscall(SYS_fstat, STDERR_FILENO, &status) == 0 && status.st_dev == stderr_device &&
           status.st_ino == stderr_inode;
}

// A reader of stderr that is gone must not end the program for a line of ours: SIGPIPE is held
// back, and taken when this write caused it.
static void write_all(const char *bytes, size_t length) {
    const uint64_t pipe_signal = UINT64_C(1) << (SIGPIPE - 1); // the kernel's form of a signal set
    uint64_t before = 0;
    uint64_t pending = 0;
    int saved_errno = errno;
    if (!is_our_stderr()) {
        errno = saved_errno;
        return;
    }
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &pipe_signal, &before, sizeof(before));
    syscall(SYS_rt_sigpending, &pending, sizeof(pending));
    while (length != 0) {
        long written = syscall(SYS_write, STDERR_FILENO, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EPIPE && (pending & pipe_signal) == 0) {
            const struct timespec at_once = { 0, 0 };
            syscall(SYS_rt_sigtimedwait, &pipe_signal, NULL, &at_once, sizeof(pipe_signal));
        }
        if (written <= 0)
            break;
        bytes += written;
        length -= (size_t)written;
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
    errno = saved_errno;
}

void gh_log_text(int level, struct gh_text *text) {
    if ((uint64_t)level > gh_config.log)
        return;
    struct gh_text line;
    gh_text_start(&line);
    gh_text_add(&line, "gpuhost: ");
    gh_text_add_part(&line, text->bytes, text->length);
    line.bytes[line.length] = '\n'; // gh_text_add_part left room
    write_all(line.bytes, line.length + 1);
}

void gh_log(int level, const char *text) {
    struct gh_text line;
    gh_text_start(&line);
    gh_text_add(&line, text);
    gh_log_text(level, &line);
}

void gh_log_once(atomic_flag *said, int level, struct gh_text *text) {
    if (!atomic_flag_test_and_set_explicit(said, memory_order_relaxed))
        gh_log_text(level, text);
}

void gh_log_raw(const char *text) {
    write_all(text, strlen(text));
}
