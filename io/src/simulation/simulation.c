/* SPDX-License-Identifier: MIT */
/*
 * Runs for tests: the order of tasks and the sizes of transfers are drawn from a seed, time is
 * virtual, and what is simulated exists in memory only. So a run is repeated by its seed.
 */
#include "simulation.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST = HAFTI_IO_FIRST_SIMULATED };
/* Of recv(2) and send(2). The last three change nothing here. */
enum { FLAGS = MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_CMSG_CLOEXEC };

typedef hafti_io_simulated_state_t state_t;
typedef hafti_io_object_t object_t;

/* ---- The table of objects ---- */

static bool is_stream(int descriptor) {
    const object_t *object = hafti_io_object_of(hafti_io_state_here(), descriptor);
    return object == NULL || object->kind != HAFTI_IO_DATAGRAMS;
}

static void close_object(state_t *state, object_t *object) {
    object->open = false;
    switch (object->kind) {
    case HAFTI_IO_A_SOCKET:
        hafti_io_simulated_socket_closes(state, object);
        break;
    case HAFTI_IO_A_STREAM:
        hafti_io_simulated_unbind(state, object);
        hafti_io_simulated_end_closes(state, object);
        break;
    case HAFTI_IO_A_PIPE:
        hafti_io_simulated_end_closes(state, object);
        break;
    case HAFTI_IO_A_REAL_END:
        hafti_io_close_elsewhere(NULL, object->real);
        break;
    case HAFTI_IO_A_LISTENER:
        hafti_io_simulated_listener_ends(state, object);
        hafti_io_simulated_unbind(state, object);
        break;
    case HAFTI_IO_DATAGRAMS:
        hafti_io_simulated_datagrams_close(state, object);
        break;
    case HAFTI_IO_A_FILE:
        hafti_io_file_stop_using(object->file);
        break;
    }
}

/* ---- Operations ---- */

static int events_of_real(const object_t *end, short events) {
    struct pollfd entry = {end->real, events, 0};
    return hafti_io_poll_blocking(&entry, 1, 0) < 0 ? POLLERR : entry.revents;
}

static int events_of(const object_t *object, short events) {
    switch (object->kind) {
    case HAFTI_IO_A_STREAM:
    case HAFTI_IO_A_PIPE:
        return hafti_io_events_of_end(object, events);
    case HAFTI_IO_A_REAL_END:
        return events_of_real(object, events);
    case HAFTI_IO_A_LISTENER:
        return hafti_io_ring_empty(&object->arrived) ? 0 : events & HAFTI_IO_TO_READ;
    case HAFTI_IO_DATAGRAMS:
        return hafti_io_events_of_datagrams(object, events);
    case HAFTI_IO_A_FILE: /* it is always ready */
        return events & (HAFTI_IO_TO_READ | HAFTI_IO_TO_WRITE);
    case HAFTI_IO_A_SOCKET:
        break;
    }
    if (hafti_io_simulated_is_connecting(object))
        return 0;
    /* As the system has it of one that is not connected. */
    return POLLHUP | (events & HAFTI_IO_TO_WRITE) | (object->error != 0 ? POLLERR : 0);
}

static bool sends(const hafti_io_operation_t *operation) {
    return hafti_io_events_of(operation) == POLLOUT;
}

static bool is_message(const hafti_io_operation_t *operation) {
    return operation->kind == HAFTI_IO_RECEIVE_MESSAGE || operation->kind == HAFTI_IO_SEND_MESSAGE;
}

/* 0, or what the system says of such parts; `too_many`: of more than it takes. */
static int check_parts(const struct iovec *parts, size_t count, int too_many) {
    if (count > IOV_MAX)
        return too_many;
    if (parts == NULL && count != 0)
        return -EFAULT;
    for (size_t i = 0; i < count; i++)
        if (parts[i].iov_len > SSIZE_MAX)
            return -EINVAL;
    return 0;
}

/* Where the bytes of an operation go to, or come from: 0, or why they cannot. `*part` is the
   caller's, for these. */
