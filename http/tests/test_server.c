/* SPDX-License-Identifier: MIT */
/* Well-formed requests to a server: routes, bodies, answers, failures, limits of
   time, its end. Each case runs over the simulated network, whose time is virtual, and where it
   needs no virtual time, over sockets. */
#include "check_http.h"

#include <setjmp.h>

#include <netinet/in.h>
#include <unistd.h>

static haft_http_server_t *server;
static char log_lines[1 << 16];

static void note(void *unused, const char *line) {
    (void)unused;
    strncat(log_lines, line, sizeof log_lines - strlen(log_lines) - 2);
    strcat(log_lines, "\n");
}

/* ---- Handlers ---- */

static int say_path(haft_http_request_t *request, void *what) {
    const char *name = haft_http_request_path(request, "name");
    return haft_http_answer_format(request, 200, "%s %s", (const char *)what,
                                   name != NULL ? name : "-");
}

static int say_query(haft_http_request_t *request, void *unused) {
    (void)unused;
    const char *a = haft_http_request_query(request, "a"),
               *b = haft_http_request_query(request, "b c");
    return haft_http_answer_format(request, 200, "[%s] [%s]", a != NULL ? a : "none",
                                   b != NULL ? b : "none");
}

static int say_fields(haft_http_request_t *request, void *unused) {
    (void)unused;
    const char *a = haft_http_request_header(request, "x-a"),
               *cookie = haft_http_request_cookie(request, "id");
    return haft_http_answer_format(request, 200, "[%s] [%s]", a != NULL ? a : "none",
                                   cookie != NULL ? cookie : "none");
}

static int say_form(haft_http_request_t *request, void *unused) {
    (void)unused;
    const char *a = haft_http_request_form(request, "a"), *b = haft_http_request_form(request, "b");
    return haft_http_answer_format(request, 200, "[%s] [%s]", a != NULL ? a : "none",
                                   b != NULL ? b : "none");
}

static int echo(haft_http_request_t *request, void *unused) {
    char *body;
    (void)unused;
    ssize_t size = haft_http_request_body(request, &body);
    if (size < 0)
        return (int)size;
    const char *trailer = haft_http_request_trailer(request, "X-Sum");
    if (trailer != NULL)
        CHECK(haft_http_answer_set_header(request, "X-Sum", trailer) == 0);
    return haft_http_answer(request, 200, NULL, body, (size_t)size);
}

static int say_host(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, 200, haft_http_request_header(request, "Host"));
}

/* A type that the handler sets counts, and not that of the function that answers. */
static int say_type(haft_http_request_t *request, void *unused) {
    (void)unused;
    CHECK(haft_http_answer_set_header(request, "content-type", "application/json") == 0);
    return haft_http_answer(request, 200, "X-Evil/type", "{}", 2);
}

static int say_status(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, atoi(haft_http_request_path(request, "status")), "words");
}

static int return_number(haft_http_request_t *request, void *unused) {
    (void)request, (void)unused;
    return 5;
}

/* 100000 bytes, by size or in chunks. */
static int say_much(haft_http_request_t *request, void *size) {
    static char bytes[10000];
    memset(bytes, 'x', sizeof bytes);
    int code = haft_http_answer_begin(request, 200, NULL, *(const uint64_t *)size);
    for (int i = 0; i < 10 && code == 0; i++)
        code = haft_http_answer_write(request, bytes, sizeof bytes);
    return code;
}

static int return_error(haft_http_request_t *request, void *unused) {
    (void)unused;
    CHECK(haft_http_answer_set_header(request, "X-Evil", "left over") == 0);
    return -EIO;
}

