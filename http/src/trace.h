/* SPDX-License-Identifier: MIT */
/* The trace of a task, for its request and its questions (trace.c). */
#ifndef HAFTI_HTTP_TRACE_INTERNAL_H
#define HAFTI_HTTP_TRACE_INTERNAL_H

#include "internal.h"

enum { HAFTI_HTTP_TRACE_PARENT = 56 }; /* bytes of the field, with '\0' */

/* A random number, which is most likely unique; never 0. */
uint64_t hafti_http_identifier(void);

/* Begins the trace that the request's fields name. */
void hafti_http_trace_request(haft_http_request_t *request);
/* Passes the current request's trace to the trace of libhaft-io. */
void hafti_http_identify_span(void);
/* Writes a question's field for this trace; each question has an id of its own. */
void hafti_http_put_trace_parent(const haft_http_trace_t *trace,
                                 char into[HAFTI_HTTP_TRACE_PARENT]);

#endif
