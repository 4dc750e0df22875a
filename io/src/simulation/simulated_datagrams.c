/* SPDX-License-Identifier: MIT */
/*
 * Datagrams of a simulation: sockets of UDP, found by their ports, and pairs. A socket holds a
 * number of unreceived datagrams; further ones to a UDP socket are lost, while the other end of a
 * pair waits.
 *
 * The seed may lose one of UDP on its way, double it, or make it late, so that others come before.
 * One that is late waits for its time in the ring `late`, with a timer.
 */
#include "simulation.h"

#include <netinet/in.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HELD = 32 };
static const int64_t MOST_LATE = 100 * HAFT_IO_MILLISECOND;
/* The sizes of one datagram, as on Linux with the buffers that sockets have by default. */
enum { MOST_BYTES_V4 = 65507, MOST_BYTES_V6 = 65527, MOST_BYTES_LOCAL = 212960 };

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_object_t object_t;
typedef hafti_io_place_there_t place_t;

typedef struct datagram {
    hafti_io_link_t link; /* in the receiver's `arrived`, or in `late` */
    hafti_io_timer_t timer;
    place_t from, to; /* of a pair: nothing */
    size_t size;
    char bytes[];
} datagram_t;

/* ---- Places ---- */

static object_t *receiver_at(const state_t *state, const place_t *place) {
    return hafti_io_object_at(&state->receivers, place);
}

static bool is_connected(const object_t *socket) {
    return socket->to.family != AF_UNSPEC;
}

static bool is_of_pair(const object_t *socket) {
    return socket->place.family == AF_UNSPEC;
}

static int bind_to(state_t *state, object_t *socket, const place_t *place) {
    place_t before = socket->place;
    socket->place = *place;
    int code = hafti_io_occupy(state, &state->receivers, &socket->place);
    if (code != 0)
        socket->place = before;
    return code;
}

/* A port for a socket without one. */
static int bind_somewhere(state_t *state, object_t *socket) {
    return socket->place.port != 0
               ? 0
               : bind_to(state, socket, &(place_t){.family = socket->place.family});
}

int hafti_io_simulated_datagrams_bind(state_t *state, object_t *socket, const place_t *place) {
    if (is_of_pair(socket))
        return -EOPNOTSUPP;
    return socket->place.port == 0 ? bind_to(state, socket, place) : -EINVAL;
}

/* One of IPv6 goes to both. */
static int destination_of(const object_t *socket, const struct sockaddr *address, socklen_t size,
                          place_t *place) {
    int code = is_of_pair(socket) ? -EOPNOTSUPP : hafti_io_place_of(address, size, place);
    if (code != 0)
        return code;
    bool fits = place->family == socket->place.family ||
                (place->family == AF_INET && socket->place.family == AF_INET6);
    return fits ? 0 : -EAFNOSUPPORT;
}

int hafti_io_simulated_datagrams_connect(state_t *state, object_t *socket,
                                         const struct sockaddr *address, socklen_t size) {
    if (address != NULL && size >= sizeof address->sa_family && address->sa_family == AF_UNSPEC) {
        socket->to.family = AF_UNSPEC;
        return 0;
    }
    place_t to;
    int code = destination_of(socket, address, size, &to);
    if (code == 0)
        code = bind_somewhere(state, socket);
    if (code == 0)
        socket->to = to;
    return code;
}

/* ---- On their way ---- */

static void put_into(state_t *state, object_t *receiver, datagram_t *datagram) {
    hafti_io_append(&receiver->arrived, &datagram->link);
    receiver->waiting++;
    hafti_io_object_wake_one_way(state, receiver, HAFTI_IO_INWARD);
}

/* A socket that is connected to a port without a receiver gets an error from its next operation, as
   in the system. */
static void refuse(state_t *state, const datagram_t *datagram) {
    object_t *sender = receiver_at(state, &datagram->from);
    if (sender == NULL || !is_connected(sender) || sender->to.port != datagram->to.port)
        return;
    sender->refused = true;
    hafti_io_object_wake(state, sender);
}

static void deliver(state_t *state, datagram_t *datagram) {
    object_t *receiver = receiver_at(state, &datagram->to);
    bool takes =
        receiver != NULL && (!is_connected(receiver) || receiver->to.port == datagram->from.port);
    if (takes && receiver->waiting < MOST_HELD) {
        put_into(state, receiver, datagram);
        return;
    }
    if (!takes)
        refuse(state, datagram);
    free(datagram);
}

