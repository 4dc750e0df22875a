/* SPDX-License-Identifier: MIT */
/*
 * What the files of libhaft-http share. (Those of HTTP/2 alone are in http2_frames.h.) From below: stream.c (bytes of a connection), memory.c
 * (what lives as long as a message), message.c (a head, parsed and checked), body.c, text.c
 * (decoding), accept.c (what a client wants), routes.c, compress.c and decompress.c, answer.c,
 * request.c, conditions.c and files.c, events.c, handshake.c and websocket.c, connection.c (one
 * request after the other), server.c.
 *
 * Memory of a connection. While it waits for a request it has its frame on the task's stack, and
 * nothing else. A request has a block of haft_io_lend for what is known of it, so that stacks stay
 * within a page, and one for its head, what is left of which is its memory (memory.c), also for the
 * table of its fields and the parts of its path: blocks that
 * connections use by turns stay in the processor's cache, and their stacks do not. What a
 * connection reads of the network is lent by haft_io_read_lent; what it answers is gathered in a
 * block of haft_io_lend, which haft_io_exchange gives back. Blocks are recycled by libhaft-io, so
 * no request of usual size allocates.
 */
#ifndef HAFT_HTTP_INTERNAL_H
#define HAFT_HTTP_INTERNAL_H

#include <haft/http.h>

#include <llhttp.h>

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum {
    HAFTI_HTTP_FIELDS = 100,
    HAFTI_HTTP_HEAD = 16384,
    HAFTI_HTTP_CAPTURES = 16,
    HAFTI_HTTP_PARTS = 64,   /* of a path */
    HAFTI_HTTP_ADDRESS = 46, /* of a peer, as text */
};
_Static_assert(HAFTI_HTTP_HEAD < (int)HAFT_IO_LENT_SIZE && HAFTI_HTTP_HEAD <= UINT16_MAX,
               "a head fits in a block, and has offsets of 16 bits");

typedef struct {
    const char *bytes;
    size_t size;
} hafti_http_text_t;

/* ---- stream.c: a connection as a stream, and what has been read of it ------------------------ */

typedef struct hafti_http_stream hafti_http_stream_t;

/* How bytes come and go: over TCP, or TLS. They return as the functions of haft/io.h do. */
typedef struct {
    ssize_t (*read_lent)(hafti_http_stream_t *stream, const void **bytes);
    /* Writes all of the buffer, and then is read_lent; `*bytes` may be the buffer. */
    ssize_t (*exchange)(hafti_http_stream_t *stream, const void *buffer, size_t size,
                        const void **bytes);
    int (*write_all)(hafti_http_stream_t *stream, const void *buffer, size_t size);
    int (*shutdown)(hafti_http_stream_t *stream, int how);
    void (*close)(hafti_http_stream_t *stream);
    /* As haft_io_send_file; NULL: the bytes are read, and written. */
    ssize_t (*send_file)(hafti_http_stream_t *stream, int file, int64_t *offset, size_t size);
} hafti_http_stream_operations_t;

struct hafti_http_stream {
    const hafti_http_stream_operations_t *operations;
    int descriptor;
    haft_tls_t *tls;  /* NULL: without */
    const void *lent; /* has the bytes from `at` to `end`, which nobody has taken yet */
    const char *at, *end;
    haft_io_event_t *gone; /* is set when the peer has gone; NULL: only the descriptor tells that */
    bool knows_peer;
    char peer[HAFTI_HTTP_ADDRESS]; /* where it is known; "": it has no address */
};

void hafti_http_stream_open(hafti_http_stream_t *stream, int descriptor);
void hafti_http_stream_close(hafti_http_stream_t *stream);
/* Reads more when all has been taken: how many bytes there are, 0 at the end, or an error. Not later than `deadline`. */
ssize_t hafti_http_stream_fill(hafti_http_stream_t *stream, int64_t deadline);
/* The same, after writing all `size` bytes of a block, which is given back. */
ssize_t hafti_http_stream_exchange(hafti_http_stream_t *stream, const void *block, size_t size,
                                   int64_t deadline);
int hafti_http_stream_write(hafti_http_stream_t *stream, const void *bytes, size_t size,
                            int64_t deadline);
/* Sends up to `size` bytes of a file, from `*offset` on: how many; 0 at its end. */
ssize_t hafti_http_stream_send_file(hafti_http_stream_t *stream, int file, int64_t *offset,
                                    size_t size, int64_t deadline);

