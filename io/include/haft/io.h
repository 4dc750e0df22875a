/* SPDX-License-Identifier: MIT */
/*
 * Haft I/O: tasks, time and I/O in direct style, for C.
 *
 *     #include <haft/io.h>
 *
 *     static void *echo(void *argument) {
 *         HAFT_IO_SCOPED_DESCRIPTOR int connection = (int)(intptr_t)argument;
 *         char buffer[4096];
 *         for (ssize_t got; (got = haft_io_read(connection, buffer, sizeof buffer)) > 0;)
 *             if (haft_io_write_all(connection, buffer, (size_t)got) < 0)
 *                 break;
 *         return NULL;
 *     }
 *     static void *serve(void *argument) {
 *         int listener = haft_io_listen_tcp("::", 7000, 0), connection;
 *         while ((connection = haft_io_accept(listener)) >= 0)
 *             haft_io_spawn(echo, (void *)(intptr_t)connection);
 *         return argument;
 *     }
 *     int main(void) {
 *         return haft_io_run(serve, NULL);
 *     }
 *
 * A task is a function that runs on a fiber of its own beside other tasks. An operation that would
 * block the thread lets another task run instead. Every operation is an effect (haft.h): the
 * scheduler of haft_io_run handles it; with no scheduler around, its default handler makes the
 * blocking call. So a function that reads, writes and sleeps by this header works with and without
 * a scheduler.
 *
 * Sections: running; tasks; scopes; cancellation; time; descriptors; sockets; blocking work;
 * signals and processes; synchronisation; seeing inside; recording; testing. haft/io_effects.h has
 * the effects of the operations.
 *
 * Results: a function that can fail returns 0 or a count on success, and a negative error number of
 * errno.h (-ECONNRESET) on failure. A function that resolves a name may also return
 * HAFT_IO_ERROR_OF_RESOLVER plus an EAI_ code. haft_io_error_text describes each of these codes in
 * words. Where a mistake of the program is the reason, the error handler of haft.h gets words with
 * the value and with what to write instead (HAFT_ERROR_REFUSED), and then the call returns; the
 * table is in docs/misuse.md. Each task has its own errno: neither a wait nor a success changes it.
 *
 * Threads: the tasks of one haft_io_run share its thread, or its threads
 * (haft_io_run_options_t.threads). Any of them may take a task that has not started; a task that
 * has started stays on its thread, unless it moves (see "scopes"). Unless stated otherwise the
 * functions here are for tasks; operations that have a blocking default are also for threads
 * without a scheduler.
 *
 * Link with -lhaft-io, or by pkg-config haft-io; compile C with -fexceptions, so that a task that
 * is cancelled runs its cleanups. (haft.h warns where the flag is missing.)
 */
#ifndef HAFT_IO_H
#define HAFT_IO_H

#include <haft.h>

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/select.h> /* sigset_t, also with -std=c11 */
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct haft_io_task haft_io_task_t;
typedef struct haft_io_scope_state haft_io_scope_t; /* not the name of haft_io_scope(): -Wshadow */

#include "io_effects.h"

int haft_io_unwind_cancelled(void); /* see "cancellation" */

/* The error of a name that cannot be resolved is this number plus the EAI_ code of netdb.h, which
   is negative: for an unknown host, HAFT_IO_ERROR_OF_RESOLVER + EAI_NONAME. No error number of
   errno.h is that low. */
#define HAFT_IO_ERROR_OF_RESOLVER (-30000)
/* The code with which a task fails that a C++ exception has ended. The exception itself is rethrown
   to the caller of the scope or run. */
#define HAFT_IO_BY_EXCEPTION (-ENOTRECOVERABLE)
/* Describes a code that a function of this library has returned: "Connection refused", "Name or
   service not known". The text must not be freed. Any thread may call this. */
const char *haft_io_error_text(int code);

/* ---- Running -------------------------------------------------------------------------------- */

typedef struct haft_io_run_options {
    /* Number of threads that run tasks. 0 means one for each processor that the process may use, by
       its affinity and the quotas of its control groups; at most 56. */
    int threads;
    const char *backend;  /* "epoll" or "io_uring". NULL: HAFT_IO_BACKEND in the environment
                             decides; if it is unset or empty, the best that the system has. A
                             second or later thread that cannot get a ring of io_uring, because
                             RLIMIT_MEMLOCK is low for example, uses epoll */
    size_t stack_size;    /* of a task, and of the body of a scope; 0: haft_stack_size() */
    int blocking_threads; /* the most threads that do blocking work at a time; 0: 64 */
    int dump_signal; /* the signal on which the run dumps its tasks; 0: none. See "seeing inside" */
    int64_t watchdog; /* a task that holds its thread for longer than this is reported; 0: none. See
                         "seeing inside" */
    bool times_polls; /* measures haft_io_counters_t.polling */
    bool moves;       /* all tasks move; see "scopes" */
    bool dense;       /* for very many tasks with shallow calls: stacks of 8 KiB side by side, with
                         canaries instead of guards, as haft_fiber_options_t.dense; `stack_size` is
                         ignored. Link such a program with -Wl,-z,now (docs/io.md). On AArch64,
                         where unwinding needs more: 16 KiB, guarded */
    bool own_thread_locals; /* of all tasks; see "thread-locals". Where they cannot be had, the
                               run does not begin: -ENOTSUP */
    bool observed; /* other threads may look into the run, also while a task holds its only thread
                      (haft_io_dump_run). A run of one thread then takes the locks that one of
                      several takes */
    /* Files for a run of one thread; see "recording". NULL: HAFT_IO_RECORD and HAFT_IO_REPLAY in
       the environment decide; if they are unset or empty, the run is neither. */
    const char *record; /* the run is recorded in this file, which is made anew */
    const char *replay; /* the run is the one that was recorded in this file, once more */
    /* A folder for requests of a server that fail; see "recording". NULL: HAFT_IO_KEEP_REQUESTS in
       the environment names one, or none is kept. -ENOTDIR, with words: it is a file. */
    const char *keep_requests;
    /* Bytes that the record of a request may take, and its body likewise; so many of its answer are
       kept. 0: 1 MiB. */
    size_t kept_size;
    const char *top; /* a socket for the program haft-top; NULL: none, unless HAFT_IO_TOP in the
                        environment names one. See "seeing inside" */
} haft_io_run_options_t;

/*
 * Runs `main(argument)` as the first task, in a scope of its own, and returns when it and all tasks
 * that were spawned below it have ended. Before it begins, it waits for calls of haft_io_close that
 * are under way on other threads. `options` may be NULL, which means one thread and zero for
 * everything else. Returns 0, or the code that ended the scope (see haft_io_scope). Further errors:
 * -EBUSY on a thread that already runs a scheduler, -EINVAL for an unknown back end or a signal
 * that cannot be caught, and the system's errors when it refuses descriptors or memory.
 */
int haft_io_run(void *(*main)(void *), void *argument);
int haft_io_run_with(const haft_io_run_options_t *options, void *(*main)(void *), void *argument);

/*
 * A run in steps, for a thread whose loop is another library's: GLib's, libuv's, that of a toolkit.
 * (Where a task may own the loop, run the loop in a task instead: docs/io.md, "Other loops".)
 *
 *     haft_io_stepper_t *stepper = haft_io_stepper_new(begin, argument);
 *     while (haft_io_stepper_step(stepper, 0) == 1)
 *         wait until haft_io_stepper_descriptor(stepper) is readable, or the time is
 *         haft_io_stepper_deadline(stepper), by haft_io_now()
 *     int code = haft_io_stepper_end(stepper);
 *
 * haft_io_stepper_new makes a run of one thread, the caller's, and begins nothing; NULL: no memory.
 * `options` are those of haft_io_run_with, without `threads`; the back end is epoll, whatever
 * HAFT_IO_BACKEND is, unless they name io_uring, which is no faster here: each step asks the
 * kernel.
 *
 * haft_io_stepper_step runs all tasks that can go on, until all of them wait. With a timeout in
 * nanoseconds it first waits so long, at most, for something to do. Returns 1; 0: the run has
 * ended; -EXDEV: this is another thread than the one that has made it; -EBUSY: it is called in a
 * run, such as by a task of its own. Ask for the deadline after each step. The descriptor stays the
 * same from the first step to the end of the run, and is -1 before and after; the deadline is
 * HAFT_IO_FOREVER if no task waits for a time.
 *
 * haft_io_stepper_end steps until the run has ended, frees it, and returns what haft_io_run would
 * have. Where a step would be refused, so is this, with the same numbers: the run is as it was, and
 * its thread can end it. To end a run from the outside, tell a task, by an event
 * (haft_io_event_set) or a channel, which the thread may use between two steps like any thread that
 * is in no run.
 */
