/* SPDX-License-Identifier: MIT */
/* A connection as a stream, over TCP or TLS: its operations, each with a limit of time, and the
   bytes that have been read of it. */
#ifndef HAFTI_HTTP_CONNECTION_STREAM_H
#define HAFTI_HTTP_CONNECTION_STREAM_H

#include <haft/http.h>
#include <haft/io_binding.h>

#include <errno.h>

enum { HAFTI_HTTP_ADDRESS = 46 }; /* of a peer, as text */

/* A time from now on; what is beyond all times has no end. */
static inline int64_t hafti_http_deadline(int64_t now, int64_t time) {
    return time < HAFT_IO_FOREVER - now ? now + time : HAFT_IO_FOREVER;
}

/* ---- patience.c ---- */

/*
 * How long a peer may still be waited for. The time in which this side waits for it is owed; each
 * `least_rate` bytes that have moved pay for a second, and so does each second in which nobody
 * waits. Nothing is paid in advance: a peer that was fast owes nothing, and no more than that. So
 * one that moves nothing is given up after the time of the limits, whatever came before, and so is
 * one that goes on for longer at less than the least rate. All zero: a peer that owes nothing.
 */
typedef struct {
    int64_t owed;      /* nanoseconds */
    int64_t looked_at; /* when that was reckoned last */
    uint64_t moved;    /* all bytes that had moved by then */
} hafti_http_patience_t;

/* A wait may begin now. */
void hafti_http_patience_begin(hafti_http_patience_t *patience, int64_t now);
/* Counts the time since hafti_http_patience_begin or this function was called last; returns the
   time that is left of `most` nanoseconds; 0: the peer is given up. */
int64_t hafti_http_patience_left(hafti_http_patience_t *patience, int64_t most, uint64_t least_rate,
                                 uint64_t moved, int64_t now);
/* The time when a wait to write is to be looked at again: only then is progress seen. */
int64_t hafti_http_patience_look(int64_t most, int64_t now);

/* ---- stream.c ---- */

/* Keeps the calls of the system up to the end of the block off the record of a request. */
#define HAFTI_HTTP_UNKEPT(is_so)                                                                   \
    __attribute__((cleanup(hafti_http_keep_again), unused)) bool unkept =                          \
        (is_so) && haft_io_kept_pause()
static inline void hafti_http_keep_again(const bool *unkept) {
    if (*unkept)
        haft_io_kept_resume(true);
}

typedef struct hafti_http_stream hafti_http_stream_t;

/* The operations of a stream over TCP, or TLS. They return as the functions of haft/io.h do. */
typedef struct {
    ssize_t (*read_lent)(hafti_http_stream_t *stream, const void **bytes);
    int (*write_all)(hafti_http_stream_t *stream, const void *buffer, size_t size);
    int (*shutdown)(hafti_http_stream_t *stream, int how);
    void (*close)(hafti_http_stream_t *stream);
    /* Writes what has room, without a wait: how many bytes, or an error; NULL: it cannot. */
    ssize_t (*write_now)(hafti_http_stream_t *stream, const void *buffer, size_t size);
    /* Writes a part: how many bytes. It may keep the last ones for `flush`. After -ETIMEDOUT it can
       be called again. NULL: write_all ends by itself in the time that the limits grant. */
    ssize_t (*write)(hafti_http_stream_t *stream, const void *buffer, size_t size);
    /* Writes what `write` has kept; can be called again likewise. NULL: nothing is kept. */
    int (*flush)(hafti_http_stream_t *stream);
    /* The same, without a wait: 0: nothing is kept, so `write` does not wait either; -EAGAIN. */
    int (*flush_now)(hafti_http_stream_t *stream);
    /* Whether something has been read of the descriptor that read_lent has not given yet; NULL:
       never. */
    bool (*has_unread)(hafti_http_stream_t *stream);
    /* Like haft_io_send_file; NULL: the bytes are read, and written. */
    ssize_t (*send_file)(hafti_http_stream_t *stream, int file, int64_t *offset, size_t size);
} hafti_http_stream_operations_t;

struct hafti_http_stream {
    const hafti_http_stream_operations_t *operations;
    const hafti_http_stream_operations_t *inner; /* of a client: below those (client_taped.c) */
    int descriptor;
    haft_tls_t *tls;  /* NULL: without */
    const void *lent; /* has the bytes from `at` to `end`, which nobody has taken yet */
    const char *at, *end;
    haft_io_event_t *gone; /* set when the peer has gone; NULL: only the descriptor shows that */
    uint64_t sent;         /* bytes that have been written within limits */
    hafti_http_patience_t patience; /* of those writes */
    bool is_unkept;                 /* its operations are no part of a request's record (kept.c) */
    bool knows_peer;
    char peer[HAFTI_HTTP_ADDRESS]; /* where it is known; "": it has no address */
};

void hafti_http_stream_open(hafti_http_stream_t *stream, int descriptor);
void hafti_http_stream_close(hafti_http_stream_t *stream);
/* Reads more when all bytes have been taken: how many there are, 0 at the end, or an error. Not
   later than `deadline`. */
ssize_t hafti_http_stream_fill(hafti_http_stream_t *stream, int64_t deadline);
/* Whether all bytes that have been read were taken, so that the task may rest until more come. */
bool hafti_http_stream_is_drained(hafti_http_stream_t *stream);
int hafti_http_stream_write(hafti_http_stream_t *stream, const void *bytes, size_t size,
                            int64_t deadline);
/* Writes all within the limits' time. 0 or an error. */
int hafti_http_stream_write_within(hafti_http_stream_t *stream, const haft_http_limits_t *limits,
                                   const void *bytes, size_t size);
/* Sends up to `size` bytes of a file, from `*offset` on, within the limits' time: how many; 0 at
   its end. */
ssize_t hafti_http_stream_send_file(hafti_http_stream_t *stream, const haft_http_limits_t *limits,
                                    int file, int64_t *offset, size_t size);

/* ---- secure.c: TLS ---- */

/* Makes an unused stream one over TLS; a client gives the server's `host`, a server NULL. */
void hafti_http_stream_secure(hafti_http_stream_t *stream, haft_tls_context_t *context,
                              const char *host);
/* The mistake in a context for a server, and what to write instead; NULL: none. */
const char *hafti_http_secure_mistake(const haft_tls_context_t *context);
/* Called by a client: it does not offer HTTP/2. */
int hafti_http_stream_offer_http1(hafti_http_stream_t *stream);
/* Makes the handshake. */
int hafti_http_stream_agree(hafti_http_stream_t *stream, int64_t deadline);
/* Whether the handshake has agreed on HTTP/2. */
bool hafti_http_stream_chose_http2(const hafti_http_stream_t *stream);
/* Tells the peer that nothing more comes (close_notify), as far as there is room: before a
   connection is closed on which no message is under way (RFC 9112, section 9.8). */
void hafti_http_stream_send_end(hafti_http_stream_t *stream);
/* The reason why the last operation has failed with this code. */
const char *hafti_http_stream_failure(const hafti_http_stream_t *stream, int code);

#endif
