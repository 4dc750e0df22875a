/* SPDX-License-Identifier: MIT */
/*
 * A reverse proxy's handler: chooses an upstream, passes its client's request on, and the answer
 * back, both piece by piece.
 *
 * | what was done                       | what happens when the upstream then fails             |
 * |-------------------------------------|-------------------------------------------------------|
 * | nothing of the request was sent     | another upstream is tried                             |
 * | its head was, but nothing of a body | likewise, if the method is idempotent and the         |
 * |                                     | connection was lost                                   |
 * | some of a body was                  | 502, or 504                                           |
 * | the answer has begun                | the client's connection, or stream, is broken off     |
 *
 * Where not all of the request's body has come, another task sends it, so that the answer may come
 * before that has ended. Both tasks are in a scope, and on one thread: they change what belongs to
 * the request between two waits. The task that sends then also watches the time: as long as it is
 * there, the other has no limit of its own.
 */
#include "passing.h"

#include <haft/io_binding.h>

#include <stdio.h>

enum { PIECE = 16384, FAILURE = 160 };

typedef struct {
    haft_http_request_t *request;
    haft_http_proxy_t *proxy;
    haft_io_deadline_t *limit;   /* of waits for the upstream */
    haft_io_deadline_t *sending; /* the same, of the task that sends the body */
    hafti_http_passed_t fields;
    const char *lines;            /* of an upgrade; NULL: none */
    hafti_http_upstream_t *asked; /* counted among its requests; NULL: none */
    haft_http_reply_t *reply;     /* NULL: none */
    bool has_asked;               /* some of the request may have gone */
    bool has_read;                /* some of its body was read */
    bool has_answer;              /* the upstream's, whose head has come */
    int read_error;               /* of the request's body; 0: none */

    /* Where two tasks pass the request on. */
    haft_io_scope_t *scope; /* NULL: one does */
    haft_http_question_t question;
    hafti_http_way_t way;
    haft_http_reply_t *asking; /* whose question's body is sent */
    haft_io_event_t word;      /* the upstream has sent 100 (Continue) */
    int64_t moved;             /* when something of the answer has last */
    bool waits_for_client;     /* to take it */
    bool is_late;              /* the upstream */
    int code;                  /* of the task that waits for the answer */
    int send_error;            /* of the other */
    char failure[FAILURE];
} passing_t;

/* ---- Times ---- */

static int64_t from_now(int64_t time) {
    return hafti_http_deadline(haft_io_now(), time);
}

static void limit_connection(const passing_t *passing) {
    haft_io_deadline_set(passing->limit, from_now(passing->proxy->options.connect_time));
}

static void limit_answer(passing_t *passing) {
    passing->waits_for_client = false;
    passing->moved = haft_io_now();
    haft_io_deadline_set(passing->limit, passing->scope != NULL
                                             ? HAFT_IO_FOREVER
                                             : from_now(passing->proxy->options.answer_time));
}

/* The client has the limits of its server. */
static void limit_nothing(passing_t *passing) {
    passing->waits_for_client = true;
    haft_io_deadline_set(passing->limit, HAFT_IO_FOREVER);
}

/* ---- The question ---- */

static void begin_to_ask(void *argument) {
    passing_t *passing = argument;
    passing->has_asked = true;
    limit_answer(passing);
}

static ssize_t read_body(void *argument, void *buffer, size_t size) {
    passing_t *passing = argument;
    passing->has_read = true;
    haft_io_deadline_set(passing->sending, HAFT_IO_FOREVER);
    ssize_t got = haft_http_request_read(passing->request, buffer, size);
    haft_io_deadline_set(passing->sending, from_now(passing->proxy->options.answer_time));
    if (got < 0)
        passing->read_error = (int)got;
    return got;
}

static size_t give_trailers(void *argument, const haft_http_header_t **trailers) {
    const passing_t *passing = argument;
    size_t count;
    *trailers = hafti_http_pass_trailers(passing->request, &count);
    return count;
}

