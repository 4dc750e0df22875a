/* SPDX-License-Identifier: MIT */
/* The C side of sorting.ml: qsort, with a comparison that calls OCaml code. An exception there
   would pass over qsort's frames, and what they have allocated would be lost. */
#define CAML_NAME_SPACE
#define _GNU_SOURCE /* qsort_r */
#include <caml/alloc.h>
#include <caml/callback.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <stdlib.h>

value example_sorted_indices(value count, value compare);

/* `compare` points to a local root: the collector may move the closure while the comparison
   waits. */
static int compare_indices(const void *a, const void *b, void *compare) {
    return (int)Long_val(caml_callback2(*(value *)compare, *(const value *)a, *(const value *)b));
}

value example_sorted_indices(value count, value compare) {
    CAMLparam1(compare);
    CAMLlocal1(result);
    /* Integers are no pointers, so that qsort may keep them where the collector does not look. */
    size_t n = (size_t)Long_val(count);
    value *indices = caml_stat_alloc(n * sizeof *indices);
    for (size_t i = 0; i < n; i++)
        indices[i] = Val_long((intnat)i);
    qsort_r(indices, n, sizeof *indices, compare_indices, &compare);
    result = caml_alloc(n, 0);
    for (size_t i = 0; i < n; i++)
        Store_field(result, i, indices[i]);
    caml_stat_free(indices);
    CAMLreturn(result);
}
