/* SPDX-License-Identifier: MIT */
/*
 * Haft HTTP: web services in direct style, for C.
 *
 *     #include <haft/http.h>
 *
 *     static int hello(haft_http_request_t *request, void *unused) {
 *         (void)unused;
 *         return haft_http_answer_format(request, 200, "Hello, %s\n", haft_http_path(request, "name"));
 *     }
 *     int main(void) {
 *         haft_http_server_t *server = haft_http_server_new();
 *         haft_http_get(server, "/hello/{name}", hello, NULL);
 *         return haft_http_run(server, &(haft_http_run_options_t){.port = 8080}) != 0;
 *     }
 *
 * A connection is a task of haft/io.h, which calls a handler for each request. So a handler waits where it wants to,
 * and the other connections go on. Effects that a handler performs are handled by what is around it.
 *
 * Sections: the server; routes; what a request says; its body; the answer; serving in a run of your own.
 * haft/http_client.h has the client, haft/http_files.h static files, haft/http_events.h server-sent
 * events, haft/http_inside.h the access log and counters, haft/http_stream.h upgrades and CONNECT.
 *
 * Results: 0, or a count, or a negative error number, as in haft/io.h. Text that a function returns is a string that
 * lives as long as the request. Bytes of the network are checked before a handler sees them: what is not HTTP/1.1 as
 * RFC 9112 has it is answered with an error, and the connection ends.
 *
 * Threads: a server is built by one thread; while it serves, handlers run on the threads of its run, and
 * haft_http_stop may be called on any thread. A request is for the task that runs its handler.
 *
 * Link with pkg-config haft-http; compile C with -fexceptions, as for haft/io.h.
 */
#ifndef HAFT_HTTP_H
#define HAFT_HTTP_H

#include <haft/io.h>

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- The server ----------------------------------------------------------------------------- */

typedef struct haft_http_server haft_http_server_t;
typedef struct haft_http_request haft_http_request_t;

/*
 * Answers a request: calls haft_http_answer or one of its kin, and returns 0. A handler that returns an error, or fails
 * (haft_io_fail), or answers nothing, is told of by a log line, and its client gets status 500; the server goes on. If
 * the error is one that a function of this header has returned for the body, the client gets the status that fits: 400,
 * 408 or 413. When an answer has begun by then, its connection is broken off, so that nobody takes it for whole.
 */
typedef int haft_http_handler_t(haft_http_request_t *request, void *argument);

/* A server without routes; NULL: no memory. */
haft_http_server_t *haft_http_server_new(void);
/* Nobody serves it any more. NULL: nothing. */
void haft_http_server_free(haft_http_server_t *server);

/* What a client may send, and how long it may take. 0 is the default, in brackets. */
typedef struct haft_http_limits {
    size_t request_line; /* bytes (8192); longer: 414 */
    size_t head;   /* bytes, with the request line (16384, which is also the most); more: 431 */
    size_t fields; /* of the head (100, which is also the most); more: 431 */
    uint64_t body; /* bytes (1 MiB); more: 413. haft_http_limit_body sets it for a request */
    size_t connections; /* at a time (10000); further ones wait to be accepted */
    int64_t idle_time;  /* nanoseconds between two requests (75 s); then the connection is closed */
    int64_t head_time;  /* from the first byte of a head to its last (10 s); later: 408 */
    int64_t
        body_time; /* of waiting for a body (10 s), and a second more for each `least_rate` bytes; later: 408 */
    int64_t
        write_time; /* of waiting to write an answer (30 s), likewise; then the connection is broken off */
    uint64_t least_rate; /* bytes a second of a body or an answer (1024) */
    int64_t
        grace; /* for requests that have come when the server is told to stop (10 s); then they are cut off */
    int64_t
        events_time; /* without an event (15 s); then a comment is sent, see haft_http_select_until */
    /* of an address at a time, or of 64 bits of IPv6 (1000, without a limit for this machine's own); further ones are
       closed at once. Proxies that are trusted have no limit */
    size_t connections_of_client;
} haft_http_limits_t;

/* Sets the limits; those that are 0 are the defaults. -EINVAL: one is negative, or beyond what it can be. Before the
   server serves. */
