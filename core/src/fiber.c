/* SPDX-License-Identifier: MIT */
/*
 * The life of a fiber: made in a stack of the pool, in memory of the caller, or in a first segment;
 * reset; freed. The layout is drawn in haft/layout.h.
 *
 * Invariant: the gate is open exactly while the fiber is suspended, or new, and nobody resumes it;
 * of a finished, running or freed fiber `state` says which.
 */
#include "internal.h"

enum { HEADER_ALIGNMENT = 64 };
static const uint64_t canary = 0x5afe57acc0ffee11u;

void haft_place_canary(haft_fiber_t *fiber) {
    for (int i = 0; i < HAFT_CANARY_WORDS; i++)
        ((uint64_t *)(void *)fiber->low)[-1 - i] = canary;
}

static bool on_stack(const haft_fiber_t *fiber, const char *sp) {
    return sp >= fiber->low && sp <= fiber->high;
}

/* Whether the stack of `at` is further in than the fiber's. That of another fiber, to which this
   one has overflowed, is not. */
static bool further_in(const haft_fiber_t *fiber, const haft_fiber_t *at) {
    while (at != NULL && at != fiber && at->state == HAFT_FIBER_RUNNING)
        at = haft_resumer_of(at);
    return at == fiber;
}

void haft_check_stack(haft_fiber_t *fiber, const char *sp, const haft_fiber_t *segmented) {
    bool overflow = !on_stack(fiber, sp) &&
                    !further_in(fiber, segmented != NULL ? segmented : haft_fiber_at(sp));
    for (int i = 0; i < HAFT_CANARY_WORDS; i++)
        overflow |= ((const uint64_t *)(const void *)fiber->low)[-1 - i] != canary;
    if (HAFT_UNLIKELY(overflow))
        haft_fail(HAFT_ERROR_STACK_OVERFLOW, haft_awaited(fiber), fiber,
                  "%s has overflowed its stack of %zu bytes, which has no guard page, and what "
                  "lies below is overwritten. Give it more memory.",
                  haft_fiber_label(fiber), (size_t)(fiber->high - fiber->low));
}

void haft_not_given(const char *function, const char *thing) {
    haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL, "%s was given no %s (NULL).", function, thing);
}

/* Makes the fiber run `function(argument)` from the top of its empty stack. */
static void wind_up(haft_fiber_t *fiber, void *(*function)(void *), void *argument) {
    fiber->context = (haft_context_t){
        .fp = &fiber->resumer, .pc = (void *)(uintptr_t)haft_fiber_start, .sp = fiber->high};
#ifdef __x86_64__
    uint16_t control;
    __asm__("fnstcw %0" : "=m"(control));
    fiber->context.control = control;
#else
    __asm__ volatile("mrs %0, fpcr" : "=r"(fiber->context.control));
#endif
    fiber->function = function;
    fiber->argument = argument;
    fiber->result = NULL;
    fiber->scope.awaits = HAFT_AWAITS_NOTHING;
    fiber->state = HAFT_FIBER_NEW;
    fiber->scope.handles = NULL;
    fiber->set = HAFT_SET_NONE;
    fiber->scope.outer = NULL;
    fiber->top = &fiber->scope;
    fiber->within = NULL;
    bool ordinary = fiber->kind == HAFT_KIND_POOL && !haft_resume_slowly;
    __atomic_store_n(&fiber->gate, ordinary ? HAFT_GATE_NEW : HAFT_GATE_SLOW, __ATOMIC_RELEASE);
}

/* The maker of a fiber is the most likely to resume it. */
static void own(const haft_thread_t *thread, haft_fiber_t *fiber) {
    __atomic_store_n(&fiber->owner, thread->current->serial, __ATOMIC_RELAXED);
}

static void furnish(haft_fiber_t *fiber, enum haft_fiber_kind kind, const char *name) {
    fiber->scope.kind = HAFT_SCOPE_FIBER;
    fiber->scope.slow = 0;
    fiber->scope.state = NULL;
    fiber->name = name;
    fiber->thrown = NULL;
    fiber->handler = NULL;
    fiber->tools = NULL;
    fiber->language = NULL;
    fiber->kind = (uint8_t)kind;
    fiber->cleanups = 1;
    fiber->checked = kind == HAFT_KIND_FIXED || kind == HAFT_KIND_UNGUARDED;
}

