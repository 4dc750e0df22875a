/* SPDX-License-Identifier: MIT */
/* skynet, Haft, through seff.h. */
#include <seff.h>

typedef seff_coroutine_t *computation_t;

#include "../skynet.h"

DEFINE_EFFECT(yield, 0, void, {});

static void *run(void *one) {
    skynet_run(one);
    return NULL;
}

static void skynet_begin(skynet_t *one) {
    one->computation = seff_coroutine_new(run, one);
}

static bool skynet_resume(skynet_t *one) {
    if (!seff_finished(seff_resume(one->computation, NULL, HANDLES(yield))))
        return true;
    seff_coroutine_delete(one->computation);
    return false;
}

static void skynet_yield(skynet_t *one) {
    (void)one;
    PERFORM(yield);
}

int main(int argc, char **argv) {
    return skynet_program(argc, argv);
}
