/* SPDX-License-Identifier: MIT */
/* Tasks in a program whose thread is libuv's: a poll handle and a timer of libuv step the run. */
#include <haft/io.h>

#include <stdio.h>
#include <uv.h>

typedef struct {
    haft_io_stepper_t *stepper;
    uv_poll_t poll;
    uv_timer_t timer;
    bool is_watched;
} tasks_t;

static void step(tasks_t *tasks);

static void on_readable(uv_poll_t *poll, int unused, int unused_too) {
    (void)unused, (void)unused_too;
    step(poll->data);
}
static void on_time(uv_timer_t *timer) {
    step(timer->data);
}

/* The descriptor of a run stays the same from its first step to its end. */
static void step(tasks_t *tasks) {
    if (haft_io_stepper_step(tasks->stepper, 0) != 1) {
        uv_close((uv_handle_t *)&tasks->timer, NULL);
        if (tasks->is_watched)
            uv_close((uv_handle_t *)&tasks->poll, NULL);
        return;
    }
    if (!tasks->is_watched) {
        uv_poll_init(tasks->timer.loop, &tasks->poll, haft_io_stepper_descriptor(tasks->stepper));
        uv_poll_start(&tasks->poll, UV_READABLE, on_readable);
        tasks->is_watched = true;
    }
    int64_t deadline = haft_io_stepper_deadline(tasks->stepper), left = deadline - haft_io_now();
    uv_timer_stop(&tasks->timer);
    if (deadline != HAFT_IO_FOREVER) {
        uv_update_time(tasks->timer.loop);
        uv_timer_start(&tasks->timer, on_time,
                       left > 0 ? (uint64_t)(left / HAFT_IO_MILLISECOND + 1) : 0, 0);
    }
}

static void *count_down(void *name) {
    for (int i = 2; i > 0; i--) {
        printf("%s %d\n", (const char *)name, i);
        haft_io_sleep(10 * HAFT_IO_MILLISECOND);
    }
    return NULL;
}

static void *begin(void *unused) {
    haft_io_spawn(count_down, "left");
    haft_io_spawn(count_down, "right");
    return unused;
}

int main(void) {
    tasks_t tasks = {.stepper = haft_io_stepper_new(begin, NULL)};
    tasks.poll.data = tasks.timer.data = &tasks;
    uv_timer_init(uv_default_loop(), &tasks.timer);
    uv_timer_start(&tasks.timer, on_time, 0, 0); /* the first step */
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    uv_loop_close(uv_default_loop());
    return haft_io_stepper_end(tasks.stepper) != 0;
}
