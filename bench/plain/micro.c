/* SPDX-License-Identifier: MIT */
/* The floors of the microbenchmarks: an indirect call, and bare loops of two context switches.
 *
 * plain/two-switches is the least that can be called a switch: the stack pointer, the frame
 * pointer and the address to go on at are stored to one context and loaded from the other, one
 * word travels, and everything else that a call preserves is named as clobbered, so that the
 * compiler saves what is live. It knows no handlers, no fibers' state, no unwinding and no
 * floating-point modes.
 *
 *     context      +-----------------+
 *                  | stack pointer   |  0
 *                  | frame pointer   |  8
 *                  | program counter | 16
 *                  +-----------------+
 *
 * plain/two-full-switches is the one in textbooks: every register that a call preserves is pushed,
 * the stack pointer is exchanged, the registers are popped.
 */
#include "../harness.h"

#include <stddef.h>
#include <stdlib.h>

static NOINLINE int64_t identity(int64_t value) {
    return value;
}

static int64_t (*volatile call)(int64_t) = identity;

BENCHMARK("plain/indirect-call", indirect_call) {
    int64_t value = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        value = call(value + 1);
        OPAQUE(value);
    }
    benchmark_stop(benchmark);
}

/* A pointer to its argument, as an effect's payload is passed. */
static NOINLINE int64_t fetch(int64_t *value) {
    return *value;
}

static int64_t (*volatile call_by_pointer)(int64_t *) = fetch;

BENCHMARK("plain/indirect-call-by-pointer", indirect_call_by_pointer) {
    int64_t value = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        int64_t payload = value + 1;
        value = call_by_pointer(&payload);
        OPAQUE(value);
    }
    benchmark_stop(benchmark);
}

BENCHMARK("plain/malloc-free", malloc_free) {
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++) {
        void *memory = malloc(128);
        OPAQUE(memory);
        free(memory);
    }
    benchmark_stop(benchmark);
}

typedef struct context {
    void *stack_pointer, *frame_pointer, *program_counter;
} context_t;

/* Suspends into `from`, continues `to`; returns what the next switch back passes. */
static inline __attribute__((always_inline)) int64_t bare_switch(context_t *from, context_t *to,
                                                                 int64_t value) {
#if defined(__x86_64__)
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "movq %%rsp, 0(%[from])\n\t"
                     "movq %%rbp, 8(%[from])\n\t"
                     "movq %%rax, 16(%[from])\n\t"
                     "movq 0(%[to]), %%rsp\n\t"
                     "movq 8(%[to]), %%rbp\n\t"
                     "jmp *16(%[to])\n"
                     "1:"
                     : [from] "+D"(from), [to] "+S"(to), [value] "+d"(value)
                     :
                     : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                       "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
                       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                       "xmm15");
#elif defined(__aarch64__)
    register context_t *x0 __asm__("x0") = from;
    register context_t *x1 __asm__("x1") = to;
    register int64_t x2 __asm__("x2") = value;
    __asm__ volatile("adr x3, 1f\n\t"
                     "mov x4, sp\n\t"
                     "stp x4, x29, [x0]\n\t"
                     "str x3, [x0, #16]\n\t"
                     "ldp x4, x29, [x1]\n\t"
                     "ldr x3, [x1, #16]\n\t"
                     "mov sp, x4\n\t"
                     "br x3\n"
                     "1:"
                     : "+r"(x0), "+r"(x1), "+r"(x2)
                     :
                     : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
                       "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26",
                       "x27", "x28", "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5",
                       "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16",
                       "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
                       "v28", "v29", "v30", "v31");
    value = x2;
#else
#    error "bare_switch: no such architecture"
#endif
    return value;
}

/* A stack for the other side, and its initial stack pointer. */
static void *new_stack(char **memory) {
    enum { STACK_SIZE = 64 * 1024 };
    *memory = malloc(STACK_SIZE);
    if (!*memory)
        abort();
    uintptr_t top = ((uintptr_t)*memory + STACK_SIZE) & ~(uintptr_t)15;
#if defined(__x86_64__)
    top -= sizeof(void *); /* as if a call had pushed a return address */
#endif
    return (void *)top;
}

static context_t outer, inner;

static NOINLINE __attribute__((noreturn)) void echo(void) {
    for (int64_t value = 0;;)
        value = bare_switch(&inner, &outer, value);
}

BENCHMARK("plain/two-switches", two_switches) {
    char *stack;
    inner =
        (context_t){.stack_pointer = new_stack(&stack), .program_counter = (void *)(uintptr_t)echo};
    int64_t value = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        value = bare_switch(&outer, &inner, value + 1);
    benchmark_stop(benchmark);
    OPAQUE(value);
    free(stack);
}

#if defined(__x86_64__)
/* Suspends with its stack pointer in *from, continues with the one in *to. */
static inline __attribute__((always_inline)) int64_t full_switch(void **from, void **to,
                                                                 int64_t value) {
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\t" /* the red zone */
                     "pushq %%rbp\n\t"
                     "pushq %%rbx\n\t"
                     "pushq %%r12\n\t"
                     "pushq %%r13\n\t"
                     "pushq %%r14\n\t"
                     "pushq %%r15\n\t"
                     "leaq 1f(%%rip), %%rax\n\t"
                     "pushq %%rax\n\t"
                     "movq %%rsp, (%[from])\n\t"
                     "movq (%[to]), %%rsp\n\t"
                     "popq %%rax\n\t"
                     "jmp *%%rax\n"
                     "1:\t"
                     "popq %%r15\n\t"
                     "popq %%r14\n\t"
                     "popq %%r13\n\t"
                     "popq %%r12\n\t"
                     "popq %%rbx\n\t"
                     "popq %%rbp\n\t"
                     "leaq 128(%%rsp), %%rsp"
                     : [from] "+D"(from), [to] "+S"(to), [value] "+d"(value)
                     :
                     : "rax", "rcx", "r8", "r9", "r10", "r11", "memory", "cc");
    return value;
}

static void *full_outer, *full_inner;

static NOINLINE __attribute__((noreturn)) void full_echo(void) {
    for (int64_t value = 0;;)
        value = full_switch(&full_inner, &full_outer, value);
}

BENCHMARK("plain/two-full-switches", two_full_switches) {
    char *stack;
    void **top = new_stack(&stack);
    *--top = (void *)(uintptr_t)full_echo;
    full_inner = top;
    int64_t value = 0;
    benchmark_start(benchmark);
    for (uint64_t i = 0; i < benchmark->operations; i++)
        value = full_switch(&full_outer, &full_inner, value + 1);
    benchmark_stop(benchmark);
    OPAQUE(value);
    free(stack);
}
#endif
