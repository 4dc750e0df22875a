/* SPDX-License-Identifier: MIT */
/* In place of websocket.c, where wslay is not installed: haft_http_websocket_accept answers with
   status 501, so no socket ever reaches the other functions. */
#include "websocket.h"

const bool hafti_http_has_websocket = false;

haft_http_websocket_t *hafti_http_websocket_new(const hafti_http_websocket_begin_t *begin) {
    (void)begin;
    return NULL;
}

void haft_http_websocket_free(haft_http_websocket_t *socket) {
    (void)socket;
}

const char *haft_http_websocket_protocol(const haft_http_websocket_t *socket) {
    (void)socket;
    return NULL;
}

int haft_http_websocket_receive(haft_http_websocket_t *socket,
                                haft_http_websocket_message_t *message) {
    (void)socket, (void)message;
    return -EOPNOTSUPP;
}

int haft_http_websocket_send(haft_http_websocket_t *socket, haft_http_websocket_kind_t kind,
                             const void *bytes, size_t size) {
    (void)socket, (void)kind, (void)bytes, (void)size;
    return -EOPNOTSUPP;
}

int haft_http_websocket_close(haft_http_websocket_t *socket, int code, const char *reason) {
    (void)socket, (void)code, (void)reason;
    return -EOPNOTSUPP;
}

int haft_http_websocket_close_code(const haft_http_websocket_t *socket) {
    (void)socket;
    return -EOPNOTSUPP;
}

const char *haft_http_websocket_close_reason(const haft_http_websocket_t *socket) {
    (void)socket;
    return "";
}
