/* SPDX-License-Identifier: MIT */
/* Calls on sockets that never wait: the system's own, except in a simulation. */
#include "internal.h"

/* Other kinds, such as the kernel's own, are always the system's. */
static const hafti_posix_system_t *system_for(int domain, int type) {
    bool is_network = domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX;
    type &= ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
    return is_network && (type == SOCK_STREAM || type == SOCK_DGRAM) ? hafti_posix_network_system()
                                                                     : hafti_posix_system();
}

HAFT_POSIX_EXPORT int socket(int domain, int type, int protocol) {
    return system_for(domain, type)->socket(domain, type, protocol);
}

HAFT_POSIX_EXPORT int socketpair(int domain, int type, int protocol, int ends[2]) {
    return system_for(domain, type)->socketpair(domain, type, protocol, ends);
}

HAFT_POSIX_EXPORT int bind(int socket, __CONST_SOCKADDR_ARG address, socklen_t size) {
    return SYSTEM_OF(socket, bind)(socket, address, size);
}

HAFT_POSIX_EXPORT int listen(int socket, int backlog) {
    return SYSTEM_OF(socket, listen)(socket, backlog);
}

HAFT_POSIX_EXPORT int shutdown(int socket, int how) {
    return SYSTEM_OF(socket, shutdown)(socket, how);
}

HAFT_POSIX_EXPORT int getsockname(int socket, __SOCKADDR_ARG address, socklen_t *restrict size) {
    return SYSTEM_OF(socket, getsockname)(socket, address, size);
}

HAFT_POSIX_EXPORT int getpeername(int socket, __SOCKADDR_ARG address, socklen_t *restrict size) {
    return SYSTEM_OF(socket, getpeername)(socket, address, size);
}

HAFT_POSIX_EXPORT int getsockopt(int socket, int level, int option, void *restrict value,
                                 socklen_t *restrict size) {
    return SYSTEM_OF(socket, getsockopt)(socket, level, option, value, size);
}

HAFT_POSIX_EXPORT int dup(int descriptor) {
    return SYSTEM_OF(descriptor, dup)(descriptor);
}
