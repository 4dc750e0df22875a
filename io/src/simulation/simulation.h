/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of the simulation share: the table of its objects. simulation.c has
 * the run, simulated_operations.c what a task does, simulated_polls.c polls, simulated_time.c how
 * time passes; simulated_streams.c has streams and pipes, simulated_passing.c descriptors passed
 * over them, simulated_network.c sockets and listeners, simulated_datagrams.c datagrams,
 * simulated_directories.c names of files, simulated_files.c what is in these.
 *
 *   kind     | is made by                       | becomes
 *   SOCKET   | haft_io_socket                   | STREAM, by a connect; LISTENER, by a listen
 *   STREAM   | haft_io_simulated_pair,          | REAL_END, both ends, by haft_io_process_start
 *            | haft_io_socket_pair; for the     |
 *            | other end of a connect           |
 *   PIPE     | haft_io_pipe                     | likewise
 *   REAL_END |                                  |
 *   LISTENER |                                  |
 *   DATAGRAMS| haft_io_socket,                  |
 *            | haft_io_socket_pair              |
 *   FILE     | haft_io_open                     |
 *
 * Its descriptors are numbers from HAFTI_IO_FIRST_SIMULATED on, beyond what the system gives: one,
 * or more when it was passed along. It is open while it has some, or is under way to one. A number
 * that was closed is another's only after many more were closed, so that a program that still uses
 * it gets -EBADF.
 *
 * An object is held, by one each: as it is open; by its open peer; by a socket that waits for room
 * in it; by an operation that may wait on it. It is freed when nobody holds it any more.
 */
#ifndef HAFTI_IO_SIMULATION_H
#define HAFTI_IO_SIMULATION_H

#include "../runs.h"

#include <netinet/in.h>
#include <poll.h>

enum hafti_io_object_kind {
    HAFTI_IO_A_SOCKET,
    HAFTI_IO_A_STREAM,
    HAFTI_IO_A_PIPE,
    HAFTI_IO_A_REAL_END,
    HAFTI_IO_A_LISTENER,
    HAFTI_IO_DATAGRAMS, /* a socket for these */
    HAFTI_IO_A_FILE
};

/* A place in the network, which has one host: a port, or a path. */
typedef struct hafti_io_place_there {
    sa_family_t family; /* AF_UNSPEC: none */
    uint16_t port;
    struct in6_addr address; /* which makes no difference, except that a receiver of datagrams is
                                told it */
    char path[108];          /* as in sockaddr_un */
} hafti_io_place_there_t;

typedef struct hafti_io_content {
    char *bytes;
    size_t size, room;
} hafti_io_content_t;

/* A file, to which names and descriptors refer. */
typedef struct hafti_io_file hafti_io_file_t;
struct hafti_io_file {
    size_t uses; /* by names, changes of names, and descriptors */
    mode_t mode; /* with the type, as of stat(2) */
    ino_t number;
    bool named; /* it has a name, or is a directory that needs none */
    struct timespec read, changed, status_changed; /* dates; `read` only as it was set */
    hafti_io_link_t link;                          /* in a list of the function that works on it */
    /* A file. */
    hafti_io_content_t now, synced;
    size_t changed_from, changed_to; /* `now`, since it was synced, as far as it is not new */
    size_t least;                    /* its size since then, at its smallest */
    /* A directory. */
    hafti_io_file_t *above;
    const struct name *name; /* in that, if `named`; NULL: "/" */
    void *tree;              /* of its names: of tsearch(3) */
    hafti_io_link_t names;   /* the same, in their order */
    size_t count;            /* of those that are of a file now */
    bool syncs;              /* see hafti_io_directory_sync */
};

typedef struct hafti_io_object hafti_io_object_t;

/* An option of setsockopt(2). */
typedef struct hafti_io_option hafti_io_option_t;
struct hafti_io_option {
    hafti_io_option_t *next;
    int level, option;
    socklen_t size;
    char value[]; /* of `size` */
};

