/* SPDX-License-Identifier: MIT */
/*
 * The body of a message. A sized one is taken from what has been read and then from the stream. A
 * chunked one goes through the parser, which never gives more bytes than it gets: so it gets at
 * most as many as the caller has room for, and they go there at once.
 */
#include "message.h"

#include <stdlib.h>

int hafti_http_message_fail(hafti_http_message_t *message, int code) {
    static const struct {
        int code, status;
    } statuses[] = {{-EMSGSIZE, 413},
                    {-ETIMEDOUT, 408},
                    {-EBADMSG, 400},
                    {-EPIPE, 400},
                    {-ECONNRESET, 400}}; /* no peer is there to get it */
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].code == code)
            message->status = statuses[i].status;
    return message->error = code;
}

/* The time when the patience with the sender of the body ends; its bytes have been counted since
   the last wait. The time in which no task reads does not count: so a handler may be slow. */
static int64_t deadline_of(hafti_http_message_t *message, int64_t now) {
    const haft_http_limits_t *limits = message->limits;
    hafti_http_patience_begin(&message->patience, now);
    return hafti_http_deadline(now,
                               hafti_http_patience_left(&message->patience, limits->body_time,
                                                        limits->least_rate, message->got, now));
}

static ssize_t fill(hafti_http_message_t *message) {
    hafti_http_stream_t *stream = message->stream;
    if (stream->at != stream->end)
        return stream->end - stream->at;
    HAFTI_HTTP_UNKEPT(stream->is_unkept);
    int64_t begun = haft_io_now();
    ssize_t size = hafti_http_stream_fill(stream, deadline_of(message, begun));
    hafti_http_patience_left(&message->patience, message->limits->body_time,
                             message->limits->least_rate, message->patience.moved, haft_io_now());
    if (size <= 0)
        return hafti_http_message_fail(message, size == 0 ? -EPIPE : (int)size);
    return size;
}

static ssize_t read_piece(hafti_http_message_t *message, char *buffer, size_t size) {
    ssize_t there = fill(message);
    if (there <= 0)
        return there;
    if (size > (size_t)there)
        size = (size_t)there;
    if (size > message->left)
        size = (size_t)message->left;
    memcpy(buffer, message->stream->at, size);
    message->stream->at += size;
    message->left -= size;
    message->got += size;
    return (ssize_t)size;
}

/* Treats the stream's end as the end of the body, and not as an error. */
static ssize_t end_with_stream(hafti_http_message_t *message, ssize_t got) {
    if (got != -EPIPE)
        return got;
    message->is_complete = true;
    return message->error = 0;
}

static ssize_t read_until_close(hafti_http_message_t *message, char *buffer, size_t size) {
    if (message->got > message->limit)
        return hafti_http_message_fail(message, -EMSGSIZE);
    message->left = size;
    return end_with_stream(message, read_piece(message, buffer, size));
}

/* Over HTTP/2 trailers may follow, so the body has not ended with its last byte, but with its
   stream. nghttp2 lets no further byte come before that. */
static ssize_t read_sized(hafti_http_message_t *message, char *buffer, size_t size) {
    if (message->left + message->got > message->limit)
        return hafti_http_message_fail(message, -EMSGSIZE);
    ssize_t got = read_piece(message, buffer, size);
    if (message->left != 0)
        return got;
    message->is_complete = message->parser.http_major != 2;
    return end_with_stream(message, got);
}

/* Chunks of one byte have five of framing each; beyond this it is extensions and zeros. */
static bool has_too_much_framing(const hafti_http_message_t *message) {
    return message->framing > message->limits->head + 8 * message->got;
}

/* The parser takes trailers that it should not: lines that end with LF alone, folded lines, empty
   names. */
static bool are_trailers(hafti_http_message_t *message, const char *at, const char *end) {
    for (; at != end; message->last = *at++)
        if ((*at == '\n' && message->last != '\r') ||
            (message->last == '\n' && (*at == ' ' || *at == '\t' || *at == ':')))
            return false;
    return true;
}

static ssize_t read_chunked(hafti_http_message_t *message, char *buffer, size_t size) {
    message->into = buffer;
    message->into_size = 0;
    while (message->into_size == 0 && !message->is_complete) {
        ssize_t there = fill(message);
        if (there <= 0)
            return there;
        if ((size_t)there > size)
            there = (ssize_t)size;
        const char *start = message->stream->at;
        bool in_trailers = message->in_trailers;
        llhttp_errno_t code = hafti_http_message_parse(message, start, (size_t)there);
        const char *end = code == HPE_PAUSED ? message->parser.error_pos : start + there;
        if (code != HPE_OK && code != HPE_PAUSED)
            return hafti_http_message_fail(message, -EBADMSG);
        message->stream->at = end;
        message->got += message->into_size;
        message->framing += (size_t)(end - start) - message->into_size;
        if (has_too_much_framing(message) || (in_trailers && !are_trailers(message, start, end)))
            return hafti_http_message_fail(message, -EBADMSG);
        if (message->got > message->limit)
            return hafti_http_message_fail(message, -EMSGSIZE);
    }
    return (ssize_t)message->into_size;
}

static ssize_t read_some(hafti_http_message_t *message, void *buffer, size_t size) {
    if (message->error != 0)
        return message->error;
    if (message->is_complete || size == 0)
        return 0;
    if (buffer == NULL)
        return -EFAULT;
    if (message->body == HAFTI_HTTP_CHUNKED)
        return read_chunked(message, buffer, size);
    if (message->body == HAFTI_HTTP_UNTIL_CLOSE)
        return read_until_close(message, buffer, size);
    return read_sized(message, buffer, size);
}

ssize_t hafti_http_message_read_plain(hafti_http_message_t *message, void *buffer, size_t size) {
    ssize_t got = read_some(message, buffer, size);
    if (got > 0 && message->copy != NULL)
        hafti_http_bytes_add(message->copy, buffer, (size_t)got);
    return got;
}

/* A function of its own, so that a request without a body needs no room for it on the stack. */
__attribute__((noinline)) static bool skip_body(hafti_http_message_t *message, uint64_t most) {
    char bytes[1024];
    if (message->waits_for_word)
        return false; /* it may send the body, or not */
    if (message->limit > message->got + most)
        message->limit = message->got + most;
    while (!message->is_complete)
        if (hafti_http_message_read_plain(message, bytes, sizeof bytes) <= 0)
            return message->is_complete;
    return true;
}

bool hafti_http_message_skip(hafti_http_message_t *message, uint64_t most) {
    return message->is_complete || skip_body(message, most);
}
