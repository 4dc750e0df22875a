/* SPDX-License-Identifier: MIT */
/*
 * The network of a simulation: one host, which every address and every name is. A listener has a
 * port or a path; a connection is a stream whose other end waits in the listener's list until it is
 * accepted. Ports of UDP are others.
 */
#include "simulation.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

static hafti_io_simulated_state_t *network(void) {
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    return simulated != NULL && simulated->network ? hafti_io_state_here() : NULL;
}

/* ---- Of the table calls.h ---- */

/* The next listener of those that share the place. */
static hafti_io_object_t *next_beside(const hafti_io_object_t *listener) {
    return HAFTI_IO_OWNER(listener->beside.next, hafti_io_object_t, beside);
}

/* Each of those that share the place has its turn; a socket that is only bound has none. */
static hafti_io_object_t *listener_at(const hafti_io_simulated_state_t *state,
                                      const hafti_io_place_there_t *place) {
    hafti_io_object_t *first = hafti_io_object_at(&state->listeners, place), *listener = first;
    if (first == NULL)
        return NULL;
    while (listener->kind != HAFTI_IO_A_LISTENER) {
        listener = next_beside(listener);
        if (listener == first)
            return NULL;
    }
    hafti_io_stand_for_place(&state->listeners, &next_beside(listener)->place);
    return listener;
}

static bool is_protocol_of(int domain, int type, int protocol) {
    if (domain == AF_UNIX)
        return protocol == 0 || protocol == PF_UNIX;
    return protocol == 0 || protocol == (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP);
}

int hafti_io_simulated_socket(int domain, int type, int protocol) {
    if (type < 0)
        return -EINVAL;
    if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6)
        return -EAFNOSUPPORT;
    type &= ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (type != SOCK_STREAM && (type != SOCK_DGRAM || domain == AF_UNIX))
        return -EOPNOTSUPP;
    if (!is_protocol_of(domain, type, protocol))
        return -EPROTONOSUPPORT;
    if (hafti_io_fault_is_drawn(network()->simulated))
        return -EMFILE;
    hafti_io_object_t *socket = hafti_io_object_new(
        network(), type == SOCK_STREAM ? HAFTI_IO_A_SOCKET : HAFTI_IO_DATAGRAMS);
    if (socket == NULL)
        return -ENOMEM;
    socket->place.family = (sa_family_t)domain;
    hafti_io_ring(&socket->arrived);
    return socket->descriptor;
}

int hafti_io_simulated_pipe(int ends[2]) {
    if (hafti_io_fault_is_drawn(network()->simulated))
        return -EMFILE;
    return hafti_io_object_pair(network(), HAFTI_IO_A_PIPE, ends);
}

int hafti_io_simulated_socketpair(int domain, int type, int protocol, int ends[2]) {
    (void)protocol;
    if (domain != AF_UNIX)
        return domain == AF_INET || domain == AF_INET6 ? -EOPNOTSUPP : -EAFNOSUPPORT;
    type &= ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (type != SOCK_STREAM && type != SOCK_DGRAM)
        return -EOPNOTSUPP;
    if (hafti_io_fault_is_drawn(network()->simulated))
        return -EMFILE;
    if (type == SOCK_DGRAM)
        return hafti_io_simulated_datagrams_pair(network(), ends);
    int code = hafti_io_object_pair(network(), HAFTI_IO_A_STREAM, ends);
    for (int i = 0; i < 2 && code == 0; i++)
        hafti_io_object_of(network(), ends[i])->place.family = AF_UNIX;
    return code;
}

/* Whether the socket can be at a place where others are. Those with SO_REUSEADDR may be there
   together until one listens. */
static bool fits_beside(const hafti_io_object_t *there, const hafti_io_object_t *socket) {
    const hafti_io_object_t *other = there;
    do {
        bool shares = other->shares_place && socket->shares_place;
        bool reuses = other->reuses_address && socket->reuses_address &&
                      socket->place.family != AF_UNIX && other->kind != HAFTI_IO_A_LISTENER;
        if (other != socket && !shares && !reuses)
            return false;
        other = next_beside(other);
    } while (other != there);
    return true;
}

int hafti_io_simulated_bind(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                            const hafti_io_place_there_t *place) {
    hafti_io_place_there_t before = socket->place;
    hafti_io_object_t *there = hafti_io_object_at(&state->listeners, place);
    bool is_shared = there != NULL && fits_beside(there, socket);
    socket->place = *place;
    int code = is_shared ? 0 : hafti_io_occupy(state, &state->listeners, &socket->place);
    if (code != 0) {
        socket->place = before;
        return code;
    }
    hafti_io_ring(&socket->beside);
    if (is_shared)
        hafti_io_append(&there->beside, &socket->beside);
    socket->bound = true;
    return 0;
}