typedef struct haft_io_stepper haft_io_stepper_t;
haft_io_stepper_t *haft_io_stepper_new_with(const haft_io_run_options_t *options,
                                            void *(*main)(void *), void *argument);
static inline haft_io_stepper_t *haft_io_stepper_new(void *(*main)(void *), void *argument) {
    return haft_io_stepper_new_with(NULL, main, argument);
}
int haft_io_stepper_step(haft_io_stepper_t *stepper, int64_t timeout);
int haft_io_stepper_descriptor(const haft_io_stepper_t *stepper);
int64_t haft_io_stepper_deadline(const haft_io_stepper_t *stepper);
int haft_io_stepper_end(haft_io_stepper_t *stepper);

/*
 * For bindings to a language whose threads share a lock: in the calling task's run, which has one
 * thread, `falls_asleep` is called before each poll that may sleep, and `wakes` after it, both
 * between tasks, on the thread of the run. Both may set events, and neither may wait or throw. If
 * `falls_asleep` returns false, the poll does not sleep, and `wakes` is not called. (A simulation
 * does not sleep.)
 */
typedef struct haft_io_around_sleep {
    bool (*falls_asleep)(void);
    void (*wakes)(void);
} haft_io_around_sleep_t;
/* `around` must live as long as the run. NULL: nothing is called any more. Returns 0; -ESRCH
   outside of a task; -EINVAL in a run of several threads. */
int haft_io_set_around_sleep(const haft_io_around_sleep_t *around);

/* The back end by which the calling task's thread waits: "epoll", "io_uring" or "simulation". NULL:
   the caller is no task, or is in a child of fork. Any thread may call this. */
const char *haft_io_backend(void);

/* ---- Tasks ---------------------------------------------------------------------------------- */

/*
 * Starts `function(argument)` as a task of the current scope: the innermost one that the caller is
 * in. The task begins when the caller next waits, or earlier on another thread; on one thread tasks
 * start in the order in which they were spawned. The result of the function is ignored, and the
 * task is released at its end. The argument must live as long as the scope: for an argument in your
 * own frame, open a scope of your own (haft_io_scope).
 *
 * A task that is cancelled before it has begun still runs up to its first wait, so that it can free
 * what its argument owns.
 *
 * The task inherits the caller's name and local values, but not the handlers around the caller,
 * because those may have returned by the time it runs. The function must return with the rounding
 * mode with which it began, and no C++ exception may leave it. Returns 0, or -ENOMEM.
 */
int haft_io_spawn(void *(*function)(void *), void *argument);

typedef struct haft_io_task_options {
    haft_io_scope_t *scope; /* NULL: the current one */
    const char *name;       /* not copied; NULL: inherited */
    bool moves;             /* the task moves even if its scope's tasks do not; see "scopes" */
    /* For a task that lives long and mostly waits: in a run of several threads it starts on the
       thread that has the fewest such tasks, and stays there, unless it moves. The first task
       spawned after haft_io_accept is spread without asking. All other tasks start on the spawning
       thread, or on an idle one. */
    bool spread;
    /* The function is called also if no stack can be had; then on the scheduler's, where
       haft_io_self() is NULL and nothing may wait. So it can always tell its end. */
    bool even_without_stack;
    /* The task has thread-local variables of its own, also if those of the run have not; see
       "thread-locals". Where they cannot be had, there is no task: -ENOTSUP, or NULL. */
    bool own_thread_locals;
    /* Size of the address range, rounded up as by haft_set_stack_size, of the task's stack and of
       the stacks of its scopes' bodies; these are not dense then. 0: as the run's. If no such stack
       can be had, the scope fails with -ENOMEM, as for any task. The stack is unmapped at the end
       of the task, which costs some hundred nanoseconds. */
    size_t stack_size;
} haft_io_task_options_t;

/*
 * Like haft_io_spawn, for a task whose result is wanted. Any task of the run may join it, once. The
 * handle is valid until the task has been joined, or until its scope ends. NULL: no memory; a join
 * of NULL returns the -ENOMEM that haft_io_spawn would have returned.
 */
haft_io_task_t *haft_io_async(void *(*function)(void *), void *argument);
haft_io_task_t *haft_io_async_with(const haft_io_task_options_t *options, void *(*function)(void *),
                                   void *argument);
/* haft_io_spawn with options. (As everywhere, NULL for `options` means zeroed options.) */
int haft_io_spawn_with(const haft_io_task_options_t *options, void *(*function)(void *),
                       void *argument);
/*
 * Like haft_io_spawn, haft_io_spawn_with and haft_io_async_with, for a task that has the handlers
 * of effects around the scope in which it is spawned. Other tasks have none of their spawner's:
 * what they perform reaches the handlers that they have installed themselves, then defaults.
 *
 *     haft_handle(&users, state, ...)      a handler, whose body opens
 *       haft_io_scope(...)                   a scope, which ends before it; in there
 *         haft_io_spawn_handled(...)           a task, which performs under the same clauses
 *
 * The clauses run on the task, with the same state; in a run of several threads, maybe on two at
 * once. An exception of C++ that leaves one leaves the perform there, as that of a haft::raising
 * one, because the handler's frame is another task's. The caller fails (haft_io_fail) with -ENOTSUP
 * and words where a handler is inside of the scope, and would end before the task; where the scope
 * has no body (haft_io_scope_open; so is that of a request of haft/http.h) and there are handlers;
 * and where one of the handlers takes a resumption (HAFT_GENERAL, HAFT_NEVER, haft_resume).
 */
int haft_io_spawn_handled_with(const haft_io_task_options_t *options, void *(*function)(void *),
                               void *argument);
static inline int haft_io_spawn_handled(void *(*function)(void *), void *argument) {
    return haft_io_spawn_handled_with(NULL, function, argument);
}
haft_io_task_t *haft_io_async_handled_with(const haft_io_task_options_t *options,
                                           void *(*function)(void *), void *argument);

/*
 * Waits for the end of the task and stores its result in `*result`, NULL if it was cancelled or has
 * failed; `result` may be NULL. Returns 0; -ECANCELED if the task was cancelled; or the code with
 * which it failed. Releases the handle, even if the caller is cancelled during the wait. A task
 * must not be joined twice, nor join itself.
 */
int haft_io_join(haft_io_task_t *task, void **result);

/* Like haft_io_yield, for bindings to other languages: it never unwinds, but returns -ECANCELED. */
int haft_io_yield_or_cancelled(void);

/*
 * Lets every other task that can run go first. A long computation calls this. A task that calls
 * functions of this header in a loop and never has to wait yields by itself, after 64 operations on
 * descriptors or 256 others in a row; functions that only try count, too. haft_io_spawn and the
 * functions that let other tasks go on (haft_io_mutex_unlock, haft_io_condition_signal and the
 * like) never yield.
 */
static inline int haft_io_yield(void) {
    int code = haft_io_yield_or_cancelled();
    return code == 0 ? 0 : haft_io_unwind_cancelled();
}

/* The current task; NULL outside of a scheduler. */
static inline haft_io_task_t *haft_io_self(void) {
    return HAFT_PERFORM(haft_io_self);
}

const char *haft_io_task_name(const haft_io_task_t *task); /* "" when it has none */
void haft_io_task_set_name(const char *name);              /* of the current task; not copied */

/*
 * Values of the current task, found by key; tasks that it spawns afterwards inherit them. A key is
 * the address of any object. haft_io_local_get returns NULL for a key that was not set; setting a
 * key to NULL removes it. haft_io_local_set returns 0 or -ENOMEM. Removing a value, or replacing
 * one that no other task has inherited, never fails.
 */
