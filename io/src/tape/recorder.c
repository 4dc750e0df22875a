/* SPDX-License-Identifier: MIT */
/*
 * The back end of a run that is recorded: the real one, whose answers are kept. An operation of the
 * real one may be made of others, which come here, too: the runner's `taped` marks them, and they
 * are not kept.
 *
 *   answer            | its bytes
 *   read, receive     | those that came
 *   receive from      | the size of the address (4 bytes), the address, those that came
 *   receive a message | the sizes of the address and of the control data (4 bytes each), the flags
 *                     |   (4), the address, the control data, those that came
 *   poll of several   | the events of each (2 bytes)
 *   others            | none
 */
#include "tapes.h"

typedef hafti_io_tape_t tape_t;

static void keep_parts(tape_t *tape, const struct iovec *parts, size_t count, size_t size) {
    for (size_t i = 0; i < count && size != 0; i++) {
        size_t now = parts[i].iov_len < size ? parts[i].iov_len : size;
        hafti_io_keep_bytes(tape, parts[i].iov_base, now);
        size -= now;
    }
}

/* Bytes of room for the sender's address; the address may be larger. */
static size_t room_for_address(const hafti_io_operation_t *o) {
    const struct msghdr *message = o->kind == HAFTI_IO_RECEIVE_MESSAGE ? o->buffer : NULL;
    return message != NULL ? message->msg_namelen : o->address_size != NULL ? *o->address_size : 0;
}

static void keep_message(tape_t *tape, const hafti_io_operation_t *o, ssize_t done,
                         size_t room_for_name) {
    const struct msghdr *message = o->buffer;
    size_t name = message->msg_name != NULL ? message->msg_namelen : 0;
    size_t control = message->msg_control != NULL ? message->msg_controllen : 0;
    uint32_t head[3] = {(uint32_t)name, (uint32_t)control, (uint32_t)message->msg_flags};
    size_t room = 0;
    name = name < room_for_name ? name : room_for_name;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        room += message->msg_iov[i].iov_len;
    size_t size = (size_t)done < room ? (size_t)done : room;
    hafti_io_keep_head(tape, HAFTI_IO_TAPED_OPERATION + o->kind, o->descriptor, done,
                       sizeof head + name + control + size);
    hafti_io_keep_bytes(tape, head, sizeof head);
    hafti_io_keep_bytes(tape, message->msg_name, name);
    hafti_io_keep_bytes(tape, message->msg_control, control);
    keep_parts(tape, message->msg_iov, message->msg_iovlen, size);
}

static void keep_received(tape_t *tape, const hafti_io_operation_t *o, ssize_t done,
                          size_t room_for_name) {
    /* With MSG_TRUNC the result is the size of the datagram. */
    size_t size = (size_t)done < o->size ? (size_t)done : o->size;
    if (o->address == NULL) {
        hafti_io_keep(tape, HAFTI_IO_TAPED_OPERATION + o->kind, o->descriptor, done, o->buffer,
                      size);
        return;
    }
    uint32_t address = *o->address_size;
    size_t name = address < room_for_name ? address : room_for_name;
    hafti_io_keep_head(tape, HAFTI_IO_TAPED_OPERATION + o->kind, o->descriptor, done,
                       sizeof address + name + size);
    hafti_io_keep_bytes(tape, &address, sizeof address);
    hafti_io_keep_bytes(tape, o->address, name);
    hafti_io_keep_bytes(tape, o->buffer, size);
}

static void keep_operation(tape_t *tape, const hafti_io_operation_t *o, ssize_t done,
                           size_t room_for_name) {
    unsigned kind = HAFTI_IO_TAPED_OPERATION + hafti_io_taped_kind(o);
    if (done > 0)
        switch (o->kind) {
        case HAFTI_IO_READ:
            hafti_io_keep(tape, kind, o->descriptor, done, o->buffer, (size_t)done);
            return;
        case HAFTI_IO_READ_LENT:
            hafti_io_keep(tape, kind, o->descriptor, done, *(const void **)o->buffer, (size_t)done);
            return;
        case HAFTI_IO_READ_PARTS:
            hafti_io_keep_head(tape, kind, o->descriptor, done, (size_t)done);
            keep_parts(tape, o->buffer, o->size, (size_t)done);
            return;
        default:
            break;
        }
    if (done >= 0 && o->kind == HAFTI_IO_RECEIVE_MESSAGE)
        keep_message(tape, o, done, room_for_name);
    else if (done >= 0 && o->kind == HAFTI_IO_RECEIVE && hafti_io_taped_kind(o) != HAFTI_IO_READ)
        keep_received(tape, o, done, room_for_name);
    else if (done > 0 && o->kind == HAFTI_IO_RECEIVE)
        hafti_io_keep(tape, kind, o->descriptor, done, o->buffer, (size_t)done);
    else
        hafti_io_keep(tape, kind, o->descriptor, done, NULL, 0);
}

