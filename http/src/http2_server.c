/* SPDX-License-Identifier: MIT */
/*
 * A server's connection of HTTP/2: a scope, in which a task writes, and one reads. The reader
 * serves what it has read itself, one request after the other, as long as their handlers need not
 * wait: stacks and memory are then used by turns, and stay in the processor's cache. Where a
 * handler is about to wait, its task is that of this request alone from then on, and another task,
 * which has stood by, reads on. So each request that waits has a task, and at most one more is
 * idle. Before the reader reads on, it also writes the output that there is, as far as that needs
 * no wait. The remaining output, and output that comes at other times, is for the task that writes.
 *
 * They end in this order: the reader, when the client has gone or nghttp2 wants no more of it;
 * requests, which learn of that; and the writer, when nothing is left.
 *
 * Frames that cost the server more than the client take credits (http2_credit.c), which answered
 * requests give back, too. The tasks of requests are counted, also where their streams have been
 * reset, so that no sequence of frames has more at a time than the limit.
 */
#include "http2_frames.h"

#include <haft/io_binding.h>

typedef struct connection connection_t;

/* A task that reads, until a request that it serves has to wait. */
typedef struct {
    haft_io_gate_t gate; /* must be first: callbacks cast its address to the struct */
    connection_t *connection;
    hafti_http_served_t served;
    bool is_serving;
    atomic_bool has_left; /* another task reads */
} reader_t;

/* A request, and its stream, in a block of haft_io_lend. */
typedef struct request {
    hafti_http2_stream_t stream; /* the first, likewise */
    haft_http_request_t request;
    reader_t *reader;     /* that serves it */
    struct request *next; /* the next whose head has come */
} request_t;
_Static_assert(sizeof(request_t) <= HAFT_IO_LENT_SIZE, "a request fits in a block");

/* A block to be written, from `at` on. */
typedef struct {
    char *block;
    size_t at, size;
} output_t;

struct connection {
    hafti_http2_t frames;            /* the first, likewise */
    haft_io_on_failure_t on_failure; /* of a handler */
    haft_io_scope_t *scope;          /* of its tasks */
    haft_http_server_t *server;
    hafti_http2_signal_t to_write; /* there is something to write */
    const haft_io_task_t *turn; /* that of the reader, at the end of which it writes; NULL: none */
    bool reader_is_writing;     /* now */
    output_t left;              /* of what the reader has written; it comes before all else */
    haft_io_event_t to_read;    /* nobody reads */
    bool has_substitute;        /* a task that waits for to_read */
    size_t requests;            /* that have not ended */
    request_t *arrived, **behind; /* heads that have come */
    bool head_has_begun;          /* one that is not complete */
    int64_t head_since; /* when it has, after all that was read with it; 0: there is none */
    int64_t idle_since; /* when the last request has ended */
    bool is_over;       /* nobody reads any more */
    bool is_ending;     /* no request is taken any more */
};

/* ---- An answer ---- */

/* Called for CONNECT only; HTTP/2 has no upgrade. */
static int become_stream(haft_http_request_t *request, const char *line, const char *protocol) {
    (void)line, (void)protocol;
    return hafti_http2_make_head(request, NULL, HAFT_HTTP_UNKNOWN_SIZE);
}

static int inform(haft_http_request_t *request, int status, const char *lines, size_t size) {
    const hafti_http2_stream_t *stream = (const hafti_http2_stream_t *)request->message.stream;
    hafti_http2_t *connection = stream->connection;
    size_t count;
    nghttp2_nv *fields = hafti_http2_make_informed(request, status, lines, size, &count);
    if (fields == NULL)
        return -ENOMEM;
    hafti_http2_lock(connection);
    int code = nghttp2_submit_headers(connection->session, NGHTTP2_FLAG_NONE, stream->id, NULL,
                                      fields, count, NULL);
    hafti_http2_pump(connection);
    hafti_http2_unlock(connection);
    return code < 0 ? -ENOMEM : 0;
}

static const hafti_http_framing_t framing = {
    .head = hafti_http2_make_head,
    .piece = hafti_http_answer_gather, /* in no frame of its own: nghttp2 divides what is there */
    .end = hafti_http2_make_end,
    .become_stream = become_stream,
    .inform = inform,
};