void hafti_io_simulated_unbind(hafti_io_simulated_state_t *state, hafti_io_object_t *socket) {
    if (!socket->bound)
        return;
    socket->bound = false;
    if (hafti_io_ring_empty(&socket->beside))
        hafti_io_vacate(&state->listeners, &socket->place);
    else if (hafti_io_object_at(&state->listeners, &socket->place) == socket)
        hafti_io_stand_for_place(&state->listeners, &next_beside(socket)->place);
    hafti_io_unlink(&socket->beside);
}

bool hafti_io_simulated_is_connecting(const hafti_io_object_t *socket) {
    return socket->connecting || socket->connects != NULL;
}

int hafti_io_simulated_listen(hafti_io_object_t *socket, size_t backlog) {
    if (socket->kind != HAFTI_IO_A_LISTENER) {
        if (!fits_beside(socket, socket))
            return -EADDRINUSE;
        socket->kind = HAFTI_IO_A_LISTENER;
        hafti_io_ring(&socket->without_room);
    }
    socket->backlog = backlog;
    return 0;
}

/* The socket, if it can be given the place. */
static int begin_bind(int descriptor, const struct sockaddr *address, socklen_t size,
                      hafti_io_object_t **socket, hafti_io_place_there_t *place) {
    *socket = hafti_io_object_of(hafti_io_state_here(), descriptor);
    if (*socket == NULL)
        return -EBADF;
    if (!hafti_io_object_is_socket(*socket))
        return -ENOTSOCK;
    if ((*socket)->kind != HAFTI_IO_A_SOCKET && (*socket)->kind != HAFTI_IO_DATAGRAMS)
        return -EINVAL;
    int code = hafti_io_place_of(address, size, place);
    if (code == 0 && place->family != (*socket)->place.family &&
        (*socket)->place.family != AF_UNSPEC)
        code = (*socket)->place.family == AF_UNIX ? -EINVAL : -EAFNOSUPPORT;
    bool has_place = (*socket)->bound || hafti_io_simulated_is_connecting(*socket);
    return code != 0 ? code : has_place ? -EINVAL : 0;
}

int hafti_io_calls_bind(int descriptor, const struct sockaddr *address, socklen_t size) {
    hafti_io_object_t *socket;
    hafti_io_place_there_t place;
    int code = begin_bind(descriptor, address, size, &socket, &place);
    if (code != 0)
        return code;
    return socket->kind == HAFTI_IO_DATAGRAMS
               ? hafti_io_simulated_datagrams_bind(hafti_io_state_here(), socket, &place)
               : hafti_io_simulated_bind(hafti_io_state_here(), socket, &place);
}

int hafti_io_calls_shutdown(int descriptor, int how) {
    hafti_io_simulated_state_t *state = hafti_io_state_here();
    hafti_io_object_t *end = hafti_io_object_of(state, descriptor);
    if (end == NULL)
        return -EBADF;
    if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
        return -EINVAL;
    switch (end->kind) {
    case HAFTI_IO_A_FILE:
    case HAFTI_IO_A_PIPE:
        return -ENOTSOCK;
    case HAFTI_IO_A_SOCKET:
        if (end->connecting)
            hafti_io_simulated_connect_aborts(state, end);
        else if (end->place.family != AF_UNIX)
            return -ENOTCONN;
        return 0;
    case HAFTI_IO_A_LISTENER: /* as Linux has it */
        if (how != SHUT_WR)
            hafti_io_simulated_listener_ends(state, end);
        return 0;
    case HAFTI_IO_A_REAL_END:
        return haft_io_shutdown(end->real, how);
    case HAFTI_IO_DATAGRAMS:
        return hafti_io_simulated_datagrams_shut(state, end, how);
    case HAFTI_IO_A_STREAM:
        break;
    }
    if (how != SHUT_RD)
        hafti_io_simulated_end_ends_output(state, end);
    if (how != SHUT_WR)
        hafti_io_simulated_end_ends_input(state, end);
    return 0;
}

/* ---- Connections ---- */

/* For one more than `backlog`, as Linux has it. (Which may have become less.) */
static bool has_room(const hafti_io_object_t *listener) {
    return listener->waiting <= listener->backlog;
}

