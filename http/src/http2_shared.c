/* SPDX-License-Identifier: MIT */
/*
 * A client's connection of HTTP/2, which the tasks that ask its origin share (http2_client.c). A
 * connection has no task of its own, since a client belongs to no scope. A task that waits for its
 * stream reads the connection, for all, if no other does; when it has what it wants, the next one
 * reads. Likewise a task that has caused frames writes what has room, and waits for room only where
 * it has to wait anyway, as long as its deadlines let it. Unwritten bytes stay in `left` for the
 * next one.
 *
 * | role       | held by                                 | ends                                   |
 * |------------|-----------------------------------------|----------------------------------------|
 * | is_reading | the one task that waits for bytes       | with bytes, a deadline, a cancel, TURN |
 * | is_writing | the one task that writes, or waits to   | likewise, or with room                 |
 *
 * A task that needs a role which another has waits for its event (waiting). The task that gives
 * a role up wakes one of these. Only a task that reads cannot be woken: so it looks up each TURN,
 * and then takes on what a task that was cancelled has left.
 */
#include "http2_shared.h"

#include <poll.h>
#include <stdlib.h>

typedef hafti_http2_shared_t shared_t;

static const int64_t TURN = HAFT_IO_SECOND;

/* ---- Writing ---- */

static bool has_output(const shared_t *shared) {
    return shared->left != NULL || shared->frames.size != 0 || shared->is_kept;
}

/* Wakes another task to read or write, if one waits. */
static void wake_another(shared_t *shared) {
    bool is_needed = !shared->is_reading || (has_output(shared) && !shared->is_writing);
    hafti_http2_stream_t *stream = shared->frames.streams;
    while (stream != NULL && stream->waiting == 0)
        stream = stream->next;
    if (stream == NULL || !is_needed)
        return;
    hafti_http2_signal(&stream->readable);
    hafti_http2_signal(&stream->writable);
}

static void drop_output(shared_t *shared) {
    haft_io_give_back(shared->left);
    shared->left = NULL;
    shared->frames.size = 0;
    shared->is_kept = false;
}

static void take_block(shared_t *shared) {
    hafti_http2_t *frames = &shared->frames;
    if (shared->left != NULL || frames->size == 0)
        return;
    shared->left = frames->block;
    shared->left_at = 0;
    shared->left_size = frames->size;
    frames->block = NULL;
    frames->size = 0;
    hafti_http2_pump(frames); /* what a full block has held up */
}

/* Writes `left` without the mutex: returns how much the stream has taken, or an error. */
static ssize_t write_left(shared_t *shared, bool waits) {
    hafti_http_stream_t *stream = &shared->stream;
    const hafti_http_stream_operations_t *operations = stream->operations;
    int code = shared->is_kept && !waits ? operations->flush_now(stream) : 0;
    if (code != 0)
        return code;
    if (shared->left == NULL)
        return waits ? operations->flush(stream) : 0;
    return operations->write(stream, shared->left + shared->left_at,
                             shared->left_size - shared->left_at);
}

static void note_written(shared_t *shared, size_t size) {
    shared->is_kept = shared->left != NULL;
    if (shared->left == NULL)
        return;
    shared->left_at += size;
    if (shared->left_at < shared->left_size)
        return;
    haft_io_give_back(shared->left);
    shared->left = NULL;
}

/* Cleanup of a task that is unwound while it has a role; the mutex is unlocked then. NULL: no
   unwinding. */
static void lose_writing(shared_t *const *shared) {
    if (*shared == NULL)
        return;
    hafti_http2_lock(&(*shared)->frames);
    (*shared)->is_writing = false;
    wake_another(*shared);
    hafti_http2_unlock(&(*shared)->frames);
}

static void lose_reading(shared_t *const *shared) {
    if (*shared == NULL)
        return;
    hafti_http2_lock(&(*shared)->frames);
    (*shared)->is_reading = false;
    wake_another(*shared);
    hafti_http2_unlock(&(*shared)->frames);
}

