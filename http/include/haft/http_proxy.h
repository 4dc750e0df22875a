/* SPDX-License-Identifier: MIT */
/*
 * Haft HTTP: a reverse proxy as a handler. haft/http.h includes this file.
 *
 *     static const char *const services[] = {"http://10.0.0.1:8080", "http://10.0.0.2:8080"};
 *     haft_http_proxy_t *proxy;
 *     haft_http_proxy_new_with(
 *         &(haft_http_proxy_options_t){.upstreams = services, .upstream_count = 2}, &proxy);
 *     haft_http_server_any(server, "/{path...}", haft_http_proxy_pass, proxy);
 */
#ifndef HAFT_HTTP_PROXY_H
#define HAFT_HTTP_PROXY_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Passes requests on to services, its upstreams. For the handlers of any number of servers. */
typedef struct haft_http_proxy haft_http_proxy_t;

/* The fields that tell the services the proxy's client. Values that a client has sent in them are
   passed on only where the peer is trusted (haft_http_server_trust_proxies). */
typedef enum haft_http_forward {
    HAFT_HTTP_FORWARD_BOTH,     /* the two that follow */
    HAFT_HTTP_FORWARD_X,        /* X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto */
    HAFT_HTTP_FORWARD_STANDARD, /* Forwarded (RFC 7239) */
    HAFT_HTTP_FORWARD_NOTHING,
} haft_http_forward_t;

/* 0 means the default, which is in brackets. Times are nanoseconds; HAFT_IO_FOREVER: no end. */
typedef struct haft_http_proxy_options {
    /* "http://host:port" or "https://host:port", each perhaps with a path, which comes before that
       of requests; copied. Requests go to them in turn. */
    const char *const *upstreams;
    size_t upstream_count;
    const char *strip; /* the begin of requests' paths that is left out, such as "/api"; NULL:
                          none */
    /* How the proxy is called in the field Via; NULL: a name that is made up, and unique. A request
       that has come through a proxy of this name before is answered with 508. */
    const char *name;
    bool keeps_host; /* services get the field Host that came; without this, their own */
    haft_http_forward_t forwarded;
    unsigned attempts;    /* upstreams that are tried for a request (3), 8 at most */
    unsigned failures;    /* in a row, after which an upstream is out of use (3) ... */
    int64_t out_of_use;   /* ... for so long (10 s), unless all others are, too */
    int64_t connect_time; /* for a connection (5 s) */
    int64_t answer_time;  /* without a byte of the answer, before it begins and in it (60 s) */
    uint64_t body;        /* bytes of a request's (any number); more: 413 */
    const char *health;   /* a path, such as "/health", that each upstream is asked for every ... */
    int64_t
        health_pause; /* ... so often (5 s). One that answers with another status than 2xx, ... */
    int64_t health_time; /* ... or not in time (2 s), is not used until it does. NULL: none is */
    size_t kept;         /* connections to an upstream that wait for a request (64) */
    size_t connections;  /* to an upstream at a time (any number); further requests wait */
    haft_tls_context_t *tls; /* as haft_http_client_options_t.tls */
} haft_http_proxy_options_t;

/* Stores a proxy, to be freed. -EINVAL: there is no upstream, or one that is no URL, or a name that
   is no token, or a time is negative; -EPROTONOSUPPORT: another scheme than http and https;
   -ENOMEM. */
int haft_http_proxy_new_with(const haft_http_proxy_options_t *options, haft_http_proxy_t **proxy);
/* When no server that uses it is served any more. NULL: nothing. */
void haft_http_proxy_free(haft_http_proxy_t *proxy);

/*
 * The handler: passes the request on to an upstream, and its answer back, both piece by piece, as
 * RFC 9110, section 7.6 demands: without the fields of one connection, with Via and Max-Forwards.
 * Trailers are passed on, and so are upgrades, such as to WebSocket, after which bytes go both ways
 * until one side has ended and the other has ended or has been silent for `answer_time`.
 *
 * Where there is no connection, the request goes to another upstream; so does one without a body
 * that may be repeated (RFC 9110, section 9.2.2), if the connection ends before an answer has
 * begun. If none answers, the client gets 502, or 504 where the time is over, or 503 where no
 * upstream is in use; and there is a line in the log. The errors of a body are those of
 * haft_http_request_read. Put haft_http_request_cancel_with_client around it, and a client that
 * goes away ends the request to the upstream, too.
 */
int haft_http_proxy_pass(haft_http_request_t *request, void *proxy);

typedef struct haft_http_upstream {
    const char *url;   /* lives as long as the proxy */
    bool is_used;      /* neither out of use after failures, nor by its health */
    unsigned failures; /* in a row, up to now */
    uint64_t requests; /* that it was asked */
    size_t now;        /* requests that it answers */
} haft_http_upstream_t;
/* Stores the state of the upstream of this number, which begins at 0. False: there is none. On any
   thread; numbers of one moment may not fit each other. */
bool haft_http_proxy_upstream(const haft_http_proxy_t *proxy, size_t number,
                              haft_http_upstream_t *upstream);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
