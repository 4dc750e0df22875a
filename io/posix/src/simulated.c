/* SPDX-License-Identifier: MIT */
/*
 * The system of a simulation, as functions of the C library: those on its descriptors, and those
 * that make something in it. They set errno, and never wait; the waits are in the other files,
 * above either system. Other functions are the machine's, for which a simulated descriptor is
 * invalid.
 */
#include "simulations.h"

#include <limits.h>
#include <stdarg.h>
#include <string.h>

/* ---- Reading and writing ---- */

#define PART(buffer, size) (&(struct iovec){(void *)(uintptr_t)(buffer), size})

static int check_parts(const struct iovec *parts, int count) {
    if (count < 0 || count > IOV_MAX)
        return -EINVAL;
    return parts != NULL || count == 0 ? 0 : -EFAULT;
}

/* The functions of one direction, all by one call: on bytes (which are constant, or not), and on
   parts. */
#define OF_A_DIRECTION(call, on_bytes, bytes_t)                                                    \
    static ssize_t simulated_##on_bytes(int descriptor, bytes_t *buffer, size_t size) {            \
        return SIMULATED(call, descriptor, PART(buffer, size), 1, -1);                             \
    }                                                                                              \
    static ssize_t simulated_p##on_bytes(int descriptor, bytes_t *buffer, size_t size,             \
                                         off_t offset) {                                           \
        return offset >= 0 ? SIMULATED(call, descriptor, PART(buffer, size), 1, offset)            \
                           : hafti_posix_result(-EINVAL);                                          \
    }                                                                                              \
    static ssize_t simulated_p##call##2(int descriptor, const struct iovec *parts, int count,      \
                                        off_t offset, int flags) {                                 \
        (void)flags;                                                                               \
        int code = offset >= -1 ? check_parts(parts, count) : -EINVAL;                             \
        return code == 0 ? SIMULATED(call, descriptor, parts, (size_t)count, offset)               \
                         : hafti_posix_result(code);                                               \
    }                                                                                              \
    static ssize_t simulated_##call(int descriptor, const struct iovec *parts, int count) {        \
        return simulated_p##call##2(descriptor, parts, count, -1, 0);                              \
    }                                                                                              \
    static ssize_t simulated_p##call(int descriptor, const struct iovec *parts, int count,         \
                                     off_t offset) {                                               \
        return offset >= 0 ? simulated_p##call##2(descriptor, parts, count, offset, 0)             \
                           : hafti_posix_result(-EINVAL);                                          \
    }
OF_A_DIRECTION(readv, read, void)
OF_A_DIRECTION(writev, write, const void)

/* ---- Messages ---- */

static ssize_t simulated_recvmsg(int socket, struct msghdr *message, int flags) {
    return message != NULL ? SIMULATED(recvmsg, socket, message, flags)
                           : hafti_posix_result(-EFAULT);
}
static ssize_t simulated_sendmsg(int socket, const struct msghdr *message, int flags) {
    if (message == NULL)
        return hafti_posix_result(-EFAULT);
    struct msghdr copy = *message;
    return SIMULATED(sendmsg, socket, &copy, flags);
}

static ssize_t simulated_recvfrom(int socket, void *restrict buffer, size_t size, int flags,
                                  __SOCKADDR_ARG address, socklen_t *restrict address_size) {
    if (address.__sockaddr__ != NULL && address_size == NULL)
        return hafti_posix_result(-EFAULT);
    struct msghdr message = hafti_posix_message(PART(buffer, size), address.__sockaddr__,
                                                address.__sockaddr__ != NULL ? *address_size : 0);
    ssize_t done = SIMULATED(recvmsg, socket, &message, flags);
    if (done >= 0 && address.__sockaddr__ != NULL)
        *address_size = message.msg_namelen;
    return done;
}
static ssize_t simulated_sendto(int socket, const void *buffer, size_t size, int flags,
                                __CONST_SOCKADDR_ARG address, socklen_t address_size) {
    struct msghdr message =
        hafti_posix_message(PART(buffer, size), address.__sockaddr__, address_size);
    return SIMULATED(sendmsg, socket, &message, flags);
}
static ssize_t simulated_recv(int socket, void *buffer, size_t size, int flags) {
    return simulated_recvfrom(socket, buffer, size, flags, (__SOCKADDR_ARG){NULL}, NULL);
}
static ssize_t simulated_send(int socket, const void *buffer, size_t size, int flags) {
    return simulated_sendto(socket, buffer, size, flags, (__CONST_SOCKADDR_ARG){NULL}, 0);
}

