/*
 * The life of a fiber: made in a stack of the pool, in memory of the caller, or in a first segment;
 * reset; freed. The layout is drawn in haft/layout.h.
 *
 * Invariant: the gate is open exactly while the fiber is suspended, or new, and nobody resumes it;
 * of a finished, running or freed fiber `state` says which.
 */
#include "internal.h"

enum { CANARY_WORDS = 4, HEADER_ALIGNMENT = 64 };
static const uint64_t canary = 0x5afe57acc0ffee11u;

void haft_place_canary(haft_fiber_t *fiber) {
    for (int i = 0; i < CANARY_WORDS; i++)
        ((uint64_t *)(void *)fiber->low)[-1 - i] = canary;
}

void haft_check_canary(haft_fiber_t *fiber) {
    for (int i = 0; i < CANARY_WORDS; i++)
        if (((const uint64_t *)(const void *)fiber->low)[-1 - i] != canary)
            haft_fail(HAFT_ERROR_STACK_OVERFLOW, fiber->awaits, fiber,
                      "%s has overflowed its stack of %zu bytes, which has no guard page, and what "
                      "lies below is overwritten. Give it more memory.",
                      haft_fiber_label(fiber), (size_t)(fiber->high - fiber->low));
}

/* Makes the fiber run `function(argument)` from the top of its empty stack. */
static void wind_up(haft_thread_t *thread, haft_fiber_t *fiber, void *(*function)(void *),
                    void *argument) {
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
    fiber->awaits = NULL;
    fiber->state = HAFT_FIBER_NEW;
    fiber->scope.handles = NULL;
    fiber->alias = NULL;
    fiber->scope.outer = NULL;
    fiber->top = &fiber->scope;
    fiber->within = NULL;
    /* Its maker is the most likely to resume it. */
    bool ordinary = fiber->kind == HAFT_KIND_POOL && !haft_resume_slowly;
    __atomic_store_n(&fiber->owner, thread->current->serial, __ATOMIC_RELAXED);
    __atomic_store_n(&fiber->gate, ordinary ? HAFT_GATE_NEW : HAFT_GATE_SLOW, __ATOMIC_RELEASE);
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

static haft_fiber_t *place_in(void *memory, size_t size) {
    if (memory == NULL || size < HAFT_FIBER_MINIMUM)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "A fiber in memory of the caller needs at least %zu bytes; it was given %zu.",
                  HAFT_FIBER_MINIMUM, memory == NULL ? 0 : size);
    uintptr_t end = ((uintptr_t)memory + size) & ~(uintptr_t)(HEADER_ALIGNMENT - 1);
    haft_fiber_t *fiber =
        (haft_fiber_t *)((end - sizeof *fiber) & ~(uintptr_t)(HEADER_ALIGNMENT - 1));
    __builtin_memset(fiber, 0, sizeof *fiber);
    uint64_t *low = (uint64_t *)(((uintptr_t)memory + 15) & ~(uintptr_t)15);
    fiber->low = (char *)(low + CANARY_WORDS);
    haft_place_canary(fiber);
    fiber->high = (char *)fiber;
    return fiber;
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

haft_fiber_t *haft_fiber_create(const haft_fiber_options_t *options, void *(*function)(void *),
                                void *argument) {
    static const haft_fiber_options_t defaults = {.stack_size = 0};
    if (options == NULL)
        options = &defaults;
    haft_thread_t *thread = haft_thread_ready();
    haft_fiber_t *fiber;
    if (function == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL, "A fiber needs a function to run (NULL).");
    if (HAFT_UNLIKELY(options->segmented) && !haft_tools_know_stacks()) {
        fiber = make_segmented(thread, options);
        if (fiber == NULL)
            return haft_pool_exhausted(HAFT_SEGMENTED_SIZE);
    } else if (options->memory != NULL || options->memory_size != 0) {
        fiber = place_in(options->memory, options->memory_size);
        furnish(fiber, HAFT_KIND_FIXED, options->name);
        haft_fibers_list(fiber);
    } else {
        size_t size = options->stack_size != 0 ? options->stack_size : haft_stack_size();
        if (HAFT_UNLIKELY(options->dense) && !haft_tools_know_stacks())
            fiber = haft_pool_take_dense(thread, options->stack_size);
        else
            fiber = haft_pool_take(thread, size);
        if (fiber == NULL)
            return haft_pool_exhausted(size);
        furnish(fiber, (enum haft_fiber_kind)fiber->kind, options->name);
    }
    bool room = fiber->kind == HAFT_KIND_FIXED
                    ? options->memory_size >= HAFT_UNWINDING_MINIMUM
                    : !options->dense || options->stack_size >= HAFT_UNWINDING_MINIMUM;
    fiber->cleanups = HAFT_UNWINDS && room && !options->no_cleanups;
    if (HAFT_UNLIKELY(haft_tools_active || fiber->kind != HAFT_KIND_POOL))
        haft_tools_born(fiber);
    wind_up(thread, fiber, function, argument);
    return fiber;
}

haft_fiber_t *haft_fiber_new(void *(*function)(void *), void *argument) {
    haft_thread_t *thread = haft_thread();
    haft_fiber_t *fiber = NULL;
    if (HAFT_LIKELY(function != NULL && !haft_tools_active))
        fiber = haft_pool_take_kept(thread, haft_default_size);
    if (HAFT_UNLIKELY(fiber == NULL))
        return haft_fiber_create(NULL, function, argument);
    furnish(fiber, HAFT_KIND_POOL, NULL);
    fiber->cleanups = HAFT_UNWINDS;
    wind_up(thread, fiber, function, argument);
    return fiber;
}

/* Ends what a fiber that is not running was doing, and makes it this thread's. */
static void finish(haft_thread_t *thread, haft_fiber_t *fiber, const char *what) {
    if (fiber->state != HAFT_FIBER_FINISHED) {
        fiber->shot++;
        /* A cleanup may send an effect out of the fiber: that is dropped, too. */
        while (haft_fiber_state(fiber) == HAFT_FIBER_SUSPENDED && haft_needs_unwinding(fiber))
            (void)haft_enter(fiber, fiber, HAFT_WAKE_UNWIND, &haft_handles_none);
        if (fiber->state != HAFT_FIBER_FINISHED) {
            bool waits = haft_fiber_state(fiber) == HAFT_FIBER_SUSPENDED;
            (void)haft_claim(thread, fiber, HAFT_ERROR_IN_USE, what);
            if (waits)
                haft_abandon_inside(fiber);
            fiber->state = HAFT_FIBER_FINISHED;
        }
    }
    if (HAFT_UNLIKELY(fiber->thrown != NULL))
        haft_forget_kept(fiber);
}

static void release(haft_fiber_t **freed) {
    haft_fiber_t *fiber = *freed;
    if (fiber->state != HAFT_FIBER_FINISHED)
        return; /* It was not ours to free, and the error handler has left. */
    if (HAFT_UNLIKELY(fiber->thrown != NULL))
        haft_forget_kept(fiber);
    if (fiber->tools != NULL)
        haft_tools_gone(fiber);
    fiber->state = HAFT_FIBER_FREED;
    if (fiber->kind == HAFT_KIND_FIXED) {
        haft_fibers_unlist(fiber);
        return;
    }
    if (fiber->kind == HAFT_KIND_SEGMENTED)
        release_segments(fiber);
    haft_pool_give(haft_thread(), fiber);
}

/* One that has not finished, or left something behind. */
static HAFT_COLD void free_slow(haft_fiber_t *fiber) {
    haft_check_own(fiber, "freed");
    /* Also when a cleanup of the fiber leaves for somewhere further out. */
    __attribute__((unused, cleanup(release))) haft_fiber_t *freed = fiber;
    finish(haft_thread_ready(), fiber, "freed");
}

void haft_fiber_free(haft_fiber_t *fiber) {
    if (fiber == NULL)
        return;
    if (HAFT_UNLIKELY(fiber->state != HAFT_FIBER_FINISHED || fiber->kind != HAFT_KIND_POOL ||
                      fiber->language != NULL || fiber->thrown != NULL || fiber->tools != NULL)) {
        free_slow(fiber);
        return;
    }
    fiber->state = HAFT_FIBER_FREED;
    haft_pool_give(haft_thread_ready(), fiber);
}

void haft_fiber_reset(haft_fiber_t *fiber, void *(*function)(void *), void *argument) {
    if (fiber == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "haft_fiber_reset was given no fiber (NULL).");
    if (function == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, fiber, "A fiber needs a function to run (NULL).");
    haft_check_own(fiber, "reset");
    haft_thread_t *thread = haft_thread_ready();
    finish(thread, fiber, "reset");
    haft_tools_reset(fiber);
    if (fiber->kind == HAFT_KIND_SEGMENTED)
        reset_segments(fiber);
    wind_up(haft_thread(), fiber, function, argument);
}

haft_fiber_state_t haft_fiber_state(const haft_fiber_t *fiber) {
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
    return fiber->name == NULL ? "" : fiber->name;
}

void haft_fiber_set_name(haft_fiber_t *fiber, const char *name) {
    fiber->name = name;
}

haft_fiber_t *haft_fiber_current(void) {
    return haft_scope_fiber(haft_thread_ready()->current);
}

haft_fiber_t *haft_fiber_parent(const haft_fiber_t *fiber) {
    return haft_fiber_state(fiber) == HAFT_FIBER_RUNNING ? haft_scope_fiber(fiber->scope.outer)
                                                         : NULL;
}
