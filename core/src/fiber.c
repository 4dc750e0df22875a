/*
 * The life of a fiber: made in a stack of the pool, in memory of the caller, or in a first segment;
 * reset; freed. The layout is drawn in haft/layout.h.
 *
 * Invariant: the gate is open exactly while the fiber is suspended, or new, and nobody resumes it; of a
 * finished, running or freed fiber `state` says which.
 */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY_WORDS = 4, HEADER_ALIGNMENT = 64 };
static const uint64_t canary = 0x5afe57acc0ffee11u;

/* Fibers outside the pool, for haft_fibers_dump and for finding a fiber by an address. */
static haft_fiber_t *outside;
static pthread_mutex_t outside_lock = PTHREAD_MUTEX_INITIALIZER;

static void list_outside(haft_fiber_t *fiber) {
    pthread_mutex_lock(&outside_lock);
    fiber->previous = NULL;
    fiber->next = outside;
    if (outside != NULL)
        outside->previous = fiber;
    outside = fiber;
    pthread_mutex_unlock(&outside_lock);
}

static void unlist_outside(haft_fiber_t *fiber) {
    pthread_mutex_lock(&outside_lock);
    if (fiber->previous != NULL)
        fiber->previous->next = fiber->next;
    else
        outside = fiber->next;
    if (fiber->next != NULL)
        fiber->next->previous = fiber->previous;
    pthread_mutex_unlock(&outside_lock);
}

/* Called from signal handlers too: a list that is being changed is left out. */
void haft_fibers_each(void (*visit)(haft_fiber_t *fiber, void *argument), void *argument) {
    haft_pool_each(visit, argument);
    if (pthread_mutex_trylock(&outside_lock) != 0)
        return;
    for (haft_fiber_t *fiber = outside; fiber != NULL; fiber = fiber->next)
        visit(fiber, argument);
    pthread_mutex_unlock(&outside_lock);
}

haft_fiber_t *haft_fiber_at(const void *address) {
    haft_fiber_t *found = haft_pool_fiber_at(address);
    if (found != NULL)
        return found;
    pthread_mutex_lock(&outside_lock);
    for (haft_fiber_t *fiber = outside; fiber != NULL; fiber = fiber->next)
        if ((const char *)address >= fiber->low && (const char *)address < fiber->high)
            found = fiber;
    pthread_mutex_unlock(&outside_lock);
    return found;
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
    fiber->scope.outer = NULL;
    fiber->top = &fiber->scope;
    /* Its maker is the most likely to resume it. The first resume takes the slow path all the same,
       because the handled set differs from NULL. */
    __atomic_store_n(&fiber->owner, thread->current->serial, __ATOMIC_RELAXED);
    __atomic_store_n(&fiber->gate, HAFT_GATE_SLOW, __ATOMIC_RELEASE);
}

static void furnish(haft_fiber_t *fiber, enum haft_fiber_kind kind, const char *name) {
    fiber->scope.kind = HAFT_SCOPE_FIBER;
    fiber->scope.slow = kind != HAFT_KIND_POOL;
    fiber->scope.state = NULL;
    fiber->name = name;
    fiber->thrown = NULL;
    fiber->handler = NULL;
    fiber->tools = NULL;
    fiber->kind = (uint8_t)kind;
    fiber->cleanups = 1;
    fiber->checked = kind == HAFT_KIND_FIXED;
}

static haft_fiber_t *exhausted(size_t size) {
    haft_report(HAFT_ERROR_NO_MEMORY, NULL, NULL,
                "No memory for a fiber's stack of %zu bytes: %s.", size, strerror(errno));
    errno = ENOMEM;
    return NULL;
}

static haft_fiber_t *place_in(void *memory, size_t size) {
    if (memory == NULL || size < HAFT_FIBER_MINIMUM)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "A fiber in memory of the caller needs at least %zu bytes; it was given %zu.",
                  HAFT_FIBER_MINIMUM, memory == NULL ? 0 : size);
    uintptr_t end = ((uintptr_t)memory + size) & ~(uintptr_t)(HEADER_ALIGNMENT - 1);
    haft_fiber_t *fiber =
        (haft_fiber_t *)((end - sizeof *fiber) & ~(uintptr_t)(HEADER_ALIGNMENT - 1));
    memset(fiber, 0, sizeof *fiber);
    uint64_t *low = (uint64_t *)(((uintptr_t)memory + 15) & ~(uintptr_t)15);
    for (int i = 0; i < CANARY_WORDS; i++)
        low[i] = canary;
    fiber->low = (char *)(low + CANARY_WORDS);
    fiber->high = (char *)fiber;
    return fiber;
}