static void comes_late(hafti_io_timer_t *timer) {
    datagram_t *datagram = HAFTI_IO_OWNER(timer, datagram_t, timer);
    hafti_io_unlink(&datagram->link);
    deliver(hafti_io_state_here(), datagram);
}

static void delay(state_t *state, datagram_t *datagram) {
    hafti_io_simulated_t *simulated = state->simulated;
    int64_t late = 1 + (int64_t)hafti_io_random(simulated, (uint64_t)MOST_LATE);
    datagram->timer = (hafti_io_timer_t){.fire = comes_late};
    hafti_io_append(&state->late, &datagram->link);
    hafti_io_timer_add(&hafti_io_worker()->timers, &datagram->timer, simulated->now + late);
}

/* Two of it, unless there is no memory. */
static void deliver_twice(state_t *state, datagram_t *datagram) {
    size_t size = sizeof *datagram + datagram->size;
    datagram_t *copy = malloc(size);
    if (copy != NULL)
        deliver(state, memcpy(copy, datagram, size));
    deliver(state, datagram);
}

static void set_out(state_t *state, datagram_t *datagram) {
    if (!hafti_io_fault_is_drawn(state->simulated)) {
        deliver(state, datagram);
        return;
    }
    switch (hafti_io_random(state->simulated, 3)) {
    case 0:
        free(datagram);
        break;
    case 1:
        deliver_twice(state, datagram);
        break;
    default:
        delay(state, datagram);
    }
}

/* ---- Sending ---- */

/* 0, -ENOMEM or -EFAULT. */
static int datagram_of(const hafti_io_memory_t *memory, datagram_t **datagram) {
    datagram_t *made = malloc(sizeof *made + memory->size);
    if (made == NULL)
        return -ENOMEM;
    *made = (datagram_t){.size = memory->size};
    if (!hafti_io_memory_copy(memory, made->bytes, memory->size, 0, memory->size, true)) {
        free(made);
        return -EFAULT;
    }
    *datagram = made;
    return 0;
}

static void free_all(hafti_io_link_t *ring) {
    while (!hafti_io_ring_empty(ring)) {
        hafti_io_link_t *first = ring->next;
        hafti_io_unlink(first);
        free(HAFTI_IO_OWNER(first, datagram_t, link));
    }
}

static ssize_t send_to_peer(state_t *state, object_t *end, const hafti_io_memory_t *memory) {
    if (memory->size > MOST_BYTES_LOCAL)
        return -EMSGSIZE;
    if (end->peer == NULL)
        return -ENOTCONN;
    if (end->ended)
        return -EPIPE;
    if (!end->peer->open) { /* what has come is lost then, as the system has it */
        hafti_io_object_release(end->peer);
        end->peer = NULL;
        free_all(&end->arrived);
        end->waiting = 0;
        return -ECONNREFUSED;
    }
    if (end->peer->finished)
        return -EPIPE;
    if (end->peer->waiting >= MOST_HELD)
        return -EAGAIN;
    datagram_t *datagram;
    int code = datagram_of(memory, &datagram);
    if (code != 0)
        return code;
    put_into(state, end->peer, datagram);
    return (ssize_t)memory->size;
}

static ssize_t send_to_place(state_t *state, object_t *socket, const place_t *to,
                             const hafti_io_memory_t *memory) {
    size_t most = socket->place.family == AF_INET ? MOST_BYTES_V4 : MOST_BYTES_V6;
    if (to->port == 0)
        return -EINVAL;
    if (socket->ended)
        return -EPIPE;
    if (memory->size > most)
        return -EMSGSIZE;
    datagram_t *datagram;
    int code = bind_somewhere(state, socket);
    if (code == 0)
        code = datagram_of(memory, &datagram);
    if (code != 0)
        return code;
    datagram->from = hafti_io_place_seen(&socket->place, to);
    datagram->to = *to;
    set_out(state, datagram);
    return (ssize_t)memory->size;
}

ssize_t hafti_io_simulated_datagram_sends(state_t *state, object_t *socket,
                                          const hafti_io_memory_t *memory,
                                          const struct sockaddr *address, socklen_t size) {
    if (socket->refused) {
        socket->refused = false;
        return -ECONNREFUSED;
    }
    place_t to = socket->to;
    int code = address != NULL ? destination_of(socket, address, size, &to) : 0;
    if (code != 0)
        return code;
    if (is_of_pair(socket))
        return send_to_peer(state, socket, memory);
    return to.family != AF_UNSPEC ? send_to_place(state, socket, &to, memory) : -EDESTADDRREQ;
}

