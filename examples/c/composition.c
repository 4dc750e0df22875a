/* SPDX-License-Identifier: MIT */
/*
 * Composition: a generator whose values own memory. `squares` yields strings to the handler that
 * prints them and defers their release to another one further out; neither handler knows of the
 * other. ("High-level effect handlers in C", §2.4.)
 */
#include <haft.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

HAFT_EFFECT(defer, void, {
    void (*function)(void *);
    void *argument;
});
HAFT_EFFECT(yield_string, void, { const char *element; });

static int blocks; /* allocated and not yet released */

static void release(void *memory) {
    blocks--;
    free(memory);
}
static char *allocate_scoped(size_t size) {
    char *memory = malloc(size);
    blocks++;
    HAFT_PERFORM(defer, release, memory);
    return memory;
}

static void *squares(void *limit) {
    for (intptr_t i = 0; i < (intptr_t)limit; i++) {
        char *text = allocate_scoped(32);
        snprintf(text, 32, "%5d", (int)(i * i));
        HAFT_PERFORM(yield_string, text);
    }
    return NULL;
}

static void *print_all(void *limit) {
    HAFT_SCOPED haft_fiber_t *generator = haft_fiber_new(squares, limit);
    for (;;) {
        haft_request_t request = haft_resume(generator, HAFT_NO_REPLY, HAFT_HANDLES(yield_string));
        HAFT_MATCH(request) {
            HAFT_CASE(yield_string, payload) {
                puts(payload->element);
            }
            HAFT_RETURN(result) {
                printf("%d strings are still allocated\n", blocks);
                return result;
            }
        }
    }
}

static void handle_defer(haft_fiber_t *k) {
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(defer));
    HAFT_MATCH(request) {
        HAFT_CASE(defer, payload) {
            HAFT_PAYLOAD(defer) deferred = *payload;
            handle_defer(k);
            deferred.function(deferred.argument);
        }
        HAFT_RETURN(result) {
            (void)result;
        }
    }
}

int main(void) {
    haft_fiber_t *k = haft_fiber_new(print_all, (void *)(intptr_t)10);
    handle_defer(k);
    haft_fiber_drop(k);
    printf("%d strings are allocated at the end\n", blocks);
    return 0;
}
