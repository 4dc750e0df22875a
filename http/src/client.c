/* SPDX-License-Identifier: MIT */
/* The client: a question is written, the head of its answer read; redirects are questions again. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>

haft_http_client_t *haft_http_client_new_with(const haft_http_client_options_t *options) {
    static const haft_http_client_options_t defaults = {0};
    if (options == NULL)
        options = &defaults;
    haft_http_client_t *client = calloc(1, sizeof *client);
    if (client == NULL)
        return NULL;
    client->pool = hafti_http_pool_new(options->kept != 0 ? options->kept : 8);
    client->secure.given = options->tls;
    client->redirects = options->redirects != 0 ? options->redirects : 10;
    client->is_plain = options->uncompressed;
    client->is_untraced = options->untraced;
    client->connections = options->connections;
    client->kept_in_all = options->kept_in_all != 0 ? options->kept_in_all : 64;
    client->kept_time = options->kept_time != 0 ? options->kept_time : 60 * HAFT_IO_SECOND;
    client->cookies = options->cookies;
    client->proxying = hafti_http_proxying_new(options->proxy);
    client->decompressed =
        options->decompressed != 0 ? options->decompressed : (uint64_t)256 * 1024 * 1024;
    client->limits = (haft_http_limits_t){
        .request_line = 8192,
        .head = HAFTI_HTTP_HEAD,
        .fields = HAFTI_HTTP_FIELDS,
        .body = options->body != 0 ? options->body : 16 * 1024 * 1024,
        .head_time = HAFT_IO_FOREVER, /* the task has deadlines */
        .body_time = HAFT_IO_FOREVER,
        .write_time = HAFT_IO_FOREVER,
        .least_rate = 1024,
    };
    pthread_mutex_init(&client->mutex, NULL);
    bool is_agreed = options->tls == NULL || hafti_http_secure_set_protocols(options->tls) == 0;
    if (client->pool == NULL || client->proxying == NULL || !is_agreed) {
        haft_http_client_free(client);
        return NULL;
    }
    return client;
}

void haft_http_client_free(haft_http_client_t *client) {
    if (client == NULL)
        return;
    hafti_http2_free_origins(client);
    pthread_mutex_destroy(&client->mutex);
    hafti_http_pool_free(client->pool);
    hafti_http_proxying_free(client->proxying);
    hafti_http_secure_end(&client->secure);
    free(client);
}

/* ---- The question ---- */

/* The head that is written next, in a block; once something does not fit, nothing more does. */
typedef struct {
    char *block;
    size_t size;
    bool is_full;
} head_t;

static void give_back_head(const head_t *head) {
    haft_io_give_back(head->block);
}

static void put(head_t *head, const void *bytes, size_t size) {
    head->is_full |= size > HAFT_IO_LENT_SIZE - head->size;
    if (head->is_full || size == 0)
        return;
    memcpy(head->block + head->size, bytes, size);
    head->size += size;
}

static void put_text(head_t *head, const char *text) {
    put(head, text, strlen(text));
}

typedef hafti_http_asking_t asking_t;

static bool is_private(const char *name) {
    static const char *const names[] = {"Authorization", "Cookie", "Proxy-Authorization", NULL};
    return hafti_http_is_one_of(name, names);
}

static bool is_ours(const char *name) {
    static const char *const ours[] = {
        "Host", "Content-Length", "Transfer-Encoding", "Upgrade", "Connection", "Expect", NULL};
    return hafti_http_is_one_of(name, ours);
}

static int put_field(head_t *head, const char *name, const char *value) {
    if (!hafti_http_is_token(name, strlen(name)) || !hafti_http_is_value(value, strlen(value)))
        return -EINVAL;
    put_text(head, name);
    hafti_http_text_t trimmed = hafti_http_trim((hafti_http_text_t){value, strlen(value)});
    put_text(head, ": ");
    put(head, trimmed.bytes, trimmed.size);
    put_text(head, "\r\n");
    return 0;
}

