/* SPDX-License-Identifier: MIT */
/*
 * Connections that go on as streams of bytes: upgrades, such as to WebSocket, and CONNECT. Part of
 * haft/http.h, which includes it.
 *
 *     if (haft_http_request_upgrade(request, "echo") != 0)
 *         return haft_http_answer_text(request, 426, "upgrade, please\n");
 *     while ((size = haft_http_stream_read(request, bytes, sizeof bytes)) > 0)
 *         haft_http_stream_write(request, bytes, (size_t)size);
 *     return 0;
 */
#ifndef HAFT_HTTP_STREAM_H
#define HAFT_HTTP_STREAM_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * Answers with status 101 and the fields that were set, if the request asks for this protocol (RFC
 * 9110, section 7.8). From then on the connection is a stream, for the handler, until that returns;
 * then it is closed. -ENOTSUP: the client has not asked for the protocol, or sends a body;
 * -EALREADY: the answer has begun; or an error of haft_io_write.
 */
int haft_http_request_upgrade(haft_http_request_t *request, const char *protocol);

/* Calls `handler` for CONNECT, whose target is the host and port to which the client wants a
   tunnel. Without it such requests get 501. The middleware of the server is around it. 0;
   -EEXIST: there is one. Before the server serves. */
int haft_http_server_on_connect(haft_http_server_t *server, haft_http_handler_t *handler,
                                void *argument);
/* Answers CONNECT with status 200 and the fields that were set, after which the connection is a
   stream, as above. -ENOTSUP: it is another method. Any other answer refuses the tunnel. */
int haft_http_request_tunnel(haft_http_request_t *request);

/*
 * For the stream: one task may read while another one writes. haft_http_stream_read is as
 * haft_io_read, and has no limit of time but the task's deadlines; haft_http_stream_write writes
 * everything, within haft_http_limits_t.write_time, and returns 0 or an error;
 * haft_http_stream_shutdown ends what is written, and the peer reads the end. -EINVAL: the
 * connection is no stream yet.
 */
ssize_t haft_http_stream_read(haft_http_request_t *request, void *buffer, size_t size);
int haft_http_stream_write(haft_http_request_t *request, const void *bytes, size_t size);
int haft_http_stream_shutdown(haft_http_request_t *request);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
