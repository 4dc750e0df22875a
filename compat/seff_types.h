/* SPDX-License-Identifier: MIT */
/* The types of seff.h, for headers of programs that only name them. */
#ifndef HAFT_COMPAT_SEFF_TYPES_H
#define HAFT_COMPAT_SEFF_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t effect_id;
typedef uint64_t effect_set; /* a bit for each effect */

#define MAX_EFFECTS 64
/* Marks the request of a coroutine that has returned. No effect has this number, so no set has
   it. */
#define RETURN_EFFECT_ID (~(effect_id)0)

typedef void *seff_start_fun_t(void *);
typedef void *default_handler_t(void *);

typedef enum seff_coroutine_state {
    FINISHED, /* has returned or was left by seff_exit or seff_throw; also: released */
    PAUSED,
    SUSPENDED = PAUSED, /* can be resumed */
    RUNNING             /* runs, or waits for a coroutine that it resumed */
} seff_coroutine_state_t;

/* May be a local variable; must not be copied while in use. Programs read only `state`. */
typedef struct seff_coroutine {
    struct haft_fiber *fiber; /* NULL: finished, or released */
    effect_set handled;       /* the set that the fiber handles, while the coroutine can be resumed;
                                 afterwards one that a program does not pass */
    seff_coroutine_state_t state;
    bool dense;                 /* made by a function that asks for a dense stack */
    seff_start_fun_t *function; /* NULL: released */
    void *argument;
    size_t stack_size; /* as it was asked for */
    effect_id left_by; /* the number of its last request, where that does not come from a
                          descriptor: */
    void *left;        /* the result, or the payload of the effect that ended it, */
    void *left_large;  /* allocated, if there is no room for it here: */
    uint64_t left_small[4];
} seff_coroutine_t;

typedef struct seff_request {
    effect_id effect;
    void *payload; /* where the effect's fields are; of RETURN_EFFECT_ID: the result itself */
} seff_request_t;

#endif
