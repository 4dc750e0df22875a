/* SPDX-License-Identifier: MIT */
/* The operations: the functions of io.h, which perform effects. */
#include "operations.h"
#include "tape/tape.h"

#include <poll.h>
#include <sys/ioctl.h>

/* Uses clauses.c, so that a program that links these functions from an archive has the defaults of
   their effects, too. */
__attribute__((used)) static const haft_handler_t *const *const with_defaults =
    &hafti_io_operations;

#define OR_CANCELLED(type, operation)                                                              \
    do {                                                                                           \
        type done = operation;                                                                     \
        return HAFTI_IO_LIKELY(done != -ECANCELED) ? done : (type)haft_io_unwind_cancelled();      \
    } while (0)

/* The system never returns -EBUSY for a stream: this one is in use by another task of the run. */
static HAFTI_IO_COLD ssize_t after_error(const char *function, int descriptor, ssize_t code) {
    const haft_io_task_t *task = hafti_io_this_task();
    if (code == -ECANCELED)
        return haft_io_unwind_cancelled();
    if (code != -EBUSY || task == NULL || !hafti_io_is_stream(descriptor) ||
        hafti_io_descriptor(task->worker->crew->descriptors, descriptor, false) == NULL)
        return code;
    return haft_io_refuse(
        -EBUSY, function,
        "another task transfers bytes of descriptor %d in this direction: let one "
        "task do it, and pass the bytes on by a channel, or lock a mutex around it",
        descriptor);
}

#define OR_REFUSED(function, descriptor, operation)                                                \
    do {                                                                                           \
        ssize_t done = operation;                                                                  \
        return HAFTI_IO_LIKELY(done >= 0) ? done : after_error(function, descriptor, done);        \
    } while (0)

HAFTI_IO_HOT ssize_t haft_io_read(int descriptor, void *buffer, size_t size) {
    OR_REFUSED(__func__, descriptor, HAFT_PERFORM(haft_io_read, descriptor, buffer, size));
}

static inline ssize_t write_some(int descriptor, const void *buffer, size_t size) {
    OR_REFUSED("haft_io_write", descriptor, HAFT_PERFORM(haft_io_write, descriptor, buffer, size));
}

HAFTI_IO_HOT ssize_t haft_io_write(int descriptor, const void *buffer, size_t size) {
    return write_some(descriptor, buffer, size);
}

static HAFTI_IO_COLD int write_rest(hafti_io_use_t first, const void *buffer, size_t size,
                                    size_t sent) {
    HAFTI_IO_USING hafti_io_use_t use = first;
    while (sent < size) {
        int code = hafti_io_next_part(&use);
        if (code != 0)
            return code;
        ssize_t done = write_some(use.descriptor, hafti_io_bytes_after(buffer, sent), size - sent);
        if (done < 0)
            return (int)done;
        sent += (size_t)done;
    }
    return 0;
}

/* Mostly the first part is all. */
HAFTI_IO_HOT int haft_io_write_all(int descriptor, const void *buffer, size_t size) {
    hafti_io_use_t use = hafti_io_in_parts(descriptor);
    ssize_t done = size != 0 ? write_some(descriptor, buffer, size) : 0;
    if (HAFTI_IO_LIKELY((size_t)done == size))
        return 0;
    return done < 0 ? (int)done : write_rest(use, buffer, size, (size_t)done);
}

HAFTI_IO_HOT ssize_t haft_io_read_lent(int descriptor, const void **bytes) {
    haft_io_give_back(*bytes);
    *bytes = NULL;
    OR_REFUSED(__func__, descriptor, HAFT_PERFORM(haft_io_read_lent, descriptor, bytes));
}

int haft_io_wait_ready(int descriptor, short events) {
    OR_CANCELLED(int, HAFT_PERFORM(haft_io_wait_ready, descriptor, events));
}

int haft_io_poll(struct pollfd *entries, size_t count, int64_t deadline) {
    OR_CANCELLED(int, HAFT_PERFORM(haft_io_poll, entries, count, deadline, 0));
}

