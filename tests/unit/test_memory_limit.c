// SPDX-License-Identifier: MIT
//
// The limit from the machine's memory and the cgroups. open() is wrapped by the link, so that the
// files of /proc and /sys are the test's own.
#include "unit.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/sysinfo.h>

#include "config.h"
#include "memory_limit.h"

// Path and content; a path that is not here does not exist.
static const char *files[16][2];
static unsigned opened;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...) {
    if (strncmp(path, "/proc/self/cgroup", 17) != 0 && strncmp(path, "/sys/", 5) != 0)
        return __real_open(path, flags);
    for (size_t i = 0; i < 16 && files[i][0] != NULL; i++) {
        if (strcmp(files[i][0], path) != 0)
            continue;
        int ends[2];
        if (pipe(ends) != 0 || write(ends[1], files[i][1], strlen(files[i][1])) < 0)
            abort();
        close(ends[1]);
        opened++;
        return ends[0];
    }
    errno = ENOENT;
    return -1;
}

static uint64_t all_memory(void) {
    struct sysinfo info;
    cr_assert_eq(sysinfo(&info), 0);
    return (uint64_t)info.totalram * info.mem_unit;
}

static void file(unsigned at, const char *path, const char *content) {
    files[at][0] = path;
    files[at][1] = content;
}

Test(memory_limit, an_option_wins) {
    gh_config.limit = 12345;
    cr_assert_eq(gh_memory_limit_bytes(), 12345);
    cr_assert_eq(opened, 0);
}

Test(memory_limit, no_cgroups) {
    errno = 4711;
    cr_assert_eq(gh_memory_limit_bytes(), all_memory() / 8 * 7);
    cr_assert_eq(errno, 4711);
}

Test(memory_limit, version_2_the_smallest_of_the_path) {
    file(0, "/proc/self/cgroup", "0::/user/session/scope\n");
    file(1, "/sys/fs/cgroup/user/session/scope/memory.max", "max\n");
    file(2, "/sys/fs/cgroup/user/session/memory.max", "800000000\n");
    file(3, "/sys/fs/cgroup/user/memory.max", "900000000\n");
    cr_assert_eq(gh_memory_limit_bytes(), 700000000);
    unsigned before = opened;
    cr_assert_eq(gh_memory_limit_bytes(), 700000000);
    cr_assert_eq(opened, before, "it is read once");
}

// In a container the path is "/" and the limit lies in the root.
Test(memory_limit, version_2_in_a_container) {
    file(0, "/proc/self/cgroup", "0::/\n");
    file(1, "/sys/fs/cgroup/memory.max", "80000000\n");
    cr_assert_eq(gh_memory_limit_bytes(), 70000000);
}

Test(memory_limit, version_1) {
    file(0, "/proc/self/cgroup", "12:cpu,cpuacct:/docker/x\n11:memory:/docker/x\n0::/docker/x\n");
    file(1, "/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "16000000\n");
    file(2, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    cr_assert_eq(gh_memory_limit_bytes(), 14000000);
}

Test(memory_limit, unlimited_and_nonsense) {
    file(0, "/proc/self/cgroup", "0::/a\nno colon at all\n:\n\n");
    file(1, "/sys/fs/cgroup/a/memory.max", "99999999999999999999999999\n");
    file(2, "/sys/fs/cgroup/memory.max", "");
    cr_assert_eq(gh_memory_limit_bytes(), all_memory() / 8 * 7);
}
