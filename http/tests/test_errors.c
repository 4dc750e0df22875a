/* SPDX-License-Identifier: MIT */
/* Errors of handlers and what clients get of them: refusals, discarded answers, the application's
   form, problem+json; requests without a handler in middleware; CORS; tasks of handlers and of the
   server. Over the simulated network and over sockets, by HTTP/1.1 and HTTP/2, on one thread and on
   two. */
#ifdef CHECK_HTTP2
#    include "check_http2.h"
#else
#    include "check_http.h"
#endif

#include <stdatomic.h>

static haft_http_server_t *server;
static char log_lines[20000];
static atomic_int background, seen_by_middleware, ended_tasks;

static void note(void *unused, const char *line) {
    (void)unused;
    if (*line != ' ' && strlen(log_lines) + strlen(line) + 2 < sizeof log_lines)
        strcat(strcat(log_lines, line), "\n");
}

static int refuse(haft_http_request_t *request, void *text) {
    haft_http_answer_set_header(request, "WWW-Authenticate", "Basic");
    return haft_http_request_refuse(request, 401, text);
}
static int refuse_after_answer(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_answer_text(request, 200, "committed");
    return haft_http_request_refuse(request, 409, "the commit has failed");
}
static int fail_after_answer(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_answer_text(request, 200, "committed");
    return -EIO;
}
static int answer_twice(haft_http_request_t *request, void *unused) {
    (void)unused;
    CHECK(strcmp(haft_http_request_route(request), "/twice/{name}") == 0);
    CHECK(haft_http_request_has_path(request, "name") && !haft_http_request_has_path(request, "x"));
    CHECK(haft_http_request_path(request, "nmae") == NULL);
    haft_http_answer_text(request, 200, "first");
    return haft_http_answer_text(request, 200, "second");
}
static int answer_anew(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_answer_set_header(request, "X-First", "yes");
    haft_http_answer_text(request, 200, "first");
    CHECK(haft_http_answer_discard(request) == 0);
    int code = haft_http_answer_text(request, 201, "second");
    CHECK(code != 0 || haft_http_answer_flush(request) != 0 ||
          haft_http_answer_discard(request) == -EALREADY);
    return code;
}
static int name_no_status(haft_http_request_t *request, void *unused) {
    (void)unused;
    CHECK(haft_http_request_refuse(request, 200, NULL) == -EINVAL);
    CHECK(haft_http_request_refuse(request, 600, NULL) == -EINVAL);
    return HAFT_HTTP_REFUSED;
}
static int fail_with_fields(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_answer_set_header(request, "X-Gone", "yes");
    haft_http_answer_set_lasting_header(request, "X-Lasts", "yes");
    return -EIO;
}

HAFT_EFFECT(forgotten, int, {});
static int perform_without_handler(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_format(request, 200, "%d", HAFT_PERFORM(forgotten));
}
static void *perform_in_task(void *unused) {
    HAFT_PERFORM(forgotten);
    return unused;
}

/* Middleware that answers errors of handlers itself. */
static int forgive(haft_http_request_t *request, haft_http_next_t *next, void *unused) {
    (void)unused;
    int code = next->call(next, request);
    return code != 0 ? haft_http_answer_text(request, 200, "forgiven") : 0;
}
static int count(haft_http_request_t *request, haft_http_next_t *next, void *unused) {
    (void)unused;
    atomic_fetch_add(&seen_by_middleware, 1);
    haft_http_answer_set_lasting_header(request, "X-Seen", "yes");
    return next->call(next, request);
}

/* ---- Tasks ---- */

