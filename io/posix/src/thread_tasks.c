/* SPDX-License-Identifier: MIT */
/*
 * Threads as tasks: once the program has asked for it, pthread_create on a task makes a task of the
 * run, with thread-locals of its own. Its handle is what pthread_self() returns there, the address
 * of its storage, which is kept until the thread has been joined or, detached, has ended.
 *
 *     creator                       the task                            the task that joins it
 *     spawns, waits for `begun` --> run_thread: lists its record,
 *     returns the handle       <--    sets `begun`
 *                                   calls the function; pthread_exit
 *                                     comes back to run_thread, too
 *                                   destructors of its thread-locals
 *                                   sets `ended` -------------------->  takes the result, lets go
 *                                   lets go
 *
 * Three hold a record: the creator, the task, and the handle, until that is joined or detached. The
 * last one takes it off the table and frees it. A child of fork has no tasks: what it makes are
 * threads.
 *
 * pthread_exit is the C library's: it unwinds to the place that was last given to
 * __pthread_register_cancel, as start_thread of the C library gives one for each thread. Its
 * actions in C++ and C run in between.
 */
#include "thread_tasks.h"
#include "../../src/system_call.h"
#include "haft/posix.h"

#include <setjmp.h>
#include <string.h>

#define OWN __thread __attribute__((tls_model("initial-exec")))

/* Declared here because the C header declares them for pthread_cleanup_push alone, which has
   another form with -fexceptions. */
extern void __pthread_register_cancel(__pthread_unwind_buf_t *place);
extern void __pthread_unregister_cancel(__pthread_unwind_buf_t *place);

static bool makes_tasks;
static int main_number;
static unsigned living; /* threads that are tasks, and main */
static OWN hafti_posix_thread_t *this_thread;

/* ---- The table ---- */

