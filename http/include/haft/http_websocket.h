/* SPDX-License-Identifier: MIT */
/*
 * WebSocket (RFC 6455), the server's side and the client's. Part of haft/http.h, which includes it.
 *
 *     static int echo(haft_http_request_t *request, void *unused) {
 *         haft_http_websocket_t *socket = haft_http_websocket_accept(request);
 *         haft_http_websocket_message_t message;
 *         int code = 0;
 *         while (socket != NULL && code == 0 &&
 *                (code = haft_http_websocket_receive(socket, &message)) == 0)
 *             code = haft_http_websocket_send(socket, message.kind, message.bytes, message.size);
 *         return code;
 *     }
 */
#ifndef HAFT_HTTP_WEBSOCKET_H
#define HAFT_HTTP_WEBSOCKET_H

#include "http.h"
#include "http_client.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_http_websocket haft_http_websocket_t;

/* 0 means the default, which is in brackets. Times are in nanoseconds. */
typedef struct haft_http_websocket_options {
    /* The origins whose pages may connect, with commas between: "https://a.org, http://b.org:81";
       "*": all. NULL: only pages of the host that the request names. Clients that send no Origin
       are no browsers, and may connect. */
    const char *origins;
    /* Subprotocols, with commas between, the preferred one first. The first one that the client
       has, too, is chosen. */
    const char *protocols;
    size_t message_size; /* bytes of a message that is received (1 MiB); more: 1009 */
    int64_t ping_time;   /* without a byte from the client (30 s); then it gets a ping */
    int64_t pong_time;   /* for its answer (10 s); then the connection counts as lost: 1006 */
    int64_t close_time;  /* for the end of a connection that is being closed (5 s) */
    /* Without this, messages of 200 bytes and more are compressed (permessage-deflate, RFC 7692) if
       the other side can. `message_size` holds for what they become, too. */
    bool uncompressed;
    /* Messages may refer to those before, in both directions, if the other side agrees. Small ones
       that are alike become smaller, and each connection holds some 300 KiB. */
    bool keeps_context;
} haft_http_websocket_options_t;

/*
 * Accepts the WebSocket that the request asks for, until the handler returns: that closes it, with
 * code 1000, with 1011 if the handler returns an error, or with 1001 if the server stops. NULL:
 * the library has answered the request with an error, and the handler should return 0. The request
 * was no handshake of version 13 (426, 400), its origin is not allowed (403), there is no memory
 * (500), or the library was built without WebSocket (501). `options` may be NULL, and is copied but
 * for `protocols`, which must live as long as the request.
 */
haft_http_websocket_t *haft_http_websocket_accept_with(const haft_http_websocket_options_t *options,
                                                       haft_http_request_t *request);
static inline haft_http_websocket_t *haft_http_websocket_accept(haft_http_request_t *request) {
    return haft_http_websocket_accept_with(NULL, request);
}
/*
 * Connects to a server's WebSocket, by the question's URL (ws, wss, or http, https), with its
 * headers, and none but GET without a body. The option `origins` is not used; `protocols` are those
 * that are offered, and need not live longer. Redirects are not followed. The task's deadlines
 * limit its time, as for haft_http_client_ask, and that of a send. 0, and the socket is to be
 * freed; -ECONNREFUSED: the server has answered with another status than 101, which
 * `question->failure` names; -EBADMSG: it has agreed to what was not asked for; -EINVAL;
 * -EOPNOTSUPP: the library was built without WebSocket; or an error of haft_http_client_ask.
 */
int haft_http_websocket_connect_with(const haft_http_websocket_options_t *options,
                                     haft_http_client_t *client,
                                     const haft_http_question_t *question,
                                     haft_http_websocket_t **socket);
static inline int haft_http_websocket_connect(haft_http_client_t *client,
                                              const haft_http_question_t *question,
                                              haft_http_websocket_t **socket) {
    return haft_http_websocket_connect_with(NULL, client, question, socket);
}
/* Closes the connection of a socket that haft_http_websocket_connect has made, without a close
   frame if haft_http_websocket_close was not called, and frees it. Does nothing for NULL. */
void haft_http_websocket_free(haft_http_websocket_t *socket);

/* Declares a socket that is freed when the variable's block is left, also when the task is
   cancelled or fails. */
#define HAFT_HTTP_SCOPED_WEBSOCKET __attribute__((cleanup(haft_http_websocket_free_scoped)))
static inline void haft_http_websocket_free_scoped(haft_http_websocket_t *const *socket) {
    haft_http_websocket_free(*socket);
}

/* The subprotocol that was chosen; NULL: none. */
const char *haft_http_websocket_protocol(const haft_http_websocket_t *socket);

/* What follows is the same for both sides: for a client, read "server" for "client". */

typedef enum {
    HAFT_HTTP_WEBSOCKET_TEXT = 1, /* UTF-8, which the library has checked */
    HAFT_HTTP_WEBSOCKET_BINARY = 2,
} haft_http_websocket_kind_t;

typedef struct haft_http_websocket_message {
    haft_http_websocket_kind_t kind;
    const char *bytes; /* valid until the next receive; a '\0' stands behind them */
    size_t size;
} haft_http_websocket_message_t;

/*
 * Receives the next message, whole. It also answers pings, sends them to a client that is silent,
 * and closes the connection when the server is told to stop, so a task should be here most of the
 * time; one at a time. A client that takes longer for a message than
 * haft_http_limits_t.body_time and `least_rate` allow gets code 1008.
 *
 * Returns 0; -EPIPE: the connection is closed, in whatever way: haft_http_websocket_close_code
 * returns the reason; a handler may return this, and it is not logged. -ETIMEDOUT: a deadline of
 * the task has passed, after which it may receive again; -ENOMEM.
 */
int haft_http_websocket_receive(haft_http_websocket_t *socket,
                                haft_http_websocket_message_t *message);
/*
 * Sends a message, within haft_http_limits_t.write_time. Any task of the run may do so, while
 * another one receives, or sends: messages go out one after the other. All must have ended when the
 * handler returns. -EINVAL: a text is not UTF-8; -EPIPE: the connection is closed, or broken by an
 * earlier error; -ENOMEM; or an error of haft_io_write.
 */
int haft_http_websocket_send(haft_http_websocket_t *socket, haft_http_websocket_kind_t kind,
                             const void *bytes, size_t size);
/*
 * Closes the connection with a code, 1000 or another one of RFC 6455, section 7.4, and a reason of
 * at most 123 bytes in UTF-8, which may be NULL. It waits for the client's answer, for
 * `close_time`, and drops messages that come meanwhile. If another task receives, this does not
 * wait; that task gets these messages, and -EPIPE when the answer has come. Returns 0; -EINVAL: no
 * such code or reason may be sent; -EPIPE: the connection was closed before.
 */
int haft_http_websocket_close(haft_http_websocket_t *socket, int code, const char *reason);
/*
 * Why the connection is closed, 0 while it is open: the code of the client, 1005 if that has sent
 * none, or of this side, if it was the first to close: 1001, the server stops; 1002, the client has
 * broken the protocol; 1007, a text was not UTF-8; 1008, a message took too long; 1009, it was too
 * large; 1011, there was no memory. 1006: the connection was lost.
 */
int haft_http_websocket_close_code(const haft_http_websocket_t *socket);
/* The client's reason, "" if there is none. */
const char *haft_http_websocket_close_reason(const haft_http_websocket_t *socket);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
