/* SPDX-License-Identifier: MIT */
/*
 * A server of HTTP/2: what it answers to nghttp2's own client, and to one that sends bytes it
 * should not, in simulations, whose time is virtual, and over sockets. With an argument, this
 * serves over TLS for h2spec (h2spec.sh).
 */
#define _GNU_SOURCE /* memfd_create */
#include "check_http2.h"

#include <pthread.h>
#include <sys/mman.h>

static haft_http_server_t *server;
static char log_lines[1 << 16], access_lines[8192];
static int cancelled;

/* Adds the line, cut to the room. */
static void note_in(char *lines, size_t room, const char *line) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    size_t used = strlen(lines);
    snprintf(lines + used, room - used, "%s\n", line);
    pthread_mutex_unlock(&mutex);
}

static void note(void *unused, const char *line) {
    (void)unused;
    note_in(log_lines, sizeof log_lines, line);
}

static void note_access(void *unused, const char *line) {
    (void)unused;
    note_in(access_lines, sizeof access_lines, line);
}

/* ---- The server ---- */

static int say_fields(haft_http_request_t *request, void *unused) {
    (void)unused;
    const char *host = haft_http_request_header(request, "Host"),
               *a = haft_http_request_header(request, "X-A");
    const char *cookies = haft_http_request_header(request, "Cookie");
    return haft_http_answer_format(request, 200, "%s %s [%s] [%s] [%s]",
                                   haft_http_request_version(request),
                                   haft_http_request_method(request), host, a != NULL ? a : "none",
                                   cookies != NULL ? cookies : "none");
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
    CHECK(haft_http_answer_set_header(request, "Upgrade", "of HTTP/1") == 0);
    return haft_http_answer(request, 200, "text/plain", body, (size_t)size);
}

/* Reads piece by piece to the end, behind which the trailer stands. */
static int drain(haft_http_request_t *request, void *unused) {
    char piece[4];
    ssize_t size;
    int all = 0;
    (void)unused;
    CHECK(haft_http_request_trailer(request, "X-Sum") == NULL);
    while ((size = haft_http_request_read(request, piece, sizeof piece)) > 0)
        all += (int)size;
    const char *sum = haft_http_request_trailer(request, "X-Sum");
    return size < 0 ? (int)size : haft_http_answer_format(request, 200, "%d %s", all, sum);
}

enum { MUCH = 300000 };

static char byte_of(int i) {
    return (char)('a' + (i + i / 1000) % 26);
}

static int say_much(haft_http_request_t *request, void *size) {
    char bytes[10000];
    int code = haft_http_answer_begin(request, 200, NULL, *(const uint64_t *)size);
    for (int i = 0; i < MUCH && code == 0; i += (int)sizeof bytes) {
        for (int j = 0; j < (int)sizeof bytes; j++)
            bytes[j] = byte_of(i + j);
        code = haft_http_answer_write(request, bytes, sizeof bytes);
    }
    return code;
}

/* The text of the type is the handler's own. */
static int say_local_type(haft_http_request_t *request, void *unused) {
    char type[] = "text/x-local";
    (void)unused;
    int code = haft_http_answer(request, 200, type, "typed", 5);
    memset(type, '?', sizeof type - 1);
    return code;
}

static int say_no_content(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer(request, 204, NULL, "", 0);
}

static int sleep_for_a_while(haft_http_request_t *request, void *seconds) {
    haft_io_sleep(*(const int *)seconds * HAFT_IO_SECOND);
    return haft_http_answer_text(request, 200, "slept");
}

static void count_cancel(const int *unused) {
    (void)unused;
    cancelled++;
}

static int sleep_until_cancelled(haft_http_request_t *request, void *unused) {
    (void)unused;
    __attribute__((cleanup(count_cancel), unused)) int sleeping = 0;
    haft_io_sleep(1000 * HAFT_IO_SECOND);
    return haft_http_answer_text(request, 200, "slept");
}

static int say_events(haft_http_request_t *request, void *unused) {
    (void)unused;
    int code = haft_http_events_begin(request);
    for (int i = 0; i < 3 && code == 0; i++)
        code = haft_http_events_send(request, &(haft_http_event_t){.data = "new"});
    while (code == 0 && haft_http_request_select_until(request, NULL, 0, HAFT_IO_FOREVER) == 0)
        continue;
    return 0;
}

static int tunnel(haft_http_request_t *request, void *unused) {
    char bytes[10];
    ssize_t size;
    (void)unused;
    int code = haft_http_request_tunnel(request);
    while (code == 0 && (size = haft_http_stream_read(request, bytes, sizeof bytes)) > 0)
        code = haft_http_stream_write(request, bytes, (size_t)size);
    return code;
}

static int say_file(haft_http_request_t *request, void *file) {
    return haft_http_answer_file(request, *(const int *)file, NULL);
}

/* A head or, with an argument, a trailer that is too long for HTTP/2. */
static int say_too_much(haft_http_request_t *request, void *in_trailers) {
    static char value[7000];
    int code = 0;
    memset(value, 'v', sizeof value - 1);
    if (in_trailers != NULL)
        code = haft_http_answer_begin(request, 200, NULL, HAFT_HTTP_UNKNOWN_SIZE);
    for (int i = 0; i < 10 && code == 0; i++)
        code = in_trailers != NULL ? haft_http_answer_set_trailer(request, "X-Long", value)
                                   : haft_http_answer_set_header(request, "X-Long", value);
    return code == 0 && in_trailers == NULL ? haft_http_answer_text(request, 200, "whole") : code;
}

static int refuse_politely(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_answer_text(request, 200, "it will work");
    return haft_http_request_refuse(request, 409, "it has not worked");
}

