/* The C side of meander.ml. */
#define CAML_NAME_SPACE
#include <caml/callback.h>
#include <caml/mlvalues.h>

value ocaml_to_c(value unit);

value ocaml_to_c(value unit) {
    (void)unit;
    caml_callback(*caml_named_value("c_to_ocaml"), Val_unit);
    return Val_int(0);
}
/* SPDX-License-Identifier: MIT */
