/* SPDX-License-Identifier: MIT */
/* A to-do list: JSON by jansson, kept by SQLite. `todo FILE PORT`, then
   curl localhost:8080/todo --json '{"what": "tea"}' and curl localhost:8080/todo */
#include <haft/http.h>

#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sqlite3 *database;

typedef struct {
    const char *text;
    bool one;         /* row is expected */
    const char *what; /* ? of it */
    json_t **rows;    /* what it has returned */
    int code;
} query_t;

static void run(void *argument) {
    query_t *query = argument;
    sqlite3_stmt *statement;
    query->code = sqlite3_prepare_v2(database, query->text, -1, &statement, NULL);
    if (query->code != SQLITE_OK)
        return;
    sqlite3_bind_text(statement, 1, query->what, -1, SQLITE_STATIC);
    json_t *rows = *query->rows = json_array();
    while (sqlite3_step(statement) == SQLITE_ROW)
        json_array_append_new(rows, json_pack("{sI ss*}", "id",
                                              (json_int_t)sqlite3_column_int64(statement, 0),
                                              "what", sqlite3_column_text(statement, 1)));
    query->code = sqlite3_finalize(statement); /* the error of what has failed above */
}

static void forget(json_t *const *value) {
    json_decref(*value);
}

/* Answers with the rows, or with the one row; 404 if there is none. */
static int answer(haft_http_request_t *request, int status, query_t query) {
    __attribute__((cleanup(forget))) json_t *rows = NULL;
    query.rows = &rows;
    int code = haft_io_call_blocking(run, &query); /* SQLite waits for the disk */
    if (code != 0)
        return code;
    if (query.code != SQLITE_OK)
        return haft_http_request_note_failure(request, sqlite3_errstr(query.code)), -EIO;
    const json_t *value = query.one ? json_array_get(rows, 0) : rows;
    if (value == NULL)
        return haft_http_answer_text(request, 404, "no such entry\n");
    char *text = json_dumps(value, JSON_COMPACT);
    code = haft_http_answer(request, status, "application/json", text, strlen(text));
    free(text);
    return code;
}

static int list(haft_http_request_t *request, void *unused) {
    (void)unused;
    return answer(request, 200, (query_t){.text = "select id, what from todo"});
}

static int add(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    ssize_t size = haft_http_request_body(request, &body);
    if (size < 0)
        return (int)size;
    query_t query = {.text = "insert into todo (what) values (?) returning id, what", .one = true};
    json_error_t error = {.text = ""};
    __attribute__((cleanup(forget))) json_t *value = json_loadb(body, (size_t)size, 0, &error);
    if (value == NULL || json_unpack_ex(value, &error, 0, "{ss}", "what", &query.what) != 0)
        return haft_http_answer_text(request, 400, error.text);
    return answer(request, 201, query);
}

static int drop(haft_http_request_t *request, void *unused) {
    (void)unused;
    query_t query = {.text = "delete from todo where id = ? returning id, what", .one = true};
    query.what = haft_http_request_path(request, "id");
    return answer(request, 200, query);
}

int main(int count, char **arguments) {
    if (sqlite3_open(count > 1 ? arguments[1] : "todo.db", &database) != SQLITE_OK ||
        sqlite3_exec(database, "create table if not exists todo (id integer primary key, what)",
                     NULL, NULL, NULL) != SQLITE_OK)
        return fprintf(stderr, "%s\n", sqlite3_errmsg(database)), 1;
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_get(server, "/todo", list, NULL);
    haft_http_server_post(server, "/todo", add, NULL);
    haft_http_server_delete(server, "/todo/{id}", drop, NULL);
    haft_http_run_options_t how = {.port = count > 2 ? (uint16_t)atoi(arguments[2]) : 8080};
    int code = haft_http_server_run_with(&how, server);
    haft_http_server_free(server);
    sqlite3_close(database);
    return code != 0;
}
