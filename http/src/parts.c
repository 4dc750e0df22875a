/* SPDX-License-Identifier: MIT */
/* The route of a request, and what the parts of its path have matched. */
#include "internal.h"

const char *haft_http_request_route(const haft_http_request_t *request) {
    return request->match.entries != NULL && request->match.entry != NULL
               ? request->match.entry->pattern
               : NULL;
}

/* The number of the part of the route; -1: there is none. */
static int number_of(const hafti_http_match_t *match, const char *name) {
    const char *own = match->names;
    for (size_t i = 0; i < match->count; i++, own += strlen(own) + 1)
        if (strcmp(own, name) == 0)
            return (int)i;
    return -1;
}

bool haft_http_request_has_path(const haft_http_request_t *request, const char *name) {
    return haft_http_request_route(request) != NULL && name != NULL &&
           number_of(&request->match, name) >= 0;
}

const char *haft_http_request_path(haft_http_request_t *request, const char *name) {
    const char *route = haft_http_request_route(request);
    if (route == NULL || name == NULL)
        return NULL;
    int number = number_of(&request->match, name);
    if (number < 0) {
        hafti_http_log(request->server, "%s %s: the route %s has no part {%s}", request->method,
                       haft_http_request_target(request), route, name);
        return NULL;
    }
    hafti_http_text_t text = request->match.captures[number];
    char *copy = hafti_http_copy(&request->message, text.bytes, text.size);
    ssize_t size = copy != NULL ? hafti_http_decode(text.bytes, text.size, false, copy) : -ENOMEM;
    if (size < 0)
        return NULL;
    copy[size] = '\0';
    return copy;
}