static int split_answer(haft_http_request_t *request, void *unused) {
    (void)unused;
    CHECK(haft_http_answer_set_header(request, "X-A", "b\r\nX-Evil: 1") == -EINVAL);
    CHECK(haft_http_answer_set_header(request, "X-A", "b\nX-Evil: 1") == -EINVAL);
    CHECK(haft_http_answer_set_header(request, "X-A: b\r\nX-Evil", "1") == -EINVAL);
    CHECK(haft_http_answer_set_header(request, "", "1") == -EINVAL);
    static const char *const ours[] = {
        "content-length", "Transfer-Encoding", "CONNECTION", "Keep-Alive", "date", "Trailer", "te"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        CHECK(haft_http_answer_set_header(request, ours[i], "1") == -EINVAL);
    CHECK(haft_http_answer_set_header(request, "Tea", "1") == 0);
    CHECK(haft_http_answer_set_header(request, "T", "1") == 0);
    CHECK(haft_http_answer_set_cookie(request, "a", "b\r\nX-Evil: 1") == -EINVAL);
    CHECK(haft_http_answer_set_cookie(request, "a", "b; Domain=evil") == -EINVAL);
    CHECK(haft_http_answer_set_cookie_with(&(haft_http_cookie_options_t){.path = "/\r\nX-Evil: 1"},
                                           request, "a", "b") == -EINVAL);
    CHECK(haft_http_answer(request, 200, "text/html\r\nX-Evil: 1", "", 0) == -EINVAL);
    CHECK(haft_http_answer(request, 99, NULL, "", 0) == -EINVAL);
    CHECK(haft_http_answer_set_cookie_with(&(haft_http_cookie_options_t){.path = "/x"}, request,
                                           "a", "b") == 0);
    CHECK(haft_http_answer_text(request, 200, "whole") == 0);
    CHECK(haft_http_answer_text(request, 200, "again") == -EALREADY);
    CHECK(haft_http_answer_set_header(request, "X-A", "b") == -EALREADY);
    CHECK(haft_http_answer_write(request, "more", 4) == -EMSGSIZE);
    return 0;
}

static int sleep_for_a_while(haft_http_request_t *request, void *seconds) {
    haft_io_sleep(*(const int *)seconds * HAFT_IO_SECOND);
    return haft_http_answer_text(request, 200, "slept");
}

static int mark_around(haft_http_request_t *request, haft_http_next_t *next, void *unused) {
    (void)unused;
    int code = haft_http_answer_set_header(request, "X-Around", "yes");
    return code == 0 ? next->call(next, request) : code;
}

static int say_spaces(haft_http_request_t *request, void *unused) {
    (void)unused;
    CHECK(haft_http_answer_set_header(request, "X-Spaces", " \ta b\t ") == 0);
    CHECK(haft_http_answer_set_header(request, "X-Nothing", " \t") == 0);
    return haft_http_answer(request, 200, " text/plain\t", "", 0);
}

/* Mistaken routes, with the words of their errors. */
static void refuse_routes(void) {
    static const struct {
        const char *method, *path, *words;
        int code;
    } mistakes[] = {
        {"GET", "/a", "no route GET /a: the path has a handler for that method already", -EEXIST},
        {"GET", "/named/{other}", "the path has a handler for that method already", -EEXIST},
        {"GET", "a", "no route GET a: a path begins with '/'", -EINVAL},
        {"GET", NULL, "the path is NULL", -EINVAL},
        {"GET", "/{", "braces stand around a whole part, with a name in them: {name}", -EINVAL},
        {"GET", "/{}", "braces stand around a whole part", -EINVAL},
        {"GET", "/x{a}", "braces stand around a whole part", -EINVAL},
        {"GET", "/{a b}", "the name in {name} is made of letters, digits and '_'", -EINVAL},
        {"GET", "/{a...}/b", "{name...} takes the rest, so it stands at the end", -EINVAL},
        {"GET", "/x/:id", "a part that captures is written {name}, not :name", -EINVAL},
        {"GET", "/x/*", "a part that takes the rest is written {name...}, not *", -EINVAL},
        {"G T", "/x", "that is no method", -EINVAL},
        {"BREW", "/x", "that is no method", -EINVAL},
        {"CONNECT", "/x", "haft_http_server_on_connect", -EINVAL},
        {NULL, "/x", "that is no method", -EINVAL},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        CHECK(haft_http_server_route(server, mistakes[i].method, mistakes[i].path, say_path, "") ==
              mistakes[i].code);
        CHECK(strstr(haft_http_server_mistake(server), mistakes[i].words) != NULL);
        CHECK(strstr(log_lines, haft_http_server_mistake(server)) != NULL);
    }
    CHECK(haft_http_server_get(server, "/x", NULL, "") == -EINVAL);
    CHECK(strstr(haft_http_server_mistake(server), "the handler is NULL") != NULL);
}

static void make_server(void) {
    static uint64_t unknown = HAFT_HTTP_UNKNOWN_SIZE, exactly = 100000, more = 100001;
    static int three = 3, hundred = 100;
    server = haft_http_server_new();
    haft_http_server_set_log(server, note, NULL);
    haft_http_server_get(server, "/a", say_path, "a");
    haft_http_server_get(server, "/a/{name}", say_path, "part");
    haft_http_server_get(server, "/a/b", say_path, "text");
    haft_http_server_get(server, "/a/{name}/c", say_path, "below");
    haft_http_server_get(server, "/files/{name...}", say_path, "rest");
    haft_http_server_get(server, "/named/{name}", say_path, "get");
    haft_http_server_delete(server, "/named/{other}", say_path, "delete");
    haft_http_server_get(server, "/", say_query, NULL);
    haft_http_server_get(server, "/host", say_host, NULL);
    haft_http_server_get(server, "/type", say_type, NULL);
    haft_http_server_get(server, "/status/{status}", say_status, NULL);
    haft_http_server_get(server, "/spaces", say_spaces, NULL);
    haft_http_server_get(server, "/positive", return_number, NULL);
    haft_http_server_post(server, "/unread", say_host, NULL);
    haft_http_server_get(server, "/caf\xc3\xa9", say_path, "decoded");
    haft_http_server_get(server, "/query", say_query, NULL);
    haft_http_server_get(server, "/fields", say_fields, NULL);
    haft_http_server_post(server, "/form", say_form, NULL);
    haft_http_server_post(server, "/echo", echo, NULL);
    haft_http_server_put(server, "/echo", echo, NULL);
    haft_http_server_post(server, "/stream", stream_back, NULL);
    haft_http_server_get(server, "/much", say_much, &exactly);
    haft_http_server_get(server, "/chunks", say_much, &unknown);
    haft_http_server_get(server, "/short", say_much, &more);
    haft_http_server_get(server, "/fail", fail_hard, NULL);
    haft_http_server_get(server, "/error", return_error, NULL);
    haft_http_server_get(server, "/nothing", say_nothing, NULL);
    haft_http_server_get(server, "/half", fail_in_the_middle, NULL);
    haft_http_server_get(server, "/split", split_answer, NULL);
    haft_http_server_get(server, "/sleep", sleep_for_a_while, &three);
    haft_http_server_get(server, "/sleep/long", sleep_for_a_while, &hundred);
    haft_http_server_use(server, mark_around, NULL);
    refuse_routes();
}

/* ---- Talks ---- */

static const talk_t talks[] = {
    {"GET /a" END, {"200 OK", "Content-Length: 3", "X-Around: yes", "\r\n\r\na -"}, 1},
    {"GET /a/ye%73%2f" END, {"200 OK", "\r\n\r\npart yes/"}, 1},
    {"GET /a/b" END, {"\r\n\r\ntext -"}, 1},
    {"GET /a/b/c" END, {"\r\n\r\nbelow b"}, 1},
    {"GET /a/" END, {"404 Not Found"}, 1},
    {"GET /files/x/y%20z" END, {"\r\n\r\nrest x/y z"}, 1},
    {"GET /files/" END, {"\r\n\r\nrest "}, 1},
    {"GET /caf%C3%A9" END, {"\r\n\r\ndecoded -"}, 1},
    {"GET /named/x" END "DELETE /named/x" END, {"get x", "delete -"}, 2},
    {"PUT /named/x" END, {"405 Method", "Allow: OPTIONS, DELETE, GET, HEAD\r\n"}, 1},
    {"GET http://there/a/x" END, {"\r\n\r\npart x"}, 1},
    {"GET http://there:81/host" END, {"\r\n\r\nthere:81"}, 1},
    {"GET http://there HTTP/1.1\r\nHost: here\r\nA: b\r\n\r\n", {"[none] [none]"}, 1},
    {"GET HTTP://there?a=1" END "GET /a" END, {"[1] [none]", "a -"}, 2},
    {"GET /nowhere" END, {"404 Not Found"}, 1},
    {"DELETE /echo" END, {"405 Method Not Allowed", "Allow: OPTIONS, POST, PUT\r\n"}, 1},
    {"OPTIONS /a" END, {"204 No Content", "Allow: OPTIONS, GET, HEAD\r\n"}, 1},
    {"OPTIONS *" END, {"204 No Content"}, 1},
    {"HEAD /much" END "GET /a" END, {"Content-Length: 100000\r\n", "\r\n\r\nHTTP/1.1 200"}, 2},
    {"\r\nGET /a" END, {"200 OK"}, 1},
    {"GET /a" END "GET /a/1" END "GET /a/2" END, {"a -", "part 1", "part 2"}, 3},
    {"GET /a" WITH("Connection: close") "GET /a" END, {"Connection: close"}, 1},
    {"GET /a HTTP/1.0\r\n\r\nGET /a" END, {"Connection: close"}, 1},
    /* RFC 9110, section 6.2: a later version of HTTP/1 is answered as 1.1 is. */
    {"GET /a HTTP/1.2\r\nHost: here\r\n\r\nGET /chunks HTTP/1.9\r\nHost: here\r\n\r\n",
     {"HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n", "Transfer-Encoding: chunked\r\n"},
     2},
    {"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /a/1" END,
     {"Connection: keep-alive", "part 1"},
     2},
    {"GET /chunks HTTP/1.0\r\n\r\n", {"Connection: close\r\n", "xxxx"}, 1},
    {"GET /query?b+c=%26d&x&a=1&a=2" END, {"[1] [&d]"}, 1},
    {"GET /query?a&b" END, {"[] [none]"}, 1},
    {"GET /fields" WITH("x-a: 1\r\nCookie: a=b; id=7; id=8\r\nX-A:  2 "), {"[1, 2] [7]"}, 1},
    {"POST /form" WITH("Content-Type: application/x-www-form-urlencoded; charset=utf-8\r\n"
                       "Content-Length: 9") "a=1+2&b=%",
     {"[1 2] [none]"},
     1},
    {"POST /form" WITH("Content-Type: text/plain\r\nContent-Length: 3") "a=1GET /a" END,
     {"[none] [none]", "a -"},
     2},
    {"POST /echo" WITH("Content-Length: 5") "helloGET /a" END, {"\r\n\r\nhello", "a -"}, 2},
    {"POST /echo" WITH("Content-Length: \t5 \t") "helloGET /a" END, {"\r\n\r\nhello", "a -"}, 2},
    {"POST /echo" WITH("Transfer-Encoding:\tchunked\t") "1\r\n!\r\n0\r\n\r\nGET /a" END,
     {"\r\n\r\n!", "a -"},
     2},
    {"GET /a" WITH("Proxy-Connection: close") "GET /a" END, {"a -", "a -"}, 2},
    {"GET /a HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\nGET /a/1" END,
     {"Connection: close"},
     1},
    {"GET /host HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n", {"[2001:db8::1]:80"}, 1},
    {"GET /host HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n", {"[fe80::1%25eth0]"}, 1},
    {"GET /host HTTP/1.1\r\nHost: caf%C3%A9\r\n\r\n", {"caf%C3%A9"}, 1},
    {"GET /spaces" END,
     {"Content-Type: text/plain\r\n", "X-Spaces: a b\r\n", "X-Nothing: \r\n"},
     1},
    {"POST /echo" WITH("Content-Length: 0"), {"Content-Length: 0"}, 1},
    {"POST /echo" WITH("Transfer-Encoding: chunked") "5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nX-Sum: 6"
                                                     "\r\nA: b\r\n\r\nGET /a" END,
     {"X-Sum: 6", "\r\n\r\nhello!", "a -"},
     2},
    {"POST /echo" WITH("Content-Length: 5\r\nExpect: 100-continue") "hello",
     {"200 OK", "\r\n\r\nhello"},
     1},
    {"POST /stream" WITH("Transfer-Encoding: chunked") "A\r\n0123456789\r\n0\r\n\r\nGET /a" END,
     {"Transfer-Encoding: chunked", "\r\n0\r\nX-End: yes\r\n\r\nHTTP/1.1 200", "a -"},
     2},
    {"GET /much" END "GET /a" END, {"xxxx", "a -"}, 2},
    {"GET /chunks" END "GET /a" END, {"2710\r\nxxxx", "\r\n0\r\n\r\n", "a -"}, 2},
    {"GET /short" END "GET /a" END, {"Content-Length: 100001"}, 1},
    {"GET /fail" END "GET /a" END, {"500 Internal"}, 1},
    {"GET /error" END "GET /a" END, {"500 Internal", "a -"}, 2},
    {"GET /nothing" END "GET /a" END, {"500 Internal", "a -"}, 2},
    {"GET /positive" END "GET /a" END, {"500 Internal", "a -"}, 2},
    {"GET /type" END, {"200 OK", "content-type: application/json\r\n", "\r\n\r\n{}"}, 1},
    {"GET /status/205" END "GET /a" END,
     {"205", "Content-Length: 0\r\n", "\r\n\r\nHTTP", "a -"},
     2},
    {"POST /unread" WITH("Content-Length: 3") "abcGET /a" END, {"200 OK", "a -"}, 2},
    {"POST /unread" WITH("Content-Length: 70000") "abc", {"Connection: close\r\n"}, 1},
    {"POST /unread" WITH("Transfer-Encoding: chunked") "11170\r\nabc",
     {"Connection: close\r\n"},
     1},
    {"POST /echo" WITH("Content-Length: 1048577\r\nExpect: 100-continue"), {"HTTP/1.1 413"}, 1},
    {"GET /half" END "GET /a" END, {"4\r\nhalf\r\n"}, 1},
    {"GET /split" END,
     {"Set-Cookie: a=b; Path=/x; HttpOnly; Secure; SameSite=Lax\r\n", "whole"},
     1},
};

static jmp_buf before_mistake;

static void note_mistake(const haft_error_t *error) {
    CHECK(strstr(error->message, "was freed while it is served") != NULL);
    longjmp(before_mistake, 1);
}

/* While it serves, nobody else may serve or free it. */
static void misuse_server(void) {
    CHECK(haft_http_server_serve(server, haft_io_listen_tcp("127.0.0.1", 0, 0)) == -EBUSY);
    haft_error_handler_t *before = haft_set_error_handler(note_mistake);
    if (setjmp(before_mistake) == 0) {
        haft_http_server_free(server);
        CHECK(false);
    }
    haft_set_error_handler(before);
}

/* Where the whole body comes with the head, the connection is kept. (A simulation may cut them.) */
static const talk_t whole_one = {
    "POST /unread" WITH("Transfer-Encoding: chunked") "3\r\nabc\r\n0\r\nA: b\r\n\r\nGET /a" END,
    {"200 OK", "a -"},
    2};

static void *answer_whole_one(void *unused) {
    start_server(server);
    run_talk(haft_http_server_port(server), &whole_one, NULL);
    haft_http_server_stop(server);
    return unused;
}

static void *talk_all(void *unused) {
    start_server(server);
    misuse_server();
    log_lines[0] = '\0';
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++)
        run_talk(haft_http_server_port(server), &talks[i], "X-Evil");
    CHECK(strstr(log_lines, "GET /error: Input/output error") != NULL);
    CHECK(strstr(log_lines, "GET /nothing: the handler has not answered") != NULL);
    CHECK(strstr(log_lines, "GET /positive: the handler has returned a positive number") != NULL);
    CHECK(strstr(log_lines, "GET /short: the answer lacks bytes of its body") != NULL);
    const char *failed = strstr(log_lines, "the disk is gone (Input/output error), in the task '");
    CHECK(failed != NULL && strncmp(strchr(failed, '\n'), "\n    ", 5) == 0); /* a frame */
    haft_http_server_stop(server);
    return unused;
}

