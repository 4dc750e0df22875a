/* SPDX-License-Identifier: MIT */
/* A connection of HTTP/2, and its streams as streams of bytes: http2_frames.h has the picture. */
#include "http2_frames.h"

#include <stdlib.h>

const bool hafti_http_has_http2 = true;

/* In a block of haft_io_lend, whose address is that of its bytes. */
struct hafti_http2_piece {
    char bytes[HAFT_IO_LENT_SIZE - 2 * sizeof(size_t)];
    size_t size;
    hafti_http2_piece_t *next;
};
_Static_assert(sizeof(hafti_http2_piece_t) == HAFT_IO_LENT_SIZE, "a piece fills a block");

/* ---- The connection ---- */

void hafti_http2_fail(hafti_http2_t *connection, int code) {
    if (connection->error == 0)
        connection->error = code;
    for (hafti_http2_stream_t *stream = connection->streams; stream != NULL;
         stream = stream->next) {
        haft_io_event_set(&stream->gone);
        hafti_http2_signal(&stream->readable);
        hafti_http2_signal(&stream->writable);
    }
}

/* Whether there is something to put into the block. */
static bool has_frame(hafti_http2_t *connection) {
    if (connection->pending_size != 0)
        return true;
    ssize_t size = nghttp2_session_mem_send(connection->session, &connection->pending);
    if (size < 0)
        hafti_http2_fail(connection, -ENOMEM);
    connection->pending_size = size > 0 ? (size_t)size : 0;
    return size > 0;
}

/* Bytes that find no room in a full block stay with nghttp2, or pending. */
static void fill_block(hafti_http2_t *connection) {
    while (connection->error == 0 && has_frame(connection)) {
        size_t size = HAFT_IO_LENT_SIZE - connection->size;
        if (size > connection->pending_size)
            size = connection->pending_size;
        hafti_http2_put(connection, connection->pending, size);
        connection->pending += size;
        connection->pending_size -= size;
        if (connection->pending_size != 0)
            break;
    }
}

void hafti_http2_pump(hafti_http2_t *connection) {
    if (connection->pending_size == 0 && !nghttp2_session_want_write(connection->session))
        return; /* mostly; this test takes less time than a try */
    if (connection->block == NULL && (connection->block = haft_io_lend()) == NULL)
        hafti_http2_fail(connection, -ENOMEM);
    fill_block(connection);
    if (connection->size != 0) {
        connection->wake_writer(connection);
    } else {
        haft_io_give_back(connection->block);
        connection->block = NULL;
    }
}

/* Whether nghttp2 has forgotten the stream, or has never known it, since it was skipped. */
static bool is_forgotten(hafti_http2_t *connection, int32_t id) {
    nghttp2_session *session = connection->session;
    bool has_begun = connection->is_client
                         ? (uint32_t)id < nghttp2_session_get_next_stream_id(session)
                         : id <= connection->newest;
    return has_begun && nghttp2_session_find_stream(session, id) == NULL;
}

static int give_to_session(hafti_http2_t *connection, const char *bytes, const char *end) {
    ssize_t used = nghttp2_session_mem_recv(connection->session, (const uint8_t *)bytes,
                                            (size_t)(end - bytes));
    if (used == NGHTTP2_ERR_NOMEM)
        return -ENOMEM;
    return used < 0 ? -EPROTO : 0;
}

/* Judges a frame that nghttp2 may ignore. The session has had all bytes before it, so it is known
   whether its stream is closed. on_frame_begin judges the other frames. */
static int judge_ignored(hafti_http2_t *connection) {
    const hafti_http2_ignored_t *ignored = &connection->ignored;
    bool is_known = hafti_http2_type_of(ignored) == NGHTTP2_DATA &&
                    !is_forgotten(connection, hafti_http2_id_of(ignored));
    if (!is_known && hafti_http2_pay(connection))
        connection->complaint = hafti_http2_judge_ignored(ignored);
    return connection->complaint == NGHTTP2_NO_ERROR ? 0 : -EPROTO;
}