/* Where the upstream is to ask for the body first, waits for that for a while, as a client does
   (RFC 9110, section 10.1.1). False: it has answered instead. */
static bool may_send(passing_t *passing) {
    if (!passing->way.expects)
        return true;
    haft_io_event_wait_until(&passing->word, haft_io_now() + HAFT_IO_SECOND);
    return !passing->has_answer || passing->word.set;
}

/* Cancels both tasks when the answer makes no progress; ends with them. */
static void watch_answer(passing_t *passing) {
    int64_t time = passing->proxy->options.answer_time;
    for (passing->moved = haft_io_now();;) {
        int64_t since = passing->waits_for_client ? haft_io_now() : passing->moved;
        int64_t until = hafti_http_deadline(since, time);
        if (haft_io_now() >= until)
            break;
        haft_io_sleep_until(until);
    }
    passing->is_late = true;
    haft_io_scope_cancel(passing->scope);
}

/* The task that sends the body, beside the one that waits for the answer. An upstream that closes
   may have answered. */
static void *send_body(void *argument) {
    passing_t *passing = argument;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    passing->sending = &limit;
    int code =
        may_send(passing) ? hafti_http_reply_produce(passing->asking, &passing->question) : 0;
    passing->is_late |= code == -ETIMEDOUT && haft_io_deadline_passed(&limit);
    haft_io_deadline_set(&limit, HAFT_IO_FOREVER);
    if (code != 0 && code != -EPIPE && code != -ECONNRESET) {
        passing->send_error = code;
        haft_io_scope_cancel(passing->scope);
    } else if (passing->read_error != 0) {
        haft_io_scope_cancel(passing->scope);
    } else {
        watch_answer(passing);
    }
    return NULL;
}

static int begin_to_send(void *argument, haft_http_reply_t *reply) {
    passing_t *passing = argument;
    haft_io_task_options_t options = {.scope = passing->scope, .name = "proxied body"};
    passing->asking = reply;
    limit_answer(passing);
    return haft_io_spawn_here(&options, send_body, passing);
}

/* Passes on what comes before the answer (RFC 9110, section 15.2); an upstream's 100 only where the
   client has asked for it. */
static void pass_informed(void *argument, unsigned status, hafti_http_text_t lines) {
    passing_t *passing = argument;
    haft_http_request_t *request = passing->request;
    limit_nothing(passing);
    if (status != 100)
        hafti_http_return_informed(request, status, lines);
    else if (passing->way.expects)
        hafti_http_send_continue(request);
    if (status == 100)
        haft_io_event_set(&passing->word);
    limit_answer(passing);
}

/* The upstream's path, and that of the request without what is stripped; NULL: no memory. */
static char *url_of(const passing_t *passing, const hafti_http_upstream_t *upstream) {
    const char *target = haft_http_request_target(passing->request);
    const char *strip = passing->proxy->options.strip;
    size_t stripped = strip != NULL ? strlen(strip) : 0;
    if (stripped != 0 && strncmp(target, strip, stripped) == 0 &&
        strchr("/?", target[stripped]) != NULL) /* or the end */
        target += stripped;
    size_t size = strlen(upstream->url);
    char *url = haft_http_request_allocate(passing->request, size + strlen(target) + 1);
    if (url != NULL)
        strcpy(stpcpy(url, upstream->url), target);
    return url;
}

/* Finds the protocols that the client would change to, as lines of a head. HTTP/2 is none of them:
   requests in it would not go through the proxy any more. 0 or -ENOMEM. */
