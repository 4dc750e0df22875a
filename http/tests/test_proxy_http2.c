/* SPDX-License-Identifier: MIT */
/* The reverse proxy between a client of HTTP/2 and services of HTTP/1.1 and, over TLS, HTTP/2. In
   simulations. */
#include <haft/http.h>

#include "../tls/tests/check_tls.h"

#undef CHECK /* both headers have one */
#include "check_http2.h"

/* These ports are of the machine, too: no other test uses them. */
enum { SERVICE = 4011, OF_HTTP1 = 4012, BIG = 100000 };

static issued_t authority, certificate;
static haft_tls_context_t *offering, *trusting;
static haft_http_server_t *service, *server;
static haft_http_proxy_t *proxy;
static char heard[10000];

/* ---- The services ---- */

/* Answers with what it has read, and the body. */
static int tell(haft_http_request_t *request, void *unused) {
    const char *name, *value;
    char *body, text[1000];
    size_t size = 0, cookies = 0;
    (void)unused;
    bool has_body = haft_http_request_has_body(request);
    for (size_t i = 0; haft_http_request_header_at(request, i, &name, &value); i++)
        if (strcasecmp(name, "cookie") == 0 && ++cookies == 1)
            size += (size_t)snprintf(text + size, sizeof text - size, "[%s]", value);
    CHECK(cookies <= 1);
    haft_http_request_limit_body(request, 10 * BIG);
    ssize_t got = haft_http_request_body(request, &body);
    if (got < 0)
        return (int)got;
    const char *sum = haft_http_request_trailer(request, "X-Sum");
    CHECK(haft_http_request_trailer_at(request, 0, &name, &value) == (sum != NULL));
    const char *te = haft_http_request_header(request, "TE");
    size += (size_t)snprintf(text + size, sizeof text - size, "%s %s%s%s%s ",
                             haft_http_request_version(request), haft_http_request_method(request),
                             has_body ? " with a body" : "", sum != NULL ? " and " : "",
                             sum != NULL ? sum : "");
    snprintf(text + size, sizeof text - size, "%s", te != NULL ? te : "");
    int code = haft_http_answer_begin(request, 200, "text/plain", HAFT_HTTP_UNKNOWN_SIZE);
    code = code == 0 ? haft_http_answer_write(request, text, strlen(text)) : code;
    code = code == 0 ? haft_http_answer_write(request, body, (size_t)got) : code;
    if (code == 0 && sum != NULL)
        code = haft_http_answer_set_trailer(request, "X-Sum", sum);
    return code;
}

static void *serve_service(void *unused) {
    CHECK(haft_http_server_serve(service, haft_io_listen_tcp("127.0.0.1", SERVICE, 0)) == 0);
    return unused;
}

/* A server of HTTP/1.1: reads one request, with a trailer. */
static void *answer_one(void *listener) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(*(const int *)listener);
    static const char says[] =
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\nConnection: close\r\n\r\n"
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    size_t size = 0;
    for (ssize_t got; strstr(heard, "x-sum: 6\r\n\r\n") == NULL; heard[size += (size_t)got] = '\0')
        CHECK((got = haft_io_read(connection, heard + size, sizeof heard - 1 - size)) > 0);
    haft_io_write_all(connection, says, sizeof says - 1);
    return NULL;
}

/* ---- What is asked ---- */

static void start(bool is_secure, const char *upstream) {
    haft_http_proxy_options_t options = {
        .upstreams = &upstream, .upstream_count = 1, .tls = trusting};
    service = haft_http_server_new();
    CHECK(haft_http_server_any(service, "/{path...}", tell, NULL) == 0);
    CHECK(haft_http_server_post(service, "/echo", echo_pieces, NULL) == 0);
    if (is_secure) {
        CHECK(haft_http_server_set_tls(service, offering) == 0);
        haft_io_spawn(serve_service, NULL);
        while (haft_http_server_port(service) == 0)
            haft_io_sleep(HAFT_IO_MILLISECOND);
    }
    server = haft_http_server_new();
    CHECK(haft_http_proxy_new_with(&options, &proxy) == 0);
    CHECK(haft_http_server_any(server, "/{path...}", haft_http_proxy_pass, proxy) == 0);
}