void *haft_io_local_get(const void *key);
int haft_io_local_set(const void *key, void *value);
/* The same for a value, not NULL, that is the tasks' from then on: `release(value)` is called when
   the last task that has it has ended, or has another one for the key, on the thread of that task;
   it must not wait. After an error the value is still the caller's. */
int haft_io_local_give(const void *key, void *value, void (*release)(void *value));
/* One pointer of the current task, for the author of the task's function: NULL until it is set, and
   no other task inherits it. It takes no memory. Outside of a scheduler it stays NULL. */
void *haft_io_own_get(void);
void haft_io_own_set(void *pointer);

/* ---- Thread-locals -------------------------------------------------------------------------- */

/*
 * A thread-local variable, __thread, thread_local, errno, the value of a key, is the thread's, and
 * the tasks of a thread share it: what one has put there, another finds after a wait. A task with
 * `own_thread_locals` has all of them for itself, those of the program and of its libraries: the
 * value of a key, the locale, what C++ knows of exceptions, the number that a recursive mutex has
 * of its owner, pthread_self() and std::this_thread::get_id() are the task's. Their addresses stay
 * as they are over waits, also when the task moves. They begin as on a new thread. When the task's
 * function has returned, or was unwound, destructors run, those of C++ first, then those of keys:
 * in a task that is cancelled, too. They may wait, which no cancel cuts short.
 *
 * A task with `own_thread_locals` has a runner and a stack of its own, some 4.6 KiB of storage, and
 * more if libraries have more; a switch to it writes the thread pointer. If it rests
 * (haft_io_rest), it keeps its stack. Signal masks, the kernel's number of the thread (gettid) and
 * malloc's free memory of the thread stay the thread's. This needs glibc, whose threads are checked
 * on first use; docs/limits.md lists what else does not work.
 */

/* NULL: tasks of this process can have thread-locals of their own. Otherwise the reason, a text
   that is not freed; `own_thread_locals` is refused then. Any thread may call this. */
const char *haft_io_own_thread_locals_refused(void);
/* The number that the C library has for the calling task, as the owner of a mutex for example; 0:
   the caller is no task with thread-locals of its own. */
int haft_io_own_thread_id(void);

/* ---- Scopes --------------------------------------------------------------------------------- */

typedef struct haft_io_failure {
    int code;            /* negative */
    const char *message; /* what haft_io_fail was given; valid during the call, or see below */
    const char *task;    /* the name of the task that failed */
} haft_io_failure_t;

enum { HAFT_IO_FAILURES_KEPT = 8, HAFT_IO_FAILURE_TEXT = 120 };
typedef struct haft_io_failures {
    size_t count;                                      /* number of all failures, kept or not */
    haft_io_failure_t failures[HAFT_IO_FAILURES_KEPT]; /* the first ones, in order */
    char texts[HAFT_IO_FAILURES_KEPT][HAFT_IO_FAILURE_TEXT]; /* their messages, cut to that size */
} haft_io_failures_t;

/*
 * For code that watches a flag of its own and must learn of a cancel before it next waits. `done`
 * is called exactly once. It is called with `true` when the scope is cancelled, on the cancelling
 * thread; or by haft_io_scope_with, before the body, if the surrounding scope has been cancelled
 * already. It is called with `false` when the scope ends without a cancel. `done` may set what
 * other threads wait for, and must not wait itself. Keep the object alive until that call, which
 * may come after the scope has ended if another thread cancels it; afterwards the object is yours
 * again. (A deadline is noticed only when the task's thread looks at its timers, that is, when its
 * tasks wait or yield.)
 */
typedef struct haft_io_on_cancel {
    void (*done)(struct haft_io_on_cancel *self, bool cancelled);
    struct haft_io_on_cancel *next; /* the library's */
} haft_io_on_cancel_t;

/*
 * For a scope that outlives the failure of a task, such as the scope of a server with one task for
 * each connection. `failed` is called for each failure of a task of the scope, on the thread and
 * stack of that task, and must not wait. That failure neither cancels the scope nor becomes its
 * result. A failure of the body still does both.
 */
typedef struct haft_io_on_failure {
    void (*failed)(struct haft_io_on_failure *self, const haft_io_failure_t *failure);
} haft_io_on_failure_t;
/* Writes a line for each failure to standard error. */
extern haft_io_on_failure_t haft_io_print_failures;

typedef struct haft_io_scope_options {
    const char *name;             /* for the dump; not copied */
    int64_t deadline;             /* the time, by haft_io_now(), at which the scope is cancelled; 0:
                                     never */
    bool shielded;                /* no cancel from outside reaches into the scope */
    haft_io_failures_t *failures; /* receives the failures; may be NULL */
    bool moves; /* tasks that are spawned in this scope, and in scopes below it, move */
    haft_io_on_cancel_t *on_cancel; /* may be NULL */
    haft_io_on_failure_t
        *on_failure; /* is told of failures of tasks; NULL: the first failure cancels the scope */
    /* Stores the scope of a task that is spawned directly in this one without naming a scope, such
       as that of the request which the spawning task answers; it may open that scope. Where it
       stores nothing, or is NULL, the task belongs to this scope. False: no memory; then the task
       is not spawned (-ENOMEM). */
    bool (*scope_of_spawns)(haft_io_scope_t **scope);
} haft_io_scope_options_t;

/*
 * A task that moves continues, after a wait or a yield, on whichever thread of the run takes it
 * first. So no thread idles while another has tasks that could go on. In return, the task must not
 * keep anything across a wait that belongs to the thread: thread-local variables and their
 * addresses (compilers keep these in registers, too), pthread_self(), a locked mutex of threads,
 * libraries that keep state for each thread. errno is the task's own. docs/io.md has when to
 * choose this.
 */

/*
 * Calls `body(argument)` in a new scope, under the handlers of the caller, and returns when the
 * body and all tasks that were spawned in the scope have ended: no task outlives its scope. Stores
 * the body's result in `*result`, NULL if the body was unwound; `result` may be NULL.
 *
 * If the body or a task of the scope fails (haft_io_fail), the body and the other tasks are
 * cancelled, unless the scope has `on_failure`. When they have ended, haft_io_scope returns the
 * code of the first failure. It returns 0 if nothing failed, -ECANCELED after haft_io_scope_cancel,
 * and -ETIMEDOUT if the deadline interrupted the body or a task, or was reported to `on_cancel`.
 * Work that finished as the deadline passed is not interrupted. A cancel of the caller cancels the
 * scope, too; if the scope still has tasks at that time, the caller is unwound here. Tasks on other
 * threads are waited for like all others.
 *
 * Only the task that opened a scope may leave it. It is reported as a mistake if another task
 * leaves the scope, by resuming or dropping a fiber in which it is open, or if the task ends with
 * the scope open.
 */
int haft_io_scope(void *(*body)(void *), void *argument, void **result);
int haft_io_scope_with(const haft_io_scope_options_t *options, void *(*body)(void *),
                       void *argument, void **result);

/*
 * Opens a scope without a body, below `around`, which the caller is in (NULL: the innermost): the
 * caller stays outside, and spawns tasks in it by haft_io_task_options_t.scope. A failure of one of
 * them cancels the others, unless the scope has `on_failure`, and the caller goes on. A server has
 * such a scope for the tasks that outlive a request. NULL: no memory.
 *
 * The same task closes the scope, before it leaves `around`. haft_io_scope_close_until
 * waits for the tasks, even where the caller is cancelled; those that have not ended at the
 * deadline are cancelled, and waited for as well. HAFT_IO_FOREVER: no deadline; 0: it cancels them
 * at once. It returns what haft_io_scope would. NULL for `scope` does nothing. It is reported
 * as a mistake if another task closes the scope, or the scope around it ends first.
 */
haft_io_scope_t *haft_io_scope_open(const haft_io_scope_options_t *options,
                                    haft_io_scope_t *around);
int haft_io_scope_close_until(haft_io_scope_t *scope, int64_t deadline);

/* The innermost scope that the caller is in, valid until that scope ends; NULL outside of a
   scheduler. */
