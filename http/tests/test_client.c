/* SPDX-License-Identifier: MIT */
/* The client: bodies both ways, connections that are kept, redirects, time, and answers that are
   none. Over the simulated network with several seeds, and over sockets. */
#include "check_http.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static haft_http_server_t *server;
static haft_http_client_t *client;
static uint16_t port; /* of the server, or of the task that sends bytes */

/* ---- What it asks ---- */

static int say_request(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    ssize_t size = haft_http_request_body(request, &body);
    const char *type = haft_http_request_header(request, "Content-Type");
    const char *secret = haft_http_request_header(request, "Authorization");
    if (size < 0)
        return (int)size;
    return haft_http_answer_format(request, 200, "%s %s [%s] [%s] [%s]",
                                   haft_http_request_method(request),
                                   haft_http_request_target(request), body,
                                   type != NULL ? type : "", secret != NULL ? secret : "");
}

/* /to/302/x: to the URL /x, after having been asked by that name; /to/302/dots, too;
   /to/302/loop: to itself. */
static int redirect(haft_http_request_t *request, void *unused) {
    (void)unused;
    char to[100];
    const char *where = haft_http_request_path(request, "where");
    if (strcmp(where, "elsewhere") == 0)
        snprintf(to, sizeof to, "http://localhost:%d/x", port);
    else if (strcmp(where, "loop") == 0)
        snprintf(to, sizeof to, "loop");
    else if (strcmp(where, "dots") == 0)
        snprintf(to, sizeof to, "./../../y/../x?a=/../b");
    else if (strcmp(where, "letters") == 0)
        snprintf(to, sizeof to, "/x?a b\xc3\xa9%%20");
    else if (strcmp(where, "two") == 0)
        haft_http_answer_set_header(request, "Location", "/x"), snprintf(to, sizeof to, "/y");
    else if (strcmp(where, "itself") == 0)
        snprintf(to, sizeof to, "#a");
    else
        snprintf(to, sizeof to, "/%s", where);
    haft_http_answer_set_header(request, "Location", to);
    return haft_http_answer_text(request, atoi(haft_http_request_path(request, "status")),
                                 "go there");
}

static int say_descriptor(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_format(request, 200, "%d", haft_http_request_descriptor(request));
}

static int say_much(haft_http_request_t *request, void *unused) {
    (void)unused;
    static const char piece[100] = "";
    int code = haft_http_answer_begin(request, 200, NULL, HAFT_HTTP_UNKNOWN_SIZE);
    for (int i = 0; i < 1000 && code == 0; i++)
        code = haft_http_answer_write(request, piece, sizeof piece);
    return code;
}

static int sleep_long(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_sleep(5 * HAFT_IO_SECOND);
    return haft_http_answer_text(request, 200, "late");
}

/* ---- Cookies ---- */

/* Says which cookies it has got, and sets one; "/cookies/to" sends the client to "/cookies". */
static int say_cookies(haft_http_request_t *request, void *to) {
    const char *cookies = haft_http_request_header(request, "Cookie");
    const haft_http_cookie_options_t options = {.path = "/", .for_http = true};
    haft_http_answer_set_cookie_with(&options, request, to != NULL ? "way" : "here", "1");
    if (to != NULL)
        haft_http_answer_set_header(request, "Location", to);
    return haft_http_answer_text(request, to != NULL ? 302 : 200, cookies != NULL ? cookies : "");
}

/* ---- Places ---- */

static int together, most_together;

static int count_together(haft_http_request_t *request, void *unused) {
    (void)unused;
    together++;
    most_together = together > most_together ? together : most_together;
    haft_io_sleep(HAFT_IO_MILLISECOND);
    together--;
    return haft_http_answer_text(request, 200, "");
}

/* ---- Traces ---- */

static int say_trace(haft_http_request_t *request, void *unused) {
    (void)unused;
    const haft_http_trace_t *trace = haft_http_trace_get();
    return haft_http_answer_format(request, 200, "%s %s %s %d [%s]", trace->id,
                                   *trace->parent != '\0' ? trace->parent : "none", trace->span,
                                   trace->is_sampled, trace->state);
}

typedef struct {
    char id[33], parent[17], span[17], state[520];
    int is_sampled;
} said_trace_t;

static said_trace_t read_trace(const char *text) {
    said_trace_t said = {0};
    CHECK(sscanf(text, "%32s %16s %16s %d [%519[^]]", said.id, said.parent, said.span,
                 &said.is_sampled, said.state) >= 4);
    return said;
}

static const char *url_of(const char *path);

/* Stores the trace that "/trace" gets with a question of this task. */
static void *ask_for_trace(void *said) {
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    char *body;
    CHECK(haft_http_client_ask(client, &(haft_http_question_t){.url = url_of("/trace")}, &reply) ==
          0);
    CHECK(haft_http_reply_body(reply, &body) > 0);
    *(said_trace_t *)said = read_trace(body);
    return NULL;
}

/* Asks twice, once by another task. */
static int pass_trace_on(haft_http_request_t *request, void *unused) {
    (void)unused;
    const haft_http_trace_t *trace = haft_http_trace_get();
    said_trace_t said[2];
    haft_io_join(haft_io_async(ask_for_trace, &said[0]), NULL);
    ask_for_trace(&said[1]);
    for (int i = 0; i < 2; i++) {
        CHECK(strcmp(said[i].id, trace->id) == 0 && strcmp(said[i].state, trace->state) == 0);
        CHECK(said[i].is_sampled == trace->is_sampled && strlen(said[i].parent) == 16);
        CHECK(strcmp(said[i].parent, trace->span) != 0 &&
              strcmp(said[i].parent, trace->parent) != 0);
    }
    CHECK(strcmp(said[0].parent, said[1].parent) != 0);
    return haft_http_answer_text(request, 200, trace->id);
}

static char last_line[1000];

static void note_line(void *unused, const char *line) {
    (void)unused;
    snprintf(last_line, sizeof last_line, "%s", line);
}

