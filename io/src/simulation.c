/* SPDX-License-Identifier: MIT */
/*
 * Runs for tests: the order of tasks and the sizes of transfers are drawn from a seed, time is virtual,
 * and streams exist in memory only. So a run is repeated by its seed.
 *
 * What one end of a stream writes lies in the buffer of the other.
 */
#include "simulation.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST = HAFT_IO_FIRST_SIMULATED, STREAM_SIZE = HAFT_IO_STREAM_SIZE };
/* Of recv(2) and send(2). The last three change nothing here. */
enum {
    FLAGS = MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_CMSG_CLOEXEC,
    WHOLE_PEEK = MSG_PEEK | MSG_WAITALL
};

typedef haft_io_simulated_state_t state_t;
typedef haft_io_object_t object_t;

/* ---- Chance (splitmix64) ---- */

uint64_t haft_io_random(haft_io_simulated_t *simulated, uint64_t bound) {
    uint64_t z = simulated->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % bound;
}

/* ---- The table of objects ---- */

bool haft_io_is_simulated(int descriptor) {
    const haft_io_worker_t *worker = haft_io_worker();
    return descriptor >= FIRST && worker != NULL && worker->simulated != NULL;
}

object_t *haft_io_object_of(state_t *state, int descriptor) {
    int index = descriptor - FIRST;
    return index >= 0 && index < state->count && state->objects[index]->open ? state->objects[index]
                                                                             : NULL;
}

static haft_io_descriptor_t *waiters_of(state_t *state, int descriptor) {
    return haft_io_descriptor(state->descriptors, descriptor, true);
}

object_t *haft_io_object_new(state_t *state, enum haft_io_object_kind kind) {
    if (state->count == state->room) {
        size_t room = state->room == 0 ? 16 : 2 * (size_t)state->room;
        object_t **grown = realloc(state->objects, room * sizeof(object_t *));
        if (grown == NULL)
            return NULL;
        state->objects = grown;
        state->room = (int)room;
    }
    object_t *object = calloc(1, sizeof *object);
    if (object == NULL || waiters_of(state, FIRST + state->count) == NULL) {
        free(object);
        return NULL;
    }
    *object = (object_t){.kind = kind, .descriptor = FIRST + state->count, .open = true};
    state->objects[state->count++] = object;
    return object;
}

void haft_io_object_wake(state_t *state, const object_t *object, bool closed) {
    haft_io_descriptor_t *waiters = waiters_of(state, object->descriptor);
    haft_io_wake(waiters, HAFT_IO_INWARD, closed, false);
    haft_io_wake(waiters, HAFT_IO_OUTWARD, closed, false);
}

void haft_io_object_close(state_t *state, object_t *object) {
    object->open = false;
    haft_io_object_wake(state, object, true);
    if (object->kind == HAFT_IO_A_LISTENER)
        haft_io_simulated_listener_closes(state, object);
    if (object->kind == HAFT_IO_A_FILE)
        haft_io_simulated_file_closes(object->file);
    if (object->kind != HAFT_IO_A_STREAM)
        return;
    free(object->bytes);
    object->bytes = NULL;
    object->peer->finished = object->peer->ended = true;
    haft_io_object_wake(state, object->peer, false);
}

/* ---- Streams ---- */

int haft_io_object_join(object_t *one, object_t *other) {
    object_t *ends[] = {one, other};
    char *bytes[] = {malloc(STREAM_SIZE), malloc(STREAM_SIZE)};
    if (bytes[0] == NULL || bytes[1] == NULL) {
        free(bytes[0]);
        free(bytes[1]);
        return -ENOMEM;
    }
    for (int i = 0; i < 2; i++) {
        ends[i]->kind = HAFT_IO_A_STREAM;
        ends[i]->peer = ends[1 - i];
        ends[i]->bytes = bytes[i];
    }
    return 0;
}

void haft_io_object_break(state_t *state, object_t *end) {
    end->broken = end->peer->broken = true;
    haft_io_object_wake(state, end, false);
    haft_io_object_wake(state, end->peer, false);
}

size_t haft_io_drawn_size(haft_io_simulated_t *simulated, size_t size) {
    return simulated->short_counts && size > 1 ? 1 + haft_io_random(simulated, size) : size;
}

haft_io_memory_t haft_io_memory_of(const struct iovec *parts, size_t count) {
    haft_io_memory_t memory = {parts, count, 0};
    for (size_t i = 0; i < count; i++)
        memory.size += parts[i].iov_len;
    return memory;
}