typedef struct hafti_io_number {
    hafti_io_link_t link;      /* of those of the object, or of those that are closed */
    hafti_io_object_t *object; /* NULL: it was closed */
    int descriptor;
    bool closes_at_exec; /* FD_CLOEXEC, which is kept: no program that is executed has it */
} hafti_io_number_t;

/* Descriptors that are passed with a byte of a stream. */
typedef struct hafti_io_passed {
    hafti_io_link_t link;
    uint64_t at;   /* which byte, of all that have come to the end */
    size_t length; /* of what was written with it, after which a read ends */
    size_t count;
    struct {
        hafti_io_object_t *object; /* NULL: it is the system's, */
        int real;                  /* this */
    } files[];
} hafti_io_passed_t;

struct hafti_io_object {
    enum hafti_io_object_kind kind;
    int descriptor; /* its first */
    hafti_io_link_t numbers;
    size_t uses; /* by descriptors, and by references in transit */
    size_t holds;
    bool open;
    hafti_io_link_t all;          /* of the simulation's */
    hafti_io_link_t unused;       /* in the ring of those that are about to be closed */
    int fails;                    /* an error, of the next operation */
    int flags;                    /* of open(2): for calls that know nothing of the simulation */
    hafti_io_place_there_t place; /* of a socket, a listener, and the ends of a connection */
    bool bound;                   /* a socket for streams, or what it has become, that others find
                                     at its place, or that keeps it */
    hafti_io_option_t *options;
    /* A stream's end, or a pipe's. */
    hafti_io_object_t *peer;
    int real; /* if it has become real, the system's descriptor */
    bool broken;
    bool lost; /* its peer was closed with bytes in it: told once, when nothing is left to read
                  here */
    bool
        finished; /* its peer was closed, or has ended its output: nothing comes any more; or it has
                     ended its input */
    bool ended;   /* its peer was closed, or it has ended its output: nothing is written any more */
    size_t first, count, size;
    char *bytes;            /* a ring of `size`, of what is to be read here */
    uint64_t come;          /* how many have, read or not */
    hafti_io_link_t passed; /* along with them */
    /* A socket for datagrams. `waiting` counts those that have arrived. A pair's know their peer,
       and no place. */
    hafti_io_place_there_t to; /* where it is connected to, or a stream is about to be */
    bool refused;              /* there was no receiver, and this has not been reported here yet */
    /* A listener: the connections that have not been accepted yet, and the sockets that wait for
       room. `waiting` counts those connections, and the room that was given to sockets which have
       not taken it yet. */
    size_t backlog, waiting;
    hafti_io_link_t arrived, without_room;
    hafti_io_link_t link;   /* in one of these */
    hafti_io_link_t beside; /* the others that listen at its place */
    bool shares_place;      /* others may: SO_REUSEPORT */
    bool reuses_address;    /* SO_REUSEADDR */
    /* A socket that waits for room, or has been given some: the listener. */
    hafti_io_object_t *full;
    const hafti_io_operation_t *connects; /* and its waiter */
    bool connecting;                      /* or it has none, and is connected when there is room */
    int failed; /* a negative error number, with which that has ended; the next connect tells
                        it */
    int error;  /* the same, until SO_ERROR tells it */
    /* A file that was opened, or a directory. */
    hafti_io_file_t *file;
    bool stale; /* opened before a crash */
    int lock;   /* of flock(2): LOCK_SH, LOCK_EX; 0: none */
    int64_t position;
};

