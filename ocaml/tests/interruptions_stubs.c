/* A function of C that calls back, and needs no register but its arguments'. */
#define CAML_NAME_SPACE
#include <caml/callback.h>
#include <caml/mlvalues.h>

value interruptions_call(value function, value argument);

value interruptions_call(value function, value argument) {
    return caml_callback(function, argument);
}
/* SPDX-License-Identifier: MIT */
