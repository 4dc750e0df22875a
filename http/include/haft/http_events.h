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
    const char *data; /* one line or several; NULL: a browser does not report the event */
    const char *type; /* NULL: "message" */
    const char *id; /* what the client sends as Last-Event-ID when it connects again; NULL: none */
    int64_t retry; /* nanoseconds until the client connects again after a loss; 0: its own choice */
} haft_http_event_t;

/* Begins an answer of the type text/event-stream, and sends its head. Errors are those of
   haft_http_answer_begin. */
int haft_http_events_begin(haft_http_request_t *request);
/* Sends an event at once. -EINVAL: `type` or `id` has more than one line; -ENOMEM; or an error
   of haft_http_answer_write. */
int haft_http_events_send(haft_http_request_t *request, const haft_http_event_t *event);
/* The id of the last event that the client has got from an earlier answer; NULL: it comes for
   the first time. */
const char *haft_http_events_last_id(haft_http_request_t *request);

/*
 * Like haft_io_select_until, but for handlers that wait for long. The wait also ends when the
 * client has gone (-ECONNRESET), and when the server is told to stop (-ESHUTDOWN). The handler
 * should return then; that its client has gone is not logged as a failure. For HEAD, whose answer
 * has no body, this returns -ESHUTDOWN at once. In an answer of events the wait sends a comment
 * after each haft_http_limits_t.events_time without an event, so that proxies keep the connection.
 * With a `count` of 0 it waits until the deadline: -ETIMEDOUT.
 *
 * A client that has only closed its side for writing counts as gone, too: before an answer is
 * written, the two cannot be told apart.
 */
int haft_http_request_select_until(haft_http_request_t *request, haft_io_select_case_t *choices,
                                   size_t count, int64_t deadline);
/* Waits in this way for the next value of a channel. Returns 0, -EPIPE if the channel is closed,
   or an error as above. */
int haft_http_events_receive(haft_http_request_t *request, haft_io_channel_t *channel, void *value);

/*
 * Middleware, for haft_http_server_use: when the client goes away, its handler is cancelled, so it
 * is unwound at its current or next wait. To finish something nevertheless, call it by
 * haft_io_shield. Without this middleware a handler goes on until it fails to write. The comment
 * above defines when a client counts as gone.
 *
 * The handler runs in a scope, in which another task watches the connection. Tasks that the handler
 * spawns are cancelled with it, and have ended when it has.
 */
int haft_http_request_cancel_with_client(haft_http_request_t *request, haft_http_next_t *next,
                                         void *unused);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
