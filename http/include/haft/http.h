/* SPDX-License-Identifier: MIT */
/*
 * Haft HTTP: web services in direct style, for C.
 *
 *     #include <haft/http.h>
 *
 *     static int hello(haft_http_request_t *request, void *unused) {
 *         (void)unused;
 *         const char *name = haft_http_request_path(request, "name");
 *         return haft_http_answer_format(request, 200, "Hello, %s\n", name);
 *     }
 *     int main(void) {
 *         haft_http_server_t *server = haft_http_server_new();
 *         haft_http_server_get(server, "/hello/{name}", hello, NULL);
 *         return haft_http_server_run_with(&(haft_http_run_options_t){.port = 8080}, server) != 0;
 *     }
 *
 * A connection is a task of haft/io.h, which calls a handler for each request; over HTTP/2 each
 * request is one. So a handler may wait anywhere while the other connections go on. Middleware
 * (haft_http_server_use) handles the effects that handlers perform.
 *
 * Sections: the server; routes; the request; its body; the answer; tasks of a handler; for
 * bindings; serving in a run of your own. Headers that this one includes: haft/http_client.h, the
 * client; haft/http_cookies.h, its cookies; haft/http_cors.h, pages of other origins;
 * haft/http_trace.h, traces across services; haft/http_files.h, static files;
 * haft/http_compression.h, compressed answers, and content negotiation; haft/http_multipart.h,
 * forms with files; haft/http_events.h, server-sent events and handlers that wait for long;
 * haft/http_proxy.h, a reverse proxy; haft/http_stream.h, upgrades and CONNECT;
 * haft/http_websocket.h, WebSocket; haft/http_inside.h, the access log, counters and pages for the
 * operator; haft/http_metrics.h, metrics of your own.
 *
 * Results: 0, or a count, or a negative error number, as in haft/io.h. A text that a function
 * returns is a string that lives as long as the request. The library checks each message before a
 * handler sees it: one that is not HTTP/1.1 as RFC 9112 defines it is answered with an error, and
 * its connection ends; one that is not HTTP/2 as RFC 9113 defines it resets its stream, or ends its
 * connection. Handlers answer both versions alike.
 *
 * Threads: one thread at a time builds a server. While the server serves, handlers run on the
 * threads of its run, and any thread may call haft_http_server_stop. Only the task that runs a
 * request's handler may use the request.
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
typedef struct haft_tls_context haft_tls_context_t; /* of haft/tls.h */
typedef struct haft_tls haft_tls_t;

/*
 * Answers a request: calls haft_http_answer or a similar function, and returns 0. If a handler
 * returns an error, fails (haft_io_fail) or answers nothing, the library writes a line to the log,
 * the client gets status 500, and the server goes on. If the error is one that a function of this
 * header has returned for the body, the client gets the status for that, 400, 408 or 413, and there
 * is no line; so it is after haft_http_request_refuse. An answer of which nothing has been sent by
 * then is replaced. If a part has been sent, the connection is broken off, so that the client does
 * not take the answer for whole.
 *
 * Tasks: a task that a handler spawns (haft_io_spawn) belongs to the request. The library waits for
 * it when the handler has returned; if the task fails, the request does. A task that is to outlive
 * the request is spawned in haft_http_server_scope.
 */
typedef int haft_http_handler_t(haft_http_request_t *request, void *argument);

/* A server without routes; NULL: no memory. */
haft_http_server_t *haft_http_server_new(void);
/* When no run serves it any more; before that it is reported as a mistake. Does nothing for
   NULL. */
void haft_http_server_free(haft_http_server_t *server);

/* Limits on the sizes and times of a client's requests. 0 means the default, which is in
   brackets. */
typedef struct haft_http_limits {
    size_t request_line; /* bytes (8192); more: 414 */
    size_t head;         /* bytes with the request line (16384, which is the maximum); more: 431 */
    size_t fields;       /* of the head (100, which is the maximum); more: 431 */
    uint64_t body;       /* bytes (1 MiB); more: 413. See haft_http_request_limit_body */
    size_t connections;  /* at a time (10000); further ones wait to be accepted */
    /* From one address at a time; from one network of 64 bits for IPv6 (1000, but any number from
       the machine's own). Further ones are closed at once. Trusted proxies have no limit. */
    size_t connections_of_client;
    size_t streams;    /* requests at a time on a connection of HTTP/2 (100); more: refused */
    int64_t idle_time; /* nanoseconds between two requests (75 s); then the connection is closed */
    int64_t head_time; /* from the first byte of a head to its last (10 s); later: 408 */
    /* The longest wait for a body that comes more slowly than `least_rate` (10 s); later: 408. */
    int64_t body_time;
    /* The longest wait to write, likewise (30 s); then the connection breaks off, or over HTTP/2
       the request is reset. */
    int64_t write_time;
    /* The longest time without an event (15 s); then haft_http_request_select_until sends a
       comment. */
    int64_t events_time;
    uint64_t least_rate; /* so many bytes that have come, or gone, pay for a second's wait (1024) */
    int64_t grace;       /* for requests that have come when the server is told to stop (10 s) */
} haft_http_limits_t;

