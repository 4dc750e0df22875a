/* SPDX-License-Identifier: MIT */
/* Passing descriptors over Unix sockets, and bytes from descriptor to descriptor. */
#include "objects.h"
#include "tape/replaying.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- Descriptors ---- */

typedef union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
} control_t;

int haft_io_send_descriptor(int socket, int descriptor) {
    control_t control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {.msg_iov = &(struct iovec){"", 1},
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    ssize_t sent = haft_io_send_message(socket, &message, 0);
    return sent < 0 ? (int)sent : 0;
}

int haft_io_receive_descriptor(int socket) {
    control_t control;
    char byte;
    struct msghdr message = {.msg_iov = &(struct iovec){&byte, 1},
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = haft_io_receive_message(socket, &message, 0);
    if (got <= 0)
        return got < 0 ? (int)got : -EPIPE;
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header == NULL || header->cmsg_type != SCM_RIGHTS)
        return (message.msg_flags & MSG_CTRUNC) != 0 ? -EMFILE : -EBADMSG;
    /* The room is aligned, and has space for one more. */
    int descriptors[(sizeof control - CMSG_LEN(0)) / sizeof(int)];
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(descriptors, CMSG_DATA(header), count * sizeof(int));
    while (count > 1)
        haft_io_close(descriptors[--count]);
    return descriptors[0];
}

/* ---- Bytes ---- */

/* sendfile(2) blocks as its descriptors' modes are, and so does splice(2), which has a flag against
   that for pipes only. A call that would block is made by a thread of the pool when both
   descriptors are ready. */

static int poll_both(struct pollfd first, struct pollfd second, unsigned turn) {
    struct pollfd entries[] = {first, second};
    int ready = HAFT_PERFORM(haft_io_poll, entries, 2, HAFT_IO_FOREVER, turn);
    if (ready < 0)
        return ready != -ECANCELED ? ready : haft_io_unwind_cancelled();
    return ((entries[0].revents | entries[1].revents) & POLLNVAL) != 0 ? -EBADF : 0;
}

/* Waits until there may be bytes in the one and room in the other; -EBADF: one of them was closed.
   A broken descriptor ends the wait at once, whether that was asked for or not: then another try
   reports it, or it does not matter. */
static int await_both(int from, int to, unsigned turn) {
    if (turn != 0)
        return poll_both((struct pollfd){from, POLLIN, 0}, (struct pollfd){to, POLLOUT, 0}, turn);
    int code = poll_both((struct pollfd){from, POLLIN, 0}, (struct pollfd){to, 0, 0}, 0);
    return code != 0 ? code
                     : poll_both((struct pollfd){to, POLLOUT, 0}, (struct pollfd){from, 0, 0}, 0);
}

typedef struct move {
    int from, to;
    bool splices;    /* or else sends a file */
    int64_t *offset; /* of that; may be NULL */
    size_t size;
    ssize_t done;
} move_t;

/* A function of its own, as everywhere where errno is read: the task may be on another thread after
   a wait. */
static __attribute__((noinline)) void move_now(void *argument) {
    move_t *m = argument;
    off_t position = m->offset != NULL ? *m->offset : 0,
          *offset = m->offset != NULL ? &position : NULL;
    m->done = m->splices
                  ? HAFTI_IO_RESULT(splice(m->from, NULL, m->to, NULL, m->size, SPLICE_F_NONBLOCK))
                  : HAFTI_IO_RESULT(sendfile(m->to, m->from, offset, m->size));
    if (m->done >= 0 && m->offset != NULL)
        *m->offset = position;
}

static bool is_pending(int signal) {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

/* These calls send their thread SIGPIPE if the other end is closed, and have no flag against that,
   as send(2) has. So the signal is blocked meanwhile, and taken back. The call that fails also
   sends it where it returns the size of a part that went before, so it is looked for after
   everything but a whole transfer. A signal that the program has blocked, and that was there
   before, is left to the program. */
static void move_without_signal(void *argument) {
    const move_t *m = argument;
    sigset_t broken, before;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    bool is_programs = sigismember(&before, SIGPIPE) == 1 && is_pending(SIGPIPE);
    move_now(argument);
    if (m->done != (ssize_t)m->size && !is_programs)
        sigtimedwait(&broken, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool may_wait(const move_t *m) {
    if (m->size == 0)
        return false;
    if (m->splices)
        return (hafti_io_blocks(m->from) && !hafti_io_is_pipe(m->from)) ||
               (hafti_io_blocks(m->to) && !hafti_io_is_pipe(m->to));
    return hafti_io_blocks(m->to) || (hafti_io_blocks(m->from) && !hafti_io_is_file(m->from));
}

/* Waits on both descriptors for data and room; or, unless that has been tried, for any other
   event. */
static bool are_ready(const move_t *m, bool tried) {
    struct pollfd entries[] = {{m->from, POLLIN, 0}, {m->to, POLLOUT, 0}};
    return hafti_io_poll_blocking(entries, 2, 0) == 2 &&
           (!tried || ((entries[0].revents & POLLIN) != 0 && (entries[1].revents & POLLOUT) != 0));
}

/* Whether the file does not block, and has nothing: then sendfile(2) returns -EAGAIN. */
static bool gives_nothing(int file) {
    return !hafti_io_blocks(file) &&
           hafti_io_poll_blocking(&(struct pollfd){file, POLLIN, 0}, 1, 0) == 0;
}

/* The first try is made in any case: what the system refuses it refuses at once. */
static ssize_t move(move_t *m) {
    bool in_pool = may_wait(m), tried = false, first = true;
    for (unsigned turn = 0;; first = false) {
        if (!in_pool)
            move_without_signal(m);
        bool tries = in_pool && (first || are_ready(m, tried));
        int code = tries ? hafti_io_call_for_a_moment(move_without_signal, m) : 0;
        if (code != 0)
            return code;
        if ((tries || !in_pool) && m->done != -EAGAIN && m->done != -EINTR)
            return m->done;
        tried = tries;
        if (tries || (!in_pool && m->done == -EINTR))
            continue;
        if (!m->splices && gives_nothing(m->from))
            return -EAGAIN;
        code = await_both(m->from, m->to, turn++);
        if (code != 0)
            return code;
    }
}

/* Simulated bytes are copied in part: at most this much at once, because the system may do less
   than was asked, too. */
static ssize_t copy_part(int socket, int file, int64_t *offset, size_t size) {
    char part[4096];
    int64_t position = offset != NULL ? *offset : hafti_io_calls_of(file)->lseek(file, 0, SEEK_CUR);
    if (position < 0)
        return (ssize_t)position;
    ssize_t done = haft_io_pread(file, part, size < sizeof part ? size : sizeof part, position);
    if (done > 0)
        done = haft_io_write(socket, part, (size_t)done);
    if (done > 0 && offset != NULL)
        *offset = position + done;
    else if (done > 0)
        hafti_io_calls_of(file)->lseek(file, done, SEEK_CUR);
    return done;
}

static ssize_t send_file(int socket, int file, int64_t *offset, size_t size) {
    HAFTI_IO_USING hafti_io_use_t use = {.descriptor = socket}, use_of_file = {.descriptor = file};
    int code = hafti_io_use(&use);
    if (code == 0)
        code = hafti_io_use(&use_of_file);
    return code == 0 ? move(&(move_t){.from = file, .to = socket, .offset = offset, .size = size})
                     : code;
}

ssize_t haft_io_send_file(int socket, int file, int64_t *offset, size_t size) {
    if (hafti_io_is_simulated(socket) || hafti_io_is_simulated(file))
        return copy_part(socket, file, offset, size);
    const hafti_io_entry_t *entry;
    HAFTI_IO_TAPED_CALL call = hafti_io_tape_begins(HAFTI_IO_TAPED_SEND_FILE, socket, &entry);
    if (HAFTI_IO_UNLIKELY(entry != NULL))
        return hafti_io_tape_result(entry, offset, sizeof *offset);
    ssize_t sent = send_file(socket, file, offset, size);
    return hafti_io_tape_ends(&call, sent, offset, offset != NULL ? sizeof *offset : 0);
}

/* -EBUSY if haft_io_read_lent has bytes beforehand: they would come after those that the kernel
   still has. */
static int nothing_has_arrived(int descriptor) {
    const haft_io_task_t *task = hafti_io_this_task();
    const hafti_io_descriptor_t *known =
        task != NULL ? hafti_io_descriptor(task->worker->crew->descriptors, descriptor, false)
                     : NULL;
    if (known == NULL || known->arrivals == NULL)
        return 0;
    int code =
        haft_io_poll(&(struct pollfd){descriptor, POLLIN, 0}, 1, 0); /* which lets the kernel stop
                                                                        receiving by itself */
    return code < 0 ? code : known->arrivals != NULL ? -EBUSY : 0;
}

static ssize_t splice_some(int from, int to, size_t size) {
    HAFTI_IO_USING hafti_io_use_t use = {.descriptor = from}, use_of_other = {.descriptor = to};
    int code = hafti_io_use(&use);
    if (code == 0)
        code = hafti_io_use(&use_of_other);
    if (code == 0)
        code = nothing_has_arrived(from);
    return code == 0 ? move(&(move_t){.from = from, .to = to, .splices = true, .size = size})
                     : code;
}

ssize_t haft_io_splice(int from, int to, size_t size) {
    const hafti_io_entry_t *entry;
    HAFTI_IO_TAPED_CALL call = hafti_io_tape_begins(HAFTI_IO_TAPED_SPLICE, from, &entry);
    if (HAFTI_IO_UNLIKELY(entry != NULL))
        return hafti_io_tape_result(entry, NULL, 0);
    return hafti_io_tape_ends(&call, splice_some(from, to, size), NULL, 0);
}
