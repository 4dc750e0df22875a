/* SPDX-License-Identifier: MIT */
/* A call that is a mistake of the program returns an error number, and reports on the error handler
   what is wrong, with which value, and what to write instead. */
#include "../../core/tests/teaching.h"
#include "check_http.h"

#include <fcntl.h>
#include <unistd.h>

static haft_http_server_t *server, *group;

static int say_short(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, 200, "short");
}

static void *return_argument(void *argument) {
    return argument;
}

/* ---- Making a server ---- */

static void check_limits(void) {
    const haft_http_limits_t long_line = {.head = 100, .request_line = 101}, many = {.fields = 101},
                             negative = {.grace = -1};
    REFUSES(haft_http_server_set_limits(server, &long_line), EINVAL,
            "haft_http_server_set_limits: the limit request_line is 101: write at most 100, or 0 "
            "for the default");
    REFUSES(haft_http_server_set_limits(server, &many), EINVAL,
            "haft_http_server_set_limits: the limit fields is 101: write at most 100, or 0 for the "
            "default");
    REFUSES(haft_http_server_set_limits(server, &negative), EINVAL,
            "haft_http_server_set_limits: the limit grace is -1 ns: write a time, "
            "HAFT_IO_FOREVER, or 0 for the default");
}

static void check_routes(void) {
    REFUSES(haft_http_server_get(server, "todo", say_short, NULL), EINVAL,
            "haft_http_server_route: no route GET todo: a path begins with '/'");
    REFUSES(haft_http_server_get(server, "/todo/:id", say_short, NULL), EINVAL,
            "haft_http_server_route: no route GET /todo/:id: a part that captures is written "
            "{name}, not :name");
    REFUSES(haft_http_server_get(server, "/files/*", say_short, NULL), EINVAL,
            "haft_http_server_route: no route GET /files/*: a part that takes the rest is written "
            "{name...}, not *");
    REFUSES(haft_http_server_get(group, "/x{a}", say_short, NULL), EINVAL,
            "haft_http_server_route: no route GET /api/x{a}: braces stand around a whole part, "
            "with a name in them: {name}");
    REFUSES(haft_http_server_get(server, "/lists/{id}/items/{id}", say_short, NULL), EINVAL,
            "haft_http_server_route: no route GET /lists/{id}/items/{id}: a name stands there "
            "twice: give each {name} its own");
    REFUSES(haft_http_server_route(server, "BREW", "/tea", say_short, NULL), EINVAL,
            "haft_http_server_route: no route BREW /tea: that is no method that requests can have "
            "(CONNECT: haft_http_server_on_connect)");
    REFUSES(haft_http_server_get(server, "/x", NULL, NULL), EINVAL,
            "haft_http_server_route: no route GET /x: the handler is NULL: write the function that "
            "answers");
    CHECK(haft_http_server_get(server, "/todo", say_short, NULL) == 0);
    REFUSES(haft_http_server_get(server, "/todo", say_short, NULL), EEXIST,
            "haft_http_server_route: no route GET /todo: the path has a handler for that method "
            "already (names of captures do not matter)");
    CHECK(strcmp(haft_http_server_mistake(group), "no route GET /todo: the path has a handler for "
                                                  "that method already (names of captures do not "
                                                  "matter)") == 0);
}

HAFT_EFFECT(whose, int, {});
static void *leave(void *unused, HAFT_PAYLOAD(whose) * payload) {
    (void)payload;
    return unused;
}
static void *return_it(void *unused, void *result) {
    (void)unused;
    return result;
}
static int reply(void *unused, HAFT_PAYLOAD(whose) * payload) {
    (void)unused, (void)payload;
    return 1;
}
HAFT_HANDLER(leaving, NULL, HAFT_NEVER(whose, leave));
HAFT_HANDLER(returning, return_it, HAFT_TAIL(whose, reply));

