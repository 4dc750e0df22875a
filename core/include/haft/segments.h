/* SPDX-License-Identifier: MIT */
/*
 * Segmented stacks: a fiber whose stack is a list of segments, for code that gcc or clang compiled
 * with -fsplit-stack (x86-64 Linux), and calls from such a fiber to functions that were not. How to
 * use them: docs/segmented.md.
 *
 * Every function of -fsplit-stack code compares its stack pointer with the thread's limit word
 * (%fs:0x70). Below it, the function calls __morestack (arch/x86_64/morestack.S), which runs the
 * function on the next segment. A segment, lowest address first:
 *
 *     header | slack: HAFT_SEGMENT_SLACK bytes | room for frames ... | top
 *            |                                 |
 *            canary                            limit
 *
 * The slack is what code may use without asking: frames below 256 bytes, a leaf's red zone, and
 * __morestack itself. The limit word is all the state there is: the segment in use is the one that
 * the limit word belongs to, and its header stands at a fixed distance below. Segments that are no
 * longer used stay in the list, so that the next call that needs one finds it there.
 *
 * A limit word of 0 means that the code runs on a stack that needs no checks: the thread's own, or
 * that of a fiber which is not segmented.
 *
 * To use them, compile with
 *     gcc -fsplit-stack -maccumulate-outgoing-args     (without the second flag gcc does not count
 *                                                       arguments passed on the stack)
 *     clang -fsplit-stack                              (clang refuses to define variadic functions)
 * and link with -lhaft-split (our __morestack; before libgcc, which has another) and -Wl,-z,now:
 * the dynamic linker resolves a lazily bound call on the caller's stack and needs kilobytes of it.
 *
 * Functions that do not check their stack need room. Either call them through HAFT_FOREIGN, or link
 * with -fuse-ld=gold, which finds their callers and makes them ask for HAFT_SEGMENT_FOREIGN_ROOM.
 * Without gold, code that throws or has cleanups also needs -Wl,--wrap=NAME for _Unwind_Resume and,
 * in C++, for __cxa_allocate_exception, __cxa_throw, __cxa_rethrow, __cxa_begin_catch and
 * __cxa_end_catch: compilers insert these calls.
 *
 * Signal handlers need SA_ONSTACK and must not be -fsplit-stack code. setjmp and longjmp may not
 * cross from one segment to another.
 */
#ifndef HAFT_SEGMENTS_H
#define HAFT_SEGMENTS_H

/* Sizes that morestack.S and segments.c share. */
#define HAFT_SEGMENT_SLACK 512
#define HAFT_SEGMENT_HEADER 48
#define HAFT_SEGMENT_NEXT 0
#define HAFT_SEGMENT_TOP 8
#define HAFT_SEGMENT_ROOM 16
/* What __morestack_non_split asks for, on behalf of functions that do not ask. */
#define HAFT_SEGMENT_FOREIGN_ROOM 0x10000

#ifndef __ASSEMBLER__

#    include <stdbool.h>
#    include <stddef.h>
#    include <stdint.h>

