/* SPDX-License-Identifier: MIT */
/*
 * Questions of a handler whose request is kept, or replayed (kept.c). The record has what the
 * handler gets, and not by which way: the fact that there is a connection, the bytes that come on
 * it, in the clear, and the results of its writes. So it does not matter whether another request
 * has opened the connection, whether it is over TLS, or goes through a proxy. A replay opens none.
 */
#include "client.h"

#include <stdio.h>

static const char connection[] = "a connection for a question", reading[] = "a part of a reply",
                  writing[] = "a part of a question";
enum { NEW, KEPT, OF_HTTP2 }; /* the kinds of connections, as bytes of the record */

/* ---- Its connection ---- */

static ssize_t keep_lent(hafti_http_stream_t *stream, const void **bytes) {
    bool was = haft_io_kept_pause();
    ssize_t got = stream->inner->read_lent(stream, bytes);
    haft_io_kept_resume(was);
    if (haft_io_kept_use() == HAFT_IO_TAPE_KEEPS)
        haft_io_tape_keep(reading, -1, got,
                          &(struct iovec){(void *)(uintptr_t)*bytes, got > 0 ? (size_t)got : 0}, 1);
    return got;
}

static int keep_written(hafti_http_stream_t *stream, const void *bytes, size_t size) {
    bool was = haft_io_kept_pause();
    int code = stream->inner->write_all(stream, bytes, size);
    haft_io_kept_resume(was);
    if (haft_io_kept_use() == HAFT_IO_TAPE_KEEPS)
        haft_io_tape_keep(writing, -1, code, NULL, 0);
    return code;
}

static int shut(hafti_http_stream_t *stream, int how) {
    HAFTI_HTTP_UNKEPT(true);
    return stream->inner->shutdown(stream, how);
}

static void close_stream(hafti_http_stream_t *stream) {
    HAFTI_HTTP_UNKEPT(true);
    stream->inner->close(stream);
}

static bool has_unread(hafti_http_stream_t *stream) {
    HAFTI_HTTP_UNKEPT(true);
    return stream->inner->has_unread != NULL && stream->inner->has_unread(stream);
}

static const hafti_http_stream_operations_t kept = {.read_lent = keep_lent,
                                                    .write_all = keep_written,
                                                    .shutdown = shut,
                                                    .close = close_stream,
                                                    .has_unread = has_unread};

/* ---- Its replay ---- */

static ssize_t answer_lent(hafti_http_stream_t *stream, const void **bytes) {
    (void)stream;
    const unsigned char *came;
    size_t size;
    ssize_t got = (ssize_t)haft_io_tape_ask(reading, -1, &came, &size);
    haft_io_give_back(*bytes);
    void *block = haft_io_lend();
    *bytes = block;
    if (block == NULL)
        return -ENOMEM;
    if (got > 0)
        memcpy(block, came, size < HAFT_IO_LENT_SIZE ? size : HAFT_IO_LENT_SIZE);
    return got;
}

static int answer_written(hafti_http_stream_t *stream, const void *bytes, size_t size) {
    (void)stream, (void)bytes, (void)size;
    const unsigned char *unused;
    size_t none;
    return (int)haft_io_tape_ask(writing, -1, &unused, &none);
}

static int shut_nothing(hafti_http_stream_t *stream, int how) {
    (void)stream, (void)how;
    return 0;
}

static void close_nothing(hafti_http_stream_t *stream) {
    (void)stream;
}

static const hafti_http_stream_operations_t replayed = {.read_lent = answer_lent,
                                                        .write_all = answer_written,
                                                        .shutdown = shut_nothing,
                                                        .close = close_nothing};

/* ---- A question ---- */

void hafti_http_untape_stream(hafti_http_stream_t *stream) {
    if (stream->inner != NULL)
        stream->operations = stream->inner;
    stream->inner = NULL;
}

int hafti_http_tape_connection(haft_http_reply_t *reply, hafti_http_need_t need,
                               hafti_http_connect_t *connect) {
    if (haft_io_kept_use() == HAFT_IO_TAPE_ANSWERS) {
        const unsigned char *state;
        size_t size;
        int code = (int)haft_io_tape_ask(connection, -1, &state, &size);
        reply->was_kept = size != 0 && *state == KEPT;
        reply->stream = (hafti_http_stream_t){.operations = &replayed, .descriptor = -1};
        if (size != 0 && *state == OF_HTTP2) {
            fprintf(stderr, "haft-http: the handler has asked over HTTP/2, whose connections "
                            "requests share: that is not on the record.\n");
            return -ENOTSUP;
        }
        return code;
    }
    bool was = haft_io_kept_pause();
    int code = connect(reply, need);
    haft_io_kept_resume(was);
    unsigned char state = reply->http2 != NULL ? OF_HTTP2 : reply->was_kept ? KEPT : NEW;
    haft_io_tape_keep(connection, -1, code, &(struct iovec){&state, 1}, 1);
    if (code == 0 && state != OF_HTTP2) {
        reply->stream.inner = reply->stream.operations;
        reply->stream.operations = &kept;
    }
    return code;
}
