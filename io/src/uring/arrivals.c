/* SPDX-License-Identifier: MIT */
/*
 * Multishot requests of the back end on io_uring. In a run of one thread two things are asked for
 * once, and arrive until the kernel is told to stop:
 *
 *   what arrives    | asked for by a task that waits in | until
 *   TCP connections | haft_io_accept                    | a poll begins, and no task waits for them
 *   bytes of a TCP  | haft_io_read_lent                 | MOST_AHEAD blocks have come that no
 *     connection    |                                   |   task has asked for; the end, an error
 *   both            |                                   | a poll for the descriptor, or another
 *                   |                                   |   read of it: these know only what the
 *                   |                                   |   kernel still has
 *
 * An arrival waits in a queue for the next such call, and is closed or given back with the
 * descriptor. Bytes arrive in blocks of memory that the kernel has been provided with: it chooses
 * one when something comes. A block that has arrived is the library's as any other that is lent,
 * and another takes its slot. Few bytes that no task waits for are copied, and the block stays: so
 * what waits takes at most some four times as much memory as was sent, and the header of each
 * piece.
 *
 *   asked | asked_back | the kernel
 *   no    |            | has stopped, or was never asked; `code` is why, if that is an error
 *   yes   | no         | adds to the queue
 *   yes   | yes        | may still do so, until it reports that it has stopped
 */
#include "../backends.h"
#include "uring.h"

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

typedef hafti_io_uring_state_t state_t;
typedef hafti_io_arrivals_t arrivals_t;
typedef hafti_io_provided_t provided_t;

enum { MOST_AHEAD = 8 };
enum { MOST_COPIED = 4096 }; /* bytes */

/* ---- Asking for it ---- */

static void *data_of(arrivals_t *arrivals) {
    return (void *)((uintptr_t)arrivals | HAFTI_IO_OF_ARRIVALS);
}

