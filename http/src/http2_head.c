/* SPDX-License-Identifier: MIT */
/*
 * Heads of HTTP/2: fields that have come become a message as one of HTTP/1 is, and an answer's
 * become those of nghttp2. nghttp2 has already refused names, values and pseudo fields that RFC
 * 9113 forbids; limits, and what it leaves open, are checked here and in message.c.
 */
#include "http2_frames.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Heads that have come ---- */

/* Copies a text to the head, with a '\0' behind it; there is room for both. */
static uint16_t put(hafti_http_message_t *message, hafti_http_text_t text) {
    size_t at = message->head;
    memcpy(message->block + at, text.bytes, text.size);
    message->block[at + text.size] = '\0';
    message->head = at + text.size + 1;
    return (uint16_t)at;
}

/* Whether the field is the authority once more, as Host (RFC 9113, section 8.3.1). */
static bool repeats_host(const hafti_http_message_t *message, hafti_http_text_t name,
                         hafti_http_text_t value) {
    size_t from = 0;
    hafti_http_text_t host;
    return name.size == 4 && hafti_http_same(name.bytes, name.size, "host") &&
           hafti_http_message_field(message, "host", &from, &host) && host.size == value.size &&
           memcmp(host.bytes, value.bytes, value.size) == 0;
}

static void put_named(hafti_http_message_t *message, hafti_http_text_t name,
                      hafti_http_text_t value) {
    if (repeats_host(message, name, value))
        return;
    if (message->field_count == message->limits->fields) {
        message->status = 431;
        return;
    }
    message->fields[message->field_count++] =
        (hafti_http_field_t){.name = put(message, name),
                             .name_size = (uint16_t)name.size,
                             .value = put(message, value),
                             .value_size = (uint16_t)value.size};
}

static bool is(hafti_http_text_t name, const char *word) {
    return name.size == strlen(word) && memcmp(name.bytes, word, name.size) == 0;
}

static void put_pseudo(hafti_http_message_t *message, hafti_http_text_t name,
                       hafti_http_text_t value) {
    static const hafti_http_text_t host = {"host", 4};
    if (is(name, ":path")) {
        if (value.size > message->limits->request_line)
            message->status = 414;
        message->target_size = value.size;
        message->target = put(message, value);
    } else if (is(name, ":authority")) {
        put_named(message, host, value);
    } else if (is(name, ":method")) {
        int method = hafti_http_method_of(value);
        if (method < 0)
            message->status = 501;
        else
            message->parser.method = (uint8_t)method;
    } else if (is(name, ":status")) {
        message->parser.status_code = (uint16_t)strtoul(value.bytes, NULL, 10);
    }
}

/* After the first error, nothing more is kept. */
void hafti_http2_put_field(hafti_http2_stream_t *stream, hafti_http_text_t name,
                           hafti_http_text_t value) {
    hafti_http_message_t *message = stream->message;
    if (message->status == 0 && name.size + value.size + 4 > message->limits->head - message->head)
        message->status = 431;
    if (message->status != 0)
        return;
    if (*name.bytes == ':')
        put_pseudo(message, name, value);
    else
        put_named(message, name, value);
}

bool hafti_http2_put_trailer(hafti_http2_stream_t *stream, hafti_http_text_t name,
                             hafti_http_text_t value) {
    size_t room = stream->message->limits->head, used = stream->trailers_size;
    if (name.size + value.size + 2 > room - used)
        return false;
    if (stream->trailers == NULL && (stream->trailers = malloc(room)) == NULL)
        return false;
    stream->trailers_size +=
        (size_t)snprintf(stream->trailers + used, room - used, "%.*s%c%.*s", (int)name.size,
                         name.bytes, '\0', (int)value.size, value.bytes) +
        1;
    return true;
}

/* The target of CONNECT is the authority (RFC 9113, section 8.5). */
static void take_authority(hafti_http_message_t *message) {
    size_t from = 0;
    hafti_http_text_t host = {"", 0};
    if (hafti_http_message_field(message, "host", &from, &host)) {
        message->target = (size_t)(host.bytes - message->block);
        message->target_size = host.size;
    }
}

int hafti_http2_check_head(hafti_http2_stream_t *stream) {
    hafti_http_message_t *message = stream->message;
    stream->has_head = true;
    message->memory = message->head;
    message->parser.http_major = 2;
    if (message->status != 0)
        return message->error = -EBADMSG;
    if (message->parser.method == HTTP_CONNECT)
        take_authority(message);
    else if (!stream->has_come)
        message->body = HAFTI_HTTP_UNTIL_CLOSE;
    return hafti_http_message_check(message);
}

/* ---- Heads of answers ---- */

static hafti_http2_stream_t *stream_of(haft_http_request_t *request) {
    return (hafti_http2_stream_t *)request->message.stream;
}

nghttp2_nv hafti_http2_field(hafti_http_text_t name, hafti_http_text_t value) {
    return (nghttp2_nv){.name = (uint8_t *)name.bytes,
                        .namelen = name.size,
                        .value = (uint8_t *)value.bytes,
                        .valuelen = value.size};
}

static size_t count_lines(const char *lines, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += lines[i] == '\n';
    return count;
}

