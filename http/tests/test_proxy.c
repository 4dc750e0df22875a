/* SPDX-License-Identifier: MIT */
/* The reverse proxy: what it passes on, by the sections of RFC 9110, what it repeats, and which of
   its upstreams it uses. In simulations; test_proxy_http2.c has HTTP/2. */
#include "check_http.h"

/* These ports are of the machine, too: no other test uses them. */
enum { SERVICE = 4001, OTHER = 4002 };

static haft_http_server_t *server;
static haft_http_proxy_t *proxy;
static char log_lines[1 << 14];

static void note(void *unused, const char *line) {
    (void)unused;
    strncat(log_lines, line, sizeof log_lines - strlen(log_lines) - 2);
    strcat(log_lines, "\n");
}

/* With the upstreams of the options, or those two ports, of which `count` are used. */
static uint16_t start_proxy(haft_http_proxy_options_t options) {
    static const char *const upstreams[] = {"http://127.0.0.1:4001", "http://127.0.0.1:4002/"};
    if (options.upstreams == NULL)
        options.upstreams = upstreams;
    log_lines[0] = '\0';
    server = haft_http_server_new();
    haft_http_server_set_log(server, note, NULL);
    CHECK(haft_http_proxy_new_with(&options, &proxy) == 0);
    CHECK(haft_http_server_any(server, "/{path...}", haft_http_proxy_pass, proxy) == 0);
    return start_server(server);
}

static void *serve_listener(void *listener) {
    CHECK(haft_http_server_serve(server, *(const int *)listener) == 0);
    return NULL;
}

