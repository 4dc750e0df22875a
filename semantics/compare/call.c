/* SPDX-License-Identifier: MIT */
/* A frame of C between two of OCaml, for Core_direct. */
#define CAML_NAME_SPACE
#include <caml/callback.h>
#include <caml/mlvalues.h>

value haft_semantics_call(value function, value argument);

value haft_semantics_call(value function, value argument) {
    return caml_callback(function, argument);
}
