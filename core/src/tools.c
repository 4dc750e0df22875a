/* SPDX-License-Identifier: MIT */
/*
 * Telling sanitizers and Valgrind about fibers.
 *
 * While a sanitizer is in the process, haft_tools_active sends every switch through the out-of-line
 * path, however the program was compiled: no cache entry leads to the inlined path, and every open
 * gate is HAFTI_GATE_SLOW. This file has the functions that the out-of-line path calls around the
 * switch.
 *
 * Every fiber has a border with two sides. A switch goes from the stack on one side to the stack on
 * the other and tells the sanitizer. The record of the stack that it leaves is kept with that side
 * until a switch comes back to it:
 *
 *   resumer's stack | border of the fiber | innermost stack of the chain that ends in the fiber
 *      `outside`    |                     |     `inside`
 *
 * Invariants
 * - No function that calls a sanitizer's switch may itself be instrumented: it starts on one stack
 *   and ends on another, or on none.
 * - AddressSanitizer's fake stack (detect_stack_use_after_return) of a fiber is destroyed when the
 *   fiber finishes, or when its frames are given up without being unwound.
 * - Frames that were unwound or given up leave poison on their stack; a stack that is used again
 * has
 *   its poison removed first.
 */
#define _GNU_SOURCE
#include "tools.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool haft_tools_active;
bool haft_tools_told_of_copies;
static bool on_valgrind;

extern void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size)
    __attribute__((weak));
extern void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size)
    __attribute__((weak));
extern void __asan_handle_no_return(void) __attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void *start, size_t size)
    __attribute__((weak));
extern void *__tsan_get_current_fiber(void) __attribute__((weak));
extern void *__tsan_create_fiber(unsigned flags) __attribute__((weak));
extern void __tsan_destroy_fiber(void *fiber) __attribute__((weak));
extern void __tsan_switch_to_fiber(void *fiber, unsigned flags) __attribute__((weak));
extern void __tsan_set_fiber_name(void *fiber, const char *name) __attribute__((weak));

typedef struct side {
    const void *bottom;
    size_t size;
    void *fake;   /* AddressSanitizer's fake stack, while nothing runs on this side */
    void *thread; /* what ThreadSanitizer calls a fiber */
} side_t;

/* ThreadSanitizer's record of a fiber. */
typedef struct strand {
    void *fiber;
    unsigned uses;
} strand_t;

typedef struct tools {
    side_t inside, outside;
    strand_t own;
} tools_t;

/* ---- Valgrind: a request is a pattern of instructions that does nothing elsewhere ---- */

enum {
    VALGRIND_RUNNING = 0x1001,
    VALGRIND_STACK_REGISTER = 0x1501,
    VALGRIND_STACK_DEREGISTER = 0x1502,
    VALGRIND_MAKE_MEM_UNDEFINED = 0x4d430001
};

static uintptr_t valgrind_request(uintptr_t request, uintptr_t first, uintptr_t second) {
    volatile uintptr_t words[6] = {request, first, second, 0, 0, 0};
#if defined(__x86_64__)
    uintptr_t answer = 0;
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\t"
                     "rolq $61, %%rdi\n\trolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(words)
                     : "rdi", "cc", "memory");
    return answer;
#elif defined(__aarch64__)
    register uintptr_t answer __asm__("x3") = 0;
    register volatile uintptr_t *argument __asm__("x4") = words;
    __asm__ volatile("ror x12, x12, #3\n\tror x12, x12, #13\n\t"
                     "ror x12, x12, #51\n\tror x12, x12, #61\n\t"
                     "orr x10, x10, x10"
                     : "+r"(answer)
                     : "r"(argument)
                     : "x12", "cc", "memory");
    return answer;
#endif
}

/* ---- ThreadSanitizer ---- */

/* Its records are slow to make, so a thread keeps some for its next fibers. That hides nothing:
   what ran under a record came before its release by this thread, and so before what runs under it
   next. But the frames that a fiber never returns from stay on its shadow stack, which is bounded.
 */
enum { SPARES = 32, MOST_USES = 1000 };
static __thread strand_t spares[SPARES];
static __thread int spare_count;

static strand_t take_strand(const char *name) {
    if (!__tsan_create_fiber)
        return (strand_t){NULL, 0};
    strand_t strand =
        spare_count > 0 ? spares[--spare_count] : (strand_t){__tsan_create_fiber(0), 0};
    if (__tsan_set_fiber_name)
        __tsan_set_fiber_name(strand.fiber, name != NULL ? name : "fiber");
    return strand;
}

static void give_strand(strand_t strand) {
    if (strand.fiber == NULL)
        return;
    if (spare_count < SPARES && ++strand.uses < MOST_USES)
        spares[spare_count++] = strand;
    else
        __tsan_destroy_fiber(strand.fiber);
}

/* Valgrind knows only the mapped part of the first thread's own stack, and mistakes its growth
   after a switch for a switch. So Valgrind is told of the whole stack, and the stack is made to
   grow to most of its size. */
static __thread uintptr_t own_stack; /* Valgrind's number for it, plus 1 */

