// SPDX-License-Identifier: MIT
//
// Starts a program under a seccomp filter: system calls that it may not make are refused with an
// errno, or kill it. Usage: filter CALL=ERRNO-NUMBER|kill ... -- PROGRAM [ARGS...]
// Exit status 77: no filters here.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RULES_MOST 32

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    { "clone", SYS_clone },         { "clone3", SYS_clone3 },   { "madvise", SYS_madvise },
    { "mincore", SYS_mincore },     { "sysinfo", SYS_sysinfo }, { "sched_getaffinity", SYS_sched_getaffinity },
    { "prlimit64", SYS_prlimit64 }, { "shmctl", SYS_shmctl },   { "sched_yield", SYS_sched_yield },
    { "rt_sigprocmask", SYS_rt_sigprocmask },
};

static unsigned number_of(const char *rule, size_t length) {
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strncmp(calls[i].name, rule, length) == 0 && calls[i].name[length] == '\0')
            return calls[i].number;
    fprintf(stderr, "filter: %s is not known\n", rule);
    exit(2);
}

int main(int argc, char **argv) {
    struct sock_filter filter[2 * RULES_MOST + 2];
    unsigned short used = 0;
    int at = 1;
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (; at < argc && strcmp(argv[at], "--") != 0 && at <= RULES_MOST; at++) {
        const char *answer = strchr(argv[at], '=');
        if (answer == NULL)
            return 2;
        unsigned number = number_of(argv[at], (size_t)(answer - argv[at]));
        unsigned action = strcmp(answer, "=kill") == 0 ? SECCOMP_RET_KILL_PROCESS
                                                       : SECCOMP_RET_ERRNO | (unsigned)atoi(answer + 1);
        filter[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    }
    filter[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { used, filter };
    if (at + 1 >= argc || strcmp(argv[at], "--") != 0)
        return 2;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("SKIP: seccomp");
        return 77;
    }
    execv(argv[at + 1], argv + at + 1);
    return 3;
}
