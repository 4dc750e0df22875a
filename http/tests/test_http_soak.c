/* SPDX-License-Identifier: MIT */
/*
 * Requests of HTTP/1.1 and HTTP/2 under random cancels, resets and shutdowns. Each has a number,
 * and its answer repeats that number and its body. These must hold: an answer is that of its own
 * request; a handler is called at most once for a number; and unless its client gave up, a request
 * whose handler was called gets its whole answer, also when the server was told to stop meanwhile.
 *
 * On one thread and on two, with HAFT_HTTP_SOAK_REQUESTS requests on each, else a few thousand;
 * HAFT_IO_SEED is the seed.
 */
#define _GNU_SOURCE /* memmem */
#ifdef CHECK_HTTP2
#    include "check_http2.h"
#else
#    include "check_http.h"
#endif

#include <netinet/in.h>
#include <stdatomic.h>

enum { CLIENTS = 24, LARGE = 60000, PIPELINED = 6, MULTIPLEXED = 20, ROOM = 3 * LARGE };

/* The fate of a request, for its client. FAILED: it got no answer, and did not give up. */
enum { UNASKED, ANSWERED, FAILED, GIVEN_UP };

static unsigned requests;
static _Atomic unsigned next_number, stop_at;
static _Atomic unsigned char *called; /* how often the handler of a number was */
static unsigned char *become;
static atomic_bool stopping;
static haft_http_server_t *server;
static haft_http_client_t *client;
static uint16_t port;

/* xorshift; each task has a state of its own. */
static unsigned draw(uint64_t *state, unsigned below) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (unsigned)(*state >> 11) % below;
}

static size_t size_of(unsigned number) {
    return number % 61 == 0 ? LARGE : number * 7 % 900;
}

static char letter_at(unsigned number, size_t index) {
    return (char)('a' + (number + index) % 26);
}

static void fill(char *body, unsigned number) {
    for (size_t i = 0; i < size_of(number); i++)
        body[i] = letter_at(number, i);
}

/* How many bytes of the body, from its first on, are those of the number's answer; SIZE_MAX: all,
   and it is whole. */
static size_t compare(unsigned number, const char *body, size_t size) {
    char begin[16];
    size_t head = (size_t)snprintf(begin, sizeof begin, "%u:", number), i = 0;
    while (i < size && body[i] == (i < head ? begin[i] : letter_at(number, i - head)))
        i++;
    return i == size && size == head + size_of(number) ? SIZE_MAX : i;
}

static void take_answer(unsigned number, const char *body, size_t size) {
    size_t same = compare(number, body, size);
    if (same != SIZE_MAX) {
        fprintf(stderr, "%u is answered by %zu bytes, of which %zu are its own:\n%.20s...%.100s\n",
                number, size, same, body, body + same);
        abort();
    }
    become[number] = ANSWERED;
}

/* ---- The server ---- */

static int echo(haft_http_request_t *request, void *unused) {
    (void)unused;
    unsigned number = (unsigned)atoi(haft_http_request_path(request, "number"));
    atomic_fetch_add(&called[number], 1);
    uint64_t random = number * UINT64_C(2654435761) + 1;
    if (draw(&random, 4) == 0)
        haft_io_sleep(draw(&random, 300) * HAFT_IO_MICROSECOND);
    char *body;
    ssize_t size = haft_http_request_body(request, &body);
    if (size < 0)
        return (int)size;
    bool whole = draw(&random, 2) == 0;
    char begin[16];
    size_t head = (size_t)snprintf(begin, sizeof begin, "%u:", number);
    int code = haft_http_answer_begin(request, 200, NULL,
                                      whole ? head + (size_t)size : HAFT_HTTP_UNKNOWN_SIZE);
    if (code == 0)
        code = haft_http_answer_write(request, begin, head);
    if (code == 0 && !whole)
        code = haft_http_answer_flush(request);
    return code == 0 ? haft_http_answer_write(request, body, (size_t)size) : code;
}

/* ---- Clients ---- */

typedef struct {
    uint64_t random;
    char said[ROOM], heard[ROOM + 1];
#ifdef CHECK_HTTP2
    client_t connection;
#endif
} asker_t;

/* The next number; the one that is due tells the server to stop. */
static unsigned take_number(void) {
    unsigned number = atomic_fetch_add(&next_number, 1);
    if (number == atomic_load(&stop_at)) {
        atomic_store(&stopping, true);
        haft_http_server_stop(server);
    }
    return number;
}

