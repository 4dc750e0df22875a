/* SPDX-License-Identifier: MIT */
/*
 * A connection: one request after the other, each answered by its handler, on one task. While it
 * waits for a request, also for the first, it rests (haft_io_rest): its record below is all that is
 * left. A turn begins when something has come, and serves what there is.
 */
#include "http2.h"

#include <poll.h>
#include <stdlib.h>

/* ---- Requests ---- */

typedef struct {
    haft_io_rest_t rest; /* the first: what wakes it, and what it then needs, lie side by side */
    hafti_http_accepted_t accepted;
    hafti_http_stream_t stream;
    hafti_http_link_t link;
    int64_t deadline;  /* of what it waits for */
    int64_t agreed_by; /* when what comes before the first request must be over */
    bool rests;        /* what follows this turn; otherwise its end */
    bool has_agreed;   /* what comes before the first request is over */
    bool lingers;      /* when it is closed, the client may still be sending */
    bool is_over;      /* the client has all that it gets */
    bool is_idle;      /* nothing has come in its time, or nothing more comes */
    bool is_http1;     /* by its first request */
    bool has_preface;  /* of HTTP/2, instead of a request */
    bool waits;        /* for the next request, of which nothing has come */
    bool is_shut;      /* nothing more is read: the server was told to stop when a request came */
    hafti_http_served_t served;
    const char *left; /* of the last answer, sent before the wait for the next request; or NULL */
    size_t left_size;
} connection_t;
_Static_assert(sizeof(haft_http_request_t) <= HAFT_IO_LENT_SIZE, "a request fits in a block");

static bool flush_last(haft_http_request_t *request, connection_t *connection) {
    connection->is_over = haft_http_answer_flush(request) == 0;
    return connection->is_over;
}

/* The server may shut a connection that is idle, but not afterwards. */
static bool has_come(connection_t *connection, ssize_t size) {
    connection->is_shut = !atomic_exchange(&connection->link.idle, false);
    connection->is_idle = size <= 0;
    return size > 0;
}

/* Sends what is left of the answer, or leaves it to the wait for the next request; whether the
   connection goes on. */
static bool finish(haft_http_request_t *request, connection_t *connection) {
    hafti_http_stream_t *stream = &connection->stream;
    hafti_http_answer_t *answer = &request->answer;
    int code = hafti_http_answer_complete(request);
    if (request->server->notes_requests)
        hafti_http_note_request(request);
    if (code != 0)
        return false;
    if (!request->message.is_complete && haft_http_answer_flush(request) != 0)
        return false; /* the client may wait for the answer before it sends the rest of its body */
    connection->lingers = !hafti_http_message_skip(&request->message, HAFTI_HTTP_SKIPPED);
    if (!request->keeps || connection->lingers || stream->at != stream->end)
        return flush_last(request, connection) && request->keeps && !connection->lingers;
    atomic_store(&connection->link.idle, true);
    if (atomic_load(&connection->accepted.server->stopping)) {
        flush_last(request, connection);
        return false;
    }
    connection->waits = true;
    connection->left = answer->block;
    connection->left_size = answer->size;
    answer->block = NULL;
    return true;
}

static void *take_turn(void *argument);

static void rest(connection_t *connection) {
    connection->rests = true;
    haft_io_rest(&connection->rest, connection->stream.descriptor, connection->deadline, take_turn,
                 connection);
}

/* Rests until the next request; the rest also sends what is left of the last answer, without a
   stack. Where it cannot, this function sends it, and the task may be cancelled. */
static void send_and_rest(connection_t *connection) {
    haft_io_send_and_rest(&connection->rest, connection->left, connection->left_size,
                          connection->stream.descriptor, connection->deadline, take_turn,
                          connection);
    connection->rests = true;
}

/* Sends what is left of the last answer, and rests until the next request comes, or waits for it
   here, where some of it has been read: whether the connection goes on. */
