/* SPDX-License-Identifier: MIT */
/*
 * Every limit of a server at its last good value and the next, times without end, and nonsense that
 * a program gives to the functions of haft/http.h: an error, and nothing else.
 */
#include "check_http.h"

#include <limits.h>

static haft_http_server_t *server;

/* Sends it, and reads this status first. */
static void expect(const char *says, int status) {
    static char heard[200000];
    char line[40];
    say_and_hear(haft_http_server_port(server), says, strlen(says), false, heard, sizeof heard);
    snprintf(line, sizeof line, "HTTP/1.1 %d ", status);
    if (strncmp(heard, line, strlen(line)) != 0) {
        fprintf(stderr, "%.300s\n%d expected, but got\n%.300s\n", says, status, heard);
        abort();
    }
}

static int say_size(haft_http_request_t *request, void *unused) {
    char *body;
    (void)unused;
    ssize_t size = haft_http_request_body(request, &body);
    return size < 0 ? (int)size : haft_http_answer_format(request, 200, "%zd", size);
}

/* ---- At the limit, and one beyond it ---- */

enum { LINE = 100, HEAD = 300, FIELDS = 4, BODY = 10 };

/* A request line, a head and a body of so many bytes; so many fields more than Host. */
typedef struct {
    size_t line, head, fields, body;
    bool chunked;
    int status;
} sized_t;

static const sized_t sized_ones[] = {
    {LINE, 0, 0, 0, false, 200},       {LINE + 1, 0, 0, 0, false, 414},
    {0, HEAD, 0, 0, false, 200},       {0, HEAD + 1, 0, 0, false, 431},
    {0, 0, FIELDS - 1, 0, false, 200}, {0, 0, FIELDS, 0, false, 431},
    {0, 0, 0, BODY, false, 200},       {0, 0, 0, BODY + 1, false, 413},
    {0, 0, 0, BODY, true, 200},        {0, 0, 0, BODY + 1, true, 413},
};

static void pad(char *text, size_t size) {
    size_t used = strlen(text);
    memset(text + used, 'a', size > used ? size - used : 0);
    text[size > used ? size : used] = '\0';
}

static void put_request(const sized_t *sized, char *text) {
    strcpy(text, "POST /?");
    if (sized->line != 0)
        pad(text, sized->line - strlen(" HTTP/1.1\r\n"));
    strcat(text, " HTTP/1.1\r\nHost: here\r\n");
    for (size_t i = 0; i < sized->fields; i++)
        strcat(text, "A: b\r\n");
    if (sized->body != 0)
        sprintf(text + strlen(text),
                sized->chunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: %zu\r\n",
                sized->body);
    if (sized->head != 0) {
        strcat(text, "A: ");
        pad(text, sized->head - strlen("\r\n\r\n"));
        strcat(text, "\r\n");
    }
    strcat(text, "\r\n");
    if (sized->chunked)
        sprintf(text + strlen(text), "%zx\r\n", sized->body);
    pad(text, strlen(text) + sized->body);
    if (sized->chunked)
        strcat(text, "\r\n0\r\n\r\n");
}

static void *meet_limits(void *unused) {
    char text[2000];
    start_server(server);
    for (size_t i = 0; i < sizeof sized_ones / sizeof *sized_ones; i++) {
        put_request(&sized_ones[i], text);
        expect(text, sized_ones[i].status);
    }
    haft_http_server_stop(server);
    return unused;
}

/* A path has so many parts at most. */
static void *count_parts(void *unused) {
    char text[300] = "GET ";
    start_server(server);
    for (int parts = 0; parts < 64; parts++)
        strcat(text, "/a");
    size_t size = strlen(text);
    strcat(text, END);
    expect(text, 404);
    strcpy(text + size, "/a" END);
    expect(text, 414);
    haft_http_server_stop(server);
    return unused;
}

