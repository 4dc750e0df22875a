/* SPDX-License-Identifier: MIT */
/*
 * The streams of a simulation: pairs, connections and pipes. Bytes that one end writes lie in a
 * ring of the other. The end of a pipe to write to has no ring, so nothing is read there, and
 * nothing is written to the other end.
 *
 * An end that a child process gets has to be the system's. So its stream becomes real: the system
 * makes one of the kind, which gets what lies in the rings, and from then on an operation on either
 * end is one on that.
 */
#include "../system_call.h"
#include "simulation.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIPE_SIZE = 65536 };
enum { WHOLE_PEEK = MSG_PEEK | MSG_WAITALL };

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_object_t object_t;

/* ---- Ends ---- */

int hafti_io_object_join(object_t *one, object_t *other, enum hafti_io_object_kind kind) {
    object_t *ends[] = {one, other};
    size_t sizes[] = {kind == HAFTI_IO_A_PIPE ? PIPE_SIZE : HAFTI_IO_STREAM_ROOM,
                      kind == HAFTI_IO_A_PIPE ? 0 : HAFTI_IO_STREAM_ROOM};
    char *bytes[] = {malloc(sizes[0]), sizes[1] != 0 ? malloc(sizes[1]) : NULL};
    if (bytes[0] == NULL || (bytes[1] == NULL && sizes[1] != 0)) {
        free(bytes[0]);
        free(bytes[1]);
        return -ENOMEM;
    }
    for (int i = 0; i < 2; i++) {
        ends[i]->kind = kind;
        ends[i]->bytes = bytes[i];
        ends[i]->size = sizes[i];
        hafti_io_ring(&ends[i]->passed);
    }
    hafti_io_object_make_peers(one, other);
    return 0;
}

int hafti_io_object_pair(state_t *state, enum hafti_io_object_kind kind, int ends[2]) {
    object_t *one = hafti_io_object_new(state, HAFTI_IO_A_SOCKET);
    object_t *other = hafti_io_object_new(state, HAFTI_IO_A_SOCKET);
    if (one == NULL || other == NULL || hafti_io_object_join(one, other, kind) != 0) {
        if (one != NULL)
            hafti_io_number_close(state, one->descriptor);
        if (other != NULL)
            hafti_io_number_close(state, other->descriptor);
        return -ENOMEM;
    }
    ends[0] = one->descriptor;
    ends[1] = other->descriptor;
    return 0;
}

void hafti_io_object_break(state_t *state, object_t *end) {
    end->broken = end->peer->broken = true;
    hafti_io_object_wake(state, end);
    hafti_io_object_wake(state, end->peer);
}

static hafti_io_passed_t *first_passed(const object_t *end) {
    return !hafti_io_ring_empty(&end->passed)
               ? HAFTI_IO_OWNER(end->passed.next, hafti_io_passed_t, link)
               : NULL;
}
static void drop_passed(state_t *state, object_t *end) {
    for (hafti_io_passed_t *passed; (passed = first_passed(end)) != NULL;) {
        hafti_io_unlink(&passed->link);
        hafti_io_passed_drop(state, passed);
    }
}

void hafti_io_simulated_end_closes(state_t *state, object_t *end) {
    free(end->bytes);
    end->bytes = NULL;
    drop_passed(state, end);
    end->peer->finished = end->peer->ended = true;
    end->peer->lost |= end->count != 0;
    hafti_io_object_wake(state, end->peer);
}

void hafti_io_simulated_end_stops(object_t *end) {
    for (hafti_io_passed_t *passed; (passed = first_passed(end)) != NULL;) {
        hafti_io_unlink(&passed->link);
        hafti_io_passed_forget(passed);
    }
}

void hafti_io_simulated_end_ends_output(state_t *state, object_t *end) {
    end->ended = end->peer->finished = true;
    hafti_io_object_wake(state, end);
    hafti_io_object_wake(state, end->peer);
}

/* Bytes that have come are still read. Over TCP the other end may write. */
void hafti_io_simulated_end_ends_input(state_t *state, object_t *end) {
    end->finished = true;
    end->peer->ended |= end->place.family == AF_UNIX;
    hafti_io_object_wake(state, end);
    hafti_io_object_wake(state, end->peer);
}

