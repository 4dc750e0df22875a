/* SPDX-License-Identifier: MIT */
/* The dump of a run's tasks, and its counters. */
#include "check_io.h"

#include <fcntl.h>

static int ends[2];
static haft_io_semaphore_t never;

static void *read_byte(void *unused) {
    char byte;
    haft_io_read(ends[0], &byte, 1);
    return unused;
}
static void *acquire(void *unused) {
    haft_io_set_task_name("the patient");
    haft_io_acquire(&never);
    return unused;
}
static void *open_inner(void *unused) {
    haft_io_scope_with(&(haft_io_scope_options_t){.name = "inner"}, acquire, NULL, NULL);
    return unused;
}
static char text[8192];
static void take_dump(void) {
    FILE *file = tmpfile();
    CHECK_EQUAL(haft_io_dump(fileno(file)), 0);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
}

BODY(dump_others) {
    char expected[64];
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    haft_io_async_with(&(haft_io_task_options_t){.name = "the reader"}, read_byte, NULL);
    haft_io_spawn(open_inner, NULL);
    do { /* until both wait */
        haft_io_sleep(HAFT_IO_MILLISECOND);
        take_dump();
    } while (strstr(text, "a semaphore") == NULL || strstr(text, "read on") == NULL);
    CHECK_CONTAINS(text, "scope 'main'\n");
    snprintf(expected, sizeof expected, "task 'the reader' waits for: %s on descriptor %d, ",
             "read", ends[0]);
    CHECK_CONTAINS(text, expected);
    CHECK_CONTAINS(text, "  scope 'inner'\n    task 'the patient' waits for: a semaphore, ");
    CHECK_CONTAINS(text, "task '' runs\n");
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    haft_io_cancel(haft_io_this_scope());
    return NULL;
}
static void a_dump_says_who_waits_for_what(void) {
    CHECK_EQUAL(haft_io_run(dump_others, NULL, NULL), -ECANCELED);
    CHECK_EQUAL(haft_io_run(dump_others, NULL, &(haft_io_options_t){.threads = 2}), -ECANCELED);
}

/* Tasks and scopes come and go while another thread looks. */
static void *scope_and_wait(void *unused) {
    for (int i = 0; i < check_times(300); i++) {
        haft_io_scope(check_nothing, NULL, NULL);
        haft_io_sleep(HAFT_IO_MICROSECOND);
    }
    return unused;
}
BODY(dump_often) {
    HAFT_IO_CLOSING int null = open("/dev/null", O_WRONLY);
    for (int i = 0; i < 20; i++)
        haft_io_spawn(scope_and_wait, NULL);
    for (int i = 0; i < check_times(300); i++) {
        CHECK_EQUAL(haft_io_dump(null), 0);
        haft_io_yield();
    }
    return NULL;
}
static void a_dump_is_safe_while_others_go_on(void) {
    CHECK_EQUAL(haft_io_run(dump_often, NULL, &(haft_io_options_t){.threads = 4}), 0);
}

BODY(count_events) {
    haft_io_counters_t before, after;
    CHECK_EQUAL(haft_io_count(&before), 0);
    CHECK_EQUAL(before.tasks, 1);
    haft_io_join(haft_io_async(check_nothing, NULL), NULL);
    CHECK_EQUAL(haft_io_pipe(ends), 0);
    haft_io_write(ends[1], "x", 1);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_count(&after), 0);
    CHECK_EQUAL(after.tasks, 2);
    CHECK_EQUAL(after.operations - before.operations, 1);
    CHECK(after.polls > before.polls);
    CHECK_EQUAL(after.steals, 0);
    haft_io_close(ends[0]);
    haft_io_close(ends[1]);
    return NULL;
}
static void counters_count_tasks_operations_and_polls(void) {
    CHECK_RUNS(count_events);
}

static void outside_of_a_task_there_is_nothing_to_see(void) {
    haft_io_counters_t counters;
    CHECK_EQUAL(haft_io_dump(STDERR_FILENO), -ESRCH);
    CHECK_EQUAL(haft_io_count(&counters), -ESRCH);
}

int main(void) {
    check_backend();
    RUN(a_dump_says_who_waits_for_what);
    RUN(a_dump_is_safe_while_others_go_on);
    RUN(counters_count_tasks_operations_and_polls);
    RUN(outside_of_a_task_there_is_nothing_to_see);
    return check_end();
}