int haft_io_wait_ready_until(int descriptor, short events, int64_t deadline) {
    struct pollfd entry = {.fd = descriptor, .events = events};
    int count = descriptor >= 0 ? haft_io_poll(&entry, 1, deadline) : -EBADF;
    if (count <= 0)
        return count == 0 ? -ETIMEDOUT : count;
    return (entry.revents & POLLNVAL) != 0 ? -EBADF : entry.revents;
}

int haft_io_close(int descriptor) {
    return HAFT_PERFORM(haft_io_close, descriptor);
}

static __attribute__((noinline)) bool holds_bytes(int socket) {
    int saved = errno, size = 0;
    bool is_known = ioctl(socket, FIONREAD, &size) == 0;
    errno = saved;
    return !is_known || size > 0;
}
static bool holds_bytes_or_did(int socket) {
    hafti_io_tape_t *tape = hafti_io_tape_here();
    HAFTI_IO_UNTAPED;
    bool holds = tape != NULL && tape->replays ? false : holds_bytes(socket);
    return tape == NULL ? holds : hafti_io_tape_number(tape, HAFTI_IO_TAPED_NEXT_PART, holds) != 0;
}
static bool arrivals_or_did(int socket) {
    hafti_io_tape_t *tape = hafti_io_tape_here();
    const hafti_io_descriptor_t *known = hafti_io_known_here(socket);
    bool some = known != NULL && known->arrivals != NULL;
    return tape == NULL ? some : hafti_io_tape_number(tape, HAFTI_IO_TAPED_NEXT_PART, some) != 0;
}

/* Whether there are bytes for the next part, for which this waits, unless the call is not to wait
   (MSG_DONTWAIT). A receive that finds an error instead would take it from the next call, which
   would then find the end of the stream. */
static bool next_bytes_come(int socket, int flags) {
    if (hafti_io_is_simulated(socket) || holds_bytes_or_did(socket))
        return true;
    int not_waiting = flags & MSG_DONTWAIT;
    if (not_waiting == 0 && HAFT_PERFORM(haft_io_wait_ready, socket, POLLIN) < 0)
        return false;
    char byte;
    return holds_bytes_or_did(socket) ||
           (arrivals_or_did(socket) && HAFT_PERFORM(haft_io_receive, socket, MSG_PEEK | not_waiting,
                                                    &byte, 1, NULL, NULL) > 0);
}

/*
 * MSG_WAITALL takes more than one operation, because each ends with what there is: the first has
 * received this many bytes of the message's parts. A cancel or an error is reported by the next
 * call, as by recvmsg(2); and bytes after descriptors or other control data are for the next call,
 * too. `control_size` is the room for control data, if none has come.
 */
static HAFTI_IO_COLD ssize_t receive_rest(hafti_io_use_t first_part, struct msghdr *message,
                                          int flags, ssize_t first, size_t control_size) {
    HAFTI_IO_USING hafti_io_use_t use = first_part;
    size_t got = (size_t)first, skipped = 0;
    if (!hafti_io_is_stream(use.descriptor))
        return first;
    for (size_t i = 0; i < message->msg_iovlen && message->msg_controllen == 0;) {
        struct iovec part = message->msg_iov[i];
        if (skipped + part.iov_len <= got) {
            skipped += message->msg_iov[i++].iov_len;
            continue;
        }
        part.iov_base = (char *)part.iov_base + (got - skipped);
        part.iov_len -= got - skipped;
        struct msghdr rest = {.msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = message->msg_control,
                              .msg_controllen = control_size};
        if (hafti_io_next_part(&use) != 0 || !next_bytes_come(use.descriptor, flags))
            break;
        ssize_t more = HAFT_PERFORM(haft_io_receive_message, use.descriptor, flags, &rest);
        if (more <= 0)
            break;
        got += (size_t)more;
        message->msg_controllen = rest.msg_controllen;
        message->msg_flags |= rest.msg_flags;
    }
    return (ssize_t)got;
}

