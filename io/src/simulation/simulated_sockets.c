/* SPDX-License-Identifier: MIT */
/*
 * The system calls of a simulation on sockets and on any descriptor, for code that knows nothing of
 * it: calls.h. It has the calls that are no operation of libhaft-io: modes, options,
 * names, listening, further numbers.
 *
 * Options that make no difference in a simulation are kept, and told again. Options that do:
 * SO_REUSEPORT; SO_RCVTIMEO and SO_SNDTIMEO, which libhaft-posix heeds when it waits.
 */
#include "simulation.h"

#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_object_t object_t;
typedef hafti_io_place_there_t place_t;

/* Flags of open(2) that F_GETFL does not return, and those that F_SETFL can change. */
enum { AT_OPENING = O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC };
enum { CHANGEABLE = O_APPEND | O_NONBLOCK | O_NOATIME | O_ASYNC };

/* 0 and the object, -EBADF, or -ENOTSOCK. */
static int socket_of(int descriptor, object_t **object) {
    *object = hafti_io_object_of(hafti_io_state_here(), descriptor);
    if (*object == NULL)
        return -EBADF;
    return hafti_io_object_is_socket(*object) ? 0 : -ENOTSOCK;
}

/* ---- Any descriptor ---- */

static int poll_now(struct pollfd *entries, nfds_t count) {
    return hafti_io_simulated_look(hafti_io_state_here(), entries, count);
}

static ssize_t transfer_at(int descriptor, const struct iovec *parts, size_t count, int64_t offset,
                           bool writes) {
    state_t *state = hafti_io_state_here();
    object_t *object = hafti_io_object_of(state, descriptor);
    if (object == NULL)
        return -EBADF;
    if (object->kind != HAFTI_IO_A_FILE)
        return -ESPIPE;
    int code = hafti_io_fault_of(state, object, writes);
    if (code != 0)
        return code;
    hafti_io_memory_t memory = hafti_io_memory_of(parts, count);
    return hafti_io_simulated_file_transfers(state->simulated, object, &memory, &offset, writes);
}

static ssize_t transfer(int descriptor, const struct iovec *parts, size_t count, int64_t offset,
                        bool writes) {
    if (offset >= 0)
        return transfer_at(descriptor, parts, count, offset, writes);
    return hafti_io_simulated_attempt(
        &(hafti_io_operation_t){.kind = writes ? HAFTI_IO_WRITE_PARTS : HAFTI_IO_READ_PARTS,
                                .descriptor = descriptor,
                                .buffer = (void *)(uintptr_t)parts,
                                .size = count});
}

static ssize_t call_readv(int descriptor, const struct iovec *parts, size_t count, int64_t offset) {
    return transfer(descriptor, parts, count, offset, false);
}
static ssize_t call_writev(int descriptor, const struct iovec *parts, size_t count,
                           int64_t offset) {
    return transfer(descriptor, parts, count, offset, true);
}

static int mode_of(const object_t *object) {
    if (object->kind == HAFTI_IO_A_FILE)
        return object->flags & ~AT_OPENING;
    int access = O_RDWR;
    if (object->kind == HAFTI_IO_A_PIPE)
        access = object->size != 0 ? O_RDONLY : O_WRONLY;
    return access | (object->flags & ~O_ACCMODE);
}

/* Where another process or another descriptor is meant: none has it. */
static int look_for_lock(const object_t *object, struct flock *lock) {
    if (object->kind != HAFTI_IO_A_FILE)
        return -EBADF;
    if (lock == NULL)
        return -EFAULT;
    lock->l_type = F_UNLCK;
    return 0;
}

/* The new descriptor, or an error. */
static int kept_at_exec(int made, bool yes) {
    if (made >= 0)
        hafti_io_number_of(hafti_io_state_here(), made)->closes_at_exec = !yes;
    return made;
}

static int call_fcntl(int descriptor, int command, void *argument) {
    state_t *state = hafti_io_state_here();
    object_t *object = hafti_io_object_of(state, descriptor);
    if (object == NULL)
        return -EBADF;
    int number = (int)(intptr_t)argument;
    switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        return kept_at_exec(hafti_io_object_number(state, object), command == F_DUPFD);
    case F_GETFD:
        return hafti_io_number_of(state, descriptor)->closes_at_exec ? FD_CLOEXEC : 0;
    case F_SETFD:
        hafti_io_number_of(state, descriptor)->closes_at_exec = (number & FD_CLOEXEC) != 0;
        return 0;
    case F_GETFL:
        return mode_of(object);
    case F_SETFL:
        object->flags = (object->flags & ~CHANGEABLE) | (number & CHANGEABLE);
        return 0;
    case F_GETLK:
    case F_OFD_GETLK:
        return look_for_lock(object, argument);
    case F_SETLK: /* of the process, which nobody else is */
    case F_SETLKW:
        return object->kind == HAFTI_IO_A_FILE ? 0 : -EBADF;
    default:
        return -EINVAL;
    }
}

