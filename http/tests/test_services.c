/* SPDX-License-Identifier: MIT */
/* Tools of services beside routes and answers: server-sent events, handlers that end with their
   client. Each case runs over the simulated network, whose time is virtual, and where it needs
   no virtual time, over sockets. */
#include "check_http.h"

#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static haft_http_server_t *server;
static char log_lines[1 << 16];

static void note(void *unused, const char *line) {
    (void)unused;
    strncat(log_lines, line, sizeof log_lines - strlen(log_lines) - 2);
    strcat(log_lines, "\n");
}

static uint16_t start(void) {
    log_lines[0] = '\0';
    return start_server(server);
}

static int ask(uint16_t port, const char *says) {
    int connection = haft_io_connect_tcp("127.0.0.1", port);
    CHECK(connection >= 0 && haft_io_write_all(connection, says, strlen(says)) == 0);
    return connection;
}

/* Reads until the word has come: all that has. */
static const char *hear_until(int connection, const char *word) {
    static char heard[100000];
    size_t size = 0;
    do {
        ssize_t got = haft_io_read(connection, heard + size, sizeof heard - 1 - size);
        if (got <= 0) {
            fprintf(stderr, "no %s in\n%.900s\n", word, heard);
            abort();
        }
        heard[size += (size_t)got] = '\0';
    } while (strstr(heard, word) == NULL);
    return heard;
}

static void hear_end(int connection) {
    char more[1000];
    ssize_t got;
    while ((got = haft_io_read(connection, more, sizeof more)) > 0)
        continue;
    CHECK(got == 0);
}

/* ---- Server-sent events ---- */

static haft_io_channel_t *news;
static int news_ended; /* what the wait of the last handler has returned */

static int send_news(haft_http_request_t *request, void *unused) {
    (void)unused;
    char line[20];
    const char *last = haft_http_events_last_id(request);
    int code = haft_http_events_begin(request), ended = 0;
    CHECK(haft_http_events_send(request, &(haft_http_event_t){.id = "a\rb"}) == -EINVAL);
    if (code == 0 && last != NULL)
        code = haft_http_events_send(request, &(haft_http_event_t){.data = last, .type = "again"});
    while (code == 0 && (ended = haft_http_events_receive(request, news, line)) == 0)
        code = haft_http_events_send(request, &(haft_http_event_t){.data = line, .id = "7"});
    news_ended = ended;
    return code;
}

static int send_shapes(haft_http_request_t *request, void *unused) {
    (void)unused;
    static const haft_http_event_t events[] = {
        {.data = "one\ntwo\r\nthree\rfour"},
        {.data = "", .type = "empty"},
        {.id = "5", .retry = 3 * HAFT_IO_SECOND},
        {.data = "\n"},
    };
    int code = haft_http_events_begin(request);
    for (size_t i = 0; i < sizeof events / sizeof *events && code == 0; i++)
        code = haft_http_events_send(request, &events[i]);
    return code;
}

static const talk_t shapes[] = {
    {"GET /shapes" END "GET /shapes HTTP/1.0\r\n\r\n",
     {"Cache-Control: no-store\r\n", "Content-Type: text/event-stream\r\n",
      "data: one\ndata: two\ndata: three\ndata: four\n\n", "event: empty\ndata: \n\n",
      "id: 5\nretry: 3000\n\n"},
     2},
    {"GET /shapes HTTP/1.0\r\n\r\n",
     {"Connection: close\r\n",
      "\r\n\r\ndata: one\ndata: two\ndata: three\ndata: four\n\nevent: empty\ndata: \n\nid: 5\n"
      "retry: 3000\n\ndata: \ndata: \n\n"},
     1},
    {"HEAD /shapes" END "HEAD /news" END "GET /shapes" END, {"200 OK", "200 OK", "data: one"}, 3},
};

static void *hear_events(void *unused) {
    uint16_t port = start();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        run_talk(port, &shapes[i], NULL);
    HAFT_IO_SCOPED_DESCRIPTOR int connection = ask(port, "GET /news" WITH("Last-Event-ID: 6"));
    hear_until(connection, "event: again\ndata: 6\n\n");
    haft_io_channel_send(news, "hello\0..............");
    hear_until(connection, "id: 7\ndata: hello\n\n");
    haft_http_server_stop(server);
    hear_until(connection, "0\r\n\r\n");
    hear_end(connection);
    CHECK(news_ended == -ESHUTDOWN && strcmp(log_lines, "") == 0);
    return unused;
}

static void *leave_events(void *unused) {
    uint16_t port = start();
    int connection = ask(port, "GET /news" END);
    hear_until(connection, "\r\n\r\n");
    news_ended = 0;
    haft_io_close(connection);
    while (news_ended == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK(news_ended == -ECONNRESET);
    haft_http_server_stop(server);
    return unused;
}

static void *keep_events_alive(void *unused) {
    uint16_t port = start();
    HAFT_IO_SCOPED_DESCRIPTOR int connection = ask(port, "GET /news" END);
    int64_t begun = haft_io_now();
    for (int i = 1; i <= 4; i++)
        hear_until(connection, ":\n\n");
    CHECK(haft_io_now() - begun >= 60 * HAFT_IO_SECOND);
    haft_http_server_stop(server);
    return unused;
}

/* ---- Handlers that end with their client ---- */

static int has_ended, has_finished;

static void note_end(int *unused) {
    (void)unused;
    has_ended++;
}

static void *finish(void *unused) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    has_finished++;
    return unused;
}

static int sleep_long(haft_http_request_t *request, void *unused) {
    (void)unused;
    __attribute__((cleanup(note_end))) int ends = 0;
    haft_io_shield(finish, NULL);
    haft_io_sleep(1000 * HAFT_IO_SECOND);
    return haft_http_answer_format(request, 200, "slept %d", ends);
}

