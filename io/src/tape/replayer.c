/* SPDX-License-Identifier: MIT */
/* The back end of a replay, whose answers come from the tape: see recorder.c for what is in them.
   It uses no descriptor of the system, and never sleeps. */
#include "../system_call.h"
#include "tapes.h"

#include <unistd.h>

typedef hafti_io_tape_t tape_t;

/* ---- Operations ---- */

static void scatter(const hafti_io_entry_t *entry, size_t from, const struct iovec *parts,
                    size_t count) {
    for (size_t i = 0; i < count && from < entry->size; i++) {
        size_t left = entry->size - from, now = parts[i].iov_len < left ? parts[i].iov_len : left;
        memcpy(parts[i].iov_base, entry->bytes + from, now);
        from += now;
    }
}

/* Takes at most `size` bytes of the answer; returns how many there were. */
static size_t take(const hafti_io_entry_t *entry, size_t *from, void *into, size_t size) {
    size_t left = entry->size - *from, now = size < left ? size : left;
    if (now != 0 && into != NULL)
        memcpy(into, entry->bytes + *from, now);
    *from += now;
    return now;
}

static void give_message(const hafti_io_entry_t *entry, struct msghdr *message) {
    uint32_t head[3] = {0, 0, 0};
    size_t from = 0, name_room = message->msg_name != NULL ? message->msg_namelen : 0,
           control_room = message->msg_control != NULL ? message->msg_controllen : 0;
    take(entry, &from, head, sizeof head);
    take(entry, &from, message->msg_name, head[0] < name_room ? head[0] : name_room);
    take(entry, &from, message->msg_control, head[1] < control_room ? head[1] : control_room);
    message->msg_namelen = head[0];
    message->msg_controllen = head[1];
    message->msg_flags = (int)head[2];
    scatter(entry, from, message->msg_iov, message->msg_iovlen);
    haft_io_tape_opened_by(message);
}

static void give_received(const hafti_io_entry_t *entry, const hafti_io_operation_t *o) {
    uint32_t address = 0;
    size_t from = 0;
    if (o->address != NULL) {
        take(entry, &from, &address, sizeof address);
        take(entry, &from, o->address, address < *o->address_size ? address : *o->address_size);
        *o->address_size = address;
    }
    if (from < entry->size)
        take(entry, &from, o->buffer, o->size);
}

static ssize_t give_lent(hafti_io_worker_t *worker, const hafti_io_entry_t *entry,
                         const hafti_io_operation_t *o) {
    hafti_io_lent_t *block = hafti_io_lend_block(worker);
    if (block == NULL)
        return -ENOMEM;
    hafti_io_copy_answer(entry, block->bytes, HAFT_IO_LENT_SIZE);
    block->from = 0;
    *(const void **)o->buffer = block->bytes;
    return (ssize_t)entry->result;
}

/* Whether what came then has room in what is asked for now. */
static bool has_room(const hafti_io_entry_t *entry, const hafti_io_operation_t *o) {
    switch (o->kind) {
    case HAFTI_IO_READ:
    case HAFTI_IO_WRITE:
    case HAFTI_IO_SEND:
        return entry->result <= (int64_t)o->size;
    case HAFTI_IO_RECEIVE:
        return o->address != NULL || (o->flags & MSG_TRUNC) != 0 || entry->size <= o->size;
    default:
        return true;
    }
}

/* Writes again to standard output and standard error, for people to read. */
static void show(const hafti_io_operation_t *o, ssize_t done) {
    const struct iovec whole = {o->buffer, o->size};
    bool in_parts = o->kind == HAFTI_IO_WRITE_PARTS;
    const struct iovec *parts = in_parts ? o->buffer : &whole;
    for (size_t i = 0, left = (size_t)done; i < (in_parts ? o->size : 1) && left != 0; i++) {
        size_t now = parts[i].iov_len < left ? parts[i].iov_len : left;
        hafti_io_system_call(SYS_write, o->descriptor, (long)parts[i].iov_base, (long)now, 0, 0, 0);
        left -= now;
    }
}

