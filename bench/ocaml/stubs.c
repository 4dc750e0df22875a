/* SPDX-License-Identifier: MIT */
/* OCaml's loops as benchmarks of the harness, whose main is renamed benchmark_main here; C
 * functions for OCaml to call; and what a million continuations cost in memory.
 *
 * Invariant: a loop is one callback, so that what the callback costs is spread over a slice.
 */
#define CAML_NAME_SPACE
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>

#include "../harness.h"
#include "../memory.h"

int benchmark_main(int argc, char **argv);

typedef struct loop {
    benchmark_t benchmark;
    value body;
} loop_t;

static benchmark_t *running;

static void run_body(benchmark_t *benchmark) {
    loop_t *loop = (loop_t *)(void *)benchmark;
    value operations = Val_long((intnat)benchmark->operations);
    running = benchmark;
    benchmark_start(benchmark);
    caml_callback(loop->body, operations);
    benchmark_stop(benchmark);
}

value bench_loop(value name, value body) {
    loop_t *loop = caml_stat_alloc(sizeof *loop);
    *loop = (loop_t){.benchmark = {.name = caml_stat_strdup(String_val(name)), .loop = run_body},
                     .body = body};
    caml_register_generational_global_root(&loop->body);
    benchmark_register(&loop->benchmark);
    return Val_unit;
}

value bench_start(value unit) {
    benchmark_start(running);
    return unit;
}

value bench_is_quick(value unit) {
    (void)unit;
    return Val_bool(benchmark_is_quick());
}

value bench_run(value arguments) {
    int count = (int)Wosize_val(arguments);
    char **argv = caml_stat_alloc(((size_t)count + 1) * sizeof *argv);
    for (int i = 0; i < count; i++)
        argv[i] = caml_stat_strdup(String_val(Field(arguments, i)));
    argv[count] = NULL;
    return Val_int(benchmark_main(count, argv));
}

/* Called through the runtime and without it, and applied from a loop in C. */

value bench_identity(value argument) {
    return argument;
}

value bench_call(value function, value argument) {
    return caml_callback(function, argument);
}

value bench_call_often(value function, value count) {
    CAMLparam1(function);
    for (intnat i = Long_val(count); i > 0; i--)
        caml_callback(function, Val_long(i));
    CAMLreturn(Val_unit);
}

/* The stages of memory.ml. */

static memory_use_t stages[3];

value bench_stage(value number) {
    stages[Long_val(number)] = memory_measure();
    return Val_unit;
}

value bench_print_stages(value continuations) {
    int64_t count = Long_val(continuations);
    memory_print(count, stages[0], stages[1], stages[2]);
    printf("peak %" PRId64 "\n", memory_status_field("VmHWM:") / count);
    return Val_unit;
}
