#define CAML_NAME_SPACE
#include <errno.h>
#include <caml/mlvalues.h>
#include <caml/unixsupport.h>

value jobs_refuse(value path);

value jobs_refuse(value path) {
    errno = EACCES;
    caml_uerror("refuse", path);
    return Val_unit;
}
/* SPDX-License-Identifier: MIT */
