/* SPDX-License-Identifier: MIT */
/* What the files of the client share: url.c, pool.c, secure.c, client.c. */
#ifndef HAFT_HTTP_CLIENT_INTERNAL_H
#define HAFT_HTTP_CLIENT_INTERNAL_H

#include "internal.h"

enum { HAFTI_HTTP_HOST = 256 }; /* with '\0'; a name has at most 253 letters */

typedef struct {
    hafti_http_text_t authority, target; /* in the text; a target that is empty means "/" */
    char host[HAFTI_HTTP_HOST];
    uint16_t port;
    bool is_secure;
} hafti_http_url_t;

bool hafti_http_same_origin(const hafti_http_url_t *one, const hafti_http_url_t *other);
/* 0; -EPROTONOSUPPORT: another scheme than http and https; -EINVAL. */
int hafti_http_url_parse(const char *text, hafti_http_url_t *url);
/* What a reference on the page `base` means, to be freed; NULL: no memory. */
char *hafti_http_url_resolve(const char *base, const char *reference);

/* ---- client.c --------------------------------------------------------------------------------- */

/* Asks with further lines in the head, over a connection of its own: the answer, whatever it is. */
int hafti_http_ask_to_upgrade(haft_http_client_t *client, const haft_http_question_t *question,
                              const char *lines, haft_http_reply_t **reply);
void hafti_http_reply_stream(haft_http_reply_t *reply, hafti_http_stream_t **stream,
                             const haft_http_limits_t **limits);

/* ---- pool.c: connections that wait for a question -------------------------------------------- */

typedef struct hafti_http_pool hafti_http_pool_t;

hafti_http_pool_t *hafti_http_pool_new(size_t kept);
void hafti_http_pool_free(hafti_http_pool_t *pool);
/* One of the URL's origin that was used last and is still open: whether there is one. */
bool hafti_http_pool_take(hafti_http_pool_t *pool, const hafti_http_url_t *url,
                          hafti_http_stream_t *stream);
/* Keeps it, or closes it where enough are kept. All that it has read has been taken. */
void hafti_http_pool_give(hafti_http_pool_t *pool, const hafti_http_url_t *url,
                          const hafti_http_stream_t *stream);

/* ---- secure.c: a client's context of TLS ------------------------------------------------------ */

/* Made by the first use, where none was given. */
typedef struct {
    haft_tls_context_t *given, *made;
    haft_io_once_t once;
} hafti_http_secure_t;

int hafti_http_secure_get(hafti_http_secure_t *secure, haft_tls_context_t **context);
void hafti_http_secure_end(hafti_http_secure_t *secure);

#endif
