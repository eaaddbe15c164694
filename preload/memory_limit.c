// SPDX-License-Identifier: MIT
//
// Reads the memory that the machine and the cgroup allow (memory_limit.h). Both cgroup versions;
// files that are missing or unreadable simply do not limit.
#include "memory_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "config.h"

#define NO_LIMIT (UINT64_C(1) << 62)

static _Atomic uint64_t known_limit;

// The file's text in `buffer`, or an empty text.
static void read_file(const char *path, char *buffer, size_t size) {
    buffer[0] = '\0';
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t length = read(file, buffer, size - 1);
    buffer[length > 0 ? length : 0] = '\0';
    close(file);
}

static uint64_t number_in(const char *path) {
    char text[64];
    read_file(path, text, sizeof(text));
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (value > NO_LIMIT / 10)
            return NO_LIMIT;
        value = value * 10 + (uint64_t)(*at - '0');
    }
    return at == text ? NO_LIMIT : value; // "max", or no such file
}

// The limits of one cgroup path and of all above it.
static uint64_t limit_along(const char *mount, char *group, const char *file) {
    uint64_t limit = NO_LIMIT;
    char path[1280];
    for (;;) {
        size_t mount_length = strlen(mount);
        size_t group_length = strlen(group);
        size_t file_length = strlen(file);
        if (mount_length + group_length + file_length + 1 > sizeof(path))
            return limit;
        memcpy(path, mount, mount_length);
        memcpy(path + mount_length, group, group_length);
        memcpy(path + mount_length + group_length, file, file_length + 1);
        uint64_t here = number_in(path);
        limit = here < limit ? here : limit;
        char *slash = strrchr(group, '/');
        if (slash == NULL)
            return limit;
        *slash = '\0';
    }
}

static uint64_t cgroup_limit(void) {
    char text[4096];
    read_file("/proc/self/cgroup", text, sizeof(text));
    uint64_t limit = NO_LIMIT;
    for (char *line = text; line != NULL && *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        char *group = strrchr(line, ':');
        if (group != NULL && strlen(group) < 1024) {
            uint64_t here = NO_LIMIT;
            if (strncmp(line, "0::", 3) == 0)
                here = limit_along("/sys/fs/cgroup", group + 1, "/memory.max");
            else if (strstr(line, ":memory:") != NULL)
                here = limit_along("/sys/fs/cgroup/memory", group + 1, "/memory.limit_in_bytes");
            limit = here < limit ? here : limit;
        }
        line = end == NULL ? NULL : end + 1;
    }
    return limit;
}

uint64_t gh_memory_limit_bytes(void) {
    if (gh_config.limit != 0)
        return gh_config.limit;
    uint64_t limit = atomic_load_explicit(&known_limit, memory_order_relaxed);
    if (limit != 0)
        return limit;
    int saved_errno = errno;
    struct sysinfo info;
    limit = sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : NO_LIMIT;
    uint64_t group = cgroup_limit();
    limit = (group < limit ? group : limit) / 8 * 7;
    atomic_store_explicit(&known_limit, limit, memory_order_relaxed);
    errno = saved_errno;
    return limit;
}
