/* SPDX-License-Identifier: MIT */
/*
 * A client's connections of HTTP/2: one for each origin, which the tasks that ask there share.
 * There is no task of its own, as a client belongs to no scope. A task that waits for its stream
 * reads the connection, for all, if no other does; when it has what it wants, the next one reads.
 * Likewise a task that has caused frames writes what there is.
 */
#include "client.h"
#include "http2_frames.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct hafti_http2_shared {
    hafti_http2_t frames; /* the first, for who gets its address */
    hafti_http_stream_t stream;
    haft_io_mutex_t writing;
    haft_http_client_t *client;
    hafti_http_places_t *places; /* where it has one */
    size_t users;                /* its origin, and replies */
    bool is_reading;
} shared_t;

struct hafti_http2_origin {
    struct hafti_http2_origin *next;
    hafti_http_url_t url; /* its texts are gone */
    haft_io_mutex_t connecting;
    size_t users;         /* tasks that open a stream */
    atomic_bool is_http1; /* as the last connection has shown */
    shared_t *shared;     /* NULL: none */
};

/* Nanoseconds that a server may take for a block of frames; then it counts as gone. */
static const int64_t WRITE_TIME = 10 * HAFT_IO_SECOND;

/* ---- Reading and writing ---- */

/* A block that is being written. */
typedef struct {
    hafti_http2_t *frames;
    char *block;
} writing_t;

/* What was cut off in the middle of a frame cannot go on. */
static void end_writing(const writing_t *writing) {
    if (writing->block == NULL)
        return;
    hafti_http2_lock(writing->frames);
    hafti_http2_fail(writing->frames, -ECONNRESET);
    hafti_http2_unlock(writing->frames);
    haft_io_give_back(writing->block);
}

static size_t take_block(writing_t *writing) {
    hafti_http2_t *frames = writing->frames;
    hafti_http2_lock(frames);
    hafti_http2_pump(frames);
    size_t size = frames->size;
    writing->block = frames->block;
    frames->block = NULL;
    frames->size = 0;
    hafti_http2_unlock(frames);
    return size;
}

static void *write_frames(void *argument) {
    shared_t *shared = argument;
    __attribute__((cleanup(end_writing))) writing_t writing = {&shared->frames, NULL};
    int code = 0;
    for (size_t size; code == 0 && (size = take_block(&writing)) != 0;) {
        code = hafti_http_stream_write(&shared->stream, writing.block, size,
                                       haft_io_now() + WRITE_TIME);
        if (code == 0) {
            haft_io_give_back(writing.block);
            writing.block = NULL;
        }
    }
    return NULL;
}

static void stop_writing(haft_io_mutex_t *const *writing) {
    haft_io_mutex_unlock(*writing);
}

/* Writes what there is, unless another task does. The frames are everybody's, so a task that is
   cancelled or late writes on. */
static int flush(hafti_http2_t *frames) {
    shared_t *shared = (shared_t *)frames;
    int code = haft_io_mutex_lock(&shared->writing);
    if (code != 0)
        return code;
    __attribute__((cleanup(stop_writing), unused)) haft_io_mutex_t *writing = &shared->writing;
    return haft_io_shield(write_frames, shared);
}

/* Another task reads, if any waits. */
static void wake_reader(shared_t *shared) {
    hafti_http2_stream_t *stream = shared->frames.streams;
    while (stream != NULL && !stream->is_waiting)
        stream = stream->next;
    if (stream == NULL || shared->is_reading)
        return;
    hafti_http2_signal(&stream->readable);
    hafti_http2_signal(&stream->writable);
}

static void settle(hafti_http2_t *frames) {
    hafti_http2_lock(frames);
    bool has_frames = frames->size != 0;
    wake_reader((shared_t *)frames);
    hafti_http2_unlock(frames);
    if (has_frames)
        flush(frames);
}

static void stop_reading(shared_t *const *shared) {
    hafti_http2_lock(&(*shared)->frames);
    (*shared)->is_reading = false;
    hafti_http2_unlock(&(*shared)->frames);
}

/* An error of the connection is everybody's; the end of the task's time is not. */
static int take(hafti_http2_t *frames, ssize_t size) {
    hafti_http_stream_t *below = frames->below;
    if (size == -ETIMEDOUT || size == -ECANCELED)
        return (int)size;
    hafti_http2_lock(frames);
    int code = size > 0    ? hafti_http2_receive(frames, below->at, (size_t)size)
               : size == 0 ? -ECONNRESET
                           : (int)size; /* such as an alert of TLS */
    below->at = below->end;
    if (code != 0)
        hafti_http2_fail(frames, code);
    hafti_http2_pump(frames);
    hafti_http2_unlock(frames);
    return 0;
}

