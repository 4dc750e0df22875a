/* SPDX-License-Identifier: MIT */
/* A connection as a stream: its operations over a socket, each with a limit of time, and the bytes
   that have been read of it. */
#include "stream.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

static ssize_t socket_read_lent(hafti_http_stream_t *stream, const void **bytes) {
    return haft_io_read_lent(stream->descriptor, bytes);
}

static int socket_write_all(hafti_http_stream_t *stream, const void *buffer, size_t size) {
    return haft_io_write_all(stream->descriptor, buffer, size);
}

static ssize_t socket_write(hafti_http_stream_t *stream, const void *buffer, size_t size) {
    return haft_io_write(stream->descriptor, buffer, size);
}

static ssize_t socket_write_now(hafti_http_stream_t *stream, const void *buffer, size_t size) {
    return haft_io_send(stream->descriptor, buffer, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int socket_shutdown(hafti_http_stream_t *stream, int how) {
    return haft_io_shutdown(stream->descriptor, how);
}

static void socket_close(hafti_http_stream_t *stream) {
    haft_io_close(stream->descriptor);
}

static ssize_t socket_send_file(hafti_http_stream_t *stream, int file, int64_t *offset,
                                size_t size) {
    return haft_io_send_file(stream->descriptor, file, offset, size);
}

static const hafti_http_stream_operations_t socket_operations = {
    .read_lent = socket_read_lent,
    .write_all = socket_write_all,
    .write = socket_write,
    .write_now = socket_write_now,
    .shutdown = socket_shutdown,
    .close = socket_close,
    .send_file = socket_send_file,
};

void hafti_http_stream_open(hafti_http_stream_t *stream, int descriptor) {
    *stream = (hafti_http_stream_t){.operations = &socket_operations, .descriptor = descriptor};
}

void hafti_http_stream_close(hafti_http_stream_t *stream) {
    haft_io_give_back(stream->lent);
    stream->operations->close(stream);
    stream->tls = NULL;
}

static ssize_t take(hafti_http_stream_t *stream, ssize_t size) {
    stream->at = stream->lent;
    stream->end = size > 0 ? stream->at + size : stream->at;
    return size;
}

ssize_t hafti_http_stream_fill(hafti_http_stream_t *stream, int64_t deadline) {
    HAFTI_HTTP_UNKEPT(stream->is_unkept);
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, deadline);
    return take(stream, stream->operations->read_lent(stream, &stream->lent));
}

/* Gives back the memory that it holds, if all bytes in it were taken. */
bool hafti_http_stream_is_drained(hafti_http_stream_t *stream) {
    const hafti_http_stream_operations_t *operations = stream->operations;
    if (stream->at != stream->end ||
        (operations->has_unread != NULL && operations->has_unread(stream)))
        return false;
    haft_io_give_back(stream->lent);
    stream->lent = NULL;
    return true;
}

int hafti_http_stream_write(hafti_http_stream_t *stream, const void *bytes, size_t size,
                            int64_t deadline) {
    HAFTI_HTTP_UNKEPT(stream->is_unkept);
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, deadline);
    return stream->operations->write_all(stream, bytes, size);
}

/* ---- Within limits ---- */

/* The number of bytes that were written and that the peer has not acknowledged. A function of its
   own, so that errno is this thread's. */
static __attribute__((noinline)) uint64_t unacknowledged(int descriptor) {
    int saved = errno, size = 0;
    if (ioctl(descriptor, SIOCOUTQ, &size) != 0)
        size = 0; /* the descriptor is a simulation's, or none */
    errno = saved;
    return size > 0 ? (uint64_t)size : 0;
}

/* Progress counts by the bytes that the peer takes, since a large buffer takes none until much of
   it is free. */
