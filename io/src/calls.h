/* SPDX-License-Identifier: MIT */
/*
 * The calls of the system that a run makes beside the operations of its back end, as one table.
 * Each is like the system call of its name, but returns a negative error number instead of setting
 * errno. There are three tables:
 *
 *   the machine's (machine.c)  | as the system has it: calls on files wait for the disk, and are
 *                              |   made on a thread of the pool (files.c)
 *   a tape's (taped_system.c)   | the machine's, whose answers are kept, or given again; those of
 *                              |   files are kept where they come back from the pool (files.c)
 *   a simulation's             | none waits: where the call would, it is -EAGAIN (a connect:
 *   (simulated_sockets.c)      |   -EINPROGRESS). None lets another task go on
 *
 * Which table a run has for which calls is chosen when it begins (choose_calls in run.c).
 * libhaft-posix, which belongs to the same version of libhaft-io, finds a simulation's here, and
 * uses it for the C library's functions.
 */
#ifndef HAFTI_IO_CALLS_H
#define HAFTI_IO_CALLS_H

#include <dirent.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

struct mmsghdr; /* of the system, where _GNU_SOURCE is defined */

/* The first descriptor of a simulation: the system gives none so large. */
enum { HAFTI_IO_FIRST_SIMULATED = 1 << 28 };

/* The devices whose bytes are random: in each simulation they are the seed's. */
static inline bool hafti_io_is_chance(const char *path) {
    return path != NULL && (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0);
}

/* The calls that are the C library's functions but for the error: their result, name, parameters
   and arguments. Every table has the first two lists, only a simulation's the third. */
/* clang-format off */
#define HAFTI_IO_SOCKET_CALLS(one) \
    one(int, socket, (int domain, int type, int protocol), (domain, type, protocol)) \
    one(int, socketpair, (int domain, int type, int protocol, int ends[2]), \
        (domain, type, protocol, ends)) \
    one(int, listen, (int socket, int backlog), (socket, backlog)) \
    one(int, shutdown, (int socket, int how), (socket, how)) \
    one(int, getsockopt, (int socket, int level, int option, void *value, socklen_t *size), \
        (socket, level, option, value, size)) \
    one(int, setsockopt, (int socket, int level, int option, const void *value, socklen_t size), \
        (socket, level, option, value, size))
#define HAFTI_IO_FILE_CALLS(one) \
    one(int, fsync, (int file), (file)) \
    one(int64_t, lseek, (int file, int64_t offset, int whence), (file, offset, whence)) \
    one(int, mkdirat, (int directory, const char *path, mode_t mode), (directory, path, mode)) \
    one(int, remove, (const char *path), (path)) \
    one(int, renameat2, \
        (int from_directory, const char *from, int to_directory, const char *to, unsigned flags), \
        (from_directory, from, to_directory, to, flags))
#define HAFTI_IO_FURTHER_FILE_CALLS(one) \
    one(int, unlinkat, (int directory, const char *path, int flags), (directory, path, flags)) \
    one(int, fallocate, (int file, int mode, int64_t offset, int64_t size), \
        (file, mode, offset, size)) \
    one(int, flock, (int file, int command), (file, command)) \
    one(int, faccessat, (int directory, const char *path, int mode, int flags), \
        (directory, path, mode, flags)) \
    one(int, fchmodat, (int directory, const char *path, mode_t mode, int flags), \
        (directory, path, mode, flags))
/* clang-format on */

typedef struct haft_io_calls {
    bool waits; /* false: a simulation's */
#define HAFTI_IO_CALLS_FIELD(result, name, parameters, arguments) result(*name) parameters;
    HAFTI_IO_SOCKET_CALLS(HAFTI_IO_CALLS_FIELD)
    HAFTI_IO_FILE_CALLS(HAFTI_IO_CALLS_FIELD)

    /* ---- Of every table, too, with other parameters than the C library has ---- */
    int (*pipe2)(int ends[2], int flags);
    int (*bind)(int socket, const struct sockaddr *address, socklen_t size);
    int (*getsockname)(int socket, struct sockaddr *address, socklen_t *size);
    int (*openat)(int directory, const char *path, int flags, mode_t mode);
    /* Reads and writes; `offset`: -1, where the descriptor is. */
    ssize_t (*readv)(int descriptor, const struct iovec *parts, size_t count, int64_t offset);
    ssize_t (*writev)(int descriptor, const struct iovec *parts, size_t count, int64_t offset);
    /* With AT_EMPTY_PATH and an empty path: the status of the descriptor. */
    int (*fstatat)(int directory, const char *path, struct stat *status, int flags);
    /* Like scandir(3), in the order of the names. */
    int (*scandir)(const char *path, struct dirent ***entries);

    /* ---- Of a simulation: NULL in other tables ---- */
    HAFTI_IO_FURTHER_FILE_CALLS(HAFTI_IO_CALLS_FIELD)
#undef HAFTI_IO_CALLS_FIELD
    int (*poll)(struct pollfd *entries, nfds_t count); /* what is ready now */
    int (*fcntl)(int descriptor, int command, void *argument);
    int (*ioctl)(int descriptor, unsigned long request, void *argument);
    int (*accept4)(int listener, struct sockaddr *address, socklen_t *size, int flags);
    int (*connect)(int socket, const struct sockaddr *address, socklen_t size);
    ssize_t (*recvmsg)(int socket, struct msghdr *message, int flags);
    int (*recvmmsg)(int socket, struct mmsghdr *messages, unsigned count, int flags);
    ssize_t (*sendmsg)(int socket, struct msghdr *message, int flags);
    int (*getpeername)(int socket, struct sockaddr *address, socklen_t *size);
    /* Like scandir(3), in an order that the seed decides. */
    int (*list)(int descriptor, struct dirent ***entries);
    int (*link)(int directory, const char *path); /* fails: there are links of neither kind */
    int (*realpath)(const char *path, char *into, size_t size);
    int (*truncate)(int directory, const char *path, int64_t size, int flags);
    int (*chdir)(int directory, const char *path, int flags);
    int (*utimensat)(int directory, const char *path, const struct timespec times[2], int flags);
    /* The only one that waits: until other tasks have gone on. It is for code that polls a state of
       which it is not notified, such as whether a lock is free. `again`: the caller has looked
       since its last pause, in vain. No cancel ends it. */
    void (*pause)(bool again, const char *waits_for);
    /* Bytes that the seed decides. */
    void (*random)(void *bytes, size_t size);
    /* The address of the host that has the name. */
    const char *(*host_of)(const char *host, int family);
    /* For a child process: the system's descriptor of an end, which is closed with that. The end's
       stream is the system's from now on; -EOPNOTSUPP for what is no end. */
    int (*real_of)(int end);
} haft_io_calls_t;

extern const haft_io_calls_t hafti_io_machine;

#pragma GCC visibility push(default)
/* Whether this process has begun a simulation. Before that no caller is in one, and need not ask
   further. */
extern bool haft_io_simulates;
/* Set by libhaft-posix when it is loaded: the C library's functions are then the simulation's. */
extern bool haft_io_simulates_c_library;
/* The calls of the simulation in which the calling task runs. NULL: it runs in none. */
const haft_io_calls_t *haft_io_simulated_calls(void);
/* The same, if that simulates what is made or named: a network, files. */
const haft_io_calls_t *haft_io_simulated_network_calls(void);
const haft_io_calls_t *haft_io_simulated_file_calls(void);
#pragma GCC visibility pop

#endif