static int count_unread(const object_t *object, int *count) {
    if (count == NULL)
        return -EFAULT;
    switch (object->kind) {
    case HAFTI_IO_A_SOCKET: /* 0 */
    case HAFTI_IO_A_STREAM:
    case HAFTI_IO_A_PIPE:
        *count = (int)object->count;
        return 0;
    case HAFTI_IO_A_FILE:
        if (S_ISCHR(object->file->mode))
            return -EINVAL;
        *count = (int)((int64_t)object->file->now.size - object->position);
        return 0;
    case HAFTI_IO_DATAGRAMS:
        *count = (int)hafti_io_simulated_datagram_size(object);
        return 0;
    default:
        return -EINVAL;
    }
}

static int call_ioctl(int descriptor, unsigned long request, void *argument) {
    object_t *object = hafti_io_object_of(hafti_io_state_here(), descriptor);
    if (object == NULL)
        return -EBADF;
    switch (request) {
    case FIONBIO:
        if (argument == NULL)
            return -EFAULT;
        object->flags = (object->flags & ~O_NONBLOCK) | (*(int *)argument != 0 ? O_NONBLOCK : 0);
        return 0;
    case FIOCLEX:
    case FIONCLEX:
        kept_at_exec(descriptor, request == FIONCLEX);
        return 0;
    case FIONREAD: /* and SIOCINQ */
        return count_unread(object, argument);
    default:
        return -ENOTTY;
    }
}

static void draw_bytes(void *bytes, size_t size) {
    hafti_io_random_bytes(hafti_io_simulated(), bytes, size);
}

/* ---- Making sockets ---- */

static void begin_mode(int descriptor, int type) {
    object_t *object = hafti_io_object_of(hafti_io_state_here(), descriptor);
    object->flags |= (type & SOCK_NONBLOCK) != 0 ? O_NONBLOCK : 0;
    kept_at_exec(descriptor, (type & SOCK_CLOEXEC) == 0);
}

/* The flags of pipes and sockets are the same. */
static int begin_modes(int code, const int ends[2], int type) {
    for (int i = 0; i < 2 && code == 0; i++)
        begin_mode(ends[i], type);
    return code;
}

static int call_pipe2(int ends[2], int flags) {
    if ((flags & ~(O_NONBLOCK | O_CLOEXEC)) != 0)
        return -EINVAL;
    return begin_modes(hafti_io_simulated_pipe(ends), ends, flags);
}

static int call_socket(int domain, int type, int protocol) {
    int made = hafti_io_simulated_socket(domain, type, protocol);
    if (made >= 0)
        begin_mode(made, type);
    return made;
}

static int call_socketpair(int domain, int type, int protocol, int ends[2]) {
    if (ends == NULL)
        return -EFAULT;
    return begin_modes(hafti_io_simulated_socketpair(domain, type, protocol, ends), ends, type);
}

/* ---- Connections ---- */

static int call_listen(int descriptor, int backlog) {
    object_t *socket;
    int code = socket_of(descriptor, &socket);
    if (code != 0)
        return code;
    if (socket->kind != HAFTI_IO_A_SOCKET && socket->kind != HAFTI_IO_A_LISTENER)
        return socket->kind == HAFTI_IO_DATAGRAMS ? -EOPNOTSUPP : -EINVAL;
    if (hafti_io_simulated_is_connecting(socket) ||
        (!socket->bound && socket->place.family == AF_UNIX))
        return -EINVAL;
    if (!socket->bound) /* at a port that is chosen, as the system has it */
        code = hafti_io_simulated_bind(hafti_io_state_here(), socket,
                                       &(place_t){.family = socket->place.family});
    size_t room = backlog < 0 || backlog > SOMAXCONN ? SOMAXCONN : (size_t)backlog;
    return code != 0 ? code : hafti_io_simulated_listen(socket, room);
}