static ssize_t operate(hafti_io_runner_t *runner, hafti_io_operation_t *o) {
    tape_t *tape = runner->worker->tape;
    unsigned kind = HAFTI_IO_TAPED_OPERATION + hafti_io_taped_kind(o);
    const hafti_io_entry_t *entry = hafti_io_tape_await(runner, kind, o->descriptor);
    if (!has_room(entry, o))
        tape->differs(tape, kind, o->descriptor);
    if (o->kind == HAFTI_IO_ACCEPT)
        hafti_io_tape_occupy(tape, (int)entry->result);
    if (entry->result > 0 && (o->kind == HAFTI_IO_WRITE || o->kind == HAFTI_IO_WRITE_PARTS) &&
        (o->descriptor == STDOUT_FILENO || o->descriptor == STDERR_FILENO))
        show(o, (ssize_t)entry->result);
    if (entry->result < 0 || entry->size == 0)
        return (ssize_t)entry->result;
    switch (o->kind) {
    case HAFTI_IO_READ:
        hafti_io_copy_answer(entry, o->buffer, o->size);
        break;
    case HAFTI_IO_READ_LENT:
        return give_lent(runner->worker, entry, o);
    case HAFTI_IO_READ_PARTS:
        scatter(entry, 0, o->buffer, o->size);
        break;
    case HAFTI_IO_RECEIVE:
        give_received(entry, o);
        break;
    case HAFTI_IO_RECEIVE_MESSAGE:
        give_message(entry, o->buffer);
        break;
    default:
        break;
    }
    return (ssize_t)entry->result;
}

static int poll_several(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                        int64_t deadline, unsigned turn) {
    (void)deadline, (void)turn;
    const hafti_io_entry_t *entry = hafti_io_tape_await(runner, HAFTI_IO_TAPED_POLLED, -1);
    size_t from = 0;
    for (size_t i = 0; i < count; i++) {
        entries[i].revents = 0;
        take(entry, &from, &entries[i].revents, sizeof entries[i].revents);
    }
    return (int)entry->result;
}

static bool watch(hafti_io_worker_t *worker, hafti_io_descriptor_t *unused, int descriptor) {
    (void)unused;
    return hafti_io_tape_answer(worker->tape, HAFTI_IO_TAPED_WATCH, descriptor)->result != 0;
}

/* The number may be another file's from now on, which calls of several parts find out. */
static int close_one(hafti_io_worker_t *worker, int descriptor) {
    hafti_io_tape_t *tape = hafti_io_tape_here();
    if (tape == NULL)
        return 0;
    hafti_io_descriptor_t *known = hafti_io_known_descriptor(worker->crew->descriptors, descriptor);
    if (known != NULL)
        known->life++;
    int code = (int)hafti_io_tape_await(worker->running, HAFTI_IO_TAPED_CLOSE, descriptor)->result;
    if (descriptor != tape->file)
        hafti_io_close_file(descriptor); /* by libhaft-posix, if it is there */
    return code;
}

/* Sets the clock: the tape has the time. */
static void poll_tape(hafti_io_worker_t *worker, int64_t nanoseconds) {
    (void)worker, (void)nanoseconds;
}

static void interrupt(hafti_io_worker_t *worker) {
    (void)worker;
}

static int start(hafti_io_worker_t *worker) {
    (void)worker;
    return 0;
}

static void stop(hafti_io_worker_t *worker) {
    (void)worker;
}

const hafti_io_backend_t hafti_io_replayer = {
    .name = "replay",
    .start = start,
    .stop = stop,
    .operate = operate,
    .transfer = hafti_io_transfer_generally,
    .watch = watch,
    .close = close_one,
    .poll_several = poll_several,
    .poll = poll_tape,
    .interrupt = interrupt,
};