/* ---- Transfers ---- */

/* How many of the available bytes one read takes: it ends after the bytes with which descriptors
   came. */
static size_t run_of(const object_t *end) {
    const hafti_io_passed_t *passed = first_passed(end);
    if (passed == NULL)
        return end->count;
    uint64_t run = passed->at + passed->length - (end->come - end->count);
    return run < end->count ? (size_t)run : end->count;
}

ssize_t hafti_io_simulated_end_reads(state_t *state, object_t *end, const hafti_io_memory_t *memory,
                                     int flags, hafti_io_passed_t **passed) {
    size_t size = memory->size;
    if (end->size == 0)
        return -EBADF;
    if (end->broken)
        return -ECONNRESET;
    if (size == 0 && end->kind == HAFTI_IO_A_PIPE)
        return 0;
    if (end->count == 0 && end->lost) {
        end->lost = false;
        return -ECONNRESET;
    }
    if (end->count == 0)
        return end->finished ? 0 : -EAGAIN;
    if (size == 0)
        return 0;
    size_t run = run_of(end);
    if ((flags & WHOLE_PEEK) == WHOLE_PEEK && end->place.family != AF_UNIX && run < size &&
        run == end->count && end->count < end->size && !end->finished)
        return -EAGAIN;
    size = size < run ? size : run;
    if ((flags & MSG_WAITALL) == 0)
        size = hafti_io_drawn_size(state->simulated, size);
    if (!hafti_io_memory_copy(memory, end->bytes, end->size, end->first, size, false))
        return -EFAULT;
    if ((flags & MSG_PEEK) != 0)
        return (ssize_t)size;
    end->first = (end->first + size) % end->size;
    end->count -= size;
    hafti_io_passed_t *first = first_passed(end);
    if (first != NULL && first->at < end->come - end->count) {
        hafti_io_unlink(&first->link);
        *passed = first;
    }
    hafti_io_object_wake_one_way(state, end->peer, HAFTI_IO_OUTWARD);
    return (ssize_t)size;
}

/* The room that a write waits for: for all of it if it must be whole, otherwise for a byte. */
static size_t least_of(const object_t *end, size_t size) {
    return end->kind == HAFTI_IO_A_PIPE && size <= PIPE_BUF ? size : 1;
}

ssize_t hafti_io_simulated_end_writes(state_t *state, object_t *end,
                                      const hafti_io_memory_t *memory, hafti_io_passed_t *passed) {
    object_t *peer = end->peer;
    if (peer->size == 0)
        return -EBADF;
    if (end->broken)
        return -ECONNRESET;
    size_t room = peer->size - peer->count, size = memory->size, least = least_of(end, size);
    if (size == 0 && end->kind == HAFTI_IO_A_PIPE)
        return 0;
    if (end->ended)
        return -EPIPE;
    if (size == 0)
        return 0;
    if (room < least)
        return -EAGAIN;
    size = size < room ? size : room;
    if (least == 1)
        size = hafti_io_drawn_size(state->simulated, size);
    if (!hafti_io_memory_copy(memory, peer->bytes, peer->size, peer->first + peer->count, size,
                              true))
        return -EFAULT;
    if (passed != NULL) {
        passed->at = peer->come;
        passed->length = size;
        hafti_io_append(&peer->passed, &passed->link);
    }
    peer->come += size;
    peer->count += size;
    hafti_io_object_wake_one_way(state, peer, HAFTI_IO_INWARD);
    return (ssize_t)size;
}

/* The system's events for a pipe: no more data is POLLHUP alone, and no reader is POLLERR. */
static int events_of_pipe(const object_t *end, short events) {
    if (end->size != 0)
        return (end->count != 0 ? events & HAFTI_IO_TO_READ : 0) | (end->finished ? POLLHUP : 0);
    bool has_room = end->peer->size - end->peer->count >= PIPE_BUF;
    return (has_room ? events & HAFTI_IO_TO_WRITE : 0) | (end->ended ? POLLERR : 0);
}