/* ---- Time ---- */

typedef struct {
    const char *says, *then, *hears;
    int64_t pause, lasts; /* seconds */
} slow_t;

/* `lasts` is when the server has closed. */
static const slow_t slow_ones[] = {
    {"", "", "", 0, 75},
    {"GET /a HT", "", "408 Request Timeout", 0, 10},
    {"GET /a" END, "", "200 OK", 0, 75},
    {"GET /a" END, "GET /a HT", "408 Request Timeout", 5, 15},
    {"POST /echo" WITH("Content-Length: 5") "he", "", "408 Request Timeout", 0, 10},
    {"POST /echo" WITH("Content-Length: 5") "he", "llo", "\r\n\r\nhello", 9, 84},
    {"POST /echo" WITH("Transfer-Encoding: chunked") "5\r\nhe", "l", "408 Request Timeout", 5, 10},
};

static void *meet_slow_ones(void *unused) {
    start_server(server);
    for (size_t i = 0; i < sizeof slow_ones / sizeof *slow_ones; i++) {
        const slow_t *slow = &slow_ones[i];
        int64_t begun = haft_io_now();
        HAFT_IO_SCOPED_DESCRIPTOR int connection =
            haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
        haft_io_write_all(connection, slow->says, strlen(slow->says));
        haft_io_sleep(slow->pause * HAFT_IO_SECOND);
        haft_io_write_all(connection, slow->then, strlen(slow->then));
        char heard[2000] = "";
        haft_io_read_all(connection, heard, sizeof heard - 1);
        int64_t lasted = haft_io_now() - begun;
        if (strstr(heard, slow->hears) == NULL || lasted < slow->lasts * HAFT_IO_SECOND ||
            lasted >= (slow->lasts + 1) * HAFT_IO_SECOND) {
            fprintf(stderr, "%s, after %lld ms\n%s\n", slow->says, (long long)lasted / 1000000,
                    heard);
            abort();
        }
    }
    haft_http_server_stop(server);
    return unused;
}