enum { ROW_BITS = 10 };
static hafti_posix_thread_t *rows[1 << ROW_BITS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* no holder of it waits */

void hafti_posix_lock_threads(void) {
    SYSTEM(pthread_mutex_lock)(&lock);
}
void hafti_posix_unlock_threads(void) {
    SYSTEM(pthread_mutex_unlock)(&lock);
}

static hafti_posix_thread_t **row_of(pthread_t handle) {
    return &rows[((uint64_t)handle >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - ROW_BITS)];
}

static void list(hafti_posix_thread_t *thread) {
    hafti_posix_lock_threads();
    hafti_posix_thread_t **row = row_of(thread->self);
    thread->next = *row;
    *row = thread;
    hafti_posix_unlock_threads();
}

static void take_out(const hafti_posix_thread_t *thread) {
    hafti_posix_lock_threads();
    hafti_posix_thread_t **place = row_of(thread->self);
    while (*place != thread)
        place = &(*place)->next;
    *place = thread->next;
    hafti_posix_unlock_threads();
}

hafti_posix_thread_t *hafti_posix_find_thread(pthread_t handle) {
    if (!__atomic_load_n(&makes_tasks, __ATOMIC_RELAXED))
        return NULL;
    hafti_posix_lock_threads();
    hafti_posix_thread_t *thread = *row_of(handle);
    while (thread != NULL && thread->self != handle)
        thread = thread->next;
    hafti_posix_unlock_threads();
    return thread;
}

hafti_posix_thread_t *hafti_posix_this_thread(void) {
    return this_thread;
}

int hafti_posix_main_number(void) {
    return main_number;
}

bool hafti_posix_makes_tasks(void) {
    return __atomic_load_n(&makes_tasks, __ATOMIC_RELAXED) && hafti_posix_on_task() &&
           !haft_io_makes_thread();
}

static void let_go(hafti_posix_thread_t *thread) {
    if (__atomic_sub_fetch(&thread->holders, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    if (thread->self != 0)
        take_out(thread);
    if (thread->kept != NULL)
        haft_io_own_thread_release(thread->kept);
    free(thread);
}

/* In a child of fork the only thread is its caller's. */
static void forget(void) {
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    makes_tasks = false;
    this_thread = NULL;
    hafti_posix_set_cut(NULL);
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget);
}

/* ---- A thread ---- */

static __attribute__((noreturn)) void end_cancelled(void) {
    hafti_posix_set_cut(NULL);
    pthread_exit(PTHREAD_CANCELED);
}

/* Calls the function; comes back from pthread_exit, too. */
static __attribute__((noinline)) void call(hafti_posix_thread_t *thread) {
    union {
        __pthread_unwind_buf_t place;
        struct __jmp_buf_tag registers; /* and a mask, which is not saved */
    } start;
    memset(&start, 0, sizeof start);
    if (__sigsetjmp(&start.registers, 0) != 0)
        return;
    __pthread_register_cancel(&start.place);
    thread->result = thread->function(thread->argument);
    __pthread_unregister_cancel(&start.place);
}

/* Ends the process after the last thread: the task that waits for signals would keep the run from
   ending. */
static void has_ended(void) {
    if (__atomic_sub_fetch(&living, 1, __ATOMIC_ACQ_REL) == 0 && main_number != 0)
        exit(0);
}

/* Called under the thread's own pointer; its name is the task's, and so ends with it. */
static void end(hafti_posix_thread_t *thread) {
    hafti_posix_set_cut(NULL);
    haft_io_own_thread_destroy();
    haft_io_task_set_name("a thread that has ended");
    hafti_posix_lock_threads();
    thread->task = NULL;
    hafti_posix_unlock_threads();
    this_thread = NULL;
    haft_io_event_set(&thread->ended);
    let_go(thread);
    has_ended();
}

/* Called by its task. */
static void begin(hafti_posix_thread_t *thread) {
    haft_io_return_cancels(true);
    __atomic_fetch_add(&living, 1, __ATOMIC_RELAXED);
    this_thread = thread;
    thread->cut.end = end_cancelled;
    hafti_posix_set_cut(&thread->cut);
    thread->self = pthread_self();
    thread->task = haft_io_self();
    haft_io_task_stack(&thread->stack, &thread->stack_size);
}

static void *run_thread(void *argument) {
    hafti_posix_thread_t *thread = argument;
    if (haft_io_self() == NULL) { /* there is no memory for a stack */
        thread->code = EAGAIN;
        haft_io_event_set(&thread->begun);
        let_go(thread);
        return NULL;
    }
    begin(thread);
    thread->kept = haft_io_own_thread_keep();
    haft_io_task_set_name(thread->name);
    list(thread);
    haft_io_event_set(&thread->begun);
    call(thread);
    if (this_thread == NULL) /* a child of fork, whose only thread has ended */
        exit(0);
    end(thread);
    return NULL;
}

/* A size that the run's stacks have need not be asked for. */
static size_t stack_size_of(const pthread_attr_t *attributes) {
    size_t size = 0, of_run = 0;
    void *low;
    if (attributes == NULL || pthread_attr_getstacksize(attributes, &size) != 0)
        return 0;
    const hafti_posix_thread_t *creator = this_thread;
    if (creator != NULL)
        of_run = creator->stack_size;
    else if (!haft_io_task_stack(&low, &of_run))
        return 0;
    return size > of_run + (of_run >> 4) ? size : 0;
}

/* Refuses attributes that cannot be had, with a message: an error, or 0. */
static int refuse(const pthread_attr_t *attributes) {
    int inherits = PTHREAD_INHERIT_SCHED, policy = SCHED_OTHER;
    if (attributes == NULL || pthread_attr_getinheritsched(attributes, &inherits) != 0 ||
        inherits != PTHREAD_EXPLICIT_SCHED ||
        pthread_attr_getschedpolicy(attributes, &policy) != 0 || policy == SCHED_OTHER)
        return 0;
    hafti_posix_tell_once(HAFT_POSIX_TOLD_POLICY,
                          "pthread_create: a task has no real-time policy; a thread would. The "
                          "call fails with EPERM, as without that privilege.");
    return EPERM;
}

static int spawn(hafti_posix_thread_t *thread, size_t stack_size) {
    haft_io_task_options_t options = {.scope = haft_io_run_scope(),
                                      .name = thread->name,
                                      .even_without_stack = true,
                                      .own_thread_locals = true,
                                      .stack_size = stack_size};
    haft_io_task_t *task = haft_io_spawn_known(&options, run_thread, thread);
    if (task == NULL)
        return EAGAIN;
    bool before = haft_io_return_cancels(true);
    if (haft_io_event_wait_for(&thread->begun, task) != 0)
        haft_io_event_wait_to_the_end(&thread->begun);
    haft_io_return_cancels(before);
    return thread->code;
}

HAFT_POSIX_EXPORT int pthread_create(pthread_t *restrict handle,
                                     const pthread_attr_t *restrict attributes,
                                     void *(*function)(void *), void *restrict argument) {
    if (!hafti_posix_makes_tasks())
        return SYSTEM(pthread_create)(handle, attributes, function, argument);
    int before = hafti_posix_error(), detached = PTHREAD_CREATE_JOINABLE, code = refuse(attributes);
    if (code != 0)
        return code;
    hafti_posix_thread_t *thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        return EAGAIN;
    if (attributes != NULL)
        pthread_attr_getdetachstate(attributes, &detached);
    thread->function = function;
    thread->argument = argument;
    thread->holders = 3;
    if (this_thread != NULL)
        memcpy(thread->name, this_thread->name, sizeof thread->name);
    if (detached == PTHREAD_CREATE_DETACHED) {
        thread->is_unheld = true;
        thread->holders--;
    }
    code = spawn(thread, stack_size_of(attributes));
    if (code == 0) {
        *handle = thread->self;
        let_go(thread);
    } else if (thread->code != 0) { /* its task lets go, too */
        if (detached != PTHREAD_CREATE_DETACHED)
            let_go(thread);
        let_go(thread);
    } else {
        free(thread);
    }
    hafti_posix_set_error(before);
    return code;
}

HAFT_POSIX_EXPORT void pthread_exit(void *result) {
    if (this_thread != NULL)
        this_thread->result = result;
    else if (__atomic_load_n(&makes_tasks, __ATOMIC_RELAXED) && hafti_posix_on_task())
        hafti_posix_end_process(
            "pthread_exit is called by a task that pthread_create has not made: "
            "return from the task's function instead.");
    SYSTEM(pthread_exit)(result);
    __builtin_unreachable();
}

/* ---- Cancelling ---- */

HAFT_POSIX_EXPORT int pthread_cancel(pthread_t handle) {
    hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL)
        return SYSTEM(pthread_cancel)(handle);
    hafti_posix_ask_to_end(&thread->cut);
    hafti_posix_lock_threads();
    haft_io_task_t *task = thread != this_thread ? thread->task : NULL;
    int code = task != NULL ? haft_io_interrupt(task) : 0;
    hafti_posix_unlock_threads();
    if (code == -EINVAL)
        hafti_posix_tell_once(HAFT_POSIX_TOLD_CANCEL,
                              "pthread_cancel: in a run of several threads a wait that the other "
                              "thread has begun goes on; it ends at its next one. (This is told "
                              "once.)");
    return 0;
}

HAFT_POSIX_EXPORT void pthread_testcancel(void) {
    hafti_posix_end_if_asked();
    if (this_thread == NULL)
        SYSTEM(pthread_testcancel)();
}

/* ---- Joining ---- */

/* Claims the join for the caller; an error if it may not join the thread. */
static int claim(hafti_posix_thread_t *thread) {
    if (thread == this_thread)
        return EDEADLK;
    return __atomic_exchange_n(&thread->is_unheld, true, __ATOMIC_ACQ_REL) ? EINVAL : 0;
}

typedef struct ending {
    haft_io_event_t *event;
    int64_t deadline;
    int code;
} ending_t;
static void *await_end(void *argument) {
    ending_t *ending = argument;
    ending->code = haft_io_event_wait_until(ending->event, ending->deadline);
    return NULL;
}
/* False: not before the deadline. No cancel ends the wait. */
static bool awaits_end(hafti_posix_thread_t *thread, int64_t deadline) {
    ending_t ending = {&thread->ended, deadline, 0};
    if (deadline == HAFT_IO_FOREVER)
        haft_io_event_wait_to_the_end(&thread->ended);
    else
        haft_io_shield(await_end, &ending);
    return ending.code == 0;
}

bool hafti_posix_join(pthread_t handle, void **result, int64_t deadline, int *code) {
    hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL)
        return false;
    int before = hafti_posix_error();
    if ((*code = claim(thread)) != 0)
        return true;
    bool has_ended = awaits_end(thread, deadline);
    hafti_posix_set_error(before);
    if (!has_ended) {
        __atomic_store_n(&thread->is_unheld, false, __ATOMIC_RELEASE);
        *code = deadline == 0 ? EBUSY : ETIMEDOUT;
        return true;
    }
    if (result != NULL)
        *result = thread->result;
    let_go(thread);
    return true;
}

