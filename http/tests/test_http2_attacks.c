/* SPDX-License-Identifier: MIT */
/* Server and client of HTTP/2 under the attacks of one table (http2_attacks.h); and a client whose
   server reads nothing, or says too much before its answer. Over the simulated network and over
   sockets. */
#include "../tls/tests/check_tls.h"

#include "http2_attacks.h"

#include <haft/http.h>

static issued_t authority, certificate;
static haft_tls_context_t *offering, *trusting;
static haft_http_server_t *server;
static haft_http_client_t *client;
static uint16_t port;
static int listener;

/* ---- The other end ---- */

/* Bytes over TLS, or without. */
typedef struct {
    haft_tls_t *tls;
    int descriptor;
    bool has_ended;
    /* What it has heard: */
    int heads;
    uint32_t error; /* of the GOAWAY */
    bool is_told_to_go;
    size_t skipped; /* bytes of the preface, and of frames, that are not looked at */
    unsigned char head[17];
    size_t size;
} peer_t;

static int say(peer_t *peer, const void *bytes, size_t size) {
    return peer->tls != NULL ? haft_tls_write_all(peer->tls, bytes, size)
                             : haft_io_write_all(peer->descriptor, bytes, size);
}

static bool say_frame(peer_t *peer, int type, int flags, int32_t stream, const char *bytes,
                      size_t size) {
    char frame[ATTACK_PART];
    return say(peer, frame, put_frame(frame, type, flags, stream, bytes, size)) == 0;
}
#define SAY(peer, type, flags, stream, bytes)                                                      \
    say_frame(peer, type, flags, stream, bytes, sizeof bytes - 1)

static uint32_t number_at(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void take_head(peer_t *peer) {
    size_t length = number_at(peer->head) >> 8, taken = peer->size - 9;
    peer->heads += peer->head[3] == NGHTTP2_HEADERS;
    if (peer->head[3] == NGHTTP2_GOAWAY) {
        peer->is_told_to_go = true;
        peer->error = number_at(peer->head + 13);
    }
    peer->skipped = length - taken;
    peer->size = 0;
}

static void look_at(peer_t *peer, unsigned char byte) {
    if (peer->skipped != 0) {
        peer->skipped--;
        return;
    }
    peer->head[peer->size++] = byte;
    bool is_farewell = peer->size >= 9 && peer->head[3] == NGHTTP2_GOAWAY;
    if (peer->size == (is_farewell ? 17u : 9u))
        take_head(peer);
}

static bool hear(peer_t *peer) {
    unsigned char bytes[4096];
    ssize_t got = peer->tls != NULL ? haft_tls_read(peer->tls, bytes, sizeof bytes)
                                    : haft_io_read(peer->descriptor, bytes, sizeof bytes);
    for (ssize_t i = 0; i < got; i++)
        look_at(peer, bytes[i]);
    peer->has_ended = got <= 0;
    return got > 0;
}

static void hear_the_end(peer_t *peer) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + 60 * HAFT_IO_SECOND);
    while (hear(peer))
        continue;
    CHECK(!haft_io_deadline_passed(&limit));
}

static void attack(peer_t *peer, const attack_t *attack) {
    char part[ATTACK_PART];
    size_t size;
    for (int i = 0; (size = put_attack(attack, i, part)) != 0; i++)
        if (say(peer, part, size) != 0)
            break;
}

/* Where its GOAWAY was heard, it says why; nghttp2 counts continuations itself. */
static void check_end_of(const peer_t *peer, const attack_t *attack) {
    bool is_continuation = attack->type == NGHTTP2_CONTINUATION;
    bool is_right =
        peer->error == attack->error || (is_continuation && peer->error == NGHTTP2_PROTOCOL_ERROR);
    if (peer->has_ended && (!peer->is_told_to_go || is_right) &&
        (peer->is_told_to_go || attack->times != 1))
        return;
    fprintf(stderr, "%s: %s, error %u (seed %llu)\n", attack->what,
            peer->is_told_to_go ? "told to go" : "not told to go", peer->error,
            (unsigned long long)haft_io_seed());
    CHECK(false);
}

/* ---- A server is attacked ---- */

