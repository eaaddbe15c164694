// SPDX-License-Identifier: MIT
//
// Runs one command and says what it cost: measure PRELOAD COMMAND [ARGUMENT ...]. The last line on
// stdout is
//     WALL_SECONDS USER_SECONDS SYSTEM_SECONDS PEAK_RSS_KIB STATUS
// The command's own output is dropped. PRELOAD becomes its LD_PRELOAD, but when COMMAND is a
// shell script (a name ending in .sh) it becomes BENCH_PRELOAD, and the script says which of its
// programs gets it. A C program, because a child's peak starts at that of the process it was
// forked from: this one is small.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_SECONDS 300

static double seconds(const struct timeval *time) {
    return (double)time->tv_sec + (double)time->tv_usec * 1e-6;
}

static void become(const char *preload, char **command) {
    size_t length = strlen(command[0]);
    int script = length > 3 && strcmp(command[0] + length - 3, ".sh") == 0;
    unsetenv("LD_PRELOAD");
    if (*preload != '\0' || script)
        setenv(script ? "BENCH_PRELOAD" : "LD_PRELOAD", preload, 1);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    alarm(LIMIT_SECONDS); // kept over exec
    execvp(command[0], command);
    _exit(127);
}

int main(int count, char **words) {
    if (count < 3) {
        fputs("usage: measure PRELOAD COMMAND [ARGUMENT ...]\n", stderr);
        return 2;
    }
    struct timespec start;
    struct timespec end;
    struct rusage usage;
    int status = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0)
        become(words[1], words + 2);
    if (wait4(child, &status, 0, &usage) != child)
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.6f %.6f %.6f %ld %d\n",
           (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9,
           seconds(&usage.ru_utime), seconds(&usage.ru_stime), usage.ru_maxrss,
           WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return 0;
}