static void check_handlers(void) {
    REFUSES(haft_http_server_on_connect(server, NULL, NULL), EINVAL,
            "haft_http_server_on_connect: the handler is NULL: write the function that answers "
            "CONNECT");
    CHECK(haft_http_server_on_connect(server, say_short, NULL) == 0);
    REFUSES(haft_http_server_on_connect(server, say_short, NULL), EEXIST,
            "haft_http_server_on_connect: CONNECT has a handler already: let that one look at the "
            "target");
    REFUSES(haft_http_server_use(server, NULL, NULL), EINVAL,
            "haft_http_server_use: the middleware is NULL: write a function that calls next->call, "
            "or answers itself");
    REFUSES(haft_http_server_handle(server, NULL, NULL), EINVAL,
            "haft_http_server_handle: the handler is NULL: write one that HAFT_HANDLER has "
            "declared");
    REFUSES(haft_http_server_handle(server, &leaving, NULL), EINVAL,
            "haft_http_server_handle: the clause of the effect 'whose' takes its resumption, or "
            "leaves: write one that returns the result, HAFT_TAIL");
    REFUSES(haft_http_server_handle(server, &returning, NULL), EINVAL,
            "haft_http_server_handle: the handler has a clause for the return: leave it out, "
            "because the answer is what the request's handler returns");
    REFUSES(haft_http_server_add_background(server, "sweep", NULL, NULL), EINVAL,
            "haft_http_server_add_background: the function of 'sweep' is NULL: write the one that "
            "the task calls");
    REFUSES(haft_http_server_add_background(group, "sweep", return_argument, NULL), EINVAL,
            "haft_http_server_add_background: a group has no background tasks: add 'sweep' to the "
            "server itself");
}

static void check_pages(void) {
    REFUSES(haft_http_server_trust_proxies(server, NULL, NULL), EINVAL,
            "haft_http_server_trust_proxies: '(NULL)' is no list of networks: write the proxies' "
            "addresses, such as \"10.0.0.0/8 ::1 unix\"");
    REFUSES(haft_http_server_trust_proxies(server, "10.0.0.0/33", NULL), EINVAL,
            "haft_http_server_trust_proxies: '10.0.0.0/33' is no list of networks: write the "
            "proxies' addresses, such as \"10.0.0.0/8 ::1 unix\"");
    REFUSES(haft_http_server_serve_files(server, "/x", NULL), EINVAL,
            "haft_http_server_serve_files: the folder is NULL: write a path of URLs, such as "
            "\"/static\", and the folder's path");
    const haft_http_metric_options_t named = {.name = "to do"};
    REFUSES(haft_http_metric_new_with(&named, server) != NULL, 0,
            "haft_http_metric_new: no metric to do: a name is made of letters, digits, '_' and "
            "':', and does not begin with haft_");
}

static void check_cors(void) {
    const char *const none[] = {"here"}, *const some[] = {"https://a.example"};
    const haft_http_cors_options_t no_origin = {.origins = none, .origin_count = 1},
                                   no_list = {.methods = "GET\n"},
                                   no_age = {.origins = some, .origin_count = 1, .max_age = -5},
                                   for_all = {.credentials = true};
    REFUSES(haft_http_server_set_cors(server, &no_origin), EINVAL,
            "haft_http_server_set_cors: 'here' is no origin: write scheme://host, or "
            "scheme://host:port, without a path");
    REFUSES(haft_http_server_set_cors(server, &no_list), EINVAL,
            "haft_http_server_set_cors: 'GET\n' is no list for a field: write words with commas "
            "between them, in one line");
    REFUSES(haft_http_server_set_cors(server, &no_age), EINVAL,
            "haft_http_server_set_cors: max_age is -5 s: write the seconds for which a browser "
            "keeps the answer, or 0");
    REFUSES(haft_http_server_set_cors(server, &for_all), EINVAL,
            "haft_http_server_set_cors: credentials are for origins that are named: write them to "
            ".origins, because every site could act for its visitors otherwise");
}