static __attribute__((noinline)) void grow_to(const char *place) {
    volatile char frame[64 * 1024]; /* less than what Valgrind takes for a switch */
    frame[0] = 0;
    if ((const char *)frame > place + sizeof frame)
        grow_to(place);
    frame[sizeof frame - 1] = 0;
}

void haft_tools_thread_start(void) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (!on_valgrind || pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        if (getpid() == gettid()) /* those of other threads are mapped whole */
            grow_to((const char *)low + size / 16);
        own_stack =
            valgrind_request(VALGRIND_STACK_REGISTER, (uintptr_t)low, (uintptr_t)low + size - 1) +
            1;
    }
    pthread_attr_destroy(&attributes);
}

void haft_tools_thread_exit(void) {
    if (own_stack != 0)
        (void)valgrind_request(VALGRIND_STACK_DEREGISTER, own_stack - 1, 0);
    own_stack = 0;
    while (spare_count > 0)
        __tsan_destroy_fiber(spares[--spare_count].fiber);
}

/* ---- The life of a fiber ---- */

void haft_tools_detect(void) {
    haft_tools_active = __sanitizer_start_switch_fiber != NULL || __tsan_create_fiber != NULL;
    on_valgrind = valgrind_request(VALGRIND_RUNNING, 0, 0) != 0;
    haft_tools_told_of_copies = haft_tools_active || on_valgrind;
    if (haft_tools_active)
        haft_tell_of_switches();
}

bool haft_tools_know_stacks(void) {
    return haft_tools_active || on_valgrind;
}

bool haft_tools_reads_all(void) {
    return on_valgrind;
}

void haft_tools_stack(haft_fiber_t *fiber, char *low, char *high) {
    (void)fiber;
    /* The stack pointer of an empty stack is `high`, which therefore counts as a part of it (to
       some versions of Valgrind the end that they are given is the first byte past the stack):
       Valgrind would take a switch there for growth of the stack before. */
    if (on_valgrind)
        (void)valgrind_request(VALGRIND_STACK_REGISTER, (uintptr_t)low, (uintptr_t)high + 1);
}

/* The record of an empty stack. */
static void start(haft_fiber_t *fiber, tools_t *tools) {
    tools->inside.bottom = fiber->low;
    tools->inside.size = (size_t)(fiber->high - fiber->low);
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(fiber->low, tools->inside.size);
    tools->own = take_strand(fiber->name);
    tools->inside.thread = tools->own.fiber;
}

bool haft_tools_born(haft_fiber_t *fiber) {
    if (!haft_tools_active) {
        /* A stack of the pool stays registered forever. `tools` holds the number of any other. */
        if (on_valgrind && fiber->kind != HAFT_KIND_POOL)
            fiber->tools = (void *)(valgrind_request(VALGRIND_STACK_REGISTER, (uintptr_t)fiber->low,
                                                     (uintptr_t)fiber->high + 1) +
                                    1);
        return true;
    }
    tools_t *tools = calloc(1, sizeof *tools);
    if (tools == NULL)
        return false;
    start(fiber, tools);
    fiber->tools = tools;
    return true;
}

haft_fiber_t *haft_tools_exhausted(void) {
    haft_report(HAFT_ERROR_NO_MEMORY, NULL, NULL,
                "No memory for a sanitizer's records of a fiber.");
    errno = ENOMEM;
    return NULL;
}

/* Ends a fake stack that belongs to another real stack than this one: takes it as one's own, as a
   switch would, and leaves it for good. */
HAFT_UNINSTRUMENTED static void end_fake(side_t *side) {
    void *mine;
    const void *bottom;
    size_t size;
    if (side->fake == NULL)
        return;
    __sanitizer_start_switch_fiber(&mine, side->bottom, side->size);
    __sanitizer_finish_switch_fiber(side->fake, &bottom, &size);
    __sanitizer_start_switch_fiber(NULL, bottom, size);
    __sanitizer_finish_switch_fiber(mine, NULL, NULL);
    side->fake = NULL;
}

static void end(const haft_fiber_t *fiber, tools_t *tools) {
    end_fake(&tools->inside);
    if (!fiber->cleanups) /* any number of frames may have been given up */
        tools->own.uses = MOST_USES;
    give_strand(tools->own);
}

void haft_tools_written(void *low, size_t size) {
    if (on_valgrind)
        (void)valgrind_request(VALGRIND_MAKE_MEM_UNDEFINED, (uintptr_t)low, size);
}

/* `empty`: where what may still be read begins. */
static void gone(haft_fiber_t *fiber, const char *empty) {
    tools_t *tools = fiber->tools;
    if (tools == NULL)
        return;
    fiber->tools = NULL;
    if (!haft_tools_active) {
        /* Memory below the stack pointer counts as unaddressable, but is the caller's again. */
        haft_tools_reserved(fiber->low, (size_t)(empty - fiber->low));
        (void)valgrind_request(VALGRIND_STACK_DEREGISTER, (uintptr_t)tools - 1, 0);
        return;
    }
    end(fiber, tools);
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(fiber->low, (size_t)(fiber->high - fiber->low));
    free(tools);
}