haft_io_scope_t *haft_io_this_scope(void);
/* Whether `scope` is `around` itself or below it. Only tasks of the run may call this. */
bool haft_io_scope_is_in(const haft_io_scope_t *scope, const haft_io_scope_t *around);
/* The outermost scope of the caller's run, which ends with the run: for tasks that outlive the
   scopes around the call that starts them, such as the task of a connection that a library keeps.
   NULL outside of a scheduler. */
haft_io_scope_t *haft_io_run_scope(void);

/*
 * Ends the current task, or the body of the innermost scope that it has opened, with an error: the
 * stack is unwound from here to the end of the task or body, and cleanups and destructors run.
 * `code` is negative; `message` may be NULL. A failure that ends the whole run is printed on
 * standard error with its message and its task, since only the code is returned.
 */
__attribute__((noreturn)) void haft_io_fail(int code, const char *message);
/* Records the failure and returns: for cleanups that run while the stack is unwound. */
void haft_io_note_failure(int code, const char *message);

typedef struct haft_io_call {
    void *(*function)(void *);
    void *argument;
    void *result; /* out: what the function returned, if it returned */
} haft_io_call_t;

/* Runs the calls as tasks of one new scope, and waits for all. Returns 0, or the code of the first
   failure, which has cancelled the others. */
int haft_io_all(haft_io_call_t *calls, size_t count);
/* Runs the calls as tasks of one new scope, and returns the index of the call that returned first,
   or the code of a call that failed before that. By then the other calls have been cancelled and
   have ended. */
int haft_io_first(haft_io_call_t *calls, size_t count);

/* ---- Cancellation --------------------------------------------------------------------------- */

/*
 * A cancel takes effect where a task waits or lets others go first (haft_io_yield), and nowhere
 * else: an operation that can be done at once is done. The wait is withdrawn, from the kernel too,
 * and the stack is unwound up to the body of the cancelled scope, so that cleanups and destructors
 * run (C: __attribute__((cleanup)), with -fexceptions). An operation that the kernel has already
 * finished counts as done: its result is returned, and the cancel takes effect at the task's next
 * wait.
 *
 * In a cleanup that runs while the stack is unwound, a wait returns -ECANCELED, unless it is inside
 * haft_io_shield.
 *
 * A task that goes on after its cancel or deadline, because it returns cancels (below), or catches
 * what they throw, keeps neither its thread nor the processor busy: from the second wait on that is
 * refused, other tasks go first; from the 65th on each also pauses, for 2, 4, 8 and then 16
 * milliseconds each time, except in a cleanup.
 */

/* Cancels the body and the tasks of the scope, including tasks that are spawned later, and the
   scopes below it, except for shielded ones. The scope returns -ECANCELED. Any task of the run may
   call this. */
void haft_io_scope_cancel(haft_io_scope_t *scope);
/*
 * Cancels the innermost scope that the caller is in, and returns 0; outside of a run it does
 * nothing. Where that scope has `scope_of_spawns`, since each of its tasks does something of its
 * own, such as a handler of libhaft-http, only what the caller does is cancelled: the tasks that it
 * has spawned, and the caller itself, which is unwound here, as by a wait that is cancelled.
 */
int haft_io_cancel(void);

/* Calls `body(argument)` in a scope that no cancel from outside reaches: for cleanups that must
   wait. */
int haft_io_shield(void *(*body)(void *), void *argument);

/* With `true`, a cancelled wait of the current task returns -ECANCELED; with `false`, the setting
   of a new task, it unwinds the task. Returns the previous setting. */
bool haft_io_return_cancels(bool returns);

/* Does what a cancelled wait does: unwinds the stack to the innermost scope's body, or to the end
   of the task. Returns -ECANCELED instead if the task has asked for that (haft_io_return_cancels),
   or if its stack is being unwound already. For operations of your own. */
int haft_io_unwind_cancelled(void);

/* ---- Time ----------------------------------------------------------------------------------- */

/* Times are in nanoseconds. Deadlines are times of haft_io_now(), whose zero is arbitrary, and
   which never goes back. */
#define HAFT_IO_MICROSECOND ((int64_t)1000)
#define HAFT_IO_MILLISECOND ((int64_t)1000000)
#define HAFT_IO_SECOND ((int64_t)1000000000)
#define HAFT_IO_FOREVER INT64_MAX

int64_t haft_io_now(void);
/* The same, up to some milliseconds ago: takes less time, for deadlines that are far off. */
int64_t haft_io_now_roughly(void);
/* The date, since 1970 began (UTC), as clock_gettime(2) has it for CLOCK_REALTIME. In a simulation
   that is the simulation's (haft_io_simulation_options_t.date). */
struct timespec haft_io_date(void);

/* Fills the memory with random bytes, as getrandom(2) does; in a simulation its seed decides them.
   Returns 0, or a negative error number. */
int haft_io_random(void *bytes, size_t size);

/* The clock of timers ticks every 65.5 microseconds: a wait ends at the first tick that is not
   before its time. A sleep whose time has already passed usually returns at once; only now and then
   do other tasks run first. */
int haft_io_sleep(int64_t nanoseconds);
int haft_io_sleep_until(int64_t deadline);

/*
 * A deadline for a block of the task itself, which needs neither a scope nor a second stack. While
 * it is set, every wait of the task ends at that time at the latest and returns -ETIMEDOUT; later
 * waits return -ETIMEDOUT at once. An operation that need not wait is still done. The exception is
 * a task that first has to let the others go on because it has done many operations in a row: so a
 * loop that never waits ends, too. A scope that is opened in the block, unless it is shielded, is
 * cancelled at that time and returns -ETIMEDOUT.
 *
 *     HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t idle = {0};
 *     haft_io_deadline_set(&idle, haft_io_now() + 30 * HAFT_IO_SECOND);
 *     ssize_t got = haft_io_read(connection, buffer, sizeof buffer);
 *
 * Zero the variable and declare it as shown, so that the deadline ends where its block is left.
 * Blocks nest; the earliest time counts. Setting the deadline again starts it anew, even after it
 * has passed. If the body of a scope inside the block sets it again, it starts anew for that scope,
 * too, unless the scope has been cancelled by then. A task does not move while it has a deadline.
 * Three mistakes are reported: setting the deadline of another task, ending a deadline before those
 * of inner blocks, and setting a deadline for the first time inside a scope that was opened after
 * its variable was declared. Deadlines have no effect on a thread without a scheduler.
 */
typedef struct haft_io_deadline {
    void *inside[8];
} haft_io_deadline_t;
#define HAFT_IO_SCOPED_DEADLINE __attribute__((cleanup(haft_io_deadline_end)))

/* `time` is one of haft_io_now(); HAFT_IO_FOREVER sets none. */
void haft_io_deadline_set(haft_io_deadline_t *deadline, int64_t time);
/* Whether its time has come since it was set: tells which of several deadlines caused an
   -ETIMEDOUT. */
bool haft_io_deadline_passed(const haft_io_deadline_t *deadline);
/* Ends the deadline before its block does. Does nothing if it was not set. */
void haft_io_deadline_end(haft_io_deadline_t *deadline);

/* ---- Descriptors ---------------------------------------------------------------------------- */

/*
 * Each of these functions waits until it can proceed, and returns what the system call of that name
 * returns, or a negative error number. Descriptors made by this header close on exec, and its
 * sockets and pipes are non-blocking. Other descriptors may be used, too, blocking or not, and
 * their mode is left alone. A write to a pipe without readers sends SIGPIPE, as write(2) does:
 * ignore that signal to get -EPIPE instead. (A write to a socket sends no signal.)
 *
 * If two tasks of a run read one stream at once, or write to it at once, each would transfer parts;
 * so the second call returns -EBUSY where it would have to wait. Every descriptor counts as a
 * stream, eventfds included, except for sockets of datagrams or packets. Several tasks may accept
 * from one socket.
 *
 * A read returns what there is. To wait for a low-water mark (SO_RCVLOWAT), use haft_io_wait_ready
 * or haft_io_poll: after them, a read finds that many bytes.
 */
