/* SPDX-License-Identifier: MIT */
/* Server and client over TLS: in simulations, and over sockets. With an argument, this serves, and
   prints where: for h2spec.sh. */
#define _GNU_SOURCE
#include <haft/http.h>

#include "../tls/tests/check_tls.h"

#include "slow_readers.h"

static issued_t authority, certificate, person, stranger;
#ifdef CHECK_HTTP2
#    define VERSION "HTTP/2.0"
#else
#    define VERSION "HTTP/1.1"
#endif

static haft_tls_context_t *tls, *trusting, *known, *unknown, *offering_none;
static haft_http_server_t *server;
static haft_http_client_t *client;
static uint16_t port;

/* ---- The server ---- */

static int say_peer(haft_http_request_t *request, void *unused) {
    (void)unused;
    const char *peer = haft_tls_peer(haft_http_request_tls(request));
    return haft_http_answer_format(request, 200, "%s %s %s", haft_http_request_version(request),
                                   haft_tls_version(haft_http_request_tls(request)),
                                   peer != NULL ? peer : "nobody");
}

static int echo(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    haft_http_request_limit_body(request, 10000000);
    ssize_t size = haft_http_request_body(request, &body);
    return size < 0 ? (int)size : haft_http_answer(request, 200, NULL, body, (size_t)size);
}

static int say_pieces(haft_http_request_t *request, void *unused) {
    (void)unused;
    int code = haft_http_answer_begin(request, 200, "text/plain", HAFT_HTTP_UNKNOWN_SIZE);
    for (int i = 0; i < 3 && code == 0; i++)
        if ((code = haft_http_answer_write(request, "piece ", 6)) == 0)
            code = haft_http_answer_flush(request);
    return haft_http_request_query(request, "fails") != NULL ? -EIO : code;
}

/* The server's descriptor, after a while. */
static int say_descriptor(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_sleep(atoi(haft_http_request_path(request, "milliseconds")) * HAFT_IO_MILLISECOND);
    return haft_http_answer_format(request, 200, "%d", haft_http_request_descriptor(request));
}

static int go_to_peer(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_answer_set_header(request, "Location", "/peer");
    return haft_http_answer_text(request, 302, "go there");
}

static int say_content(haft_http_request_t *request, void *unused) {
    (void)unused;
    const char *type = haft_http_request_header(request, "Content-Type");
    haft_http_answer_set_cookie(request, "a", "1");
    haft_http_answer_set_cookie(request, "b", "2");
    return haft_http_answer_format(request, 200, "%s [%s] %d", haft_http_request_method(request),
                                   type != NULL ? type : "", haft_http_request_has_body(request));
}
static int go_to_content(haft_http_request_t *request, void *places) {
    for (const char *place = places; *place != '\0'; place++)
        haft_http_answer_set_header(request, "Location", *place == 'c' ? "/content" : "/peer");
    return haft_http_answer_text(request, 302, "go there");
}

static void no_line(void *unused, const char *line) {
    (void)unused, (void)line;
}

static void make_server(void) {
    server = haft_http_server_new();
    haft_http_server_set_log(server, no_line, NULL);
    haft_http_server_get(server, "/peer", say_peer, NULL);
    haft_http_server_post(server, "/echo", echo, NULL);
    haft_http_server_get(server, "/pieces", say_pieces, NULL);
    haft_http_server_get(server, "/whole", answer_huge, NULL);
    haft_http_server_get(server, "/pieces/huge", answer_huge_pieces, NULL);
    haft_http_server_t *watched = haft_http_server_group(server, "/descriptor");
    haft_http_server_use(watched, haft_http_request_cancel_with_client, NULL);
    haft_http_server_get(watched, "/{milliseconds}", say_descriptor, NULL);
    haft_http_server_get(server, "/to/peer", go_to_peer, NULL);
    haft_http_server_any(server, "/content", say_content, NULL);
    haft_http_server_post(server, "/to/content", go_to_content, "c");
    haft_http_server_post(server, "/to/two", go_to_content, "cp");
    CHECK_EQUAL(haft_http_server_set_tls(server, tls), 0);
}