static void *end_late(void *unused) {
    haft_io_sleep(20 * HAFT_IO_MILLISECOND);
    atomic_fetch_add(&ended_tasks, 1);
    return unused;
}
static void *fail_soon(void *unused) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_fail(-EIO, "the task is out of luck");
    return unused;
}
static void *note_unwinding(void *unused) {
    (void)unused;
    haft_io_sleep(1000 * HAFT_IO_SECOND);
    atomic_fetch_add(&ended_tasks, 1000);
    return NULL;
}
static int spawn_some(haft_http_request_t *request, void *function) {
    for (int i = 0; i < 3; i++)
        CHECK(haft_io_spawn(*(void *(**)(void *))function, NULL) == 0);
    return haft_http_answer_text(request, 200, "spawned");
}
/* Only the handler, and its tasks. */
static int cancel_itself(haft_http_request_t *request, void *unused) {
    (void)unused;
    CHECK(haft_io_spawn(note_unwinding, NULL) == 0);
    haft_io_yield();
    haft_io_cancel();
    return haft_http_answer_text(request, 200, "X-Gone");
}
static int spawn_and_fail(haft_http_request_t *request, void *unused) {
    (void)request, (void)unused;
    CHECK(haft_io_spawn(note_unwinding, NULL) == 0);
    return -EIO;
}
static void *spawn_inside(void *unused) {
    CHECK(haft_io_spawn(end_late, NULL) == 0);
    return unused;
}
/* The innermost scope is the handler's own; and the request's may be opened from there. */
static int open_scopes(haft_http_request_t *request, void *unused) {
    (void)unused;
    int before = atomic_load(&ended_tasks);
    CHECK(haft_io_scope(spawn_inside, NULL, NULL) == 0);
    CHECK(atomic_load(&ended_tasks) > before);
    CHECK(haft_http_request_scope(request) == haft_http_request_scope(request));
    return haft_http_answer_text(request, 200, "scoped");
}

static void *outlive(void *unused) {
    haft_io_sleep(50 * HAFT_IO_MILLISECOND);
    atomic_fetch_add(&background, 1);
    return unused;
}
static int spawn_in_background(haft_http_request_t *request, void *function) {
    haft_io_task_options_t options = {
        .scope = haft_http_server_scope(haft_http_request_server(request)), .name = "mail"};
    CHECK(haft_io_spawn_with(&options, *(void *(**)(void *))function, NULL) == 0);
    return haft_http_answer_text(request, 200, "later");
}

/* ---- The server ---- */

static int say_error(haft_http_request_t *request, const haft_http_error_t *error, void *unused) {
    (void)unused;
    if (strcmp(error->text, "break") == 0)
        return -EIO;
    if (strcmp(error->text, "silence") == 0)
        return 0;
    return haft_http_answer_format(request, error->status, "<%d %s %s>", error->status, error->text,
                                   error->failure != NULL ? error->failure : "-");
}

static int say_all(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_format(request, 200, "options of %s",
                                   haft_http_request_path(request, "all"));
}

static void make_server(void) {
    static void *(*forgetful)(void *) = perform_in_task;
    static void *(*late)(void *) = end_late, *(*failing)(void *) = fail_soon,
                              *(*outliving)(void *) = outlive;
    static const char *const origins[] = {"HTTPS://App.Example:443", "https://b.example:8080"};
    server = haft_http_server_new();
    haft_http_server_set_log(server, note, NULL);
    haft_http_server_use(server, count, NULL);
    haft_http_server_get(server, "/refuse", refuse, "not you");
    haft_http_server_get(server, "/refuse/plainly", refuse, NULL);
    haft_http_server_get(server, "/refuse/break", refuse, "break");
    haft_http_server_get(server, "/refuse/silence", refuse, "silence");
    haft_http_server_get(server, "/refuse/quote", refuse, "\"a\\b\"\x01");
    haft_http_server_get(server, "/refuse/late", refuse_after_answer, NULL);
    haft_http_server_get(server, "/fail/late", fail_after_answer, NULL);
    haft_http_server_get(server, "/anew", answer_anew, NULL);
    haft_http_server_get(server, "/twice/{name}", answer_twice, NULL);
    haft_http_server_get(server, "/no/status", name_no_status, NULL);
    haft_http_server_get(server, "/fields", fail_with_fields, NULL);
    haft_http_server_get(server, "/spawn", spawn_some, &late);
    haft_http_server_get(server, "/spawn/failing", spawn_some, &failing);
    haft_http_server_get(server, "/spawn/fail", spawn_and_fail, NULL);
    haft_http_server_get(server, "/scopes", open_scopes, NULL);
    haft_http_server_get(server, "/forgotten", perform_without_handler, NULL);
    haft_http_server_get(server, "/cancel", cancel_itself, NULL);
    haft_http_server_get(server, "/spawn/forgotten", spawn_some, &forgetful);
    haft_http_server_get(server, "/background/forgotten", spawn_in_background, &forgetful);
    haft_http_server_get(server, "/background", spawn_in_background, &outliving);
    haft_http_server_get(server, "/background/failing", spawn_in_background, &failing);
    haft_http_server_t *kind = haft_http_server_group(server, "/kind");
    haft_http_server_use(kind, forgive, NULL);
    haft_http_server_get(kind, "/refuse", refuse, NULL);
    haft_http_server_get(kind, "/fail/late", fail_after_answer, NULL);
    haft_http_server_get(kind, "/spawn/failing", spawn_some, &failing);
    haft_http_server_t *shared = haft_http_server_group(server, "/shared");
    CHECK(haft_http_server_set_cors(shared, &(haft_http_cors_options_t){.origins = origins,
                                                                        .origin_count = 2,
                                                                        .exposed = "X-Count",
                                                                        .credentials = true,
                                                                        .max_age = 600}) == 0);
    haft_http_server_get(shared, "/item", refuse_after_answer, NULL);
    haft_http_server_put(shared, "/item", fail_with_fields, NULL);
    haft_http_server_t *open = haft_http_server_group(server, "/open");
    CHECK(haft_http_server_set_cors(open, NULL) == 0);
    haft_http_server_get(open, "/item", answer_anew, NULL);
    haft_http_server_t *group = haft_http_server_group(server, "/rest");
    haft_http_server_get(group, "/a/b", answer_anew, NULL);
    haft_http_server_route(group, "OPTIONS", "/{all...}", say_all, NULL);
    haft_http_server_route(group, "DELETE", "/{all...}", say_all, NULL);
    CHECK(haft_http_server_set_cors(group, &(haft_http_cors_options_t){.credentials = true}) ==
          -EINVAL);
    static const char *const none[] = {"app.example"};
    CHECK(haft_http_server_set_cors(
              group, &(haft_http_cors_options_t){.origins = none, .origin_count = 1}) == -EINVAL);
    CHECK(haft_http_server_set_cors(group, &(haft_http_cors_options_t){.methods = "a\r\nb"}) ==
          -EINVAL);
}