ssize_t haft_io_read(int descriptor, void *buffer, size_t size);
ssize_t haft_io_write(int descriptor, const void *buffer, size_t size);
/* Writes everything, or fails. Returns 0 or an error. */
int haft_io_write_all(int descriptor, const void *buffer, size_t size);

/*
 * Reads as haft_io_read does, but into memory that the library lends, so a task that waits for an
 * idle connection occupies no buffer. Stores the address of the data in `*bytes` and returns their
 * number, at most HAFT_IO_LENT_SIZE. Each call first gives `*bytes` back, so begin with NULL;
 * `*bytes` is NULL at the end of the stream (0) and after an error.
 *
 *     HAFT_IO_SCOPED_LENT const void *bytes = NULL;
 *     for (ssize_t size; (size = haft_io_read_lent(connection, &bytes)) > 0;)
 *         haft_io_write_all(connection, bytes, (size_t)size);
 *
 * On a TCP connection, in a run of one thread, io_uring is asked once for everything that will
 * arrive (multishot receive), so the library may hold bytes that no task has asked for yet. Every
 * function of this header that is given the same number gets these bytes first, except for
 * haft_io_splice, which returns -EBUSY while there are some. Code that reads the socket in another
 * way, by a system call or in a process to which it was passed, does not see them. If some are left
 * when the connection is closed, it is reset, as the system resets one with unread bytes.
 *
 * Errors are those of haft_io_read, and -ENOMEM if there is no memory to lend.
 */
ssize_t haft_io_read_lent(int descriptor, const void **bytes);
/* 16 KiB of data plus headroom: a read of exactly 16 KiB is then known to have drained the socket,
   and a full TLS record fits. */
enum { HAFT_IO_LENT_SIZE = 16384 + 512 };

/*
 * Waits for bytes without a stack. The calling task, whose function returns next, goes on with
 * `function(argument)`, as a new task begins, when there may be something to read from the
 * descriptor, at `deadline` (of haft_io_now(); HAFT_IO_FOREVER: there is none), when the task is
 * cancelled, or when the descriptor is closed. Until then the task takes its record and `*rest`,
 * which is the program's, and lives until the function is called: not on the task's stack. So very
 * many connections may be open with a stack for each that has something to do.
 *
 *     static void *serve(void *argument) {
 *         connection_t *connection = argument;
 *         HAFT_IO_SCOPED_LENT const void *bytes = NULL;
 *         ssize_t size = haft_io_read_lent(connection->descriptor, &bytes);
 *         if (size <= 0 || haft_io_write_all(connection->descriptor, bytes, (size_t)size) != 0)
 *             return close_and_free(connection);
 *         haft_io_rest(&connection->rest, connection->descriptor, HAFT_IO_FOREVER, serve,
 *                      argument);
 *         return NULL;
 *     }
 *
 * The function reads, and so learns why it was called. It must wait, on its stack, for anything
 * still missing. Where resting is impossible it is called at once: for what is not a socket
 * or pipe, while another task reads the descriptor, in a simulation, and with io_uring in a run of
 * several threads or for what is not a connection of TCP. Other tasks that read the descriptor
 * meanwhile get -EBUSY, as from a read. If this is called several times before the return, the last
 * call counts. A cancelled task is not unwound here, but at the first wait of its function, which
 * closes what its argument owns, also then. Where there is no memory for a stack, the task asks for
 * it again every tenth of a second. The task keeps its name, its values and its joiner; it has left
 * its scopes and deadlines when its function returns. Anything that it does after this call and
 * before it returns is done.
 */
typedef struct {
    void *inside[45];
} haft_io_rest_t;
void haft_io_rest(haft_io_rest_t *rest, int descriptor, int64_t deadline, void *(*function)(void *),
                  void *argument);

/*
 * The same for a task that first sends a last message, which needs no stack either: `size` bytes of
 * memory that is lent (haft_io_lend, haft_io_read_lent), which the library gives back, also if the
 * function is unwound instead of returning, and nothing is sent. The time of the deadline is for
 * both. When `function` is called all has been sent, unless haft_io_rest_sent returns an error
 * (-EBADF: the descriptor was closed first; -ECANCELED: there was no room, and a cancel came).
 *
 * The back end sends when the task's function has returned: what that writes after this call comes
 * first, and no handler of haft_io_write is called. Where the back end cannot do it, as in a run of
 * several threads and in a simulation, the bytes are sent by this call (the effect haft_io_write),
 * in which a cancel may unwind the task. From the call on the memory is the library's, also then.
 */
void haft_io_send_and_rest(haft_io_rest_t *rest, const void *lent, size_t size, int descriptor,
                           int64_t deadline, void *(*function)(void *), void *argument);
/* For the function's last rest: returns 0, or the error with which the send has failed. */
int haft_io_rest_sent(const haft_io_rest_t *rest);

/* Returns HAFT_IO_LENT_SIZE bytes of memory, to be given back, or NULL if there is none. For
   handlers of your own that imitate haft_io_read_lent. */
void *haft_io_lend(void);
/* Gives back memory that haft_io_read_lent or haft_io_lend has returned, by the same pointer. Any
   thread may call this, in a run or not. Does nothing for NULL. */
void haft_io_give_back(const void *bytes);
/* Declares a pointer for haft_io_read_lent whose memory is given back when the variable's block is
   left, even when the task is cancelled or fails. To keep the memory, set the pointer to NULL. */
#define HAFT_IO_SCOPED_LENT __attribute__((cleanup(haft_io_give_back_scoped)))
static inline void haft_io_give_back_scoped(const void *const *bytes) {
    haft_io_give_back(*bytes);
}

/* Reads a stream line by line, in the caller's memory. Set the first three fields and zero the
   others, which belong to the library. */
typedef struct haft_io_reader {
    int descriptor;
    char *memory;
    size_t size; /* greater than the length of the longest line, counting its '\n' */
    size_t start, end;
    char under;
} haft_io_reader_t;

/*
 * Reads the next line and returns its length, or 0 at the end of the stream. The length includes
 * the '\n', which only the last line may lack. `*line` is set to the start of the line, and a '\0'
 * follows it. The caller may change the line, which is valid until the next call.
 *
 *     char memory[1000], *line;
 *     haft_io_reader_t lines = {.descriptor = connection, .memory = memory, .size = sizeof memory};
 *     for (ssize_t size; (size = haft_io_reader_line(&lines, &line)) > 0;)
 *         haft_io_write_all(connection, line, (size_t)size);
 *
 * The reader reads ahead, so until the end of the stream only it may read the descriptor
 * (haft_io_reader_read for what is not lines). A cancel, a deadline or another error in the middle
 * of a line loses nothing: the next call continues there. One caller at a time. Errors are those of
 * haft_io_read, which this calls, and -EMSGSIZE if the line does not fit. After -EMSGSIZE every
 * further call returns the same, unless the caller has set `memory` and `size` to larger memory
 * that begins with a copy of the whole smaller one.
 */
ssize_t haft_io_reader_line(haft_io_reader_t *lines, char **line);
/* Reads, as haft_io_read, what follows the last line: the body of a message whose head consists of
   lines, or a line that did not fit. Invalidates the last `*line`. The next haft_io_reader_line
   continues after the bytes that this has read. */
ssize_t haft_io_reader_read(haft_io_reader_t *lines, void *buffer, size_t size);

/* Like haft_io_reader_line, for parts that end with a byte other than '\n', such as the '\0' after
   names. */
ssize_t haft_io_reader_until(haft_io_reader_t *lines, char last, char **part);
/* Like haft_io_reader_read, but reads until there are `size` bytes; returns fewer only at the end
   of the stream. After an error it is unknown how many were read. */
ssize_t haft_io_reader_read_all(haft_io_reader_t *lines, void *buffer, size_t size);

/* Gathers what is written to a stream, in the caller's memory. Set the first three fields and zero
   the others, which belong to the library. */
typedef struct haft_io_writer {
    int descriptor;
    char *memory;
    size_t size;
    size_t start, end;
} haft_io_writer_t;

