/* SPDX-License-Identifier: MIT */
/* Declarations that the files of WebSocket share: handshake.c and websocket_client.c (the two
   sides' begins), deflate.c (compressed messages), websocket.c (all that follows). */
#ifndef HAFTI_HTTP_WEBSOCKET_INTERNAL_H
#define HAFTI_HTTP_WEBSOCKET_INTERNAL_H

#include "internal.h"

/* Whether the library was built with wslay. */
extern const bool hafti_http_has_websocket;

/* ---- websocket_key.c ---- */

enum { HAFTI_HTTP_WEBSOCKET_KEY = 24 /* base64 of 16 bytes */, HAFTI_HTTP_WEBSOCKET_ANSWER = 28 };

/* Draws up to 256 bytes. 0, or an error. */
int hafti_http_make_random(void *into, size_t size);
/* The letters of base64. */
extern const char hafti_http_letters[];
/* Writes three bytes as four letters, and so on; bytes that are missing from the last three count
   as 0, and become '='. */
void hafti_http_put_base64(const unsigned char *bytes, size_t size, char *into);
/* Computes the answer of a server to the key. */
void hafti_http_answer_key(const char *key, char into[HAFTI_HTTP_WEBSOCKET_ANSWER + 1]);

/* ---- deflate.c: permessage-deflate (RFC 7692) ---- */

/* The agreement of both sides, and the states of the two directions, which exist while they are
   used: between messages only where the context is kept. */
typedef struct {
    bool is_on;
    bool drops_ours, drops_theirs; /* the context, at the end of each message */
    int window;                    /* of what this side compresses: 9 to 15 */
    void *encoder, *decoder;
} hafti_http_deflation_t;

enum { HAFTI_HTTP_DEFLATION = 128 /* bytes of a text for it */ };

/* The server's side: takes the first of the client's offers that it can, and writes its answer; "":
   none. */
void hafti_http_deflation_accept(hafti_http_deflation_t *deflation, const char *offers,
                                 bool keeps_context, char into[HAFTI_HTTP_DEFLATION]);
/* The offer of the client; "": none. */
const char *hafti_http_deflation_offer(bool keeps_context);
/* Takes the server's answer to the offer; returns whether it is valid. */
bool hafti_http_deflation_agree(hafti_http_deflation_t *deflation, const char *answer,
                                bool keeps_context);
/* `*out` is to be freed. 0 or -ENOMEM. */
int hafti_http_deflate(hafti_http_deflation_t *deflation, const char *bytes, size_t size,
                       char **out, size_t *out_size);
/* Likewise, with a '\0' behind it; 0, or the code with which the connection is closed: 1007: the
   bytes are not compressed; 1009: it becomes more than `most` bytes; 1011: no memory. */
int hafti_http_inflate(hafti_http_deflation_t *deflation, const char *bytes, size_t size,
                       size_t most, char **out, size_t *out_size);
void hafti_http_deflation_end(hafti_http_deflation_t *deflation);

/* ---- websocket.c ---- */

typedef struct {
    haft_http_request_t *request; /* of the server's side, with which the WebSocket ends */
    haft_http_reply_t *reply;     /* of the client's, which the WebSocket frees */
    hafti_http_stream_t *stream;
    const haft_http_limits_t *limits;
    const haft_http_websocket_options_t *options;
    const char *protocol;
    hafti_http_deflation_t deflation;
} hafti_http_websocket_begin_t;

/* NULL: no memory. */
haft_http_websocket_t *hafti_http_websocket_new(const hafti_http_websocket_begin_t *begin);

#endif