bool hafti_http_is_askable(const haft_http_header_t *field) {
    return hafti_http_is_given_token(field->name) && !is_ours(field->name) &&
           hafti_http_is_given_value(field->value);
}

/* RFC 9110, section 15.4: fields that say something of the body. */
static bool is_of_content(const char *name) {
    static const char *const names[] = {"Content-Type",     "Content-Encoding", "Content-Language",
                                        "Content-Location", "Content-Digest",   "Repr-Digest",
                                        "Digest",           "Last-Modified",    NULL};
    return hafti_http_is_one_of(name, names);
}

bool hafti_http_is_kept_back(const asking_t *asking, const char *name) {
    return (asking->is_elsewhere && is_private(name)) ||
           (asking->has_lost_body && is_of_content(name));
}

static int put_fields(head_t *head, const asking_t *asking) {
    const haft_http_question_t *question = asking->question;
    int code = 0;
    for (size_t i = 0; i < asking->added_count && code == 0; i++)
        code = put_field(head, asking->added[i].name, asking->added[i].value);
    for (size_t i = 0; i < question->header_count && code == 0; i++) {
        const haft_http_header_t *field = &question->headers[i];
        if (!hafti_http_is_askable(field))
            code = -EINVAL;
        else if (!hafti_http_is_kept_back(asking, field->name))
            code = put_field(head, field->name, field->value);
    }
    return code;
}

bool hafti_http_asks_with(const haft_http_question_t *question, const char *name) {
    for (size_t i = 0; i < question->header_count; i++)
        if (hafti_http_same_text(question->headers[i].name, name))
            return true;
    return false;
}

/* Whether the library decodes is the library's to ask for; a part of what is coded it could not. */
static bool asks_for_codings(const haft_http_client_t *client,
                             const haft_http_question_t *question) {
    return !client->is_plain && *hafti_http_codings != NULL &&
           !hafti_http_asks_with(question, "Accept-Encoding") &&
           !hafti_http_asks_with(question, "Range");
}

bool hafti_http_means_body(const char *method) {
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "PATCH") == 0;
}

static int put_body_fields(head_t *head, const asking_t *asking) {
    const haft_http_question_t *question = asking->question;
    char size[24];
    if (asking->without_body)
        return hafti_http_means_body(asking->method) ? put_field(head, "Content-Length", "0") : 0;
    snprintf(size, sizeof size, "%zu", question->size);
    if (question->produce != NULL && question->size == 0)
        put_text(head, "Transfer-Encoding: chunked\r\n");
    else
        put_field(head, "Content-Length", size);
    const char *type = hafti_http_asks_with(question, "Content-Type") ? NULL : question->type;
    return type != NULL ? put_field(head, "Content-Type", type) : 0;
}

/* A proxy gets all of it (RFC 9112, section 3.2.2). */
static void put_target(head_t *head, const haft_http_reply_t *reply) {
    const hafti_http_url_t *url = &reply->url;
    if (reply->forwarder != NULL) {
        put_text(head, "http://");
        put(head, url->authority.bytes, url->authority.size);
    }
    put_text(head, url->target.size != 0 && *url->target.bytes == '/' ? "" : "/");
    put(head, url->target.bytes, url->target.size);
}

static void put_host(head_t *head, const asking_t *asking, const hafti_http_url_t *url) {
    put_text(head, "Host: ");
    if (asking->way->host != NULL)
        put_text(head, asking->way->host);
    else
        put(head, url->authority.bytes, url->authority.size);
    put_text(head, "\r\n");
}

