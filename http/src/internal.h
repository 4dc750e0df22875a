/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of libhaft-http share from a request on: its answer, its server. The
 * floors below have text.h, stream.h, codings.h, message.h and routes.h, those above http2.h,
 * client.h and websocket.h (tools/floors.txt).
 *
 * Memory of a connection. While it waits for a request it has a record, and no stack
 * (haft_io_rest). A request has a block of haft_io_lend for its record, so that stacks stay within
 * a page, and one for its head, the rest of which is its memory (memory.c), also for the table of
 * its fields and the parts of its path: blocks that connections use by turns stay in the
 * processor's cache, and their stacks do not. A connection reads from the network by
 * haft_io_read_lent, and gathers its answer in a block of haft_io_lend, which is given back when it
 * has been sent. Blocks are recycled by libhaft-io, so no request of usual size allocates.
 */
#ifndef HAFTI_HTTP_INTERNAL_H
#define HAFTI_HTTP_INTERNAL_H

#include "codings.h"
#include "listen.h"
#include "routes.h"

#include <haft/shown.h>

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- gathering.c, fields.c, http1.c, compress.c, answer.c ----------------------------------- */

typedef struct hafti_http_encoder hafti_http_encoder_t;
typedef enum { HAFTI_HTTP_NOT_BEGUN, HAFTI_HTTP_BEGUN, HAFTI_HTTP_ENDED } hafti_http_progress_t;

typedef struct {
    char *block; /* lent: what is gathered */
    size_t size;
    char *fields; /* lines for the head, in the request's memory */
    size_t fields_size, fields_room;
    size_t lasting_size; /* of the first of them, which stay when an answer is discarded */
    char *trailers;
    size_t trailers_size, trailers_room;
    hafti_http_encoder_t *encoder; /* of what the handler writes; NULL: it is sent as it is */
    uint64_t left;                 /* bytes of a body whose size is known */
    uint64_t written;              /* bytes of the body, as they are sent */
    int status;
    hafti_http_progress_t progress;
    bool has_date;     /* one of the fields is Date, which a proxy has passed on */
    bool is_plain;     /* it is not to be compressed */
    bool chunked;      /* its size is unknown, and it has an end of its own */
    bool without_body; /* what is written is not sent */
    bool failed;       /* the client will not get all of it */
    bool is_sent;      /* the client may have seen some of it */
    bool is_stream;    /* what the connection has become */
    bool has_events;   /* of which the last, or a comment, was sent at this time: */
    int64_t last_event;
} hafti_http_answer_t;

/*
 * The functions by which a version of HTTP writes an answer. The bytes of its body are gathered for
 * every version, and sent to the message's stream; bodies of requests are read from there. So these
 * five, and the operations of the stream, are all in which versions differ.
 */
typedef struct {
    /* Writes the head; `type` may be NULL. Nothing need be sent before bytes of the body, or the
       end, are. */
    int (*head)(haft_http_request_t *request, const char *type, uint64_t size);
    /* Writes a piece, which is not empty, of a body of unknown size. */
    int (*piece)(haft_http_request_t *request, const void *bytes, size_t size);
    /* Ends the answer; the gathered bytes are sent afterwards. */
    int (*end)(haft_http_request_t *request);
    /* Like hafti_http_answer_stream. */
    int (*become_stream)(haft_http_request_t *request, const char *line, const char *protocol);
    /* Sends a head of status 1xx with these lines, at once. */
    int (*inform)(haft_http_request_t *request, int status, const char *lines, size_t size);
} hafti_http_framing_t;

/* The request that a task of the server serves: haft_io_own_get() of that task. */
typedef struct {
    haft_http_request_t *request; /* whose handler runs; NULL: none does */
    haft_io_scope_t *scope;       /* of the task, or of its connection */
} hafti_http_served_t;
typedef struct hafti_http_tasks hafti_http_tasks_t;