int haft_http_set_limits(haft_http_server_t *server, const haft_http_limits_t *limits);

/*
 * Trusts proxies at these addresses and networks ("10.0.0.0/8, 2001:db8::1 unix", where "unix" is a peer without an
 * address): they say in `field` ("X-Forwarded-For", or "Forwarded" of RFC 7239) for whom they ask, and add to what is
 * there. Others may say what they like, so name the field that your proxy writes, and no other. -EINVAL: that is no list of networks; -ENOMEM. Before the
 * server serves.
 */
int haft_http_trust_proxies(haft_http_server_t *server, const char *networks, const char *field);

/* Called for each line of the log, without a newline: a handler that has failed, a server that stops. It must not wait. */
typedef void haft_http_log_t(void *argument, const char *line);
/* NULL: no log. Without this call lines go to standard error. Before the server serves. */
void haft_http_set_log(haft_http_server_t *server, haft_http_log_t *log, void *argument);

/* A thread for each processor, as 0 is for haft_io_run_options_t.threads. */
#define HAFT_HTTP_EACH_PROCESSOR (-1)

typedef struct haft_http_run_options {
    const char *host; /* NULL: "::", all addresses of this machine. See haft_io_listen_tcp */
    uint16_t port;    /* 0: the system chooses; see haft_http_port */
    int backlog;      /* 0: the system's maximum */
    /*
     * Instead of `host` and `port`, where to listen, with spaces between: "[::1]:8080", "localhost:8080", ":8080" for
     * all addresses, "unix:/run/service.sock", and "systemd" for the sockets that a socket unit has passed
     * (LISTEN_FDS). A Unix socket that nobody listens at any more is replaced, and removed at the end.
     */
    const char *listen;
    bool
        reuse_port; /* TCP: other processes listen at the same port, too, and the kernel divides connections (SO_REUSEPORT) */
    /* On which handlers run; 0: one, so no two run at the same time, and they share data without locks. */
    int threads;
    const char *backend; /* of haft_io_run_options_t */
} haft_http_run_options_t;

/*
 * Serves, in a run of its own (haft_io_run), until haft_http_stop is called, or SIGINT or SIGTERM comes: then accepts no
 * more, closes the connections that wait for a request, and gives the requests that have come the time of grace. A
 * second signal cuts them off at once. Returns 0, or an error, which it has also logged: -EADDRINUSE. `options` NULL:
 * zeroed ones.
 */
int haft_http_run(haft_http_server_t *server, const haft_http_run_options_t *options);

/* Tells whoever serves it to stop, as a signal does. On any thread, in a handler, too; not in a signal handler. */
void haft_http_stop(haft_http_server_t *server);

/* The port on which the server listens; 0: it does not yet. */
uint16_t haft_http_port(const haft_http_server_t *server);

/* ---- Routes --------------------------------------------------------------------------------- */

/*
 * Calls `handler` with `argument` for requests of this method whose path is `path`. A path is parts between slashes.
 * A part is text, or {name}, which takes any one part that is not empty; at the end it may be {name...}, which takes
 * all that is left. Text comes before {name}, and that before {name...}. Text is compared after %-decoding, and "/a"
 * is not "/a/". `path` is copied.
 *
 * A request for a path that has routes, but none of its method, gets 405, and one for no path 404. HEAD is
 * answered as GET, without the body; OPTIONS with the methods of the path, if there is no handler for it.
 *
 * 0; -EINVAL: that is no path or no method; -EEXIST: there is a handler for it; -ENOMEM.
 */
int haft_http_route(haft_http_server_t *server, const char *method, const char *path,
                    haft_http_handler_t *handler, void *argument);
static inline int haft_http_get(haft_http_server_t *server, const char *path,
                                haft_http_handler_t *handler, void *argument) {
    return haft_http_route(server, "GET", path, handler, argument);
}
static inline int haft_http_post(haft_http_server_t *server, const char *path,
                                 haft_http_handler_t *handler, void *argument) {
    return haft_http_route(server, "POST", path, handler, argument);
}
static inline int haft_http_put(haft_http_server_t *server, const char *path,
                                haft_http_handler_t *handler, void *argument) {
    return haft_http_route(server, "PUT", path, handler, argument);
}
static inline int haft_http_patch(haft_http_server_t *server, const char *path,
                                  haft_http_handler_t *handler, void *argument) {
    return haft_http_route(server, "PATCH", path, handler, argument);
}
static inline int haft_http_delete(haft_http_server_t *server, const char *path,
                                   haft_http_handler_t *handler, void *argument) {
    return haft_http_route(server, "DELETE", path, handler, argument);
}

