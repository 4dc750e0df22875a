/* SPDX-License-Identifier: MIT */
/* A web server and its clients are recorded and replayed: each answer has the time at which it was
   given, and by which draw of chance, and all come in the same order again. Connections rest
   between two requests, some are cut, and the server is told to stop. */
#include "check_http.h"

#include <sys/resource.h>
#include <unistd.h>

enum { REQUESTS = 3, MOST = 500 };
static int clients = MOST; /* as many as there are descriptors for */
static char text[1 << 20];
static size_t text_size;
static uint16_t port;

static int answer(haft_http_request_t *request, void *unused) {
    (void)unused;
    uint32_t drawn;
    char body[64];
    CHECK(haft_io_random(&drawn, sizeof drawn) == 0);
    if (drawn % 8 == 0)
        haft_io_sleep(drawn % 3 * HAFT_IO_MILLISECOND);
    int size = snprintf(body, sizeof body, "%u at %lld", (unsigned)drawn, (long long)haft_io_now());
    return haft_http_answer(request, 200, "text/plain", body, (size_t)size);
}

static void *ask(void *argument) {
    static const char question[] = "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
    CHECK(connection >= 0);
    for (int i = 0; i < REQUESTS; i++) {
        char heard[1024];
        haft_io_write_all(connection, question, sizeof question - 1);
        ssize_t got = haft_io_read(connection, heard, sizeof heard - 1);
        CHECK(got > 0);
        heard[got] = '\0';
        const char *body = strstr(heard, "\r\n\r\n");
        int size = snprintf(text + text_size, sizeof text - text_size, "%d: %s\n",
                            (int)(intptr_t)argument, body != NULL ? body + 4 : "nothing");
        text_size += (size_t)size;
    }
    return NULL;
}

static void *serve_and_ask(void *unused) {
    haft_http_server_t *server = haft_http_server_new();
    CHECK(haft_http_server_get(server, "/", answer, NULL) == 0);
    haft_http_server_set_limits(server, &(haft_http_limits_t){.connections = 2 * MOST});
    port = start_server(server);
    haft_io_task_t *tasks[MOST];
    for (int i = 0; i < clients; i++)
        tasks[i] = haft_io_async(ask, (void *)(intptr_t)i);
    for (int i = 0; i < clients; i++)
        haft_io_join(tasks[i], NULL);
    haft_http_server_stop(server);
    /* Its last connections end before it is freed: with this scope. */
    (void)unused;
    return server;
}
static haft_http_server_t *last;
static void *run_all(void *unused) {
    void *server = NULL;
    CHECK(haft_io_scope(serve_and_ask, unused, &server) == 0);
    last = server;
    return NULL;
}

static int run(const haft_io_run_options_t *options) {
    text_size = 0;
    int code = haft_io_run_with(options, run_all, NULL);
    haft_http_server_free(last);
    return code;
}

int main(void) {
    static char first[sizeof text], file[64];
    struct rlimit descriptors;
    if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0 && descriptors.rlim_cur < 3 * MOST)
        clients = (int)descriptors.rlim_cur / 3;
    const char *folder = getenv("TMPDIR");
    snprintf(file, sizeof file, "%.30s/haft-http-replay.%d", folder != NULL ? folder : "/tmp",
             (int)getpid());
    CHECK(run(&(haft_io_run_options_t){.threads = 1, .record = file}) == 0);
    memcpy(first, text, text_size + 1);
    for (int i = 0; i < 3; i++) {
        CHECK(run(&(haft_io_run_options_t){.threads = 1, .replay = file}) == 0);
        CHECK(strcmp(first, text) == 0);
    }
    unlink(file);
    return 0;
}
