/* SPDX-License-Identifier: MIT */
/*
 * Forms with files: bodies of the type multipart/form-data (RFC 7578), part by part. Part of
 * haft/http.h, which includes it.
 *
 *     static int upload(haft_http_request_t *request, void *unused) {
 *         haft_http_multipart_t *form;
 *         haft_http_part_t part;
 *         haft_http_request_limit_body(request, 100 * 1024 * 1024);
 *         int code = haft_http_multipart_begin(request, &form);
 *         while (code == 0 && (code = haft_http_multipart_next(form, &part)) == 1) {
 *             HAFT_IO_SCOPED_DESCRIPTOR int file = haft_http_multipart_store(form, "/srv/uploads");
 *             code = file < 0 ? file : keep(file, part.name);
 *         }
 *         return code == 0 ? haft_http_answer_text(request, 200, "thanks\n") : code;
 *     }
 *
 * The parts are read as they come, so a body needs no memory but a window of 8 KiB. A handler that
 * returns an error of these functions gives the client the status for it: 400 for a body that is
 * malformed in any way, 413 for one that exceeds a limit.
 */
#ifndef HAFT_HTTP_MULTIPART_H
#define HAFT_HTTP_MULTIPART_H

#include "http.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_http_multipart haft_http_multipart_t;

/* Bytes of a part's head, at most. */
enum { HAFT_HTTP_PART_HEAD = 4096 };

/* 0 means the default, which is in brackets. The whole body has the limit of the request's. */
typedef struct haft_http_multipart_limits {
    size_t parts;  /* (100) */
    size_t head;   /* bytes of a part's fields (4096, which is the maximum) */
    uint64_t part; /* bytes of a part (no limit but the body's: see haft_http_request_limit_body) */
} haft_http_multipart_limits_t;

/* The headers of a part. The texts live until the next part. */
typedef struct haft_http_part {
    const char *name; /* of the form's field */
    /* The client's name of the file: any bytes, often with "../" or a path in it. Show it; never
       use it as a path. NULL: it is no file. */
    const char *file_name;
    const char *type; /* Content-Type, as the client has it; NULL: none */
} haft_http_part_t;

/*
 * Begins to read the body's parts; the result lives as long as the request. `limits` may be NULL.
 * 0; -ENOTSUP: the body has another type, and is not touched (415 would be an answer); -EBADMSG:
 * the type has no boundary, or none that is one; -ENOMEM.
 */
int haft_http_multipart_begin_with(const haft_http_multipart_limits_t *limits,
                                   haft_http_request_t *request, haft_http_multipart_t **multipart);
static inline int haft_http_multipart_begin(haft_http_request_t *request,
                                            haft_http_multipart_t **multipart) {
    return haft_http_multipart_begin_with(NULL, request, multipart);
}
/* Goes on to the next part; what is left of the one before is skipped. 1: there is one; 0: there
   are no more; or an error: -EMSGSIZE: it exceeds a limit; -EBADMSG; or one of
   haft_http_request_read. */
int haft_http_multipart_next(haft_http_multipart_t *multipart, haft_http_part_t *part);
/* Another field of the part's head, of which there is one; NULL: none, several, or no memory. */
const char *haft_http_multipart_header(haft_http_multipart_t *multipart, const char *name);
/* Reads from the part, as haft_http_request_read does; 0 at its end. Errors are those of
   haft_http_multipart_next. */
ssize_t haft_http_multipart_read(haft_http_multipart_t *multipart, void *buffer, size_t size);
/* Reads the rest of the part into memory of the request, with a '\0' behind it: its size, an error
   as above, or -ENOMEM. */
ssize_t haft_http_multipart_text(haft_http_multipart_t *multipart, char **text);
/*
 * Stores the rest of the part in a new file below the folder, and returns the file's descriptor,
 * which the caller closes. The file has no name, so it is gone when it is closed, whatever happens;
 * linkat(2) with "/proc/self/fd/N" and AT_SYMLINK_FOLLOW keeps it under a name, on file systems
 * that have O_TMPFILE. Errors are those above, and those of haft_io_open and haft_io_pwrite.
 */
int haft_http_multipart_store(haft_http_multipart_t *multipart, const char *folder);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
