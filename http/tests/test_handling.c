/* SPDX-License-Identifier: MIT */
/* A clause of haft_http_server_handle leaves its handler: what is inside is unwound, the code goes
   out through the middleware around. */
#ifdef CHECK_HTTP2
#    include "check_http2.h"
#else
#    include "check_http.h"
#endif

HAFT_EFFECT(user, const char *, {});
HAFT_EFFECT(row, int, { int number; });
HAFT_EFFECT(other, int, {});

static haft_http_server_t *server;
static char log_lines[1 << 14], trace[400];
static int unwound, tasks_unwound;

static void note(void *unused, const char *line) {
    (void)unused;
    strncat(log_lines, line, sizeof log_lines - strlen(log_lines) - 2);
    strcat(log_lines, "\n");
}

struct at_end {
    int *count;
};
static void end(struct at_end *self) {
    *self->count += 1;
}
#define AT_END(counter) __attribute__((cleanup(end), unused)) struct at_end ends = {&(counter)}

/* ---- Clauses ---- */

static const char *tell_user(void *state, HAFT_PAYLOAD(user) * asked) {
    const haft_http_handling_t *handling = state;
    const char *name = haft_http_request_header(handling->request, "X-User");
    (void)asked;
    if (name == NULL)
        haft_http_handling_leave(handling,
                                 haft_http_request_refuse(handling->request, 401, "who are you?"));
    return name;
}
static int find_row(void *state, HAFT_PAYLOAD(row) * asked) {
    if (asked->number < 0)
        haft_http_handling_leave(state, -EIO);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    return asked->number + 1;
}
static int find_none(void *state, HAFT_PAYLOAD(other) * asked) {
    (void)state, (void)asked;
    return 0;
}
HAFT_HANDLER(users, NULL, HAFT_TAIL(user, tell_user));
HAFT_HANDLER(rows, NULL, HAFT_TAIL(row, find_row));
HAFT_HANDLER(others, NULL, HAFT_TAIL(other, find_none));

/* ---- Handlers of requests, and middleware ---- */

static int greet(haft_http_request_t *request, void *unused) {
    AT_END(unwound);
    (void)unused;
    return haft_http_answer_format(request, 200, "Hello, %s", HAFT_PERFORM(user));
}

static void *wait_long(void *unused) {
    AT_END(tasks_unwound);
    haft_io_sleep(1000 * HAFT_IO_SECOND);
    return unused;
}

static void *perform_row(void *unused) {
    AT_END(unwound);
    (void)unused;
    return (void *)(intptr_t)HAFT_PERFORM(row, -1);
}

/* From a fiber of its own, with a task of the request's beside it, and a part of an answer. */
static int fail_deep(haft_http_request_t *request, void *unused) {
    AT_END(unwound);
    (void)unused;
    haft_http_answer_begin(request, 200, NULL, HAFT_HTTP_UNKNOWN_SIZE);
    haft_io_spawn(wait_long, NULL);
    haft_io_yield();
    haft_fiber_t *fiber = haft_fiber_new(perform_row, NULL);
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES());
    return haft_http_answer_text(request, 200, "never seen");
}

static int add(haft_http_request_t *request, void *unused) {
    int sum = 0;
    (void)unused;
    for (int i = 0; i < 100; i++)
        sum += HAFT_PERFORM(row, i);
    return haft_http_answer_format(request, 200, "%d", sum);
}

static int note_code(haft_http_request_t *request, haft_http_next_t *next, void *name) {
    int code = next->call(next, request);
    char text[40];
    snprintf(text, sizeof text, "%s %d, ", (const char *)name, code);
    strcat(trace, text);
    return code;
}

/* ---- */

static const talk_t talks[] = {
    {"GET /greet" WITH("X-User: Ada") "GET /add" END, {"Hello, Ada", "5050"}, 2},
    {"GET /greet" END "GET /greet" END "GET /greet" WITH("X-User: Bob"),
     {"401", "who are you?", "401", "who are you?", "Hello, Bob"},
     3},
    {"GET /api/greet" END "GET /add" END, {"401", "who are you?", "5050"}, 2},
    {"GET /deep" END "GET /add" END, {"500 Internal Server Error", "5050"}, 2},
};

static void *talk(void *unused) {
    uint16_t port = start_server(server);
    log_lines[0] = trace[0] = '\0';
    unwound = tasks_unwound = 0;
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++)
        run_talk(port, &talks[i], "never seen");
    CHECK(unwound == 7 && tasks_unwound == 1); /* five greetings, and two frames of /deep */
    CHECK(strstr(log_lines, "Input/output error") != NULL && times_in(log_lines, "\n") == 1);
    const char *expected = "outer 0, outer 0, outer -30000, outer -30000, outer 0, "
                           "api -30000, outer -30000, outer 0, outer -5, outer 0, ";
    if (strcmp(trace, expected) != 0) {
        fprintf(stderr, "got\n%s\nnot\n%s\n", trace, expected);
        abort();
    }
    haft_http_server_stop(server);
    return unused;
}

#ifdef CHECK_HTTP2
static void *talk_http2(void *unused) {
    static client_t client;
    uint16_t port = start_server(server);
    unwound = tasks_unwound = 0;
    open_client(&client, port, NULL, 0);
    int32_t refused = ask(&client, "GET", "/greet"), deep = ask(&client, "GET", "/deep"),
            well = ask(&client, "GET", "/add");
    CHECK(strcmp(hear_whole(&client, well)->status, "200") == 0);
    CHECK(strcmp(hear_whole(&client, refused)->status, "401") == 0);
    CHECK(strcmp(hear_whole(&client, deep)->status, "500") == 0);
    CHECK(unwound == 3 && tasks_unwound == 1);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}
#endif

static void run_all(void *(*body)(void *)) {
    simulate_seeds(body);
    for (int threads = 1; threads <= 2; threads++)
        CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, body, NULL) == 0);
}

int main(void) {
    server = haft_http_server_new();
    haft_http_server_set_log(server, note, NULL);
    haft_http_server_get(server, "/greet", greet, NULL);
    haft_http_server_get(server, "/add", add, NULL);
    haft_http_server_get(server, "/deep", fail_deep, NULL);
    haft_http_server_t *api = haft_http_server_group(server, "/api");
    haft_http_server_get(api, "/greet", greet, NULL);
    /* Six handlers in a row: two frames. The users' is in the inner one, the rows' in the outer. */
    for (int i = 0; i < 2; i++)
        CHECK(haft_http_server_handle(server, &others, NULL) == 0);
    CHECK(haft_http_server_handle(server, &users, NULL) == 0);
    CHECK(haft_http_server_handle(server, &others, NULL) == 0);
    CHECK(haft_http_server_handle(server, &others, NULL) == 0);
    CHECK(haft_http_server_handle(server, &rows, NULL) == 0);
    haft_http_server_use(server, note_code, "outer");
    CHECK(haft_http_server_handle(api, &users, NULL) == 0);
    haft_http_server_use(api, note_code, "api");
    run_all(talk);
#ifdef CHECK_HTTP2
    run_all(talk_http2);
#endif
    haft_http_server_free(server);
    return 0;
}
