// SPDX-License-Identifier: MIT
//
// For functions that stand in for syscall(): its six words, whatever of them the caller gave.
#ifndef GH_TEST_SYSCALL_WORDS_H
#define GH_TEST_SYSCALL_WORDS_H

#include <stdarg.h>

#define TEST_SYSCALL_WORDS(words, number)                                                                              \
    long words[6];                                                                                                     \
    va_list words##_list;                                                                                              \
    va_start(words##_list, number);                                                                                    \
    for (int word = 0; word < 6; word++)                                                                               \
        words[word] = va_arg(words##_list, long);                                                                      \
    va_end(words##_list)

#endif