/* Once, for all. */
static int read_frames(shared_t *shared) {
    shared->is_reading = true;
    hafti_http2_unlock(&shared->frames);
    int code;
    {
        __attribute__((cleanup(stop_reading), unused)) shared_t *reading = shared;
        code = take(&shared->frames, hafti_http_stream_fill(&shared->stream, HAFT_IO_FOREVER));
    }
    hafti_http2_lock(&shared->frames);
    return code;
}

/* Also where the task is unwound: then it may be the one that was to read. */
static void stop_waiting(hafti_http2_stream_t *const *stream) {
    hafti_http2_t *frames = (*stream)->connection;
    hafti_http2_lock(frames);
    (*stream)->is_waiting = false;
    wake_reader((shared_t *)frames);
    hafti_http2_unlock(frames);
}

static int wait_for_reader(hafti_http2_stream_t *stream, haft_io_event_t *event) {
    stream->is_waiting = true;
    hafti_http2_unlock(stream->connection);
    int code;
    {
        __attribute__((cleanup(stop_waiting), unused)) hafti_http2_stream_t *waiting = stream;
        code = haft_io_event_wait(event);
    }
    hafti_http2_lock(stream->connection);
    return code;
}

static int wait_for(hafti_http2_t *frames, hafti_http2_stream_t *stream, haft_io_event_t *event) {
    shared_t *shared = (shared_t *)frames;
    if (frames->size != 0) {
        hafti_http2_unlock(frames);
        int code = flush(frames);
        hafti_http2_lock(frames);
        return code;
    }
    return shared->is_reading ? wait_for_reader(stream, event) : read_frames(shared);
}

/* ---- Connections ---- */

static void note_nothing(hafti_http2_t *frames) {
    (void)frames;
}

/* Heads of status 1xx come before the answer (9110, 15.2). */
static void head_has_come(hafti_http2_t *frames, hafti_http2_stream_t *stream) {
    hafti_http_message_t *message = stream->message;
    (void)frames;
    if (message->parser.status_code < 200 && !stream->has_come) {
        message->head = message->field_count = 0;
        return;
    }
    stream->code = hafti_http2_check_head(stream);
    hafti_http2_signal(&stream->readable);
}

static void release(shared_t *shared) {
    if (shared == NULL)
        return;
    hafti_http2_lock(&shared->frames);
    bool is_last = --shared->users == 0;
    hafti_http2_unlock(&shared->frames);
    if (!is_last)
        return;
    hafti_http_stream_close(&shared->stream);
    hafti_http2_end(&shared->frames);
    hafti_http_places_leave(shared->client, &shared->places);
    free(shared);
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
    int code = hafti_http2_begin(&shared->frames, callbacks, true);
    nghttp2_session_callbacks_del(callbacks);
    if (code == 0 && nghttp2_submit_settings(shared->frames.session, NGHTTP2_FLAG_NONE, settings,
                                             sizeof settings / sizeof *settings) != 0)
        code = -ENOMEM;
    return code;
}

