/* SPDX-License-Identifier: MIT */
/* SQLite as it is, in several tasks at once, with a database in a file that they share and lock.
   Each value is printed as it comes. For replayed.sh. */
#include "../../../tests/check_io.h"

#include <sqlite3.h>
#include <stdio.h>

enum { TASKS = 5, ROWS = 5 };

static int tell(void *argument, int count, char **values, char **names) {
    (void)names;
    for (int i = 0; i < count; i++)
        printf("task %d: %s\n", (int)(intptr_t)argument, values[i]);
    return 0;
}

static void execute(sqlite3 *database, const char *text, void *argument) {
    char *wrong = NULL;
    CHECK_EQUAL(sqlite3_exec(database, text, tell, argument, &wrong), SQLITE_OK);
    if (wrong != NULL)
        fprintf(stderr, "%s\n", wrong);
    sqlite3_free(wrong);
}

static void *use(void *argument) {
    sqlite3 *database;
    CHECK_EQUAL(sqlite3_open("rows.db", &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 60000);
    for (int i = 0; i < ROWS; i++) {
        execute(database, "insert into rows values (random(), strftime('%s'))", argument);
        execute(database, "select count(*), sum(number & 65535) from rows", argument);
    }
    sqlite3_close(database);
    return NULL;
}

BODY(use_all) {
    sqlite3 *database;
    CHECK_EQUAL(sqlite3_open("rows.db", &database), SQLITE_OK);
    execute(database, "create table rows (number int, at text)", NULL);
    sqlite3_close(database);
    haft_io_task_t *tasks[TASKS];
    for (intptr_t i = 0; i < TASKS; i++)
        tasks[i] = haft_io_async(use, (void *)i);
    for (int i = 0; i < TASKS; i++)
        haft_io_join(tasks[i], NULL);
    return NULL;
}

int main(void) {
    CHECK_RUNS(use_all);
    return check_end();
}