/* ---- Callbacks of the session ---- */

/* The reader writes the frames that it causes in its turn. Frames of other tasks do not wait for
   the end of that turn, in which a handler may compute for long. */
static void wake_writer(hafti_http2_t *frames) {
    connection_t *connection = (connection_t *)frames;
    if (connection->turn == NULL || connection->turn != haft_io_self())
        hafti_http2_signal(&connection->to_write);
}

/* Whether the writer has something to write. */
static bool has_output(const connection_t *connection) {
    return !connection->reader_is_writing &&
           (connection->left.block != NULL || connection->frames.size != 0);
}

/* Whether nothing more will have to be written. */
static bool is_at_end(const connection_t *connection) {
    nghttp2_session *session = connection->frames.session;
    return !connection->reader_is_writing &&
           (connection->is_over || connection->frames.error != 0 ||
            (!nghttp2_session_want_read(session) && !nghttp2_session_want_write(session)));
}

/* Leaves the output, present and future, to the writer. */
static void leave_to_writer(connection_t *connection) {
    connection->turn = NULL;
    if (has_output(connection) || is_at_end(connection))
        wake_writer(&connection->frames);
}

/* Lets another task read on, because the request that is served has to wait. */
static void hand_over(reader_t *reader) {
    connection_t *connection = reader->connection;
    if (!reader->is_serving || atomic_exchange(&reader->has_left, true))
        return;
    hafti_http2_lock(&connection->frames);
    leave_to_writer(connection);
    hafti_http2_unlock(&connection->frames);
    haft_io_event_set(&connection->to_read);
}

/* Called before a task writes to its stream: bytes count as sent when they are in the connection's
   output. */
static void begin_to_write(hafti_http_stream_t *bytes, const haft_http_limits_t *limits,
                           haft_io_deadline_t *limit) {
    int64_t now = haft_io_now();
    hafti_http_patience_begin(&bytes->patience, now);
    haft_io_deadline_set(limit, hafti_http_patience_look(limits->write_time, now));
}
static bool look_at_write(hafti_http_stream_t *bytes, const haft_http_limits_t *limits) {
    return hafti_http_patience_left(&bytes->patience, limits->write_time, limits->least_rate,
                                    bytes->sent, haft_io_now()) > 0;
}

static int wait_for(hafti_http2_t *frames, hafti_http2_stream_t *stream, haft_io_event_t *event) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    const haft_http_limits_t *limits = &((connection_t *)frames)->server->limits;
    bool writes = event == &stream->writable.event;
    if (writes)
        begin_to_write(&stream->bytes, limits, &limit);
    leave_to_writer((connection_t *)frames);
    hafti_http2_unlock(frames);
    hand_over(((request_t *)stream)->reader); /* also where a handler has a gate of its own */
    int code = haft_io_event_wait(event);
    hafti_http2_lock(frames);
    bool is_late = writes && code == -ETIMEDOUT && haft_io_deadline_passed(&limit);
    bool is_patient = !writes || look_at_write(&stream->bytes, limits);
    return is_late && is_patient ? 0 : code;
}

/* Does nothing: the writer writes. */
static void settle(hafti_http2_t *frames) {
    (void)frames;
}

/* Ends the connection when its streams have ended, or at once after a mistake of the client. */
static void go_away(connection_t *connection, uint32_t code) {
    nghttp2_session *session = connection->frames.session;
    if (code != NGHTTP2_NO_ERROR)
        nghttp2_session_terminate_session(session, code);
    else if (!connection->is_ending)
        nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(session), code, NULL, 0);
    connection->is_ending = true;
    hafti_http2_pump(&connection->frames);
    wake_writer(&connection->frames);
}

/* Begins a stream. A request for which there is no memory, or that would be one too many, is
   refused as not begun. */
