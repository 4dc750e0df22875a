/* SPDX-License-Identifier: MIT */
/* Descriptors: making pipes and sockets, listening, connecting by name; files, which go through the
   pool. */
#include "internal.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

int haft_io_pipe(int ends[2]) {
    if (hafti_io_network_is_simulated())
        return hafti_io_network_pipe(ends);
    return pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0 ? 0 : -errno;
}

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

/* (The next of several addresses may do, which is tried after a wait.) */
__attribute__((noinline)) int haft_io_socket(int domain, int type, int protocol) {
    if (HAFTI_IO_UNLIKELY(hafti_io_network_is_simulated()))
        return hafti_io_network_socket(domain, type);
    int made = HAFTI_IO_RESULT(socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
    if (made >= 0 && is_tcp(domain, type, protocol))
        send_at_once(made);
    return made;
}

int haft_io_socket_pair(int domain, int type, int protocol, int ends[2]) {
    if (hafti_io_network_is_simulated())
        return hafti_io_network_pair(domain, type, ends);
    return socketpair(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol, ends) == 0 ? 0
                                                                                        : -errno;
}

int haft_io_bind(int socket, const struct sockaddr *address, socklen_t size) {
    if (hafti_io_is_simulated(socket))
        return hafti_io_network_bind(socket, address, size);
    return HAFTI_IO_RESULT(bind(socket, address, size));
}

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
} address_t;

/* Its size; 0 for what is no numeric address. */
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

/* Its size; 0 for a path that is empty or too long. */
static socklen_t local_address(address_t *address, const char *path) {
    memset(address, 0, sizeof *address);
    if (path == NULL || path[0] == '\0' || strlen(path) >= sizeof address->local.sun_path)
        return 0;
    address->local.sun_family = AF_UNIX;
    strcpy(address->local.sun_path, path);
    return sizeof address->local;
}

static int bind_and_listen(int socket, const address_t *address, socklen_t size, int backlog) {
    if (hafti_io_network_is_simulated())
        return hafti_io_network_listen(socket, &address->any, size, backlog);
    int yes = 1;
    if (address->any.sa_family != AF_UNIX)
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return bind(socket, &address->any, size) == 0 && listen(socket, backlog) == 0 ? 0 : -errno;
}

static int listen_at(const address_t *address, socklen_t size, int backlog) {
    if (size == 0)
        return -EINVAL;
    int listener = haft_io_socket(address->any.sa_family, SOCK_STREAM, 0);
    if (listener < 0)
        return listener;
    int code = bind_and_listen(listener, address, size, backlog > 0 ? backlog : SOMAXCONN);
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
static int listen_at_name(const char *host, uint16_t port, int backlog) {
    __attribute__((cleanup(free_addresses))) struct addrinfo *addresses = NULL;
    int code = resolve_port(host, port, &addresses), first_code = 0;
    if (code != 0)
        return code;
    for (const struct addrinfo *one = addresses; one != NULL; one = one->ai_next) {
        address_t address;
        memcpy(&address, one->ai_addr, one->ai_addrlen);
        code = listen_at(&address, one->ai_addrlen, backlog);
        if (code >= 0)
            return code;
        first_code = first_code != 0 ? first_code : code;
    }
    return first_code;
}

int haft_io_listen_tcp(const char *host, uint16_t port, int backlog) {
    address_t address;
    socklen_t size = numeric_address(&address, host, port);
    return size != 0 || host == NULL ? listen_at(&address, size, backlog)
                                     : listen_at_name(host, port, backlog);
}

int haft_io_listen_unix(const char *path, int backlog) {
    address_t address;
    return listen_at(&address, local_address(&address, path), backlog);
}

int haft_io_port(int socket) {
    if (hafti_io_is_simulated(socket))
        return hafti_io_network_port(socket);
    address_t address;
    socklen_t size = sizeof address;
    if (getsockname(socket, &address.any, &size) != 0)
        return -errno;
    if (address.any.sa_family == AF_INET)
        return ntohs(address.v4.sin_port);
    return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) : -EAFNOSUPPORT;
}

int haft_io_shutdown(int socket, int how) {
    if (hafti_io_is_simulated(socket))
        return hafti_io_simulated_shutdown(socket, how);
    return HAFTI_IO_RESULT(shutdown(socket, how));
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
    socklen_t size = local_address(&address, path);
    return size != 0 ? connect_to(&address.any, size) : -EINVAL;
}

/* ---- Connecting by name ---- */

/*
 * The addresses of a name are tried in turn, each as soon as the one before has failed, or has not answered for a
 * while; then both are waited for (RFC 8305). The first connection is the caller's, and ends the other attempts.
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
        if (code != 0) /* else it is the attempt's, which may have failed by now */
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

/* Those of the first one's family and others by turns: a family that does not work here costs one attempt. */
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

/* ---- In the pool ---- */

typedef struct file_call {
    const char *path;
    int descriptor;
    int flags;
    mode_t mode;
    bool is_fifo;
    void *buffer;
    size_t size;
    int64_t offset;
    ssize_t done;
} file_call_t;

static ssize_t finish_file_call(void (*function)(void *), file_call_t *call) {
    int code = haft_io_call_blocking(function, call);
    return code == 0 ? call->done : code;
}

