/* SPDX-License-Identifier: MIT */
/* Tasks of C that call OCaml code, and that OCaml code waits for. */
#define CAML_NAME_SPACE
#include <haft/io.h>

#include <caml/callback.h>
#include <caml/mlvalues.h>
#include <signal.h>
#include <stdlib.h>

value test_spawn_visitor(value number);
value test_spawn_signal(value unit);

static void *visit(void *argument) {
    intptr_t number = (intptr_t)argument;
    haft_io_return_cancels(true);
    haft_io_sleep(number * HAFT_IO_MILLISECOND / 10);
    value result = caml_callback_exn(*caml_named_value("visit"), Val_long(number));
    if (Is_exception_result(result) || Long_val(result) != number + 1)
        abort();
    return NULL;
}

/* Spawns a task of C, which calls the function "visit" with its number. */
value test_spawn_visitor(value number) {
    if (haft_io_spawn(visit, (void *)(intptr_t)Long_val(number)) != 0)
        abort();
    return Val_unit;
}

static void *send_signal(void *unused) {
    raise(SIGUSR1);
    return unused;
}

/* Spawns a task of C, which raises SIGUSR1. */
value test_spawn_signal(value unit) {
    if (haft_io_spawn(send_signal, NULL) != 0)
        abort();
    return unit;
}
