// SPDX-License-Identifier: MIT
//
// Reads /proc/self/maps (vma.h), line by line through a buffer on the stack.
#include "vma.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct reader {
    int file;
    size_t filled;
    size_t at;
    char buffer[2048];
};

static int next_byte(struct reader *reader) {
    if (reader->at == reader->filled) {
        ssize_t length = read(reader->file, reader->buffer, sizeof(reader->buffer));
        if (length <= 0)
            return -1;
        reader->filled = (size_t)length;
        reader->at = 0;
    }
    return (unsigned char)reader->buffer[reader->at++];
}

// One line without its end; what does not fit is dropped. False at the end of the file.
static bool next_line(struct reader *reader, char *line, size_t size) {
    size_t length = 0;
    int byte = next_byte(reader);
    if (byte < 0)
        return false;
    for (; byte >= 0 && byte != '\n'; byte = next_byte(reader)) {
        if (length + 1 < size)
            line[length++] = (char)byte;
    }
    line[length] = '\0';
    return true;
}

static const char *parse(const char *at, unsigned base, uint64_t *out) {
    *out = 0;
    for (;; at++) {
        unsigned digit;
        if (*at >= '0' && *at <= '9')
            digit = (unsigned)(*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            digit = (unsigned)(*at - 'a') + 10;
        else
            return at;
        if (digit >= base)
            return at;
        *out = *out * base + digit;
    }
}

static const char *skip_field(const char *at) {
    at += strcspn(at, " ");
    return at + strspn(at, " ");
}

bool gh_vma_find(uintptr_t address, struct gh_vma *out) {
    int saved_errno = errno;
    struct reader reader = { .file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };
    char line[160];
    bool found = false;
    while (reader.file >= 0 && !found && next_line(&reader, line, sizeof(line))) {
        uint64_t start;
        uint64_t end;
        const char *at = parse(line, 16, &start);
        at = parse(at + 1, 16, &end); // past the dash
        if (address < start || address >= end)
            continue;
        const char *permissions = at + 1;
        const char *inode = skip_field(skip_field(skip_field(permissions)));
        out->start = start;
        out->end = end;
        out->writable = permissions[1] == 'w';
        out->is_private = permissions[3] == 'p';
        parse(inode, 10, &out->inode);
        found = true;
    }
    if (reader.file >= 0)
        close(reader.file);
    errno = saved_errno;
    return found;
}

bool gh_vma_is_resident(uintptr_t start, uintptr_t end) {
    int saved_errno = errno;
    bool resident = true;
    unsigned char states[1024];
    while (start < end && resident) {
        size_t bytes = gh_min(end - start, sizeof(states) * GH_PAGE_SIZE);
        resident = mincore((void *)start, bytes, states) == 0;
        for (size_t page = 0; resident && page < bytes / GH_PAGE_SIZE; page++)
            resident = (states[page] & 1) != 0;
        start += bytes;
    }
    errno = saved_errno;
    return resident;
}

// The kernel writes, and says where it must not, instead of ending the program.
bool gh_vma_zero_writable(uintptr_t start, size_t size_bytes) {
    static char zeros[16 * GH_PAGE_SIZE];
    int saved_errno = errno;
    bool done = true;
    for (size_t at = 0; done && at < size_bytes; at += sizeof(zeros)) {
        struct iovec from = { zeros, gh_min(sizeof(zeros), size_bytes - at) };
        struct iovec to = { (void *)(start + at), from.iov_len };
        done = syscall(SYS_process_vm_writev, getpid(), &from, 1, &to, 1, 0) == (long)from.iov_len;
    }
    errno = saved_errno;
    return done;
}

bool gh_vma_zero_protected(uintptr_t start, size_t size_bytes) {
    static const char zeros[GH_PAGE_SIZE];
    int saved_errno = errno;
    int file = open("/proc/self/mem", O_RDWR | O_CLOEXEC); // writes there pass page protection
    bool done = file >= 0;
    for (size_t at = 0; done && at < size_bytes; at += GH_PAGE_SIZE)
        done = pwrite(file, zeros, GH_PAGE_SIZE, (off_t)(start + at)) == (ssize_t)GH_PAGE_SIZE;
    if (file >= 0)
        close(file);
    errno = saved_errno;
    return done;
}
