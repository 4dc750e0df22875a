/* SPDX-License-Identifier: MIT */
/*
 * The context switch, x86-64 System V.
 *
 * hafti_switch_into stores the running context into the fiber's `resumer` and loads its `context`;
 * hafti_switch_out_of does the reverse. Both carry two words across. The switch is inline assembly
 * that names every register which a call would not keep as clobbered: the compiler saves what is
 * live and nothing else. rbp and rbx cannot be clobbers (frame pointer; the base pointer that clang
 * uses in frames with dynamic alignment), so they travel in the context.
 *
 * On both sides:   rdi  the fiber (in), anything (out)
 *                  rax  first word      rdx  second word      carry  whether the words are special
 * The target is entered by a jump: no call has pushed its address, so a return would be
 * mispredicted. The red zone below rsp is left alone.
 *
 * Rounding mode and exception masks are a fiber's own. Reading MXCSR costs more than all the rest
 * of the switch, the x87 control word next to nothing, and fesetround, fesetenv and feenableexcept
 * always set both alike: so the x87 word is compared, and on a difference both registers are set
 * from it. (Flush-to-zero and denormals-are-zero, which only MXCSR has, stay with the thread.)
 */
#ifndef HAFTI_SWITCH_H
#define HAFTI_SWITCH_H

#include "layout.h"

/*
 * A function may have more registers than its file, by a target attribute. clang takes their names
 * everywhere, gcc only where the file is compiled with them. So such a function is refused: an
 * operand that prefers mask registers is given one where the function has them, and then the
 * assembler reports an error. (Without optimisation nothing stays in a register across a switch.)
 */
#if defined(__AVX512F__) || defined(__clang__)
#    define HAFTI_CLOBBERS_AVX512                                                                  \
        , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",         \
            "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", \
            "k4", "k5", "k6", "k7"
#    define HAFTI_REFUSE_AVX512()                                                                  \
        do {                                                                                       \
        } while (0)
#else
#    define HAFTI_CLOBBERS_AVX512
#    define HAFTI_REFUSE_AVX512()                                                                  \
        do {                                                                                       \
            short unused;                                                                          \
            __asm__ volatile(                                                                      \
                ".irp mask,k0,k1,k2,k3,k4,k5,k6,k7\n\t"                                            \
                ".ifc \"%%\\mask\",\"%0\"\n\t"                                                     \
                ".error \"a function with AVX-512 by an attribute performs or resumes: compile "   \
                "the whole file with -mavx512f, or do it in a function without\"\n\t"              \
                ".endif\n\t.endr"                                                                  \
                : "=k,*r"(unused));                                                                \
        } while (0)
#endif

/* Stores what runs at `from` bytes into the fiber, and continues with the context at `to`. Both
   ways to the jump leave the carry clear, after a comparison of equals or an `or`; `mark` may set
   it. */
#define HAFTI_SWITCH_STORE(from)                                                                   \
    "leaq 1f(%%rip), %%r8\n\t"                                                                     \
    "movq %%rbp, " from "+0(%%rdi)\n\t"                                                            \
    "movq %%r8, " from "+8(%%rdi)\n\t"                                                             \
    "movq %%rsp, " from "+16(%%rdi)\n\t"                                                           \
    "movq %%rbx, " from "+24(%%rdi)\n\t"
#define HAFTI_SWITCH_LOAD(from, to, mark)                                                          \
    "fnstcw " from "+32(%%rdi)\n\t"                                                                \
    "movq " to "+8(%%rdi), %%r10\n\t"                                                              \
    "movzwl " to "+32(%%rdi), %%r9d\n\t"                                                           \
    "movq " to "+0(%%rdi), %%rbp\n\t"                                                              \
    "movq " to "+16(%%rdi), %%rsp\n\t"                                                             \
    "movq " to "+24(%%rdi), %%rbx\n\t"                                                             \
    "cmpw " from "+32(%%rdi), %%r9w\n\t"                                                           \
    "jne 2f\n\t" mark "jmp *%%r10\n"                                                               \
    "2:\n\t" /* the other side rounds or traps differently */                                      \
    "fldcw " to "+32(%%rdi)\n\t"                                                                   \
    "stmxcsr " HAFTI_AT_SCRATCH "(%%rdi)\n\t"                                                      \
    "movl " HAFTI_AT_SCRATCH "(%%rdi), %%ecx\n\t"                                                  \
    "andl $0xffff807f, %%ecx\n\t"                                                                  \
    "movl %%r9d, %%r8d\n\t"                                                                        \
    "andl $0x0c00, %%r8d\n\t"                                                                      \
    "shll $3, %%r8d\n\t"                                                                           \
    "orl %%r8d, %%ecx\n\t"                                                                         \
    "andl $0x003f, %%r9d\n\t"                                                                      \
    "shll $7, %%r9d\n\t"                                                                           \
    "orl %%r9d, %%ecx\n\t"                                                                         \
    "movl %%ecx, " HAFTI_AT_SCRATCH "(%%rdi)\n\t"                                                  \
    "ldmxcsr " HAFTI_AT_SCRATCH "(%%rdi)\n\t" mark "jmp *%%r10\n"
