// SPDX-License-Identifier: MIT
//
// A daemon's start: stderr is closed and something else gets its number. The library, asked to
// talk as much as it can, must not write there. Usage: closed_stderr FILE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct stat status;
    if (argc != 2)
        return 2;
    close(2);
    int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file != 2)
        return 3;
    dlopen("libdoes_not_exist.so", RTLD_NOW | RTLD_DEEPBIND); // at level debug there is a line about it
    free(malloc((size_t)100 << 20));
    if (fork() == 0)
        exit(0);
    sleep(1);
    return fstat(2, &status) == 0 && status.st_size == 0 ? 0 : 1;
}