/* Transfer as many of the messages as there are, or as there is room for. */
static int simulated_recvmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags,
                              struct timespec *limit) {
    (void)limit;
    return (int)SIMULATED(recvmmsg, socket, messages, count, flags);
}
static int simulated_sendmmsg(int socket, struct mmsghdr *messages, unsigned count, int flags) {
    if (messages == NULL && count != 0)
        return (int)hafti_posix_result(-EFAULT);
    unsigned done = 0;
    ssize_t size = 0;
    while (done < count && (size = simulated_sendmsg(socket, &messages[done].msg_hdr, flags)) >= 0)
        messages[done++].msg_len = (unsigned)size;
    return done != 0 ? (int)done : (int)size;
}

/* ---- Sockets ---- */

HAFTI_IO_SOCKET_CALLS(SIMULATED_ALIKE)

static int simulated_bind(int socket, __CONST_SOCKADDR_ARG address, socklen_t size) {
    return (int)SIMULATED(bind, socket, address.__sockaddr__, size);
}
static int simulated_accept4(int listener, __SOCKADDR_ARG address, socklen_t *restrict size,
                             int flags) {
    return (int)SIMULATED(accept4, listener, address.__sockaddr__, size, flags);
}
static int simulated_accept(int listener, __SOCKADDR_ARG address, socklen_t *restrict size) {
    return simulated_accept4(listener, address, size, 0);
}
static int simulated_connect(int socket, __CONST_SOCKADDR_ARG address, socklen_t size) {
    return (int)SIMULATED(connect, socket, address.__sockaddr__, size);
}
static int simulated_getsockname(int socket, __SOCKADDR_ARG address, socklen_t *restrict size) {
    return (int)SIMULATED(getsockname, socket, address.__sockaddr__, size);
}
static int simulated_getpeername(int socket, __SOCKADDR_ARG address, socklen_t *restrict size) {
    return (int)SIMULATED(getpeername, socket, address.__sockaddr__, size);
}

/* ---- Any descriptor ---- */

static int simulated_poll(struct pollfd *entries, nfds_t count, int milliseconds) {
    (void)milliseconds;
    return (int)SIMULATED(poll, entries, count);
}
static int simulated_fcntl(int descriptor, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return (int)SIMULATED(fcntl, descriptor, command, argument);
}
static int simulated_ioctl(int descriptor, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return (int)SIMULATED(ioctl, descriptor, request, argument);
}
static int simulated_dup(int descriptor) {
    return simulated_fcntl(descriptor, F_DUPFD, NULL);
}

/* ---- The table ---- */

static hafti_posix_system_t simulated;

static void make_table(void) {
    simulated = *hafti_posix_system();
#define IS_SIMULATED(name) simulated.name = simulated_##name;
    HAFT_POSIX_OF_DESCRIPTORS(IS_SIMULATED)
#undef IS_SIMULATED
    hafti_posix_find_simulated_files(&simulated);
}

static const hafti_posix_system_t *simulated_system(void) {
    static pthread_once_t is_made = PTHREAD_ONCE_INIT;
    SYSTEM(pthread_once)(&is_made, make_table);
    return &simulated;
}

__attribute__((constructor)) static void tell_that_it_is_there(void) {
    haft_io_simulates_c_library = true;
}

/* (A thread that has been blocked for a task, by haft_io_block_thread, is on none.) */
const hafti_posix_system_t *hafti_posix_simulated_system(void) {
    const hafti_posix_system_t *system = hafti_posix_system();
    return haft_io_simulated_calls() != NULL && hafti_posix_on_task() ? simulated_system() : system;
}

const hafti_posix_system_t *hafti_posix_network_system_asked(void) {
    const hafti_posix_system_t *system = hafti_posix_system();
    return haft_io_simulated_network_calls() != NULL && hafti_posix_on_task() ? simulated_system()
                                                                              : system;
}

/* When a task calls exit, functions run on it that were registered before there was a simulation:
   gcov's, for example, which writes its report. Their files are the machine's, but not those of
   tasks that go on meanwhile. */
static haft_io_task_t *exits;
static void note_exit(void) {
    __atomic_store_n(&exits, haft_io_self(), __ATOMIC_RELAXED);
}
static void tell_exit(void) {
    atexit(note_exit);
}

const hafti_posix_system_t *hafti_posix_file_system(void) {
    static pthread_once_t told = PTHREAD_ONCE_INIT;
    const hafti_posix_system_t *system = hafti_posix_system();
    if (haft_io_simulated_file_calls() == NULL || !hafti_posix_on_task() ||
        hafti_posix_is_child_of_vfork())
        return system;
    SYSTEM(pthread_once)(&told, tell_exit);
    bool is_exiting = haft_io_self() == __atomic_load_n(&exits, __ATOMIC_RELAXED);
    return is_exiting ? system : simulated_system();
}
