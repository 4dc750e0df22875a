/* SPDX-License-Identifier: MIT */
/* skynet, Haft, by requests. */
#include <haft.h>

typedef haft_fiber_t *computation_t;

#include "../skynet.h"

HAFT_EFFECT(yield, void, {});

static void *run(void *one) {
    skynet_run(one);
    return NULL;
}

static void skynet_begin(skynet_t *one) {
    one->computation = haft_fiber_new(run, one);
}

static bool skynet_resume(skynet_t *one) {
    if (!haft_finished(haft_resume(one->computation, HAFT_NO_REPLY, HAFT_HANDLES(yield))))
        return true;
    haft_fiber_drop(one->computation);
    return false;
}

static void skynet_yield(skynet_t *one) {
    (void)one;
    HAFT_PERFORM(yield);
}

int main(int argc, char **argv) {
    return skynet_program(argc, argv);
}
