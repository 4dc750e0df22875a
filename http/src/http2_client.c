/* SPDX-License-Identifier: MIT */
/*
 * A client's questions by HTTP/2: the origins that it knows, one connection for each, which the
 * tasks that ask there share (http2_shared.c), and the operations of a reply on its stream. While
 * one task connects to an origin, the others that ask there wait for it, and learn which version it
 * speaks. An origin is forgotten when no task uses it and it has no connection.
 */
#include "http2_shared.h"

#include <stdio.h>
#include <stdlib.h>

typedef hafti_http2_shared_t shared_t;

struct hafti_http2_origin {
    struct hafti_http2_origin *next;
    hafti_http_url_t url; /* its texts are gone */
    haft_io_mutex_t connecting;
    size_t users;         /* tasks that open a stream */
    atomic_bool is_http1; /* as the last connection has shown */
    shared_t *shared;     /* NULL: none */
};

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

/* Takes a connection out that no task uses, or is about to use. */
static shared_t *detach_idle(haft_http_client_t *client, int64_t until) {
    shared_t *shared = NULL;
    pthread_mutex_lock(&client->mutex);
    hafti_http2_origin_t **at = &client->origins, *origin;
    while ((origin = *at) != NULL && (origin->users != 0 || origin->shared == NULL ||
                                      !hafti_http2_is_idle(origin->shared, until)))
        at = &origin->next;
    if (origin != NULL) {
        shared = origin->shared;
        *at = origin->next;
        free(origin);
    }
    pthread_mutex_unlock(&client->mutex);
    return shared;
}

void hafti_http2_close_idle(haft_http_client_t *client, int64_t until, size_t most) {
    for (shared_t *shared; most != 0 && (shared = detach_idle(client, until)) != NULL; most--)
        hafti_http2_release(shared);
}

size_t hafti_http2_count_idle(haft_http_client_t *client, int64_t *oldest) {
    size_t count = 0;
    *oldest = HAFT_IO_FOREVER;
    pthread_mutex_lock(&client->mutex);
    for (const hafti_http2_origin_t *at = client->origins; at != NULL; at = at->next) {
        bool counts = at->users == 0 && at->shared != NULL &&
                      hafti_http2_is_idle(at->shared, HAFT_IO_FOREVER - 1);
        count += counts;
        if (counts && at->shared->idle_since < *oldest)
            *oldest = at->shared->idle_since;
    }
    pthread_mutex_unlock(&client->mutex);
    return count;
}

void hafti_http2_free_origins(haft_http_client_t *client) {
    while (client->origins != NULL) {
        hafti_http2_origin_t *origin = client->origins;
        client->origins = origin->next;
        hafti_http2_release(origin->shared);
        free(origin);
    }
}

/* ---- The operations of a reply ---- */

enum { OWN_FIELDS = 7 + HAFTI_HTTP_ADDED };

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
    bool has_size = asking->without_body ? hafti_http_means_body(asking->method)
                                         : question->produce == NULL || question->size != 0;
    snprintf(head->size, sizeof head->size, "%zu", asking->without_body ? 0 : question->size);
    if (has_size)
        put(head, "content-length", text_of(head->size));
    if (type != NULL && !hafti_http_is_value(type, strlen(type)))
        return -EINVAL;
    if (type != NULL)
        put(head, "content-type", text_of(type));
    if (asking->way->expects)
        put(head, "expect", text_of("100-continue"));
    return 0;
}

static int begin_stream(const hafti_http_asking_t *asking, haft_http_reply_t *reply,
                        const head_t *head) {
    bool has_body = !asking->without_body;
    hafti_http2_stream_t *stream = reply->http2;
    hafti_http2_t *frames = stream->connection;
    nghttp2_data_provider body = {.read_callback = hafti_http2_read_body};
    hafti_http2_lock(frames);
    int32_t id = nghttp2_submit_request(frames->session, NULL, head->fields, head->count,
                                        has_body ? &body : NULL, stream);
    if (id > 0) {
        hafti_http2_stream_begin(stream, frames, id);
        stream->ends = stream->has_ended = !has_body;
        stream->last_head = asking->way->informed != NULL ? &stream->heads : NULL;
    }
    hafti_http2_unlock(frames);
    return id > 0 ? 0 : id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -ECONNRESET;
}

/* The question's trailers end with the stream: nghttp2 takes them when that has sent all else. */
static int set_trailers(const haft_http_question_t *question, hafti_http2_stream_t *stream) {
    const haft_http_header_t *fields = NULL;
    ssize_t count = hafti_http_trailers_of(question, &fields);
    if (count <= 0)
        return (int)count;
    nghttp2_nv *trailers = calloc((size_t)count, sizeof *trailers);
    if (trailers == NULL)
        return -ENOMEM;
    for (ssize_t i = 0; i < count; i++)
        trailers[i] =
            hafti_http2_field(text_of(fields[i].name), hafti_http_trim(text_of(fields[i].value)));
    stream->trailers_out = trailers;
    stream->trailers_out_count = (size_t)count;
    return 0;
}

/* Writes a body that is in memory, with the head; a produced body is not sent yet. */
static int write_body(const hafti_http_asking_t *asking, hafti_http2_stream_t *stream) {
    hafti_http_stream_t *bytes = &stream->bytes;
    const haft_http_question_t *question = asking->question;
    if (question->produce != NULL && !asking->without_body && asking->way->produces == NULL)
        return 0; /* the head goes with the first piece */
    if (asking->without_body || question->produce != NULL)
        return bytes->operations->write_all(bytes, NULL, 0);
    stream->is_last = true;
    return bytes->operations->write_all(bytes, question->body, question->size);
}

