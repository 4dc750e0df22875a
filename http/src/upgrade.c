/* SPDX-License-Identifier: MIT */
/* Connections that go on as streams of bytes. The first bytes are those that were read behind the
   head. */
#include "internal.h"

/* Whether the request lists the word in fields of this name. */
static bool lists(const haft_http_request_t *request, const char *name, const char *word) {
    hafti_http_text_t list;
    size_t from = 0;
    while (hafti_http_message_field(&request->message, name, &from, &list))
        if (hafti_http_lists(list, word))
            return true;
    return false;
}

static int begin_stream(haft_http_request_t *request, int status, const char *line,
                        const char *protocol) {
    if (request->answer.progress != HAFTI_HTTP_NOT_BEGUN)
        return -EALREADY;
    int code = hafti_http_answer_stream(request, status, line, protocol);
    request->keeps = false;
    request->answer.is_stream = code == 0;
    if (code == 0)
        hafti_http_kept_forget(request);
    return code;
}

bool hafti_http_asks_to_upgrade(const haft_http_request_t *request, const char *protocol) {
    const hafti_http_message_t *message = &request->message;
    return message->parser.http_minor == 1 && message->is_complete &&
           lists(request, "Connection", "upgrade") && lists(request, "Upgrade", protocol);
}

int haft_http_request_upgrade(haft_http_request_t *request, const char *protocol) {
    if (!hafti_http_is_given_value(protocol) || !hafti_http_asks_to_upgrade(request, protocol))
        return -ENOTSUP;
    return begin_stream(
        request, 101,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ", protocol);
}

int haft_http_request_tunnel(haft_http_request_t *request) {
    if (request->message.parser.method != HTTP_CONNECT)
        return -ENOTSUP;
    return begin_stream(request, 200, "HTTP/1.1 200 Connected", "");
}

static int refuse_stream(const char *function) {
    return haft_io_refuse(-EINVAL, function,
                          "the connection is no stream yet: call haft_http_request_upgrade, or "
                          "haft_http_request_tunnel, first");
}

ssize_t haft_http_stream_read(haft_http_request_t *request, void *buffer, size_t size) {
    hafti_http_stream_t *stream = request->message.stream;
    if (!request->answer.is_stream)
        return refuse_stream(__func__);
    if (stream->at == stream->end) {
        ssize_t got = hafti_http_stream_fill(stream, HAFT_IO_FOREVER);
        if (got <= 0)
            return got;
    }
    size_t there = (size_t)(stream->end - stream->at);
    size = size < there ? size : there;
    if (buffer == NULL && size != 0)
        return -EFAULT;
    memcpy(buffer, stream->at, size);
    stream->at += size;
    return (ssize_t)size;
}

int haft_http_stream_write(haft_http_request_t *request, const void *bytes, size_t size) {
    if (!request->answer.is_stream)
        return refuse_stream(__func__);
    return bytes != NULL || size == 0 ? hafti_http_answer_send(request, bytes, size) : -EFAULT;
}

int haft_http_stream_shutdown(haft_http_request_t *request) {
    hafti_http_stream_t *stream = request->message.stream;
    return request->answer.is_stream ? stream->operations->shutdown(stream, SHUT_WR)
                                     : refuse_stream(__func__);
}
