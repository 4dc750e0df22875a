/* SPDX-License-Identifier: MIT */
/*
 * The C library's functions that read and write: as bytes, as parts, at a place, as messages; and
 * those that wait for the disk after a write. Each becomes a transfer (transfer.h), or, as most do,
 * an operation of libhaft-io. A call that cannot wait is the system's.
 */
#include "transfer.h"

#include <limits.h>

/* Too many parts, or none with bytes: the system refuses these or does them at once. */
static bool is_plain(const struct iovec *parts, int count) {
    return parts != NULL && count > 0 && count <= IOV_MAX &&
           hafti_posix_size_of(parts, (size_t)count) != 0;
}
static bool is_message(const struct msghdr *message) {
    return message != NULL && (message->msg_iov != NULL || message->msg_iovlen == 0) &&
           message->msg_iovlen <= IOV_MAX;
}

#define READ_OR_WRITE(way, offset_, base, size)                                                    \
    hafti_posix_transfer(                                                                          \
        &(hafti_posix_transfer_t){.descriptor = descriptor,                                        \
                                  .outward = way,                                                  \
                                  .parts = &(struct iovec){(void *)(uintptr_t)(base), size},       \
                                  .count = 1,                                                      \
                                  .offset = offset_})

/* ---- By libhaft-io's own operations ---- */

/*
 * Most calls are of a socket that blocks without a limit, and end here. libhaft-io's own operation
 * knows whether such a socket is empty, needs no system call to wait, and on io_uring sends
 * together with other tasks; and the task has less on its stack while it waits.
 */

/* (In a simulation what is real blocks its thread.) */
static bool is_plain_socket(int descriptor, size_t size) {
    return size != 0 && hafti_posix_is_plain(descriptor) && haft_io_seed() == 0;
}
/* -EBUSY: another task does the same, which the operation refuses. A cancelled task may still do
   what can be done at once. */
static bool is_to_be_done_otherwise(ssize_t done) {
    return done == -EBUSY || done == -ECANCELED || done == -ENOTSOCK || done == -ENOMEM;
}

static hafti_posix_transfer_t bytes_of(int descriptor, bool by_socket, bool outward,
                                       const struct iovec *bytes, int flags) {
    return (hafti_posix_transfer_t){.descriptor = descriptor,
                                    .outward = outward,
                                    .by_socket = by_socket,
                                    .flags = flags,
                                    .parts = bytes,
                                    .count = 1,
                                    .offset = -1};
}
static __attribute__((noinline)) ssize_t transfer_bytes(int descriptor, bool by_socket,
                                                        bool outward, const void *buffer,
                                                        size_t size, int flags) {
    const struct iovec bytes = {(void *)(uintptr_t)buffer, size};
    hafti_posix_transfer_t t = bytes_of(descriptor, by_socket, outward, &bytes, flags);
    return hafti_posix_transfer(&t);
}

static inline ssize_t read_bytes(int descriptor, bool by_socket, void *buffer, size_t size,
                                 int flags) {
    if (flags == 0 && is_plain_socket(descriptor, size)) {
        int before = hafti_posix_error();
        ssize_t done = HAFT_PERFORM(haft_io_receive, descriptor, 0, buffer, size, NULL, NULL);
        if (!is_to_be_done_otherwise(done))
            return hafti_posix_answer(done, before);
    }
    return transfer_bytes(descriptor, by_socket, false, buffer, size, flags);
}

/* Writes the rest after a part has been written, or none. The operation sends no SIGPIPE, as the
   system does with that error. */
static __attribute__((cold, noinline)) ssize_t write_rest(int descriptor, bool by_socket,
                                                          const void *buffer, size_t size,
                                                          int flags, int before, ssize_t done) {
    if (done == -EPIPE || is_to_be_done_otherwise(done))
        return transfer_bytes(descriptor, by_socket, true, buffer, size, flags);
    const struct iovec bytes = {(void *)(uintptr_t)buffer, size};
    hafti_posix_transfer_t t = bytes_of(descriptor, by_socket, true, &bytes, flags);
    return hafti_posix_finish_transfer(&t, before, done);
}
static inline ssize_t write_bytes(int descriptor, bool by_socket, const void *buffer, size_t size,
                                  int flags) {
    bool blocks =
        !by_socket && hafti_posix_write_blocks(descriptor); /* as hafti_posix_transfer does */
    if (blocks || (flags & ~MSG_NOSIGNAL) != 0 || !is_plain_socket(descriptor, size))
        return transfer_bytes(descriptor, by_socket, true, buffer, size, flags);
    int before = hafti_posix_error();
    ssize_t done = HAFT_PERFORM(haft_io_write, descriptor, buffer, size);
    return done == (ssize_t)size
               ? hafti_posix_answer(done, before)
               : write_rest(descriptor, by_socket, buffer, size, flags, before, done);
}