/* One connection more than the limit waits until another has gone. */
static void *wait_for_a_place(void *unused) {
    char byte;
    uint16_t port = start_server(server);
    int first = haft_io_connect_tcp("127.0.0.1", port);
    HAFT_IO_SCOPED_DESCRIPTOR int second = haft_io_connect_tcp("127.0.0.1", port);
    HAFT_IO_SCOPED_DESCRIPTOR int third = haft_io_connect_tcp("127.0.0.1", port);
    CHECK(haft_io_write_all(second, "GET /" END, strlen("GET /" END)) == 0);
    CHECK(haft_io_read(second, &byte, 1) == 1);
    CHECK(haft_io_write_all(third, "GET /" END, strlen("GET /" END)) == 0);
    CHECK(haft_io_sleep(HAFT_IO_SECOND) == 0);
    CHECK(haft_io_receive(third, &byte, 1, MSG_DONTWAIT) == -EAGAIN);
    haft_io_close(first);
    CHECK(haft_io_read(third, &byte, 1) == 1);
    haft_http_server_stop(server);
    return unused;
}

/* ---- Times ---- */

static void hear_until(int connection, const char *word) {
    char heard[1000] = "";
    size_t size = 0;
    while (strstr(heard, word) == NULL) {
        ssize_t got = haft_io_read(connection, heard + size, sizeof heard - 1 - size);
        CHECK(got > 0);
        size += (size_t)got;
    }
}

/* A client whose pauses are longer than every default. */
static void *be_slow(void *unused) {
    static const char *const pieces[] = {
        "POST / HT", "TP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nhe", "llo"};
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", start_server(server));
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        haft_io_sleep(1000 * HAFT_IO_SECOND);
        haft_io_write_all(connection, pieces[i], strlen(pieces[i]));
    }
    hear_until(connection, "\r\n\r\n5");
    haft_io_sleep(1000 * HAFT_IO_SECOND);
    haft_io_write_all(connection, "GET /sleep" END, strlen("GET /sleep" END));
    haft_io_sleep(HAFT_IO_SECOND);
    haft_http_server_stop(server);
    hear_until(connection, "slept");
    return unused;
}

static int sleep_long(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_sleep(1000 * HAFT_IO_SECOND);
    return haft_http_answer_text(request, 200, "slept");
}

/* The largest, and one that only seems to have an end. */
static void wait_without_end(void) {
    for (int64_t less = 0; less < 2; less++) {
        int64_t time = HAFT_IO_FOREVER - less;
        haft_http_limits_t endless = {.idle_time = time,
                                      .head_time = time,
                                      .body_time = time,
                                      .write_time = time,
                                      .grace = time,
                                      .events_time = time};
        CHECK(haft_http_server_set_limits(server, &endless) == 0);
        simulate_seeds(be_slow);
    }
}

/* ---- A length beyond all memory ---- */

static int say_any_size(haft_http_request_t *request, void *unused) {
    haft_http_request_limit_body(request, UINT64_MAX);
    return say_size(request, unused);
}

static void *announce_too_much(void *unused) {
    start_server(server);
    expect("POST /any" WITH("Content-Length: 18446744073709551615") "abc", 500);
    expect("POST /any" WITH("Content-Length: 18446744073709551614") "abc", 500);
    expect("POST /any" WITH("Content-Length: 18446744073709551616") "abc", 400);
    haft_http_server_stop(server);
    return unused;
}

/* ---- Nonsense ---- */

static int around(haft_http_request_t *request, haft_http_next_t *next, void *unused) {
    (void)unused;
    return next->call(next, request);
}

