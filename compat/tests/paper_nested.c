/* §3.1 of the paper, as printed, with the states of figures 1 to 3 shown. */
/* clang-format off */
#include <seff.h>
#include <stdio.h>

DEFINE_EFFECT(eff1, 0, void, {});
DEFINE_EFFECT(eff2, 1, void, {});

static seff_coroutine_t *k1, *k2;
static void show(const char *when) {
    const char *names[] = {[SUSPENDED] = "SUSPENDED", [RUNNING] = "RUNNING", [FINISHED] = "FINISHED"};
    printf("%s: k1 %s, k2 %s\n", when, names[k1->state], names[k2->state]);
}

void *g(void *arg) { show("before eff1"); PERFORM(eff1); PERFORM(eff2); return NULL; }
void *f(void *arg) {
    k2 = seff_coroutine_new(g, NULL);
    seff_request_t req1 = seff_handle(k2, NULL, HANDLES(eff2));
    show(req1.effect == EFF_ID(eff2) ? "after eff2" : "?");
    seff_request_t req2 = seff_handle(k2, NULL, HANDLES(eff2));
    show(seff_finished(req2) ? "after the end of g" : "?");
    seff_coroutine_delete(k2);
    return NULL;
}
int main(void) {
    k1 = seff_coroutine_new(f, NULL);
    seff_request_t req1 = seff_handle(k1, NULL, HANDLES(eff1) | HANDLES(eff2));
    show(req1.effect == EFF_ID(eff1) ? "after eff1" : "?");
    seff_request_t req2 = seff_handle(k1, NULL, HANDLES(eff1) | HANDLES(eff2));
    printf("k1 has %s\n", seff_finished(req2) ? "finished" : "not finished");
    seff_coroutine_delete(k1);
}
/* SPDX-License-Identifier: MIT */