static int64_t time_of(asker_t *asker, bool gives_up) {
    return gives_up ? draw(&asker->random, 500) * HAFT_IO_MICROSECOND : 60 * HAFT_IO_SECOND;
}

/* By the library's client, over connections that it keeps; sometimes for a short time only. */
static void ask_one(asker_t *asker) {
    unsigned number = take_number();
    char url[64];
    fill(asker->said, number);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%u", port, number);
    haft_http_question_t question = {
        .url = url, .method = "PUT", .body = asker->said, .size = size_of(number)};
    bool gives_up = draw(&asker->random, 8) == 0;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + time_of(asker, gives_up));
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    char *body = NULL;
    int code = haft_http_client_ask(client, &question, &reply);
    ssize_t size = code == 0 ? haft_http_reply_body(reply, &body) : code;
    CHECK(gives_up || size != -ETIMEDOUT);
    if (size >= 0)
        take_answer(number, body, (size_t)size);
    else
        become[number] = gives_up ? GIVEN_UP : FAILED;
}

/* The body of the answer at the beginning of what was received, put together; NULL: it is not
   whole. */
static char *next_body(char **at, const char *end, size_t *size) {
    char *body = memmem(*at, (size_t)(end - *at), "\r\n\r\n", 4);
    if (body == NULL || strncmp(*at, "HTTP/1.1 200 ", 13) != 0)
        return NULL;
    body[2] = '\0';
    const char *length = strstr(*at, "\r\nContent-Length: ");
    *at = body += 4;
    *size = length != NULL ? strtoul(length + 18, NULL, 10) : 0;
    if (length != NULL)
        return (size_t)(end - body) < *size ? NULL : (*at += *size, body);
    for (;;) {
        char *line = memmem(*at, (size_t)(end - *at), "\r\n", 2);
        if (line == NULL)
            return NULL;
        size_t chunk = strtoul(*at, NULL, 16);
        *at = line + 2;
        if ((size_t)(end - *at) < chunk + 2)
            return NULL;
        memmove(body + *size, *at, chunk);
        *size += chunk;
        *at += chunk + 2;
        if (chunk == 0)
            return body;
    }
}

static void reset_when_closed(int connection) {
    setsockopt(connection, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
               sizeof(struct linger));
}

/* Several requests at once on a connection of their own, which may be reset at any time. */
static void pipeline(asker_t *asker) {
    unsigned numbers[PIPELINED], count = 0;
    size_t said = 0, heard = 0;
    do {
        unsigned number = numbers[count++] = take_number();
        said += (size_t)snprintf(asker->said + said, 200,
                                 "PUT /%u HTTP/1.1\r\nHost: here\r\nContent-Length: %zu\r\n\r\n",
                                 number, size_of(number));
        fill(asker->said + said, number);
        said += size_of(number);
    } while (count < 1 + draw(&asker->random, PIPELINED) && said < ROOM - LARGE - 200);
    bool gives_up = draw(&asker->random, 8) == 0;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + time_of(asker, gives_up));
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
    if (gives_up)
        said = draw(&asker->random, (unsigned)said);
    haft_io_write_all(connection, asker->said, said);
    if (gives_up)
        reset_when_closed(connection);
    else
        haft_io_shutdown(connection, SHUT_WR);
    ssize_t got = 1;
    while (got > 0) {
        got = haft_io_read(connection, asker->heard + heard, ROOM - heard);
        CHECK(gives_up || got != -ETIMEDOUT);
        heard += got > 0 ? (size_t)got : 0;
    }
    char *at = asker->heard, *body = at;
    for (unsigned i = 0; i < count; i++) {
        size_t size;
        body = body != NULL ? next_body(&at, asker->heard + heard, &size) : NULL;
        if (body != NULL)
            take_answer(numbers[i], body, size);
        else
            become[numbers[i]] = gives_up ? GIVEN_UP : FAILED;
    }
}

#ifdef CHECK_HTTP2
/* Questions for a connection of HTTP/2, with their bodies in `said`: how many. */
static unsigned put_questions(asker_t *asker, unsigned *numbers, int32_t *ids) {
    unsigned count = 0;
    size_t said = 0;
    do {
        char path[16];
        unsigned number = numbers[count] = take_number();
        fill(asker->said + said, number);
        snprintf(path, sizeof path, "/%u", number);
        ids[count++] = ask_with(&asker->connection, "PUT", path, "", asker->said + said,
                                size_of(number), NULL);
        said += size_of(number);
    } while (count < 1 + draw(&asker->random, MULTIPLEXED) && said < ROOM - LARGE);
    return count;
}

