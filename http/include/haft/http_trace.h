/* SPDX-License-Identifier: MIT */
/*
 * Traces across services (W3C Trace Context). Part of haft/http.h, which includes it.
 *
 * A trace is all that is done for one question of a user, in every service that this leads to. Its
 * id travels in the field "traceparent", and what vendors add to it in "tracestate". Here it
 * belongs to a task, and to the tasks that this one starts.
 */
#ifndef HAFT_HTTP_TRACE_H
#define HAFT_HTTP_TRACE_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_http_trace {
    char id[33];     /* of the trace: 32 hexadecimal digits, as are all of these */
    char span[17];   /* of what this task does for it, such as one request */
    char parent[17]; /* the span of the peer that has asked; "": the trace has begun here */
    bool is_sampled; /* the peer may have recorded the trace; true where it begins here */
    char state[513]; /* "tracestate": as many of its members as fit; "": none */
} haft_http_trace_t;

/*
 * From here on each request of the server belongs to a trace: the one that its fields name, or a
 * new one if they name none, or are malformed. Handlers and middleware, the access hook, and the
 * tasks that handlers start find it by haft_http_trace_get; the access log in JSON has its id as
 * "trace". Before the server serves.
 */
void haft_http_server_trace_requests(haft_http_server_t *server);

/* The trace of the current task; NULL: none. It stays as it is while the task has it. */
const haft_http_trace_t *haft_http_trace_get(void);
/*
 * For what begins without a request, such as a message from a queue: the current task has this
 * trace from here on, and the tasks that it starts, too. `parent` and `state` are the values of the
 * two fields. With NULL, or a malformed `parent`, a new trace begins. 0 or -ENOMEM.
 */
int haft_http_trace_begin(const char *parent, const char *state);
/* The current task has no trace any more; those that it has started keep theirs. */
void haft_http_trace_end(void);

/*
 * haft_http_client_ask passes the trace of its task on, with a new id for the span that asks,
 * unless the question has a field "traceparent" of its own, or haft_http_client_options_t.untraced
 * is set.
 */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
