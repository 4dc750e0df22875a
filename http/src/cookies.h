/* SPDX-License-Identifier: MIT */
/* Declarations for the files of a client's cookies: set_cookie.c (the parser of a field),
   public_suffix.c (the owners of domains) and cookies.c (the jar). */
#ifndef HAFTI_HTTP_COOKIES_INTERNAL_H
#define HAFTI_HTTP_COOKIES_INTERNAL_H

#include "client.h"

/* A parsed field Set-Cookie; the texts are in the field. */
typedef struct {
    hafti_http_text_t name, value;
    hafti_http_text_t domain; /* without its first dot; empty: none */
    hafti_http_text_t path;   /* empty: none, or none that begins with a slash */
    bool is_secure, expires;
    time_t expiry; /* if it expires */
} hafti_http_set_cookie_t;

/* Whether the field sets a cookie (RFC 6265, section 5.2). */
bool hafti_http_read_set_cookie(hafti_http_text_t field, time_t now, hafti_http_set_cookie_t *set);
/* Whether no host may set cookies for all hosts below the domain. */
bool hafti_http_is_public_suffix(hafti_http_text_t domain);

#endif