static int poll_long(haft_http_request_t *request, void *unused) {
    (void)unused;
    int code =
        haft_http_request_select_until(request, NULL, 0, haft_io_now() + HAFT_IO_MILLISECOND);
    return code == -ETIMEDOUT ? haft_http_answer_text(request, 200, "nothing new") : code;
}

static int say_short(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, 200, "short");
}

static int return_error(haft_http_request_t *request, void *unused) {
    (void)request;
    (void)unused;
    return -EIO;
}

static const talk_t watched[] = {
    {"GET /short" END "GET /short" END "GET /short" WITH("Connection: close"),
     {"short", "short", "short"},
     3},
    {"GET /fail" END "GET /short" END, {"500 Internal", "short"}, 2},
    {"GET /error" END "GET /short" END, {"500 Internal", "short"}, 2},
    {"GET /none" END "GET /short" END, {"404", "short"}, 2},
};

/* These clients wait with their side open. */
static void *answer_watched(void *unused) {
    uint16_t port = start();
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        HAFT_IO_SCOPED_DESCRIPTOR int connection = ask(port, watched[i].says);
        const char *last = NULL;
        for (int answer = 0; answer < watched[i].answers; answer++)
            last = watched[i].hears[answer];
        hear_until(connection, last);
    }
    CHECK(strstr(log_lines, "GET /fail: the disk is gone\n") != NULL);
    CHECK(strstr(log_lines, "GET /error: Input/output error\n") != NULL);
    HAFT_IO_SCOPED_DESCRIPTOR int connection = ask(port, "GET /poll" END);
    hear_until(connection, "nothing new");
    haft_http_server_stop(server);
    return unused;
}

/* By a close, by a reset, and by the end of what it sends. */
static void *cancel_watched(void *unused) {
    uint16_t port = start();
    for (int way = 0; way < 3; way++) {
        has_ended = has_finished = 0;
        int connection = ask(port, "GET /sleep" END "GET /short" END);
        while (has_finished == 0)
            haft_io_sleep(HAFT_IO_MILLISECOND);
        if (way == 1)
            setsockopt(connection, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
                       sizeof(struct linger));
        if (way == 2)
            haft_io_shutdown(connection, SHUT_WR);
        else
            haft_io_close(connection);
        while (has_ended == 0)
            haft_io_sleep(HAFT_IO_MILLISECOND);
        if (way == 2)
            haft_io_close(connection);
    }
    CHECK(strcmp(log_lines, "") == 0);
    haft_http_server_stop(server);
    return unused;
}

/* ---- To see inside ---- */

static char access_lines[4096];

static void note_access(void *unused, const char *line) {
    (void)unused;
    strncat(access_lines, line, sizeof access_lines - strlen(access_lines) - 2);
    strcat(access_lines, "\n");
}

static void note_by_hook(void *unused, haft_http_request_t *request,
                         const haft_http_access_t *access) {
    CHECK(access->begun > 0 && access->duration >= 0);
    char line[100];
    snprintf(line, sizeof line, "%s [%s] %d %llu %d", haft_http_request_method(request),
             haft_http_request_target(request), access->status, (unsigned long long)access->size,
             access->is_refused);
    note_access(unused, line);
}

static const char noted[] =
    "GET /short?a=b" WITH("User-Agent: a\"b\\\r\nReferer: caf\xe9") "HEAD /short" END
                                                                    "GET /none" END "GET /fail" END;
static const char refused[] = "GET /short" END "GET / X\r\n\r\n";

typedef struct {
    void (*set)(void);
    const char *lines[5]; /* each is in the log, in this order */
} logged_t;

static void set_common(void) {
    haft_http_server_set_access_log(server, HAFT_HTTP_LOG_COMMON, note_access, NULL);
}
static void set_combined(void) {
    haft_http_server_set_access_log(server, HAFT_HTTP_LOG_COMBINED, note_access, NULL);
}
static void set_json(void) {
    haft_http_server_set_access_log(server, HAFT_HTTP_LOG_JSON, note_access, NULL);
}
static void set_hook(void) {
    haft_http_server_set_access_hook(server, note_by_hook, NULL);
}

static const logged_t logged[] = {
    {set_common,
     {" - - [", "] \"GET /short?a=b HTTP/1.1\" 200 5\n", "\"HEAD /short HTTP/1.1\" 200 0\n",
      "\"GET /none HTTP/1.1\" 404 14\n", "\"GET /fail HTTP/1.1\" 500 26\n"}},
    {set_common, {"\"GET /short HTTP/1.1\" 200 5\n", "\"-\" 400 16\n"}},
    {set_combined,
     {"\"GET /short?a=b HTTP/1.1\" 200 5 \"caf\\xe9\" \"a\\x22b\\x5c\"\n", "\"-\" \"-\"\n"}},
    {set_json,
     {"{\"time\":\"20", "\"method\":\"GET\",\"target\":\"/short?a=b\",\"version\":\"HTTP/1.1\",",
      "\"status\":200,\"size\":5,\"seconds\":0.", "\"referer\":\"caf\\u00e9\"",
      "\"user_agent\":\"a\\\"b\\\\\"}\n"}},
    {set_hook,
     {"GET [/short?a=b] 200 5 0\n", "HEAD [/short] 200 0 0\n", "GET [/none] 404 14 0\n",
      "GET [/fail] 500 26 0\n"}},
    {set_hook, {"GET [/short] 200 5 0\n", "? [] 400 16 1\n"}},
};