#    ifdef __cplusplus
extern "C" {
#    endif

/* The segments of one fiber; part of the fiber's header. */
typedef struct haft_segments {
    uintptr_t limit; /* the first segment's limit word */
} haft_segments_t;

/* Makes the memory [low, high) the first segment. Both are multiples of 16; at least
   HAFT_SEGMENT_HEADER + HAFT_SEGMENT_SLACK + 128 bytes. A fiber starts with the stack pointer at
   `high` and `segments->limit` in the limit word. */
void haft_segments_init(haft_segments_t *segments, void *low, void *high);

/* Gives back all segments but the first. Nothing may run on them any more. */
void haft_segments_release(haft_segments_t *segments);

/* Prepares a finished or unwound fiber for its next run: the first segment is as new, the others
   are kept for reuse. */
void haft_segments_reset(haft_segments_t *segments);

/* Gives back the segments after the one that `limit`, the limit word of the suspended fiber,
   belongs to. */
void haft_segments_trim(uintptr_t limit);

/* Reports it, by haft_segments_failed, if code that does not check its stack ran past the end of
   the segment in use. */
void haft_segments_check(uintptr_t limit);
bool haft_segment_intact(uintptr_t limit);
#    define HAFT_SEGMENT_OVERFLOW                                                                  \
        "stack overflow in a segmented fiber: code that does not check its stack (not compiled "   \
        "with -fsplit-stack) ran out of room on it; call it through HAFT_FOREIGN"
/* Told of whatever cannot go on; the rest of the library, or a test, defines it. */
__attribute__((noreturn)) void haft_segments_failed(const char *message);

/* False if code that does not check its stack ran past the end of a segment in use. `limit` is the
   limit word of the suspended fiber. */
bool haft_segments_intact(const haft_segments_t *segments, uintptr_t limit);

/* The segment of this fiber that `address` lies in, as [*low, *high); false if none. */
bool haft_segments_find(const haft_segments_t *segments, const void *address, void **low,
                        void **high);

/* Bytes of the segments after the first, those kept for reuse included. */
size_t haft_segments_size(const haft_segments_t *segments);

typedef struct {
    size_t taken;  /* segments (and blocks for alloca) ever taken from the allocator */
    size_t given;  /* ever given back to it */
    size_t mapped; /* bytes mapped from the system now */
} haft_segments_statistics_t;

/* Counts of the whole process; any thread. */
__attribute__((visibility("default"))) haft_segments_statistics_t haft_segments_statistics(void);

#    if defined(__x86_64__) && defined(__linux__) && !defined(HAFT_FREESTANDING)
#        define HAFT_SEGMENTS 1

/* The limit word of this thread. Volatile, because a fiber may go on in another thread; always
   inlined, because a call might run on the next segment. */
__attribute__((always_inline)) static inline uintptr_t haft_segments_limit(void) {
    uintptr_t limit;
    __asm__ volatile("movq %%fs:0x70, %0" : "=r"(limit));
    return limit;
}

__attribute__((always_inline)) static inline void haft_segments_set_limit(uintptr_t limit) {
    __asm__ volatile("movq %0, %%fs:0x70" : : "r"(limit) : "memory");
}

/* Where the free part of this thread's foreign stack begins: everything from 128 bytes below this
   address downwards. A thread has that stack for functions that segmented fibers call (9 MiB of
   addresses, made when it first runs one). It is right whenever code runs on a segmented fiber. */
__attribute__((visibility("default"))) extern __thread void *haft_thread_stack_pointer
    __attribute__((tls_model("initial-exec")));

/* Calls function(argument) on the thread's foreign stack if the caller runs on a segmented fiber,
   and where it is otherwise. Meanwhile the limit word is 0. Exceptions and backtraces pass through.
   The function may call back into -fsplit-stack code and resume fibers, but neither they nor it may
   suspend the fiber before it has returned: that is an error (HAFT_ERROR_NOT_AROUND). */
void haft_on_thread_stack(void (*function)(void *), void *argument);

#    else

static inline uintptr_t haft_segments_limit(void) {
    return 0;
}
static inline void haft_segments_set_limit(uintptr_t limit) {
    (void)limit;
}
static inline void haft_on_thread_stack(void (*function)(void *), void *argument) {
    function(argument);
}

#    endif

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
 * Any type that can be copied will do, structs and floating point included. A variadic function is
 * wrapped for one list of arguments. On code that is not on a segmented fiber the wrapper is a
 * plain call. Its limits are those of haft_on_thread_stack; docs/segmented.md has more.
 */
#    define HAFT_FOREIGN(result_type, wrapper, ...)                                                \
        HAFT_FOREIGN_CALL(__typeof__(result_type) *haft_result;                                    \
                          , *haft_call->haft_result =, wrapper, __VA_ARGS__)                       \
        __attribute__((unused)) static inline result_type wrapper(                                 \
            HAFT_FOREIGN_LIST(HAFT_FOREIGN_PARAMETER, void, __VA_ARGS__)) {                        \
            __typeof__(result_type) haft_result;                                                   \
            struct wrapper##_call haft_call = {                                                    \
                &haft_result HAFT_FOREIGN_EACH(HAFT_FOREIGN_ADDRESS, __VA_ARGS__)};                \
            haft_on_thread_stack(wrapper##_thunk, &haft_call);                                     \
            return haft_result;                                                                    \
        }

/* The same for functions that return nothing. */
#    define HAFT_FOREIGN_VOID(wrapper, ...)                                                        \
        HAFT_FOREIGN_CALL(const char *haft_name;, , wrapper, __VA_ARGS__)                          \
        __attribute__((unused)) static inline void wrapper(                                        \
            HAFT_FOREIGN_LIST(HAFT_FOREIGN_PARAMETER, void, __VA_ARGS__)) {                        \
            struct wrapper##_call haft_call = {                                                    \
                #wrapper HAFT_FOREIGN_EACH(HAFT_FOREIGN_ADDRESS, __VA_ARGS__)};                    \
            haft_on_thread_stack(wrapper##_thunk, &haft_call);                                     \
        }

/* The parameters travel as pointers to themselves; the thunk runs on the thread's stack. */
#    define HAFT_FOREIGN_CALL(first_field, assign, wrapper, ...)                                   \
        struct wrapper##_call {                                                                    \
            first_field HAFT_FOREIGN_EACH(HAFT_FOREIGN_FIELD, __VA_ARGS__)                         \
        };                                                                                         \
        __attribute__((unused)) static inline void wrapper##_thunk(void *haft_argument) {          \
            struct wrapper##_call *haft_call = (struct wrapper##_call *)haft_argument;             \
            (void)haft_call;                                                                       \
            assign HAFT_FOREIGN_FUNCTION(__VA_ARGS__, )(                                           \
                HAFT_FOREIGN_LIST(HAFT_FOREIGN_ARGUMENT, , __VA_ARGS__));                          \
        }

