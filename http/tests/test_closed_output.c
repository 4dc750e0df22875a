/* SPDX-License-Identifier: MIT */
/* The access log goes to standard output. A service goes on when the reader of that has gone. */
#include "check_http.h"

#include <signal.h>
#include <unistd.h>

static haft_http_server_t *server;

static int greet(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, 200, "hello");
}

static void *ask_and_stop(void *unused) {
    static const char question[] = "GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    for (int i = 0; i < 3; i++) {
        char heard[1000];
        say_and_hear(haft_http_server_port(server), question, sizeof question - 1, true, heard,
                     sizeof heard);
        CHECK(strncmp(heard, "HTTP/1.1 200 ", 13) == 0);
    }
    haft_http_server_stop(server);
    return unused;
}

int main(void) {
    int ends[2];
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0 && dup2(ends[1], STDOUT_FILENO) >= 0);
    for (int threads = 1; threads <= 2; threads++) {
        server = haft_http_server_new();
        haft_http_server_get(server, "/", greet, NULL);
        haft_http_server_set_access_log(server, HAFT_HTTP_LOG_COMBINED, NULL, NULL);
        haft_http_server_add_background(server, "ask", ask_and_stop, NULL);
        CHECK(haft_http_server_run_with(
                  &(haft_http_run_options_t){.listen = "127.0.0.1:0", .threads = threads},
                  server) == 0);
        haft_http_server_free(server);
    }
    /* To the program the signal is what it was. */
    sigset_t signals;
    CHECK(sigpending(&signals) == 0 && sigismember(&signals, SIGPIPE) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &signals) == 0);
    CHECK(sigismember(&signals, SIGPIPE) == 0);
    return 0;
}