/* Takes the reply's stream, which has agreed on HTTP/2. */
static int share(haft_http_reply_t *reply, shared_t **result) {
    shared_t *shared = calloc(1, sizeof *shared);
    if (shared == NULL)
        return -ENOMEM;
    shared->frames = (hafti_http2_t){.below = &shared->stream,
                                     .head_has_come = head_has_come,
                                     .wake_writer = note_nothing,
                                     .note_progress = note_nothing,
                                     .wait = wait_for,
                                     .settle = settle};
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

/* What has come while nobody waited, such as a farewell, is there without a wait. */
static void catch_up(shared_t *shared) {
    const hafti_http2_t *frames = &shared->frames;
    while (frames->error == 0 && frames->streams == NULL && has_something(shared) &&
           !shared->is_reading)
        if (read_frames(shared) != 0)
            break;
}

/* Whether it takes another question. */
static bool is_usable(shared_t *shared) {
    hafti_http2_lock(&shared->frames);
    if (!shared->is_reading)
        catch_up(shared);
    bool is_usable = shared->frames.error == 0 &&
                     nghttp2_session_check_request_allowed(shared->frames.session) != 0;
    hafti_http2_unlock(&shared->frames);
    return is_usable;
}

/* ---- Origins ---- */

static hafti_http2_origin_t *enter(haft_http_client_t *client, const hafti_http_url_t *url) {
    pthread_mutex_lock(&client->mutex);
    hafti_http2_origin_t *origin = client->origins;
    while (origin != NULL && !hafti_http_same_origin(&origin->url, url))
        origin = origin->next;
    if (origin == NULL && (origin = calloc(1, sizeof *origin)) != NULL) {
        origin->url = *url;
        origin->next = client->origins;
        client->origins = origin;
    }
    if (origin != NULL)
        origin->users++;
    pthread_mutex_unlock(&client->mutex);
    return origin;
}

typedef struct {
    haft_http_client_t *client;
    hafti_http2_origin_t *origin;
    bool is_connecting;
} entered_t;

/* One that has no connection is forgotten with its last user. */
static void leave(const entered_t *entered) {
    hafti_http2_origin_t *origin = entered->origin, **at = &entered->client->origins;
    if (entered->is_connecting)
        haft_io_mutex_unlock(&origin->connecting);
    pthread_mutex_lock(&entered->client->mutex);
    bool is_unused = --origin->users == 0 && origin->shared == NULL;
    while (*at != origin)
        at = &(*at)->next;
    if (is_unused)
        *at = origin->next;
    pthread_mutex_unlock(&entered->client->mutex);
    if (is_unused)
        free(origin);
}

void hafti_http2_free_origins(haft_http_client_t *client) {
    while (client->origins != NULL) {
        hafti_http2_origin_t *origin = client->origins;
        client->origins = origin->next;
        release(origin->shared);
        free(origin);
    }
}

/* ---- What a reply does ---- */

enum { OWN_FIELDS = 6 + HAFTI_HTTP_ADDED };

static hafti_http_text_t text_of(const char *text) {
    return (hafti_http_text_t){text, strlen(text)};
}

/* The fields, as nghttp2 wants them. */
typedef struct {
    nghttp2_nv *fields; /* room for all */
    size_t count;
    char size[24];
} head_t;

static void put(head_t *head, const char *name, hafti_http_text_t value) {
    head->fields[head->count++] = hafti_http2_field(text_of(name), hafti_http_trim(value));
}

static int put_asked(head_t *head, const hafti_http_asking_t *asking) {
    const haft_http_question_t *question = asking->question;
    for (size_t i = 0; i < asking->added_count; i++)
        put(head, asking->added[i].name, text_of(asking->added[i].value));
    for (size_t i = 0; i < question->header_count; i++) {
        const haft_http_header_t *field = &question->headers[i];
        if (!hafti_http_is_askable(field))
            return -EINVAL;
        if (!hafti_http_is_kept_back(asking, field->name))
            put(head, field->name, text_of(field->value));
    }
    return 0;
}

static int put_body_fields(head_t *head, const hafti_http_asking_t *asking) {
    const haft_http_question_t *question = asking->question;
    bool has_type = hafti_http_asks_with(question, "Content-Type");
    const char *type = asking->without_body || has_type ? NULL : question->type;
    bool has_size =
        asking->without_body ? hafti_http_means_body(asking->method) : question->produce == NULL;
    snprintf(head->size, sizeof head->size, "%zu", asking->without_body ? 0 : question->size);
    if (has_size)
        put(head, "content-length", text_of(head->size));
    if (type != NULL && !hafti_http_is_value(type, strlen(type)))
        return -EINVAL;
    if (type != NULL)
        put(head, "content-type", text_of(type));
    return 0;
}

static int begin_stream(haft_http_reply_t *reply, const head_t *head, bool has_body) {
    hafti_http2_stream_t *stream = reply->http2;
    hafti_http2_t *frames = stream->connection;
    nghttp2_data_provider body = {.read_callback = hafti_http2_read_body};
    hafti_http2_lock(frames);
    int32_t id = nghttp2_submit_request(frames->session, NULL, head->fields, head->count,
                                        has_body ? &body : NULL, stream);
    if (id > 0) {
        hafti_http2_stream_begin(stream, frames, id);
        stream->ends = stream->has_ended = !has_body;
    }
    hafti_http2_unlock(frames);
    return id > 0 ? 0 : id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -ECONNRESET;
}

static int write_body(const hafti_http_asking_t *asking, hafti_http2_stream_t *stream) {
    hafti_http_stream_t *bytes = &stream->bytes;
    const haft_http_question_t *question = asking->question;
    if (asking->without_body)
        return bytes->operations->write_all(bytes, NULL, 0);
    if (question->produce == NULL) {
        stream->is_last = true;
        return bytes->operations->write_all(bytes, question->body, question->size);
    }
    int code = hafti_http_write_produced(bytes, question, bytes->operations->write_all);
    return code == 0 ? bytes->operations->shutdown(bytes, SHUT_WR) : code;
}

/* As much as one of HTTP/1.1 would have. */
static size_t size_of_head(const haft_http_question_t *question, const haft_http_reply_t *reply) {
    size_t size = reply->url.target.size + reply->url.authority.size;
    for (size_t i = 0; i < question->header_count; i++)
        size += strlen(question->headers[i].name) + strlen(question->headers[i].value) + 4;
    return size;
}

static int write_question(const hafti_http_asking_t *asking, haft_http_reply_t *reply) {
    hafti_http_text_t target = reply->url.target, authority = reply->url.authority;
    bool has_slash = target.size != 0 && *target.bytes == '/';
    if (size_of_head(asking->question, reply) > HAFT_IO_LENT_SIZE)
        return -EMSGSIZE;
    nghttp2_nv fields[OWN_FIELDS + asking->question->header_count];
    char path[target.size + 2];
    head_t head = {.fields = fields};
    if (!hafti_http_is_token(asking->method, strlen(asking->method)))
        return -EINVAL;
    snprintf(path, sizeof path, "%s%.*s", has_slash ? "" : "/", (int)target.size,
             target.size != 0 ? target.bytes : "");
    put(&head, ":method", text_of(asking->method));
    put(&head, ":scheme", text_of("https"));
    put(&head, ":authority", authority);
    put(&head, ":path", text_of(path));
    int code = put_asked(&head, asking);
    code = code == 0 ? put_body_fields(&head, asking) : code;
    if (code != 0)
        return code;
    hafti_http_reply_begin(reply, &reply->http2->bytes, asking->method);
    if (reply->message.block == NULL)
        return -ENOMEM;
    code = begin_stream(reply, &head, !asking->without_body);
    return code == 0 ? write_body(asking, reply->http2) : code;
}

static int read_head(haft_http_reply_t *reply, const char *method) {
    hafti_http2_stream_t *stream = reply->http2;
    (void)method;
    if (stream->id == 0)
        return -ECONNRESET;
    hafti_http2_lock(stream->connection);
    int code = hafti_http2_await_head(stream);
    reply->was_refused = stream->is_refused;
    hafti_http2_unlock(stream->connection);
    settle(stream->connection);
    return code == 0 ? stream->code : code;
}

static void end(haft_http_reply_t *reply) {
    hafti_http2_stream_t *stream = reply->http2;
    hafti_http2_t *frames = stream->connection;
    if (stream->id != 0) {
        hafti_http2_lock(frames);
        hafti_http2_stream_end(stream, NGHTTP2_CANCEL);
        hafti_http2_pump(frames);
        hafti_http2_unlock(frames);
        settle(frames);
    }
    release((shared_t *)frames);
    free(stream);
    reply->http2 = NULL;
    reply->version = NULL;
}

static const hafti_http_version_of_asking_t http2 = {write_question, read_head, end};

/* ---- A question ---- */

static int join(haft_http_reply_t *reply, shared_t *shared) {
    hafti_http2_stream_t *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return -ENOMEM;
    hafti_http2_lock(&shared->frames);
    shared->users++;
    hafti_http2_unlock(&shared->frames);
    stream->connection = &shared->frames;
    stream->message = &reply->message;
    reply->http2 = stream;
    reply->version = &http2;
    return 0;
}

static int wait_for_connection(entered_t *entered) {
    int code = entered->is_connecting ? 0 : haft_io_mutex_lock(&entered->origin->connecting);
    entered->is_connecting = code == 0;
    return code;
}

/* The connection before is given up first, whose place this one may need. */
static int connect_anew(haft_http_reply_t *reply, entered_t *entered, hafti_http_need_t need) {
    hafti_http2_origin_t *origin = entered->origin;
    shared_t *shared = NULL;
    if (entered->is_connecting) {
        release(origin->shared);
        origin->shared = NULL;
    }
    int code = hafti_http_connect(reply, need);
    bool is_http1 = code == 0 && !hafti_http_stream_chose_http2(&reply->stream);
    atomic_store(&origin->is_http1, is_http1);
    if (code == 0 && !is_http1)
        code = wait_for_connection(entered);
    if (code != 0 || is_http1)
        return code;
    code = share(reply, &shared);
    if (code != 0) {
        release(shared);
        return code;
    }
    release(origin->shared);
    origin->shared = shared;
    return join(reply, shared);
}

/* While one task connects, the others that ask there wait for what it agrees on. */
int hafti_http2_open(haft_http_reply_t *reply, hafti_http_need_t need) {
    hafti_http2_origin_t *origin = enter(reply->client, &reply->url);
    if (origin == NULL)
        return -ENOMEM;
    __attribute__((cleanup(leave))) entered_t entered = {reply->client, origin, false};
    int code = atomic_load(&origin->is_http1) ? 0 : wait_for_connection(&entered);
    if (code != 0)
        return code;
    if (!entered.is_connecting || origin->shared == NULL || need == HAFTI_HTTP_NEW ||
        !is_usable(origin->shared))
        return connect_anew(reply, &entered, need);
    reply->was_kept = true;
    return join(reply, origin->shared);
}