static void stop_server(void) {
    haft_http_server_stop(server);
    while (haft_http_server_port(server) != 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
}

static void stop_proxy(void) {
    stop_server();
    haft_http_proxy_free(proxy);
    haft_http_server_free(server);
}

/* ---- A service that sends what it is told to send ---- */

typedef struct {
    uint16_t port;
    const char *until;   /* it reads up to this; NULL: the end of a head */
    const char *says[4]; /* on each connection in turn; NULL: it closes */
    int connections;
    char heard[100000];
    size_t size;
    int listener;
} service_t;

static void *answer_once(service_t *service, int connection) {
    const char *until = service->until != NULL ? service->until : "\r\n\r\n";
    service->size = 0;
    service->heard[0] = '\0';
    while (strstr(service->heard, until) == NULL) {
        ssize_t got = haft_io_read(connection, service->heard + service->size,
                                   sizeof service->heard - 1 - service->size);
        if (got <= 0)
            return NULL;
        service->heard[service->size += (size_t)got] = '\0';
    }
    const char *says = service->says[service->connections++ % 4];
    if (says != NULL)
        haft_io_write_all(connection, says, strlen(says));
    return NULL;
}

static void *run_service(void *argument) {
    service_t *service = argument;
    for (;;) {
        HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(service->listener);
        if (connection < 0)
            return NULL;
        answer_once(service, connection);
    }
}

static haft_io_task_t *start_service(service_t *service) {
    service->listener = haft_io_listen_tcp("127.0.0.1", service->port, 0);
    CHECK(service->listener >= 0);
    service->connections = 0;
    return haft_io_async(run_service, service);
}

static void stop_service(service_t *service, haft_io_task_t *task) {
    haft_io_close(service->listener);
    haft_io_join(task, NULL);
}

/* ---- RFC 9110, section 7 ---- */

typedef struct {
    const char *section;
    const char *says;
    const char *service_hears[6], *service_never[6];
    const char *service_says, *hears[6], *never[6];
    const char *until; /* the service reads this before it answers */
} exchange_t;

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
#define DONE OK "\r\nok"

static const exchange_t exchanges[] = {
    {.section = "7.2, Host and the target",
     .says = "GET /a%20b?c=%2F" END,
     .service_hears = {"GET /a%20b?c=%2F HTTP/1.1\r\nHost: 127.0.0.1:4001\r\n",
                       "X-Forwarded-Host: here\r\n"},
     .service_says = DONE,
     .hears = {"200 OK", "\r\n\r\nok"}},
    {.section = "7.2, the absolute form counts before Host",
     .says = "GET http://there:80/x HTTP/1.1\r\nHost: here\r\n\r\n",
     .service_hears = {"GET /x HTTP/1.1\r\n", "X-Forwarded-Host: there:80\r\n"},
     .service_never = {": here\r\n"},
     .service_says = DONE,
     .hears = {"200 OK"}},
    {.section = "7.6.1, what Connection names is not passed on",
     .says = "GET /" WITH("Connection: close, X-Hop\r\nX-Hop: 1\r\nX-End: 2"),
     .service_hears = {"X-End: 2\r\n"},
     .service_never = {"X-Hop", "close"},
     .service_says = OK "Connection: X-Back\r\nX-Back: 3\r\nX-On: 4\r\n\r\nok",
     .hears = {"Connection: close\r\n", "X-On: 4\r\n"},
     .never = {"X-Back"}},
    {.section = "7.6.1, what is known to be of a connection neither",
     .says = "GET /" WITH("Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\n"
                          "Trailer: X-T\r\nUpgrade: thing\r\nX-End: 1"),
     .service_hears = {"X-End: 1\r\n"},
     .service_never = {"Keep-Alive", "Proxy-Connection", "TE:", "Trailer:", "Upgrade:"},
     .service_says = OK "Keep-Alive: timeout=5\r\nProxy-Connection: close\r\nTrailer: X-T\r\n"
                        "Upgrade: thing\r\nX-End: 2\r\n\r\nok",
     .hears = {"X-End: 2\r\n"},
     .never = {"Keep-Alive", "Proxy-Connection", "Trailer", "Upgrade"}},
    {.section = "7.6.1, TE is the proxy's own",
     .says = "GET /" WITH("TE: trailers, gzip;q=0.5\r\nConnection: TE"),
     .service_hears = {"Connection: TE\r\n", "TE: trailers\r\n"},
     .service_never = {"gzip"},
     .service_says = DONE,
     .hears = {"200 OK"}},
    {.section = "7.6, what is not known is passed on as it came, and lists are not joined",
     .says = "GET /" WITH("X-A: 1\r\nx-a: 2\r\nX-Empty:\r\nAuthorization: Basic x"),
     .service_hears = {"X-A: 1\r\nx-a: 2\r\nX-Empty: \r\nAuthorization: Basic x\r\n"},
     .service_says = OK "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nServer: it\r\n"
                        "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\nok",
     .hears = {"Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nServer: it\r\n",
               "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"},
     .never = {"Date: Sat", "a=1, b=2"}},
    {.section = "7.6.2, Max-Forwards of OPTIONS is one less",
     .says = "OPTIONS /" WITH("Max-Forwards: 3"),
     .service_hears = {"OPTIONS / HTTP/1.1\r\n", "Max-Forwards: 2\r\n"},
     .service_never = {"Max-Forwards: 3"},
     .service_says = DONE,
     .hears = {"200 OK"}},
    {.section = "7.6.2, and at 0 the proxy answers",
     .says = "OPTIONS /" WITH("Max-Forwards: 0"),
     .hears = {"204 No Content"}},
    {.section = "7.6.2, TRACE gives back what is not private",
     .says = "TRACE /x" WITH("Max-Forwards: 0\r\nCookie: a=b\r\nX-A: 1"),
     .hears = {"200 OK", "message/http", "\r\n\r\nTRACE /x HTTP/1.1\r\nHost: here\r\n",
               "X-A: 1\r\n"},
     .never = {"a=b"}},
    {.section = "7.6.2, for another method it is a field like others",
     .says = "GET /" WITH("Max-Forwards: 0"),
     .service_hears = {"Max-Forwards: 0\r\n"},
     .service_says = DONE,
     .hears = {"200 OK"}},
    {.section = "7.6.3, Via names the proxy in both directions",
     .says = "GET /" WITH("Via: 1.0 one, 1.1 two (a, b)"),
     .service_hears = {"Via: 1.0 one, 1.1 two (a, b), 1.1 door\r\n"},
     .service_says = "HTTP/1.0 200 OK\r\nVia: 1.1 back\r\n\r\n!",
     .hears = {"Via: 1.1 back, 1.0 door\r\n", "\r\n1\r\n!\r\n0\r\n\r\n"}},
    {.section = "7.3, a request that goes round in a circle",
     .says = "GET /" WITH("Via: 1.1 other, 1.1 DOOR"),
     .hears = {"508 Loop Detected"}},
    {.section = "7.7, nothing is transformed",
     .says = "GET /" WITH("Accept-Encoding: gzip, zstd\r\nRange: bytes=0-1"),
     .service_hears = {"Accept-Encoding: gzip, zstd\r\n", "Range: bytes=0-1\r\n"},
     .service_says = "HTTP/1.1 206 Partial Content\r\nContent-Encoding: x\r\nContent-Length: 2\r\n"
                     "Content-Range: bytes 0-1/2\r\nCache-Control: no-transform\r\n\r\nok",
     .hears = {"206 Partial Content", "Content-Length: 2\r\n", "Content-Encoding: x\r\n",
               "Content-Range: bytes 0-1/2\r\n", "\r\n\r\nok"}},
    {.section = "6.4 and 8.6, a body with its length",
     .says = "PUT /" WITH("Content-Length: 5\r\nContent-Type: text/x") "12345",
     .service_hears = {"Content-Length: 5\r\n", "\r\n\r\n12345"},
     .service_never = {"Transfer-Encoding", "Expect"},
     .until = "12345",
     .service_says = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
     .hears = {"201 Created", "Content-Length: 0\r\n"}},
    {.section = "6.5, a body in chunks, with its trailers, both ways",
     .says = "POST /" WITH("Transfer-Encoding: chunked\r\nTE: trailers") "1\r\na\r\n0\r\n"
                                                                         "X-Sum: 5\r\nHost: "
                                                                         "evil\r\n\r\n",
     .service_hears = {"Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\nX-Sum: 5\r\n\r\n"},
     .service_never = {"evil"},
     .until = "0\r\nX-Sum: 5\r\n\r\n",
     .service_says = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nk\r\n0\r\n"
                     "X-End: yes\r\nContent-Length: 3\r\n\r\n",
     .hears = {"Transfer-Encoding: chunked\r\n", "1\r\nk\r\n0\r\nX-End: yes\r\n\r\n"},
     .never = {"Content-Length"}},
    {.section = "9.3.2, an answer to HEAD says how long the body would be",
     .says = "HEAD /" END "HEAD /" END,
     .service_hears = {"HEAD / HTTP/1.1\r\n"},
     .service_says = "HTTP/1.1 200 OK\r\nContent-Length: 77\r\nConnection: close\r\n\r\n",
     .hears = {"Content-Length: 77\r\n", "Content-Length: 77\r\n"}},
    {.section = "15.4.5, 304 has no body",
     .says = "GET /" WITH("If-None-Match: \"a\"") "GET /" END,
     .service_says = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nConnection: close\r\n\r\n",
     .hears = {"304 Not Modified", "ETag: \"a\"\r\nVia: 1.1 door\r\n\r\nHTTP/1.1 304"}},
    {.section = "10.1.1, an expectation is met before the body goes on",
     .says = "POST /" WITH("Expect: 100-continue\r\nContent-Length: 2") "ab",
     .service_never = {"Expect"},
     .until = "\r\n\r\nab",
     .service_says = DONE,
     .hears = {"200 OK"}},
    {.section = "11.7.2, what is for a proxy stays there",
     .says = "GET /" WITH("Proxy-Authorization: Basic x"),
     .service_never = {"Proxy-Authorization"},
     .service_says = DONE,
     .hears = {"200 OK"}},
    {.section = "RFC 7239, what a stranger says of others is not believed",
     .says = "GET /" WITH("X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n"
                          "X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil"),
     .service_hears = {"X-Forwarded-Host: here\r\n", "X-Forwarded-Proto: http\r\n",
                       "Forwarded: for=unknown;host=\"here\";proto=http\r\n"},
     .service_never = {"6.6.6.6", "evil", "https"},
     .service_says = DONE,
     .hears = {"200 OK"}},
    {.section = "15.2, informational answers come before the one",
     .says = "GET /" END,
     .service_says = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n"
                     "Connection: X-Hop\r\nX-Hop: 1\r\nLink: y\r\n\r\n" DONE,
     .hears = {"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n"
               "Link: x\r\nLink: y\r\n\r\nHTTP/1.1 200 OK\r\n",
               "\r\n\r\nok"},
     .never = {"X-Hop"}},
    {.section = "15.2, but not to a client of HTTP/1.0",
     .says = "GET / HTTP/1.0\r\n\r\n",
     .service_says = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" DONE,
     .hears = {"200 OK", "\r\n\r\nok"},
     .never = {"103", "Link"}},
    {.section = "15.2.1, nor a word that the client has not asked for",
     .says = "POST /" WITH("Content-Length: 2") "hi",
     .until = "hi",
     .service_never = {"Expect"},
     .service_says = "HTTP/1.1 100 Continue\r\n\r\n" DONE,
     .hears = {"200 OK", "\r\n\r\nok"},
     .never = {"100"}},
    {.section = "10.1.1, a service that refuses gets no body, and the client is not asked for it",
     .says = "POST /" WITH("Expect: 100-continue\r\nContent-Length: 2"),
     .service_hears = {"Expect: 100-continue\r\n"},
     .service_says = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno",
     .hears = {"401 Unauthorized", "\r\n\r\nno"},
     .never = {"100 Continue"}},
    {.section = "15.6.3, an answer that is none",
     .says = "GET /" END,
     .service_says = "hello\r\n\r\n",
     .hears = {"502 Bad Gateway"}},
    {.section = "7.8, a change of protocol that nobody has asked for",
     .says = "GET /" END,
     .service_says = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
     .hears = {"502 Bad Gateway"},
     .never = {"101"}},
    {.section = "15, a status that nobody knows",
     .says = "GET /" END,
     .service_says = "HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n",
     .hears = {"502 Bad Gateway"}},
};

static void check_words(const char *section, const char *text, const char *const *hears,
                        const char *const *never) {
    const char *at = text, *missing = NULL;
    for (size_t i = 0; i < 6 && hears[i] != NULL && missing == NULL; i++)
        if ((at = strstr(at, hears[i])) == NULL)
            missing = hears[i];
    for (size_t i = 0; i < 6 && never[i] != NULL && missing == NULL; i++)
        if (strstr(text, never[i]) != NULL)
            missing = never[i];
    if (missing == NULL)
        return;
    fprintf(stderr, "%s: %s in\n%s\n", section, missing, text);
    abort();
}

static void *exchange_all(void *unused) {
    static service_t service;
    static char heard[100000];
    uint16_t port = start_proxy((haft_http_proxy_options_t){.upstream_count = 1, .name = "door"});
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++) {
        const exchange_t *row = &exchanges[i];
        const char *says = row->service_says;
        service =
            (service_t){.port = SERVICE, .until = row->until, .says = {says, says, says, says}};
        haft_io_task_t *task = start_service(&service);
        say_and_hear(port, row->says, strlen(row->says), false, heard, sizeof heard);
        stop_service(&service, task);
        check_words(row->section, service.heard, row->service_hears, row->service_never);
        check_words(row->section, heard, row->hears, row->never);
    }
    stop_proxy();
    return unused;
}

