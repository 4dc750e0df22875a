/* SPDX-License-Identifier: MIT */
/*
 * Requests that are kept (haft_http_run_options_t.keep_requests): while the handler of one runs,
 * libhaft-io keeps the answers that the handler gets, and this file keeps the request and the
 * handler's answer. If it fails, all of that becomes a file, from which replaying.c has the handler
 * answer again.
 *
 *   the file's REQUEST | its version and peer, in a line; then the request as of HTTP/1.1, with as
 *                      |   much of its body as the handler has read
 *   the file's ANSWER  | its status, in a line, with " cut" if the file lacks a part of the body;
 *                      |   the fields that handlers have set; an empty line; the body as written
 *
 * What the handler asks of its own connection is not on the record (HAFTI_HTTP_UNKEPT): it is of
 * another version of HTTP in the replay, and has no socket.
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct hafti_http_kept {
    haft_io_kept_t *tape; /* NULL: of a replay */
    bool is_wanted;       /* also if it does not fail */
    hafti_http_bytes_t body, answer;
} kept_t;

enum { FAILURES = 500 };

/* ---- As text ---- */

static void add_text(hafti_http_bytes_t *bytes, const char *text) {
    hafti_http_bytes_add(bytes, text, strlen(text));
}

/* Whether the field belongs to the connection, or to the framing of the body. */
static bool is_of_way(const char *name) {
    static const char *const names[] = {
        "Content-Length", "Transfer-Encoding", "Connection", "Expect",
        "Upgrade",        "HTTP2-Settings",    NULL};
    return hafti_http_is_one_of(name, names);
}

/* A body that was not read to its end keeps its size, if that is known. */
static void add_size(hafti_http_bytes_t *bytes, const haft_http_request_t *request,
                     const kept_t *kept) {
    const hafti_http_message_t *message = &request->message;
    uint64_t left = message->body == HAFTI_HTTP_SIZED ? message->left : 0;
    char line[64];
    snprintf(line, sizeof line, "Content-Length: %llu\r\n",
             (unsigned long long)(kept->body.size + left));
    if (message->body != HAFTI_HTTP_NO_BODY)
        add_text(bytes, line);
}

static hafti_http_bytes_t request_as_text(haft_http_request_t *request, const kept_t *kept) {
    hafti_http_bytes_t text = {.most = SIZE_MAX};
    hafti_http_message_t *message = &request->message;
    add_text(&text, haft_http_request_version(request));
    add_text(&text, " ");
    add_text(&text, haft_http_request_peer(request));
    add_text(&text, "\n");
    add_text(&text, request->method);
    add_text(&text, " ");
    add_text(&text, haft_http_request_target(request));
    add_text(&text, " HTTP/1.1\r\n");
    const char *name, *value;
    for (size_t i = 0; hafti_http_message_header_at(message, i, &name, &value); i++) {
        if (is_of_way(name))
            continue;
        add_text(&text, name);
        add_text(&text, ": ");
        add_text(&text, value);
        add_text(&text, "\r\n");
    }
    add_size(&text, request, kept);
    add_text(&text, "\r\n");
    hafti_http_bytes_add(&text, kept->body.bytes, kept->body.size);
    return text;
}

static hafti_http_bytes_t answer_as_text(const haft_http_request_t *request, const kept_t *kept,
                                         bool is_lost) {
    hafti_http_bytes_t text = {.most = SIZE_MAX};
    char line[32];
    snprintf(line, sizeof line, "%d%s\n", is_lost ? FAILURES : request->answer.status,
             kept->answer.is_cut ? " cut" : "");
    add_text(&text, line);
    hafti_http_bytes_add(&text, request->answer.fields, request->answer.fields_size);
    add_text(&text, "\n");
    hafti_http_bytes_add(&text, kept->answer.bytes, kept->answer.size);
    return text;
}

/* ---- The end of a replay ---- */

static int status_of(const struct iovec *answer) {
    int status = 0;
    const char *at = answer->iov_base;
    for (size_t i = 0; i < answer->iov_len && at[i] >= '0' && at[i] <= '9'; i++)
        status = 10 * status + at[i] - '0';
    return status;
}

static void show_answer(const char *before, const struct iovec *answer) {
    const char *at = memchr(answer->iov_base, '\n', answer->iov_len);
    const char *end = (const char *)answer->iov_base + answer->iov_len;
    int status = status_of(answer);
    fprintf(stderr, "%s %d %s\n", before, status, hafti_http_reason_of(status));
    if (at != NULL)
        fwrite(at + 1, 1, (size_t)(end - at - 1), stderr);
    if (answer->iov_len != 0 && end[-1] != '\n')
        fputc('\n', stderr);
}

/* Whether the answer's first line, which ends there, tells that a part of the body is missing. */
static bool is_cut(const char *line, const char *end) {
    static const char cut[] = {' ', 'c', 'u', 't'};
    return end - line >= (ptrdiff_t)sizeof cut && memcmp(end - sizeof cut, cut, sizeof cut) == 0;
}

/* How much of the answer's body a replay compares: as much as was kept. */
static size_t most_of_answer(void) {
    struct iovec asked, was;
    haft_io_kept_found(&asked, &was);
    const char *at = was.iov_base, *end = at + was.iov_len;
    const char *line = memchr(at, '\n', was.iov_len);
    if (line == NULL || !is_cut(at, line))
        return SIZE_MAX;
    while (line != NULL && line + 1 < end && line[1] != '\n')
        line = memchr(line + 1, '\n', (size_t)(end - line - 1));
    return line != NULL && line + 2 <= end ? (size_t)(end - line - 2) : 0;
}

