/* The C side of collector.ml. */
#define CAML_NAME_SPACE
#define CAML_INTERNALS
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/minor_gc.h>
#include <caml/mlvalues.h>
#include <caml/roots.h>

#include <haft.h>
#include <stdlib.h>
#include <string.h>

HAFT_EFFECT(collector_pause, void, {});

value collector_call(value function, value argument);
value collector_call_on_fiber(value function, value argument);
value collector_pause(value unit);
value collector_stacks(value unit);
value collector_resident(value unit);
value collector_hold(value held);
value collector_held(value unit);

/* Frames of C, with a local root, between OCaml code. */
value collector_call(value function, value argument) {
    CAMLparam2(function, argument);
    CAMLlocal2(text, result);
    text = caml_copy_string("a local root");
    result = caml_callback(function, argument);
    if (strcmp(String_val(text), "a local root") != 0)
        exit(6);
    CAMLreturn(result);
}

static void *apply(void *application) {
    value *values = application;
    return (void *)collector_call(values[0], values[1]);
}

static haft_answer_t on_pause(void *state, HAFT_PAYLOAD(collector_pause) * payload,
                              haft_resumption_t k) {
    (void)state, (void)payload;
    caml_minor_collection();
    return haft_tail_resume(k, HAFT_NO_REPLY);
}
HAFT_HANDLER(pausing, NULL, HAFT_GENERAL(collector_pause, on_pause));

/* The same on a fiber of C, which collects when the code on it asks for a pause. Where there is no
   memory for it: Out_of_memory. */
value collector_call_on_fiber(value function, value argument) {
    CAMLparam2(function, argument);
    CAMLlocalN(application, 2);
    application[0] = function;
    application[1] = argument;
    void *result = haft_handle(&pausing, NULL, apply, application);
    if (result == HAFT_NO_ANSWER)
        caml_raise_out_of_memory();
    CAMLreturn((value)result);
}

static void no_pause(void *state, HAFT_PAYLOAD(collector_pause) * payload) {
    (void)state, (void)payload;
}

value collector_pause(value unit) {
    if (haft_default(HAFT_ID(collector_pause)) == NULL)
        HAFT_SET_DEFAULT(collector_pause, no_pause);
    HAFT_PERFORM(collector_pause);
    return unit;
}

value collector_stacks(value unit) {
    (void)unit;
    return Val_long(haft_pool_report().stacks);
}

value collector_resident(value unit) {
    (void)unit;
    return Val_long(haft_pool_report().resident);
}
/* SPDX-License-Identifier: MIT */

/* A hook of the program's own around that of the library, with a root that it scans last. */
static value root = Val_unit;
static void (*scan_before)(scanning_action action);
static void scan(scanning_action action) {
    scan_before(action);
    action(root, &root);
}

value collector_hold(value held) {
    scan_before = caml_scan_roots_hook;
    caml_scan_roots_hook = scan;
    root = held;
    return Val_unit;
}

/* What is held; the hook is gone. */
value collector_held(value unit) {
    (void)unit;
    caml_scan_roots_hook = scan_before;
    value held = root;
    root = Val_unit;
    return held;
}
