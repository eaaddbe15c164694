// SPDX-License-Identifier: MIT
//
// Linked with the library; says whether the process is privileged and whose the heap is.
#include <stdio.h>
#include <sys/auxv.h>

#include "../../preload/include/gpuhost.h"

int main(void) {
    printf("privileged %d, active %d\n", getauxval(AT_SECURE) != 0, gpuhost_active());
    return 0;
}