static ssize_t operate(hafti_io_runner_t *runner, hafti_io_operation_t *operation) {
    tape_t *tape = runner->worker->tape;
    if (runner->taped || tape->keeps)
        return tape->real->operate(runner, operation);
    size_t room = room_for_address(operation);
    runner->taped = true;
    ssize_t done = tape->real->operate(runner, operation);
    runner->taped = false;
    keep_operation(runner->worker->tape, operation, done, room); /* its request may have ended */
    return done;
}

/* The real one's shorter way, which may end in its `operate`. */
static ssize_t transfer(hafti_io_runner_t *runner, enum hafti_io_kind kind, int descriptor,
                        const void *buffer, size_t size) {
    tape_t *tape = runner->worker->tape;
    if (HAFTI_IO_UNLIKELY(runner->taped || tape->keeps))
        return tape->real->transfer(runner, kind, descriptor, buffer, size);
    runner->taped = true;
    ssize_t done = tape->real->transfer(runner, kind, descriptor, buffer, size);
    runner->taped = false;
    enum hafti_io_kind kept = kind == HAFTI_IO_RECEIVE ? HAFTI_IO_READ : kind;
    bool comes = done > 0 && kind != HAFTI_IO_WRITE;
    hafti_io_keep(runner->worker->tape, HAFTI_IO_TAPED_OPERATION + kept, descriptor, done,
                  kind == HAFTI_IO_READ_LENT && comes ? *(void *const *)buffer : buffer,
                  comes ? (size_t)done : 0);
    return done;
}

/* Called when the task has returned, so that its answer comes after all others of its turn. */
static bool watch(hafti_io_worker_t *worker, hafti_io_descriptor_t *entry, int descriptor) {
    bool waits = worker->tape->real->watch(worker, entry, descriptor);
    hafti_io_keep(worker->tape, HAFTI_IO_TAPED_WATCH, descriptor, waits, NULL, 0);
    return waits;
}

static int close_one(hafti_io_worker_t *worker, int descriptor) {
    tape_t *tape = hafti_io_tape_here();
    int code = worker->tape->real->close(worker, descriptor);
    if (tape != NULL && tape == worker->tape)
        hafti_io_keep(tape, HAFTI_IO_TAPED_CLOSE, descriptor, code, NULL, 0);
    return code;
}

static int poll_several(hafti_io_runner_t *runner, struct pollfd *entries, size_t count,
                        int64_t deadline, unsigned turn) {
    tape_t *tape = runner->worker->tape;
    if (runner->taped || tape->keeps)
        return tape->real->poll_several(runner, entries, count, deadline, turn);
    runner->taped = true;
    int ready = tape->real->poll_several(runner, entries, count, deadline, turn);
    runner->taped = false;
    tape = runner->worker->tape;
    hafti_io_keep_head(tape, HAFTI_IO_TAPED_POLLED, -1, ready, count * sizeof entries->revents);
    for (size_t i = 0; i < count; i++)
        hafti_io_keep_bytes(tape, &entries[i].revents, sizeof entries[i].revents);
    return ready;
}

void hafti_io_record_backend(hafti_io_worker_t *worker) {
    tape_t *tape = worker->tape;
    const hafti_io_backend_t *real = worker->backend;
    tape->real = real;
    tape->backend = *real;
    tape->backend.operate = operate;
    tape->backend.transfer = transfer;
    tape->backend.watch = real->watch != NULL ? watch : NULL;
    tape->backend.send_last = NULL; /* it is sent by an operation, which has an answer */
    tape->backend.settle = NULL;
    tape->backend.close = close_one;
    tape->backend.poll_several = poll_several;
    worker->backend = &tape->backend;
}
