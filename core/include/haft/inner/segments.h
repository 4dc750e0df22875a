/* SPDX-License-Identifier: MIT */
/*
 * The format of segments, for the library and __morestack. Programs use haft/segments.h.
 *
 * Every function of -fsplit-stack code compares its stack pointer with the thread's limit word
 * (%fs:0x70). Below it, the function calls __morestack (arch/x86_64/morestack.S), which runs the
 * function on the next segment. A segment, lowest address first:
 *
 *     header | slack: HAFTI_SEGMENT_SLACK bytes | room for frames ... | top
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
 */
#ifndef HAFTI_SEGMENTS_H
#define HAFTI_SEGMENTS_H

/* Sizes that morestack.S and segments.c share. */
#define HAFTI_SEGMENT_SLACK 512
#define HAFTI_SEGMENT_HEADER 48
#define HAFTI_SEGMENT_NEXT 0
#define HAFTI_SEGMENT_TOP 8
#define HAFTI_SEGMENT_ROOM 16
/* Room that __morestack_non_split requests for functions that do not check their stack. */
#define HAFTI_SEGMENT_FOREIGN_ROOM 0x10000

#ifndef __ASSEMBLER__

#    include <stdbool.h>
#    include <stddef.h>
#    include <stdint.h>

#    include "../segments.h"

#    ifdef __cplusplus
extern "C" {
#    endif

/* The segments of one fiber; part of the fiber's header. */
typedef struct hafti_segments {
    uintptr_t limit; /* the first segment's limit word */
} hafti_segments_t;

/* Makes the memory [low, high) the first segment. Both are multiples of 16; at least
   HAFTI_SEGMENT_HEADER + HAFTI_SEGMENT_SLACK + 128 bytes. A fiber starts with the stack pointer at
   `high` and `segments->limit` in the limit word. */
void hafti_segments_init(hafti_segments_t *segments, void *low, void *high);

/* Gives back all segments but the first. Nothing may run on them any more. */
void hafti_segments_release(hafti_segments_t *segments);

/* Prepares a finished or unwound fiber for its next run: the first segment is as new, the others
   are kept for reuse. */
void hafti_segments_reset(hafti_segments_t *segments);

/* Gives back the segments after the one that `limit`, the limit word of the suspended fiber,
   belongs to. */
void hafti_segments_trim(uintptr_t limit);

/* Calls hafti_segments_failed if code that does not check its stack has run past the end of the
   segment in use. */
void hafti_segments_check(uintptr_t limit);
bool hafti_segment_intact(uintptr_t limit);
#    define HAFTI_SEGMENT_OVERFLOW                                                                 \
        "stack overflow in a segmented fiber: code that does not check its stack (not compiled "   \
        "with -fsplit-stack) ran out of room on it; call it through HAFT_FOREIGN"
/* Reports that a function cannot go on. The rest of the library, or a test, defines it. */
__attribute__((noreturn)) void hafti_segments_failed(const char *message);

/* False if code that does not check its stack ran past the end of a segment in use. `limit` is the
   limit word of the suspended fiber. */
bool hafti_segments_intact(const hafti_segments_t *segments, uintptr_t limit);

/* The segment of this fiber that `address` lies in, as [*low, *high); false if none. */
bool hafti_segments_find(const hafti_segments_t *segments, const void *address, void **low,
                         void **high);

/* Bytes of the segments after the first, those kept for reuse included. */
size_t hafti_segments_size(const hafti_segments_t *segments);

#    if defined(__x86_64__) && defined(__linux__) && !defined(HAFT_FREESTANDING)
#        define HAFTI_SEGMENTS 1

/* The limit word of this thread. Volatile, because a fiber may go on in another thread; always
   inlined, because a call might run on the next segment. */
__attribute__((always_inline)) static inline uintptr_t hafti_segments_limit(void) {
    uintptr_t limit;
    __asm__ volatile("movq %%fs:0x70, %0" : "=r"(limit));
    return limit;
}

__attribute__((always_inline)) static inline void hafti_segments_set_limit(uintptr_t limit) {
    __asm__ volatile("movq %0, %%fs:0x70" : : "r"(limit) : "memory");
}

/* Where the free part of this thread's foreign stack begins: everything from 128 bytes below this
   address downwards. A thread has that stack for functions that segmented fibers call (9 MiB of
   addresses, made when it first runs one). It is right whenever code runs on a segmented fiber. */
__attribute__((visibility("default"))) extern __thread void *hafti_thread_stack_pointer
    __attribute__((tls_model("initial-exec")));

#    else

static inline uintptr_t hafti_segments_limit(void) {
    return 0;
}
static inline void hafti_segments_set_limit(uintptr_t limit) {
    (void)limit;
}

#    endif

#    ifdef __cplusplus
}
#    endif
#endif
#endif