struct haft_http_request {
    haft_http_server_t *server;
    const hafti_http_framing_t *framing;
    const char *method;
    bool is_head;
    bool keeps; /* the connection, after this request */
    int64_t begun,
        begun_at; /* by the clock on the wall, and by haft_io_now(); if the server notes requests */
    hafti_http_served_t *served; /* how its handler's task is known */
    hafti_http_tasks_t *tasks;   /* that its handler has spawned; NULL: none */
    haft_http_thrown_t *thrown;  /* by a handler, on its way through the middleware; or NULL */
    int refused;                 /* the status of haft_http_request_refuse; 0: none */
    const char *refusal;         /* its text; NULL: the status's phrase */
    bool is_traced;              /* its task has its trace */
    bool is_running; /* its handler: where the request ends meanwhile, the stack is being unwound */
    bool is_unwound; /* its handler, whose answer was taken back: middleware may have answered */
    hafti_http_answer_t answer;
    struct hafti_http_protocol *protocol; /* that the library speaks after an upgrade, or NULL */
    hafti_http_match_t match;
    char *form; /* the body */
    size_t form_size;
    const char *failure;
    struct hafti_http_kept *kept; /* its record, if it is kept, while its handler runs; or NULL */
    hafti_http_bytes_t *copy;     /* `kept`: gets the answer's body, as the handler writes it */
    hafti_http_message_t message;
};

void hafti_http_answer_end(haft_http_request_t *request);
/* Completes what a handler has left open. 0, or an error: then the connection is broken off. */
int hafti_http_answer_complete(haft_http_request_t *request);
/* Answers without a handler: with a line that names the status. */
int hafti_http_answer_status(haft_http_request_t *request, int status);
/* Frees the exception that is carried (haft_http_request_carry), because no middleware takes it any
   more. */
void hafti_http_forget_thrown(haft_http_request_t *request);
/* Whether less of the body has been written than the head has announced. */
static inline bool hafti_http_answer_lacks_bytes(const hafti_http_answer_t *answer) {
    return answer->left != HAFT_HTTP_UNKNOWN_SIZE && answer->left != 0 && !answer->without_body;
}
/* Forgets the answer, of which nothing was sent, but for its lasting fields. */
void hafti_http_answer_discard(haft_http_request_t *request);
const char *hafti_http_reason_of(int status); /* "": it has none */
int hafti_http_send_continue(haft_http_request_t *request);
/* Sends a head of status 1xx before that of the answer, with these lines as its fields. Does
   nothing where the answer has begun, or the client's version has no such heads. */
int hafti_http_answer_inform(haft_http_request_t *request, int status, const char *lines,
                             size_t size);
/* Sends the begin of a head, which ends with `protocol`, the fields, and nothing more. */
int hafti_http_answer_stream(haft_http_request_t *request, int status, const char *line,
                             const char *protocol);
int hafti_http_answer_gather(haft_http_request_t *request, const void *bytes, size_t size);
/* Sends what is gathered, and a head that has not been sent yet. */
int hafti_http_answer_send_gathered(haft_http_request_t *request);
/* Returns a place in the block with room for `size` bytes, at most HAFT_IO_LENT_SIZE, or NULL, with
   the error in `*code`. The block may be sent to make room. */
char *hafti_http_answer_room(haft_http_request_t *request, size_t size, int *code);
/* Marks the answer as failed: the client gets no more of it. Returns the code. */
int hafti_http_answer_fail(haft_http_request_t *request, int code);
extern const hafti_http_framing_t hafti_http1_framing;
/* Writes the decimal digits of a number; returns their end. */
char *hafti_http_put_number(char *to, uint64_t number);
/* Writes the present date; HAFTI_HTTP_DATE bytes. */
void hafti_http_put_now(char *into);
/* Sends bytes at once, within the time of a write. */
int hafti_http_answer_send(haft_http_request_t *request, const void *bytes, size_t size);

/* Like haft_http_answer_set_header, but for a field of another server's answer, also Date, which
   then replaces the library's. */
int hafti_http_answer_pass_header(haft_http_request_t *request, const char *name,
                                  const char *value);
/* The next field that the handler has set, from `*at` on, whose name is `name`. */
bool hafti_http_answer_field(const hafti_http_answer_t *answer, size_t *at, const char *name,
                             hafti_http_text_t *value);
/* Gathers bytes of the body, as they are. */
int hafti_http_answer_put(haft_http_request_t *request, const void *bytes, size_t size);
/* Decides whether an answer that is about to begin is compressed: then its head names the coding,
   and `*size` is not known any more. 0, or an error. */
