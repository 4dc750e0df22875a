/* SPDX-License-Identifier: MIT */
/*
 * The registers of interrupted code, AArch64.
 */
#define PC(registers) ((registers)->pc)
#define RUNTIME_STATE(registers) ((registers)->regs[28])

/* Loads the registers that OCaml code expects, from the runtime's state. */
static void load_registers(mcontext_t *registers) {
    RUNTIME_STATE(registers) = (uintptr_t)Caml_state;
    registers->regs[27] = (uintptr_t)Caml_state->young_ptr;
    registers->regs[26] = (uintptr_t)Caml_state->exception_pointer;
}

/*
 * Unwinding through C functions that OCaml code has called and that have called back is not covered
 * by the runtime's unwind information: caml_c_call keeps the return address in x19, and
 * caml_start_program does not describe where it saves that. But functions of C have frame records,
 * each of which leads to the next, and caml_start_program keeps that of its caller above the link.
 */
#define UNWINDS_BY_RECORDS 1
#define FRAME_RECORD_OF_CALLBACK(link)                                                             \
    ((const uintptr_t *)(const void *)((const char *)(link) + 32))