static int call_accept4(int descriptor, struct sockaddr *address, socklen_t *size, int flags) {
    if ((flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != 0)
        return -EINVAL;
    ssize_t accepted = hafti_io_simulated_attempt(
        &(hafti_io_operation_t){.kind = HAFTI_IO_ACCEPT, .descriptor = descriptor});
    if (accepted < 0)
        return (int)accepted;
    if (address != NULL && size == NULL) { /* and it is lost, as the system has it */
        hafti_io_number_close(hafti_io_state_here(), (int)accepted);
        return -EFAULT;
    }
    begin_mode((int)accepted, flags);
    const object_t *end = hafti_io_object_of(hafti_io_state_here(), (int)accepted);
    if (address != NULL)
        hafti_io_place_tell(&end->peer->place, end->place.family, address, size);
    return (int)accepted;
}

static int call_connect(int descriptor, const struct sockaddr *address, socklen_t size) {
    state_t *state = hafti_io_state_here();
    object_t *socket;
    int code = socket_of(descriptor, &socket);
    if (code == 0)
        code = hafti_io_fault_of(state, socket, true);
    if (code != 0)
        return code;
    return socket->kind == HAFTI_IO_DATAGRAMS
               ? hafti_io_simulated_datagrams_connect(state, socket, address, size)
               : hafti_io_simulated_connect_begins(state, socket, address, size);
}

/* ---- Messages ---- */

static ssize_t move_message(int descriptor, struct msghdr *message, int flags,
                            enum hafti_io_kind kind) {
    return hafti_io_simulated_attempt(&(hafti_io_operation_t){
        .kind = kind, .descriptor = descriptor, .buffer = message, .flags = flags});
}

/* (MSG_WAITALL is heeded of a peek, which is -EAGAIN until all has come: its caller could not put
   parts together.) */
static ssize_t call_recvmsg(int descriptor, struct msghdr *message, int flags) {
    bool wants_all = (flags & (MSG_PEEK | MSG_WAITALL)) == MSG_WAITALL;
    if (wants_all)
        flags &= ~MSG_WAITALL;
    ssize_t got = move_message(descriptor, message, flags, HAFTI_IO_RECEIVE_MESSAGE);
    object_t *end = hafti_io_object_of(hafti_io_state_here(), descriptor);
    if (wants_all && got > 0 && end->place.family == AF_UNIX && end->count == 0 &&
        (size_t)got < hafti_io_memory_of(message->msg_iov, message->msg_iovlen).size)
        end->lost = false; /* Linux looks for more, and finds that */
    if (got >= 0 && (flags & MSG_CMSG_CLOEXEC) == 0)
        hafti_io_passed_stay(hafti_io_state_here(), message);
    return got;
}
/* 0, or what the next call is to be told, as SO_ERROR, and then no more. */
static int take_error(object_t *socket) {
    int code = socket->error;
    if (socket->kind == HAFTI_IO_DATAGRAMS && socket->refused)
        code = -ECONNREFUSED;
    if (socket->kind == HAFTI_IO_A_STREAM && (socket->broken || socket->lost))
        code = -ECONNRESET;
    socket->error = 0;
    socket->refused = socket->lost = false;
    return code;
}

static void give_error_back(object_t *socket, int code) {
    if (socket->kind == HAFTI_IO_DATAGRAMS)
        socket->refused |= code == -ECONNREFUSED;
    if (socket->kind == HAFTI_IO_A_STREAM)
        socket->lost |= code == -ECONNRESET && !socket->broken;
}

/* An error goes before messages that have come, as on Linux; one behind them is the next call's. */
static int call_recvmmsg(int descriptor, struct mmsghdr *messages, unsigned count, int flags) {
    object_t *socket;
    int code = socket_of(descriptor, &socket);
    if (code == 0 && socket->kind != HAFTI_IO_A_SOCKET)
        code = take_error(socket);
    if (code != 0)
        return code;
    if (messages == NULL && count != 0)
        return -EFAULT;
    unsigned done = 0;
    ssize_t size = 0;
    while (done < count &&
           (size = call_recvmsg(descriptor, &messages[done].msg_hdr, flags & ~MSG_WAITFORONE)) >= 0)
        messages[done++].msg_len = (unsigned)size;
    if (done == 0)
        return (int)size;
    if (size < 0)
        give_error_back(socket, (int)size);
    return (int)done;
}
static ssize_t call_sendmsg(int descriptor, struct msghdr *message, int flags) {
    return move_message(descriptor, message, flags, HAFTI_IO_SEND_MESSAGE);
}

/* ---- Names ---- */

static int tell(const place_t *place, sa_family_t family, struct sockaddr *address,
                socklen_t *size) {
    if (address == NULL || size == NULL)
        return -EFAULT;
    if (*size > INT_MAX)
        return -EINVAL;
    hafti_io_place_tell(place, family != AF_UNSPEC ? family : AF_UNIX, address, size);
    return 0;
}

static int call_getsockname(int descriptor, struct sockaddr *address, socklen_t *size) {
    object_t *socket;
    int code = socket_of(descriptor, &socket);
    if (code != 0)
        return code;
    place_t place = socket->place;
    if (socket->kind == HAFTI_IO_DATAGRAMS && socket->to.family != AF_UNSPEC)
        place = hafti_io_place_seen(&place, &socket->to);
    return tell(&place, socket->place.family, address, size);
}

static int call_getpeername(int descriptor, struct sockaddr *address, socklen_t *size) {
    object_t *socket;
    int code = socket_of(descriptor, &socket);
    if (code != 0)
        return code;
    const place_t *place = NULL;
    if (socket->kind == HAFTI_IO_DATAGRAMS)
        place = socket->place.family == AF_UNSPEC ? &socket->place
                : socket->to.family != AF_UNSPEC  ? &socket->to
                                                  : NULL;
    else if (socket->kind == HAFTI_IO_A_STREAM &&
             (!socket->broken || socket->place.family == AF_UNIX))
        place = &socket->peer->place;
    return place != NULL ? tell(place, socket->place.family, address, size) : -ENOTCONN;
}

/* ---- Options ---- */

static hafti_io_option_t **find_option(object_t *socket, int level, int option) {
    hafti_io_option_t **place = &socket->options;
    while (*place != NULL && ((*place)->level != level || (*place)->option != option))
        place = &(*place)->next;
    return place;
}

enum { MOST_OF_A_VALUE = 256 };

static int keep_option(object_t *socket, int level, int option, const void *value, socklen_t size) {
    hafti_io_option_t **place = find_option(socket, level, option);
    hafti_io_option_t *kept = malloc(sizeof *kept + size);
    if (kept == NULL)
        return -ENOMEM;
    *kept = (hafti_io_option_t){.level = level, .option = option, .size = size};
    memcpy(kept->value, value, size);
    if (*place != NULL) {
        kept->next = (*place)->next;
        free(*place);
    }
    *place = kept;
    return 0;
}

static bool is_time(const void *value) {
    const struct timeval *time = value;
    return time->tv_usec >= 0 && time->tv_usec < 1000000;
}

static int call_setsockopt(int descriptor, int level, int option, const void *value,
                           socklen_t size) {
    object_t *socket;
    int code = socket_of(descriptor, &socket);
    if (code != 0)
        return code;
    if (value == NULL)
        return size == 0 ? -EINVAL : -EFAULT;
    if (level == IPPROTO_TCP && option == TCP_ULP)
        return -ENOENT; /* as where the kernel has no such layer */
    if (size > MOST_OF_A_VALUE)
        return -EINVAL;
    if (level == SOL_SOCKET) {
        bool is_limit = option == SO_RCVTIMEO || option == SO_SNDTIMEO;
        if (size < (is_limit ? sizeof(struct timeval) : sizeof(int)))
            return -EINVAL;
        if (is_limit && !is_time(value))
            return -EDOM;
        if (option == SO_REUSEPORT)
            socket->shares_place = *(const int *)value != 0;
        if (option == SO_REUSEADDR)
            socket->reuses_address = *(const int *)value != 0;
    }
    return keep_option(socket, level, option, value, size);
}

static int type_of(const object_t *socket) {
    return socket->kind == HAFTI_IO_DATAGRAMS ? SOCK_DGRAM : SOCK_STREAM;
}

static int protocol_of(const object_t *socket) {
    if (socket->place.family != AF_INET && socket->place.family != AF_INET6)
        return 0;
    return type_of(socket) == SOCK_DGRAM ? IPPROTO_UDP : IPPROTO_TCP;
}

/* Reads an option that is a number and part of the socket's own state. */
static bool tell_state(object_t *socket, int option, int *value) {
    switch (option) {
    case SO_TYPE:
        *value = type_of(socket);
        return true;
    case SO_DOMAIN:
        *value = socket->place.family != AF_UNSPEC ? socket->place.family : AF_UNIX;
        return true;
    case SO_PROTOCOL:
        *value = protocol_of(socket);
        return true;
    case SO_ACCEPTCONN:
        *value = socket->kind == HAFTI_IO_A_LISTENER;
        return true;
    case SO_REUSEPORT:
        *value = socket->shares_place;
        return true;
    case SO_ERROR:
        *value = -take_error(socket);
        return true;
    case SO_RCVBUF:
    case SO_SNDBUF:
        *value = socket->size != 0 ? (int)socket->size : HAFTI_IO_STREAM_ROOM;
        return true;
    default:
        return false;
    }
}

static int copy_value(const void *from, socklen_t size, void *value, socklen_t *room) {
    *room = size < *room ? size : *room;
    memcpy(value, from, *room);
    return 0;
}

static int call_getsockopt(int descriptor, int level, int option, void *value, socklen_t *size) {
    static const struct ucred none = {0};
    object_t *socket;
    int code = socket_of(descriptor, &socket);
    if (code != 0)
        return code;
    if (value == NULL || size == NULL)
        return -EFAULT;
    if (*size > INT_MAX)
        return -EINVAL;
    int number = 0;
    if (level == SOL_SOCKET && tell_state(socket, option, &number))
        return copy_value(&number, sizeof number, value, size);
    const hafti_io_option_t *kept = *find_option(socket, level, option);
    if (kept != NULL)
        return copy_value(kept->value, kept->size, value, size);
    if (level == SOL_SOCKET && (option == SO_RCVTIMEO || option == SO_SNDTIMEO))
        return copy_value(&(struct timeval){0, 0}, sizeof(struct timeval), value, size);
    if (level == SOL_SOCKET && option == SO_LINGER)
        return copy_value(&(struct linger){0, 0}, sizeof(struct linger), value, size);
    if (level == SOL_SOCKET && option == SO_PEERCRED) {
        struct ucred own = {getpid(), getuid(), getgid()};
        bool local = socket->place.family == AF_UNIX && socket->kind == HAFTI_IO_A_STREAM;
        return copy_value(local ? &own : &none, sizeof own, value, size);
    }
    if (level == IPPROTO_TCP && (option == TCP_ULP || option == TCP_INFO))
        return -ENOPROTOOPT;
    if ((level == IPPROTO_IP && option == IP_TTL) ||
        (level == IPPROTO_IPV6 && option == IPV6_UNICAST_HOPS))
        number = 64;
    return copy_value(&number, sizeof number, value, size);
}

/* ---- The table ---- */

const haft_io_calls_t hafti_io_simulation_calls = {
    .socket = call_socket,
    .socketpair = call_socketpair,
    .listen = call_listen,
    .shutdown = hafti_io_calls_shutdown,
    .getsockopt = call_getsockopt,
    .setsockopt = call_setsockopt,
    .pipe2 = call_pipe2,
    .bind = hafti_io_calls_bind,
    .getsockname = call_getsockname,
    .getpeername = call_getpeername,
    .accept4 = call_accept4,
    .connect = call_connect,
    .recvmsg = call_recvmsg,
    .recvmmsg = call_recvmmsg,
    .sendmsg = call_sendmsg,
    .host_of = hafti_io_calls_host_of,
    .real_of = hafti_io_calls_real_of,
    .poll = poll_now,
    .readv = call_readv,
    .writev = call_writev,
    .fcntl = call_fcntl,
    .ioctl = call_ioctl,
    .pause = hafti_io_simulated_pause,
    .random = draw_bytes,
    .openat = hafti_io_calls_openat,
    .fsync = hafti_io_calls_fsync,
    .lseek = hafti_io_calls_lseek,
    .truncate = hafti_io_calls_truncate,
    .fallocate = hafti_io_calls_fallocate,
    .flock = hafti_io_calls_flock,
    .fstatat = hafti_io_calls_fstatat,
    .faccessat = hafti_io_calls_faccessat,
    .fchmodat = hafti_io_calls_fchmodat,
    .utimensat = hafti_io_calls_utimensat,
    .mkdirat = hafti_io_calls_mkdirat,
    .remove = hafti_io_calls_remove,
    .unlinkat = hafti_io_calls_unlinkat,
    .renameat2 = hafti_io_calls_renameat2,
    .link = hafti_io_calls_link,
    .scandir = hafti_io_calls_scandir,
    .list = hafti_io_calls_list,
    .realpath = hafti_io_calls_realpath,
    .chdir = hafti_io_calls_chdir,
};

const haft_io_calls_t *haft_io_simulated_calls(void) {
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    return simulated != NULL ? simulated->calls : NULL; /* NULL of a replay, too */
}

const haft_io_calls_t *haft_io_simulated_network_calls(void) {
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    return simulated != NULL && simulated->network ? simulated->calls : NULL;
}

const haft_io_calls_t *haft_io_simulated_file_calls(void) {
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    return simulated != NULL && simulated->files ? simulated->calls : NULL;
}