#    define HAFT_FOREIGN_FUNCTION(function, ...) function
#    define HAFT_FOREIGN_PARAMETER(type, name) __typeof__(type) name
#    define HAFT_FOREIGN_FIELD(type, name) __typeof__(type) *name;
#    define HAFT_FOREIGN_ADDRESS(type, name) , &name
#    define HAFT_FOREIGN_ARGUMENT(type, name) *haft_call->name

/* HAFT_FOREIGN_LIST(macro, none, function, pair...): macro pair, macro pair...; `none` if there is
   no pair. HAFT_FOREIGN_EACH(macro, function, pair...): the same without commas. */
#    define HAFT_FOREIGN_LIST(macro, none, ...)                                                    \
        HAFT_FOREIGN_JOIN(HAFT_FOREIGN_LIST_, HAFT_FOREIGN_COUNT(__VA_ARGS__))                     \
        (macro, none, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH(macro, ...)                                                          \
        HAFT_FOREIGN_JOIN(HAFT_FOREIGN_EACH_, HAFT_FOREIGN_COUNT(__VA_ARGS__))(macro, __VA_ARGS__)
#    define HAFT_FOREIGN_JOIN(a, b) HAFT_FOREIGN_JOIN_(a, b)
#    define HAFT_FOREIGN_JOIN_(a, b) a##b
#    define HAFT_FOREIGN_COUNT(...)                                                                \
        HAFT_FOREIGN_SELECT(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )
#    define HAFT_FOREIGN_SELECT(f, a, b, c, d, e, g, h, i, j, k, l, m, count, ...) count
#    define HAFT_FOREIGN_LIST_0(macro, none, f) none
#    define HAFT_FOREIGN_LIST_1(macro, none, f, a) macro a
#    define HAFT_FOREIGN_LIST_2(macro, none, f, a, ...)                                            \
        macro a, HAFT_FOREIGN_LIST_1(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_LIST_3(macro, none, f, a, ...)                                            \
        macro a, HAFT_FOREIGN_LIST_2(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_LIST_4(macro, none, f, a, ...)                                            \
        macro a, HAFT_FOREIGN_LIST_3(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_LIST_5(macro, none, f, a, ...)                                            \
        macro a, HAFT_FOREIGN_LIST_4(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_LIST_6(macro, none, f, a, ...)                                            \
        macro a, HAFT_FOREIGN_LIST_5(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_LIST_7(macro, none, f, a, ...)                                            \
        macro a, HAFT_FOREIGN_LIST_6(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_LIST_8(macro, none, f, a, ...)                                            \
        macro a, HAFT_FOREIGN_LIST_7(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_LIST_9(macro, none, f, a, ...)                                            \
        macro a, HAFT_FOREIGN_LIST_8(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_LIST_10(macro, none, f, a, ...)                                           \
        macro a, HAFT_FOREIGN_LIST_9(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_LIST_11(macro, none, f, a, ...)                                           \
        macro a, HAFT_FOREIGN_LIST_10(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_LIST_12(macro, none, f, a, ...)                                           \
        macro a, HAFT_FOREIGN_LIST_11(macro, none, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_0(macro, f)
#    define HAFT_FOREIGN_EACH_1(macro, f, a) macro a
#    define HAFT_FOREIGN_EACH_2(macro, f, a, ...) macro a HAFT_FOREIGN_EACH_1(macro, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_3(macro, f, a, ...) macro a HAFT_FOREIGN_EACH_2(macro, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_4(macro, f, a, ...) macro a HAFT_FOREIGN_EACH_3(macro, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_5(macro, f, a, ...) macro a HAFT_FOREIGN_EACH_4(macro, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_6(macro, f, a, ...) macro a HAFT_FOREIGN_EACH_5(macro, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_7(macro, f, a, ...) macro a HAFT_FOREIGN_EACH_6(macro, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_8(macro, f, a, ...) macro a HAFT_FOREIGN_EACH_7(macro, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_9(macro, f, a, ...) macro a HAFT_FOREIGN_EACH_8(macro, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_10(macro, f, a, ...)                                                 \
        macro a HAFT_FOREIGN_EACH_9(macro, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_11(macro, f, a, ...)                                                 \
        macro a HAFT_FOREIGN_EACH_10(macro, f, __VA_ARGS__)
#    define HAFT_FOREIGN_EACH_12(macro, f, a, ...)                                                 \
        macro a HAFT_FOREIGN_EACH_11(macro, f, __VA_ARGS__)

#    ifdef __cplusplus
}
#    endif

#endif /* __ASSEMBLER__ */
#endif
