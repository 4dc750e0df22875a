/* SPDX-License-Identifier: MIT */
/* `haft PORT`: the answer of load.c by libhaft-http, with its default limits but that of
   connections. HAFT_IO_BACKEND chooses the back end, THREADS is the number of threads. */
#include <haft/http.h>

#include <stdlib.h>
#include <string.h>

static int answer(haft_http_request_t *request, void *body) {
    return haft_http_answer(request, 200, "text/plain", body, 1024);
}

int main(int count, char **arguments) {
    static char body[1024];
    memset(body, 'x', sizeof body);
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_set_limits(server, &(haft_http_limits_t){.connections = 20000});
    haft_http_server_get(server, "/bench", answer, body);
    const char *threads = getenv("THREADS");
    haft_http_run_options_t options = {.host = "127.0.0.1",
                                       .threads = threads != NULL ? atoi(threads) : 1,
                                       .port = (uint16_t)atoi(arguments[count - 1])};
    return haft_http_server_run_with(&options, server) != 0;
}