/* Whether the answer is as HAFT_IO_REPLAY_EXPECTS demands: a status; "success", which is any below
   500; or, without it, the recorded answer, after all entries of the record. */
static bool is_expected(const struct iovec *is, bool is_same) {
    const char *expected = getenv("HAFT_IO_REPLAY_EXPECTS");
    if (expected == NULL || *expected == '\0' || strcmp(expected, "same") == 0)
        return is_same;
    if (strcmp(expected, "success") == 0)
        return status_of(is) < FAILURES;
    return status_of(is) == (int)strtol(expected, NULL, 10);
}

/* Ends the process before the run finds that nothing else goes on. */
__attribute__((noreturn)) static void end_replay(const haft_http_request_t *request,
                                                 const struct iovec *is) {
    struct iovec asked, was;
    haft_io_kept_found(&asked, &was);
    bool is_same =
        was.iov_len == is->iov_len && memcmp(was.iov_base, is->iov_base, is->iov_len) == 0;
    const char *rest = haft_io_kept_rest();
    bool passes = is_expected(is, is_same && rest == NULL);
    fflush(stdout);
    fprintf(stderr, "haft-http: the replay of %s %s is answered %s: %s.\n", request->method,
            haft_http_request_target(request), is_same ? "as it was" : "otherwise",
            passes ? "as expected" : "not as expected");
    if (rest != NULL)
        fprintf(stderr, "The handler has asked for less than it did: the record still has %s.\n",
                rest);
    if (!is_same)
        show_answer("It was", &was);
    show_answer(is_same ? "It is" : "It is now", is);
    fflush(NULL);
    _exit(passes ? 0 : 1);
}

/* ---- A request ---- */

void hafti_http_kept_begin(haft_http_request_t *request) {
    bool replays = request->server->keeping == HAFTI_HTTP_REPLAYS;
    size_t most = 0; /* bytes of a body; in a replay it is in memory */
    haft_io_kept_t *tape = replays ? NULL : haft_io_kept_begin(&most);
    if (tape == NULL && !replays)
        return;
    kept_t *kept = calloc(1, sizeof *kept);
    if (kept == NULL) {
        if (tape != NULL)
            haft_io_kept_end(tape, NULL, NULL, NULL, 0);
        return;
    }
    kept->tape = tape;
    kept->body.most = most;
    kept->answer.most = replays ? most_of_answer() : most;
    request->kept = kept;
    request->copy = &kept->answer;
    request->message.copy = &kept->body;
    request->message.stream->is_unkept = true;
    if (replays)
        haft_io_kept_resume(true);
}

static void release(kept_t *kept) {
    free(kept->body.bytes);
    free(kept->answer.bytes);
    free(kept);
}

static void write_kept(haft_http_request_t *request, const kept_t *kept,
                       const hafti_http_bytes_t *answer) {
    hafti_http_bytes_t asked = request_as_text(request, kept);
    char path[4096];
    const struct iovec question = {asked.bytes, asked.size}, reply = {answer->bytes, answer->size};
    int code = haft_io_kept_end(kept->tape, kept->body.is_cut ? NULL : &question, &reply, path,
                                sizeof path);
    if (kept->body.is_cut)
        code = -ENOBUFS;
    if (code == 0)
        hafti_http_log(request->server, "%s %s is kept in %s", request->method,
                       haft_http_request_target(request), path);
    else
        hafti_http_log(request->server, "%s %s cannot be kept: %s", request->method,
                       haft_http_request_target(request),
                       code == -EDQUOT    ? "the process has kept as many as it may"
                       : code == -ENOBUFS ? "it has taken more than haft_io_run_options_t.kept_size"
                                          : haft_io_error_text(code));
    free(asked.bytes);
}

/* Whether the handler has learned that its client has gone. An answer of FAILURES that cannot be
   sent was made before. */
static bool is_left(const haft_http_request_t *request) {
    const hafti_http_answer_t *given = &request->answer;
    int of_body = request->message.error;
    return of_body == -EPIPE || of_body == -ECONNRESET ||
           (given->failed && request->failure == NULL && given->status < FAILURES);
}

/* A request that is cut off at the end of its server's time of grace, or whose client goes, has not
   failed by itself, and would not in a replay. */
void hafti_http_kept_end(haft_http_request_t *request, bool is_lost) {
    kept_t *kept = request->kept;
    bool is_cut_off = atomic_load(&request->server->cutting);
    if (kept->tape != NULL && (is_cut_off || (!kept->is_wanted && is_left(request)))) {
        hafti_http_kept_forget(request);
        return;
    }
    const hafti_http_answer_t *given = &request->answer;
    bool is_wanted = is_lost || kept->is_wanted || given->status >= FAILURES ||
                     (given->failed && request->failure != NULL) || kept->tape == NULL;
    hafti_http_bytes_t answer = {.bytes = NULL};
    request->kept = NULL;
    request->message.copy = NULL;
    if (is_wanted)
        answer = answer_as_text(request, kept, is_lost);
    if (kept->tape == NULL)
        end_replay(request, &(struct iovec){answer.bytes, answer.size});
    if (is_wanted)
        write_kept(request, kept, &answer);
    else
        haft_io_kept_end(kept->tape, NULL, NULL, NULL, 0);
    free(answer.bytes);
    release(kept);
}

void hafti_http_kept_forget(haft_http_request_t *request) {
    kept_t *kept = request->kept;
    if (kept == NULL || kept->tape == NULL)
        return;
    request->kept = NULL;
    request->message.copy = NULL;
    haft_io_kept_end(kept->tape, NULL, NULL, NULL, 0);
    release(kept);
}

bool haft_http_request_keep(haft_http_request_t *request) {
    if (request->kept != NULL)
        request->kept->is_wanted = true;
    return request->kept != NULL;
}
