/* SPDX-License-Identifier: MIT */
/* How a server is run: what is called when it listens, its background, the time in which it reports
   that it is not ready, what systemd is told, signals, and a restart in a run of the program's. */
#include "check_http.h"

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/un.h>
#include <unistd.h>

static haft_http_server_t *server;
static char log_lines[1 << 14];

static void note(void *unused, const char *line) {
    (void)unused;
    strncat(log_lines, line, sizeof log_lines - strlen(log_lines) - 2);
    strcat(log_lines, "\n");
}

static bool has_logged(const char *words) {
    return strstr(log_lines, words) != NULL;
}

static uint16_t port_of_server(void) {
    uint16_t port;
    while ((port = haft_http_server_port(server)) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    return port;
}

/* All that comes up to the end of the stream; how many bytes. */
static size_t hear(int connection, char *heard, size_t room) {
    size_t size = 0;
    for (ssize_t got; (got = haft_io_read(connection, heard + size, room - 1 - size)) > 0;)
        size += (size_t)got;
    heard[size] = '\0';
    return size;
}

/* The status of GET on a connection of its own; 0: the server does not accept. */
static int ask(uint16_t port, const char *path) {
    char says[100], heard[1000];
    int status = 0;
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
    if (connection < 0)
        return 0;
    int size = snprintf(says, sizeof says, "GET %s" WITH("Connection: close"), path);
    haft_io_write_all(connection, says, (size_t)size);
    hear(connection, heard, sizeof heard);
    return sscanf(heard, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

/* ---- When it listens, and its background ---- */

static int begun_late, rounds, background_ended;
static int listening_result;
static int64_t time_to_begin = 10 * HAFT_IO_MILLISECOND;

static void *begin_late(void *unused) {
    haft_io_sleep(time_to_begin);
    begun_late++;
    return unused;
}

static int warm_up(haft_http_server_t *listening, void *argument) {
    CHECK(listening == server && argument == &listening_result);
    CHECK(haft_http_server_port(server) != 0 && !haft_http_server_is_stopping(server));
    haft_io_spawn(begin_late, NULL);
    return listening_result;
}

static void note_end(int *unused) {
    (void)unused;
    background_ended++;
}

static void *go_round(void *argument) {
    __attribute__((cleanup(note_end), unused)) int ends = 0;
    CHECK(begun_late == 1 && argument == &rounds);
    for (;;) {
        rounds++;
        haft_io_sleep(HAFT_IO_MILLISECOND);
    }
}

static void *fail_at_once(void *unused) {
    (void)unused;
    haft_io_fail(-EIO, "the mail is gone");
}

static int say_well(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, 200, "well");
}

static int say_late(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_sleep(HAFT_IO_SECOND / 10);
    return haft_http_answer_format(request, 200, "%d", background_ended);
}

static const haft_http_run_options_t *options;
static int served_code;

static void *serve_with_options(void *unused) {
    served_code = haft_http_server_serve_with(options, server);
    return unused;
}

static void start(const haft_http_run_options_t *how) {
    log_lines[0] = '\0';
    begun_late = rounds = background_ended = 0;
    served_code = 1;
    options = how;
    haft_io_spawn(serve_with_options, NULL);
}

static void wait_for_end(void) {
    while (served_code == 1)
        haft_io_sleep(HAFT_IO_MILLISECOND);
}

static const haft_http_run_options_t local = {.host = "127.0.0.1"};

static void *begin_in_order(void *unused) {
    start(&local);
    uint16_t port = port_of_server();
    CHECK(ask(port, "/ready") == 200 && begun_late == 1); /* it waited to be accepted */
    CHECK(has_logged("the mail is gone"));
    while (rounds < 3)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_tcp("127.0.0.1", port);
    static const char says[] = "GET /late" END;
    char heard[1000];
    CHECK(haft_io_write_all(connection, says, sizeof says - 1) == 0);
    haft_io_sleep(HAFT_IO_SECOND / 20);
    haft_http_server_stop(server);
    CHECK(haft_http_server_is_stopping(server));
    size_t got = hear(connection, heard, sizeof heard);
    CHECK(got > 0 && heard[got - 1] == '0'); /* its request still had it */
    wait_for_end();
    CHECK(served_code == 0 && background_ended == 1 && !haft_http_server_is_stopping(server));
    return unused;
}

static void *fail_to_begin(void *unused) {
    listening_result = -EACCES;
    start(&local);
    wait_for_end();
    CHECK(served_code == -EACCES && begun_late == 1 && rounds == 0);
    CHECK(has_logged("cannot serve: Permission denied"));
    listening_result = 0;
    return unused;
}

static void *stop_before_it_has_begun(void *unused) {
    time_to_begin = 1000 * HAFT_IO_SECOND;
    start(&local);
    port_of_server();
    haft_http_server_stop(server);
    wait_for_end();
    time_to_begin = 10 * HAFT_IO_MILLISECOND;
    CHECK(served_code == 0 && begun_late == 0 && rounds == 0);
    return unused;
}

/* ---- Not ready ---- */

static void *say_unready(void *unused) {
    static const haft_http_run_options_t drains = {.listen = "127.0.0.1:0",
                                                   .unready_time = HAFT_IO_SECOND / 2};
    start(&drains);
    uint16_t port = port_of_server();
    CHECK(ask(port, "/ready") == 200 && ask(port, "/well") == 200);
    int64_t told = haft_io_now();
    haft_http_server_stop(server);
    CHECK(ask(port, "/ready") == 503 && ask(port, "/well") == 200); /* it goes on */
    wait_for_end();
    CHECK(haft_io_now() - told >= HAFT_IO_SECOND / 2 && served_code == 0);
    CHECK(ask(port, "/ready") == 0);
    return unused;
}

/* ---- Options that are wrong ---- */

static void check_mistake(const haft_http_run_options_t *wrong, const char *words) {
    CHECK(haft_http_server_serve_with(wrong, server) == -EINVAL);
    if (strstr(haft_http_server_mistake(server), words) == NULL) {
        fprintf(stderr, "no %s in %s\n", words, haft_http_server_mistake(server));
        abort();
    }
}

static void *refuse_options(void *unused) {
    check_mistake(&(haft_http_run_options_t){.threads = 2}, "give them to haft_io_run_with");
    check_mistake(&(haft_http_run_options_t){.watchdog = 1}, "give them to haft_io_run_with");
    check_mistake(&(haft_http_run_options_t){.unready_time = -1}, "unready_time is negative");
    if (strcmp(haft_io_backend(), "simulation") != 0) {
        check_mistake(&(haft_http_run_options_t){.restart_signal = SIGUSR1},
                      "does not block the signal");
        check_mistake(&(haft_http_run_options_t){.stop_signals = true}, "pthread_sigmask");
    }
    return unused;
}

/* ---- What systemd is told ---- */

static int manager; /* the socket of a manager of the test's */

static int listen_as_manager(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(name);
    memcpy(address.sun_path, name, size);
    if (*name == '@')
        address.sun_path[0] = '\0';
    int made = haft_io_socket(AF_UNIX, SOCK_DGRAM, 0);
    CHECK(made >= 0 && bind(made, (struct sockaddr *)&address,
                            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)) == 0);
    setenv("NOTIFY_SOCKET", name, 1);
    return made;
}

/* The next word but those of the watchdog, which are counted. */
static const char *next_word(int *watchdog) {
    static char word[100];
    for (;;) {
        ssize_t size = haft_io_receive(manager, word, sizeof word - 1, 0);
        CHECK(size > 0);
        word[size] = '\0';
        if (strcmp(word, "WATCHDOG=1") != 0)
            return word;
        *watchdog += 1;
    }
}

static void *notify(void *name) {
    static const haft_http_run_options_t tells = {
        .host = "127.0.0.1", .notify = true, .unready_time = 20 * HAFT_IO_MILLISECOND};
    int watchdog = 0;
    manager = listen_as_manager(name);
    setenv("WATCHDOG_USEC", "2000", 1);
    unsetenv("WATCHDOG_PID");
    start(&tells);
    CHECK(strcmp(next_word(&watchdog), "READY=1") == 0 && begun_late == 1);
    haft_io_sleep(20 * HAFT_IO_MILLISECOND);
    CHECK(ask(port_of_server(), "/ready") == 200);
    haft_http_server_stop(server);
    CHECK(strcmp(next_word(&watchdog), "STOPPING=1") == 0 && watchdog > 2);
    wait_for_end();
    setenv("WATCHDOG_PID", "1", 1); /* another's */
    watchdog = 0;
    haft_io_close(manager);
    unlink(name);
    manager = listen_as_manager(name);
    start(&tells);
    CHECK(strcmp(next_word(&watchdog), "READY=1") == 0);
    haft_http_server_stop(server);
    CHECK(strcmp(next_word(&watchdog), "STOPPING=1") == 0 && watchdog == 0);
    wait_for_end();
    CHECK(!has_logged("service manager"));
    haft_io_close(manager);
    unlink(name);
    return NULL;
}

static void *notify_nobody(void *name) {
    static const haft_http_run_options_t tells = {.host = "127.0.0.1", .notify = true};
    setenv("NOTIFY_SOCKET", name, 1);
    unsetenv("WATCHDOG_USEC");
    start(&tells);
    CHECK(ask(port_of_server(), "/ready") == 200);
    haft_http_server_stop(server);
    wait_for_end();
    CHECK(served_code == 0 && has_logged("cannot tell the service manager READY=1 at"));
    return NULL;
}

/* Where the options do not ask for it, and in a simulation, systemd is told nothing. */
static void *stay_silent(void *how) {
    char unused_word[10];
    manager = listen_as_manager("@haft-test-silent");
    if (how == NULL)
        start(&local);
    else
        start(&(haft_http_run_options_t){.host = "127.0.0.1"});
    CHECK(ask(port_of_server(), "/ready") == 200);
    haft_http_server_stop(server);
    wait_for_end();
    CHECK(haft_io_receive(manager, unused_word, sizeof unused_word, MSG_DONTWAIT) == -EAGAIN);
    haft_io_close(manager);
    return NULL;
}

static void tell_systemd(void) {
    char path[] = "/tmp/haft_notify_XXXXXX", name[100];
    CHECK(mkdtemp(path) != NULL);
    snprintf(name, sizeof name, "%s/socket", path);
    CHECK(haft_io_run(notify, name) == 0);
    snprintf(name, sizeof name, "@haft-test-%d", getpid());
    CHECK(haft_io_run(notify, name) == 0);
    static char too_long[200];
    memset(too_long, '/', sizeof too_long - 1);
    char *nobody[] = {"/tmp/haft-no-such-socket", "@haft-no-such-name", "nothing", "@", too_long};
    for (size_t i = 0; i < sizeof nobody / sizeof *nobody; i++)
        CHECK(haft_io_run(notify_nobody, nobody[i]) == 0);
    CHECK(haft_io_run(stay_silent, NULL) == 0);
    CHECK(rmdir(path) == 0);
    unsetenv("NOTIFY_SOCKET");
}

/* ---- Signals, and a restart, in a run of the program's ---- */

static void *stop_by_signal(void *unused) {
    static const haft_http_run_options_t with_signals = {.host = "127.0.0.1", .stop_signals = true};
    start(&with_signals);
    CHECK(ask(port_of_server(), "/ready") == 200);
    kill(getpid(), SIGTERM);
    wait_for_end();
    CHECK(served_code == 0 && has_logged("told to stop"));
    return unused;
}

/* The second signal ends the time in which it is not ready. */
static void *stop_by_two_signals(void *unused) {
    static const haft_http_run_options_t with_signals = {
        .host = "127.0.0.1", .stop_signals = true, .unready_time = HAFT_IO_FOREVER};
    start(&with_signals);
    uint16_t port = port_of_server();
    CHECK(ask(port, "/ready") == 200);
    kill(getpid(), SIGTERM);
    while (ask(port, "/ready") != 503)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    kill(getpid(), SIGTERM);
    wait_for_end();
    CHECK(served_code == 0);
    return unused;
}

static void use_signals(void) {
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    for (int threads = 1; threads <= 2; threads++) {
        haft_io_run_options_t how = {.threads = threads};
        CHECK(haft_io_run_with(&how, stop_by_signal, NULL) == 0);
        CHECK(haft_io_run_with(&how, stop_by_two_signals, NULL) == 0);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* `test_running serve PATH` serves at a Unix socket, and restarts itself when it is asked to. */
static int restart_it(haft_http_request_t *request, void *unused) {
    (void)unused;
    int code = haft_http_server_restart(server);
    return code != 0 ? code : haft_http_answer_format(request, 200, "%d", getpid());
}

static int quit(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_http_server_stop(server);
    return haft_http_answer_format(request, 200, "%d", getpid());
}

static void *serve_path(void *place) {
    haft_http_run_options_t how = {
        .listen = place, .notify = true, .unready_time = 50 * HAFT_IO_MILLISECOND};
    return (void *)(intptr_t)haft_http_server_serve_with(&how, server);
}

static int serve_here(char *place) {
    server = haft_http_server_new();
    haft_http_server_get(server, "/restart", restart_it, NULL);
    haft_http_server_get(server, "/quit", quit, NULL);
    int code = haft_io_run(serve_path, place);
    haft_http_server_free(server);
    return code != 0;
}

static int ask_process(const char *path, const char *what) {
    char says[100], heard[1000];
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_connect_unix(path);
    CHECK(connection >= 0);
    int size = snprintf(says, sizeof says, "GET %s" WITH("Connection: close"), what);
    CHECK(haft_io_write_all(connection, says, (size_t)size) == 0);
    hear(connection, heard, sizeof heard);
    const char *body = strstr(heard, "\r\n\r\n");
    CHECK(body != NULL && strncmp(heard, "HTTP/1.1 200", 12) == 0);
    return atoi(body + 4);
}

static void *restart_by_serve(void *program) {
    char folder[] = "/tmp/haft_running_XXXXXX", path[100], place[120], name[100];
    int watchdog = 0, status = 0;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/socket", folder);
    snprintf(place, sizeof place, "unix:%s", path);
    snprintf(name, sizeof name, "@haft-test-restart-%d", getpid());
    manager = listen_as_manager(name);
    setenv("WATCHDOG_USEC", "2000", 1);
    const char *arguments[] = {program, "serve", place, NULL};
    pid_t first = haft_io_process_start(arguments, NULL);
    CHECK(first > 0 && strcmp(next_word(&watchdog), "READY=1") == 0);
    CHECK(ask_process(path, "/restart") == first);
    CHECK(strcmp(next_word(&watchdog), "READY=1") == 0); /* the new one */
    const char *word = next_word(&watchdog);
    CHECK(strncmp(word, "MAINPID=", 8) == 0);
    pid_t second = atoi(word + 8);
    CHECK(second != first && haft_io_process_wait(first, &status) == 0 && status == 0);
    char telling[20];
    while (haft_io_receive(manager, telling, sizeof telling, MSG_DONTWAIT) > 0)
        continue;
    CHECK(haft_io_receive(manager, telling, sizeof telling, 0) ==
          10); /* the new one's WATCHDOG=1 */
    CHECK(ask_process(path, "/quit") == second);
    CHECK(strcmp(next_word(&watchdog), "STOPPING=1") == 0); /* not the first one's */
    while (access(path, F_OK) == 0)
        haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_close(manager);
    CHECK(rmdir(folder) == 0);
    return NULL;
}

/* ---- */

static void add_all(void) {
    server = haft_http_server_new();
    haft_http_server_set_log(server, note, NULL);
    CHECK(haft_http_server_serve_readiness(server, "/ready") == 0);
    haft_http_server_get(server, "/well", say_well, NULL);
    haft_http_server_get(server, "/late", say_late, NULL);
    haft_http_server_on_listening(server, warm_up, &listening_result);
    CHECK(haft_http_server_add_background(server, "rounds", go_round, &rounds) == 0);
    CHECK(haft_http_server_add_background(server, "mail", fail_at_once, NULL) == 0);
    CHECK(haft_http_server_add_background(server, "none", NULL, NULL) == -EINVAL);
    CHECK(haft_http_server_add_background(haft_http_server_group(server, "/g"), "none", go_round,
                                          NULL) == -EINVAL);
}

int main(int count, char **arguments) {
    if (count == 3 && strcmp(arguments[1], "serve") == 0)
        return serve_here(arguments[2]);
    void *(*const cases[])(void *) = {begin_in_order, fail_to_begin, stop_before_it_has_begun,
                                      say_unready, refuse_options};
    add_all();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        simulate_seeds(cases[i]);
        for (int threads = 1; threads <= 2; threads++)
            CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, cases[i], NULL) ==
                  0);
    }
    tell_systemd();
    use_signals();
    CHECK(haft_io_run(restart_by_serve, arguments[0]) == 0);
    haft_http_server_free(server);
    return 0;
}