static int put_head(head_t *head, const asking_t *asking, const haft_http_reply_t *reply) {
    if (!hafti_http_is_token(asking->method, strlen(asking->method)))
        return -EINVAL;
    put_text(head, asking->method);
    put_text(head, " ");
    put_target(head, reply);
    put_text(head, " HTTP/1.1\r\n");
    put_host(head, asking, &reply->url);
    if (asking->way->lines != NULL)
        put_text(head, asking->way->lines);
    if (asking->way->expects)
        put_text(head, "Expect: 100-continue\r\n");
    if (hafti_http_asks_with(asking->question, "TE"))
        put_text(head, "Connection: TE\r\n"); /* RFC 9110, section 10.1.4 */
    int code = put_fields(head, asking);
    if (code == 0)
        code = put_body_fields(head, asking);
    put_text(head, "\r\n");
    return code != 0 || !head->is_full ? code : -EMSGSIZE;
}

static int write_chunk(hafti_http_stream_t *stream, const void *bytes, size_t size) {
    char line[24];
    int length = snprintf(line, sizeof line, "%zx\r\n", size);
    int code = stream->operations->write_all(stream, line, (size_t)length);
    if (code == 0)
        code = stream->operations->write_all(stream, bytes, size);
    return code == 0 ? stream->operations->write_all(stream, "\r\n", 2) : code;
}

int hafti_http_write_produced(hafti_http_stream_t *stream, const haft_http_question_t *question,
                              hafti_http_write_piece_t *write) {
    char piece[4096];
    size_t left = question->size;
    for (;;) {
        ssize_t size = question->produce(question->argument, piece, sizeof piece);
        if (size > (ssize_t)sizeof piece)
            return -EINVAL;
        if (question->size != 0 && size >= 0 && (size != 0 ? (size_t)size > left : left != 0))
            return -EMSGSIZE;
        left -= size > 0 ? (size_t)size : 0;
        int code = size > 0 ? write(stream, piece, (size_t)size) : (int)size;
        if (code != 0 || size == 0)
            return code;
    }
}

ssize_t hafti_http_trailers_of(const haft_http_question_t *question,
                               const haft_http_header_t **fields) {
    size_t count = question->trailers != NULL ? question->trailers(question->argument, fields) : 0;
    for (size_t i = 0; i < count; i++)
        if (!hafti_http_is_askable(&(*fields)[i]))
            return -EINVAL;
    return (ssize_t)count;
}

/* The last chunk, and the trailers. */
static int write_end(hafti_http_stream_t *stream, const haft_http_question_t *question) {
    const haft_http_header_t *fields = NULL;
    ssize_t count = hafti_http_trailers_of(question, &fields);
    __attribute__((cleanup(give_back_head))) head_t end = {.block = haft_io_lend()};
    if (count < 0 || end.block == NULL)
        return count < 0 ? (int)count : -ENOMEM;
    put_text(&end, "0\r\n");
    for (ssize_t i = 0; i < count; i++)
        put_field(&end, fields[i].name, fields[i].value);
    put_text(&end, "\r\n");
    return end.is_full ? -EMSGSIZE : stream->operations->write_all(stream, end.block, end.size);
}

static int write_produced(const haft_http_question_t *question, haft_http_reply_t *reply) {
    hafti_http_stream_t *stream = &reply->stream;
    if (question->size != 0)
        return hafti_http_write_produced(stream, question, stream->operations->write_all);
    int code = hafti_http_write_produced(stream, question, write_chunk);
    return code == 0 ? write_end(stream, question) : code;
}

static int write_question(const asking_t *asking, haft_http_reply_t *reply) {
    const haft_http_question_t *question = asking->question;
    hafti_http_stream_t *stream = &reply->stream;
    __attribute__((cleanup(give_back_head))) head_t head = {.block = haft_io_lend()};
    if (head.block == NULL)
        return -ENOMEM;
    int code = put_head(&head, asking, reply);
    bool has_body = !asking->without_body && question->produce == NULL && question->size != 0;
    bool fits = has_body && question->size <= HAFT_IO_LENT_SIZE - head.size;
    if (fits)
        put(&head, question->body, question->size);
    if (code == 0)
        code = stream->operations->write_all(stream, head.block, head.size);
    if (code == 0 && has_body && !fits)
        code = stream->operations->write_all(stream, question->body, question->size);
    return code;
}