/* Several requests at once on a connection of HTTP/2, some of which are reset, as the connection
   may be. */
static void multiplex(asker_t *asker) {
    unsigned numbers[MULTIPLEXED];
    int32_t ids[MULTIPLEXED];
    bool is_reset[MULTIPLEXED] = {false};
    client_t *connection = &asker->connection;
    bool gives_up = draw(&asker->random, 8) == 0;
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + time_of(asker, gives_up));
    int descriptor = haft_io_connect_tcp("127.0.0.1", port);
    if (descriptor < 0)
        return;
    begin_client(connection, descriptor, NULL, 0);
    unsigned count = put_questions(asker, numbers, ids);
    say(connection);
    for (unsigned i = 0; i < count; i++)
        if ((is_reset[i] = draw(&asker->random, 8) == 0))
            nghttp2_submit_rst_stream(connection->session, NGHTTP2_FLAG_NONE, ids[i],
                                      NGHTTP2_CANCEL);
    for (unsigned i = 0; i < count; i++) {
        const answer_t *answer = hear_whole(connection, ids[i]);
        CHECK(gives_up || answer->is_closed || connection->has_ended);
        if (answer->is_closed && answer->error == 0 && strcmp(answer->status, "200") == 0)
            take_answer(numbers[i], answer->body, answer->size);
        else
            become[numbers[i]] = gives_up || is_reset[i] ? GIVEN_UP : FAILED;
    }
    if (gives_up)
        reset_when_closed(descriptor);
    close_client(connection);
}
#else
static void multiplex(asker_t *asker) {
    pipeline(asker);
}
#endif

static void *run_client(void *random) {
    asker_t *asker = malloc(sizeof *asker);
    CHECK(asker != NULL);
    asker->random = (uint64_t)(uintptr_t)random;
    static void (*const ways[])(asker_t * asker) = {pipeline, multiplex, ask_one, ask_one};
    while (!atomic_load(&stopping))
        ways[draw(&asker->random, sizeof ways / sizeof *ways)](asker);
    free(asker);
    return NULL;
}

/* ---- Rounds: a server, until it is told to stop ---- */

static void *run_round(void *random) {
    port = start_server(server);
    for (unsigned i = 0; i < CLIENTS; i++)
        haft_io_spawn(run_client, (void *)(uintptr_t)(draw(random, 1U << 30) + 1));
    return NULL;
}

static unsigned check_round(unsigned first) {
    unsigned last = atomic_load(&next_number), lost = 0;
    for (unsigned i = first; i < last; i++) {
        CHECK(become[i] != UNASKED);
        CHECK(called[i] <= 1);
        CHECK(become[i] != ANSWERED || called[i] == 1);
        lost += become[i] == FAILED && called[i] == 1;
    }
    return lost;
}

static void *run_rounds(void *random) {
    client = haft_http_client_new();
    unsigned end = atomic_load(&next_number) + requests, rounds = 0, lost = 0, first;
    while ((first = atomic_load(&next_number)) < end) {
        atomic_store(&stop_at, first + 50 + draw(random, 1500));
        atomic_store(&stopping, false);
        server = haft_http_server_new();
        haft_http_server_set_log(server, NULL, NULL);
        CHECK(haft_http_server_route(server, "PUT", "/{number}", echo, NULL) == 0);
        CHECK(haft_io_scope(run_round, random, NULL) == 0);
        haft_http_server_free(server);
        lost += check_round(first);
        rounds++;
    }
    haft_http_client_free(client);
    if (lost > 0)
        fprintf(stderr, "of %u requests in %u rounds %u were taken and not answered\n", requests,
                rounds, lost);
    CHECK(lost == 0);
    return NULL;
}

int main(void) {
    const char *campaign = getenv("HAFT_CAMPAIGN"), *set = getenv("HAFT_HTTP_SOAK_REQUESTS");
    bool is_long = campaign != NULL && strcmp(campaign, "long") == 0;
    requests = set != NULL ? (unsigned)atoi(set) : is_long ? 20000 : 2500;
    unsigned room = 2 * requests + 10000;
    called = calloc(room, 1);
    become = calloc(room, 1);
    CHECK(called != NULL && become != NULL);
    const char *seed = getenv("HAFT_IO_SEED");
    uint64_t random = seed != NULL ? strtoull(seed, NULL, 10) + 1 : 1;
    for (int threads = 1; threads <= 2; threads++)
        CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, run_rounds, &random) ==
              0);
    free((void *)called);
    free(become);
    return 0;
}