static void stop(void) {
    haft_http_server_stop(server);
    while (haft_http_server_port(server) != 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_http_proxy_free(proxy);
    haft_http_server_free(server);
    haft_http_server_stop(service);
    while (haft_http_server_port(service) != 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_http_server_free(service);
}

static void check_body(const answer_t *answer, const char *text) {
    if (strcmp(answer->status, "200") == 0 && answer->body != NULL &&
        strcmp(answer->body, text) == 0)
        return;
    fprintf(stderr, "%s: %s\nbut not\n%s\n", answer->status,
            answer->body != NULL ? answer->body : "nothing", text);
    abort();
}

/* A body without Content-Length, its trailers, and cookies that are divided. */
static void *pass_to_http2(void *unused) {
    static client_t client;
    static char body[BIG + 1], expected[BIG + 200];
    start(true, "https://localhost:4011");
    open_client(&client, start_server(server), NULL, 0);
    check_body(hear_whole(&client, ask_with(&client, "GET", "/", "cookie: a=1\ncookie: b=2\n", NULL,
                                            0, NULL)),
               "[a=1; b=2]HTTP/2.0 GET ");
    const answer_t *answer =
        hear_whole(&client, ask_with(&client, "POST", "/", "te: trailers\n", "abc", 3, "6"));
    check_body(answer, "HTTP/2.0 POST with a body and 6 trailersabc");
    CHECK(strcmp(answer->sum, "6") == 0);
    check_body(hear_whole(&client, ask_with(&client, "PUT", "/", "", "", 0, NULL)),
               "HTTP/2.0 PUT with a body ");
    memset(body, 'x', BIG);
    static const size_t sizes[] = {1, 64, 65, 1000, BIG};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        answer = hear_whole(&client, ask_with(&client, "PUT", "/", "", body, sizes[i], NULL));
        snprintf(expected, sizeof expected, "HTTP/2.0 PUT with a body %.*s", (int)sizes[i], body);
        check_body(answer, expected);
    }
    close_client(&client);
    stop();
    return unused;
}

static void hear_word(int connection, const char *word) {
    char text[1000] = "";
    for (size_t size = 0; strstr(text, word) == NULL; text[++size] = '\0')
        if (size + 1 >= sizeof text || haft_io_read(connection, text + size, 1) != 1) {
            fprintf(stderr, "no %s in\n%s\n", word, text);
            abort();
        }
}

static void say_word(int connection, const char *word) {
    CHECK(haft_io_write_all(connection, word, strlen(word)) == 0);
}

/* A stream of HTTP/2 on which one task writes, while another reads; and its head of status 100. */
static void *go_both_ways(void *unused) {
    start(true, "https://localhost:4011");
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", start_server(server));
    say_word(connection, "POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n");
    hear_word(connection, "200 OK");
    for (int i = 0; i < 20; i++) {
        say_word(connection, "1\r\nQ\r\n");
        hear_word(connection, "Q");
        haft_io_sleep(i == 10 ? HAFT_IO_SECOND : 0);
    }
    say_word(connection, "0\r\n\r\n");
    hear_word(connection, "0\r\n\r\n");
    say_word(connection, "PUT / HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\n"
                         "Content-Length: 3\r\n\r\n");
    hear_word(connection, "HTTP/1.1 100 Continue\r\n\r\n");
    say_word(connection, "abc");
    hear_word(connection, "PUT with a body ");
    hear_word(connection, "0\r\n\r\n");
    haft_io_close(connection);
    connection = -1;
    stop();
    return unused;
}

static void *pass_to_http1(void *unused) {
    static client_t client;
    start(false, "http://127.0.0.1:4012");
    int listener = haft_io_listen_tcp("127.0.0.1", OF_HTTP1, 0);
    heard[0] = '\0';
    haft_io_task_t *answering = haft_io_async(answer_one, &listener);
    open_client(&client, start_server(server), NULL, 0);
    int32_t id =
        ask_with(&client, "POST", "/x", "cookie: a=1\nx-a: b\ncookie: c=2\n", "abc", 3, "6");
    const answer_t *answer = hear_whole(&client, id);
    check_body(answer, "ok");
    CHECK(answer->was_hinted);
    haft_io_join(answering, NULL);
    haft_io_close(listener);
    static const char *const words[] = {"POST /x HTTP/1.1\r\nHost: 127.0.0.1:4012\r\n",
                                        "Transfer-Encoding: chunked\r\n", "0\r\nx-sum: 6\r\n\r\n"};
    for (size_t i = 0; i < 3; i++)
        CHECK(strstr(heard, words[i]) != NULL);
    CHECK(strstr(heard, "\r\ncookie: a=1; c=2\r\n") != NULL && times_in(heard, "cookie") == 1);
    CHECK(strstr(heard, "\r\nVia: 2.0 haft-") != NULL);
    close_client(&client);
    stop();
    return unused;
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL);
    authority = issue((issue_t){.name = "authority"});
    certificate =
        issue((issue_t){.name = "server", .hosts = "DNS:localhost", .issuer = &authority});
    offering = haft_tls_server_context();
    CHECK(haft_tls_add_certificate(offering, certificate.chain_file, certificate.key_file) == 0);
    trusting = haft_tls_client_context();
    CHECK(haft_tls_trust_nobody(trusting) == 0);
    CHECK(haft_tls_trust(trusting, authority.chain_file) == 0);
    simulate_seeds(pass_to_http2);
    simulate_seeds(go_both_ways);
    for (int threads = 1; threads <= 2; threads++)
        CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, go_both_ways, NULL) ==
              0);
    simulate_seeds(pass_to_http1);
    haft_tls_context_free(offering);
    haft_tls_context_free(trusting);
    forget(&certificate);
    forget(&authority);
    rmdir(folder);
    return 0;
}
