/*
 * The context switch, x86-64 System V.
 *
 * haft_switch stores the running context into `*from`, loads the one in `*to`, and carries two words
 * across. It is inline assembly that names every register which a call would not keep as clobbered:
 * the compiler saves what is live and nothing else. rbp and rbx cannot be clobbers (frame pointer; the
 * base pointer that clang uses in frames with dynamic alignment), so they travel in the context.
 *
 * On both sides:   rdi  from, rsi  to (in), anything (out)
 *                  rax  first word      rdx  second word
 * The target is entered by a jump: nobody pushed its address with a call, so a return would be
 * mispredicted. The red zone below rsp is left alone.
 *
 * Rounding mode and exception masks are a fiber's own. Reading MXCSR costs more than all the rest of
 * the switch, the x87 control word next to nothing, and fesetround, fesetenv and feenableexcept
 * always set both alike: so the x87 word is compared, and on a difference both registers are set
 * from it. (Flush-to-zero and denormals-are-zero, which only MXCSR has, stay with the thread.)
 */
#ifndef HAFT_SWITCH_H
#define HAFT_SWITCH_H

#include "layout.h"

/* A function may have more registers than its file, by a target attribute. clang takes their names
   everywhere, gcc only where the file is compiled with them: see docs/misuse.md. */
#if defined(__AVX512F__) || defined(__clang__)
#    define HAFT_CLOBBERS_AVX512                                                                   \
        , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",         \
            "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", \
            "k5", "k6", "k7"
#else
#    define HAFT_CLOBBERS_AVX512
#endif

/* Continues with the context at rsi; 32(%%rdi) is the control word so far. */
#define HAFT_SWITCH_LOAD                                                                           \
    "movq 8(%%rsi), %%r10\n\t"                                                                     \
    "movzwl 32(%%rsi), %%r9d\n\t"                                                                  \
    "movq 0(%%rsi), %%rbp\n\t"                                                                     \
    "movq 16(%%rsi), %%rsp\n\t"                                                                    \
    "movq 24(%%rsi), %%rbx\n\t"                                                                    \
    "cmpw 32(%%rdi), %%r9w\n\t"                                                                    \
    "jne 2f\n\t"                                                                                   \
    "jmp *%%r10\n"                                                                                 \
    "2:\n\t" /* the other side rounds or traps differently */                                     \
    "fldcw 32(%%rsi)\n\t"                                                                          \
    "stmxcsr 36(%%rsi)\n\t"                                                                        \
    "movl 36(%%rsi), %%ecx\n\t"                                                                    \
    "andl $0xffff807f, %%ecx\n\t"                                                                  \
    "movl %%r9d, %%r8d\n\t"                                                                        \
    "andl $0x0c00, %%r8d\n\t"                                                                      \
    "shll $3, %%r8d\n\t"                                                                           \
    "orl %%r8d, %%ecx\n\t"                                                                         \
    "andl $0x003f, %%r9d\n\t"                                                                      \
    "shll $7, %%r9d\n\t"                                                                           \
    "orl %%r9d, %%ecx\n\t"                                                                         \
    "movl %%ecx, 36(%%rsi)\n\t"                                                                    \
    "ldmxcsr 36(%%rsi)\n\t"                                                                        \
    "jmp *%%r10\n"

typedef struct haft_words {
    void *first;
    uintptr_t second;
} haft_words_t;

static inline __attribute__((always_inline)) haft_words_t
haft_switch(haft_context_t *from, haft_context_t *to, haft_words_t words) {
    __asm__ volatile("leaq 1f(%%rip), %%r8\n\t"
                     "movq %%rbp, 0(%%rdi)\n\t"
                     "movq %%r8, 8(%%rdi)\n\t"
                     "movq %%rsp, 16(%%rdi)\n\t"
                     "movq %%rbx, 24(%%rdi)\n\t"
                     "fnstcw 32(%%rdi)\n\t"
                     HAFT_SWITCH_LOAD
                     "1:"
                     : "+D"(from), "+S"(to), "+a"(words.first), "+d"(words.second)
                     :
                     : "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory",
                       "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)", "xmm0",
                       "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15" HAFT_CLOBBERS_AVX512);
    return words;
}

/* The same for a context that nobody will continue: nothing has to be saved. */
static inline __attribute__((always_inline, noreturn)) void
haft_switch_for_good(haft_context_t *from, haft_context_t *to, haft_words_t words) {
    __asm__ volatile("fnstcw 32(%%rdi)\n\t" HAFT_SWITCH_LOAD
                     :
                     : "D"(from), "S"(to), "a"(words.first), "d"(words.second)
                     : "memory");
    __builtin_unreachable();
}

#endif