typedef struct hafti_io_simulated_state {
    hafti_io_simulated_t *simulated;
    hafti_io_descriptors_t *descriptors; /* the run's */
    void (*close_object)(struct hafti_io_simulated_state *state, hafti_io_object_t *object);
    hafti_io_number_t **numbers; /* from `first` on */
    int first;
    int count, room;        /* of `numbers` */
    hafti_io_link_t closed; /* numbers, in the order in which they were closed */
    size_t closed_count;
    hafti_io_link_t objects;
    hafti_io_link_t unused;
    bool closes;             /* those of this ring */
    hafti_io_link_t mixed;   /* polls that wait (simulated_polls.c) */
    hafti_io_link_t pausing; /* tasks that ask again when others have gone on (simulated_time.c) */
    size_t pausing_count;
    size_t asked_again;           /* of these, since all were woken last: in vain */
    bool asked;                   /* they were, and time has stood still since */
    unsigned patience;            /* how often the thread has slept for them since */
    unsigned patient_at;          /* resumed tasks when it slept last */
    uint16_t last_port;           /* that was chosen */
    void *listeners;              /* those that are open, by their places: a tree of tsearch(3) */
    void *receivers;              /* of datagrams, likewise */
    hafti_io_link_t late;         /* datagrams under way */
    hafti_io_file_t *root, *here; /* the directories "/" and "."; NULL: no files */
    hafti_io_link_t changes;      /* of names, that are not synced */
    size_t change_count;
    ino_t last_file;
} hafti_io_simulated_state_t;

/* The state of the caller's simulation; the caller is in one. */
static inline hafti_io_simulated_state_t *hafti_io_state_here(void) {
    return hafti_io_worker()->backend_state;
}
/* The lists of the descriptor's waiters. NULL: no memory, which cannot happen once it is an
   object's. */
hafti_io_descriptor_t *hafti_io_waiters_of(hafti_io_simulated_state_t *state, int descriptor);
int hafti_io_first_number(uint64_t seed);
/* NULL: there is no such descriptor that is open. */
hafti_io_object_t *hafti_io_object_of(hafti_io_simulated_state_t *state, int descriptor);
/* The number, if it is open; otherwise NULL. */
hafti_io_number_t *hafti_io_number_of(hafti_io_simulated_state_t *state, int descriptor);
/* Makes an object; NULL: no memory. */
hafti_io_object_t *hafti_io_object_new(hafti_io_simulated_state_t *state,
                                       enum hafti_io_object_kind kind);
void hafti_io_object_free(hafti_io_object_t *object);
static inline void hafti_io_object_hold(hafti_io_object_t *object) {
    object->holds++;
}
static inline void hafti_io_object_release(hafti_io_object_t *object) {
    if (--object->holds == 0)
        hafti_io_object_free(object);
}
/* Makes two open objects peers. */
static inline void hafti_io_object_make_peers(hafti_io_object_t *one, hafti_io_object_t *other) {
    hafti_io_object_hold(one);
    hafti_io_object_hold(other);
    one->peer = other;
    other->peer = one;
}
static inline hafti_io_object_t *hafti_io_object_at_link(hafti_io_link_t *link) {
    return HAFTI_IO_OWNER(link, hafti_io_object_t, all);
}
/* Makes one more number of the object; negative: -ENOMEM. */
int hafti_io_object_number(hafti_io_simulated_state_t *state, hafti_io_object_t *object);
/* Closes the number, and the object, if nothing else uses it. */
void hafti_io_number_close(hafti_io_simulated_state_t *state, int descriptor);
void hafti_io_object_drop(hafti_io_simulated_state_t *state, hafti_io_object_t *object);
void hafti_io_object_wake(hafti_io_simulated_state_t *state, const hafti_io_object_t *object);
void hafti_io_object_wake_one_way(hafti_io_simulated_state_t *state,
                                  const hafti_io_object_t *object,
                                  enum hafti_io_direction direction);
bool hafti_io_object_is_socket(const hafti_io_object_t *object);

/* The events of a poll for data to read, and for room to write. */
enum { HAFTI_IO_TO_READ = POLLIN | POLLRDNORM, HAFTI_IO_TO_WRITE = POLLOUT | POLLWRNORM };

/* Returns `size`, or less if the simulation is to move fewer bytes. */
size_t hafti_io_drawn_size(hafti_io_simulated_t *simulated, size_t size);

/* Parts of memory as one. */
typedef struct hafti_io_memory {
    const struct iovec *parts;
    size_t count;
    size_t size; /* of all */
} hafti_io_memory_t;
hafti_io_memory_t hafti_io_memory_of(const struct iovec *parts, size_t count);
/* Copies the first `size` bytes of the memory to a ring of `length`, from a place on, or from
   there. False: a part that they are in is none (NULL), and nothing is copied: the caller's
   operation is -EFAULT. */
