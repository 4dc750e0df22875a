/* A plugin of host.c: its effects and coroutines are the program's. */
#include <seff.h>

DEFINE_EFFECT(ask, 9, int64_t, { int64_t question; });

static void *asks_again(void *arg) {
    seff_exit(seff_current_coroutine(), EFF_ID(return ), (void *)(PERFORM(ask, 20) + (int64_t)arg));
}

int64_t answer(void);
int64_t answer(void) {
    seff_coroutine_t *k = seff_coroutine_new(asks_again, (void *)PERFORM(ask, 1));
    seff_request_t request = seff_resume(k, NULL, 0);
    seff_coroutine_delete(k);
    return (int64_t)request.payload;
}
/* SPDX-License-Identifier: MIT */
