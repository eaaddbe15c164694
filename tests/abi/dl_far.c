// SPDX-License-Identifier: MIT
//
// The library that only a RUNPATH finds.
int far_answer(void);

int far_answer(void) {
    return 4711;
}
