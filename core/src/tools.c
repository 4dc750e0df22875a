/*
 * Telling sanitizers and Valgrind about fibers.
 *
 * While a sanitizer is in the process, haft_tools_active sends every switch through the out-of-line
 * path, however the program around was compiled: no cache entry leads to the inlined one, and `ready`
 * keeps its lowest bit set. Here is what that path calls around the switch.
 */
#include "internal.h"

#include <stdlib.h>

#if __has_include(<valgrind/valgrind.h>)
#    include <valgrind/valgrind.h>
#else
#    define VALGRIND_STACK_REGISTER(low, high) ((void)(low), (void)(high), 0u)
#endif

bool haft_tools_active;

extern void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size)
    __attribute__((weak));
extern void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size)
    __attribute__((weak));
extern void *__tsan_get_current_fiber(void) __attribute__((weak));
extern void *__tsan_create_fiber(unsigned flags) __attribute__((weak));
extern void __tsan_destroy_fiber(void *fiber) __attribute__((weak));
extern void __tsan_switch_to_fiber(void *fiber, unsigned flags) __attribute__((weak));

typedef struct side {
    void *thread; /* what ThreadSanitizer calls a fiber */
    const void *bottom;
    size_t size;
} side_t;

/* The stacks on the two sides of a fiber's border: the innermost of the suspended chain, and the one
   that resumed it. */
typedef struct tools {
    side_t inside, outside;
    void *own;
} tools_t;

void haft_tools_detect(void) {
    haft_tools_active = __sanitizer_start_switch_fiber != NULL || __tsan_create_fiber != NULL;
}

void haft_tools_stack(haft_fiber_t *fiber, char *low, char *high) {
    (void)fiber;
    (void)VALGRIND_STACK_REGISTER(low, high);
}

void haft_tools_born(haft_fiber_t *fiber) {
    tools_t *tools = calloc(1, sizeof *tools);
    if (tools == NULL)
        haft_fail(HAFT_ERROR_NO_MEMORY, NULL, fiber, "No memory for the sanitizer's records.");
    tools->inside.bottom = fiber->low;
    tools->inside.size = (size_t)(fiber->high - fiber->low);
    if (__tsan_create_fiber)
        tools->own = tools->inside.thread = __tsan_create_fiber(0);
    fiber->tools = tools;
}

void haft_tools_gone(haft_fiber_t *fiber) {
    tools_t *tools = fiber->tools;
    if (__tsan_destroy_fiber)
        __tsan_destroy_fiber(tools->own);
    free(tools);
    fiber->tools = NULL;
}

void *haft_tools_before(haft_fiber_t *fiber, enum haft_crossing crossing) {
    tools_t *tools = fiber->tools;
    void *saved = NULL;
    if (tools == NULL)
        return NULL;
    side_t *from = crossing == HAFT_INTO ? &tools->outside : &tools->inside;
    const side_t *to = crossing == HAFT_INTO ? &tools->inside : &tools->outside;
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(crossing == HAFT_OUT_FOR_GOOD ? NULL : &saved, to->bottom,
                                       to->size);
    if (__tsan_get_current_fiber) {
        from->thread = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(to->thread, 0);
    }
    return saved;
}

void haft_tools_after(haft_fiber_t *fiber, enum haft_crossing crossing, void *saved) {
    tools_t *tools = fiber->tools;
    if (tools == NULL || !__sanitizer_finish_switch_fiber)
        return;
    side_t *left = crossing == HAFT_INTO ? &tools->inside : &tools->outside;
    __sanitizer_finish_switch_fiber(saved, &left->bottom, &left->size);
}