/* ---- Reading and writing ---- */

HAFT_POSIX_EXPORT ssize_t read(int descriptor, void *buffer, size_t size) {
    if (!haft_io_runs_here() || size == 0)
        return SYSTEM_OF(descriptor, read)(descriptor, buffer, size);
    return read_bytes(descriptor, false, buffer, size, 0);
}

HAFT_POSIX_EXPORT ssize_t write(int descriptor, const void *buffer, size_t size) {
    if (!haft_io_runs_here() || size == 0)
        return SYSTEM_OF(descriptor, write)(descriptor, buffer, size);
    return write_bytes(descriptor, false, buffer, size, 0);
}

HAFT_POSIX_EXPORT ssize_t pread(int descriptor, void *buffer, size_t size, off_t offset) {
    if (!haft_io_runs_here() || size == 0 || offset < 0)
        return SYSTEM_OF(descriptor, pread)(descriptor, buffer, size, offset);
    return READ_OR_WRITE(false, offset, buffer, size);
}

HAFT_POSIX_EXPORT ssize_t pwrite(int descriptor, const void *buffer, size_t size, off_t offset) {
    if (!haft_io_runs_here() || size == 0 || offset < 0)
        return SYSTEM_OF(descriptor, pwrite)(descriptor, buffer, size, offset);
    return READ_OR_WRITE(true, offset, buffer, size);
}

#define READ_OR_WRITE_PARTS(way, offset_)                                                          \
    hafti_posix_transfer(&(hafti_posix_transfer_t){.descriptor = descriptor,                       \
                                                   .outward = way,                                 \
                                                   .parts = parts,                                 \
                                                   .count = (size_t)count,                         \
                                                   .offset = offset_})

HAFT_POSIX_EXPORT ssize_t readv(int descriptor, const struct iovec *parts, int count) {
    if (!haft_io_runs_here() || !is_plain(parts, count))
        return SYSTEM_OF(descriptor, readv)(descriptor, parts, count);
    if (count == 1)
        return read_bytes(descriptor, false, parts->iov_base, parts->iov_len, 0);
    return READ_OR_WRITE_PARTS(false, -1);
}

HAFT_POSIX_EXPORT ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    if (!haft_io_runs_here() || !is_plain(parts, count))
        return SYSTEM_OF(descriptor, writev)(descriptor, parts, count);
    if (count == 1)
        return write_bytes(descriptor, false, parts->iov_base, parts->iov_len, 0);
    return READ_OR_WRITE_PARTS(true, -1);
}

HAFT_POSIX_EXPORT ssize_t preadv(int descriptor, const struct iovec *parts, int count,
                                 off_t offset) {
    if (!haft_io_runs_here() || !is_plain(parts, count) || offset < 0)
        return SYSTEM_OF(descriptor, preadv)(descriptor, parts, count, offset);
    return READ_OR_WRITE_PARTS(false, offset);
}

HAFT_POSIX_EXPORT ssize_t pwritev(int descriptor, const struct iovec *parts, int count,
                                  off_t offset) {
    if (!haft_io_runs_here() || !is_plain(parts, count) || offset < 0)
        return SYSTEM_OF(descriptor, pwritev)(descriptor, parts, count, offset);
    return READ_OR_WRITE_PARTS(true, offset);
}

/* The flags are those of preadv2 and pwritev2; without flags these are the functions above. */
HAFT_POSIX_EXPORT ssize_t preadv2(int descriptor, const struct iovec *parts, int count,
                                  off_t offset, int flags) {
    if (flags != 0 || offset < -1 || !haft_io_runs_here() || !is_plain(parts, count))
        return SYSTEM_OF(descriptor, preadv2)(descriptor, parts, count, offset, flags);
    return READ_OR_WRITE_PARTS(false, offset);
}

HAFT_POSIX_EXPORT ssize_t pwritev2(int descriptor, const struct iovec *parts, int count,
                                   off_t offset, int flags) {
    if (flags != 0 || offset < -1 || !haft_io_runs_here() || !is_plain(parts, count))
        return SYSTEM_OF(descriptor, pwritev2)(descriptor, parts, count, offset, flags);
    return READ_OR_WRITE_PARTS(true, offset);
}

/* ---- Sockets ---- */

