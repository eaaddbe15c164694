// SPDX-License-Identifier: MIT
//
// See first_call.c. Each call must succeed, and is one of its kind.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

__attribute__((visibility("default"))) int first_calls_done;

#define SIZE ((size_t)1 << 20)

static void *call_all(void *unused) {
    char *start = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    first_calls_done += start != MAP_FAILED;
    memset(start, 1, SIZE);
    first_calls_done += madvise(start, SIZE, MADV_DONTNEED) == 0 && start[0] == 0;
    start = mremap(start, SIZE, 2 * SIZE, MREMAP_MAYMOVE);
    first_calls_done += start != MAP_FAILED;
    first_calls_done += munmap(start, 2 * SIZE) == 0;
    void *end = sbrk(0);
    first_calls_done += sbrk(4096) != (void *)-1;
    first_calls_done += brk(end) == 0;
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    void *segment = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    first_calls_done += shmdt(segment) == 0;
    void *block = malloc(3 * SIZE);
    first_calls_done += block != NULL;
    free(block);
    block = aligned_alloc(4096, 8192);
    first_calls_done += block != NULL;
    free(block);
    return unused;
}

__attribute__((constructor)) static void wait_for_a_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, call_all, NULL) == 0)
        pthread_join(thread, NULL);
}
