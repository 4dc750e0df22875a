/* SPDX-License-Identifier: MIT */
/*
 * A run: its workers, one a thread, each with its back end, and what they share. The calling thread
 * is the first worker, and a run of one thread makes no other.
 *
 * The others are made one after another before the first task. One that gets no ring of io_uring
 * has epoll; where the system gives no more threads, or no descriptors for their back ends, the run
 * goes on with those it has.
 */
#include "runs.h"
#include "own_threads.h"
#include "processors.h"
#include "valid.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A cancelled task is unwound on its stack. On AArch64 that takes more than the largest dense stack
   has, so that core makes an ordinary one of this size. */
#if defined __aarch64__
enum { DENSE_SIZE = 16 << 10 };
#else
enum { DENSE_SIZE = HAFT_UNWINDING_MINIMUM };
#endif

/* ---- Workers ---- */

/* Which tables the worker's calls go by (calls.h); with a tape, hafti_io_tape_begin_run chooses. */
static void choose_calls(hafti_io_worker_t *worker) {
    const hafti_io_simulated_t *simulated = worker->simulated;
    const haft_io_calls_t *own =
        simulated != NULL ? simulated->calls : NULL; /* a replay has none */
    worker->calls = &hafti_io_machine;
    worker->simulated_calls = own != NULL ? own : &hafti_io_machine;
    worker->network_calls = own != NULL && simulated->network ? own : &hafti_io_machine;
    worker->file_calls = own != NULL && simulated->files ? own : &hafti_io_machine;
}

static hafti_io_worker_t *worker_new(hafti_io_crew_t *crew, unsigned index, bool shared) {
    hafti_io_worker_t *worker = aligned_alloc(_Alignof(hafti_io_worker_t), sizeof *worker);
    if (worker == NULL)
        return NULL;
    memset(worker, 0, sizeof *worker);
    worker->crew = crew;
    worker->index = index;
    worker->shared = shared;
    hafti_io_set_plain(worker);
    worker->searches = 4;
    worker->unsearched_next = 256;
    worker->dives_to = -1;
    worker->epoll = worker->waker = -1;
    worker->unlooked = HAFTI_IO_TASKS_BETWEEN_POLLS;
    worker->times_polls = crew->times_polls;
    hafti_io_ring(&worker->ready);
    hafti_io_ring(&worker->polled);
    worker->woken = &worker->ready;
    choose_calls(worker);
    return worker;
}

/* Stops the back end, when no thread runs the worker's tasks any more. */
static void stop_backend(hafti_io_worker_t *worker) {
    unsigned turns = 0;
    while (__atomic_load_n(&worker->posting, __ATOMIC_ACQUIRE) != 0)
        hafti_io_relax(&turns);
    worker->backend->stop(worker);
}

static void worker_free(hafti_io_worker_t *worker) {
    hafti_io_free_records(worker);
    hafti_io_free_lent(worker);
    free(worker);
}

static int start_backend(hafti_io_worker_t *worker, const hafti_io_backend_t *backend) {
    worker->backend = backend;
    hafti_io_set_clock(worker);
    hafti_io_timers_start(&worker->timers, worker->clock);
    return backend->start(worker);
}

static const hafti_io_backend_t *const backends[] = {
#ifdef HAFT_IO_URING
    &hafti_io_uring,
#endif
    &hafti_io_epoll};

static int start_named(hafti_io_worker_t *worker, const char *name) {
    int code = -EINVAL;
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
        if (name != NULL && strcmp(name, backends[i]->name) != 0)
            continue;
        code = start_backend(worker, backends[i]);
        if (code == 0)
            return 0;
    }
    return code;
}