static ssize_t transfer_message(int socket, bool outward, struct msghdr *message, int flags) {
    return hafti_posix_transfer(
        &(hafti_posix_transfer_t){.descriptor = socket,
                                  .outward = outward,
                                  .by_socket = true,
                                  .flags = flags,
                                  .message = message,
                                  .control_size = outward ? 0 : message->msg_controllen,
                                  .parts = message->msg_iov,
                                  .count = message->msg_iovlen,
                                  .offset = -1});
}

static bool may_wait(int flags) {
    return (flags & (MSG_DONTWAIT | MSG_ERRQUEUE)) == 0 && haft_io_runs_here();
}

HAFT_POSIX_EXPORT ssize_t recvmsg(int socket, struct msghdr *message, int flags) {
    if (!may_wait(flags) || !is_message(message))
        return SYSTEM_OF(socket, recvmsg)(socket, message, flags);
    struct msghdr copy = *message;
    ssize_t done = transfer_message(socket, false, &copy, flags);
    if (done >= 0) {
        message->msg_namelen = copy.msg_namelen;
        message->msg_controllen = copy.msg_controllen;
        message->msg_flags = copy.msg_flags;
    }
    return done;
}

HAFT_POSIX_EXPORT ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    if (!may_wait(flags) || !is_message(message))
        return SYSTEM_OF(socket, sendmsg)(socket, message, flags);
    struct msghdr copy = *message;
    return transfer_message(socket, true, &copy, flags);
}

/* Takes as many messages as there are at once; like the system, checks the time limit after each
   message that it waited for. */
static int receive_many(int socket, struct mmsghdr *messages, unsigned count, int flags,
                        int64_t deadline) {
    bool for_one = (flags & MSG_WAITFORONE) != 0;
    flags &= ~MSG_WAITFORONE;
    unsigned got = 0;
    while (got < count) {
        int more = (int)HAFT_POSIX_RESULT(SYSTEM_OF(socket, recvmmsg)(
            socket, messages + got, count - got, flags | MSG_DONTWAIT, NULL));
        if (more == -EAGAIN && (got == 0 || !for_one)) {
            ssize_t size = HAFT_POSIX_RESULT(recvmsg(socket, &messages[got].msg_hdr, flags));
            messages[got].msg_len = size >= 0 ? (unsigned)size : 0;
            more = size >= 0 ? 1 : (int)size;
        }
        if (more <= 0)
            return got != 0 ? (int)got : more;
        got += (unsigned)more;
        if (deadline != HAFT_IO_FOREVER && HAFT_PERFORM(haft_io_now) >= deadline)
            break;
    }
    return (int)got;
}

HAFT_POSIX_EXPORT int recvmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags,
                               struct timespec *limit) {
    if (!may_wait(flags) || !hafti_posix_on_task())
        return SYSTEM_OF(socket, recvmmsg)(socket, messages, count, flags, limit);
    int before = hafti_posix_error();
    int64_t deadline = hafti_posix_deadline(limit);
    int done =
        deadline < 0 ? (int)deadline : receive_many(socket, messages, count, flags, deadline);
    return (int)hafti_posix_answer(done, before);
}

HAFT_POSIX_EXPORT int sendmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags) {
    if (!may_wait(flags) || !hafti_posix_on_task())
        return SYSTEM_OF(socket, sendmmsg)(socket, messages, count, flags);
    int before = hafti_posix_error();
    unsigned sent = 0;
    ssize_t size = 0;
    while (sent < count &&
           (size = HAFT_POSIX_RESULT(sendmsg(socket, &messages[sent].msg_hdr, flags))) >= 0)
        messages[sent++].msg_len = (unsigned)size;
    return (int)hafti_posix_answer(sent != 0 ? (ssize_t)sent : size, before);
}

HAFT_POSIX_EXPORT ssize_t recvfrom(int socket, void *restrict buffer, size_t size, int flags,
                                   __SOCKADDR_ARG address, socklen_t *restrict address_size) {
    if (!may_wait(flags) || (address.__sockaddr__ != NULL && address_size == NULL))
        return SYSTEM_OF(socket, recvfrom)(socket, buffer, size, flags, address, address_size);
    struct msghdr message = hafti_posix_message(&(struct iovec){buffer, size}, address.__sockaddr__,
                                                address.__sockaddr__ != NULL ? *address_size : 0);
    ssize_t done = transfer_message(socket, false, &message, flags);
    if (done >= 0 && address.__sockaddr__ != NULL)
        *address_size = message.msg_namelen;
    return done;
}

