/* SPDX-License-Identifier: MIT */
/* A to-do list kept by PostgreSQL, which also reads and makes the JSON: `postgres CONNECTION PORT`.
   libpq knows nothing of tasks; by libhaft-posix a query suspends the task that waits for it, so
   one thread has many under way. For its use see todo.c. */
#include <haft/http.h>

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS = 8 };

static PGconn *idle[CONNECTIONS]; /* the first `idle_ones`; NULL: not connected yet */
static size_t idle_ones = CONNECTIONS;
static haft_io_semaphore_t turns = {.count = CONNECTIONS};
static const char *where;

/* An idle one, or a new one for one that is lost or was left in the middle of a query. */
static PGconn *borrow(void) {
    haft_io_semaphore_acquire(&turns);
    PGconn *connection = idle[--idle_ones];
    if (connection != NULL && PQtransactionStatus(connection) == PQTRANS_IDLE)
        return connection;
    PQfinish(connection);
    return PQconnectdb(where);
}

static void give_back(PGconn *const *connection) {
    idle[idle_ones++] = *connection;
    haft_io_semaphore_release(&turns);
}

static void clear(PGresult *const *result) {
    PQclear(*result);
}

static PGresult *ask(const char *query, const char *parameter) {
    __attribute__((cleanup(give_back))) PGconn *connection = borrow();
    return PQexecParams(connection, query, parameter != NULL, NULL, &parameter, NULL, NULL, 0);
}

/* Answers with the only value of the only row; 404 if there is no row, 400 if the parameter is not
   what the query takes. */
static int answer(haft_http_request_t *request, int status, const char *query,
                  const char *parameter) {
    __attribute__((cleanup(clear))) PGresult *result = ask(query, parameter);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        if (state != NULL && (strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0))
            return haft_http_answer_text(request, 400, PQresultErrorMessage(result));
        haft_http_request_note_failure(request, PQresultErrorMessage(result));
        return -EIO;
    }
    if (PQntuples(result) == 0)
        return haft_http_answer_text(request, 404, "no such entry\n");
    return haft_http_answer(request, status, "application/json", PQgetvalue(result, 0, 0),
                            (size_t)PQgetlength(result, 0, 0));
}

static int list(haft_http_request_t *request, void *unused) {
    (void)unused;
    return answer(request, 200, "select coalesce(json_agg(todo), '[]') from todo", NULL);
}

static int add(haft_http_request_t *request, void *unused) {
    (void)unused;
    char *body;
    ssize_t size = haft_http_request_body(request, &body);
    if (size < 0)
        return (int)size;
    return answer(request, 201,
                  "insert into todo (what) values ($1::json->>'what') returning row_to_json(todo)",
                  body);
}

static int drop(haft_http_request_t *request, void *unused) {
    (void)unused;
    return answer(request, 200, "delete from todo where id = $1::int returning row_to_json(todo)",
                  haft_http_request_path(request, "id"));
}

int main(int count, char **arguments) {
    where = count > 1 ? arguments[1] : "";
    PGconn *first = idle[CONNECTIONS - 1] = PQconnectdb(where);
    PQclear(PQexec(first, "create table if not exists todo (id serial, what text not null)"));
    if (PQstatus(first) != CONNECTION_OK)
        return fputs(PQerrorMessage(first), stderr), 1;
    haft_http_server_t *server = haft_http_server_new();
    haft_http_server_get(server, "/todo", list, NULL);
    haft_http_server_post(server, "/todo", add, NULL);
    haft_http_server_delete(server, "/todo/{id}", drop, NULL);
    haft_http_run_options_t how = {.port = count > 2 ? (uint16_t)atoi(arguments[2]) : 8080};
    int code = haft_http_server_run_with(&how, server);
    haft_http_server_free(server);
    while (idle_ones > 0)
        PQfinish(idle[--idle_ones]);
    return code != 0;
}
