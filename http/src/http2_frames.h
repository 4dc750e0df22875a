/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of HTTP/2 share.
 *
 * A connection has a session of nghttp2, which turns bytes into frames and back. The holder of the
 * mutex may use it: tasks of requests, which may run on several threads, and those that read and
 * write. No task waits with the mutex.
 *
 * A stream is a hafti_http_stream_t like a connection, so that messages read their bodies from it
 * and write them to it:
 *
 *     a task writes -> out -> (nghttp2) -> block of the connection -> its writer
 *     its reader -> (nghttp2) -> pieces -> a task reads
 *
 * A write waits until nghttp2 has taken all bytes, as far as the peer's windows allow and the block
 * has room: this is the back-pressure. The windows grow again when a task takes the bytes that were
 * read.
 *
 * | field       | means                                                                           |
 * |-------------|---------------------------------------------------------------------------------|
 * | has_head    | the head of the peer's message has come; further fields are trailers            |
 * | has_come    | all of the peer's message has; `pieces` may have some of it                     |
 * | ends        | nothing is written behind `out`                                                 |
 * | has_ended   | nghttp2 has the end of this side's message                                      |
 * | is_closed   | nghttp2 knows the stream no more; it was reset unless both of the above hold    |
 */
#ifndef HAFTI_HTTP2_FRAMES_H
#define HAFTI_HTTP2_FRAMES_H

#include "http2.h"

#include <nghttp2/nghttp2.h>

typedef struct hafti_http2 hafti_http2_t;
typedef struct hafti_http2_stream hafti_http2_stream_t;
typedef struct hafti_http2_piece hafti_http2_piece_t;

enum {
    HAFTI_HTTP2_WINDOW =
        256 * 1024, /* bytes of bodies on a connection that no task has taken yet */
    HAFTI_HTTP2_FRAME_HEAD = 9,
};

/* A signal for which at most one task waits; under the connection's mutex. */
typedef struct {
    haft_io_event_t event;
    bool is_awaited;
} hafti_http2_signal_t;
static inline void hafti_http2_signal(hafti_http2_signal_t *signal) {
    if (signal->is_awaited)
        haft_io_event_set(&signal->event);
}

struct hafti_http2_stream {
    hafti_http_stream_t bytes; /* must be first: callbacks cast its address to the struct */
    hafti_http2_t *connection;
    hafti_http2_stream_t *next, **back;        /* in its list */
    hafti_http_message_t *message;             /* that the peer sends */
    int32_t id;                                /* 0: it has not begun */
    int code;                                  /* the judgement of the head */
    bool is_refused;                           /* the peer has not begun with it, and never will */
    bool is_malformed;                         /* its answer */
    int informed;                              /* heads of status 1xx that have come */
    hafti_http_informed_t *heads, **last_head; /* those, if the reader wants them (last_head) */
    bool has_head, has_come, ends, has_ended, is_closed;
    bool is_last;                        /* the next write is; of the task that writes */
    hafti_http2_piece_t *pieces, **last; /* of the body */
    size_t unread;                       /* bytes in them */
    char *trailers;                      /* as hafti_http_message_t has them */
    size_t trailers_size;
    const char *out; /* what a task that waits has to write */
    size_t out_size;
    nghttp2_nv *head; /* that was not given to nghttp2 yet; in the request's memory */
    size_t head_count;
    bool has_body;            /* the head has one */
    nghttp2_nv *trailers_out; /* likewise */
    size_t trailers_out_count;
    unsigned waiting; /* tasks of a client's, for another that reads */
    hafti_http2_signal_t readable, writable;
    haft_io_event_t gone;
    hafti_http_field_t fields[HAFTI_HTTP_FIELDS]; /* the last: it need not be zeroed */
};

/* Free blocks by size, for nghttp2 (http2_memory.c). */
enum { HAFTI_HTTP2_KINDS = 8 };
typedef struct {
    struct block *kept[HAFTI_HTTP2_KINDS];
    unsigned count[HAFTI_HTTP2_KINDS];
} hafti_http2_memory_t;