/* Bytes that came in time before give no extra time. */
static void *refuse_a_body_that_stalls(void *unused) {
    static const char *const heads[] = {
        "POST /echo" WITH("Content-Length: 900000"),
        "POST /echo" WITH("Transfer-Encoding: chunked") "dbba0\r\n"};
    static char piece[800000];
    start_server(server);
    for (int i = 0; i < 2; i++) {
        char heard[1000] = "";
        HAFT_IO_SCOPED_DESCRIPTOR int connection =
            haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
        haft_io_write_all(connection, heads[i], strlen(heads[i]));
        haft_io_write_all(connection, piece, sizeof piece);
        int64_t begun = haft_io_now();
        haft_io_read_all(connection, heard, sizeof heard - 1);
        int64_t lasted = haft_io_now() - begun;
        CHECK(strstr(heard, "408 Request Timeout") != NULL);
        CHECK(lasted >= 9 * HAFT_IO_SECOND && lasted < 12 * HAFT_IO_SECOND);
    }
    haft_http_server_stop(server);
    return unused;
}

static void hear_word(const char *head, const char *then) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    char heard[1000] = "";
    haft_io_write_all(connection, head, strlen(head));
    haft_io_read_all(connection, heard, 25);
    CHECK(strcmp(heard, "HTTP/1.1 100 Continue\r\n\r\n") == 0);
    haft_io_write_all(connection, "hello", 5);
    haft_io_shutdown(connection, SHUT_WR);
    CHECK(haft_io_read_all(connection, heard, sizeof heard - 1) > 0);
    CHECK(strstr(heard, then) != NULL);
}

