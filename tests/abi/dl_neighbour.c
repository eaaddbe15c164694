// SPDX-License-Identifier: MIT
//
// What dl_library.c finds as the next definition of which().
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int neighbour_answer(void) {
    return 4711;
}

const char *which(void) {
    return "second";
}