static void *work_or_fail(void *works) {
    haft_io_sleep(5 * HAFT_IO_MILLISECOND);
    if (works == NULL)
        haft_io_fail(-EIO, "out of luck");
    return NULL;
}

static int spawn_one(haft_http_request_t *request, void *works) {
    CHECK(haft_io_spawn(work_or_fail, works) == 0);
    return haft_http_answer_text(request, 200, "spawned");
}

static int read_first(haft_http_request_t *request, void *unused) {
    char *body;
    (void)unused;
    ssize_t size = haft_http_request_body(request, &body);
    return size < 0 ? (int)size : haft_http_answer_text(request, 200, "here you are");
}

static int make_file(int size) {
    static char bytes[MUCH];
    int file = memfd_create("file", MFD_CLOEXEC);
    for (int i = 0; i < size; i++)
        bytes[i] = byte_of(i);
    CHECK(file >= 0 && pwrite(file, bytes, (size_t)size, 0) == size);
    return file;
}

static void make_server(void) {
    static uint64_t unknown = HAFT_HTTP_UNKNOWN_SIZE, exactly = MUCH, more = MUCH + 1;
    static int three = 3, small, large, none;
    server = haft_http_server_new();
    haft_http_server_set_log(server, note, NULL);
    haft_http_server_set_access_log(server, HAFT_HTTP_LOG_COMMON, note_access, NULL);
    haft_http_server_get(server, "/", read_first, NULL);
    haft_http_server_post(server, "/", read_first, NULL);
    haft_http_server_get(server, "/fields", say_fields, NULL);
    haft_http_server_post(server, "/echo", echo, NULL);
    haft_http_server_post(server, "/drain", drain, NULL);
    haft_http_server_post(server, "/stream", stream_back, NULL);
    haft_http_server_get(server, "/much", say_much, &exactly);
    haft_http_server_get(server, "/chunks", say_much, &unknown);
    haft_http_server_get(server, "/short", say_much, &more);
    haft_http_server_get(server, "/nothing", say_nothing, NULL);
    haft_http_server_get(server, "/empty", say_no_content, NULL);
    haft_http_server_get(server, "/typed", say_local_type, NULL);
    haft_http_server_get(server, "/fail", fail_hard, NULL);
    haft_http_server_get(server, "/half", fail_in_the_middle, NULL);
    haft_http_server_get(server, "/refuse", refuse_politely, NULL);
    haft_http_server_post(server, "/refuse", refuse_politely, NULL);
    haft_http_server_get(server, "/spawn", spawn_one, "works");
    haft_http_server_get(server, "/spawn/failing", spawn_one, NULL);
    haft_http_server_get(server, "/sleep", sleep_for_a_while, &three);
    haft_http_server_get(server, "/events", say_events, NULL);
    small = make_file(5000), large = make_file(MUCH), none = make_file(0);
    haft_http_server_get(server, "/file/small", say_file, &small);
    haft_http_server_get(server, "/file/large", say_file, &large);
    haft_http_server_get(server, "/file/none", say_file, &none);
    haft_http_server_get(server, "/long/head", say_too_much, NULL);
    haft_http_server_get(server, "/long/trailers", say_too_much, "trailers");
    haft_http_server_serve_debug_pages(server, "/debug");
    haft_http_server_on_connect(server, tunnel, NULL);
    haft_http_server_t *watched = haft_http_server_group(server, "/watched");
    haft_http_server_use(watched, haft_http_request_cancel_with_client, NULL);
    haft_http_server_get(watched, "", sleep_until_cancelled, NULL);
}

static void check_answer(client_t *client, int32_t id, const char *status, const char *body) {
    const answer_t *answer = hear_whole(client, id);
    if (!answer->is_closed || strcmp(answer->status, status) != 0 ||
        (body != NULL && (answer->body == NULL || strcmp(answer->body, body) != 0))) {
        fprintf(stderr, "stream %d: %s, error %u, end %d, %.500s (seed %llu)\n%s", (int)id,
                answer->status, answer->error, client->has_ended, answer->body,
                (unsigned long long)haft_io_seed(), log_lines);
        abort();
    }
}

static void check_reset(client_t *client, int32_t id, uint32_t code) {
    const answer_t *answer = hear_whole(client, id);
    if (!answer->is_closed || answer->error != code) {
        fprintf(stderr, "stream %d: %s, error %u (seed %llu)\n", (int)id, answer->status,
                answer->error, (unsigned long long)haft_io_seed());
        abort();
    }
}

static bool is_much(const answer_t *answer) {
    for (int i = 0; i < MUCH; i++)
        if (answer->size != MUCH || answer->body[i] != byte_of(i))
            return false;
    return true;
}

/* ---- What is answered ---- */

