/* §2.4 of the paper, as printed. */
/* clang-format off */
#include "paper_defer.h"

DEFINE_EFFECT(yield_str, 1, void, { char *elt; });

void *squares(void *arg) {
    int64_t limit = (size_t)arg;
    for (int64_t i = 0; i < limit; i++) {
        char *str = malloc_scoped(32);
        sprintf(str, "%5lu", i * i);
        PERFORM(yield_str, str);
    }
    return NULL;
}

void *print_all(void *arg) {
    seff_coroutine_t *k = seff_coroutine_new(squares, arg);
    while (true) {
        seff_request_t req = seff_handle(k, NULL, HANDLES(yield_str));
        switch (req.effect) {
            CASE_EFFECT(req, yield_str, { puts(payload.elt); break; })
            CASE_RETURN(req, { seff_coroutine_delete(k); return NULL; })
        }
    }
}

int main(void) {
    run_with_handle_defer(print_all, (void*)50);
    printf("%d resources are in use\n", deferred);
}
/* SPDX-License-Identifier: MIT */