HAFT_POSIX_EXPORT int pthread_tryjoin_np(pthread_t handle, void **result) {
    int code;
    return hafti_posix_join(handle, result, 0, &code) ? code
                                                      : SYSTEM(pthread_tryjoin_np)(handle, result);
}

HAFT_POSIX_EXPORT int pthread_clockjoin_np(pthread_t handle, void **result, clockid_t clock,
                                           const struct timespec *time) {
    int code;
    int64_t deadline = time == NULL ? HAFT_IO_FOREVER : hafti_posix_deadline_at(clock, time);
    if (deadline < 0 && hafti_posix_find_thread(handle) != NULL)
        return EINVAL;
    return hafti_posix_join(handle, result, deadline, &code)
               ? code
               : SYSTEM(pthread_clockjoin_np)(handle, result, clock, time);
}

HAFT_POSIX_EXPORT int pthread_timedjoin_np(pthread_t handle, void **result,
                                           const struct timespec *time) {
    return pthread_clockjoin_np(handle, result, CLOCK_REALTIME, time);
}

HAFT_POSIX_EXPORT int pthread_detach(pthread_t handle) {
    hafti_posix_thread_t *thread = hafti_posix_find_thread(handle);
    if (thread == NULL)
        return SYSTEM(pthread_detach)(handle);
    if (thread->kept == NULL) /* main: its record stays */
        return 0;
    if (__atomic_exchange_n(&thread->is_unheld, true, __ATOMIC_ACQ_REL))
        return EINVAL;
    let_go(thread);
    return 0;
}