/* ---- secure.c: TLS ---------------------------------------------------------------------------- */

/* Makes a stream that nobody has used yet one over TLS; a client gives the server's
   `host`, a server NULL. */
void hafti_http_stream_secure(hafti_http_stream_t *stream, haft_tls_context_t *context,
                              const char *host);
/* Of a client: it does not offer HTTP/2. */
int hafti_http_stream_offer_http1(hafti_http_stream_t *stream);
/* The handshake. */
int hafti_http_stream_agree(hafti_http_stream_t *stream, int64_t deadline);
/* Whether the handshake has agreed on HTTP/2. */
bool hafti_http_stream_chose_http2(const hafti_http_stream_t *stream);
/* Why the last operation has failed with this code. */
const char *hafti_http_stream_failure(const hafti_http_stream_t *stream, int code);

/* ---- message.c, body.c, memory.c: a request, or the answer to one ---------------------------- */

typedef struct {
    uint16_t name, name_size, value, value_size; /* in the head */
} hafti_http_field_t;

typedef enum {
    HAFTI_HTTP_NO_BODY,
    HAFTI_HTTP_SIZED,
    HAFTI_HTTP_CHUNKED,
    HAFTI_HTTP_UNTIL_CLOSE, /* of an answer */
} hafti_http_body_kind_t;

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
    hafti_http_field_t *fields; /* room for as many as the limit says, once the head has come */
    bool too_many_fields;
    int status; /* with which a message that is not good is answered */

    hafti_http_body_kind_t body;
    bool answers_head;   /* so it has no body; set before it is read */
    bool takes_connect;  /* a request may be CONNECT; set before it is read */
    bool waits_for_word; /* before it sends the body */
    bool is_complete;    /* the body has come to its end */
    bool in_trailers;    /* the last chunk has come */
    char last;           /* byte of the trailers */
    int error;           /* of the body; sticky */
    uint64_t limit;      /* of the body */
    uint64_t left;       /* bytes of a sized body */
    uint64_t got;        /* bytes of body */
    uint64_t framing;    /* bytes of a chunked body that are not of its chunks' data */
    int64_t waited;      /* nanoseconds */
    char *into;          /* where the body's bytes go while the parser runs */
    size_t into_size;
    char *trailers; /* name, '\0', value, '\0', and so on */
    size_t trailers_size;
    hafti_http_decoder_t *decoder; /* of the body; NULL: it is read as it came */
} hafti_http_message_t;

/* Begins a message. Afterwards, and at the end of what it began, hafti_http_message_end. */
void hafti_http_message_begin(hafti_http_message_t *message, hafti_http_stream_t *stream,
                              const haft_http_limits_t *limits, llhttp_type_t type);
void hafti_http_message_end(hafti_http_message_t *message);
/*
 * Reads a head and checks it. 0; or an error of the stream, -EPIPE at its end; or -EBADMSG, and `message->status` is
 * what the client gets.
 */
int hafti_http_message_read_head(hafti_http_message_t *message);
ssize_t hafti_http_message_read(hafti_http_message_t *message, void *buffer, size_t size);
/* The same, as it came, and through its decoder. */
ssize_t hafti_http_message_read_plain(hafti_http_message_t *message, void *buffer, size_t size);
ssize_t hafti_http_message_decode(hafti_http_message_t *message, void *buffer, size_t size);
void hafti_http_decoder_free(hafti_http_decoder_t *decoder);
/* As haft_http_body. */
ssize_t hafti_http_message_read_all(hafti_http_message_t *message, char **body);
/* Reads up to `most` bytes that are left of the body, so that the next message can be read: whether it can. */
bool hafti_http_message_skip(hafti_http_message_t *message, uint64_t most);
/* The value of the next field of this name, from the one of number `*from` on, which becomes the one behind it. */
bool hafti_http_message_field(const hafti_http_message_t *message, const char *name, size_t *from,
                              hafti_http_text_t *value);
/* Whether its sender wants the connection to go on (9112, 9.3). */
bool hafti_http_message_is_kept(const hafti_http_message_t *message);
/* Checks the fields that say how the message is to be read, once they are there: 0, or -EBADMSG. */
int hafti_http_message_check(hafti_http_message_t *message);
/* All fields of a name, as haft_http_header. */
const char *hafti_http_message_header(hafti_http_message_t *message, const char *name);
bool hafti_http_message_header_at(hafti_http_message_t *message, size_t number, const char **name,
                                  const char **value);
