/* SPDX-License-Identifier: MIT */
/*
 * Haft HTTP: the client. Part of haft/http.h, which includes it.
 *
 *     haft_http_client_t *client = haft_http_client_new();
 *     HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
 *     char *body;
 *     haft_http_question_t question = {.url = "http://localhost:8080/hello/you"};
 *     if (haft_http_client_ask(client, &question, &reply) == 0 && haft_http_reply_body(reply,
 *     &body) >= 0)
 *         puts(body);
 */
#ifndef HAFT_HTTP_CLIENT_H
#define HAFT_HTTP_CLIENT_H

#include "http.h"
#include "http_cookies.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Keeps connections to the servers that it has asked, for its next questions. For the tasks of
   any run; may be used without one, too, where it blocks. Over https, where the server speaks
   HTTP/2, the tasks that ask one origin at once share a connection; it is kept until it ends. */
typedef struct haft_http_client haft_http_client_t;
/* The answer of a server. For one task at a time. */
typedef struct haft_http_reply haft_http_reply_t;

/* 0 means the default, which is in brackets. */
typedef struct haft_http_client_options {
    size_t kept;        /* connections of an origin that wait for a question (8) */
    size_t kept_in_all; /* likewise, of all origins, also over HTTP/2 (64) */
    /* Nanoseconds that one waits (60 s); the client looks when it asks, and when an answer ends.
       Where the process has no descriptor left (EMFILE), those that wait longest are closed. */
    int64_t kept_time;
    int redirects; /* that are followed in a row (10); negative: none */
    uint64_t body; /* bytes that haft_http_reply_body takes (16 MiB); more: -EMSGSIZE */
    /* A context of haft_tls_client_context, for https; it must live as long as the client, and gets
       the client's protocols: HTTP/2 before HTTP/1.1. NULL: one that trusts the system's
       authorities. */
    haft_tls_context_t *tls;
    /* Without this, the client asks for compressed answers (Accept-Encoding), unless a question has
       that field itself, or Range, and decodes them. */
    bool uncompressed;
    uint64_t decompressed; /* bytes that a compressed body may become (256 MiB); more: -EFBIG */
    /*
     * "http://user:password@host:port", the proxy for all questions: those for http are passed on
     * by it, those for https and WebSocket go through a tunnel (CONNECT). "": none. NULL: those
     * that the environment names when the client is made, in http_proxy for http and https_proxy
     * for https, except for this machine and the hosts, networks and ports of no_proxy:
     * "here.example, .elsewhere.example, 10.0.0.0/8, *:8080" ("*": all). The names may be of
     * capitals; but a CGI program (REQUEST_METHOD) does not believe HTTP_PROXY, which its client
     * has set.
     */
    const char *proxy;
    /* To an origin at a time, those that are kept too; to a proxy that passes questions on, for
       all of these. Further questions wait their turn, as long as their task's deadlines let them.
       0: any number. A task that has a reply may then wait for itself. */
    size_t connections;
    haft_http_cookie_jar_t *cookies; /* that keeps and sends cookies; NULL: none are kept */
    bool untraced; /* without this, questions name the trace of their task (haft_http_trace_get) */
} haft_http_client_options_t;

/* `options` NULL: zeroed ones. NULL: no memory. */
haft_http_client_t *haft_http_client_new_with(const haft_http_client_options_t *options);
static inline haft_http_client_t *haft_http_client_new(void) {
    return haft_http_client_new_with(NULL);
}
/* When its replies have been freed, in the run that asked, if that has not ended. NULL: nothing. */
void haft_http_client_free(haft_http_client_t *client);

/* The value is sent without the spaces and tabs around it. */
typedef struct haft_http_request_header {
    const char *name, *value;
} haft_http_header_t;