static int on_head_begin(nghttp2_session *session, const nghttp2_frame *frame, void *argument) {
    connection_t *connection = argument;
    int32_t id = frame->hd.stream_id;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    connection->head_has_begun = true;
    connection->head_since = 0;
    connection->frames.newest = id;
    request_t *made =
        connection->requests < connection->server->limits.streams ? haft_io_lend() : NULL;
    if (made != NULL) {
        memset(&made->stream, 0, offsetof(hafti_http2_stream_t, fields));
        made->next = NULL;
        hafti_http_request_begin(&made->request, connection->server, &made->stream.bytes, NULL);
    }
    if (made == NULL || made->request.message.block == NULL) {
        haft_io_give_back(made);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    connection->requests++;
    made->request.framing = &framing;
    made->stream.message = &made->request.message;
    hafti_http2_stream_begin(&made->stream, &connection->frames, id);
    return 0;
}

/* Drops a request that has no task. */
static void drop_request(request_t *request) {
    connection_t *connection = (connection_t *)request->stream.connection;
    hafti_http2_stream_end(&request->stream, NGHTTP2_REFUSED_STREAM);
    hafti_http_request_end(&request->request);
    haft_io_give_back(request);
    connection->requests--;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *argument) {
    request_t *request = nghttp2_session_get_stream_user_data(session, id);
    hafti_http2_note_close(session, id, code, argument);
    if (request != NULL && !request->stream.has_head)
        drop_request(request);
    return 0;
}

static void head_has_come(hafti_http2_t *frames, hafti_http2_stream_t *stream) {
    connection_t *connection = (connection_t *)frames;
    request_t *request = (request_t *)stream;
    stream->code = hafti_http2_check_head(stream);
    connection->head_has_begun = false;
    connection->head_since = 0;
    *connection->behind = request;
    connection->behind = &request->next;
}

/* ---- A request ---- */

/* Ends the request, also where its task is unwound. */
static void end_request(request_t *const *argument) {
    request_t *request = *argument;
    connection_t *connection = (connection_t *)request->stream.connection;
    bool is_answered =
        request->request.answer.progress == HAFTI_HTTP_ENDED && !request->request.answer.failed;
    hafti_http_request_end(&request->request);
    hafti_http2_lock(&connection->frames);
    hafti_http2_stream_end(&request->stream,
                           is_answered ? NGHTTP2_NO_ERROR : NGHTTP2_INTERNAL_ERROR);
    hafti_http2_earn(&connection->frames, is_answered ? 2 : 0);
    if (--connection->requests == 0)
        connection->idle_since = haft_io_now();
    hafti_http2_pump(&connection->frames);
    wake_writer(&connection->frames);
    hafti_http2_unlock(&connection->frames);
    haft_io_give_back(request);
}

/*
 * The client has its whole answer, and is still sending a body that no handler reads. A reset ends
 * that (RFC 9113, section 8.1), but some clients forget the answer when the reset comes with it. So
 * what is left of a body that the server would take is read and thrown away, and for a longer one,
 * whose sender soon waits for a window, the reset comes a moment later.
 */
static void linger(haft_http_request_t *request, const hafti_http2_stream_t *stream) {
    enum { MOMENT = 200 /* milliseconds */ };
    int64_t begun = haft_io_now();
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, begun + HAFT_IO_SECOND);
    uint64_t limit_of_body = request->server->limits.body;
    uint64_t most = limit_of_body > HAFTI_HTTP_SKIPPED ? limit_of_body : HAFTI_HTTP_SKIPPED;
    if (!hafti_http_message_skip(&request->message, most) && !stream->is_closed)
        haft_io_sleep_until(begun + MOMENT * HAFT_IO_MILLISECOND);
}

static void serve_request(request_t *argument) {
    __attribute__((cleanup(end_request))) request_t *serving = argument;
    haft_http_request_t *request = &serving->request;
    hafti_http_request_answer(request, serving->stream.code);
    int code = hafti_http_answer_complete(request);
    if (request->server->notes_requests)
        hafti_http_note_request(request);
    if (code == 0)
        code = haft_http_answer_flush(request);
    if (code == 0 && !serving->stream.ends)
        code = hafti_http_answer_send(request, NULL, 0);
    if (code == 0 && !request->message.is_complete && !serving->stream.is_closed)
        linger(request, &serving->stream);
}

/* Refuses a request that was reset meanwhile, or for which there is no memory, as not begun. */
static void refuse(request_t *request) {
    hafti_http2_t *frames = request->stream.connection;
    hafti_http2_lock(frames);
    drop_request(request);
    hafti_http2_unlock(frames);
}

static void *stand_by(void *argument);

