/* SPDX-License-Identifier: MIT */
/* What the files of the client share: url.c, pool.c, client.c. */
#ifndef HAFT_HTTP_CLIENT_INTERNAL_H
#define HAFT_HTTP_CLIENT_INTERNAL_H

#include "internal.h"

enum { HAFTI_HTTP_HOST = 256 }; /* with '\0'; a name has at most 253 letters */

typedef struct {
    hafti_http_text_t authority, target; /* in the text; a target that is empty means "/" */
    char host[HAFTI_HTTP_HOST];
    uint16_t port;
} hafti_http_url_t;

/* 0; -EPROTONOSUPPORT: another scheme than http; -EINVAL. */
int hafti_http_url_parse(const char *text, hafti_http_url_t *url);
/* What a reference on the page `base` means, to be freed; NULL: no memory. */
char *hafti_http_url_resolve(const char *base, const char *reference);

/* ---- pool.c: connections that wait for a question -------------------------------------------- */

typedef struct hafti_http_pool hafti_http_pool_t;

hafti_http_pool_t *hafti_http_pool_new(size_t kept);
void hafti_http_pool_free(hafti_http_pool_t *pool);
/* One that was used last and is still open, or -1. */
int hafti_http_pool_take(hafti_http_pool_t *pool, const char *host, uint16_t port);
/* Keeps it, or closes it where enough are kept. */
void hafti_http_pool_give(hafti_http_pool_t *pool, const char *host, uint16_t port, int descriptor);

#endif
