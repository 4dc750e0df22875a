/* SPDX-License-Identifier: MIT */
/*
 * A bug that comes with certain data of another service. The shop tells what an order costs in all:
 * it asks the warehouse for the order's lines, such as "3 x 250", and adds them up. For one
 * customer's order it answers with an error, and nobody at the shop has that order's data.
 *
 *     kept_request http://warehouse.example requests 8080
 *
 * keeps each request that fails in the folder `requests`, with the warehouse's answer:
 *
 *     HAFT_IO_REPLAY=requests/request-....haft kept_request http://warehouse.example requests 8080
 *
 * has the handler answer it again, without port or warehouse, and haft-replay --as-test makes a
 * test of it. With a port alone, the program is the warehouse.
 */
#include <haft/http.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The warehouse ---- */

static int tell_lines(haft_http_request_t *request, void *unused) {
    (void)unused;
    bool is_gift = strcmp(haft_http_request_path(request, "order"), "7") == 0;
    return haft_http_answer_text(request, 200,
                                 is_gift ? "1 x 990\nwrapping\n" : "3 x 250\n1 x 990\n");
}

/* ---- The shop ---- */

typedef struct {
    haft_http_client_t *client;
    const char *warehouse;
} shop_t;

static int add_up(char *lines, long *sum) {
    *sum = 0;
    for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *times = strchr(line, 'x');
        if (times == NULL) /* a line that costs nothing: this is the bug */
            return -EINVAL;
        *sum += strtol(line, NULL, 10) * strtol(times + 1, NULL, 10);
    }
    return 0;
}

static int tell_sum(haft_http_request_t *request, void *argument) {
    const shop_t *shop = argument;
    HAFT_HTTP_SCOPED_REPLY haft_http_reply_t *reply = NULL;
    char url[256], *lines;
    long sum;
    snprintf(url, sizeof url, "%s/lines/%s", shop->warehouse,
             haft_http_request_path(request, "order"));
    haft_http_question_t question = {.url = url};
    int code = haft_http_client_ask(shop->client, &question, &reply);
    if (code != 0)
        return code;
    ssize_t size = haft_http_reply_body(reply, &lines);
    if (size < 0)
        return (int)size;
    code = add_up(lines, &sum);
    return code == 0 ? haft_http_answer_format(request, 200, "%ld\n", sum) : code;
}

int main(int count, char **arguments) {
    bool is_shop = count != 2;
    haft_http_server_t *server = haft_http_server_new();
    shop_t shop = {haft_http_client_new(), count > 1 ? arguments[1] : ""};
    if (is_shop)
        haft_http_server_get(server, "/orders/{order}", tell_sum, &shop);
    else
        haft_http_server_get(server, "/lines/{order}", tell_lines, NULL);
    haft_http_run_options_t options = {
        .host = "127.0.0.1",
        .port = (uint16_t)(count > 1 ? atoi(arguments[count - 1]) : 8080),
        .keep_requests = count > 3 ? arguments[2] : NULL};
    int code = haft_http_server_run_with(&options, server);
    haft_http_client_free(shop.client);
    haft_http_server_free(server);
    return code != 0;
}
