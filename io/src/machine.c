/* SPDX-License-Identifier: MIT */
/* The machine's calls: see calls.h. They wait as the system has it, and leave errno alone. */
#include "base.h"
#include "calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define OF_MACHINE(result, name, parameters, arguments)                                            \
    static result machine_##name parameters {                                                      \
        return HAFTI_IO_RESULT(name arguments);                                                    \
    }
HAFTI_IO_SOCKET_CALLS(OF_MACHINE)
HAFTI_IO_FILE_CALLS(OF_MACHINE)
#undef OF_MACHINE

static int machine_pipe2(int ends[2], int flags) {
    return HAFTI_IO_RESULT(pipe2(ends, flags));
}
static int machine_bind(int socket, const struct sockaddr *address, socklen_t size) {
    return HAFTI_IO_RESULT(bind(socket, address, size));
}
static int machine_getsockname(int socket, struct sockaddr *address, socklen_t *size) {
    return HAFTI_IO_RESULT(getsockname(socket, address, size));
}
static int machine_openat(int directory, const char *path, int flags, mode_t mode) {
    return HAFTI_IO_RESULT(openat(directory, path, flags, mode));
}
/* One part at a place goes by the calls for it: a filter of system calls may refuse the others. */
static ssize_t machine_readv(int descriptor, const struct iovec *parts, size_t count,
                             int64_t offset) {
    if (count == 1 && offset >= 0)
        return HAFTI_IO_RESULT(pread(descriptor, parts->iov_base, parts->iov_len, offset));
    return HAFTI_IO_RESULT(offset >= 0 ? preadv(descriptor, parts, (int)count, offset)
                                       : readv(descriptor, parts, (int)count));
}
static ssize_t machine_writev(int descriptor, const struct iovec *parts, size_t count,
                              int64_t offset) {
    if (count == 1 && offset >= 0)
        return HAFTI_IO_RESULT(pwrite(descriptor, parts->iov_base, parts->iov_len, offset));
    return HAFTI_IO_RESULT(offset >= 0 ? pwritev(descriptor, parts, (int)count, offset)
                                       : writev(descriptor, parts, (int)count));
}
static int machine_fstatat(int directory, const char *path, struct stat *status, int flags) {
    return HAFTI_IO_RESULT(fstatat(directory, path, status, flags));
}
static int machine_scandir(const char *path, struct dirent ***entries) {
    return HAFTI_IO_RESULT(scandir(path, entries, NULL, alphasort));
}

const haft_io_calls_t hafti_io_machine = {
    .waits = true,
#define OF_MACHINE(result, name, parameters, arguments) .name = machine_##name,
    HAFTI_IO_SOCKET_CALLS(OF_MACHINE) HAFTI_IO_FILE_CALLS(OF_MACHINE)
#undef OF_MACHINE
        .pipe2 = machine_pipe2,
    .bind = machine_bind,
    .getsockname = machine_getsockname,
    .openat = machine_openat,
    .readv = machine_readv,
    .writev = machine_writev,
    .fstatat = machine_fstatat,
    .scandir = machine_scandir,
};
