/* SPDX-License-Identifier: MIT */
/*
 * HTTPS. `https chain.pem key.pem`, then: curl --cacert chain.pem https://localhost:8443/.
 * A third argument is another port. On SIGHUP the server reads the certificate again, for
 * connections that come then; it ends on SIGTERM.
 */
#include <haft/http.h>
#include <haft/tls.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static haft_http_server_t *server;
static haft_tls_context_t *tls;
static sigset_t signals;
static uint16_t port = 8443;

static int hello(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_format(request, 200, "Hello over %s\n",
                                   haft_tls_version(haft_http_request_tls(request)));
}

static void *reload_on_hangup(void *unused) {
    while (haft_io_signal_wait(&signals) == SIGHUP) {
        int code = haft_tls_reload(tls);
        fprintf(stderr, "%s\n", code == 0 ? "reloaded" : haft_tls_context_failure(tls));
    }
    haft_http_server_stop(server);
    return unused;
}

static void *serve(void *unused) {
    int listener = haft_io_listen_tcp("::", port, 0);
    if (listener < 0)
        haft_io_fail(listener, "cannot listen");
    haft_io_spawn(reload_on_hangup, NULL);
    int code = haft_http_server_serve(server, listener);
    if (code != 0)
        haft_io_fail(code, "cannot serve");
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: https CHAIN KEY [PORT]\n");
        return 2;
    }
    if (count > 3)
        port = (uint16_t)atoi(arguments[3]);
    tls = haft_tls_server_context();
    if (haft_tls_add_certificate(tls, arguments[1], arguments[2]) != 0) {
        fprintf(stderr, "%s\n", haft_tls_context_failure(tls));
        return 1;
    }
    server = haft_http_server_new();
    haft_http_server_get(server, "/", hello, NULL);
    haft_http_server_set_tls(server, tls);

    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    int code = haft_io_run(serve, NULL);
    haft_http_server_free(server);
    haft_tls_context_free(tls);
    return code != 0 && code != -ECANCELED;
}
