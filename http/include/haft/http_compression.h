/* SPDX-License-Identifier: MIT */
/*
 * Compressed answers, and content negotiation. Part of haft/http.h, which includes it.
 *
 * Answers are compressed for clients that ask for it, by zstd, Brotli or gzip: the one that the
 * client wants most, of those that the library was built with. haft_http_answer_flush, and each
 * server-sent event, sends everything written before it. An answer is left as it is if it is small,
 * or its type is not worth it; if the handler has set Content-Encoding, Content-Range, or
 * `Cache-Control: no-transform`; for HTTP/1.0; and if it is a file (haft/http_files.h has
 * precompressed ones). A compressed answer has `Vary: Accept-Encoding`, and its ETag becomes weak.
 *
 * An attacker who sees the length of compressed answers, and can make a browser ask for them, can
 * learn their content (BREACH): if an answer has a secret, such as a token against forged forms,
 * together with text that the request has given, call haft_http_answer_do_not_compress for it.
 */
#ifndef HAFT_HTTP_COMPRESSION_H
#define HAFT_HTTP_COMPRESSION_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* 0 means the default, which is in brackets. */
typedef struct haft_http_compression {
    bool off;          /* answers are never compressed */
    size_t least_size; /* bytes of an answer whose size is known (1400); less: left as it is */
    /* Whether answers of this Content-Type are compressed (texts, JSON, XML, and the like). */
    bool (*is_worth)(const char *type);
} haft_http_compression_t;

/* Call this before the server serves. */
void haft_http_server_set_compression(haft_http_server_t *server,
                                      const haft_http_compression_t *options);
/* The answer to this request is not compressed. Call it before the answer begins. */
void haft_http_answer_do_not_compress(haft_http_request_t *request);

/*
 * Content negotiation (RFC 9110, section 12.5.1): the number of the media type, such as
 * "text/html", that the client wants most, and the first of several that it wants as much; 0 if its
 * request has no such field. -1: it wants none of them, and 406 would be an answer. An answer that
 * depends on this should have `Vary: Accept`.
 */
int haft_http_request_accepts(haft_http_request_t *request, const char *const *types, size_t count);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
