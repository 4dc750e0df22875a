/* SPDX-License-Identifier: MIT */
/*
 * Calls that may block for some milliseconds only. Some system calls block if the descriptor's mode
 * is blocking, and have no flag against it: accept, connect, sendfile, a write to a terminal. The
 * mode belongs to everything that has the descriptor. So a thread of the pool makes such a call
 * when the descriptor is ready. If another thread was faster and the call blocks, a timer's signal
 * to this thread ends it, with EINTR or a partial count.
 */
#include "waits.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

/* glibc gives the field no name. */
#ifndef sigev_notify_thread_id
#    define sigev_notify_thread_id _sigev_un._tid
#endif

/* (Repeated: the first may come before the call has begun.) */
static const struct timespec MOMENT = {.tv_nsec = 2 * HAFT_IO_MILLISECOND};

static void end_call(int signal) {
    (void)signal;
}

/* Sets the signal's handler to the one above, unless the program has one of its own; whether it is
   set. */
static bool catches(int signal) {
    static const struct sigaction ours = {.sa_handler = end_call, .sa_flags = SA_ONSTACK};
    struct sigaction now;
    if (sigaction(signal, NULL, &now) != 0)
        return false;
    if ((now.sa_flags & SA_SIGINFO) != 0)
        return false;
    if (now.sa_handler == end_call)
        return true;
    return (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) &&
           sigaction(signal, &ours, NULL) == 0;
}

/* The signal that ends calls; 0: there is none. By default SIGURG is ignored; so nothing ends if
   the program sets it back meanwhile. The others are for programs that use it, as the watchdog
   does. */
static int signal_to_end_calls(void) {
    if (catches(SIGURG))
        return SIGURG;
    for (int signal = SIGRTMAX - 1; signal >= SIGRTMIN; signal--)
        if (catches(signal))
            return signal;
    return 0;
}

static bool start_timer(timer_t *timer, int signal) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
    event.sigev_notify_thread_id = gettid();
    return timer_create(CLOCK_MONOTONIC, &event, timer) == 0;
}

void haft_io_call_briefly(void (*function)(void *), void *argument) {
    int saved = errno, signal = signal_to_end_calls();
    timer_t timer;
    sigset_t one, before;
    sigemptyset(&one);
    bool timed = signal != 0 && start_timer(&timer, signal);
    if (timed) {
        sigaddset(&one, signal);
        pthread_sigmask(SIG_UNBLOCK, &one, &before);
        timer_settime(timer, 0, &(struct itimerspec){MOMENT, MOMENT}, NULL);
    }
    errno = saved;
    function(argument);
    saved = errno;
    if (timed) {
        timer_delete(timer);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    errno = saved;
}
