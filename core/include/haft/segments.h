/* SPDX-License-Identifier: MIT */
/*
 * Segmented stacks: a fiber whose stack is a list of segments, for code that gcc or clang compiled
 * with -fsplit-stack (x86-64 Linux), and calls from such a fiber to functions that were compiled
 * without. How to use them: docs/segmented.md. How they work: haft/inner/segments.h.
 *
 * To use them, compile with
 *     gcc -fsplit-stack -maccumulate-outgoing-args     (without the second flag gcc does not count
 *                                                       arguments passed on the stack)
 *     clang -fsplit-stack                              (clang refuses to define variadic functions)
 * and link with -lhaft-split, before libgcc, since both have a __morestack, and with -Wl,-z,now:
 * the dynamic linker resolves a lazily bound call on the caller's stack and needs kilobytes of it.
 *
 * Functions that do not check their stack need room. Either call them through HAFT_FOREIGN, or link
 * with -fuse-ld=gold, which finds their callers and makes them ask for 64 KiB.
 * Without gold, code that throws or has cleanups also needs -Wl,--wrap=NAME for _Unwind_Resume and,
 * in C++, for the functions of exceptions, of static variables, for new and delete: compilers and
 * haft.hpp call them. haft-split.pc has the list.
 *
 * Signal handlers need SA_ONSTACK and must not be -fsplit-stack code. setjmp and longjmp may not
 * cross from one segment to another.
 */
#ifndef HAFT_SEGMENTS_H
#define HAFT_SEGMENTS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t taken;  /* segments (and blocks for alloca) ever taken from the allocator */
    size_t given;  /* ever given back to it */
    size_t mapped; /* bytes mapped from the system now */
} haft_segments_statistics_t;

/* Counts of the whole process; any thread. */
__attribute__((visibility("default"))) haft_segments_statistics_t haft_segments_statistics(void);

/* Calls function(argument): on the thread's foreign stack if the caller runs on a segmented fiber,
   otherwise on the caller's stack. Exceptions and backtraces pass through. The function may call
   back into -fsplit-stack code and resume fibers; but until it has returned, nothing may suspend
   the caller's fiber: that is an error (HAFT_ERROR_NOT_AROUND). */
#if defined(__x86_64__) && defined(__linux__) && !defined(HAFT_FREESTANDING)
void haft_on_thread_stack(void (*function)(void *), void *argument);
#else
static inline void haft_on_thread_stack(void (*function)(void *), void *argument) {
    function(argument);
}
#endif

/*
 * HAFT_FOREIGN(result, wrapper, function, (type, name)...) defines `wrapper`, which has the
 * parameters listed (at most 12) and calls `function` with them by haft_on_thread_stack:
 *
 *     HAFT_FOREIGN(char *, thread_getenv, getenv, (const char *, name))
 *     HAFT_FOREIGN(int, print_number, printf, (const char *, format), (int, number))
 *     HAFT_FOREIGN(pid_t, thread_getpid, getpid)
 *     HAFT_FOREIGN_VOID(sort, qsort, (void *, base), (size_t, count), (size_t, size),
 *                       (int (*)(const void *, const void *), compare))
 *
 * Parameters may have any type that can be copied, structs and floating point included. A variadic
 * function is wrapped for one list of parameters. Off segmented fibers the wrapper is a plain call.
 * The limits of haft_on_thread_stack hold; docs/segmented.md has more.
 */
#define HAFT_FOREIGN(result_type, wrapper, ...)                                                    \
    HAFTI_FOREIGN_CALL(__typeof__(result_type) *haft_result;                                       \
                       , *haft_call->haft_result =, wrapper, __VA_ARGS__)                          \
    __attribute__((unused)) static inline result_type wrapper(                                     \
        HAFTI_FOREIGN_LIST(HAFTI_FOREIGN_PARAMETER, void, __VA_ARGS__)) {                          \
        __typeof__(result_type) haft_result;                                                       \
        struct wrapper##_call haft_call = {                                                        \
            &haft_result HAFTI_FOREIGN_EACH(HAFTI_FOREIGN_ADDRESS, __VA_ARGS__)};                  \
        haft_on_thread_stack(wrapper##_thunk, &haft_call);                                         \
        return haft_result;                                                                        \
    }