/*
 * Gathers the bytes, and writes to the stream when they do not fit. Returns 0, or an error of
 * haft_io_write. After an error or a cancel, bytes of earlier calls are still gathered; it is
 * unknown how many bytes of this call were taken.
 *
 *     char memory[4096];
 *     haft_io_writer_t out = {.descriptor = connection, .memory = memory, .size = sizeof memory};
 *     haft_io_writer_print(&out, "%d items\n", count);
 *     haft_io_writer_flush(&out);
 */
int haft_io_writer_write(haft_io_writer_t *writer, const void *bytes, size_t size);
/* Like printf(3), into the writer's memory. Returns -EMSGSIZE if the text would not even fit into
   the empty memory. Other errors are as above, but then no byte of this call has been taken. */
__attribute__((format(printf, 2, 3))) int haft_io_writer_print(haft_io_writer_t *writer,
                                                               const char *format, ...);
/* Writes what was gathered. Returns 0 or an error; the next call continues where this one
   stopped. */
int haft_io_writer_flush(haft_io_writer_t *writer);

/* Reads until there are `size` bytes; returns fewer only at the end of the stream. After an error
   it is unknown how many were read. */
ssize_t haft_io_read_all(int descriptor, void *buffer, size_t size);

struct iovec;
/* Like readv(2) and writev(2). */
ssize_t haft_io_readv(int descriptor, const struct iovec *parts, size_t count);
ssize_t haft_io_writev(int descriptor, const struct iovec *parts, size_t count);

/*
 * Move bytes without copying them through the program. haft_io_send_file sends up to `size` bytes
 * of a file, from `*offset` on, to a socket, as sendfile(2) does; with NULL for `offset`, from the
 * file's own position. haft_io_splice moves bytes between a pipe and any other descriptor, as
 * splice(2) does. Both return how many bytes were moved; 0 at the end. A broken connection, or a
 * pipe without readers, is -EPIPE; unlike those system calls, these functions send no SIGPIPE. If
 * either descriptor is closed while a task waits here, the wait ends with -EBADF. haft_io_send_file
 * returns -EAGAIN if it is to send to a pipe from a descriptor that is non-blocking and has nothing
 * now. In a simulation haft_io_send_file copies, and haft_io_splice does not take ends of simulated
 * streams.
 */
ssize_t haft_io_send_file(int socket, int file, int64_t *offset, size_t size);
ssize_t haft_io_splice(int from, int to, size_t size);

/* Waits for any of `events`, which are those of poll(2); returns the ones that have come. */
int haft_io_wait_ready(int descriptor, short events);
/* The same until a deadline of haft_io_now(), and then -ETIMEDOUT. */
int haft_io_wait_ready_until(int descriptor, short events, int64_t deadline);

struct pollfd;
/*
 * Like poll(2), until a deadline of haft_io_now(): waits for the events of several descriptors,
 * fills in their `revents`, and returns the number of descriptors that have some; 0 after the
 * deadline. If the deadline has already passed it only looks. Unlike the other waits it accepts a
 * descriptor that was closed by something other than haft_io_close since a task last waited on it,
 * and is another file now.
 */
int haft_io_poll(struct pollfd *entries, size_t count, int64_t deadline);

/*
 * Closes the descriptor. Any thread may call this, in a run or not. A task that waits on the
 * descriptor, in whichever run, gets -EBADF, and never data of another file that receives the same
 * number. If a thread of the task's run has to end the wait first, this returns 0 at once, and the
 * descriptor is closed after that thread's next poll. A descriptor that a task has waited on must
 * be closed by this function, or by way of haft_io_close_by, and by nothing else.
 *
 * A call that takes several operations (haft_io_write_all, a line, ...) ends in the same way
 * between two of them, so all of it is of one file; with MSG_WAITALL it returns what has come. If
 * such a call is past its first operation, this function returns 0 at once, and the descriptor is
 * closed when the call ends.
 *
 * Calls that have not begun are not ended. A task on another thread that is about to call a
 * function keeps using the number, which may be another file's by then. So to close a descriptor
 * that other threads use, first cancel the tasks that use it, and close it when they have ended.
 */
int haft_io_close(int descriptor);

/*
 * For functions other than haft_io_close that close a descriptor or give its number to another
 * file: dup2(2), freopen(3), fclose(3), closedir(3). Ends the waits on the descriptor as
 * haft_io_close does, then calls `function(argument)`, which does the rest, and returns its result.
 *
 *     static int take_over(void *file) {
 *         return dup2(*(const int *)file, STDERR_FILENO) >= 0 ? 0 : -errno;
 *     }
 *     int code = haft_io_close_by(STDERR_FILENO, take_over, &file);
 *
 * The function is called on the caller's thread, when the operations on the descriptor have ended.
 * The caller waits for operations in the pool, for calls of several operations, and for the next
 * poll of each thread whose tasks wait on the descriptor; no cancel ends this wait, and a thread
 * without a scheduler sleeps meanwhile. So a handler of haft_io_write or haft_io_read must not call
 * this for the descriptor of the operation that it handles. A wait, accept or connect that begins
 * on the descriptor before the function runs fails with -EBADF. One that begins on another thread
 * while the function runs blocks until it returns. So the function must neither wait nor yield, and
 * a thread of a run may call this only in a task. The waits are ended even if the function fails:
 * check beforehand whether what dup2 is given is a descriptor. Returns -EBADF, without calling the
 * function, for a simulated descriptor.
 */
int haft_io_close_by(int descriptor, int (*function)(void *), void *argument);

/*
 * Declares a descriptor that is closed when the variable's block is left, even when the task is
 * cancelled or fails; nothing is closed if it is negative. To keep it open, set the variable to -1.
 *
 *     HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
 */
#define HAFT_IO_SCOPED_DESCRIPTOR __attribute__((cleanup(haft_io_close_scoped)))
static inline void haft_io_close_scoped(const int *descriptor) {
    if (*descriptor >= 0)
        haft_io_close(*descriptor);
}

int haft_io_pipe(int ends[2]); /* as pipe(2): read from [0], write to [1] */

/* ---- Sockets -------------------------------------------------------------------------------- */

/* `flags` are those of recv(2) and send(2). With MSG_DONTWAIT the result is -EAGAIN if the task
   would have to wait. MSG_PEEK waits until there is something to look at, but not for more, even
   with MSG_WAITALL. A broken connection is -EPIPE, without a signal. */
ssize_t haft_io_receive(int socket, void *buffer, size_t size, int flags);
ssize_t haft_io_send(int socket, const void *buffer, size_t size, int flags);
ssize_t haft_io_receive_from(int socket, void *buffer, size_t size, int flags,
                             struct sockaddr *address, socklen_t *address_size);
ssize_t haft_io_send_to(int socket, const void *buffer, size_t size, int flags,
                        const struct sockaddr *address, socklen_t address_size);

/* Like recvmsg(2) and sendmsg(2). Received descriptors close on exec. A receive ends where
   descriptors or other control data end, even with MSG_WAITALL: later bytes are for the next
   call. */
ssize_t haft_io_receive_message(int socket, struct msghdr *message, int flags);
ssize_t haft_io_send_message(int socket, const struct msghdr *message, int flags);

/*
 * Pass a descriptor over a Unix socket, along with one byte. The sender keeps its own descriptor.
 * The receiver gets a new one for the same file; if several arrive, it gets the first, and the
 * others are closed. haft_io_send_descriptor returns 0, haft_io_receive_descriptor the descriptor.
 * Errors of the latter: -EPIPE at the end of the stream, -EBADMSG if a byte came without a
 * descriptor, -EMFILE if the process had no number left for the descriptor, which is then lost.
 */
int haft_io_send_descriptor(int socket, int descriptor);
int haft_io_receive_descriptor(int socket);

/*
 * Waits for the next connection. When the process has run out of descriptors, this also waits until
 * one is free.
 *
 * In a run of several threads the first task that the caller spawns afterwards is assumed to serve
 * the connection, and is spread: see haft_io_task_options_t.
 *
 * With io_uring, in a run of one thread, the kernel is asked once for all connections of a listener
 * (multishot accept), so the library may hold connections that no task has asked for yet.
 * haft_io_accept returns these; the library closes those that are left when the listener is closed
 * or the run ends. Code that accepts in another way, by a system call or in another process that
 * has the listener, does not get them.
 */
