/* SPDX-License-Identifier: MIT */
/* The client of HTTP/2: its side of http2_attacks.h; answers that are none; and servers that read
   nothing. Over the simulated network and over sockets. */
#include <haft/http.h>

#include "../tls/tests/check_tls.h"

#include "http2_attacks.h"

#include <haft/http.h>

#include <stdatomic.h>

static issued_t authority, certificate;
static haft_tls_context_t *offering, *trusting;
static haft_http_server_t *server;
static haft_http_client_t *client;
static uint16_t port;
static int listener;

/* ---- A server that sends what it likes ---- */

/* A client's connection, without TLS: another task passes bytes on. */
typedef struct {
    haft_tls_t *stream;
    int ends[2]; /* the second is the test's */
    haft_io_task_t *passing;
    unsigned char frame[20000]; /* the last one received */
    size_t size;
} peer_t;

static void *pass_to_client(void *argument) {
    peer_t *peer = argument;
    char bytes[4096];
    for (ssize_t got; (got = haft_io_read(peer->ends[0], bytes, sizeof bytes)) > 0;)
        if (haft_tls_write_all(peer->stream, bytes, (size_t)got) != 0)
            break;
    haft_io_shutdown(haft_tls_descriptor(peer->stream), SHUT_WR);
    return NULL;
}

static void *pass_bytes(void *argument) {
    peer_t *peer = argument;
    char bytes[4096];
    haft_io_task_t *back = haft_io_async(pass_to_client, peer);
    for (ssize_t got; (got = haft_tls_read(peer->stream, bytes, sizeof bytes)) > 0;)
        if (haft_io_write_all(peer->ends[0], bytes, (size_t)got) != 0)
            break;
    haft_io_shutdown(peer->ends[0], SHUT_RDWR);
    haft_io_join(back, NULL);
    return NULL;
}

static void say(peer_t *peer, int type, int flags, int32_t stream, const char *bytes, int size) {
    char frame[1000];
    char *end =
        http2_put(frame, &(http2_frame_t){type, flags, stream, bytes, size}, HTTP2_CLIENT, 0);
    CHECK_EQUAL(haft_io_write_all(peer->ends[1], frame, (size_t)(end - frame)), 0);
}
#define SAY(peer, type, flags, stream, bytes)                                                      \
    say(peer, type, flags, stream, bytes, (int)sizeof bytes - 1)

static bool read_until(peer_t *peer, size_t size) {
    for (ssize_t got; peer->size < size; peer->size += (size_t)got)
        if ((got = haft_io_read(peer->ends[1], peer->frame + peer->size, size - peer->size)) <= 0)
            return false;
    return true;
}

/* The type of the next frame, and nothing behind it; -1: the end. */
static int hear(peer_t *peer) {
    peer->size = 0;
    if (!read_until(peer, 9))
        return -1;
    return read_until(peer, 9 + (http2_number(peer->frame) >> 8)) ? peer->frame[3] : -1;
}

static void hear_a_question(peer_t *peer) {
    int type;
    while ((type = hear(peer)) != HEADERS)
        CHECK(type >= 0);
}

/* Accepts a client, and sends SETTINGS. */
static void begin_peer(peer_t *peer) {
    *peer = (peer_t){.size = 0};
    peer->stream = haft_tls_new(offering, haft_io_accept(listener), NULL);
    CHECK_EQUAL(haft_tls_handshake(peer->stream), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, peer->ends), 0);
    peer->passing = haft_io_async(pass_bytes, peer);
    CHECK(read_until(peer, 24)); /* the preface */
    SAY(peer, SETTINGS, 0, 0, "");
}

static void end_peer(peer_t *peer) {
    while (hear(peer) >= 0)
        continue;
    haft_io_close(peer->ends[1]);
    haft_io_join(peer->passing, NULL);
    haft_io_close(peer->ends[0]);
    haft_tls_close(peer->stream);
}

/* ---- A server ---- */

static int say_hello(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, 200, "hello");
}

