/* SPDX-License-Identifier: MIT */
/* Moving bytes from one descriptor to another, inside the system. These calls block as the
   descriptors' modes are, except that splice and tee have a flag against waiting for pipes. A call
   that would block is made by a thread of the pool when both descriptors are ready. */
#include "internal.h"

typedef struct move {
    int from, to;
    bool waits;   /* waits until both are ready; otherwise it fails */
    bool in_pool; /* the call itself may block */
    int64_t deadline;
    void (*function)(void *call);
    void *call;
    ssize_t *done; /* in the call */
} move_t;

/* Waits for data and room; or, unless that has been tried, for any other event of the two. */
static bool are_ready(const move_t *m, bool tried) {
    struct pollfd entries[] = {{m->from, POLLIN, 0}, {m->to, POLLOUT, 0}};
    return SYSTEM(poll)(entries, 2, 0) == 2 &&
           (!tried || ((entries[0].revents & POLLIN) != 0 && (entries[1].revents & POLLOUT) != 0));
}

/* The first try is made in any case, so that the system's refusals come at once. */
static ssize_t move_once(const move_t *m) {
    bool tried = false, first = true;
    for (unsigned turn = 0;; first = false) {
        bool tries = first || !m->in_pool || are_ready(m, tried);
        int code = 0;
        if (!m->in_pool)
            m->function(m->call);
        else if (tries)
            code = hafti_posix_call_for_a_moment(m->function, m->call);
        if (code != 0)
            return code;
        bool in_vain = !tries || *m->done == -EAGAIN || (m->in_pool && *m->done == -EINTR);
        if (!in_vain)
            return *m->done;
        if (!m->waits)
            return -EAGAIN;
        tried = tries && m->in_pool;
        if (tried)
            continue;
        code = hafti_posix_wait_for_both(m->from, m->to, m->deadline, turn++);
        if (code != 0)
            return code;
    }
}

/* ---- sendfile ---- */

HAFT_POSIX_POOLED(
    sendfile, ssize_t,
    {
        int to;
        int from;
        off_t *offset;
        size_t size;
    },
    c->to, c->from, c->offset, c->size)

static void send_once(void *argument) {
    sendfile_call_t *call = argument;
    call->done =
        HAFT_POSIX_RESULT(SYSTEM(sendfile)(call->to, call->from, call->offset, call->size));
}

/* Sends everything if the call blocks. */
static ssize_t send_file(sendfile_call_t *call) {
    size_t done = 0, size = call->size;
    bool waits = hafti_io_blocks(call->to);
    move_t move = {.from = call->from,
                   .to = call->to,
                   .waits = waits,
                   .in_pool = size != 0 && (waits || (hafti_io_blocks(call->from) &&
                                                      !hafti_io_is_file(call->from))),
                   .deadline = hafti_posix_socket_deadline(call->to, SO_SNDTIMEO),
                   .function = send_once,
                   .call = call,
                   .done = &call->done};
    do {
        call->size = size - done;
        ssize_t sent = move_once(&move);
        if (sent < 0)
            return done != 0 ? (ssize_t)done : sent;
        if (sent == 0)
            break;
        done += (size_t)sent;
    } while (done < size);
    return (ssize_t)done;
}

/* Refuses the call, after which callers read and write. */
static ssize_t refuse(int error) {
    hafti_posix_set_error(error);
    return -1;
}
static bool is_simulated(int from, int to) {
    return hafti_posix_may_be_simulated(from) || hafti_posix_may_be_simulated(to);
}

HAFT_POSIX_EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t size) {
    if (is_simulated(from, to))
        return refuse(EINVAL);
    if (!hafti_posix_on_task())
        return SYSTEM(sendfile)(to, from, offset, size);
    int before = hafti_posix_error();
    sendfile_call_t call = {{to, from, offset, size}, -1};
    if (!hafti_io_is_file(to))
        return hafti_posix_answer(send_file(&call), before);
    hafti_posix_call_to_the_end(call_sendfile, &call);
    return call.done;
}

HAFT_POSIX_ALSO(sendfile64, sendfile)

/* ---- splice, tee ---- */

typedef struct splice_call {
    int from;
    off64_t *from_offset;
    int to;
    off64_t *to_offset;
    size_t size;
    unsigned flags;
    bool copies; /* tee */
    ssize_t done;
} splice_call_t;

static void splice_once(void *argument) {
    splice_call_t *c = argument;
    unsigned flags = c->flags | SPLICE_F_NONBLOCK;
    c->done = c->copies ? HAFT_POSIX_RESULT(SYSTEM(tee)(c->from, c->to, c->size, flags))
                        : HAFT_POSIX_RESULT(SYSTEM(splice)(c->from, c->from_offset, c->to,
                                                           c->to_offset, c->size, flags));
}

static bool may_wait(int descriptor) {
    return hafti_io_blocks(descriptor) && !hafti_io_is_pipe(descriptor);
}

static ssize_t splice_waiting(splice_call_t *c) {
    return move_once(&(move_t){.from = c->from,
                               .to = c->to,
                               .waits = (c->flags & SPLICE_F_NONBLOCK) == 0 &&
                                        hafti_io_blocks(c->from) && hafti_io_blocks(c->to),
                               .in_pool = may_wait(c->from) || may_wait(c->to),
                               .deadline = HAFT_IO_FOREVER,
                               .function = splice_once,
                               .call = c,
                               .done = &c->done});
}

HAFT_POSIX_EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset,
                                 size_t size, unsigned flags) {
    if (is_simulated(from, to))
        return refuse(EINVAL);
    if (!hafti_posix_on_task())
        return SYSTEM(splice)(from, from_offset, to, to_offset, size, flags);
    int before = hafti_posix_error();
    return hafti_posix_answer(
        splice_waiting(&(splice_call_t){from, from_offset, to, to_offset, size, flags, false, -1}),
        before);
}

HAFT_POSIX_EXPORT ssize_t tee(int from, int to, size_t size, unsigned flags) {
    if (is_simulated(from, to))
        return refuse(EINVAL);
    if (!hafti_posix_on_task())
        return SYSTEM(tee)(from, to, size, flags);
    int before = hafti_posix_error();
    return hafti_posix_answer(
        splice_waiting(
            &(splice_call_t){.from = from, .to = to, .size = size, .flags = flags, .copies = true}),
        before);
}