/* Makes one step in the role of the writer: returns how much was taken, or an error. */
static ssize_t write_part(shared_t *shared, bool waits) {
    __attribute__((cleanup(lose_writing))) shared_t *writing = shared;
    take_block(shared);
    shared->is_writing = true;
    hafti_http2_unlock(&shared->frames);
    ssize_t done = write_left(shared, waits);
    hafti_http2_lock(&shared->frames);
    writing = NULL;
    shared->is_writing = false;
    if (done >= 0)
        note_written(shared, (size_t)done);
    return done;
}

/* Writes all output. -EAGAIN: there is no room for the rest, or, if it `waits`, its wait has ended.
   Where nothing more can be written, the end of the input has the reason. */
static int write_output(shared_t *shared, bool waits) {
    ssize_t done = 0;
    while (done >= 0 && has_output(shared) && !shared->is_cut && !shared->is_writing)
        done = write_part(shared, waits);
    if (done < 0 && done != -EAGAIN && done != -ETIMEDOUT && done != -ECANCELED)
        shared->is_cut = true;
    if (shared->is_cut)
        drop_output(shared);
    return shared->is_cut || done > 0 ? 0 : (int)done;
}

/* Waits for room for a turn at most. */
static int write_for_a_turn(shared_t *shared) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + TURN);
    int code = write_output(shared, true);
    return code == -ETIMEDOUT && haft_io_deadline_passed(&limit) ? 0 : code;
}

/* Sends the peer the reason, as far as there is room, and shuts the connection down (RFC 9113,
   section 5.4.1): nothing more comes, so a task that waits for bytes or for room goes on. */
static void end_connection(shared_t *shared) {
    hafti_http2_t *frames = &shared->frames;
    shared->is_ended = true;
    hafti_http2_unlock(frames);
    haft_io_shutdown(shared->stream.descriptor, SHUT_RDWR);
    hafti_http2_lock(frames);
}

static void settle_locked(shared_t *shared) {
    write_output(shared, false);
    if (shared->frames.error != 0 && !shared->is_ended && !shared->is_writing)
        end_connection(shared);
    wake_another(shared);
}

void hafti_http2_settle_frames(hafti_http2_t *frames) {
    hafti_http2_lock(frames);
    settle_locked((shared_t *)frames);
    hafti_http2_unlock(frames);
}

void *hafti_http2_settle_shielded(void *frames) {
    hafti_http2_settle_frames(frames);
    return NULL;
}

/* ---- Reading ---- */

/* nghttp2 sends a peer away by itself, and reads nothing more then. */
static int judge_session(const hafti_http2_t *frames) {
    if (nghttp2_session_want_read(frames->session) != 0)
        return 0;
    return frames->is_told_to_go ? -ECONNRESET : -EPROTO;
}

static int take_bytes(hafti_http2_t *frames) {
    hafti_http_stream_t *below = frames->below;
    int code = hafti_http2_receive(frames, below->at, (size_t)(below->end - below->at));
    below->at = below->end;
    if (code != 0)
        nghttp2_session_terminate_session(frames->session, frames->complaint);
    hafti_http2_pump(frames);
    return code != 0 ? code : judge_session(frames);
}

/* Takes bytes that were read. An error of the connection ends it for all tasks; the end of this
   task's time does not. */
static int take(hafti_http2_t *frames, ssize_t size) {
    if (size == -ETIMEDOUT || size == -ECANCELED || size == -EAGAIN)
        return size != -EAGAIN ? (int)size : 0;
    int code = size > 0    ? take_bytes(frames)
               : size == 0 ? -ECONNRESET
                           : (int)size; /* such as an alert of TLS */
    if (code != 0)
        hafti_http2_fail(frames, code);
    return 0;
}

/* Reads without the mutex; -EAGAIN: the turn is over. */
static ssize_t fill(shared_t *shared) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + TURN);
    ssize_t size = hafti_http_stream_fill(&shared->stream, HAFT_IO_FOREVER);
    return size == -ETIMEDOUT && haft_io_deadline_passed(&limit) ? -EAGAIN : size;
}