/* ---- Turns ---- */

OWN int hafti_posix_mutexes_held;

static void *yield(void *unused) {
    HAFT_PERFORM(haft_io_yield);
    return unused;
}

__attribute__((cold)) void hafti_posix_let_others_run(void) {
    if (this_thread == NULL || !hafti_posix_on_task())
        return;
    int before = hafti_posix_error();
    haft_io_shield(yield, NULL);
    hafti_posix_set_error(before);
}

/* ---- The program ---- */

HAFT_POSIX_EXPORT int haft_posix_threads_as_tasks(void) {
    if (haft_io_own_thread_locals_refused() != NULL)
        return -ENOTSUP;
    __atomic_store_n(&makes_tasks, true, __ATOMIC_RELAXED);
    return 0;
}

/* Whether the watchdog is to report: a thread that is alone keeps no other from running. */
static bool has_others(void) {
    return __atomic_load_n(&living, __ATOMIC_RELAXED) > 1;
}

typedef struct program {
    int (*main)(int, char **, char **);
    int count;
    char **arguments, **environment;
    hafti_posix_thread_t thread;
} program_t;

static void *call_main(void *argument) {
    const program_t *program = argument;
    exit(program->main(program->count, program->arguments, program->environment));
}

/* Runs `main`, with the thread-local variables that constructors have set. It ends by pthread_exit,
   and the others go on. */
static void *run_main(void *argument) {
    program_t *program = argument;
    hafti_posix_thread_t *thread = &program->thread;
    begin(thread);
    main_number = (int)hafti_io_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    haft_io_task_set_name("main");
    list(thread);
    hafti_posix_let_signals_interrupt(&thread->cut);
    call(thread);
    if (this_thread == NULL) /* a child of fork, whose only thread has ended */
        exit(0);
    thread->task = NULL;
    haft_io_event_set(&thread->ended);
    has_ended();
    return NULL;
}

HAFT_POSIX_EXPORT int haft_posix_main_as_task(const haft_io_run_options_t *options,
                                              int (*main)(int, char **, char **), int count,
                                              char **arguments, char **environment) {
    static program_t program; /* whose record is never freed */
    program = (program_t){.main = main,
                          .count = count,
                          .arguments = arguments,
                          .environment = environment,
                          .thread = {.function = call_main, .argument = &program, .holders = 2}};
    int code = haft_posix_threads_as_tasks();
    haft_io_watchdog_ask(has_others);
    return code != 0 ? code : haft_io_run_with(options, run_main, &program);
}
