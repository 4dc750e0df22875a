/* SPDX-License-Identifier: MIT */
/* A server that answers before a body was read, while it comes, or behind it, for trying clients by
   hand: `early PORT`, then ask_httpx.py. early.go and early.mjs are the same in Go and for Node. */
#include <haft/http.h>

#include <stdlib.h>

static int refuse(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_text(request, 401, "refused");
}

static int read_part(haft_http_request_t *request, void *unused) {
    char bytes[1000];
    (void)unused;
    ssize_t got = haft_http_request_read(request, bytes, sizeof bytes);
    return got < 0 ? (int)got : haft_http_answer_text(request, 403, "a part was enough");
}

static int read_all(haft_http_request_t *request, void *unused) {
    char bytes[16384];
    uint64_t size = 0;
    ssize_t got;
    (void)unused;
    haft_http_request_limit_body(request, UINT64_MAX);
    while ((got = haft_http_request_read(request, bytes, sizeof bytes)) > 0)
        size += (uint64_t)got;
    return got < 0 ? (int)got
                   : haft_http_answer_format(request, 200, "%llu", (unsigned long long)size);
}

int main(int count, char **arguments) {
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_post(server, "/refuse", refuse, NULL);
    haft_http_server_post(server, "/part", read_part, NULL);
    haft_http_server_post(server, "/all", read_all, NULL);
    uint16_t port = count > 1 ? (uint16_t)atoi(arguments[1]) : 8080;
    int code = haft_http_server_run_with(
        &(haft_http_run_options_t){.host = "127.0.0.1", .port = port}, server);
    haft_http_server_free(server);
    return code != 0;
}
