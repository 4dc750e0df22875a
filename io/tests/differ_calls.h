/* SPDX-License-Identifier: MIT */
/*
 * The functions of haft/io.h that differ.c compares, as a table, and what each promises to be, by
 * the system's own calls in an ordinary thread. EINTR ends one of these, so that a signal can stand
 * for a cancel.
 */
#ifndef HAFT_IO_TESTS_DIFFER_CALLS_H
#define HAFT_IO_TESTS_DIFFER_CALLS_H

#include "check_io.h"

#include "../src/results.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define CALLS(CALL)                                                                                \
    CALL(ssize_t, read, (int d, void *b, size_t n), read(d, b, n))                                 \
    CALL(ssize_t, write, (int d, const void *b, size_t n), write(d, b, n))                         \
    CALL(int, write_all, (int d, const void *b, size_t n), write_whole(d, b, n))                   \
    CALL(ssize_t, read_lent, (int d, const void **b), read_into_lent(d, b))                        \
    CALL(ssize_t, readv, (int d, const struct iovec *p, size_t n), readv(d, p, (int)n))            \
    CALL(ssize_t, writev, (int d, const struct iovec *p, size_t n), writev(d, p, (int)n))          \
    CALL(ssize_t, receive, (int d, void *b, size_t n, int f), recv(d, b, n, f))                    \
    CALL(ssize_t, send, (int d, const void *b, size_t n, int f), send(d, b, n, f))                 \
    CALL(ssize_t, receive_from,                                                                    \
         (int d, void *b, size_t n, int f, struct sockaddr *a, socklen_t *s),                      \
         recvfrom(d, b, n, f, a, s))                                                               \
    CALL(ssize_t, send_to,                                                                         \
         (int d, const void *b, size_t n, int f, const struct sockaddr *a, socklen_t s),           \
         sendto(d, b, n, f, a, s))                                                                 \
    CALL(ssize_t, receive_message, (int d, struct msghdr *m, int f), recvmsg(d, m, f))             \
    CALL(ssize_t, send_message, (int d, const struct msghdr *m, int f), sendmsg(d, m, f))          \
    CALL(int, accept, (int d), accept(d, NULL, NULL))                                              \
    CALL(int, connect, (int d, const struct sockaddr *a, socklen_t s), connect(d, a, s))           \
    CALL(int, wait_ready, (int d, short events), wait_here(d, events))                             \
    CALL(int, poll, (struct pollfd * e, size_t n, int64_t deadline),                               \
         poll(e, n, deadline == 0 ? 0 : -1))                                                       \
    CALL(int, close, (int d), close(d))                                                            \
    CALL(int, shutdown, (int d, int how), shutdown(d, how))                                        \
    CALL(ssize_t, send_file, (int to, int from, int64_t *at, size_t n), sendfile(to, from, at, n)) \
    CALL(ssize_t, pread, (int d, void *b, size_t n, int64_t at), pread(d, b, n, at))               \
    CALL(ssize_t, pwrite, (int d, const void *b, size_t n, int64_t at), pwrite(d, b, n, at))       \
    CALL(int, fsync, (int d), fsync(d))                                                            \
    CALL(int, open, (const char *path, int f, mode_t m), open(path, f, m))                         \
    CALL(int, list_directory, (const char *path, struct dirent ***e), list_here(path, e))          \
    CALL(int, mkdir, (const char *path, mode_t m), mkdir(path, m))                                 \
    CALL(int, remove, (const char *path), remove(path))                                            \
    CALL(int, rename, (const char *from, const char *to), rename(from, to))                        \
    CALL(int, stat, (const char *path, struct stat *s), stat(path, s))

/* Operations that are more than one call of the system. */
static int write_whole(int d, const void *b, size_t n) {
    for (size_t sent = 0; sent < n;) {
        ssize_t done = write(d, (const void *)((uintptr_t)b + sent), n - sent);
        if (done < 0)
            return -1;
        sent += (size_t)done;
    }
    return 0;
}
static ssize_t read_into_lent(int d, const void **b) {
    void *room = haft_io_lend();
    ssize_t done = read(d, room, HAFT_IO_LENT_SIZE);
    int error = errno;
    *b = done > 0 ? room : NULL;
    if (done <= 0)
        haft_io_give_back(room);
    errno = error;
    return done;
}
static int wait_here(int d, short events) {
    struct pollfd entry = {d, events, 0};
    int ready = d < 0 ? 1 : poll(&entry, 1, -1);
    if (ready >= 0 && (d < 0 || (entry.revents & POLLNVAL) != 0)) {
        errno = EBADF;
        return -1;
    }
    return ready < 0 ? ready : entry.revents;
}
static int list_here(const char *path, struct dirent ***entries) {
    if (path != NULL)
        return scandir(path, entries, NULL, alphasort);
    errno = EFAULT;
    return -1;
}

typedef struct calls {
#define MEMBER(type, name, parameters, call) type(*name) parameters;
    CALLS(MEMBER)
} calls_t;

/* Pointers are NULL at times, whatever the C library declares. */
#define BY_SYSTEM(type, name, parameters, call)                                                    \
    __attribute__((no_sanitize("undefined"))) static type system_##name parameters {               \
        return (type)HAFTI_IO_RESULT(call);                                                        \
    }
CALLS(BY_SYSTEM)

#define NAME_BY_SYSTEM(type, name, parameters, call) .name = system_##name,
#define NAME_BY_HAFT(type, name, parameters, call) .name = haft_io_##name,
static const calls_t by_system = {CALLS(NAME_BY_SYSTEM)}, by_haft = {CALLS(NAME_BY_HAFT)};

#endif
