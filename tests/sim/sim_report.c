// SPDX-License-Identifier: MIT
//
// Counters, the log, the abort line, and the report when the driver is unloaded or the process
// exits. Writes through write(2) from stack buffers: a driver that logs must not itself disturb
// the allocator under test (GHSIM_NOISY is there for that). Any thread; takes no lock.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim_internal.h"

struct ghsim_stats sim_stats;

static const char *const reason_names[GHSIM_REASON_COUNT] = {
    [GHSIM_OVERLAP] = "overlap",
    [GHSIM_MISALIGNED] = "misaligned",
    [GHSIM_DRIVER_MEMORY] = "driver memory",
    [GHSIM_STRADDLE] = "straddle",
    [GHSIM_ILLEGAL_ADDRESS] = "illegal address",
    [GHSIM_NOT_RESIDENT] = "not resident",
    [GHSIM_WRONG_DEVICE] = "wrong device",
    [GHSIM_PAGE_MOVED] = "page moved",
    [GHSIM_BAD_HANDLE] = "bad handle",
    [GHSIM_LOST_EVENT] = "lost event",
    [GHSIM_CHILD_CALL] = "call in child",
    [GHSIM_LATE_CALL] = "call after exit",
};

const char *ghsim_reason_name(unsigned reason)
{
    return reason < GHSIM_REASON_COUNT ? reason_names[reason] : "?";
}

static void write_line(const char *where, const char *line, size_t length)
{
    if (strcmp(where, "stderr") == 0) {
        if (write(STDERR_FILENO, line, length) < 0) return;
        return;
    }
    // Opened per line: programs close file descriptors that they do not know.
    const int fd = open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return;
    if (write(fd, line, length) < 0) {
        close(fd);
        return;
    }
    close(fd);
}

static size_t compose(char *line, size_t size, const char *head, const char *format, va_list list)
{
    size_t used = (size_t)snprintf(line, size, "ghsim: %s", head);
    const int more = vsnprintf(line + used, size - used - 1, format, list);
    if (more > 0) used += (size_t)more < size - used - 1 ? (size_t)more : size - used - 2;
    line[used++] = '\n';
    return used;
}

void sim_log(const char *format, ...)
{
    if (!sim_config.log[0]) return;
    const int saved = errno;
    char line[512];
    va_list list;
    va_start(list, format);
    const size_t length = compose(line, sizeof line, "", format, list);
    va_end(list);
    write_line(sim_config.log, line, length);
    errno = saved;
}

ze_result_t sim_violation(enum ghsim_reason reason, const char *format, ...)
{
    char head[64], line[512];
    SIM_COUNT(reason[reason], 1);
    SIM_COUNT(violations, 1);
    snprintf(head, sizeof head, "%s: %s: ", sim_config.refuse ? "REFUSED" : "ABORT", reason_names[reason]);
    va_list list;
    va_start(list, format);
    const size_t length = compose(line, sizeof line, head, format, list);
    va_end(list);
    if (sim_config.refuse) {
        if (sim_config.log[0]) write_line(sim_config.log, line, length);
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    }
    write_line("stderr", line, length);
    abort();
}

void ghsim_stats(struct ghsim_stats *out)
{
    const uint64_t *from = (const uint64_t *)(const void *)&sim_stats;
    uint64_t *to = (uint64_t *)(void *)out;
    for (size_t i = 0; i < sizeof sim_stats / sizeof *from; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    out->struct_size = sizeof *out;
}

__attribute__((destructor)) static void report(void)
{
    if (sim_in_child()) return; // the parent's imports are not the child's to account for
    struct ghsim_stats s;
    char line[512];
    ghsim_stats(&s);
    if (sim_config.report[0]) {
        const int n = snprintf(
            line, sizeof line,
            "ghsim: imports=%llu live=%llu refused=%llu nested=%llu releases=%llu bytes_live=%llu "
            "bytes_peak=%llu copies=%llu fills=%llu launches=%llu residency=%llu evictions=%llu "
            "violations=%llu interior_frees=%llu scope=%s\n",
            (unsigned long long)s.imports, (unsigned long long)s.imports_live,
            (unsigned long long)s.imports_refused, (unsigned long long)s.imports_nested,
            (unsigned long long)s.releases, (unsigned long long)s.bytes_live,
            (unsigned long long)s.bytes_peak, (unsigned long long)s.copies,
            (unsigned long long)s.fills, (unsigned long long)s.launches,
            (unsigned long long)s.residency_calls, (unsigned long long)s.evictions,
            (unsigned long long)s.violations, (unsigned long long)s.interior_frees,
            sim_config.context_scope ? "context" : "driver");
        if (n > 0) write_line(sim_config.report, line, (size_t)n);
    }
    if (sim_config.page_check != SIM_PAGES_OFF && s.imports_live > 0) {
        const uint64_t moved = ghsim_check_pages();
        if (moved > 0) sim_violation(GHSIM_PAGE_MOVED, "%llu imports at exit", (unsigned long long)moved);
    }
    if (sim_config.leak_check && s.imports_live > 0) {
        const int n = snprintf(line, sizeof line, "ghsim: LEAK: %llu imports, %llu bytes\n",
                               (unsigned long long)s.imports_live, (unsigned long long)s.bytes_live);
        if (n > 0) write_line("stderr", line, (size_t)n);
        _exit(99);
    }
}
