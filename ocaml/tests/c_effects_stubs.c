/* The C side of test_c_effects.ml: functions that call OCaml code back, and effects of C around and
   under it. */
#define CAML_NAME_SPACE
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

#include <haft.h>

#include <setjmp.h>
#include <stdio.h>

HAFT_EFFECT(test_ask, int64_t, { int64_t question; });
HAFT_EFFECT(test_tell, void, { int64_t number; });

value test_perform_ask(value question);
value test_perform_tell(value number);
value test_call(value function, value argument);
value test_call_with_roots(value function, value argument);
value test_answer(value function, value answer);
value test_copy(value function);
value test_count_in_place(value function);
value test_start(value function);
value test_resume(value fiber, value reply);
value test_drop(value fiber);
value test_fibers(value unit);

/* Effects of C, performed by a function that OCaml code calls. */
value test_perform_ask(value question) {
    return Val_long(HAFT_PERFORM(test_ask, Long_val(question)));
}

value test_perform_tell(value number) {
    HAFT_PERFORM(test_tell, Long_val(number));
    return Val_unit;
}

/* A function of C between OCaml code and OCaml code. */
value test_call(value function, value argument) {
    return caml_callback(function, argument);
}

value test_call_with_roots(value function, value argument) {
    CAMLparam2(function, argument);
    CAMLlocal2(before, result);
    before = caml_copy_string("before the callback");
    result = caml_callback(function, argument);
    if (caml_string_length(before) != 19 || String_val(before)[7] != 't')
        caml_failwith("a local root was lost");
    CAMLreturn(result);
}

/* Handlers of C around OCaml code. */
static void *run(void *function) {
    return (void *)caml_callback(*(value *)function, Val_unit);
}

static haft_answer_t answer(void *state, HAFT_PAYLOAD(test_ask) * payload, haft_resumption_t k) {
    int64_t sum = payload->question + *(int64_t *)state;
    return haft_tail_resume(k, HAFT_REPLY(test_ask, sum));
}

HAFT_HANDLER(answering, NULL, HAFT_GENERAL(test_ask, answer));

value test_answer(value function, value number) {
    CAMLparam1(function);
    int64_t state = Long_val(number);
    void *result = haft_handle(&answering, &state, run, &function);
    CAMLreturn((value)result);
}

/* Returns the message of the error when a clause copies a computation of OCaml. */
static char refusal[1000];
static jmp_buf back;
static void refuse(const haft_error_t *error) {
    snprintf(refusal, sizeof refusal, "%s", error->message);
    longjmp(back, 1);
}

static haft_answer_t copy(void *state, HAFT_PAYLOAD(test_ask) * payload, haft_resumption_t k) {
    haft_error_handler_t *volatile before = haft_set_error_handler(refuse);
    (void)state;
    refusal[0] = '\0';
    if (setjmp(back) == 0)
        (void)haft_resumption_copy(k);
    haft_set_error_handler(before);
    return haft_tail_resume(k, HAFT_REPLY(test_ask, payload->question));
}

HAFT_HANDLER(copying, NULL, HAFT_GENERAL(test_ask, copy));

value test_copy(value function) {
    CAMLparam1(function);
    (void)haft_handle(&copying, NULL, run, &function);
    CAMLreturn(caml_copy_string(refusal));
}

static void count(void *state, HAFT_PAYLOAD(test_tell) * payload) {
    *(int64_t *)state += payload->number;
}

HAFT_HANDLER(counting, NULL, HAFT_TAIL(test_tell, count));

value test_count_in_place(value function) {
    CAMLparam1(function);
    int64_t sum = 0;
    (void)haft_handle(&counting, &sum, run, &function);
    CAMLreturn(Val_long(sum));
}

/* Fibers of C that run OCaml code, resumed from anywhere. */
typedef struct held {
    haft_fiber_t *fiber;
    value function;
} held_t;

static void *run_held(void *argument) {
    held_t *held = argument;
    return (void *)caml_callback(held->function, Val_unit);
}

static value next(held_t *held, haft_request_t request) {
    if (!haft_finished(request))
        return Val_long(((HAFT_PAYLOAD(test_ask) *)request.payload)->question);
    haft_fiber_drop(held->fiber);
    held->fiber = NULL;
    caml_remove_generational_global_root(&held->function);
    return Val_long(-1);
}

value test_start(value function) {
    held_t *held = caml_stat_alloc(sizeof *held);
    held->function = function;
    caml_register_generational_global_root(&held->function);
    held->fiber = haft_fiber_new(run_held, held);
    return caml_copy_nativeint((intnat)held);
}

value test_resume(value fiber, value reply) {
    held_t *held = (held_t *)Nativeint_val(fiber);
    bool is_new = haft_fiber_state(held->fiber) == HAFT_FIBER_NEW;
    return next(held, haft_resume(held->fiber,
                                  is_new ? HAFT_NO_REPLY : HAFT_REPLY(test_ask, Long_val(reply)),
                                  HAFT_HANDLES(test_ask)));
}

value test_drop(value fiber) {
    held_t *held = (held_t *)Nativeint_val(fiber);
    haft_fiber_drop(held->fiber);
    caml_remove_generational_global_root(&held->function);
    caml_stat_free(held);
    return Val_unit;
}

value test_fibers(value unit) {
    (void)unit;
    fflush(stdout);
    (void)haft_fibers_dump(1);
    return Val_long(haft_pool_report().stacks);
}
/* SPDX-License-Identifier: MIT */