static int find_upgrade(passing_t *passing) {
    haft_http_request_t *request = passing->request;
    const char *protocols = haft_http_request_header(request, "Upgrade");
    hafti_http_text_t list = {protocols, protocols != NULL ? strlen(protocols) : 0}, first;
    if (!hafti_http_next_part(&list, ',', &first) || hafti_http_lists(list, "h2c") ||
        hafti_http_same(first.bytes, first.size, "h2c") ||
        !hafti_http_asks_to_upgrade(request,
                                    hafti_http_copy(&request->message, first.bytes, first.size)))
        return 0;
    static const char format[] = "Connection: Upgrade\r\nUpgrade: %s\r\n";
    size_t size = sizeof format + strlen(protocols);
    char *lines = haft_http_request_allocate(request, size);
    if (lines == NULL)
        return -ENOMEM;
    snprintf(lines, size, format, protocols);
    passing->lines = lines;
    return 0;
}

static void leave(passing_t *passing) {
    if (passing->asked != NULL)
        atomic_fetch_sub(&passing->asked->now, 1);
    passing->asked = NULL;
}

static int ask(passing_t *passing, hafti_http_upstream_t *upstream) {
    haft_http_request_t *request = passing->request;
    const hafti_http_message_t *message = &request->message;
    passing->question = (haft_http_question_t){.method = request->method,
                                               .url = url_of(passing, upstream),
                                               .headers = passing->fields.fields,
                                               .header_count = passing->fields.count,
                                               .argument = passing,
                                               .failure = passing->failure,
                                               .failure_size = sizeof passing->failure};
    passing->way = (hafti_http_way_t){.lines = passing->lines,
                                      .begins = begin_to_ask,
                                      .informed = pass_informed,
                                      .argument = passing};
    if (passing->question.url == NULL)
        return -ENOMEM;
    if (haft_http_request_has_body(request)) {
        passing->question.produce = read_body;
        passing->question.trailers = give_trailers;
        passing->question.size = message->body == HAFTI_HTTP_SIZED ? message->left : 0;
    }
    if (passing->scope != NULL) {
        passing->way.produces = begin_to_send;
        passing->way.expects = message->waits_for_word;
    }
    if (passing->proxy->options.keeps_host)
        passing->way.host = haft_http_request_header(request, "Host");
    leave(passing);
    passing->asked = upstream;
    atomic_fetch_add(&upstream->requests, 1);
    atomic_fetch_add(&upstream->now, 1);
    passing->failure[0] = '\0';
    limit_connection(passing);
    return hafti_http_ask_with(passing->proxy->client, &passing->question, &passing->way,
                               &passing->reply);
}

/* ---- Failures ---- */

static const char *why(const passing_t *passing, int code) {
    return *passing->failure != '\0' ? passing->failure : haft_io_error_text(code);
}

/* Whether the error is neither the upstream's, nor a reason for another answer than the handler's
   error. */
static bool is_own(const passing_t *passing, int code) {
    bool is_in_time =
        code == -ETIMEDOUT && !passing->is_late && !haft_io_deadline_passed(passing->limit);
    return code == -ENOMEM || code == -ECANCELED || is_in_time || passing->read_error != 0;
}

/* Whether the error means that the request cannot be passed on. */
static bool is_of_request(int code) {
    return code == -EINVAL || code == -EMSGSIZE;
}

static bool is_idempotent(const haft_http_request_t *request) {
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", NULL};
    for (size_t i = 0; methods[i] != NULL; i++)
        if (strcmp(methods[i], request->method) == 0)
            return true;
    return false;
}

static bool may_repeat(const passing_t *passing, int code) {
    bool is_lost = code == -EPIPE || code == -ECONNRESET;
    return !passing->has_read &&
           (!passing->has_asked || (is_lost && is_idempotent(passing->request)));
}

static int refuse(const passing_t *passing, int code) {
    haft_http_request_t *request = passing->request;
    if (code == -EMSGSIZE)
        return haft_http_request_refuse(request, 431, NULL);
    if (code == -EINVAL)
        return haft_http_request_refuse(request, 400, NULL);
    hafti_http_log(
        request->server, "%s %s: %s: %s", request->method, haft_http_request_target(request),
        passing->asked != NULL ? passing->asked->url : "no upstream is in use", why(passing, code));
    return code == -ETIMEDOUT
               ? haft_http_request_refuse(request, 504, "the service has not answered in time")
               : haft_http_request_refuse(request, 502, "the service has not answered");
}