/* Reads once, for all tasks. */
static int read_frames(shared_t *shared) {
    __attribute__((cleanup(lose_reading))) shared_t *reading = shared;
    shared->is_reading = true;
    hafti_http2_unlock(&shared->frames);
    ssize_t size = fill(shared);
    hafti_http2_lock(&shared->frames);
    reading = NULL;
    int code = take(&shared->frames, size);
    shared->is_reading = false;
    return code;
}

/* Waits for bytes or for room, with both roles: the events, or an error. */
static int await_either(shared_t *shared) {
    __attribute__((cleanup(lose_reading))) shared_t *reading = shared;
    __attribute__((cleanup(lose_writing))) shared_t *writing = shared;
    hafti_http_stream_t *stream = &shared->stream;
    shared->is_reading = shared->is_writing = true;
    hafti_http2_unlock(&shared->frames);
    int events = stream->operations->has_unread(stream)
                     ? POLLIN
                     : haft_io_wait_ready(stream->descriptor, POLLIN | POLLOUT);
    hafti_http2_lock(&shared->frames);
    reading = writing = NULL;
    shared->is_reading = shared->is_writing = false;
    return events;
}

/* The peer's frames are read even while it takes nothing. */
static int read_or_write(shared_t *shared) {
    int events = await_either(shared);
    if (events < 0)
        return events;
    return (events & ~POLLOUT) != 0 ? read_frames(shared) : 0;
}

/* Ends a wait, also where the task is unwound: it may have been the one that was to read. */
static void stop_waiting(hafti_http2_stream_t *const *stream) {
    hafti_http2_t *frames = (*stream)->connection;
    hafti_http2_lock(frames);
    (*stream)->waiting--;
    wake_another((shared_t *)frames);
    hafti_http2_unlock(frames);
}

static int wait_for_another(hafti_http2_stream_t *stream, haft_io_event_t *event) {
    stream->waiting++;
    hafti_http2_unlock(stream->connection);
    int code;
    {
        __attribute__((cleanup(stop_waiting), unused)) hafti_http2_stream_t *waiting = stream;
        code = haft_io_event_wait(event);
    }
    hafti_http2_lock(stream->connection);
    return code;
}

/* Waits for a stream. It may return at once, because a write before the wait may have changed the
   state. */
static int wait_for(hafti_http2_t *frames, hafti_http2_stream_t *stream, haft_io_event_t *event) {
    shared_t *shared = (shared_t *)frames;
    if (!has_output(shared) || shared->is_writing)
        return shared->is_reading ? wait_for_another(stream, event) : read_frames(shared);
    int code = write_output(shared, false);
    if (code != -EAGAIN)
        return code;
    return shared->is_reading ? write_for_a_turn(shared) : read_or_write(shared);
}

/* ---- Connections ---- */

/* Does nothing: the task that causes frames settles. */
static void note_frames(hafti_http2_t *frames) {
    (void)frames;
}

static void keep_informed(hafti_http2_stream_t *stream) {
    hafti_http_informed_t *head = hafti_http_message_informed(stream->message);
    if (head == NULL)
        return;
    *stream->last_head = head;
    stream->last_head = &head->next;
    hafti_http2_signal(&stream->readable);
}

/* Heads of status 1xx come before the answer (RFC 9110, section 15.2). */
static void head_has_come(hafti_http2_t *frames, hafti_http2_stream_t *stream) {
    hafti_http_message_t *message = stream->message;
    bool is_informed = message->parser.status_code / 100 == 1 && !stream->has_come;
    if (is_informed && ++stream->informed < HAFTI_HTTP_INFORMED) {
        if (stream->last_head != NULL)
            keep_informed(stream);
        message->head = message->field_count = 0;
        return;
    }
    hafti_http2_earn(frames, 2);
    stream->code = hafti_http2_check_head(stream);
    if (is_informed)
        stream->code = -EBADMSG;
    hafti_http2_signal(&stream->readable);
}