static int memory_of_operation(const hafti_io_operation_t *operation, struct iovec *part,
                               hafti_io_memory_t *memory) {
    const struct iovec *parts = part;
    size_t count = 1;
    int too_many = -EINVAL;
    *part = (struct iovec){operation->buffer, operation->size};
    if (operation->kind == HAFTI_IO_READ_PARTS || operation->kind == HAFTI_IO_WRITE_PARTS) {
        parts = operation->buffer;
        count = operation->size;
    } else if (is_message(operation)) {
        const struct msghdr *message = operation->buffer;
        if (message == NULL)
            return -EFAULT;
        parts = message->msg_iov;
        count = message->msg_iovlen;
        too_many = -EMSGSIZE;
    } else {
        part->iov_len = part->iov_len < SSIZE_MAX ? part->iov_len : SSIZE_MAX;
    }
    int code = check_parts(parts, count, too_many);
    if (code == 0)
        *memory = hafti_io_memory_of(parts, count);
    return code;
}

static ssize_t attempt(hafti_io_worker_t *worker, object_t *object,
                       const hafti_io_operation_t *operation);

static ssize_t attempt_here(hafti_io_operation_t *operation) {
    hafti_io_worker_t *worker = hafti_io_worker();
    return attempt(worker, hafti_io_object_of(worker->backend_state, operation->descriptor),
                   operation);
}

static bool is_of_sockets(const hafti_io_operation_t *operation) {
    enum hafti_io_kind kind = operation->kind;
    return kind == HAFTI_IO_RECEIVE || kind == HAFTI_IO_SEND || kind == HAFTI_IO_RECEIVE_MESSAGE ||
           kind == HAFTI_IO_SEND_MESSAGE;
}

/* Of a socket, where these have no bytes: as the system has it, unlike a receive, a send and a
   write. */
static bool moves_nothing(const hafti_io_operation_t *operation) {
    return operation->kind == HAFTI_IO_READ || operation->kind == HAFTI_IO_READ_PARTS ||
           operation->kind == HAFTI_IO_WRITE_PARTS;
}

static ssize_t receive_datagram(state_t *state, object_t *socket,
                                const hafti_io_operation_t *operation,
                                const hafti_io_memory_t *memory, int flags) {
    bool truncated = false;
    if (!is_message(operation))
        return hafti_io_simulated_datagram_receives(
            state, socket, memory, flags, operation->address, operation->address_size, &truncated);
    struct msghdr *message = operation->buffer;
    ssize_t got = hafti_io_simulated_datagram_receives(
        state, socket, memory, flags, message->msg_name, &message->msg_namelen, &truncated);
    if (got >= 0) {
        message->msg_controllen = 0;
        message->msg_flags = truncated ? MSG_TRUNC : 0;
    }
    return got;
}

static ssize_t send_datagram(state_t *state, object_t *socket,
                             const hafti_io_operation_t *operation,
                             const hafti_io_memory_t *memory) {
    if (!is_message(operation))
        return hafti_io_simulated_datagram_sends(
            state, socket, memory, operation->address,
            operation->address != NULL ? *operation->address_size : 0);
    const struct msghdr *message = operation->buffer;
    if (message->msg_controllen != 0)
        return -EOPNOTSUPP;
    return hafti_io_simulated_datagram_sends(state, socket, memory, message->msg_name,
                                             message->msg_namelen);
}

static ssize_t read_end(state_t *state, object_t *end, const hafti_io_operation_t *operation,
                        const hafti_io_memory_t *memory, int flags) {
    hafti_io_passed_t *passed = NULL;
    ssize_t got = hafti_io_simulated_end_reads(state, end, memory, flags, &passed);
    if (is_message(operation) && got >= 0) {
        struct msghdr *message = operation->buffer;
        size_t room = message->msg_control != NULL ? message->msg_controllen : 0;
        message->msg_namelen = 0;
        message->msg_controllen = 0;
        message->msg_flags = 0;
        if (passed != NULL)
            hafti_io_passed_arrive(state, passed, message, room);
    } else if (passed != NULL) {
        hafti_io_passed_drop(state, passed);
    }
    if (got >= 0 && operation->kind == HAFTI_IO_RECEIVE && operation->address_size != NULL)
        *operation->address_size = 0;
    return got;
}

static ssize_t write_end(state_t *state, object_t *end, const hafti_io_operation_t *operation,
                         const hafti_io_memory_t *memory) {
    hafti_io_passed_t *passed = NULL;
    int code = is_message(operation) ? hafti_io_passed_of(state, operation->buffer, &passed) : 0;
    if (code != 0)
        return code;
    ssize_t done = hafti_io_simulated_end_writes(state, end, memory, passed);
    if (done <= 0 && passed != NULL)
        hafti_io_passed_drop(state, passed);
    return done;
}

