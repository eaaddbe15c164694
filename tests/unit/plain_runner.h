// SPDX-License-Identifier: MIT
//
// The part of Criterion that these tests use, for TSan builds: Criterion places its shared memory
// where TSan allows none, and does not start. Each test runs in a process of its own; a program's
// tests run in order and every failure is printed.
#ifndef GH_TESTS_PLAIN_RUNNER_H
#define GH_TESTS_PLAIN_RUNNER_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct plain_test {
    const char *name;
    void (*run)(void);
    int signal;
    double timeout;
    struct plain_test *next;
};

static struct plain_test *plain_tests;
static struct plain_test **plain_last = &plain_tests;

#define PLAIN_SKIPPED 77

#define Test(suite, test, ...)                                                                                         \
    static void suite##_##test##_run(void);                                                                            \
    static struct plain_test suite##_##test = { .name = #suite "::" #test, .run = suite##_##test##_run, __VA_ARGS__ }; \
    __attribute__((constructor)) static void suite##_##test##_add(void) {                                              \
        *plain_last = &suite##_##test;                                                                                 \
        plain_last = &suite##_##test.next;                                                                             \
    }                                                                                                                  \
    static void suite##_##test##_run(void)

__attribute__((format(printf, 4, 5), noreturn)) static inline void plain_fail(const char *file, int line,
                                                                              const char *what, const char *format, ...) {
    va_list list;
    fprintf(stderr, "%s:%d: %s: ", file, line, what);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    _exit(1);
}

#define PLAIN_MUST(condition, what, ...)                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            plain_fail(__FILE__, __LINE__, what, " " __VA_ARGS__);                                                      \
    } while (0)

#define cr_assert(condition, ...) PLAIN_MUST(condition, #condition, __VA_ARGS__)
#define cr_assert_not(condition, ...) PLAIN_MUST(!(condition), "not " #condition, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) PLAIN_MUST((a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) PLAIN_MUST((a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) PLAIN_MUST((a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) PLAIN_MUST((a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) PLAIN_MUST((a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) PLAIN_MUST((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_null(a, ...) PLAIN_MUST((a) == NULL, #a " is NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...) PLAIN_MUST((a) != NULL, #a " is not NULL", __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) PLAIN_MUST(strcmp(a, b) == 0, #a " equals " #b, __VA_ARGS__)
#define cr_assert_fail(...) PLAIN_MUST(false, "must not be reached", __VA_ARGS__)
#define cr_log_info(...) ((void)printf(__VA_ARGS__), (void)printf("\n"))
#define cr_skip_test(...) ((void)printf("skipped: " __VA_ARGS__), (void)printf("\n"), fflush(stdout), _exit(PLAIN_SKIPPED))

// In a fresh process: a fork child of one with the heap in it looks broken to TSan, which does not
// know that jemalloc initialises its mutexes anew there. TSan gives an exit status of its own.
static inline bool plain_run(const struct plain_test *test) {
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test", test->name, (char *)NULL);
        _exit(1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    if (test->signal != 0)
        return WIFSIGNALED(status) && WTERMSIG(status) == test->signal;
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == PLAIN_SKIPPED);
}

// With the name of a test: that one, here. Otherwise (a ctest passes -j1) all.
int main(int argc, char **argv) {
    unsigned passed = 0;
    unsigned failed = 0;
    for (const struct plain_test *test = plain_tests; test != NULL; test = test->next) {
        if (argc == 2 && strcmp(argv[1], test->name) == 0) {
            alarm(test->timeout > 0 ? (unsigned)test->timeout : 120);
            test->run();
            return 0;
        }
    }
    for (const struct plain_test *test = plain_tests; test != NULL; test = test->next) {
        bool good = plain_run(test);
        passed += good;
        failed += !good;
        if (!good)
            fprintf(stderr, "FAIL %s\n", test->name);
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0 || passed == 0;
}

#endif