bool hafti_io_memory_copy(const hafti_io_memory_t *memory, char *ring, size_t length, size_t first,
                          size_t size, bool into_ring);

/* Whether the seed makes the operation that is about to begin fail. */
bool hafti_io_fault_is_drawn(hafti_io_simulated_t *simulated);
/* The same for an operation on an object: 0, or its error. */
int hafti_io_fault_of(hafti_io_simulated_state_t *state, hafti_io_object_t *object, bool writes);

/* ---- Streams and pipes (simulated_streams.c) ---- */

enum { HAFTI_IO_STREAM_ROOM = 4096 }; /* for bytes that have not been read */

/* Makes the two ends of this kind, of a pipe the first to read from; -ENOMEM leaves them what they
   are. */
int hafti_io_object_join(hafti_io_object_t *one, hafti_io_object_t *other,
                         enum hafti_io_object_kind kind);
/* Makes two new ones. 0 or -ENOMEM. */
int hafti_io_object_pair(hafti_io_simulated_state_t *state, enum hafti_io_object_kind kind,
                         int ends[2]);
void hafti_io_object_break(hafti_io_simulated_state_t *state, hafti_io_object_t *end);
void hafti_io_simulated_end_closes(hafti_io_simulated_state_t *state, hafti_io_object_t *end);
void hafti_io_simulated_end_ends_output(hafti_io_simulated_state_t *state, hafti_io_object_t *end);
void hafti_io_simulated_end_ends_input(hafti_io_simulated_state_t *state, hafti_io_object_t *end);
/* Reads or writes; -EAGAIN where it has to wait. Descriptors that are passed with the bytes go on
   if that is done, and are the caller's otherwise; a read sets `*passed`, which is NULL before. */
ssize_t hafti_io_simulated_end_reads(hafti_io_simulated_state_t *state, hafti_io_object_t *end,
                                     const hafti_io_memory_t *memory, int flags,
                                     hafti_io_passed_t **passed);
ssize_t hafti_io_simulated_end_writes(hafti_io_simulated_state_t *state, hafti_io_object_t *end,
                                      const hafti_io_memory_t *memory, hafti_io_passed_t *passed);
/* At the end of the run. */
void hafti_io_simulated_end_stops(hafti_io_object_t *end);
int hafti_io_events_of_end(const hafti_io_object_t *end, short events);

/* ---- Descriptors that are passed along (simulated_passing.c) ---- */

/* The descriptors passed by a message that is sent. 0, and NULL if there are none; or an error. */
int hafti_io_passed_of(hafti_io_simulated_state_t *state, const struct msghdr *message,
                       hafti_io_passed_t **passed);
/* Puts new numbers of the descriptors that have come into the room for control data of a message
   that is received. */
void hafti_io_passed_arrive(hafti_io_simulated_state_t *state, hafti_io_passed_t *passed,
                            struct msghdr *message, size_t room);
/* Makes the numbers that have arrived with the message stay open at an exec. */
void hafti_io_passed_stay(hafti_io_simulated_state_t *state, const struct msghdr *message);
/* Frees them at the end of the run, where objects are not closed one by one. */
void hafti_io_passed_forget(hafti_io_passed_t *passed);
void hafti_io_passed_drop(hafti_io_simulated_state_t *state, hafti_io_passed_t *passed);

/* ---- Polls (simulated_polls.c) ---- */

/* The events of the object that have come. */
int hafti_io_simulated_events(const hafti_io_object_t *object, short events);
/* Stores the events of each; returns how many are ready now. */
int hafti_io_simulated_look(hafti_io_simulated_state_t *state, struct pollfd *entries,
                            size_t count);
int hafti_io_simulated_poll_several(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                                    int64_t deadline, unsigned turn);
/* Wakes the polls for which descriptors of the system are ready; whether there are some. */
bool hafti_io_simulated_wake_by_real(hafti_io_simulated_state_t *state);