void haft_io_memory_copy(const haft_io_memory_t *memory, char *ring, size_t length, size_t first,
                         size_t size, bool into_ring) {
    for (size_t i = 0; i < memory->count && size != 0; i++) {
        char *bytes = memory->parts[i].iov_base;
        for (size_t left = memory->parts[i].iov_len, run; left != 0 && size != 0; left -= run) {
            char *in_ring = &ring[first % length];
            run = length - first % length;
            run = run < left ? run : left;
            run = run < size ? run : size;
            if (into_ring)
                memcpy(in_ring, bytes, run);
            else
                memcpy(bytes, in_ring, run);
            bytes += run;
            first += run;
            size -= run;
        }
    }
}

static ssize_t read_end(haft_io_simulated_t *simulated, object_t *end, const haft_io_memory_t *into,
                        int flags) {
    size_t size = into->size;
    if (end->broken)
        return -ECONNRESET;
    if (end->count == 0)
        return end->finished || size == 0 ? 0 : -EAGAIN;
    if ((flags & WHOLE_PEEK) == WHOLE_PEEK && end->count < size && end->count < STREAM_SIZE &&
        !end->finished)
        return -EAGAIN;
    size = size < end->count ? size : end->count;
    if ((flags & MSG_WAITALL) == 0)
        size = haft_io_drawn_size(simulated, size);
    haft_io_memory_copy(into, end->bytes, STREAM_SIZE, end->first, size, false);
    if ((flags & MSG_PEEK) != 0)
        return (ssize_t)size;
    end->first = (end->first + size) % STREAM_SIZE;
    end->count -= size;
    return (ssize_t)size;
}

static ssize_t write_end(haft_io_simulated_t *simulated, const object_t *end,
                         const haft_io_memory_t *from) {
    object_t *peer = end->peer;
    if (end->broken)
        return -ECONNRESET;
    if (end->ended)
        return -EPIPE;
    size_t room = STREAM_SIZE - peer->count, size = from->size;
    if (room == 0)
        return size == 0 ? 0 : -EAGAIN;
    size = haft_io_drawn_size(simulated, size < room ? size : room);
    haft_io_memory_copy(from, peer->bytes, STREAM_SIZE, peer->first + peer->count, size, true);
    peer->count += size;
    return (ssize_t)size;
}

static int events_of_stream(const object_t *end, short events) {
    int ready = end->broken ? POLLERR : 0;
    if (end->count != 0 || end->finished || end->broken)
        ready |= events & POLLIN;
    if (end->ended || end->broken || end->peer->count < STREAM_SIZE)
        ready |= events & POLLOUT;
    return ready;
}

/* ---- Faults ---- */

bool haft_io_fault_is_drawn(haft_io_simulated_t *simulated) {
    return simulated->faults_one_in != 0 &&
           haft_io_random(simulated, simulated->faults_one_in) == 0;
}

int haft_io_fault_of(state_t *state, object_t *object, bool writes) {
    int code = object->fails;
    object->fails = 0;
    if (code != 0 || !haft_io_fault_is_drawn(state->simulated))
        return code;
    switch (object->kind) {
    case HAFT_IO_A_SOCKET:
        return haft_io_random(state->simulated, 2) == 0 ? -ECONNREFUSED : -ETIMEDOUT;
    case HAFT_IO_A_LISTENER:
        return -EMFILE;
    case HAFT_IO_A_FILE:
        return writes && haft_io_random(state->simulated, 2) == 0 ? -ENOSPC : -EIO;
    default:
        haft_io_object_break(state, object);
        return -ECONNRESET;
    }
}

/* ---- Operations ---- */

static int events_of(const object_t *object, short events) {
    if (object->kind == HAFT_IO_A_STREAM)
        return events_of_stream(object, events);
    if (object->kind == HAFT_IO_A_LISTENER)
        return haft_io_ring_empty(&object->arrived) ? 0 : events & POLLIN;
    return POLLHUP |
           (events & POLLOUT); /* as the system has it of a socket that is not connected */
}

static bool sends(const haft_io_operation_t *operation) {
    return haft_io_events_of(operation) == POLLOUT;
}