/* Fields that only HTTP/1 has (RFC 9113, section 8.2.2), besides those that no handler may set. */
static bool is_of_connection(hafti_http_text_t name) {
    return hafti_http_same(name.bytes, name.size, "Upgrade") ||
           hafti_http_same(name.bytes, name.size, "Proxy-Connection");
}

/* Turns lines of an answer into fields; returns how many. */
static size_t read_lines(const char *lines, size_t size, nghttp2_nv *fields) {
    size_t count = 0, at = 0;
    hafti_http_text_t name, value;
    while (hafti_http_next_line((hafti_http_text_t){lines, size}, &at, &name, &value))
        if (!is_of_connection(name))
            fields[count++] = hafti_http2_field(name, value);
    return count;
}

enum { OWN_FIELDS = 4, STATUS = 3, LENGTH = 20 /* digits */ };

/* Whether the fields exceed what nghttp2 sends as one head, or as trailers: 64 KiB, in which each
   field also takes room for its lengths. */
static bool is_too_long(size_t lines_size, size_t count) {
    enum { MOST = 65536, OF_FIELD = 12, OWN = 300 };
    return lines_size + count * OF_FIELD > MOST - OWN;
}

/* nghttp2 need not copy them: the request, whose memory has them, ends after its body, before which
   nghttp2 has written the head; or its stream is reset, and then nghttp2 does not look at them. */
static void leave_values(nghttp2_nv *fields, size_t count) {
    for (size_t i = 0; i < count; i++)
        fields[i].flags |= NGHTTP2_NV_FLAG_NO_COPY_VALUE;
}

/* Makes the fields in the request's memory. The head is given to nghttp2 with the first bytes that
   are sent, so that 100 (Continue) may come before it. */
int hafti_http2_make_head(haft_http_request_t *request, const char *type, uint64_t size) {
    hafti_http2_stream_t *stream = stream_of(request);
    const hafti_http_answer_t *answer = &request->answer;
    bool has_size =
        size != HAFT_HTTP_UNKNOWN_SIZE && answer->status != 204 && answer->status != 304;
    size_t most = OWN_FIELDS + count_lines(answer->fields, answer->fields_size);
    hafti_http_text_t given = {type, type != NULL ? strlen(type) : 0};
    hafti_http_text_t value = hafti_http_trim(given);
    if (is_too_long(answer->fields_size + value.size, most))
        return -EMSGSIZE;
    char *date = haft_http_request_allocate(request, HAFTI_HTTP_DATE + STATUS + LENGTH);
    nghttp2_nv *fields = haft_http_request_allocate(request, most * sizeof *fields);
    /* The handler's may be gone when the head is sent. */
    char *kept = type != NULL ? hafti_http_copy(&request->message, value.bytes, value.size) : NULL;
    if (date == NULL || fields == NULL || (type != NULL && kept == NULL))
        return -ENOMEM;
    char *status = date + HAFTI_HTTP_DATE;
    char *length = hafti_http_put_number(status, (uint64_t)answer->status);
    char *end = hafti_http_put_number(length, size);
    hafti_http_put_now(date);
    size_t count = 0;
    fields[count++] = HAFTI_HTTP2_FIELD(":status", status, STATUS);
    if (!answer->has_date)
        fields[count++] = HAFTI_HTTP2_FIELD("date", date, HAFTI_HTTP_DATE);
    if (has_size)
        fields[count++] = HAFTI_HTTP2_FIELD("content-length", length, (size_t)(end - length));
    if (type != NULL)
        fields[count++] = HAFTI_HTTP2_FIELD("content-type", kept, value.size);
    count += read_lines(answer->fields, answer->fields_size, fields + count);
    stream->head = fields;
    stream->head_count = count;
    stream->has_body = !answer->without_body && size != 0;
    if (stream->has_body)
        leave_values(fields, count);
    return 0;
}

nghttp2_nv *hafti_http2_make_informed(haft_http_request_t *request, int status, const char *lines,
                                      size_t size, size_t *count) {
    size_t most = 1 + count_lines(lines, size);
    nghttp2_nv *fields = haft_http_request_allocate(request, most * sizeof *fields);
    char *digits = haft_http_request_allocate(request, STATUS);
    if (fields == NULL || digits == NULL)
        return NULL;
    hafti_http_put_number(digits, (uint64_t)status);
    fields[0] = HAFTI_HTTP2_FIELD(":status", digits, STATUS);
    *count = 1 + read_lines(lines, size, fields + 1);
    return fields;
}

int hafti_http2_make_end(haft_http_request_t *request) {
    hafti_http2_stream_t *stream = stream_of(request);
    const hafti_http_answer_t *answer = &request->answer;
    size_t count = count_lines(answer->trailers, answer->trailers_size);
    if (is_too_long(answer->trailers_size, count))
        return -EMSGSIZE;
    nghttp2_nv *fields =
        count != 0 ? haft_http_request_allocate(request, count * sizeof *fields) : NULL;
    if (count != 0 && fields == NULL)
        return -ENOMEM;
    stream->is_last = true;
    stream->trailers_out = fields;
    stream->trailers_out_count = read_lines(answer->trailers, answer->trailers_size, fields);
    return 0;
}