/* ---- Operations (simulated_operations.c) ---- */

/* Tries the operation once: -EAGAIN where it has to wait. */
ssize_t hafti_io_simulated_attempt(const hafti_io_operation_t *operation);
ssize_t hafti_io_simulated_operate(hafti_io_runner_t *runner, hafti_io_operation_t *operation);

/* ---- Time (simulated_time.c) ---- */

void hafti_io_simulated_poll(hafti_io_worker_t *worker, int64_t nanoseconds);
void hafti_io_simulated_pause(bool again, const char *waits_for);

/* ---- The network (simulated_network.c) ---- */

/* Makes the place the socket's, with a port that is chosen if it has none. 0, or an error. */
int hafti_io_simulated_bind(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                            const hafti_io_place_there_t *place);
void hafti_io_simulated_unbind(hafti_io_simulated_state_t *state, hafti_io_object_t *socket);
/* Makes a bound socket listen. 0; -EADDRINUSE: another listens there. */
int hafti_io_simulated_listen(hafti_io_object_t *socket, size_t backlog);
/* Starts a connect that completes without a task that waits: -EINPROGRESS. A socket of AF_UNIX has
   none: -EAGAIN where there is no room. */
int hafti_io_simulated_connect_begins(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                                      const struct sockaddr *address, socklen_t size);
/* Whether a task, or nobody, waits until it is connected. */
bool hafti_io_simulated_is_connecting(const hafti_io_object_t *socket);
/* Ends a connect without a waiter, with the error -ECONNRESET. */
void hafti_io_simulated_connect_aborts(hafti_io_simulated_state_t *state,
                                       hafti_io_object_t *socket);
/* Closes a socket that was not connected. */
void hafti_io_simulated_socket_closes(hafti_io_simulated_state_t *state, hafti_io_object_t *socket);

/* -EAGAIN where it has to wait. */
int hafti_io_simulated_connect(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                               const hafti_io_operation_t *operation);
/* Ends a connect with its result; a socket that has got room and has not connected leaves it to the
   next. */
void hafti_io_simulated_connect_ends(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                                     const hafti_io_operation_t *operation, ssize_t code);
int hafti_io_simulated_accept(hafti_io_simulated_state_t *state, hafti_io_object_t *listener);
/* Turns the listener into a socket, which keeps its place. Resets connections that were not
   accepted, and wakes the sockets that waited for room. */
void hafti_io_simulated_listener_ends(hafti_io_simulated_state_t *state,
                                      hafti_io_object_t *listener);
void hafti_io_simulated_network_stop(hafti_io_simulated_state_t *state);

/* Stores the place of an address; 0, or the error because of which it is none. */
int hafti_io_place_of(const struct sockaddr *address, socklen_t size,
                      hafti_io_place_there_t *place);
bool hafti_io_is_some_address(const hafti_io_place_there_t *place);
/* Writes the address as that family shows it, cut to the buffer, and stores its whole size. */
void hafti_io_place_tell(const hafti_io_place_there_t *place, sa_family_t family, void *address,
                         socklen_t *size);
/* The place as a peer sees it: with its address, if it has one; otherwise with the address of the
   place that it is connected to, or the host's own if that has none, either. */
hafti_io_place_there_t hafti_io_place_seen(const hafti_io_place_there_t *place,
                                           const hafti_io_place_there_t *to);
/* The listener or receiver at the place; NULL: there is none. */
hafti_io_object_t *hafti_io_object_at(void *const *places, const hafti_io_place_there_t *place);
/* Makes this object, of all at its place, the one that is found there. */
void hafti_io_stand_for_place(void *const *places, hafti_io_place_there_t *place);
/* Finds a free port there; false: all are taken. */
bool hafti_io_choose_port(hafti_io_simulated_state_t *state, void *const *places,
                          hafti_io_place_there_t *place);
/* Gives the place to an object, with its port, or with one that is chosen for port 0. -EADDRINUSE,
   -ENOMEM. */
