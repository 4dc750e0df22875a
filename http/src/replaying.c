/* SPDX-License-Identifier: MIT */
/*
 * A request that was kept (kept.c) is answered again: where the program would serve, a run of its
 * own, on a thread of its own, has the file's record as its tape. Its only task reads the request
 * from memory, as one of HTTP/1.1, and calls the handler inside of the middleware. The process ends
 * with the answer, or where the handler asks for something else.
 */
#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    haft_http_server_t *server;
    const char *file;
    struct iovec left; /* of the request, for the stream */
} replay_t;

typedef struct {
    hafti_http_stream_t stream; /* must be first: its operations cast its address */
    replay_t *replay;
} of_memory_t;

/* ---- Its connection ---- */

static ssize_t read_lent(hafti_http_stream_t *stream, const void **bytes) {
    struct iovec *left = &((of_memory_t *)stream)->replay->left;
    size_t size = left->iov_len < HAFT_IO_LENT_SIZE ? left->iov_len : HAFT_IO_LENT_SIZE;
    haft_io_give_back(*bytes);
    void *block = haft_io_lend();
    *bytes = block;
    if (block == NULL)
        return -ENOMEM;
    memcpy(block, left->iov_base, size);
    left->iov_base = (char *)left->iov_base + size;
    left->iov_len -= size;
    return (ssize_t)size;
}

static int write_all(hafti_http_stream_t *stream, const void *bytes, size_t size) {
    (void)stream, (void)bytes, (void)size;
    return 0;
}

static int shut(hafti_http_stream_t *stream, int how) {
    (void)stream, (void)how;
    return 0;
}

static void close_stream(hafti_http_stream_t *stream) {
    (void)stream;
}

static bool has_unread(hafti_http_stream_t *stream) {
    return ((const of_memory_t *)stream)->replay->left.iov_len != 0;
}

static const hafti_http_stream_operations_t of_memory = {.read_lent = read_lent,
                                                         .write_all = write_all,
                                                         .shutdown = shut,
                                                         .close = close_stream,
                                                         .has_unread = has_unread};

/* Reads the line before the request: its version, and its peer. */
static void take_peer(of_memory_t *connection) {
    struct iovec *left = &connection->replay->left;
    const char *text = left->iov_base, *end = memchr(text, '\n', left->iov_len);
    const char *space = end != NULL ? memchr(text, ' ', (size_t)(end - text)) : NULL;
    if (space == NULL)
        return;
    size_t size = (size_t)(end - space - 1);
    if (size < sizeof connection->stream.peer)
        memcpy(connection->stream.peer, space + 1, size);
    connection->stream.knows_peer = true;
    left->iov_len -= (size_t)(end + 1 - text);
    left->iov_base = (char *)(uintptr_t)(end + 1);
}

/* ---- The run ---- */

static void end_request(haft_http_request_t *const *request) {
    hafti_http_request_end(*request);
}

static void *answer_again(void *argument) {
    replay_t *replay = argument;
    struct iovec answer;
    haft_io_kept_found(&replay->left, &answer);
    of_memory_t connection = {.replay = replay};
    connection.stream = (hafti_http_stream_t){.operations = &of_memory, .descriptor = -1};
    hafti_http_served_t served = {.scope = haft_io_this_scope()};
    haft_io_own_set(&served);
    haft_http_server_t *server = replay->server;
    server->scope = haft_io_this_scope();
    server->keeping = HAFTI_HTTP_REPLAYS;
    take_peer(&connection);
    haft_http_request_t *made = haft_io_lend();
    if (made == NULL)
        return NULL;
    hafti_http_request_begin(made, server, &connection.stream, &served);
    __attribute__((cleanup(end_request))) haft_http_request_t *request = made;
    hafti_http_request_answer(request, hafti_http_message_read_head(&request->message));
    return NULL;
}

static void *open_scope(void *argument) {
    haft_io_kept_pause(); /* hafti_http_kept_begin ends that */
    haft_io_scope_options_t how = {.name = "HTTP replay",
                                   .scope_of_spawns = hafti_http_scope_of_spawns};
    haft_io_scope_with(&how, answer_again, argument, NULL);
    return NULL;
}

static void *run(void *argument) {
    replay_t *replay = argument;
    haft_io_run_options_t options = {.threads = 1, .replay = replay->file};
    haft_io_run_with(&options, open_scope, replay);
    fprintf(stderr, "haft-http: %s has no request that can be replayed.\n", replay->file);
    fflush(NULL);
    _exit(EXIT_FAILURE);
}

void hafti_http_replay_if_asked(haft_http_server_t *server) {
    replay_t replay = {.server = server, .file = haft_io_kept_file()};
    pthread_t thread;
    if (replay.file != NULL && pthread_create(&thread, NULL, run, &replay) == 0)
        pthread_join(thread, NULL);
}
