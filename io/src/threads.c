/* SPDX-License-Identifier: MIT */
/*
 * Threads of the library's own. They block all signals but those of faults, so that the process's
 * signals are for the program's threads. A child process that inherited this mask could not be
 * ended: so each of these threads knows the program's mask.
 */
#include "base.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* On a thread of the library, what the program's threads block; otherwise NULL. */
static __thread __attribute__((tls_model("initial-exec"))) const sigset_t *programs_mask;

void hafti_io_copy_programs_mask(const char *from, char *to) {
    ptrdiff_t distance = (const char *)&programs_mask - from;
    memcpy(to + distance, &programs_mask, sizeof programs_mask);
}

/* The calling thread is about to make one. */
static __thread __attribute__((tls_model("initial-exec"))) bool makes_thread;

bool haft_io_makes_thread(void) {
    return makes_thread;
}

typedef struct start {
    void *(*function)(void *);
    void *argument;
    sigset_t mask;
} start_t;

static void *start_thread(void *argument) {
    start_t own = *(start_t *)argument;
    free(argument);
    programs_mask = &own.mask;
    return own.function(own.argument);
}

int hafti_io_start_thread(pthread_t *thread, void *(*function)(void *), void *argument) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    start_t *own = malloc(sizeof *own);
    if (own == NULL)
        return -ENOMEM;
    *own = (start_t){.function = function, .argument = argument};
    haft_io_signal_mask(&own->mask);
    sigset_t others, before;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&others, faults[i]);
    makes_thread = true;
    pthread_sigmask(SIG_SETMASK, &others, &before);
    int code = pthread_create(thread, NULL, start_thread, own);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    makes_thread = false;
    if (code != 0)
        free(own);
    return -code;
}

void haft_io_signal_mask(sigset_t *mask) {
    if (programs_mask != NULL)
        *mask = *programs_mask;
    else
        pthread_sigmask(SIG_SETMASK, NULL, mask);
}

void hafti_io_become_programs_thread(void) {
    if (programs_mask != NULL)
        pthread_sigmask(SIG_SETMASK, programs_mask, NULL);
    programs_mask = NULL;
}