static haft_tls_context_t *client_context(void) {
    haft_tls_context_t *context = haft_tls_client_context();
    CHECK_EQUAL(haft_tls_trust_nobody(context), 0);
    CHECK_EQUAL(haft_tls_trust(context, authority.chain_file), 0);
    return context;
}

/* ---- The client ---- */

/* `body` has room for what the test expects. */
static int ask(haft_http_client_t *asking, const char *host, const char *path, const char *post,
               size_t size, char *body, char failure[300]) {
    char url[200];
    snprintf(url, sizeof url, "https://%s:%d%s", host, port, path);
    haft_http_question_t question = {
        .url = url, .body = post, .size = size, .failure = failure, .failure_size = 300};
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    int code = haft_http_client_ask(asking, &question, &reply);
    if (code != 0)
        return code;
    CHECK_EQUAL(haft_http_reply_status(reply), 200);
    char *bytes;
    ssize_t got = haft_http_reply_body(reply, &bytes);
    if (got >= 0)
        memcpy(body, bytes, (size_t)got);
    if (got >= 0)
        body[got] = '\0';
    return got < 0 ? (int)got : 0;
}

static void check_answers(void) {
    char body[100], failure[300];
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(ask(client, "localhost", "/peer", NULL, 0, body, failure), 0);
        CHECK(strcmp(body, VERSION " TLSv1.3 nobody") == 0);
    }
    CHECK_EQUAL(ask(client, "localhost", "/pieces", NULL, 0, body, failure), 0);
    CHECK(strcmp(body, "piece piece piece ") == 0);
    CHECK_EQUAL(ask(client, "localhost", "/to/peer", NULL, 0, body, failure), 0);
    CHECK(strcmp(body, VERSION " TLSv1.3 nobody") == 0);
    CHECK(ask(client, "localhost", "/pieces?fails=1", NULL, 0, body, failure) < 0);
    enum { LARGE = 300000 };
    char *large = malloc(LARGE), *back = malloc(LARGE + 1);
    for (int i = 0; i < LARGE; i++)
        large[i] = (char)(i * 7 + i / 300);
    CHECK_EQUAL(ask(client, "localhost", "/echo", large, LARGE, back, failure), 0);
    CHECK(memcmp(large, back, LARGE) == 0);
    free(large);
    free(back);
}

/* A redirect of POST leaves out the fields about the body; one to two places is none; two cookies
   stay two (RFC 9110, sections 15.4, 10.2.2 and 5.3). */
static void check_redirects(void) {
    char url[100], failure[300], *body;
    const char *name, *value;
    haft_http_question_t question = {.url = url,
                                     .body = "hello",
                                     .size = 5,
                                     .type = "text/html",
                                     .failure = failure,
                                     .failure_size = sizeof failure};
    haft_http_reply_t *reply;
    snprintf(url, sizeof url, "https://localhost:%d/to/content", port);
    CHECK_EQUAL(haft_http_client_ask(client, &question, &reply), 0);
    CHECK(haft_http_reply_body(reply, &body) > 0 && strcmp(body, "GET [] 0") == 0);
    CHECK(strncmp(haft_http_reply_header(reply, "Set-Cookie"), "a=1;", 4) == 0);
    int cookies = 0;
    for (size_t i = 0; haft_http_reply_header_at(reply, i, &name, &value); i++)
        cookies += strcasecmp(name, "Set-Cookie") == 0;
    CHECK_EQUAL(cookies, 2);
    haft_http_reply_free(reply);
    snprintf(url, sizeof url, "https://localhost:%d/to/two", port);
    CHECK_EQUAL(haft_http_client_ask(client, &question, &reply), -EBADMSG);
    CHECK(strcmp(failure, "the redirect has more than one field Location") == 0);
}

/* ---- Several tasks ask at once ---- */