int hafti_http2_receive(hafti_http2_t *connection, const void *bytes, size_t size) {
    const char *begin = bytes, *at = bytes, *end = begin + size;
    int code = 0;
    connection->is_receiving = true;
    while (code == 0 && (at = hafti_http2_next_ignored(&connection->ignored, at, end)) != NULL) {
        const char *last = at - 1; /* byte of the head: nghttp2 has not begun with the frame */
        code = give_to_session(connection, begin, last);
        code = code == 0 ? judge_ignored(connection) : code;
        begin = last;
    }
    if (code == 0)
        code = give_to_session(connection, begin, end);
    connection->is_receiving = false;
    if (code == -EPROTO && connection->complaint == NGHTTP2_NO_ERROR)
        connection->complaint = NGHTTP2_PROTOCOL_ERROR;
    return code;
}

void hafti_http2_reset(hafti_http2_t *connection, int32_t id, uint32_t code) {
    nghttp2_submit_rst_stream(connection->session, NGHTTP2_FLAG_NONE, id, code);
}

/* ---- Sending ---- */

/* Notes that nghttp2 has the end of a stream's body, but for its trailers. */
static void end_body(nghttp2_session *session, hafti_http2_stream_t *stream) {
    stream->has_ended = true;
    if (stream->trailers_out_count != 0)
        nghttp2_submit_trailer(session, stream->id, stream->trailers_out,
                               stream->trailers_out_count);
    hafti_http2_signal(&stream->writable);
}

/* Offers nghttp2 only the bytes of the waiting write; more follow with the next one. They stay
   where they are until put_body takes them. */
ssize_t hafti_http2_read_body(nghttp2_session *session, int32_t id, uint8_t *into, size_t size,
                              uint32_t *flags, nghttp2_data_source *source, void *argument) {
    hafti_http2_stream_t *stream = nghttp2_session_get_stream_user_data(session, id);
    (void)into, (void)source, (void)argument;
    if (stream == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (stream->out_size == 0 && !stream->ends)
        return NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (size < stream->out_size)
        return (ssize_t)size;
    if (stream->ends)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->ends && stream->trailers_out_count != 0)
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    if (stream->out_size == 0)
        end_body(session, stream); /* also where nghttp2 sends no empty frame, but trailers */
    return (ssize_t)stream->out_size;
}

/* A task that was unwound meanwhile has taken its bytes along: then the stream is reset. */
static int put_body(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t size, nghttp2_data_source *source, void *argument) {
    hafti_http2_t *connection = argument;
    hafti_http2_stream_t *stream =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)source;
    if (size != 0 && (stream == NULL || stream->out_size < size))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (!hafti_http2_has_room(connection, HAFTI_HTTP2_FRAME_HEAD + size))
        return NGHTTP2_ERR_WOULDBLOCK;
    hafti_http2_put(connection, head, HAFTI_HTTP2_FRAME_HEAD);
    if (size == 0)
        return 0;
    hafti_http2_put(connection, stream->out, size);
    hafti_http2_earn(connection, 2);
    stream->out += size;
    stream->bytes.sent += size;
    stream->out_size -= size;
    if (stream->out_size == 0 && stream->ends)
        end_body(session, stream);
    else if (stream->out_size == 0)
        hafti_http2_signal(&stream->writable);
    return 0;
}

/* ---- Receiving ---- */

/* The stream of this number: mostly the newest, since fields come one after the other. */
static hafti_http2_stream_t *stream_of(hafti_http2_t *connection, int32_t id) {
    hafti_http2_stream_t *newest = connection->streams;
    return newest != NULL && newest->id == id
               ? newest
               : nghttp2_session_get_stream_user_data(connection->session, id);
}

/* Late heads are judged here for a server; nghttp2 judges those that a client gets. */
static int on_frame_begin(nghttp2_session *session, const nghttp2_frame_hd *frame, void *argument) {
    hafti_http2_t *connection = argument;
    (void)session;
    if (hafti_http2_pay(connection) && !connection->is_client && frame->type == NGHTTP2_HEADERS &&
        is_forgotten(connection, frame->stream_id))
        connection->complaint = hafti_http2_judge_head(&connection->ignored, frame->stream_id);
    if (frame->type == NGHTTP2_PUSH_PROMISE)
        connection->complaint = NGHTTP2_PROTOCOL_ERROR; /* no client of ours has asked for a push */
    return connection->complaint == NGHTTP2_NO_ERROR ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *connection) {
    hafti_http2_stream_t *stream = stream_of(connection, frame->hd.stream_id);
    hafti_http_text_t name_text = {(const char *)name, name_size};
    hafti_http_text_t value_text = {(const char *)value, value_size};
    (void)session, (void)flags;
    if (stream == NULL)
        return 0;
    if (stream->has_head)
        return hafti_http2_put_trailer(stream, name_text, value_text)
                   ? 0
                   : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    hafti_http2_put_field(stream, name_text, value_text);
    return 0;
}

