/* SPDX-License-Identifier: MIT */
/* A client of HTTP/2 for the tests of libhaft-http: nghttp2's own session, over a connection of the
   test's. */
#ifndef CHECK_HTTP2_H
#define CHECK_HTTP2_H

#include "check_http.h"

#include <nghttp2/nghttp2.h>

enum { STREAMS = 256 };

typedef struct {
    char status[4], trailer[20], sum[20], type[40];
    char *body;
    size_t size;
    bool was_told, was_hinted; /* 100 (Continue), 103 (Early Hints) before the head */
    bool is_closed;
    uint32_t error;
    const char *out; /* what is left to be sent; NULL: nothing */
    size_t out_size;
    const char *last; /* a trailer; NULL: none */
} answer_t;

typedef struct {
    int descriptor;
    nghttp2_session *session;
    bool has_ended; /* the connection */
    bool is_cut;    /* a part of what was to be sent was not, so nothing could follow */
    bool is_told_to_go;
    uint32_t reason;
    answer_t answers[STREAMS];
} client_t;

/* The answer that a client_t has for the stream. */
static inline answer_t *answer_of(void *client, int32_t id) {
    CHECK(id >= 0 && id < STREAMS);
    return &((client_t *)client)->answers[id];
}

static inline int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                            const uint8_t *name, size_t name_size, const uint8_t *value,
                            size_t size, uint8_t flags, void *client) {
    answer_t *answer = answer_of(client, frame->hd.stream_id);
    (void)session, (void)name_size, (void)flags;
    CHECK(strcmp((const char *)name, "upgrade") != 0 && strcmp((const char *)name, "connection"));
    if (strcmp((const char *)name, ":status") == 0)
        snprintf(answer->status, sizeof answer->status, "%.*s", (int)size, (const char *)value);
    else if (strcmp((const char *)name, "x-end") == 0)
        snprintf(answer->trailer, sizeof answer->trailer, "%s", (const char *)value);
    else if (strcmp((const char *)name, "x-sum") == 0)
        snprintf(answer->sum, sizeof answer->sum, "%s", (const char *)value);
    else if (strcmp((const char *)name, "content-type") == 0)
        snprintf(answer->type, sizeof answer->type, "%s", (const char *)value);
    answer->was_told |= strcmp(answer->status, "100") == 0;
    answer->was_hinted |= strcmp(answer->status, "103") == 0;
    return 0;
}

static inline int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                          size_t size, void *client) {
    answer_t *answer = answer_of(client, id);
    (void)session, (void)flags;
    answer->body = (char *)realloc(answer->body, answer->size + size + 1);
    memcpy(answer->body + answer->size, bytes, size);
    answer->size += size;
    answer->body[answer->size] = '\0';
    return 0;
}

static inline int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *client) {
    (void)session;
    answer_of(client, id)->is_closed = true;
    answer_of(client, id)->error = code;
    return 0;
}

static inline int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *argument) {
    client_t *client = (client_t *)argument;
    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
        client->is_told_to_go = true;
        client->reason = frame->goaway.error_code;
    }
    return 0;
}

/* With an open connection. Windows that are `kept` are opened by the test alone. */
static inline void begin_client_with(client_t *client, int descriptor,
                                     const nghttp2_settings_entry *settings, size_t count,
                                     bool kept) {
    nghttp2_session_callbacks *callbacks;
    memset(client, 0, sizeof *client);
    client->descriptor = descriptor;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_option *option;
    nghttp2_option_new(&option);
    nghttp2_option_set_peer_max_concurrent_streams(option, STREAMS); /* until it sets another
                                                                        number */
    nghttp2_option_set_no_auto_window_update(option, kept);
    nghttp2_session_client_new2(&client->session, callbacks, client, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, settings, count);
}

static inline void begin_client(client_t *client, int descriptor,
                                const nghttp2_settings_entry *settings, size_t count) {
    begin_client_with(client, descriptor, settings, count, false);
}