static void *log_accesses(void *unused) {
    for (size_t i = 0; i < sizeof logged / sizeof *logged; i++) {
        bool is_of_refused = strstr(logged[i].lines[1], " 400 ") != NULL;
        const char *says = is_of_refused ? refused : noted;
        char heard[4000];
        logged[i].set();
        access_lines[0] = '\0';
        uint16_t port = start();
        say_and_hear(port, says, strlen(says), false, heard, sizeof heard);
        haft_http_server_stop(server);
        while (haft_http_server_port(server) != 0)
            haft_io_sleep(HAFT_IO_MILLISECOND);
        const char *at = access_lines;
        for (size_t line = 0; line < 5 && logged[i].lines[line] != NULL && at != NULL; line++)
            at = strstr(at, logged[i].lines[line]);
        if (at == NULL) {
            fprintf(stderr, "log %zu\n%s", i, access_lines);
            abort();
        }
    }
    haft_http_server_set_access_hook(server, NULL, NULL);
    return unused;
}

static const talk_t pages[] = {
    {"GET /debug/" END, {"200 OK", "<a href=tasks>"}, 1},
    {"GET /debug/tasks" END,
     {"Cache-Control: no-store", "scope 'HTTP server'", "scope 'HTTP listeners'",
      "waits for: accept"},
     1},
    {"GET /debug/counters" END,
     {"text/plain; version=0.0.4",
      "\n# TYPE haft_http_connections gauge\nhaft_http_connections 1\n",
      "\nhaft_http_requests_total{status=\"2xx\"} ", "_seconds_bucket{le=\"0.0025\"} ",
      "haft_io_tasks_total "},
     1},
};

