// SPDX-License-Identifier: MIT
//
// What the fuzz targets share: reading decisions from the input, and a check that aborts, which
// libFuzzer reports with the input. Every target is deterministic in its input.
#ifndef GH_TESTS_FUZZ_H
#define GH_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

// The next byte; zeros after the end.
static inline uint8_t fuzz_byte(struct fuzz_input *input) {
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

#define FUZZ_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
