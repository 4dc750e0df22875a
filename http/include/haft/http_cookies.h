/* SPDX-License-Identifier: MIT */
/*
 * Cookies of a client. Part of haft/http.h, which includes it.
 *
 *     haft_http_cookie_jar_t *jar = haft_http_cookie_jar_new();
 *     haft_http_client_options_t options = {.cookies = jar};
 *     haft_http_client_t *client = haft_http_client_new_with(&options);
 */
#ifndef HAFT_HTTP_COOKIES_H
#define HAFT_HTTP_COOKIES_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * A jar of the cookies that servers have set, for haft_http_client_options_t.cookies (RFC 6265).
 * Each answer's Set-Cookie fields are kept, also those of a redirect, and each question gets the
 * cookies whose domain, path and Secure fit its URL, unless it has a field Cookie of its own.
 * Several clients may share a jar, on any threads; it must outlive them. It is in memory only.
 *
 * A cookie is ignored if its name and value have more than 4096 bytes; if it is Secure, or would
 * replace one that is, and does not come over https; if its Domain is neither the host nor a domain
 * above it, or has no dot; or if it breaks what its prefix promises (__Secure-, __Host-). At most
 * 50 of a domain and 3000 in all are kept; then the one goes that was sent longest ago, and before
 * all Secure ones those that are not. A question gets at most 8 KiB of them. They are kept for at
 * most 400 days. A dot at the end of a host or a domain means nothing.
 *
 * Where the library was built with libpsl, a Domain in its list of public suffixes, such as
 * "co.uk", is ignored, too. Without it (also in a program that is linked with -static) a host below
 * "co.uk" may set cookies for all of "co.uk", which the other hosts there then get: then do not
 * share a jar between services that do not trust each other.
 */
typedef struct haft_http_cookie_jar haft_http_cookie_jar_t;

/* NULL: no memory. */
haft_http_cookie_jar_t *haft_http_cookie_jar_new(void);
/* NULL: nothing. */
void haft_http_cookie_jar_free(haft_http_cookie_jar_t *jar);
/* As if an answer of this URL had the field "Set-Cookie: `field`". 0, also if that has removed a
   cookie; -EINVAL: that is no URL, or the cookie is ignored; -ENOMEM. */
int haft_http_cookie_jar_set(haft_http_cookie_jar_t *jar, const char *url, const char *field);
/* Stores what a question for this URL gets as its field Cookie, to be freed by free(3); NULL: it
   gets none. 0, -EINVAL: that is no URL, or -ENOMEM. */
int haft_http_cookie_jar_get(haft_http_cookie_jar_t *jar, const char *url, char **cookies);
/* Removes all. */
void haft_http_cookie_jar_clear(haft_http_cookie_jar_t *jar);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
