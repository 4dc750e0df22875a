/* SPDX-License-Identifier: MIT */
/* A run in steps: a loop that is not its own waits for its descriptor and its deadline. */
#include "check_io.h"

#include <poll.h>
#include <pthread.h>

static haft_io_event_t asked, ended;
static int ends[2], steps, rounds;

/* Acts like another library's loop: it waits for both, never in a step. */
static int drive(haft_io_stepper_t *stepper) {
    int code;
    CHECK_EQUAL(haft_io_stepper_descriptor(stepper), -1);
    for (steps = 0; (code = haft_io_stepper_step(stepper, 0)) == 1; steps++) {
        int64_t deadline = haft_io_stepper_deadline(stepper), left = deadline - haft_io_now();
        struct pollfd entry = {haft_io_stepper_descriptor(stepper), POLLIN, 0};
        CHECK(entry.fd >= 0 && haft_io_self() == NULL && !haft_io_runs_here());
        poll(&entry, 1,
             deadline == HAFT_IO_FOREVER ? -1
             : left > 0                  ? (int)(left / HAFT_IO_MILLISECOND) + 1
                                         : 0);
    }
    CHECK_EQUAL(code, 0);
    CHECK_EQUAL(haft_io_stepper_descriptor(stepper), -1);
    CHECK_EQUAL(haft_io_stepper_step(stepper, 0), 0);
    return haft_io_stepper_end(stepper);
}

static const char *backend; /* NULL: that which there is without a word */

static haft_io_stepper_t *new_stepper(void *(*body)(void *)) {
    return haft_io_stepper_new_with(&(haft_io_run_options_t){.backend = backend}, body, NULL);
}

static int run_in_steps(void *(*body)(void *)) {
    haft_io_stepper_t *stepper = new_stepper(body);
    CHECK(stepper != NULL);
    return drive(stepper);
}

static void *echo(void *unused) {
    char bytes[10];
    for (ssize_t size; (size = haft_io_read(ends[0], bytes, sizeof bytes)) > 0; rounds++)
        CHECK(haft_io_write_all(ends[0], bytes, (size_t)size) == 0);
    return unused;
}

BODY(talk) {
    CHECK(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    haft_io_spawn(echo, NULL);
    char byte = 'x';
    for (int i = 0; i < 100; i++) {
        CHECK(haft_io_write_all(ends[1], &byte, 1) == 0);
        CHECK(haft_io_read(ends[1], &byte, 1) == 1 && byte == 'x');
        if (i % 10 == 0)
            haft_io_sleep(HAFT_IO_MILLISECOND);
    }
    haft_io_close(ends[1]);
    return argument;
}
static void tasks_talk_and_sleep(void) {
    rounds = 0;
    CHECK_EQUAL(run_in_steps(talk), 0);
    haft_io_close(ends[0]);
    CHECK_EQUAL(rounds, 100);
    CHECK(steps > 0);
}

static void *answer(void *unused) {
    struct timespec moment = {0, 20000000};
    nanosleep(&moment, NULL);
    haft_io_event_set(&asked);
    return unused;
}
static void work(void *unused) {
    struct timespec moment = {0, 5000000};
    (void)unused;
    nanosleep(&moment, NULL);
}
BODY(wait_for_threads) {
    for (int i = 0; i < 3; i++) {
        haft_io_event_clear(&asked);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, answer, NULL) == 0);
        CHECK(haft_io_event_wait(&asked) == 0);
        pthread_join(thread, NULL);
        CHECK(haft_io_call_blocking(work, NULL) == 0);
    }
    return argument;
}
static void other_threads_make_the_descriptor_readable(void) {
    CHECK_EQUAL(run_in_steps(wait_for_threads), 0);
}

BODY(wait_to_end) {
    CHECK(haft_io_event_wait(&ended) == 0);
    return argument;
}
static void the_thread_tells_its_run_between_steps(void) {
    haft_io_stepper_t *stepper = new_stepper(wait_to_end);
    haft_io_event_clear(&ended);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(haft_io_stepper_step(stepper, HAFT_IO_MILLISECOND), 1);
    CHECK_EQUAL(haft_io_stepper_deadline(stepper), HAFT_IO_FOREVER);
    haft_io_event_set(&ended);
    struct pollfd entry = {haft_io_stepper_descriptor(stepper), POLLIN, 0};
    CHECK_EQUAL(poll(&entry, 1, -1), 1);
    CHECK_EQUAL(haft_io_stepper_end(stepper), 0);
}

BODY(fail) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_fail(-EIO, NULL);
}
static haft_io_stepper_t *own;
BODY(step_myself) {
    CHECK_EQUAL(haft_io_stepper_step(own, 0), -EBUSY);
    CHECK_EQUAL(haft_io_run(step_myself, NULL), -EBUSY);
    return argument;
}
static void *step_elsewhere(void *unused) {
    CHECK_EQUAL(haft_io_stepper_step(own, 0), -EXDEV);
    return unused;
}
BODY(do_nothing) {
    return argument;
}
static void mistakes_are_errors(void) {
    fclose(stderr); /* the failure of a run is printed */
    CHECK_EQUAL(run_in_steps(fail), -EIO);
    own = haft_io_stepper_new(step_myself, NULL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, step_elsewhere, NULL) == 0);
    pthread_join(thread, NULL);
    CHECK_EQUAL(haft_io_stepper_end(own), 0);
    own = haft_io_stepper_new_with(&(haft_io_run_options_t){.backend = "none such"}, do_nothing,
                                   NULL);
    CHECK_EQUAL(haft_io_stepper_end(own), -EINVAL);
}

/* Two of them, and an ordinary run between their steps. */
static void runs_do_not_meet(void) {
    haft_io_stepper_t *first = new_stepper(wait_to_end);
    haft_io_stepper_t *second = new_stepper(wait_to_end);
    haft_io_event_clear(&ended);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(haft_io_stepper_step(first, 0), 1);
        CHECK_EQUAL(haft_io_run(do_nothing, NULL), 0);
        CHECK_EQUAL(haft_io_stepper_step(second, 0), 1);
    }
    haft_io_event_set(&ended);
    CHECK_EQUAL(haft_io_stepper_end(first), 0);
    CHECK_EQUAL(haft_io_stepper_end(second), 0);
}

BODY(sleep_a_little) {
    haft_io_sleep(10 * HAFT_IO_MILLISECOND);
    return argument;
}
/* The time after which there is no other, less the time until now, is a timeout, too. */
static void a_step_waits_for_however_long(void) {
    haft_io_stepper_t *stepper = new_stepper(sleep_a_little);
    int count = 0;
    while (haft_io_stepper_step(stepper, HAFT_IO_FOREVER - haft_io_now()) == 1)
        count++;
    CHECK(count <= 3);
    CHECK_EQUAL(haft_io_stepper_end(stepper), 0);
}

static void run_all(void) {
    RUN(a_step_waits_for_however_long);
    RUN(tasks_talk_and_sleep);
    RUN(other_threads_make_the_descriptor_readable);
    RUN(the_thread_tells_its_run_between_steps);
    RUN(runs_do_not_meet);
}

BODY(note_backend) {
    CHECK(strcmp(haft_io_backend(), backend) == 0);
    return argument;
}

int main(void) {
    run_all();
    backend = "io_uring";
    if (haft_io_run_with(&(haft_io_run_options_t){.threads = 1, .backend = backend}, note_backend,
                         NULL) == 0) {
        CHECK_EQUAL(run_in_steps(note_backend), 0);
        run_all();
    }
    backend = NULL;
    RUN(mistakes_are_errors);
    return check_end();
}
