/* SPDX-License-Identifier: MIT */
/* `json_sqlite FILE PORT`: the to-do list of examples/http/todo.c for reading, with statements that
   are prepared once for each connection. Threads of the pool call SQLite. */
#include "serving.h"

#include <sqlite3.h>

typedef struct {
    sqlite3 *database;
    sqlite3_stmt *all, *one;
} store_t;

typedef struct {
    sqlite3_stmt *statement;
    long long id; /* 0: all */
    json_t *rows;
} query_t;

static void run(void *argument) {
    query_t *query = argument;
    query->rows = json_array();
    if (query->id != 0)
        sqlite3_bind_int64(query->statement, 1, query->id);
    while (sqlite3_step(query->statement) == SQLITE_ROW)
        json_array_append_new(query->rows,
                              entry_of(sqlite3_column_int64(query->statement, 0),
                                       (const char *)sqlite3_column_text(query->statement, 1)));
    sqlite3_reset(query->statement);
}

static int list(haft_http_request_t *request, void *unused) {
    (void)unused;
    BORROWED void *store = borrow();
    query_t query = {.statement = ((store_t *)store)->all};
    int code = haft_io_call_blocking(run, &query);
    return code == 0 ? answer_json(request, query.rows) : code;
}

static int find(haft_http_request_t *request, void *unused) {
    (void)unused;
    BORROWED void *store = borrow();
    query_t query = {((store_t *)store)->one, atoll(haft_http_request_path(request, "id")), NULL};
    int code = haft_io_call_blocking(run, &query);
    if (code != 0)
        return code;
    json_t *row = json_incref(json_array_get(query.rows, 0));
    json_decref(query.rows);
    return answer_json(request, row);
}

int main(int count, char **arguments) {
    static store_t stores[CONNECTIONS];
    for (size_t i = 0; i < CONNECTIONS && count > 2; i++) {
        store_t *store = idle[i] = &stores[i];
        if (sqlite3_open(arguments[1], &store->database) != SQLITE_OK ||
            sqlite3_prepare_v2(store->database, "select id, what from todo", -1, &store->all,
                               NULL) != SQLITE_OK ||
            sqlite3_prepare_v2(store->database, "select id, what from todo where id = ?", -1,
                               &store->one, NULL) != SQLITE_OK)
            return fprintf(stderr, "%s\n", sqlite3_errmsg(store->database)), 1;
    }
    return serve(list, find, arguments[2]);
}