/* Notes the peer's end of a stream before its head is judged. */
static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *argument) {
    hafti_http2_t *connection = argument;
    bool is_headers = frame->hd.type == NGHTTP2_HEADERS;
    connection->is_told_to_go |= frame->hd.type == NGHTTP2_GOAWAY;
    if (!is_headers && frame->hd.type != NGHTTP2_DATA)
        return 0;
    hafti_http2_stream_t *stream = stream_of(connection, frame->hd.stream_id);
    (void)session;
    if (stream == NULL)
        return 0;
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        stream->has_come = true;
        hafti_http2_signal(&stream->readable);
    }
    if (is_headers && !stream->has_head)
        connection->head_has_come(connection, stream);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                   size_t size, void *argument) {
    hafti_http2_t *connection = argument;
    hafti_http2_stream_t *stream = stream_of(connection, id);
    (void)flags;
    hafti_http2_earn(connection, 2);
    if (stream == NULL)
        return nghttp2_session_consume(session, id, size) != 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
    stream->unread += size;
    for (size_t part; size != 0; bytes += part, size -= part) {
        hafti_http2_piece_t *piece = *stream->last;
        if (piece == NULL || piece->size == sizeof piece->bytes) {
            if (piece != NULL)
                stream->last = &piece->next;
            piece = haft_io_lend();
            if (piece == NULL)
                return NGHTTP2_ERR_CALLBACK_FAILURE;
            piece->size = 0;
            piece->next = NULL;
            *stream->last = piece;
        }
        part = sizeof piece->bytes - piece->size;
        part = part < size ? part : size;
        memcpy(piece->bytes + piece->size, bytes, part);
        piece->size += part;
    }
    hafti_http2_signal(&stream->readable);
    return 0;
}

/* An invalid field makes the message malformed (RFC 9113, section 8.2.1); by itself nghttp2 would
   leave it out. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
                             const uint8_t *name, size_t name_size, const uint8_t *value,
                             size_t value_size, uint8_t flags, void *connection) {
    (void)session, (void)name, (void)name_size, (void)value, (void)value_size, (void)flags;
    hafti_http2_reset(connection, frame->hd.stream_id, NGHTTP2_PROTOCOL_ERROR);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

int hafti_http2_note_close(nghttp2_session *session, int32_t id, uint32_t code, void *argument) {
    hafti_http2_t *connection = argument;
    hafti_http2_stream_t *stream = stream_of(connection, id);
    bool has_ended =
        connection->is_receiving || nghttp2_session_get_stream_remote_close(session, id) == 1;
    hafti_http2_note_closed(&connection->ignored, id, has_ended);
    if (stream == NULL)
        return 0;
    stream->is_closed = true;
    stream->is_refused = code == NGHTTP2_REFUSED_STREAM;
    if (code != NGHTTP2_NO_ERROR || !stream->has_come || !stream->has_ended)
        haft_io_event_set(&stream->gone);
    hafti_http2_signal(&stream->readable);
    hafti_http2_signal(&stream->writable);
    return 0;
}

int hafti_http2_begin(hafti_http2_t *connection, nghttp2_session_callbacks *callbacks,
                      bool is_client) {
    nghttp2_option *option = NULL;
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_frame_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, put_body);
    pthread_mutex_init(&connection->mutex, NULL);
    connection->is_client = is_client;
    hafti_http2_ignored_begin(&connection->ignored, !is_client);
    hafti_http2_credit_begin(&connection->credit);
    if (nghttp2_option_new(&option) != 0)
        return -ENOMEM;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_mem memory = hafti_http2_memory(&connection->memory);
    int code = (is_client ? nghttp2_session_client_new3 : nghttp2_session_server_new3)(
        &connection->session, callbacks, connection, option, &memory);
    nghttp2_option_del(option);
    if (code == 0)
        code = nghttp2_session_set_local_window_size(connection->session, NGHTTP2_FLAG_NONE, 0,
                                                     HAFTI_HTTP2_WINDOW);
    return code == 0 ? 0 : -ENOMEM;
}

void hafti_http2_end(hafti_http2_t *connection) {
    nghttp2_session_del(connection->session);
    hafti_http2_memory_end(&connection->memory);
    haft_io_give_back(connection->block);
    pthread_mutex_destroy(&connection->mutex);
}

/* ---- Streams of bytes ---- */