static hafti_io_object_t *take_first(hafti_io_link_t *ring) {
    hafti_io_object_t *first = HAFTI_IO_OWNER(ring->next, hafti_io_object_t, link);
    hafti_io_unlink(&first->link);
    return first;
}

/* The other end waits to be accepted. */
static int join(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                hafti_io_object_t *listener, const hafti_io_place_there_t *place) {
    hafti_io_object_t *end = hafti_io_object_new(state, HAFTI_IO_A_SOCKET);
    if (end == NULL)
        return -ENOMEM;
    int code = hafti_io_object_join(socket, end, HAFTI_IO_A_STREAM);
    if (code != 0) {
        hafti_io_number_close(state, end->descriptor);
        return code;
    }
    end->place = *place;
    end->place.family = listener->place.family;
    if (place->family != AF_UNIX) {
        end->place = hafti_io_place_seen(&end->place, place);
        socket->place = hafti_io_place_seen(&socket->place, place);
        if (!socket->bound)
            hafti_io_choose_port(state, &state->listeners, &socket->place);
    }
    hafti_io_append(&listener->arrived, &end->link);
    hafti_io_object_wake(state, listener);
    hafti_io_object_wake(state, socket); /* Other tasks may wait to use it. */
    return 0;
}

/* NULL: the socket does not wait any more. */
static void wait_for_room(hafti_io_object_t *socket, hafti_io_object_t *listener) {
    if (listener != NULL)
        hafti_io_object_hold(listener);
    if (socket->full != NULL)
        hafti_io_object_release(socket->full);
    socket->full = listener;
}

/* Ends a connect that no task waits for. */
static void end_connect(hafti_io_simulated_state_t *state, hafti_io_object_t *socket, int code) {
    socket->connecting = false;
    wait_for_room(socket, NULL);
    socket->failed = socket->error = code;
    hafti_io_object_wake(state, socket);
}

/* The first of those without room go on, as many as there is room for, which is theirs then: it
   counts as taken. */
static void give_room(hafti_io_simulated_state_t *state, hafti_io_object_t *listener) {
    while (has_room(listener) && !hafti_io_ring_empty(&listener->without_room)) {
        hafti_io_object_t *socket = take_first(&listener->without_room);
        if (!socket->connecting) {
            listener->waiting++;
            hafti_io_object_wake(state, socket);
            continue;
        }
        int code = join(state, socket, listener, &socket->to);
        listener->waiting += code == 0;
        end_connect(state, socket, code);
    }
}

static bool listens(const hafti_io_object_t *listener) {
    return listener != NULL && listener->open && listener->kind == HAFTI_IO_A_LISTENER;
}

/* The error of a further connect in the socket's state; for AF_UNIX, once the listener has room. */
static int check_connect(const hafti_io_object_t *socket) {
    if (socket->kind == HAFTI_IO_A_LISTENER && socket->place.family == AF_UNIX)
        return -EINVAL;
    return socket->kind != HAFTI_IO_A_SOCKET ? -EISCONN : socket->connecting ? -EALREADY : 0;
}

/* Where a connect goes to. */
static int place_to_connect(const hafti_io_object_t *socket, const struct sockaddr *address,
                            socklen_t size, hafti_io_place_there_t *place) {
    int code = socket->place.family != AF_UNIX ? check_connect(socket) : 0;
    if (code == 0)
        code = hafti_io_place_of(address, size, place);
    if (code != 0 || place->family == socket->place.family)
        return code;
    return socket->place.family == AF_UNIX ? -EINVAL : -EAFNOSUPPORT;
}

int hafti_io_simulated_connect(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                               const hafti_io_operation_t *operation) {
    if (!hafti_io_object_is_socket(socket))
        return -ENOTSOCK;
    if (socket->kind == HAFTI_IO_DATAGRAMS)
        return hafti_io_simulated_datagrams_connect(state, socket, operation->address,
                                                    *operation->address_size);
    if (socket->connects != NULL && socket->connects != operation)
        return -EALREADY;
    if (socket->connects == operation && socket->full == NULL) /* The listener has ended. */
        return -ECONNREFUSED;
    hafti_io_place_there_t place;
    int code = place_to_connect(socket, operation->address, *operation->address_size, &place);
    if (code != 0)
        return code;
    bool has_its_room = socket->full != NULL;
    hafti_io_object_t *listener = has_its_room ? socket->full : listener_at(state, &place);
    if (!listens(listener))
        return -ECONNREFUSED;
    code = check_connect(socket);
    if (code != 0)
        return code;
    if (!has_its_room && !has_room(listener)) {
        wait_for_room(socket, listener);
        socket->connects = operation;
        hafti_io_append(&listener->without_room, &socket->link);
        return -EAGAIN;
    }
    code = join(state, socket, listener, &place);
    listener->waiting += code == 0 && !has_its_room;
    return code;
}