enum { ASKING = 12, SENT = 100000 };

static void *ask_for_descriptor(void *path) {
    char body[100] = "", failure[300];
    int code = ask(client, "localhost", path, NULL, 0, body, failure);
    return (void *)(intptr_t)(code != 0 ? code : atoi(body));
}

/* Gives up after a while. */
static void *ask_in_vain(void *unused) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + 20 * HAFT_IO_MILLISECOND);
    CHECK_EQUAL((intptr_t)ask_for_descriptor("/descriptor/100000"), -ETIMEDOUT);
    return unused;
}

static ssize_t produce(void *left, void *buffer, size_t size) {
    size_t *count = left;
    size = size < *count ? size : *count;
    memset(buffer, 'p', size);
    *count -= size;
    return (ssize_t)size;
}

/* A body that is produced, and an answer that is read in small pieces, or left. */
static void *ask_piece_by_piece(void *whole) {
    char url[100], piece[1000];
    size_t left = SENT, got = 0;
    snprintf(url, sizeof url, "https://localhost:%d/echo", port);
    haft_http_question_t question = {.url = url, .produce = produce, .argument = &left};
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    CHECK_EQUAL(haft_http_client_ask(client, &question, &reply), 0);
    for (ssize_t size; (size = haft_http_reply_read(reply, piece, sizeof piece)) > 0;) {
        got += (size_t)size;
        haft_io_yield();
        if (whole == NULL && got > SENT / 2)
            return NULL;
    }
    CHECK_EQUAL(got, SENT);
    return NULL;
}

/* Over HTTP/2, all on one connection, which outlives tasks that give up in the middle. */
static void check_sharing(void) {
    haft_io_task_t *tasks[ASKING];
    void *first = NULL, *descriptor;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < ASKING; i++)
            tasks[i] = i % 4 == 0   ? haft_io_async(ask_in_vain, NULL)
                       : i % 4 == 1 ? haft_io_async(ask_piece_by_piece, i % 8 == 1 ? client : NULL)
                                    : haft_io_async(ask_for_descriptor, "/descriptor/40");
        for (int i = 0; i < ASKING; i++) {
            haft_io_join(tasks[i], &descriptor);
            CHECK((intptr_t)descriptor >= 0);
#ifdef CHECK_HTTP2
            if (i % 4 >= 2)
                first = first == NULL ? descriptor : first;
            CHECK(i % 4 < 2 || descriptor == first);
#endif
        }
    }
    (void)first;
}

static void check_refusals(void) {
    char body[100], failure[300];
    CHECK_EQUAL(ask(client, "127.0.0.1", "/peer", NULL, 0, body, failure),
                HAFT_TLS_ERROR_OF_CERTIFICATE - X509_V_ERR_IP_ADDRESS_MISMATCH);
    CHECK(strcmp(failure, "the certificate 'CN=server' is for localhost, not for the host "
                          "127.0.0.1") == 0);
    haft_http_client_t *distrusting = haft_http_client_new();
    int code = ask(distrusting, "localhost", "/peer", NULL, 0, body, failure);
    CHECK(code < HAFT_TLS_ERROR_OF_CERTIFICATE && code > HAFT_TLS_ERROR_OF_ALERT);
    CHECK(strstr(failure, "not trusted") != NULL);
    haft_http_client_free(distrusting);
}

/* A question's head has a limit, as over HTTP/1.1. */
static void check_long_questions(void) {
    enum { LONG = 1000000, MANY = 10000 };
    char *url = malloc(LONG + 1);
    haft_http_header_t *headers = malloc(MANY * sizeof *headers);
    haft_http_reply_t *reply;
    CHECK(url != NULL && headers != NULL);
    int begin = sprintf(url, "https://localhost:%d/", port);
    for (int i = 0; i < MANY; i++)
        headers[i] = (haft_http_header_t){"a", "b"};
    haft_http_question_t question = {.url = url, .headers = headers, .header_count = MANY};
    CHECK_EQUAL(haft_http_client_ask(client, &question, &reply), -EMSGSIZE);
    memset(url + begin, 'a', (size_t)(LONG - begin));
    url[LONG] = '\0';
    question.header_count = 0;
    CHECK_EQUAL(haft_http_client_ask(client, &question, &reply), -EMSGSIZE);
    free(headers);
    free(url);
}