static haft_fiber_t *place_in(const haft_fiber_options_t *options) {
    void *memory = options->memory;
    size_t size = options->memory_size;
    if (memory == NULL || size < HAFT_FIBER_MINIMUM)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "A fiber in memory of the caller needs at least %zu bytes; it was given %zu.",
                  HAFT_FIBER_MINIMUM, memory == NULL ? 0 : size);
    if (size > UINTPTR_MAX - (uintptr_t)memory)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "A fiber was given %zu bytes of memory: there are not as many from there on.",
                  size);
    uintptr_t end = ((uintptr_t)memory + size) & ~(uintptr_t)(HEADER_ALIGNMENT - 1);
    haft_fiber_t *fiber =
        (haft_fiber_t *)((end - sizeof *fiber) & ~(uintptr_t)(HEADER_ALIGNMENT - 1));
    return haft_fibers_list(fiber, memory, size, options->name, true) ? fiber : NULL;
}

void haft_fiber_prepare(haft_fiber_t *fiber, void *memory) {
    __builtin_memset(fiber, 0, sizeof *fiber);
    fiber->low = haft_stack_in(memory);
    fiber->high = (char *)fiber;
    haft_place_canary(fiber);
}

void haft_memory_taken(const haft_fiber_t *live, const char *name) {
    haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, live,
              "The memory for %s%s%s overlaps that of %s, which has not finished: free that one "
              "before its memory is used for something else.",
              name == NULL ? "a fiber" : "the fiber '", name == NULL ? "" : name,
              name == NULL ? "" : "'",
              live == NULL ? "another fiber, overwritten since" : haft_fiber_label(live));
}

/* A fiber in memory of the caller that has finished has left the list, and is to run again. */
static bool place_again(haft_fiber_t *fiber) {
    char *memory = fiber->low - HAFT_CANARY_WORDS * sizeof canary;
    if (!haft_fibers_list(fiber, memory, (size_t)((char *)(fiber + 1) - memory), fiber->name,
                          false))
        return false;
    if (fiber->tools == NULL)
        haft_tools_born(fiber);
    return true;
}

void *haft_fixed_ended(haft_fiber_t *fiber, void *payload) {
    haft_fibers_unlist(fiber);
    haft_tools_ended(fiber);
    return haft_settle_kept(fiber, payload);
}

static void release_segments(haft_fiber_t *fiber) {
#ifdef HAFT_SEGMENTS
    haft_segments_release(&fiber->segments);
#else
    (void)fiber;
#endif
}

static void reset_segments(haft_fiber_t *fiber) {
#ifdef HAFT_SEGMENTS
    haft_segments_reset(&fiber->segments);
#else
    (void)fiber;
#endif
}

static HAFT_COLD haft_fiber_t *make_segmented(haft_thread_t *thread,
                                              const haft_fiber_options_t *options) {
#ifdef HAFT_SEGMENTS
    if (options->memory != NULL || options->memory_size != 0)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "A segmented fiber cannot lie in memory of the caller.");
    haft_fiber_t *fiber = haft_pool_take_segmented(thread);
    if (fiber == NULL)
        return NULL;
    haft_foreign_stack_make(thread); /* here is more room for it than on the first segment */
    haft_segments_init(&fiber->segments, fiber->low, fiber->high);
    furnish(fiber, HAFT_KIND_SEGMENTED, options->name);
    return fiber;
#else
    (void)thread, (void)options;
    haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
              "Segmented fibers need -fsplit-stack, which compilers have for x86-64 Linux only.");
#endif
}

haft_fiber_t *haft_fiber_new_sized(const haft_fiber_options_t *given, size_t size,
                                   void *(*function)(void *), void *argument) {
    haft_fiber_options_t known = {.stack_size = 0};
    const haft_fiber_options_t *options = given == NULL ? &known : given;
    if (HAFT_UNLIKELY(size !=
                      sizeof known)) { /* of a program that was compiled for another version */
        __builtin_memcpy(&known, options, size < sizeof known ? size : sizeof known);
        options = &known;
    }
    haft_thread_t *thread = haft_thread_ready();
    haft_fiber_t *fiber;
    haft_check_here(thread);
    haft_check_uses(thread, NULL, "made");
    if (function == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL, "A fiber needs a function to run (NULL).");
    if (HAFT_UNLIKELY(options->segmented) && !haft_tools_know_stacks()) {
        fiber = make_segmented(thread, options);
        if (fiber == NULL)
            return haft_pool_exhausted(HAFT_SEGMENTED_SIZE);
    } else if (options->memory != NULL || options->memory_size != 0) {
        fiber = place_in(options);
        if (fiber == NULL)
            return NULL;
        furnish(fiber, HAFT_KIND_FIXED, options->name);
    } else {
        size_t bytes = options->stack_size != 0 ? options->stack_size : haft_stack_size();
        if (HAFT_UNLIKELY(options->dense) && !haft_tools_know_stacks())
            fiber = haft_pool_take_dense(thread, options->stack_size);
        else
            fiber = haft_pool_take(thread, bytes);
        if (fiber == NULL)
            return haft_pool_exhausted(bytes);
        furnish(fiber, (enum haft_fiber_kind)fiber->kind, options->name);
    }
    bool room = fiber->kind == HAFT_KIND_FIXED
                    ? options->memory_size >= HAFT_UNWINDING_MINIMUM
                    : !options->dense || options->stack_size >= HAFT_UNWINDING_MINIMUM;
    fiber->cleanups = HAFT_UNWINDS && room && !options->no_cleanups;
    if (HAFT_UNLIKELY(haft_tools_active || fiber->kind != HAFT_KIND_POOL))
        haft_tools_born(fiber);
    own(thread, fiber);
    wind_up(fiber, function, argument);
    return fiber;
}