/* Sets all limits; 0 means the default, as does NULL, and HAFT_IO_FOREVER is a time without end.
   Call this before the server serves. -EINVAL: a limit is negative, or beyond its maximum, or the
   request line's is beyond the head's; then nothing has changed. */
int haft_http_server_set_limits(haft_http_server_t *server, const haft_http_limits_t *limits);

/*
 * Serves over TLS, with the certificates of this context (haft_tls_server_context), which must live
 * as long as the server; NULL: without TLS. haft_tls_reload then reads certificates again, while
 * the server serves. Clients have `head_time` for the handshake. The protocols of the context
 * become those that the server speaks, HTTP/2 before HTTP/1.1. Call this before the server serves.
 * -EPROTONOSUPPORT: the library was built without OpenSSL; -ENOMEM.
 */
int haft_http_server_set_tls(haft_http_server_t *server, haft_tls_context_t *context);

/*
 * Trusts the proxies at these addresses and networks, such as "10.0.0.0/8, 2001:db8::1 unix";
 * "unix" stands for peers without an address. A proxy appends the address of its client to `field`,
 * which is "X-Forwarded-For", or "Forwarded" of RFC 7239. Name the field that your proxy writes:
 * another one it may pass on as the client has sent it. NULL: no field is trusted, only the
 * proxies' headers of the PROXY protocol (haft_http_server_expect_proxy_header). Call this before
 * the server serves.
 * -EINVAL: that is no list of networks; -ENOMEM.
 */
int haft_http_server_trust_proxies(haft_http_server_t *server, const char *networks,
                                   const char *field);

/*
 * Connections of this listener, which is one that haft_http_server_serve or
 * haft_http_server_serve_all gets next, begin with a header of the PROXY protocol, version 1 or 2,
 * which names the peer (haft_http_request_peer), within `head_time`. A connection without one is
 * closed; one of a peer that is none of the trusted proxies at once. -E2BIG: there are 64 such
 * listeners.
 */
int haft_http_server_expect_proxy_header(haft_http_server_t *server, int listener);

/* Gets each line of the log, without a newline: a handler that has failed, the frames where it
   failed, the stop of the server. It must not wait. */
typedef void haft_http_log_t(void *argument, const char *line);
/* Without this call, lines go to standard error; with NULL there is no log. Call it before the
   server serves. */
void haft_http_server_set_log(haft_http_server_t *server, haft_http_log_t *log, void *argument);

/*
 * Makes the answers to errors: those without a handler (404, 405), those to messages that are no
 * requests, too large, or too slow (400, 408, 413, 414, 431, 501), those to handlers that have
 * failed (500), and those of haft_http_request_refuse. It answers as a handler does, and may set
 * fields. If it does not answer, or returns an error, the answer is the one that there is without
 * it: a line of text. `error` and what it points to live during the call. No middleware is around
 * the call.
 */
typedef struct haft_http_error {
    int status;          /* that the client is to get */
    int code;            /* the error that a handler has returned; 0: there was no handler, or 0 */
    const char *text;    /* for the client: of haft_http_request_refuse, or the status's phrase */
    const char *failure; /* for the operator; it is in the log. NULL: no handler has failed */
} haft_http_error_t;
typedef int haft_http_error_handler_t(haft_http_request_t *request, const haft_http_error_t *error,
                                      void *argument);
/* Call this before the server serves; NULL: as without it. */
void haft_http_server_on_error(haft_http_server_t *server, haft_http_error_handler_t *handler,
                               void *argument);
/* An error handler for haft_http_server_on_error: answers with application/problem+json (RFC 9457),
   the members `status`, `title`, which is the status's phrase, and `detail`, the text, where it
   differs from the title. `argument` is not used. */
int haft_http_answer_problem(haft_http_request_t *request, const haft_http_error_t *error,
                             void *argument);

