/* SPDX-License-Identifier: MIT */
/*
 * Haft HTTP: pages of other origins may use a service (CORS, the Fetch standard, section 3.3).
 * haft/http.h includes this file.
 *
 *     static const char *const origins[] = {"https://app.example"};
 *     haft_http_server_set_cors(server, &(haft_http_cors_options_t){.origins = origins,
 *     .origin_count = 1});
 */
#ifndef HAFT_HTTP_CORS_H
#define HAFT_HTTP_CORS_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_http_cors_options {
    const char *const *origins; /* such as "https://app.example:8080"; copied */
    size_t origin_count;        /* 0: pages of any origin may */
    const char
        *methods;       /* that they may use, such as "GET, PUT"; NULL: the one that is asked for */
    const char *fields; /* of requests, such as "Content-Type, X-A"; NULL: those asked for */
    const char *exposed; /* fields of answers that scripts may read; NULL: the simple ones alone */
    bool credentials;    /* cookies and the like are sent, and answers to them may be read */
    int64_t max_age;     /* seconds for which a browser keeps these answers; 0: it decides */
} haft_http_cors_options_t;

/*
 * Adds middleware to a server or group that answers the questions of browsers (OPTIONS with
 * Access-Control-Request-Method), and sets the fields of CORS on all other answers, also on those
 * to errors. A request of an origin that is not listed is handled without these fields: its browser
 * does not show the answer to the page. Where a server has it as well as its group, the server's
 * answers the questions, and counts for an origin that both allow. NULL for `options` means zeroed
 * ones. Returns 0; -ENOMEM;
 * -EINVAL: an origin is no scheme with a host, a text is no value of a field, or there are
 * credentials without a list of origins, which no browser accepts.
 */
int haft_http_server_set_cors(haft_http_server_t *server, const haft_http_cors_options_t *options);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