static void check_clients_certificate(void) {
    char body[100], failure[300];
    haft_http_client_t *asking =
        haft_http_client_new_with(&(haft_http_client_options_t){.tls = known});
    CHECK_EQUAL(ask(asking, "localhost", "/peer", NULL, 0, body, failure), 0);
    CHECK(strcmp(body, VERSION " TLSv1.3 CN=person") == 0);
    haft_http_client_free(asking);
    /* The server refuses with an answer when the client has sent its question already. */
    asking = haft_http_client_new_with(&(haft_http_client_options_t){.tls = unknown});
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(ask(asking, "localhost", "/peer", NULL, 0, body, failure),
                    HAFT_TLS_ERROR_OF_ALERT - SSL_AD_UNKNOWN_CA);
    haft_http_client_free(asking);
}

static int ending_listener;

/* Says it over TLS: what comes up to the end, and how the end is. */
static ssize_t hear(const char *said, char *heard, size_t room) {
    HAFT_TLS_SCOPED haft_tls_t *stream = NULL;
    int descriptor = haft_io_connect_tcp("localhost", port);
    stream = haft_tls_new(offering_none, descriptor, "localhost");
    CHECK_EQUAL(haft_tls_write_all(stream, said, strlen(said)), 0);
    size_t size = 0;
    ssize_t got;
    while ((got = haft_tls_read(stream, heard + size, room - 1 - size)) > 0)
        size += (size_t)got;
    heard[size] = '\0';
    return got;
}

/* A body that ends with the connection is whole only if the server ends TLS, too. */
static void check_ends(void) {
    char heard[1000];
    CHECK_EQUAL(hear("GET /pieces HTTP/1.0\r\n\r\n", heard, sizeof heard), 0);
    CHECK(strstr(heard, "piece piece piece ") != NULL);
    CHECK_EQUAL(hear("GET /pieces?fails=1 HTTP/1.0\r\n\r\n", heard, sizeof heard), -ECONNRESET);
    CHECK_EQUAL(
        hear("GET /peer HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", heard, sizeof heard), 0);
    if (haft_io_seed() != 0) /* when it has been idle for long, in virtual time */
        CHECK_EQUAL(hear("GET /peer HTTP/1.1\r\nHost: a\r\n\r\n", heard, sizeof heard), 0);
    CHECK_EQUAL(hear("what?\r\n\r\n", heard, sizeof heard), 0);
    CHECK(strncmp(heard, "HTTP/1.1 400 ", 13) == 0);
    /* Without TLS. */
    HAFT_IO_SCOPED_DESCRIPTOR int plain = haft_io_connect_tcp("localhost", port);
    haft_io_write_all(plain, "GET / HTTP/1.1\r\n\r\n", 18);
    ssize_t got = haft_io_read_all(plain, heard, sizeof heard);
    CHECK(got < 0 || memmem(heard, (size_t)got, "HTTP", 4) == NULL);
}

/* Answers one question by HTTP/1.1, with `head`, and reads how the client ends. */
static void *hear_the_end(void *head) {
    char bytes[2000];
    haft_tls_context_t *context = haft_tls_server_context();
    CHECK_EQUAL(haft_tls_add_certificate(context, certificate.chain_file, certificate.key_file), 0);
    HAFT_TLS_SCOPED haft_tls_t *stream =
        haft_tls_new(context, haft_io_accept(ending_listener), NULL);
    CHECK(haft_tls_read(stream, bytes, sizeof bytes) > 0);
    CHECK_EQUAL(haft_tls_write_all(stream, head, strlen(head)), 0);
    ssize_t end = haft_tls_read(stream, bytes, sizeof bytes);
    haft_tls_context_free(context);
    return (void *)end;
}

