/* SPDX-License-Identifier: MIT */
/* Traced by effects.sh: tasks that handle effects, each in another way, while others wait. With an
   argument it keeps its trace there, of a thread that runs no task. */
#include <haft/io.h>

#include <stdio.h>
#include <stdlib.h>

HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(count, void, {});
HAFT_EFFECT(leave, void, {});

static haft_answer_t answer(void *unused, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)unused;
    haft_io_yield(); /* other tasks run meanwhile */
    return haft_tail_resume(k, HAFT_REPLY(ask, payload->question + 1));
}
static haft_answer_t give_up(void *unused, HAFT_PAYLOAD(leave) * payload, haft_resumption_t k) {
    (void)unused, (void)payload;
    haft_resumption_drop(k);
    return haft_answer(NULL);
}
static void count_one(void *counter, HAFT_PAYLOAD(count) * payload) {
    (void)payload;
    ++*(int *)counter;
}
HAFT_HANDLER(answering, NULL, HAFT_GENERAL(ask, answer), HAFT_GENERAL(leave, give_up));
HAFT_HANDLER(counting, NULL, HAFT_TAIL(count, count_one));

static void *ask_and_leave(void *unused) {
    for (int i = 0; i < 3; i++) {
        HAFT_PERFORM(ask, i);
        HAFT_PERFORM(count);
        haft_io_yield();
    }
    HAFT_PERFORM(leave);
    return unused;
}
static void *under_answering(void *unused) {
    return haft_handle(&answering, NULL, ask_and_leave, unused);
}
static void *under_both(void *unused) {
    int counter = 0;
    haft_handle(&counting, &counter, under_answering, unused);
    if (counter != 3)
        abort();
    return unused;
}

static void *generate(void *unused) {
    for (int i = 0; i < 3; i++)
        HAFT_PERFORM(ask, i);
    return unused;
}
static void *pull(void *unused) {
    HAFT_SCOPED haft_fiber_t *generator = haft_fiber_new(generate, NULL);
    haft_fiber_set_name(generator, "generator");
    haft_request_t request = haft_resume(generator, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    while (request.effect == HAFT_ID(ask)) {
        haft_io_sleep(HAFT_IO_MILLISECOND / 10);
        request = haft_resume(generator, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask));
    }
    return unused;
}

static void spawn(const char *name, void *(*function)(void *)) {
    if (haft_io_spawn_with(&(haft_io_task_options_t){.name = name}, function, NULL) != 0)
        abort();
}
static void *all(void *unused) {
    spawn("an asker", under_both);
    spawn("another asker", under_both);
    spawn("a puller", pull);
    return unused;
}
static void *in_a_scope(void *unused) {
    haft_io_scope(all, unused, NULL);
    return unused;
}

int main(int count, char **arguments) {
    if (count == 1)
        return haft_io_run(in_a_scope, NULL) != 0;
    int code = haft_io_trace_start_with(&(haft_io_trace_options_t){.effects = true}, arguments[1]);
    if (code != 0)
        return 2;
    pull(NULL);
    haft_io_trace_stop();
    pull(NULL);
    return 0;
}