static int produce(const haft_http_question_t *question, haft_http_reply_t *reply) {
    hafti_http2_stream_t *stream = reply->http2;
    hafti_http_stream_t *bytes = &stream->bytes;
    int code = hafti_http_write_produced(bytes, question, bytes->operations->write_all);
    if (code == 0)
        code = set_trailers(question, stream);
    return code == 0 ? bytes->operations->shutdown(bytes, SHUT_WR) : code;
}

/* The size that a head of HTTP/1.1 would have. */
static size_t size_of_head(const haft_http_question_t *question, const haft_http_reply_t *reply) {
    size_t size = reply->url.target.size + reply->url.authority.size;
    for (size_t i = 0; i < question->header_count; i++)
        size += strlen(question->headers[i].name) + strlen(question->headers[i].value) + 4;
    return size;
}

static int write_question(const hafti_http_asking_t *asking, haft_http_reply_t *reply) {
    hafti_http_text_t target = reply->url.target, authority = reply->url.authority;
    if (asking->way->host != NULL)
        authority = text_of(asking->way->host);
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
    code = begin_stream(asking, reply, &head);
    return code == 0 ? write_body(asking, reply->http2) : code;
}

/* Takes the heads of status 1xx that have come, with the mutex, and reports them without it. */
static void tell_informed(const hafti_http_asking_t *asking, hafti_http2_stream_t *stream) {
    while (stream->heads != NULL) {
        hafti_http_informed_t *head = stream->heads;
        stream->heads = head->next;
        if (head->next == NULL)
            stream->last_head = &stream->heads;
        hafti_http2_unlock(stream->connection);
        hafti_http_tell_informed(asking->way, head);
        hafti_http2_lock(stream->connection);
    }
}

static int read_head(const hafti_http_asking_t *asking, haft_http_reply_t *reply) {
    hafti_http2_stream_t *stream = reply->http2;
    if (stream->id == 0)
        return -ECONNRESET;
    hafti_http2_lock(stream->connection);
    int code = hafti_http2_await_head(stream);
    while (code == 0 && (stream->heads != NULL || !stream->has_head)) {
        tell_informed(asking, stream);
        code = hafti_http2_await_head(stream);
    }
    reply->was_refused = stream->is_refused;
    hafti_http2_unlock(stream->connection);
    hafti_http2_settle_frames(stream->connection);
    if (code == -ECONNRESET && stream->is_malformed)
        return -EBADMSG;
    return code == 0 ? stream->code : code;
}

static bool end(haft_http_reply_t *reply) {
    hafti_http2_stream_t *stream = reply->http2;
    hafti_http2_t *frames = stream->connection;
    if (stream->id != 0) {
        hafti_http2_lock(frames);
        hafti_http2_stream_end(stream, NGHTTP2_CANCEL);
        hafti_http2_pump(frames);
        hafti_http2_unlock(frames);
        haft_io_shield(hafti_http2_settle_shielded, frames);
    }
    bool has_failed = frames->error != 0;
    hafti_http2_release((shared_t *)frames);
    if (has_failed)
        hafti_http2_close_idle(reply->client, INT64_MIN, SIZE_MAX);
    free(stream->trailers_out);
    while (stream->heads != NULL) {
        hafti_http_informed_t *head = stream->heads;
        stream->heads = head->next;
        free(head);
    }
    free(stream);
    reply->http2 = NULL;
    reply->version = NULL;
    return !has_failed;
}

static const hafti_http_version_of_asking_t http2 = {write_question, produce, read_head, end};

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

/* Gives up the previous connection first, because this one may need its place. */
static int connect_anew(haft_http_reply_t *reply, entered_t *entered, hafti_http_need_t need,
                        hafti_http_connect_t *connect) {
    hafti_http2_origin_t *origin = entered->origin;
    shared_t *shared = NULL;
    if (entered->is_connecting) {
        hafti_http2_release(origin->shared);
        origin->shared = NULL;
    }
    int code = connect(reply, need);
    bool is_http1 = code == 0 && !hafti_http_stream_chose_http2(&reply->stream);
    atomic_store(&origin->is_http1, is_http1);
    if (code == 0 && !is_http1)
        code = wait_for_connection(entered);
    if (code != 0 || is_http1)
        return code;
    code = hafti_http2_share(reply, &shared);
    if (code != 0) {
        hafti_http2_release(shared);
        return code;
    }
    hafti_http2_release(origin->shared);
    origin->shared = shared;
    return join(reply, shared);
}

/* While one task connects, the others that ask there wait for what it agrees on. */
int hafti_http2_open(haft_http_reply_t *reply, hafti_http_need_t need,
                     hafti_http_connect_t *connect) {
    hafti_http2_origin_t *origin = enter(reply->client, &reply->url);
    if (origin == NULL)
        return -ENOMEM;
    __attribute__((cleanup(leave))) entered_t entered = {reply->client, origin, false};
    int code = atomic_load(&origin->is_http1) ? 0 : wait_for_connection(&entered);
    if (code != 0)
        return code;
    if (!entered.is_connecting || origin->shared == NULL || need == HAFTI_HTTP_NEW ||
        !hafti_http2_is_usable(origin->shared))
        return connect_anew(reply, &entered, need, connect);
    reply->was_kept = true;
    return join(reply, origin->shared);
}