/* The state for frames that nghttp2 ignores (http2_ignored.c). */
enum { HAFTI_HTTP2_CLOSED = 128 };
typedef struct {
    uint32_t closed[HAFTI_HTTP2_CLOSED]; /* the last streams, and how they were closed */
    size_t closed_count;
    unsigned char head[HAFTI_HTTP2_FRAME_HEAD + 4]; /* of a frame that comes */
    size_t head_size;                               /* what has come of it */
    size_t left;                                    /* bytes of a frame whose head has come */
} hafti_http2_ignored_t;

/* The limit on a peer's cost: each frame takes a credit, which bytes of bodies, answers and time
   give back (http2_credit.c). */
typedef struct {
    int64_t left;
    int64_t reckoned_at; /* when time gave some back last */
} hafti_http2_credit_t;

struct hafti_http2 {
    pthread_mutex_t mutex; /* of all that follows, and of the streams */
    hafti_http2_memory_t memory;
    nghttp2_session *session;
    hafti_http2_ignored_t ignored;
    hafti_http2_credit_t credit;
    bool is_client;
    bool is_told_to_go; /* the peer takes no further streams */
    bool is_receiving;  /* nghttp2 looks at what has come */
    int32_t newest;     /* stream that a client has begun; of a server */
    uint32_t complaint; /* with which the connection is closed; NGHTTP2_NO_ERROR: none */
    hafti_http_stream_t *below;
    hafti_http2_stream_t *streams;
    char *block; /* lent: frames that are to be written */
    size_t size;
    const uint8_t *pending; /* nghttp2's: the part of the last frame that did not fit */
    size_t pending_size;
    int error; /* with which the connection has ended */

    /* Called when a stream's message has the peer's head. */
    void (*head_has_come)(hafti_http2_t *connection, hafti_http2_stream_t *stream);
    /* Called when the block has frames. */
    void (*wake_writer)(hafti_http2_t *connection);
    /* Waits for one of the stream's events with the mutex unlocked; 0, or an error. It may return
       earlier. */
    int (*wait)(hafti_http2_t *connection, hafti_http2_stream_t *stream, haft_io_event_t *event);
    /* Called without the mutex when a task has done something with a stream. */
    void (*settle)(hafti_http2_t *connection);
};

static inline void hafti_http2_lock(hafti_http2_t *connection) {
    pthread_mutex_lock(&connection->mutex);
}
static inline void hafti_http2_unlock(hafti_http2_t *connection) {
    pthread_mutex_unlock(&connection->mutex);
}

/* Whether the block, which is there, has room for so many bytes. */
static inline bool hafti_http2_has_room(const hafti_http2_t *connection, size_t size) {
    return size <= HAFT_IO_LENT_SIZE - connection->size;
}
static inline void hafti_http2_put(hafti_http2_t *connection, const void *bytes, size_t size) {
    memcpy(connection->block + connection->size, bytes, size);
    connection->size += size;
}

/* ---- http2_memory.c ---- */

/* `memory` is zeroed, and ends after the session. */
nghttp2_mem hafti_http2_memory(hafti_http2_memory_t *memory);
void hafti_http2_memory_end(hafti_http2_memory_t *memory);

/* ---- http2.c ---- */

/* Makes the session, with the callbacks that `callbacks` lacks: 0 or -ENOMEM. */
int hafti_http2_begin(hafti_http2_t *connection, nghttp2_session_callbacks *callbacks,
                      bool is_client);
void hafti_http2_end(hafti_http2_t *connection);
/* The following ones are called with the mutex, and hafti_http2_pump not by a callback of
   nghttp2. */
/* Moves frames to the block as far as it has room. */
void hafti_http2_pump(hafti_http2_t *connection);
/* Takes `size` bytes that have come. 0; -EPROTO: the connection is to be closed, with the
   complaint; -ENOMEM. */