static bool wait_for_next(connection_t *connection) {
    hafti_http_stream_t *stream = &connection->stream;
    connection->waits = false;
    connection->deadline =
        hafti_http_deadline(haft_io_now_roughly(), connection->accepted.server->limits.idle_time);
    if (stream->tls == NULL && connection->left != NULL && hafti_http_stream_is_drained(stream)) {
        send_and_rest(connection);
        return true;
    }
    HAFT_IO_SCOPED_LENT const void *const left = connection->left;
    if (left != NULL &&
        hafti_http_stream_write(stream, left, connection->left_size, connection->deadline) != 0)
        return false;
    if (hafti_http_stream_is_drained(stream)) {
        rest(connection);
        return true;
    }
    return has_come(connection, hafti_http_stream_fill(stream, connection->deadline));
}

/* The beginning of HTTP/2, on a connection that has had no request (RFC 9113, section 3.4). For
   HTTP/1 it is a head of another version. */
static bool is_preface(const hafti_http_message_t *message, const connection_t *connection) {
    return hafti_http_has_http2 && !connection->is_http1 &&
           message->head == sizeof HAFTI_HTTP2_PREFACE - 1 &&
           memcmp(message->block, HAFTI_HTTP2_PREFACE, message->head) == 0;
}

static void end_request(haft_http_request_t *const *request) {
    hafti_http_request_end(*request);
    haft_io_give_back(*request);
}

/* Whether the connection goes on. If the connection is shut before a request is complete, the
   request gets no answer, so the client may ask again elsewhere. */
static bool serve_request(connection_t *connection) {
    haft_http_request_t *made = haft_io_lend();
    if (made == NULL)
        return false;
    hafti_http_request_begin(made, connection->accepted.server, &connection->stream,
                             &connection->served);
    __attribute__((cleanup(end_request))) haft_http_request_t *request = made;
    int code = hafti_http_message_read_head(&request->message);
    connection->has_preface = code == -EBADMSG && is_preface(&request->message, connection);
    if (connection->has_preface || (code != 0 && code != -EBADMSG) ||
        (connection->is_shut && (code != 0 || !hafti_http_message_has_come(&request->message))))
        return false;
    connection->is_http1 = true;
    hafti_http_request_answer(request, code);
    return finish(request, connection);
}

/* ---- The connection ---- */

/* Ends the output, and reads what the client has sent meanwhile, or is sending: if that were left,
   the kernel would reset the connection, and the client might never see the end of what it has not
   read yet (RFC 9112, section 9.6), nor the alert with the reason of a failed handshake. The bytes
   are dropped, so they are read without TLS. */
static void linger(connection_t *connection) {
    hafti_http_stream_t *stream = &connection->stream;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + HAFT_IO_SECOND);
    stream->operations->shutdown(stream, SHUT_WR);
    for (ssize_t got = 1; got > 0;) {
        HAFT_IO_SCOPED_LENT const void *bytes = NULL;
        got = haft_io_read_lent(stream->descriptor, &bytes);
    }
}

/* Ends the turn, also where the task is unwound. */
static void end_turn(connection_t *const *argument) {
    connection_t *connection = *argument;
    if (connection->rests)
        return;
    hafti_http_server_leave(connection->accepted.server, &connection->link);
    hafti_http_stream_close(&connection->stream);
    hafti_http_leave_place(&connection->accepted);
    free(connection);
}

/* Serves frames of HTTP/2 from here on: no request of HTTP/1 follows them. */
static void serve_http2(connection_t *connection, bool has_preface) {
    hafti_http2_serve(connection->accepted.server, &connection->stream, &connection->link,
                      has_preface);
    connection->lingers = true;
}

/* The deadline that is `time` from now; a server that stops waits for a moment only. */
static int64_t first_deadline(const haft_http_server_t *server, int64_t time) {
    return atomic_load(&server->stopping) ? hafti_http_fresh_until()
                                          : hafti_http_deadline(haft_io_now_roughly(), time);
}

/* Waits for the first byte, and until it comes the connection is idle; returns whether the client
   may go on. */
static bool has_spoken(connection_t *connection) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, connection->deadline);
    return has_come(connection, haft_io_wait_ready(connection->stream.descriptor, POLLIN)) &&
           !connection->is_shut;
}

/* Does everything that comes before the first request. A server that stops meanwhile waits for its
   end, and then for the request. */