static int choose_backend(hafti_io_worker_t *worker, const char *name) {
    if (worker->simulated != NULL)
        return start_backend(worker, worker->simulated->backend);
    const char *asked = name == NULL ? getenv("HAFT_IO_BACKEND") : NULL;
    if (name == NULL)
        name = asked;
    int code = start_named(worker, name != NULL && name[0] != '\0' ? name : NULL);
    if (code != 0 && asked != NULL && asked[0] != '\0')
        dprintf(STDERR_FILENO,
                "haft-io: no run begins with HAFT_IO_BACKEND=%s: %s. Set epoll, io_uring where the "
                "library has it, or nothing for the best.\n",
                asked, code == -EINVAL ? "there is no such back end" : strerror(-code));
    return code;
}

static void work(hafti_io_worker_t *worker) {
    __atomic_store_n(&worker->thread_number, gettid(), __ATOMIC_RELAXED);
    hafti_io_set_worker(worker);
    hafti_io_watchdog_admit(worker->crew);
    hafti_io_loop(worker);
    hafti_io_set_worker(NULL);
    hafti_io_free_runners(worker);
}

/* ---- Threads ---- */

typedef struct thread {
    pthread_t id;
    hafti_io_worker_t *worker;
    const hafti_io_backend_t *backend;
    haft_io_promise_t started; /* with its code */
} thread_t;

static void *serve(void *argument) {
    thread_t *thread = argument;
    hafti_io_worker_t *worker = thread->worker;
    int code = start_backend(worker, thread->backend);
    if (code != 0 && thread->backend != &hafti_io_epoll) /* as for too little locked memory */
        code = start_backend(worker, &hafti_io_epoll);
    if (code == 0 && !hafti_io_kept_join(worker)) {
        worker->backend->stop(worker);
        code = -ENOMEM;
    }
    if (code == 0 && worker->tape != NULL)
        hafti_io_tape_begin_run(worker);
    worker->thread = pthread_self();
    haft_io_promise_set(&thread->started, (void *)(intptr_t)code);
    if (code == 0)
        work(worker);
    return NULL;
}

/* False: the system gives no more. */
static bool add_worker(hafti_io_crew_t *crew, thread_t *thread) {
    unsigned index = crew->count;
    hafti_io_worker_t *worker = worker_new(crew, index, true);
    if (worker == NULL)
        return false;
    const hafti_io_worker_t *first = crew->workers[0];
    *thread = (thread_t){.worker = worker,
                         .backend = first->tape != NULL ? first->tape->real : first->backend};
    crew->workers[index] = worker;
    if (hafti_io_start_thread(&thread->id, serve, thread) != 0) {
        worker_free(worker);
        return false;
    }
    void *code = NULL;
    haft_io_promise_wait(&thread->started, &code);
    if (code != NULL) {
        pthread_join(thread->id, NULL);
        worker_free(worker);
        return false;
    }
    __atomic_store_n(&crew->count, index + 1, __ATOMIC_RELEASE);
    return true;
}

static unsigned count_threads(const haft_io_run_options_t *options, bool is_simulated) {
    if (options == NULL || is_simulated)
        return 1;
    if (options->threads < 0)
        return 1;
    unsigned count = options->threads != 0 ? (unsigned)options->threads : hafti_io_processors();
    return count < HAFTI_IO_MOST_THREADS ? count : HAFTI_IO_MOST_THREADS;
}

/* ---- Running ---- */

static int run_tasks(hafti_io_crew_t *crew, unsigned threads, void *(*main)(void *), void *argument,
                     const haft_io_run_options_t *options) {
    hafti_io_worker_t *first = crew->workers[0];
    thread_t others[HAFTI_IO_MOST_THREADS];
    haft_io_task_t *task = hafti_io_task_new(first, &crew->root, main, argument);
    if (task == NULL)
        return -ENOMEM;
    if (options != NULL && options->watchdog > 0 &&
        !hafti_io_watchdog_start(crew, options->watchdog))
        return -EAGAIN;
    while (crew->count < threads && add_worker(crew, &others[crew->count]))
        continue;
    crew->main = task;
    if (first->tape != NULL)
        hafti_io_tape_spawned(first->tape, task);
    if (first->shared && !task->moves) /* It ends on this thread, as its scope wants it. */
        hafti_io_enqueue(first, task);
    else
        hafti_io_enqueue_new(first, task);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    work(first);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    if (crew->watchdog != NULL)
        hafti_io_watchdog_stop(crew); /* It interrupts threads that are there. */
    for (unsigned i = 1; i < crew->count && !first->forked; i++) /* a child has none of them */
        pthread_join(others[i].id, NULL);
    for (unsigned i = 0; i < crew->count; i++)
        HAFTI_IO_CHECK(ended, crew->workers[i]);
    hafti_io_scope_finish(&crew->root);
    return crew->root.code;
}

