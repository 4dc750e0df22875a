/* SPDX-License-Identifier: MIT */
/*
 * A server with a handler that waits for an event which never comes, a connection that is idle, and
 * one that has sent half a head. Ends by abort() when all are where they are to be.
 */
#include <haft/http.h>

#include <stdlib.h>
#include <string.h>

static haft_io_event_t paid;
static int ordered;

static int order(haft_http_request_t *request, void *argument) {
    (void)argument;
    ordered = 1;
    haft_io_event_wait(&paid);
    return haft_http_answer_format(request, 200, "thank you\n");
}

static int greet(haft_http_request_t *request, void *argument) {
    (void)argument;
    return haft_http_answer_format(request, 200, "hello\n");
}

static int connect_and_send(int port, const char *text) {
    int connection = haft_io_connect_tcp("127.0.0.1", port);
    if (connection < 0 || haft_io_write_all(connection, text, strlen(text)) < 0)
        abort();
    return connection;
}

static void *visit(void *argument) {
    haft_http_server_t *server = argument;
    char answer[500];
    while (haft_http_server_port(server) == 0)
        haft_io_yield();
    int port = haft_http_server_port(server);
    haft_io_read(connect_and_send(port, "GET / HTTP/1.1\r\nHost: shop\r\n\r\n"), answer,
                 sizeof answer);
    connect_and_send(port, "GET /late HTTP/1.1\r\nHo");
    connect_and_send(port,
                     "POST /order?number=7 HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\n\r\n");
    while (ordered == 0)
        haft_io_yield();
    haft_io_sleep(20 * HAFT_IO_MILLISECOND);
    abort();
}

static void *serve(void *argument) {
    haft_http_server_t *server = haft_http_server_new();
    int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    haft_http_server_get(server, "/", greet, NULL);
    haft_http_server_post(server, "/order", order, NULL);
    haft_io_spawn(visit, server);
    haft_http_server_serve(server, listener);
    return argument;
}

int main(void) {
    return haft_io_run(serve, NULL);
}