/* A thread for each processor, as 0 is for haft_io_run_options_t.threads. */
#define HAFT_HTTP_EACH_PROCESSOR (-1)

typedef struct haft_http_run_options {
    const char *host; /* NULL: "::", all addresses of this machine. See haft_io_listen_tcp */
    uint16_t port;    /* 0: the system chooses; see haft_http_server_port */
    int backlog;      /* 0: the system's maximum */
    /* Number of threads that run handlers. 0 means one: then no two handlers run at once, and
       they share data without locks. */
    int threads;
    const char *backend; /* of haft_io_run_options_t */
    /*
     * Instead of `host` and `port`, where to listen, with spaces between: "[::1]:8080",
     * "localhost:8080", ":8080" for all addresses, "unix:/run/service.sock", and "systemd" for the
     * sockets that a socket unit has passed (LISTEN_FDS). After "proxy:" there stands a place where
     * connections begin with the PROXY protocol (haft_http_server_expect_proxy_header). The path of
     * a Unix socket is removed at the end. One that an ended process has left is
     replaced. */
    const char *listen;
    /* TCP: other processes may listen at the same port, and the kernel divides the connections
       (SO_REUSEPORT). */
    bool reuse_port;
    int restart_signal; /* such as SIGUSR2, calls haft_http_server_restart; 0: none does */
    /* Bytes of the stack on which a connection waits and its handlers run; 0: haft_stack_size().
       The page tables of a stack of 1 MiB take 2.2 KiB, of one of 64 KiB 0.3. */
    size_t stack_size;
    int64_t watchdog; /* of haft_io_run_options_t, as the next one */
    int dump_signal;
    /*
     * Tells the service manager, such as systemd (Type=notify), at the socket which NOTIFY_SOCKET
     * names: READY=1 when the server listens and haft_http_server_on_listening has returned,
     * STOPPING=1 when it is told to stop, MAINPID=... after a restart, and WATCHDOG=1 twice in the
     * time of WATCHDOG_USEC (WatchdogSec=), by a task of the run. Without NOTIFY_SOCKET, and in a
     * simulation, nobody is told.
     */
    bool notify;
    /* Nanoseconds for which a server that is told to stop still accepts and answers, while
       haft_http_server_serve_readiness answers that it is not ready: so that balancers have time to
       see that. A second signal ends it at once; after a restart there is none. */
    int64_t unready_time;
    /* haft_http_server_serve_with: SIGINT and SIGTERM stop the server, as they do in
       haft_http_server_run_with. */
    bool stop_signals;
    /*
     * Where a thread of its own serves pages for the operator, in the form of `listen`:
     * "127.0.0.1:9090", "unix:/run/service.debug". "/debug/top", "/debug/summary" and
     * "/debug/tasks" there are those of haft_http_server_serve_debug_pages, and are answered also
     * while a task holds the only thread of the run. NULL: nowhere; a simulation has no such
     * thread. The run then takes the locks of several threads; one of the program's own needs
     * haft_io_run_options_t.observed, or several threads (-EINVAL, with words in
     * haft_http_server_mistake). A place that is in use, as during a restart, is a line in the log.
     */
    const char *debug_listen;
    /* A folder in which each request that fails is kept, to be replayed (docs/replay.md): one that
       is answered with 500 or above, or broken off, or for which a handler has called
       haft_http_request_keep. It is haft_io_run_options_t.keep_requests, so a run of the program's
       own has it there. */
    const char *keep_requests;
} haft_http_run_options_t;

/*
 * Serves in a run of its own (haft_io_run), until haft_http_server_stop is called or SIGINT or
 * SIGTERM comes. Then it accepts no more connections, closes those that wait for a request, and
 * lets requests that have come go on for `grace`. A second signal cuts them off at once. SIGPIPE
 * is blocked meanwhile, so that the service goes on when nobody reads its log any more. Returns 0,
 * or an error, such as -EADDRINUSE, which it has also logged. NULL for `options` means zeroed ones.
 */
int haft_http_server_run_with(const haft_http_run_options_t *options, haft_http_server_t *server);
/* The same with zeroed options: at a port of all addresses that the system chooses. */
static inline int haft_http_server_run(haft_http_server_t *server) {
    return haft_http_server_run_with(NULL, server);
}

