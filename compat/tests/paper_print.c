/* §2.5 of the paper, as printed; print_point passes its arguments to sprintf, functions return, and
   the buffer is shown. */
/* clang-format off */
#include <seff.h>
#include <stdio.h>
#include <string.h>

DEFINE_EFFECT(print, 0, void, { char *msg; });
void print_point(int64_t x, int64_t y) {
    char buffer[256];
    sprintf(buffer, "{ x: %ld, y: %ld }", x, y);
    PERFORM(print, buffer);
}
void *example(void *arg) { print_point(0, 0); print_point(1, 2); return NULL; }

void *default_print(void *print_payload) {
    EFF_PAYLOAD_T(print) payload = *(EFF_PAYLOAD_T(print) *)(print_payload);
    fputs(payload.msg, stdout);
    return NULL;
}
void *with_output_to_buffer(char *buffer, void *(*fn)(void*), void *arg) {
    seff_coroutine_t *k = seff_coroutine_new(fn, arg);
    while (true) {
        seff_request_t req = seff_handle(k, NULL, HANDLES(print));
        switch (req.effect) {
            CASE_EFFECT(req, print, {
                strcpy(buffer, payload.msg); buffer += strlen(payload.msg); break; })
            CASE_RETURN(req, { seff_coroutine_delete(k); return payload.result; })
        }
    }
}

int main(void) {
    seff_set_default_handler(EFF_ID(print), default_print);
    example(NULL);
    char buffer[256];
    with_output_to_buffer(buffer, example, NULL);
    printf("\nIn the buffer: %s\n", buffer);
}
/* SPDX-License-Identifier: MIT */
