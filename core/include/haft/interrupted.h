/* SPDX-License-Identifier: MIT */
/* Where a signal has interrupted its thread, by the third argument of the signal's handler: for
   libraries beside this one. Include it under _GNU_SOURCE, which <ucontext.h> needs to name
   registers. */
#ifndef HAFT_INTERRUPTED_H
#define HAFT_INTERRUPTED_H

#include <ucontext.h>

/* The next instruction. */
static inline const void *haft_interrupted_pc(const void *context) {
    const ucontext_t *interrupted = (const ucontext_t *)context;
#if defined(__x86_64__)
    return (const void *)interrupted->uc_mcontext.gregs[REG_RIP];
#else
    return (const void *)interrupted->uc_mcontext.pc;
#endif
}

/* The stack pointer. */
static inline const char *haft_interrupted_sp(const void *context) {
    const ucontext_t *interrupted = (const ucontext_t *)context;
#if defined(__x86_64__)
    return (const char *)interrupted->uc_mcontext.gregs[REG_RSP];
#else
    return (const char *)interrupted->uc_mcontext.sp;
#endif
}

#endif