/*
 * The same in a task of a run of your own, or of a simulation: listens at the places of the
 * options, and serves until the server is stopped. The run's options are its own: -EINVAL for
 * `threads`, `backend`, `stack_size`, `watchdog` and `dump_signal`. Signals are waited for if
 * `stop_signals` or `restart_signal` is set, and have to be blocked before the run begins
 * (haft_io_signal_wait); of several servers of a process, one has `stop_signals`, and stops the
 * others. -EINVAL: a signal is not blocked. haft_http_server_mistake returns the words.
 */
int haft_http_server_serve_with(const haft_http_run_options_t *options, haft_http_server_t *server);

/* Stops the server as a signal does. May be called on any thread and in handlers, but not in a
   signal handler. */
void haft_http_server_stop(haft_http_server_t *server);
/* Whether it was told to stop, or has stopped accepting by itself. On any thread, and for groups,
   too. */
bool haft_http_server_is_stopping(const haft_http_server_t *server);

/*
 * Calls `function` when the server listens, each time that it is served, before it accepts the
 * first connection: for what takes a while, such as a warm cache, or has to come after the bind,
 * such as giving up privileges. Clients that connect meanwhile wait. It runs in a task of the
 * server, and may wait; the server goes on when the tasks that it has spawned have ended, too. An
 * error that it returns ends the serving, with that error. Call this before the server serves;
 * NULL: none.
 */
typedef int haft_http_listening_t(haft_http_server_t *server, void *argument);
void haft_http_server_on_listening(haft_http_server_t *server, haft_http_listening_t *function,
                                   void *argument);
/*
 * Runs `function(argument)` as a task while the server is served: from when it listens until its
 * last request has ended; then the task is cancelled, if it has not ended. For a loop that
 * refreshes or cleans up. A failure is a line in the log, and nothing else. `name` is for the log
 * and the dump, and is not copied. Call this before the server serves. -EINVAL: that is a group, or
 * there is no function; -ENOMEM.
 */
int haft_http_server_add_background(haft_http_server_t *server, const char *name,
                                    void *(*function)(void *argument), void *argument);

/*
 * Starts the program again, as this process was started, which may be a new version of it, and
 * passes on the sockets at which haft_http_server_run listens, or haft_http_server_serve_with. When
 * the new process calls the same with the same places, it has their sockets and serves; then this
 * server stops, as by haft_http_server_stop. No connection is refused meanwhile: both accept from
 * the same queues. If the new process ends before that, or takes 30 s, this server goes on. For a
 * task of the server's run, such as a handler. Returns 0; -ENOTSUP: the server was started by
 * neither, or in a simulation; -EALREADY: it is being restarted; -ECHILD: the new process has
 * ended; -ETIMEDOUT; or an error of haft_io_process_start.
 */
int haft_http_server_restart(haft_http_server_t *server);

/* The port at which the server listens, the first one of several; 0 if it does not serve, or has
   no port. */
uint16_t haft_http_server_port(const haft_http_server_t *server);

/* ---- Routes --------------------------------------------------------------------------------- */

/*
 * Calls `handler` with `argument` for requests of this method whose path is `path`. A path consists
 * of parts between slashes. A part is text, or {name}, which matches any one part that is not
 * empty; the last part may be {name...}, which matches the whole rest. Text is preferred to {name},
 * and that to {name...}. Text is compared after %-decoding, and "/a" is not "/a/". Paths that
 * differ in their names only are one. `path` is copied.
 *
 * A path for which several routes fit is the most specific one's that has the method: so a route
 * for OPTIONS of "/{path...}" gets OPTIONS of every path that has no such route of its own. A
 * request for a path that has routes, but none for its method, gets 405, with the methods of all
 * routes that fit; one for a path without routes gets 404. The handler for GET also answers HEAD;
 * the library leaves out the body. It answers OPTIONS with the path's methods, unless there is a
 * handler.
 *
 * Returns 0; or, with a line in the log about what is wrong and what to write instead
 * (haft_http_server_mistake), -EINVAL if that is no path, or no method that requests can have:
 * those of RFC 9110 but CONNECT (haft_http_server_on_connect), PATCH, and those of WebDAV and the
 * like, which the parser knows; -EEXIST if there is a handler already; or -ENOMEM.
 */
int haft_http_server_route(haft_http_server_t *server, const char *method, const char *path,
                           haft_http_handler_t *handler, void *argument);
/* Returns the last mistake in the use of this server, or of a group of its routes, such as "no
   route GET /a/:id: a part that captures is written {name}, not :name"; "": there was none. */