int hafti_http_choose_encoding(haft_http_request_t *request, int status, const char *type,
                               uint64_t *size);
/* Gives bytes of the body to the answer's encoder, and the encoded bytes to the answer. */
int hafti_http_encode(haft_http_request_t *request, const void *bytes, size_t size,
                      hafti_http_step_t step);
void hafti_http_encoder_free(hafti_http_encoder_t *encoder);

/* Writes bytes of a file, for an answer of exactly this size. */
int hafti_http_write_file(haft_http_request_t *request, int file, int64_t offset, uint64_t size);

/* ---- kept.c: requests that are kept, or replayed -------------------------------------------- */

/* How a server that is served treats requests. */
typedef enum { HAFTI_HTTP_FORGETS, HAFTI_HTTP_KEEPS, HAFTI_HTTP_REPLAYS } hafti_http_keeping_t;
/* Called before and after the handler and the middleware of a request, where the server does not
   forget. */
void hafti_http_kept_begin(haft_http_request_t *request);
/* `is_lost`: its handler has failed, and the stack is being unwound. */
void hafti_http_kept_end(haft_http_request_t *request, bool is_lost);
/* Forgets a request whose connection has become a stream, which is not on the record, and may last
   long. */
void hafti_http_kept_forget(haft_http_request_t *request);

/* ---- upgrade.c, handshake.c, websocket.c ----------------------------------------------------- */

/* Whether the client asks for this protocol. */
bool hafti_http_asks_to_upgrade(const haft_http_request_t *request, const char *protocol);
/*
 * A protocol that the connection has been upgraded to, as its connection sees it. These are
 * pointers, so that a static program without WebSocket needs no wslay: Debian has it as a shared
 * library only.
 */