int hafti_io_events_of_end(const object_t *end, short events) {
    if (end->kind == HAFTI_IO_A_PIPE)
        return events_of_pipe(end, events);
    bool finished = end->finished || end->broken, ended = end->ended || end->broken;
    int ready = end->broken || end->lost ? POLLERR : 0;
    if (finished && ended)
        ready |= POLLHUP;
    if (finished)
        ready |= events & POLLRDHUP;
    if (end->count != 0 || finished)
        ready |= events & HAFTI_IO_TO_READ;
    if (ended || end->peer->count < end->peer->size)
        ready |= events & HAFTI_IO_TO_WRITE;
    return ready;
}

/* ---- Becoming real ---- */

/* `real`: to write to what the end reads from. */
static int pour_out(const object_t *end, int real) {
    if (end->count == 0)
        return 0;
    size_t first_run = end->size - end->first < end->count ? end->size - end->first : end->count;
    struct iovec parts[] = {{end->bytes + end->first, first_run},
                            {end->bytes, end->count - first_run}};
    ssize_t written = HAFTI_IO_RESULT(writev(real, parts, 2));
    return written < 0 ? (int)written : (size_t)written == end->count ? 0 : -ENOBUFS;
}

/* Data that is unread when one of the ends is closed is lost with it. */
static int move_into(const object_t *ends[2], const int real[2]) {
    for (int i = 0; i < 2; i++) {
        int code = ends[i]->open ? pour_out(ends[i], real[1 - i]) : 0;
        if (code != 0)
            return code;
        if (ends[i]->kind == HAFTI_IO_A_STREAM && ends[i]->open && ends[i]->ended)
            shutdown(real[i], SHUT_WR);
    }
    return 0;
}

/* (The C library's may be libhaft-posix's, which would make a simulated one.) */
static int make_real_pair(int real[2]) {
    return (int)hafti_io_system_call(
        SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, (long)real, 0, 0);
}

int hafti_io_calls_real_of(int descriptor) {
    state_t *state = hafti_io_state_here();
    object_t *end = hafti_io_object_of(state, descriptor);
    if (end == NULL)
        return -EBADF;
    if (end->kind == HAFTI_IO_A_REAL_END)
        return end->real;
    if (end->kind != HAFTI_IO_A_STREAM && end->kind != HAFTI_IO_A_PIPE)
        return -EOPNOTSUPP;
    if (end->broken)
        return -ECONNRESET;
    object_t *ends[2] = {end, end->peer};
    if (end->size == 0) /* a pipe has the end to read from first */
        ends[0] = end->peer, ends[1] = end;
    int real[2];
    int code = end->kind == HAFTI_IO_A_PIPE ? HAFTI_IO_RESULT(pipe2(real, O_CLOEXEC | O_NONBLOCK))
                                            : make_real_pair(real);
    if (code != 0)
        return code;
    code = move_into((const object_t *[]){ends[0], ends[1]}, real);
    if (code != 0) {
        close(real[0]);
        close(real[1]);
        return code;
    }
    for (int i = 0; i < 2; i++) {
        if (!ends[i]->open) {
            close(real[i]);
            continue;
        }
        free(ends[i]->bytes);
        ends[i]->bytes = NULL;
        drop_passed(state, ends[i]);
        ends[i]->kind = HAFTI_IO_A_REAL_END;
        ends[i]->real = real[i];
        hafti_io_object_wake(state, ends[i]);
    }
    return end->real;
}

int hafti_io_fault_of(state_t *state, object_t *object, bool writes) {
    int code = object->fails;
    object->fails = 0;
    if (code != 0 || !hafti_io_fault_is_drawn(state->simulated))
        return code;
    switch (object->kind) {
    case HAFTI_IO_A_SOCKET:
        return hafti_io_random(state->simulated, 2) == 0 ? -ECONNREFUSED : -ETIMEDOUT;
    case HAFTI_IO_A_LISTENER:
        return -EMFILE;
    case HAFTI_IO_A_FILE:
        if (S_ISCHR(object->file->mode))
            return 0;
        return writes && hafti_io_random(state->simulated, 2) == 0 ? -ENOSPC : -EIO;
    case HAFTI_IO_A_STREAM:
        hafti_io_object_break(state, object);
        return -ECONNRESET;
    case HAFTI_IO_A_PIPE: /* has nothing that could go wrong */
    case HAFTI_IO_A_REAL_END:
    case HAFTI_IO_DATAGRAMS: /* go wrong on their way */
        break;
    }
    return 0;
}