#define ORIGIN "Origin: https://app.example"

/* In the library's form. */
static const talk_t talks[] = {
    {"GET /refuse" END, {"401 Unauthorized", "WWW-Authenticate: Basic", "\r\n\r\nnot you"}, 1},
    {"GET /refuse/plainly" END, {"401 Unauthorized", "\r\n\r\n401 Unauthorized\n"}, 1},
    {"GET /refuse/late" END, {"409 Conflict", "\r\n\r\nthe commit has failed"}, 1},
    {"GET /fail/late" END, {"500 Internal", "\r\n\r\n500 Internal"}, 1},
    {"GET /anew" END, {"201 Created", "\r\n\r\nsecond"}, 1},
    {"GET /twice/x" END, {"500 Internal"}, 1},
    {"GET /no/status" END, {"500 Internal"}, 1},
    {"GET /fields" END, {"500 Internal", "X-Lasts: yes\r\n"}, 1},
    {"GET /kind/refuse" END, {"200 OK", "\r\n\r\nforgiven"}, 1},
    {"GET /kind/spawn/failing" END, {"500 Internal"}, 1},
    {"GET /nowhere" END, {"404 Not Found", "X-Seen: yes\r\n"}, 1},
    {"POST /refuse" WITH("Content-Length: 0"), {"405 Method", "X-Seen: yes\r\n", "Allow: "}, 1},
    {"OPTIONS /refuse" END, {"204 No Content", "X-Seen: yes\r\n", "Allow: "}, 1},
    {"OPTIONS /rest/a/b" END, {"200 OK", "\r\n\r\noptions of a/b"}, 1},
    {"DELETE /rest/a/b" END, {"200 OK", "\r\n\r\noptions of a/b"}, 1},
    {"POST /rest/a/b" WITH("Content-Length: 0"),
     {"405 Method", "Allow: OPTIONS, DELETE, GET, HEAD\r\n"},
     1},
    {"GET /spawn" END, {"200 OK", "\r\n\r\nspawned"}, 1},
    {"GET /spawn/failing" END, {"500 Internal"}, 1},
    {"GET /spawn/fail" END, {"500 Internal"}, 1},
    {"GET /scopes" END, {"200 OK", "\r\n\r\nscoped"}, 1},
    {"GET /forgotten" END, {"500 Internal"}, 1},
    {"GET /cancel" END, {"500 Internal"}, 1},
    {"GET /spawn/forgotten" END, {"500 Internal"}, 1},
    {"GET /background/forgotten" END, {"later"}, 1},
    {"GET /background/failing" END "GET /anew" END, {"200 OK", "201 Created"}, 2},
};

