/* SPDX-License-Identifier: MIT */
/* The client: a question is written, the head of its answer read; redirects are questions again. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>

typedef hafti_http_asking_t asking_t;

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

/* ---- The answer ---- */

/* The origin of the connection, for the next question. */
static const hafti_http_url_t *origin_of(const haft_http_reply_t *reply) {
    return reply->forwarder != NULL ? &reply->forwarder->url : &reply->url;
}

/* Ends the reply's use of its stream. The connection is kept where nothing is left to read on
   it. */
static bool end_stream(haft_http_reply_t *reply) {
    hafti_http_stream_t *stream = &reply->stream;
    bool is_kept = reply->message.is_complete && reply->message.error == 0 && !reply->lacks_body &&
                   reply->message.body != HAFTI_HTTP_UNTIL_CLOSE && stream->at == stream->end &&
                   reply->message.parser.status_code >= 200 &&
                   hafti_http_message_is_kept(&reply->message);
    reply->version = NULL;
    if (!is_kept) {
        if (reply->message.is_complete)
            hafti_http_stream_send_end(stream);
        hafti_http_stream_close(stream);
        return false;
    }
    haft_io_give_back(stream->lent);
    stream->lent = NULL;
    if (haft_io_kept_use() == HAFT_IO_TAPE_ANSWERS)
        return false; /* there is no connection */
    hafti_http_untape_stream(stream);
    HAFTI_HTTP_UNKEPT(haft_io_kept_use() != HAFT_IO_TAPE_NONE);
    hafti_http_pool_give(reply->client->pool, origin_of(reply), stream);
    return true;
}

static void close_reply(haft_http_reply_t *reply) {
    bool is_kept = reply->version != NULL && reply->version->end(reply);
    HAFTI_HTTP_UNKEPT(haft_io_kept_use() != HAFT_IO_TAPE_NONE);
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

static const hafti_http_version_of_asking_t http1 = {
    hafti_http_write_question, hafti_http_write_produced_body, read_head, end_stream};

/* ---- Connections ---- */

/* Asks the proxy for a tunnel to the origin for all further bytes. */
static int open_tunnel(haft_http_reply_t *reply, const hafti_http_proxy_t *proxy) {
    hafti_http_stream_t *stream = &reply->stream;
    int code = hafti_http_write_connect(stream, proxy, &reply->url);
    if (code == 0)
        code = read_answer(reply, "CONNECT", &(hafti_http_way_t){.lines = NULL});
    unsigned status = reply->message.parser.status_code;
    reply->message.is_complete = false; /* the proxy's head is no answer */
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

/* Connects. Where the process has no descriptor left, kept connections are closed for it. */
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

/* A connection of its own for the reply, as one of HTTP/1: it waits for a place. */
static int connect_for(haft_http_reply_t *reply, hafti_http_need_t need) {
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

static int open_any(haft_http_reply_t *reply, hafti_http_need_t need) {
    return reply->url.is_secure && need != HAFTI_HTTP_FOR_UPGRADE
               ? hafti_http2_open(reply, need, connect_for)
               : connect_for(reply, need);
}

static int open_stream(haft_http_reply_t *reply, hafti_http_need_t need) {
    reply->message.is_complete = false; /* that of an answer before */
    reply->was_kept = reply->was_refused = false;
    enum haft_io_tape_use use = haft_io_kept_use();
    if (use == HAFT_IO_TAPE_NONE)
        return open_any(reply, need);
    int code = hafti_http_tape_connection(reply, need, open_any);
    if (code == 0 && use == HAFT_IO_TAPE_ANSWERS)
        reply->version = &http1;
    return code;
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

/* Whether the library asks for compressed answers, which it then decodes. It could not decode a
   range of one. */
static bool asks_for_codings(const haft_http_client_t *client,
                             const haft_http_question_t *question) {
    return !client->is_plain && *hafti_http_codings != NULL &&
           !hafti_http_asks_with(question, "Accept-Encoding") &&
           !hafti_http_asks_with(question, "Range");
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

/* Whether the question may be asked again: the server cannot have acted on it, or may act on it
   twice. */
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

/* Where the answer sends the client, in `*location`, or NULL: nowhere. 0; or -EBADMSG: there are
   several places, and a proxy might have chosen another one. */
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

/* The method and the fields' values may come from outside the program, and are no mistake of it. */
static int check_question(const haft_http_question_t *question) {
    if (question->url == NULL)
        return haft_io_refuse(-EINVAL, "haft_http_client_ask",
                              "the question has no URL: write http://host/path, or https://");
    if (question->headers == NULL && question->header_count != 0)
        return haft_io_refuse(-EINVAL, "haft_http_client_ask",
                              ".header_count is %zu, and .headers is NULL: write both, or none",
                              question->header_count);
    for (size_t i = 0; i < question->header_count; i++)
        if (!hafti_http_is_askable(&question->headers[i]))
            return hafti_http_refuse_field(&question->headers[i]);
    return question->method == NULL || hafti_http_is_given_token(question->method) ? 0 : -EINVAL;
}

int hafti_http_ask_with(haft_http_client_t *client, const haft_http_question_t *question,
                        const hafti_http_way_t *way, haft_http_reply_t **result) {
    *result = NULL;
    int wrong = check_question(question);
    if (wrong != 0)
        return wrong;
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
    if (code != 0)
        snprintf(reply->failure, sizeof reply->failure,
                 "write it as http://host:port/path, or with https");
    else
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
