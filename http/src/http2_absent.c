/* SPDX-License-Identifier: MIT */
/* In place of the other files of HTTP/2, where nghttp2 is not installed: neither server nor client
   agrees on it. */
#include "client.h"

#include <haft/shown.h>

const bool hafti_http_has_http2 = false;

void hafti_http2_serve(haft_http_server_t *server, hafti_http_stream_t *stream,
                       hafti_http_link_t *link, bool has_preface) {
    (void)server, (void)stream, (void)link, (void)has_preface;
}

int hafti_http2_open(haft_http_reply_t *reply, hafti_http_need_t need,
                     hafti_http_connect_t *connect) {
    return connect(reply, need);
}

void hafti_http2_free_origins(haft_http_client_t *client) {
    (void)client;
}

void hafti_http2_close_idle(haft_http_client_t *client, int64_t until, size_t most) {
    (void)client, (void)until, (void)most;
}

size_t hafti_http2_count_idle(haft_http_client_t *client, int64_t *oldest) {
    (void)client;
    *oldest = HAFT_IO_FOREVER;
    return 0;
}

const haft_shown_t hafti_http_shown_frames[] = {HAFT_SHOWN_END};