/* ---- The answer ---- */

/* The origin of the connection, for the next question. */
static const hafti_http_url_t *origin_of(const haft_http_reply_t *reply) {
    return reply->forwarder != NULL ? &reply->forwarder->url : &reply->url;
}

/* The connection is kept where nothing is left to read on it. */
static bool end_stream(haft_http_reply_t *reply) {
    hafti_http_stream_t *stream = &reply->stream;
    bool is_kept = reply->message.is_complete && reply->message.error == 0 && !reply->lacks_body &&
                   reply->message.body != HAFTI_HTTP_UNTIL_CLOSE && stream->at == stream->end &&
                   reply->message.parser.status_code >= 200 &&
                   hafti_http_message_is_kept(&reply->message);
    reply->version = NULL;
    if (!is_kept) {
        if (reply->message.is_complete)
            hafti_http_stream_say_end(stream);
        hafti_http_stream_close(stream);
        return false;
    }
    haft_io_give_back(stream->lent);
    stream->lent = NULL;
    hafti_http_pool_give(reply->client->pool, origin_of(reply), stream);
    return true;
}

static void close_reply(haft_http_reply_t *reply) {
    bool is_kept = reply->version != NULL && reply->version->end(reply);
    hafti_http_places_leave(reply->client, &reply->places);
    if (is_kept)
        hafti_http_kept_trim(reply->client, reply->client->kept_in_all);
}

void haft_http_reply_free(haft_http_reply_t *reply) {
    if (reply == NULL)
        return;
    close_reply(reply);
    hafti_http_message_end(&reply->message);
    free(reply);
}

void hafti_http_reply_begin(haft_http_reply_t *reply, hafti_http_stream_t *stream,
                            const char *method) {
    hafti_http_message_end(&reply->message);
    hafti_http_message_begin(&reply->message, stream, &reply->client->limits, HTTP_RESPONSE);
    reply->message.limit = UINT64_MAX;
    /* An answer to CONNECT has no body either, but a tunnel (RFC 9110, section 9.3.6). */
    reply->message.answers_head = strcmp(method, "HEAD") == 0 || strcmp(method, "CONNECT") == 0;
}

static void free_informed(hafti_http_informed_t *const *informed) {
    free(*informed);
}

void hafti_http_tell_informed(const hafti_http_way_t *way, hafti_http_informed_t *informed) {
    __attribute__((cleanup(free_informed), unused)) hafti_http_informed_t *told = informed;
    if (informed != NULL)
        way->informed(way->argument, informed->status,
                      (hafti_http_text_t){informed->lines, informed->size});
}

/* Answers of status 1xx come before the final one (RFC 9110, section 15.2). */
static int read_answer(haft_http_reply_t *reply, const char *method, const hafti_http_way_t *way) {
    hafti_http_message_t *message = &reply->message;
    for (int informed = 0; informed < HAFTI_HTTP_INFORMED; informed++) {
        hafti_http_reply_begin(reply, &reply->stream, method);
        int code = hafti_http_message_read_head(message);
        if (code != 0 || message->parser.status_code >= 200 || message->parser.status_code == 101)
            return code;
        if (way->informed != NULL)
            hafti_http_tell_informed(way, hafti_http_message_informed(message));
    }
    return -EBADMSG;
}

static int read_head(const asking_t *asking, haft_http_reply_t *reply) {
    return read_answer(reply, asking->method, asking->way);
}

static const hafti_http_version_of_asking_t http1 = {write_question, write_produced, read_head,
                                                     end_stream};

/* ---- Connections ---- */

/* Has the proxy lead to the origin what is written from now on. */
static int open_tunnel(haft_http_reply_t *reply, const hafti_http_proxy_t *proxy) {
    hafti_http_stream_t *stream = &reply->stream;
    int code = hafti_http_write_connect(stream, proxy, &reply->url);
    if (code == 0)
        code = read_answer(reply, "CONNECT", &(hafti_http_way_t){.lines = NULL});
    unsigned status = reply->message.parser.status_code;
    reply->message.is_complete = false; /* what the proxy has said is no answer */
    if (code != 0 || (status / 100 == 2 && stream->at == stream->end))
        return code;
    snprintf(reply->failure, sizeof reply->failure, "the proxy has answered CONNECT with status %u",
             status);
    return -ECONNREFUSED;
}

