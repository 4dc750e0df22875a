/* SPDX-License-Identifier: MIT */
/* §2.3 of the paper, as printed, but that fclose gets the type that `defer` wants and the result of
   the handled function is returned. §2.4 builds on it. */
/* clang-format off */
#include <seff.h>
#include <stdio.h>
#include <stdlib.h>

DEFINE_EFFECT(defer, 0, void, { void (*defer_fn)(void*); void *defer_arg; });

static int deferred;
static void counted_free(void *ptr) { deferred--; free(ptr); }
static void counted_fclose(void *f) { deferred--; fclose(f); }
#define free counted_free
#define fclose counted_fclose

void *malloc_scoped(size_t size) {
    void *ptr = malloc(size); PERFORM(defer, free, ptr); deferred++; return ptr;
}
FILE *fopen_scoped(const char *path, const char *mode) {
    FILE *f = fopen(path, mode); PERFORM(defer, fclose, f); deferred++; return f;
}

void *handle_defer(seff_coroutine_t *k) {
    seff_request_t req = seff_handle(k, NULL, HANDLES(defer));
    switch (req.effect) {
        CASE_EFFECT(req, defer, {
            void *result = handle_defer(k);
            // Run the clean-up function
            payload.defer_fn(payload.defer_arg);
            return result; })
        CASE_RETURN(req, { return payload.result; })
    }
    abort();
}

void *run_with_handle_defer(void *(*fn)(void*), void *arg) {
    seff_coroutine_t *k = seff_coroutine_new(fn, arg); void *result = handle_defer(k); seff_coroutine_delete(k);
    return result;
}
