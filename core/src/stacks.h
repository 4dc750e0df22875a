/* SPDX-License-Identifier: MIT */
/* The floor of stacks: where they come from, whose they are, and what tools know of them. */
#ifndef HAFT_STACKS_H
#define HAFT_STACKS_H

#include "kept.h"
#include "pool.h"
#include "stages.h"
#include "limit_words.h"
#include "tools.h"
#include "valid.h"

#include <haft/shown.h>

/*
 * Operations in which the kinds of stacks differ. Everything else about a fiber is the same for all
 * kinds; the usual kind, HAFT_KIND_POOL, also has short paths of its own (haft_pool_take,
 * haft_pool_give).
 */
typedef struct haft_stack_kind {
    /* Makes a fiber with an empty stack. NULL: no memory, which has been reported. */
    haft_fiber_t *(*make)(hafti_thread_t *thread, const haft_fiber_options_t *options);
    /* Called on the stack, before the fiber's function runs. */
    void (*begins)(haft_fiber_t *fiber);
    /* The fiber has ended with `payload`, and its resumer goes on. Returns the payload's new
       place. */
    void *(*ended)(haft_fiber_t *fiber, void *payload);
    /* The fiber's frames are given up. */
    void (*given_up)(haft_fiber_t *fiber);
    /* The fiber is to run again. False: its memory is another's. */
    bool (*again)(haft_fiber_t *fiber);
    /* Nothing uses the fiber any more. */
    void (*give)(haft_fiber_t *fiber);
} haft_stack_kind_t;
extern const haft_stack_kind_t haft_stack_kinds[];
/* The kind that is asked for. */
const haft_stack_kind_t *haft_kind_for(const haft_fiber_options_t *options);
HAFTI_INLINE const haft_stack_kind_t *haft_kind_of(const haft_fiber_t *fiber) {
    return &haft_stack_kinds[fiber->kind];
}

/* Memory of the caller: | up to 15 bytes | canary | stack | header |; where the stack begins. */
enum { HAFT_CANARY_WORDS = 4 };
static const uint64_t haft_canary = 0x5afe57acc0ffee11u;
HAFTI_INLINE char *haft_stack_in(const void *memory) {
    return (char *)(((uintptr_t)memory + 15) & ~(uintptr_t)15) +
           HAFT_CANARY_WORDS * sizeof(uint64_t);
}
HAFTI_INLINE void haft_place_canary(haft_fiber_t *fiber) {
    for (int i = 0; i < HAFT_CANARY_WORDS; i++)
        ((uint64_t *)(void *)fiber->low)[-1 - i] = haft_canary;
}

/* Whether the words below a stack are not the canary. */
HAFTI_INLINE bool haft_is_no_canary(const char *low) {
    uint64_t difference = 0;
    for (int i = 0; i < HAFT_CANARY_WORDS; i++)
        difference |= ((const uint64_t *)(const void *)low)[-1 - i] ^ haft_canary;
    return difference != 0;
}
HAFTI_INLINE bool haft_canary_is_gone(const haft_fiber_t *fiber) {
    return haft_is_no_canary(fiber->low);
}

/* Whether a stack without a guard has overflowed: the canary is gone, or `sp`, where the code under
   the fiber's scope is or has stopped, lies outside. `segmented`: the segmented fiber that code is
   on. No other thread may use the fiber meanwhile. */
bool haft_has_overflowed(const haft_fiber_t *fiber, const char *sp, const haft_fiber_t *segmented);
HAFTI_COLD __attribute__((noreturn)) void haft_overflowed(const haft_fiber_t *fiber);
#define HAFT_OVERFLOWED                                                                            \
    "%s has overflowed its stack of %zu bytes, which has no guard page, and what lies below is "   \
    "overwritten. Give it more memory."
