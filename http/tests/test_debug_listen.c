/* SPDX-License-Identifier: MIT */
/* Pages for the operator on a thread of their own: they are answered while a task holds the only
   thread of the run, and name that task. */
#include "check_http.h"

#include <pthread.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/un.h>
#include <unistd.h>

static haft_http_server_t *server;
static haft_io_event_t ends;
static atomic_bool is_holding, is_released;
static char folder[] = "/tmp/haft_debug_XXXXXX", path[100], place[120], log_lines[1 << 12];

static void note(void *unused, const char *line) {
    (void)unused;
    strncat(log_lines, line, sizeof log_lines - strlen(log_lines) - 1);
}

/* ---- The service ---- */

static int wait_long(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_event_wait(&ends);
    return haft_http_answer_text(request, 200, "waited");
}

/* Neither waits nor yields. */
static int hold(haft_http_request_t *request, void *unused) {
    (void)unused;
    atomic_store(&is_holding, true);
    while (!atomic_load(&is_released))
        usleep(1000);
    haft_io_event_set(&ends);
    return haft_http_answer_text(request, 200, "held");
}

/* ---- A thread that asks by itself ---- */

static int connect_to_path(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
        usleep(1000);
    return connection;
}

static int connect_to_port(void) {
    int port;
    while ((port = haft_http_server_port(server)) == 0)
        usleep(1000);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(connection, (struct sockaddr *)&address, sizeof address) == 0);
    return connection;
}

static void say(int connection, const char *says) {
    CHECK(write(connection, says, strlen(says)) == (ssize_t)strlen(says));
}

static const char *hear(int connection) {
    static char heard[1 << 17];
    size_t size = 0;
    for (ssize_t got; (got = read(connection, heard + size, sizeof heard - 1 - size)) > 0;)
        size += (size_t)got;
    heard[size] = '\0';
    close(connection);
    return heard;
}

static const char *ask_for_tasks(void) {
    int connection = connect_to_path();
    say(connection, "GET /debug/tasks" WITH("Connection: close"));
    return hear(connection);
}

static void *ask(void *unused) {
    int waiting = connect_to_port(), holding = connect_to_port();
    say(waiting, "GET /wait" WITH("Connection: close"));
    while (strstr(ask_for_tasks(), "task 'GET /wait' waits for: an event") == NULL)
        usleep(1000);
    say(holding, "GET /hold" WITH("Connection: close"));
    while (!atomic_load(&is_holding))
        usleep(1000);
    for (int i = 0; i < 3; i++) {
        const char *page = ask_for_tasks();
        CHECK(strstr(page, "200 OK") != NULL);
        CHECK(strstr(page, "task 'GET /hold' has thread ") != NULL);
        CHECK(strstr(page, "task 'GET /wait' waits for: an event") != NULL);
        CHECK(strstr(page, "scope 'HTTP server'") != NULL);
    }
    atomic_store(&is_released, true);
    CHECK(strstr(hear(holding), "\r\n\r\nheld") != NULL);
    CHECK(strstr(hear(waiting), "\r\n\r\nwaited") != NULL);
    haft_http_server_stop(server);
    return unused;
}

static void look_while_held(int threads) {
    pthread_t asking;
    atomic_store(&is_holding, false);
    atomic_store(&is_released, false);
    haft_io_event_clear(&ends);
    haft_http_run_options_t options = {
        .host = "127.0.0.1", .threads = threads, .debug_listen = place};
    CHECK(pthread_create(&asking, NULL, ask, NULL) == 0);
    CHECK(haft_http_server_run_with(&options, server) == 0);
    pthread_join(asking, NULL);
    CHECK(access(path, F_OK) != 0);
}

/* ---- Where it cannot be had ---- */

static void *refuse(void *unused) {
    haft_http_run_options_t options = {.host = "127.0.0.1", .debug_listen = place};
    CHECK(haft_http_server_serve_with(&options, server) == -EINVAL);
    CHECK(strstr(haft_http_server_mistake(server), "debug_listen needs a run that is observed") !=
          NULL);
    return unused;
}

static void *stop_soon(void *unused) {
    while (haft_http_server_port(server) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_http_server_stop(server);
    return unused;
}

/* A place that is in use keeps nobody from serving; nor does a simulation. */
static void *serve_without(void *unused) {
    haft_http_run_options_t options = {.host = "127.0.0.1", .debug_listen = place};
    haft_io_spawn(stop_soon, NULL);
    CHECK(haft_http_server_serve_with(&options, server) == 0);
    return unused;
}

static void *occupy(void *unused) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_unix(path, 0);
    CHECK(listener >= 0);
    serve_without(NULL);
    unlink(path);
    return unused;
}

static void *see_nothing(void *unused) {
    CHECK(haft_io_dump_run(haft_io_run_scope(), NULL, STDERR_FILENO) == -ENOTSUP);
    return unused;
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(place, sizeof place, "unix:%s", path);
    server = haft_http_server_new();
    haft_http_server_set_log(server, note, NULL);
    haft_http_server_get(server, "/wait", wait_long, NULL);
    haft_http_server_get(server, "/hold", hold, NULL);
    for (int threads = 1; threads <= 2; threads++)
        look_while_held(threads);
    haft_io_run_options_t observed = {.threads = 1, .observed = true};
    CHECK(haft_io_run(refuse, NULL) == 0);
    CHECK(haft_io_run(see_nothing, NULL) == 0);
    CHECK(haft_io_run_with(&observed, occupy, NULL) == 0);
    simulate_seeds(serve_without);
    place[0] = '\0';
    CHECK(haft_http_server_run_with(
              &(haft_http_run_options_t){.host = "127.0.0.1", .debug_listen = place}, server) ==
          -EINVAL);
    haft_http_server_free(server);
    CHECK(rmdir(folder) == 0);
    return 0;
}