/* ---- Receiving ---- */

ssize_t hafti_io_simulated_datagram_receives(state_t *state, object_t *socket,
                                             const hafti_io_memory_t *memory, int flags,
                                             struct sockaddr *address, socklen_t *address_size,
                                             bool *truncated) {
    if (socket->refused) {
        socket->refused = false;
        return -ECONNREFUSED;
    }
    if (hafti_io_ring_empty(&socket->arrived))
        return -EAGAIN; /* also of one that was shut down: a call that may wait reports the end */
    datagram_t *datagram = HAFTI_IO_OWNER(socket->arrived.next, datagram_t, link);
    size_t whole = datagram->size, size = memory->size < whole ? memory->size : whole;
    bool copied = hafti_io_memory_copy(memory, datagram->bytes, whole, 0, size, false);
    if (address != NULL && address_size != NULL)
        hafti_io_place_tell(&datagram->from, socket->place.family, address, address_size);
    *truncated = size < whole;
    if ((flags & MSG_PEEK) == 0) {
        hafti_io_unlink(&datagram->link);
        socket->waiting--;
        free(datagram);
        if (is_of_pair(socket) && socket->peer != NULL)
            hafti_io_object_wake_one_way(state, socket->peer, HAFTI_IO_OUTWARD);
    }
    if (!copied) /* and it is lost, as the system has it */
        return -EFAULT;
    return (ssize_t)((flags & MSG_TRUNC) != 0 ? whole : size);
}

int hafti_io_events_of_datagrams(const object_t *socket, short events) {
    int ready = socket->refused ? POLLERR : 0;
    if (socket->finished)
        ready |= (events & POLLRDHUP) | (socket->ended ? POLLHUP : 0);
    if (!hafti_io_ring_empty(&socket->arrived) || socket->finished)
        ready |= events & HAFTI_IO_TO_READ;
    if (!is_of_pair(socket) || socket->peer == NULL || !socket->peer->open ||
        socket->peer->waiting < MOST_HELD)
        ready |= events & HAFTI_IO_TO_WRITE;
    return ready;
}

/* ---- Sockets ---- */

int hafti_io_simulated_datagrams_pair(state_t *state, int ends[2]) {
    object_t *sockets[2];
    for (int i = 0; i < 2; i++) {
        sockets[i] = hafti_io_object_new(state, HAFTI_IO_DATAGRAMS);
        if (sockets[i] == NULL) {
            if (i == 1)
                hafti_io_number_close(state, sockets[0]->descriptor);
            return -ENOMEM;
        }
        hafti_io_ring(&sockets[i]->arrived);
    }
    hafti_io_object_make_peers(sockets[0], sockets[1]);
    for (int i = 0; i < 2; i++)
        ends[i] = sockets[i]->descriptor;
    return 0;
}

/* Also of one that is not connected: so the system has it, and programs end a wait in this way. */
int hafti_io_simulated_datagrams_shut(state_t *state, object_t *socket, int how) {
    socket->ended |= how != SHUT_RD;
    socket->finished |= how != SHUT_WR;
    hafti_io_object_wake(state, socket);
    if (is_of_pair(socket) && socket->peer != NULL)
        hafti_io_object_wake_one_way(state, socket->peer, HAFTI_IO_OUTWARD);
    return is_of_pair(socket) || is_connected(socket) ? 0 : -ENOTCONN;
}

size_t hafti_io_simulated_datagram_size(const object_t *socket) {
    return hafti_io_ring_empty(&socket->arrived)
               ? 0
               : HAFTI_IO_OWNER(socket->arrived.next, datagram_t, link)->size;
}

void hafti_io_simulated_datagrams_close(state_t *state, object_t *socket) {
    if (socket->place.port != 0)
        hafti_io_vacate(&state->receivers, &socket->place);
    free_all(&socket->arrived);
    if (is_of_pair(socket) && socket->peer != NULL)
        hafti_io_object_wake_one_way(state, socket->peer, HAFTI_IO_OUTWARD);
}

void hafti_io_simulated_datagrams_stop(state_t *state) {
    for (hafti_io_link_t *link = state->objects.next; link != &state->objects; link = link->next) {
        object_t *object = hafti_io_object_at_link(link);
        if (object->open && object->kind == HAFTI_IO_DATAGRAMS)
            free_all(&object->arrived);
    }
    free_all(&state->late);
}
