/* SPDX-License-Identifier: MIT */
/* HTTP/2 (RFC 9113), by nghttp2: the part that the rest of the library uses. http2_frames.h has
   what the files of HTTP/2 share. */
#ifndef HAFTI_HTTP2_INTERNAL_H
#define HAFTI_HTTP2_INTERNAL_H

#include "internal.h"

/* Whether the library was built with nghttp2. */
extern const bool hafti_http_has_http2;

/* The part of a client's preface that looks like the head of a request. */
#define HAFTI_HTTP2_PREFACE "PRI * HTTP/2.0\r\n\r\n"

/* Serves a connection until its end; `has_preface`: HAFTI_HTTP2_PREFACE has been taken from the
   stream. */
void hafti_http2_serve(haft_http_server_t *server, hafti_http_stream_t *stream,
                       hafti_http_link_t *link, bool has_preface);

#endif
