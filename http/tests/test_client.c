/* SPDX-License-Identifier: MIT */
/* The client: bodies both ways, connections that are kept, redirects, time, and answers that are none. Over the simulated
   network with several seeds, and over sockets. */
#include "check_http.h"

static haft_http_server_t *server;
static haft_http_client_t *client;
static uint16_t port; /* of the server, or of whoever says bytes */

/* ---- What it asks ---- */

static int say_request(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    ssize_t size = haft_http_body(request, &body);
    const char *type = haft_http_header(request, "Content-Type");
    const char *secret = haft_http_header(request, "Authorization");
    if (size < 0)
        return (int)size;
    return haft_http_answer_format(request, 200, "%s %s [%s] [%s] [%s]", haft_http_method(request),
                                   haft_http_target(request), body, type != NULL ? type : "",
                                   secret != NULL ? secret : "");
}

/* /to/302/x: to the URL /x, after having been asked by that name; /to/302/loop: to itself. */
static int redirect(haft_http_request_t *request, void *unused) {
    (void)unused;
    char to[100];
    const char *where = haft_http_path(request, "where");
    if (strcmp(where, "elsewhere") == 0)
        snprintf(to, sizeof to, "http://localhost:%d/x", port);
    else if (strcmp(where, "loop") == 0)
        snprintf(to, sizeof to, "loop");
    else
        snprintf(to, sizeof to, "/%s", where);
    haft_http_set_header(request, "Location", to);
    return haft_http_answer_text(request, atoi(haft_http_path(request, "status")), "go there");
}

static int say_descriptor(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_format(request, 200, "%d", haft_http_descriptor(request));
}

static int say_much(haft_http_request_t *request, void *unused) {
    (void)unused;
    static const char piece[100] = "";
    int code = haft_http_begin(request, 200, NULL, HAFT_HTTP_UNKNOWN_SIZE);
    for (int i = 0; i < 1000 && code == 0; i++)
        code = haft_http_write(request, piece, sizeof piece);
    return code;
}

static int sleep_long(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_sleep(5 * HAFT_IO_SECOND);
    return haft_http_answer_text(request, 200, "late");
}

static void make_server(void) {
    server = haft_http_server_new();
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        haft_http_route(server, methods[i], "/x", say_request, NULL);
        haft_http_route(server, methods[i], "/to/{status}/{where}", redirect, NULL);
    }
    haft_http_get(server, "/descriptor", say_descriptor, NULL);
    haft_http_get(server, "/much", say_much, NULL);
    haft_http_get(server, "/sleep", sleep_long, NULL);
}

static const char *url_of(const char *path) {
    static char url[200];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", port, path);
    return url;
}

/* The status and the body, or an error. */
static int ask(haft_http_question_t question, const char *path, const char *expected) {
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    question.url = url_of(path);
    int code = haft_http_ask(client, &question, &reply);
    if (code != 0)
        return code;
    char *body;
    ssize_t size = haft_http_reply_body(reply, &body);
    if (size < 0)
        return (int)size;
    if (expected != NULL && strcmp(body, expected) != 0) {
        fprintf(stderr, "%s: expected %s, but got %s\n", path, expected, body);
        abort();
    }
    return haft_http_reply_status(reply);
}

static ssize_t produce(void *left, void *buffer, size_t size) {
    int *count = left;
    if (*count == 0)
        return 0;
    CHECK(size >= 4);
    memcpy(buffer, "abcd", 4);
    (*count)--;
    return 4;
}

static ssize_t fail_to_produce(void *unused, void *buffer, size_t size) {
    (void)unused;
    (void)buffer;
    (void)size;
    return -EIO;
}

static const haft_http_header_t secret[] = {{"Authorization", "me"}};
static const haft_http_header_t evil[] = {{"A", "b\r\nX-Evil: 1"}},
                                ours[] = {{"content-length", "3"}};

