/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the client share: url.c, client_proxy.c, client_places.c, pool.c,
   secure.c, cookies.c, http2_shared.c, http2_client.c, client_kept.c, client.c. */
#ifndef HAFTI_HTTP_CLIENT_INTERNAL_H
#define HAFTI_HTTP_CLIENT_INTERNAL_H

#include "codings.h"
#include "http2.h"
#include "trace.h"

enum {
    HAFTI_HTTP_HOST = 256,    /* with '\0'; a name has at most 253 letters */
    HAFTI_HTTP_ADDED = 5,     /* fields at most that the library adds to what is asked */
    HAFTI_HTTP_INFORMED = 10, /* heads of status 1xx, with which an answer is given up */
};

typedef struct {
    hafti_http_text_t authority, target; /* in the text; a target that is empty means "/" */
    char host[HAFTI_HTTP_HOST];
    uint16_t port;
    bool is_secure;
} hafti_http_url_t;

bool hafti_http_same_origin(const hafti_http_url_t *one, const hafti_http_url_t *other);
/* 0; -EPROTONOSUPPORT: another scheme than http and https; -EINVAL. */
int hafti_http_url_parse(const char *text, hafti_http_url_t *url);
/* The URL of a reference on the page `base`, to be freed; NULL: no memory. */
char *hafti_http_url_resolve(const char *base, const char *reference);

/* ---- client.c -------------------------------------------------------------------------------- */

/* How a question is asked that is not the program's own. */
typedef struct {
    const char *lines; /* further ones of the head, for an upgrade: then the question is asked over
                          a connection of its own, and the answer taken as it is. NULL: none */
    const char *host;  /* NULL: the URL's */
    bool expects;      /* a word before the body is sent: "Expect: 100-continue" */
    /* Called before anything of the question is sent; NULL: nothing is. */
    void (*begins)(void *argument);
    /* Called with each head of status 1xx but 101, by the task that waits for the answer; NULL:
       they are skipped. `lines` are its fields, each with CR LF. */
    void (*informed)(void *argument, unsigned status, hafti_http_text_t lines);
    /* Called when the head has been sent, in place of what produces the body; it may have another
       task call hafti_http_reply_produce, while this one waits for the answer. NULL: the body is
       sent before. 0, or an error. */
    int (*produces)(void *argument, haft_http_reply_t *reply);
    void *argument;
} hafti_http_way_t;
/* Calls the function for heads of status 1xx with this one, and frees it. */
void hafti_http_tell_informed(const hafti_http_way_t *way, hafti_http_informed_t *informed);

/* Like haft_http_client_ask, but in that way. */
int hafti_http_ask_with(haft_http_client_t *client, const haft_http_question_t *question,
                        const hafti_http_way_t *way, haft_http_reply_t **reply);
/* Sends what the question's function produces: 0, or an error. */
int hafti_http_reply_produce(haft_http_reply_t *reply, const haft_http_question_t *question);
void hafti_http_reply_stream(haft_http_reply_t *reply, hafti_http_stream_t **stream,
                             const haft_http_limits_t **limits);

/* ---- client_proxy.c -------------------------------------------------------------------------- */

typedef struct {
    bool is_there;
    int code;             /* the error in the given text */
    hafti_http_url_t url; /* its texts are gone */
    char *authorization;  /* NULL: none */
} hafti_http_proxy_t;

typedef struct hafti_http_proxying hafti_http_proxying_t;

/* `given` is the option of the client. NULL: no memory. */
hafti_http_proxying_t *hafti_http_proxying_new(const char *given);
void hafti_http_proxying_free(hafti_http_proxying_t *proxying);
/* The proxy for this URL, or NULL. 0, or an error: the given text names no proxy. */
int hafti_http_proxy_of(const hafti_http_proxying_t *proxying, const hafti_http_url_t *url,
                        const hafti_http_proxy_t **proxy);
/* Asks for a tunnel to the URL's origin. */
int hafti_http_write_connect(hafti_http_stream_t *stream, const hafti_http_proxy_t *proxy,
                             const hafti_http_url_t *url);

/* ---- client_places.c ------------------------------------------------------------------------- */

typedef struct hafti_http_places hafti_http_places_t;

/* Waits for a place for another connection to the origin, which is left by hafti_http_places_leave.
   `*places` is NULL if the client has no limit. 0, or an error of the wait, or -ENOMEM. */
int hafti_http_places_enter(haft_http_client_t *client, const hafti_http_url_t *origin,
                            hafti_http_places_t **places);