int hafti_http2_receive(hafti_http2_t *connection, const void *bytes, size_t size);
/* Ends the connection: wakes all tasks that wait for a stream. */
void hafti_http2_fail(hafti_http2_t *connection, int code);
/* `stream` is zeroed, and has a message that has begun. */
void hafti_http2_stream_begin(hafti_http2_stream_t *stream, hafti_http2_t *connection, int32_t id);
/* The callback for a stream that nghttp2 closes. */
int hafti_http2_note_close(nghttp2_session *session, int32_t id, uint32_t code, void *connection);
/* Ends a stream that no task uses any more. Resets it, if it has not ended. */
void hafti_http2_stream_end(hafti_http2_stream_t *stream, uint32_t code);
/* The callback that offers nghttp2 bytes of a stream's body: how many it sends next. */
ssize_t hafti_http2_read_body(nghttp2_session *session, int32_t id, uint8_t *into, size_t size,
                              uint32_t *flags, nghttp2_data_source *source, void *connection);
/* Waits until the head has come, or one of status 1xx that the reader wants: 0, or an error. */
int hafti_http2_await_head(hafti_http2_stream_t *stream);
void hafti_http2_reset(hafti_http2_t *connection, int32_t id, uint32_t code);

/* ---- http2_credit.c ---- */

void hafti_http2_credit_begin(hafti_http2_credit_t *credit);
void hafti_http2_earn(hafti_http2_t *connection, int64_t credit);
/* Takes a credit for a frame that has come. False: there was none, which is the connection's
   complaint. */
bool hafti_http2_pay(hafti_http2_t *connection);

/* ---- http2_ignored.c ---- */

/* To be called before the first byte of the peer. */
void hafti_http2_ignored_begin(hafti_http2_ignored_t *ignored, bool of_client);
/* `has_ended`: the peer sends nothing more on it. */
void hafti_http2_note_closed(hafti_http2_ignored_t *ignored, int32_t id, bool has_ended);
/* Judges a HEADERS frame for a stream that is not new, and that nghttp2 does not know: 0, or the
   error with which the connection ends. */
uint32_t hafti_http2_judge_head(const hafti_http2_ignored_t *ignored, int32_t id);
/* Returns the address after the head of the next frame that nghttp2 may ignore, or NULL. It is
   called until it returns NULL, once for all bytes that have come. */
const char *hafti_http2_next_ignored(hafti_http2_ignored_t *ignored, const char *at,
                                     const char *end);
/* The type and the stream of the frame that was found last; and its judgement, if it is ignored. */
uint8_t hafti_http2_type_of(const hafti_http2_ignored_t *ignored);
int32_t hafti_http2_id_of(const hafti_http2_ignored_t *ignored);
uint32_t hafti_http2_judge_ignored(const hafti_http2_ignored_t *ignored);

/* ---- http2_head.c ---- */

/* Adds a field that has come to the head; one beyond the limits is noted in the message's
   status. */
void hafti_http2_put_field(hafti_http2_stream_t *stream, hafti_http_text_t name,
                           hafti_http_text_t value);
/* A field of the trailers; false: they have no room. */
bool hafti_http2_put_trailer(hafti_http2_stream_t *stream, hafti_http_text_t name,
                             hafti_http_text_t value);
/* Checks the head when it is complete: 0 or -EBADMSG. */
int hafti_http2_check_head(hafti_http2_stream_t *stream);
/* A field for nghttp2, which copies both, and writes names in small letters. */
nghttp2_nv hafti_http2_field(hafti_http_text_t name, hafti_http_text_t value);
/* One whose name is a literal in small letters, which is not copied. */
#define HAFTI_HTTP2_FIELD(literal, text, size)                                                     \
    ((nghttp2_nv){.name = (uint8_t *)(literal),                                                    \
                  .namelen = sizeof literal - 1,                                                   \
                  .value = (uint8_t *)(text),                                                      \
                  .valuelen = size,                                                                \
                  .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME})
/* Functions of hafti_http_framing_t: the head is in the request's memory, and given to nghttp2 with
   the first bytes that are sent, so that 100 (Continue) may come before it. */
int hafti_http2_make_head(haft_http_request_t *request, const char *type, uint64_t size);
int hafti_http2_make_end(haft_http_request_t *request);
/* A head of status 1xx with these lines, in the request's memory; NULL: there is none. */
nghttp2_nv *hafti_http2_make_informed(haft_http_request_t *request, int status, const char *lines,
                                      size_t size, size_t *count);

#endif
