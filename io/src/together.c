/* SPDX-License-Identifier: MIT */
/* Several calls at once, each of them a task: all of them, or the first that has a result. */
#include "tasks.h"

struct hafti_io_several {
    haft_io_call_t *calls;
    size_t count;
    bool only_first;
    int first; /* the call that returned first; -1: none yet; any thread */
};

static void *run_call(void *argument) {
    haft_io_call_t *call = argument;
    haft_io_scope_t *scope = haft_io_this_scope();
    hafti_io_several_t *several = scope->several;
    call->result = call->function(call->argument);
    int none = -1;
    if (several->only_first &&
        __atomic_compare_exchange_n(&several->first, &none, (int)(call - several->calls), false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        haft_io_scope_cancel(scope);
    return NULL;
}

static void *run_several(void *argument) {
    hafti_io_several_t *several = argument;
    haft_io_this_scope()->several = several;
    for (size_t i = 0; i < several->count; i++) {
        several->calls[i].result = NULL;
        if (haft_io_spawn(run_call, &several->calls[i]) != 0)
            haft_io_fail(-ENOMEM, "no memory for a task");
    }
    return NULL;
}

/* Reported here, because an error handler cannot leave the body of a scope. */
static void check_tasks_can_run(void) {
    if (hafti_io_this_task() == NULL)
        hafti_io_misuse(
            "Several calls are run as tasks outside of a scheduler: call this under haft_io_run.");
}

int haft_io_all(haft_io_call_t *calls, size_t count) {
    check_tasks_can_run();
    return haft_io_scope(run_several, &(hafti_io_several_t){calls, count, false, -1}, NULL);
}

int haft_io_first(haft_io_call_t *calls, size_t count) {
    if (count == 0)
        hafti_io_misuse("haft_io_first needs a call.");
    check_tasks_can_run();
    hafti_io_several_t several = {calls, count, true, -1};
    int code = haft_io_scope(run_several, &several, NULL);
    return code == -ECANCELED && several.first >= 0 ? several.first : code;
}