static int sleep_long(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_sleep(100 * HAFT_IO_SECOND);
    return haft_http_answer_text(request, 200, "");
}

static int say_hello(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, 200, "hello");
}

static int count_body(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    haft_http_limit_body(request, 10000000);
    ssize_t size = haft_http_body(request, &body);
    return size < 0 ? (int)size : haft_http_answer_format(request, 200, "%zd", size);
}

static void make_server(void) {
    server = haft_http_server_new();
    haft_http_set_log(server, NULL, NULL);
    haft_http_use(server, haft_http_cancel_with_client, NULL);
    haft_http_post(server, "/sleep", sleep_long, NULL);
    haft_http_get(server, "/hello", say_hello, NULL);
    haft_http_post(server, "/count", count_body, NULL);
}

static void *serve(void *descriptor) {
    CHECK_EQUAL(haft_http_serve(server, (int)(intptr_t)descriptor), 0);
    return NULL;
}

static haft_io_task_t *start_serving(void) {
    int given = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(given);
    return haft_io_async(serve, (void *)(intptr_t)given);
}

BODY(attack_server) {
    haft_io_task_t *serving = start_serving();
    for (int i = 0; i < ATTACKS; i++) {
        HAFT_IO_SCOPED_DESCRIPTOR int descriptor = haft_io_connect_tcp("127.0.0.1", port);
        peer_t peer = {.descriptor = descriptor};
        static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
        CHECK_EQUAL(say(&peer, preface, sizeof preface), 0);
        CHECK(SAY(&peer, NGHTTP2_HEADERS, 4, 1, "\x83\x86\x44\x06/sleep\x41\x04here"));
        attack(&peer, &attacks[i]);
        hear_the_end(&peer);
        check_end_of(&peer, &attacks[i]);
    }
    haft_http_stop(server);
    haft_io_join(serving, NULL);
    return NULL;
}

/* ---- A client is attacked ---- */

enum { ASKING = 3 };

/* Takes a client's connection, over TLS. */
static haft_tls_t *accept_peer(void) {
    haft_tls_t *stream = haft_tls_new(offering, haft_io_accept(listener), NULL);
    CHECK_EQUAL(haft_tls_handshake(stream), 0);
    return stream;
}

/* Until `heads` questions have come. */
static peer_t hear_questions(haft_tls_t *stream, int heads) {
    peer_t peer = {.tls = stream, .skipped = 24};
    CHECK(SAY(&peer, NGHTTP2_SETTINGS, 0, 0, ""));
    while (peer.heads < heads)
        CHECK(hear(&peer));
    return peer;
}

static void *attack_once(void *argument) {
    const attack_t *given = argument;
    HAFT_TLS_SCOPED haft_tls_t *stream = accept_peer();
    peer_t peer = hear_questions(stream, ASKING);
    attack(&peer, given);
    hear_the_end(&peer);
    check_end_of(&peer, given);
    return NULL;
}

static int ask_with(const haft_http_question_t *question, const char *path, char *body) {
    char url[100], *bytes;
    snprintf(url, sizeof url, "https://localhost:%d%s", port, path);
    haft_http_question_t asked = *question;
    asked.url = url;
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    int code = haft_http_ask(client, &asked, &reply);
    ssize_t size = code == 0 ? haft_http_reply_body(reply, &bytes) : code;
    if (size >= 0 && body != NULL)
        snprintf(body, 100, "%s", bytes);
    return size < 0 ? (int)size : haft_http_reply_status(reply);
}

static void *ask(void *unused) {
    (void)unused;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + 60 * HAFT_IO_SECOND);
    return (void *)(intptr_t)ask_with(&(haft_http_question_t){0}, "/", NULL);
}

static void begin_client(void) {
    client = haft_http_client_new(&(haft_http_client_options_t){.tls = trusting});
}