static int agree(haft_http_reply_t *reply, haft_tls_context_t *tls, hafti_http_need_t need) {
    hafti_http_stream_secure(&reply->stream, tls, reply->url.host);
    int code = need == HAFTI_HTTP_FOR_UPGRADE ? hafti_http_stream_offer_http1(&reply->stream) : 0;
    return code == 0 ? hafti_http_stream_agree(&reply->stream, HAFT_IO_FOREVER) : code;
}

/* Where the process has no descriptor left, those that wait are worth less than one in use. */
static int connect_tcp(haft_http_client_t *client, const hafti_http_url_t *there) {
    hafti_http_kept_trim(client, client->kept_in_all);
    int descriptor;
    do
        descriptor = haft_io_connect_tcp(there->host, there->port);
    while ((descriptor == -EMFILE || descriptor == -ENFILE) &&
           hafti_http_kept_close_oldest(client));
    return descriptor;
}

static int connect_anew(haft_http_reply_t *reply, const hafti_http_proxy_t *proxy,
                        hafti_http_need_t need) {
    const hafti_http_url_t *url = &reply->url, *there = proxy != NULL ? &proxy->url : url;
    haft_tls_context_t *tls = NULL;
    int code = url->is_secure ? hafti_http_secure_get(&reply->client->secure, &tls) : 0;
    if (code != 0)
        return code;
    int descriptor = connect_tcp(reply->client, there);
    if (descriptor < 0)
        return descriptor;
    hafti_http_stream_open(&reply->stream, descriptor);
    reply->version = &http1;
    code = proxy != NULL && reply->forwarder == NULL ? open_tunnel(reply, proxy) : 0;
    return code == 0 && url->is_secure ? agree(reply, tls, need) : code;
}

/* The others that are kept are as old as the one that its server has closed. */
static bool takes_kept(haft_http_reply_t *reply, hafti_http_need_t need) {
    hafti_http_pool_t *pool = reply->client->pool;
    if (need == HAFTI_HTTP_NEW)
        hafti_http_pool_drop(pool, origin_of(reply));
    reply->was_kept = need == HAFTI_HTTP_KEPT_OR_NEW &&
                      hafti_http_pool_take(pool, origin_of(reply), &reply->stream);
    return reply->was_kept;
}

int hafti_http_connect(haft_http_reply_t *reply, hafti_http_need_t need) {
    haft_http_client_t *client = reply->client;
    const hafti_http_proxy_t *proxy;
    int code = hafti_http_proxy_of(client->proxying, &reply->url, &proxy);
    if (code != 0) {
        snprintf(reply->failure, sizeof reply->failure,
                 "the proxy is not of the form http://user:password@host:port");
        return code;
    }
    bool is_tunneled = reply->url.is_secure || need == HAFTI_HTTP_FOR_UPGRADE;
    reply->forwarder = is_tunneled ? NULL : proxy;
    code = hafti_http_places_enter(client, origin_of(reply), &reply->places);
    if (code != 0)
        return code;
    if (!takes_kept(reply, need))
        return connect_anew(reply, proxy, need);
    reply->version = &http1;
    return 0;
}

static int open_stream(haft_http_reply_t *reply, hafti_http_need_t need) {
    reply->message.is_complete = false; /* that of an answer before */
    reply->was_kept = reply->was_refused = false;
    return reply->url.is_secure && need != HAFTI_HTTP_FOR_UPGRADE ? hafti_http2_open(reply, need)
                                                                  : hafti_http_connect(reply, need);
}

/* ---- Asking ---- */

