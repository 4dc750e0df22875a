/* SPDX-License-Identifier: MIT */
/* A message, which is a request or the answer to one: its head, its body, and memory that lives
   as long. */
#ifndef HAFTI_HTTP_MESSAGE_H
#define HAFTI_HTTP_MESSAGE_H

#include "stream.h"
#include "text.h"

#include <llhttp.h>

enum {
    HAFTI_HTTP_FIELDS = 100,
    HAFTI_HTTP_HEAD = 16384,
    HAFTI_HTTP_SKIPPED = 65536, /* bytes of a body that nobody wants, before the next message */
};
_Static_assert(HAFTI_HTTP_HEAD < (int)HAFT_IO_LENT_SIZE && HAFTI_HTTP_HEAD <= UINT16_MAX,
               "a head fits in a block, and has offsets of 16 bits");

typedef struct {
    uint16_t name, name_size, value, value_size; /* in the head */
} hafti_http_field_t;

typedef enum {
    HAFTI_HTTP_NO_BODY,
    HAFTI_HTTP_SIZED,
    HAFTI_HTTP_CHUNKED,
    HAFTI_HTTP_UNTIL_CLOSE, /* of an answer */
} hafti_http_body_kind_t;

/* Bytes that grow, up to a limit; then they are cut. */
typedef struct {
    char *bytes;
    size_t size, room, most;
    bool is_cut;
} hafti_http_bytes_t;
void hafti_http_bytes_add(hafti_http_bytes_t *bytes, const void *more, size_t size);

typedef struct hafti_http_decoder hafti_http_decoder_t;

typedef struct {
    hafti_http_stream_t *stream;
    const haft_http_limits_t *limits;
    llhttp_t parser;

    char *block;         /* lent: the head, then memory */
    size_t head, memory; /* where each ends */
    struct hafti_http_chunk *more;

    size_t target, target_size;
    size_t field_count;
    hafti_http_field_t *fields; /* room for as many as the limit allows, once the head has come */
    bool too_many_fields;
    int status; /* with which a message that is not good is answered */

    hafti_http_body_kind_t body;
    bool answers_head;              /* so it has no body; set before it is read */
    bool takes_connect;             /* a request may be CONNECT; set before it is read */
    bool waits_for_word;            /* before it sends the body */
    bool is_complete;               /* the body has come to its end */
    bool in_trailers;               /* the last chunk has come */
    char last;                      /* byte of the trailers */
    int error;                      /* of the body; sticky */
    uint64_t limit;                 /* of the body */
    uint64_t left;                  /* bytes of a sized body */
    uint64_t got;                   /* bytes of body */
    uint64_t framing;               /* bytes of a chunked body that are not of its chunks' data */
    hafti_http_patience_t patience; /* with the sender of the body */
    char *into;                     /* where the body's bytes go while the parser runs */
    size_t into_size;
    char *trailers; /* name, '\0', value, '\0', and so on */
    size_t trailers_size;
    hafti_http_decoder_t *decoder; /* of the body; NULL: it is read as it came */
    hafti_http_bytes_t *copy;      /* gets all that is read of the body, as it came; or NULL */
} hafti_http_message_t;

/* A head of status 1xx, which has come before an answer (RFC 9110, section 15.2). */
typedef struct hafti_http_informed {
    struct hafti_http_informed *next;
    unsigned status;
    size_t size;
    char lines[]; /* its fields, each with CR LF */
} hafti_http_informed_t;
/* Returns the head of status 1xx that the message has, to be freed; NULL: no memory. */
hafti_http_informed_t *hafti_http_message_informed(const hafti_http_message_t *message);

/* Begins a message, which ends with hafti_http_message_end. */
void hafti_http_message_begin(hafti_http_message_t *message, hafti_http_stream_t *stream,
                              const haft_http_limits_t *limits, llhttp_type_t type);
void hafti_http_message_end(hafti_http_message_t *message);
/*
 * Reads a head and checks it. 0; or an error of the stream, -EPIPE at its end; or -EBADMSG, and
 * `message->status` is what the client gets.
 */
int hafti_http_message_read_head(hafti_http_message_t *message);
ssize_t hafti_http_message_read(hafti_http_message_t *message, void *buffer, size_t size);
/* Reads from the body as it came; and through its decoder. */
ssize_t hafti_http_message_read_plain(hafti_http_message_t *message, void *buffer, size_t size);
ssize_t hafti_http_message_decode(hafti_http_message_t *message, void *buffer, size_t size);
void hafti_http_decoder_free(hafti_http_decoder_t *decoder);
/* Like haft_http_request_body. */
ssize_t hafti_http_message_read_all(hafti_http_message_t *message, char **body);
/* Whether all that is left of its body has come: then no read of it waits. */
bool hafti_http_message_has_come(const hafti_http_message_t *message);
/* Reads up to `most` bytes that are left of the body, so that the next message can be read:
   whether it can. */
bool hafti_http_message_skip(hafti_http_message_t *message, uint64_t most);
/* The value of the next field of this name, from the one of number `*from` on, which becomes the
   one behind it. */
bool hafti_http_message_field(const hafti_http_message_t *message, const char *name, size_t *from,
                              hafti_http_text_t *value);
/* Whether its sender wants the connection to go on (RFC 9112, section 9.3). */
bool hafti_http_message_is_kept(const hafti_http_message_t *message);
/* Checks the fields that decide how the message is read, once they are there: 0, or -EBADMSG. */
int hafti_http_message_check(hafti_http_message_t *message);
/* HTTP_GET and the like; -1: it is none that a request can have here. */
int hafti_http_method_of(hafti_http_text_t name);
/* All fields of a name, as haft_http_request_header. */
const char *hafti_http_message_header(hafti_http_message_t *message, const char *name);
bool hafti_http_message_header_at(hafti_http_message_t *message, size_t number, const char **name,
                                  const char **value);
/* The fields of the trailers, once the body has been read to its end. */
const char *hafti_http_message_trailer(const hafti_http_message_t *message, const char *name);
bool hafti_http_message_trailer_at(const hafti_http_message_t *message, size_t number,
                                   const char **name, const char **value);
/* Fails the body with this error, which also chooses the status: it cannot be read any more. */
int hafti_http_message_fail(hafti_http_message_t *message, int code);
/* Gives a chunked body's bytes, or trailers, to the parser. */
llhttp_errno_t hafti_http_message_parse(hafti_http_message_t *message, const char *bytes,
                                        size_t size);

/* A version without chunks, and with a connection for each message. */
static inline bool hafti_http_is_1_0(const hafti_http_message_t *message) {
    return message->parser.http_major == 1 && message->parser.http_minor == 0;
}

void *hafti_http_allocate(hafti_http_message_t *message, size_t size);
char *hafti_http_copy(hafti_http_message_t *message, const char *bytes, size_t size);
/* Frees all memory of the message, and its block. */
void hafti_http_free_memory(hafti_http_message_t *message);

/* ---- decompress.c ---- */

/* Decodes the body of the message from now on, if it has one of the codings: to at most `limit`
   bytes, and then -EFBIG. 0, or -ENOMEM. */
int hafti_http_decoder_begin(hafti_http_message_t *message, uint64_t limit);
/* Lowers the limit to `more` further bytes. */
void hafti_http_decoder_limit(hafti_http_message_t *message, uint64_t more);

#endif