/* A client ends TLS where it closes a connection that it has kept, or that is not kept; one that
   leaves an answer is cut off. */
static void check_ends_of_client(void) {
    static const struct {
        const char *says;
        int code;
        ssize_t end;
    } ends[] = {{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, 0},
                {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 0, 0},
                {"what?\r\n\r\n", -EBADMSG, -ECONNRESET}};
    uint16_t before = port;
    ending_listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(ending_listener);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char body[100], failure[300];
        void *end;
        haft_io_task_t *hearing = haft_io_async(hear_the_end, (void *)(uintptr_t)ends[i].says);
        haft_http_client_t *asking =
            haft_http_client_new_with(&(haft_http_client_options_t){.tls = trusting});
        CHECK_EQUAL(ask(asking, "localhost", "/", NULL, 0, body, failure), ends[i].code);
        haft_http_client_free(asking);
        haft_io_join(hearing, &end);
        CHECK_EQUAL((ssize_t)end, ends[i].end);
    }
    haft_io_close(ending_listener);
    port = before;
}

static void check_reload(void) {
    char body[100], failure[300];
    issued_t other = issue(
        (issue_t){.name = "server", .hosts = "DNS:localhost,IP:127.0.0.1", .issuer = &authority});
    CHECK_EQUAL(haft_tls_reload(tls), 0);
    CHECK_EQUAL(ask(client, "127.0.0.1", "/peer", NULL, 0, body, failure), 0);
    X509_free(certificate.certificate);
    EVP_PKEY_free(certificate.key);
    certificate =
        issue((issue_t){.name = "server", .hosts = "DNS:localhost", .issuer = &authority});
    CHECK_EQUAL(haft_tls_reload(tls), 0);
    X509_free(other.certificate);
    EVP_PKEY_free(other.key);
}

/* ---- Through a proxy ---- */

typedef struct {
    haft_http_request_t *request;
    int origin;
} tunnel_t;

static void *pass_back(void *argument) {
    const tunnel_t *tunnel = argument;
    char bytes[4096];
    for (ssize_t got; (got = haft_io_read(tunnel->origin, bytes, sizeof bytes)) > 0;)
        if (haft_http_stream_write(tunnel->request, bytes, (size_t)got) != 0)
            break;
    haft_http_stream_shutdown(tunnel->request);
    return NULL;
}

static void *pass_both_ways(void *argument) {
    const tunnel_t *tunnel = argument;
    char bytes[4096];
    haft_io_spawn(pass_back, argument);
    for (ssize_t got; (got = haft_http_stream_read(tunnel->request, bytes, sizeof bytes)) > 0;)
        if (haft_io_write_all(tunnel->origin, bytes, (size_t)got) != 0)
            break;
    haft_io_shutdown(tunnel->origin, SHUT_WR);
    return NULL;
}

static int be_tunnel(haft_http_request_t *request, void *count) {
    const char *shown = haft_http_request_header(request, "Proxy-Authorization");
    if (shown == NULL || strcmp(shown, "Basic bWU6bWU=") != 0)
        return haft_http_answer_text(request, 407, "who are you?");
    HAFT_IO_SCOPED_DESCRIPTOR int origin = haft_io_connect_tcp("127.0.0.1", port);
    tunnel_t tunnel = {request, origin};
    ++*(int *)count;
    int code = haft_http_request_tunnel(request);
    return code == 0 ? haft_io_scope(pass_both_ways, &tunnel, NULL) : code;
}

static void *serve_another(void *another) {
    CHECK_EQUAL(haft_http_server_serve(another, haft_io_listen_tcp("127.0.0.1", 0, 0)), 0);
    return NULL;
}