static void add_field(asking_t *asking, const char *name, const char *value) {
    asking->added[asking->added_count++] = (haft_http_header_t){name, value};
}

/* Whether the question has it, for this origin. */
static bool asks_with(const asking_t *asking, const char *name) {
    return hafti_http_asks_with(asking->question, name) && !hafti_http_is_kept_back(asking, name);
}

static int add_cookies(asking_t *asking, const haft_http_reply_t *reply) {
    haft_http_cookie_jar_t *jar = reply->client->cookies;
    free(asking->cookies);
    asking->cookies = NULL;
    if (jar == NULL || asks_with(asking, "Cookie"))
        return 0;
    int code = hafti_http_cookies_for(jar, &reply->url, &asking->cookies);
    if (asking->cookies != NULL)
        add_field(asking, "Cookie", asking->cookies);
    return code;
}

static void add_trace(asking_t *asking, const haft_http_reply_t *reply) {
    const haft_http_trace_t *trace = haft_http_trace_get();
    if (trace == NULL || reply->client->is_untraced ||
        hafti_http_asks_with(asking->question, "traceparent"))
        return;
    hafti_http_put_trace_parent(trace, asking->trace_parent);
    add_field(asking, "traceparent", asking->trace_parent);
    if (*trace->state != '\0')
        add_field(asking, "tracestate", trace->state);
}

static int add_fields(asking_t *asking, const haft_http_reply_t *reply) {
    asking->added_count = 0;
    if (asking->decodes) {
        hafti_http_list_codings(asking->codings);
        add_field(asking, "Accept-Encoding", asking->codings);
    }
    const char *authorization = reply->forwarder != NULL ? reply->forwarder->authorization : NULL;
    if (authorization != NULL && !asks_with(asking, "Proxy-Authorization"))
        add_field(asking, "Proxy-Authorization", authorization);
    add_trace(asking, reply);
    return add_cookies(asking, reply);
}

