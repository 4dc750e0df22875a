/* SPDX-License-Identifier: MIT */
/* Every public macro of haft.h, for run.sh. Compiled, not run. */
#include <haft.h>
#include <stdio.h>
HAFT_EFFECT(get, int, {});
HAFT_EFFECT(put, void, { int value; });
typedef struct {
    long a, b, c;
} wide_t;
HAFT_EFFECT(wide, wide_t, {
    const char *what;
    long n;
});
static int on_get(void *state, HAFT_PAYLOAD(get) * payload) {
    (void)payload;
    return *(int *)state;
}
static void on_put(void *state, HAFT_PAYLOAD(put) * payload) {
    *(int *)state = payload->value;
}
static haft_answer_t on_wide(void *state, HAFT_PAYLOAD(wide) * payload, haft_resumption_t k) {
    (void)state;
    (void)payload;
    wide_t w = {1, 2, 3};
    return haft_tail_resume(k, HAFT_REPLY(wide, w));
}
static void *never(void *state, HAFT_PAYLOAD(put) * payload) {
    (void)payload;
    return state;
}
HAFT_HANDLER(tails, NULL, HAFT_TAIL(get, on_get), HAFT_TAIL(put, on_put),
             HAFT_GENERAL(wide, on_wide));
HAFT_HANDLER(nevers, NULL, HAFT_NEVER(put, never));
static void *body(void *a) {
    HAFT_PERFORM(put, HAFT_PERFORM(get) + 1);
    wide_t w = HAFT_PERFORM(wide, "x", 5);
    haft_fiber_t *f = haft_locate(HAFT_ID(get));
    if (f)
        (void)HAFT_YIELD(f, get);
    if (w.a == 7)
        HAFT_THROW(put, 1);
    if (w.a == 8)
        HAFT_EXIT(f, put, 1);
    return a;
}
static int dflt(void *u, HAFT_PAYLOAD(get) * p) {
    (void)u;
    (void)p;
    return 1;
}
int main(void) {
    int s = 1;
    HAFT_SET_DEFAULT(get, dflt);
    haft_handle(&tails, &s, body, NULL);
    haft_handle(&nevers, &s, body, NULL);
    HAFT_SCOPED haft_fiber_t *k =
        haft_fiber_new_with(&(haft_fiber_options_t){.name = "x"}, body, NULL);
    haft_request_t r = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(get, put, wide));
    while (!haft_finished(r))
        HAFT_MATCH(r) {
            HAFT_CASE(get, p) {
                r = haft_resume(k, HAFT_REPLY(get, s), HAFT_HANDLES(get, put, wide));
            }
            HAFT_CASE(put, p) {
                s = p->value;
                r = haft_resume(k, HAFT_REPLY(put), HAFT_HANDLES(get, put, wide));
            }
            HAFT_CASE(wide, p) {
                wide_t w = {1, 2, 3};
                r = haft_resume(k, HAFT_REPLY(wide, w), HAFT_HANDLES_ALL);
            }
            HAFT_RETURN(x) {
                printf("%p\n", x);
            }
            HAFT_OTHERWISE(rest) {
                (void)rest.effect;
            }
        }
    return 0;
}
