/* SPDX-License-Identifier: MIT */
/*
 * OCaml 5's names for functions that the C interface of OCaml 4.13 and 4.14 has under others: to be
 * included before any other header, by the flag -include haft_ocaml5.h.
 */
#ifndef HAFT_OCAML5_H
#define HAFT_OCAML5_H

#include <caml/version.h>

#if OCAML_VERSION < 50000

#    ifndef CAMLnoret
#        define CAMLnoret __attribute__((noreturn))
#    endif

/* caml/signals.h, which OCaml 5's other headers include. (Only declared here: what a program
   defines before it includes OCaml's headers, as CAML_INTERNALS, is still to come.) */
#    ifdef __cplusplus
extern "C" {
#    endif
void caml_enter_blocking_section(void);
void caml_leave_blocking_section(void);
#    ifdef __cplusplus
}
#    endif

/* caml/unixsupport.h */
#    define caml_unix_error_of_code unix_error_of_code
#    define caml_unix_code_of_unix_error code_of_unix_error
#    define caml_unix_error unix_error
#    define caml_uerror uerror
#    define caml_unix_cstringvect cstringvect
#    define caml_unix_cstringvect_free cstringvect_free
#    define caml_unix_cloexec_default unix_cloexec_default
#    define caml_unix_cloexec_p unix_cloexec_p
#    define caml_unix_set_cloexec unix_set_cloexec
#    define caml_unix_clear_cloexec unix_clear_cloexec

/* caml/socketaddr.h */
#    define caml_unix_get_sockaddr get_sockaddr
#    define caml_unix_alloc_sockaddr alloc_sockaddr
#    define caml_unix_alloc_inet_addr alloc_inet_addr
#    define caml_unix_alloc_inet6_addr alloc_inet6_addr
#    define caml_unix_alloc_unix_sockaddr alloc_unix_sockaddr

/* (In no header.) */
#    define caml_unix_cst_to_constr cst_to_constr

#endif

#endif
