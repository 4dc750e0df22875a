/* SPDX-License-Identifier: MIT */
/* A client's connection of HTTP/2 that several tasks share (http2_shared.c). */
#ifndef HAFTI_HTTP2_SHARED_H
#define HAFTI_HTTP2_SHARED_H

#include "client.h"
#include "http2_frames.h"

typedef struct hafti_http2_shared {
    hafti_http2_t frames; /* must be first: callbacks cast its address to the struct */
    hafti_http_stream_t stream;
    haft_http_client_t *client;
    hafti_http_places_t *places; /* where it has one */
    size_t users;                /* its origin, and replies */
    int64_t idle_since;          /* when the last reply has ended */
    bool is_reading, is_writing;
    char *left; /* a block that is being written, from `left_at` on; NULL: none */
    size_t left_at, left_size;
    bool is_kept;  /* TLS holds bytes that were written, which are to be flushed */
    bool is_cut;   /* nothing more can be written */
    bool is_ended; /* the connection has been shut down */
} hafti_http2_shared_t;

/* Takes the reply's stream, which has agreed on HTTP/2. 0, or an error: then `*shared` is to be
   released if it is not NULL. */
int hafti_http2_share(haft_http_reply_t *reply, hafti_http2_shared_t **shared);
/* Ends the connection with its last user; does nothing for NULL. */
void hafti_http2_release(hafti_http2_shared_t *shared);
/* Whether it takes another question. */
bool hafti_http2_is_usable(hafti_http2_shared_t *shared);
/* Whether only its origin uses it, and it has failed or has been idle since `until` or longer. */
bool hafti_http2_is_idle(hafti_http2_shared_t *shared, int64_t until);
/* To be called by a task that has caused frames and is about to wait or to leave: writes as much as
   there is room for, and wakes the task that is to read or write next. The second function is the
   first in the form for haft_io_shield. */
void hafti_http2_settle_frames(hafti_http2_t *frames);
void *hafti_http2_settle_shielded(void *frames);

#endif