/* A refused setting changes nothing. */
static void *refuse_to_build(void *unused) {
    static const haft_http_limits_t wrong[] = {{.head = 100, .request_line = 101},
                                               {.head = 16385},
                                               {.request_line = 16385},
                                               {.fields = 101},
                                               {.idle_time = -1},
                                               {.head_time = -1},
                                               {.body_time = -1},
                                               {.write_time = -1},
                                               {.grace = -1},
                                               {.events_time = -1},
                                               {.head = 100, .streams = (size_t)INT32_MAX + 1}};
    char text[700] = "GET /?";
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(haft_http_server_set_limits(server, &wrong[i]) == -EINVAL);
    CHECK(haft_http_server_set_limits(server, NULL) == 0);
    CHECK(haft_http_server_route(server, NULL, "/x", say_size, NULL) == -EINVAL);
    CHECK(haft_http_server_route(server, "", "/x", say_size, NULL) == -EINVAL);
    CHECK(haft_http_server_route(server, "G T", "/x", say_size, NULL) == -EINVAL);
    CHECK(haft_http_server_get(server, NULL, say_size, NULL) == -EINVAL);
    CHECK(haft_http_server_get(server, "", say_size, NULL) == -EINVAL);
    CHECK(haft_http_server_get(server, "x", say_size, NULL) == -EINVAL);
    CHECK(haft_http_server_get(server, "/{x", say_size, NULL) == -EINVAL);
    CHECK(haft_http_server_get(server, "/{x...}/y", say_size, NULL) == -EINVAL);
    CHECK(haft_http_server_get(server, "/x", NULL, NULL) == -EINVAL);
    CHECK(haft_http_server_use(server, NULL, NULL) == -EINVAL);
    CHECK(haft_http_server_on_connect(server, NULL, NULL) == -EINVAL);
    CHECK(haft_http_server_group(server, NULL) == NULL);
    CHECK(haft_http_server_trust_proxies(server, NULL, NULL) == -EINVAL);
    CHECK(haft_http_server_trust_proxies(server, "10.0.0.0/33", NULL) == -EINVAL);
    CHECK(haft_http_server_trust_proxies(server, "nonsense", "Forwarded") == -EINVAL);
    CHECK(haft_http_server_serve_files(server, NULL, "/") == -EINVAL);
    CHECK(haft_http_server_serve_files(server, "/x", NULL) == -EINVAL);
    CHECK(haft_http_server_serve_files(server, "/x", "/no/such/folder") == -ENOENT);
    CHECK(haft_http_server_serve_counters(server, NULL) == -EINVAL);
    CHECK(haft_http_server_serve_debug_pages(server, NULL) < 0);
    CHECK(haft_http_server_restart(server) == -ENOTSUP);
    CHECK(haft_http_server_serve(server, -1) == -EBADF);
    CHECK(haft_http_server_serve_all(server, NULL, 0) == -EINVAL);
    haft_http_server_set_compression(server, NULL);
    haft_http_server_free(NULL);
    start_server(server);
    pad(text, 600);
    strcat(text, END);
    expect(text, 200);
    haft_http_server_stop(server);
    return unused;
}

static int refuse_to_answer(haft_http_request_t *request, void *unused) {
    static const int no_status[] = {INT_MIN, -1, 0, 99, 100, 199, 600, 1000, INT_MAX};
    const char *name, *value;
    (void)unused;
    CHECK(haft_http_request_path(request, NULL) == NULL &&
          haft_http_request_query(request, NULL) == NULL);
    CHECK(haft_http_request_header(request, NULL) == NULL &&
          haft_http_request_cookie(request, NULL) == NULL);
    CHECK(haft_http_request_cookie(request, "") == NULL &&
          haft_http_request_header(request, "") == NULL);
    CHECK(haft_http_request_form(request, NULL) == NULL &&
          haft_http_request_trailer(request, NULL) == NULL);
    CHECK(!haft_http_request_header_at(request, SIZE_MAX, &name, &value));
    CHECK(haft_http_request_allocate(request, SIZE_MAX) == NULL);
    CHECK(haft_http_request_allocate(request, SIZE_MAX - 20) == NULL);
    CHECK(haft_http_request_read(request, NULL, 3) == -EFAULT &&
          haft_http_request_read(request, NULL, 0) == 0);
    CHECK(haft_http_request_accepts(request, NULL, 0) == -1);
    CHECK(haft_http_answer_set_header(request, NULL, "a") == -EINVAL);
    CHECK(haft_http_answer_set_header(request, "", "a") == -EINVAL);
    CHECK(haft_http_answer_set_header(request, "A", NULL) == -EINVAL);
    CHECK(haft_http_answer_set_header(request, "A", "b\r\nC: d") == -EINVAL);
    CHECK(haft_http_answer_set_cookie(request, NULL, "a") == -EINVAL);
    CHECK(haft_http_answer_set_cookie(request, "a", NULL) == -EINVAL);
    CHECK(haft_http_answer_set_trailer(request, "A", "b") == -ENOTSUP);
    CHECK(haft_http_request_upgrade(request, NULL) == -ENOTSUP &&
          haft_http_request_tunnel(request) == -ENOTSUP);
    CHECK(haft_http_stream_read(request, NULL, 1) == -EINVAL);
    CHECK(haft_http_stream_write(request, NULL, 1) == -EINVAL);
    CHECK(haft_http_stream_shutdown(request) == -EINVAL);
    CHECK(haft_http_answer_write(request, "a", 1) == -EINVAL);
    CHECK(haft_http_events_send(request, NULL) == -EINVAL);
    CHECK(haft_http_events_send(request, &(haft_http_event_t){.id = "a\nb"}) == -EINVAL);
    CHECK(haft_http_answer_file(request, -1, NULL) == -EBADF);
    for (size_t i = 0; i < sizeof no_status / sizeof *no_status; i++)
        CHECK(haft_http_answer(request, no_status[i], NULL, "", 0) == -EINVAL);
    CHECK(haft_http_answer(request, 200, "a\r\nb", "", 0) == -EINVAL);
    CHECK(haft_http_answer(request, 200, NULL, NULL, 5) == -EFAULT);
    CHECK(haft_http_answer_text(request, 200, NULL) == -EFAULT);
    haft_http_request_note_failure(request, NULL);
    CHECK(haft_http_answer_status(request) == 0);
    CHECK(haft_http_answer_begin(request, 200, NULL, HAFT_HTTP_UNKNOWN_SIZE) == 0);
    CHECK(haft_http_answer_begin(request, 200, NULL, 0) == -EALREADY);
    CHECK(haft_http_events_begin(request) == -EALREADY);
    CHECK(haft_http_answer_write(request, NULL, 5) == -EFAULT &&
          haft_http_answer_write(request, NULL, 0) == 0);
    CHECK(haft_http_answer_set_trailer(request, NULL, "a") == -EINVAL);
    CHECK(haft_http_answer_set_trailer(request, "A", NULL) == -EINVAL);
    return haft_http_answer_write(request, "good", 4);
}