/* Also where the handler begins its answer before it reads the body. */
static void *wait_for_word(void *unused) {
    start_server(server);
    hear_word("POST /echo" WITH("Content-Length: 5\r\nExpect: 100-continue"), "\r\n\r\nhello");
    hear_word("POST /stream" WITH("Content-Length: 5\r\nExpect: 100-continue"), "X-End: yes\r\n");
    haft_http_server_stop(server);
    return unused;
}

/* The answer does not wait for a body that the handler has not read. */
static void *answer_before_the_body(void *unused) {
    start_server(server);
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    static const char head[] = "POST /nowhere" WITH("Content-Length: 5"),
                      rest[] = "helloGET /a" END;
    char heard[1000] = "";
    haft_io_write_all(connection, head, sizeof head - 1);
    CHECK(haft_io_read(connection, heard, sizeof heard - 1) > 0);
    haft_io_write_all(connection, rest, sizeof rest - 1);
    haft_io_shutdown(connection, SHUT_WR);
    CHECK(haft_io_read_all(connection, heard, sizeof heard - 1) > 0);
    CHECK(strstr(heard, "\r\n\r\na -") != NULL);
    haft_http_server_stop(server);
    return unused;
}

/* A client that reads slowly and has sent more: what it has not read when the server closes must
   not be thrown away (RFC 9112, section 9.6). */