/* ---- The client in whose name it asks ---- */

typedef struct {
    const char *trusted;
    haft_http_forward_t forwarded;
    const char *hears[4], *never[3];
} speaking_t;

/* Says what is told of a client of this address, which came by the PROXY protocol. */
static void *speak_for_clients(void *unused) {
    static const speaking_t rows[] = {
        {"unix",
         HAFT_HTTP_FORWARD_BOTH,
         {"X-Forwarded-For: 2001:db8::7\r\n", "X-Forwarded-Host: here:80\r\n",
          "Forwarded: for=\"[2001:db8::7]\";host=\"here:80\";proto=http\r\n"},
         {"192.0.2.1", "far", "https"}},
        {"unix 2001:db8::/32",
         HAFT_HTTP_FORWARD_BOTH,
         {"X-Forwarded-For: 192.0.2.1, 2001:db8::7\r\n", "X-Forwarded-Host: far\r\n",
          "X-Forwarded-Proto: https\r\n",
          "Forwarded: for=192.0.2.1, for=\"[2001:db8::7]\";host=\"here:80\";proto=http\r\n"},
         {NULL}},
        {"unix", HAFT_HTTP_FORWARD_X, {"X-Forwarded-For: 2001:db8::7\r\n"}, {"\r\nForwarded"}},
        {"unix", HAFT_HTTP_FORWARD_STANDARD, {"Forwarded: for="}, {"X-Forwarded"}},
        {"unix", HAFT_HTTP_FORWARD_NOTHING, {"Via"}, {"Forwarded"}},
    };
    static service_t service;
    static char heard[10000];
    static const char says[] =
        "PROXY TCP6 2001:db8::7 ::1 1 2\r\nGET / HTTP/1.1\r\nHost: here:80\r\n"
        "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Host: far\r\nX-Forwarded-Proto: https\r\n"
        "Forwarded: for=192.0.2.1\r\n\r\n";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start_proxy(
            (haft_http_proxy_options_t){.upstream_count = 1, .forwarded = rows[i].forwarded});
        stop_server();
        CHECK(haft_http_server_trust_proxies(server, rows[i].trusted, "X-Forwarded-For") == 0);
        int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
        CHECK(haft_http_server_expect_proxy_header(server, listener) == 0);
        service = (service_t){.port = SERVICE, .says = {DONE}};
        haft_io_task_t *task = start_service(&service);
        haft_io_spawn(serve_listener, &listener);
        while (haft_http_server_port(server) == 0)
            haft_io_sleep(HAFT_IO_MILLISECOND);
        say_and_hear(haft_http_server_port(server), says, sizeof says - 1, false, heard,
                     sizeof heard);
        stop_service(&service, task);
        check_words(rows[i].trusted, service.heard, rows[i].hears, rows[i].never);
        CHECK(strstr(heard, "200 OK") != NULL);
        stop_proxy();
    }
    return unused;
}

