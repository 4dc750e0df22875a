/* SPDX-License-Identifier: MIT */
/* The C side of test_invariants.ml. */
#define CAML_NAME_SPACE
#include <caml/mlvalues.h>

#include <haft.h>
#include <haft/language.h>

value invariants_are_checked(value unit);
value invariants_break(value continuation, value which);

value invariants_are_checked(value unit) {
    (void)unit;
#ifdef NDEBUG
    return Val_false;
#else
    return Val_true;
#endif
}

/* Breaks one of the fiber that waits. False: it is on a shelf, and has none like that. */
value invariants_break(value continuation, value which) {
    enum { HOLDER_FIELD = 3 }; /* ocaml/lib/layout.h */
    haft_fiber_t *fiber = (haft_fiber_t *)(Field(continuation, HOLDER_FIELD) & ~(value)1);
    switch (Int_val(which)) {
    case 0:
        fiber->context.sp = (char *)fiber->context.sp + 8;
        return Val_true;
    case 1:
        fiber->scope.handles = NULL;
        return Val_true;
    case 2:
        fiber->context.sp = fiber;
        return Val_true;
    default:
        break;
    }
    if (fiber->owner == 0)
        return Val_false;
    if (Int_val(which) == 3)
        fiber->scope.slow = 0;
    else
        fiber->scope.kind = HAFTI_SCOPE_STACKLESS;
    return Val_true;
}