static int count_body(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    haft_http_request_limit_body(request, 10000000);
    ssize_t size = haft_http_request_body(request, &body);
    return size < 0 ? (int)size : haft_http_answer_format(request, 200, "%zd", size);
}

static void make_server(void) {
    server = haft_http_server_new();
    haft_http_server_set_log(server, NULL, NULL);
    haft_http_server_get(server, "/hello", say_hello, NULL);
    haft_http_server_post(server, "/count", count_body, NULL);
}

static void *serve(void *descriptor) {
    CHECK_EQUAL(haft_http_server_serve(server, (int)(intptr_t)descriptor), 0);
    return NULL;
}

static haft_io_task_t *start_serving(void) {
    int given = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(given);
    return haft_io_async(serve, (void *)(intptr_t)given);
}

/* ---- A client is attacked ---- */

enum { ASKING = 3 };

static haft_io_event_t is_over;

static int ask_with(const haft_http_question_t *question, const char *path, char *body) {
    char url[100], *bytes;
    snprintf(url, sizeof url, "https://localhost:%d%s", port, path);
    haft_http_question_t asked = *question;
    asked.url = url;
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    int code = haft_http_client_ask(client, &asked, &reply);
    ssize_t size = code == 0 ? haft_http_reply_body(reply, &bytes) : code;
    if (size >= 0 && body != NULL)
        snprintf(body, 100, "%s", bytes);
    return size < 0 ? (int)size : haft_http_reply_status(reply);
}

/* Reads the body when the attack is over. */
static void *ask_under_attack(void *unused) {
    (void)unused;
    char url[100], *body;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + 60 * HAFT_IO_SECOND);
    snprintf(url, sizeof url, "https://localhost:%d/", port);
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    int code = haft_http_client_ask(client, &(haft_http_question_t){.url = url}, &reply);
    if (code == 0)
        code = haft_io_event_wait(&is_over);
    ssize_t size = code == 0 ? haft_http_reply_body(reply, &body) : code;
    return (void *)(intptr_t)(size < 0 ? (int)size : haft_http_reply_status(reply));
}

static void *ask(void *unused) {
    (void)unused;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + 60 * HAFT_IO_SECOND);
    return (void *)(intptr_t)ask_with(&(haft_http_question_t){0}, "/", NULL);
}

static void begin_client(void) {
    client = haft_http_client_new_with(&(haft_http_client_options_t){.tls = trusting});
}

/* When all tasks have asked; another connection is refused then. */
static void *attack_once(void *argument) {
    const http2_attack_t *attack = argument;
    http2_heard_t heard;
    peer_t peer;
    begin_peer(&peer);
    for (int i = 0; i < ASKING; i++)
        hear_a_question(&peer);
    haft_io_close(listener);
    http2_attack(peer.ends[1], attack, HTTP2_CLIENT, &heard);
    CHECK(http2_judge(attack, HTTP2_CLIENT, &heard));
    haft_io_event_set(&is_over);
    end_peer(&peer);
    return NULL;
}

/* All tasks get the error of the connection, but one whose own answer was at fault before. */
static void check_codes(const http2_attack_t *attack, haft_io_task_t **tasks) {
    int others = 0;
    for (int i = 0; i < ASKING; i++) {
        void *code;
        haft_io_join(tasks[i], &code);
        bool is_others = attack->outcome >= ENDS && (intptr_t)code != -EPROTO;
        others += is_others;
        bool is_right = (intptr_t)code != -ETIMEDOUT && others <= 1;
        if (!is_right)
            fprintf(stderr, "%s: %d\n", attack->what, (int)(intptr_t)code);
        CHECK(is_right);
    }
}

