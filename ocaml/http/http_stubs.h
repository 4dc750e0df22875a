/* SPDX-License-Identifier: MIT */
/*
 * Parts of both files of stubs. Requests, servers, clients and sockets are pointers, which OCaml
 * code has as integers: they are aligned. Bytes of OCaml's heap are copied before anything that may
 * wait.
 */
#ifndef HAFT_OCAML_HTTP_STUBS_H
#define HAFT_OCAML_HTTP_STUBS_H

#include <haft/http.h>

#include "stubs.h"

#include <stdlib.h>
#include <string.h>

static inline value haft_ocaml_of_pointer(const void *pointer) {
    return (value)pointer | 1;
}
static inline void *haft_ocaml_to_pointer(value pointer) {
    return (void *)(pointer & ~(value)1);
}
/* Bytes that do not move; freed by free(3). NULL: no memory. */
static inline char *haft_ocaml_bytes_of(value text) {
    size_t size = caml_string_length(text);
    char *copy = malloc(size + 1);
    if (copy != NULL)
        memcpy(copy, String_val(text), size + 1);
    return copy;
}

#endif