static void check_proxies(void) {
    const char *const none[] = {"example"}, *const some[] = {"http://127.0.0.1:1"};
    haft_http_proxy_t *proxy;
    const haft_http_proxy_options_t empty = {.upstreams = some},
                                    named = {.upstreams = some, .upstream_count = 1, .name = "a b"},
                                    timed = {.upstreams = some,
                                             .upstream_count = 1,
                                             .connect_time = -1},
                                    unhealthy = {.upstreams = some,
                                                 .upstream_count = 1,
                                                 .health = "health"},
                                    no_url = {.upstreams = none, .upstream_count = 1};
    REFUSES(haft_http_proxy_new_with(&empty, &proxy), EINVAL,
            "haft_http_proxy_new_with: there is no upstream: write URLs to .upstreams, and their "
            "number to .upstream_count");
    REFUSES(haft_http_proxy_new_with(&named, &proxy), EINVAL,
            "haft_http_proxy_new_with: 'a b' is no name for the field Via: write letters, digits "
            "and '-'");
    REFUSES(haft_http_proxy_new_with(&timed, &proxy), EINVAL,
            "haft_http_proxy_new_with: a time is -1 ns: write a longer one, or 0 for the default");
    REFUSES(haft_http_proxy_new_with(&unhealthy, &proxy), EINVAL,
            "haft_http_proxy_new_with: 'health' is no path to ask for: write one that begins with "
            "'/'");
    REFUSES(haft_http_proxy_new_with(&no_url, &proxy), EINVAL,
            "haft_http_proxy_new_with: 'example' is no upstream: write http://host:port, or "
            "https://, without '?' and '#'");
}

/* ---- Serving ---- */

static void *serve_wrongly(void *unused) {
    const haft_http_run_options_t threads = {.listen = "127.0.0.1:0", .threads = 2},
                                  signals = {.listen = "127.0.0.1:0", .stop_signals = true},
                                  pages = {.listen = "127.0.0.1:0", .debug_listen = "127.0.0.1:0"};
    REFUSES(haft_http_server_serve_with(&threads, server), EINVAL,
            "haft_http_server_serve_with: cannot serve: threads, backend, stack_size, watchdog, "
            "dump_signal and keep_requests are the run's: give them to haft_io_run_with");
    REFUSES(haft_http_server_serve_with(&signals, server), EINVAL,
            "haft_http_server_serve_with: cannot serve: the program does not block the signal 2 "
            "(Interrupt): call pthread_sigmask before haft_io_run, or in C++ make an io::signals "
            "before io::run");
    REFUSES(haft_http_server_serve_with(&pages, server), EINVAL,
            "haft_http_server_serve_with: cannot serve: debug_listen needs a run that is observed: "
            "set haft_io_run_options_t.observed, or run several threads");
    REFUSES(haft_http_server_serve_all(server, NULL, 0), EINVAL,
            "haft_http_server_serve: there is no listener: write one of haft_io_listen_tcp");
    REFUSES(haft_http_server_serve(group, haft_io_listen_tcp("127.0.0.1", 0, 0)), EINVAL,
            "haft_http_server_serve: a group is a part of a server: serve the server itself");
    start_server(server);
    REFUSES(haft_http_server_serve(server, haft_io_listen_tcp("127.0.0.1", 0, 0)), EBUSY,
            "haft_http_server_serve: another call serves the server: give all listeners to one "
            "haft_http_server_serve_all, or make a second server");
    haft_http_server_stop(server);
    return unused;
}

static void check_running(void) {
    const haft_http_run_options_t negative = {.listen = "127.0.0.1:0", .unready_time = -1},
                                  nowhere = {.listen = "127.0.0.1"},
                                  no_pages = {.listen = "127.0.0.1:0", .debug_listen = "here"},
                                  deaf = {.listen = "127.0.0.1:0", .restart_signal = SIGKILL};
    REFUSES(
        haft_http_server_run_with(&negative, server), EINVAL,
        "haft_http_server_run: cannot serve: unready_time is negative: leave it out, or write a "
        "positive one");
    REFUSES(haft_http_server_run_with(&deaf, server), EINVAL,
            "haft_http_server_run: cannot serve: restart_signal is 9, for which no program can "
            "wait: write another one, such as SIGUSR2, or 0 for none");
    REFUSES(haft_http_server_run_with(&nowhere, server), EINVAL,
            "haft_http_server_run: cannot listen at 127.0.0.1: write host:port, [address]:port, "
            ":port, unix:/path or systemd");
    REFUSES(haft_http_server_run_with(&no_pages, server), EINVAL,
            "haft_http_server_run: cannot serve: debug_listen names no place: 'here': write one as "
            "in listen, such as 127.0.0.1:9090");
    CHECK(haft_io_run(serve_wrongly, NULL) == 0);
}