haft_fiber_t *haft_fiber_new(void *(*function)(void *), void *argument) {
    haft_thread_t *thread = haft_thread();
    haft_fiber_t *fiber = NULL;
    if (HAFT_LIKELY(function != NULL && !haft_tools_active))
        fiber = haft_pool_take_kept(thread, haft_default_size);
    if (HAFT_UNLIKELY(fiber == NULL))
        return haft_fiber_new_with(NULL, function, argument);
    furnish(fiber, HAFT_KIND_POOL, NULL);
    fiber->cleanups = HAFT_UNWINDS;
    own(thread, fiber);
    wind_up(fiber, function, argument);
    return fiber;
}

/* Of several threads that want a finished fiber one gets it. */
HAFT_INLINE bool take_finished(haft_fiber_t *fiber) {
    if (HAFT_LIKELY(haft_is_alone())) {
        bool finished = fiber->state == HAFT_FIBER_FINISHED;
        if (finished)
            fiber->state = HAFT_FIBER_FREED;
        return finished;
    }
    uint32_t finished = HAFT_FIBER_FINISHED;
    return __atomic_compare_exchange_n(&fiber->state, &finished, HAFT_FIBER_FREED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static char *late_payload(const haft_fiber_t *fiber) {
    char *stopped = fiber->context.sp;
    bool waits = haft_fiber_state(fiber) == HAFT_FIBER_SUSPENDED && haft_awaited(fiber) != NULL;
    bool stopped_here = waits && haft_awaited(fiber)->spoils && haft_fiber_at(stopped) == fiber;
    return stopped_here && fiber->kind != HAFT_KIND_SEGMENTED ? stopped : NULL;
}

/* To the thread sanitizer the stack is another thread's. */
static HAFT_UNINSTRUMENTED void spoil(char *from, const char *to) {
    haft_tools_reserved(from, (size_t)(to - from));
    for (volatile char *byte = from; byte < to; byte++)
        *byte = (char)0xdb;
}

/* A fiber that is to be freed or reset. `claimed`: nobody else can use it, but it may have frames.
   `taken`: it has none any more. `payload`: from where on its stack lies the payload of what it waited
   on, if that is to be overwritten. */
typedef struct ending {
    haft_fiber_t *fiber;
    bool claimed, taken;
    char *payload;
} ending_t;

/* Ends what a fiber that is not running was doing, and takes it. */
static void finish(ending_t *ending, const char *what) {
    haft_fiber_t *fiber = ending->fiber;
    haft_check_uses(haft_thread_ready(), fiber, what);
    /* A cleanup may send an effect out of the fiber: that is dropped, too. */
    while (!take_finished(fiber)) {
        uint64_t owner = haft_claim(haft_thread_ready(), fiber, HAFT_ERROR_IN_USE, what);
        ending->claimed = true;
        haft_use_up(fiber);
        bool waits = fiber->state != HAFT_FIBER_NEW;
        if (waits && haft_needs_unwinding(fiber)) {
            (void)haft_unwind_claimed(fiber, owner);
            continue;
        }
        if (waits)
            haft_abandon_inside(fiber);
        if (fiber->kind == HAFT_KIND_FIXED)
            haft_fibers_unlist(fiber);
        fiber->state = HAFT_FIBER_FREED;
        break;
    }
    ending->claimed = ending->taken = true;
    if (HAFT_UNLIKELY(fiber->thrown != NULL))
        haft_forget_kept(fiber);
}

static void release(const ending_t *freed) {
    haft_fiber_t *fiber = freed->fiber;
    if (!freed->claimed || (!freed->taken && !take_finished(fiber)))
        return; /* It was not ours to free, and the error handler has left. */
    if (HAFT_UNLIKELY(fiber->thrown != NULL))
        haft_forget_kept(fiber);
    if (fiber->tools != NULL)
        haft_tools_gone(fiber);
    if (freed->payload != NULL)
        spoil(freed->payload, fiber->high);
    fiber->state = HAFT_FIBER_FREED;
    if (fiber->kind == HAFT_KIND_SEGMENTED)
        release_segments(fiber);
    if (fiber->kind != HAFT_KIND_FIXED)
        haft_pool_give(haft_thread(), fiber);
}

/* One that has not finished, or left something behind. */
static HAFT_COLD void free_slow(haft_fiber_t *fiber) {
    haft_check_own(fiber, "freed");
    /* Also when a cleanup of the fiber leaves for somewhere further out. */
    __attribute__((unused, cleanup(release)))
    ending_t freed = {.fiber = fiber, .payload = late_payload(fiber)};
    finish(&freed, "freed");
}

static HAFT_COLD void freed_twice(const haft_fiber_t *fiber) {
    haft_fail(HAFT_ERROR_IN_USE, NULL, fiber,
              "%s was freed by two threads at once. Only one may own a fiber that has finished.",
              haft_fiber_label(fiber));
}

void haft_fiber_drop(haft_fiber_t *fiber) {
    if (fiber == NULL)
        return;
    if (HAFT_UNLIKELY(fiber->state != HAFT_FIBER_FINISHED || fiber->kind != HAFT_KIND_POOL ||
                      fiber->language != NULL || fiber->thrown != NULL || fiber->tools != NULL)) {
        free_slow(fiber);
        return;
    }
    if (HAFT_UNLIKELY(!take_finished(fiber)))
        freed_twice(fiber);
    haft_pool_give(haft_thread_ready(), fiber);
}

void haft_fiber_reset(haft_fiber_t *fiber, void *(*function)(void *), void *argument) {
    haft_check_given(fiber, "haft_fiber_reset", "fiber");
    if (function == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, fiber, "A fiber needs a function to run (NULL).");
    haft_check_own(fiber, "reset");
    ending_t ending = {.fiber = fiber};
    finish(&ending, "reset");
    if (fiber->kind == HAFT_KIND_FIXED) {
        fiber->state = HAFT_FIBER_FINISHED; /* what it stays if its memory is another's by now */
        if (!place_again(fiber))
            return;
    }
    haft_tools_reset(fiber);
    if (fiber->kind == HAFT_KIND_SEGMENTED)
        reset_segments(fiber);
    /* `owner` stays: it may be the mark of a thread that tries to claim the fiber. */
    wind_up(fiber, function, argument);
}

haft_fiber_state_t haft_fiber_state(const haft_fiber_t *fiber) {
    haft_check_given(fiber, "haft_fiber_state", "fiber");
    if (HAFT_UNLIKELY(fiber->language != NULL))
        return fiber->language->state(fiber);
    if (fiber->state == HAFT_FIBER_NEW && fiber->high == NULL)
        return HAFT_FIBER_FREED; /* and its memory has been given back */
    if (fiber->state == HAFT_FIBER_RUNNING &&
        __atomic_load_n(&fiber->gate, __ATOMIC_RELAXED) != HAFT_GATE_CLOSED)
        return HAFT_FIBER_SUSPENDED;
    return (haft_fiber_state_t)fiber->state;
}

const char *haft_fiber_name(const haft_fiber_t *fiber) {
    haft_check_given(fiber, "haft_fiber_name", "fiber");
    return fiber->name == NULL ? "" : fiber->name;
}

void haft_fiber_set_name(haft_fiber_t *fiber, const char *name) {
    haft_check_given(fiber, "haft_fiber_set_name", "fiber");
    fiber->name = name;
}

haft_fiber_t *haft_fiber_current(void) {
    return haft_scope_fiber(haft_thread_ready()->current);
}

haft_fiber_t *haft_fiber_parent(const haft_fiber_t *fiber) {
    haft_check_given(fiber, "haft_fiber_parent", "fiber");
    return haft_fiber_state(fiber) == HAFT_FIBER_RUNNING ? haft_scope_fiber(fiber->scope.outer)
                                                         : NULL;
}
