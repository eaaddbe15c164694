// SPDX-License-Identifier: MIT
//
// gh-bench-gpu wraps | door | import KIND MIB | memory ATTACH SECONDS: one measurement of the GPU
// side in one process, with libgpuhost preloaded or without. Prints "name value" lines.
#include <stdlib.h>
#include <string.h>

#include "gpu_client.h"

int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 2 && strcmp(words[1], "wraps") == 0)
        gpu_bench_wraps();
    else if (count == 2 && strcmp(words[1], "door") == 0)
        gpu_bench_door();
    else if (count == 4 && strcmp(words[1], "import") == 0)
        gpu_bench_import(words[2], strtoul(words[3], NULL, 10));
    else if (count == 4 && strcmp(words[1], "memory") == 0)
        gpu_bench_memory(atoi(words[2]), (unsigned)strtoul(words[3], NULL, 10));
    else {
        fputs("usage: gh-bench-gpu wraps | door | import KIND MIB | memory ATTACH SECONDS\n", stderr);
        return 2;
    }
    return 0;
}