int haft_io_accept(int listener);
int haft_io_connect(int socket, const struct sockaddr *address, socklen_t address_size);

/*
 * A TCP socket made here or by the functions below sends what it is given at once (TCP_NODELAY).
 * Otherwise the second of two writes would wait some 40 ms for the peer to acknowledge the first. A
 * connection from haft_io_accept inherits the option from its listener. To turn it off, use
 * setsockopt(2) on the listener before connections come, or on the one connection. Sockets and
 * listeners that other functions have made are left as they are.
 */
int haft_io_socket(int domain, int type, int protocol);
int haft_io_socket_pair(int domain, int type, int protocol, int ends[2]);
/* Like bind(2), for sockets of datagrams, and for streams that are about to connect; listeners are
   bound by the functions below. Works in a simulation, too. */
int haft_io_bind(int socket, const struct sockaddr *address, socklen_t address_size);
/* Return a listening socket. `host` is a numeric address ("::" for all addresses), or a name such
   as "localhost". A name is resolved as by haft_io_resolve, and the first of its addresses is used
   at which this machine can listen. For `port` 0 the system chooses a port (see haft_io_port).
   `backlog` 0 means the system's maximum. */
int haft_io_listen_tcp(const char *host, uint16_t port, int backlog);
typedef struct haft_io_listen_options {
    int backlog; /* 0: the system's maximum */
    /* Others may listen at the same port, in any thread or process of the same user, if all of them
       set this (SO_REUSEPORT). The kernel gives each connection to one of them; those that a
       listener has been given and not accepted are lost when it is closed. In a simulation each
       listener there has its turn. */
    bool reuse_port;
} haft_io_listen_options_t;
int haft_io_listen_tcp_with(const haft_io_listen_options_t *options, const char *host,
                            uint16_t port);
int haft_io_listen_unix(const char *path, int backlog);
/*
 * Resolves the name, connects to one of its addresses, and returns the socket. The addresses are
 * tried in turn, alternating between IPv6 and IPv4; the next attempt starts as soon as the last one
 * has failed, or has not succeeded within 250 ms (RFC 8305, "happy eyeballs"). The first connection
 * that succeeds is used, and the other attempts are withdrawn. If all fail, this returns the error
 * of the first address; if the name cannot be resolved, the error of haft_io_resolve. Several
 * addresses are tried by tasks of their own, which do not have the handlers around the caller;
 * outside of a run they are tried one after another.
 */
int haft_io_connect_tcp(const char *host, uint16_t port);
int haft_io_connect_unix(const char *path);
/* Like shutdown(2). After SHUT_WR the peer reads what was sent before, and then the end of the
   stream. After SHUT_RD a read, also one that a task waits for, returns what has arrived, and then
   the end of the stream. -ENOTCONN: the socket is not connected. */
int haft_io_shutdown(int socket, int how);
/* Returns the local port of an Internet socket. */
int haft_io_port(int socket);

/* ---- Blocking work -------------------------------------------------------------------------- */

/*
 * Calls `function(argument)` on a thread of the pool, where it may block, and waits for it. Without
 * a scheduler, and in a child of fork, it is called on the caller's thread. A cancel withdraws a
 * call that has not begun, and waits for one that has. Returns 0, or -ECANCELED, or, like the
 * functions below, -EAGAIN or -ENOMEM if the pool has no thread and the system refuses to start
 * one.
 *
 * In a simulation the task calls it itself, after others have gone on and shielded from cancels:
 * with libhaft-posix what it opens, sleeps and asks is the simulation's. Without libhaft-posix the
 * C library's functions are the machine's, in a task, too: in a simulation with files of its own
 * (haft_io_simulation_options_t.files) the call is then refused, with -ENOTSUP.
 */
int haft_io_call_blocking(void (*function)(void *), void *argument);
/*
 * Like haft_io_call_blocking, but a cancel does not wait for a call that has begun: for a call that
 * may block for very long, such as a query to a server that does not answer. The argument is in
 * memory of its own, which `left(argument)` frees. `left` is called once, unless this function
 * returns 0: on the pool's thread after `function` has returned, or at once if `function` has not
 * begun. For calls that were left the pool may start as many threads again as its limit; the end of
 * the run waits for them.
 */
int haft_io_call_or_leave(void (*function)(void *), void *argument, void (*left)(void *));

/*
 * Calls `function(argument)` here, as on a thread without tasks, and returns its result: whatever
 * waits in it, in this library and in libhaft-posix, blocks the thread with all its tasks. So no
 * other task of the thread runs before it returns. It is meant for code that uses what belongs to
 * the thread and cannot be used by two tasks at once, such as a handler of failures in a language's
 * runtime. haft_io_self() is NULL there, no cancel arrives, and a watchdog does not see it. Wait
 * there for nothing that only another task of the thread can end, and close no descriptor that a
 * task waits for.
 */
void *haft_io_block_thread(void *(*function)(void *), void *argument);

/* Files: as open(2), pread(2), pwrite(2), fsync(2), called in the pool. Use haft_io_open_fifo to
   open a FIFO for one direction. */
int haft_io_open(const char *path, int flags, mode_t mode);
ssize_t haft_io_pread(int descriptor, void *buffer, size_t size, int64_t offset);
ssize_t haft_io_pwrite(int descriptor, const void *buffer, size_t size, int64_t offset);
int haft_io_fsync(int descriptor);
/* Like openat(2), for a FIFO: waits until the other end is open, too. The kernel does not notify of
   that, so this looks again after pauses of 1 to 32 milliseconds. `flags` must not be O_RDWR. Even
   in a simulation, the FIFO is the system's. */
int haft_io_open_fifo(int directory, const char *path, int flags, mode_t mode);

struct addrinfo;
/* Like getaddrinfo(3), in the pool, by haft_io_call_or_leave, whose errors it may return, too. An
   error of getaddrinfo is returned as HAFT_IO_ERROR_OF_RESOLVER plus the EAI_ code, except that
   EAI_SYSTEM becomes the error number and EAI_MEMORY becomes -ENOMEM. */
int haft_io_resolve(const char *host, const char *service, const struct addrinfo *hints,
                    struct addrinfo **result);

struct stat;
struct dirent;
/* Directories and names, in the pool. haft_io_list_directory is as scandir(3), sorted by name: it
   returns the number of entries; the caller frees each entry and the array. The others are as
   mkdir(2), remove(3), rename(2), stat(2). */
int haft_io_list_directory(const char *path, struct dirent ***entries);
int haft_io_mkdir(const char *path, mode_t mode);
int haft_io_remove(const char *path);
int haft_io_rename(const char *from, const char *to);
int haft_io_stat(const char *path, struct stat *status);

/* ---- Signals and processes ------------------------------------------------------------------ */

/*
 * Signals sent to the process are handled by the program's own threads. The threads that the
 * library starts, for the tasks of a run and for blocking work, block all signals except those of
 * faults (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS). So kill(getpid(), ...) reaches the
 * program from everywhere, while raise(3), which signals the calling thread, does nothing on such a
 * thread. A child of fork(2) from such a thread blocks the signals that the program blocks.
 */

/*
 * Waits for one of the signals of the set and returns its number. All threads of the process must
 * block these signals: block them before haft_io_run. A signal that arrives while no task waits is
 * kept for the next wait. This takes a descriptor; if the process has run out of them, it looks now
 * and then instead, and so does haft_io_process_wait.
 */
int haft_io_signal_wait(const sigset_t *signals);

/*
 * Starts a program, which is searched in PATH, with these arguments, the last of which is NULL.
 * `streams` are its standard input, output and error; -1, or NULL for all three, leaves it the
 * caller's. They are made blocking, as programs expect; the caller closes its own copies. The
 * program begins with no signal blocked or ignored. Returns the process number, or an error:
 * -EMFILE if there is no descriptor for a copy of each stream. Runs in the pool.
 */
pid_t haft_io_process_start(const char *const arguments[], const int streams[3]);