int hafti_io_occupy(hafti_io_simulated_state_t *state, void **places,
                    hafti_io_place_there_t *place);
void hafti_io_vacate(void **places, const hafti_io_place_there_t *place);

/* ---- Calls on files, for calls.h (simulated_paths.c) ---- */

int hafti_io_calls_openat(int directory, const char *path, int flags, mode_t mode);
int hafti_io_calls_fstatat(int directory, const char *path, struct stat *status, int flags);
int hafti_io_calls_faccessat(int directory, const char *path, int mode, int flags);
int hafti_io_calls_fchmodat(int directory, const char *path, mode_t mode, int flags);
int hafti_io_calls_utimensat(int directory, const char *path, const struct timespec times[2],
                             int flags);
int64_t hafti_io_calls_lseek(int descriptor, int64_t offset, int whence);
int hafti_io_calls_truncate(int directory, const char *path, int64_t size, int flags);
int hafti_io_calls_fallocate(int descriptor, int mode, int64_t offset, int64_t size);
int hafti_io_calls_flock(int descriptor, int command);
int hafti_io_calls_list(int descriptor, struct dirent ***entries);
int hafti_io_calls_mkdirat(int directory, const char *path, mode_t mode);
int hafti_io_calls_unlinkat(int directory, const char *path, int flags);
int hafti_io_calls_renameat2(int from_directory, const char *from, int to_directory, const char *to,
                             unsigned flags);
int hafti_io_calls_link(int directory, const char *path);
int hafti_io_calls_chdir(int directory, const char *path, int flags);
int hafti_io_calls_realpath(const char *path, char *into, size_t size);

/* ---- Datagrams (simulated_datagrams.c) ---- */

int hafti_io_simulated_datagrams_pair(hafti_io_simulated_state_t *state, int ends[2]);
int hafti_io_simulated_datagrams_bind(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                                      const hafti_io_place_there_t *place);
int hafti_io_simulated_datagrams_connect(hafti_io_simulated_state_t *state,
                                         hafti_io_object_t *socket, const struct sockaddr *address,
                                         socklen_t size);
/* -EAGAIN where it has to wait. `address`: NULL, where it is connected to. */
ssize_t hafti_io_simulated_datagram_sends(hafti_io_simulated_state_t *state,
                                          hafti_io_object_t *socket,
                                          const hafti_io_memory_t *memory,
                                          const struct sockaddr *address, socklen_t size);
ssize_t hafti_io_simulated_datagram_receives(hafti_io_simulated_state_t *state,
                                             hafti_io_object_t *socket,
                                             const hafti_io_memory_t *memory, int flags,
                                             struct sockaddr *address, socklen_t *address_size,
                                             bool *truncated);
int hafti_io_events_of_datagrams(const hafti_io_object_t *socket, short events);
int hafti_io_simulated_datagrams_shut(hafti_io_simulated_state_t *state, hafti_io_object_t *socket,
                                      int how);
/* The size of the first datagram that has come; 0: none has. */
size_t hafti_io_simulated_datagram_size(const hafti_io_object_t *socket);
void hafti_io_simulated_datagrams_close(hafti_io_simulated_state_t *state,
                                        hafti_io_object_t *socket);
void hafti_io_simulated_datagrams_stop(hafti_io_simulated_state_t *state);

/* ---- Names of files (simulated_directories.c) ---- */

/* 0; -ENOMEM. */
int hafti_io_simulated_files_start(hafti_io_simulated_state_t *state);
void hafti_io_simulated_files_stop(hafti_io_simulated_state_t *state);

/* Makes a file without a name and without uses. NULL: no memory. */
hafti_io_file_t *hafti_io_file_new(hafti_io_simulated_state_t *state, mode_t mode);
void hafti_io_file_stop_using(hafti_io_file_t *file);