/* The body cannot be read any more; this is the error, which also says with which status. */
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

/* A time from now on; HAFT_IO_FOREVER has no end. */
static inline int64_t hafti_http_deadline(int64_t now, int64_t time) {
    return time == HAFT_IO_FOREVER ? time : now + time;
}

/* ---- text.c --------------------------------------------------------------------------------- */

bool hafti_http_is_token(const char *text, size_t size);
bool hafti_http_is_value(const char *text, size_t size); /* of a field */
bool hafti_http_is_target(hafti_http_text_t text);
/* A host, with or without a port (RFC 3986, 3.2.2): whether its bytes are of those. */
bool hafti_http_is_authority(hafti_http_text_t text);
/* Ignoring case. */
static inline bool hafti_http_same(const char *text, size_t size, const char *word) {
    return strlen(word) == size && strncasecmp(text, word, size) == 0;
}
/* The next part of a list that a comma, or another byte, divides, without spaces around it; false at the end. */
bool hafti_http_next_part(hafti_http_text_t *list, char divider, hafti_http_text_t *part);
/* Whether the word is a part that commas divide, ignoring case. */
bool hafti_http_lists(hafti_http_text_t list, const char *word);
/* The next of the lines "Name: value\r\n" that an answer's fields and trailers are kept as, from `*at`
   on; false: there is none. */
bool hafti_http_next_line(hafti_http_text_t lines, size_t *at, hafti_http_text_t *name,
                          hafti_http_text_t *value);
/* Decodes %XX, and with `plus` '+' as a space, to `into`, which has room for `size` bytes: how many there are, or
   -EINVAL: a % is not followed by two digits, or it means '\0'. */
ssize_t hafti_http_decode(const char *bytes, size_t size, bool plus, char *into);
/* The first parameter of this name of a=b&c=d, decoded. */
const char *hafti_http_parameter(hafti_http_message_t *message, const char *bytes, size_t size,
                                 const char *name);

/* ---- accept.c ------------------------------------------------------------------------------- */

/* The weight that a list of what a client accepts gives to the name, in thousandths; -1: none. */
int hafti_http_weight_in(const char *accepted, const char *name);

/* ---- date.c, types.c ------------------------------------------------------------------------ */

enum { HAFTI_HTTP_DATE = 29 }; /* bytes */
void hafti_http_put_date(time_t time, char into[HAFTI_HTTP_DATE + 1]);
bool hafti_http_parse_date(const char *text, time_t *time);
/* The media type for a file of this name. */
const char *hafti_http_type_of(const char *name);

/* ---- routes.c ------------------------------------------------------------------------------- */

typedef struct hafti_http_node hafti_http_node_t;
typedef struct hafti_http_entry {
    struct hafti_http_entry *next;
    const char *method;
    haft_http_handler_t *handler;
    void *argument;
    const haft_http_server_t *owner; /* a server, or a group of its routes */
} hafti_http_entry_t;

typedef struct {
    const hafti_http_entry_t *entries; /* of the path, for all methods; NULL: it has no route */
    size_t count;
    struct {
        const char *name;
        hafti_http_text_t text; /* as it came */
    } captures[HAFTI_HTTP_CAPTURES];
} hafti_http_match_t;

/* Takes method, handler, argument and owner of `entry`. */
int hafti_http_routes_add(hafti_http_node_t **routes, const char *path,
                          const hafti_http_entry_t *entry);
void hafti_http_routes_free(hafti_http_node_t *routes);
/* 0, or -EINVAL: that is no path; -EMSGSIZE: it has too many parts; -ENOMEM. */
int hafti_http_routes_find(const hafti_http_node_t *routes, hafti_http_message_t *message,
                           hafti_http_text_t path, hafti_http_match_t *match);
const hafti_http_entry_t *hafti_http_entry_of(const hafti_http_match_t *match, const char *method);

/* ---- answer.c ------------------------------------------------------------------------------- */

typedef struct hafti_http_encoder hafti_http_encoder_t;
typedef enum { HAFTI_HTTP_NOT_BEGUN, HAFTI_HTTP_BEGUN, HAFTI_HTTP_ENDED } hafti_http_progress_t;

