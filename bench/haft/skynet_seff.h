/* SPDX-License-Identifier: MIT */
/* skynet, Haft, through seff.h. The includer defines how a coroutine is made (skynet_coroutine). */
#include <seff.h>

#include <unistd.h>

typedef seff_coroutine_t *computation_t;

MAKE_SYSCALL_WRAPPER(void *, calloc, size_t count, size_t size);
MAKE_SYSCALL_WRAPPER(pid_t, getppid, void);
#define SKYNET_ALLOCATE calloc_syscall_wrapper
#define SKYNET_CALL getppid_syscall_wrapper

#include "../skynet.h"

DEFINE_EFFECT(yield, 0, void, {});

static seff_coroutine_t *skynet_coroutine(seff_start_fun_t *function, void *argument);

static void *run(void *one) {
    skynet_run(one);
    return NULL;
}

static void skynet_begin(skynet_t *one) {
    one->computation = skynet_coroutine(run, one);
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
