/* SPDX-License-Identifier: MIT */
/* Making pipes and sockets, listening, connecting, also by name. */
#include "objects.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
} address_t;

/* ---- Making them ---- */

int haft_io_pipe(int ends[2]) {
    return hafti_io_network_calls()->pipe2(ends, O_NONBLOCK | O_CLOEXEC);
}

static bool is_tcp(int domain, int type, int protocol) {
    return (domain == AF_INET || domain == AF_INET6) &&
           (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM &&
           (protocol == 0 || protocol == IPPROTO_TCP);
}

static void set_option(int socket, int level, int option) {
    int yes = 1;
    hafti_io_calls_of(socket)->setsockopt(socket, level, option, &yes, sizeof yes);
}

/* A TCP socket sends at once what is written to it. A listener passes this on to what is accepted,
   so an accept needs no further call. */
int haft_io_socket(int domain, int type, int protocol) {
    int made =
        hafti_io_network_calls()->socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (made >= 0 && is_tcp(domain, type, protocol))
        set_option(made, IPPROTO_TCP, TCP_NODELAY);
    return made;
}

int haft_io_socket_pair(int domain, int type, int protocol, int ends[2]) {
    return hafti_io_network_calls()->socketpair(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC,
                                                protocol, ends);
}

int haft_io_bind(int socket, const struct sockaddr *address, socklen_t size) {
    return hafti_io_calls_of(socket)->bind(socket, address, size);
}

int haft_io_port(int socket) {
    address_t address;
    socklen_t size = sizeof address;
    int code = hafti_io_calls_of(socket)->getsockname(socket, &address.any, &size);
    if (code != 0)
        return code;
    if (address.any.sa_family == AF_INET)
        return ntohs(address.v4.sin_port);
    return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) : -EAFNOSUPPORT;
}

int haft_io_shutdown(int socket, int how) {
    return hafti_io_calls_of(socket)->shutdown(socket, how);
}

/* Its size; 0 if it is not a numeric address. */
static socklen_t numeric_address(address_t *address, const char *host, uint16_t port) {
    memset(address, 0, sizeof *address);
    if (host == NULL)
        return 0;
    if (inet_pton(AF_INET, host, &address->v4.sin_addr) == 1) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(port);
        return sizeof address->v4;
    }
    if (inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons(port);
        return sizeof address->v6;
    }
    return 0;
}

static HAFTI_IO_COLD socklen_t refuse_path(const char *function, const char *path) {
    haft_io_refuse(-EINVAL, function,
                   "'%s' is no path of a local socket: write one of 1 to %zu bytes",
                   path != NULL ? path : "(NULL)", sizeof((struct sockaddr_un){0}).sun_path - 1);
    return 0;
}

/* Its size; 0 for a path that is empty or too long. */
static socklen_t local_address(const char *function, address_t *address, const char *path) {
    memset(address, 0, sizeof *address);
    if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof address->local.sun_path)
        return refuse_path(function, path);
    address->local.sun_family = AF_UNIX;
    strcpy(address->local.sun_path, path);
    return sizeof address->local;
}

static int listen_at(const address_t *address, socklen_t size,
                     const haft_io_listen_options_t *options) {
    if (size == 0)
        return -EINVAL;
    int listener = haft_io_socket(address->any.sa_family, SOCK_STREAM, 0);
    if (listener < 0)
        return listener;
    if (address->any.sa_family != AF_UNIX)
        set_option(listener, SOL_SOCKET, SO_REUSEADDR);
    if (options->reuse_port)
        set_option(listener, SOL_SOCKET, SO_REUSEPORT);
    int code = haft_io_bind(listener, &address->any, size);
    if (code == 0)
        code = hafti_io_calls_of(listener)->listen(listener, options->backlog > 0 ? options->backlog
                                                                                  : SOMAXCONN);
    if (code == 0)
        return listener;
    haft_io_close(listener);
    return code;
}

static void free_addresses(struct addrinfo **addresses) {
    if (*addresses != NULL)
        freeaddrinfo(*addresses);
}

static int resolve_port(const char *host, uint16_t port, struct addrinfo **addresses) {
    char service[8];
    snprintf(service, sizeof service, "%u", (unsigned)port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    return haft_io_resolve(host, service, &hints, addresses);
}

/* At the first of the name's addresses that this machine has. */
static int listen_at_name(const char *host, uint16_t port,
                          const haft_io_listen_options_t *options) {
    __attribute__((cleanup(free_addresses))) struct addrinfo *addresses = NULL;
    int code = resolve_port(host, port, &addresses), first_code = 0;
    if (code != 0)
        return code;
    for (const struct addrinfo *one = addresses; one != NULL; one = one->ai_next) {
        address_t address;
        memcpy(&address, one->ai_addr, one->ai_addrlen);
        code = listen_at(&address, one->ai_addrlen, options);
        if (code >= 0)
            return code;
        first_code = first_code != 0 ? first_code : code;
    }
    return first_code;
}

int haft_io_listen_tcp_with(const haft_io_listen_options_t *given, const char *host,
                            uint16_t port) {
    static const haft_io_listen_options_t defaults = {0};
    const haft_io_listen_options_t *options = given != NULL ? given : &defaults;
    address_t address;
    socklen_t size = numeric_address(&address, host, port);
    if (host == NULL)
        return haft_io_refuse(
            -EINVAL, "haft_io_listen_tcp",
            "the host is NULL: write \"::\" for all addresses of this machine, or "
            "\"0.0.0.0\" for those of IPv4");
    return size != 0 ? listen_at(&address, size, options) : listen_at_name(host, port, options);
}

int haft_io_listen_tcp(const char *host, uint16_t port, int backlog) {
    return haft_io_listen_tcp_with(&(haft_io_listen_options_t){.backlog = backlog}, host, port);
}

int haft_io_listen_unix(const char *path, int backlog) {
    address_t address;
    haft_io_listen_options_t options = {.backlog = backlog};
    return listen_at(&address, local_address(__func__, &address, path), &options);
}

static int connect_to(const struct sockaddr *address, socklen_t size) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_socket(address->sa_family, SOCK_STREAM, 0);
    if (connection < 0)
        return connection;
    int code = haft_io_connect(connection, address, size);
    if (code < 0)
        return code;
    int connected = connection;
    connection = -1;
    return connected;
}