typedef struct {
    char *block; /* lent: what is gathered */
    size_t size;
    char *fields; /* lines for the head, in the request's memory */
    size_t fields_size, fields_room;
    char *trailers;
    size_t trailers_size, trailers_room;
    hafti_http_encoder_t *encoder; /* of what the handler writes; NULL: it is sent as it is */
    uint64_t left;                 /* bytes of a body whose size is known */
    uint64_t written;              /* bytes of the body, as they are sent */
    int status;
    hafti_http_progress_t progress;
    bool is_plain;     /* it is not to be compressed */
    bool chunked;      /* its size is unknown, and it has an end of its own */
    bool without_body; /* what is written is not sent */
    bool failed;       /* the client has not got all of it, and never will */
    bool is_sent;      /* the client may have seen some of it */
    bool is_stream;    /* what the connection has become */
    bool has_events;   /* of which the last, or a comment, was sent at this time: */
    int64_t last_event;
} hafti_http_answer_t;

/*
 * How a version of HTTP says what an answer is. The bytes of its body are gathered for every
 * version, and sent to the message's stream; bodies of requests are read from there. So these five,
 * and the operations of the stream, are all in which versions differ.
 */
typedef struct {
    /* The head; `type` may be NULL. Nothing need be sent before bytes of the body are, or the end. */
    int (*head)(haft_http_request_t *request, const char *type, uint64_t size);
    /* A piece, which is not empty, of a body of unknown size. */
    int (*piece)(haft_http_request_t *request, const void *bytes, size_t size);
    /* The answer is whole; what was gathered is sent afterwards. */
    int (*end)(haft_http_request_t *request);
    /* As hafti_http_answer_stream. */
    int (*become_stream)(haft_http_request_t *request, const char *line, const char *protocol);
    /* 100 (Continue). */
    int (*say_continue)(haft_http_request_t *request);
} hafti_http_framing_t;

struct haft_http_request {
    haft_http_server_t *server;
    const hafti_http_framing_t *framing;
    const char *method;
    bool is_head;
    bool keeps; /* the connection, after this request */
    int64_t begun,
        begun_at; /* by the clock on the wall, and by haft_io_now(); if the server notes requests */
    bool is_running; /* its handler: where the request ends meanwhile, the stack is being unwound */
    hafti_http_answer_t answer;
    struct hafti_http_protocol *protocol; /* that the library speaks after an upgrade, or NULL */
    hafti_http_match_t match;
    char *form; /* the body */
    size_t form_size;
    const char *failure;
    hafti_http_message_t message;
};

void hafti_http_answer_begin(haft_http_request_t *request);
void hafti_http_answer_end(haft_http_request_t *request);
/* Completes what a handler has left open. 0, or an error: then the connection is broken off. */
int hafti_http_answer_complete(haft_http_request_t *request);
/* Answers without a handler: a line that says what is wrong. */
int hafti_http_answer_status(haft_http_request_t *request, int status);
int hafti_http_send_continue(haft_http_request_t *request);
/* Sends the begin of a head, which ends with `protocol`, the fields, and nothing more. */
int hafti_http_answer_stream(haft_http_request_t *request, int status, const char *line,
                             const char *protocol);
int hafti_http_answer_gather(haft_http_request_t *request, const void *bytes, size_t size);
/* When a write of so many bytes has to be done. */
int64_t hafti_http_write_deadline(const haft_http_limits_t *limits, size_t size);
extern const hafti_http_framing_t hafti_http1_framing;
/* Where it ends. */
char *hafti_http_put_number(char *to, uint64_t number, unsigned base);
/* The present date; HAFTI_HTTP_DATE bytes. */
void hafti_http_put_now(char *into);
/* Sends bytes at once, within the time of a write. */
int hafti_http_answer_send(haft_http_request_t *request, const void *bytes, size_t size);

/* Gathers bytes of the body, as they are. */
int hafti_http_answer_put(haft_http_request_t *request, const void *bytes, size_t size);
/* Whether an answer that is about to begin is compressed: then its head says so, and `*size` is not
   known any more. 0, or an error. */
int hafti_http_choose_encoding(haft_http_request_t *request, int status, const char *type,
                               uint64_t *size);
void hafti_http_encoder_free(hafti_http_encoder_t *encoder);

/* Bytes of a file, for an answer of just so many. */
int hafti_http_write_file(haft_http_request_t *request, int file, int64_t offset, uint64_t size);

/* ---- upgrade.c, handshake.c, websocket.c ----------------------------------------------------- */

/* Whether the client asks for this protocol. */
bool hafti_http_asks_to_upgrade(const haft_http_request_t *request, const char *protocol);
/*
 * A protocol that the connection has been upgraded to, as its connection sees it. These are
 * pointers, so that a static program without WebSocket needs no wslay: Debian has it as a shared
 * library only.
 */
