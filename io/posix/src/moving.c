/* SPDX-License-Identifier: MIT */
/* From one descriptor to another, inside the system. No flag of these calls keeps them from blocking: the descriptors
   are made not to block for as long as a try takes. */
#include "internal.h"

#include <sys/stat.h>

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

static bool is_file(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

/* What a blocking call sends, it sends in full. */
static ssize_t send_file(const sendfile_call_t *call) {
    size_t done = 0;
    int64_t deadline = haft_posix_socket_deadline(call->to, SO_SNDTIMEO);
    unsigned turn = 0;
    do {
        int flags = haft_io_stop_blocking(call->to);
        ssize_t sent = HAFT_POSIX_RESULT(
            SYSTEM(sendfile)(call->to, call->from, call->offset, call->size - done));
        haft_io_block_again(call->to, flags);
        if (sent == -EAGAIN && flags >= 0)
            sent = haft_posix_wait(call->to, POLLOUT, deadline, turn++);
        else if (sent == 0)
            break;
        else
            turn = 0;
        if (sent < 0)
            return done != 0 ? (ssize_t)done : sent;
        done += (size_t)sent;
    } while (done < call->size);
    return (ssize_t)done;
}

HAFT_POSIX_EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t size) {
    if (!haft_posix_on_task())
        return SYSTEM(sendfile)(to, from, offset, size);
    int before = haft_posix_error();
    sendfile_call_t call = {{to, from, offset, size}, -1};
    if (!is_file(to))
        return haft_posix_answer(send_file(&call), before);
    haft_posix_call_pooled(call_sendfile, &call);
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
} splice_call_t;

static ssize_t splice_now(const splice_call_t *c) {
    unsigned flags = c->flags | SPLICE_F_NONBLOCK;
    int from_flags = haft_io_stop_blocking(c->from), to_flags = haft_io_stop_blocking(c->to);
    ssize_t moved = c->copies ? HAFT_POSIX_RESULT(SYSTEM(tee)(c->from, c->to, c->size, flags))
                              : HAFT_POSIX_RESULT(SYSTEM(splice)(c->from, c->from_offset, c->to,
                                                                 c->to_offset, c->size, flags));
    haft_io_block_again(c->from, from_flags);
    haft_io_block_again(c->to, to_flags);
    return moved;
}

static ssize_t splice_waiting(const splice_call_t *c) {
    bool waits =
        (c->flags & SPLICE_F_NONBLOCK) == 0 && haft_io_blocks(c->from) && haft_io_blocks(c->to);
    ssize_t moved;
    for (unsigned turn = 0; (moved = splice_now(c)) == -EAGAIN && waits; turn++) {
        int code = haft_posix_wait_for_both(c->from, c->to, HAFT_IO_FOREVER, turn);
        if (code != 0)
            return code;
    }
    return moved;
}

HAFT_POSIX_EXPORT ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset,
                                 size_t size, unsigned flags) {
    if (!haft_posix_on_task())
        return SYSTEM(splice)(from, from_offset, to, to_offset, size, flags);
    int before = haft_posix_error();
    return haft_posix_answer(
        splice_waiting(&(splice_call_t){from, from_offset, to, to_offset, size, flags, false}),
        before);
}

HAFT_POSIX_EXPORT ssize_t tee(int from, int to, size_t size, unsigned flags) {
    if (!haft_posix_on_task())
        return SYSTEM(tee)(from, to, size, flags);
    int before = haft_posix_error();
    return haft_posix_answer(
        splice_waiting(
            &(splice_call_t){.from = from, .to = to, .size = size, .flags = flags, .copies = true}),
        before);
}