/* Where the bytes of an operation go to, or come from. Nothing comes along with a message. */
static int memory_of_operation(const haft_io_operation_t *operation, struct iovec *part,
                               haft_io_memory_t *memory) {
    *part = (struct iovec){operation->buffer, operation->size};
    *memory = haft_io_memory_of(part, 1);
    if (operation->kind == HAFT_IO_READ_PARTS || operation->kind == HAFT_IO_WRITE_PARTS)
        *memory = haft_io_memory_of(operation->buffer, operation->size);
    if (operation->kind != HAFT_IO_RECEIVE_MESSAGE && operation->kind != HAFT_IO_SEND_MESSAGE)
        return 0;
    struct msghdr *message = operation->buffer;
    if (message == NULL)
        return -EFAULT;
    if (sends(operation) && message->msg_controllen != 0)
        return -EOPNOTSUPP;
    if (!sends(operation)) {
        message->msg_namelen = 0;
        message->msg_controllen = 0;
        message->msg_flags = 0;
    }
    *memory = haft_io_memory_of(message->msg_iov, message->msg_iovlen);
    return 0;
}

static ssize_t attempt(haft_io_worker_t *worker, object_t *object,
                       const haft_io_operation_t *operation);

static ssize_t attempt_here(const haft_io_operation_t *operation) {
    haft_io_worker_t *worker = haft_io_worker();
    return attempt(worker, haft_io_object_of(worker->backend_state, operation->descriptor),
                   operation);
}

static ssize_t transfer_file(haft_io_worker_t *worker, object_t *object,
                             const haft_io_operation_t *operation) {
    if (operation->kind != HAFT_IO_READ && operation->kind != HAFT_IO_WRITE &&
        operation->kind != HAFT_IO_READ_PARTS && operation->kind != HAFT_IO_WRITE_PARTS)
        return -ENOTSOCK;
    struct iovec part;
    haft_io_memory_t memory;
    memory_of_operation(operation, &part, &memory);
    return haft_io_simulated_file_transfers(worker->simulated, object, &memory, &object->position,
                                            sends(operation));
}

static ssize_t transfer(haft_io_worker_t *worker, object_t *end,
                        const haft_io_operation_t *operation) {
    int flags = haft_io_flags_of(operation);
    if ((flags & ~FLAGS) != 0)
        return -EOPNOTSUPP;
    if (end->kind != HAFT_IO_A_STREAM)
        return -ENOTCONN;
    struct iovec part;
    haft_io_memory_t memory;
    ssize_t done = memory_of_operation(operation, &part, &memory);
    if (done != 0)
        return done;
    if (sends(operation))
        done = write_end(worker->simulated, end, &memory);
    else
        done = read_end(worker->simulated, end, &memory, flags);
    if (done > 0 && (flags & MSG_PEEK) == 0)
        haft_io_wake(waiters_of(worker->backend_state, end->peer->descriptor),
                     sends(operation) ? HAFT_IO_INWARD : HAFT_IO_OUTWARD, false, false);
    return done;
}

static ssize_t attempt(haft_io_worker_t *worker, object_t *object,
                       const haft_io_operation_t *operation) {
    switch (operation->kind) {
    case HAFT_IO_POLL: {
        int ready = events_of(object, (short)operation->flags);
        return ready != 0 ? ready : -EAGAIN;
    }
    case HAFT_IO_ACCEPT:
        return haft_io_simulated_accept(worker->backend_state, object);
    case HAFT_IO_CONNECT:
        return haft_io_simulated_connect(worker->backend_state, object, operation);
    case HAFT_IO_READ_LENT:
        return haft_io_read_into_lent(operation, attempt_here);
    default:
        return object->kind == HAFT_IO_A_FILE ? transfer_file(worker, object, operation)
                                              : transfer(worker, object, operation);
    }
}

static ssize_t operate(haft_io_runner_t *runner, haft_io_operation_t *operation) {
    if (operation->descriptor < FIRST)
        return haft_io_operate_blocking(operation);
    state_t *state = runner->worker->backend_state;
    object_t *object = haft_io_object_of(state, operation->descriptor);
    if (object == NULL)
        return -EBADF;
    bool may_fail = operation->kind != HAFT_IO_POLL;
    ssize_t done = may_fail ? haft_io_fault_of(state, object, sends(operation)) : 0;
    if (done != 0)
        return done;
    for (int code = 0; code == 0;) {
        done = object->open ? attempt(runner->worker, object, operation) : -EBADF;
        if (done != -EAGAIN || haft_io_must_not_wait(operation))
            break;
        code = haft_io_wait_on(waiters_of(state, operation->descriptor), operation, runner->task);
        done = code;
    }
    if (operation->kind == HAFT_IO_CONNECT)
        haft_io_simulated_connect_ends(state, object, operation, done);
    return done;
}

static haft_io_descriptor_t *find(haft_io_worker_t *worker, int descriptor) {
    return haft_io_object_of(worker->backend_state, descriptor) != NULL
               ? waiters_of(worker->backend_state, descriptor)
               : NULL;
}