static hafti_http2_stream_t *of(hafti_http_stream_t *bytes) {
    return (hafti_http2_stream_t *)bytes;
}

/* Waits with the mutex. */
static int wait_for(hafti_http2_stream_t *stream, hafti_http2_signal_t *signal) {
    hafti_http2_t *connection = stream->connection;
    haft_io_event_clear(&signal->event);
    signal->is_awaited = true;
    int code = connection->wait(connection, stream, &signal->event);
    signal->is_awaited = false;
    return code;
}

/* The error for a body's reader or writer. An end of the connection is no end of the body. */
static int error_of(const hafti_http2_t *connection) {
    return connection->error == -EPROTO ? -EPROTO : -ECONNRESET;
}

/* Lets the peer send as many bytes again. */
static void consume(hafti_http2_stream_t *stream, size_t size) {
    stream->unread -= size;
    nghttp2_session_consume(stream->connection->session, stream->id, size);
}

static ssize_t take_piece(hafti_http2_stream_t *stream, const void **bytes) {
    hafti_http2_piece_t *piece = stream->pieces;
    stream->pieces = piece->next;
    if (stream->last == &piece->next) /* which the reader gives back without the mutex */
        stream->last = &stream->pieces;
    *bytes = piece->bytes;
    consume(stream, piece->size);
    hafti_http2_pump(stream->connection);
    return (ssize_t)piece->size;
}

/* The trailers have come before the end is reported. */
static ssize_t read_end(hafti_http2_stream_t *stream) {
    if (!stream->has_come)
        return -ECONNRESET;
    stream->message->trailers = stream->trailers;
    stream->message->trailers_size = stream->trailers_size;
    return 0;
}

static ssize_t read_lent(hafti_http_stream_t *bytes, const void **lent) {
    hafti_http2_stream_t *stream = of(bytes);
    ssize_t got = 0;
    haft_io_give_back(*lent);
    *lent = NULL;
    hafti_http2_lock(stream->connection);
    while (got == 0 && stream->pieces == NULL && !stream->has_come && !stream->is_closed)
        got = stream->connection->error != 0 ? error_of(stream->connection)
                                             : wait_for(stream, &stream->readable);
    if (got == 0)
        got = stream->pieces != NULL ? take_piece(stream, lent) : read_end(stream);
    hafti_http2_unlock(stream->connection);
    stream->connection->settle(stream->connection);
    return got;
}

int hafti_http2_await_head(hafti_http2_stream_t *stream) {
    int code = 0;
    while (code == 0 && !stream->has_head && stream->heads == NULL)
        code = stream->is_closed                ? -ECONNRESET
               : stream->connection->error != 0 ? stream->connection->error
                                                : wait_for(stream, &stream->readable);
    return code;
}

/* Gives the task back the bytes that nghttp2 has not taken. */
static void withdraw(hafti_http2_stream_t *stream) {
    stream->ends &= stream->out_size == 0; /* what lacks bytes must not seem whole */
    stream->out = NULL;
    stream->out_size = 0;
}

/* The task was unwound while it waited. */
static void withdraw_unlocked(hafti_http2_stream_t *const *writing) {
    if (*writing == NULL)
        return;
    hafti_http2_lock((*writing)->connection);
    withdraw(*writing);
    hafti_http2_unlock((*writing)->connection);
}

static bool is_taken(const hafti_http2_stream_t *stream) {
    return stream->out_size == 0 && (!stream->ends || stream->has_ended);
}

