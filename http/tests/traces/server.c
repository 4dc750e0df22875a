/* SPDX-License-Identifier: MIT */
/* Traced by run.sh: a server that a client asks for a user, for a missing page, in HTTP/1, and with
   bytes that are no request. */
#include "../check_http.h"

static int greet(haft_http_request_t *request, void *unused) {
    (void)unused;
    haft_io_sleep(HAFT_IO_MILLISECOND);
    return haft_http_answer_format(request, 200, "Hello, %s!\n",
                                   haft_http_request_path(request, "name"));
}

static void *ask(void *argument) {
    haft_http_server_t *server = argument;
    static const char requests[] =
        "GET /users/ada?page=1 HTTP/1.1\r\nHost: a\r\n"
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n"
        "GET /users/grace HTTP/1.1\r\nHost: a\r\n\r\n"
        "PUT /users/grace HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
        "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
        "This is none.\r\n\r\n";
    char heard[4096];
    uint16_t port = start_server(server);
    say_and_hear(port, requests, sizeof requests - 1, false, heard, sizeof heard);
    CHECK(strstr(heard, "Hello, ada!") != NULL && strstr(heard, "Hello, grace!") != NULL);
    haft_http_server_stop(server);
    return NULL;
}

int main(void) {
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_get(server, "/users/{name}", greet, NULL);
    haft_http_server_trace_requests(server);
    int code = haft_io_run(ask, server);
    haft_http_server_free(server);
    return code != 0;
}