typedef struct hafti_http_protocol {
    /* When the handler has returned this code: ends what is left. The code that counts. */
    int (*finish)(struct hafti_http_protocol *self, int code);
    void (*free)(struct hafti_http_protocol *self); /* also where the stack is unwound */
} hafti_http_protocol_t;

/* ---- conditions.c, files.c ------------------------------------------------------------------ */

/* Which version of it a representation is. */
typedef struct {
    char tag[80]; /* with its quotes */
    bool is_weak; /* the version may have had other bytes */
    time_t modified;
} hafti_http_version_t;

typedef struct {
    uint64_t first, count;
} hafti_http_range_t;

/* 0; or the status that the request gets instead: 304 or 412. */
int hafti_http_precondition(haft_http_request_t *request, const hafti_http_version_t *version);
/* 206; 200: all of it; 416: it has no such range. */
int hafti_http_range(haft_http_request_t *request, const hafti_http_version_t *version,
                     uint64_t size, hafti_http_range_t *range);

typedef struct hafti_http_files hafti_http_files_t;
void hafti_http_files_free(hafti_http_files_t *files);

/* ---- listen.c ------------------------------------------------------------------------------- */

enum { HAFTI_HTTP_LISTENERS = 64 };
typedef struct {
    size_t count;
    int descriptors[HAFTI_HTTP_LISTENERS];
    char *places[HAFTI_HTTP_LISTENERS]; /* as the options have it */
    bool inherits;                      /* some from the process before */
    size_t passed; /* how many a restart passes on, also when they are the server's */
    char *paths;   /* of Unix sockets, to be removed, each with its '\0' */
    size_t paths_size;
} hafti_http_listeners_t;

/* Listens where the options say. 0, or an error, which it has logged. */
int hafti_http_listen(haft_http_server_t *server, const haft_http_run_options_t *options,
                      hafti_http_listeners_t *listeners);
/* Closes them, and removes the paths. */
void hafti_http_forget_listeners(hafti_http_listeners_t *listeners);

/* ---- restart.c ------------------------------------------------------------------------------ */

/* Whether this process has got listeners from the one before, and nobody has asked yet. */
bool hafti_http_inherits(void);
/* Stores those for this place: how many. */
int hafti_http_take_inherited(const char *place, int *descriptors, int most);
/* Closes those that nobody has taken. */
void hafti_http_forget_inherited(void);
/* Tells the process before, if there is one, that this one serves. */
void hafti_http_tell_ready(void);

/* ---- peer.c, clients.c, access.c, counters.c ------------------------------------------------ */

/* As one of IPv6, which it may not be; false: the peer has no address. */
bool hafti_http_peer_of(int descriptor, struct in6_addr *address);

typedef struct hafti_http_proxies hafti_http_proxies_t;
void hafti_http_proxies_free(hafti_http_proxies_t *proxies);
bool hafti_http_is_proxy(const hafti_http_proxies_t *proxies, const struct in6_addr *address);
/* Whether the peer of the connection is one. */
bool hafti_http_is_from_proxy(const hafti_http_proxies_t *proxies, int descriptor);
/* Reads what a proxy says before anything else, within the time of a head; then the stream knows
   its peer. An error: the connection is to be closed. */
int hafti_http_read_proxy_header(const haft_http_server_t *server, hafti_http_stream_t *stream);

typedef struct hafti_http_clients hafti_http_clients_t;
typedef struct hafti_http_client hafti_http_client_t;
/* Counts a connection: `*client` is for hafti_http_clients_leave; NULL: not counted. False: its
   client has enough. */
bool hafti_http_clients_enter(haft_http_server_t *server, int descriptor,
                              hafti_http_client_t **client);
void hafti_http_clients_leave(haft_http_server_t *server, hafti_http_client_t *client);

typedef struct {
    haft_http_log_format_t format;
    haft_http_log_t *function;
    void *argument;
} hafti_http_access_log_t;

typedef struct {
    _Atomic uint64_t accepted, requests[6], http2_requests, bytes, duration,
        durations[HAFT_HTTP_DURATIONS];
} hafti_http_counts_t;

void hafti_http_count_request(hafti_http_counts_t *counts, const haft_http_request_t *request,
                              const haft_http_access_t *access);
/* Of a server with notes_requests: when the head has come, and when the answer is written or
   broken off. */