/* The Fetch standard, section 3.3. */
#define ASKS(method) "\r\nAccess-Control-Request-Method: " method
static const talk_t cors_talks[] = {
    {"OPTIONS /shared/item" WITH(ORIGIN ASKS("PUT") "\r\nAccess-Control-Request-Headers: x-a, x-b"),
     {"204 No Content", "Access-Control-Allow-Origin: https://app.example\r\n",
      "Access-Control-Allow-Credentials: true\r\n", "Access-Control-Allow-Methods: PUT\r\n",
      "Access-Control-Allow-Headers: x-a, x-b\r\nAccess-Control-Max-Age: 600\r\n"},
     1},
    {"OPTIONS /shared/item" END, {"204 No Content", "Vary: Origin\r\n", "Allow: "}, 1},
    {"GET /shared/item" WITH(ORIGIN),
     {"409 Conflict", "Vary: Origin\r\n", "Access-Control-Allow-Origin: https://app.example\r\n",
      "Access-Control-Expose-Headers: X-Count\r\n"},
     1},
    {"PUT /shared/item" WITH(ORIGIN "\r\nContent-Length: 0"),
     {"500 Internal", "Access-Control-Allow-Origin: https://app.example\r\n"},
     1},
    {"DELETE /shared/item" WITH(ORIGIN),
     {"405 Method", "Access-Control-Allow-Origin: https://app.example\r\n"},
     1},
    {"OPTIONS /open/item" WITH("Origin: null" ASKS("GET")),
     {"204 No Content", "Access-Control-Allow-Origin: *\r\n"},
     1},
    {"GET /open/item" WITH(ORIGIN), {"201 Created", "Access-Control-Allow-Origin: *\r\n"}, 1},
};
static const talk_t strange_origins[] = {
    {"OPTIONS /shared/item" WITH("Origin: https://evil.example" ASKS("PUT")),
     {"204 No Content", "Vary: Origin\r\n"},
     1},
    {"GET /shared/item" WITH("Origin: https://app.example.evil"), {"409", "Vary: Origin\r\n"}, 1},
    {"GET /shared/item" WITH("Origin: null"), {"409", "Vary: Origin\r\n"}, 1},
    {"GET /shared/item" END, {"409", "Vary: Origin\r\n"}, 1},
};

#define TALK_ALL(talks, never)                                                                     \
    for (size_t i = 0; i < sizeof(talks) / sizeof *(talks); i++)                                   \
    run_talk(haft_http_server_port(server), &(talks)[i], never)

static void *answer_in_the_library_s_form(void *unused) {
    haft_http_server_on_error(server, NULL, NULL);
    start_server(server);
    *log_lines = '\0';
    TALK_ALL(talks, "X-Gone");
    TALK_ALL(cors_talks, "X-Gone");
    TALK_ALL(strange_origins, "Access-Control-Allow");
    while (strstr(log_lines, "a task of the server has failed: the task is out of luck") == NULL)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK(strstr(log_lines, "a task of a request has failed: the task is out of luck") != NULL);
    CHECK(strstr(log_lines, "GET /spawn/failing: a task of the request has failed") != NULL);
    CHECK(strstr(log_lines, "GET /fail/late: Input/output error") != NULL);
    CHECK(strstr(log_lines, "GET /twice/x: the handler has answered twice") != NULL);
    CHECK(strstr(log_lines, "GET /twice/x: the route /twice/{name} has no part {nmae}") != NULL);
    CHECK(strstr(log_lines, "/refuse") == NULL);
    CHECK(strstr(log_lines, "GET /forgotten: a handler has failed: Nobody handles the effect "
                            "'forgotten' (") != NULL);
    CHECK(strstr(log_lines, "a task of a request has failed: Nobody handles") != NULL);
    CHECK(strstr(log_lines, "a task of the server has failed: Nobody handles") != NULL);
    CHECK(atomic_load(&ended_tasks) < 1000);
    haft_http_server_stop(server);
    return unused;
}

static const talk_t formed[] = {
    {"GET /refuse" END, {"401", "WWW-Authenticate: Basic", "<401 not you ->"}, 1},
    {"GET /refuse/plainly" END, {"401", "<401 Unauthorized ->"}, 1},
    {"GET /refuse/break" END, {"401", "\r\n\r\nbreak"}, 1},
    {"GET /refuse/silence" END, {"401", "\r\n\r\nsilence"}, 1},
    {"GET /fail/late" END, {"500", "<500 Internal Server Error Input/output error>"}, 1},
    {"GET /nowhere" END, {"404", "<404 Not Found ->"}, 1},
    {"DELETE /refuse" END, {"405", "<405 Method Not Allowed ->"}, 1},
    {"BREW /refuse" END, {"501", "<501 Not Implemented ->"}, 1},
    {"nonsense\r\n\r\n", {"400", "<400 Bad Request ->"}, 1},
    {"GET /nowhere HTTP/1.1\r\n\r\n", {"400", "<400 Bad Request ->"}, 1},
};
static const talk_t problems[] = {
    {"GET /nowhere" END,
     {"404", "Content-Type: application/problem+json\r\n",
      "\r\n\r\n{\"title\":\"Not Found\",\"status\":404}\n"},
     1},
    {"GET /refuse/quote" END,
     {"401", "{\"title\":\"Unauthorized\",\"status\":401,\"detail\":\"\\\"a\\\\b\\\"\\u0001\"}\n"},
     1},
};