const char *haft_http_server_mistake(const haft_http_server_t *server);
static inline int haft_http_server_get(haft_http_server_t *server, const char *path,
                                       haft_http_handler_t *handler, void *argument) {
    return haft_http_server_route(server, "GET", path, handler, argument);
}
static inline int haft_http_server_post(haft_http_server_t *server, const char *path,
                                        haft_http_handler_t *handler, void *argument) {
    return haft_http_server_route(server, "POST", path, handler, argument);
}
static inline int haft_http_server_put(haft_http_server_t *server, const char *path,
                                       haft_http_handler_t *handler, void *argument) {
    return haft_http_server_route(server, "PUT", path, handler, argument);
}
static inline int haft_http_server_patch(haft_http_server_t *server, const char *path,
                                         haft_http_handler_t *handler, void *argument) {
    return haft_http_server_route(server, "PATCH", path, handler, argument);
}
static inline int haft_http_server_delete(haft_http_server_t *server, const char *path,
                                          haft_http_handler_t *handler, void *argument) {
    return haft_http_server_route(server, "DELETE", path, handler, argument);
}

/* The same for every method that requests can have but CONNECT, such as for a proxy. -EEXIST: one
   of them has a handler for this path already; the methods before it have got this one. */
int haft_http_server_any(haft_http_server_t *server, const char *path, haft_http_handler_t *handler,
                         void *argument);

/*
 * Middleware: `around` is called instead of each handler, and calls `next`, which goes on to the
 * handler, once or not at all. It may handle the effects of that call. The middleware that was
 * added last is the outermost. `next` returns the handler's result. An error that the middleware
 * does not return is forgotten, so the middleware answers itself then. Requests without a handler
 * (404, 405, OPTIONS) go through the middleware of the server, too, and those for a path that has
 * routes through that of their group. Returns 0 or -ENOMEM.
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
int haft_http_server_use(haft_http_server_t *server, haft_http_around_t *around, void *argument);

/*
 * Middleware that only handles effects: the clauses of `handler`, all of which are HAFT_TAIL, take
 * what is performed inside of it, and get a haft_http_handling_t as their state. It stands among
 * the functions of haft_http_server_use in the order in which both were added, and costs a small
 * part of one. `handler` lives as long as the server. Returns 0; -ENOMEM; -EINVAL: it has another
 * clause, or `on_return`.
 *
 *     static const char *tell_user(void *state, HAFT_PAYLOAD(current_user) *asked) {
 *         const haft_http_handling_t *handling = state;
 *         return haft_http_request_header(handling->request, "X-User");
 *     }
 *     HAFT_HANDLER(users, NULL, HAFT_TAIL(current_user, tell_user));
 *     ...
 *     haft_http_server_handle(server, &users, NULL);
 */
typedef struct haft_http_handling {
    haft_http_request_t *request; /* inside of which the effect is performed */
    void *argument;               /* of haft_http_server_handle */
} haft_http_handling_t;
/*
 * Leaves the handler, in one of its clauses: the performer, and all that is inside of the handler,
 * is unwound, and `code` goes out through the middleware around the handler, as the error that a
 * handler of requests has returned:
 *
 *     haft_http_handling_leave(handling, haft_http_request_refuse(handling->request, 401, NULL));
 *
 * An exception that leaves a clause of C++ does this, too (haft/http.hpp). In a task that has the
 * handlers of its spawner (haft_io_spawn_handled), it is the task that fails.
 */
__attribute__((noreturn)) void haft_http_handling_leave(const haft_http_handling_t *handling,
                                                        int code);
int haft_http_server_handle(haft_http_server_t *server, const haft_handler_t *handler,
                            void *argument);

/* Whether the handler is around the caller; it is not in a task that has its spawner's handlers. */
bool haft_http_handling_is_around(const haft_http_handling_t *handling);

/*
 * A group: routes whose paths begin with `prefix`, with middleware of their own, which is called
 * inside the server's. Use it in place of a server in haft_http_server_route and its shorthands,
 * haft_http_server_use, haft_http_server_handle, haft_http_server_serve_files,
 * haft_http_server_serve_counters, haft_http_server_serve_debug_pages and this function; other
 * functions do not take it. In a group, "" is the path of the prefix itself. It is freed with the
 * server. NULL: no memory.
 *
 *     haft_http_server_t *api = haft_http_server_group(server, "/api");
 *     haft_http_server_use(api, with_user, NULL);
 *     haft_http_server_get(api, "/todo", list, NULL);
 */
haft_http_server_t *haft_http_server_group(haft_http_server_t *server, const char *prefix);

/* ---- The request ---------------------------------------------------------------------------- */

