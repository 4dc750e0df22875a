/* SPDX-License-Identifier: MIT */
/* `json_postgres CONNECTION PORT`: the to-do list of examples/http/postgres.c for reading, with
   statements that are prepared once for each connection, and JSON that is made here. By
   libhaft-posix libpq suspends the task that waits for its answer. */
#include "serving.h"

#include <libpq-fe.h>

static void clear(PGresult *const *result) {
    PQclear(*result);
}

static json_t *row_of(const PGresult *result, int row) {
    return entry_of(atoll(PQgetvalue(result, row, 0)), PQgetvalue(result, row, 1));
}

static PGresult *ask(const char *statement, const char *parameter) {
    BORROWED void *connection = borrow();
    return PQexecPrepared(connection, statement, parameter != NULL, &parameter, NULL, NULL, 0);
}

static int list(haft_http_request_t *request, void *unused) {
    (void)unused;
    __attribute__((cleanup(clear))) PGresult *result = ask("all", NULL);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return -EIO;
    json_t *rows = json_array();
    for (int row = 0; row < PQntuples(result); row++)
        json_array_append_new(rows, row_of(result, row));
    return answer_json(request, rows);
}

static int find(haft_http_request_t *request, void *unused) {
    (void)unused;
    __attribute__((cleanup(clear))) PGresult *result =
        ask("one", haft_http_request_path(request, "id"));
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        return -EIO;
    return answer_json(request, PQntuples(result) != 0 ? row_of(result, 0) : NULL);
}

int main(int count, char **arguments) {
    for (size_t i = 0; i < CONNECTIONS && count > 2; i++) {
        PGconn *connection = idle[i] = PQconnectdb(arguments[1]);
        PQclear(PQprepare(connection, "all", "select id, what from todo", 0, NULL));
        PQclear(PQprepare(connection, "one", "select id, what from todo where id = $1", 0, NULL));
        if (*PQerrorMessage(connection) != '\0')
            return fputs(PQerrorMessage(connection), stderr), 1;
    }
    return serve(list, find, arguments[2]);
}