void hafti_http_begin_to_note(haft_http_request_t *request);
void hafti_http_note_request(haft_http_request_t *request);

/* ---- connection.c, server.c ----------------------------------------------------------------- */

/* A connection's place in its server's list. */
typedef struct hafti_http_link {
    struct hafti_http_link *next, **back;
    hafti_http_stream_t *stream;
    atomic_bool idle;     /* it waits for a request */
    atomic_bool is_fresh; /* it has had none yet, so its first may be on the way */
    /* Called when the server stops, under its mutex; it must not wait. NULL: the stream is shut for
       reading if the connection is idle. */
    void (*stop)(void *argument);
    void *argument;
} hafti_http_link_t;

typedef struct hafti_http_around {
    struct hafti_http_around *inner;
    haft_http_around_t *function;
    const haft_handler_t *handler; /* of haft_http_handle, instead of a function; or NULL */
    void *argument;
} hafti_http_around_t;

/* A group of routes is one, too, of which only what stands before the routes is used. */
struct haft_http_server {
    haft_http_server_t *parent;           /* of a group; NULL: it is none */
    haft_http_server_t *groups, *sibling; /* its groups; the next one of its parent's */
    char *prefix;                         /* of a group, with those of the groups around it */
    hafti_http_around_t *around;
    hafti_http_files_t *files;
    hafti_http_node_t *routes;
    hafti_http_entry_t connect; /* its handler may be NULL */
    haft_http_limits_t limits;
    haft_http_compression_t compression;
    haft_http_log_t *log;
    void *log_argument;
    bool limits_loopback; /* its connections, too */
    int announced
        [HAFTI_HTTP_LISTENERS]; /* listeners whose connections begin with a proxy's header */
    size_t announced_count;
    hafti_http_proxies_t *proxies; /* that are trusted; may be NULL */
    bool notes_requests;           /* for the hook, or the counters */
    bool counts;
    haft_http_access_hook_t *access_hook;
    void *access_argument;
    hafti_http_access_log_t access_log; /* what the hook writes, if it is the library's */
    hafti_http_counts_t counters;
    haft_tls_context_t *tls;           /* NULL: without */
    hafti_http_listeners_t *listening; /* of haft_http_run */
    atomic_bool restarting;
    atomic_bool stopping; /* connections end after their request */
    atomic_bool cutting;  /* and now */
    atomic_int port;
    haft_io_event_t stop, ended; /* ended: the last open connection has */
    haft_io_semaphore_t places;  /* for further connections */
    atomic_size_t open;
    pthread_mutex_t mutex; /* of what follows; never held over a wait */
    hafti_http_clients_t *clients;
    hafti_http_link_t *connections;
};

/* So long a server that stops waits for the first request of a connection. */
enum { HAFTI_HTTP_FRESH_MILLISECONDS = 250 };
static inline int64_t hafti_http_fresh_until(void) {
    return haft_io_now() + HAFTI_HTTP_FRESH_MILLISECONDS * HAFT_IO_MILLISECOND;
}

/* Serves what comes on a connection until its end, and closes it. `is_announced`: it begins with a
   proxy's header. */
void hafti_http_connection_serve(haft_http_server_t *server, int descriptor, bool is_announced);
/* A request on `stream`, which the end of `request` does not close. Its head comes next. */
void hafti_http_request_begin(haft_http_request_t *request, haft_http_server_t *server,
                              hafti_http_stream_t *stream);
/* Has it answered; `code` is what was said of its head: 0, or -EBADMSG. */
void hafti_http_request_answer(haft_http_request_t *request, int code);
/* Also where the stack is unwound. */
void hafti_http_request_end(haft_http_request_t *request);
/* The server of a group. */
haft_http_server_t *hafti_http_root_of(haft_http_server_t *server);
void hafti_http_server_enter(haft_http_server_t *server, hafti_http_link_t *link);
void hafti_http_server_leave(haft_http_server_t *server, hafti_http_link_t *link);
/* Sets what is called when the server stops, and calls it if that stops already. */
void hafti_http_server_on_stop(haft_http_server_t *server, hafti_http_link_t *link,
                               void (*stop)(void *argument), void *argument);
/* A line for a handler that has failed. */
void hafti_http_log_failure(const haft_http_server_t *server, const haft_io_failure_t *failure);
__attribute__((format(printf, 2, 3))) void hafti_http_log(const haft_http_server_t *server,
                                                          const char *format, ...);

#endif