const char *haft_http_request_method(const haft_http_request_t *request); /* "GET" */
const char *
haft_http_request_target(const haft_http_request_t *request); /* as it came: "/a%20b?c=d" */
/* "HTTP/1.0", "HTTP/1.1" or "HTTP/2.0". */
const char *haft_http_request_version(const haft_http_request_t *request);
/* The path of the route, as it was given, with the prefixes of its groups: "/todo/{id}"; NULL: no
   route is for this request. */
const char *haft_http_request_route(const haft_http_request_t *request);
/* Returns the match of the route's part {name}, %-decoded; NULL: it has no such part, which is a
   mistake and a line in the log, or no route is for this request, or there is no memory. */
const char *haft_http_request_path(haft_http_request_t *request, const char *name);
/* Whether the route has such a part, for middleware that is around several. */
bool haft_http_request_has_path(const haft_http_request_t *request, const char *name);
/* The first parameter of this name in the query, decoded; NULL: there is none, or no memory. */
const char *haft_http_request_query(haft_http_request_t *request, const char *name);
/* A field of the head; the case of `name` does not matter. Several fields of one name are joined
   by ", " (RFC 9110, section 5.3). NULL: there is none, or no memory. */
const char *haft_http_request_header(haft_http_request_t *request, const char *name);
/* Stores the field of this number, which begins at 0. False: there is none. The field Cookie, of
   which HTTP/2 may have several, is one, with "; " between (RFC 9113, section 8.2.3). */
bool haft_http_request_header_at(haft_http_request_t *request, size_t number, const char **name,
                                 const char **value);
/* The value of a cookie; NULL: there is none, or no memory. */
const char *haft_http_request_cookie(haft_http_request_t *request, const char *name);
/* Memory that lives as long as the request; NULL: there is none. */
void *haft_http_request_allocate(haft_http_request_t *request, size_t size);
/* The address of the peer as text, without a port; "" where it has none, such as over a Unix
   socket. */
const char *haft_http_request_peer(haft_http_request_t *request);
/* The address of the client: the peer, unless that is a proxy that is trusted
   (haft_http_server_trust_proxies). */
const char *haft_http_request_client_address(haft_http_request_t *request);
/* The socket, for what needs more of it, as getsockname(2). */
int haft_http_request_descriptor(const haft_http_request_t *request);
/* The stream, for what was agreed on, such as haft_tls_peer; NULL: it is not over TLS. */
haft_tls_t *haft_http_request_tls(const haft_http_request_t *request);

/* ---- Its body ------------------------------------------------------------------------------- */

/* Whether the request has a body, of which some may have been read. One of HTTP/2 may be without
   Content-Length, and turn out to be empty. */
bool haft_http_request_has_body(const haft_http_request_t *request);
/* Sets the limit for this request, in place of haft_http_limits_t.body. Call it before the body
   is read. */
void haft_http_request_limit_body(haft_http_request_t *request, uint64_t size);
/*
 * Reads from the body, as haft_io_read does; returns 0 at its end. If the client waits for
 * permission to send the body (Expect: 100-continue), the first call gives it, unless the begin of
 * the answer has been sent by then. -EMSGSIZE: the body is larger than the limit; -ETIMEDOUT: the
 * client is too slow; -EBADMSG: the bytes are no body; -EPIPE: the client has gone in the middle;
 * or an error of haft_io_read. After an error each further call returns the same.
 */
ssize_t haft_http_request_read(haft_http_request_t *request, void *buffer, size_t size);
/* Reads the rest of the body into memory of the request, with a '\0' behind it. Returns its
   size, an error as above, or -ENOMEM. */
ssize_t haft_http_request_body(haft_http_request_t *request, char **body);
/* The error that a read of the body has returned, and for which the client gets 400, 408 or 413; 0:
   none. */
int haft_http_request_body_error(const haft_http_request_t *request);
/* The first parameter of this name in a body of the type application/x-www-form-urlencoded. The
   first call reads the body. NULL: there is none, or no such body, or the body cannot be read. */
const char *haft_http_request_form(haft_http_request_t *request, const char *name);
/* A field that came behind a chunked body, or over HTTP/2 behind any. NULL: there is none, or the
   body has not been read to its end, where haft_http_request_read has returned 0. */
const char *haft_http_request_trailer(haft_http_request_t *request, const char *name);
/* Like haft_http_request_header_at, but for the trailers. */
bool haft_http_request_trailer_at(haft_http_request_t *request, size_t number, const char **name,
                                  const char **value);

