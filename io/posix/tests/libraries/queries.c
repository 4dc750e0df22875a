/* A hundred queries at once, on one thread, with libpq as it is. Each waits in the server until all
   have come: none would end if the first blocked the thread. Usage: queries CONNECTION */
#include "../../../tests/check_io.h"

#include <haft/posix.h>
#include <libpq-fe.h>

enum { QUERIES = 100, LONG_ANSWER = 100000 };
static const char *options;

static PGconn *connect_to_server(void) {
    PGconn *connection = PQconnectdb(options);
    if (PQstatus(connection) != CONNECTION_OK)
        fprintf(stderr, "%s", PQerrorMessage(connection));
    return connection;
}

static PGresult *ask(PGconn *connection, const char *text, ExecStatusType expected) {
    PGresult *result = PQexec(connection, text);
    CHECK_EQUAL(PQresultStatus(result), expected);
    if (PQresultStatus(result) != expected)
        fprintf(stderr, "%s", PQerrorMessage(connection));
    return result;
}

static void prepare(void) {
    PGconn *connection = connect_to_server();
    PQclear(ask(connection, "create table come (number int)", PGRES_COMMAND_OK));
    PQclear(ask(connection,
                "create function wait_for_all() returns bigint language plpgsql as $$ begin"
                "  for i in 1..1000 loop"
                "    exit when (select count(*) from come) >= 100;"
                "    perform pg_sleep(0.05);"
                "  end loop;"
                "  return (select count(*) from come);"
                "end $$",
                PGRES_COMMAND_OK));
    PQfinish(connection);
}

static void *run_query(void *argument) {
    PGconn *connection = connect_to_server();
    int number = (int)(intptr_t)argument;
    char text[128];
    snprintf(text, sizeof text, "insert into come values (%d)", number);
    PQclear(ask(connection, text, PGRES_COMMAND_OK));
    snprintf(text, sizeof text, "select wait_for_all(), %d, repeat('x', %d)", number, LONG_ANSWER);
    PGresult *row = ask(connection, text, PGRES_TUPLES_OK);
    CHECK_EQUAL(atoi(PQgetvalue(row, 0, 0)), QUERIES);
    CHECK_EQUAL(atoi(PQgetvalue(row, 0, 1)), number);
    CHECK_EQUAL(PQgetlength(row, 0, 2), LONG_ANSWER);
    PQclear(row);
    PQfinish(connection);
    return NULL;
}

BODY(run_queries) {
    for (intptr_t i = 0; i < QUERIES; i++)
        haft_io_spawn(run_query, check_number(i));
    return NULL;
}
static void a_hundred_queries_are_with_the_server_at_once(void) {
    CHECK(haft_posix_answers());
    prepare();
    CHECK_RUNS(run_queries);
}
static void and_on_tasks_with_thread_locals_of_their_own(void) {
    if (haft_io_own_thread_locals_refused() != NULL)
        return;
    PGconn *connection = connect_to_server();
    PQclear(ask(connection, "delete from come", PGRES_COMMAND_OK));
    PQfinish(connection);
    haft_io_run_options_t own = {.threads = 1, .own_thread_locals = true};
    CHECK_EQUAL(haft_io_run_with(&own, run_queries, NULL), 0);
}

/* libpq is told by an error, and reports it; the task is unwound afterwards, at its own wait. */
static PGconn *sleeping;
static bool unwound;
static void finish(const int *unused) {
    (void)unused;
    PQfinish(sleeping);
    unwound = true;
}
BODY(sleep_in_the_server) {
    __attribute__((cleanup(finish))) int unused = 0;
    (void)unused;
    sleeping = connect_to_server();
    PGresult *result = PQexec(sleeping, "select pg_sleep(1000)");
    CHECK_EQUAL(PQresultStatus(result), PGRES_FATAL_ERROR);
    PQclear(result);
    CHECK(!unwound);
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK(false);
    return NULL;
}
BODY(cancel_a_query) {
    haft_io_scope_options_t deadline = {.deadline = haft_io_now() + 100 * HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&deadline, sleep_in_the_server, NULL, NULL), -ETIMEDOUT);
    CHECK(unwound);
    return NULL;
}
static void a_query_that_is_cancelled_fails(void) {
    CHECK_RUNS(cancel_a_query);
}

int main(int count, char **arguments) {
    options = count > 1 ? arguments[1] : "";
    check_backend();
    RUN(a_hundred_queries_are_with_the_server_at_once);
    RUN(and_on_tasks_with_thread_locals_of_their_own);
    RUN(a_query_that_is_cancelled_fails);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
