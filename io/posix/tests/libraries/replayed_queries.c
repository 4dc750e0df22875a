/* SPDX-License-Identifier: MIT */
/* Questions to PostgreSQL by libpq as it is, from several tasks at once: what the server draws and
   tells is printed as it comes. For replayed.sh. Usage: replayed_queries CONNECTION */
#include "../../../tests/check_io.h"

#include <libpq-fe.h>
#include <stdio.h>

enum { TASKS = 10, QUESTIONS = 5 };
static const char *options;

static void *ask(void *argument) {
    PGconn *connection = PQconnectdb(options);
    CHECK_EQUAL(PQstatus(connection), CONNECTION_OK);
    for (int i = 0; i < QUESTIONS; i++) {
        PGresult *row = PQexec(connection, "select random(), clock_timestamp(), pg_sleep("
                                           "random() / 100)");
        CHECK_EQUAL(PQresultStatus(row), PGRES_TUPLES_OK);
        printf("task %d: %s at %s\n", (int)(intptr_t)argument, PQgetvalue(row, 0, 0),
               PQgetvalue(row, 0, 1));
        PQclear(row);
    }
    printf("process %d\n", PQbackendPID(connection));
    PQfinish(connection);
    return NULL;
}

BODY(ask_all) {
    for (intptr_t i = 0; i < TASKS; i++)
        haft_io_spawn(ask, (void *)i);
    return NULL;
}

int main(int count, char **arguments) {
    CHECK_EQUAL(count, 2);
    options = arguments[1];
    CHECK_RUNS(ask_all);
    return check_end();
}