/* The same for functions that return nothing. */
#define HAFT_FOREIGN_VOID(wrapper, ...)                                                            \
    HAFTI_FOREIGN_CALL(const char *haft_name;, , wrapper, __VA_ARGS__)                             \
    __attribute__((unused)) static inline void wrapper(                                            \
        HAFTI_FOREIGN_LIST(HAFTI_FOREIGN_PARAMETER, void, __VA_ARGS__)) {                          \
        struct wrapper##_call haft_call = {                                                        \
            #wrapper HAFTI_FOREIGN_EACH(HAFTI_FOREIGN_ADDRESS, __VA_ARGS__)};                      \
        haft_on_thread_stack(wrapper##_thunk, &haft_call);                                         \
    }

/* The parameters travel as pointers to themselves; the thunk runs on the thread's stack. */
#define HAFTI_FOREIGN_CALL(first_field, assign, wrapper, ...)                                      \
    struct wrapper##_call {                                                                        \
        first_field HAFTI_FOREIGN_EACH(HAFTI_FOREIGN_FIELD, __VA_ARGS__)                           \
    };                                                                                             \
    __attribute__((unused)) static inline void wrapper##_thunk(void *haft_argument) {              \
        struct wrapper##_call *haft_call = (struct wrapper##_call *)haft_argument;                 \
        (void)haft_call;                                                                           \
        assign HAFTI_FOREIGN_FUNCTION(__VA_ARGS__, )(                                              \
            HAFTI_FOREIGN_LIST(HAFTI_FOREIGN_ARGUMENT, , __VA_ARGS__));                            \
    }

#define HAFTI_FOREIGN_FUNCTION(function, ...) function
#define HAFTI_FOREIGN_PARAMETER(type, name) __typeof__(type) name
#define HAFTI_FOREIGN_FIELD(type, name) __typeof__(type) *name;
#define HAFTI_FOREIGN_ADDRESS(type, name) , &name
#define HAFTI_FOREIGN_ARGUMENT(type, name) *haft_call->name

/* HAFTI_FOREIGN_LIST(macro, none, function, pair...): macro pair, macro pair...; `none` if there is
   no pair. HAFTI_FOREIGN_EACH(macro, function, pair...): the same without commas. */
#define HAFTI_FOREIGN_LIST(macro, none, ...)                                                       \
    HAFTI_FOREIGN_JOIN(HAFTI_FOREIGN_LIST_, HAFTI_FOREIGN_COUNT(__VA_ARGS__))                      \
    (macro, none, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH(macro, ...)                                                             \
    HAFTI_FOREIGN_JOIN(HAFTI_FOREIGN_EACH_, HAFTI_FOREIGN_COUNT(__VA_ARGS__))                      \
    (macro, __VA_ARGS__)
#define HAFTI_FOREIGN_JOIN(a, b) HAFTI_FOREIGN_JOIN_AGAIN(a, b)
#define HAFTI_FOREIGN_JOIN_AGAIN(a, b) a##b
#define HAFTI_FOREIGN_COUNT(...)                                                                   \
    HAFTI_FOREIGN_SELECT(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#define HAFTI_FOREIGN_SELECT(f, a, b, c, d, e, g, h, i, j, k, l, m, count, ...) count
#define HAFTI_FOREIGN_LIST_0(macro, none, f) none
#define HAFTI_FOREIGN_LIST_1(macro, none, f, a) macro a
#define HAFTI_FOREIGN_LIST_2(macro, none, f, a, ...)                                               \
    macro a, HAFTI_FOREIGN_LIST_1(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_LIST_3(macro, none, f, a, ...)                                               \
    macro a, HAFTI_FOREIGN_LIST_2(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_LIST_4(macro, none, f, a, ...)                                               \
    macro a, HAFTI_FOREIGN_LIST_3(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_LIST_5(macro, none, f, a, ...)                                               \
    macro a, HAFTI_FOREIGN_LIST_4(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_LIST_6(macro, none, f, a, ...)                                               \
    macro a, HAFTI_FOREIGN_LIST_5(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_LIST_7(macro, none, f, a, ...)                                               \
    macro a, HAFTI_FOREIGN_LIST_6(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_LIST_8(macro, none, f, a, ...)                                               \
    macro a, HAFTI_FOREIGN_LIST_7(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_LIST_9(macro, none, f, a, ...)                                               \
    macro a, HAFTI_FOREIGN_LIST_8(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_LIST_10(macro, none, f, a, ...)                                              \
    macro a, HAFTI_FOREIGN_LIST_9(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_LIST_11(macro, none, f, a, ...)                                              \
    macro a, HAFTI_FOREIGN_LIST_10(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_LIST_12(macro, none, f, a, ...)                                              \
    macro a, HAFTI_FOREIGN_LIST_11(macro, none, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_0(macro, f)
#define HAFTI_FOREIGN_EACH_1(macro, f, a) macro a
#define HAFTI_FOREIGN_EACH_2(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_1(macro, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_3(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_2(macro, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_4(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_3(macro, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_5(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_4(macro, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_6(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_5(macro, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_7(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_6(macro, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_8(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_7(macro, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_9(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_8(macro, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_10(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_9(macro, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_11(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_10(macro, f, __VA_ARGS__)
#define HAFTI_FOREIGN_EACH_12(macro, f, a, ...) macro a HAFTI_FOREIGN_EACH_11(macro, f, __VA_ARGS__)

#ifdef __cplusplus
}
#endif

#endif
