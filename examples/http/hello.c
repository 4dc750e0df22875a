/* SPDX-License-Identifier: MIT */
/* Hello: the first web server. `hello`, then: curl http://localhost:8080/hello/you. Its argument
   is another port. */
#include <haft/http.h>

#include <stdlib.h>

static int hello(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_format(request, 200, "Hello, %s\n",
                                   haft_http_request_path(request, "name"));
}

int main(int count, char **arguments) {
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_get(server, "/hello/{name}", hello, NULL);
    haft_http_run_options_t options = {.port = count > 1 ? (uint16_t)atoi(arguments[1]) : 8080};
    int code = haft_http_server_run_with(&options, server);
    haft_http_server_free(server);
    return code != 0;
}