/* `has_substitute` is set first: the new task may clear it, on another thread, before the spawn
   returns. */
static bool has_substitute(connection_t *connection) {
    if (connection->has_substitute)
        return true;
    connection->has_substitute = true;
    bool is_spawned = haft_io_spawn(stand_by, connection) == 0;
    if (!is_spawned)
        connection->has_substitute = false;
    return is_spawned;
}

/* Serves requests until none is left, or a handler has waited: then the task of that handler
   ends. */
static void serve_arrived(reader_t *reader) {
    connection_t *connection = reader->connection;
    while (!reader->has_left && connection->arrived != NULL) {
        request_t *request = connection->arrived;
        connection->arrived = request->next;
        if (request->next == NULL)
            connection->behind = &connection->arrived;
        if (request->stream.is_closed || !has_substitute(connection)) {
            refuse(request);
            continue;
        }
        request->reader = reader;
        request->request.served = &reader->served;
        reader->is_serving = true;
        haft_io_gate_set(&reader->gate);
        serve_request(request);
        haft_io_gate_set(NULL);
        reader->is_serving = false;
    }
}

/* ---- Writing ---- */

static int await_frames(connection_t *connection) {
    hafti_http2_signal_t *signal = &connection->to_write;
    haft_io_event_clear(&signal->event);
    signal->is_awaited = true;
    hafti_http2_unlock(&connection->frames);
    int code = haft_io_event_wait(&signal->event);
    hafti_http2_lock(&connection->frames);
    signal->is_awaited = false;
    return code;
}

/* Whether there is something to be written, for which this waits. */
static bool await_output(connection_t *connection) {
    hafti_http2_pump(&connection->frames);
    while (!has_output(connection)) {
        if (is_at_end(connection))
            return false;
        await_frames(connection);
        hafti_http2_pump(&connection->frames);
    }
    return true;
}

static output_t take_output(connection_t *connection) {
    hafti_http2_t *frames = &connection->frames;
    output_t output = connection->left;
    connection->left.block = NULL;
    if (output.block != NULL)
        return output;
    output = (output_t){frames->block, 0, frames->size};
    frames->block = NULL;
    frames->size = 0;
    hafti_http2_pump(frames); /* frames for which a full block had no room */
    return output;
}

static void write_output_now(connection_t *connection) {
    hafti_http_stream_t *below = connection->frames.below;
    output_t output = take_output(connection);
    HAFT_IO_SCOPED_LENT const void *taken = output.block;
    connection->reader_is_writing = true;
    hafti_http2_unlock(&connection->frames);
    ssize_t written = below->operations->write_now(below, output.block, output.size);
    hafti_http2_lock(&connection->frames);
    connection->reader_is_writing = false;
    output.at = written > 0 ? (size_t)written : 0; /* the writer meets an error again */
    if (output.at != output.size) {
        connection->left = output;
        taken = NULL;
    }
}

/* Called by the reader when it has served the requests that it has read. A block that is written at
   once serves the next connection, too, and so stays in the processor's caches; and no other task
   is woken. */
static void write_now(connection_t *connection) {
    hafti_http2_t *frames = &connection->frames;
    hafti_http2_lock(frames);
    bool is_writer_idle = connection->to_write.is_awaited && frames->error == 0;
    if (is_writer_idle && has_output(connection) && connection->left.block == NULL &&
        frames->below->operations->write_now != NULL)
        write_output_now(connection);
    leave_to_writer(connection);
    hafti_http2_unlock(frames);
}

/* Ends the output. The client's bytes are still read for a moment: otherwise the kernel would drop
   the data that the client has not read yet. Then the reader reads the end. */
static void end_writing(connection_t *connection) {
    hafti_http2_t *frames = &connection->frames;
    hafti_http_stream_t *below = frames->below;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + HAFT_IO_SECOND);
    int code = below->operations->shutdown(below, SHUT_WR);
    hafti_http2_lock(frames);
    while (!connection->is_over && code == 0)
        code = await_frames(connection);
    bool is_over = connection->is_over;
    hafti_http2_unlock(frames);
    if (!is_over)
        below->operations->shutdown(below, SHUT_RD);
}

