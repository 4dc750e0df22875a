/* SPDX-License-Identifier: MIT */
/* Pages for the operator on a thread of their own: beside.c. */
#ifndef HAFTI_HTTP_BESIDE_H
#define HAFTI_HTTP_BESIDE_H

#include "internal.h"

typedef struct {
    haft_http_server_t *pages; /* NULL: there is no thread */
    hafti_http_listeners_t listeners;
    pthread_t thread;
} hafti_http_beside_t;

/* Begins to serve them at the place, by a task of the run that they show. 0; or an error in the
   program's options, which it has noted. */
int hafti_http_beside_begin(hafti_http_beside_t *beside, haft_http_server_t *server,
                            const char *place);
/* Ends the thread, if there is one; also where the task is unwound. */
void hafti_http_beside_end(hafti_http_beside_t *beside);

#endif
