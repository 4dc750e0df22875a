/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the reverse proxy share: upstreams.c, passing_fields.c,
   passing.c. */
#ifndef HAFTI_HTTP_PASSING_H
#define HAFTI_HTTP_PASSING_H

#include "client.h"
#include "internal.h"

/* ---- upstreams.c ---- */

/* An upstream; any thread may read and write its atomic fields. */
typedef struct {
    char *url;                 /* without a slash at its end */
    const char *host;          /* in it */
    atomic_uint failures;      /* in a row */
    _Atomic int64_t out_until; /* by haft_io_now(); 0: it is in use */
    atomic_bool is_unwell;     /* by its health */
    _Atomic uint64_t requests;
    atomic_size_t now;
} hafti_http_upstream_t;

struct haft_http_proxy {
    haft_http_client_t *client;
    haft_http_proxy_options_t options; /* with defaults; its texts are copies */
    char made_up[24];                  /* the name, where none was given */
    atomic_size_t next;                /* upstream whose turn it is */
    atomic_bool is_watched;            /* by a task that asks for the health */
    size_t count;
    hafti_http_upstream_t upstreams[];
};

enum { HAFTI_HTTP_ATTEMPTS = 8 };
/* The next upstream that is none of those that were tried; NULL: none is in use, or has not been
   tried. */
hafti_http_upstream_t *hafti_http_upstream_choose(haft_http_proxy_t *proxy,
                                                  hafti_http_upstream_t *const *tried,
                                                  size_t count);
void hafti_http_upstream_succeeded(const haft_http_server_t *server,
                                   hafti_http_upstream_t *upstream);
/* `why` is for the log. */
void hafti_http_upstream_failed(const haft_http_server_t *server, const haft_http_proxy_t *proxy,
                                hafti_http_upstream_t *upstream, const char *why);
/* Has a task of the server ask for the health of all, if there is none yet. */
void hafti_http_upstreams_watch(haft_http_server_t *server, haft_http_proxy_t *proxy);

/* ---- passing_fields.c ---- */

/* Fields for a question, in the request's memory. */
typedef struct {
    haft_http_header_t *fields;
    size_t count;
} hafti_http_passed_t;

/* The fields with which the request is passed on. 0; -ENOMEM; or -ELOOP: it has come through this
   proxy. */
int hafti_http_pass_fields(haft_http_request_t *request, const haft_http_proxy_t *proxy,
                           hafti_http_passed_t *passed);
/* The trailers that may be passed on; NULL: there is no memory. */
const haft_http_header_t *hafti_http_pass_trailers(haft_http_request_t *request, size_t *count);
/* Gives the answer the fields of the reply; the second function, behind the body, its trailers. */
int hafti_http_return_fields(haft_http_request_t *request, const haft_http_proxy_t *proxy,
                             haft_http_reply_t *reply);
/* Sends a head of status 1xx on, without the fields of one connection. */
void hafti_http_return_informed(haft_http_request_t *request, unsigned status,
                                hafti_http_text_t lines);
int hafti_http_return_trailers(haft_http_request_t *request, haft_http_reply_t *reply);
/* The value of the field Max-Forwards, if that counts for the request's method; -1: none. */
int64_t hafti_http_forwards_left(haft_http_request_t *request);
/* Answers OPTIONS or TRACE in place of the service (RFC 9110, section 7.6.2). */
int hafti_http_answer_last(haft_http_request_t *request);

#endif