/* What the system says of a socket that is not connected, or listens. */
static int without_connection(const object_t *socket, bool sends) {
    if (hafti_io_simulated_is_connecting(socket))
        return -EAGAIN;
    if (socket->place.family == AF_UNIX)
        return sends ? -ENOTCONN : -EINVAL;
    return sends ? -EPIPE : -ENOTCONN;
}

static ssize_t transfer(hafti_io_worker_t *worker, object_t *object,
                        const hafti_io_operation_t *operation) {
    state_t *state = worker->backend_state;
    int flags = hafti_io_flags_of(operation);
    if (is_of_sockets(operation) && !hafti_io_object_is_socket(object))
        return -ENOTSOCK;
    if ((flags & ~(object->kind == HAFTI_IO_DATAGRAMS ? FLAGS | MSG_TRUNC : FLAGS)) != 0)
        return -EOPNOTSUPP;
    struct iovec part;
    hafti_io_memory_t memory;
    int code = memory_of_operation(operation, &part, &memory);
    if (code != 0)
        return code;
    if (memory.size == 0 && hafti_io_object_is_socket(object) && moves_nothing(operation))
        return 0;
    switch (object->kind) {
    case HAFTI_IO_DATAGRAMS:
        return sends(operation) ? send_datagram(state, object, operation, &memory)
                                : receive_datagram(state, object, operation, &memory, flags);
    case HAFTI_IO_A_STREAM:
    case HAFTI_IO_A_PIPE:
        return sends(operation) ? write_end(state, object, operation, &memory)
                                : read_end(state, object, operation, &memory, flags);
    case HAFTI_IO_A_FILE:
        return hafti_io_simulated_file_transfers(worker->simulated, object, &memory,
                                                 &object->position, sends(operation));
    default:
        return without_connection(object, sends(operation));
    }
}

static ssize_t attempt_really(const object_t *end, const hafti_io_operation_t *operation) {
    hafti_io_operation_t real = *operation;
    real.descriptor = end->real;
    return hafti_io_operate_blocking(&real);
}

static ssize_t attempt(hafti_io_worker_t *worker, object_t *object,
                       const hafti_io_operation_t *operation) {
    if (object->kind == HAFTI_IO_A_REAL_END)
        return attempt_really(object, operation);
    switch (operation->kind) {
    case HAFTI_IO_POLL: {
        int ready = events_of(object, (short)operation->flags);
        return ready != 0 ? ready : -EAGAIN;
    }
    case HAFTI_IO_ACCEPT:
        return hafti_io_simulated_accept(worker->backend_state, object);
    case HAFTI_IO_CONNECT:
        return hafti_io_simulated_connect(worker->backend_state, object, operation);
    case HAFTI_IO_READ_LENT:
        return hafti_io_read_into_lent(operation, attempt_here);
    default:
        return transfer(worker, object, operation);
    }
}

static int fault_of(state_t *state, object_t *object, const hafti_io_operation_t *operation) {
    return operation->kind != HAFTI_IO_POLL ? hafti_io_fault_of(state, object, sends(operation))
                                            : 0;
}

ssize_t hafti_io_simulated_attempt(const hafti_io_operation_t *operation) {
    hafti_io_worker_t *worker = hafti_io_worker();
    state_t *state = worker->backend_state;
    object_t *object = hafti_io_object_of(state, operation->descriptor);
    if (object == NULL)
        return -EBADF;
    int code = fault_of(state, object, operation);
    return code != 0 ? code : attempt(worker, object, operation);
}

static ssize_t operate_simulated(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    if (operation->descriptor < FIRST)
        return hafti_io_operate_blocking(operation);
    state_t *state = runner->worker->backend_state;
    object_t *object = hafti_io_object_of(state, operation->descriptor);
    if (object == NULL)
        return -EBADF;
    ssize_t done = fault_of(state, object, operation);
    if (done != 0)
        return done;
    hafti_io_object_hold(object);
    for (int code = 0; code == 0;) {
        done = hafti_io_object_of(state, operation->descriptor) == object
                   ? attempt(runner->worker, object, operation)
                   : -EBADF;
        if (done != -EAGAIN || hafti_io_must_not_wait(operation))
            break;
        code = hafti_io_wait_on(hafti_io_waiters_of(state, operation->descriptor), operation,
                                runner->task);
        done = code;
    }
    if (operation->kind == HAFTI_IO_CONNECT)
        hafti_io_simulated_connect_ends(state, object, operation, done);
    hafti_io_object_release(object);
    return done;
}

