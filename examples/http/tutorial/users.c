/* SPDX-License-Identifier: MIT */
/* docs/http.md's tutorial in C: an effect that a test handles, or middleware. */
#include <haft/http.h>

#include <stdio.h>

HAFT_EFFECT(current_user, const char *, {});

static void greet(char *text, size_t size) {
    snprintf(text, size, "Hello, %s", HAFT_PERFORM(current_user));
}

static int greet_user(haft_http_request_t *request, void *unused) {
    char text[100];
    (void)unused;
    greet(text, sizeof text);
    return haft_http_answer_text(request, 200, text);
}

static const char *on_current_user(void *name, HAFT_PAYLOAD(current_user) * payload) {
    (void)payload;
    return name;
}
HAFT_HANDLER(user, NULL, HAFT_TAIL(current_user, on_current_user));

typedef struct {
    haft_http_next_t *next;
    haft_http_request_t *request;
} inner_t;

static void *call_inner(void *argument) {
    inner_t *inner = argument;
    return (void *)(intptr_t)inner->next->call(inner->next, inner->request);
}

static int with_user(haft_http_request_t *request, haft_http_next_t *next, void *unused) {
    const char *name = haft_http_request_header(request, "X-User");
    inner_t inner = {next, request};
    (void)unused;
    if (name == NULL)
        return haft_http_answer_text(request, 401, "who are you?");
    return (int)(intptr_t)haft_handle(&user, (void *)name, call_inner, &inner);
}

static void *test_greet(void *unused) {
    char text[100];
    greet(text, sizeof text);
    puts(text);
    return unused;
}

static void *serve(void *server) {
    haft_http_server_serve(server, haft_io_listen_tcp("127.0.0.1", 80, 0));
    return NULL;
}

static void *test_whole(void *server) {
    haft_io_spawn(serve, server);
    haft_io_sleep(HAFT_IO_SECOND);
    haft_http_client_t *client = haft_http_client_new();
    haft_http_header_t ada = {"X-User", "Ada"};
    for (size_t count = 0; count < 2; count++) {
        HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
        char *body;
        haft_http_question_t question = {
            .url = "http://localhost/", .headers = &ada, .header_count = count};
        if (haft_http_client_ask(client, &question, &reply) == 0 &&
            haft_http_reply_body(reply, &body) >= 0)
            puts(body);
    }
    haft_http_client_free(client);
    haft_http_server_stop(server);
    return NULL;
}

int main(void) {
    haft_handle(&user, "Eve", test_greet, NULL);
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_get(server, "/", greet_user, NULL);
    haft_http_server_use(server, with_user, NULL);
    haft_io_simulate_with(&(haft_io_simulation_options_t){.network = true}, test_whole, server);
    haft_http_server_free(server);
}
