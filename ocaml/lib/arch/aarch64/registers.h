/*
 * The registers of interrupted code, AArch64.
 */
#define PC(registers) ((registers)->pc)
#define RUNTIME_STATE(registers) ((registers)->regs[28])

/* What OCaml code keeps in registers. */
static void load_registers(mcontext_t *registers) {
    RUNTIME_STATE(registers) = (uintptr_t)Caml_state;
    registers->regs[27] = (uintptr_t)Caml_state->young_ptr;
    registers->regs[26] = (uintptr_t)Caml_state->exception_pointer;
}