/* ---- The answer ---- */

/* The size of the body; HAFT_HTTP_UNKNOWN_SIZE: it ends by itself. For an answer to HEAD, and for
   304, the size that it would have. */
static uint64_t size_of(haft_http_reply_t *reply) {
    const hafti_http_message_t *message = &reply->message;
    bool is_said = haft_http_reply_header(reply, "Content-Length") != NULL;
    bool has_none = message->body == HAFTI_HTTP_NO_BODY && !message->answers_head;
    return is_said ? message->left : has_none ? 0 : HAFT_HTTP_UNKNOWN_SIZE;
}

/* A head goes on before there is anything of its body. */
static int return_head(haft_http_request_t *request, const haft_http_reply_t *reply) {
    const hafti_http_message_t *message = &reply->message;
    bool has_more = message->is_complete || message->stream->at != message->stream->end;
    return has_more ? 0 : haft_http_answer_flush(request);
}

/* A piece goes on at once, unless the rest has come as well. */
static int return_body(passing_t *passing, haft_http_reply_t *reply) {
    haft_http_request_t *request = passing->request;
    char *piece = haft_io_lend();
    HAFT_IO_SCOPED_LENT const void *const lent = piece;
    (void)lent;
    int code = piece != NULL ? 0 : -ENOMEM;
    while (code == 0) {
        limit_answer(passing);
        ssize_t size = haft_http_reply_read(reply, piece, PIECE);
        if (size < 0 && !is_own(passing, (int)size))
            hafti_http_upstream_failed(request->server, passing->proxy, passing->asked,
                                       haft_io_error_text((int)size));
        if (size <= 0)
            return (int)size;
        limit_nothing(passing);
        code = haft_http_answer_write(request, piece, (size_t)size);
        if (code == 0 && !hafti_http_message_has_come(&reply->message))
            code = haft_http_answer_flush(request);
    }
    return code;
}

static int return_answer(passing_t *passing, haft_http_reply_t *reply) {
    haft_http_request_t *request = passing->request;
    int status = haft_http_reply_status(reply);
    if (status == 101 || status > 599) {
        snprintf(passing->failure, sizeof passing->failure, "it has answered with status %d",
                 status);
        return refuse(passing, -EBADMSG);
    }
    uint64_t size = size_of(reply);
    int code = hafti_http_return_fields(request, passing->proxy, reply);
    haft_http_answer_do_not_compress(request);
    limit_nothing(passing);
    code = code == 0 ? haft_http_answer_begin(request, status, NULL, size) : code;
    code = code == 0 ? return_head(request, reply) : code;
    code = code == 0 ? return_body(passing, reply) : code;
    if (code == 0 && size == HAFT_HTTP_UNKNOWN_SIZE)
        code = hafti_http_return_trailers(request, reply);
    return code;
}

/* ---- After an upgrade ---- */

/* Bytes in one direction. */
typedef struct {
    _Atomic int64_t moved; /* when some have last */
    haft_io_event_t ended;
} way_t;

typedef struct {
    const passing_t *passing;
    haft_http_request_t *request;
    hafti_http_stream_t *stream; /* the upstream's */
    haft_io_scope_t *scope;
    way_t there, back;
} carrying_t;

/* Waits after one direction has ended: the other may go on as long as it moves. */
static void outlast(const carrying_t *carrying, way_t *other) {
    int64_t ended = haft_io_now(), time = carrying->passing->proxy->options.answer_time;
    for (int code = -ETIMEDOUT; code == -ETIMEDOUT;) {
        int64_t moved = atomic_load(&other->moved);
        int64_t until = hafti_http_deadline(moved > ended ? moved : ended, time);
        if (haft_io_now() >= until) {
            haft_io_scope_cancel(carrying->scope);
            return;
        }
        code = haft_io_event_wait_until(&other->ended, until);
    }
}