static void *count_requests(void *unused) {
    uint16_t port = start();
    haft_http_counters_t before, after;
    haft_http_server_read_counters(server, &before);
    char heard[4000];
    say_and_hear(port, noted, strlen(noted), false, heard, sizeof heard);
    haft_http_server_read_counters(server, &after);
    CHECK(after.requests[2] - before.requests[2] == 2);
    CHECK(after.requests[4] - before.requests[4] == 1);
    CHECK(after.requests[5] - before.requests[5] == 1);
    CHECK(after.bytes - before.bytes == 5 + 14 + 26);
    CHECK(after.connections_accepted - before.connections_accepted == 1);
    uint64_t sum_before = 0, sum_after = 0;
    for (size_t i = 0; i < HAFT_HTTP_DURATIONS; i++) {
        sum_before += before.durations[i];
        sum_after += after.durations[i];
    }
    CHECK(sum_after - sum_before == 4);
    while (haft_http_server_read_counters(server, &after), after.connections != 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        run_talk(port, &pages[i], NULL);
    haft_http_server_stop(server);
    return unused;
}

/* ---- Streams ---- */

static int echo_stream(haft_http_request_t *request, void *tunnel) {
    char bytes[100];
    ssize_t size;
    CHECK(haft_http_stream_read(request, bytes, sizeof bytes) == -EINVAL);
    CHECK(haft_http_stream_write(request, "", 0) == -EINVAL);
    haft_http_answer_set_header(request, "X-A", "b");
    int code = tunnel != NULL ? haft_http_request_tunnel(request)
                              : haft_http_request_upgrade(request, "echo/1");
    if (code == -ENOTSUP)
        return haft_http_answer_text(request, 426, "only echoes");
    CHECK(haft_http_answer_text(request, 200, "") == -EALREADY);
    while (code == 0 && (size = haft_http_stream_read(request, bytes, sizeof bytes)) > 0)
        code = haft_http_stream_write(request, bytes, (size_t)size);
    CHECK(haft_http_stream_shutdown(request) == 0);
    return code;
}

#define UPGRADE "Connection: keep-alive, Upgrade\r\nUpgrade: other, echo/1"

static const talk_t streams[] = {
    {"GET /echo" WITH(UPGRADE) "hello" END,
     {"101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo/1\r\nX-A: b\r\n\r\nhello",
      END},
     1},
    {"GET /echo" END "GET /echo" END, {"426", "426"}, 2},
    {"GET /echo" WITH("Upgrade: echo/1") "GET /echo" END, {"426", "426"}, 2},
    {"GET /echo" WITH("Connection: Upgrade\r\nUpgrade: other"), {"426"}, 1},
    {"GET /echo HTTP/1.0\r\n" UPGRADE "\r\n\r\n", {"426"}, 1},
    {"GET /echo" WITH(UPGRADE "\r\nContent-Length: 2") "hi", {"426"}, 1},
    {"GET /short" WITH(UPGRADE) "GET /short" END, {"short", "short"}, 2},
    {"CONNECT here:443" WITH("A: b") "hello", {"200 Connected\r\nX-A: b\r\n\r\nhello"}, 1},
    {"CONNECT [::1]:443" END, {"200 Connected"}, 1},
    {"CONNECT here" END, {"400"}, 1},
    {"CONNECT here:" END, {"400"}, 1},
    {"CONNECT :443" END, {"400"}, 1},
    {"CONNECT /short" END, {"400"}, 1},
    {"CONNECT a/b:443" END, {"400"}, 1},
    {"CONNECT here:443" WITH("Content-Length: 2") "hi", {"400"}, 1},
};

static void *talk_streams(void *unused) {
    uint16_t port = start();
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        run_talk(port, &streams[i], NULL);
    haft_http_server_stop(server);
    return unused;
}

/* ---- Listeners ---- */

static char path[] = "/tmp/haft_services_XXXXXX/socket";
static haft_http_run_options_t listens = {.listen = NULL};
static int run_code;
#define ASKED_THERE "GET /short" END
static const char *asked_there = ASKED_THERE;

static void *run_server(void *unused) {
    run_code = haft_http_server_run_with(&listens, server);
    return unused;
}

static void *ask_unix(void *unused) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = -1;
    while ((connection = haft_io_connect_unix(path)) < 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK(haft_io_write_all(connection, asked_there, strlen(asked_there)) == 0);
    hear_until(connection, "short");
    return unused;
}

static void *ask_port(void *unused) {
    while (haft_http_server_port(server) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    run_talk(haft_http_server_port(server), &(talk_t){asked_there, {"short"}, 1}, NULL);
    return unused;
}

/* Served by another thread, and asked by this one. */
static void listen_and_ask(const char *where, int code) {
    pthread_t thread;
    listens.listen = where;
    log_lines[0] = '\0';
    CHECK(pthread_create(&thread, NULL, run_server, NULL) == 0);
    if (code == 0) {
        ask_port(NULL);
        if (strstr(where, "unix:") != NULL)
            ask_unix(NULL);
        haft_http_server_stop(server);
    }
    pthread_join(thread, NULL);
    CHECK(run_code == code);
    CHECK(code == 0 || *log_lines != '\0');
}

static void listen_everywhere(void) {
    char where[100], *slash = strrchr(path, '/');
    *slash = '\0';
    CHECK(mkdtemp(path) != NULL);
    *slash = '/';
    snprintf(where, sizeof where, "127.0.0.1:0 unix:%s  localhost:0", path);
    listen_and_ask(where, 0);
    CHECK(access(path, F_OK) != 0);
    int left = haft_io_listen_unix(path, 0); /* as by a process that has ended */
    close(left);
    listen_and_ask(where, 0);
    listens.reuse_port = true;
    listen_and_ask("127.0.0.1:0", 0);
    listens.reuse_port = false;
    listens.backend = "none of these";
    listen_and_ask("127.0.0.1:0", -EINVAL);
    listens.backend = NULL;
    listens.threads = -2;
    listen_and_ask("127.0.0.1:0", -EINVAL);
    listens.threads = 0;
    static const char *const wrong[] = {
        "", "here", "127.0.0.1:", "127.0.0.1:x", ":70000", "127.0.0.1:0 127.0.0.1:-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        listen_and_ask(wrong[i], -EINVAL);
    snprintf(where, sizeof where, "proxy:127.0.0.1:0 proxy:unix:%s", path);
    CHECK(haft_http_server_trust_proxies(server, "127.0.0.1 unix", NULL) == 0);
    asked_there = "PROXY UNKNOWN\r\n" ASKED_THERE;
    listen_and_ask(where, 0);
    asked_there = ASKED_THERE;
    CHECK(haft_http_server_trust_proxies(server, "", NULL) == 0);
    listen_and_ask("proxy:127.0.0.1", -EINVAL);
    listen_and_ask("systemd", -ENOTCONN);
    int socket = haft_io_listen_tcp("127.0.0.1", 0, 0);
    if (socket != 3 && fcntl(3, F_GETFD) < 0)
        socket = dup2(socket, 3);
    char pid[20];
    snprintf(pid, sizeof pid, "%d", getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    if (socket == 3)
        listen_and_ask("systemd", 0);
    *slash = '\0';
    CHECK(rmdir(path) == 0);
}

/* ---- A restart ---- */

/* This program is the server, too: `test_services serve FOLDER`. It does not begin where there is a
   file named "fails", and listens at one more place where there is none named "less". */
static char folder[] = "/tmp/haft_restart_XXXXXX";

static const char *in_folder(const char *name) {
    static char paths[4][100];
    static int next;
    char *place = paths[next++ % 4];
    snprintf(place, sizeof paths[0], "%s/%s", folder, name);
    return place;
}

static int say_process(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_sleep(HAFT_IO_MILLISECOND);
    return haft_http_answer_format(request, 200, "%d %d\n", getpid(),
                                   haft_http_server_port(server));
}

static int serve_here(const char *where) {
    char places[300];
    strcpy(folder, where);
    if (access(in_folder("fails"), F_OK) == 0)
        return 1;
    bool is_less = access(in_folder("less"), F_OK) == 0;
    snprintf(places, sizeof places, "127.0.0.1:0 unix:%s %s%s", in_folder("socket"),
             is_less ? "" : "unix:", is_less ? "" : in_folder("other"));
    server = haft_http_server_new();
    haft_http_server_set_log(server, NULL, NULL);
    haft_http_server_get(server, "/process", say_process, NULL);
    int code = haft_http_server_run_with(
        &(haft_http_run_options_t){.listen = places, .restart_signal = SIGUSR2}, server);
    haft_http_server_free(server);
    return code != 0;
}

static uint16_t served_port;
static bool has_restarted;
static _Atomic int asked_count;

/* The process that answers; its port is the same for all. */
static int ask_process(bool by_unix) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = by_unix
                                                   ? haft_io_connect_unix(in_folder("socket"))
                                                   : haft_io_connect_tcp("127.0.0.1", served_port);
    CHECK(connection >= 0);
    static const char says[] = "GET /process" WITH("Connection: close");
    CHECK(haft_io_write_all(connection, says, sizeof says - 1) == 0);
    char heard[1000];
    size_t size = 0;
    for (ssize_t got; (got = haft_io_read(connection, heard + size, sizeof heard - 1 - size)) != 0;
         size += (size_t)got)
        CHECK(got > 0);
    heard[size] = '\0';
    int process = 0, at = 0;
    const char *body = strstr(heard, "\r\n\r\n");
    if (body == NULL || sscanf(body, "%d %d", &process, &at) != 2) {
        fprintf(stderr, "after %d answers: %s\n", asked_count, heard);
        abort();
    }
    CHECK(served_port == 0 || served_port == at);
    served_port = (uint16_t)at;
    asked_count++;
    return process;
}

static void *load(void *by_unix) {
    while (!has_restarted)
        ask_process(by_unix != NULL);
    return NULL;
}

static void wait_for_another(int process) {
    int answers = 0;
    while (answers < 20)
        answers = ask_process(answers % 2 == 0) != process ? answers + 1 : 0;
}

static void touch(const char *name) {
    int file = open(in_folder(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    close(file);
}

static void *restart_under_load(void *program) {
    const char *arguments[] = {program, "serve", folder, NULL};
    pid_t first = haft_io_process_start(arguments, NULL);
    CHECK(first > 0);
    int status = 0, connection;
    while ((connection = haft_io_connect_unix(in_folder("socket"))) < 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_close(connection);
    CHECK(ask_process(true) == first);
    for (int i = 0; i < 4; i++)
        haft_io_spawn(load, i % 2 == 0 ? NULL : program);
    kill(first, SIGUSR2);
    CHECK(haft_io_process_wait(first, &status) == 0 && status == 0);
    wait_for_another(first);
    pid_t second = ask_process(false);
    touch("fails");
    kill(second, SIGUSR2);
    for (int begun = asked_count; asked_count < begun + 100;) /* it goes on */
        CHECK(ask_process(true) == second);
    CHECK(unlink(in_folder("fails")) == 0);
    touch("less");
    do { /* the signal may come while it still waits for the last one's */
        kill(second, SIGUSR2);
        haft_io_sleep(20 * HAFT_IO_MILLISECOND);
    } while (ask_process(false) == second);
    wait_for_another(second);
    pid_t third = ask_process(true);
    has_restarted = true;
    CHECK(third != first && third != second);
    CHECK(haft_io_connect_unix(in_folder("other")) == -ECONNREFUSED); /* and nobody hangs there */
    kill(third, SIGTERM);
    return NULL;
}

static void restart(const char *program) {
    CHECK(mkdtemp(folder) != NULL);
    CHECK(haft_io_run(restart_under_load, (void *)(uintptr_t)program) == 0);
    while (access(in_folder("socket"), F_OK) == 0) /* until the last has ended */
        usleep(1000);
    unlink(in_folder("other"));
    unlink(in_folder("less"));
    CHECK(rmdir(folder) == 0);
    CHECK(haft_http_server_restart(server) == -ENOTSUP);
}

/* ---- Clients ---- */

static int say_client(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_format(request, 200, "[%s] [%s]", haft_http_request_peer(request),
                                   haft_http_request_client_address(request));
}

#define FOR(list) "GET /client" WITH("X-Forwarded-For: " list)
#define FORWARDED(list) "GET /client" WITH("Forwarded: " list)

/* Requests, and the client's address for a server that trusts 127.0.0.0/8 and 10.1.0.0/16. */
static const talk_t by_x_forwarded_for[] = {
    {"GET /client" END, {"[127.0.0.1] [127.0.0.1]"}, 1},
    {FOR("192.0.2.1"), {"[127.0.0.1] [192.0.2.1]"}, 1},
    {FOR("192.0.2.1, 192.0.2.2"), {"[192.0.2.2]"}, 1}, /* the first may be a lie */
    {FOR("192.0.2.1, 10.1.2.3"), {"[192.0.2.1]"}, 1},
    {FOR("192.0.2.1, 10.2.2.3"), {"[10.2.2.3]"}, 1},
    {FOR("10.1.0.1, 10.1.2.3"), {"[10.1.0.1]"}, 1},
    {FOR("192.0.2.1") "GET /client" WITH(
         "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2"),
     {"[192.0.2.1]", "[192.0.2.2]"},
     2},
    {FOR("2001:db8:0::1"), {"[2001:db8::1]"}, 1},
    {FOR("192.0.2.1:80"), {"[192.0.2.1]"}, 1},
    {FOR("unknown"), {"[127.0.0.1] [127.0.0.1]"}, 1},
    {FOR(""), {"[127.0.0.1] [127.0.0.1]"}, 1},
    {FOR(", ,"), {"[127.0.0.1] [127.0.0.1]"}, 1},
    {FOR("192.0.2.1, <script>, 10.1.2.3"), {"[10.1.2.3]"}, 1},
    {FORWARDED("for=192.0.2.1"), {"[127.0.0.1] [127.0.0.1]"}, 1},
};
static const talk_t by_forwarded[] = {
    {FORWARDED("for=192.0.2.1"), {"[127.0.0.1] [192.0.2.1]"}, 1},
    {FORWARDED("proto=http;For=192.0.2.1:7;by=1.2.3.4, for=\"10.1.2.3\""), {"[192.0.2.1]"}, 1},
    {FORWARDED("for=\"[2001:db8::1]:80\""), {"[2001:db8::1]"}, 1},
    {FORWARDED("for=_hidden, for=10.1.2.3"), {"[10.1.2.3]"}, 1},
    {FORWARDED("by=192.0.2.1"), {"[127.0.0.1] [127.0.0.1]"}, 1},
    {FOR("192.0.2.1"), {"[127.0.0.1] [127.0.0.1]"}, 1},
};
static const talk_t by_nobody[] = {{FOR("192.0.2.1"), {"[127.0.0.1] [127.0.0.1]"}, 1}};

static const talk_t *client_talks;
static size_t client_talk_count;

static void *talk_of_clients(void *unused) {
    uint16_t port = start();
    for (size_t i = 0; i < client_talk_count; i++)
        run_talk(port, &client_talks[i], NULL);
    haft_http_server_stop(server);
    return unused;
}

static void talk_to(const char *networks, const char *field, const talk_t *asked, size_t count) {
    client_talks = asked;
    client_talk_count = count;
    CHECK(haft_http_server_trust_proxies(server, networks, field) == 0);
    CHECK(haft_io_run(talk_of_clients, NULL) == 0);
}

static void run_cases(void *(*const cases[])(void *), size_t count, size_t virtual_ones);

/* ---- The PROXY protocol ---- */

#define ASKED "GET /client" WITH("X-Forwarded-For: 192.0.2.9")
#define LINE(line) line "\r\n" ASKED
#define SIGNED "\r\n\r\n\0\r\nQUIT\n"
#define BINARY(header) SIGNED header ASKED, sizeof(SIGNED header ASKED) - 1
#define TEXT(line) LINE(line), sizeof(LINE(line)) - 1
#define OF(text) text, sizeof(text) - 1
#define NINES                                                                                      \
    "999999999999999999999999999999999999999999999999999999999999999999999999999999999999999"

/* Bytes of a proxy that the server trusts, and its answer; NULL: it closes the connection. */
static const struct {
    const char *bytes;
    size_t size;
    const char *hears;
} announced[] = {
    {TEXT("PROXY TCP4 192.0.2.1 192.0.2.2 1 65535"), "[192.0.2.1] [192.0.2.1]"},
    {TEXT("PROXY TCP6 2001:db8:0::1 ::1 0 80"), "[2001:db8::1] [2001:db8::1]"},
    {TEXT("PROXY TCP4 10.1.2.3 192.0.2.2 1 2"), "[10.1.2.3] [192.0.2.9]"}, /* another proxy's */
    {TEXT("PROXY UNKNOWN"), "[192.0.2.9]"},
    {TEXT("PROXY UNKNOWN ffff:: and more"), "[192.0.2.9]"},
    {TEXT("PROXY UNKNOWNS"), NULL},
    {TEXT("PROXY TCP5 192.0.2.1 192.0.2.2 1 2"), NULL},
    {TEXT("PROXY tcp4 192.0.2.1 192.0.2.2 1 2"), NULL},
    {TEXT("PROXY  TCP4 192.0.2.1 192.0.2.2 1 2"), NULL},
    {TEXT("PROXY TCP4 192.0.2.1  192.0.2.2 1 2"), NULL},
    {TEXT("PROXY TCP4 192.0.2.1\t 192.0.2.2 1 2"), NULL},
    {TEXT("PROXY TCP4 192.0.2.1 192.0.2.2 1"), NULL},
    {TEXT("PROXY TCP4 192.0.2.1 192.0.2.2 1 2 "), NULL},
    {TEXT("PROXY TCP4 192.0.2.1 192.0.2.2 1 65536"), NULL},
    {TEXT("PROXY TCP4 192.0.2.1 192.0.2.2 01 2"), NULL},
    {TEXT("PROXY TCP4 192.0.2.1 192.0.2.2 -1 2"), NULL},
    {TEXT("PROXY TCP4 192.0.2.1 192.0.2.2 1 "), NULL},
    {TEXT("PROXY TCP4 192.0.2 192.0.2.2 1 2"), NULL},
    {TEXT("PROXY TCP4 ::1 192.0.2.2 1 2"), NULL},
    {TEXT("PROXY TCP6 192.0.2.1 192.0.2.2 1 2"), NULL},
    {TEXT("PROXY TCP4 " NINES " 192.0.2.2 1 2"), NULL},
    {TEXT("PROXY UNKNOWN " NINES NINES), NULL},
    {OF("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n" ASKED), NULL},
    {OF("PROXY \r\n\r\n" ASKED), NULL},
    {OF(ASKED), NULL},
    {OF("PROXY TCP4 192.0.2.1 192.0.2.2 1 2"), NULL}, /* and then nothing */
    {OF(SIGNED "\x21\x11\0\x0c\xc0"), NULL},
    {BINARY("\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\0\1\0\2"), "[192.0.2.1] [192.0.2.1]"},
    {BINARY("\x21\x21\0\x24\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1................\0\1\0\2"),
     "[2001:db8::1] [2001:db8::1]"},
    {BINARY("\x21\x11\0\x10\xc0\0\2\1\xc0\0\2\2\0\1\0\2\x04\0\1x"), "[192.0.2.1] [192.0.2.1]"},
    {BINARY("\x20\0\0\0"), "[192.0.2.9]"},
    {BINARY("\x20\x11\0\3abc"), "[192.0.2.9]"},
    {BINARY("\x21\0\0\0"), "[192.0.2.9]"},
    {BINARY("\x21\x11\0\x0b\xc0\0\2\1\xc0\0\2\2\0\1\0"), NULL},
    {BINARY("\x21\x21\0\x0c\xc0\0\2\1\xc0\0\2\2\0\1\0\2"), NULL},
    {BINARY("\x21\x12\0\x0c\xc0\0\2\1\xc0\0\2\2\0\1\0\2"), NULL}, /* datagrams */
    {BINARY("\x21\x31\0\1x"), NULL},
    {BINARY("\x22\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\0\1\0\2"), NULL},
    {BINARY("\x11\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\0\1\0\2"), NULL},
    {BINARY("\x21\x11\xff\xff\xc0\0\2\1\xc0\0\2\2\0\1\0\2"), NULL},
};

static void *serve_proxies(void *unused) {
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    CHECK(haft_http_server_expect_proxy_header(server, listener) == 0);
    CHECK(haft_http_server_serve(server, listener) == 0);
    return unused;
}

static uint16_t start_for_proxies(const char *networks, const char *field) {
    CHECK(haft_http_server_trust_proxies(server, networks, field) == 0);
    haft_io_spawn(serve_proxies, NULL);
    while (haft_http_server_port(server) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    return haft_http_server_port(server);
}

static void *announce(void *unused) {
    char heard[2000];
    uint16_t port = start_for_proxies("unix 127.0.0.0/8 10.1.0.0/16", "X-Forwarded-For");
    for (size_t i = 0; i < sizeof announced / sizeof *announced; i++) {
        say_and_hear(port, announced[i].bytes, announced[i].size, false, heard, sizeof heard);
        if (announced[i].hears != NULL ? strstr(heard, announced[i].hears) == NULL
                                       : *heard != '\0') {
            fprintf(stderr, "%zu: %.100s\ngot %s\n", i, announced[i].bytes, heard);
            abort();
        }
    }
    haft_http_server_stop(server);
    return unused;
}

/* The head of an untrusted proxy is neither read nor waited for. */
static void *announce_by_stranger(void *unused) {
    char heard[2000];
    uint16_t port = start_for_proxies("10.1.0.0/16", NULL);
    say_and_hear(port, announced[0].bytes, announced[0].size, false, heard, sizeof heard);
    CHECK(*heard == '\0');
    HAFT_IO_SCOPED_DESCRIPTOR int silent = ask(port, "");
    CHECK(haft_io_read(silent, heard, 1) <= 0);
    haft_http_server_stop(server);
    return unused;
}

/* In virtual time. */
static void *announce_slowly(void *unused) {
    char byte;
    uint16_t port = start_for_proxies("unix 127.0.0.0/8", NULL);
    int64_t begun = haft_io_now();
    HAFT_IO_SCOPED_DESCRIPTOR int connection = ask(port, "PROXY TCP4 192.0.2.1 ");
    CHECK(haft_io_read(connection, &byte, 1) <= 0);
    CHECK(haft_io_now() - begun >= 10 * HAFT_IO_SECOND &&
          haft_io_now() - begun < 20 * HAFT_IO_SECOND);
    haft_http_server_stop(server);
    return unused;
}

/* The time of a head begins with the connection. */
static void *announce_nothing(void *unused) {
    char byte;
    uint16_t port = start_for_proxies("unix 127.0.0.0/8", NULL);
    HAFT_IO_SCOPED_DESCRIPTOR int connection = ask(port, "");
    CHECK(haft_io_read(connection, &byte, 1) <= 0);
    haft_http_server_stop(server);
    return unused;
}

static void know_clients(void) {
    haft_http_server_get(server, "/client", say_client, NULL);
    talk_to("10.9.0.0/16", "X-Forwarded-For", by_nobody, 1);
    talk_to("127.0.0.0/8, 10.1.0.0/16", "X-Forwarded-For", by_x_forwarded_for,
            sizeof by_x_forwarded_for / sizeof *by_x_forwarded_for);
    talk_to("127.0.0.1 unix 10.1.0.0/16 ::1 2001:db8::/33", "forwarded", by_forwarded,
            sizeof by_forwarded / sizeof *by_forwarded);
    static const char *const wrong[] = {"here", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                                        "::/129"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(haft_http_server_trust_proxies(server, wrong[i], "Forwarded") == -EINVAL);
    run_cases((void *(*const[])(void *)){announce_slowly, announce}, 2, 1);
    haft_http_server_set_limits(
        server, &(haft_http_limits_t){.idle_time = HAFT_IO_FOREVER, .head_time = HAFT_IO_FOREVER});
    run_cases((void *(*const[])(void *)){announce_by_stranger}, 1, 0);
    haft_http_server_set_limits(
        server,
        &(haft_http_limits_t){.idle_time = HAFT_IO_FOREVER, .head_time = 20 * HAFT_IO_MILLISECOND});
    run_cases((void *(*const[])(void *)){announce_nothing}, 1, 0);
    haft_http_server_set_limits(server, &(haft_http_limits_t){0});
    CHECK(haft_http_server_trust_proxies(server, "", "Forwarded") == 0);
}

/* Two connections of a client are served, the third is closed, and one that comes when there is
   room is served. */
static void *limit_connections(void *unused) {
    uint16_t port = start();
    int first = ask(port, "GET /short" END), second = ask(port, "GET /short" END);
    hear_until(first, "short");
    hear_until(second, "short");
    HAFT_IO_SCOPED_DESCRIPTOR int third = haft_io_connect_tcp("127.0.0.1", port);
    char byte;
    CHECK(haft_io_read(third, &byte, 1) <= 0);
    haft_io_close(first);
    haft_io_close(second);
    haft_http_counters_t counters;
    while (haft_http_server_read_counters(server, &counters), counters.connections != 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    HAFT_IO_SCOPED_DESCRIPTOR int fourth = ask(port, "GET /short" END);
    hear_until(fourth, "short");
    haft_http_server_stop(server);
    return unused;
}

static void limit_clients(void) {
    haft_http_server_set_limits(server, &(haft_http_limits_t){.connections_of_client = 2});
    for (int threads = 1; threads <= 2; threads++)
        CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, limit_connections,
                               NULL) == 0);
    haft_http_server_set_limits(server, &(haft_http_limits_t){0});
}

/* ---- Groups ---- */

/* Adds its word to a field, which shows which middleware was around which. */
static int mark(haft_http_request_t *request, haft_http_next_t *next, void *word) {
    int code = haft_http_answer_set_header(request, "X-Around", word);
    return code == 0 ? next->call(next, request) : code;
}

HAFT_EFFECT(whose, const char *, {});

static const char *tell_target(void *state, HAFT_PAYLOAD(whose) * asked) {
    const haft_http_handling_t *handling = state;
    (void)asked;
    CHECK(strcmp(handling->argument, "argument") == 0);
    return haft_http_request_target(handling->request);
}
/* Its own perform goes further out. */
static const char *tell_method(void *state, HAFT_PAYLOAD(whose) * asked) {
    const haft_http_handling_t *handling = state;
    (void)asked;
    haft_http_answer_set_header(handling->request, "X-Method",
                                haft_http_request_method(handling->request));
    return HAFT_PERFORM(whose);
}
static void *leave(void *state, HAFT_PAYLOAD(whose) * asked) {
    (void)asked;
    return state;
}
static void *return_it(void *state, void *result) {
    (void)state;
    return result;
}
HAFT_HANDLER(targets, NULL, HAFT_TAIL(whose, tell_target));
HAFT_HANDLER(methods, NULL, HAFT_TAIL(whose, tell_method));
HAFT_HANDLER(leaving, NULL, HAFT_NEVER(whose, leave));
HAFT_HANDLER(returning, return_it, HAFT_TAIL(whose, tell_target));

static int say_whose(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, 200, HAFT_PERFORM(whose));
}

/* Handlers without a function stand among functions, and in groups. */
static void add_handlers(haft_http_server_t *api, haft_http_server_t *v2) {
    haft_http_server_get(server, "/whose", say_whose, NULL);
    haft_http_server_get(v2, "/whose", say_whose, NULL);
    CHECK(haft_http_server_handle(v2, &methods, NULL) == 0);
    CHECK(haft_http_server_handle(api, &methods, NULL) == 0);
    CHECK(haft_http_server_handle(server, &targets, "argument") == 0);
    CHECK(haft_http_server_handle(server, &leaving, NULL) == -EINVAL);
    CHECK(haft_http_server_handle(server, &returning, NULL) == -EINVAL);
}

static const talk_t grouped[] = {
    {"GET /plain" END, {"X-Around: server\r\n\r\n"}, 1},
    {"GET /api" END, {"X-Around: server\r\nX-Around: outer\r\nX-Around: inner\r\n\r\n"}, 1},
    {"GET /api/plain" END, {"X-Around: server\r\nX-Around: outer\r\nX-Around: inner\r\n\r\n"}, 1},
    {"GET /api/v1/bare" END, {"inner\r\n\r\n"}, 1},
    {"GET /api/v2/deep/a" END, {"inner\r\nX-Around: v2\r\nX-Around: deep\r\n\r\n"}, 1},
    {"GET /v2/deep" END "GET /api/none" END, {"404", "404"}, 2},
    {"GET /whose" END, {"X-Around: server\r\n\r\n/whose"}, 1},
    {"GET /api/v2/whose" END,
     {"outer\r\nX-Around: inner\r\nX-Around: v2\r\nX-Method: GET\r\nX-Method: "
      "GET\r\n\r\n/api/v2/whose"},
     1},
};

static void *ask_groups(void *unused) {
    uint16_t port = start();
    for (size_t i = 0; i < sizeof grouped / sizeof *grouped; i++)
        run_talk(port, &grouped[i], NULL);
    haft_http_server_stop(server);
    return unused;
}

static void add_groups(void) {
    haft_http_server_t *api = haft_http_server_group(server, "/api"),
                       *v1 = haft_http_server_group(api, "/v1"),
                       *v2 = haft_http_server_group(api, "/v2"),
                       *deep = haft_http_server_group(v2, "/deep");
    haft_http_server_get(server, "/plain", say_short, NULL);
    haft_http_server_get(api, "", say_short, NULL);
    haft_http_server_get(api, "/plain", say_short, NULL);
    haft_http_server_get(v1, "/bare", say_short, NULL);
    haft_http_server_get(deep, "/{name}", say_short, NULL);
    haft_http_server_use(deep, mark, "deep");
    haft_http_server_use(v2, mark, "v2");
    haft_http_server_use(api, mark, "inner");
    haft_http_server_use(api, mark, "outer");
    add_handlers(api, v2);
    haft_http_server_use(server, mark, "server");
    CHECK(haft_http_server_get(api, "/plain", say_short, NULL) == -EEXIST);
    CHECK(haft_http_server_get(api, "plain", say_short, NULL) == -EINVAL);
    CHECK(haft_http_server_get(haft_http_server_group(server, "bad"), "/a", say_short, NULL) ==
          -EINVAL);
    CHECK(haft_http_server_run(api) == -EINVAL);
}

static void add_routes(void) {
    haft_http_server_set_log(server, note, NULL);
    haft_http_server_get(server, "/news", send_news, NULL);
    haft_http_server_get(server, "/shapes", send_shapes, NULL);
    haft_http_server_get(server, "/sleep", sleep_long, NULL);
    haft_http_server_get(server, "/poll", poll_long, NULL);
    haft_http_server_get(server, "/short", say_short, NULL);
    haft_http_server_get(server, "/fail", fail_hard, NULL);
    haft_http_server_get(server, "/error", return_error, NULL);
}

/* With virtual time, and without. */
static void run_cases(void *(*const cases[])(void *), size_t count, size_t virtual_ones) {
    for (size_t i = 0; i < count; i++)
        simulate_seeds(cases[i]);
    for (size_t i = virtual_ones; i < count; i++)
        for (int threads = 1; threads <= 2; threads++)
            CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, cases[i], NULL) ==
                  0);
}

int main(int count, char **arguments) {
    setlocale(LC_ALL, ""); /* of locale.sh */
    if (count == 3 && strcmp(arguments[1], "serve") == 0)
        return serve_here(arguments[2]);
    void *(*const plain[])(void *) = {keep_events_alive, hear_events, leave_events};
    void *(*const with_client[])(void *) = {answer_watched, cancel_watched};
    news = haft_io_channel_new(20, 0);
    server = haft_http_server_new();
    add_routes();
    run_cases(plain, 3, 1);
    run_cases((void *(*const[])(void *)){log_accesses}, 1, 0);
    CHECK(haft_http_server_serve_debug_pages(server, "/debug") == 0);
    run_cases((void *(*const[])(void *)){count_requests}, 1, 0);
    haft_http_server_get(server, "/echo", echo_stream, NULL);
    CHECK(haft_http_server_on_connect(server, echo_stream, "tunnel") == 0);
    CHECK(haft_http_server_on_connect(server, echo_stream, "tunnel") == -EEXIST);
    run_cases((void *(*const[])(void *)){talk_streams}, 1, 0);
    know_clients();
    limit_clients();
    listen_everywhere();
    restart(arguments[0]);
    haft_http_server_use(server, haft_http_request_cancel_with_client, NULL);
    run_cases(with_client, 2, 0);
    add_groups();
    run_cases((void *(*const[])(void *)){ask_groups}, 1, 0);
    haft_http_server_free(server);
    haft_io_channel_free(news);
    return 0;
}