/* The origin's certificate is checked, and its protocol agreed on, as without a proxy. */
static void check_tunnels(void) {
    char body[100], failure[300], url[100];
    int count = 0;
    haft_http_server_t *proxy = haft_http_server_new();
    haft_http_server_on_connect(proxy, be_tunnel, &count);
    haft_io_task_t *serving = haft_io_async(serve_another, proxy);
    while (haft_http_server_port(proxy) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    for (int knows = 0; knows < 2; knows++) {
        snprintf(url, sizeof url, "http://%s127.0.0.1:%d", knows ? "me:me@" : "",
                 haft_http_server_port(proxy));
        haft_http_client_t *asking = haft_http_client_new_with(
            &(haft_http_client_options_t){.tls = trusting, .proxy = url, .connections = 1});
        for (int i = 0; i < 2; i++) {
            CHECK_EQUAL(ask(asking, "localhost", "/peer", NULL, 0, body, failure),
                        knows ? 0 : -ECONNREFUSED);
            CHECK(strcmp(knows ? body : failure,
                         knows ? VERSION " TLSv1.3 nobody"
                               : "the proxy has answered CONNECT with status 407") == 0);
        }
        CHECK_EQUAL(count, knows);
        if (knows)
            CHECK_EQUAL(ask(asking, "127.0.0.1", "/peer", NULL, 0, body, failure),
                        HAFT_TLS_ERROR_OF_CERTIFICATE - X509_V_ERR_IP_ADDRESS_MISMATCH);
        haft_http_client_free(asking);
    }
    haft_http_server_stop(proxy);
    haft_io_join(serving, NULL);
    haft_http_server_free(proxy);
}

/* ---- Streams that are refused ---- */

static void *ask_anew(void *asking) {
    char body[100], failure[300];
    CHECK_EQUAL(ask(asking, "localhost", "/echo", "hello", 5, body, failure), 0);
    CHECK(strcmp(body, "hello") == 0);
    return NULL;
}

/* More than the server takes at a time, before the client has read how many that are: what was
   refused was not begun, so it is asked again, whatever it is. */
static void check_refused_streams(void) {
    haft_io_task_t *tasks[ASKING];
    uint16_t before = port;
    haft_http_server_t *narrow = haft_http_server_new();
    haft_http_server_set_limits(narrow, &(haft_http_limits_t){.streams = 2});
    haft_http_server_post(narrow, "/echo", echo, NULL);
    CHECK_EQUAL(haft_http_server_set_tls(narrow, tls), 0);
    haft_io_task_t *serving = haft_io_async(serve_another, narrow);
    while (haft_http_server_port(narrow) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    port = haft_http_server_port(narrow);
    for (int round = 0; round < 3; round++) { /* the later ones resume TLS, and so ask earlier */
        haft_http_client_t *asking =
            haft_http_client_new_with(&(haft_http_client_options_t){.tls = trusting});
        for (int i = 0; i < ASKING; i++)
            tasks[i] = haft_io_async(ask_anew, asking);
        for (int i = 0; i < ASKING; i++)
            haft_io_join(tasks[i], NULL);
        haft_http_client_free(asking);
    }
    port = before;
    haft_http_server_stop(narrow);
    haft_io_join(serving, NULL);
    haft_http_server_free(narrow);
}

/* ---- Mistakes ---- */

static void *serve_in_vain(void *serving) {
    CHECK_EQUAL(haft_http_server_serve(serving, haft_io_listen_tcp("127.0.0.1", 0, 0)), -EINVAL);
    return NULL;
}

/* Without a certificate, and with a context of clients: a server fails with the reason before it
   serves. */
static void check_contexts(void) {
    haft_tls_context_t *empty = haft_tls_server_context();
    haft_http_server_t *wrong = haft_http_server_new();
    haft_http_server_set_log(wrong, NULL, NULL);
    CHECK_EQUAL(haft_http_server_set_tls(wrong, empty), 0);
    CHECK_EQUAL(haft_tls_certificate_count(empty), 0);
    CHECK_EQUAL(haft_io_run(serve_in_vain, wrong), 0);
    CHECK(strstr(haft_http_server_mistake(wrong), "has no certificate") != NULL);
    CHECK_EQUAL(haft_http_server_set_tls(wrong, known), 0);
    CHECK_EQUAL(haft_tls_certificate_count(known), 1);
    CHECK_EQUAL(haft_io_run(serve_in_vain, wrong), 0);
    CHECK(strstr(haft_http_server_mistake(wrong), "not of clients") != NULL);
    haft_http_server_free(wrong);
    haft_tls_context_free(empty);
}

/* ---- The end ---- */

static void *ask_over(void *descriptor) {
    char heard[1000];
    HAFT_TLS_SCOPED haft_tls_t *stream =
        haft_tls_new(offering_none, *(int *)descriptor, "localhost");
    static const char asked[] = "GET /peer HTTP/1.1\r\nHost: here\r\n\r\n";
    CHECK_EQUAL(haft_tls_write_all(stream, asked, sizeof asked - 1), 0);
    ssize_t got = haft_tls_read(stream, heard, sizeof heard);
    CHECK(got > 12 && strncmp(heard, "HTTP/1.1 200", 12) == 0);
    return NULL;
}

static void *pass_on(void *descriptors) {
    const int *ends = descriptors;
    char bytes[4096];
    for (ssize_t got; (got = haft_io_read(ends[0], bytes, sizeof bytes)) > 0;)
        if (haft_io_write_all(ends[1], bytes, (size_t)got) != 0)
            break;
    haft_io_shutdown(ends[1], SHUT_WR);
    return NULL;
}

/* A client that has begun its handshake when the server is told to stop has the time of a handshake
   for it, and not just that in which a first request comes. */
static void stop_amid_a_handshake(void) {
    int ends[2];
    char first[4096];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    int connection = haft_io_connect_tcp("localhost", port);
    int there[2] = {ends[1], connection}, back[2] = {connection, ends[1]};
    haft_io_task_t *asking = haft_io_async(ask_over, &ends[0]);
    haft_io_task_t *passing = haft_io_async(pass_on, back);
    ssize_t got = haft_io_read(ends[1], first, sizeof first);
    CHECK_EQUAL(haft_io_write_all(connection, first, (size_t)got), 0);
    haft_io_sleep(10 * HAFT_IO_MILLISECOND);
    haft_http_server_stop(server);
    haft_io_sleep(300 * HAFT_IO_MILLISECOND);
    pass_on(there);
    haft_io_join(asking, NULL);
    haft_io_join(passing, NULL);
    haft_io_close(ends[1]);
    haft_io_close(connection);
}

/* Also where waits return cancels, as in C++. */
static void *serve(void *argument) {
    haft_io_return_cancels(true);
    CHECK_EQUAL(haft_http_server_serve(server, *(int *)argument), 0);
    return NULL;
}

BODY(serve_and_ask) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(listener);
    haft_io_task_t *serving = haft_io_async(serve, &listener);
    trusting = client_context();
    offering_none = client_context();
    client = haft_http_client_new_with(&(haft_http_client_options_t){.tls = trusting});
    check_answers();
    check_redirects();
    check_sharing();
    check_refusals();
    check_long_questions();
    check_clients_certificate();
    check_ends();
    check_ends_of_client();
    check_tunnels();
    check_refused_streams();
    check_reload();
    /* One that does not even begin the handshake does not hold up the end. */
    HAFT_IO_SCOPED_DESCRIPTOR __attribute__((unused)) int silent =
        haft_io_connect_tcp("localhost", port);
    haft_http_client_free(client);
    stop_amid_a_handshake();
    haft_io_join(serving, NULL);
    haft_tls_context_free(trusting);
    haft_tls_context_free(offering_none);
    return NULL;
}

/* ---- Clients that read slowly ---- */

static size_t read_stream(void *stream, size_t size) {
    static char heard[HUGE];
    ssize_t got = haft_tls_read(stream, heard, size < HUGE ? size : HUGE);
    return got > 0 ? (size_t)got : 0;
}

BODY(read_slowly_over_tls) {
    static const char *const says[] = {"GET /whole HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                       "GET /pieces/huge HTTP/1.1\r\nHost: localhost\r\n\r\n"};
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(listener);
    haft_io_task_t *serving = haft_io_async(serve, &listener);
    haft_tls_context_t *context = client_context();
    for (size_t way = 0; way < 2; way++)
        for (size_t i = 0; i < SLOW_READERS; i++) {
            HAFT_TLS_SCOPED haft_tls_t *stream =
                haft_tls_new(context, haft_io_connect_tcp("127.0.0.1", port), "localhost");
            CHECK_EQUAL(haft_tls_write_all(stream, says[way], strlen(says[way])), 0);
            read_slowly(&slow_readers[i], "TLS", read_stream, stream);
        }
    haft_http_server_stop(server);
    haft_io_join(serving, NULL);
    haft_tls_context_free(context);
    return NULL;
}

/* ---- For another program ---- */

/* Answers when it has the whole body. */
static int read_first(haft_http_request_t *request, void *unused) {
    char *body;
    (void)unused;
    ssize_t size = haft_http_request_body(request, &body);
    return size < 0 ? (int)size : haft_http_answer_text(request, 200, "here you are");
}

static void *stop_on_signal(void *signals) {
    haft_io_signal_wait(signals);
    haft_http_server_stop(server);
    return NULL;
}

BODY(serve_until_told) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    haft_http_server_get(server, "/", read_first, NULL);
    haft_http_server_post(server, "/", read_first, NULL);
    haft_io_spawn(stop_on_signal, &signals);
    printf("%d\n", haft_io_port(listener));
    fflush(stdout);
    haft_http_server_serve(server, listener);
    return NULL;
}

/* ---- All ---- */

static void on_a_back_end(const haft_io_run_options_t *options) {
    check_running = options->backend;
    CHECK_EQUAL(haft_io_run_with(options, serve_and_ask, NULL), 0);
}

static void run_all(void) {
    check_running = "simulation";
    for (int switches = 0; switches < 4; switches += 3)
        check_seeds(
            serve_and_ask, 2,
            (haft_io_simulation_options_t){.network = true, .switches_one_in = (unsigned)switches});
    check_seeds(read_slowly_over_tls, 2, (haft_io_simulation_options_t){.network = true});
    check_everywhere(on_a_back_end);
}

int main(int count, char **unused) {
    (void)unused;
    CHECK(mkdtemp(folder) != NULL);
    authority = issue((issue_t){.name = "authority"});
    certificate =
        issue((issue_t){.name = "server", .hosts = "DNS:localhost", .issuer = &authority});
    person = issue((issue_t){.name = "person", .hosts = "DNS:person", .issuer = &authority});
    stranger = issue((issue_t){.name = "stranger", .hosts = "DNS:stranger"});
    unknown = client_context();
    CHECK_EQUAL(haft_tls_add_certificate(unknown, stranger.chain_file, stranger.key_file), 0);
    known = client_context();
    CHECK_EQUAL(haft_tls_add_certificate(known, person.chain_file, person.key_file), 0);
    tls = haft_tls_server_context();
    CHECK_EQUAL(haft_tls_add_certificate(tls, certificate.chain_file, certificate.key_file), 0);
    CHECK_EQUAL(haft_tls_trust(tls, authority.chain_file), 0);
    CHECK_EQUAL(haft_tls_set_verify(tls, HAFT_TLS_IF_GIVEN), 0);
    make_server();
    check_contexts();
    if (count == 1)
        run_all();
    else
        CHECK_EQUAL(haft_io_run(serve_until_told, NULL), 0);
    haft_http_server_free(server);
    haft_tls_context_free(tls);
    haft_tls_context_free(known);
    haft_tls_context_free(unknown);
    forget(&authority);
    forget(&certificate);
    forget(&person);
    forget(&stranger);
    rmdir(folder);
    return check_end();
}