/* Returns what a message about a stack of this size adds. */
HAFTI_INLINE const char *haft_late_binding_advice(size_t stack) {
    return stack >= HAFT_UNWINDING_MINIMUM
               ? ""
               : " Link the program with -Wl,-z,now: otherwise the first call of a function of "
                 "another library takes some 3 KiB of the caller's stack.";
}
/* Reports an overflow of that kind. */
HAFTI_INLINE void haft_check_stack(const haft_fiber_t *fiber, const char *sp,
                                   const haft_fiber_t *segmented) {
    if (HAFTI_UNLIKELY(haft_has_overflowed(fiber, sp, segmented)))
        haft_overflowed(fiber);
}
HAFTI_INLINE void haft_check_here(const hafti_thread_t *thread) {
    hafti_scope_t *scope = thread->current;
    if (scope->kind == HAFTI_SCOPE_FIBER && hafti_fiber_of(scope)->checked)
        haft_check_stack(hafti_fiber_of(scope), __builtin_frame_address(0), thread->segmented);
}

/* Makes an empty header of what lies at `fiber`, at the high end of `memory`, and a canary. */
HAFTI_INLINE void haft_fiber_prepare(haft_fiber_t *fiber, void *memory) {
    __builtin_memset(fiber, 0, sizeof *fiber);
    fiber->low = haft_stack_in(memory);
    fiber->high = (char *)fiber;
    haft_place_canary(fiber);
}

/* Nothing of a fiber is in use any more: from now on another thread may drop or reset it. Its
   resumer sets this state, not the fiber on its way out, which needs its stack and the resumer's
   context until then. */
static inline void haft_set_finished(haft_fiber_t *fiber) {
    __atomic_store_n(&fiber->state, (uint32_t)HAFT_FIBER_FINISHED, __ATOMIC_RELEASE);
}

/* given_memory.c: the fibers in memory of the caller, while they live. */
#ifdef HAFT_FREESTANDING
HAFTI_INLINE bool haft_any_given(void) {
    return true;
}
#else
extern struct haft_place *haft_places;
HAFTI_INLINE bool haft_any_given(void) {
    return __atomic_load_n(&haft_places, __ATOMIC_ACQUIRE) != NULL;
}
#endif
/* Lists a fiber, and prepares it first if it is new; an error if its memory is another fiber's.
   False: there is no memory for the list. A fiber that is not new is then still finished when the
   error is reported. */
bool haft_fibers_list(haft_fiber_t *fiber, void *memory, size_t size, const char *name,
                      bool is_new);
/* Does nothing if it is not listed. */
void haft_fibers_unlist(haft_fiber_t *fiber);
/* The frames of `fiber` are given up, and with them the fibers in memory on them. */
void haft_fibers_lost(const haft_fiber_t *fiber);
/* Whether there are fibers in memory on the stack of `fiber`. */
bool haft_fibers_on(const haft_fiber_t *fiber);
/* Reports that `live`, or a fiber that has been overwritten (NULL), has the memory. */
__attribute__((noreturn)) void haft_memory_taken(const haft_fiber_t *live, const char *name);
/* The fiber whose stack `address` lies on. Unlike haft_fiber_current it tells where the code runs,
   not which handlers it is under: the two differ inside a clause that is called in place. */
haft_fiber_t *haft_fiber_at(const void *address);
HAFTI_INLINE haft_fiber_t *haft_fiber_here(void) {
    haft_fiber_t *segmented = hafti_thread()->segmented;
    return segmented != NULL ? segmented : haft_fiber_at(__builtin_frame_address(0));
}
/* Whether that is this fiber of the pool. False: it is not known without a search. */
HAFTI_INLINE bool haft_is_here(const hafti_thread_t *thread, const haft_fiber_t *fiber) {
    const char *here = __builtin_frame_address(0);
    return here >= fiber->low && here < fiber->high && thread->segmented == NULL &&
           !haft_any_given();
}

/* stacks.c */
/* The fiber whose stack resumed this one. */
haft_fiber_t *haft_resumer_of(const haft_fiber_t *fiber);
/* The fiber whose first frame an unwinder comes to first: this one, or, from a fiber of another
   language, the next one further out that is not. */
haft_fiber_t *haft_fiber_to_unwind(void);

#ifndef HAFT_FREESTANDING
void haft_fibers_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument);
void haft_fibers_watch_forks(void);
/* shown.c has them, from slots.c and given_memory.c. */
extern const haft_shown_t haft_shown_slots[], haft_shown_given_memory[];
enum { HAFT_UNWINDS = 1 }; /* whether there is anything that runs cleanups */
#endif

#endif
