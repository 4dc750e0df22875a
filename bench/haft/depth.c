/* SPDX-License-Identifier: MIT */
/* Handlers of another effect between the performer and its handler (§4.1.1, figure 5).
 *
 *   general   get and put suspend the performer's fiber, across `depth` fibers
 *   located   the handler is located once and yielded to: the paper's optimal case
 *   tail      get and put are tail-resumptive clauses, across `depth` handlers without stacks
 *   tail-across-fibers   the same across `depth` fibers
 *
 * One operation is one perform, a get or a put. And the worst cases of lookup, in which nothing
 * that was found before helps, so that they grow with the depth:
 *
 *   new-handler   a handler is installed inside `depth` others, and its body performs once
 *   two-scopes    a fiber with `depth` fibers inside is resumed alternately from two scopes
 */
#include "../harness.h"

#include <haft.h>

#include <stdlib.h>

#define DEPTHS 0, 1, 2, 3, 5, 10, 20, 50, 100

HAFT_EFFECT(get, int64_t, {});
HAFT_EFFECT(put, void, { int64_t new_value; });
HAFT_EFFECT(failure, void, {});

typedef struct task {
    benchmark_t *benchmark;
    void (*loop)(uint64_t operations);
    intptr_t depth;
} task_t;

static void perform_loop(uint64_t operations) {
    for (uint64_t i = 0; i < operations; i += 2)
        HAFT_PERFORM(put, HAFT_PERFORM(get) + 1);
}

static void located_loop(uint64_t operations) {
    haft_fiber_t *get_handler = haft_locate(HAFT_ID(get)), *put_handler = haft_locate(HAFT_ID(put));
    for (uint64_t i = 0; i < operations; i += 2)
        HAFT_YIELD(put_handler, put, HAFT_YIELD(get_handler, get) + 1);
}

static void *innermost(void *argument) {
    const task_t *task = argument;
    task->loop(16);
    benchmark_start(task->benchmark);
    task->loop(task->benchmark->operations);
    benchmark_stop(task->benchmark);
    return NULL;
}

static void *nest_fibers(void *argument) {
    task_t *task = argument;
    if (task->depth == 0)
        return innermost(task);
    task->depth--;
    haft_fiber_t *k = haft_fiber_new(nest_fibers, task);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failure));
    haft_fiber_drop(k);
    return NULL;
}

static void on_failure(void *unused, HAFT_PAYLOAD(failure) * payload) {
    (void)unused, (void)payload;
}

HAFT_HANDLER(surviving, NULL, HAFT_TAIL(failure, on_failure));

static void *nest_handlers(void *argument) {
    task_t *task = argument;
    if (task->depth == 0)
        return innermost(task);
    task->depth--;
    return haft_handle(&surviving, NULL, nest_handlers, task);
}

static void handle_by_requests(benchmark_t *benchmark, void (*loop)(uint64_t)) {
    const haft_handles_t *state_effects = HAFT_HANDLES(get, put);
    task_t task = {benchmark, loop, benchmark->parameter};
    int64_t state = 0;
    haft_fiber_t *k = haft_fiber_new(nest_fibers, &task);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, state_effects);
    while (!haft_finished(request)) {
        HAFT_MATCH(request) {
            HAFT_CASE(get, payload) {
                request = haft_resume(k, HAFT_REPLY(get, state), state_effects);
            }
            HAFT_CASE(put, payload) {
                state = payload->new_value;
                request = haft_resume(k, HAFT_NO_REPLY, state_effects);
            }
        }
    }
    haft_fiber_drop(k);
}

static int64_t on_get(void *state, HAFT_PAYLOAD(get) * payload) {
    (void)payload;
    return *(int64_t *)state;
}

static void on_put(void *state, HAFT_PAYLOAD(put) * payload) {
    *(int64_t *)state = payload->new_value;
}

HAFT_HANDLER(with_state, NULL, HAFT_TAIL(get, on_get), HAFT_TAIL(put, on_put));

static void handle_in_place(benchmark_t *benchmark, void *(*nest)(void *)) {
    task_t task = {benchmark, perform_loop, benchmark->parameter};
    int64_t state = 0;
    haft_handle(&with_state, &state, nest, &task);
}

/* ---- Worst cases ---- */

#define FEWER_DEPTHS 1, 10, 100, 1000

static void *perform_once(void *unused) {
    (void)HAFT_PERFORM(get);
    return unused;
}

static void new_handler_loop(uint64_t operations) {
    for (uint64_t i = 0; i < operations; i++)
        haft_handle(&surviving, NULL, perform_once, NULL);
}

static void *get_forever(void *argument) {
    intptr_t depth = (intptr_t)argument;
    if (depth == 0)
        for (;;)
            (void)HAFT_PERFORM(get);
    haft_fiber_t *k = haft_fiber_new(get_forever, (void *)(depth - 1));
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(failure));
    return NULL;
}

static void *resume_once(void *k) {
    haft_resume(k, HAFT_REPLY(get, 1), HAFT_HANDLES(get));
    return NULL;
}

BENCHMARK_SERIES("depth-new-handler", depth_new_handler, FEWER_DEPTHS) {
    task_t task = {benchmark, new_handler_loop, benchmark->parameter};
    int64_t state = 0;
    haft_handle(&with_state, &state, nest_handlers, &task);
}

BENCHMARK_SERIES("depth-two-scopes", depth_two_scopes, FEWER_DEPTHS) {
    haft_fiber_t *k = haft_fiber_new(get_forever, (void *)(intptr_t)benchmark->parameter);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get));
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i += 2) {
        resume_once(k);
        haft_handle(&surviving, NULL, resume_once, k);
    }
    benchmark_stop(benchmark);
    haft_fiber_drop(k);
}

BENCHMARK_SERIES("depth-general", depth_general, DEPTHS) {
    handle_by_requests(benchmark, perform_loop);
}

BENCHMARK_SERIES("depth-located", depth_located, DEPTHS) {
    handle_by_requests(benchmark, located_loop);
}

BENCHMARK_SERIES("depth-tail", depth_tail, DEPTHS) {
    handle_in_place(benchmark, nest_handlers);
}

BENCHMARK_SERIES("depth-tail-across-fibers", depth_tail_across_fibers, DEPTHS) {
    handle_in_place(benchmark, nest_fibers);
}