/* Sends GOAWAY at the end of a connection, as far as there is room (RFC 9113, section 6.8). */
static void *send_goaway(void *argument) {
    shared_t *shared = argument;
    hafti_http2_lock(&shared->frames);
    if (shared->frames.session != NULL) {
        nghttp2_session_terminate_session(shared->frames.session, NGHTTP2_NO_ERROR);
        hafti_http2_pump(&shared->frames);
        write_output(shared, false);
    }
    hafti_http2_unlock(&shared->frames);
    return NULL;
}

void hafti_http2_release(shared_t *shared) {
    if (shared == NULL)
        return;
    hafti_http2_lock(&shared->frames);
    bool is_last = --shared->users == 0;
    shared->idle_since = haft_io_now();
    hafti_http2_unlock(&shared->frames);
    if (!is_last)
        return;
    if (shared->frames.error == 0) {
        haft_io_shield(send_goaway, shared);
        hafti_http_stream_send_end(&shared->stream);
    }
    hafti_http_stream_close(&shared->stream);
    haft_io_give_back(shared->left);
    hafti_http2_end(&shared->frames);
    hafti_http_places_leave(shared->client, &shared->places);
    free(shared);
}

/* A malformed head is an error of the answer, and not of the connection. */
static int on_malformed(nghttp2_session *session, const nghttp2_frame *frame, int code,
                        void *argument) {
    hafti_http2_stream_t *stream =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)code, (void)argument;
    if (stream != NULL)
        stream->is_malformed = true;
    return 0;
}

static int begin_session(shared_t *shared) {
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HAFTI_HTTP2_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HAFTI_HTTP_HEAD},
    };
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return -ENOMEM;
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, hafti_http2_note_close);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_malformed);
    int code = hafti_http2_begin(&shared->frames, callbacks, true);
    nghttp2_session_callbacks_del(callbacks);
    if (code == 0 && nghttp2_submit_settings(shared->frames.session, NGHTTP2_FLAG_NONE, settings,
                                             sizeof settings / sizeof *settings) != 0)
        code = -ENOMEM;
    return code;
}

/* Takes the reply's stream, which has agreed on HTTP/2. */
int hafti_http2_share(haft_http_reply_t *reply, shared_t **result) {
    shared_t *shared = calloc(1, sizeof *shared);
    if (shared == NULL)
        return -ENOMEM;
    shared->frames = (hafti_http2_t){.below = &shared->stream,
                                     .head_has_come = head_has_come,
                                     .wake_writer = note_frames,
                                     .wait = wait_for,
                                     .settle = hafti_http2_settle_frames};
    shared->stream = reply->stream;
    shared->users = 1;
    shared->client = reply->client;
    shared->places = reply->places;
    reply->places = NULL;
    reply->version = NULL;
    reply->stream = (hafti_http_stream_t){0};
    *result = shared;
    return begin_session(shared);
}

static bool has_something(shared_t *shared) {
    char byte;
    hafti_http2_unlock(&shared->frames);
    ssize_t got = haft_io_receive(shared->stream.descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    hafti_http2_lock(&shared->frames);
    return got != -EAGAIN;
}

/* Reads, without a wait, frames that have come while no task waited, such as GOAWAY. */
static void catch_up(shared_t *shared) {
    const hafti_http2_t *frames = &shared->frames;
    while (frames->error == 0 && frames->streams == NULL && has_something(shared) &&
           !shared->is_reading)
        if (read_frames(shared) != 0)
            break;
    settle_locked(shared);
}

/* Whether it takes another question. */
bool hafti_http2_is_usable(shared_t *shared) {
    hafti_http2_lock(&shared->frames);
    if (!shared->is_reading)
        catch_up(shared);
    bool is_usable = shared->frames.error == 0 &&
                     nghttp2_session_check_request_allowed(shared->frames.session) != 0;
    hafti_http2_unlock(&shared->frames);
    return is_usable;
}

bool hafti_http2_is_idle(shared_t *shared, int64_t until) {
    hafti_http2_lock(&shared->frames);
    bool is_idle = shared->users == 1 && (shared->frames.error != 0 || shared->idle_since <= until);
    hafti_http2_unlock(&shared->frames);
    return is_idle;
}
