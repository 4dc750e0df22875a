/* SPDX-License-Identifier: MIT */
/* Bytes between the heap and memory outside of it. */
#include "stubs.h"

#include <string.h>

value haft_ocaml_io_blit_from(value text, value from, value memory, value at, value size);
value haft_ocaml_io_blit_from(value text, value from, value memory, value at, value size) {
    memcpy(HAFT_OCAML_MEMORY(memory) + Long_val(at), String_val(text) + Long_val(from),
           (size_t)Long_val(size));
    return Val_unit;
}

value haft_ocaml_io_blit_to(value memory, value from, value bytes, value at, value size);
value haft_ocaml_io_blit_to(value memory, value from, value bytes, value at, value size) {
    memcpy(Bytes_val(bytes) + Long_val(at), HAFT_OCAML_MEMORY(memory) + Long_val(from),
           (size_t)Long_val(size));
    return Val_unit;
}