static int refuse_parts(haft_http_request_t *request, void *unused) {
    haft_http_multipart_t *form;
    haft_http_part_t part;
    (void)unused;
    CHECK(haft_http_multipart_begin(request, &form) == 0);
    CHECK(haft_http_multipart_header(form, "A") == NULL);
    CHECK(haft_http_multipart_read(form, NULL, 1) == 0); /* there is no part yet */
    CHECK(haft_http_multipart_next(form, &part) == 1);
    CHECK(haft_http_multipart_header(form, NULL) == NULL);
    CHECK(haft_http_multipart_read(form, NULL, 1) == -EFAULT);
    CHECK(haft_http_multipart_store(form, NULL) == -EFAULT);
    CHECK(haft_http_multipart_next(form, &part) == 0);
    return haft_http_answer_text(request, 200, "good");
}

static int refuse_bytes(haft_http_request_t *request, void *unused) {
    (void)unused;
    CHECK(haft_http_request_tunnel(request) == 0 && haft_http_request_tunnel(request) == -EALREADY);
    CHECK(haft_http_stream_write(request, NULL, 1) == -EFAULT);
    CHECK(haft_http_stream_write(request, NULL, 0) == 0);
    CHECK(haft_http_stream_read(request, NULL, 1) == -EFAULT);
    return 0;
}

static void *refuse_of_handlers(void *unused) {
    start_server(server);
    expect("POST /nonsense?a=b" WITH("Cookie: =a; a=b\r\nContent-Length: 3") "abc", 200);
    expect(
        "POST /parts" WITH(
            "Content-Type: multipart/form-data; boundary=X\r\nContent-Length: 64") "--X\r\nContent-"
                                                                                   "Disposition: "
                                                                                   "form-data; "
                                                                                   "name="
                                                                                   "\"a\"\r\n\r\nab"
                                                                                   "cdef\r\n--X--"
                                                                                   "\r\n\r\n",
        200);
    expect("CONNECT there:80" WITH("") "abc", 200);
    haft_http_server_stop(server);
    return unused;
}

static ssize_t produce_too_much(void *unused, void *buffer, size_t size) {
    (void)unused, (void)buffer;
    return (ssize_t)size + 1;
}