static __attribute__((noinline)) int await_taken(hafti_http2_stream_t *stream) {
    const hafti_http2_t *connection = stream->connection;
    __attribute__((cleanup(withdraw_unlocked))) hafti_http2_stream_t *writing = stream;
    int code = 0;
    while (code == 0 && !is_taken(stream))
        code = stream->is_closed        ? -ECONNRESET
               : connection->error != 0 ? error_of(connection)
                                        : wait_for(stream, &stream->writable);
    writing = NULL;
    return code;
}

/* Gives nghttp2 the head of an answer that waits to be sent. */
static int submit_answer(hafti_http2_stream_t *stream) {
    nghttp2_data_provider body = {.read_callback = hafti_http2_read_body};
    int code = nghttp2_submit_response(stream->connection->session, stream->id, stream->head,
                                       stream->head_count, stream->has_body ? &body : NULL);
    stream->head = NULL;
    if (!stream->has_body)
        stream->ends = stream->has_ended = true;
    return code == 0 ? 0 : -ENOMEM;
}

static int write_locked(hafti_http2_stream_t *stream) {
    hafti_http2_t *connection = stream->connection;
    int code = 0;
    if (stream->head != NULL)
        code = submit_answer(stream);
    else
        nghttp2_session_resume_data(connection->session, stream->id);
    if (code != 0)
        return code;
    hafti_http2_pump(connection);
    return is_taken(stream) ? 0 : await_taken(stream);
}

/* Writes all bytes; without bytes it sends the head, or the end. */
static int write_all(hafti_http_stream_t *bytes, const void *buffer, size_t size) {
    hafti_http2_stream_t *stream = of(bytes);
    hafti_http2_lock(stream->connection);
    stream->out = buffer;
    stream->out_size = size;
    stream->ends = stream->ends || stream->is_last;
    int code = write_locked(stream);
    withdraw(stream);
    hafti_http2_unlock(stream->connection);
    stream->connection->settle(stream->connection);
    return code;
}

static int shut_down(hafti_http_stream_t *bytes, int how) {
    hafti_http2_stream_t *stream = of(bytes);
    if (how == SHUT_RD)
        return 0;
    stream->is_last = true;
    return write_all(bytes, NULL, 0);
}

/* The stream ends with its task. */
static void do_nothing(hafti_http_stream_t *bytes) {
    (void)bytes;
}

static const hafti_http_stream_operations_t operations = {
    .read_lent = read_lent,
    .write_all = write_all,
    .shutdown = shut_down,
    .close = do_nothing,
};

void hafti_http2_stream_begin(hafti_http2_stream_t *stream, hafti_http2_t *connection, int32_t id) {
    const hafti_http_stream_t *below = connection->below;
    stream->bytes = (hafti_http_stream_t){.operations = &operations,
                                          .descriptor = below->descriptor,
                                          .tls = below->tls,
                                          .gone = &stream->gone,
                                          .knows_peer = below->knows_peer};
    if (below->knows_peer) /* its other fields belong to the tasks that read and write */
        memcpy(stream->bytes.peer, below->peer, sizeof below->peer);
    stream->connection = connection;
    stream->id = id;
    stream->last = &stream->pieces;
    stream->message->fields = stream->fields;
    stream->next = connection->streams;
    stream->back = &connection->streams;
    if (stream->next != NULL)
        stream->next->back = &stream->next;
    connection->streams = stream;
    nghttp2_session_set_stream_user_data(connection->session, id, stream);
}

static void give_pieces_back(hafti_http2_stream_t *stream) {
    while (stream->pieces != NULL) {
        hafti_http2_piece_t *piece = stream->pieces;
        stream->pieces = piece->next;
        haft_io_give_back(piece);
    }
    haft_io_give_back(stream->bytes.lent);
    free(stream->trailers);
}

void hafti_http2_stream_end(hafti_http2_stream_t *stream, uint32_t code) {
    hafti_http2_t *connection = stream->connection;
    *stream->back = stream->next;
    if (stream->next != NULL)
        stream->next->back = stream->back;
    if (!stream->is_closed) {
        nghttp2_session_set_stream_user_data(connection->session, stream->id, NULL);
        if (!stream->has_come || !stream->has_ended)
            hafti_http2_reset(connection, stream->id, code);
    }
    if (stream->unread != 0)
        consume(stream, stream->unread);
    give_pieces_back(stream);
}