static hafti_io_descriptor_t *find(hafti_io_worker_t *worker, int descriptor) {
    return descriptor < FIRST || hafti_io_object_of(worker->backend_state, descriptor) != NULL
               ? hafti_io_waiters_of(worker->backend_state, descriptor)
               : NULL;
}

int hafti_io_simulated_look(state_t *state, struct pollfd *entries, size_t count) {
    int ready = 0;
    for (size_t i = 0; i < count; i++) {
        const object_t *object = hafti_io_object_of(state, entries[i].fd);
        if (entries[i].fd < FIRST)
            poll(&entries[i], 1, 0);
        else if (object == NULL)
            entries[i].revents = POLLNVAL;
        else
            entries[i].revents = (short)events_of(object, entries[i].events);
        ready += entries[i].revents != 0;
    }
    return ready;
}

/* What does not come in time takes its time in the simulation, too. */
static int poll_real(hafti_io_simulated_t *simulated, struct pollfd *entries, size_t count,
                     int64_t deadline) {
    int64_t until = HAFT_IO_FOREVER;
    if (deadline != HAFT_IO_FOREVER)
        until = hafti_io_clock() + (deadline - simulated->now);
    int ready = hafti_io_poll_blocking(entries, count, until);
    if (ready == 0 && deadline > simulated->now)
        simulated->now = deadline;
    return ready;
}

/* Whether it is the system's, by its number or because it has become real. */
static bool is_real(state_t *state, int descriptor) {
    const object_t *object = hafti_io_object_of(state, descriptor);
    return descriptor < FIRST || (object != NULL && object->kind == HAFTI_IO_A_REAL_END);
}

/* Some are, and none is another's. (A poll of none is a sleep.) */
static bool are_real(state_t *state, const struct pollfd *entries, size_t count) {
    bool some = false;
    for (size_t i = 0; i < count; i++) {
        if (entries[i].fd >= 0 && !is_real(state, entries[i].fd))
            return false;
        some |= entries[i].fd >= 0;
    }
    return some;
}

/* A poll of both: the system's descriptors are looked at when no task can go on, before time does,
   so it sees what another task has written to one. */
typedef struct poll_wait {
    hafti_io_link_t link;
    const struct pollfd *entries;
    size_t count;
} poll_wait_t;

static bool wake_by_real(state_t *state) {
    bool some = false;
    for (hafti_io_link_t *link = state->mixed.next; link != &state->mixed; link = link->next) {
        const poll_wait_t *waits = HAFTI_IO_OWNER(link, poll_wait_t, link);
        for (size_t i = 0; i < waits->count; i++) {
            struct pollfd entry = waits->entries[i];
            if (entry.fd < 0 || !is_real(state, entry.fd) ||
                hafti_io_simulated_look(state, &entry, 1) == 0)
                continue;
            hafti_io_descriptor_t *waiters = hafti_io_waiters_of(state, entry.fd);
            if (waiters == NULL)
                continue;
            hafti_io_wake(waiters, HAFTI_IO_INWARD, false, false);
            hafti_io_wake(waiters, HAFTI_IO_OUTWARD, false, false);
            some = true;
        }
    }
    return some;
}

static int poll_several_real(state_t *state, struct pollfd *entries, size_t count,
                             int64_t deadline) {
    struct pollfd few[HAFTI_IO_FEW],
        *real = count <= HAFTI_IO_FEW ? few : calloc(count, sizeof *few);
    if (real == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const object_t *end = hafti_io_object_of(state, entries[i].fd);
        real[i] = (struct pollfd){end != NULL ? end->real : entries[i].fd, entries[i].events, 0};
    }
    int ready = poll_real(state->simulated, real, count, deadline);
    for (size_t i = 0; i < count; i++)
        entries[i].revents = real[i].revents;
    if (real != few)
        free(real);
    return ready;
}