static void ask_all(void) {
    int three = 3;
    haft_http_question_t body = {.body = "hello", .size = 5, .type = "text/plain"};
    haft_http_question_t with_secret = {.headers = secret, .header_count = 1};
    CHECK(ask((haft_http_question_t){0}, "/x?a=b#c", "GET /x?a=b [] [] []") == 200);
    CHECK(ask((haft_http_question_t){.method = "POST"}, "/x", "POST /x [] [] []") == 200);
    CHECK(ask(body, "/x", "POST /x [hello] [text/plain] []") == 200);
    CHECK(ask((haft_http_question_t){.produce = produce, .argument = &three}, "/x",
              "POST /x [abcdabcdabcd] [] []") == 200);
    CHECK(ask((haft_http_question_t){.method = "HEAD"}, "/much", "") == 200);
    CHECK(ask((haft_http_question_t){0}, "/much", "") == 200);
    CHECK(ask((haft_http_question_t){0}, "/nowhere", "404 Not Found\n") == 404);
    CHECK(ask((haft_http_question_t){.produce = fail_to_produce}, "/x", NULL) == -EIO);
    CHECK(ask((haft_http_question_t){.headers = evil, .header_count = 1}, "/x", NULL) == -EINVAL);
    CHECK(ask((haft_http_question_t){.headers = ours, .header_count = 1}, "/x", NULL) == -EINVAL);
    CHECK(ask((haft_http_question_t){.method = "G T"}, "/x", NULL) == -EINVAL);
    CHECK(ask((haft_http_question_t){0}, "/x y", NULL) == -EINVAL);
    CHECK(ask((haft_http_question_t){0}, "/x\r\nX-Evil: 1", NULL) == -EINVAL);

    CHECK(ask(body, "/to/302/x", "GET /x [] [] []") == 200);
    CHECK(ask(body, "/to/303/x", "GET /x [] [] []") == 200);
    CHECK(ask(body, "/to/307/x", "POST /x [hello] [text/plain] []") == 200);
    CHECK(ask((haft_http_question_t){.produce = produce, .argument = &three}, "/to/308/x",
              "go there") == 308);
    CHECK(ask(with_secret, "/to/301/x", "GET /x [] [] [me]") == 200);
    CHECK(ask(with_secret, "/to/301/elsewhere", "GET /x [] [] []") == 200);
    CHECK(ask((haft_http_question_t){0}, "/to/302/loop", NULL) == -ELOOP);
}

static void ask_for_urls(void) {
    static const struct {
        const char *url;
        int code;
    } urls[] = {{"", -EINVAL},
                {"here", -EINVAL},
                {"http://", -EINVAL},
                {"http:///x", -EINVAL},
                {"http://a@b/", -EINVAL},
                {"http://a:b/", -EINVAL},
                {"http://a:0/", -EINVAL},
                {"http://a:65536/", -EINVAL},
                {"ftp://a/", -EPROTONOSUPPORT}};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        haft_http_reply_t *reply;
        CHECK(haft_http_ask(client, &(haft_http_question_t){.url = urls[i].url}, &reply) ==
              urls[i].code);
        CHECK(reply == NULL);
    }
}

/* One connection for one question after the other, unless an answer was not read to its end. */
static void keep_connections(void) {
    char first[20];
    for (int i = 0; i < 3; i++) {
        HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
        haft_http_question_t question = {.url = url_of("/descriptor")};
        CHECK(haft_http_ask(client, &question, &reply) == 0);
        char *body;
        CHECK(haft_http_reply_body(reply, &body) > 0);
        if (i == 0)
            strcpy(first, body);
        CHECK(strcmp(first, body) == 0);
    }
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *much = NULL;
    haft_http_question_t question = {.url = url_of("/much")};
    CHECK(haft_http_ask(client, &question, &much) == 0);
    char byte;
    CHECK(haft_http_reply_read(much, &byte, 1) == 1);
}

static void ask_in_time(void) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + 20 * HAFT_IO_MILLISECOND);
    CHECK(ask((haft_http_question_t){0}, "/sleep", NULL) == -ETIMEDOUT);
}

