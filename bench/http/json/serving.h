/* SPDX-License-Identifier: MIT */
/* Code of both services in JSON: entries of a to-do list by jansson, the connections to the
   database, and the server. */
#ifndef HAFT_BENCH_JSON_SERVING_H
#define HAFT_BENCH_JSON_SERVING_H

#include <haft/http.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS = 8 };

static void *idle[CONNECTIONS]; /* the first `idle_ones` */
static size_t idle_ones = CONNECTIONS;
static haft_io_semaphore_t turns = {.count = CONNECTIONS};

static inline void *borrow(void) {
    haft_io_semaphore_acquire(&turns);
    return idle[--idle_ones];
}

static inline void give_back(void *const *connection) {
    idle[idle_ones++] = *connection;
    haft_io_semaphore_release(&turns);
}

/* Goes back when the handler that borrows it returns, or is unwound. */
#define BORROWED __attribute__((cleanup(give_back)))

static inline json_t *entry_of(long long id, const char *what) {
    return json_pack("{sI ss}", "id", (json_int_t)id, "what", what);
}

/* Takes the value; NULL: there is no such entry. */
static inline int answer_json(haft_http_request_t *request, json_t *value) {
    if (value == NULL)
        return haft_http_answer_text(request, 404, "no such entry\n");
    char *text = json_dumps(value, JSON_COMPACT);
    json_decref(value);
    int code = haft_http_answer(request, 200, "application/json", text, strlen(text));
    free(text);
    return code;
}

static inline int serve(haft_http_handler_t *list, haft_http_handler_t *find, const char *port) {
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_get(server, "/todo", list, NULL);
    haft_http_server_get(server, "/todo/{id}", find, NULL);
    return haft_http_server_run_with(
               &(haft_http_run_options_t){.host = "127.0.0.1", .port = (uint16_t)atoi(port)},
               server) != 0;
}

#endif