static void make_server(void) {
    server = haft_http_server_new();
    haft_http_server_trace_requests(server);
    haft_http_server_set_access_log(server, HAFT_HTTP_LOG_JSON, note_line, NULL);
    haft_http_server_count(server);
    haft_http_server_get(server, "/cookies", say_cookies, NULL);
    haft_http_server_get(server, "/cookies/to", say_cookies, (void *)(uintptr_t) "/cookies");
    haft_http_server_get(server, "/together", count_together, NULL);
    haft_http_server_get(server, "/trace", say_trace, NULL);
    haft_http_server_get(server, "/trace/on", pass_trace_on, NULL);
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        haft_http_server_route(server, methods[i], "/x", say_request, NULL);
        haft_http_server_route(server, methods[i], "/to/{status}/{where}", redirect, NULL);
    }
    haft_http_server_get(server, "/descriptor", say_descriptor, NULL);
    haft_http_server_get(server, "/much", say_much, NULL);
    haft_http_server_get(server, "/sleep", sleep_long, NULL);
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
    int code = haft_http_client_ask(client, &question, &reply);
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
    haft_http_header_t other_type = {"content-type", "text/html"};
    haft_http_question_t typed = {.body = "hello",
                                  .size = 5,
                                  .type = "text/plain",
                                  .headers = &other_type,
                                  .header_count = 1};
    haft_http_question_t with_secret = {.headers = secret, .header_count = 1};
    CHECK(ask((haft_http_question_t){0}, "/x?a=b#c", "GET /x?a=b [] [] []") == 200);
    CHECK(ask((haft_http_question_t){.method = "POST"}, "/x", "POST /x [] [] []") == 200);
    CHECK(ask(body, "/x", "POST /x [hello] [text/plain] []") == 200);
    CHECK(ask(typed, "/x", "POST /x [hello] [text/html] []") == 200);
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
    CHECK(ask(body, "/to/302/dots", "GET /x?a=/../b [] [] []") == 200);
    CHECK(ask(body, "/to/302/letters", "GET /x?a%20b%C3%A9%20 [] [] []") == 200);
    CHECK(ask((haft_http_question_t){0}, "/to/302/itself", NULL) == -ELOOP);
    CHECK(ask(body, "/to/303/x", "GET /x [] [] []") == 200);
    /* RFC 9110, section 15.4: no field about the body is left. */
    CHECK(ask(typed, "/to/302/x", "GET /x [] [] []") == 200);
    CHECK(ask(typed, "/to/303/x", "GET /x [] [] []") == 200);
    CHECK(ask(typed, "/to/307/x", "POST /x [hello] [text/html] []") == 200);
    char failure[100] = "";
    CHECK(ask((haft_http_question_t){.failure = failure, .failure_size = sizeof failure},
              "/to/302/two", NULL) == -EBADMSG);
    CHECK(strcmp(failure, "the redirect has more than one field Location") == 0);
    CHECK(ask((haft_http_question_t){0}, "/to/200/two", "go there") == 200);
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
        char failure[100] = "";
        haft_http_question_t question = {
            .url = urls[i].url, .failure = failure, .failure_size = sizeof failure};
        CHECK(haft_http_client_ask(client, &question, &reply) == urls[i].code);
        CHECK(reply == NULL);
        CHECK(strcmp(failure, "write it as http://host:port/path, or with https") == 0);
    }
}

/* One connection for one question after the other, unless an answer was not read to its end. */
static void keep_connections(void) {
    char first[20];
    for (int i = 0; i < 3; i++) {
        HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
        haft_http_question_t question = {.url = url_of("/descriptor")};
        CHECK(haft_http_client_ask(client, &question, &reply) == 0);
        char *body;
        CHECK(haft_http_reply_body(reply, &body) > 0);
        if (i == 0)
            strcpy(first, body);
        CHECK(strcmp(first, body) == 0);
    }
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *much = NULL;
    haft_http_question_t question = {.url = url_of("/much")};
    CHECK(haft_http_client_ask(client, &question, &much) == 0);
    char byte;
    CHECK(haft_http_reply_read(much, &byte, 1) == 1);
}

static void ask_in_time(void) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + 20 * HAFT_IO_MILLISECOND);
    CHECK(ask((haft_http_question_t){0}, "/sleep", NULL) == -ETIMEDOUT);
}

/* ---- Cookies of the client ---- */

static const struct {
    const char *url, *set; /* by an answer from there */
    int code;
    const char *asked, *sent; /* NULL: nothing */
} cookies[] = {
    {"http://a.example/", "a=b", 0, "http://a.example/x?y", "a=b"},
    {"http://a.example/", "a=b", 0, "https://a.example:8443/", "a=b"},
    {"http://a.example/", "a=b", 0, "http://b.a.example/", NULL},
    {"http://a.example/", "a=b", 0, "http://A.EXAMPLE/", "a=b"},
    {"http://a.example/", " a = b c ; x", 0, "http://a.example/", "a=b c"},
    {"http://a.example/", "a=\"b\"=c", 0, "http://a.example/", "a=\"b\"=c"},
    {"http://a.example/", "a=", 0, "http://a.example/", "a="},
    {"http://a.example/", "a", -EINVAL, "http://a.example/", NULL},
    {"http://a.example/", "=b", -EINVAL, "http://a.example/", NULL},
    {"http://a.example/", "", -EINVAL, "http://a.example/", NULL},
    {"http://a.example/", "a=b\r\nX: 1", -EINVAL, "http://a.example/", NULL},
    {"nowhere", "a=b", -EINVAL, "http://a.example/", NULL},
    /* Domains (5.1.3). */
    {"http://a.example/", "a=b; Domain=a.example", 0, "http://b.a.example/", "a=b"},
    {"http://a.example/", "a=b; domain=.A.Example", 0, "http://b.a.example/", "a=b"},
    {"http://b.a.example/", "a=b; Domain=a.example", 0, "http://a.example/", "a=b"},
    {"http://a.example/", "a=b; Domain=a.example", 0, "http://ba.example/", NULL},
    {"http://a.example/", "a=b; Domain=b.a.example", -EINVAL, "http://b.a.example/", NULL},
    {"http://a.example/", "a=b; Domain=example", -EINVAL, "http://a.example/", NULL},
    {"http://a.example/", "a=b; Domain=", 0, "http://a.example/", "a=b"},
    {"http://a.com./", "a=b; Domain=com.", -EINVAL, "http://b.com./", NULL},
    {"http://a.com./", "a=b; Domain=com", -EINVAL, "http://b.com/", NULL},
    {"http://a.com/", "a=b; Domain=com.", -EINVAL, "http://b.com/", NULL},
    {"http://a.com/", "a=b; Domain=.com.", -EINVAL, "http://b.com/", NULL},
    {"http://a.example./", "a=b; Domain=a.example.", 0, "http://b.a.example/", "a=b"},
    {"http://a.example./", "a=b", 0, "http://a.example/", "a=b"},
    {"http://a.example/", "a=b", 0, "http://a.example./", "a=b"},
    {"http://localhost/", "a=b; Domain=localhost", 0, "http://localhost/", "a=b"},
    {"http://localhost/", "a=b; Domain=localhost", 0, "http://a.localhost/", NULL},
    {"http://10.0.0.1/", "a=b; Domain=10.0.0.1", 0, "http://10.0.0.1/", "a=b"},
    {"http://10.0.0.1/", "a=b; Domain=0.0.1", -EINVAL, "http://10.0.0.1/", NULL},
    {"http://[::1]/", "a=b", 0, "http://[::1]:80/", "a=b"},
    /* Paths (5.1.4). */
    {"http://a.example/x/y", "a=b", 0, "http://a.example/x/z", "a=b"},
    {"http://a.example/x/y", "a=b", 0, "http://a.example/x", "a=b"},
    {"http://a.example/x/y", "a=b", 0, "http://a.example/", NULL},
    {"http://a.example/x/y?/z/", "a=b", 0, "http://a.example/xy", NULL},
    {"http://a.example", "a=b", 0, "http://a.example", "a=b"},
    {"http://a.example/", "a=b; Path=/x", 0, "http://a.example/x/y", "a=b"},
    {"http://a.example/", "a=b; Path=/x", 0, "http://a.example/xy", NULL},
    {"http://a.example/", "a=b; Path=/x/", 0, "http://a.example/x", NULL},
    {"http://a.example/", "a=b; Path=x", 0, "http://a.example/", "a=b"},
    /* Secure, and prefixes. */
    {"https://a.example/", "a=b; Secure; HttpOnly; SameSite=Lax", 0, "https://a.example/", "a=b"},
    {"https://a.example/", "a=b; SECURE", 0, "http://a.example/", NULL},
    {"http://a.example/", "a=b; Secure", -EINVAL, "https://a.example/", NULL},
    {"https://a.example/", "__Secure-a=b", -EINVAL, "https://a.example/", NULL},
    {"https://a.example/", "__Secure-a=b; Secure", 0, "https://a.example/", "__Secure-a=b"},
    {"https://a.example/", "__Host-a=b; Secure", -EINVAL, "https://a.example/", NULL},
    {"https://a.example/", "__Host-a=b; Secure; Path=/", 0, "https://a.example/", "__Host-a=b"},
    {"https://a.example/", "__Host-a=b; Secure; Path=/; Domain=a.example", -EINVAL,
     "https://a.example/", NULL},
    /* Time (5.1.1, 5.2.1, 5.2.2). */
    {"http://a.example/", "a=b; Max-Age=60", 0, "http://a.example/", "a=b"},
    {"http://a.example/", "a=b; Max-Age=99999999999999999999", 0, "http://a.example/", "a=b"},
    {"http://a.example/", "a=b; Max-Age=0", 0, "http://a.example/", NULL},
    {"http://a.example/", "a=b; Max-Age=-1", 0, "http://a.example/", NULL},
    {"http://a.example/", "a=b; Max-Age=x", 0, "http://a.example/", "a=b"},
    {"http://a.example/", "a=b; Max-Age=", 0, "http://a.example/", "a=b"},
    {"http://a.example/", "a=b; Expires=Sun, 06 Nov 1994 08:49:37 GMT", 0, "http://a.example/",
     NULL},
    {"http://a.example/", "a=b; Expires=Sunday, 06-Nov-94 08:49:37 GMT", 0, "http://a.example/",
     NULL},
    {"http://a.example/", "a=b; Expires=Sun Nov  6 8:49:37 1994", 0, "http://a.example/", NULL},
    {"http://a.example/", "a=b; Expires=Fri, 01 Jan 2100 00:00:00 GMT", 0, "http://a.example/",
     "a=b"},
    {"http://a.example/", "a=b; Expires=Fri, 01-Jan-69 00:00:00 GMT", 0, "http://a.example/",
     "a=b"},
    {"http://a.example/", "a=b; Expires=Fri, 41 Jan 1994 00:00:00 GMT", 0, "http://a.example/",
     "a=b"},
    {"http://a.example/", "a=b; Expires=1994", 0, "http://a.example/", "a=b"},
    {"http://a.example/", "a=b; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=9", 0,
     "http://a.example/", "a=b"},
    {"http://a.example/", "a=b; Max-Age=0; Max-Age=9", 0, "http://a.example/", "a=b"},
};

