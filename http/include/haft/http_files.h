/* SPDX-License-Identifier: MIT */
/* Static files, of haft/http.h, which includes this header. */
#ifndef HAFT_HTTP_FILES_H
#define HAFT_HTTP_FILES_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_http_files_options {
    const char *index; /* the file that answers for a folder; NULL: "index.html"; "": none */
    const char *cache_control; /* value of the field Cache-Control; NULL: no such field */
    bool precompressed; /* clients that accept it get NAME.br, NAME.zst or NAME.gz for NAME */
    bool dot_files;     /* serves names that begin with a dot, too, such as .git and .env */
    /* The Content-Type for a file of this name. NULL, or a function that returns NULL: the library
       chooses by the name's ending. */
    const char *(*type_of)(const char *name);
} haft_http_files_options_t;

/*
 * Answers GET and HEAD for paths below `prefix` ("/static", or "/") with the files below `folder`.
 * The options are copied. The folder is opened by this call: a folder that takes its name later is
 * not seen.
 *
 * An answer has ETag and Last-Modified. If-Match, If-None-Match, If-Modified-Since,
 * If-Unmodified-Since, If-Range and a Range of bytes are obeyed (RFC 9110, sections 13 and 14):
 * 206, 304, 412, 416. Several ranges, at most 16 that ascend and do not overlap, are sent as
 * multipart/byteranges; for others, the whole file is. The path of a folder without a slash at its
 * end is redirected to the path with it (301).
 *
 * Nothing outside of the folder is served, whatever the path is, and whatever is renamed meanwhile:
 * "." and ".." are no names, and a symbolic link is followed only as long as it stays below the
 * folder. (Where the system refuses openat2(2), no symbolic link is followed.) What is neither a
 * file nor a folder is not served: 404.
 *
 * A file should be replaced by rename(2). If it becomes shorter while it is sent, the connection is
 * broken off.
 *
 * Returns 0, or an error of open(2) for the folder, or of haft_http_server_route.
 */
int haft_http_server_serve_files_with(const haft_http_files_options_t *options,
                                      haft_http_server_t *server, const char *prefix,
                                      const char *folder);
static inline int haft_http_server_serve_files(haft_http_server_t *server, const char *prefix,
                                               const char *folder) {
    return haft_http_server_serve_files_with(NULL, server, prefix, folder);
}

/*
 * For a handler of your own: answers with an open file, from its begin to its end, as
 * haft_http_server_serve_files does. `type` is the Content-Type, or NULL. The caller keeps the
 * file, and closes it afterwards. -EINVAL: it is no regular file; other errors are those of
 * fstat(2) and haft_http_answer.
 */
int haft_http_answer_file(haft_http_request_t *request, int file, const char *type);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