/* The place that a path leads to. */
typedef struct hafti_io_path {
    hafti_io_file_t *file; /* NULL: nothing */
    hafti_io_file_t
        *directory;    /* in which `text`, of `length`, is its name; NULL: it ends in none */
    struct name *name; /* NULL: there is none, but could be */
    const char *text;
    size_t length;
    bool slash; /* behind the name */
} hafti_io_path_t;
/* The path begins in `from` unless it is absolute; NULL: in the current directory. */
int hafti_io_path_look_at(const hafti_io_simulated_state_t *state, hafti_io_file_t *from,
                          const char *path, hafti_io_path_t *place);
/* The same; the seed may make it fail with `fault`. */
int hafti_io_path_begin(hafti_io_file_t *from, const char *path, hafti_io_path_t *place, int fault);
/* The same for what has to be there. */
int hafti_io_path_find(hafti_io_file_t *from, const char *path, hafti_io_file_t **file);
/* Makes a file, or directory, where nothing is. 0, -ENOMEM, or -ENOENT. */
int hafti_io_path_make(hafti_io_simulated_state_t *state, hafti_io_path_t *place, mode_t mode);
/* Writes the path from "/" on of a file that is there. -ENOENT: it is not below "/". */
int hafti_io_path_tell(const hafti_io_simulated_state_t *state, const hafti_io_path_t *place,
                       char *into, size_t size);

int hafti_io_path_mkdir(hafti_io_file_t *from, const char *path, mode_t mode);
enum { HAFTI_IO_REMOVES_FILES = 1, HAFTI_IO_REMOVES_DIRECTORIES = 2 };
int hafti_io_path_remove(hafti_io_file_t *from, const char *path, unsigned kinds);
int hafti_io_path_rename(const hafti_io_path_t *old, const hafti_io_path_t *new, unsigned flags);
/* Like scandir(3), in no order. */
int hafti_io_directory_list(const hafti_io_file_t *directory, struct dirent ***entries);
void hafti_io_go_to(hafti_io_simulated_state_t *state, hafti_io_file_t *directory);

void hafti_io_file_status(const hafti_io_file_t *file, struct stat *status);

void hafti_io_directory_sync(hafti_io_simulated_state_t *state, hafti_io_file_t *directory);
/* Called for each file that is left. */
typedef void hafti_io_file_visit_t(hafti_io_simulated_state_t *state, hafti_io_file_t *file);
void hafti_io_directories_crash(hafti_io_simulated_state_t *state, hafti_io_file_visit_t *visit);

/* ---- Files (simulated_files.c) ---- */

int hafti_io_path_open(hafti_io_file_t *from, const char *path, int flags, mode_t mode);
/* New bytes are zeros. 0, -EFBIG or -ENOSPC. */
int hafti_io_file_resize(hafti_io_simulated_state_t *state, hafti_io_file_t *file, int64_t size);

void hafti_io_simulated_files_crash(hafti_io_simulated_state_t *state);
/* Reads or writes from `*offset` on, and moves that. */
ssize_t hafti_io_simulated_file_transfers(hafti_io_simulated_t *simulated,
                                          hafti_io_object_t *object,
                                          const hafti_io_memory_t *memory, int64_t *offset,
                                          bool writes);

/* ---- The table (simulated_sockets.c) ---- */

extern const haft_io_calls_t hafti_io_simulation_calls;

/* Its calls in simulated_network.c and simulated_streams.c. */
int hafti_io_calls_bind(int socket, const struct sockaddr *address, socklen_t size);
int hafti_io_calls_shutdown(int socket, int how);
int hafti_io_calls_real_of(int end);
const char *hafti_io_calls_host_of(const char *host, int family);
/* Makes a pipe, without the modes that pipe2(2) sets. */
int hafti_io_simulated_pipe(int ends[2]);
int hafti_io_simulated_socket(int domain, int type, int protocol);
int hafti_io_simulated_socketpair(int domain, int type, int protocol, int ends[2]);

/* Its calls in simulated_files.c and simulated_directories.c. */
int hafti_io_calls_fsync(int descriptor);
int hafti_io_calls_remove(const char *path);
int hafti_io_calls_scandir(const char *path, struct dirent ***entries);

#endif