static void check_sent(haft_http_cookie_jar_t *jar, const char *url, const char *expected) {
    char *sent;
    CHECK(haft_http_cookie_jar_get(jar, url, &sent) == 0);
    if (expected == NULL ? sent != NULL : sent == NULL || strcmp(sent, expected) != 0) {
        fprintf(stderr, "%s: expected %s, but got %s\n", url, expected != NULL ? expected : "none",
                sent != NULL ? sent : "none");
        abort();
    }
    free(sent);
}

static void set_cookies(void) {
    for (size_t i = 0; i < sizeof cookies / sizeof *cookies; i++) {
        haft_http_cookie_jar_t *jar = haft_http_cookie_jar_new();
        int code = haft_http_cookie_jar_set(jar, cookies[i].url, cookies[i].set);
        if (code != cookies[i].code)
            fprintf(stderr, "%s: %d\n", cookies[i].set, code);
        CHECK(code == cookies[i].code);
        check_sent(jar, cookies[i].asked, cookies[i].sent);
        haft_http_cookie_jar_free(jar);
    }
}

static void order_and_replace_cookies(void) {
    static const char url[] = "https://a.example/x/y";
    haft_http_cookie_jar_t *jar = haft_http_cookie_jar_new();
    static const char *const set[] = {"a=1; Path=/",
                                      "b=1; Path=/x",
                                      "c=1; Path=/",
                                      "a=2; Path=/",
                                      "a=3; Path=/; Domain=a.example",
                                      "d=1; Secure; Path=/"};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        CHECK(haft_http_cookie_jar_set(jar, url, set[i]) == 0);
    check_sent(jar, url, "b=1; a=2; c=1; a=3; d=1");
    /* Somebody on the way does not replace what only https sets. */
    CHECK(haft_http_cookie_jar_set(jar, "http://a.example/", "d=2") == -EINVAL);
    CHECK(haft_http_cookie_jar_set(jar, "http://a.example/", "d=2; Path=/x") == -EINVAL);
    CHECK(haft_http_cookie_jar_set(jar, url, "a=; Path=/; Max-Age=0") == 0);
    check_sent(jar, url, "b=1; c=1; a=3; d=1");
    haft_http_cookie_jar_clear(jar);
    check_sent(jar, url, NULL);
    haft_http_cookie_jar_free(jar);
}

/* Domains of strangers, if the library knows them. */
static void know_public_suffixes(void) {
    static const struct {
        const char *url, *set;
        bool is_set, is_below; /* and sent to hosts below its own */
    } suffixes[] = {{"http://a.co.uk/", "a=b; Domain=co.uk", false, false},
                    {"http://a.CO.UK/", "a=b; Domain=Co.Uk", false, false},
                    {"http://a.co.uk/", "a=b; Domain=a.co.uk", true, true},
                    {"http://a.github.io/", "a=b; Domain=github.io", false, false},
                    {"http://github.io/", "a=b; Domain=github.io", true, false}};
    haft_http_cookie_jar_t *jar = haft_http_cookie_jar_new();
    bool is_known = haft_http_cookie_jar_set(jar, suffixes[0].url, suffixes[0].set) != 0;
    for (size_t i = 0; is_known && i < sizeof suffixes / sizeof *suffixes; i++) {
        char below[100];
        haft_http_cookie_jar_clear(jar);
        snprintf(below, sizeof below, "http://below.%s", suffixes[i].url + strlen("http://"));
        int code = haft_http_cookie_jar_set(jar, suffixes[i].url, suffixes[i].set);
        CHECK(code == (suffixes[i].is_set ? 0 : -EINVAL));
        check_sent(jar, suffixes[i].url, suffixes[i].is_set ? "a=b" : NULL);
        check_sent(jar, below, suffixes[i].is_below ? "a=b" : NULL);
    }
#ifdef CHECK_PSL
    CHECK(is_known);
#endif
    haft_http_cookie_jar_free(jar);
}