/* Runs the tasks while signals, and a socket, show the run to others. */
static int run_observed(hafti_io_crew_t *crew, unsigned threads, void *(*main)(void *),
                        void *argument, const haft_io_run_options_t *options) {
    int code = hafti_io_ask_on_signals(crew, options != NULL ? options->dump_signal : 0,
                                       hafti_io_trace_as_asked());
    if (code == 0 && crew->workers[0]->simulated == NULL)
        code = hafti_io_top_start(crew, options != NULL ? options->top : NULL);
    if (code == 0)
        code = run_tasks(crew, threads, main, argument, options);
    hafti_io_top_stop(crew);
    hafti_io_ask_no_more(crew);
    return code;
}

/* `is_alone`: it is simulated, recorded or replayed. */
static bool is_shared(const haft_io_run_options_t *options, unsigned threads, bool is_alone) {
    return threads > 1 || (options != NULL && options->observed && !is_alone);
}
static bool is_alone(const hafti_io_simulated_t *simulated, const hafti_io_tape_t *tape) {
    return simulated != NULL || (tape != NULL && !tape->keeps);
}

static int run_crew(hafti_io_crew_t *crew, unsigned threads, void *(*main)(void *), void *argument,
                    const haft_io_run_options_t *options, hafti_io_simulated_t *simulated,
                    hafti_io_tape_t *tape) {
    hafti_io_worker_t *first =
        worker_new(crew, 0, is_shared(options, threads, is_alone(simulated, tape)));
    if (first == NULL)
        return -ENOMEM;
    crew->workers[0] = first;
    crew->count = 1;
    first->thread = pthread_self();
    first->simulated = simulated;
    first->tape = tape;
    choose_calls(first);
    if (simulated != NULL)
        first->unlooked = 0;
    if (simulated != NULL && simulated->switches_one_in != 0)
        first->turn_begins = HAFTI_IO_TURN;
    haft_io_scope_options_t options_of_root = {.name = "main",
                                               .moves = options != NULL && options->moves};
    hafti_io_scope_start(&crew->root, first, NULL, &options_of_root, options_of_root.moves);
    int code = choose_backend(first, options != NULL ? options->backend : NULL);
    if (code == 0 && tape != NULL)
        hafti_io_tape_begin_run(first);
    if (code == 0) {
        hafti_io_run_begins(crew, simulated == NULL);
        code = run_observed(crew, threads, main, argument, options);
        hafti_io_pool_stop(crew);
        hafti_io_run_ends(crew);
        for (unsigned i = 0; i < crew->count; i++)
            stop_backend(crew->workers[i]);
    }
    for (unsigned i = 1; i < crew->count && tape != NULL; i++)
        hafti_io_tape_end_run(crew->workers[i]->tape);
    if (tape != NULL)
        hafti_io_tape_end_run(tape);
    for (unsigned i = 0; i < crew->count; i++)
        worker_free(crew->workers[i]);
    free(crew->watchdog);
    return code;
}

static void in_child_of_fork(void) {
    hafti_io_worker_t *worker = hafti_io_worker();
    hafti_io_become_programs_thread();
    hafti_io_forget_runs();
    hafti_io_forget_signals();
    hafti_io_forget_trace();
    hafti_io_forget_tapes(worker != NULL ? worker->tape : NULL);
    hafti_io_forget_spans();
    hafti_io_forget_top();
    if (worker != NULL)
        hafti_io_become_child(worker->crew);
}

