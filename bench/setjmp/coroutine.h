/* SPDX-License-Identifier: MIT */
/* Coroutines from setjmp and longjmp, the way that many C programs make them: makecontext gives
 * the first frame its stack, and from then on the two sides jump to each other's jmp_buf. The C
 * standard does not define a jump to another stack; the C libraries of Linux do what is meant,
 * as long as _FORTIFY_SOURCE's check is off.
 *
 * There is no way to unwind: dropping a suspended coroutine frees its stack and nothing else.
 */
#ifndef BENCH_COROUTINE_H
#define BENCH_COROUTINE_H

#undef _FORTIFY_SOURCE

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>

typedef struct coroutine coroutine_t;

struct coroutine {
    jmp_buf driver, performer;
    void (*body)(coroutine_t *, void *argument);
    void *argument;
    int64_t request, reply;
    bool started, finished;
    ucontext_t first, creator;
    char *stack;
};

static inline void coroutine_enter(unsigned low, unsigned high) {
    coroutine_t *self = (coroutine_t *)((uintptr_t)low | (uintptr_t)high << 32);
    self->body(self, self->argument);
    self->finished = true;
    _longjmp(self->driver, 1);
}

static inline void coroutine_create(coroutine_t *self, void (*body)(coroutine_t *, void *),
                                    void *argument, size_t stack_size) {
    self->body = body;
    self->argument = argument;
    self->started = self->finished = false;
    self->stack = malloc(stack_size);
    if (!self->stack || getcontext(&self->first) != 0)
        abort();
    self->first.uc_stack.ss_sp = self->stack;
    self->first.uc_stack.ss_size = stack_size;
    self->first.uc_link = NULL;
    uintptr_t address = (uintptr_t)self;
    makecontext(&self->first, (void (*)(void))(uintptr_t)coroutine_enter, 2, (unsigned)address,
                (unsigned)(address >> 32));
}

/* For the driver: false when the body has returned; else `request` holds its request, and `reply`
 * is to be set before the next resume. */
static inline bool coroutine_resume(coroutine_t *self) {
    if (_setjmp(self->driver) == 0) {
        if (self->started)
            _longjmp(self->performer, 1);
        self->started = true;
        swapcontext(&self->creator, &self->first);
    }
    return !self->finished;
}

/* For the body. */
static inline int64_t coroutine_perform(coroutine_t *self, int64_t request) {
    self->request = request;
    if (_setjmp(self->performer) == 0)
        _longjmp(self->driver, 1);
    return self->reply;
}

static inline void coroutine_destroy(coroutine_t *self) {
    free(self->stack);
}

#endif