typedef struct haft_io_process_options {
    const int *streams; /* three, as above, or NULL */
    /* Strings "NAME=value", the last of which is NULL; NULL: the caller's environment. The program
       is searched in the caller's PATH in any case. */
    const char *const *environment;
    /* The working directory of the program; NULL: the caller's. A program name that contains a '/'
       but does not begin with one is relative to this folder. */
    const char *folder;
    /* The program leads a process group of its own: kill(-number, ...) then reaches all that it
       starts, too, and signals of the caller's terminal do not reach it. */
    bool group;
} haft_io_process_options_t;

pid_t haft_io_process_start_with(const haft_io_process_options_t *options,
                                 const char *const arguments[]);
/* Waits for the end of a child of this process. `*status` is that of waitpid(2); `status` may be
   NULL. A cancel leaves the child running; it must still be waited for. */
int haft_io_process_wait(pid_t process, int *status);

/* ---- Seeing inside -------------------------------------------------------------------------- */

/*
 * Writes to the descriptor, by blocking writes, the scopes and tasks of the calling task's run: for
 * each task its name, its state, what it waits for, and for how long (as of the last poll of its
 * thread, to some milliseconds). Tasks that have not waited yet are only counted, and if a task
 * waits on many descriptors, the first few are shown. The other tasks go on meanwhile, so the text
 * may be out of date when it is read. Returns 0, or an error; -ESRCH outside of a task.
 *
 *     scope 'main'
 *       task 'server' waits for: accept on descriptor 4, 1200 ms
 *       task 'resolver' waits for: poll on descriptors 6, 7, 80 ms
 *       scope 'connection'
 *         task 'server' waits for: the tasks of its scope, 3 ms
 */
int haft_io_dump(int descriptor);

typedef struct haft_io_dump_options {
    bool backtraces; /* of the tasks that wait: a line for each frame, with its function if known
                        (-rdynamic); and of a mutex that is waited for its address, and the name
                        of the task that holds it. In a run of several threads this needs
                        membarrier(2) */
} haft_io_dump_options_t;
int haft_io_dump_with(const haft_io_dump_options_t *options, int descriptor);
/*
 * The same of another run, on any thread, whatever the run's tasks do meanwhile. In a run that is
 * `observed` the tasks that have a thread at the moment come first, with the places where they are:
 * the threads are interrupted by SIGURG, as by the watchdog. `run` is the run's scope, of which one
 * of its tasks has told the thread (haft_io_run_scope), and which must not end during the call.
 * -ENOTSUP: it is a simulation, or a run of one thread without `observed`.
 */
int haft_io_dump_run(haft_io_scope_t *run, const haft_io_dump_options_t *options, int descriptor);

/* Fills in the return addresses of the caller's task, or of one that waits and has begun on the
   caller's thread, innermost first, and returns how many: for backtrace_symbols_fd and its like. */
int haft_io_task_backtrace(const haft_io_task_t *task, void **addresses, int size);

/*
 * With haft_io_run_options_t.dump_signal the run writes this dump, with backtraces, on standard
 * error whenever the process gets the signal. The first of the run's threads that polls writes it,
 * so a run of one thread writes none while a task holds that thread. At least one thread must not
 * block the signal; the signal stays caught after the run has ended.
 *
 * With haft_io_run_options_t.watchdog, in nanoseconds, a thread checks the others twice in that
 * time. It names on standard error each task that has run for longer without a wait or a yield,
 * with a backtrace of where the task is; and again after twice that time, four times, and so on, as
 * long as the task goes on. It counts the processor's time of the thread, and the time for which
 * the thread is blocked in the kernel; not the time for which it waits for a processor, or in which
 * the process is stopped. The watchdog interrupts the thread with SIGURG, whose action it
 * replaces; a system call in which the task sleeps may end with EINTR.
 *
 *     haft-io: a task has held its thread for more than 100 ms: 'the miner'
 *     ./program(mine+0x12) [0x401234]
 */

/*
 * A task that waits in an initialiser of a thread-local variable is reported on standard error,
 * with a backtrace, once for each initialiser: another task of the thread may use the variable
 * meanwhile. (Rust's thread_local! makes two values then, and drops one that is borrowed; C++'s
 * thread_local shows an object that is not constructed.) The report needs the program's symbols,
 * and does not see thread-local variables of C++ that are local to a function.
 */

typedef struct haft_io_counters {
    uint64_t tasks;      /* tasks that have started, and that have gone on after haft_io_rest */
    uint64_t steals;     /* tasks, new or moving ones, that a thread took out of another's queue */
    uint64_t operations; /* operations on descriptors */
    uint64_t polls;      /* polls of the back ends */
    uint64_t wakes;      /* times that a thread woke another that slept */
    uint64_t polling;    /* nanoseconds spent in polls, asleep or not; 0 without
                            haft_io_run_options_t.times_polls, because it costs a reading of the
                            clock for each poll */
} haft_io_counters_t;

/* Counts since the run of the calling task began. Returns 0; -ESRCH outside of a task. */
int haft_io_count(haft_io_counters_t *counters);

/*
 * With haft_io_run_options_t.top the run has a Unix socket at that path, over which the program
 * haft-top shows its tasks by name, what they wait for, its threads, counters, and the spans that
 * take longest (haft/io_trace.h), such as the requests of a server. A path that is a folder means
 * the file haft-top.PID in it. Only the process's user may connect (mode 0600);
 * nothing that is sent to the socket is read. The file is removed at the end of the run; one that a
 * killed process has left is replaced. One run of a process has a socket at a time. Until a program
 * connects it costs two readings of the clock for each span; then, once a second, one thread of the
 * run counts the tasks, under the scopes' locks: some 0.2 us a task.
 *
 * The run does not begin if the socket cannot be had: -ENAMETOOLONG above 107 bytes, -EADDRINUSE if
 * another process has it, -EALREADY if another run has, or an error of bind(2). Where HAFT_IO_TOP
 * asks for it, the error is written to standard error, and the run begins. A simulation has none.
 */
/* Writes the same, a line of JSON (docs/tracing.md), of the run of the calling task. Returns 0;
   -ESRCH outside of a task, -ENOMEM, or an error of write(2). */
int haft_io_summarize(int descriptor);
/* The same of another run, on any thread, as haft_io_dump_run. */
int haft_io_summarize_run(haft_io_scope_t *run, int descriptor);
/* How many tasks of the calling task's run have not ended; it looks at every scope. 0 outside of a
   task. On several threads the number may be a little out of date. */
size_t haft_io_living(void);

/* ---- Recording ------------------------------------------------------------------------------ */

/*
 * A run of one thread is its program and the answers that it gets: the bytes, results and errors of
 * its operations, the time, random bytes, names, and the order in which its tasks went on. With
 * haft_io_run_options_t.record, or with HAFT_IO_RECORD=FILE in the environment of a program that
 * knows nothing of this, the run writes them to a file. With `replay`, or HAFT_IO_REPLAY=FILE, the
 * same program has the same run again: with the same bytes and the same order, without network,
 * files or waits, under a debugger, or with a printf added. The program's standard output and
 * standard error appear again. The environment's file has all runs of the process, if one begins
 * after the other.
 *
 * If the program asks for something else than it did, or for more, the process ends with status 3
 * after a message, with the backtraces of the task that asks and of the one that the record has.
 * Set a breakpoint at haft_io_replay_ends to look at it. A record that was cut, for example because
 * the process was killed, replays up to there.
 *
 * Requests of libhaft-http are recorded one by one: in a run with `keep_requests`, or with
 * HAFT_IO_KEEP_REQUESTS=FOLDER, each that fails is written to a file of its own, with all that its
 * handler asked for, and HAFT_IO_REPLAY=FILE has that handler answer it again, alone. A run that
 * keeps requests may have several threads.
 *
 * haft_io_run_with returns -ENOTSUP, after a message, for a record of several threads; -EBUSY for a
 * second run at a time of a process with the environment's file; -EINVAL for a file that is no
 * record, or one of another version or architecture, or if both are asked for; or why the file
 * could not be made. docs/replay.md lists what is covered, and what is not.
 */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#include "io_sync.h"
#include "io_testing.h"
#include "io_trace.h"

#endif
