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

/* ---- Of the table system.h ---- */

/* Of those that share the place, the one after this. */
static hafti_io_object_t *next_beside(const hafti_io_object_t *listener) {
    return HAFTI_IO_OWNER(listener->beside.next, hafti_io_object_t, beside);
}

/* Each of those that share the place has its turn. */
static hafti_io_object_t *listener_at(const hafti_io_simulated_state_t *state,
                                      const hafti_io_place_there_t *place) {
    hafti_io_object_t *listener = hafti_io_object_at(&state->listeners, place);
    if (listener != NULL)
        hafti_io_stand_for_place(&state->listeners, &next_beside(listener)->place);
    return listener;
}

int hafti_io_network_socket(int domain, int type, int protocol) {
    (void)protocol;
    if (type < 0)
        return -EINVAL;
    if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6)
        return -EAFNOSUPPORT;
    type &= ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (type != SOCK_STREAM && (type != SOCK_DGRAM || domain == AF_UNIX))
        return -EOPNOTSUPP;
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

int hafti_io_network_pipe(int ends[2]) {
    if (hafti_io_fault_is_drawn(network()->simulated))
        return -EMFILE;
    return hafti_io_object_pair(network(), HAFTI_IO_A_PIPE, ends);
}

int hafti_io_network_pair(int domain, int type, int protocol, int ends[2]) {
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

int hafti_io_network_listen(int descriptor, const struct sockaddr *address, socklen_t size,
                            const haft_io_listen_options_t *options) {
    hafti_io_simulated_state_t *state = network();
    hafti_io_object_t *socket = hafti_io_object_of(state, descriptor);
    if (socket == NULL)
        return -EBADF;
    hafti_io_place_there_t place;
    int code = hafti_io_place_of(address, size, &place);
    if (code != 0)
        return code;
    hafti_io_place_there_t before = socket->place;
    hafti_io_object_t *there = hafti_io_object_at(&state->listeners, &place);
    bool is_shared = there != NULL && there->shares_place && options->reuse_port;
    socket->place = place;
    code = is_shared ? 0 : hafti_io_occupy(state, &state->listeners, &socket->place);
    if (code != 0) {
        socket->place = before;
        return code;
    }
    hafti_io_ring(&socket->beside);
    if (is_shared)
        hafti_io_append(&there->beside, &socket->beside);
    socket->shares_place = options->reuse_port;
    socket->kind = HAFTI_IO_A_LISTENER;
    socket->backlog = (size_t)options->backlog;
    hafti_io_ring(&socket->without_room);
    return 0;
}

int hafti_io_network_port(int descriptor) {
    const hafti_io_object_t *object = hafti_io_object_of(hafti_io_state_here(), descriptor);
    if (object == NULL)
        return -EBADF;
    if (!hafti_io_object_is_socket(object))
        return -ENOTSOCK;
    bool internet = object->place.family == AF_INET || object->place.family == AF_INET6;
    return internet ? object->place.port : -EAFNOSUPPORT;
}

/* ---- Connections ---- */

/* For one more than `backlog`, as Linux has it. */
static size_t room_of(const hafti_io_object_t *listener) {
    return listener->backlog + 1 - listener->waiting;
}

static hafti_io_object_t *take_first(hafti_io_link_t *ring) {
    hafti_io_object_t *first = HAFTI_IO_OWNER(ring->next, hafti_io_object_t, link);
    hafti_io_unlink(&first->link);
    return first;
}

/* The first of those without room go on, as many as there is room for, which is theirs then: it
   counts as taken. */
static void give_room(hafti_io_simulated_state_t *state, hafti_io_object_t *listener) {
    for (; room_of(listener) != 0 && !hafti_io_ring_empty(&listener->without_room);
         listener->waiting++)
        hafti_io_object_wake(state, take_first(&listener->without_room));
}

int hafti_io_simulated_connect(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                               const hafti_io_operation_t *operation) {
    if (!hafti_io_object_is_socket(socket))
        return -ENOTSOCK;
    if (socket->kind == HAFTI_IO_DATAGRAMS)
        return hafti_io_simulated_datagrams_connect(state, socket, operation->address,
                                                    *operation->address_size);
    if (socket->kind != HAFTI_IO_A_SOCKET)
        return -EISCONN;
    if (socket->connects != NULL && socket->connects != operation)
        return -EALREADY;
    hafti_io_place_there_t place;
    int code = hafti_io_place_of(operation->address, *operation->address_size, &place);
    if (code != 0)
        return code;
    if (place.family != socket->place.family)
        return -EAFNOSUPPORT;
    bool has_room = socket->full != NULL;
    hafti_io_object_t *listener = has_room ? socket->full : listener_at(state, &place), *end;
    if (listener == NULL || !listener->open)
        return -ECONNREFUSED;
    if (!has_room && room_of(listener) == 0) {
        socket->full = listener;
        socket->connects = operation;
        hafti_io_append(&listener->without_room, &socket->link);
        return -EAGAIN;
    }
    end = hafti_io_object_new(state, HAFTI_IO_A_SOCKET);
    if (end == NULL)
        return -ENOMEM;
    code = hafti_io_object_join(socket, end, HAFTI_IO_A_STREAM);
    if (code != 0) {
        hafti_io_number_close(state, end->descriptor);
        return code;
    }
    end->place = place;
    if (place.family != AF_UNIX)
        hafti_io_choose_port(state, &state->listeners, &socket->place);
    hafti_io_append(&listener->arrived, &end->link);
    listener->waiting += !has_room;
    hafti_io_object_wake(state, listener);
    return 0;
}

void hafti_io_simulated_connect_ends(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                                     const hafti_io_operation_t *operation, ssize_t code) {
    hafti_io_object_t *listener = socket->full;
    if (socket->connects != operation)
        return;
    socket->connects = NULL;
    socket->full = NULL;
    if (hafti_io_linked(&socket->link)) {
        hafti_io_unlink(&socket->link);
    } else if (code != 0 && listener->open) {
        listener->waiting--;
        give_room(state, listener);
    }
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

void hafti_io_simulated_listener_closes(hafti_io_simulated_state_t *state,
                                        hafti_io_object_t *listener) {
    if (hafti_io_ring_empty(&listener->beside))
        hafti_io_vacate(&state->listeners, &listener->place);
    else
        hafti_io_stand_for_place(&state->listeners, &next_beside(listener)->place);
    hafti_io_unlink(&listener->beside);
    while (!hafti_io_ring_empty(&listener->arrived)) {
        hafti_io_object_t *end = take_first(&listener->arrived);
        hafti_io_object_break(state, end);
        hafti_io_number_close(state, end->descriptor);
    }
    while (!hafti_io_ring_empty(&listener->without_room))
        hafti_io_object_wake(state, take_first(&listener->without_room));
}

static void keep(void *place) {
    (void)place;
}
void hafti_io_simulated_network_stop(hafti_io_simulated_state_t *state) {
    tdestroy(state->listeners, keep);
    tdestroy(state->receivers, keep);
}

/* Any host that the program may know is this one. */
const char *hafti_io_network_host_of(const char *host, int family) {
    struct in6_addr address;
    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
        return host;
    return family == AF_INET6 ? "::1" : "127.0.0.1";
}