static void *answer_in_the_application_s_form(void *unused) {
    haft_http_server_on_error(server, say_error, NULL);
    start_server(server);
    TALK_ALL(formed, "X-Gone");
    haft_http_server_stop(server);
    return unused;
}
static void *answer_with_problems(void *unused) {
    haft_http_server_on_error(server, haft_http_answer_problem, NULL);
    start_server(server);
    TALK_ALL(problems, NULL);
    haft_http_server_stop(server);
    return unused;
}

#ifdef CHECK_HTTP2
/* All of them at once, on one connection. */
static const struct {
    const char *path, *status, *says;
} by_http2[] = {
    {"/refuse", "401", "not you"},
    {"/refuse/late", "409", "the commit has failed"},
    {"/fail/late", "500", "500 Internal"},
    {"/anew", "201", "second"},
    {"/twice/x", "500", "500 Internal"},
    {"/fields", "500", "500 Internal"},
    {"/kind/refuse", "200", "forgiven"},
    {"/kind/spawn/failing", "500", "500 Internal"},
    {"/nowhere", "404", "404 Not Found"},
    {"/spawn", "200", "spawned"},
    {"/spawn/failing", "500", "500 Internal"},
    {"/scopes", "200", "scoped"},
    {"/forgotten", "500", "500 Internal"},
    {"/cancel", "500", "500 Internal"},
    {"/background/failing", "200", "later"},
};

static void *answer_by_http2(void *unused) {
    enum { ASKED = sizeof by_http2 / sizeof *by_http2 };
    static client_t client;
    int32_t streams[ASKED];
    haft_http_server_on_error(server, NULL, NULL);
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    for (int i = 0; i < ASKED; i++)
        streams[i] = ask(&client, "GET", by_http2[i].path);
    for (int i = 0; i < ASKED; i++) {
        const answer_t *answer = hear_whole(&client, streams[i]);
        if (strcmp(answer->status, by_http2[i].status) != 0 ||
            strstr(answer->body, by_http2[i].says) == NULL) {
            fprintf(stderr, "%s: got %s %s\n", by_http2[i].path, answer->status, answer->body);
            abort();
        }
    }
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}
static void *answer_problems_by_http2(void *unused) {
    static client_t client;
    haft_http_server_on_error(server, haft_http_answer_problem, NULL);
    start_server(server);
    open_client(&client, haft_http_server_port(server), NULL, 0);
    const answer_t *answer = hear_whole(&client, ask(&client, "GET", "/fail/late"));
    CHECK(strcmp(answer->status, "500") == 0 &&
          strcmp(answer->type, "application/problem+json") == 0 &&
          strcmp(answer->body, "{\"title\":\"Internal Server Error\",\"status\":500}\n") == 0);
    close_client(&client);
    haft_http_server_stop(server);
    return unused;
}
#endif

/* A server that stops waits for tasks that outlive their requests, as long as `grace`. */
static void *wait_for_background(void *unused) {
    static const talk_t later = {"GET /background" END, {"later"}, 1};
    int before = atomic_load(&background);
    start_server(server);
    run_talk(haft_http_server_port(server), &later, NULL);
    haft_http_server_stop(server);
    while (haft_http_server_port(server) != 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK(atomic_load(&background) == before + 1);
    CHECK(haft_http_server_scope(server) == NULL);
    return unused;
}

int main(void) {
    void *(*const cases[])(void *) = {answer_in_the_library_s_form,
                                      answer_in_the_application_s_form,
                                      answer_with_problems,
#ifdef CHECK_HTTP2
                                      answer_by_http2,
                                      answer_problems_by_http2,
#endif
                                      wait_for_background};
    make_server();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        simulate_seeds(cases[i]);
        for (int threads = 1; threads <= 2; threads++)
            CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, cases[i], NULL) ==
                  0);
    }
    CHECK(atomic_load(&seen_by_middleware) > 0);
    haft_http_server_free(server);
    return 0;
}