/* What its state does not tell changes with it: every turn is as the first. */
static int poll_several_simulated(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                                  int64_t deadline, unsigned turn) {
    (void)turn;
    state_t *state = runner->worker->backend_state;
    for (;;) {
        if (are_real(state, entries, count))
            return poll_several_real(state, entries, count, deadline);
        int ready = hafti_io_simulated_look(state, entries, count);
        if (ready != 0 || deadline <= state->simulated->now)
            return ready;
        bool shares_cell = runner->poll_cell != NULL;
        poll_wait_t mixed = {.entries = entries, .count = count};
        hafti_io_append(&state->mixed, &mixed.link);
        int code = hafti_io_wait_on_several(find, runner, entries, count, deadline);
        hafti_io_unlink(&mixed.link);
        if (code != 0 && code != -ETIMEDOUT)
            return code;
        if (code == 0 && shares_cell) /* which is won, perhaps by somebody else */
            return 1;
    }
}

static int close_number(hafti_io_worker_t *worker, int descriptor) {
    if (descriptor < FIRST)
        return hafti_io_close_elsewhere(NULL, descriptor);
    if (hafti_io_object_of(worker->backend_state, descriptor) == NULL)
        return -EBADF;
    hafti_io_number_close(worker->backend_state, descriptor);
    return 0;
}

static hafti_io_worker_t *simulating(const char *function) {
    hafti_io_worker_t *worker = hafti_io_worker();
    if (worker == NULL || worker->simulated == NULL)
        hafti_io_misuse("%s was called outside of haft_io_simulate.", function);
    return worker;
}

int haft_io_simulated_pair(int ends[2]) {
    state_t *state = simulating("haft_io_simulated_pair")->backend_state;
    return hafti_io_object_pair(state, HAFTI_IO_A_STREAM, ends);
}

