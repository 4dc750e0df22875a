/* SPDX-License-Identifier: MIT */
/* A server with all that its options name: where it listens, signals, restarts; in a run of its
   own, or of the program's. */
#include "beside.h"

#include <pthread.h>

typedef struct {
    haft_http_server_t *server;
    const haft_http_run_options_t *options;
    bool takes_signals;
    sigset_t signals;
    int code;
} running_t;

static void *stop_on_signal(void *argument) {
    const running_t *running = argument;
    int restarts = running->options->restart_signal, signal;
    do
        signal = haft_io_signal_wait(&running->signals);
    while (signal > 0 && signal == restarts && haft_http_server_restart(running->server) != 0);
    if (signal < 0)
        return NULL;
    if (signal != restarts) {
        hafti_http_log(running->server, "told to stop");
        haft_http_server_stop(running->server);
    }
    do
        signal = haft_io_signal_wait(&running->signals);
    while (signal > 0 && signal == restarts);
    if (signal < 0)
        return NULL;
    atomic_store(&running->server->cutting, true);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}

static void log_end(const haft_http_server_t *server, int code) {
    if (code == -ETIMEDOUT)
        hafti_http_log(server, "requests were cut off, since their time of grace was over");
    else if (code != 0)
        hafti_http_log(server, "cannot serve: %s", haft_io_error_text(code));
}

static void *listen_and_serve(void *argument) {
    running_t *running = argument;
    __attribute__((cleanup(hafti_http_forget_listeners))) hafti_http_listeners_t listeners = {0};
    running->code = hafti_http_listen(running->server, running->options, &listeners);
    if (running->code != 0) {
        running->server->announced_count = 0; /* these listeners are closed */
        return NULL;
    }
    __attribute__((cleanup(hafti_http_beside_end))) hafti_http_beside_t beside = {.pages = NULL};
    running->code =
        hafti_http_beside_begin(&beside, running->server, running->options->debug_listen);
    if (running->code != 0) {
        running->server->announced_count = 0;
        return NULL;
    }
    size_t count = listeners.count;
    listeners.count = 0; /* they are the server's */
    if (running->takes_signals)
        haft_io_spawn(stop_on_signal, running);
    running->code = hafti_http_serve(running->server, listeners.descriptors, count,
                                     running->options, &listeners);
    log_end(running->server, running->code);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}

static void set_signals(running_t *running, bool stops) {
    sigemptyset(&running->signals);
    if (stops) {
        sigaddset(&running->signals, SIGINT);
        sigaddset(&running->signals, SIGTERM);
    }
    if (running->options->restart_signal != 0)
        sigaddset(&running->signals, running->options->restart_signal);
    running->takes_signals = stops || running->options->restart_signal != 0;
}

static const haft_http_run_options_t defaults = {0};

static bool may_be_waited_for(int signal) {
    sigset_t set;
    sigemptyset(&set);
    return signal != SIGKILL && signal != SIGSTOP && sigaddset(&set, signal) == 0;
}

static int check(haft_http_server_t *server, const haft_http_run_options_t *options) {
    if (options->restart_signal != 0 && !may_be_waited_for(options->restart_signal))
        return hafti_http_refuse(server, -EINVAL, "haft_http_server_run",
                                 "cannot serve: restart_signal is %d, for which no program can "
                                 "wait: write another one, such as SIGUSR2, or 0 for none",
                                 options->restart_signal);
    if (options->unready_time >= 0 && options->watchdog >= 0 &&
        options->threads >= HAFT_HTTP_EACH_PROCESSOR)
        return 0;
    return hafti_http_refuse(server, -EINVAL, "haft_http_server_run",
                             "cannot serve: %s is negative: leave it out, or write a positive one",
                             options->unready_time < 0 ? "unready_time"
                             : options->watchdog < 0   ? "watchdog"
                                                       : "threads");
}

/* Blocks the signals that are waited for, and SIGPIPE, so that a service goes on when nobody reads
   its log any more. */
static void block_signals(const running_t *running, sigset_t *before) {
    sigset_t blocked = running->signals;
    sigaddset(&blocked, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &blocked, before);
}

static void unblock_signals(const sigset_t *before) {
    sigset_t broken;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    if (sigismember(before, SIGPIPE) != 1) /* one that has come is not for the program */
        sigtimedwait(&broken, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

int haft_http_server_run_with(const haft_http_run_options_t *options, haft_http_server_t *server) {
    running_t running = {.server = server, .options = options != NULL ? options : &defaults};
    options = running.options;
    int threads = options->threads, wrong = check(server, options);
    if (wrong != 0)
        return wrong;
    hafti_http_replay_if_asked(server);
    haft_io_run_options_t how = {.threads = threads == 0                          ? 1
                                            : threads == HAFT_HTTP_EACH_PROCESSOR ? 0
                                                                                  : threads,
                                 .backend = options->backend,
                                 .stack_size = options->stack_size,
                                 .watchdog = options->watchdog,
                                 .dump_signal = options->dump_signal,
                                 .observed = options->debug_listen != NULL,
                                 .keep_requests = options->keep_requests};
    sigset_t before;
    set_signals(&running, true);
    block_signals(&running, &before);
    int code = haft_io_run_with(&how, listen_and_serve, &running);
    unblock_signals(&before);
    if (code == 0 || code == -ECANCELED)
        return running.code;
    log_end(server, code);
    return code;
}

/* ---- In a run of the program's ---- */

static bool is_of_run(const haft_http_run_options_t *options) {
    return options->threads != 0 || options->backend != NULL || options->stack_size != 0 ||
           options->watchdog != 0 || options->dump_signal != 0 || options->keep_requests != NULL;
}

static int check_signals(const running_t *running) {
    sigset_t blocked;
    haft_io_signal_mask(&blocked);
    for (int signal = 1; signal < NSIG; signal++)
        if (sigismember(&running->signals, signal) == 1 && sigismember(&blocked, signal) != 1)
            return hafti_http_refuse(running->server, -EINVAL, "haft_http_server_serve_with",
                                     "cannot serve: the program does not block the signal %d "
                                     "(%s): call pthread_sigmask before haft_io_run, or in C++ "
                                     "make an io::signals before io::run",
                                     signal, strsignal(signal));
    return 0;
}

int haft_http_server_serve_with(const haft_http_run_options_t *options,
                                haft_http_server_t *server) {
    running_t running = {.server = server, .options = options != NULL ? options : &defaults};
    options = running.options;
    int wrong = check(server, options);
    if (wrong != 0)
        return wrong;
    if (is_of_run(options))
        return hafti_http_refuse(server, -EINVAL, __func__,
                                 "cannot serve: threads, backend, stack_size, watchdog, "
                                 "dump_signal and keep_requests are the run's: give them to "
                                 "haft_io_run_with");
    hafti_http_replay_if_asked(server);
    if (!hafti_http_is_simulated()) { /* in a simulation no signal comes */
        set_signals(&running, options->stop_signals);
        wrong = running.takes_signals ? check_signals(&running) : 0;
    }
    if (wrong != 0)
        return wrong;
    int code = haft_io_scope_with(&(haft_io_scope_options_t){.name = "HTTP service"},
                                  listen_and_serve, &running, NULL);
    return code == 0 || code == -ECANCELED ? running.code : code;
}