/* Leaves the place, and sets `*places` to NULL; does nothing if it is NULL. */
void hafti_http_places_leave(haft_http_client_t *client, hafti_http_places_t **places);

/* ---- cookies.c ------------------------------------------------------------------------------- */

/* Takes the cookies that the answer sets. */
void hafti_http_cookies_take(haft_http_cookie_jar_t *jar, const haft_http_reply_t *reply);
/* Like haft_http_cookie_jar_get. */
int hafti_http_cookies_for(haft_http_cookie_jar_t *jar, const hafti_http_url_t *url, char **text);

/* ---- pool.c: connections that wait for a question -------------------------------------------- */

typedef struct hafti_http_pool hafti_http_pool_t;

hafti_http_pool_t *hafti_http_pool_new(size_t kept);
void hafti_http_pool_free(hafti_http_pool_t *pool);
/* Takes the connection to the URL's origin that was used last and is still open: whether there is
   one. */
bool hafti_http_pool_take(hafti_http_pool_t *pool, const hafti_http_url_t *url,
                          hafti_http_stream_t *stream);
/* How many there are, and since when the oldest waits; HAFT_IO_FOREVER: there is none. */
size_t hafti_http_pool_count(hafti_http_pool_t *pool, int64_t *oldest);
/* Closes at most so many of those that have waited since `until` or longer, the oldest first. */
void hafti_http_pool_close_idle(hafti_http_pool_t *pool, int64_t until, size_t most);
/* Closes those of the URL's origin. */
void hafti_http_pool_drop(hafti_http_pool_t *pool, const hafti_http_url_t *url);
/* Keeps it, or closes it where enough are kept. All bytes that it has read have been taken. */
void hafti_http_pool_give(hafti_http_pool_t *pool, const hafti_http_url_t *url,
                          const hafti_http_stream_t *stream);

/* ---- client_kept.c: all connections that wait for a question --------------------------------- */

/* Closes those that have waited too long, and those that waited longest, if more than `most` are
   left. */
void hafti_http_kept_trim(haft_http_client_t *client, size_t most);
/* Closes the one that has waited longest: whether there was one. */
bool hafti_http_kept_close_oldest(haft_http_client_t *client);

/* ---- secure.c: a client's context of TLS ----------------------------------------------------- */

/* The client's context, made by the first use where none was given. */
typedef struct {
    haft_tls_context_t *given, *made;
    haft_io_once_t once;
} hafti_http_secure_t;

/* Sets what a client offers over TLS. */
int hafti_http_secure_set_protocols(haft_tls_context_t *context);
int hafti_http_secure_get(hafti_http_secure_t *secure, haft_tls_context_t **context);
void hafti_http_secure_end(hafti_http_secure_t *secure);

/* ---- client.c, http2_client.c ---------------------------------------------------------------- */

typedef struct hafti_http2_origin hafti_http2_origin_t;

struct haft_http_client {
    hafti_http_pool_t *pool;
    hafti_http_secure_t secure;
    hafti_http_proxying_t *proxying;
    haft_http_cookie_jar_t *cookies; /* may be NULL */
    haft_http_limits_t limits;
    int redirects;
    size_t connections; /* to an origin; 0: any number */
    size_t kept_in_all; /* connections that wait for a question */
    int64_t kept_time;  /* how long */
    bool is_untraced;
    bool is_plain;                 /* it asks for no codings */
    uint64_t decompressed;         /* the most that a body may become */
    pthread_mutex_t mutex;         /* of what follows; never held over a wait */
    hafti_http2_origin_t *origins; /* that speak HTTP/2, or may */
    hafti_http_places_t *places;
};

/* The question, as the redirects have changed it. */
typedef struct {
    const haft_http_question_t *question;
    const char *method;
    char *text;        /* the URL */
    bool is_elsewhere; /* another origin than the one that was asked first */
    bool without_body;
    bool has_lost_body; /* by a redirect */
    const hafti_http_way_t *way;
    bool decodes; /* the body, if it comes in one of the library's codings */
    haft_http_header_t added[HAFTI_HTTP_ADDED];
    size_t added_count;
    char *cookies; /* the values of these */
    char codings[HAFTI_HTTP_CODINGS], trace_parent[HAFTI_HTTP_TRACE_PARENT];
} hafti_http_asking_t;

