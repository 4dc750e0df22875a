/* SPDX-License-Identifier: MIT */
/* Where a server listens, and what it passes on to the process that takes its place. */
#ifndef HAFTI_HTTP_LISTEN_H
#define HAFTI_HTTP_LISTEN_H

#include <haft/http.h>

/* ---- listen.c ---- */

enum { HAFTI_HTTP_LISTENERS = 64 };
typedef struct {
    size_t count;
    int descriptors[HAFTI_HTTP_LISTENERS];
    char *places[HAFTI_HTTP_LISTENERS]; /* as the options have it */
    bool inherits;                      /* some from the process before */
    size_t passed; /* how many a restart passes on, also when they are the server's */
    char *paths;   /* of Unix sockets, to be removed, each with its '\0' */
    size_t paths_size;
} hafti_http_listeners_t;

/* Listens at the places of the options. 0, or an error, which it has logged. */
int hafti_http_listen(haft_http_server_t *server, const haft_http_run_options_t *options,
                      hafti_http_listeners_t *listeners);
/* Closes them, and removes the paths. */
void hafti_http_forget_listeners(hafti_http_listeners_t *listeners);

/* ---- restart.c ---- */

/* Whether this process has got listeners from the one before; true for the first caller only. */
bool hafti_http_inherits(void);
/* Stores the inherited listeners for this place; returns how many. */
int hafti_http_take_inherited(const char *place, int *descriptors, int most);
/* Closes the inherited listeners that were not taken. */
void hafti_http_forget_inherited(void);
/* Tells the process before, if there is one, that this one serves. */
void hafti_http_tell_ready(void);

/* ---- serving.c ---- */

/* haft_http_server_serve_all, with the options about serving, and with listeners that a restart may
   pass on; both may be NULL. */
int hafti_http_serve(haft_http_server_t *server, const int *listeners, size_t count,
                     const haft_http_run_options_t *options, hafti_http_listeners_t *listening);

#endif