/* ---- What is repeated ---- */

static void check_asked(size_t number, uint64_t requests, unsigned failures, bool is_used) {
    haft_http_upstream_t upstream;
    CHECK(haft_http_proxy_upstream(proxy, number, &upstream));
    if (upstream.requests == requests && upstream.failures == failures &&
        upstream.is_used == is_used && upstream.now == 0)
        return;
    fprintf(stderr, "%s: %d requests, %u failures, %d, now %zu\n%s", upstream.url,
            (int)upstream.requests, upstream.failures, upstream.is_used, upstream.now, log_lines);
    abort();
}

static void check_answer(uint16_t port, const char *says, const char *hears) {
    static char heard[100000];
    say_and_hear(port, says, strlen(says), false, heard, sizeof heard);
    check_words(says, heard, (const char *const[6]){hears}, (const char *const[6]){NULL});
}

/* The first upstream ends connections without an answer, or there is none; the second answers. */
static void *repeat_what_may_be(void *unused) {
    static service_t first, second;
    static const struct {
        bool is_there;
        const char *says, *hears;
        int asked; /* the second upstream, so often */
    } rows[] = {
        {true, "GET /" END, "200 OK", 1},
        {true, "DELETE /" END, "200 OK", 1},
        {true, "POST /" END, "502 Bad Gateway", 0},
        {true, "PUT /" WITH("Content-Length: 1") "x", "502 Bad Gateway", 0},
        {false, "GET /" END, "200 OK", 1},
        {false, "POST /" WITH("Content-Length: 1") "x", "200 OK", 1},
        {false, "POST /" WITH("Transfer-Encoding: chunked") "1\r\nx\r\n0\r\n\r\n", "200 OK", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint16_t port = start_proxy((haft_http_proxy_options_t){.upstream_count = 2});
        first = (service_t){.port = SERVICE};
        second = (service_t){.port = OTHER, .says = {OK "Connection: close\r\n\r\nok"}};
        haft_io_task_t *of_first = rows[i].is_there ? start_service(&first) : NULL;
        haft_io_task_t *of_second = start_service(&second);
        check_answer(port, rows[i].says, rows[i].hears);
        CHECK(second.connections == rows[i].asked);
        check_asked(0, 1, 1, true);
        if (rows[i].is_there)
            stop_service(&first, of_first);
        stop_service(&second, of_second);
        stop_proxy();
    }
    return unused;
}

/* ---- Which are used ---- */

#define CLOSES OK "Connection: close\r\n\r\nok"

static void *leave_out_who_fails(void *unused) {
    static service_t first = {.port = SERVICE, .says = {CLOSES, CLOSES, CLOSES, CLOSES}},
                     second = {.port = OTHER, .says = {CLOSES, CLOSES, CLOSES, CLOSES}};
    uint16_t port = start_proxy((haft_http_proxy_options_t){.upstream_count = 2, .failures = 2});
    haft_io_task_t *of_second = start_service(&second);
    for (int i = 0; i < 6; i++)
        check_answer(port, "GET /" END, "200 OK");
    check_asked(0, 2, 2, false);
    check_asked(1, 6, 0, true);
    stop_service(&second, of_second);
    for (int i = 0; i < 2; i++)
        check_answer(port, "GET /" END, "502 Bad Gateway");
    CHECK(strstr(log_lines, "4001 is out of use: ") != NULL &&
          strstr(log_lines, "4002 is out of use: ") != NULL);
    /* Where all are out of use, they are asked all the same. */
    haft_io_task_t *of_first = start_service(&first);
    check_answer(port, "GET /" END, "200 OK");
    CHECK(strstr(log_lines, "4001 is in use again") != NULL);
    haft_http_upstream_t upstream;
    CHECK(haft_http_proxy_upstream(proxy, 1, &upstream) && !upstream.is_used);
    haft_io_sleep(11 * HAFT_IO_SECOND);
    CHECK(haft_http_proxy_upstream(proxy, 1, &upstream) && upstream.is_used);
    CHECK(!haft_http_proxy_upstream(proxy, 2, &upstream));
    stop_service(&first, of_first);
    stop_proxy();
    return unused;
}

static void *ask_for_health(void *unused) {
    static service_t service;
    service = (service_t){.port = SERVICE, .says = {CLOSES, CLOSES, CLOSES, CLOSES}};
    uint16_t port = start_proxy(
        (haft_http_proxy_options_t){.upstream_count = 1, .health = "/health", .failures = 100});
    check_answer(port, "GET /" END, "502 Bad Gateway"); /* begins to ask */
    haft_io_sleep(6 * HAFT_IO_SECOND);
    check_answer(port, "GET /" END, "503 Service Unavailable");
    CHECK(strstr(log_lines, "4001 is not well: ") != NULL);
    haft_io_task_t *task = start_service(&service);
    haft_io_sleep(6 * HAFT_IO_SECOND);
    CHECK(strstr(service.heard, "GET /health HTTP/1.1\r\n") != NULL);
    CHECK(strstr(log_lines, "4001 is well") != NULL);
    check_answer(port, "GET /" END, "200 OK");
    stop_service(&service, task);
    int64_t begun = haft_io_now();
    stop_proxy();
    CHECK(haft_io_now() - begun < 2 * HAFT_IO_SECOND); /* a stop ends health checks */
    return unused;
}

/* Times without progress: for the connection, and for the answer, before it and in it. */
static void *give_up(void *unused) {
    static service_t service;
    uint16_t port = start_proxy((haft_http_proxy_options_t){
        .upstream_count = 1, .answer_time = 3 * HAFT_IO_SECOND, .failures = 100});
    service = (service_t){.port = SERVICE, .until = "never"};
    haft_io_task_t *task = start_service(&service);
    int64_t begun = haft_io_now();
    check_answer(port, "GET /slow" END, "504 Gateway Timeout");
    CHECK(haft_io_now() - begun >= 3 * HAFT_IO_SECOND);
    CHECK(strstr(log_lines, "GET /slow: http://127.0.0.1:4001: ") != NULL);
    check_asked(0, 1, 1, true);
    stop_service(&service, task);
    stop_proxy();
    return unused;
}

/* ---- Piece by piece ---- */

static haft_io_channel_t *pieces;
static size_t piece_count;

/* A service of this library, which answers while it is asked. */
static int say_pieces(haft_http_request_t *request, void *unused) {
    char piece[20];
    ssize_t size;
    (void)unused;
    while ((size = haft_http_request_read(request, piece, sizeof piece)) > 0)
        piece_count += (size_t)size;
    CHECK(size == 0);
    int code = haft_http_answer_begin(request, 200, "text/plain", HAFT_HTTP_UNKNOWN_SIZE);
    while (code == 0 && haft_io_channel_receive(pieces, piece) == 0) {
        code = haft_http_answer_write(request, piece, strlen(piece));
        code = code == 0 ? haft_http_answer_flush(request) : code;
    }
    return code;
}

/* Wants the body, or not. */
static int want_body(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    if (haft_http_request_header(request, "X-Unwanted") != NULL)
        return haft_http_request_refuse(request, 403, "unwanted");
    ssize_t size = haft_http_request_body(request, &body);
    return size < 0 ? (int)size : haft_http_answer(request, 200, NULL, body, (size_t)size);
}

static int echo_socket(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_websocket_t *socket = haft_http_websocket_accept(request);
    haft_http_websocket_message_t message;
    if (socket == NULL)
        return 0;
    while (haft_http_websocket_receive(socket, &message) == 0)
        haft_http_websocket_send(socket, message.kind, message.bytes, message.size);
    return 0;
}

static int echo_stream(haft_http_request_t *request, void *unused) {
    char bytes[100];
    ssize_t size;
    (void)unused;
    CHECK(haft_http_request_upgrade(request, "echo") == 0);
    while ((size = haft_http_stream_read(request, bytes, sizeof bytes)) > 0)
        haft_http_stream_write(request, bytes, (size_t)size);
    haft_http_stream_write(request, " end", 4);
    haft_http_stream_shutdown(request);
    return 0;
}

static haft_http_server_t *inner;

static void *serve_inner(void *unused) {
    CHECK(haft_http_server_serve(inner, haft_io_listen_tcp("127.0.0.1", SERVICE, 0)) == 0);
    return unused;
}

static uint16_t start_both(void) {
    inner = haft_http_server_new();
    haft_http_server_post(inner, "/pieces", say_pieces, NULL);
    haft_http_server_post(inner, "/echo", echo_pieces, NULL);
    haft_http_server_post(inner, "/wanted", want_body, NULL);
    haft_http_server_get(inner, "/socket", echo_socket, NULL);
    haft_http_server_get(inner, "/stream", echo_stream, NULL);
    haft_io_spawn(serve_inner, NULL);
    while (haft_http_server_port(inner) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    return start_proxy((haft_http_proxy_options_t){.upstream_count = 1});
}

static void stop_both(void) {
    haft_http_server_stop(inner);
    stop_proxy();
    while (haft_http_server_port(inner) != 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_http_server_free(inner);
}

static void hear_word(int connection, const char *word) {
    char heard[1000] = "";
    for (size_t size = 0; strstr(heard, word) == NULL; heard[++size] = '\0')
        if (size + 1 >= sizeof heard || haft_io_read(connection, heard + size, 1) != 1) {
            fprintf(stderr, "no %s in\n%s\n%s", word, heard, log_lines);
            abort();
        }
}

static void say_word(int connection, const char *word) {
    CHECK(haft_io_write_all(connection, word, strlen(word)) == 0);
}

/* Each piece arrives before the next one is sent. */
static void *pass_pieces(void *unused) {
    pieces = haft_io_channel_new(20, 0);
    piece_count = 0;
    uint16_t port = start_both();
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
    say_word(connection, "POST /pieces" WITH("Transfer-Encoding: chunked") "3\r\nabc\r\n");
    while (piece_count != 3)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    say_word(connection, "2\r\nde\r\n0\r\n\r\n");
    haft_io_channel_send(pieces, "1\0..................");
    hear_word(connection, "1\r\n1\r\n");
    haft_io_channel_send(pieces, "2\0..................");
    hear_word(connection, "1\r\n2\r\n");
    CHECK(piece_count == 5);
    haft_io_channel_close(pieces);
    hear_word(connection, "0\r\n\r\n");
    stop_both();
    haft_io_channel_free(pieces);
    return unused;
}

/* The answer begins, and ends a part, before the body does. */
static void *go_both_ways(void *unused) {
    uint16_t port = start_both();
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
    say_word(connection, "POST /echo" WITH("Transfer-Encoding: chunked"));
    hear_word(connection, "200 OK");
    for (int i = 0; i < 50; i++) {
        say_word(connection, "1\r\nQ\r\n");
        hear_word(connection, "Q");
        if (i == 10)
            haft_io_sleep(HAFT_IO_SECOND);
    }
    say_word(connection, "0\r\n\r\n");
    hear_word(connection, "0\r\n\r\n");
    check_answer(port, "POST /echo" WITH("Content-Length: 1") "Q", "Q");
    stop_both();
    return unused;
}

/* RFC 9110, section 10.1.1: the service decides whether the client is to send. */
static void *ask_for_body(void *unused) {
    uint16_t port = start_both();
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
    for (int i = 0; i < 2; i++) {
        say_word(connection, "POST /wanted" WITH("Expect: 100-continue\r\nContent-Length: 4"));
        hear_word(connection, "HTTP/1.1 100 Continue\r\n\r\n");
        say_word(connection, "body");
        hear_word(connection, "\r\n\r\nbody");
    }
    check_answer(port,
                 "POST /wanted" WITH("X-Unwanted: yes\r\nExpect: 100-continue\r\n"
                                     "Content-Length: 4"),
                 "HTTP/1.1 403 Forbidden");
    stop_both();
    return unused;
}

/* RFC 9112, section 9.3: an answer that does not wait for the body. The connection to the service is
   not used again. */
static void *answer_early(void *unused) {
    static service_t service;
    service = (service_t){
        .port = SERVICE,
        .says = {"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno", DONE}};
    haft_io_task_t *task = start_service(&service);
    uint16_t port = start_proxy((haft_http_proxy_options_t){.upstream_count = 1});
    int connection = haft_io_connect_tcp("127.0.0.1", port);
    say_word(connection, "POST /" WITH("Content-Length: 1000") "some");
    hear_word(connection, "413 Content Too Large");
    hear_word(connection, "\r\n\r\nno");
    haft_io_close(connection); /* before it is told that it should be */
    check_answer(port, "GET /" END, "200 OK");
    stop_service(&service, task);
    stop_proxy();
    return unused;
}

/* The client is given up, and the service with it; or the service is. */
static void *stop_between(void *unused) {
    uint16_t port = start_both();
    for (int i = 0; i < 3; i++) {
        HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
        say_word(connection, "POST /echo" WITH("Transfer-Encoding: chunked") "1\r\nQ\r\n");
        hear_word(connection, "Q");
        if (i == 1) {
            say_word(connection, "what\r\n");
        } else if (i == 2) {
            haft_io_shutdown(connection, SHUT_WR);
            hear_word(connection, "");
        }
    }
    check_answer(port, "POST /echo" WITH("Content-Length: 1") "Q", "Q");
    stop_both();
    return unused;
}

static void *change_protocols(void *unused) {
    uint16_t port = start_both();
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
    say_word(connection, "GET /stream" WITH("Connection: Upgrade\r\nUpgrade: echo") "hello");
    hear_word(connection, "101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n");
    hear_word(connection, "\r\n\r\nhello");
    say_word(connection, "more");
    hear_word(connection, "more");
    haft_io_shutdown(connection, SHUT_WR);
    hear_word(connection, " end");
    check_answer(port, "GET /socket" WITH("Connection: Upgrade\r\nUpgrade: h2c"), "426 Upgrade");
    stop_both();
    return unused;
}

static void *talk_over_a_socket(void *unused) {
    uint16_t port = start_both();
    haft_http_client_t *client = haft_http_client_new();
    haft_http_websocket_t *socket;
    haft_http_websocket_message_t message;
    char url[60];
    snprintf(url, sizeof url, "ws://127.0.0.1:%d/socket", port);
    int code = haft_http_websocket_connect(client, &(haft_http_question_t){.url = url}, &socket);
    if (code != -EOPNOTSUPP) {
        CHECK(code == 0);
        for (int i = 0; i < 3; i++) {
            CHECK(haft_http_websocket_send(socket, HAFT_HTTP_WEBSOCKET_TEXT, "hello", 5) == 0);
            CHECK(haft_http_websocket_receive(socket, &message) == 0 && message.size == 5);
        }
        haft_http_websocket_free(socket);
    }
    haft_http_client_free(client);
    stop_both();
    return unused;
}

int main(void) {
    simulate_seeds(exchange_all);
    simulate_seeds(speak_for_clients);
    simulate_seeds(repeat_what_may_be);
    simulate_seeds(leave_out_who_fails);
    simulate_seeds(ask_for_health);
    simulate_seeds(give_up);
    simulate_seeds(pass_pieces);
    simulate_seeds(go_both_ways);
    simulate_seeds(ask_for_body);
    simulate_seeds(answer_early);
    simulate_seeds(stop_between);
    for (int threads = 1; threads <= 2; threads++) {
        haft_io_run_options_t how = {.threads = threads};
        CHECK(haft_io_run_with(&how, go_both_ways, NULL) == 0);
        CHECK(haft_io_run_with(&how, ask_for_body, NULL) == 0);
        CHECK(haft_io_run_with(&how, stop_between, NULL) == 0);
    }
    simulate_seeds(change_protocols);
    simulate_seeds(talk_over_a_socket);
    return 0;
}