int hafti_io_network_shutdown(int descriptor, int how) {
    state_t *state = hafti_io_state_here();
    object_t *end = hafti_io_object_of(state, descriptor);
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

void haft_io_simulated_break(int descriptor) {
    state_t *state = simulating("haft_io_simulated_break")->backend_state;
    object_t *end = hafti_io_object_of(state, descriptor);
    if (end == NULL || end->kind != HAFTI_IO_A_STREAM)
        hafti_io_misuse("haft_io_simulated_break was given no open end of a stream.");
    hafti_io_object_break(state, end);
}

void haft_io_simulated_fail(int descriptor, int code) {
    object_t *object =
        hafti_io_object_of(simulating("haft_io_simulated_fail")->backend_state, descriptor);
    if (object == NULL)
        hafti_io_misuse("haft_io_simulated_fail was given no open descriptor of the simulation.");
    if (code >= 0)
        hafti_io_misuse("haft_io_simulated_fail takes a negative error number; it was given %d.",
                        code);
    object->fails = code;
}

void haft_io_simulated_crash(void) {
    state_t *state = simulating("haft_io_simulated_crash")->backend_state;
    if (state->root == NULL)
        hafti_io_misuse("haft_io_simulated_crash was called in a simulation without .files.");
    hafti_io_simulated_files_crash(state);
}

size_t haft_io_simulated_count(void) {
    const state_t *state = simulating("haft_io_simulated_count")->backend_state;
    size_t count = 0;
    for (int i = 0; i < state->count; i++)
        count += state->numbers[i]->object != NULL;
    return count;
}

/* ---- Time, and deadlocks ---- */

static void tell_who_waits(const haft_io_scope_t *scope) {
    for (const hafti_io_link_t *link = scope->tasks.next; link != &scope->tasks;
         link = link->next) {
        const hafti_io_runner_t *runner = HAFTI_IO_OWNER(link, hafti_io_runner_t, link);
        fprintf(stderr, "haft-io:   the task '%s' waits for: %s\n", haft_io_task_name(runner->task),
                runner->waits_for != NULL ? runner->waits_for : "?");
    }
}

/* Those that no cancel has reached yet, each the outermost of its kind. False: there is none. */
static bool cancel_shielded(haft_io_scope_t *root) {
    bool some = false, down;
    unsigned depth = 0;
    for (haft_io_scope_t *scope = root; scope != NULL;
         scope = hafti_io_next_scope(scope, root, down, &depth)) {
        down = scope->cancelled;
        if (down)
            continue;
        hafti_io_scope_cancel(scope, -EDEADLK);
        some = true;
    }
    return some;
}

typedef struct pausing {
    hafti_io_link_t link;
    hafti_io_cell_t cell;
} pausing_t;

void hafti_io_simulated_pause(bool again, const char *waits_for) {
    state_t *state = hafti_io_state_here();
    pausing_t task = {.cell = {HAFTI_IO_WAITING, hafti_io_this_task()}};
    hafti_io_append(&state->pausing, &task.link);
    state->pausing_count++;
    state->asked_again += again;
    hafti_io_cell_wait(&task.cell, HAFTI_IO_TO_THE_END, HAFT_IO_FOREVER, waits_for);
}

static void wake_pausing(state_t *state) {
    state->asked = true;
    state->asked_again = state->pausing_count = 0;
    while (!hafti_io_ring_empty(&state->pausing)) {
        pausing_t *task = HAFTI_IO_OWNER(state->pausing.next, pausing_t, link);
        hafti_io_unlink(&task->link);
        hafti_io_cell_win(&task->cell, HAFTI_IO_WOKEN);
    }
}

/* Nobody can go on but, perhaps, those that pause: once all of them have asked again in vain it is
   for the time, or for another thread of the program, which is given half a second. */
static bool pausing_go_on(state_t *state, bool time_can_pass) {
    enum { PATIENCE = 500, MILLISECOND = 1000000 };
    if (state->pausing_count == 0)
        return false;
    bool in_vain = state->asked && state->asked_again == state->pausing_count;
    if (in_vain && (time_can_pass || state->patience == PATIENCE))
        return false;
    if (in_vain)
        nanosleep(&(struct timespec){0, MILLISECOND}, NULL);
    state->patience = in_vain ? state->patience + 1 : 0;
    wake_pausing(state);
    return true;
}

static void poll_time(hafti_io_worker_t *worker, int64_t nanoseconds) {
    state_t *state = worker->backend_state;
    if (nanoseconds == 0)
        return;
    bool some = wake_by_real(state);
    if (!some && pausing_go_on(state, nanoseconds > 0))
        return;
    state->asked = false; /* Others go on. */
    if (some)
        return;
    if (nanoseconds > 0) {
        int64_t *now = &worker->simulated->now;
        *now += nanoseconds;
        if (*now >= HAFTI_IO_LATEST) /* all deadlines that are left have come */
            *now = HAFT_IO_FOREVER - 1;
        return;
    }
    fprintf(stderr, "haft-io: nobody can go on:\n");
    haft_io_scope_t *root = &worker->crew->root;
    unsigned depth = 0;
    for (haft_io_scope_t *scope = root; scope != NULL;
         scope = hafti_io_next_scope(scope, root, true, &depth))
        tell_who_waits(scope);
    if (!root->cancelled)
        hafti_io_scope_cancel(root, -EDEADLK);
    else if (!cancel_shielded(root))
        hafti_io_misuse("Tasks wait for ever where no cancel reaches them.");
}

/* ---- The table ---- */

static void interrupt_simulation(hafti_io_worker_t *worker) {
    (void)worker;
}

static void stop_simulation(hafti_io_worker_t *worker) {
    state_t *state = worker->backend_state;
    hafti_io_simulated_network_stop(state);
    hafti_io_simulated_datagrams_stop(state);
    for (hafti_io_link_t *link = state->objects.next; link != &state->objects; link = link->next) {
        object_t *object = hafti_io_object_at_link(link);
        if (!object->open)
            continue;
        object->open = false;
        if (object->kind == HAFTI_IO_A_FILE)
            hafti_io_file_stop_using(object->file);
        if (object->kind == HAFTI_IO_A_REAL_END)
            hafti_io_close_file(object->real);
        if (object->kind == HAFTI_IO_A_STREAM)
            hafti_io_simulated_end_stops(object);
    }
    while (!hafti_io_ring_empty(&state->objects))
        hafti_io_object_free(hafti_io_object_at_link(state->objects.next));
    for (int i = 0; i < state->count; i++)
        free(state->numbers[i]);
    free(state->numbers);
    hafti_io_simulated_files_stop(state);
    free(state);
}

static int start_simulation(hafti_io_worker_t *worker) {
    state_t *state = calloc(1, sizeof *state);
    if (state == NULL)
        return -ENOMEM;
    state->simulated = worker->simulated;
    state->first = hafti_io_first_number(worker->simulated->seed);
    state->descriptors = worker->crew->descriptors;
    state->close_object = close_object;
    hafti_io_ring(&state->objects);
    hafti_io_ring(&state->closed);
    hafti_io_ring(&state->unused);
    hafti_io_ring(&state->mixed);
    hafti_io_ring(&state->pausing);
    hafti_io_ring(&state->late);
    hafti_io_ring(&state->changes);
    worker->backend_state = state;
    int code = worker->simulated->files ? hafti_io_simulated_files_start(state) : 0;
    if (code != 0)
        stop_simulation(worker);
    return code;
}

static const hafti_io_backend_t simulation = {
    .name = "simulation",
    .start = start_simulation,
    .stop = stop_simulation,
    .operate = operate_simulated,
    .close = close_number,
    .poll_several = poll_several_simulated,
    .poll = poll_time,
    .interrupt = interrupt_simulation,
};

static const hafti_io_system_t simulated_system = {
    .is_stream = is_stream,
    .network = {.pipe = hafti_io_network_pipe,
                .socket = hafti_io_network_socket,
                .socket_pair = hafti_io_network_pair,
                .bind = hafti_io_network_bind,
                .listen = hafti_io_network_listen,
                .port = hafti_io_network_port,
                .shutdown = hafti_io_network_shutdown,
                .real_of = hafti_io_network_real_of,
                .host_of = hafti_io_network_host_of},
    .files = {.open = hafti_io_files_open,
              .pread = hafti_io_files_pread,
              .pwrite = hafti_io_files_pwrite,
              .fsync = hafti_io_files_fsync,
              .seek = hafti_io_files_seek,
              .list = hafti_io_files_list,
              .mkdir = hafti_io_files_mkdir,
              .remove = hafti_io_files_remove,
              .rename = hafti_io_files_rename,
              .stat = hafti_io_files_stat},
};

bool haft_io_simulates;

/* 0, after a message: the environment variable is not a seed. */
static uint64_t choose_seed(const haft_io_simulation_options_t *options) {
    if (options->seed != 0)
        return options->seed;
    const char *text = getenv("HAFT_IO_SEED");
    if (text == NULL || text[0] == '\0')
        return (uint64_t)hafti_io_clock() | 1;
    char *end;
    errno = 0;
    uint64_t seed = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && seed != 0)
        return seed;
    fprintf(stderr,
            "haft-io: HAFT_IO_SEED is '%s': it has to be a seed that a simulation has printed.\n",
            text);
    return 0;
}