/* All of its tasks get the error, and its TCP connection ends. */
BODY(attack_client) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(listener);
    for (int i = 0; i < ATTACKS; i++) {
        haft_io_task_t *tasks[ASKING];
        haft_io_task_t *attacking = haft_io_async(attack_once, (void *)(uintptr_t)&attacks[i]);
        begin_client();
        for (int j = 0; j < ASKING; j++)
            tasks[j] = haft_io_async(ask, NULL);
        for (int j = 0; j < ASKING; j++) {
            void *code;
            haft_io_join(tasks[j], &code);
            if ((intptr_t)code != -EPROTO)
                fprintf(stderr, "%s: task %d got %d\n", attacks[i].what, j, (int)(intptr_t)code);
            CHECK_EQUAL((intptr_t)code, -EPROTO);
        }
        haft_io_join(attacking, NULL);
        haft_http_client_free(client);
    }
    haft_io_close(listener);
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

/* One after the other on one connection, whose number is told. */
static void *say_answers(void *unused) {
    HAFT_TLS_SCOPED haft_tls_t *stream = accept_peer();
    peer_t peer = hear_questions(stream, 1);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        while (peer.heads < (int)i + 1)
            CHECK(hear(&peer));
        CHECK(say_frame(&peer, NGHTTP2_HEADERS, 5, (int32_t)(2 * i + 1), answers[i].block,
                        answers[i].size));
    }
    hear_the_end(&peer);
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

static void *inform_for_ever(void *unused) {
    HAFT_TLS_SCOPED haft_tls_t *stream = accept_peer();
    peer_t peer = hear_questions(stream, 1);
    for (int i = 0; i < 9; i++) /* as many as over HTTP/1.1 */
        CHECK(SAY(&peer, NGHTTP2_HEADERS, 4, 1, STATUS("103")));
    CHECK(SAY(&peer, NGHTTP2_HEADERS, 5, 1, "\x88"));
    while (peer.heads < 2)
        CHECK(hear(&peer));
    for (int i = 0; i < 10; i++)
        CHECK(SAY(&peer, NGHTTP2_HEADERS, 4, 3, STATUS("103")));
    hear_the_end(&peer);
    return unused;
}

BODY(bound_informations) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(listener);
    haft_io_task_t *informing = haft_io_async(inform_for_ever, NULL);
    begin_client();
    CHECK_EQUAL((intptr_t)ask(NULL), 200);
    CHECK_EQUAL((intptr_t)ask(NULL), -EBADMSG);
    haft_http_client_free(client);
    haft_io_join(informing, NULL);
    haft_io_close(listener);
    return NULL;
}

/* ---- A server that reads nothing ---- */

static haft_io_event_t is_over;

/* Opens all windows, and reads no more. */
static void *read_nothing(void *unused) {
    HAFT_TLS_SCOPED haft_tls_t *stream = accept_peer();
    peer_t peer = hear_questions(stream, 1);
    CHECK(SAY(&peer, NGHTTP2_SETTINGS, 0, 0, "\0\4\x7f\xff\xff\xff"));
    CHECK(SAY(&peer, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x70\0\0\0"));
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
    haft_io_join(reading, NULL);
    haft_http_client_free(client);
    haft_io_event_clear(&is_over);
}

/* Deadlines and cancels of a task that writes count, too. */
BODY(give_up_while_writing) {
    listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    port = (uint16_t)haft_io_port(listener);
    give_up_in_time(false);
    give_up_in_time(true);
    haft_io_close(listener);
    return NULL;
}

/* ---- What a task leaves, others go on with ---- */

static bool is_held; /* what goes to the server */

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
    haft_http_stop(server);
    haft_io_join(serving, NULL);
    haft_io_close(listener);
    return NULL;
}

/* ---- All ---- */

typedef struct {
    void *(*body)(void *);
    const char *name;
    bool is_secure; /* the server */
} case_t;

static const case_t cases[] = {
    {attack_server, "attack_server", false},
    {attack_client, "attack_client", false},
    {hear_malformed_answers, "hear_malformed_answers", false},
    {bound_informations, "bound_informations", false},
    {give_up_while_writing, "give_up_while_writing", false},
    {go_on_with_what_is_left, "go_on_with_what_is_left", true},
};

static void run(const case_t *now) {
    check_running = now->name;
    CHECK_EQUAL(haft_http_set_tls(server, now->is_secure ? offering : NULL), 0);
    for (int switches = 0; switches < 4; switches += 3)
        check_seeds(
            now->body, 2,
            (haft_io_simulation_options_t){.network = true, .switches_one_in = (unsigned)switches});
    CHECK_RUNS(now->body);
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
