/* SPDX-License-Identifier: MIT */
/* The C side of test_interruptions.ml. */
#define _GNU_SOURCE
#define CAML_NAME_SPACE
#include <caml/callback.h>
#include <caml/mlvalues.h>

#include <haft.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

#include "../../core/tests/check.h"

value interruptions_call(value function, value argument);
value interruptions_call_on_fiber(value function);
value interruptions_pause(value unit);
value interruptions_begin(value unit);
value interruptions_end(value unit);

/* Calls back, and needs no register but its arguments'. */
value interruptions_call(value function, value argument) {
    return caml_callback(function, argument);
}

HAFT_EFFECT(interruptions_pauses, void, {});

static haft_answer_t on_pause(void *state, HAFT_PAYLOAD(interruptions_pauses) * payload,
                              haft_resumption_t k) {
    (void)state, (void)payload;
    return haft_tail_resume(k, HAFT_NO_REPLY);
}
HAFT_HANDLER(pausing, NULL, HAFT_GENERAL(interruptions_pauses, on_pause));

static void *apply(void *function) {
    return (void *)caml_callback((value)function, Val_unit);
}

/* The same on a fiber of C, which is suspended and resumed when the function asks for a pause. */
value interruptions_call_on_fiber(value function) {
    return (value)haft_handle(&pausing, NULL, apply, (void *)function);
}

value interruptions_pause(value unit) {
    HAFT_PERFORM(interruptions_pauses);
    return unit;
}

void haft_ocaml_escape(void);
static long signals;

/* On the stack that it interrupts, where it writes over what lies below. The red zone is spared;
   but where an exception has just arrived there is none on AArch64, and nobody has written to
   it. */
static void on_signal(int number, siginfo_t *information, void *context) {
    char below[4096];
    (void)number, (void)information, (void)context;
    memset(below, 0x5a, sizeof below);
    __asm__ volatile("" : : "r"(below) : "memory");
#if defined(__x86_64__)
    const greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (registers[REG_RIP] == (greg_t)(uintptr_t)haft_ocaml_escape)
        memset((char *)registers[REG_RSP] - 128, 0x5a, 128);
#endif
    signals++;
}

static void set_timer(suseconds_t period) {
    setitimer(ITIMER_REAL, &(struct itimerval){{0, period}, {0, period}}, NULL);
}

/* From now on there is a signal after every instruction, where the processor does that, or
   often. */
value interruptions_begin(value unit) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    signals = 0;
#if defined(__x86_64__)
    if (check_bare()) {
        sigaction(SIGTRAP, &action, NULL);
        __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
                         "leaq 128(%%rsp), %%rsp"
                         :
                         :
                         : "memory", "cc");
        return unit;
    }
#endif
    sigaction(SIGALRM, &action, NULL);
    set_timer(100);
    return unit;
}

/* How many there were. */
value interruptions_end(value unit) {
    (void)unit;
#if defined(__x86_64__)
    if (check_bare())
        __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
                         "leaq 128(%%rsp), %%rsp"
                         :
                         :
                         : "memory", "cc");
#endif
    set_timer(0);
    return Val_long(signals);
}