/* ---- The answer ----------------------------------------------------------------------------- */

/*
 * Adds a field to the answer's head; the value is sent without the spaces and tabs around it.
 * -EINVAL: the name is no token, or the value has bytes that no value can have, such as the end of
 * a line, or the field is one that the library writes (Content-Length, Transfer-Encoding,
 * Connection, Date). -EALREADY: the answer has begun. -ENOMEM.
 */
int haft_http_answer_set_header(haft_http_request_t *request, const char *name, const char *value);

typedef struct haft_http_cookie_options {
    const char *path, *domain;
    int64_t max_age; /* seconds; 0: until the browser ends; negative: the cookie is removed */
    bool for_scripts, for_http; /* without these it is HttpOnly, and Secure */
    const char *same_site;      /* NULL: "Lax" */
} haft_http_cookie_options_t;
/* Adds a Set-Cookie field. NULL for `options` means zeroed ones. Errors are those of
   haft_http_answer_set_header; -EINVAL also where the name or the value has bytes that no cookie
   can have (RFC 6265, section 4.1.1). */
int haft_http_answer_set_cookie_with(const haft_http_cookie_options_t *options,
                                     haft_http_request_t *request, const char *name,
                                     const char *value);
static inline int haft_http_answer_set_cookie(haft_http_request_t *request, const char *name,
                                              const char *value) {
    return haft_http_answer_set_cookie_with(NULL, request, name, value);
}

/* Answers with a whole body. `type` is the Content-Type; NULL: there is no such field, but that
   which was set by haft_http_answer_set_header, which counts in any case. The body is not sent for
   HEAD, and with a status that has none (204, 205, 304). -EALREADY: the answer has begun; -EINVAL:
   the status is not in 200 to 599, or the type is no value of a field; -EFAULT: the body is NULL,
   and not empty; -EMSGSIZE: over HTTP/2, the head is larger than 64 KiB; or an error of
   haft_io_write. */
int haft_http_answer(haft_http_request_t *request, int status, const char *type, const void *body,
                     size_t size);
/* The same with a text in UTF-8, and with one that is formatted as by printf(3). */
int haft_http_answer_text(haft_http_request_t *request, int status, const char *text);
__attribute__((format(printf, 3, 4))) int
haft_http_answer_format(haft_http_request_t *request, int status, const char *format, ...);

/* A body whose size is not known when it begins: it is sent in chunks. */
#define HAFT_HTTP_UNKNOWN_SIZE UINT64_MAX
/*
 * Answers piece by piece: call haft_http_answer_begin, then haft_http_answer_write any number of
 * times. Pieces are gathered; haft_http_answer_flush sends those that are there. The answer is
 * whole when the handler returns 0. If a size was given, write exactly that many bytes:
 * haft_http_answer_write returns -EMSGSIZE for more, and with fewer the connection is broken off.
 */
int haft_http_answer_begin(haft_http_request_t *request, int status, const char *type,
                           uint64_t size);
int haft_http_answer_write(haft_http_request_t *request, const void *bytes, size_t size);
int haft_http_answer_flush(haft_http_request_t *request);
/* Adds a field behind a body of unknown size. Errors are those of haft_http_answer_set_header, and
   -ENOTSUP: the answer cannot have one, because its size is known, or the client speaks
   HTTP/1.0. */
int haft_http_answer_set_trailer(haft_http_request_t *request, const char *name, const char *value);

/* The status of the answer, for middleware; 0: it has not begun. */
int haft_http_answer_status(const haft_http_request_t *request);
/* Takes back an answer of which nothing has been sent: what fits in a block of 16 KiB, until
   haft_http_answer_flush. Fields that were set are forgotten, but those of
   haft_http_answer_set_lasting_header.
   -EALREADY: some of it was sent. */
int haft_http_answer_discard(haft_http_request_t *request);
/* Like haft_http_answer_set_header, but answers that replace the handler's have the field, too,
   such as one of CORS. */
int haft_http_answer_set_lasting_header(haft_http_request_t *request, const char *name,
                                        const char *value);

/* The error that handlers return when they have refused the request. */
#define HAFT_HTTP_REFUSED (-30000)
/*
 * Refuses the request: `return haft_http_request_refuse(request, 404, "no such todo");` in a
 * handler, or middleware. The error goes out through the middleware, and then the client gets the
 * status, with the text (NULL: the status's phrase), in the form of haft_http_server_on_error. The
 * text is copied. It is no failure, so it is not in the log. Fields that were set before stay.
 * Returns HAFT_HTTP_REFUSED; -EINVAL: the status is not in 400 to 599.
 */