BODY(attack_client) {
    for (int i = 0; i < HTTP2_ATTACKS; i++) {
        haft_io_task_t *tasks[ASKING];
        if ((http2_attacks[i].victims & HTTP2_CLIENT) == 0)
            continue;
        listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
        port = (uint16_t)haft_io_port(listener);
        haft_io_task_t *attacking =
            haft_io_async(attack_once, (void *)(uintptr_t)&http2_attacks[i]);
        begin_client();
        for (int j = 0; j < ASKING; j++)
            tasks[j] = haft_io_async(ask_under_attack, NULL);
        check_codes(&http2_attacks[i], tasks);
        haft_io_join(attacking, NULL);
        haft_io_event_clear(&is_over);
        haft_http_client_free(client);
    }
    return NULL;
}

/* ---- Answers that are none ---- */

typedef struct {
    const char *what, *block;
    size_t size;
    int code;
} answer_t;
#define ANSWER(what, block, code)                                                                  \
    { what, block, sizeof block - 1, code }
#define STATUS(digits) "\x08\x03" digits

static const answer_t answers[] = {
    ANSWER("good", "\x88", 200),
    ANSWER("status of no class", STATUS("000"), -EBADMSG),
    ANSWER("status below 100", STATUS("099"), -EBADMSG),
    ANSWER("status above 599", STATUS("600"), 600),
    ANSWER("status of nobody", STATUS("999"), 999),
    ANSWER("status of two digits",
           "\x08\x02"
           "20",
           -EBADMSG),
    ANSWER("status of letters", STATUS("2x0"), -EBADMSG),
    ANSWER("switching protocols", STATUS("101"), -EBADMSG),
    ANSWER("information that ends", STATUS("103"), -EBADMSG),
    ANSWER("no status",
           "\x0f\x0d\x01"
           "0",
           -EBADMSG),
    ANSWER("two statuses", "\x88\x88", -EBADMSG),
    ANSWER("field of a connection",
           "\x88\x00\x0a"
           "connection\x05"
           "close",
           -EBADMSG),
    ANSWER("upper case",
           "\x88\x00\x01"
           "A\x01"
           "b",
           -EBADMSG),
    ANSWER("line end in a value",
           "\x88\x00\x01"
           "a\x04"
           "b\r\nc",
           -EBADMSG),
    ANSWER("space before a value",
           "\x88\x00\x01"
           "a\x02"
           " b",
           -EBADMSG),
    ANSWER("two lengths",
           "\x88\x5c\x01"
           "0\x5c\x01"
           "0",
           -EBADMSG),
};

/* One after the other on one connection. */
static void *say_answers(void *unused) {
    peer_t peer;
    begin_peer(&peer);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        hear_a_question(&peer);
        say(&peer, HEADERS, END_HEADERS | END_STREAM, (int32_t)(2 * i + 1), answers[i].block,
            (int)answers[i].size);
    }
    end_peer(&peer);
    return unused;
}

/* A malformed answer is its question's alone: the connection goes on. */
BODY(hear_malformed_answers) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(listener);
    haft_io_task_t *saying = haft_io_async(say_answers, NULL);
    begin_client();
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        int code = (int)(intptr_t)ask(NULL);
        if (code != answers[i].code)
            fprintf(stderr, "%s: %d\n", answers[i].what, code);
        CHECK_EQUAL(code, answers[i].code);
    }
    haft_http_client_free(client);
    haft_io_join(saying, NULL);
    haft_io_close(listener);
    return NULL;
}

/* Sends as many informational answers as are allowed over HTTP/1.1, and then one more. */
static void *inform(void *unused) {
    peer_t peer;
    begin_peer(&peer);
    for (int stream = 1, most = 9; stream <= 3; stream += 2, most++) {
        hear_a_question(&peer);
        for (int i = 0; i < most; i++)
            SAY(&peer, HEADERS, END_HEADERS, stream, STATUS("103"));
        SAY(&peer, HEADERS, END_HEADERS | END_STREAM, stream, "\x88");
    }
    end_peer(&peer);
    return unused;
}

BODY(bound_informations) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(listener);
    haft_io_task_t *informing = haft_io_async(inform, NULL);
    begin_client();
    CHECK_EQUAL((intptr_t)ask(NULL), 200);
    CHECK_EQUAL((intptr_t)ask(NULL), -EBADMSG);
    haft_http_client_free(client);
    haft_io_join(informing, NULL);
    haft_io_close(listener);
    return NULL;
}

