/* The names of OCaml 5's interface for C. */
#define CAML_NAME_SPACE
#include <errno.h>
#include <caml/mlvalues.h>
#include <caml/unixsupport.h>

CAMLnoret static void refuse(value path) {
    caml_unix_check_path(path, "manual");
    errno = ENOENT;
    caml_uerror("manual", path);
    caml_unix_error(ENOENT, "manual", path); /* not reached */
}

value manual_refuse(value path);
value manual_without_lock(value unit);
value manual_error_code(value error);

value manual_refuse(value path) {
    refuse(path);
}

/* (OCaml 5 declares these two wherever caml/unixsupport.h is included.) */
value manual_without_lock(value unit) {
    caml_enter_blocking_section();
    caml_leave_blocking_section();
    return unit;
}

/* An error of Unix as a number and back. */
value manual_error_code(value error) {
    return caml_unix_error_of_code(caml_unix_code_of_unix_error(error));
}
/* SPDX-License-Identifier: MIT */