/* Somebody on the way does not push out what only https sets. */
static void keep_secure_cookies(void) {
    haft_http_cookie_jar_t *jar = haft_http_cookie_jar_new();
    char text[40];
    CHECK(haft_http_cookie_jar_set(jar, "https://a.example/", "s=1; Secure; Path=/s") == 0);
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "c%d=1; Path=/c", i);
        CHECK(haft_http_cookie_jar_set(jar, "http://a.example/", text) == 0);
    }
    check_sent(jar, "https://a.example/s", "s=1");
    for (int i = 0; i < 3100; i++) {
        snprintf(text, sizeof text, "http://h%d.example/", i);
        CHECK(haft_http_cookie_jar_set(jar, text, "a=b") == 0);
    }
    check_sent(jar, "https://a.example/s", "s=1");
    haft_http_cookie_jar_free(jar);
}

/* Cookies that were sent or set longest ago go; the sent ones stay below a limit. */
static void limit_cookies(void) {
    haft_http_cookie_jar_t *jar = haft_http_cookie_jar_new();
    static char text[5000];
    char url[40];
    CHECK(haft_http_cookie_jar_set(jar, "http://a.example/kept", "k=1; Path=/kept") == 0);
    for (int i = 0; i < 60; i++) {
        snprintf(text, sizeof text, "c%d=1; Path=/c", i);
        CHECK(haft_http_cookie_jar_set(jar, "http://a.example/", text) == 0);
        check_sent(jar, "http://a.example/kept", "k=1");
    }
    char *sent;
    CHECK(haft_http_cookie_jar_get(jar, "http://a.example/c", &sent) == 0);
    CHECK(strstr(sent, "c11=1; ") == sent && strstr(sent, "; c59=1") != NULL);
    free(sent);
    for (int i = 0; i < 3100; i++) {
        snprintf(url, sizeof url, "http://h%d.example/", i);
        CHECK(haft_http_cookie_jar_set(jar, url, "a=b") == 0);
    }
    check_sent(jar, "http://a.example/kept", NULL);
    check_sent(jar, "http://h99.example/", NULL);
    check_sent(jar, "http://h100.example/", "a=b");
    haft_http_cookie_jar_clear(jar);
    memset(text, 'x', sizeof text);
    text[1] = '=';
    text[4098] = '\0';
    CHECK(haft_http_cookie_jar_set(jar, "http://a.example/", text) == -EINVAL);
    text[4097] = '\0';
    for (int i = 0; i < 3; i++) {
        text[0] = (char)('a' + i);
        CHECK(haft_http_cookie_jar_set(jar, "http://a.example/", text) == 0);
    }
    CHECK(haft_http_cookie_jar_get(jar, "http://a.example/", &sent) == 0);
    CHECK(strlen(sent) == 4097);
    free(sent);
    haft_http_cookie_jar_free(jar);
}

static void keep_cookies(void) {
    static const haft_http_header_t own[] = {{"Cookie", "own=1"}};
    haft_http_client_t *before = client;
    haft_http_cookie_jar_t *jar = haft_http_cookie_jar_new();
    client = haft_http_client_new_with(&(haft_http_client_options_t){.cookies = jar});
    CHECK(ask((haft_http_question_t){0}, "/cookies", "") == 200);
    CHECK(ask((haft_http_question_t){0}, "/cookies", "here=1") == 200);
    CHECK(ask((haft_http_question_t){0}, "/cookies/to", "here=1; way=1") == 200);
    CHECK(ask((haft_http_question_t){.headers = own, .header_count = 1}, "/cookies", "own=1") ==
          200);
    CHECK(ask((haft_http_question_t){0}, "/to/302/cookies", "here=1; way=1") == 200);
    haft_http_client_free(client);
    haft_http_cookie_jar_free(jar);
    client = before;
    CHECK(ask((haft_http_question_t){0}, "/cookies", "") == 200);
    CHECK(ask((haft_http_question_t){0}, "/cookies", "") == 200);
}

/* ---- Connections in all ---- */

static void *ask_together(void *unused) {
    CHECK(ask((haft_http_question_t){0}, "/together", NULL) == 200);
    return unused;
}

static void *ask_all_together(void *unused) {
    for (int i = 0; i < 8; i++)
        CHECK(haft_io_spawn(ask_together, NULL) == 0);
    return unused;
}

static void *ask_in_vain(void *unused) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + 2 * HAFT_IO_MILLISECOND);
    CHECK(ask((haft_http_question_t){0}, "/together", NULL) == -ETIMEDOUT);
    return unused;
}