int haft_io_connect_unix(const char *path) {
    address_t address;
    socklen_t size = local_address(__func__, &address, path);
    return size != 0 ? connect_to(&address.any, size) : -EINVAL;
}

/* ---- Connecting by name ---- */

/*
 * The addresses of a name are tried in turn, each as soon as the one before has failed, or has not
 * answered for a while; then both are waited for (RFC 8305). The first connection is the caller's,
 * and ends the other attempts.
 *
 *   body:   attempt 0 . . . . attempt 1 . attempt 2
 *              |   250 ms       | fails     | connects: cancels the scope
 *              +- - - - - - - - - - - - - - +- - > is withdrawn
 */
static const int64_t patience = 250 * HAFT_IO_MILLISECOND;

typedef struct race race_t;
typedef struct attempt {
    race_t *race;
    const struct addrinfo *address;
    haft_io_event_t failed;
    int code; /* with which it has failed; 0: it has not */
} attempt_t;

struct race {
    haft_io_scope_t *scope;
    size_t count;
    attempt_t *attempts;
    int connection; /* -1: there is none yet */
};

static void *try_address(void *argument) {
    attempt_t *attempt = argument;
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        connect_to(attempt->address->ai_addr, attempt->address->ai_addrlen);
    int none = -1;
    if (connection < 0) {
        attempt->code = connection;
        haft_io_event_set(&attempt->failed);
    } else if (__atomic_compare_exchange_n(&attempt->race->connection, &none, connection, false,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        connection = -1;
        haft_io_scope_cancel(attempt->race->scope);
    }
    return NULL;
}

static void *try_all(void *argument) {
    race_t *race = argument;
    race->scope = haft_io_this_scope();
    for (size_t i = 0; i < race->count; i++) {
        attempt_t *attempt = &race->attempts[i];
        int code = haft_io_spawn_with(&(haft_io_task_options_t){.name = "an address to connect to"},
                                      try_address, attempt);
        if (code != 0) /* otherwise it belongs to the attempt, which may have failed by now */
            attempt->code = code;
        else if (i + 1 < race->count &&
                 haft_io_event_wait_until(&attempt->failed, haft_io_now() + patience) == -ECANCELED)
            break;
    }
    return NULL;
}

/* The next that is, or is not, of the family; or NULL. */
static const struct addrinfo *next_of(const struct addrinfo *one, int family, bool is) {
    while (one != NULL && (one->ai_family == family) != is)
        one = one->ai_next;
    return one;
}

/* Alternates between addresses of the first one's family and others, so a family that does not work
   here costs one attempt. */
static void choose_order(race_t *race, const struct addrinfo *first) {
    const struct addrinfo *same = first, *other = next_of(first, first->ai_family, false);
    for (size_t i = 0; i < race->count; i++) {
        const struct addrinfo **next =
            other == NULL || (same != NULL && i % 2 == 0) ? &same : &other;
        race->attempts[i] = (attempt_t){.race = race, .address = *next};
        *next = next_of((*next)->ai_next, first->ai_family, next == &same);
    }
}

static void close_and_free(race_t *race) {
    if (race->connection >= 0)
        haft_io_close(race->connection);
    free(race->attempts);
}

static int connect_to_first(const struct addrinfo *addresses, size_t count) {
    __attribute__((cleanup(close_and_free)))
    race_t race = {.count = count, .attempts = calloc(count, sizeof(attempt_t)), .connection = -1};
    if (race.attempts == NULL)
        return -ENOMEM;
    choose_order(&race, addresses);
    int code = haft_io_scope(try_all, &race, NULL);
    int connection = race.connection;
    race.connection = -1;
    if (connection >= 0)
        return connection;
    if (code == 0)
        code = race.attempts[0].code;
    /* 0: all were cut short, and had ended when the scope was left. */
    return code != 0 ? code : haft_io_unwind_cancelled();
}

/* Where there are no tasks. */
static int connect_in_turn(const struct addrinfo *addresses) {
    int first_code = 0;
    for (; addresses != NULL; addresses = addresses->ai_next) {
        int code = connect_to(addresses->ai_addr, addresses->ai_addrlen);
        if (code >= 0)
            return code;
        first_code = first_code != 0 ? first_code : code;
    }
    return first_code;
}

int haft_io_connect_tcp(const char *host, uint16_t port) {
    address_t address;
    socklen_t size = numeric_address(&address, host, port);
    if (size != 0)
        return connect_to(&address.any, size);
    __attribute__((cleanup(free_addresses))) struct addrinfo *addresses = NULL;
    int code = resolve_port(host, port, &addresses);
    if (code != 0)
        return code;
    size_t count = 0;
    for (const struct addrinfo *one = addresses; one != NULL; one = one->ai_next)
        count++;
    return count > 1 && haft_io_runs_here() ? connect_to_first(addresses, count)
                                            : connect_in_turn(addresses);
}
