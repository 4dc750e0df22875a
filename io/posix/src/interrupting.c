/* SPDX-License-Identifier: MIT */
/*
 * Signals of a program whose main is a task: a handler that was installed without SA_RESTART
 * interrupts the call in which main waits, which fails with EINTR, as on a thread of the system.
 *
 * A handler of this library calls such a handler, and then rings a bell, an eventfd: all that a
 * handler may do. A task listens to the bell, and interrupts main's task. sigaction and signal
 * return only the program's own handlers.
 *
 * Handlers of faults, and those of threads that run no tasks, ring no bell.
 */
#include "waits.h"
#include "../../src/system_call.h"

#include <sys/eventfd.h>

static int bell = -1;
static hafti_posix_cut_t *main_cut;
static haft_io_task_t *main_task;
static struct sigaction programs[_NSIG]; /* of signals whose handler is `handle` */

static void handle(int number, siginfo_t *information, void *context) {
    const struct sigaction action = programs[number];
    if ((action.sa_flags & SA_SIGINFO) != 0)
        action.sa_sigaction(number, information, context);
    else
        action.sa_handler(number);
    static const uint64_t one = 1;
    int descriptor = __atomic_load_n(&bell, __ATOMIC_RELAXED);
    if (descriptor >= 0 && haft_io_runs_here())
        hafti_io_system_call(SYS_write, descriptor, (long)&one, sizeof one, 0, 0, 0);
}

static bool is_ours(const struct sigaction *action) {
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == handle;
}

static bool rings(int number, const struct sigaction *action) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (number == faults[i])
            return false;
    return (action->sa_flags & SA_RESTART) == 0 && action->sa_handler != SIG_DFL &&
           action->sa_handler != SIG_IGN;
}

HAFT_POSIX_EXPORT int sigaction(int number, const struct sigaction *restrict action,
                                struct sigaction *restrict before) {
    if (__atomic_load_n(&bell, __ATOMIC_RELAXED) < 0 || number <= 0 || number >= _NSIG)
        return SYSTEM(sigaction)(number, action, before);
    struct sigaction kept = programs[number], system, ringing;
    bool is_ringing = action != NULL && rings(number, action);
    if (is_ringing) {
        ringing = programs[number] = *action;
        ringing.sa_sigaction = handle;
        ringing.sa_flags |= SA_SIGINFO;
    }
    int code = SYSTEM(sigaction)(number, is_ringing ? &ringing : action, &system);
    if (code != 0)
        programs[number] = kept;
    else if (before != NULL)
        *before = is_ours(&system) ? kept : system;
    return code;
}

HAFT_POSIX_EXPORT sighandler_t signal(int number, sighandler_t handler) {
    sighandler_t before = SYSTEM(signal)(number, handler);
    const struct sigaction ours = {.sa_sigaction = handle};
    return before == ours.sa_handler ? programs[number].sa_handler : before;
}

/* ---- The bell ---- */

static void *listen_to_bell(void *unused) {
    haft_io_return_cancels(true);
    uint64_t count;
    while (hafti_posix_wait(bell, POLLIN, HAFT_IO_FOREVER, 0) == 0) {
        hafti_io_system_call(SYS_read, bell, (long)&count, sizeof count, 0, 0, 0);
        if (hafti_posix_interrupt(main_cut))
            continue;
        __atomic_store_n(&main_cut->is_interrupted, true, __ATOMIC_RELAXED);
        if (haft_io_interrupt(main_task) != 0)
            __atomic_store_n(&main_cut->is_interrupted, false, __ATOMIC_RELAXED);
    }
    return unused;
}

void hafti_posix_let_signals_interrupt(hafti_posix_cut_t *cut) {
    haft_io_task_options_t options = {.name = "signals"};
    main_cut = cut;
    main_task = haft_io_self();
    int descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (descriptor < 0)
        return;
    __atomic_store_n(&bell, descriptor, __ATOMIC_RELAXED);
    if (haft_io_spawn_with(&options, listen_to_bell, NULL) != 0)
        __atomic_store_n(&bell, -1, __ATOMIC_RELAXED);
}

/* The bell is the parent's. */
static void forget(void) {
    bell = -1;
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget);
}
