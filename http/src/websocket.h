/* SPDX-License-Identifier: MIT */
/* What handshake.c and websocket.c share. */
#ifndef HAFT_HTTP_WEBSOCKET_INTERNAL_H
#define HAFT_HTTP_WEBSOCKET_INTERNAL_H

#include "internal.h"

/* Whether the library was built with wslay. */
extern const bool hafti_http_has_websocket;

/* A WebSocket of the request, which ends with it. NULL: no memory. */
haft_http_websocket_t *hafti_http_websocket_new(haft_http_request_t *request,
                                                const haft_http_websocket_options_t *options,
                                                const char *protocol);

#endif