static bool agree(connection_t *connection) {
    hafti_http_stream_t *stream = &connection->stream;
    haft_http_server_t *server = connection->accepted.server;
    if (!has_spoken(connection))
        return false;
    if (connection->accepted.is_announced &&
        hafti_http_read_proxy_header(stream, connection->agreed_by) != 0)
        return false;
    int code = server->tls != NULL ? hafti_http_stream_agree(stream, connection->agreed_by) : 0;
    connection->lingers = code != 0 && code != -ETIMEDOUT;
    if (code != 0)
        return false;
    atomic_store(&connection->link.idle, true); /* before it looks whether the server stops */
    connection->deadline = first_deadline(server, server->limits.idle_time);
    connection->has_agreed = true;
    return true;
}

/* Whether there are bytes to serve; it may rest. A server that is told to stop shuts connections
   that are idle: they read the end of the stream. */
static bool begin_turn(connection_t *connection) {
    hafti_http_stream_t *stream = &connection->stream;
    if (!connection->has_agreed) {
        if (!agree(connection))
            return false;
        if (hafti_http_stream_is_drained(stream)) {
            rest(connection);
            return false;
        }
    }
    bool goes_on = has_come(connection, hafti_http_stream_fill(stream, connection->deadline));
    atomic_store_explicit(&connection->link.is_fresh, false, memory_order_release);
    return goes_on;
}

/* Serves requests until all bytes that have come are used up, or the connection ends. */
static void serve_requests(connection_t *connection) {
    bool goes_on = true;
    while (goes_on && !connection->rests) {
        goes_on = serve_request(connection);
        if (goes_on && connection->waits)
            goes_on = wait_for_next(connection);
    }
}

static void *take_turn(void *argument) {
    __attribute__((cleanup(end_turn))) connection_t *connection = argument;
    connection->rests = false;
    haft_io_own_set(&connection->served);
    bool goes_on = haft_io_rest_sent(&connection->rest) == 0 && begin_turn(connection);
    if (goes_on && !connection->is_http1 && hafti_http_stream_chose_http2(&connection->stream))
        serve_http2(connection, false);
    else if (goes_on)
        serve_requests(connection);
    if (connection->has_preface)
        serve_http2(connection, true);
    if (!connection->rests && (connection->lingers || connection->is_over))
        linger(connection);
    else if (!connection->rests && connection->is_idle && connection->has_agreed)
        hafti_http_stream_send_end(&connection->stream);
    return NULL;
}

static void *begin(void *argument) {
    connection_t *connection = argument;
    haft_http_server_t *server = connection->accepted.server;
    const haft_http_limits_t *limits = &server->limits;
    hafti_http_stream_open(&connection->stream, connection->accepted.descriptor);
    if (server->tls != NULL)
        hafti_http_stream_secure(&connection->stream, server->tls, NULL);
    connection->link.stream = &connection->stream;
    atomic_store_explicit(&connection->link.is_fresh, true, memory_order_relaxed);
    atomic_store(&connection->link.idle, true);
    hafti_http_server_enter(server, &connection->link);
    connection->has_agreed = server->tls == NULL && !connection->accepted.is_announced;
    connection->deadline =
        first_deadline(server, connection->has_agreed ? limits->idle_time : limits->head_time);
    connection->agreed_by = hafti_http_deadline(haft_io_now(), limits->head_time);
    rest(connection);
    return NULL;
}

int hafti_http_connection_spawn(const hafti_http_accepted_t *accepted, haft_io_scope_t *scope) {
    haft_io_task_options_t options = {.scope = scope, .name = "HTTP connection"};
    connection_t *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return -ENOMEM;
    connection->accepted = *accepted;
    connection->served.scope = scope;
    int code = haft_io_spawn_with(&options, begin, connection);
    if (code != 0)
        free(connection);
    return code;
}

/* ---- For debuggers ---- */

const haft_shown_t hafti_http_shown_connections[] = {
    HAFT_SHOWN_FIELD("connection", connection_t, link),
    HAFT_SHOWN_FIELD("connection", connection_t, served), HAFT_SHOWN_END};