/*
 * Middleware: every handler is called by way of `around`, which calls `next(request)` once or not at all, and may handle
 * effects of it. The one that was set last is the outermost. Requests without a route (404, 405, OPTIONS) do not
 * come by. 0, or -ENOMEM.
 *
 *     static int with_clock(haft_http_request_t *request, haft_http_next_t *next, void *argument) {
 *         int result = next->call(next, request);
 *         ...
 */
typedef struct haft_http_next haft_http_next_t;
struct haft_http_next {
    int (*call)(haft_http_next_t *next, haft_http_request_t *request);
};
typedef int haft_http_around_t(haft_http_request_t *request, haft_http_next_t *next,
                               void *argument);
int haft_http_use(haft_http_server_t *server, haft_http_around_t *around, void *argument);

/*
 * A group: routes that share the begin of their paths, and middleware of their own, which is called inside of the
 * server's. It is used as a server by haft_http_route and its kin, haft_http_use, haft_http_serve_files and this function, and
 * by nothing else. In a group "" is the path of the prefix itself. It is freed with the server. NULL: no memory.
 *
 *     haft_http_server_t *api = haft_http_group(server, "/api");
 *     haft_http_use(api, with_user, NULL);
 *     haft_http_get(api, "/todo", list, NULL);
 */
haft_http_server_t *haft_http_group(haft_http_server_t *server, const char *prefix);

/* ---- What a request says -------------------------------------------------------------------- */

const char *haft_http_method(const haft_http_request_t *request); /* "GET" */
const char *haft_http_target(const haft_http_request_t *request); /* as it came: "/a%20b?c=d" */
/* What the part {name} of the route has taken, %-decoded; NULL: it has no such part, or there is no memory. */
const char *haft_http_path(haft_http_request_t *request, const char *name);
/* The first parameter of this name in the query, decoded; NULL: there is none, or no memory. */
const char *haft_http_query(haft_http_request_t *request, const char *name);
/* A field of the head, whatever its letters' case. Fields of one name are joined by ", ", as RFC 9110 has it (5.3).
   NULL: there is none, or no memory. */
const char *haft_http_header(haft_http_request_t *request, const char *name);
/* Of the fields by number, from 0: false where there is none. */
bool haft_http_header_at(haft_http_request_t *request, size_t number, const char **name,
                         const char **value);
/* NULL: there is none, or no memory. */
const char *haft_http_cookie(haft_http_request_t *request, const char *name);
/* Memory that lives as long as the request; NULL: there is none. */
void *haft_http_allocate(haft_http_request_t *request, size_t size);
/* The address of the peer as text, without a port; "" where it has none, such as over a Unix socket. */
const char *haft_http_peer(haft_http_request_t *request);
/* The address of the client: the peer, unless that is a proxy that is trusted (haft_http_trust_proxies). */
const char *haft_http_client_address(haft_http_request_t *request);
/* The socket, for what needs more of it, as getsockname(2). */
int haft_http_descriptor(const haft_http_request_t *request);

/* ---- Its body ------------------------------------------------------------------------------- */

/* For this request instead of haft_http_limits_t.body, before its body is read. */
void haft_http_limit_body(haft_http_request_t *request, uint64_t size);
/*
 * Reads from the body, as haft_io_read; 0 at its end. A client that waits for a word before it sends the body
 * (Expect: 100-continue) gets that by the first call. -EMSGSIZE: the body is larger than the limit; -ETIMEDOUT: the
 * client is too slow; -EBADMSG: that is no body; -EPIPE: the client has gone in the middle. Each further call returns
 * the same. Errors of haft_io_read.
 */
ssize_t haft_http_read(haft_http_request_t *request, void *buffer, size_t size);
/* All of the body that is left, with a '\0' behind it, in memory of the request: its size, or an error as above, or
   -ENOMEM. */
