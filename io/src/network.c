/* SPDX-License-Identifier: MIT */
/* The system's network: pipes, sockets, listeners. */
#include "objects.h"
#include "system.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

/* A listener passes it on to what is accepted, so an accept needs no further call. */
static void send_at_once(int socket) {
    int saved = errno, yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    errno = saved;
}

static bool is_tcp(int domain, int type, int protocol) {
    return (domain == AF_INET || domain == AF_INET6) &&
           (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
           (protocol == 0 || protocol == IPPROTO_TCP);
}

static int real_pipe(int ends[2]) {
    return HAFTI_IO_RESULT(pipe2(ends, O_NONBLOCK | O_CLOEXEC));
}

static int real_socket(int domain, int type, int protocol) {
    int made = HAFTI_IO_RESULT(socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
    if (made >= 0 && is_tcp(domain, type, protocol))
        send_at_once(made);
    return made;
}

static int real_socket_pair(int domain, int type, int protocol, int ends[2]) {
    return HAFTI_IO_RESULT(socketpair(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol, ends));
}

static int real_bind(int socket, const struct sockaddr *address, socklen_t size) {
    return HAFTI_IO_RESULT(bind(socket, address, size));
}

static int real_listen(int socket, const struct sockaddr *address, socklen_t size,
                       const haft_io_listen_options_t *options) {
    int yes = 1;
    if (address->sa_family != AF_UNIX)
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (options->reuse_port)
        setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
    int code = real_bind(socket, address, size);
    return code == 0 ? HAFTI_IO_RESULT(listen(socket, options->backlog)) : code;
}

static int real_port(int socket) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } address;
    socklen_t size = sizeof address;
    int code = HAFTI_IO_RESULT(getsockname(socket, &address.any, &size));
    if (code != 0)
        return code;
    if (address.any.sa_family == AF_INET)
        return ntohs(address.v4.sin_port);
    return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) : -EAFNOSUPPORT;
}

static int real_shutdown(int socket, int how) {
    return HAFTI_IO_RESULT(shutdown(socket, how));
}

static int real_of_itself(int descriptor) {
    return descriptor;
}

static const char *host_itself(const char *host, int family) {
    (void)family;
    return host;
}

const hafti_io_network_t hafti_io_real_network = {.pipe = real_pipe,
                                                  .socket = real_socket,
                                                  .socket_pair = real_socket_pair,
                                                  .bind = real_bind,
                                                  .listen = real_listen,
                                                  .port = real_port,
                                                  .shutdown = real_shutdown,
                                                  .real_of = real_of_itself,
                                                  .host_of = host_itself};
