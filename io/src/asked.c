/* SPDX-License-Identifier: MIT */
/*
 * Requests to a run by signals and by threads that are not its own: to dump its tasks, to begin or
 * end a trace, to make a summary. The thread of the run that polls next does it.
 *
 * A signal handler passes the request to the runs; it may interrupt any thread. A run is taken out
 * of the list, and then waits for the signal handlers that have begun before. (A child of fork has
 * neither those runs nor those handlers, which may have been other threads'.)
 */
#include "inside.h"

#include <signal.h>
#include <unistd.h>

static hafti_io_crew_t *listening; /* all runs with a signal */
static uint32_t listening_lock;
static int telling; /* signal handlers */

void hafti_io_do_as_asked(hafti_io_crew_t *crew) {
    unsigned asked = __atomic_exchange_n(&crew->asked, 0, __ATOMIC_SEQ_CST);
    if (asked & HAFTI_IO_ASKED_TRACE)
        hafti_io_trace_toggle();
    if (asked & HAFTI_IO_ASKED_DUMP)
        hafti_io_dump_crew(crew, true, STDERR_FILENO);
    if (asked & HAFTI_IO_ASKED_SUMMARY)
        hafti_io_top_summarize(crew);
}

/* A trace is the process's: one of the runs begins it. */
static void tell_runs(int number) {
    int saved = errno;
    bool is_traced_by = false;
    __atomic_fetch_add(&telling, 1, __ATOMIC_SEQ_CST);
    for (hafti_io_crew_t *crew = __atomic_load_n(&listening, __ATOMIC_SEQ_CST); crew != NULL;
         crew = __atomic_load_n(&crew->next_listening, __ATOMIC_SEQ_CST)) {
        unsigned asked = crew->dump_signal == number ? HAFTI_IO_ASKED_DUMP : 0;
        if (crew->trace_signal == number && !is_traced_by) {
            asked |= HAFTI_IO_ASKED_TRACE;
            is_traced_by = true;
        }
        if (asked != 0)
            hafti_io_ask(crew, asked);
    }
    __atomic_fetch_sub(&telling, 1, __ATOMIC_SEQ_CST);
    errno = saved;
}

bool hafti_io_may_catch(int number) {
    struct sigaction action;
    bool faults = number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE;
    bool is_free = number != SIGKILL && number != SIGSTOP;
    return !faults /* whose instruction would fault again */ && is_free &&
           sigaction(number, NULL, &action) == 0;
}

static bool catches(int number) {
    struct sigaction action = {.sa_handler = tell_runs, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    return sigaction(number, &action, NULL) == 0;
}

int hafti_io_ask_on_signals(hafti_io_crew_t *crew, int dump, int trace) {
    if ((dump != 0 && !catches(dump)) || (trace != 0 && trace != dump && !catches(trace)))
        return -errno;
    crew->dump_signal = dump;
    crew->trace_signal = trace;
    if (dump == 0 && trace == 0)
        return 0;
    hafti_io_guard(&listening_lock);
    crew->next_listening = listening;
    __atomic_store_n(&listening, crew, __ATOMIC_SEQ_CST);
    hafti_io_unguard(&listening_lock);
    return 0;
}

void hafti_io_ask_no_more(hafti_io_crew_t *crew) {
    if (crew->dump_signal == 0 && crew->trace_signal == 0)
        return;
    hafti_io_guard(&listening_lock);
    hafti_io_crew_t **place = &listening;
    while (*place != NULL && *place != crew)
        place = &(*place)->next_listening;
    if (*place != NULL)
        HAFTI_IO_SHOW(place, crew->next_listening);
    hafti_io_unguard(&listening_lock);
    unsigned turns = 0;
    while (__atomic_load_n(&telling, __ATOMIC_SEQ_CST) != 0)
        hafti_io_relax(&turns);
}

void hafti_io_forget_signals(void) {
    listening = NULL;
    listening_lock = 0;
    telling = 0;
}
