/* SPDX-License-Identifier: MIT */
/* The page of counters (exposition.c), which pages.c mounts, and that of tasks. */
#ifndef HAFT_HTTP_EXPOSITION_H
#define HAFT_HTTP_EXPOSITION_H

#include "internal.h"

/* A handler. */
int hafti_http_show_counters(haft_http_request_t *request, void *unused);

/* Writes the text of a dump, in which what is the same is shown once (grouping.c): 0 or an
   error. */
int hafti_http_write_grouped(haft_http_request_t *request, const char *text, size_t size);

#endif
