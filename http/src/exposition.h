/* SPDX-License-Identifier: MIT */
/* The page of counters (exposition.c), which pages.c mounts, and that of tasks. */
#ifndef HAFTI_HTTP_EXPOSITION_H
#define HAFTI_HTTP_EXPOSITION_H

#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- pages.c's text, which is collected, and then answered as a whole ---- */

typedef struct {
    FILE *file;
    char *bytes;
    size_t size;
} hafti_http_text_page_t;
/* False: there is no memory. */
static inline bool hafti_http_text_page_begin(hafti_http_text_page_t *page) {
    page->file = open_memstream(&page->bytes, &page->size);
    return page->file != NULL;
}
static inline int hafti_http_text_page_answer(hafti_http_text_page_t *page,
                                              haft_http_request_t *request, const char *type) {
    return fflush(page->file) == 0 ? haft_http_answer(request, 200, type, page->bytes, page->size)
                                   : -ENOMEM;
}
static inline void hafti_http_text_page_end(hafti_http_text_page_t *page) {
    if (page->file != NULL)
        fclose(page->file);
    free(page->bytes);
}

/* ---- pages.c ---- */

/* Serves "/top", "/summary" and "/tasks" of this scope's run, or, for NULL, of the server's. */
int hafti_http_serve_run_pages(haft_http_server_t *group, haft_io_scope_t *run);

/* ---- exposition.c, grouping.c ---- */

/* A handler. */
int hafti_http_show_counters(haft_http_request_t *request, void *unused);

/* Writes the text of a dump, in which what is the same is shown once: 0 or -ENOMEM. */
int hafti_http_write_grouped(FILE *to, haft_http_request_t *request, const char *text, size_t size);

#endif