ssize_t haft_http_body(haft_http_request_t *request, char **body);
/* The first parameter of this name in a body of the type application/x-www-form-urlencoded, which is read by the first
   call. NULL: there is none, or no such body, or it cannot be read. */
const char *haft_http_form(haft_http_request_t *request, const char *name);
/* A field that came behind a chunked body, when that has been read; NULL: there is none. */
const char *haft_http_trailer(haft_http_request_t *request, const char *name);

/* ---- The answer ----------------------------------------------------------------------------- */

/*
 * Adds a field to the answer's head. -EINVAL: the name is no token, or the value has bytes that no value can have (so
 * nobody can add a line by a value), or it is one that the library writes: Content-Length, Transfer-Encoding,
 * Connection, Date. -EALREADY: the answer has begun. -ENOMEM.
 */
int haft_http_set_header(haft_http_request_t *request, const char *name, const char *value);

typedef struct haft_http_cookie_options {
    const char *path, *domain;
    int64_t max_age; /* seconds; 0: until the browser ends; negative: the cookie is removed */
    bool for_scripts, for_http; /* without these it is HttpOnly, and Secure */
    const char *same_site;      /* NULL: "Lax" */
} haft_http_cookie_options_t;
/* Adds a Set-Cookie field. `options` NULL: zeroed ones. Errors are those of haft_http_set_header; -EINVAL also where the
   name or value has bytes that no cookie can have (RFC 6265, 4.1.1). */
int haft_http_set_cookie(haft_http_request_t *request, const char *name, const char *value,
                         const haft_http_cookie_options_t *options);

/* Answers with a whole body. `type` is the Content-Type; NULL: without. -EALREADY: it has been answered; -EINVAL: the
   status is none of 200 to 599, or the type is no value of a field; or an error of haft_io_write. For HEAD, and a
   status without body (204, 304), the body is not sent. */
int haft_http_answer(haft_http_request_t *request, int status, const char *type, const void *body,
                     size_t size);
/* The same, with a text in UTF-8; and as printf(3). */
int haft_http_answer_text(haft_http_request_t *request, int status, const char *text);
__attribute__((format(printf, 3, 4))) int
haft_http_answer_format(haft_http_request_t *request, int status, const char *format, ...);

/* A body whose size is not known when it begins: it is sent in chunks. */
#define HAFT_HTTP_UNKNOWN_SIZE UINT64_MAX
/*
 * Answers piece by piece: haft_http_begin, then haft_http_write as often as one likes. Pieces are gathered;
 * haft_http_flush sends what there is. The answer is whole when the handler returns 0. With a size, exactly so many bytes
 * are to be written: -EMSGSIZE where they are more; if they are fewer, the connection is broken off.
 */
int haft_http_begin(haft_http_request_t *request, int status, const char *type, uint64_t size);
int haft_http_write(haft_http_request_t *request, const void *bytes, size_t size);
int haft_http_flush(haft_http_request_t *request);
/* Adds a field behind a body of unknown size. Errors as of haft_http_set_header; -ENOTSUP: the client cannot have any. */
int haft_http_set_trailer(haft_http_request_t *request, const char *name, const char *value);

/* For the log: notes why the handler is about to return an error. The text is copied. If that is only that the client has
   gone, which the library has noticed before, nothing is noted. */
void haft_http_note_failure(haft_http_request_t *request, const char *text);

/* ---- Serving in a run of your own ----------------------------------------------------------- */

/*
 * For a task of haft_io_run or haft_io_simulate: accepts connections from the listener, which is closed before this
 * returns, and serves them, until haft_http_stop. 0; -ETIMEDOUT: requests were cut off when the time of grace was over; or
 * an error of haft_io_accept. One call at a time serves a server, which may be served again afterwards.
 */
int haft_http_serve(haft_http_server_t *server, int listener);
/* The same, from several listeners, all of which are closed; -EINVAL: there is none. */
int haft_http_serve_all(haft_http_server_t *server, const int *listeners, size_t count);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#include "http_client.h"
#include "http_events.h"
#include "http_files.h"
#include "http_inside.h"
#include "http_stream.h"

#endif