static void *ask_server(void *unused) {
    port = start_server(server);
    client = haft_http_client_new(NULL);
    ask_all();
    ask_for_urls();
    keep_connections();
    if (haft_io_seed() != 0) /* in virtual time */
        ask_in_time();
    haft_http_client_free(client);
    haft_http_stop(server);
    return unused;
}

/* ---- What it is answered ---- */

typedef struct {
    const char *says; /* and closes */
    int code;
    const char *body;
} saying_t;

#define OK_ "HTTP/1.1 200 OK\r\n"

static const saying_t sayings[] = {
    {OK_ "Content-Length: 2\r\n\r\nhi", 200, "hi"},
    {OK_ "\r\nhello", 200, "hello"},
    {"HTTP/1.1 200\r\n\r\nhello", 200, "hello"},
    {"HTTP/1.0 200 OK\r\n\r\nhello", 200, "hello"},
    {OK_ "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 200, "hi"},
    {"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" OK_ "Content-Length: 0\r\n\r\n", 200, ""},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, ""},
    {"", -EPIPE, NULL},
    {"HTTP/1.1 200 OK\r\nA", -EPIPE, NULL},
    {"hello\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/2.0 200 OK\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/1.1 20 OK\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/1.1  200 OK\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", -EBADMSG, NULL},
    {OK_ "A : b\r\n\r\n", -EBADMSG, NULL},
    {OK_ "A: b\r\n c\r\n\r\n", -EBADMSG, NULL},
    {OK_ "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", -EBADMSG, NULL},
    {OK_ "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", -EBADMSG, NULL},
    {OK_ "Transfer-Encoding: gzip\r\n\r\n", -EBADMSG, NULL},
    {OK_ "Content-Length: 3\r\n\r\nhi", -EPIPE, NULL},
    {OK_ "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n", -EPIPE, NULL},
    {OK_ "Transfer-Encoding: chunked\r\n\r\nx\r\nhi\r\n", -EBADMSG, NULL},
    {OK_ "Content-Length: 20000000\r\n\r\n", -EMSGSIZE, NULL},
};

static int listener;

/* Hears a head, and says the bytes. */
static void *say_bytes(void *saying) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
    char memory[1000], *line;
    haft_io_reader_t lines = {.descriptor = connection, .memory = memory, .size = sizeof memory};
    while (haft_io_reader_line(&lines, &line) > 2)
        continue;
    const char *says = ((const saying_t *)saying)->says;
    haft_io_write_all(connection, says, strlen(says));
    return NULL;
}

/* Closes a connection that is kept: the question is asked over another one. */
static void *answer_twice(void *unused) {
    static const saying_t kept = {OK_ "Content-Length: 2\r\n\r\nhi", 200, "hi"};
    say_bytes((void *)(uintptr_t)&kept);
    say_bytes((void *)(uintptr_t)&kept);
    return unused;
}

static void *hear_answers(void *unused) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(listener);
    for (size_t i = 0; i < sizeof sayings / sizeof *sayings; i++) {
        client = haft_http_client_new(NULL);
        haft_io_task_t *speaker = haft_io_async(say_bytes, (void *)(uintptr_t)&sayings[i]);
        int code = ask((haft_http_question_t){0}, "/", sayings[i].body);
        if (code != sayings[i].code) {
            fprintf(stderr, "%s: expected %d, but got %d\n", sayings[i].says, sayings[i].code,
                    code);
            abort();
        }
        haft_http_client_free(client);
        haft_io_join(speaker, NULL);
    }
    client = haft_http_client_new(NULL);
    haft_io_task_t *speaker = haft_io_async(answer_twice, NULL);
    CHECK(ask((haft_http_question_t){0}, "/", "hi") == 200);
    CHECK(ask((haft_http_question_t){0}, "/", "hi") == 200);
    haft_io_join(speaker, NULL);
    haft_http_client_free(client);
    haft_io_close(listener);
    return unused;
}

int main(void) {
    void *(*const cases[])(void *) = {hear_answers, ask_server};
    make_server();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        simulate_seeds(cases[i]);
        CHECK(haft_io_run(cases[i], NULL) == 0);
    }
    haft_http_server_free(server);
    return 0;
}