void haft_tools_gone(haft_fiber_t *fiber) {
    gone(fiber, fiber->high);
}

void haft_tools_ended(haft_fiber_t *fiber) {
    gone(fiber, fiber->context.sp);
}

void haft_tools_reset(haft_fiber_t *fiber) {
    if (!haft_tools_active || fiber->tools == NULL)
        return;
    end(fiber, fiber->tools);
    start(fiber, fiber->tools);
}

/* ---- Copies of stacks ---- */

enum { RED_ZONE = 128 };
extern void __asan_get_shadow_mapping(size_t *scale, size_t *offset) __attribute__((weak));

const char *haft_tools_hold(const haft_fiber_t *fiber) {
    const tools_t *tools = fiber->tools;
    if (__tsan_create_fiber)
        return "the thread sanitizer knows no copies of stacks";
    if (haft_tools_active && (tools->inside.fake != NULL || tools->outside.fake != NULL))
        return "the address sanitizer keeps frames elsewhere: set "
               "ASAN_OPTIONS=detect_stack_use_after_return=0";
    return NULL;
}

static char *shadow_of(const void *address, size_t *scale) {
    size_t offset;
    __asan_get_shadow_mapping(scale, &offset);
    return (char *)(((uintptr_t)address >> *scale) + offset);
}

size_t haft_tools_shadow_size(size_t size) {
    size_t scale;
    if (!__asan_get_shadow_mapping)
        return 0;
    (void)shadow_of(NULL, &scale);
    return size >> scale;
}

HAFT_UNINSTRUMENTED static void copy_shadow(char *to, const char *from, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((volatile char *)to)[i] = from[i];
}

void haft_tools_copy_out(char *to, char *from, size_t size) {
    size_t scale, shadow = haft_tools_shadow_size(size);
    if (shadow != 0) {
        copy_shadow(to + size, shadow_of(from, &scale), shadow);
        __asan_unpoison_memory_region(from, size);
    }
    memcpy(to, from, size);
    if (shadow != 0)
        copy_shadow(shadow_of(from, &scale), to + size, shadow);
}

void haft_tools_copy_in(char *to, const char *from, size_t size) {
    size_t scale, shadow = haft_tools_shadow_size(size);
    if (shadow != 0)
        __asan_unpoison_memory_region(to, size);
    /* To Valgrind the red zone of a stack that runs is addressable. */
    haft_tools_reserved(to - RED_ZONE, size + RED_ZONE);
    memcpy(to, from, size);
    if (shadow != 0)
        copy_shadow(shadow_of(to, &scale), from + size, shadow);
}

bool haft_tools_stand(haft_fiber_t *fiber, const haft_fiber_t *innermost,
                      const haft_fiber_t *resumer) {
    if (!haft_tools_active)
        return true;
    if (fiber->tools == NULL && !haft_tools_born(fiber))
        return false;
    /* Frames that lay below those of the copy and were set aside have left their colours. */
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(fiber->low, (size_t)(fiber->high - fiber->low));
    tools_t *tools = fiber->tools;
    tools->inside.bottom = innermost->low;
    tools->inside.size = (size_t)(innermost->high - innermost->low);
    if (resumer != NULL) {
        tools->outside.bottom = resumer->low;
        tools->outside.size = (size_t)(resumer->high - resumer->low);
    }
    return true;
}

void haft_tools_abandon(haft_fiber_t *fiber) {
    if (haft_tools_active && fiber->tools != NULL)
        end_fake(&((tools_t *)fiber->tools)->outside);
}

void haft_tools_unwinding(void) {
    if (__asan_handle_no_return)
        __asan_handle_no_return();
}

/* ---- Switching ---- */

HAFT_UNINSTRUMENTED void haft_tools_before(haft_fiber_t *fiber, enum haft_crossing crossing) {
    if (!haft_tools_active || fiber->tools == NULL)
        return;
    tools_t *tools = fiber->tools;
    side_t *from = crossing == HAFT_INTO ? &tools->outside : &tools->inside;
    const side_t *to = crossing == HAFT_INTO ? &tools->inside : &tools->outside;
    if (__sanitizer_start_switch_fiber)
        __sanitizer_start_switch_fiber(crossing == HAFT_OUT_FOR_GOOD ? NULL : &from->fake,
                                       to->bottom, to->size);
    if (__tsan_switch_to_fiber) {
        from->thread = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(to->thread, 0);
    }
}

HAFT_UNINSTRUMENTED void haft_tools_after(haft_fiber_t *fiber, enum haft_crossing crossing) {
    if (!haft_tools_active || fiber->tools == NULL || !__sanitizer_finish_switch_fiber)
        return;
    tools_t *tools = fiber->tools;
    side_t *left = crossing == HAFT_INTO ? &tools->inside : &tools->outside;
    side_t *arrived = crossing == HAFT_INTO ? &tools->outside : &tools->inside;
    void *fake = arrived->fake;
    arrived->fake = NULL;
    __sanitizer_finish_switch_fiber(fake, &left->bottom, &left->size);
}