static void *cancel_a_question(void *unused) {
    haft_io_spawn(ask_together, NULL);
    haft_io_spawn(ask_in_vain, NULL);
    haft_io_sleep(5 * HAFT_IO_MILLISECOND);
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

static void wait_for_places(void) {
    haft_http_client_t *before = client;
    haft_http_counters_t first, last;
    client = haft_http_client_new_with(&(haft_http_client_options_t){.connections = 2});
    haft_http_server_read_counters(server, &first);
    most_together = 0;
    CHECK(haft_io_scope(ask_all_together, NULL, NULL) == 0);
    CHECK(most_together == 2);
    haft_http_server_read_counters(server, &last);
    CHECK(last.connections_accepted == first.connections_accepted + 2);
    {
        HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *one = NULL, *other = NULL;
        haft_http_question_t question = {.url = url_of("/much")};
        CHECK(haft_http_client_ask(client, &question, &one) == 0);
        CHECK(haft_http_client_ask(client, &question, &other) == 0);
        CHECK(haft_io_scope(cancel_a_question, NULL, NULL) == -ECANCELED);
        CHECK(most_together == 2);
    }
    CHECK(haft_io_scope(ask_all_together, NULL, NULL) == 0);
    CHECK(most_together == 2);
    haft_http_client_free(client);
    client = before;
}

/* ---- Traces ---- */

#define ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define STATE64 "k=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define STATE512 STATE64 "," STATE64 "," STATE64 "," STATE64 "," STATE64 "," STATE64 "," STATE64

static const struct {
    const char *parent, *state;
    bool is_good;
    int is_sampled;
    const char *kept;
} traces[] = {
    {"00-" ID "-" SPAN "-01", "a=b", true, 1, "a=b"},
    {"00-" ID "-" SPAN "-00", "a=b , ,t@s=c d,", true, 0, "a=b,t@s=c d"},
    {"00-" ID "-" SPAN "-02", NULL, true, 0, ""},
    {"00-" ID "-" SPAN "-ff", "a", true, 1, ""},
    {"00-" ID "-" SPAN "-01", "A=b", true, 1, ""},
    {"00-" ID "-" SPAN "-01", "a=b=c", true, 1, ""},
    {"00-" ID "-" SPAN "-01", STATE512 "," STATE64, true, 1, STATE512},
    {"cc-" ID "-" SPAN "-01", "a=b", true, 1, "a=b"},
    {"cc-" ID "-" SPAN "-01-what-comes", "a=b", true, 1, "a=b"},
    {"cc-" ID "-" SPAN "-01.what-comes", "a=b", false, 1, ""},
    {"ff-" ID "-" SPAN "-01", "a=b", false, 1, ""},
    {"00-" ID "-" SPAN "-01-more", "a=b", false, 1, ""},
    {"00-" ID "-" SPAN "-0", "a=b", false, 1, ""},
    {"00-" ID "-" SPAN "-0G", "a=b", false, 1, ""},
    {"00-00000000000000000000000000000000-" SPAN "-01", "a=b", false, 1, ""},
    {"00-" ID "-0000000000000000-01", "a=b", false, 1, ""},
    {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", "a=b", false, 1, ""},
    {"00-" ID "-" SPAN "-01, 00-" ID "-" SPAN "-01", "a=b", false, 1, ""},
    {"", "a=b", false, 1, ""},
    {NULL, "a=b", false, 1, ""},
};

static void follow_traces(void) {
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
        haft_http_header_t fields[] = {{"tracestate", traces[i].state},
                                       {"traceparent", traces[i].parent}};
        size_t first = traces[i].state == NULL;
        haft_http_question_t question = {.url = url_of("/trace"),
                                         .headers = fields + first,
                                         .header_count = 2 - first - (traces[i].parent == NULL)};
        char *body, expected[60];
        CHECK(haft_http_client_ask(client, &question, &reply) == 0);
        CHECK(haft_http_reply_body(reply, &body) > 0);
        said_trace_t said = read_trace(body);
        bool is_good = strcmp(said.id, ID) == 0 && strcmp(said.parent, SPAN) == 0;
        if (is_good != traces[i].is_good || strcmp(said.state, traces[i].kept) != 0) {
            fprintf(stderr, "%s: %s\n", traces[i].parent, body);
            abort();
        }
        CHECK(said.is_sampled == traces[i].is_sampled &&
              (is_good || strcmp(said.parent, "none") == 0));
        CHECK(strlen(said.id) == 32 && strlen(said.span) == 16 && strcmp(said.span, SPAN) != 0);
        haft_io_sleep(HAFT_IO_MILLISECOND);
        snprintf(expected, sizeof expected, ",\"trace\":\"%s\"}", said.id);
        CHECK(strstr(last_line, expected) != NULL);
    }
    CHECK(ask((haft_http_question_t){0}, "/trace/on", NULL) == 200);
    static const haft_http_header_t given[] = {{"traceparent", "00-" ID "-" SPAN "-00"},
                                               {"tracestate", "a=b"}};
    CHECK(ask((haft_http_question_t){.headers = given, .header_count = 2}, "/trace/on", ID) == 200);
    /* A trace that begins here; and a client that does not send it. */
    said_trace_t said;
    CHECK(haft_http_trace_get() == NULL);
    CHECK(haft_http_trace_begin("00-" ID "-" SPAN "-00", "a=b") == 0);
    ask_for_trace(&said);
    CHECK(strcmp(said.id, ID) == 0 && strcmp(said.parent, SPAN) != 0);
    haft_http_client_t *before = client;
    client = haft_http_client_new_with(&(haft_http_client_options_t){.untraced = true});
    ask_for_trace(&said);
    CHECK(strcmp(said.id, ID) != 0);
    haft_http_client_free(client);
    client = before;
    haft_http_trace_end();
    CHECK(haft_http_trace_get() == NULL);
}

static void *ask_server(void *unused) {
    port = start_server(server);
    client = haft_http_client_new();
    keep_cookies();
    wait_for_places();
    follow_traces();
    ask_all();
    ask_for_urls();
    keep_connections();
    if (haft_io_seed() != 0) /* in virtual time */
        ask_in_time();
    haft_http_client_free(client);
    haft_http_server_stop(server);
    return unused;
}

/* ---- What it is answered ---- */

typedef struct {
    const char *says; /* and closes; "~" stands for '\0' */
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
    /* RFC 9110, section 6.2: a later version of HTTP/1 is read as 1.1. */
    {"HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi"},
    {"HTTP/1.9 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 200, "hi"},
    {"HTTP/1.10 200 OK\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, ""},
    {"", -EPIPE, NULL},
    {"HTTP/1.1 200 OK\r\nA", -EPIPE, NULL},
    {"hello\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/2.0 200 OK\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/1.1 20 OK\r\n\r\n", -EBADMSG, NULL},
    /* RFC 9110, section 15: a status without a class; one above 599 is the program's to judge. */
    {"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n" OK_ "\r\n", -EBADMSG, NULL},
    {"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/1.1 600 A\r\nContent-Length: 0\r\n\r\n", 600, ""},
    {"HTTP/1.1 999 A\r\nContent-Length: 0\r\n\r\n", 999, ""},
    /* RFC 9112, section 4: the bytes of a reason. */
    {"HTTP/1.1 200 O~K\r\nContent-Length: 0\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/1.1 200 O\1K\r\nContent-Length: 0\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/1.1 200 O\177K\r\nContent-Length: 0\r\n\r\n", -EBADMSG, NULL},
    {"HTTP/1.1 200 \tcaf\xc3\xa9\t\r\nContent-Length: 2\t\r\n\r\nhi", 200, "hi"},
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

/* Reads a head, and sends the bytes. */
static void *say_bytes(void *saying) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
    char memory[1000], *line;
    haft_io_reader_t lines = {.descriptor = connection, .memory = memory, .size = sizeof memory};
    while (haft_io_reader_line(&lines, &line) > 2)
        continue;
    char says[1000];
    size_t size = strlen(((const saying_t *)saying)->says);
    memcpy(says, ((const saying_t *)saying)->says, size);
    for (char *at = says; (at = memchr(at, '~', size - (size_t)(at - says))) != NULL;)
        *at = '\0';
    haft_io_write_all(connection, says, size);
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
        client = haft_http_client_new();
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
    client = haft_http_client_new();
    haft_io_task_t *speaker = haft_io_async(answer_twice, NULL);
    CHECK(ask((haft_http_question_t){0}, "/", "hi") == 200);
    CHECK(ask((haft_http_question_t){0}, "/", "hi") == 200);
    haft_io_join(speaker, NULL);
    haft_http_client_free(client);
    haft_io_close(listener);
    return unused;
}

/* ---- A port that is empty, fields that are no list ---- */

static char heard[1000];

static void *say_cookies_at_80(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(*(const int *)argument);
    static const char says[] = OK_ "Set-Cookie: a=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                                   "Set-Cookie: b=2\r\nContent-Length: 0\r\n\r\n";
    size_t size = 0;
    for (ssize_t got; strstr(heard, "\r\n\r\n") == NULL; heard[size += (size_t)got] = '\0')
        CHECK((got = haft_io_read(connection, heard + size, sizeof heard - 1 - size)) > 0);
    haft_io_write_all(connection, says, sizeof says - 1);
    return NULL;
}

/* RFC 3986, section 3.2.3, and RFC 9110, section 5.3. */
static void *ask_at_80(void *unused) {
    int at = haft_io_listen_tcp("127.0.0.1", 80, 0);
    haft_io_task_t *speaker = haft_io_async(say_cookies_at_80, &at);
    const char *name, *value;
    heard[0] = '\0';
    client = haft_http_client_new();
    haft_http_reply_t *reply;
    CHECK(haft_http_client_ask(client, &(haft_http_question_t){.url = "http://127.0.0.1:/a"},
                               &reply) == 0);
    CHECK(strstr(heard, "GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n") != NULL);
    CHECK(strcmp(haft_http_reply_header(reply, "set-cookie"),
                 "a=1; Expires=Sun, 06 Nov 1994 08:49:37 GMT") == 0);
    CHECK(haft_http_reply_header_at(reply, 1, &name, &value) && strcmp(value, "b=2") == 0);
    haft_http_reply_free(reply);
    haft_http_client_free(client);
    haft_io_join(speaker, NULL);
    haft_io_close(at);
    return unused;
}

/* ---- How many connections are kept, and how long ---- */

enum { ORIGINS = 30 };
static uint16_t ports[ORIGINS];
static int open_now; /* connections to them */

static void *answer_at(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    static const char answer[] = OK_ "Content-Length: 2\r\n\r\nhi";
    char memory[1000], *line;
    haft_io_reader_t lines = {.descriptor = connection, .memory = memory, .size = sizeof memory};
    open_now++;
    for (ssize_t size; (size = haft_io_reader_line(&lines, &line)) > 0;)
        if (size == 2)
            haft_io_write_all(connection, answer, sizeof answer - 1);
    open_now--;
    return NULL;
}

static void *accept_at(void *argument) {
    for (int connection; (connection = haft_io_accept((int)(intptr_t)argument)) >= 0;)
        haft_io_spawn(answer_at, (void *)(intptr_t)connection);
    return NULL;
}

static void open_origins(int listeners[ORIGINS]) {
    for (int i = 0; i < ORIGINS; i++) {
        listeners[i] = haft_io_listen_tcp("127.0.0.1", 0, 0);
        ports[i] = (uint16_t)haft_io_port(listeners[i]);
        haft_io_spawn(accept_at, (void *)(intptr_t)listeners[i]);
    }
}

static void ask_origins(int first, int end) {
    for (int i = first; i < end; i++) {
        port = ports[i];
        CHECK(ask((haft_http_question_t){0}, "/", "hi") == 200);
    }
}

static void await_open(int count) {
    for (int i = 0; i < 1000 && open_now != count; i++)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK(open_now == count);
}

static void *keep_few_connections(void *unused) {
    int listeners[ORIGINS];
    open_now = 0;
    open_origins(listeners);
    client = haft_http_client_new_with(
        &(haft_http_client_options_t){.kept_in_all = 5, .kept_time = 500 * HAFT_IO_MILLISECOND});
    ask_origins(0, ORIGINS);
    await_open(5);
    ask_origins(ORIGINS - 5, ORIGINS); /* those are the ones that were used last */
    CHECK(open_now == 5);
    if (haft_io_seed() != 0) { /* in virtual time */
        haft_io_sleep(HAFT_IO_SECOND);
        ask_origins(0, 1);
        await_open(1);
    }
    haft_http_client_free(client);
    for (int i = 0; i < ORIGINS; i++)
        haft_io_close(listeners[i]);
    return unused;
}

static int told[2]; /* by the process with the servers */

static void *serve_origins(void *unused) {
    int listeners[ORIGINS];
    open_origins(listeners);
    CHECK(haft_io_write_all(told[1], ports, sizeof ports) == 0);
    haft_io_sleep(100 * HAFT_IO_SECOND);
    return unused;
}

static void *ask_without_descriptors(void *unused) {
    struct rlimit before, limit;
    CHECK(haft_io_read_all(told[0], ports, sizeof ports) == sizeof ports);
    client = haft_http_client_new();
    ask_origins(0, 1);
    int next = dup(0);
    close(next);
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)next + 8;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    ask_origins(0, ORIGINS);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    haft_http_client_free(client);
    return unused;
}

/* The servers are in another process, whose descriptors do not count. */
static void give_way_to_new_connections(void) {
    CHECK(pipe(told) == 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where a check of the other process fails */
        haft_io_run(serve_origins, NULL);
        _exit(0);
    }
    CHECK(haft_io_run(ask_without_descriptors, NULL) == 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(told[0]);
    close(told[1]);
}

/* ---- Heads that do not come to their end in time ---- */

static const char *const beginnings[] = {
    "H",
    OK_,
    OK_ "A: b",
    "HTTP/1.1 103 Early Hints\r\n\r\nHTTP",
    "HTTP/1.1 103 Early Hints\r\n\r\n",
};

/* Says the beginning of a head, and nothing more. */
static void *say_beginning(void *beginning) {
    char bytes[1000];
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
    haft_io_write_all(connection, beginning, strlen(beginning));
    while (haft_io_read(connection, bytes, sizeof bytes) > 0)
        continue;
    return NULL;
}

/* By a question, one by a proxy's tunnel, and a WebSocket. */
static int ask_late(int way, const char *url) {
    char place[60];
    snprintf(place, sizeof place, "http://127.0.0.1:%d", port);
    haft_http_client_t *asking =
        haft_http_client_new_with(&(haft_http_client_options_t){.proxy = way == 1 ? place : ""});
    haft_http_reply_t *reply;
    haft_http_websocket_t *socket;
    haft_http_question_t question = {.url = url};
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + 20 * HAFT_IO_MILLISECOND);
    int code = way == 0 ? haft_http_client_ask(asking, &question, &reply)
                        : haft_http_websocket_connect(asking, &question, &socket);
    haft_http_client_free(asking);
    return code;
}

static void *ask_late_servers(void *unused) {
    char url[60];
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(listener);
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        for (int way = 0; way < 3; way++) {
            haft_io_task_t *speaker =
                haft_io_async(say_beginning, (void *)(uintptr_t)beginnings[i]);
            snprintf(url, sizeof url, "%s://127.0.0.1:%d/", way == 0 ? "http" : "ws", port);
            int code = ask_late(way, url);
            if (code == -EOPNOTSUPP) { /* built without WebSocket */
                haft_io_close(haft_io_connect_tcp("127.0.0.1", port));
                code = -ETIMEDOUT;
            }
            if (code != -ETIMEDOUT)
                fprintf(stderr, "%s by way %d: %d\n", beginnings[i], way, code);
            CHECK(code == -ETIMEDOUT);
            haft_io_join(speaker, NULL);
        }
    haft_io_close(listener);
    return unused;
}

/* ---- Proxies ---- */

static uint16_t proxy_port;
static char proxied[500]; /* what the last question has sent to the proxy */

/* A proxy that gives no tunnel, and answers everything by itself. */
static void *be_proxy(void *argument) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
    static const char ok[] = OK_ "Content-Length: 2\r\n\r\nhi";
    static const char no[] = "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno";
    char memory[1000], *line;
    haft_io_reader_t lines = {.descriptor = connection, .memory = memory, .size = sizeof memory};
    for (;;) {
        ssize_t size;
        bool is_first = true;
        while ((size = haft_io_reader_line(&lines, &line)) > 2) {
            line[size - 2] = '\0';
            if (is_first)
                snprintf(proxied, sizeof proxied, "%s", line);
            else if (strncmp(line, "Host:", 5) == 0 || strncmp(line, "Proxy-", 6) == 0)
                snprintf(proxied + strlen(proxied), sizeof proxied - strlen(proxied), "|%s", line);
            is_first = false;
        }
        if (size <= 0)
            return NULL;
        bool is_tunnel = strncmp(proxied, "CONNECT ", 8) == 0;
        haft_io_write_all(connection, is_tunnel ? no : ok,
                          is_tunnel ? sizeof no - 1 : sizeof ok - 1);
    }
}

static void *accept_for_proxy(void *unused) {
    for (int connection; (connection = haft_io_accept(listener)) >= 0;)
        haft_io_spawn(be_proxy, (void *)(intptr_t)connection);
    return unused;
}

/* The status, or an error; the failure is told. */
static int ask_with(const haft_http_client_options_t *options, const char *url, char failure[100]) {
    haft_http_client_t *asking = haft_http_client_new_with(options);
    haft_http_reply_t *reply;
    haft_http_question_t question = {.url = url, .failure = failure, .failure_size = 100};
    proxied[0] = failure[0] = '\0';
    int code = haft_http_client_ask(asking, &question, &reply);
    code = code == 0 ? haft_http_reply_status(reply) : code;
    haft_http_reply_free(reply);
    haft_http_client_free(asking);
    return code;
}

/* Values of fields are sent without the spaces and tabs around them, as HTTP/2 needs it (RFC 9113,
   section 8.2.1). */
static void ask_with_spaces(void) {
    char proxy[100];
    static const haft_http_header_t fields[] = {{"Proxy-X", " \ta b\t "}, {"Proxy-Y", "\t"}};
    snprintf(proxy, sizeof proxy, "127.0.0.1:%d", proxy_port);
    haft_http_client_t *asking =
        haft_http_client_new_with(&(haft_http_client_options_t){.proxy = proxy});
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    haft_http_question_t question = {
        .url = "http://here.example/", .headers = fields, .header_count = 2};
    CHECK(haft_http_client_ask(asking, &question, &reply) == 0);
    CHECK(strstr(proxied, "|Proxy-X: a b|Proxy-Y: ") != NULL);
    CHECK(strchr(proxied, '\t') == NULL);
    haft_http_reply_free(reply);
    reply = NULL;
    haft_http_client_free(asking);
}

static void ask_by_given_proxy(void) {
    char failure[100], proxy[100], expected[200];
    haft_http_client_options_t options = {.proxy = proxy};
    snprintf(proxy, sizeof proxy, "http://user:p%%40ss@127.0.0.1:%d/", proxy_port);
    CHECK(ask_with(&options, "http://here.example/x?y#z", failure) == 200);
    CHECK(strcmp(proxied, "GET http://here.example/x?y HTTP/1.1|Host: here.example|"
                          "Proxy-Authorization: Basic dXNlcjpwQHNz") == 0);
    snprintf(proxy, sizeof proxy, "127.0.0.1:%d", proxy_port);
    CHECK(ask_with(&options, "http://[::1]:81", failure) == 200);
    CHECK(strcmp(proxied, "GET http://[::1]:81/ HTTP/1.1|Host: [::1]:81") == 0);
    snprintf(proxy, sizeof proxy, "http://user@127.0.0.1:%d", proxy_port);
    CHECK(ask_with(&options, "https://here.example/x", failure) != 200);
    if (*proxied != '\0') /* the library has TLS */
        CHECK(strcmp(proxied, "CONNECT here.example:443 HTTP/1.1|Host: here.example:443|"
                              "Proxy-Authorization: Basic dXNlcjo=") == 0 &&
              strcmp(failure, "the proxy has answered CONNECT with status 403") == 0);
    static const char *const wrong[] = {"https://a/",    "socks5://a/",  "http://",
                                        "http://a:b:c/", "http://a%@b/", "http://a b/"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.proxy = wrong[i];
        int code = ask_with(&options, "http://127.0.0.1/", failure);
        CHECK(code == (i < 2 ? -EPROTONOSUPPORT : -EINVAL) && strstr(failure, "proxy") != NULL);
    }
    ask_with_spaces();
    /* A connection to it is kept, for all that it passes on. */
    snprintf(expected, sizeof expected, "127.0.0.1:%d", proxy_port);
    options = (haft_http_client_options_t){.proxy = expected, .connections = 1};
    haft_http_client_t *asking = haft_http_client_new_with(&options);
    for (int i = 0; i < 3; i++) {
        HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
        char url[40], *body;
        snprintf(url, sizeof url, "http://h%d.example/", i);
        CHECK(haft_http_client_ask(asking, &(haft_http_question_t){.url = url}, &reply) == 0);
        CHECK(haft_http_reply_body(reply, &body) == 2);
    }
    haft_http_websocket_t *socket;
    haft_http_question_t question = {.url = "ws://here.example/"};
    int code = haft_http_websocket_connect(asking, &question, &socket);
    CHECK(code == -EOPNOTSUPP || (code == -ECONNREFUSED &&
                                  strstr(proxied, "CONNECT here.example:80 HTTP/1.1") == proxied));
    haft_http_client_free(asking);
}

/* The variables of the environment; "P" stands for the proxy. */
static const struct {
    const char *variables[3][2];
    const char *url;
    bool is_proxied;
} environments[] = {
    {{{"http_proxy", "P"}}, "http://a.example", true},
    {{{"HTTP_PROXY", "P"}}, "http://a.example", true},
    {{{"HTTP_PROXY", "P"}, {"REQUEST_METHOD", "GET"}}, "http://a.example", false},
    {{{"http_proxy", "P"}, {"REQUEST_METHOD", "GET"}}, "http://a.example", true},
    {{{"HTTP_PROXY", "P"}, {"http_proxy", ""}}, "http://a.example", true},
    {{{"HTTPS_PROXY", "P"}, {"https_proxy", "P"}}, "http://a.example", false},
    {{{"http_proxy", "P"}}, "http://localhost", false},
    {{{"http_proxy", "P"}}, "http://127.0.0.2", false},
    {{{"http_proxy", "P"}}, "http://[::1]", false},
    {{{"http_proxy", "P"}, {"no_proxy", "*"}}, "http://a.example", false},
    {{{"http_proxy", "P"}, {"NO_PROXY", "b.example,a.example"}}, "http://a.example", false},
    {{{"http_proxy", "P"}, {"no_proxy", "b.example A.example"}}, "http://a.example", false},
    {{{"http_proxy", "P"}, {"no_proxy", "a.example"}}, "http://b.a.example", false},
    {{{"http_proxy", "P"}, {"no_proxy", "a.example"}}, "http://ba.example", true},
    {{{"http_proxy", "P"}, {"no_proxy", ".a.example"}}, "http://b.a.example", false},
    {{{"http_proxy", "P"}, {"no_proxy", "*.a.example"}}, "http://b.a.example", false},
    {{{"http_proxy", "P"}, {"no_proxy", ".a.example"}}, "http://a.example", true},
    {{{"http_proxy", "P"}, {"no_proxy", "a.example:1"}}, "http://a.example", true},
    {{{"http_proxy", "P"}, {"no_proxy", "b.example,"}}, "http://a.example", true},
    {{{"http_proxy", "P"}, {"no_proxy", "10.0.0.0/8"}}, "http://10.1.2.3", false},
    {{{"http_proxy", "P"}, {"no_proxy", "10.0.0.0/8"}}, "http://11.1.2.3", true},
    {{{"http_proxy", "P"}, {"no_proxy", "10.1.2.3"}}, "http://10.1.2.3", false},
    {{{"http_proxy", "P"}, {"no_proxy", "1.2.3"}}, "http://0.1.2.3", true},
    {{{"http_proxy", "P"}, {"no_proxy", "2001:db8::/32"}}, "http://[2001:db8::1]", false},
    {{{"http_proxy", "P"}, {"no_proxy", "[2001:db8::1]:1"}}, "http://[2001:db8::1]", true},
};

/* Where each name is this host. */
static void ask_by_environment(void) {
    char url[100], failure[100], place[40];
    snprintf(place, sizeof place, "http://127.0.0.1:%d", proxy_port);
    for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
        for (int j = 0; j < 3 && environments[i].variables[j][0] != NULL; j++) {
            const char *value = environments[i].variables[j][1];
            setenv(environments[i].variables[j][0], strcmp(value, "P") == 0 ? place : value, 1);
        }
        snprintf(url, sizeof url, "%s:%d/x", environments[i].url, port);
        CHECK(ask_with(&(haft_http_client_options_t){.proxy = ""}, url, failure) == 200);
        CHECK(*proxied == '\0');
        int code = ask_with(NULL, url, failure);
        if (code != 200 || (*proxied != '\0') != environments[i].is_proxied) {
            fprintf(stderr, "%zu: %d, %s, %s\n", i, code, proxied, failure);
            abort();
        }
        for (int j = 0; j < 3 && environments[i].variables[j][0] != NULL; j++)
            unsetenv(environments[i].variables[j][0]);
    }
}

