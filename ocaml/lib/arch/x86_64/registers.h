/* SPDX-License-Identifier: MIT */
/*
 * The registers of interrupted code, x86-64.
 */
#define PC(registers) ((registers)->gregs[REG_RIP])
#define RUNTIME_STATE(registers) ((registers)->gregs[REG_R14])

/* Loads the registers that OCaml code expects, from the runtime's state. */
static void load_registers(mcontext_t *registers) {
    RUNTIME_STATE(registers) = (greg_t)Caml_state;
    registers->gregs[REG_R15] = (greg_t)Caml_state->young_ptr;
}
