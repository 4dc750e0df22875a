/* SPDX-License-Identifier: MIT */
/*
 * What the files of the simulation share: the table of what exists in it only. simulation.c has the run, and streams;
 * simulated_network.c has sockets and listeners.
 *
 *   kind     | is made by                       | becomes
 *   SOCKET   | haft_io_socket                   | STREAM, by a connect; LISTENER, by haft_io_listen_tcp or _unix
 *   STREAM   | haft_io_simulated_pair; for the  |
 *            | other end of a connect           |
 *   LISTENER |                                  |
 *
 * Its descriptor is a number from HAFT_IO_FIRST_SIMULATED on, beyond what the system gives, and never another's. It
 * stays in the table, closed, until the run ends.
 */
#ifndef HAFT_IO_SIMULATION_H
#define HAFT_IO_SIMULATION_H

#include "internal.h"

enum { HAFT_IO_FIRST_SIMULATED = 1 << 28, HAFT_IO_STREAM_SIZE = 4096 };

enum haft_io_object_kind { HAFT_IO_A_SOCKET, HAFT_IO_A_STREAM, HAFT_IO_A_LISTENER };

/* Of the network, which has one host: a port, or a path. */
typedef struct haft_io_place_there {
    sa_family_t family; /* AF_UNSPEC: none */
    uint16_t port;
    char path[108]; /* as in sockaddr_un */
} haft_io_place_there_t;

typedef struct haft_io_object haft_io_object_t;
struct haft_io_object {
    enum haft_io_object_kind kind;
    int descriptor;
    bool open;
    haft_io_place_there_t place; /* of a socket, a listener, and the ends of a connection */
    /* A stream's end. */
    haft_io_object_t *peer;
    bool broken;
    bool finished; /* its peer was closed: nothing comes any more */
    size_t first, count;
    char *bytes; /* to be read here */
    /* A listener. The connections that nobody has accepted yet are listed by `next`. */
    size_t backlog, waiting;
    haft_io_object_t *next;
    /* A socket: the listener that had no room for it. */
    const haft_io_object_t *full;
};

typedef struct haft_io_simulated_state {
    haft_io_descriptors_t *descriptors; /* the run's */
    haft_io_object_t **objects;
    int count;
    uint16_t last_port; /* that was chosen */
} haft_io_simulated_state_t;

/* NULL: there is no such descriptor that is open. */
haft_io_object_t *haft_io_object_of(haft_io_simulated_state_t *state, int descriptor);
/* A new one; NULL: no memory. */
haft_io_object_t *haft_io_object_new(haft_io_simulated_state_t *state,
                                     enum haft_io_object_kind kind);
void haft_io_object_wake(haft_io_simulated_state_t *state, const haft_io_object_t *object,
                         bool closed);
void haft_io_object_close(haft_io_simulated_state_t *state, haft_io_object_t *object);
/* Makes the two a stream; -ENOMEM leaves them what they are. */
int haft_io_object_join(haft_io_object_t *one, haft_io_object_t *other);
void haft_io_object_break(haft_io_simulated_state_t *state, haft_io_object_t *end);

/* ---- The network (simulated_network.c) ---- */

/* -EAGAIN where it has to wait. */
int haft_io_simulated_connect(haft_io_simulated_state_t *state, haft_io_object_t *socket,
                              const haft_io_operation_t *operation);
int haft_io_simulated_accept(haft_io_simulated_state_t *state, haft_io_object_t *listener);
/* Resets what nobody has accepted, and lets those go on who waited for room. */
void haft_io_simulated_listener_closes(haft_io_simulated_state_t *state,
                                       haft_io_object_t *listener);

#endif