/* ---- Answering ---- */

static int answer_wrongly(haft_http_request_t *request, void *unused) {
    char byte;
    (void)unused;
    REFUSES(haft_http_request_refuse(request, 200, NULL), EINVAL,
            "haft_http_request_refuse: 200 is no status of an error: write 400 to 599");
    REFUSES(haft_http_answer(request, 99, NULL, "", 0), EINVAL,
            "haft_http_answer: 99 is no status of an answer: write 200 to 599");
    REFUSES(haft_http_answer_write(request, "a", 1), EINVAL,
            "haft_http_answer_write: the answer has not begun: call haft_http_answer_begin first");
    REFUSES(haft_http_answer_set_header(request, "X Name", "a"), EINVAL,
            "haft_http_answer_set_header: 'X Name' is no name of a field: write letters, digits "
            "and '-'");
    REFUSES(haft_http_answer_set_header(request, "Content-Length", "5"), EINVAL,
            "haft_http_answer_set_header: the library sets Content-Length itself: leave it out, "
            "and give the body's size to haft_http_answer or haft_http_answer_begin");
    REFUSES(haft_http_answer_set_header(request, "X-Name", NULL), EINVAL,
            "haft_http_answer_set_header: the value of X-Name is NULL: write a text, or leave the "
            "field out");
    CHECK(haft_http_answer_set_header(request, "X-Name", "a\r\nX: b") == -EINVAL);
    CHECK(haft_http_answer_set_cookie(request, "a", "b; c") == -EINVAL);
    CHECK(*refusal_told == '\0'); /* which may be what a client has sent */
    REFUSES(haft_http_answer_set_cookie(request, "a b", "c"), EINVAL,
            "haft_http_answer_set_cookie: 'a b' is no name of a cookie, or its value is NULL: "
            "write letters, digits, '-' and '_', and a text");
    REFUSES(haft_http_stream_read(request, &byte, 1), EINVAL,
            "haft_http_stream_read: the connection is no stream yet: call "
            "haft_http_request_upgrade, or haft_http_request_tunnel, first");
    REFUSES(haft_http_events_send(request, NULL), EINVAL,
            "haft_http_events_send: the event is NULL: write one, with a text in .data");
    int folder = open("/", O_RDONLY | O_DIRECTORY), eight = dup2(folder, 88);
    REFUSES(haft_http_answer_file(request, eight, NULL), EINVAL,
            "haft_http_answer_file: descriptor 88 is no regular file: read it, and write what "
            "comes with haft_http_answer_write");
    close(folder);
    close(eight);
    CHECK(haft_http_answer_begin(request, 200, NULL, HAFT_HTTP_UNKNOWN_SIZE) == 0);
    REFUSES(haft_http_answer_set_trailer(request, "X Name", "a"), EINVAL,
            "haft_http_answer_set_trailer: 'X Name' is no name of a field: write letters, digits "
            "and '-'");
    return haft_http_answer_write(request, "good", 4);
}

/* ---- Asking ---- */

static ssize_t produce_too_much(void *unused, void *buffer, size_t room) {
    (void)unused, (void)buffer;
    return (ssize_t)room + 1;
}