static void *ask_by_proxies(void *unused) {
    port = start_server(server);
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    proxy_port = (uint16_t)haft_io_port(listener);
    haft_io_spawn(accept_for_proxy, NULL);
    ask_by_given_proxy();
    if (haft_io_seed() != 0)
        ask_by_environment();
    haft_io_close(listener);
    haft_http_server_stop(server);
    return unused;
}

/* ---- Faults at any operation ---- */

enum { NUMBERED = 24, MOST_NUMBERED = 40000 };

static size_t put_body(char *into, int number) {
    size_t size = number % 5 == 0 ? MOST_NUMBERED : (size_t)number * 31;
    for (size_t i = 0; i < size; i++)
        into[i] = (char)('a' + (i * 7 + (size_t)number) % 26);
    return size;
}

/* Its body, whole or in chunks. */
static int repeat(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    ssize_t size = haft_http_request_body(request, &body);
    bool is_sized = atoi(haft_http_request_path(request, "number")) % 2 == 0;
    int code = size < 0 ? (int)size : 0;
    if (code == 0)
        code = haft_http_answer_begin(request, 200, NULL,
                                      is_sized ? (uint64_t)size : HAFT_HTTP_UNKNOWN_SIZE);
    return code == 0 ? haft_http_answer_write(request, body, (size_t)size) : code;
}