int haft_http_request_refuse(haft_http_request_t *request, int status, const char *text);
/* The status with which it was refused last, and in `*text`, unless that is NULL, the text, which
   may be NULL; 0: it was not. */
int haft_http_request_refused(const haft_http_request_t *request, const char **text);

/* ---- Tasks of a handler --------------------------------------------------------------------- */

/*
 * The scope of a request, in which a handler's task spawns by itself; the call opens it. Its tasks
 * end before the answer is sent: when the handler has returned the library waits for them, or
 * cancels them if the handler has failed. The first of them that fails cancels the others, and is a
 * failure of the request. NULL: no memory, or another task than the handler's has called this
 * before the handler's had.
 */
haft_io_scope_t *haft_http_request_scope(haft_http_request_t *request);
/*
 * The scope of a server that serves: its tasks outlive requests. A failure of one is a line in the
 * log, and nothing else. A server that is told to stop waits for them up to `grace`, and then
 * cancels them. NULL: the server is not served.
 *
 *     haft_io_task_options_t options = {.scope = haft_http_server_scope(server), .name = "mail"};
 *     haft_io_spawn_with(&options, send_mail, mail);
 */
haft_io_scope_t *haft_http_server_scope(const haft_http_server_t *server);
/* The server that has got the request. */
haft_http_server_t *haft_http_request_server(const haft_http_request_t *request);

/* ---- For bindings --------------------------------------------------------------------------- */

/*
 * An exception of another language on its way out through the middleware, which sees
 * HAFT_IO_BY_EXCEPTION. Middleware of the same language takes it and throws it again. If none has
 * taken it, `conclude` reports it at last, by haft_http_request_refuse or
 * haft_http_request_note_failure, and returns the error that the handler would have returned.
 * `free` is called once.
 */
typedef struct haft_http_thrown {
    int (*conclude)(struct haft_http_thrown *thrown, haft_http_request_t *request);
    void (*free)(struct haft_http_thrown *thrown);
} haft_http_thrown_t;
/* Carries the exception, in place of one that was carried before. Returns HAFT_IO_BY_EXCEPTION. */
int haft_http_request_carry(haft_http_request_t *request, haft_http_thrown_t *thrown);
/* Takes the exception that is carried, which is the caller's from now on. NULL: there is none. */
haft_http_thrown_t *haft_http_request_take_thrown(haft_http_request_t *request);
/* The handlers further in are being unwound without an exception, up to middleware that may answer
   in their place. Takes back what they have answered, if none of it has left, but no answer that
   middleware further in has given after such a call. */
void haft_http_request_unwound(haft_http_request_t *request);

/* Gives the log the reason why the handler is about to return an error. The text is copied. It is
   not logged if the library has already noticed that the client has gone, since that is no failure
   of the handler. */
void haft_http_request_note_failure(haft_http_request_t *request, const char *text);

/* Keeps the record of this request at its end, as if it failed. Returns whether that can be: false
   in a run that keeps none (haft_http_run_options_t.keep_requests). */
bool haft_http_request_keep(haft_http_request_t *request);

/* ---- Serving in a run of your own ----------------------------------------------------------- */

/*
 * For a task of haft_io_run or haft_io_simulate: accepts connections from the listener, and serves
 * them until haft_http_server_stop. The listener is closed before this returns. Returns 0;
 * -ETIMEDOUT if requests were cut off after `grace`; -EBUSY: another call serves the server, which
 * only one may at a time; -EINVAL: its TLS context has no certificate, or is one of clients
 * (haft_http_server_mistake); or an error of haft_io_accept. Later calls may serve it again.
 */
int haft_http_server_serve(haft_http_server_t *server, int listener);
/* The same, from several listeners, all of which are closed; -EINVAL: there is none. */
int haft_http_server_serve_all(haft_http_server_t *server, const int *listeners, size_t count);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#include "http_client.h"
#include "http_compression.h"
#include "http_cookies.h"
#include "http_cors.h"
#include "http_events.h"
#include "http_files.h"
#include "http_inside.h"
#include "http_metrics.h"
#include "http_multipart.h"
#include "http_proxy.h"
#include "http_stream.h"
#include "http_trace.h"
#include "http_websocket.h"
#ifndef HAFT_HTTP_NO_OLD_NAMES
#    include "http_old_names.h"
#endif

#endif