HAFT_INLINE haft_fiber_t *create(const haft_fiber_options_t *options, void *(*function)(void *),
                                 void *argument) {
    haft_thread_t *thread = haft_thread_ready();
    haft_fiber_t *fiber;
    if (function == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL, "A fiber needs a function to run (NULL).");
    if (options->memory != NULL || options->memory_size != 0) {
        fiber = place_in(options->memory, options->memory_size);
        furnish(fiber, HAFT_KIND_FIXED, options->name);
        list_outside(fiber);
    } else {
        size_t size = options->stack_size != 0 ? options->stack_size : haft_stack_size();
        fiber = haft_pool_take(thread, size);
        if (fiber == NULL)
            return exhausted(size);
        furnish(fiber, HAFT_KIND_POOL, options->name);
    }
    fiber->cleanups = !options->no_cleanups;
    if (HAFT_UNLIKELY(haft_tools_active || fiber->kind != HAFT_KIND_POOL))
        haft_tools_born(fiber);
    wind_up(thread, fiber, function, argument);
    return fiber;
}

haft_fiber_t *haft_fiber_create(const haft_fiber_options_t *options, void *(*function)(void *),
                                void *argument) {
    return create(options, function, argument);
}

haft_fiber_t *haft_fiber_new(void *(*function)(void *), void *argument) {
    return create(&(haft_fiber_options_t){.stack_size = 0}, function, argument);
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
    if (HAFT_UNLIKELY(fiber->thrown != NULL)) {
        free(fiber->thrown);
        fiber->thrown = NULL;
    }
}

static void release(haft_fiber_t **freed) {
    haft_fiber_t *fiber = *freed;
    if (fiber->state != HAFT_FIBER_FINISHED)
        return; /* It was not ours to free, and the error handler has left. */
    free(fiber->thrown);
    if (fiber->tools != NULL)
        haft_tools_gone(fiber);
    fiber->state = HAFT_FIBER_FREED;
    if (fiber->kind == HAFT_KIND_POOL)
        haft_pool_give(haft_thread(), fiber);
    else
        unlist_outside(fiber);
}

void haft_fiber_free(haft_fiber_t *fiber) {
    if (fiber == NULL)
        return;
    /* Also when a cleanup of the fiber leaves for somewhere further out. */
    __attribute__((unused, cleanup(release))) haft_fiber_t *freed = fiber;
    finish(haft_thread_ready(), fiber, "freed");
}

void haft_fiber_reset(haft_fiber_t *fiber, void *(*function)(void *), void *argument) {
    if (fiber == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, NULL,
                  "haft_fiber_reset was given no fiber (NULL).");
    if (function == NULL)
        haft_fail(HAFT_ERROR_BAD_ARGUMENT, NULL, fiber, "A fiber needs a function to run (NULL).");
    haft_thread_t *thread = haft_thread_ready();
    finish(thread, fiber, "reset");
    haft_tools_reset(fiber);
    wind_up(haft_thread(), fiber, function, argument);
}

haft_fiber_state_t haft_fiber_state(const haft_fiber_t *fiber) {
    if (fiber->state == HAFT_FIBER_RUNNING &&
        __atomic_load_n(&fiber->gate, __ATOMIC_RELAXED) != HAFT_GATE_CLOSED)
        return HAFT_FIBER_SUSPENDED;
    return (haft_fiber_state_t)fiber->state;
}

const char *haft_fiber_name(const haft_fiber_t *fiber) {
    return fiber->name == NULL ? "" : fiber->name;
}

void haft_fiber_set_name(haft_fiber_t *fiber, const char *name) { fiber->name = name; }

const char *haft_fiber_label(const haft_fiber_t *fiber) {
    static __thread char label[96];
    if (fiber == NULL)
        return "the thread's own stack";
    if (fiber->name == NULL)
        snprintf(label, sizeof label, "the unnamed fiber %p", (const void *)fiber);
    else
        snprintf(label, sizeof label, "the fiber '%.64s'", fiber->name);
    return label;
}

haft_fiber_t *haft_fiber_current(void) {
    return haft_scope_fiber(haft_thread_ready()->current);
}

haft_fiber_t *haft_fiber_parent(const haft_fiber_t *fiber) {
    return haft_fiber_state(fiber) == HAFT_FIBER_RUNNING ? haft_scope_fiber(fiber->scope.outer)
                                                         : NULL;
}
