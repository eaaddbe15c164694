// SPDX-License-Identifier: MIT
//
// How much longer a process takes that does nothing: interleaved runs of /bin/true without and with
// the library. Prints medians as FIGURE lines; fails when the fastest runs are further apart than
// the limit in milliseconds, since a median is the machine's other work as well.
// Usage: startup_time LIBRARY LIMIT
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define RUNS 101

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double run_ms(char *preload) {
    char *arguments[] = { (char[]){ "/bin/true" }, NULL };
    char *environment[] = { preload, NULL };
    pid_t child;
    int status = -1;
    double start = now_ms();
    if (posix_spawn(&child, arguments[0], NULL, NULL, arguments, environment) != 0)
        abort();
    waitpid(child, &status, 0);
    if (status != 0)
        abort();
    return now_ms() - start;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    char preload[4096];
    snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", argv[1]);
    double without[RUNS];
    double with[RUNS];
    for (int i = -5; i < RUNS; i++) { // the first ones warm the caches
        double a = run_ms(NULL);
        double b = run_ms(preload);
        if (i >= 0) {
            without[i] = a;
            with[i] = b;
        }
    }
    qsort(without, RUNS, sizeof(double), compare);
    qsort(with, RUNS, sizeof(double), compare);
    double added = with[RUNS / 2] - without[RUNS / 2];
    printf("FIGURE startup_without_ms %.2f ms\n", without[RUNS / 2]);
    printf("FIGURE startup_with_ms %.2f ms\n", with[RUNS / 2]);
    printf("FIGURE startup_added_ms %.2f ms\n", added);
    return with[0] - without[0] < atof(argv[2]) ? 0 : 1;
}