static int write_output(connection_t *connection, output_t output) {
    HAFT_IO_SCOPED_LENT const void *const taken = output.block;
    size_t size = output.size - output.at;
    (void)taken;
    return hafti_http_stream_write_within(connection->frames.below, &connection->server->limits,
                                          output.block + output.at, size);
}

static void *write_frames(void *argument) {
    connection_t *connection = argument;
    hafti_http2_t *frames = &connection->frames;
    int code = 0;
    hafti_http2_lock(frames);
    while (code == 0 && await_output(connection)) {
        output_t output = take_output(connection);
        hafti_http2_unlock(frames);
        code = write_output(connection, output);
        hafti_http2_lock(frames);
    }
    if (code != 0)
        hafti_http2_fail(frames, code);
    hafti_http2_unlock(frames);
    end_writing(connection);
    return NULL;
}

/* ---- Reading ---- */

static int64_t read_deadline(const connection_t *connection) {
    const haft_http_limits_t *limits = &connection->server->limits;
    if (connection->head_since != 0)
        return hafti_http_deadline(connection->head_since, limits->head_time);
    int64_t since = connection->requests != 0 ? haft_io_now() : connection->idle_since;
    return hafti_http_deadline(since, limits->idle_time);
}

/* Whether the reader's time is over: its deadline may have been for an earlier state. */
static bool is_late(connection_t *connection) {
    bool is_waiting = connection->head_since != 0 || connection->requests == 0;
    return is_waiting && read_deadline(connection) <= haft_io_now();
}

/* Whether more is to be read. */
static bool take(connection_t *connection, const char *bytes, size_t size) {
    hafti_http2_t *frames = &connection->frames;
    hafti_http2_lock(frames);
    connection->turn = haft_io_self();
    int code = frames->error != 0 ? frames->error : hafti_http2_receive(frames, bytes, size);
    if (connection->head_has_begun && connection->head_since == 0)
        connection->head_since = haft_io_now();
    if (code != 0)
        go_away(connection,
                frames->complaint != NGHTTP2_NO_ERROR ? frames->complaint : NGHTTP2_PROTOCOL_ERROR);
    hafti_http2_pump(frames);
    bool goes_on = code == 0 && nghttp2_session_want_read(frames->session) != 0;
    hafti_http2_unlock(frames);
    return goes_on;
}

static bool read_more(connection_t *connection) {
    hafti_http_stream_t *below = connection->frames.below;
    hafti_http2_lock(&connection->frames);
    int64_t deadline = read_deadline(connection);
    hafti_http2_unlock(&connection->frames);
    ssize_t size = hafti_http_stream_fill(below, deadline);
    if (size != -ETIMEDOUT)
        return size > 0;
    hafti_http2_lock(&connection->frames);
    bool was_ending = connection->is_ending;
    bool is_late_now = is_late(connection);
    if (is_late_now)
        go_away(connection,
                connection->head_since != 0 ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_NO_ERROR);
    hafti_http2_unlock(&connection->frames);
    return !is_late_now || !was_ending;
}

static void stop_serving(void *argument) {
    connection_t *connection = argument;
    hafti_http2_lock(&connection->frames);
    go_away(connection, NGHTTP2_NO_ERROR);
    hafti_http2_unlock(&connection->frames);
}

/* Ends reading for all tasks, and wakes those that wait for bytes. */
static void end_reading(connection_t *connection) {
    hafti_http2_t *frames = &connection->frames;
    hafti_http2_lock(frames);
    hafti_http2_fail(frames, -ECONNRESET);
    connection->is_over = true;
    connection->turn = NULL;
    wake_writer(frames);
    haft_io_event_set(&connection->to_read);
    hafti_http2_unlock(frames);
}

static void leave_gate(haft_io_gate_t *gate) {
    hand_over((reader_t *)gate);
}

static haft_io_event_t *enter_gate(haft_io_gate_t *gate) {
    (void)gate;
    return NULL;
}

