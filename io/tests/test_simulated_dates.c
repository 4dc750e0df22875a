/* SPDX-License-Identifier: MIT */
/* The date of a simulation, which is its own: it begins at the options' date, in each one anew. */
#include "check_io.h"

#include <sys/stat.h>
#include <time.h>

enum { DAY = 86400, YEAR = 365 * DAY, NEW_YEAR_2025 = 1735689600 };

static void check_date(struct timespec date, int64_t seconds) {
    CHECK_EQUAL((int64_t)date.tv_sec, seconds);
    CHECK_EQUAL((int64_t)date.tv_nsec, 0);
}

static void *live_a_day(void *begin) {
    int64_t date = *(int64_t *)begin;
    check_date(haft_io_date(), date);
    haft_io_sleep(DAY * HAFT_IO_SECOND);
    struct timespec now = haft_io_date();
    CHECK(now.tv_sec == date + DAY && now.tv_nsec < HAFT_IO_MILLISECOND);
    return NULL;
}
static void live_from(int64_t date, int64_t seen) {
    CHECK_EQUAL(
        check_io_simulate_with(&(haft_io_simulation_options_t){.date = date}, live_a_day, &seen),
        0);
}
static void the_date_begins_as_stated_in_each_simulation(void) {
    live_from(0, NEW_YEAR_2025);
    live_from(DAY, DAY);
    live_from(-5 * (int64_t)YEAR, -5 * (int64_t)YEAR);
    live_from(0, NEW_YEAR_2025);
}

BODY(live_a_century) {
    haft_io_sleep(100 * (int64_t)YEAR * HAFT_IO_SECOND);
    CHECK(haft_io_date().tv_sec == NEW_YEAR_2025 + 100 * (int64_t)YEAR);
    return NULL;
}
static void a_century_leaves_the_next_simulation_its_date(void) {
    for (int i = 0; i < 4; i++)
        CHECK_EQUAL(haft_io_simulate(live_a_century, NULL), 0);
    live_from(0, NEW_YEAR_2025);
}

/* A sleep beyond the clock ends where that does, and so do those after it. */
BODY(sleep_too_long) {
    static const int64_t too_long[] = {HAFT_IO_FOREVER - 1, HAFT_IO_FOREVER / 2,
                                       HAFT_IO_FOREVER / 4 * 3, HAFT_IO_FOREVER - 1};
    int64_t before = haft_io_now();
    for (size_t i = 0; i < sizeof too_long / sizeof too_long[0]; i++) {
        CHECK_EQUAL(haft_io_sleep(too_long[i]), 0);
        CHECK(haft_io_now() >= before);
        before = haft_io_now();
    }
    CHECK(before > HAFT_IO_FOREVER - HAFT_IO_SECOND);
    CHECK(haft_io_date().tv_sec > NEW_YEAR_2025 + 292 * (int64_t)YEAR);
    return NULL;
}
BODY(sleep_for_ever) {
    CHECK_EQUAL(haft_io_sleep(HAFT_IO_FOREVER), -ECANCELED);
    return NULL;
}
static void a_sleep_beyond_the_clock_ends_with_it(void) {
    CHECK_EQUAL(check_io_simulate_with(NULL, sleep_too_long, NULL), 0);
    CHECK_EQUAL(haft_io_simulate(sleep_for_ever, NULL), -EDEADLK);
}

BODY(write_now_and_then) {
    struct stat status;
    int file = haft_io_open("file", O_RDWR | O_CREAT, 0600);
    CHECK_EQUAL(haft_io_stat("file", &status), 0);
    check_date(status.st_mtim, NEW_YEAR_2025);
    check_date(status.st_ctim, NEW_YEAR_2025);
    haft_io_sleep(YEAR * HAFT_IO_SECOND);
    CHECK_EQUAL(haft_io_write(file, "x", 1), 1);
    struct timespec now = haft_io_date();
    haft_io_sleep(HAFT_IO_SECOND);
    CHECK_EQUAL(haft_io_stat("file", &status), 0);
    CHECK(now.tv_sec == NEW_YEAR_2025 + YEAR);
    CHECK(status.st_mtim.tv_sec == now.tv_sec && status.st_mtim.tv_nsec == now.tv_nsec);
    check_date(status.st_atim, NEW_YEAR_2025);
    return (void *)(intptr_t)haft_io_close(file);
}
static void the_times_of_files_are_dates(void) {
    haft_io_simulation_options_t with_files = {.files = true};
    CHECK_EQUAL(check_io_simulate_with(&with_files, write_now_and_then, NULL), 0);
}

BODY(look_at_the_date) {
    time_t before = time(NULL);
    struct timespec date = haft_io_date();
    CHECK(date.tv_sec >= before && date.tv_sec <= time(NULL) + 1);
    return NULL;
}
static void the_date_is_the_machines_elsewhere(void) {
    look_at_the_date(NULL);
    CHECK_RUNS(look_at_the_date);
}

int main(void) {
    RUN(the_date_begins_as_stated_in_each_simulation);
    RUN(a_century_leaves_the_next_simulation_its_date);
    RUN(a_sleep_beyond_the_clock_ends_with_it);
    RUN(the_times_of_files_are_dates);
    RUN(the_date_is_the_machines_elsewhere);
    return check_end();
}