static void ask_for(state_t *state, arrivals_t *arrivals) {
    struct io_uring_sqe *entry = hafti_io_uring_entry(state);
    if (arrivals->receives) {
        io_uring_prep_recv_multishot(entry, arrivals->descriptor, NULL, 0, 0);
        entry->flags |= IOSQE_BUFFER_SELECT;
        entry->buf_group = HAFTI_IO_PROVIDED_GROUP;
    } else {
        io_uring_prep_multishot_accept(entry, arrivals->descriptor, NULL, NULL,
                                       SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    io_uring_sqe_set_data(entry, data_of(arrivals));
    arrivals->asked = true;
    arrivals->asked_back = false;
}

static void ask_to_stop(state_t *state, arrivals_t *arrivals) {
    if (arrivals->asked && !arrivals->asked_back) {
        hafti_io_uring_ask_back(state, data_of(arrivals));
        arrivals->asked_back = true;
    }
}

/* Returns when the kernel has stopped. The completions of both requests, the cancel and the
   cancelled one, are on their way. */
static void await_stop(state_t *state, arrivals_t *arrivals) {
    ask_to_stop(state, arrivals);
    while (arrivals->asked) {
        hafti_io_uring_check(io_uring_submit_and_wait(&state->ring, 1));
        hafti_io_uring_take_completions(state);
    }
}

static void append(arrivals_t *arrivals, hafti_io_lent_t *block, int result, bool copied) {
    block->result = result;
    block->copied = copied;
    block->from = 0;
    if (arrivals->count++ == 0) {
        block->next = block;
    } else {
        block->next = arrivals->last->next;
        arrivals->last->next = block;
    }
    arrivals->last = block;
}

static hafti_io_lent_t *take_first(arrivals_t *arrivals) {
    hafti_io_lent_t *block = arrivals->last->next;
    arrivals->last->next = block->next;
    arrivals->count--;
    return block;
}

static void release(const arrivals_t *arrivals, hafti_io_lent_t *block) {
    if (arrivals->receives && !block->copied)
        hafti_io_take_back(block);
    else
        free(block);
}

static void arrivals_free(arrivals_t *arrivals) {
    arrivals->entry->arrivals = NULL;
    hafti_io_unlink(&arrivals->link);
    while (arrivals->count != 0) {
        hafti_io_lent_t *block = take_first(arrivals);
        if (!arrivals->receives)
            close(block->result);
        release(arrivals, block);
    }
    free(arrivals);
}

/* Asks the kernel, unless it was asked before. False: the descriptor is to be polled. */
static bool kernel_asked(state_t *state, hafti_io_descriptor_t *known, int descriptor,
                         bool receives) {
    arrivals_t *arrivals = known->arrivals;
    if (arrivals != NULL && arrivals->asked)
        return true;
    if (!hafti_io_ring_empty(&known->waiters[HAFTI_IO_INWARD]))
        return false;
    if (arrivals == NULL) {
        arrivals = aligned_alloc(HAFTI_IO_LINE, sizeof *arrivals);
        if (arrivals == NULL)
            return false;
        *arrivals = (arrivals_t){.entry = known, .descriptor = descriptor, .receives = receives};
        hafti_io_append(receives ? &state->receives : &state->accepts, &arrivals->link);
        known->arrivals = arrivals;
    }
    ask_for(state, arrivals);
    return true;
}

/* ---- Connections that the kernel accepts by itself ---- */

/* Errors after which the kernel may accept again: it can do it in principle. */
static bool comes_by_chance(int code) {
    return code == -ECANCELED || code == -EAGAIN || hafti_io_lacks_descriptor(code) ||
           code == -ECONNABORTED;
}

static void accepted(state_t *state, arrivals_t *accepts, int result) {
    if (result >= 0) {
        hafti_io_lent_t *block = malloc(sizeof *block);
        if (block != NULL)
            append(accepts, block, result, false);
        else
            close(result);
    } else if (!comes_by_chance(result)) {
        state->no_multishot_accept = true;
    }
}

void hafti_io_stop_needless_arrivals(state_t *state) {
    state->accept_ended = false;
    for (hafti_io_link_t *link = state->accepts.next, *next; link != &state->accepts; link = next) {
        next = link->next;
        arrivals_t *accepts = HAFTI_IO_OWNER(link, arrivals_t, link);
        if (!hafti_io_ring_empty(&accepts->entry->waiters[HAFTI_IO_INWARD]))
            continue;
        if (accepts->asked)
            ask_to_stop(state, accepts);
        else if (accepts->count == 0)
            arrivals_free(accepts);
    }
}

static int take_accepted(const hafti_io_descriptor_t *known) {
    hafti_io_lent_t *block = take_first(known->arrivals);
    int connection = block->result;
    free(block);
    return connection;
}

/* ---- Bytes that the kernel receives by itself ---- */

/* Appends a copy of the bytes. False: a task waits for them, they are many, or there is no memory:
   the whole block is taken. */
static bool append_copy(arrivals_t *receives, const hafti_io_lent_t *block, int size) {
    bool is_awaited =
        receives->count == 0 && !hafti_io_ring_empty(&receives->entry->waiters[HAFTI_IO_INWARD]);
    hafti_io_lent_t *copy =
        is_awaited || size > MOST_COPIED ? NULL : malloc(sizeof *copy + (size_t)size);
    if (copy == NULL)
        return false;
    HAFTI_IO_TELL_VALGRIND(DEFINED, block->bytes, (size_t)size);
    memcpy(copy->bytes, block->bytes, (size_t)size);
    append(receives, copy, size, true);
    return true;
}

static HAFTI_IO_HOT void received(state_t *state, arrivals_t *receives,
                                  const struct io_uring_cqe *completion) {
    provided_t *provided = state->provided;
    int result = completion->res;
    if ((completion->flags & IORING_CQE_F_BUFFER) != 0) {
        unsigned slot = completion->flags >> IORING_CQE_BUFFER_SHIFT;
        hafti_io_lent_t *block = provided->slots[slot];
        provided->taken++;
        if (result > 0 && !append_copy(receives, block, result)) {
            append(receives, block, result, false);
            block = hafti_io_lend_block(state->worker);
        }
        hafti_io_provide(provided, slot, block);
    }
    if (result == -ENOBUFS)
        hafti_io_provide_more(state, provided);
    else if (result == -EINVAL || result == -EOPNOTSUPP)
        state->no_multishot_receive = true;
    else if (result < 0 && result != -ECANCELED && result != -EINTR && result != -EAGAIN)
        receives->code = result;
    /* Handling a completion does not wait for room in the submission queue; the next completion may
       find some. */
    if (receives->count >= MOST_AHEAD && io_uring_sq_space_left(&state->ring) != 0)
        ask_to_stop(state, receives);
}

static int take_code(arrivals_t *receives) {
    int code = receives->code;
    receives->code = 0;
    return code;
}

/* Takes as many copies as there is room for. */
static __attribute__((noinline)) ssize_t take_copies(arrivals_t *receives, const void **bytes) {
    hafti_io_lent_t *block = hafti_io_lend_block(hafti_io_worker());
    if (block == NULL)
        return -ENOMEM;
    size_t size = 0;
    while (receives->count != 0) {
        const hafti_io_lent_t *copy = receives->last->next;
        size_t there = (size_t)copy->result - copy->from;
        if (!copy->copied || size + there > HAFT_IO_LENT_SIZE)
            break;
        memcpy(block->bytes + size, copy->bytes + copy->from, there);
        size += there;
        free(take_first(receives));
    }
    block->from = 0;
    *bytes = block->bytes;
    return (ssize_t)size;
}

static ssize_t take_received(arrivals_t *receives, const void **bytes) {
    if (receives->count == 0)
        return take_code(receives);
    if (receives->last->next->copied)
        return take_copies(receives, bytes);
    hafti_io_lent_t *block = take_first(receives);
    ssize_t size = block->result - (ssize_t)block->from;
    if (HAFTI_IO_UNLIKELY(block->from != 0)) { /* it is given back by the address of its contents */
        memmove(block->bytes, block->bytes + block->from, (size_t)size);
        block->from = 0;
    }
    HAFTI_IO_TELL_VALGRIND(DEFINED, block->bytes, (size_t)size);
    *bytes = block->bytes;
    return size;
}

/* ---- Bytes or connections, for waiters ---- */

HAFTI_IO_HOT void hafti_io_arrived(state_t *state, arrivals_t *arrivals,
                                   const struct io_uring_cqe *completion) {
    if ((completion->flags & IORING_CQE_F_MORE) == 0)
        arrivals->asked = false;
    if (HAFTI_IO_LIKELY(arrivals->receives)) {
        received(state, arrivals, completion);
    } else {
        accepted(state, arrivals, completion->res);
        state->accept_ended = true;
    }
    hafti_io_wake_alone(arrivals->entry, HAFTI_IO_INWARD);
}

/* Only TCP is asked for: a Unix listener that is shut down ends no accept that the kernel
   repeats. */
static bool may_ask(state_t *state, const hafti_io_descriptor_t *known, int descriptor,
                    bool receives) {
    if (state->worker->shared || hafti_io_is_closing(known))
        return false;
    if (receives ? state->no_multishot_receive : state->no_multishot_accept)
        return false;
    return known->arrivals != NULL ||
           (hafti_io_is_tcp(descriptor) &&
            (!receives || state->provided != NULL || hafti_io_begin_to_provide(state)));
}

ssize_t hafti_io_take_arrival(hafti_io_runner_t *runner, hafti_io_descriptor_t *known,
                              hafti_io_operation_t *operation) {
    state_t *state = runner->worker->backend_state;
    bool receives = operation->kind == HAFTI_IO_READ_LENT;
    for (unsigned turn = 0;;) {
        const arrivals_t *arrivals = known->arrivals;
        if (arrivals != NULL && arrivals->receives != receives) /* it is an error */
            return hafti_io_attempt(operation);
        if (hafti_io_has_arrived(known))
            return receives ? take_received(known->arrivals, operation->buffer)
                            : take_accepted(known);
        ssize_t done = -EAGAIN;
        if (arrivals == NULL || !arrivals->asked) {
            done = hafti_io_uring_attempt(known, operation, turn);
            if (done != -EAGAIN && done != HAFTI_IO_MAY_WAIT)
                return done;
        }
        int code = hafti_io_begin_to_wait_on(known, operation->descriptor);
        if (code != 0)
            return code;
        /* Where the kernel has stopped and nothing has come, it would stop at once again. */
        bool cancelled = hafti_io_is_withdrawn(runner);
        if (cancelled && turn == 0 && arrivals != NULL && arrivals->asked) {
            /* Something may have come since the last poll. */
            hafti_io_uring_look(state);
            turn++;
            continue;
        }
        bool asks = !cancelled && (turn == 0 || (known->arrivals != NULL && arrivals->asked)) &&
                    may_ask(state, known, operation->descriptor, receives) &&
                    kernel_asked(state, known, operation->descriptor, receives);
        if (asks) {
            code = hafti_io_wait_on(known, operation, runner->task);
            state->accept_ended |= !receives;
            turn++;
        } else if (done == -EAGAIN) {
            code = cancelled ? -ECANCELED : hafti_io_uring_await(runner, known, operation, turn++);
        }
        if (code == HAFTI_IO_MAY_WAIT || (!asks && done == HAFTI_IO_MAY_WAIT)) {
            code = 0;
            done = hafti_io_operate_in_pool(runner, operation);
            if (done != HAFTI_IO_MAY_WAIT)
                return done;
        }
        if (code < 0 && code != -EINTR)
            return code;
    }
}

HAFTI_IO_HOT ssize_t hafti_io_uring_read_arrived(hafti_io_runner_t *runner,
                                                 hafti_io_descriptor_t *known, int descriptor,
                                                 const void **bytes) {
    arrivals_t *arrivals = known->arrivals;
    if (HAFTI_IO_LIKELY(arrivals != NULL && arrivals->receives && arrivals->count != 0))
        return take_received(arrivals, bytes);
    return hafti_io_transfer_generally(runner, HAFTI_IO_READ_LENT, descriptor, bytes, 0);
}

/* Reads where the kernel has been asked already, as mostly. */
HAFTI_IO_HOT ssize_t hafti_io_uring_read_lent(hafti_io_runner_t *runner, enum hafti_io_kind kind,
                                              int descriptor, const void *bytes, size_t size) {
    (void)kind, (void)size;
    hafti_io_descriptor_t *known =
        hafti_io_known_descriptor(runner->worker->crew->descriptors, descriptor);
    if (HAFTI_IO_UNLIKELY(known == NULL))
        return hafti_io_transfer_generally(runner, HAFTI_IO_READ_LENT, descriptor, bytes, 0);
    if (hafti_io_may_arrive_for(known) && HAFTI_IO_LIKELY(!hafti_io_is_withdrawn(runner))) {
        hafti_io_cell_t cell = {HAFTI_IO_WAITING, runner->task};
        hafti_io_waiter_t waiter;
        int code = hafti_io_wait_to_read(known, &waiter, &cell);
        if (HAFTI_IO_UNLIKELY(code != 0))
            return code;
    }
    return hafti_io_uring_read_arrived(runner, known, descriptor, (void *)(uintptr_t)bytes);
}

bool hafti_io_uring_watch(hafti_io_worker_t *worker, hafti_io_descriptor_t *known, int descriptor) {
    state_t *state = worker->backend_state;
    const arrivals_t *arrivals = known->arrivals;
    /* A listener receives nothing, and would lose its way to accept. */
    bool receives = arrivals != NULL ? arrivals->receives
                                     : hafti_io_socket_option(descriptor, SO_ACCEPTCONN) == 0;
    return receives && !hafti_io_has_arrived(known) &&
           hafti_io_begin_to_wait_on(known, descriptor) == 0 &&
           may_ask(state, known, descriptor, true) && kernel_asked(state, known, descriptor, true);
}

bool hafti_io_stop_arrivals(state_t *state, const hafti_io_descriptor_t *known) {
    if (known == NULL || known->arrivals == NULL)
        return false;
    await_stop(state, known->arrivals);
    if (hafti_io_has_arrived(known))
        return true;
    arrivals_free(known->arrivals);
    return false;
}

/* Gives the errors that the system would give for these addresses. (Other bad addresses go
   unnoticed.) */
static int check_parts(const struct iovec *parts, size_t count, bool discards) {
    if (count > IOV_MAX)
        return -EINVAL;
    if (parts == NULL && count != 0)
        return -EFAULT;
    for (size_t i = 0; i < count && !discards; i++)
        if (parts[i].iov_base == NULL && parts[i].iov_len != 0)
            return -EFAULT;
    return 0;
}

static size_t copy_received(const arrivals_t *receives, const struct iovec *parts, size_t count,
                            bool discards) {
    const hafti_io_lent_t *block = receives->last->next;
    unsigned at = block->from, blocks = receives->count;
    size_t copied = 0;
    for (size_t i = 0; i < count; i++) {
        char *to = parts[i].iov_base;
        for (size_t left = parts[i].iov_len; left != 0 && blocks != 0;) {
            size_t size = (size_t)block->result - at < left ? (size_t)block->result - at : left;
            if (!discards) {
                memcpy(to, block->bytes + at, size);
                to += size;
            }
            copied += size;
            left -= size;
            at += (unsigned)size;
            if (at == (unsigned)block->result) {
                block = block->next;
                at = 0;
                blocks--;
            }
        }
    }
    return copied;
}

static void drop_received(arrivals_t *receives, size_t size) {
    while (size != 0) {
        hafti_io_lent_t *block = receives->last->next;
        size_t there = (size_t)block->result - block->from;
        if (size < there) {
            block->from += (unsigned)size;
            return;
        }
        release(receives, take_first(receives));
        size -= there;
    }
}

/* A read, in whichever way, of what has arrived. */
static ssize_t receive_arrived(arrivals_t *receives, const hafti_io_operation_t *operation) {
    const struct iovec all = {operation->buffer, operation->size}, *parts = &all;
    size_t count = 1;
    bool discards = (operation->flags & MSG_TRUNC) != 0;
    if (operation->kind == HAFTI_IO_RECEIVE_MESSAGE && operation->buffer == NULL)
        return -EFAULT;
    if (operation->kind == HAFTI_IO_READ_PARTS) {
        parts = operation->buffer;
        count = operation->size;
    } else if (operation->kind == HAFTI_IO_RECEIVE_MESSAGE) {
        struct msghdr *message = operation->buffer;
        parts = message->msg_iov;
        count = message->msg_iovlen;
        message->msg_namelen = 0;
        message->msg_controllen = 0;
        message->msg_flags = 0;
    } else if (operation->address_size != NULL) {
        *operation->address_size = 0;
    }
    int code = check_parts(parts, count, discards);
    if (code != 0)
        return code;
    size_t copied = copy_received(receives, parts, count, discards);
    if ((operation->flags & MSG_PEEK) == 0)
        drop_received(receives, copied);
    return (ssize_t)copied;
}

/* Asks the kernel for the other events. */
static ssize_t poll_arrived(state_t *state, const hafti_io_descriptor_t *known,
                            const hafti_io_operation_t *operation) {
    if (!hafti_io_stop_arrivals(state, known))
        return -EAGAIN;
    short others_of = (short)(operation->flags & ~HAFTI_IO_ARRIVED);
    struct pollfd others = {operation->descriptor, others_of, 0};
    int ready = hafti_io_arrived_events(known, (short)operation->flags);
    ready |= poll(&others, 1, 0) > 0 ? others.revents : 0;
    return ready != 0 ? ready : -EAGAIN;
}

HAFTI_IO_COLD ssize_t hafti_io_why_broken(hafti_io_descriptor_t *known) {
    arrivals_t *arrivals = known->arrivals;
    int code = arrivals != NULL && arrivals->receives ? take_code(arrivals) : 0;
    return code != 0 ? code : -EPIPE;
}

HAFTI_IO_COLD ssize_t hafti_io_use_arrivals(state_t *state, hafti_io_descriptor_t *known,
                                            const hafti_io_operation_t *operation) {
    arrivals_t *arrivals = known->arrivals;
    if (operation->kind == HAFTI_IO_POLL)
        return poll_arrived(state, known, operation);
    const int of_others = MSG_OOB | MSG_ERRQUEUE;
    if (!arrivals->receives || (operation->flags & of_others) != 0)
        return -EAGAIN;
    /* Another task waits for it. This task gets -EBUSY when it waits, too. */
    if (arrivals->asked && hafti_io_transfers(known, HAFTI_IO_INWARD))
        return -EAGAIN;
    if (!hafti_io_stop_arrivals(state, known))
        return -EAGAIN;
    if (arrivals->count == 0)
        return (operation->flags & MSG_PEEK) != 0 ? arrivals->code : take_code(arrivals);
    return receive_arrived(arrivals, operation);
}

/* ---- The end ---- */

/* The kernel resets a connection whose bytes were not all read. It has given the bytes of this one
   away, and would close it in order: so a linger of 0 makes the close a reset. */
void hafti_io_close_arrivals(state_t *state, arrivals_t *arrivals) {
    await_stop(state, arrivals);
    if (arrivals->receives && arrivals->count != 0)
        setsockopt(arrivals->descriptor, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                   sizeof(struct linger));
    arrivals_free(arrivals);
}

/* By itself the kernel stops some time after the ring is gone. */
void hafti_io_end_all_arrivals(state_t *state) {
    const hafti_io_link_t *const all[] = {&state->accepts, &state->receives};
    for (int i = 0; i < 2; i++)
        while (!hafti_io_ring_empty(all[i])) {
            arrivals_t *arrivals = HAFTI_IO_OWNER(all[i]->next, arrivals_t, link);
            await_stop(state, arrivals);
            arrivals_free(arrivals);
        }
}
