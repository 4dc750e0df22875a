/* SPDX-License-Identifier: MIT */
/*
 * A run in steps, for threads whose loop is another library's. The run is on a fiber of its own,
 * which is suspended where its worker would sleep (pause_in_poll, scheduler.c): the worker counts
 * as asleep, so wake-ups by other threads make the descriptor readable.
 */
#include "runs.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

struct haft_io_stepper {
    hafti_io_pauses_t pauses;
    haft_fiber_t *fiber;
    pthread_t thread;
    haft_io_run_options_t options;
    void *(*main)(void *);
    void *argument;
    int code;
    bool has_ended;
};

static void *begin(void *argument) {
    haft_io_stepper_t *stepper = argument;
    hafti_io_worker_t *worker = hafti_io_this_task()->worker;
    int descriptor = worker->backend->descriptor(worker);
    if (descriptor < 0)
        haft_io_fail(descriptor, "no descriptor for the loop of a run in steps");
    worker->pauses = &stepper->pauses;
    return stepper->main(stepper->argument);
}

static void *run(void *argument) {
    haft_io_stepper_t *stepper = argument;
    stepper->code = haft_io_run_with(&stepper->options, begin, stepper);
    return NULL;
}

haft_io_stepper_t *haft_io_stepper_new_with(const haft_io_run_options_t *options,
                                            void *(*main)(void *), void *argument) {
    static const haft_io_run_options_t defaults = {.threads = 1};
    haft_io_stepper_t *stepper = calloc(1, sizeof *stepper);
    if (main == NULL)
        hafti_io_misuse("A run needs a function to begin with (NULL).");
    haft_fiber_t *fiber =
        stepper != NULL
            ? haft_fiber_new_with(&(haft_fiber_options_t){.name = "a run in steps"}, run, stepper)
            : NULL;
    if (fiber == NULL) {
        free(stepper);
        return NULL;
    }
    stepper->fiber = fiber;
    stepper->thread = pthread_self();
    stepper->options = options != NULL ? *options : defaults;
    stepper->options.threads = 1;
    if (stepper->options.backend == NULL)
        stepper->options.backend = "epoll";
    stepper->main = main;
    stepper->argument = argument;
    stepper->pauses = (hafti_io_pauses_t){.descriptor = -1};
    return stepper;
}

int haft_io_stepper_descriptor(const haft_io_stepper_t *stepper) {
    return stepper->pauses.descriptor;
}

int64_t haft_io_stepper_deadline(const haft_io_stepper_t *stepper) {
    return stepper->pauses.deadline;
}

static void go_on(haft_io_stepper_t *stepper) {
    haft_request_t request =
        haft_resume(stepper->fiber, HAFT_NO_REPLY, HAFT_HANDLES(hafti_io_pause));
    HAFT_MATCH(request) {
        HAFT_CASE(hafti_io_pause, unused) {
            (void)unused;
        }
        HAFT_RETURN(unused) {
            (void)unused;
            stepper->has_ended = true;
            stepper->pauses = (hafti_io_pauses_t){-1, HAFT_IO_FOREVER};
        }
    }
}

static bool is_to_wait(const haft_io_stepper_t *stepper, int64_t until) {
    return !stepper->has_ended && haft_io_now() < until && haft_io_now() < stepper->pauses.deadline;
}

static int64_t time_after(int64_t timeout) {
    int64_t now = haft_io_now();
    return timeout < HAFT_IO_FOREVER - now ? now + timeout : HAFT_IO_FOREVER;
}

/* Waits until the run has something to do, or until this time. */
static void wait_for_work(const haft_io_stepper_t *stepper, int64_t until) {
    struct pollfd entry = {stepper->pauses.descriptor, POLLIN, 0};
    while (is_to_wait(stepper, until)) {
        int64_t end = until < stepper->pauses.deadline ? until : stepper->pauses.deadline;
        int64_t left = end - haft_io_now();
        int64_t milliseconds = left / HAFT_IO_MILLISECOND + 1;
        int timeout = end == HAFT_IO_FOREVER   ? -1
                      : milliseconds > INT_MAX ? INT_MAX
                      : left > 0               ? (int)milliseconds
                                               : 0;
        if (poll(&entry, 1, timeout) != 0)
            return;
    }
}

/* Whether it may go on here, and the words where it may not. */
static int check(const haft_io_stepper_t *stepper, const char *function) {
    if (!pthread_equal(stepper->thread, pthread_self()))
        return haft_io_refuse(-EXDEV, function,
                              "this is another thread than the one that has made the stepper: step "
                              "and end it there");
    if (hafti_io_worker() != NULL)
        return haft_io_refuse(
            -EBUSY, function,
            "the caller is in a run: step from outside of it, as from the loop of "
            "another library");
    return 0;
}

static void step(haft_io_stepper_t *stepper, int64_t timeout) {
    if (timeout > 0 && stepper->pauses.descriptor >= 0)
        wait_for_work(stepper, time_after(timeout));
    go_on(stepper);
}

int haft_io_stepper_step(haft_io_stepper_t *stepper, int64_t timeout) {
    if (stepper->has_ended)
        return 0;
    int code = check(stepper, __func__);
    if (code != 0)
        return code;
    step(stepper, timeout);
    return stepper->has_ended ? 0 : 1;
}

int haft_io_stepper_end(haft_io_stepper_t *stepper) {
    int code = stepper->has_ended ? 0 : check(stepper, __func__);
    if (code != 0)
        return code;
    while (!stepper->has_ended)
        step(stepper, HAFT_IO_FOREVER);
    code = stepper->code;
    haft_fiber_drop(stepper->fiber);
    free(stepper);
    return code;
}