#define HAFTI_SWITCH(from, to, mark)                                                               \
    HAFTI_SWITCH_STORE(from) HAFTI_SWITCH_LOAD(from, to, mark) "1:" HAFTI_SWITCH_TELL

/* The carry, as an output. clang wants a register for that, and has none in frames with a base
   pointer, unless it is given one. */
#ifdef __clang__
#    define HAFTI_SWITCH_TELL "\n\tsetc %%sil\n\tmovzbl %%sil, %%esi"
#    define HAFTI_SWITCH_TOLD "=S"
#    define HAFTI_SWITCH_SPARE
typedef uint32_t hafti_flag_t;
#else
#    define HAFTI_SWITCH_TELL
#    define HAFTI_SWITCH_TOLD "=@ccc"
#    define HAFTI_SWITCH_SPARE "rsi",
typedef bool hafti_flag_t;
#endif

#define HAFTI_AT_CONTEXT "0"
#define HAFTI_AT_RESUMER "64"
#define HAFTI_AT_SCRATCH "140" /* scope.scratch */

#define HAFTI_SWITCH_CLOBBERS                                                                      \
    HAFTI_SWITCH_SPARE "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",      \
        "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "xmm0", "xmm1",       \
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
        "xmm13", "xmm14", "xmm15" HAFTI_CLOBBERS_AVX512

typedef struct hafti_words {
    void *first;
    uintptr_t second;
    bool special; /* set by the sender */
} hafti_words_t;

/* Into a fiber, with the result of its perform. */
static inline __attribute__((always_inline)) hafti_words_t hafti_switch_into(haft_fiber_t *fiber,
                                                                             void *first) {
    uintptr_t second;
    hafti_flag_t special;
    HAFTI_REFUSE_AVX512();
    __asm__ volatile(HAFTI_SWITCH(HAFTI_AT_RESUMER, HAFTI_AT_CONTEXT, "")
                     : "+D"(fiber), "+a"(first), "=d"(second), HAFTI_SWITCH_TOLD(special)
                     :
                     : HAFTI_SWITCH_CLOBBERS);
    return (hafti_words_t){first, second, special != 0};
}

/* Into a fiber, with words that are special. */
static inline __attribute__((always_inline)) hafti_words_t
hafti_switch_into_specially(haft_fiber_t *fiber, void *first, uintptr_t second) {
    hafti_flag_t special;
    HAFTI_REFUSE_AVX512();
    __asm__ volatile(HAFTI_SWITCH(HAFTI_AT_RESUMER, HAFTI_AT_CONTEXT, "stc\n\t")
                     : "+D"(fiber), "+a"(first), "+d"(second), HAFTI_SWITCH_TOLD(special)
                     :
                     : HAFTI_SWITCH_CLOBBERS);
    return (hafti_words_t){first, second, special != 0};
}

/* Out of a fiber, which is suspended. */
static inline __attribute__((always_inline)) hafti_words_t
hafti_switch_out_of(haft_fiber_t *fiber, void *first, uintptr_t second) {
    hafti_flag_t special;
    HAFTI_REFUSE_AVX512();
    __asm__ volatile(HAFTI_SWITCH(HAFTI_AT_CONTEXT, HAFTI_AT_RESUMER, "")
                     : "+D"(fiber), "+a"(first), "+d"(second), HAFTI_SWITCH_TOLD(special)
                     :
                     : HAFTI_SWITCH_CLOBBERS);
    return (hafti_words_t){first, second, special != 0};
}

/* Out of a fiber that nobody will continue, with words that are special: nothing has to be
   saved. */
static inline __attribute__((always_inline, noreturn)) void
hafti_switch_out_for_good(haft_fiber_t *fiber, void *first, uintptr_t second) {
    __asm__ volatile(HAFTI_SWITCH_LOAD(HAFTI_AT_CONTEXT, HAFTI_AT_RESUMER, "stc\n\t")
                     :
                     : "D"(fiber), "a"(first), "d"(second)
                     : "memory");
    __builtin_unreachable();
}

#endif
