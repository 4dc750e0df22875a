/* SPDX-License-Identifier: MIT */
/* Content codings (RFC 9110, section 8.4): what the files that compress bodies share, and those
   that take them apart again. Each coding is a table by the library that makes it, in a file of its
   own. */
#ifndef HAFTI_HTTP_CODINGS_INTERNAL_H
#define HAFTI_HTTP_CODINGS_INTERNAL_H

#include <haft/http.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    HAFTI_HTTP_MORE,   /* bytes come; they may be kept for later */
    HAFTI_HTTP_FLUSH,  /* what has come can be decoded from what was put */
    HAFTI_HTTP_FINISH, /* nothing more comes */
} hafti_http_step_t;

/* A coding takes bytes from `in`, and puts bytes to `out`, and moves both. */
typedef struct {
    const char *in;
    size_t in_size;
    char *out;
    size_t room;
} hafti_http_pieces_t;

typedef struct hafti_http_coding {
    const char *name, *other_name;
    bool is_small; /* what it holds for each body, so that there may be thousands of them */
    /* For a body of this size, or HAFT_HTTP_UNKNOWN_SIZE. NULL: no memory. */
    void *(*begin_encoding)(uint64_t size, bool is_small);
    /* 0: it has taken all, and put all that the step wants; 1: it wants more room; -ENOMEM. */
    int (*encode)(void *state, hafti_http_pieces_t *pieces, hafti_http_step_t step);
    void (*end_encoding)(void *state);
    void *(*begin_decoding)(void);
    /* 0: it wants more bytes, or more room; 1: that was the end; -EBADMSG; -ENOMEM. If it is called
       with bytes behind the end, they are another body, whose decoding goes to the same place. */
    int (*decode)(void *state, hafti_http_pieces_t *pieces);
    void (*end_decoding)(void *state);
} hafti_http_coding_t;

extern const hafti_http_coding_t hafti_http_zstd, hafti_http_brotli, hafti_http_gzip;
/* Without a head, or a sum (RFC 1951): no coding of HTTP, but what WebSocket's messages have. Its
   decoder returns 1 at the end of each block. */
extern const hafti_http_coding_t hafti_http_raw_deflate;
/* The codings that the library was built with, the preferred one first; then NULL. */
extern const hafti_http_coding_t *const hafti_http_codings[];

/* Their names, as Accept-Encoding has them. */
enum { HAFTI_HTTP_CODINGS = 20 };
void hafti_http_list_codings(char into[HAFTI_HTTP_CODINGS]);

#endif