static inline bool wants_all(int flags) {
    return HAFTI_IO_UNLIKELY((flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL);
}

ssize_t haft_io_receive_from(int socket, void *buffer, size_t size, int flags,
                             struct sockaddr *address, socklen_t *address_size) {
    hafti_io_use_t use = wants_all(flags) ? hafti_io_in_parts(socket) : (hafti_io_use_t){0};
    ssize_t done =
        HAFT_PERFORM(haft_io_receive, socket, flags, buffer, size, address, address_size);
    if (wants_all(flags) && done > 0 && (size_t)done < size) {
        struct msghdr message = {.msg_iov = &(struct iovec){buffer, size}, .msg_iovlen = 1};
        return receive_rest(use, &message, flags, done, 0);
    }
    return HAFTI_IO_LIKELY(done >= 0) ? done : after_error("haft_io_receive", socket, done);
}

ssize_t haft_io_receive(int socket, void *buffer, size_t size, int flags) {
    return haft_io_receive_from(socket, buffer, size, flags, NULL, NULL);
}

/* How long to wait before asking again whether a queue has room. */
static const int64_t QUEUE_PAUSE = HAFT_IO_MILLISECOND, LONGEST_PAUSE = 16 * HAFT_IO_MILLISECOND;

/* Sleeps, while the descriptor may be closed and its number used again: 0, or an error. */
static HAFTI_IO_COLD int sleep_between(hafti_io_use_t *use, int64_t pause) {
    hafti_io_leave_use(use);
    int code = haft_io_sleep(pause);
    return code == 0 ? hafti_io_next_part(use) : code;
}

#define UNTIL_QUEUED(type, socket, operation)                                                      \
    HAFTI_IO_USING hafti_io_use_t use = hafti_io_in_parts(socket);                                 \
    for (int64_t pause = QUEUE_PAUSE;; pause += pause < LONGEST_PAUSE ? pause : 0) {               \
        type done = operation;                                                                     \
        if (HAFTI_IO_LIKELY(done != HAFTI_IO_QUEUE_FULL))                                          \
            return HAFTI_IO_LIKELY(done != -ECANCELED) ? done : (type)haft_io_unwind_cancelled();  \
        int code = sleep_between(&use, pause);                                                     \
        if (code != 0)                                                                             \
            return code;                                                                           \
    }

ssize_t haft_io_send_to(int socket, const void *buffer, size_t size, int flags,
                        const struct sockaddr *address, socklen_t address_size) {
    if (HAFTI_IO_LIKELY(address == NULL)) /* there is no queue that could be full */
        OR_REFUSED("haft_io_send", socket,
                   HAFT_PERFORM(haft_io_send, socket, flags, buffer, size, NULL, 0));
    UNTIL_QUEUED(ssize_t, socket,
                 HAFT_PERFORM(haft_io_send, socket, flags, buffer, size, address, address_size))
}

ssize_t haft_io_send(int socket, const void *buffer, size_t size, int flags) {
    return haft_io_send_to(socket, buffer, size, flags, NULL, 0);
}

ssize_t haft_io_readv(int descriptor, const struct iovec *parts, size_t count) {
    OR_REFUSED(__func__, descriptor, HAFT_PERFORM(haft_io_readv, descriptor, parts, count));
}

ssize_t haft_io_writev(int descriptor, const struct iovec *parts, size_t count) {
    OR_REFUSED(__func__, descriptor, HAFT_PERFORM(haft_io_writev, descriptor, parts, count));
}

ssize_t haft_io_receive_message(int socket, struct msghdr *message, int flags) {
    size_t control_size = message != NULL ? message->msg_controllen : 0;
    hafti_io_use_t use = wants_all(flags) ? hafti_io_in_parts(socket) : (hafti_io_use_t){0};
    ssize_t done = HAFT_PERFORM(haft_io_receive_message, socket, flags, message);
    if (wants_all(flags) && done > 0)
        return receive_rest(use, message, flags, done, control_size);
    return HAFTI_IO_LIKELY(done != -ECANCELED) ? done : haft_io_unwind_cancelled();
}

ssize_t haft_io_send_message(int socket, const struct msghdr *message, int flags) {
    UNTIL_QUEUED(ssize_t, socket, HAFT_PERFORM(haft_io_send_message, socket, flags, message))
}

int haft_io_accept(int listener) {
    HAFTI_IO_USING hafti_io_use_t use = hafti_io_in_parts(listener);
    for (;;) {
        int connection = HAFT_PERFORM(haft_io_accept, listener);
        int code = 0;
        if (HAFTI_IO_UNLIKELY(hafti_io_lacks_descriptor(connection)))
            code = sleep_between(&use, HAFTI_IO_DESCRIPTOR_PAUSE);
        else if (HAFTI_IO_UNLIKELY(connection == -ECONNABORTED))
            code = hafti_io_next_part(&use);
        else
            return connection != -ECANCELED ? connection : haft_io_unwind_cancelled();
        if (code != 0)
            return code;
    }
}

int haft_io_connect(int socket, const struct sockaddr *address, socklen_t address_size){
    UNTIL_QUEUED(int, socket, HAFT_PERFORM(haft_io_connect, socket, address, address_size))}

int64_t haft_io_now(void) {
    return HAFT_PERFORM(haft_io_now);
}

int haft_io_sleep_until(int64_t deadline) {
    OR_CANCELLED(int, HAFT_PERFORM(haft_io_sleep_until, deadline));
}

int haft_io_sleep(int64_t nanoseconds) {
    int64_t deadline;
    if (nanoseconds == HAFT_IO_FOREVER)
        return haft_io_sleep_until(HAFT_IO_FOREVER);
    if (__builtin_add_overflow(haft_io_now(), nanoseconds, &deadline) ||
        deadline == HAFT_IO_FOREVER)
        deadline = HAFT_IO_FOREVER - 1; /* which comes in a simulation */
    return haft_io_sleep_until(deadline);
}

/* ---- Blocking work ---- */

int hafti_io_call_in_pool(void (*function)(void *), void *argument, void (*left)(void *)) {
    OR_CANCELLED(int, HAFT_PERFORM(haft_io_call_blocking, function, argument, left));
}

typedef struct call_here {
    void (*function)(void *);
    void *argument;
} call_here_t;

static void *call_here(void *argument) {
    const call_here_t *call = argument;
    call->function(call->argument);
    return NULL;
}

/* In a simulation the task calls the function itself, so the function opens and waits for
   simulated objects. Others go on first, as in the pool, and no cancel ends the call. */
static int call_in_simulation(void (*function)(void *), void *argument, void (*left)(void *)) {
    int code = haft_io_yield_or_cancelled();
    if (code != 0) {
        if (left != NULL)
            left(argument);
        return haft_io_unwind_cancelled();
    }
    int saved = *hafti_io_worker()->error;
    code = haft_io_shield(call_here, &(call_here_t){function, argument});
    *hafti_io_worker()->error = saved;
    return code;
}

static bool is_in_simulation(void) {
    const haft_io_task_t *task = hafti_io_this_task();
    return task != NULL && task->worker->simulated != NULL && task->worker->tape == NULL &&
           !task->worker->forked;
}

int hafti_io_call_or_leave(void (*function)(void *), void *argument, void (*left)(void *)) {
    return is_in_simulation() ? call_in_simulation(function, argument, left)
                              : hafti_io_call_in_pool(function, argument, left);
}

bool haft_io_simulates_c_library;

/* A program's function may open files, which in this simulation are not to be the machine's. */
static bool would_open_the_machines(void) {
    return is_in_simulation() && hafti_io_simulated()->files && !haft_io_simulates_c_library;
}
static int refuse_in_simulation(const char *function) {
    return haft_io_refuse(-ENOTSUP, function,
                          "the simulation has files of its own (.files), but what is called would "
                          "open the machine's: link libhaft-posix, or leave .files out");
}

int haft_io_call_blocking(void (*function)(void *), void *argument) {
    return would_open_the_machines() ? refuse_in_simulation(__func__)
                                     : hafti_io_call_or_leave(function, argument, NULL);
}
int haft_io_call_or_leave(void (*function)(void *), void *argument, void (*left)(void *)) {
    if (!would_open_the_machines())
        return hafti_io_call_or_leave(function, argument, left);
    left(argument);
    return refuse_in_simulation(__func__);
}
void *haft_io_block_thread(void *(*function)(void *), void *argument) {
    return HAFT_PERFORM(haft_io_block_thread, function, argument);
}
