/* SPDX-License-Identifier: MIT */
/* libuv's loop in a task, which waits for the descriptor of the loop and for its first timer; while
   it waits, the other tasks go on. Its callbacks are code of that task, and may wait, too. A library
   that has such a descriptor and a timeout (c-ares, libdbus, Qt's dispatchers) is driven likewise. */
#include <haft/io.h>

#include <poll.h>
#include <stdio.h>
#include <uv.h>

static void tick(uv_timer_t *timer) {
    int *left = timer->data;
    printf("libuv %d\n", *left);
    haft_io_sleep(5 * HAFT_IO_MILLISECOND);
    if (--*left == 0)
        uv_close((uv_handle_t *)timer, NULL);
}

/* Like uv_run(loop, UV_RUN_DEFAULT). */
static void run_loop(uv_loop_t *loop) {
    while (uv_run(loop, UV_RUN_NOWAIT) != 0) {
        int milliseconds = uv_backend_timeout(loop);
        struct pollfd entry = {uv_backend_fd(loop), POLLIN, 0};
        haft_io_poll(&entry, 1,
                     milliseconds < 0 ? HAFT_IO_FOREVER
                                      : haft_io_now() + milliseconds * HAFT_IO_MILLISECOND);
    }
}

static void *count_rounds(void *rounds) {
    while (haft_io_sleep(HAFT_IO_MILLISECOND) == 0)
        ++*(int *)rounds;
    return NULL;
}

static void *run_timer(void *unused) {
    int left = 3, rounds = 0;
    uv_loop_t loop;
    uv_timer_t timer = {.data = &left};
    haft_io_spawn(count_rounds, &rounds);
    uv_loop_init(&loop);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, tick, 10, 10);
    run_loop(&loop);
    uv_loop_close(&loop);
    puts(rounds > 0 ? "the other task has run beside it" : "the other task has waited");
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}

static void *in_scope(void *unused) {
    haft_io_scope(run_timer, NULL, NULL);
    return unused;
}

int main(void) {
    return haft_io_run(in_scope, NULL) != 0;
}