static bool is_safe(const asking_t *asking) {
    static const char *const safe[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
        if (strcmp(safe[i], asking->method) == 0)
            return true;
    return false;
}

static bool is_closed(int code) {
    return code == -EPIPE || code == -ECONNRESET;
}

int hafti_http_reply_produce(haft_http_reply_t *reply, const haft_http_question_t *question) {
    int code = reply->version->produce(question, reply);
    reply->lacks_body = code != 0;
    return code;
}

static int write_question_and_body(const asking_t *asking, haft_http_reply_t *reply) {
    const haft_http_question_t *question = asking->question;
    const hafti_http_way_t *way = asking->way;
    reply->lacks_body = question->produce != NULL && !asking->without_body;
    int code = reply->version->write(asking, reply);
    if (code != 0 || !reply->lacks_body)
        return code;
    return way->produces != NULL ? way->produces(way->argument, reply)
                                 : hafti_http_reply_produce(reply, question);
}

static int write_and_read(const asking_t *asking, haft_http_reply_t *reply) {
    int written = write_question_and_body(asking, reply);
    if (written != 0 && !is_closed(written))
        return written;
    /* A server may refuse a body before it has all of it. */
    int code = reply->version->read_head(asking, reply);
    return code != 0 && written != 0 ? written : code;
}

static int ask_over(asking_t *asking, haft_http_reply_t *reply, hafti_http_need_t need) {
    haft_http_cookie_jar_t *jar = reply->client->cookies;
    int code = open_stream(reply, need);
    if (code == 0)
        code = add_fields(asking, reply);
    if (code == 0 && asking->way->begins != NULL)
        asking->way->begins(asking->way->argument);
    if (code == 0)
        code = write_and_read(asking, reply);
    if (code == 0 && jar != NULL)
        hafti_http_cookies_take(jar, reply);
    return code;
}

/* Whether nothing can have been done for the question, or nothing that must be done once. */
static bool is_repeatable(const asking_t *asking, const haft_http_reply_t *reply) {
    return (asking->question->produce == NULL || asking->without_body) &&
           reply->message.head == 0 && (reply->was_refused || (reply->was_kept && is_safe(asking)));
}

static int ask_once(asking_t *asking, haft_http_reply_t *reply) {
    int code = ask_over(asking, reply, HAFTI_HTTP_KEPT_OR_NEW);
    if (!is_closed(code) || !is_repeatable(asking, reply))
        return code;
    bool was_refused = reply->was_refused;
    close_reply(reply);
    return ask_over(asking, reply, was_refused ? HAFTI_HTTP_KEPT_OR_NEW : HAFTI_HTTP_NEW);
}

/* ---- Redirects ---- */

/* Where the answer sends the client, in `*location`, or NULL: nowhere. 0; or -EBADMSG: to several
   places, of which a proxy might have seen another. */
static int find_redirection(const asking_t *asking, haft_http_reply_t *reply,
                            const char **location) {
    unsigned status = reply->message.parser.status_code;
    bool repeats = status == 307 || status == 308;
    hafti_http_text_t first, other;
    size_t from = 0;
    *location = NULL;
    if (status != 301 && status != 302 && status != 303 && !repeats)
        return 0;
    if (repeats && asking->question->produce != NULL && !asking->without_body)
        return 0;
    if (!hafti_http_message_field(&reply->message, "Location", &from, &first))
        return 0;
    if (hafti_http_message_field(&reply->message, "Location", &from, &other)) {
        snprintf(reply->failure, sizeof reply->failure,
                 "the redirect has more than one field Location");
        return -EBADMSG;
    }
    *location = hafti_http_copy(&reply->message, first.bytes, first.size);
    return *location != NULL ? 0 : -ENOMEM;
}

/* RFC 9110, section 15.4: browsers ask by GET after 303, and where POST got 301 or 302. */
static void change_method(asking_t *asking, unsigned status) {
    bool is_changed = status == 303
                          ? strcmp(asking->method, "HEAD") != 0
                          : (status == 301 || status == 302) && strcmp(asking->method, "POST") == 0;
    if (is_changed) {
        asking->method = "GET";
        asking->without_body = asking->has_lost_body = true;
    }
}

static int go_to(asking_t *asking, haft_http_reply_t *reply, const char *location) {
    hafti_http_url_t before = reply->url;
    char *text = hafti_http_url_resolve(asking->text, location);
    if (text == NULL)
        return -ENOMEM;
    change_method(asking, reply->message.parser.status_code);
    hafti_http_message_skip(&reply->message, HAFTI_HTTP_SKIPPED);
    close_reply(reply);
    free(asking->text);
    asking->text = text;
    int code = hafti_http_url_parse(text, &reply->url);
    if (code == 0 && !hafti_http_same_origin(&before, &reply->url))
        asking->is_elsewhere = true;
    return code;
}

static int follow(asking_t *asking, haft_http_reply_t *reply) {
    int left = reply->client->redirects;
    for (;;) {
        const char *location = NULL;
        int code = ask_once(asking, reply);
        if (code == 0 && left >= 0)
            code = find_redirection(asking, reply, &location);
        if (location == NULL)
            return code;
        if (left-- == 0)
            return -ELOOP;
        code = go_to(asking, reply, location);
        if (code != 0)
            return code;
    }
}

static void tell_failure(const haft_http_reply_t *reply, const haft_http_question_t *question,
                         int code) {
    if (question->failure != NULL)
        snprintf(question->failure, question->failure_size, "%s",
                 *reply->failure != '\0' ? reply->failure
                                         : hafti_http_stream_failure(&reply->stream, code));
}

static void free_text(const asking_t *asking) {
    free(asking->text);
    free(asking->cookies);
}

static const char *method_of(const haft_http_question_t *question) {
    bool has_body = question->body != NULL || question->produce != NULL;
    return question->method != NULL ? question->method : has_body ? "POST" : "GET";
}

static bool is_question(const haft_http_question_t *question) {
    for (size_t i = 0; i < question->header_count; i++)
        if (question->headers == NULL || !hafti_http_is_askable(&question->headers[i]))
            return false;
    return question->url != NULL &&
           (question->method == NULL || hafti_http_is_given_token(question->method));
}

int hafti_http_ask_with(haft_http_client_t *client, const haft_http_question_t *question,
                        const hafti_http_way_t *way, haft_http_reply_t **result) {
    *result = NULL;
    if (!is_question(question))
        return -EINVAL;
    __attribute__((cleanup(free_text)))
    asking_t asking = {.question = question,
                       .method = method_of(question),
                       .text = strdup(question->url),
                       .way = way,
                       .decodes = way->lines == NULL && asks_for_codings(client, question),
                       .without_body = question->body == NULL && question->produce == NULL};
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = calloc(1, sizeof *reply);
    if (reply == NULL || asking.text == NULL)
        return -ENOMEM;
    reply->client = client;
    int code = hafti_http_url_parse(asking.text, &reply->url);
    if (code == 0)
        code = way->lines == NULL ? follow(&asking, reply)
                                  : ask_over(&asking, reply, HAFTI_HTTP_FOR_UPGRADE);
    if (code == 0 && asking.decodes && reply->message.body != HAFTI_HTTP_NO_BODY)
        code = hafti_http_decoder_begin(&reply->message, client->decompressed);
    if (code != 0) {
        tell_failure(reply, question, code);
        return code;
    }
    *result = reply;
    reply = NULL;
    return 0;
}

int haft_http_client_ask(haft_http_client_t *client, const haft_http_question_t *question,
                         haft_http_reply_t **reply) {
    static const hafti_http_way_t own = {0};
    return hafti_http_ask_with(client, question, &own, reply);
}

void hafti_http_reply_stream(haft_http_reply_t *reply, hafti_http_stream_t **stream,
                             const haft_http_limits_t **limits) {
    *stream = &reply->stream;
    *limits = &reply->client->limits;
}

int haft_http_reply_status(const haft_http_reply_t *reply) {
    return reply->message.parser.status_code;
}

/* Whether the field describes the body as it came, but not as it is read. */
static bool is_hidden(const haft_http_reply_t *reply, const char *name, size_t size) {
    return reply->message.decoder != NULL && (hafti_http_same(name, size, "Content-Encoding") ||
                                              hafti_http_same(name, size, "Content-Length"));
}

const char *haft_http_reply_header(haft_http_reply_t *reply, const char *name) {
    return name == NULL || is_hidden(reply, name, strlen(name))
               ? NULL
               : hafti_http_message_header(&reply->message, name);
}

bool haft_http_reply_header_at(haft_http_reply_t *reply, size_t number, const char **name,
                               const char **value) {
    hafti_http_message_t *message = &reply->message;
    for (size_t i = 0; i < message->field_count; i++) {
        const hafti_http_field_t *field = &message->fields[i];
        bool is_shown = !is_hidden(reply, message->block + field->name, field->name_size);
        if (is_shown && number-- == 0)
            return hafti_http_message_header_at(message, i, name, value);
    }
    return false;
}

const char *haft_http_reply_trailer(const haft_http_reply_t *reply, const char *name) {
    return hafti_http_message_trailer(&reply->message, name);
}

bool haft_http_reply_trailer_at(haft_http_reply_t *reply, size_t number, const char **name,
                                const char **value) {
    return hafti_http_message_trailer_at(&reply->message, number, name, value);
}

ssize_t haft_http_reply_read(haft_http_reply_t *reply, void *buffer, size_t size) {
    return hafti_http_message_read(&reply->message, buffer, size);
}

ssize_t haft_http_reply_body(haft_http_reply_t *reply, char **body) {
    reply->message.limit = reply->message.got + reply->client->limits.body;
    if (reply->message.decoder != NULL)
        hafti_http_decoder_limit(&reply->message, reply->client->limits.body);
    return hafti_http_message_read_all(&reply->message, body);
}
