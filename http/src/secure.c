/* SPDX-License-Identifier: MIT */
/* Streams over TLS, by libhaft-tls. Where the library was built without that, there are none. */
#include "client.h"

#include <stdio.h>

#ifdef HAFT_HTTP_TLS
#    include <haft/tls.h>

static ssize_t tls_read_lent(hafti_http_stream_t *stream, const void **bytes) {
    return haft_tls_read_lent(stream->tls, bytes);
}

static int tls_write_all(hafti_http_stream_t *stream, const void *buffer, size_t size) {
    return haft_tls_write_all(stream->tls, buffer, size);
}

static ssize_t tls_write(hafti_http_stream_t *stream, const void *buffer, size_t size) {
    return haft_tls_write(stream->tls, buffer, size);
}

static int tls_flush(hafti_http_stream_t *stream) {
    return haft_tls_write_all(stream->tls, NULL, 0);
}

static int tls_flush_now(hafti_http_stream_t *stream) {
    return haft_tls_flush_now(stream->tls);
}

/* Another task may shut what this one waits to read. The socket is shut even if TLS has failed. */
static int tls_shutdown(hafti_http_stream_t *stream, int how) {
    int said = how == SHUT_WR ? haft_tls_shutdown(stream->tls) : 0;
    int code = haft_io_shutdown(stream->descriptor, how);
    return said != 0 ? said : code;
}

static bool tls_has_unread(hafti_http_stream_t *stream) {
    return haft_tls_has_unread(stream->tls);
}

static void tls_close(hafti_http_stream_t *stream) {
    haft_tls_close(stream->tls);
}

static const hafti_http_stream_operations_t tls_operations = {
    .read_lent = tls_read_lent,
    .write_all = tls_write_all,
    .write = tls_write,
    .flush = tls_flush,
    .flush_now = tls_flush_now,
    .shutdown = tls_shutdown,
    .close = tls_close,
    .has_unread = tls_has_unread,
};

void hafti_http_stream_secure(hafti_http_stream_t *stream, haft_tls_context_t *context,
                              const char *host) {
    stream->operations = &tls_operations;
    stream->tls = haft_tls_new(context, stream->descriptor, host);
}

static const char *const protocols[] = {"h2", "http/1.1"};

int hafti_http_stream_offer_http1(hafti_http_stream_t *stream) {
    return haft_tls_offer(stream->tls, protocols[1]);
}

int hafti_http_stream_agree(hafti_http_stream_t *stream, int64_t deadline) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, deadline);
    return haft_tls_handshake(stream->tls);
}

const char *hafti_http_stream_failure(const hafti_http_stream_t *stream, int code) {
    const char *said = stream->tls != NULL ? haft_tls_failure(stream->tls) : "";
    return *said != '\0' ? said : haft_tls_error_text(code);
}

/* (Every build has HTTP/1.1, the last of the protocols.) */
int hafti_http_secure_set_protocols(haft_tls_context_t *context) {
    size_t unknown = hafti_http_has_http2 ? 0 : 1;
    return haft_tls_set_protocols(context, protocols + unknown, 2 - unknown);
}

/* Shuts the stream down, without a wait for a peer that takes nothing. */
static void *shut_at_once(void *stream) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + HAFT_IO_MILLISECOND);
    if (haft_tls_flush_now(stream) == 0)
        haft_tls_shutdown(stream);
    return NULL;
}

void hafti_http_stream_send_end(hafti_http_stream_t *stream) {
    if (stream->tls != NULL)
        haft_io_shield(shut_at_once, stream->tls);
}

bool hafti_http_stream_chose_http2(const hafti_http_stream_t *stream) {
    const char *chosen = stream->tls != NULL ? haft_tls_protocol(stream->tls) : NULL;
    return chosen != NULL && strcmp(chosen, protocols[0]) == 0;
}

int haft_http_server_set_tls(haft_http_server_t *server, haft_tls_context_t *context) {
    int code = context != NULL ? hafti_http_secure_set_protocols(context) : 0;
    if (code == 0)
        server->tls = context;
    return code;
}

const char *hafti_http_secure_mistake(const haft_tls_context_t *context) {
    if (!haft_tls_is_for_servers(context))
        return "the TLS context of a server is one of haft_tls_server_context, not of clients";
    return haft_tls_certificate_count(context) != 0
               ? NULL
               : "the TLS context has no certificate: call haft_tls_add_certificate before the "
                 "server serves";
}

static void make_context(void *argument) {
    haft_tls_context_t **context = argument;
    haft_tls_context_t *made = haft_tls_client_context();
    if (made == NULL || hafti_http_secure_set_protocols(made) == 0)
        *context = made;
    else
        haft_tls_context_free(made);
}

int hafti_http_secure_get(hafti_http_secure_t *secure, haft_tls_context_t **context) {
    int code =
        secure->given == NULL ? haft_io_once_call(&secure->once, make_context, &secure->made) : 0;
    *context = secure->given != NULL ? secure->given : secure->made;
    return code == 0 && *context == NULL ? -ENOMEM : code;
}

void hafti_http_secure_end(hafti_http_secure_t *secure) {
    haft_tls_context_free(secure->made);
}

#else

void hafti_http_stream_secure(hafti_http_stream_t *stream, haft_tls_context_t *context,
                              const char *host) {
    (void)stream, (void)context, (void)host;
}

int hafti_http_stream_offer_http1(hafti_http_stream_t *stream) {
    (void)stream;
    return -EPROTONOSUPPORT;
}

int hafti_http_stream_agree(hafti_http_stream_t *stream, int64_t deadline) {
    (void)stream, (void)deadline;
    return -EPROTONOSUPPORT;
}

const char *hafti_http_stream_failure(const hafti_http_stream_t *stream, int code) {
    (void)stream;
    return code == -EPROTONOSUPPORT ? "this library was built without OpenSSL, which https needs"
                                    : haft_io_error_text(code);
}

int hafti_http_secure_set_protocols(haft_tls_context_t *context) {
    (void)context;
    return 0;
}

void hafti_http_stream_send_end(hafti_http_stream_t *stream) {
    (void)stream;
}

bool hafti_http_stream_chose_http2(const hafti_http_stream_t *stream) {
    (void)stream;
    return false;
}

int haft_http_server_set_tls(haft_http_server_t *server, haft_tls_context_t *context) {
    (void)server;
    return context != NULL ? -EPROTONOSUPPORT : 0;
}

const char *hafti_http_secure_mistake(const haft_tls_context_t *context) {
    (void)context;
    return NULL;
}

int hafti_http_secure_get(hafti_http_secure_t *secure, haft_tls_context_t **context) {
    (void)secure;
    *context = NULL;
    return -EPROTONOSUPPORT;
}

void hafti_http_secure_end(hafti_http_secure_t *secure) {
    (void)secure;
}

#endif

haft_tls_t *haft_http_request_tls(const haft_http_request_t *request) {
    return request->message.stream->tls;
}
