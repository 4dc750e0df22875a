/* SPDX-License-Identifier: MIT */
/*
 * The system calls of a simulation, for code that knows nothing of it: libhaft-posix finds them
 * here, and answers the C library's functions by them. It is the only caller, and belongs to the
 * same version of libhaft-io.
 *
 * Each is like the system call of its name, on a descriptor that does not block: where the call
 * would wait it is -EAGAIN (a connect: -EINPROGRESS). It returns a negative error number instead of
 * setting errno, and neither waits nor lets another task go on.
 */
#ifndef HAFTI_IO_SIMULATED_CALLS_H
#define HAFTI_IO_SIMULATED_CALLS_H

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

typedef struct haft_io_simulated_calls {
    /* ---- Of any descriptor ---- */
    int (*poll)(struct pollfd *entries, nfds_t count); /* what is ready now */
    /* Reads and writes; `offset`: -1, where the descriptor is. */
    ssize_t (*readv)(int descriptor, const struct iovec *parts, size_t count, int64_t offset);
    ssize_t (*writev)(int descriptor, const struct iovec *parts, size_t count, int64_t offset);
    int (*fcntl)(int descriptor, int command, void *argument);
    int (*ioctl)(int descriptor, unsigned long request, void *argument);

    /* The only one that waits, for code that asks again what nobody tells, such as whether a lock
       is free: until other tasks have gone on. `again`: it has asked since, in vain. No cancel ends
       it. */
    void (*pause)(bool again, const char *waits_for);
    /* Bytes that the seed decides. */
    void (*random)(void *bytes, size_t size);

    /* ---- Of the network (simulated_sockets.c) ---- */
    int (*socket)(int domain, int type, int protocol);
    int (*socketpair)(int domain, int type, int protocol, int ends[2]);
    int (*bind)(int socket, const struct sockaddr *address, socklen_t size);
    int (*listen)(int socket, int backlog);
    int (*accept4)(int listener, struct sockaddr *address, socklen_t *size, int flags);
    int (*connect)(int socket, const struct sockaddr *address, socklen_t size);
    ssize_t (*recvmsg)(int socket, struct msghdr *message, int flags);
    int (*recvmmsg)(int socket, struct mmsghdr *messages, unsigned count, int flags);
    ssize_t (*sendmsg)(int socket, struct msghdr *message, int flags);
    int (*shutdown)(int socket, int how);
    int (*getsockname)(int socket, struct sockaddr *address, socklen_t *size);
    int (*getpeername)(int socket, struct sockaddr *address, socklen_t *size);
    int (*getsockopt)(int socket, int level, int option, void *value, socklen_t *size);
    int (*setsockopt)(int socket, int level, int option, const void *value, socklen_t size);
    /* The host that a name is of, as an address. */
    const char *(*host_of)(const char *host, int family);

    /* ---- Of files (simulated_paths.c) ---- */
    int (*fsync)(int descriptor);
    int (*openat)(int directory, const char *path, int flags, mode_t mode);
    int64_t (*lseek)(int descriptor, int64_t offset, int whence);
    int (*fallocate)(int descriptor, int mode, int64_t offset, int64_t size);
    int (*flock)(int descriptor, int command);
    /* Like scandir(3), in an order that the seed decides. */
    int (*list)(int descriptor, struct dirent ***entries);
    int (*mkdirat)(int directory, const char *path, mode_t mode);
    int (*unlinkat)(int directory, const char *path, int flags);
    int (*renameat2)(int from_directory, const char *from, int to_directory, const char *to,
                     unsigned flags);
    int (*link)(int directory, const char *path); /* of either kind, which there are not */
    int (*realpath)(const char *path, char *into, size_t size);
    /* With AT_EMPTY_PATH and an empty path, of the descriptor. */
    int (*fstatat)(int directory, const char *path, struct stat *status, int flags);
    int (*faccessat)(int directory, const char *path, int mode, int flags);
    int (*fchmodat)(int directory, const char *path, mode_t mode, int flags);
    int (*truncate)(int directory, const char *path, int64_t size, int flags);
    int (*chdir)(int directory, const char *path, int flags);
    int (*utimensat)(int directory, const char *path, const struct timespec times[2], int flags);
} haft_io_simulated_calls_t;

#pragma GCC visibility push(default)
/* Whether this process has begun a simulation. Before that no caller is in one, and need not ask
   further. */
extern bool haft_io_simulates;
/* Set by libhaft-posix when it is loaded: the C library's functions are then the simulation's. */
extern bool haft_io_simulates_c_library;
/* The calls of the simulation in which the calling task runs. NULL: it runs in none. */
const haft_io_simulated_calls_t *haft_io_simulated_calls(void);
/* The same, if that simulates what is made or named: a network, files. */
const haft_io_simulated_calls_t *haft_io_simulated_network_calls(void);
const haft_io_simulated_calls_t *haft_io_simulated_file_calls(void);
#pragma GCC visibility pop

#endif