/* Watches for forks from the beginning, because a process without a run may call haft_io_close. */
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, in_child_of_fork);
}

int haft_io_run(void *(*main)(void *), void *argument) {
    return haft_io_run_with(NULL, main, argument);
}

int haft_io_run_with(const haft_io_run_options_t *options, void *(*main)(void *), void *argument) {
    return hafti_io_run_with(main, argument, options, NULL);
}

static bool is_backend(const char *name) {
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (strcmp(name, backends[i]->name) == 0)
            return true;
    return false;
}

/* Checks the options before anything is made, because an error handler may leave. */
static int check_options(const haft_io_run_options_t *options) {
    const char *name = options->backend;
    int signal = options->dump_signal;
    if (name != NULL && name[0] != '\0' && !is_backend(name))
        return haft_io_refuse(-EINVAL, "haft_io_run",
                              "there is no back end '%s': write \"epoll\", \"io_uring\" where the "
                              "library has it, or NULL for the best",
                              name);
    if (signal != 0 && !hafti_io_may_catch(signal))
        return haft_io_refuse(-EINVAL, "haft_io_run",
                              "no run can be dumped on signal %d: write one that can be caught and "
                              "that no fault sends, such as SIGUSR1, or 0 for none",
                              signal);
    return 0;
}

int hafti_io_run_with(void *(*main)(void *), void *argument, const haft_io_run_options_t *options,
                      hafti_io_simulated_t *simulated) {
    if (hafti_io_worker() != NULL)
        return hafti_io_refuse_run_inside("haft_io_run");
    if (main == NULL)
        hafti_io_misuse("A run needs a function to begin with (NULL).");
    int wrong = options != NULL ? check_options(options) : 0;
    if (wrong != 0)
        return wrong;
    if (options != NULL && options->own_thread_locals && !hafti_io_may_own_threads())
        return -ENOTSUP;
    hafti_io_watch_terminate();
    hafti_io_be_shown();
    hafti_io_find_initialisers();
    hafti_io_trace_as_asked();
    unsigned threads = count_threads(options, simulated != NULL);
    hafti_io_tape_t *tape = NULL;
    int code = simulated == NULL ? hafti_io_tape_for_run(options, threads, &tape) : 0;
    if (code != 0)
        return code;
    if (tape != NULL && tape->replays)
        simulated = &tape->simulated;
    hafti_io_crew_t *crew = aligned_alloc(_Alignof(hafti_io_crew_t), sizeof *crew);
    hafti_io_descriptors_t *descriptors =
        hafti_io_descriptors_new(is_shared(options, threads, is_alone(simulated, tape)));
    code = -ENOMEM;
    if (crew != NULL && descriptors != NULL) {
        memset(crew, 0, sizeof *crew);
        crew->descriptors = descriptors;
        crew->operations = tape != NULL ? hafti_io_taped_operations : hafti_io_operations;
        crew->do_as_asked = hafti_io_do_as_asked;
        if (options != NULL && options->dense)
            crew->stacks = (haft_fiber_options_t){.stack_size = DENSE_SIZE, .dense = true};
        else
            crew->stacks.stack_size = options != NULL ? options->stack_size : 0;
        crew->stacks.name = "a task, see haft_io_run_options_t.stack_size";
        crew->blocking_threads = options != NULL ? options->blocking_threads : 0;
        crew->own_thread_locals = options != NULL && options->own_thread_locals;
        crew->observed = options != NULL && options->observed && simulated == NULL;
        if (crew->observed)
            hafti_io_watchdog_catch();
        struct timespec date;
        clock_gettime(CLOCK_REALTIME, &date);
        crew->date_offset = (int64_t)date.tv_sec * HAFT_IO_SECOND + date.tv_nsec - hafti_io_clock();
        crew->times_polls = options != NULL && options->times_polls;
        code = run_crew(crew, threads, main, argument, options, simulated, tape);
        free(crew->overflow);
    }
    if (descriptors != NULL)
        hafti_io_descriptors_free(descriptors);
    free(crew);
    return code;
}