static void check_question(haft_http_client_t *client, haft_http_question_t question, int code) {
    haft_http_reply_t *reply = NULL;
    int got = haft_http_client_ask(client, &question, &reply);
    if (got != code || reply != NULL) {
        fprintf(stderr, "%s: %d, not %d\n", question.url, got, code);
        abort();
    }
}

static void *refuse_to_ask(void *unused) {
    static const char *const no_urls[] = {NULL,
                                          "",
                                          "http",

                                          "http://",
                                          "http:///",
                                          "http://a b/",
                                          "http://a:0/",
                                          "http://a:65536/",
                                          "http://a\r\nb/",
                                          "//a/",
                                          "http://a/\r\nb",
                                          "http://a@b/",
                                          "http://[::1/"};
    static const haft_http_header_t wrong[] = {{NULL, "a"},        {"a", NULL},
                                               {"", ""},           {"a b", "c"},
                                               {"a", "b\r\nc: d"}, {"Content-Length", "5"}};
    char url[60];
    haft_http_client_t *client = haft_http_client_new();
    snprintf(url, sizeof url, "http://127.0.0.1:%d/any", start_server(server));
    for (size_t i = 0; i < sizeof no_urls / sizeof *no_urls; i++)
        check_question(client, (haft_http_question_t){.url = no_urls[i]}, -EINVAL);
    check_question(client, (haft_http_question_t){.url = "ftp://a/"}, -EPROTONOSUPPORT);
    check_question(client, (haft_http_question_t){.url = "http:"}, -EPROTONOSUPPORT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_question(client,
                       (haft_http_question_t){.url = url, .headers = &wrong[i], .header_count = 1},
                       -EINVAL);
    check_question(client, (haft_http_question_t){.url = url, .header_count = 1}, -EINVAL);
    check_question(client, (haft_http_question_t){.url = url, .method = ""}, -EINVAL);
    check_question(client, (haft_http_question_t){.url = url, .method = "G T"}, -EINVAL);
    check_question(client,
                   (haft_http_question_t){.url = url, .body = "a", .size = 1, .type = "a\r\nb"},
                   -EINVAL);
    check_question(client, (haft_http_question_t){.url = url, .produce = produce_too_much},
                   -EINVAL);
    haft_http_reply_t *reply;
    CHECK(haft_http_client_ask(
              client, &(haft_http_question_t){.url = url, .body = "abc", .size = 3}, &reply) == 0);
    CHECK(haft_http_reply_header(reply, NULL) == NULL);
    CHECK(haft_http_reply_read(reply, NULL, 1) == -EFAULT);
    haft_http_reply_free(reply);
    haft_http_reply_free(NULL);
    haft_http_client_free(client);
    haft_http_client_free(NULL);
    haft_http_websocket_free(NULL);
    haft_http_server_stop(server);
    return unused;
}

int main(void) {
    const haft_http_limits_t limits = {
        .request_line = LINE, .head = HEAD, .fields = FIELDS, .body = BODY, .connections = 2};
    server = haft_http_server_new();
    haft_http_server_set_log(server, NULL, NULL);
    CHECK(haft_http_server_use(server, around, NULL) == 0);
    CHECK(haft_http_server_get(server, "/", say_size, NULL) == 0);
    CHECK(haft_http_server_post(server, "/", say_size, NULL) == 0);
    CHECK(haft_http_server_get(server, "/sleep", sleep_long, NULL) == 0);
    CHECK(haft_http_server_post(server, "/any", say_any_size, NULL) == 0);
    CHECK(haft_http_server_post(server, "/nonsense", refuse_to_answer, NULL) == 0);
    CHECK(haft_http_server_post(server, "/parts", refuse_parts, NULL) == 0);
    simulate_seeds(refuse_to_build);
    CHECK(haft_http_server_on_connect(server, refuse_bytes, NULL) == 0);
    simulate_seeds(refuse_of_handlers);
    simulate_seeds(announce_too_much);
    simulate_seeds(refuse_to_ask);
    simulate_seeds(count_parts);
    CHECK(haft_http_server_set_limits(server, &limits) == 0);
    simulate_seeds(meet_limits);
    simulate_seeds(wait_for_a_place);
    wait_without_end();
    haft_http_server_free(server);
    return 0;
}