HAFT_POSIX_EXPORT ssize_t sendto(int socket, const void *buffer, size_t size, int flags,
                                 __CONST_SOCKADDR_ARG address, socklen_t address_size) {
    if (!may_wait(flags))
        return SYSTEM_OF(socket, sendto)(socket, buffer, size, flags, address, address_size);
    struct msghdr message = hafti_posix_message(&(struct iovec){(void *)(uintptr_t)buffer, size},
                                                address.__sockaddr__, address_size);
    return transfer_message(socket, true, &message, flags);
}

HAFT_POSIX_EXPORT ssize_t recv(int socket, void *buffer, size_t size, int flags) {
    if (!may_wait(flags))
        return SYSTEM_OF(socket, recv)(socket, buffer, size, flags);
    return read_bytes(socket, true, buffer, size, flags);
}

HAFT_POSIX_EXPORT ssize_t send(int socket, const void *buffer, size_t size, int flags) {
    if (!may_wait(flags))
        return SYSTEM_OF(socket, send)(socket, buffer, size, flags);
    return write_bytes(socket, true, buffer, size, flags);
}

/* ---- Files ---- */

typedef struct sync_call {
    int (*function)(int descriptor);
    int descriptor;
    ssize_t done;
} sync_call_t;

static void call_sync(void *argument) {
    sync_call_t *call = argument;
    call->done = HAFT_POSIX_RESULT(call->function(call->descriptor));
}

static int synchronise(int (*function)(int descriptor), int descriptor) {
    if (!hafti_posix_on_task())
        return function(descriptor);
    int before = hafti_posix_error();
    sync_call_t call = {function, descriptor, 0};
    hafti_posix_block_to_the_end(call_sync, &call);
    return (int)hafti_posix_answer(call.done, before);
}

HAFT_POSIX_EXPORT int fsync(int descriptor) {
    return synchronise(SYSTEM_OF(descriptor, fsync), descriptor);
}

HAFT_POSIX_EXPORT int fdatasync(int descriptor) {
    return synchronise(SYSTEM_OF(descriptor, fdatasync), descriptor);
}

/* ---- Other names: of large files, of glibc, and of the fortified headers ---- */

HAFT_POSIX_ALSO(pread64, pread)
HAFT_POSIX_ALSO(pwrite64, pwrite)
HAFT_POSIX_ALSO(preadv64, preadv)
HAFT_POSIX_ALSO(pwritev64, pwritev)
HAFT_POSIX_ALSO(preadv64v2, preadv2)
HAFT_POSIX_ALSO(pwritev64v2, pwritev2)
HAFT_POSIX_ALSO(__read, read)
HAFT_POSIX_ALSO(__write, write)
HAFT_POSIX_ALSO(__pread64, pread)
HAFT_POSIX_ALSO(__pwrite64, pwrite)
HAFT_POSIX_ALSO(__send, send)

ssize_t __read_chk(int descriptor, void *buffer, size_t size, size_t room);
ssize_t __pread_chk(int descriptor, void *buffer, size_t size, off_t offset, size_t room);
ssize_t __pread64_chk(int descriptor, void *buffer, size_t size, off64_t offset, size_t room);
ssize_t __recv_chk(int socket, void *buffer, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int socket, void *restrict buffer, size_t size, size_t room, int flags,
                       __SOCKADDR_ARG address, socklen_t *restrict address_size);

HAFT_POSIX_EXPORT ssize_t __read_chk(int descriptor, void *buffer, size_t size, size_t room) {
    if (size > room)
        __chk_fail();
    return read(descriptor, buffer, size);
}

HAFT_POSIX_EXPORT ssize_t __pread_chk(int descriptor, void *buffer, size_t size, off_t offset,
                                      size_t room) {
    if (size > room)
        __chk_fail();
    return pread(descriptor, buffer, size, offset);
}

HAFT_POSIX_EXPORT ssize_t __pread64_chk(int descriptor, void *buffer, size_t size, off64_t offset,
                                        size_t room) {
    return __pread_chk(descriptor, buffer, size, offset, room);
}

HAFT_POSIX_EXPORT ssize_t __recv_chk(int socket, void *buffer, size_t size, size_t room,
                                     int flags) {
    if (size > room)
        __chk_fail();
    return recv(socket, buffer, size, flags);
}

HAFT_POSIX_EXPORT ssize_t __recvfrom_chk(int socket, void *restrict buffer, size_t size,
                                         size_t room, int flags, __SOCKADDR_ARG address,
                                         socklen_t *restrict address_size) {
    if (size > room)
        __chk_fail();
    return recvfrom(socket, buffer, size, flags, address, address_size);
}