static void *answer_many_at_once(void *unused) {
    client_t client;
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    log_lines[0] = access_lines[0] = '\0';
    int32_t much = ask(&client, "GET", "/much"), chunks = ask(&client, "GET", "/chunks");
    int32_t fields =
        ask_with(&client, "GET", "/fields",
                 "x-a: 1\nx-a: 2\ncookie: a=b\ncookie: c=d\nhost: here\n", NULL, 0, NULL);
    int32_t posted = ask_with(&client, "POST", "/echo", "", "hello", 5, "7");
    int32_t sized = ask_with(&client, "POST", "/echo", "content-length: 5\n", "hello", 5, "7");
    int32_t drained =
        ask_with(&client, "POST", "/drain", "content-length: 16\n", "hello, you there", 16, "8");
    int32_t streamed = ask_with(&client, "POST", "/stream", "", "hello, you there", 16, NULL);
    int32_t empty = ask(&client, "GET", "/empty"), head = ask(&client, "HEAD", "/much");
    int32_t failed = ask(&client, "GET", "/fail"), nothing = ask(&client, "GET", "/nothing");
    int32_t half = ask(&client, "GET", "/half"), missing = ask(&client, "GET", "/missing");
    int32_t options = ask(&client, "OPTIONS", "/echo"), wrong = ask(&client, "DELETE", "/echo");
    int32_t other_host = ask_with(&client, "GET", "/fields", "host: there\n", NULL, 0, NULL);
    int32_t shorter = ask(&client, "GET", "/short"), unknown = ask(&client, "BREW", "/much");
    int32_t typed = ask(&client, "GET", "/typed");
    check_answer(&client, typed, "200", "typed");
    CHECK(strcmp(answer_of(&client, typed)->type, "text/x-local") == 0);
    check_answer(&client, fields, "200", "HTTP/2.0 GET [here] [1, 2] [a=b; c=d]");
    check_answer(&client, posted, "200", "hello");
    CHECK(strcmp(answer_of(&client, posted)->sum, "7") == 0);
    check_answer(&client, sized, "200", "hello");
    CHECK(strcmp(answer_of(&client, sized)->sum, "7") == 0);
    check_answer(&client, drained, "200", "16 8");
    check_answer(&client, streamed, "200", "hello, you there");
    CHECK(strcmp(answer_of(&client, streamed)->trailer, "yes") == 0);
    check_answer(&client, empty, "204", NULL);
    check_answer(&client, head, "200", NULL);
    CHECK(answer_of(&client, head)->size == 0 && answer_of(&client, empty)->size == 0);
    check_answer(&client, failed, "500", "500 Internal Server Error\n");
    check_answer(&client, nothing, "500", NULL);
    check_answer(&client, ask(&client, "GET", "/refuse"), "409", "it has not worked");
    check_answer(&client, ask(&client, "GET", "/spawn"), "200", "spawned");
    check_answer(&client, ask(&client, "GET", "/spawn/failing"), "500", NULL);
    check_reset(&client, half, NGHTTP2_INTERNAL_ERROR);
    check_reset(&client, shorter, NGHTTP2_INTERNAL_ERROR);
    check_answer(&client, missing, "404", NULL);
    check_answer(&client, options, "204", NULL);
    check_answer(&client, wrong, "405", NULL);
    check_answer(&client, other_host, "400", NULL);
    check_answer(&client, unknown, "501", NULL);
    check_answer(&client, much, "200", NULL);
    check_answer(&client, chunks, "200", NULL);
    CHECK(is_much(answer_of(&client, much)) && is_much(answer_of(&client, chunks)));
    CHECK(strstr(log_lines, "the disk is gone") != NULL);
    CHECK(strstr(access_lines, "\"GET /fields HTTP/2.0\" 200 ") != NULL);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

/* The head and the bytes of a file come by different ways. */
static void *answer_files(void *unused) {
    client_t client;
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    int32_t small = ask(&client, "GET", "/file/small"), large = ask(&client, "GET", "/file/large");
    int32_t head = ask(&client, "HEAD", "/file/small"), none = ask(&client, "GET", "/file/none");
    int32_t part = ask_with(&client, "GET", "/file/large", "range: bytes=10-19\n", NULL, 0, NULL);
    check_answer(&client, part, "206", NULL);
    CHECK(answer_of(&client, part)->size == 10 && *answer_of(&client, part)->body == byte_of(10));
    check_answer(&client, head, "200", NULL);
    check_answer(&client, none, "200", NULL);
    check_answer(&client, small, "200", NULL);
    CHECK(answer_of(&client, small)->size == 5000);
    for (int i = 0; i < 5000; i++)
        CHECK(answer_of(&client, small)->body[i] == byte_of(i));
    check_answer(&client, large, "200", NULL);
    CHECK(is_much(answer_of(&client, large)));
    check_answer(&client, ask(&client, "GET", "/debug/tasks"), "200", NULL);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

/* A head that no frames can hold is the handler's mistake: its client learns that at once. */
static void *refuse_long_heads_of_answers(void *unused) {
    client_t client;
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    log_lines[0] = '\0';
    int64_t begun = haft_io_now();
    check_answer(&client, ask(&client, "GET", "/long/head"), "500", NULL);
    check_reset(&client, ask(&client, "GET", "/long/trailers"), NGHTTP2_INTERNAL_ERROR);
    CHECK(haft_io_now() - begun < 5 * HAFT_IO_SECOND); /* of virtual time: not write_time */
    CHECK(strstr(log_lines, "/long/head: Message too long") != NULL);
    check_answer(&client, ask(&client, "GET", "/fields"), "200", NULL);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

/* Also where the handler begins its answer before it reads, and not where it does not read. */
static void *wait_for_word(void *unused) {
    client_t client;
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    const char *expects = "expect: 100-continue\ncontent-length: 5\n";
    int32_t posted = ask_with(&client, "POST", "/echo", expects, "hello", 5, NULL);
    int32_t streamed = ask_with(&client, "POST", "/stream", expects, "hello", 5, NULL);
    check_answer(&client, posted, "200", "hello");
    check_answer(&client, streamed, "200", "hello");
    int32_t refused =
        ask_with(&client, "POST", "/missing", "expect: 100-continue\n", "hello", 5, NULL);
    int32_t strange = ask_with(&client, "POST", "/echo", "expect: more\n", "hello", 5, NULL);
    check_answer(&client, refused, "404", NULL);
    check_answer(&client, strange, "417", NULL);
    CHECK(!answer_of(&client, refused)->was_told);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

static void *take_large_bodies(void *unused) {
    static char large[MUCH];
    client_t client;
    start_server(server);
    for (int i = 0; i < MUCH; i++)
        large[i] = byte_of(i);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    int32_t posted[8];
    for (int i = 0; i < 8; i++)
        posted[i] = ask_with(&client, "POST", "/echo", "", large, MUCH, NULL);
    for (int i = 0; i < 8; i++)
        check_answer(&client, posted[i], "200", NULL);
    for (int i = 0; i < 8; i++)
        CHECK(is_much(answer_of(&client, posted[i])));
    int32_t announced =
        ask_with(&client, "POST", "/echo", "content-length: 9999999\n", NULL, 0, NULL);
    check_reset(&client, announced, NGHTTP2_PROTOCOL_ERROR); /* it ends with the head */
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

static void *tunnel_bytes(void *unused) {
    client_t client;
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    int32_t id = ask_with(&client, "CONNECT", NULL, ":authority: there:80\n", "through the tunnel",
                          18, NULL);
    int32_t nowhere = ask_with(&client, "CONNECT", NULL, ":authority: there\n", NULL, 0, NULL);
    check_answer(&client, id, "200", "through the tunnel");
    check_answer(&client, nowhere, "400", NULL);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

/* ---- Ends ---- */

static void *stop_gracefully(void *unused) {
    client_t client, idle;
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    open_client(&idle, haft_http_server_port(server), NULL, 0);
    check_answer(&idle, ask(&idle, "GET", "/empty"), "204", NULL);
    int32_t slow = ask(&client, "GET", "/sleep"), events = ask(&client, "GET", "/events");
    say(&client);
    while (answer_of(&client, events)->size < 3 * 11)
        CHECK(hear(&client, 10));
    haft_http_server_stop(server);
    check_answer(&client, events, "200", "data: new\n\ndata: new\n\ndata: new\n\n");
    check_answer(&client, slow, "200", "slept");
    CHECK(client.is_told_to_go && client.reason == NGHTTP2_NO_ERROR);
    while (hear(&client, 10) || hear(&idle, 10))
        continue;
    CHECK(client.has_ended && idle.has_ended);
    CHECK(idle.is_told_to_go && idle.reason == NGHTTP2_NO_ERROR);
    close_client(&client);
    close_client(&idle);
    return unused;
}

static void *cancel_with_a_reset(void *unused) {
    client_t client;
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    cancelled = 0;
    int32_t watched = ask(&client, "GET", "/watched");
    check_answer(&client, ask(&client, "GET", "/empty"), "204", NULL);
    nghttp2_submit_rst_stream(client.session, NGHTTP2_FLAG_NONE, watched, NGHTTP2_CANCEL);
    check_answer(&client, ask(&client, "GET", "/fields"), "200", NULL);
    while (cancelled == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    ask(&client, "GET", "/watched");
    check_answer(&client, ask(&client, "GET", "/empty"), "204", NULL);
    close_client(&client);
    while (cancelled == 1)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_http_server_stop(server);
    return unused;
}

/* A client that reads slowly and still sends something when the server closes: what it has not read
   by then must not be thrown away (RFC 9112, section 9.6). */
static void *deliver_to_slow_readers(void *unused) {
    client_t client;
    const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 2 * MUCH};
    int small = 30000;
    start_server(server);
    open_client(&client, haft_http_server_port(server), &window, 1);
    setsockopt(client.descriptor, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    nghttp2_submit_window_update(client.session, NGHTTP2_FLAG_NONE, 0, 2 * MUCH);
    access_lines[0] = '\0';
    int32_t much = ask(&client, "GET", "/much");
    say(&client);
    while (strstr(access_lines, "GET /much") == NULL)
        hear(&client, 1);
    haft_http_server_stop(server);
    for (int i = 0; i < 20; i++) {
        nghttp2_submit_ping(client.session, NGHTTP2_FLAG_NONE, NULL);
        say(&client);
        haft_io_sleep(5 * HAFT_IO_MILLISECOND);
    }
    check_answer(&client, much, "200", NULL);
    CHECK(is_much(answer_of(&client, much)));
    close_client(&client);
    return unused;
}

/* ---- Time: in simulations only ---- */

static void *close_idle_connections(void *unused) {
    client_t client;
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    check_answer(&client, ask(&client, "GET", "/empty"), "204", NULL);
    int64_t begun = haft_io_now();
    while (hear(&client, 1000)) {
        nghttp2_submit_ping(client.session, NGHTTP2_FLAG_NONE, NULL); /* does not count */
        say(&client);
    }
    int64_t lasted = haft_io_now() - begun;
    CHECK(client.has_ended && client.is_told_to_go && client.reason == NGHTTP2_NO_ERROR);
    CHECK(lasted >= 75 * HAFT_IO_SECOND && lasted < 77 * HAFT_IO_SECOND);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

static void open_window(client_t *client, int32_t id) {
    nghttp2_submit_window_update(client->session, NGHTTP2_FLAG_NONE, id, 1000000);
    nghttp2_submit_window_update(client->session, NGHTTP2_FLAG_NONE, 0, 1000000);
}

/* A window that is closed holds a handler up, for as long as a write may take. */
static void *wait_for_windows(void *unused) {
    client_t client;
    const nghttp2_settings_entry closed = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    start_server(server);
    open_client(&client, haft_http_server_port(server), &closed, 1);
    int32_t late = ask(&client, "GET", "/much"), never = ask(&client, "GET", "/much");
    say(&client);
    while (hear(&client, 10))
        say(&client);
    CHECK(answer_of(&client, late)->size == 0);
    CHECK(strcmp(answer_of(&client, late)->status, "200") == 0);
    open_window(&client, late);
    check_answer(&client, late, "200", NULL);
    CHECK(is_much(answer_of(&client, late)));
    check_reset(&client, never, NGHTTP2_INTERNAL_ERROR);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

/* So many bytes, and then none for ever. */
static ssize_t read_and_stall(nghttp2_session *session, int32_t id, uint8_t *into, size_t size,
                              uint32_t *flags, nghttp2_data_source *source, void *client) {
    size_t *left = source->ptr;
    (void)session, (void)id, (void)flags, (void)client;
    size = size < *left ? size : *left;
    memset(into, 'x', size);
    *left -= size;
    return size != 0 ? (ssize_t)size : NGHTTP2_ERR_DEFERRED;
}

static void *refuse_slow_bodies(void *unused) {
    client_t client;
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    nghttp2_nv fields[] = {{(uint8_t *)":method", (uint8_t *)"POST", 7, 4, 0},
                           {(uint8_t *)":scheme", (uint8_t *)"http", 7, 4, 0},
                           {(uint8_t *)":path", (uint8_t *)"/echo", 5, 5, 0},
                           {(uint8_t *)":authority", (uint8_t *)"here", 10, 4, 0}};
    for (size_t before = 0; before < 1000000; before += 900000) {
        size_t left = before;
        nghttp2_data_provider provider = {.source.ptr = &left, .read_callback = read_and_stall};
        int32_t slow = nghttp2_submit_request(client.session, NULL, fields, 4, &provider, NULL);
        int64_t begun = haft_io_now();
        check_answer(&client, slow, "408", NULL);
        CHECK(haft_io_now() - begun < 12 * HAFT_IO_SECOND);
    }
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

/* Some clients forget an answer when the reset comes with it, others wait for a window for ever: a
   body that nobody wants is read, if the server would have taken it, and where a longer one is
   reset the answer comes first, alone. */
static void *reset_unread_bodies_late(void *unused) {
    static char body[3 << 20];
    static const struct {
        size_t size;
        bool is_reset;
    } bodies[] = {{1, false},     {1000, false},   {65535, false},
                  {70000, false}, {300000, false}, {sizeof body, true}};
    client_t client;
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        int64_t begun = haft_io_now();
        int32_t id = ask_with(&client, "POST", "/refuse", "", body, bodies[i].size, NULL);
        const answer_t *answer = answer_of(&client, id);
        do
            say(&client);
        while (!answer->is_closed && answer->size == 0 && hear(&client, 200));
        CHECK(!answer->is_closed || !bodies[i].is_reset);
        check_answer(&client, id, "409", "it has not worked");
        CHECK(answer->error == NGHTTP2_NO_ERROR);
        CHECK(!bodies[i].is_reset || haft_io_now() - begun >= 100 * HAFT_IO_MILLISECOND);
    }
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

/* ---- Messages that are malformed: RFC 9113, section 8 ---- */

#define GET "\x82\x86"      /* :method: GET, :scheme: http, of the static table */
#define PATH "\x84"         /* :path: / */
#define HOST "\x41\x04here" /* :authority: here */

typedef struct {
    const char *what, *block;
    size_t size;
    const char *status; /* NULL: the stream is reset */
} malformed_t;
#define MALFORMED(what, block, status)                                                             \
    { what, block, sizeof block - 1, status }

static const malformed_t malformed[] = {
    MALFORMED("good", GET PATH HOST, "200"),
    MALFORMED("no path", GET HOST, NULL),
    MALFORMED("no scheme", "\x82" PATH HOST, NULL),
    MALFORMED("no method", "\x86" PATH HOST, NULL),
    MALFORMED("no authority", GET PATH, NULL),
    MALFORMED("two paths", GET PATH PATH HOST, NULL),
    MALFORMED("two methods", "\x82" GET PATH HOST, NULL),
    MALFORMED("empty path", GET "\x44\x00" HOST, NULL),
    MALFORMED("unknown pseudo field",
              GET PATH HOST "\x00\x03:aa\x01"
                            "b",
              NULL),
    MALFORMED("pseudo field of answers", GET PATH HOST "\x88", NULL),
    MALFORMED("pseudo field at the end",
              GET PATH "\x00\x01"
                       "a\x01"
                       "b" HOST,
              NULL),
    MALFORMED("upper case",
              GET PATH HOST "\x00\x01"
                            "A\x01"
                            "b",
              NULL),
    MALFORMED("colon",
              GET PATH HOST "\x00\x03"
                            "a:b\x01"
                            "b",
              NULL),
    MALFORMED("space in a name",
              GET PATH HOST "\x00\x03"
                            "a b\x01"
                            "b",
              NULL),
    MALFORMED("empty name",
              GET PATH HOST "\x00\x00\x01"
                            "b",
              NULL),
    MALFORMED("line end in a value",
              GET PATH HOST "\x00\x01"
                            "a\x04"
                            "b\r\nc",
              NULL),
    MALFORMED("NUL in a value",
              GET PATH HOST "\x00\x01"
                            "a\x03"
                            "b\0c",
              NULL),
    MALFORMED("connection",
              GET PATH HOST "\x00\x0a"
                            "connection\x05"
                            "close",
              NULL),
    MALFORMED("keep-alive",
              GET PATH HOST "\x00\x0akeep-alive\x01"
                            "1",
              NULL),
    MALFORMED("upgrade", GET PATH HOST "\x00\x07upgrade\x03h2c", NULL),
    MALFORMED("proxy-connection",
              GET PATH HOST "\x00\x10proxy-connection\x05"
                            "close",
              NULL),
    MALFORMED("chunked",
              GET PATH HOST "\x00\x11transfer-encoding\x07"
                            "chunked",
              NULL),
    MALFORMED("te", GET PATH HOST "\x00\x02te\x04gzip", NULL),
    MALFORMED("te: trailers", GET PATH HOST "\x00\x02te\x08trailers", "200"),
    MALFORMED("two lengths",
              GET PATH HOST "\x5c\x01"
                            "0\x5c\x01"
                            "0",
              NULL),
    MALFORMED("length of what does not come",
              GET PATH HOST "\x5c\x01"
                            "5",
              NULL),
    MALFORMED("no length",
              GET PATH HOST "\x5c\x01"
                            "x",
              NULL),
    MALFORMED("authority with a user", GET PATH "\x41\x06me@you", "400"),
    MALFORMED("no path at all",
              GET "\x44\x01"
                  "a" HOST,
              NULL),
    MALFORMED("control in the path",
              GET "\x44\x03/\x01"
                  "a" HOST,
              NULL),
    MALFORMED("space in the path", GET "\x44\x04/a b" HOST, NULL),
    MALFORMED("CONNECT with a path",
              "\x42\x07"
              "CONNECT" PATH HOST,
              NULL),
    MALFORMED("CONNECT",
              "\x42\x07"
              "CONNECT"
              "\x41\x06you:80",
              "200"),
};

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";

/* A frame with its head; how many bytes. */
static size_t put_frame(char *into, int type, int flags, int32_t stream, const char *bytes,
                        size_t size) {
    const unsigned char head[] = {
        (unsigned char)(size >> 16),   (unsigned char)(size >> 8),   (unsigned char)size,
        (unsigned char)type,           (unsigned char)flags,         (unsigned char)(stream >> 24),
        (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream};
    memcpy(into, head, sizeof head);
    if (size != 0)
        memcpy(into + sizeof head, bytes, size);
    return sizeof head + size;
}

static bool send_frame(client_t *client, int type, int flags, int32_t stream, const char *bytes,
                       size_t size) {
    static char frame[20000];
    size = put_frame(frame, type, flags, stream, bytes, size);
    return haft_io_write_all(client->descriptor, frame, size) == 0;
}

/* A client whose frames this test makes; nghttp2's session reads the server's. */
static void open_raw(client_t *client) {
    const uint8_t *ignored;
    open_client(client, haft_http_server_port(server), NULL, 0);
    while (nghttp2_session_mem_send(client->session, &ignored) > 0)
        continue;
    CHECK(haft_io_write_all(client->descriptor, preface, sizeof preface) == 0);
}

/* Tells nghttp2's session that the stream is open, and sends other bytes. */
static int32_t begin_raw(client_t *client, int flags, const char *block, size_t size) {
    const uint8_t *ignored;
    int32_t id = ask(client, "GET", "/");
    while (nghttp2_session_mem_send(client->session, &ignored) > 0)
        continue;
    CHECK(send_frame(client, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | flags, id, block, size));
    return id;
}

static int32_t ask_raw(client_t *client, const char *block, size_t size) {
    return begin_raw(client, NGHTTP2_FLAG_END_STREAM, block, size);
}

static void *refuse_malformed(void *unused) {
    client_t client;
    start_server(server);
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        open_raw(&client);
        int32_t id = ask_raw(&client, malformed[i].block, malformed[i].size);
        answer_t *answer = answer_of(&client, id);
        while (!answer->is_closed && !client.is_told_to_go && hear(&client, 20))
            continue;
        bool is_reset = answer->is_closed && answer->error == NGHTTP2_PROTOCOL_ERROR;
        if (malformed[i].status == NULL ? !is_reset
                                        : strcmp(answer->status, malformed[i].status) != 0) {
            fprintf(stderr, "%s: %s, error %u, goaway %u (seed %llu)\n", malformed[i].what,
                    answer->status, answer->error, client.reason,
                    (unsigned long long)haft_io_seed());
            abort();
        }
        close_client(&client);
    }
    haft_http_server_stop(server);
    return unused;
}

/* ---- Frames for closed streams, and of priority: RFC 9113, 5.1, and RFC 7540, 5.3.1 ---- */

typedef struct {
    const char *what;
    bool is_cut_short; /* the server has reset the stream; else both sides have sent all */
    int type, flags;
    const char *bytes;
    size_t size;
    uint32_t reason; /* of the GOAWAY; 0: the connection goes on */
} late_t;
#define LATE(what, is_cut_short, type, flags, bytes, reason)                                       \
    { what, is_cut_short, type, flags, bytes, sizeof bytes - 1, reason }

static const late_t late[] = {
    LATE("body", false, NGHTTP2_DATA, 0, "late", NGHTTP2_STREAM_CLOSED),
    LATE("empty body", false, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, "", NGHTTP2_STREAM_CLOSED),
    LATE("head", false, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, GET PATH HOST,
         NGHTTP2_STREAM_CLOSED),
    LATE("window", false, NGHTTP2_WINDOW_UPDATE, 0, "\0\0\0\1", 0),
    LATE("cancel", false, NGHTTP2_RST_STREAM, 0, "\0\0\0\10", 0),
    LATE("body after a reset", true, NGHTTP2_DATA, 0, "late", 0),
    LATE("trailers after a reset", true, NGHTTP2_HEADERS,
         NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
         "\x00\x01"
         "a\x01"
         "b",
         0),
    LATE("priority", false, NGHTTP2_PRIORITY, 0, "\0\0\0\3\1", 0),
    LATE("priority after itself", false, NGHTTP2_PRIORITY, 0, "\0\0\0\1\1", NGHTTP2_PROTOCOL_ERROR),
    LATE("short priority", false, NGHTTP2_PRIORITY, 0, "\0\0\0", NGHTTP2_FRAME_SIZE_ERROR),
    LATE("unknown", false, 0x20, 0, "unknown", 0),
};

/* Byte by byte, so that heads of frames are divided. */
static void send_divided(client_t *client, const late_t *frame, int32_t id) {
    char bytes[100];
    size_t size = put_frame(bytes, frame->type, frame->flags, id, frame->bytes, frame->size);
    for (size_t i = 0; i < size; i++) {
        haft_io_write_all(client->descriptor, &bytes[i], 1);
        haft_io_yield();
    }
}

static void *judge_late_frames(void *unused) {
    static const char fields[] = "\x82\x86\x44\x07/fields" HOST; /* no body is waited for */
    client_t client;
    start_server(server);
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        open_raw(&client);
        int32_t id = begin_raw(&client, late[i].is_cut_short ? 0 : NGHTTP2_FLAG_END_STREAM, fields,
                               sizeof fields - 1);
        hear_whole(&client, id);
        hear_whole(&client, ask_raw(&client, GET PATH HOST, 9)); /* it is closed by then */
        send_divided(&client, &late[i], id);
        id = ask_raw(&client, GET PATH HOST, 9);
        while (!answer_of(&client, id)->is_closed && !client.is_told_to_go && hear(&client, 20))
            continue;
        if (client.reason != late[i].reason ||
            (late[i].reason == 0 && !answer_of(&client, id)->is_closed)) {
            fprintf(stderr, "%s: goaway %u (seed %llu)\n", late[i].what, client.reason,
                    (unsigned long long)haft_io_seed());
            abort();
        }
        close_client(&client);
    }
    haft_http_server_stop(server);
    return unused;
}

/* ---- Attacks ---- */

enum { FLOOD = 5000 };

/* Each sends a part of the flood, the number of which is `i`. */
static bool flood_settings(client_t *client, int i) {
    (void)i;
    return send_frame(client, NGHTTP2_SETTINGS, 0, 0, "", 0);
}

static bool flood_pings(client_t *client, int i) {
    (void)i;
    return send_frame(client, NGHTTP2_PING, 0, 0, "12345678", 8);
}

static bool flood_empty_data(client_t *client, int i) {
    if (i == 0)
        return send_frame(client, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
                          "\x83\x86" PATH HOST, 9);
    return send_frame(client, NGHTTP2_DATA, 0, 1, "", 0);
}

static bool flood_continuations(client_t *client, int i) {
    if (i == 0)
        return send_frame(client, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, GET PATH HOST, 9);
    return send_frame(client, NGHTTP2_CONTINUATION, 0, 1, "", 0);
}

static bool flood_priorities(client_t *client, int i) {
    return send_frame(client, NGHTTP2_PRIORITY, 0, 2 * i + 1, "\0\0\0\0\1", 5);
}

static bool flood_unknown(client_t *client, int i) {
    return send_frame(client, 0x20, 0, 2 * i + 1, "", 0);
}

static bool flood_window_updates(client_t *client, int i) {
    (void)i;
    return send_frame(client, NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4);
}

/* CVE-2023-44487: requests that are cancelled at once. */
static bool reset_rapidly(client_t *client, int i) {
    int32_t id = 2 * i + 1;
    return send_frame(client, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                      id, "\x82\x86\x44\x06/sleep" HOST, 16) &&
           send_frame(client, NGHTTP2_RST_STREAM, 0, id, "\0\0\0\10", 4);
}

/* The same, by errors that the server has to answer with a reset. */
static bool make_resets(client_t *client, int i) {
    return send_frame(client, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2 * i + 1, GET PATH HOST,
                      9) &&
           send_frame(client, NGHTTP2_WINDOW_UPDATE, 0, 2 * i + 1, "\x7f\xff\xff\xff", 4);
}

static bool (*const floods[])(client_t *client, int i) = {
    flood_settings, flood_pings,          flood_empty_data, flood_continuations, flood_priorities,
    flood_unknown,  flood_window_updates, reset_rapidly,    make_resets,
};

/* Answers of the server need not be read for that; each connection ends with a GOAWAY and the
   reason, where it still gets through. */
static void *bound_floods(void *unused) {
    client_t client;
    start_server(server);
    for (size_t i = 0; i < sizeof floods / sizeof *floods; i++) {
        open_raw(&client);
        int sent = 0;
        while (sent < FLOOD && floods[i](&client, sent))
            sent++;
        while (hear(&client, 100) && !client.is_told_to_go)
            continue;
        bool is_calmed = client.reason == NGHTTP2_ENHANCE_YOUR_CALM ||
                         (floods[i] == flood_continuations &&
                          client.reason == NGHTTP2_PROTOCOL_ERROR); /* by nghttp2 */
        if (!(client.is_told_to_go ? is_calmed : client.has_ended)) {
            fprintf(stderr, "flood %zu: %d, goaway %u (seed %llu)\n", i, sent, client.reason,
                    (unsigned long long)haft_io_seed());
            abort();
        }
        close_client(&client);
    }
    haft_http_server_stop(server);
    return unused;
}

/* More at a time than the limit. */
static void *bound_streams(void *unused) {
    client_t client;
    start_server(server);
    open_raw(&client);
    int refused = 0;
    for (int i = 0; i < 120; i++)
        ask_raw(&client, "\x82\x86\x44\x06/sleep" HOST, 16);
    for (int i = 1; i < 240; i += 2) {
        answer_t *answer = answer_of(&client, i);
        while (!answer->is_closed && hear(&client, 20))
            continue;
        refused += answer->error == NGHTTP2_REFUSED_STREAM;
        CHECK(answer->error == NGHTTP2_REFUSED_STREAM || strcmp(answer->status, "200") == 0);
    }
    CHECK(refused == 20);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

/* A field that the table of HPACK holds, and then many that are only numbers of it; too many
   fields; a path that is too long. */
static void *bound_heads(void *unused) {
    static char block[16000];
    client_t client;
    start_server(server);
    open_raw(&client);
    memcpy(block,
           GET PATH HOST "\x40\x01"
                         "a\x7f\xc9\x16",
           15); /* 3000 bytes */
    memset(block + 15, 'b', 3016);
    memset(block + 15 + 3016, 0xbe, 10000);
    int32_t bomb = ask_raw(&client, block, 15 + 3016 + 10000);
    check_answer(&client, bomb, "431", NULL);
    size_t size = 9;
    for (int i = 0; i < 101; i++, size += 5)
        memcpy(block + size,
               "\x00\x01"
               "c\x01"
               "d",
               5);
    check_answer(&client, ask_raw(&client, block, size), "431", NULL);
    memcpy(block, GET HOST "\x04\x7f\xa9\x46/", 13); /* 9128 bytes */
    memset(block + 13, 'p', 9127);
    check_answer(&client, ask_raw(&client, block, 13 + 9127), "414", NULL);
    check_answer(&client, ask(&client, "GET", "/fields"), "200", NULL);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

/* In simulations: a head that does not end, and one that never begins. */
static void *bound_time_of_heads(void *unused) {
    client_t client;
    start_server(server);
    open_raw(&client);
    int64_t begun = haft_io_now();
    send_frame(&client, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, GET, 2);
    while (hear(&client, 100))
        continue;
    CHECK(client.has_ended && haft_io_now() - begun < 12 * HAFT_IO_SECOND);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}

/* HTTP/1 and HTTP/2 do not follow each other on a connection. */
static void *refuse_preface_in_between(void *unused) {
    static const talk_t talk = {
        "GET / HTTP/1.1\r\nHost: here\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        {"200 OK", "505 HTTP Version"},
        2};
    start_server(server);
    run_talk(haft_http_server_port(server), &talk, NULL);
    haft_http_server_stop(server);
    return unused;
}

/* ---- Faults ---- */

enum { NUMBERED = 12, MOST_NUMBERED = 40000 };

static size_t size_of(int number) {
    static const size_t sizes[] = {0, 1, 64, 65, 1000, MOST_NUMBERED};
    return sizes[(size_t)number % (sizeof sizes / sizeof *sizes)];
}

static void fill(char *body, int number) {
    for (size_t i = 0; i < size_of(number); i++)
        body[i] = (char)('a' + ((size_t)number + i) % 26);
}

static void *serve_listener(void *listener) {
    int code = haft_http_server_serve(server, (int)(intptr_t)listener);
    CHECK(code == 0 || code == -ETIMEDOUT);
    return NULL;
}

/* Asks what was not answered yet. A whole answer belongs to its own question. */
static void ask_the_rest(client_t *client, bool has_answer[NUMBERED]) {
    static char bodies[NUMBERED][MOST_NUMBERED], answer_is[MOST_NUMBERED];
    int32_t ids[NUMBERED];
    for (int i = 0; i < NUMBERED; i++) {
        fill(bodies[i], i);
        ids[i] = has_answer[i] ? 0
                               : ask_with(client, "POST", i % 2 == 0 ? "/echo" : "/stream", "",
                                          bodies[i], size_of(i), i % 4 == 0 ? "7" : NULL);
    }
    for (int i = 0; i < NUMBERED; i++) {
        const answer_t *answer = ids[i] != 0 ? hear_whole(client, ids[i]) : NULL;
        if (answer == NULL || !answer->is_closed || answer->error != 0)
            continue;
        fill(answer_is, i);
        CHECK(strcmp(answer->status, "200") == 0 && answer->size == size_of(i) &&
              (answer->size == 0 || memcmp(answer->body, answer_is, answer->size) == 0));
        has_answer[i] = true;
    }
}

static void *ask_under_faults(void *unused) {
    static client_t client;
    bool has_answer[NUMBERED] = {false};
    int listener, descriptor;
    while ((listener = haft_io_listen_tcp("127.0.0.1", 0, 0)) < 0)
        continue;
    haft_io_task_t *serving = haft_io_async(serve_listener, (void *)(intptr_t)listener);
    for (size_t left = NUMBERED; left != 0;) {
        while (haft_http_server_port(server) == 0 ||
               (descriptor = haft_io_connect_tcp("127.0.0.1", haft_http_server_port(server))) < 0)
            haft_io_sleep(HAFT_IO_MILLISECOND);
        begin_client(&client, descriptor, NULL, 0);
        ask_the_rest(&client, has_answer);
        close_client(&client);
        left = 0;
        for (int i = 0; i < NUMBERED; i++)
            left += !has_answer[i];
    }
    haft_http_server_stop(server);
    CHECK(haft_io_join(serving, NULL) == 0);
    CHECK(haft_io_simulated_count() == 0);
    return unused;
}

static void meet_faults(void) {
    simulate_faults(ask_under_faults);
}

/* ---- All ---- */

int main(void) {
    void *(*const cases[])(void *) = {
        answer_many_at_once, wait_for_word, take_large_bodies, tunnel_bytes, cancel_with_a_reset,
        refuse_malformed, judge_late_frames, bound_heads, refuse_preface_in_between, answer_files,
        deliver_to_slow_readers,
        /* these take some time, which simulations have */
        stop_gracefully, bound_floods, bound_streams, close_idle_connections, wait_for_windows,
        refuse_slow_bodies, reset_unread_bodies_late, bound_time_of_heads,
        refuse_long_heads_of_answers};
    make_server();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        simulate_seeds(cases[i]);
    meet_faults();
    for (size_t i = 0; i < 11; i++)
        for (int threads = 1; threads <= 2; threads++)
            CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, cases[i], NULL) ==
                  0);
    haft_http_server_free(server);
    return 0;
}
