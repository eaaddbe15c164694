// SPDX-License-Identifier: MIT
//
// Starts a program under limits that must hold before its first instruction.
// Usage: under [as=MIB] [data=MIB] [nofile=N] [nproc=N] [uid=N] [stack=MIB] [close=FD]...
//              [kill=clone] [refuse=madvise] -- PROGRAM [ARGS...]
// Filters: making a thread or process kills the process; madvise answers EPERM. Exit status 77:
// this machine does not allow it.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void skip(const char *what) {
    printf("SKIP: %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(77);
}

static void set_limit(int resource, rlim_t value) {
    struct rlimit limit = { value, value };
    if (setrlimit((__rlimit_resource_t)resource, &limit) != 0)
        skip("setrlimit");
}

static void filter_calls(long first, long second, unsigned answer) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)first, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)second, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        skip("seccomp");
}

static int starts(const char *argument, const char *name, long *value) {
    size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0 || argument[length] != '=')
        return 0;
    *value = atol(argument + length + 1);
    return 1;
}

int main(int argc, char **argv) {
    int at = 1;
    long value;
    printf("under:");
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        printf(" %s", argv[i]);
    printf("\n");
    fflush(stdout);
    close_range(3, ~0u, 0); // what the test runner left open would count
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        if (starts(argv[at], "as", &value))
            set_limit(RLIMIT_AS, (rlim_t)value << 20);
        else if (starts(argv[at], "data", &value))
            set_limit(RLIMIT_DATA, (rlim_t)value << 20);
        else if (starts(argv[at], "stack", &value))
            set_limit(RLIMIT_STACK, (rlim_t)value << 20);
        else if (starts(argv[at], "nofile", &value))
            set_limit(RLIMIT_NOFILE, (rlim_t)value);
        else if (starts(argv[at], "nproc", &value))
            set_limit(RLIMIT_NPROC, (rlim_t)value);
        else if (starts(argv[at], "close", &value))
            close((int)value);
        else if (strcmp(argv[at], "kill=clone") == 0)
            filter_calls(SYS_clone, SYS_clone3, SECCOMP_RET_KILL_PROCESS);
        else if (strcmp(argv[at], "refuse=madvise") == 0)
            filter_calls(SYS_madvise, SYS_madvise, SECCOMP_RET_ERRNO | EPERM);
        else if (starts(argv[at], "uid", &value)) {
            if (setgid((gid_t)value) != 0 || setuid((uid_t)value) != 0)
                skip("setuid");
        } else
            return 2;
    }
    if (at + 1 >= argc)
        return 2;
    execv(argv[at + 1], argv + at + 1);
    return 3;
}