int hafti_io_simulated_connect_begins(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                                      const struct sockaddr *address, socklen_t size) {
    if (socket->failed != 0) { /* as the system has it, where SO_ERROR has been asked for */
        int failed = socket->error != 0 ? socket->error : -ECONNABORTED;
        socket->failed = socket->error = 0;
        return failed;
    }
    if (socket->connects != NULL) /* by an operation of libhaft-io */
        return -EALREADY;
    hafti_io_place_there_t place;
    int code = place_to_connect(socket, address, size, &place);
    if (code != 0)
        return code;
    hafti_io_object_t *listener = listener_at(state, &place);
    if (listener == NULL)
        return -ECONNREFUSED;
    if (!has_room(listener) && place.family == AF_UNIX)
        return -EAGAIN;
    code = check_connect(socket);
    if (code != 0)
        return code;
    if (has_room(listener)) {
        code = join(state, socket, listener, &place);
        listener->waiting += code == 0;
        return code;
    }
    wait_for_room(socket, listener);
    socket->to = place;
    socket->connecting = true;
    hafti_io_append(&listener->without_room, &socket->link);
    return -EINPROGRESS;
}

void hafti_io_simulated_connect_aborts(hafti_io_simulated_state_t *state,
                                       hafti_io_object_t *socket) {
    hafti_io_unlink(&socket->link);
    end_connect(state, socket, -ECONNRESET);
    socket->failed = 0;
}

void hafti_io_simulated_socket_closes(hafti_io_simulated_state_t *state,
                                      hafti_io_object_t *socket) {
    if (socket->connecting)
        hafti_io_unlink(&socket->link);
    socket->connecting = false;
    if (socket->connects == NULL)
        wait_for_room(socket, NULL);
    hafti_io_simulated_unbind(state, socket);
}

void hafti_io_simulated_connect_ends(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                                     const hafti_io_operation_t *operation, ssize_t code) {
    hafti_io_object_t *listener = socket->full;
    if (socket->connects != operation)
        return;
    socket->connects = NULL;
    if (hafti_io_linked(&socket->link)) {
        hafti_io_unlink(&socket->link);
    } else if (code != 0 && listener != NULL) {
        listener->waiting--;
        if (listens(listener))
            give_room(state, listener);
    }
    wait_for_room(socket, NULL);
}

int hafti_io_simulated_accept(hafti_io_simulated_state_t *state, hafti_io_object_t *listener) {
    if (listener->kind == HAFTI_IO_DATAGRAMS)
        return -EOPNOTSUPP;
    if (listener->kind != HAFTI_IO_A_LISTENER)
        return hafti_io_object_is_socket(listener) ? -EINVAL : -ENOTSOCK;
    if (hafti_io_ring_empty(&listener->arrived))
        return -EAGAIN;
    listener->waiting--;
    give_room(state, listener);
    return take_first(&listener->arrived)->descriptor;
}

void hafti_io_simulated_listener_ends(hafti_io_simulated_state_t *state,
                                      hafti_io_object_t *listener) {
    listener->kind = HAFTI_IO_A_SOCKET;
    while (!hafti_io_ring_empty(&listener->arrived)) {
        hafti_io_object_t *end = take_first(&listener->arrived);
        listener->waiting--;    /* The room that has been given is left. */
        end->peer->lost = true; /* whether it has sent something or not */
        hafti_io_number_close(state, end->descriptor);
    }
    while (!hafti_io_ring_empty(&listener->without_room)) {
        hafti_io_object_t *socket = take_first(&listener->without_room);
        if (socket->connecting) {
            end_connect(state, socket, -ECONNREFUSED);
            continue;
        }
        wait_for_room(socket, NULL);
        hafti_io_object_wake(state, socket);
    }
    hafti_io_object_wake(state, listener);
}

static void keep(void *place) {
    (void)place;
}
void hafti_io_simulated_network_stop(hafti_io_simulated_state_t *state) {
    tdestroy(state->listeners, keep);
    tdestroy(state->receivers, keep);
}

/* Any host that the program may know is this one. */
const char *hafti_io_calls_host_of(const char *host, int family) {
    struct in6_addr address;
    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
        return host;
    return family == AF_INET6 ? "::1" : "127.0.0.1";
}
