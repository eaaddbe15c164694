// SPDX-License-Identifier: MIT
//
// Log lines: levels, cuts, errno, and a stderr that is no longer the one we know.
#include "captured.h"

#include <malloc.h>
#include <sys/stat.h>

#include "config.h"

Test(log, levels) {
    capture_start();
    gh_config.log = GH_LOG_WARNING;
    gh_log(GH_LOG_ERROR, "one");
    gh_log(GH_LOG_WARNING, "two");
    gh_log(GH_LOG_INFO, "three");
    cr_assert_str_eq(captured(), "gpuhost: one\ngpuhost: two\n");
    gh_config.log = GH_LOG_NONE;
    gh_log(GH_LOG_ERROR, "four");
    cr_assert_str_eq(captured(), "");
    gh_log_raw("as it is");
    cr_assert_str_eq(captured(), "as it is");
}

Test(log, once) {
    capture_start();
    atomic_flag said = ATOMIC_FLAG_INIT;
    struct gh_text text;
    gh_text_start(&text);
    gh_text_add(&text, "said");
    for (int i = 0; i < 3; i++)
        gh_log_once(&said, GH_LOG_ERROR, &text);
    cr_assert_str_eq(captured(), "gpuhost: said\n");
}

Test(log, parts) {
    struct gh_text text;
    gh_text_start(&text);
    gh_text_add_number(&text, 0);
    gh_text_add(&text, " ");
    gh_text_add_number(&text, UINT64_MAX);
    gh_text_add(&text, " ");
    gh_text_add_hex(&text, UINT64_MAX);
    gh_text_add(&text, " ");
    gh_text_add_part(&text, "partial", 4);
    cr_assert_str_eq(gh_text_get(&text), "0 18446744073709551615 0xffffffffffffffff part");
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = { { 0, "0" }, { 1, "1" }, { 1024, "1K" }, { 1025, "1025" }, { 3 << 20, "3M" },
                  { UINT64_C(5) << 40, "5T" }, { UINT64_C(1) << 60, "1048576T" } };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        gh_text_start(&text);
        gh_text_add_size(&text, sizes[i].bytes);
        cr_assert_str_eq(gh_text_get(&text), sizes[i].text);
    }
}

// Whatever the length: one line, a newline at its end, nothing behind it.
Test(log, long_lines_are_cut) {
    capture_start();
    static char piece[2000];
    for (size_t length = 1; length < sizeof(piece); length += 13) {
        memset(piece, 'x', length);
        piece[length] = '\0';
        gh_log(GH_LOG_ERROR, piece);
        const char *line = captured();
        size_t got = strlen(line);
        cr_assert_leq(got, sizeof(struct gh_text));
        cr_assert_eq(line[got - 1], '\n');
        cr_assert_eq(strchr(line, '\n'), line + got - 1);
        if (length < 500)
            cr_assert_eq(got, strlen("gpuhost: \n") + length);
    }
}

Test(log, keeps_errno_and_allocates_nothing) {
    capture_start();
    size_t before = mallinfo2().uordblks;
    errno = 4711;
    gh_log(GH_LOG_ERROR, "text");
    gh_log_start();
    cr_assert_eq(errno, 4711);
    close(STDERR_FILENO);
    errno = 4711;
    gh_log(GH_LOG_ERROR, "text");
    gh_log_start();
    cr_assert_eq(errno, 4711);
    cr_assert_eq(mallinfo2().uordblks, before);
}

// A daemon closes its stderr and a socket or a data file takes the number.
Test(log, a_replaced_stderr_gets_nothing) {
    capture_start();
    char path[] = "/tmp/gpuhost-unit-XXXXXX";
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    unlink(path);
    cr_assert_eq(dup2(file, STDERR_FILENO), STDERR_FILENO);
    gh_log(GH_LOG_ERROR, "not for this file");
    gh_log_raw("nor this");
    struct stat status;
    cr_assert_eq(fstat(file, &status), 0);
    cr_assert_eq(status.st_size, 0);
}

Test(log, no_stderr_from_the_start) {
    close(STDERR_FILENO);
    gh_log_start();
    int file = open("/dev/null", O_WRONLY); // takes the number
    cr_assert_eq(file, STDERR_FILENO);
    gh_log(GH_LOG_ERROR, "nobody hears it");
}
