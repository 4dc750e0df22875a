/* SPDX-License-Identifier: MIT */
/* Routes: which handler answers a path. */
#ifndef HAFTI_HTTP_ROUTES_H
#define HAFTI_HTTP_ROUTES_H

#include "message.h"

enum {
    HAFTI_HTTP_CAPTURES = 16,
    HAFTI_HTTP_PARTS = 64, /* of a path */
};

/* The counters of the requests of a server, or of a route. */
typedef struct hafti_http_counts {
    _Atomic uint64_t accepted, requests[6], http2_requests, bytes, duration,
        durations[HAFT_HTTP_DURATIONS];
} hafti_http_counts_t;

typedef struct hafti_http_node hafti_http_node_t;
typedef struct hafti_http_entry {
    struct hafti_http_entry *next;
    int method; /* HTTP_GET and the like; -1: none */
    haft_http_handler_t *handler;
    void *argument;
    const haft_http_server_t *owner; /* a server, or a group of its routes */
    const char *names;   /* of what the path captures, in its order, each with a '\0' behind it */
    const char *title;   /* "GET /todo/{id}", the name of its task */
    const char *pattern; /* in it: the path, as it was given, with the prefix of its group */
    struct hafti_http_counts *counts; /* of its requests */
} hafti_http_entry_t;

typedef struct {
    /* The entries, for all methods, of the most specific route with the method, or else of the most
       specific one. NULL: the path has no route. */
    const hafti_http_entry_t *entries;
    const hafti_http_entry_t *entry; /* the one for the method; NULL: none */
    /* Where there is none: a bit for each method, by its number, of all routes that fit the
       path. */
    uint64_t methods;
    const char *names; /* of the captures, as that entry has them */
    size_t count;
    hafti_http_text_t captures[HAFTI_HTTP_CAPTURES]; /* as they came */
} hafti_http_match_t;

/* Takes method, handler, argument and owner of `entry`. After an error `*mistake` has words about
   what is wrong and what to write instead, or is NULL. */
int hafti_http_routes_add(hafti_http_node_t **routes, const char *path,
                          const hafti_http_entry_t *entry, const char **mistake);
void hafti_http_routes_free(hafti_http_node_t *routes);
/* Calls the function for each entry. */
void hafti_http_routes_visit(const hafti_http_node_t *routes,
                             void (*visit)(const hafti_http_entry_t *entry, void *argument),
                             void *argument);
/* 0, or -EINVAL: that is no path; -EMSGSIZE: it has too many parts; -ENOMEM. */
int hafti_http_routes_find(const hafti_http_node_t *routes, hafti_http_message_t *message,
                           hafti_http_text_t path, int method, hafti_http_match_t *match);

#endif
