/* SPDX-License-Identifier: MIT */
/*
 * A question as it is written over HTTP/1.1, and what questions of both versions share: which
 * fields are asked with, the pieces of a body that a function produces, the trailers, and the
 * message that becomes the answer.
 */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>

typedef hafti_http_asking_t asking_t;

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

int hafti_http_refuse_field(const haft_http_header_t *field) {
    if (!hafti_http_is_given_token(field->name))
        return haft_io_refuse(-EINVAL, "haft_http_client_ask",
                              "'%s' is no name of a field: write letters, digits and '-'",
                              field->name != NULL ? field->name : "(NULL)");
    if (is_ours(field->name))
        return haft_io_refuse(
            -EINVAL, "haft_http_client_ask",
            "the client sets %s itself: leave it out, and write the URL, .body and "
            ".size",
            field->name);
    return -EINVAL; /* the value may come from outside the program */
}

/* RFC 9110, section 15.4: fields that describe the body. */
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

/* Puts the target; a proxy gets the whole URL (RFC 9112, section 3.2.2). */
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
            return haft_io_refuse(
                -EINVAL, "haft_http_client_ask",
                "the function .produce has returned %zd for a buffer of %zu bytes: "
                "return how many it has written, or 0 at the end",
                size, sizeof piece);
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
            return hafti_http_refuse_field(&(*fields)[i]);
    return (ssize_t)count;
}

/* Writes the last chunk, and the trailers. */
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

int hafti_http_write_produced_body(const haft_http_question_t *question, haft_http_reply_t *reply) {
    hafti_http_stream_t *stream = &reply->stream;
    if (question->size != 0)
        return hafti_http_write_produced(stream, question, stream->operations->write_all);
    int code = hafti_http_write_produced(stream, question, write_chunk);
    return code == 0 ? write_end(stream, question) : code;
}

int hafti_http_write_question(const asking_t *asking, haft_http_reply_t *reply) {
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

/* ---- The answer to it ---- */

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
