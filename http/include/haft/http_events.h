/* SPDX-License-Identifier: MIT */
/*
 * Server-sent events, and handlers that wait for long. Part of haft/http.h, which includes it.
 *
 *     static int news(haft_http_request_t *request, void *channel) {
 *         char line[100];
 *         int code = haft_http_events_begin(request);
 *         while (code == 0 && haft_http_events_receive(request, channel, line) == 0)
 *             code = haft_http_events_send(request, &(haft_http_event_t){.data = line});
 *         return code;
 *     }
 */
#ifndef HAFT_HTTP_EVENTS_H
#define HAFT_HTTP_EVENTS_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_http_event {
    const char *
        data; /* text of one line or of several; NULL: none, so a browser tells nobody of the event */
    const char *type; /* NULL: "message" */
    const char *id;   /* a client that comes again names the last one that it has got; NULL: none */
    int64_t
        retry; /* nanoseconds after which a client whose connection is lost comes again; 0: not said */
} haft_http_event_t;

/* Begins an answer of the type text/event-stream. Errors are those of haft_http_begin. */
int haft_http_events_begin(haft_http_request_t *request);
/* Sends an event, and does not gather it with later ones. -EINVAL: `type` or `id` has more than one line; -ENOMEM; errors
   of haft_http_write. */
int haft_http_events_send(haft_http_request_t *request, const haft_http_event_t *event);
/* The id of the last event that the client has got from an earlier answer; NULL: it comes for the first time. */
const char *haft_http_events_last_id(haft_http_request_t *request);

/*
 * As haft_io_select_until, for a handler: the wait also ends when the client has gone (-ECONNRESET), and when the
 * server is told to stop (-ESHUTDOWN; for HEAD, whose answer has no events, at once). A handler returns then; that its client has gone is no
 * failure, and not logged. A client that has closed its side for writing counts as gone, since nobody can tell it from one that has
 * closed both. While the answer consists of events, the wait sends a comment each
 * haft_http_limits_t.events_time, so nothing between client and server takes the connection for dead. `count` may be 0, for a wait
 * until the deadline, -ETIMEDOUT.
 */
int haft_http_select_until(haft_http_request_t *request, haft_io_select_case_t *choices,
                           size_t count, int64_t deadline);
/* The next value of a channel, by such a wait: 0; -EPIPE: the channel is closed; or an error as above. */
int haft_http_events_receive(haft_http_request_t *request, haft_io_channel_t *channel, void *value);

/*
 * Middleware, for haft_http_use: a client that goes away cancels its handler, which is unwound where it waits, or
 * where it waits next. What is to be finished nevertheless is called by haft_io_shield. Without this middleware a handler
 * goes on, until it fails to write. A client that has closed its side for writing counts as gone, see above.
 *
 * The handler runs in a scope of its own, beside a task that watches the connection. So tasks that the handler spawns are cancelled
 * with it, and waited for.
 */
int haft_http_cancel_with_client(haft_http_request_t *request, haft_http_next_t *next,
                                 void *unused);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