typedef struct hafti_http_protocol {
    /* Called when the handler has returned this code: ends the protocol, and returns the code that
       counts. */
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
/* 206; 200: all of it, as one range; 416: it has no such range. Several ranges are in ascending
   order, and do not overlap. */
enum { HAFTI_HTTP_RANGES = 16 };
int hafti_http_ranges(haft_http_request_t *request, const hafti_http_version_t *version,
                      uint64_t size, hafti_http_range_t ranges[HAFTI_HTTP_RANGES], size_t *count);

/* ---- peer.c, per_address.c, access.c, counters.c -------------------------------------------- */

/* The address of the peer, in the form of IPv6; false: it has none. */
bool hafti_http_peer_of(int descriptor, struct in6_addr *address);

typedef struct hafti_http_proxies hafti_http_proxies_t;
void hafti_http_proxies_free(hafti_http_proxies_t *proxies);
bool hafti_http_is_proxy(const hafti_http_proxies_t *proxies, const struct in6_addr *address);
/* Whether the peer of the request is trusted to name the client. */
bool hafti_http_is_peer_trusted(haft_http_request_t *request);
/* Whether the peer of the connection is one. */
bool hafti_http_is_from_proxy(const hafti_http_proxies_t *proxies, int descriptor);
/* Reads the header that a proxy sends first, until the deadline; then the stream has its peer. An
   error: the connection is to be closed. */
int hafti_http_read_proxy_header(hafti_http_stream_t *stream, int64_t deadline);

typedef struct hafti_http_addresses hafti_http_addresses_t;
typedef struct hafti_http_address hafti_http_address_t;
/* Counts a connection: `*entry` is for hafti_http_addresses_leave; NULL: not counted. False: its
   address has enough. */
bool hafti_http_addresses_enter(haft_http_server_t *server, int descriptor,
                                hafti_http_address_t **entry);
void hafti_http_addresses_leave(haft_http_server_t *server, hafti_http_address_t *entry);

typedef struct {
    haft_http_log_format_t format;
    haft_http_log_t *function;
    void *argument;
} hafti_http_access_log_t;

void hafti_http_count_request(hafti_http_counts_t *counts, const haft_http_request_t *request,
                              const haft_http_access_t *access);
/* Called by a server with notes_requests: when the head has come, and when the answer is written or
   broken off. */
void hafti_http_begin_to_note(haft_http_request_t *request);
void hafti_http_note_request(haft_http_request_t *request);

/* ---- Servers -------------------------------------------------------------------------------- */

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

/* An object of a route or middleware of the library's, which lives as long as its server. */
typedef struct hafti_http_owned {
    struct hafti_http_owned *next;
    void (*free)(struct hafti_http_owned *self);
} hafti_http_owned_t;

typedef struct hafti_http_around {
    struct hafti_http_around *inner;
    haft_http_around_t *function;
    const haft_handler_t *handler; /* of haft_http_server_handle, instead of a function; or NULL */
    void *argument;
} hafti_http_around_t;

/* A task that haft_http_server_add_background has added. */
typedef struct hafti_http_background {
    struct hafti_http_background *next;
    const char *name;
    void *(*function)(void *argument);
    void *argument;
} hafti_http_background_t;

/* A group of routes is one, too, of which only what stands before the routes is used. */
struct haft_http_server {
    haft_http_server_t *parent;           /* of a group; NULL: it is none */
    haft_http_server_t *groups, *sibling; /* its groups; the next one of its parent's */
    char *prefix;                         /* of a group, with those of the groups around it */
    hafti_http_around_t *around;
    hafti_http_owned_t *owned; /* what is freed with it */
    hafti_http_node_t *routes;
    hafti_http_entry_t connect; /* its handler may be NULL */
    haft_http_limits_t limits;
    haft_http_compression_t compression;
    haft_http_log_t *log;
    void *log_argument;
    haft_http_error_handler_t *on_error; /* NULL: a line of text */
    void *on_error_argument;
    haft_http_listening_t *on_listening; /* NULL: none */
    void *on_listening_argument;
    hafti_http_background_t *background;
    haft_io_scope_t *scope; /* while it is served */
    char mistake[256];      /* of the program's, the last one; "": none */
    bool limits_loopback;   /* its connections, too */
    int announced
        [HAFTI_HTTP_LISTENERS]; /* listeners whose connections begin with a proxy's header */
    size_t announced_count;
    hafti_http_proxies_t *proxies; /* that are trusted; may be NULL */
    bool notes_requests;           /* for the hook, or the counters */
    bool counts;
    bool traces;                  /* each request belongs to a trace */
    hafti_http_keeping_t keeping; /* while it is served */
    haft_http_access_hook_t *access_hook;
    void *access_argument;
    hafti_http_access_log_t access_log; /* what the hook writes, if it is the library's */
    hafti_http_counts_t counters;
    haft_http_metric_t *metrics;       /* of the application */
    haft_tls_context_t *tls;           /* NULL: without */
    hafti_http_listeners_t *listening; /* of haft_http_server_serve_with */
    bool notifies;                     /* the service manager */
    atomic_int notify_code;            /* the last failure of that; 0: none */
    _Atomic int64_t unready_time;      /* while it answers that it is not ready */
    atomic_bool is_served;
    atomic_bool restarting;
    atomic_bool is_handed_over; /* to another process */
    atomic_bool is_told;        /* to stop */
    atomic_bool stopping;       /* connections end after their request */
    atomic_bool cutting;        /* and now */
    atomic_int port;
    /* told: to stop; stop: the time in which it is not ready is over; ended: the last open
       connection has */
    haft_io_event_t told, stop, ended;
    haft_io_semaphore_t places; /* for further connections */
    atomic_size_t open;
    pthread_mutex_t mutex; /* of what follows; never held over a wait */
    hafti_http_addresses_t *addresses;
    hafti_http_link_t *connections;
    haft_http_server_t *next_served; /* in the list of serving.c */
};
/* For debuggers: the lists of connection.c and http2_server.c, for the table in serving.c. */
extern const haft_shown_t hafti_http_shown_connections[], hafti_http_shown_frames[];

/* haft_io_refuse for mistakes in the use of a server: notes the words for haft_http_server_mistake,
   and logs them. */
__attribute__((cold, format(printf, 4, 5))) int hafti_http_refuse(haft_http_server_t *server,
                                                                  int number, const char *function,
                                                                  const char *format, ...);

/* Whether the caller is in a simulation, in which sockets, files and variables of the machine are
   not used. */
static inline bool hafti_http_is_simulated(void) {
    const char *backend = haft_io_backend();
    return backend != NULL && strcmp(backend, "simulation") == 0;
}

/* The time for which a server that stops waits for the first request of a connection. */
enum { HAFTI_HTTP_FRESH_MILLISECONDS = 250 };
static inline int64_t hafti_http_fresh_until(void) {
    return haft_io_now() + HAFTI_HTTP_FRESH_MILLISECONDS * HAFT_IO_MILLISECOND;
}

/* A connection that has been accepted, and its place. */
typedef struct {
    haft_http_server_t *server;
    hafti_http_address_t *address;
    int descriptor;
    bool is_announced; /* it begins with a proxy's header */
} hafti_http_accepted_t;
void hafti_http_leave_place(const hafti_http_accepted_t *accepted);
/* ---- connection.c ---- */
/* Spawns a task in the scope that serves the connection until its end, closes it, and leaves the
   place. 0; or -ENOMEM: then the connection is open and has its place. */
int hafti_http_connection_spawn(const hafti_http_accepted_t *accepted, haft_io_scope_t *scope);
/* ---- dispatch.c ---- */
/* Begins a request on `stream`, which the end of `request` does not close. Its head comes next. */
void hafti_http_request_begin(haft_http_request_t *request, haft_http_server_t *server,
                              hafti_http_stream_t *stream, hafti_http_served_t *served);
/* Answers the request by its handler; `code` is the judgement of its head: 0, or -EBADMSG. */
void hafti_http_request_answer(haft_http_request_t *request, int code);
/* Also where the stack is unwound. */
void hafti_http_request_end(haft_http_request_t *request);
/* ---- replaying.c ---- */
/* Replays a request, if HAFT_IO_REPLAY names one: then the process ends here. */
void hafti_http_replay_if_asked(haft_http_server_t *server);
/* ---- tasks.c ---- */
/* The scope for the tasks of a handler: that of the request whose handler the current task is
   in. */
bool hafti_http_scope_of_spawns(haft_io_scope_t **scope);
/* Waits for the tasks of a request whose handler has returned `code`, or cancels them if that is an
   error. The code that counts. */
int hafti_http_tasks_end(haft_http_request_t *request, int code);
/* ---- errors.c ---- */
/* Answers an error in the form of the application (haft_http_server_on_error), or else by a
   line. */
int hafti_http_answer_error(haft_http_request_t *request, int status, int code);
/* ---- notify.c ---- */
/* Tells the service manager, if the options ask for it, within a second; a failure is logged. */
void hafti_http_notify(haft_http_server_t *server, const char *word);
/* Tells it the process of the service from now on. */
void hafti_http_notify_successor(haft_http_server_t *server, pid_t process);
/* A task that tells it at intervals that the run goes on, if it asks for that. */
void *hafti_http_notify_watchdog(void *server);
/* ---- server.c ---- */
/* Makes the server the owner of an object, which it frees. */
static inline void hafti_http_own(haft_http_server_t *server, hafti_http_owned_t *owned) {
    owned->next = server->owned;
    server->owned = owned;
}
/* The server of a group, as writable as its caller may have it (like strchr). */
static inline haft_http_server_t *hafti_http_root_of(const haft_http_server_t *server) {
    while (server->parent != NULL)
        server = server->parent;
    return (haft_http_server_t *)(uintptr_t)server;
}
void hafti_http_server_enter(haft_http_server_t *server, hafti_http_link_t *link);
void hafti_http_server_leave(haft_http_server_t *server, hafti_http_link_t *link);
/* Sets what is called when the server stops, and calls it if that stops already. */
void hafti_http_server_on_stop(haft_http_server_t *server, hafti_http_link_t *link,
                               void (*stop)(void *argument), void *argument);
/* Lines for a handler, or another task, that has failed, and for where it was; on the stack of its
   task. */
void hafti_http_log_failure(const haft_http_server_t *server, const char *what,
                            const haft_io_failure_t *failure);
__attribute__((format(printf, 2, 3))) void hafti_http_log(const haft_http_server_t *server,
                                                          const char *format, ...);

#endif