/* `code` is 0 at the end of the bytes. */
static void end_way(carrying_t *carrying, way_t *way, int code) {
    haft_io_event_set(&way->ended);
    if (code != 0)
        haft_io_scope_cancel(carrying->scope);
}

static void *carry_there(void *argument) {
    carrying_t *carrying = argument;
    hafti_http_stream_t *stream = carrying->stream;
    char bytes[4096];
    ssize_t size;
    int code = 0;
    while (code == 0 &&
           (size = haft_http_stream_read(carrying->request, bytes, sizeof bytes)) != 0) {
        code = size > 0 ? stream->operations->write_all(stream, bytes, (size_t)size) : (int)size;
        atomic_store(&carrying->there.moved, haft_io_now());
    }
    if (code == 0)
        stream->operations->shutdown(stream, SHUT_WR);
    end_way(carrying, &carrying->there, code);
    if (code == 0)
        outlast(carrying, &carrying->back);
    return NULL;
}

static int carry_back(carrying_t *carrying) {
    hafti_http_stream_t *stream = carrying->stream;
    for (;;) {
        ssize_t size = stream->at != stream->end ? stream->end - stream->at
                                                 : hafti_http_stream_fill(stream, HAFT_IO_FOREVER);
        if (size <= 0)
            return (int)size;
        int code = haft_http_stream_write(carrying->request, stream->at, (size_t)size);
        if (code != 0)
            return code;
        stream->at = stream->end;
        atomic_store(&carrying->back.moved, haft_io_now());
    }
}

static void *carry_both(void *argument) {
    carrying_t *carrying = argument;
    carrying->scope = haft_io_this_scope();
    haft_io_task_options_t options = {.scope = carrying->scope, .name = "upgraded stream"};
    int code = haft_io_spawn_with(&options, carry_there, carrying);
    code = code == 0 ? carry_back(carrying) : code;
    if (code == 0)
        haft_http_stream_shutdown(carrying->request);
    end_way(carrying, &carrying->back, code);
    if (code == 0)
        outlast(carrying, &carrying->there);
    return NULL;
}

/* From now on an error only ends the stream for both sides; it is no failure of the handler. */
static int change_over(passing_t *passing, haft_http_reply_t *reply) {
    haft_http_request_t *request = passing->request;
    const char *protocol = haft_http_reply_header(reply, "Upgrade");
    const haft_http_limits_t *limits;
    carrying_t carrying = {.passing = passing, .request = request};
    int code = hafti_http_return_fields(request, passing->proxy, reply);
    code = code == 0 ? haft_http_request_upgrade(request, protocol) : code;
    if (code == -ENOTSUP) {
        snprintf(passing->failure, sizeof passing->failure,
                 "it has changed to a protocol that nobody has asked for");
        hafti_http_answer_discard(request);
        return refuse(passing, code);
    }
    if (code != 0)
        return code;
    limit_nothing(passing);
    hafti_http_reply_stream(reply, &carrying.stream, &limits);
    haft_io_scope_with(&(haft_io_scope_options_t){.name = "upgraded stream"}, carry_both, &carrying,
                       NULL);
    return 0;
}

/* ---- The handler ---- */

static int talk(passing_t *passing, hafti_http_upstream_t *upstream) {
    int code = ask(passing, upstream);
    if (code != 0)
        return code;
    haft_http_reply_t *reply = passing->reply;
    passing->has_answer = true;
    hafti_http_upstream_succeeded(passing->request->server, upstream);
    bool changes = passing->lines != NULL && haft_http_reply_status(reply) == 101;
    return changes ? change_over(passing, reply) : return_answer(passing, reply);
}

typedef struct {
    passing_t *passing;
    hafti_http_upstream_t *upstream;
} talking_t;