/* How a version of HTTP asks over what a reply has open. */
typedef struct {
    /* The head, and a body that is in memory. */
    int (*write)(const hafti_http_asking_t *asking, haft_http_reply_t *reply);
    /* Sends what the question's function produces. */
    int (*produce)(const haft_http_question_t *question, haft_http_reply_t *reply);
    /* Reads the head of the answer. */
    int (*read_head)(const hafti_http_asking_t *asking, haft_http_reply_t *reply);
    /* Keeps the connection for the next question, or closes it: whether it was kept. */
    bool (*end)(haft_http_reply_t *reply);
} hafti_http_version_of_asking_t;

struct haft_http_reply {
    haft_http_client_t *client;
    hafti_http_url_t url;
    const hafti_http_version_of_asking_t *version; /* NULL: nothing is open */
    hafti_http_stream_t stream;                    /* of HTTP/1 */
    struct hafti_http2_stream *http2;              /* of HTTP/2 */
    bool was_refused;                    /* the question, so nothing has been done for it */
    bool was_kept;                       /* the connection, for an earlier question */
    bool lacks_body;                     /* not all of what is produced has been sent */
    hafti_http_places_t *places;         /* where it has one */
    const hafti_http_proxy_t *forwarder; /* that is asked instead of the origin, or NULL */
    char failure[64];                    /* why there is no answer; "": the code is enough */
    hafti_http_message_t message;
};

/* Begins the message that is the answer to a question of this method. */
void hafti_http_reply_begin(haft_http_reply_t *reply, hafti_http_stream_t *stream,
                            const char *method);
/* Which connections are good enough for a question. */
typedef enum {
    HAFTI_HTTP_KEPT_OR_NEW,
    HAFTI_HTTP_NEW,
    HAFTI_HTTP_FOR_UPGRADE, /* a new one, where the server is offered nothing but HTTP/1 */
} hafti_http_need_t;

/* ---- client_taped.c: questions of a handler whose request is kept ---- */

/* Like `connect`; where the request is replayed, the stream is one of the record. */
int hafti_http_tape_connection(haft_http_reply_t *reply, hafti_http_need_t need,
                               int (*connect)(haft_http_reply_t *reply, hafti_http_need_t need));
/* To be called before others may have the stream: makes it again as it was connected. */
void hafti_http_untape_stream(hafti_http_stream_t *stream);

/* ---- question.c ---- */

/* Over HTTP/1.1: the head, with a body that is in memory; and a body that a function produces. */
int hafti_http_write_question(const hafti_http_asking_t *asking, haft_http_reply_t *reply);
int hafti_http_write_produced_body(const haft_http_question_t *question, haft_http_reply_t *reply);
/* Whether the question itself has the field. */
bool hafti_http_asks_with(const haft_http_question_t *question, const char *name);
/* Whether a field may be asked with; and whether what is asked after a redirect lacks it. */
bool hafti_http_is_askable(const haft_http_header_t *field);
bool hafti_http_is_kept_back(const hafti_http_asking_t *asking, const char *name);
/* Refuses a field that may not be asked with: -EINVAL, with words if its name is at fault. */
int hafti_http_refuse_field(const haft_http_header_t *field);
/* Writes each piece that the question's function produces: 0 at the end, or an error of the two; or
   -EINVAL: its result is more than there was room for; or -EMSGSIZE: less or more than the size in
   the question. */
typedef int hafti_http_write_piece_t(hafti_http_stream_t *stream, const void *bytes, size_t size);
int hafti_http_write_produced(hafti_http_stream_t *stream, const haft_http_question_t *question,
                              hafti_http_write_piece_t *write);
/* The question's trailers, which may be sent, in `*fields`: how many, or -EINVAL. */
ssize_t hafti_http_trailers_of(const haft_http_question_t *question,
                               const haft_http_header_t **fields);
/* Whether a question by this method has Content-Length even without a body (RFC 9110, section
   8.6). */
bool hafti_http_means_body(const char *method);

/* A stream of a connection that the origin's tasks share, if the server agrees on that; or else as
   `connect` does, which opens a connection of HTTP/1 (client.c). */
typedef int hafti_http_connect_t(haft_http_reply_t *reply, hafti_http_need_t need);
int hafti_http2_open(haft_http_reply_t *reply, hafti_http_need_t need,
                     hafti_http_connect_t *connect);
void hafti_http2_free_origins(haft_http_client_t *client);
/* Closes at most so many connections that no task uses: those that have ended, and those that have
   been idle since `until` or longer. */
void hafti_http2_close_idle(haft_http_client_t *client, int64_t until, size_t most);
/* Like hafti_http_pool_count, for connections that no task uses. */
size_t hafti_http2_count_idle(haft_http_client_t *client, int64_t *oldest);

#endif