/* ---- A server that reads nothing ---- */

/* Opens all windows, and reads no more. A client may give up before it has connected: then the
   listener is closed. */
static void *read_nothing(void *unused) {
    static const http2_frame_t frames[] = {
        {SETTINGS, 0, 0, BYTES(SETTING("\4", "\x7f", "\xff", "\xff", "\xff"))},
        {WINDOW_UPDATE, 0, 0, BYTES("\x70\0\0\0")}};
    char bytes[100], *end = bytes;
    int accepted = haft_io_accept(listener);
    if (accepted < 0)
        return unused;
    HAFT_TLS_SCOPED haft_tls_t *stream = haft_tls_new(offering, accepted, NULL);
    for (int i = 0; i < 2; i++)
        end = http2_put(end, &frames[i], HTTP2_CLIENT, 0);
    haft_tls_write_all(stream, bytes, (size_t)(end - bytes)); /* if the client is still there */
    haft_io_event_wait(&is_over);
    return unused;
}

enum { LARGE = 3000000 };
static char *large;

static void *post_in_vain(void *unused) {
    (void)unused;
    return (void *)(intptr_t)ask_with(&(haft_http_question_t){.body = large, .size = LARGE}, "/",
                                      NULL);
}

static void *post_until_cancelled(void *unused) {
    haft_io_spawn(post_in_vain, NULL);
    haft_io_spawn(post_in_vain, NULL);
    haft_io_sleep(50 * HAFT_IO_MILLISECOND);
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

static void check_time(int64_t begun) {
    if (haft_io_seed() != 0) /* in virtual time */
        CHECK(haft_io_now() - begun < HAFT_IO_SECOND / 2);
}

static void give_up_in_time(bool is_cancel) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(listener);
    haft_io_task_t *reading = haft_io_async(read_nothing, NULL);
    begin_client();
    int64_t begun = haft_io_now();
    if (is_cancel) {
        CHECK_EQUAL(haft_io_scope(post_until_cancelled, NULL, NULL), -ECANCELED);
    } else {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
        haft_io_deadline_set(&limit, begun + 50 * HAFT_IO_MILLISECOND);
        CHECK_EQUAL((intptr_t)post_in_vain(NULL), -ETIMEDOUT);
    }
    check_time(begun);
    haft_io_event_set(&is_over);
    haft_io_close(listener);
    haft_io_join(reading, NULL);
    haft_http_client_free(client);
    haft_io_event_clear(&is_over);
}

/* Deadlines and cancels of a task that writes count, too. */
BODY(give_up_while_writing) {
    give_up_in_time(false);
    give_up_in_time(true);
    return NULL;
}

/* ---- What a task leaves, others go on with ---- */

static atomic_bool is_held; /* what goes to the server */

static void *pass_back(void *argument) {
    const int *ends = argument;
    char bytes[4096];
    for (ssize_t got; (got = haft_io_read(ends[1], bytes, sizeof bytes)) > 0;)
        if (haft_io_write_all(ends[0], bytes, (size_t)got) != 0)
            break;
    haft_io_shutdown(ends[0], SHUT_WR);
    return NULL;
}

/* One connection, of which no more is passed on while it is held. */
static void *pass_on(void *to) {
    int ends[2] = {haft_io_accept(listener),
                   haft_io_connect_tcp("127.0.0.1", (uint16_t)(intptr_t)to)};
    char bytes[4096];
    haft_io_task_t *back = haft_io_async(pass_back, ends);
    for (ssize_t got; (got = haft_io_read(ends[0], bytes, sizeof bytes)) > 0;) {
        while (is_held)
            haft_io_sleep(10 * HAFT_IO_MILLISECOND);
        haft_io_write_all(ends[1], bytes, (size_t)got);
    }
    haft_io_shutdown(ends[1], SHUT_WR);
    haft_io_join(back, NULL);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}

