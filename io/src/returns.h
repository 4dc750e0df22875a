/* SPDX-License-Identifier: MIT */
/*
 * For a function that waits and is called by tasks with different code in turn: it returns by a
 * jump to the address that was on the stack. The return predictor would guess the previous caller,
 * which belongs to another task. An indirect jump is predicted from history instead. (gcc leaves
 * the jump to a routine of this name, but not in the large code model. Where returns are checked
 * against a shadow stack, they stay.) A tenth of the time of a message through a channel is saved
 * (bench/io, channel).
 */
#ifndef HAFTI_IO_RETURNS_H
#define HAFTI_IO_RETURNS_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__code_model_large__) && !(defined(__CET__) && (__CET__ & 2) != 0)
#    define HAFTI_IO_RETURNS_BY_JUMP __attribute__((function_return("thunk-extern")))
__asm__(".ifndef __x86_return_thunk\n"
        ".pushsection .text\n"
        ".type __x86_return_thunk, @function\n"
        "__x86_return_thunk:\n"
        ".cfi_startproc\n\t"
        "popq %rcx\n\t"
        ".cfi_def_cfa_offset 0\n\t"
        ".cfi_register %rip, %rcx\n\t"
        "notrack jmp *%rcx\n"
        ".cfi_endproc\n"
        ".size __x86_return_thunk, .-__x86_return_thunk\n"
        ".popsection\n"
        ".endif");
#else
#    define HAFTI_IO_RETURNS_BY_JUMP
#endif

#endif
