/* SPDX-License-Identifier: MIT */
/* Where code was that a signal has interrupted, by what its handler is given, for Haft's libraries.
   (<ucontext.h> names the registers under _GNU_SOURCE only.) */
#ifndef HAFTI_INTERRUPTED_H
#define HAFTI_INTERRUPTED_H

#include <ucontext.h>

static inline const void *hafti_interrupted_pc(const void *context) {
    const ucontext_t *interrupted = (const ucontext_t *)context;
#if defined(__x86_64__)
    return (const void *)interrupted->uc_mcontext.gregs[REG_RIP];
#else
    return (const void *)interrupted->uc_mcontext.pc;
#endif
}

static inline const char *hafti_interrupted_sp(const void *context) {
    const ucontext_t *interrupted = (const ucontext_t *)context;
#if defined(__x86_64__)
    return (const char *)interrupted->uc_mcontext.gregs[REG_RSP];
#else
    return (const char *)interrupted->uc_mcontext.sp;
#endif
}

#endif