static bool is_patient(hafti_http_stream_t *stream, const haft_http_limits_t *limits) {
    uint64_t waits = unacknowledged(stream->descriptor);
    return hafti_http_patience_left(&stream->patience, limits->write_time, limits->least_rate,
                                    stream->sent > waits ? stream->sent - waits : 0,
                                    haft_io_now()) > 0;
}

typedef struct part part_t;
struct part {
    ssize_t (*write)(hafti_http_stream_t *stream, part_t *part);
    const void *bytes;
    size_t size;
    int file;
    int64_t *offset;
};

/* Like `part->write`, but within the limits. `part->write` moves nothing when it is too late. */
static ssize_t write_part(hafti_http_stream_t *stream, const haft_http_limits_t *limits,
                          part_t *part) {
    for (;;) {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
        int64_t now = haft_io_now();
        hafti_http_patience_begin(&stream->patience, now);
        haft_io_deadline_set(&limit, hafti_http_patience_look(limits->write_time, now));
        ssize_t done = part->write(stream, part);
        bool is_late = done == -ETIMEDOUT && haft_io_deadline_passed(&limit);
        stream->sent += done > 0 ? (uint64_t)done : 0;
        bool has_waited = is_late || haft_io_now_roughly() > now;
        bool gives_up = has_waited && !is_patient(stream, limits);
        if (gives_up && done >= 0 && (size_t)done < part->size)
            return -ETIMEDOUT;
        if (gives_up || !is_late)
            return done;
    }
}

static ssize_t write_bytes(hafti_http_stream_t *stream, part_t *part) {
    return stream->operations->write(stream, part->bytes, part->size);
}

static ssize_t flush(hafti_http_stream_t *stream, part_t *part) {
    (void)part;
    return stream->operations->flush(stream);
}

int hafti_http_stream_write_within(hafti_http_stream_t *stream, const haft_http_limits_t *limits,
                                   const void *bytes, size_t size) {
    part_t part = {.write = write_bytes, .bytes = bytes, .size = size};
    HAFTI_HTTP_UNKEPT(stream->is_unkept);
    if (stream->operations->write == NULL)
        return stream->operations->write_all(stream, bytes, size);
    ssize_t done = 0;
    for (; part.size != 0 && done >= 0; part.size -= done > 0 ? (size_t)done : 0) {
        done = write_part(stream, limits, &part);
        part.bytes = (const char *)part.bytes + (done > 0 ? done : 0);
    }
    if (done >= 0 && stream->operations->flush != NULL)
        done = write_part(stream, limits, &(part_t){.write = flush});
    return done < 0 ? (int)done : 0;
}

static ssize_t send_file(hafti_http_stream_t *stream, part_t *part) {
    return stream->operations->send_file(stream, part->file, part->offset, part->size);
}

/* Sends a file over a stream whose bytes are not the socket's. */
static ssize_t copy_file(hafti_http_stream_t *stream, const haft_http_limits_t *limits, int file,
                         int64_t *offset, size_t size) {
    void *block = haft_io_lend();
    HAFT_IO_SCOPED_LENT const void *const lent = block; /* also when the task is cancelled */
    if (lent == NULL)
        return -ENOMEM;
    ssize_t got =
        haft_io_pread(file, block, size < HAFT_IO_LENT_SIZE ? size : HAFT_IO_LENT_SIZE, *offset);
    int code = got > 0 ? hafti_http_stream_write_within(stream, limits, block, (size_t)got) : 0;
    if (code == 0 && got > 0)
        *offset += got;
    return code == 0 ? got : code;
}

ssize_t hafti_http_stream_send_file(hafti_http_stream_t *stream, const haft_http_limits_t *limits,
                                    int file, int64_t *offset, size_t size) {
    HAFTI_HTTP_UNKEPT(stream->is_unkept);
    if (stream->operations->send_file == NULL)
        return copy_file(stream, limits, file, offset, size);
    part_t part = {.write = send_file, .size = size, .file = file, .offset = offset};
    return write_part(stream, limits, &part);
}
