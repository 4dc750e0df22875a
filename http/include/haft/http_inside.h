/* SPDX-License-Identifier: MIT */
/* Looking into a server: access log, counters, pages for its operator. Part of haft/http.h, which
   includes it. */
#ifndef HAFT_HTTP_INSIDE_H
#define HAFT_HTTP_INSIDE_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- The access log ------------------------------------------------------------------------- */

/* The outcome of a request. The request itself has its method, target and fields, and its
   client. */
typedef struct haft_http_access {
    int status;    /* 0: the connection was broken off before the answer began */
    uint64_t size; /* bytes of the answer's body */
    int64_t begun; /* nanoseconds since 1970, when the head had come */
    /* Nanoseconds from then on until the answer was written. The rest in the buffer is sent
       together with the wait for the next request, and does not count. */
    int64_t duration;
    bool is_refused; /* the message was no request: its method is "?", and its target "" */
} haft_http_access_t;

/* Called for each request, when it has been answered, on the thread of its handler. It must not
   wait. */
typedef void haft_http_access_hook_t(void *argument, haft_http_request_t *request,
                                     const haft_http_access_t *access);
/* NULL: none, which is the default. It takes the place of an access log. Before the server
   serves. */
void haft_http_server_set_access_hook(haft_http_server_t *server, haft_http_access_hook_t *hook,
                                      void *argument);

typedef enum haft_http_log_format {
    HAFT_HTTP_LOG_COMMON,   /* of NCSA's httpd and its heirs */
    HAFT_HTTP_LOG_COMBINED, /* and the fields Referer and User-Agent */
    HAFT_HTTP_LOG_JSON,     /* an object a line, with the duration in seconds */
} haft_http_log_format_t;
/* Has `log` called with a line for each request. NULL: the line is written to standard output.
   Quotes, controls and bytes beyond ASCII are escaped. The same time and thread as for a hook. */
void haft_http_server_set_access_log(haft_http_server_t *server, haft_http_log_format_t format,
                                     haft_http_log_t *log, void *argument);

/* ---- Counters ------------------------------------------------------------------------------- */

enum { HAFT_HTTP_DURATIONS = 10 };
/* Upper limits of the counted durations, in seconds; the last one has none. */
extern const double haft_http_duration_limits[HAFT_HTTP_DURATIONS];

typedef struct haft_http_counters {
    uint64_t connections_accepted;
    uint64_t connections; /* open now */
    /* By the first digit of their status; [0]: broken off before an answer began. */
    uint64_t requests[6];
    uint64_t http2_requests; /* of all these */
    uint64_t bytes;          /* of answers' bodies */
    uint64_t duration;       /* nanoseconds, of all requests */
    /* Number of requests that took longer than the limit before, and at most this limit. */
    uint64_t durations[HAFT_HTTP_DURATIONS];
} haft_http_counters_t;

/* Counts from this call on, for a few readings of the clock and additions a request. Before the
   server serves. */
void haft_http_server_count(haft_http_server_t *server);
/* Reads the counters, on any thread; numbers of one moment may not add up. */
void haft_http_server_read_counters(const haft_http_server_t *server,
                                    haft_http_counters_t *counters);
/* Counts, and answers GET for the path with the counters in the text format of Prometheus, or as
   OpenMetrics where the client wants that more (Accept): of the server, of each route that was
   asked for, of libhaft-io (haft_io_count, haft_io_living), and of the application
   (haft/http_metrics.h). Errors are those of haft_http_server_route. */
int haft_http_server_serve_counters(haft_http_server_t *server, const char *path);

/* ---- For balancers -------------------------------------------------------------------------- */

/* Answers GET for the path with 200 and "ready", or, from when the server is told to stop, with 503
   and "stopping": see haft_http_run_options_t.unready_time. Errors are those of
   haft_http_server_route. */
int haft_http_server_serve_readiness(haft_http_server_t *server, const char *path);

/* ---- Pages for the operator ----------------------------------------------------------------- */

/*
 * Below the prefix: "/top", what haft-top shows (tasks by name and wait, threads, the slowest
 * requests), renewed each second, and "/summary", the same as JSON (haft_io_summarize); "/tasks",
 * the tree of scopes and tasks of the run with what each waits for and its backtrace
 * (haft_io_dump_with); and "/counters". They show much of the service to everybody, so mount them
 * in a group whose middleware asks for a password. Errors are those of haft_http_server_route.
 */
int haft_http_server_serve_debug_pages(haft_http_server_t *server, const char *prefix);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
