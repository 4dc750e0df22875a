/* SPDX-License-Identifier: MIT */
/* A connection as a stream: its operations over a socket, each with a limit of time, and what has been read of it. */
#include "internal.h"

static ssize_t socket_read_lent(hafti_http_stream_t *stream, const void **bytes) {
    return haft_io_read_lent(stream->descriptor, bytes);
}

static ssize_t socket_exchange(hafti_http_stream_t *stream, const void *buffer, size_t size,
                               const void **bytes) {
    return haft_io_exchange(stream->descriptor, buffer, size, bytes);
}

static int socket_write_all(hafti_http_stream_t *stream, const void *buffer, size_t size) {
    return haft_io_write_all(stream->descriptor, buffer, size);
}

static int socket_shutdown(hafti_http_stream_t *stream, int how) {
    return haft_io_shutdown(stream->descriptor, how);
}

static void socket_close(hafti_http_stream_t *stream) {
    haft_io_close(stream->descriptor);
}

static const hafti_http_stream_operations_t socket_operations = {
    socket_read_lent, socket_exchange, socket_write_all, socket_shutdown, socket_close,
};

void hafti_http_stream_open(hafti_http_stream_t *stream, int descriptor) {
    *stream = (hafti_http_stream_t){.operations = &socket_operations, .descriptor = descriptor};
}

void hafti_http_stream_close(hafti_http_stream_t *stream) {
    haft_io_give_back(stream->lent);
    stream->operations->close(stream);
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

ssize_t hafti_http_stream_exchange(hafti_http_stream_t *stream, const void *block, size_t size,
                                   int64_t deadline) {
    haft_io_give_back(stream->lent);
    stream->lent = block;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, deadline);
    return take(stream, stream->operations->exchange(stream, block, size, &stream->lent));
}

int hafti_http_stream_write(hafti_http_stream_t *stream, const void *bytes, size_t size,
                            int64_t deadline) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, deadline);
    return stream->operations->write_all(stream, bytes, size);
}