static void ask_wrongly(haft_http_client_t *client, const char *url) {
    haft_http_reply_t *reply;
    const haft_http_header_t spaced = {"X Name", "a"}, ours = {"Host", "a"}, evil = {"X", "a\nb"};
    const haft_http_question_t no_url = {.method = "GET"},
                               no_fields = {.url = url, .header_count = 2},
                               bad = {.url = url, .headers = &spaced, .header_count = 1},
                               own = {.url = url, .headers = &ours, .header_count = 1},
                               of_input = {.url = url, .headers = &evil, .header_count = 1},
                               large = {.url = url, .method = "POST", .produce = produce_too_much};
    REFUSES(haft_http_client_ask(client, &no_url, &reply), EINVAL,
            "haft_http_client_ask: the question has no URL: write http://host/path, or https://");
    REFUSES(haft_http_client_ask(client, &no_fields, &reply), EINVAL,
            "haft_http_client_ask: .header_count is 2, and .headers is NULL: write both, or none");
    REFUSES(haft_http_client_ask(client, &bad, &reply), EINVAL,
            "haft_http_client_ask: 'X Name' is no name of a field: write letters, digits and '-'");
    REFUSES(haft_http_client_ask(client, &own, &reply), EINVAL,
            "haft_http_client_ask: the client sets Host itself: leave it out, and write the URL, "
            ".body and .size");
    REFUSES(haft_http_client_ask(client, &large, &reply), EINVAL,
            "haft_http_client_ask: the function .produce has returned 4097 for a buffer of 4096 "
            "bytes: return how many it has written, or 0 at the end");
    CHECK(haft_http_client_ask(client, &of_input, &reply) == -EINVAL && *refusal_told == '\0');
}

static int send_wrongly(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_websocket_t *socket = haft_http_websocket_accept(request);
    CHECK(socket != NULL);
    REFUSES(haft_http_websocket_send(socket, (haft_http_websocket_kind_t)9, "a", 1), EINVAL,
            "haft_http_websocket_send: 9 is no kind of a message: write HAFT_HTTP_WEBSOCKET_TEXT "
            "or HAFT_HTTP_WEBSOCKET_BINARY");
    REFUSES(haft_http_websocket_close(socket, 5, NULL), EINVAL,
            "haft_http_websocket_close: 5 is no code for a close: write 1000, or one of 3000 to "
            "4999 of your own");
    return haft_http_websocket_close(socket, 1000, NULL);
}

static void connect_wrongly(haft_http_client_t *client, const char *url) {
    haft_http_websocket_t *socket;
    const haft_http_question_t posted = {.url = url, .method = "POST"}, good = {.url = url};
    const haft_http_websocket_options_t options = {.protocols = "a\nb"};
    if (haft_http_websocket_connect(client, &posted, &socket) == -EOPNOTSUPP)
        return;
    REFUSES(haft_http_websocket_connect(client, &posted, &socket), EINVAL,
            "haft_http_websocket_connect: a question for a WebSocket has a method, or a body: "
            "write .url, and what else you need of .headers");
    REFUSES(haft_http_websocket_connect_with(&options, client, &good, &socket), EINVAL,
            "haft_http_websocket_connect: 'a\nb' is no list of protocols: write their names with "
            "commas between them");
    CHECK(haft_http_websocket_connect(client, &good, &socket) == 0);
    haft_http_websocket_message_t message;
    CHECK(haft_http_websocket_receive(socket, &message) < 0);
    haft_http_websocket_free(socket);
}

static void *ask(void *unused) {
    char url[60];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/wrong", start_server(server));
    haft_http_client_t *client = haft_http_client_new();
    haft_http_reply_t *reply;
    CHECK(haft_http_client_ask(client, &(haft_http_question_t){.url = url}, &reply) == 0);
    CHECK(haft_http_reply_status(reply) == 200);
    haft_http_reply_free(reply);
    ask_wrongly(client, url);
    strcpy(strrchr(url, '/'), "/socket");
    connect_wrongly(client, url);
    haft_http_client_free(client);
    haft_http_server_stop(server);
    return unused;
}

int main(void) {
    haft_set_error_handler(note_refusal);
    server = haft_http_server_new();
    group = haft_http_server_group(server, "/api");
    haft_http_server_set_log(server, NULL, NULL);
    check_limits();
    check_routes();
    check_handlers();
    check_pages();
    check_cors();
    check_proxies();
    check_running();
    CHECK(haft_http_server_get(server, "/wrong", answer_wrongly, NULL) == 0);
    CHECK(haft_http_server_get(server, "/socket", send_wrongly, NULL) == 0);
    CHECK(haft_io_run(ask, NULL) == 0);
    haft_http_server_free(server);
    return 0;
}