static void *post_late(void *milliseconds) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + (intptr_t)milliseconds * HAFT_IO_MILLISECOND);
    haft_http_question_t question = {.body = large, .size = LARGE};
    CHECK_EQUAL(ask_with(&question, "/count", NULL), -ETIMEDOUT);
    return NULL;
}

static void *get_hello(void *unused) {
    char body[100] = "";
    CHECK_EQUAL(ask_with(&(haft_http_question_t){0}, "/hello", body), 200);
    CHECK(strcmp(body, "hello") == 0);
    return unused;
}

static void *hold_and_give_up(void *unused) {
    is_held = true;
    haft_io_spawn(post_late, (void *)30);
    haft_io_spawn(post_late, (void *)60);
    haft_io_sleep(10 * HAFT_IO_MILLISECOND);
    haft_io_spawn(get_hello, NULL); /* behind what the two leave */
    haft_io_sleep(100 * HAFT_IO_MILLISECOND);
    is_held = false;
    return unused;
}

/* A frame that a task has left in the middle is completed, and the others are answered over the
   same connection. */
BODY(go_on_with_what_is_left) {
    haft_io_task_t *serving = start_serving();
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    haft_io_task_t *passing = haft_io_async(pass_on, (void *)(intptr_t)port);
    port = (uint16_t)haft_io_port(listener);
    begin_client();
    get_hello(NULL);
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(haft_io_scope(hold_and_give_up, NULL, NULL), 0);
    char body[100] = "";
    haft_http_question_t question = {.body = large, .size = LARGE};
    CHECK_EQUAL(ask_with(&question, "/count", body), 200);
    CHECK_EQUAL(atoi(body), LARGE);
    haft_http_client_free(client);
    haft_io_join(passing, NULL);
    haft_http_server_stop(server);
    haft_io_join(serving, NULL);
    haft_io_close(listener);
    return NULL;
}

/* ---- All ---- */

typedef struct {
    void *(*body)(void *);
    const char *name;
    bool is_for_threads, is_secure; /* the server */
} case_t;

static const case_t cases[] = {
    {attack_client, "attack_client", false, false},
    {hear_malformed_answers, "hear_malformed_answers", false, false},
    {bound_informations, "bound_informations", false, false},
    {give_up_while_writing, "give_up_while_writing", true, false},
    {go_on_with_what_is_left, "go_on_with_what_is_left", true, true},
};

static void run(const case_t *now) {
    check_running = now->name;
    CHECK_EQUAL(haft_http_server_set_tls(server, now->is_secure ? offering : NULL), 0);
    for (int switches = 0; switches < 4; switches += 3)
        check_seeds(
            now->body, 2,
            (haft_io_simulation_options_t){.network = true, .switches_one_in = (unsigned)switches});
    CHECK_RUNS(now->body);
    if (now->is_for_threads)
        CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, now->body, NULL), 0);
}

int main(int count, char **arguments) {
    static const char *const protocols[] = {"h2"};
    CHECK(mkdtemp(folder) != NULL);
    authority = issue((issue_t){.name = "authority"});
    certificate =
        issue((issue_t){.name = "server", .hosts = "DNS:localhost", .issuer = &authority});
    offering = haft_tls_server_context();
    CHECK_EQUAL(haft_tls_add_certificate(offering, certificate.chain_file, certificate.key_file),
                0);
    CHECK_EQUAL(haft_tls_set_protocols(offering, protocols, 1), 0);
    trusting = haft_tls_client_context();
    CHECK_EQUAL(haft_tls_trust_nobody(trusting), 0);
    CHECK_EQUAL(haft_tls_trust(trusting, authority.chain_file), 0);
    large = calloc(1, LARGE);
    make_server();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (count == 1 || strcmp(arguments[1], cases[i].name) == 0)
            run(&cases[i]);
    haft_http_server_free(server);
    haft_tls_context_free(offering);
    haft_tls_context_free(trusting);
    free(large);
    forget(&authority);
    forget(&certificate);
    rmdir(folder);
    return check_end();
}