typedef struct haft_http_question {
    const char *method; /* NULL: GET, or POST if there is a body */
    const char
        *url; /* http[s]://host:port/path?query, with what is special in it %-encoded already */
    const haft_http_header_t *headers;
    size_t header_count;
    const char *type; /* Content-Type of the body; NULL: none, or the one in the headers */
    const void *body;
    size_t size;
    /* In place of a body: writes up to `size` bytes of it to the buffer, and returns how many, 0
       at its end, or an error, with which the call ends. It is sent once: so a redirect that wants
       it again is not followed. The field `size` above is the number of its bytes; 0: that is not
       known, and it is sent in chunks. */
    ssize_t (*produce)(void *argument, void *buffer, size_t size);
    void *argument;
    char *failure; /* NULL, or room for words about why there is no answer */
    size_t failure_size;
    /* Called when all was produced, with `argument`: stores fields that are sent behind a body
       whose size was not known, or over HTTP/2 behind any, and returns how many. They live until
       the question was asked. NULL: none. */
    size_t (*trailers)(void *argument, const haft_http_header_t **trailers);
} haft_http_question_t;

/*
 * Asks, and reads the head of the answer. The task's deadlines limit the time that this takes
 * (haft_io_deadline_set, or the deadline of a scope). 0, and `*reply` is to be freed; or an error:
 * those of haft_io_connect_tcp, haft_io_write and haft_io_read; -EINVAL: the URL, the method, a
 * header or a trailer is none; -EPROTONOSUPPORT: another scheme than http and https, or the library
 * was built without OpenSSL; those of haft_tls_handshake; -EMSGSIZE: the question's head is larger
 * than 16 KiB, or the produced body has another size than the question names; -EBADMSG: what came
 * is no answer, also a status below 100, or ten answers of status 1xx; -EPROTO: the server has
 * broken the rules of TLS, or of a connection of HTTP/2; -ETIMEDOUT: the task's deadline has
 * passed, also in the middle of a head; -EPIPE: the server has closed the connection; -ELOOP: too
 * many redirects;
 * -ECONNREFUSED: also that the proxy has refused a tunnel. A question that is safe to repeat (GET,
 * HEAD, PUT, DELETE, OPTIONS, without `produce`) is asked again over a new connection if the server
 * has closed a kept one meanwhile; one of HTTP/2 that the server has refused before it began with
 * it is asked again in any case, unless its body was produced. A redirect to another origin is
 * followed without Authorization, Proxy-Authorization and Cookie.
 */
int haft_http_client_ask(haft_http_client_t *client, const haft_http_question_t *question,
                         haft_http_reply_t **reply);

/* 200 to 999. HTTP knows those up to 599; a further one means as much as 500 does (RFC 9110,
   section 15). */
int haft_http_reply_status(const haft_http_reply_t *reply);
/* Like haft_http_request_header; lives as long as the reply. If there are several fields
   Set-Cookie, which are no list, it returns the first: haft_http_reply_header_at has all. If the
   client decodes the body, Content-Encoding and Content-Length are hidden. */
const char *haft_http_reply_header(haft_http_reply_t *reply, const char *name);
/* Like haft_http_request_header_at: all fields, in their order. */
bool haft_http_reply_header_at(haft_http_reply_t *reply, size_t number, const char **name,
                               const char **value);
/* The fields behind the body, once that has been read to its end; NULL, and false: there is
   none. */
const char *haft_http_reply_trailer(const haft_http_reply_t *reply, const char *name);
bool haft_http_reply_trailer_at(haft_http_reply_t *reply, size_t number, const char **name,
                                const char **value);
/* Like haft_http_request_read and haft_http_request_body; time limits are the task's. A body that
   is compressed is decoded; -EFBIG: it becomes larger than `decompressed`, or, for
   haft_http_reply_body, than `body`; -EBADMSG: it is damaged, or was cut off. */
ssize_t haft_http_reply_read(haft_http_reply_t *reply, void *buffer, size_t size);
ssize_t haft_http_reply_body(haft_http_reply_t *reply, char **body);
/* The connection is kept if the body has been read to its end, and closed if not; over HTTP/2 it
   is kept in any case. NULL: nothing. */
void haft_http_reply_free(haft_http_reply_t *reply);

/* Declares a reply that is freed when the variable's block is left, also when the task is
   cancelled or fails. */
#define HAFT_HTTP_SCOPED_REPLY __attribute__((cleanup(haft_http_reply_free_scoped)))
static inline void haft_http_reply_free_scoped(haft_http_reply_t *const *reply) {
    haft_http_reply_free(*reply);
}

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
