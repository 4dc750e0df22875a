/* A program that has all its declarations, but printf's, from seff.h, and wraps functions that
   nobody has declared. */
#include <seff.h>
#include <stdio.h>

MAKE_SYSCALL_WRAPPER(int, getppid, void);
MAKE_SYSCALL_WRAPPER(char *, strchr, const char *text, int c);

DEFINE_EFFECT(report, 0, void, { char *text; });

void *asks_the_system(void *arg) {
    char *text = malloc(32);
    assert(text != NULL);
    sprintf(text, "it has %s parent", getppid_syscall_wrapper() > 0 ? "a" : "no");
    PERFORM(report, text);
    PERFORM(report, strchr_syscall_wrapper("from here, on", ','));
    free(text);
    return arg;
}

int main(void) {
    seff_coroutine_t k;
    if (!seff_coroutine_init(&k, asks_the_system, "the end"))
        abort();
    while (true) {
        seff_request_t request = seff_resume(&k, NULL, HANDLES(report));
        switch (request.effect) {
            CASE_EFFECT(request, report, {
                puts(payload.text);
                break;
            })
            CASE_RETURN(request, {
                puts(payload.result);
                seff_coroutine_release(&k);
                exit(0);
            })
        }
    }
}
/* SPDX-License-Identifier: MIT */