/* Whether it got an answer, which is whole and its own then. */
static bool ask_for_repeat(int number) {
    static char said[MOST_NUMBERED];
    size_t size = put_body(said, number);
    char url[60], *body;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/repeat/%d", port, number);
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    haft_http_question_t question = {.url = url, .method = "PUT", .body = said, .size = size};
    int code = haft_http_client_ask(client, &question, &reply);
    ssize_t got = code == 0 ? haft_http_reply_body(reply, &body) : code;
    if (got < 0 || haft_http_reply_status(reply) != 200)
        return false;
    CHECK((size_t)got == size && (size == 0 || memcmp(body, said, size) == 0));
    return true;
}

static void *serve_at(void *descriptor) {
    int code = haft_http_server_serve(server, (int)(intptr_t)descriptor);
    CHECK(code == 0 || code == -ETIMEDOUT);
    return NULL;
}

static void *ask_under_faults(void *unused) {
    int given;
    while ((given = haft_io_listen_tcp("127.0.0.1", 0, 0)) < 0)
        continue;
    haft_io_task_t *serving = haft_io_async(serve_at, (void *)(intptr_t)given);
    while ((port = haft_http_server_port(server)) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    client = haft_http_client_new();
    for (int number = 0; number < NUMBERED; number++)
        while (!ask_for_repeat(number))
            haft_io_sleep(HAFT_IO_SECOND);
    haft_http_client_free(client);
    haft_http_server_stop(server);
    CHECK(haft_io_join(serving, NULL) == 0);
    CHECK(haft_io_simulated_count() == 0);
    return unused;
}

static void meet_faults(void) {
    CHECK(haft_http_server_put(server, "/repeat/{number}", repeat, NULL) == 0);
    haft_http_server_set_log(server, NULL, NULL);
    simulate_faults(ask_under_faults);
}

int main(void) {
    void *(*const cases[])(void *) = {hear_answers, keep_few_connections, ask_late_servers,
                                      ask_server, ask_by_proxies};
    static const char *const variables[] = {"http_proxy",    "HTTP_PROXY",  "no_proxy",
                                            "NO_PROXY",      "https_proxy", "HTTPS_PROXY",
                                            "REQUEST_METHOD"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    set_cookies();
    order_and_replace_cookies();
    limit_cookies();
    know_public_suffixes();
    keep_secure_cookies();
    make_server();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        simulate_seeds(cases[i]);
        CHECK(haft_io_run(cases[i], NULL) == 0);
    }
    simulate_seeds(ask_at_80);
    meet_faults();
    give_way_to_new_connections();
    haft_http_server_free(server);
    return 0;
}