/* Reads until the end, or until another task does. */
static void read_frames(connection_t *connection) {
    /* A handler that fails takes its task along. */
    __attribute__((cleanup(hand_over))) reader_t reader = {.gate = {leave_gate, enter_gate},
                                                           .connection = connection,
                                                           .served = {NULL, connection->scope}};
    hafti_http_stream_t *below = connection->frames.below;
    haft_io_own_set(&reader.served);
    bool goes_on = true;
    serve_arrived(&reader);
    while (goes_on && !reader.has_left) {
        const char *bytes = below->at;
        below->at = below->end;
        goes_on = bytes == below->end || take(connection, bytes, (size_t)(below->end - bytes));
        serve_arrived(&reader);
        if (reader.has_left)
            break;
        write_now(connection);
        goes_on = goes_on && read_more(connection);
    }
    if (!reader.has_left)
        end_reading(connection);
}

static void *stand_by(void *argument) {
    connection_t *connection = argument;
    haft_io_event_wait(&connection->to_read);
    haft_io_event_clear(&connection->to_read);
    connection->has_substitute = false;
    if (!connection->is_over)
        read_frames(connection);
    return NULL;
}

static bool begin_session(connection_t *connection) {
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, (uint32_t)connection->server->limits.streams},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)connection->server->limits.head},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return false;
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_head_begin);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    int code = hafti_http2_begin(&connection->frames, callbacks, false);
    nghttp2_session_callbacks_del(callbacks);
    return code == 0 && nghttp2_submit_settings(connection->frames.session, NGHTTP2_FLAG_NONE,
                                                settings, sizeof settings / sizeof *settings) == 0;
}

/* ---- The connection ---- */

typedef struct {
    connection_t *connection;
    hafti_http_link_t *link;
    bool has_preface;
} serving_t;

static void *serve_frames(void *argument) {
    const serving_t *serving = argument;
    connection_t *connection = serving->connection;
    haft_io_task_options_t options = {.name = "HTTP/2 writer"};
    connection->scope = haft_io_this_scope();
    bool goes_on = haft_io_spawn_with(&options, write_frames, connection) == 0;
    hafti_http_server_on_stop(connection->server, serving->link, stop_serving, connection);
    if (goes_on && serving->has_preface)
        goes_on = take(connection, HAFTI_HTTP2_PREFACE, sizeof HAFTI_HTTP2_PREFACE - 1);
    haft_io_event_set(&connection->to_read);
    if (!goes_on || !has_substitute(connection))
        end_reading(connection);
    return NULL;
}

static void log_failure(haft_io_on_failure_t *self, const haft_io_failure_t *failure) {
    const connection_t *connection =
        (const connection_t *)((const char *)self - offsetof(connection_t, on_failure));
    hafti_http_log_failure(connection->server, "a handler", failure);
}

/* The requests that are left have no task. */
static void end_serving(const serving_t *serving) {
    hafti_http2_t *frames = &serving->connection->frames;
    hafti_http_server_on_stop(serving->connection->server, serving->link, NULL, NULL);
    while (frames->streams != NULL)
        drop_request((request_t *)frames->streams);
    haft_io_give_back(serving->connection->left.block);
    hafti_http2_end(frames);
}

void hafti_http2_serve(haft_http_server_t *server, hafti_http_stream_t *stream,
                       hafti_http_link_t *link, bool has_preface) {
    connection_t connection = {
        .frames = {.below = stream,
                   .head_has_come = head_has_come,
                   .wake_writer = wake_writer,
                   .wait = wait_for,
                   .settle = settle},
        .on_failure = {log_failure},
        .server = server,
        .idle_since = haft_io_now(),
    };
    __attribute__((cleanup(end_serving))) serving_t serving = {&connection, link, has_preface};
    connection.behind = &connection.arrived;
    if (begin_session(&connection))
        haft_io_scope_with(
            &(haft_io_scope_options_t){.name = "HTTP/2 connection",
                                       .on_failure = &connection.on_failure,
                                       .scope_of_spawns = hafti_http_scope_of_spawns},
            serve_frames, &serving, NULL);
}

/* ---- For debuggers ---- */

const haft_shown_t hafti_http_shown_frames[] = {
    HAFT_SHOWN_FIELD("http2", connection_t, frames.streams),
    HAFT_SHOWN_FIELD("http2_stream", hafti_http2_stream_t, next),
    HAFT_SHOWN_FIELD("http2_stream", hafti_http2_stream_t, id),
    HAFT_SHOWN_FIELD("http2_request", request_t, request), HAFT_SHOWN_END};
