/* SPDX-License-Identifier: MIT */
/* A connection as a stream: its operations over a socket, each with a limit of time, and what
   has been read of it. */
#include "stream.h"

static ssize_t socket_read_lent(hafti_http_stream_t *stream, const void **bytes) {
    return haft_io_read_lent(stream->descriptor, bytes);
}

static int socket_write_all(hafti_http_stream_t *stream, const void *buffer, size_t size) {
    return haft_io_write_all(stream->descriptor, buffer, size);
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
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, deadline);
    return take(stream, stream->operations->read_lent(stream, &stream->lent));
}

/* Nothing is held then. */
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
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, deadline);
    return stream->operations->write_all(stream, bytes, size);
}

/* Of a stream whose bytes are not the socket's. */
static ssize_t copy_file(hafti_http_stream_t *stream, int file, int64_t *offset, size_t size) {
    void *block = haft_io_lend();
    HAFT_IO_SCOPED_LENT const void *const lent = block; /* also when the task is cancelled */
    if (lent == NULL)
        return -ENOMEM;
    ssize_t got =
        haft_io_pread(file, block, size < HAFT_IO_LENT_SIZE ? size : HAFT_IO_LENT_SIZE, *offset);
    int code = got > 0 ? stream->operations->write_all(stream, block, (size_t)got) : 0;
    if (code == 0 && got > 0)
        *offset += got;
    return code == 0 ? got : code;
}

ssize_t hafti_http_stream_send_file(hafti_http_stream_t *stream, int file, int64_t *offset,
                                    size_t size, int64_t deadline) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, deadline);
    return stream->operations->send_file != NULL
               ? stream->operations->send_file(stream, file, offset, size)
               : copy_file(stream, file, offset, size);
}