static inline void open_client(client_t *client, uint16_t port,
                               const nghttp2_settings_entry *settings, size_t count) {
    int descriptor = haft_io_connect_tcp("127.0.0.1", port);
    CHECK(descriptor >= 0);
    begin_client(client, descriptor, settings, count);
}

static inline void close_client(client_t *client) {
    for (int i = 0; i < STREAMS; i++)
        free(client->answers[i].body);
    nghttp2_session_del(client->session);
    haft_io_close(client->descriptor);
}

/* Sends what there is to send. */
static inline void say(client_t *client) {
    const uint8_t *bytes;
    ssize_t size;
    while (!client->is_cut && (size = nghttp2_session_mem_send(client->session, &bytes)) > 0)
        client->is_cut = haft_io_write_all(client->descriptor, bytes, (size_t)size) != 0;
}

/* Hears something, at most for some seconds; false: the end, or nothing. */
static inline bool hear(client_t *client, int seconds) {
    uint8_t bytes[4096];
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + seconds * HAFT_IO_SECOND);
    ssize_t size = haft_io_read(client->descriptor, bytes, sizeof bytes);
    if (size == -ETIMEDOUT)
        return false;
    client->has_ended = size <= 0;
    if (size > 0)
        CHECK(nghttp2_session_mem_recv(client->session, bytes, (size_t)size) == size);
    return size > 0;
}

static inline const answer_t *hear_whole(client_t *client, int32_t id) {
    answer_t *answer = answer_of(client, id);
    do
        say(client);
    while (!answer->is_closed && hear(client, 200));
    return answer;
}

static inline ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *into, size_t size,
                               uint32_t *flags, nghttp2_data_source *source, void *client) {
    answer_t *answer = answer_of(client, id);
    (void)source;
    size = size < answer->out_size ? size : answer->out_size;
    memcpy(into, answer->out, size);
    answer->out += size;
    answer->out_size -= size;
    if (answer->out_size != 0)
        return (ssize_t)size;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (answer->last != NULL) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_nv trailer = {(uint8_t *)"x-sum", (uint8_t *)answer->last, 5, strlen(answer->last),
                              0};
        nghttp2_submit_trailer(session, id, &trailer, 1);
    }
    return (ssize_t)size;
}

enum { MOST_FIELDS = 20 };

/* Asks, with `fields` as "name: value\n" each, among which is all but the method where `path` is
   NULL; a body of `size` bytes, and a trailer behind it. */
static inline int32_t ask_with(client_t *client, const char *method, const char *path,
                               const char *fields, const char *body, size_t size,
                               const char *trailer) {
    nghttp2_nv all[MOST_FIELDS];
    memset(all, 0, sizeof all);
    char copy[2000];
    size_t count = 0;
    if (path != NULL)
        snprintf(copy, sizeof copy, ":method: %s\n:scheme: http\n:path: %s\n:authority: here\n%s",
                 method, path, fields);
    else
        snprintf(copy, sizeof copy, ":method: %s\n%s", method, fields);
    for (char *line = copy, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char *colon = strchr(line + 1, ':');
        const nghttp2_nv field = {(uint8_t *)line, (uint8_t *)colon + 2, (size_t)(colon - line),
                                  (size_t)(end - colon - 2), 0};
        all[count++] = field;
    }
    nghttp2_data_provider provider = {.read_callback = read_out};
    int32_t id = nghttp2_submit_request(client->session, NULL, all, count,
                                        body != NULL ? &provider : NULL, NULL);
    CHECK(id > 0);
    const answer_t fresh = {.out = body, .out_size = size, .last = trailer};
    *answer_of(client, id) = fresh;
    return id;
}

static inline int32_t ask(client_t *client, const char *method, const char *path) {
    return ask_with(client, method, path, "", NULL, 0, NULL);
}

#endif
