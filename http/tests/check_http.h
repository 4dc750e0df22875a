/* SPDX-License-Identifier: MIT */
/* Helpers for the tests of libhaft-http: a server with a few routes, and a client that sends bytes
   and receives bytes. */
#ifndef CHECK_HTTP_H
#define CHECK_HTTP_H

#include <haft/http.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s (seed %llu)\n", __FILE__, __LINE__, #condition,             \
                    (unsigned long long)haft_io_seed());                                           \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Sends all of it, and then nothing more, or waits with the connection open if `stays`; reads the
   answers up to the end of the stream. */
static inline size_t say_and_hear(uint16_t port, const char *bytes, size_t size, bool stays,
                                  char *heard, size_t room) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
    CHECK(connection >= 0);
    haft_io_write_all(connection, bytes, size);
    if (!stays)
        haft_io_shutdown(connection, SHUT_WR);
    size_t got = 0;
    for (ssize_t piece; (piece = haft_io_read(connection, heard + got, room - 1 - got)) > 0;)
        got += (size_t)piece;
    heard[got] = '\0';
    return got;
}

static inline void *serve_until_stopped(void *argument) {
    haft_http_server_t *server = (haft_http_server_t *)argument;
    CHECK(haft_http_server_serve(server, haft_io_listen_tcp("127.0.0.1", 0, 0)) == 0);
    return NULL;
}

/* Serves, on a task of this scope, until the server is told to stop. The port. */
static inline uint16_t start_server(haft_http_server_t *server) {
    haft_io_spawn(serve_until_stopped, server);
    while (haft_http_server_port(server) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    return haft_http_server_port(server);
}

/* A handler that sends back each piece of a body before the next has come. */
static inline int echo_pieces(haft_http_request_t *request, void *unused) {
    char piece[20];
    ssize_t size = 0;
    (void)unused;
    int code = haft_http_answer_begin(request, 200, "text/plain", HAFT_HTTP_UNKNOWN_SIZE);
    do {
        code = code == 0 ? haft_http_answer_write(request, piece, (size_t)size) : code;
        code = code == 0 ? haft_http_answer_flush(request) : code;
    } while (code == 0 && (size = haft_http_request_read(request, piece, sizeof piece)) > 0);
    return code != 0 ? code : (int)size;
}

/* A handler that sends back the bytes that come, and begins its answer before it reads. */
static inline int stream_back(haft_http_request_t *request, void *unused) {
    (void)unused;
    char piece[7];
    ssize_t size;
    int code = haft_http_answer_begin(request, 200, "text/plain", HAFT_HTTP_UNKNOWN_SIZE);
    while (code == 0 && (size = haft_http_request_read(request, piece, sizeof piece)) != 0)
        code = size < 0 ? (int)size : haft_http_answer_write(request, piece, (size_t)size);
    return code == 0 ? haft_http_answer_set_trailer(request, "X-End", "yes") : code;
}

static inline int say_nothing(haft_http_request_t *request, void *unused) {
    (void)request;
    (void)unused;
    return 0;
}

static inline int fail_in_the_middle(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_answer_begin(request, 200, NULL, HAFT_HTTP_UNKNOWN_SIZE);
    haft_http_answer_write(request, "half", 4);
    haft_http_answer_flush(request);
    return -EIO;
}

/* A handler that fails. */
static inline int fail_hard(haft_http_request_t *request, void *unused) {
    (void)request;
    (void)unused;
    haft_io_fail(-EIO, "the disk is gone");
}

/* Under four seeds, with short counts in every second, and with switches between operations in
   the last two. */
static inline void simulate_seeds(void *(*body)(void *)) {
    haft_io_simulation_options_t how = {.network = true};
    for (how.seed = 1; how.seed <= 4; how.seed++) {
        how.short_counts = how.seed % 2 == 0;
        how.switches_one_in = how.seed > 2 ? 3 : 0;
        CHECK(haft_io_simulate_with(&how, body, NULL) == 0);
    }
}

/* The bytes that a client sends, texts that its answers must contain, in this order, and the
   number of answers. */
typedef struct {
    const char *says;
    const char *hears[5];
    int answers;
} talk_t;

/* Runs the body in simulations in which one operation of so many fails, more and more rarely; each
   seed is another course of things. */
static inline void simulate_faults(void *(*body)(void *)) {
    const char *campaign = getenv("HAFT_CAMPAIGN");
    uint64_t seeds = campaign != NULL && strcmp(campaign, "long") == 0 ? 500 : 30;
    haft_io_simulation_options_t how = {.network = true};
    for (how.seed = 1; how.seed <= seeds; how.seed++) {
        how.faults_one_in = 30 + (unsigned)(how.seed * 17 % 400);
        how.short_counts = how.faults_one_in > 300;
        how.switches_one_in = how.seed % 4 == 0 ? 3 : 0;
        CHECK(haft_io_simulate_with(&how, body, NULL) == 0);
    }
}

#define END " HTTP/1.1\r\nHost: here\r\n\r\n"
#define WITH(fields) " HTTP/1.1\r\nHost: here\r\n" fields "\r\n\r\n"

/* How often the word is in the text. */
static inline int times_in(const char *text, const char *word) {
    int count = 0;
    while ((text = strstr(text, word)) != NULL)
        count++, text++;
    return count;
}

/* No answer may contain `never`, which may be NULL. */
static inline void run_talk(uint16_t port, const talk_t *talk, const char *never) {
    static char heard[300000];
    say_and_hear(port, talk->says, strlen(talk->says), false, heard, sizeof heard);
    const char *at = heard;
    for (size_t i = 0; i < 5 && talk->hears[i] != NULL && at != NULL; i++)
        at = strstr(at, talk->hears[i]);
    if (at == NULL || times_in(heard, "HTTP/1.1 ") != talk->answers ||
        (never != NULL && strstr(heard, never) != NULL)) {
        fprintf(stderr, "%s\ngot\n%.900s\n", talk->says, heard);
        abort();
    }
}

#endif
