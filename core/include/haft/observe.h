/* SPDX-License-Identifier: MIT */
/*
 * Observing a thread: a function is called whenever something happens to the thread's effects and
 * fibers, for traces and other tools. A thread that is not observed executes nothing for it; an
 * observed one takes the out-of-line paths, which call the observer.
 *
 * Not reported: the computations of a language that owns its frames (OCaml); code with a thread
 * pointer of its own (haft/thread_pointers.h); the first suspension, or the end, of a fiber that
 * was running when the observation began.
 */
#ifndef HAFT_OBSERVE_H
#define HAFT_OBSERVE_H

#include "../haft.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum haft_observed_kind {
    HAFT_OBSERVED_RESUME = 1, /* the fiber starts, or gets the reply to `effect` */
    HAFT_OBSERVED_PERFORM,    /* the fiber was suspended by `effect`, which its resumer handles */
    HAFT_OBSERVED_HANDLE,     /* `effect` is handled in place, by a clause or a default */
    HAFT_OBSERVED_FINISH,     /* the fiber has returned; or `effect` was thrown out of it */
    HAFT_OBSERVED_DROP        /* the fiber, which waits for a reply to `effect`, ends */
} haft_observed_kind_t;

typedef struct haft_observed {
    haft_observed_kind_t kind;
    const haft_fiber_t *fiber;     /* NULL: HAFT_OBSERVED_HANDLE */
    const haft_effect_t *effect;   /* NULL: there is none */
    const haft_handles_t *handles; /* of the handler that takes the effect; NULL: a default */
    const char *name;              /* of the fiber's deep handler, or of the fiber; or NULL */
} haft_observed_t;

typedef void haft_observer_t(const haft_observed_t *what);

/*
 * From now on the calling thread calls `observer`, until NULL is given, which the observer may do
 * itself. Returns the previous observer. The observer is called on the stack of the code that
 * resumes or performs, perhaps in a signal handler; it must return, and neither perform, nor resume
 * or drop fibers. `*what` and the fiber are there until it returns.
 */
HAFTI_API haft_observer_t *haft_observe(haft_observer_t *observer);

#ifdef __cplusplus
}
#endif

#endif
