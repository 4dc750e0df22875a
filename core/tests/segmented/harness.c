#define _GNU_SOURCE
#include "harness.h"

hafti_segments_t test_segments;

void hafti_segments_failed(const char *message) {
    fprintf(stderr, "%s\n", message);
    abort();
}

void report_failure(const char *file, int line, const char *condition) {
    hafti_segments_set_limit(0);
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, condition);
    _Exit(1);
}

bool runs_on_segment(void) {
    void *low;
    void *high;
    return test_segments.limit != 0 &&
           hafti_segments_find(&test_segments, __builtin_frame_address(0), &low, &high);
}

bool limit_is_right(uintptr_t limit, const void *frame) {
    void *low;
    void *high;
    return hafti_segments_find(&test_segments, frame, &low, &high)
               ? limit == (uintptr_t)low + HAFTI_SEGMENT_HEADER + HAFTI_SEGMENT_SLACK
               : limit == 0;
}

/* Kept in callee-saved registers: the limit word before, and where the thread's stack goes on. */
__asm__(".text\n"
        ".globl run_on_segments\n"
        ".type run_on_segments, @function\n"
        "run_on_segments:\n"
        ".cfi_startproc\n"
        "pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "pushq %rbx\n"
        "pushq %r12\n"
        "pushq %r13\n"
        "pushq %r14\n"
        ".cfi_offset %rbx, -24\n"
        ".cfi_offset %r12, -32\n"
        ".cfi_offset %r13, -40\n"
        ".cfi_offset %r14, -48\n"
        "movq %fs:0x70, %rbx\n"
        "movq hafti_thread_stack_pointer@gottpoff(%rip), %r12\n"
        "movq %fs:(%r12), %r13\n"
        "movq %rsp, %fs:(%r12)\n"
        "movq (%rdi), %rax\n"
        "movq %rax, %fs:0x70\n"
        "movq %rsi, %rsp\n"
        "movq %rcx, %rdi\n"
        "call *%rdx\n"
        "movq %rbx, %fs:0x70\n"
        "movq %r13, %fs:(%r12)\n"
        "leaq -32(%rbp), %rsp\n"
        "popq %r14\n"
        "popq %r13\n"
        "popq %r12\n"
        "popq %rbx\n"
        "popq %rbp\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size run_on_segments, . - run_on_segments\n");

void run_on_new_segments(size_t size, void (*function)(void *), void *argument) {
    hafti_segments_t outer = test_segments;
    char *memory = aligned_alloc(64, size);
    CHECK(memory);
    hafti_segments_init(&test_segments, memory, memory + size);
    run_on_segments(&test_segments, memory + size, function, argument);
    CHECK(hafti_segments_intact(&test_segments, test_segments.limit));
    hafti_segments_release(&test_segments);
    free(memory);
    test_segments = outer;
}
/* SPDX-License-Identifier: MIT */