static void *deliver_to_slow_readers(void *unused) {
    static const char last[] = "GET /much" WITH("Connection: close"), more[] = "GET /a" END;
    static char heard[200000];
    int small = 30000;
    start_server(server);
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    setsockopt(connection, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    haft_io_write_all(connection, last, sizeof last - 1);
    for (int i = 0; i < 40; i++) {
        haft_io_write_all(connection, more, sizeof more - 1);
        haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    }
    ssize_t size = haft_io_read_all(connection, heard, sizeof heard);
    CHECK(size > 100000 && heard[size - 1] == 'x');
    haft_http_server_stop(server);
    return unused;
}

/* ---- The end ---- */

static void *stop_idle(void *unused) {
    start_server(server);
    HAFT_IO_SCOPED_DESCRIPTOR int fresh =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    HAFT_IO_SCOPED_DESCRIPTOR int used =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    char heard[1000];
    haft_io_write_all(used, "GET /a" END, strlen("GET /a" END));
    CHECK(haft_io_read(used, heard, sizeof heard) > 0);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_http_server_stop(server);
    while (haft_io_read(used, heard, sizeof heard) > 0)
        continue;
    CHECK(haft_io_read(fresh, heard, sizeof heard) == 0);
    return unused;
}

static void *stop_amid_a_request(void *turns) {
    start_server(server);
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    static const char begin[] = "POST /echo" WITH("Content-Length: 5") "he";
    char heard[1000] = "";
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_write_all(connection, begin, sizeof begin - 1);
    for (intptr_t i = 0; i < (intptr_t)turns; i++)
        haft_io_yield();
    haft_http_server_stop(server);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_write_all(connection, "llo", 3);
    haft_io_read_all(connection, heard, sizeof heard - 1);
    CHECK(*heard == '\0' || strstr(heard, "\r\n\r\nhello") != NULL);
    return NULL;
}

/* A request of which a part came too late gets no answer: its client is not to blame. */
static void *stop_amid_requests(void *unused) {
    for (intptr_t turns = 0; turns < 8; turns++)
        CHECK(haft_io_scope(stop_amid_a_request, (void *)turns, NULL) == 0);
    return unused;
}

static void *ask_slowly(void *path) {
    char says[100];
    static char heard[4][1000];
    static int next;
    char *hears = heard[next++ % 4];
    snprintf(says, sizeof says, "GET %s" END "GET /a" END, (const char *)path);
    say_and_hear(haft_http_server_port(server), says, strlen(says), true, hears, sizeof heard[0]);
    return hears;
}

/* The one that has come is answered, and that is its connection's last answer. */
static void *stop_gracefully(void *unused) {
    start_server(server);
    haft_io_task_t *slow = haft_io_async(ask_slowly, "/sleep");
    HAFT_IO_SCOPED_DESCRIPTOR int idle =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    haft_io_sleep(HAFT_IO_SECOND);
    uint16_t port = haft_http_server_port(server);
    haft_http_server_stop(server);
    char byte;
    CHECK(haft_io_read(idle, &byte, 1) == 0);
    CHECK(haft_io_connect_tcp("127.0.0.1", port) == -ECONNREFUSED);
    void *heard;
    haft_io_join(slow, &heard);
    CHECK(strstr(heard, "slept") != NULL && strstr(heard, "Connection: close") != NULL);
    CHECK(times_in(heard, "HTTP/1.1") == 1);
    return unused;
}

static void *serve_too_long(void *unused) {
    int64_t begun = haft_io_now();
    CHECK(haft_http_server_serve(server, haft_io_listen_tcp("127.0.0.1", 0, 0)) == -ETIMEDOUT);
    CHECK(haft_io_now() - begun >= 11 * HAFT_IO_SECOND);
    return unused;
}

static void *stop_after_grace(void *unused) {
    haft_io_spawn(serve_too_long, NULL);
    while (haft_http_server_port(server) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_task_t *slow = haft_io_async(ask_slowly, "/sleep/long");
    haft_io_sleep(HAFT_IO_SECOND);
    haft_http_server_stop(server);
    void *heard;
    haft_io_join(slow, &heard);
    CHECK(strcmp(heard, "") == 0);
    return unused;
}

/* There is no room for the last of many answers: the connection waits for that where it comes to
   rest, and is closed when it is cut off there. */
static void *cut_at_rest(void *unused) {
    static char heard[20000];
    haft_io_spawn(serve_too_long, NULL);
    while (haft_http_server_port(server) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    for (int i = 0; i < 100; i++) {
        haft_io_write_all(connection, "GET /a" END, strlen("GET /a" END));
        haft_io_sleep(10 * HAFT_IO_MILLISECOND);
    }
    haft_http_server_stop(server);
    haft_io_sleep(11 * HAFT_IO_SECOND);
    CHECK(haft_io_read_all(connection, heard, sizeof heard) < (ssize_t)sizeof heard);
    return unused;
}

/* In real time, where connections rest. Neither outlives the time that it may be idle, so they end
   in the order in which they began to be. */
static void *close_silent_ones(void *unused) {
    char heard[1000];
    start_server(server);
    HAFT_IO_SCOPED_DESCRIPTOR int silent =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    HAFT_IO_SCOPED_DESCRIPTOR int answered =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    haft_io_write_all(answered, "GET /a" END, strlen("GET /a" END));
    while (haft_io_read(answered, heard, sizeof heard) > 0)
        continue;
    CHECK(haft_io_receive(silent, heard, sizeof heard, MSG_DONTWAIT) == 0);
    haft_http_server_stop(server);
    return unused;
}

/* The handler's read fails, and nobody is to blame: there is no line in the log. */
static void *leave_amid_a_body(void *unused) {
    static const char begin[] = "POST /echo" WITH("Content-Length: 5") "he";
    start_server(server);
    log_lines[0] = '\0';
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server));
    setsockopt(connection, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
               sizeof(struct linger));
    haft_io_write_all(connection, begin, sizeof begin - 1);
    haft_io_sleep(20 * HAFT_IO_MILLISECOND);
    haft_http_server_stop(server);
    return unused;
}

/* Connections that wait to be accepted when the server is told to stop are served: more than a task
   takes in one turn. */
static void *stop_before_many_are_accepted(void *unused) {
    enum { MANY = 200 };
    static const char asked[] = "GET /a" END;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(start_server(server))};
    int clients[MANY];
    char heard[1000];
    for (int i = 0; i < MANY; i++) { /* by the system, so that no task runs meanwhile */
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(connect(clients[i], (struct sockaddr *)&address, sizeof address) == 0);
        CHECK(write(clients[i], asked, sizeof asked - 1) == sizeof asked - 1);
    }
    haft_http_server_stop(server);
    for (int i = 0; i < MANY; i++) {
        ssize_t got = haft_io_read(clients[i], heard, sizeof heard);
        CHECK(got > 12 && strncmp(heard, "HTTP/1.1 200", 12) == 0);
        haft_io_close(clients[i]);
    }
    return unused;
}

int main(void) {
    void *(*const cases[])(void *) = {talk_all,
                                      wait_for_word,
                                      answer_before_the_body,
                                      deliver_to_slow_readers,
                                      stop_idle,
                                      stop_amid_requests,
                                      stop_gracefully,
                                      stop_after_grace,
                                      meet_slow_ones,
                                      refuse_a_body_that_stalls,
                                      cut_at_rest};
    make_server();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        simulate_seeds(cases[i]);
    for (size_t i = 0; i < 6; i++)
        for (int threads = 1; threads <= 2; threads++)
            CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, cases[i], NULL) ==
                  0);
    CHECK(haft_io_run(answer_whole_one, NULL) == 0);
    CHECK(haft_io_run(leave_amid_a_body, NULL) == 0 && *log_lines == '\0');
    CHECK(haft_io_run(stop_before_many_are_accepted, NULL) == 0);
    haft_http_server_set_limits(server,
                                &(haft_http_limits_t){.idle_time = 100 * HAFT_IO_MILLISECOND});
    CHECK(haft_io_run(close_silent_ones, NULL) == 0);
    haft_http_server_free(server);
    return 0;
}
