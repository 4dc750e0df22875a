/* SPDX-License-Identifier: MIT */
/* docs/http.md's tutorial in C: handlers, and a client of the same run. */
#include <haft/http.h>

#include <stdio.h>

static int hello(haft_http_request_t *request, void *unused) {
    (void)unused;
    return haft_http_answer_format(request, 200, "Hello, %s",
                                   haft_http_request_path(request, "name"));
}

static int add(haft_http_request_t *request, void *sum) {
    const char *number = haft_http_request_form(request, "number");
    int value;
    if (number == NULL || sscanf(number, "%d", &value) != 1)
        return haft_http_answer_text(request, 400, "number=..., please");
    *(int *)sum += value;
    return haft_http_answer_format(request, 200, "%d", *(int *)sum);
}

static void *serve(void *server) {
    haft_http_server_serve(server, haft_io_listen_tcp("127.0.0.1", 0, 0));
    return NULL;
}

static void ask(haft_http_client_t *client, haft_http_question_t question) {
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    char *body;
    if (haft_http_client_ask(client, &question, &reply) == 0 &&
        haft_http_reply_body(reply, &body) >= 0)
        printf("%d: %s\n", haft_http_reply_status(reply), body);
}

static void *talk(void *server) {
    haft_io_spawn(serve, server);
    while (haft_http_server_port(server) == 0)
        haft_io_yield();
    char hello_url[64], add_url[64];
    snprintf(hello_url, sizeof hello_url, "http://localhost:%d/hello/J%%C3%%B6rg",
             haft_http_server_port(server));
    snprintf(add_url, sizeof add_url, "http://localhost:%d/add", haft_http_server_port(server));
    haft_http_client_t *client = haft_http_client_new();
    ask(client, (haft_http_question_t){.url = hello_url});
    ask(client, (haft_http_question_t){.url = add_url,
                                       .type = "application/x-www-form-urlencoded",
                                       .body = "number=7",
                                       .size = 8});
    haft_http_client_free(client);
    haft_http_server_stop(server);
    return NULL;
}

int main(void) {
    int sum = 0;
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_get(server, "/hello/{name}", hello, NULL);
    haft_http_server_post(server, "/add", add, &sum);
    int code =
        haft_io_simulate_with(&(haft_io_simulation_options_t){.network = true}, talk, server);
    haft_http_server_free(server);
    return code != 0;
}
