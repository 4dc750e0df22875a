/* SPDX-License-Identifier: MIT */
/* Passing descriptors over Unix sockets, and bytes from descriptor to descriptor. */
#include "internal.h"

#include <fcntl.h>
#include <poll.h>
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

/* These calls do not block where the descriptors do not: so they are made not to, meanwhile. */

static int poll_both(struct pollfd first, struct pollfd second, unsigned turn) {
    struct pollfd entries[] = {first, second};
    int ready = HAFT_PERFORM(haft_io_poll, entries, 2, HAFT_IO_FOREVER, turn);
    if (ready < 0)
        return ready != -ECANCELED ? ready : haft_io_cancelled();
    return ((entries[0].revents | entries[1].revents) & POLLNVAL) != 0 ? -EBADF : 0;
}

/* Until there may be bytes in the one and room in the other; -EBADF: one of them was closed. What is broken is told at
   once, whether it is asked for or not: then a further try says so, or it does not matter. */
static int await_both(int from, int to, unsigned turn) {
    if (turn != 0)
        return poll_both((struct pollfd){from, POLLIN, 0}, (struct pollfd){to, POLLOUT, 0}, turn);
    int code = poll_both((struct pollfd){from, POLLIN, 0}, (struct pollfd){to, 0, 0}, 0);
    return code != 0 ? code
                     : poll_both((struct pollfd){to, POLLOUT, 0}, (struct pollfd){from, 0, 0}, 0);
}

/* In a function of its own, as every look at errno: the task may be on another thread after a wait. */
static __attribute__((noinline)) ssize_t send_now(int socket, int file, int64_t *offset,
                                                  size_t size) {
    int flags = haft_io_stop_blocking(socket);
    off_t position = offset != NULL ? *offset : 0;
    ssize_t sent = HAFT_IO_RESULT(sendfile(socket, file, offset != NULL ? &position : NULL, size));
    haft_io_block_again(socket, flags);
    if (sent >= 0 && offset != NULL)
        *offset = position;
    return sent;
}

/* What does not block, and has nothing, as sendfile(2) says of it. */
static bool gives_nothing(int file) {
    return !haft_io_blocks(file) && poll(&(struct pollfd){file, POLLIN, 0}, 1, 0) == 0;
}

/* Where the file's own position is to be had and set. */
static int64_t seek(int file, int64_t by) {
    if (haft_io_is_simulated(file))
        return haft_io_files_seek(file, by);
    return HAFT_IO_RESULT(lseek(file, by, SEEK_CUR));
}

/* Of what is simulated a part is copied: so much at once, as the system may do less than was asked. */
static ssize_t copy_part(int socket, int file, int64_t *offset, size_t size) {
    char part[4096];
    int64_t position = offset != NULL ? *offset : seek(file, 0);
    if (position < 0)
        return (ssize_t)position;
    ssize_t done = haft_io_read_at(file, part, size < sizeof part ? size : sizeof part, position);
    if (done > 0)
        done = haft_io_write(socket, part, (size_t)done);
    if (done > 0 && offset != NULL)
        *offset = position + done;
    else if (done > 0)
        seek(file, done);
    return done;
}

ssize_t haft_io_send_file(int socket, int file, int64_t *offset, size_t size) {
    if (haft_io_is_simulated(socket) || haft_io_is_simulated(file))
        return copy_part(socket, file, offset, size);
    HAFT_IO_USING haft_io_use_t use = {.descriptor = socket}, use_of_file = {.descriptor = file};
    int code = haft_io_use(&use);
    if (code == 0)
        code = haft_io_use(&use_of_file);
    for (unsigned turn = 0; code == 0;) {
        ssize_t sent = send_now(socket, file, offset, size);
        if ((sent != -EAGAIN && sent != -EINTR) || (sent == -EAGAIN && gives_nothing(file)))
            return sent;
        if (sent == -EAGAIN)
            code = await_both(file, socket, turn++);
    }
    return code;
}

/* What haft_io_read_lent has been given beforehand would come after what the kernel still has. */
static int nothing_has_arrived(int descriptor) {
    const haft_io_task_t *task = haft_io_this_task();
    const haft_io_descriptor_t *known =
        task != NULL ? haft_io_descriptor(task->worker->crew->descriptors, descriptor, false)
                     : NULL;
    if (known == NULL || known->arrivals == NULL)
        return 0;
    int code =
        haft_io_poll(&(struct pollfd){descriptor, POLLIN, 0}, 1, 0); /* after which it is settled */
    return code < 0 ? code : known->arrivals != NULL ? -EBUSY : 0;
}

static __attribute__((noinline)) ssize_t splice_now(int from, int to, size_t size) {
    int from_flags = haft_io_stop_blocking(from), to_flags = haft_io_stop_blocking(to);
    ssize_t moved = HAFT_IO_RESULT(splice(from, NULL, to, NULL, size, SPLICE_F_NONBLOCK));
    haft_io_block_again(from, from_flags);
    haft_io_block_again(to, to_flags);
    return moved;
}

ssize_t haft_io_splice(int from, int to, size_t size) {
    HAFT_IO_USING haft_io_use_t use = {.descriptor = from}, use_of_other = {.descriptor = to};
    int code = haft_io_use(&use);
    if (code == 0)
        code = haft_io_use(&use_of_other);
    if (code == 0)
        code = nothing_has_arrived(from);
    for (unsigned turn = 0; code == 0;) {
        ssize_t moved = splice_now(from, to, size);
        if (moved != -EAGAIN && moved != -EINTR)
            return moved;
        if (moved == -EAGAIN)
            code = await_both(from, to, turn++);
    }
    return code;
}