int haft_io_simulate(void *(*main)(void *), void *argument) {
    return haft_io_simulate_with(NULL, main, argument);
}

int haft_io_simulate_with(const haft_io_simulation_options_t *options, void *(*main)(void *),
                          void *argument) {
    enum { NEW_YEAR_2025 = 1735689600 }; /* the first second, in UTC */
    static const haft_io_simulation_options_t defaults = {0};
    if (options == NULL)
        options = &defaults;
    if (hafti_io_worker() != NULL) /* as haft_io_run: none has begun whose seed could be told */
        return -EBUSY;
    uint64_t seed = choose_seed(options);
    if (seed == 0)
        return -EINVAL;
    hafti_io_simulated_t simulated = {.seed = seed,
                                      .random = seed,
                                      .random_bytes = ~seed,
                                      .now = HAFTI_IO_BEGINNING,
                                      .date = options->date != 0 ? options->date : NEW_YEAR_2025,
                                      .short_counts = options->short_counts,
                                      .network = options->network,
                                      .files = options->files,
                                      .faults_one_in = options->faults_one_in,
                                      .switches_one_in = options->switches_one_in,
                                      .backend = &simulation,
                                      .system = &simulated_system};
    __atomic_store_n(&haft_io_simulates, true, __ATOMIC_RELAXED);
    hafti_io_ring(&simulated.lots.ring);
    int code = hafti_io_run_with(main, argument, NULL, &simulated);
    free(simulated.lots.tasks);
    if (code != 0)
        fprintf(stderr, "haft-io: the simulation ended with %d (%s); the seed was %llu\n", code,
                strerror(-code), (unsigned long long)seed);
    return code;
}

uint64_t haft_io_seed(void) {
    const hafti_io_simulated_t *simulated = hafti_io_simulated();
    return simulated != NULL ? simulated->seed : 0;
}
