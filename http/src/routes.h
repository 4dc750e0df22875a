/* SPDX-License-Identifier: MIT */
/* Routes: which handler answers a path. */
#ifndef HAFT_HTTP_ROUTES_H
#define HAFT_HTTP_ROUTES_H

#include "message.h"

enum {
    HAFTI_HTTP_CAPTURES = 16,
    HAFTI_HTTP_PARTS = 64, /* of a path */
};

typedef struct hafti_http_node hafti_http_node_t;
typedef struct hafti_http_entry {
    struct hafti_http_entry *next;
    const char *method;
    haft_http_handler_t *handler;
    void *argument;
    const haft_http_server_t *owner; /* a server, or a group of its routes */
    const char *names; /* of what the path captures, in its order, each with a '\0' behind it */
} hafti_http_entry_t;

typedef struct {
    const hafti_http_entry_t *entries; /* of the path, for all methods; NULL: it has no route */
    const char *names; /* of the captures, as the entry for the request's method has them */
    size_t count;
    hafti_http_text_t captures[HAFTI_HTTP_CAPTURES]; /* as they came */
} hafti_http_match_t;

/* Takes method, handler, argument and owner of `entry`. */
int hafti_http_routes_add(hafti_http_node_t **routes, const char *path,
                          const hafti_http_entry_t *entry);
void hafti_http_routes_free(hafti_http_node_t *routes);
/* 0, or -EINVAL: that is no path; -EMSGSIZE: it has too many parts; -ENOMEM. */
int hafti_http_routes_find(const hafti_http_node_t *routes, hafti_http_message_t *message,
                           hafti_http_text_t path, hafti_http_match_t *match);
/* The entry for the method, with whose names the captures are called from here on; NULL: none. */
const hafti_http_entry_t *hafti_http_entry_of(hafti_http_match_t *match, const char *method);

#endif