static int look_at_objects(state_t *state, struct pollfd *entries, size_t count) {
    int ready = 0;
    for (size_t i = 0; i < count; i++) {
        const object_t *object = haft_io_object_of(state, entries[i].fd);
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

/* Real ones: what does not come in time takes its time in the simulation, too. */
static int poll_real(haft_io_simulated_t *simulated, struct pollfd *entries, size_t count,
                     int64_t deadline) {
    int64_t until = HAFT_IO_FOREVER;
    if (deadline != HAFT_IO_FOREVER)
        until = haft_io_clock() + (deadline - simulated->now);
    int ready = haft_io_poll_blocking(entries, count, until);
    if (ready == 0 && deadline > simulated->now)
        simulated->now = deadline;
    return ready;
}

static bool has_objects(const struct pollfd *entries, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (entries[i].fd >= FIRST)
            return true;
    return false;
}

static int poll_several(haft_io_runner_t *runner, struct pollfd *entries, size_t count,
                        int64_t deadline) {
    if (!has_objects(entries, count))
        return poll_real(runner->worker->simulated, entries, count, deadline);
    for (;;) {
        int ready = look_at_objects(runner->worker->backend_state, entries, count);
        if (ready != 0 || deadline <= runner->worker->simulated->now)
            return ready;
        int code = haft_io_wait_on_several(find, runner, entries, count, deadline);
        if (code != 0 && code != -ETIMEDOUT)
            return code;
    }
}

static int close_object(haft_io_worker_t *worker, int descriptor) {
    if (descriptor < FIRST)
        return haft_io_close_elsewhere(descriptor);
    object_t *object = haft_io_object_of(worker->backend_state, descriptor);
    if (object == NULL)
        return -EBADF;
    haft_io_object_close(worker->backend_state, object);
    return 0;
}

static haft_io_worker_t *simulating(const char *function) {
    haft_io_worker_t *worker = haft_io_worker();
    if (worker == NULL || worker->simulated == NULL)
        haft_io_misuse("%s was called outside of haft_io_simulate.", function);
    return worker;
}

int haft_io_simulated_pair(int ends[2]) {
    state_t *state = simulating("haft_io_simulated_pair")->backend_state;
    object_t *one = haft_io_object_new(state, HAFT_IO_A_SOCKET);
    object_t *other = haft_io_object_new(state, HAFT_IO_A_SOCKET);
    if (one == NULL || other == NULL || haft_io_object_join(one, other) != 0) {
        if (one != NULL)
            one->open = false;
        if (other != NULL)
            other->open = false;
        return -ENOMEM;
    }
    ends[0] = one->descriptor;
    ends[1] = other->descriptor;
    return 0;
}

int haft_io_end_simulated_output(int descriptor) {
    state_t *state = haft_io_worker()->backend_state;
    object_t *end = haft_io_object_of(state, descriptor);
    if (end == NULL)
        return -EBADF;
    switch (end->kind) {
    case HAFT_IO_A_FILE:
        return -ENOTSOCK;
    case HAFT_IO_A_SOCKET:
        return -ENOTCONN;
    case HAFT_IO_A_LISTENER: /* as Linux has it */
        return 0;
    case HAFT_IO_A_STREAM:
        break;
    }
    end->ended = end->peer->finished = true;
    haft_io_object_wake(state, end, false);
    haft_io_object_wake(state, end->peer, false);
    return 0;
}

void haft_io_simulated_break(int descriptor) {
    state_t *state = simulating("haft_io_simulated_break")->backend_state;
    object_t *end = haft_io_object_of(state, descriptor);
    if (end == NULL || end->kind != HAFT_IO_A_STREAM)
        haft_io_misuse("haft_io_simulated_break was given no open end of a stream.");
    haft_io_object_break(state, end);
}

void haft_io_simulated_fail(int descriptor, int code) {
    object_t *object =
        haft_io_object_of(simulating("haft_io_simulated_fail")->backend_state, descriptor);
    if (object == NULL)
        haft_io_misuse("haft_io_simulated_fail was given no open descriptor of the simulation.");
    if (code >= 0)
        haft_io_misuse("haft_io_simulated_fail takes a negative error number; it was given %d.",
                       code);
    object->fails = code;
}

size_t haft_io_simulated_count(void) {
    const state_t *state = simulating("haft_io_simulated_count")->backend_state;
    size_t count = 0;
    for (int i = 0; i < state->count; i++)
        count += state->objects[i]->open;
    return count;
}

/* ---- Time, and nobody who can go on ---- */

static void tell_who_waits(const haft_io_scope_t *scope) {
    for (const haft_io_link_t *link = scope->tasks.next; link != &scope->tasks; link = link->next) {
        const haft_io_runner_t *runner = HAFT_IO_OWNER(link, haft_io_runner_t, link);
        fprintf(stderr, "haft-io:   the task '%s' waits for: %s\n", haft_io_task_name(runner->task),
                runner->waits_for != NULL ? runner->waits_for : "?");
    }
}

/* Those that no cancel has reached yet, each the outermost of its kind. False: there is none. */
static bool cancel_shielded(haft_io_scope_t *root) {
    bool some = false, down;
    unsigned depth = 0;
    for (haft_io_scope_t *scope = root; scope != NULL;
         scope = haft_io_next_scope(scope, root, down, &depth)) {
        down = scope->cancelled;
        if (down)
            continue;
        haft_io_scope_cancel(scope, -EDEADLK);
        some = true;
    }
    return some;
}

static void poll_time(haft_io_worker_t *worker, int64_t nanoseconds) {
    if (nanoseconds >= 0) {
        worker->simulated->now += nanoseconds;
        return;
    }
    fprintf(stderr, "haft-io: nobody can go on:\n");
    haft_io_scope_t *root = &worker->crew->root;
    unsigned depth = 0;
    for (haft_io_scope_t *scope = root; scope != NULL;
         scope = haft_io_next_scope(scope, root, true, &depth))
        tell_who_waits(scope);
    if (!root->cancelled)
        haft_io_scope_cancel(root, -EDEADLK);
    else if (!cancel_shielded(root))
        haft_io_misuse("Tasks wait for ever where no cancel reaches them.");
}

/* ---- The table ---- */

static void interrupt(haft_io_worker_t *worker) {
    (void)worker;
}

static void stop(haft_io_worker_t *worker) {
    state_t *state = worker->backend_state;
    haft_io_simulated_network_stop(state);
    for (int i = 0; i < state->count; i++) {
        if (state->objects[i]->open && state->objects[i]->kind == HAFT_IO_A_FILE)
            haft_io_simulated_file_closes(state->objects[i]->file);
        free(state->objects[i]->bytes);
        free(state->objects[i]);
    }
    free(state->objects);
    haft_io_simulated_files_stop(state);
    free(state);
}

static int start(haft_io_worker_t *worker) {
    state_t *state = calloc(1, sizeof *state);
    if (state == NULL)
        return -ENOMEM;
    state->simulated = worker->simulated;
    state->descriptors = worker->crew->descriptors;
    worker->backend_state = state;
    int code = worker->simulated->files ? haft_io_simulated_files_start(state) : 0;
    if (code != 0)
        stop(worker);
    return code;
}

const haft_io_backend_t haft_io_simulation = {
    .name = "simulation",
    .start = start,
    .stop = stop,
    .operate = operate,
    .close = close_object,
    .poll_several = poll_several,
    .poll = poll_time,
    .interrupt = interrupt,
};

/* 0, after a message: the environment has something else than a seed. */
static uint64_t choose_seed(const haft_io_simulation_t *options) {
    if (options->seed != 0)
        return options->seed;
    const char *text = getenv("HAFT_IO_SEED");
    if (text == NULL || text[0] == '\0')
        return (uint64_t)haft_io_clock() | 1;
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

int haft_io_simulate(void *(*main)(void *), void *argument, const haft_io_simulation_t *options) {
    static const haft_io_simulation_t defaults = {0};
    if (options == NULL)
        options = &defaults;
    if (haft_io_worker() != NULL) /* as haft_io_run: none has begun whose seed could be told */
        return -EBUSY;
    uint64_t seed = choose_seed(options);
    if (seed == 0)
        return -EINVAL;
    haft_io_simulated_t simulated = {.seed = seed,
                                     .random = seed,
                                     .now = HAFT_IO_SECOND,
                                     .short_counts = options->short_counts,
                                     .network = options->network,
                                     .files = options->files,
                                     .faults_one_in = options->faults_one_in};
    int code = haft_io_run_with(main, argument, NULL, &simulated);
    if (code != 0)
        fprintf(stderr, "haft-io: the simulation ended with %d (%s); the seed was %llu\n", code,
                strerror(-code), (unsigned long long)seed);
    return code;
}

uint64_t haft_io_seed(void) {
    const haft_io_worker_t *worker = haft_io_worker();
    return worker != NULL && worker->simulated != NULL ? worker->simulated->seed : 0;
}