/* Who closes the descriptor meanwhile leaves that to the end of the call: a thread of the pool has its number. */
static ssize_t finish_call_on_descriptor(void (*function)(void *), file_call_t *call) {
    HAFTI_IO_USING hafti_io_use_t use = {.descriptor = call->descriptor};
    int code = hafti_io_use(&use);
    return code == 0 ? finish_file_call(function, call) : code;
}

#define FILE_CALL(name, ...)                                                                       \
    static void name(void *argument) {                                                             \
        file_call_t *call = argument;                                                              \
        do                                                                                         \
            call->done = __VA_ARGS__;                                                              \
        while (call->done < 0 && errno == EINTR);                                                  \
        if (call->done < 0)                                                                        \
            call->done = -errno;                                                                   \
    }

/* A FIFO, whose other end nobody may ever open, is not for a thread of the pool. */
static int open_at_once(file_call_t *call) {
    call->is_fifo = hafti_io_waits_for_other_end(AT_FDCWD, call->path, call->flags);
    return call->is_fifo ? 0 : open(call->path, call->flags | O_CLOEXEC, call->mode);
}

FILE_CALL(call_open, open_at_once(call))
FILE_CALL(call_read_at, pread(call->descriptor, call->buffer, call->size, call->offset))
FILE_CALL(call_write_at, pwrite(call->descriptor, call->buffer, call->size, call->offset))
FILE_CALL(call_sync, fsync(call->descriptor))

int haft_io_open(const char *path, int flags, mode_t mode) {
    if (hafti_io_files_are_simulated())
        return hafti_io_files_open(path, flags, mode);
    file_call_t call = {.path = path, .flags = flags, .mode = mode};
    int file = (int)finish_file_call(call_open, &call);
    return call.is_fifo ? haft_io_open_fifo(AT_FDCWD, path, flags, mode) : file;
}

ssize_t haft_io_pread(int descriptor, void *buffer, size_t size, int64_t offset) {
    if (hafti_io_is_simulated(descriptor))
        return hafti_io_files_transfer_at(descriptor, buffer, size, offset, false);
    return finish_call_on_descriptor(
        call_read_at,
        &(file_call_t){.descriptor = descriptor, .buffer = buffer, .size = size, .offset = offset});
}

ssize_t haft_io_pwrite(int descriptor, const void *buffer, size_t size, int64_t offset) {
    if (hafti_io_is_simulated(descriptor))
        return hafti_io_files_transfer_at(descriptor, (void *)(uintptr_t)buffer, size, offset,
                                          true);
    return finish_call_on_descriptor(call_write_at,
                                     &(file_call_t){.descriptor = descriptor,
                                                    .buffer = (void *)(uintptr_t)buffer,
                                                    .size = size,
                                                    .offset = offset});
}

int haft_io_fsync(int descriptor) {
    if (hafti_io_is_simulated(descriptor))
        return hafti_io_files_sync(descriptor);
    return (int)finish_call_on_descriptor(call_sync, &(file_call_t){.descriptor = descriptor});
}

/* Of its own, since who asks may have gone when the answer comes. */
typedef struct resolve_call {
    const char *host, *service; /* or NULL */
    const struct addrinfo *hints;
    struct addrinfo copy_of_hints, *result;
    int code;
    int error; /* errno of the thread that has called */
    char texts[];
} resolve_call_t;

static void call_resolve(void *argument) {
    resolve_call_t *call = argument;
    call->code = getaddrinfo(call->host, call->service, call->hints, &call->result);
    call->error = errno;
}

static void leave_resolve(void *argument) {
    resolve_call_t *call = argument;
    free_addresses(&call->result);
    free(call);
}

static resolve_call_t *resolve_call_new(const char *host, const char *service,
                                        const struct addrinfo *hints) {
    size_t host_size = host != NULL ? strlen(host) + 1 : 0;
    size_t service_size = service != NULL ? strlen(service) + 1 : 0;
    resolve_call_t *call = calloc(1, sizeof *call + host_size + service_size);
    if (call == NULL)
        return NULL;
    if (host != NULL)
        call->host = memcpy(call->texts, host, host_size);
    if (service != NULL)
        call->service = memcpy(call->texts + host_size, service, service_size);
    if (hints != NULL) {
        call->copy_of_hints = *hints;
        call->hints = &call->copy_of_hints;
    }
    return call;
}

static int code_of_resolver(const resolve_call_t *call) {
    switch (call->code) {
    case 0:
        return 0;
    case EAI_SYSTEM:
        return -call->error;
    case EAI_MEMORY:
        return -ENOMEM;
    default:
        return HAFT_IO_ERROR_OF_RESOLVER + call->code;
    }
}

int haft_io_resolve(const char *host, const char *service, const struct addrinfo *hints,
                    struct addrinfo **result) {
    address_t address;
    if (hafti_io_network_is_simulated() && host != NULL && numeric_address(&address, host, 0) == 0)
        host = hints != NULL && hints->ai_family == AF_INET6 ? "::1" : "127.0.0.1";
    resolve_call_t *call = resolve_call_new(host, service, hints);
    if (call == NULL)
        return -ENOMEM;
    int code = haft_io_call_or_leave(call_resolve, call, leave_resolve);
    if (code != 0)
        return code;
    code = code_of_resolver(call);
    if (code == 0)
        *result = call->result;
    free(call);
    return code;
}