/* Ends the task that sends the body, too. */
static void *talk_in_scope(void *argument) {
    const talking_t *talking = argument;
    passing_t *passing = talking->passing;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    passing->limit = &limit;
    passing->scope = haft_io_this_scope();
    passing->code = talk(passing, talking->upstream);
    passing->is_late = passing->code == -ETIMEDOUT && haft_io_deadline_passed(&limit);
    haft_io_scope_cancel(passing->scope);
    return NULL;
}

/* Whether the answer may come before the body has ended: not all of this has come. */
static bool goes_both_ways(const passing_t *passing) {
    const haft_http_request_t *request = passing->request;
    return passing->lines == NULL && haft_http_request_has_body(request) &&
           !hafti_http_message_has_come(&request->message) && haft_io_stays();
}

static int talk_both_ways(passing_t *passing, hafti_http_upstream_t *upstream) {
    talking_t talking = {passing, upstream};
    haft_io_deadline_t *limit = passing->limit;
    passing->code = -ECANCELED;
    passing->send_error = 0;
    passing->is_late = false;
    haft_io_event_clear(&passing->word);
    int code = haft_io_scope_with(&(haft_io_scope_options_t){.name = "proxied request"},
                                  talk_in_scope, &talking, NULL);
    passing->scope = NULL;
    passing->sending = passing->limit = limit;
    if (code != 0 && code != -ECANCELED)
        return code;
    return passing->is_late           ? -ETIMEDOUT
           : passing->send_error != 0 ? passing->send_error
                                      : passing->code;
}

static void free_reply(passing_t *passing) {
    haft_http_reply_free(passing->reply);
    passing->reply = NULL;
}

static int pass(passing_t *passing) {
    haft_http_request_t *request = passing->request;
    haft_http_proxy_t *proxy = passing->proxy;
    hafti_http_upstream_t *tried[HAFTI_HTTP_ATTEMPTS];
    int code = -ENOENT;
    for (unsigned i = 0; i < proxy->options.attempts; i++) {
        tried[i] = hafti_http_upstream_choose(proxy, tried, i);
        if (tried[i] == NULL)
            break;
        code =
            goes_both_ways(passing) ? talk_both_ways(passing, tried[i]) : talk(passing, tried[i]);
        free_reply(passing);
        if (passing->has_answer && request->answer.progress == HAFTI_HTTP_NOT_BEGUN &&
            passing->is_late)
            hafti_http_answer_discard(request); /* the fields of the answer that was to come */
        else if (passing->has_answer)
            return code;
        if (is_own(passing, code))
            return passing->read_error != 0 ? passing->read_error : code;
        if (is_of_request(code))
            return refuse(passing, code);
        hafti_http_upstream_failed(request->server, proxy, tried[i], why(passing, code));
        if (passing->has_answer || !may_repeat(passing, code))
            break;
    }
    if (code != -ENOENT)
        return refuse(passing, code);
    return haft_http_request_refuse(request, 503, "no service is in use");
}

static void end(passing_t *passing) {
    leave(passing);
    free_reply(passing);
}

int haft_http_proxy_pass(haft_http_request_t *request, void *argument) {
    haft_http_proxy_t *proxy = argument;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    __attribute__((cleanup(end)))
    passing_t passing = {.request = request, .proxy = proxy, .limit = &limit, .sending = &limit};
    if (hafti_http_forwards_left(request) == 0)
        return hafti_http_answer_last(request);
    haft_http_request_limit_body(request, proxy->options.body);
    hafti_http_upstreams_watch(request->server, proxy);
    int code = hafti_http_pass_fields(request, proxy, &passing.fields);
    if (code == -ELOOP)
        return haft_http_request_refuse(request, 508, "the request goes round in a circle");
    code = code == 0 ? find_upgrade(&passing) : code;
    return code == 0 ? pass(&passing) : code;
}
