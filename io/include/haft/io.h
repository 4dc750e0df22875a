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
 * signals and processes; synchronisation; seeing inside; testing. haft/io_effects.h has the effects
 * of the operations.
 *
 * Results: functions that can fail return 0, or a count, or a negative error number of errno.h
 * (-ECONNRESET), or, if they resolve a name, HAFT_IO_ERROR_OF_RESOLVER and an EAI_ code; haft_io_error_text says any of
 * these in words. Each task has its own errno: neither a wait nor a success changes it.
 *
 * Threads: the tasks of one haft_io_run share its thread, or its threads (haft_io_run_options_t.threads). A
 * task that has not started is taken by any of them; one that has stays on its thread, unless it moves (see
 * "scopes"). Unless said otherwise the functions here are for tasks; operations that have a blocking default are also for
 * threads without a scheduler.
 *
 * Link with -lhaft-io, or by pkg-config haft-io; compile C with -fexceptions, so that a task that is
 * cancelled runs its cleanups. (haft.h warns where the flag is missing.)
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

/* A name that cannot be resolved is this plus the EAI_ code of netdb.h, which is negative: an unknown host is
   HAFT_IO_ERROR_OF_RESOLVER + EAI_NONAME. No error number of errno.h is that low. */
#define HAFT_IO_ERROR_OF_RESOLVER (-30000)
/* The failure of a task that an exception of C++ has ended; what called its scope or its run gets the exception. */
#define HAFT_IO_BY_EXCEPTION (-ENOTRECOVERABLE)
/* What a code means that a function of this library has returned: "Connection refused", "Name or service not known". Not
   to be freed. Any thread. */
const char *haft_io_error_text(int code);

/* ---- Running -------------------------------------------------------------------------------- */

typedef struct haft_io_run_options {
    /* On which tasks run; 0: one for each processor that the process may use, by its affinity and the quotas of its
       control groups; at most 56. */
    int threads;
    const char *backend;  /* "epoll" or "io_uring"; NULL: HAFT_IO_BACKEND in the environment, or,
                             without it or if it is empty, what the system has. A thread after the
                             first that gets no ring of io_uring, as where RLIMIT_MEMLOCK is low, has
                             epoll */
    size_t stack_size;    /* of a task, and of the body of a scope; 0: haft_stack_size() */
    int blocking_threads; /* at most so many threads for blocking work at a time; 0: 64 */
    int dump_signal; /* the process gets it: the run dumps its tasks; 0: none. See "seeing inside" */
    int64_t watchdog; /* a task that holds its thread for longer is named; 0: none. Likewise */
    bool times_polls; /* counts haft_io_counters_t.polling */
    bool moves;       /* all tasks move; see "scopes" */
    bool dense;       /* for very many tasks that call little: stacks of 8 KiB side by side, with
                           canaries instead of guards, as haft_fiber_options_t.dense; `stack_size`
                           is not used. Link such a program with -Wl,-z,now (docs/io.md). On AArch64,
                           where unwinding needs more: 16 KiB, guarded */
} haft_io_run_options_t;

/*
 * Runs `main(argument)` as the first task, in a scope of its own, and returns when it and all tasks
 * that were spawned below it have ended. It begins when the calls of haft_io_close on other threads that were
 * under way have returned. `options` NULL: one thread, and otherwise as zeroed ones. Returns
 * 0, or the code that ended the scope (see haft_io_scope). Further errors: -EBUSY on a thread that runs a
 * scheduler already, -EINVAL for an unknown back end or a signal that cannot be caught, and those of the system
 * when it refuses descriptors or memory.
 */
int haft_io_run(void *(*main)(void *), void *argument);
int haft_io_run_with(const haft_io_run_options_t *options, void *(*main)(void *), void *argument);

/*
 * Whether the calling thread is inside haft_io_run: in a task, or in the scheduler between tasks. False in a
 * child of fork. For code that stands between a program and the system: unlike haft_io_self() it performs
 * nothing and may be called at any time, from anywhere.
 */
bool haft_io_runs_here(void);

/* ---- Tasks ---------------------------------------------------------------------------------- */

/*
 * Starts `function(argument)` as a task of the current scope: the innermost one that the caller is
 * in. The task begins after the caller waits next, or on another thread; on one thread tasks start in
 * the order in which they were spawned. The result of the function is ignored, and the task is released at
 * its end. The argument must live as long as the scope: for an argument in your own frame, open a scope of
 * your own (haft_io_scope).
 *
 * A task that is cancelled before it has begun runs, too, until its first wait: so it frees what its argument has.
 *
 * The task inherits the caller's name and local values, but not the handlers around the caller,
 * since it may run when those have gone. The function must return with the rounding mode with which
 * it began, and must let no exception of C++ out. Returns 0, or -ENOMEM.
 */
int haft_io_spawn(void *(*function)(void *), void *argument);

typedef struct haft_io_task_options {
    haft_io_scope_t *scope; /* NULL: the current one */
    const char *name;       /* not copied; NULL: inherited */
    bool moves;             /* also if those of its scope do not; see "scopes" */
    /* For one that lives long and mostly waits: in a run of several threads it starts on the one that has the fewest of
       these, and stays there, unless it moves. So is the first after haft_io_accept. Others start on the thread of who
       spawns them, or on one that has nothing to do. */
    bool spread;
    /* Bytes of addresses, rounded up as by haft_set_stack_size: of its stack, and of those of the bodies of its scopes,
       which are not dense; 0: as the run's. Where none can be had, its scope fails with -ENOMEM, as for any task. Such
       a stack is given back at the end of the task, which costs some hundred nanoseconds. */
    size_t stack_size;
} haft_io_task_options_t;

/*
 * The same for a task whose result is wanted. Any task of the run may join it, once. The handle is
 * valid until the task has been joined, or until its scope ends. NULL: no memory.
 */
haft_io_task_t *haft_io_async(void *(*function)(void *), void *argument);
haft_io_task_t *haft_io_async_with(const haft_io_task_options_t *options, void *(*function)(void *),
                                   void *argument);
/* haft_io_spawn with options. (As everywhere, `options` NULL are zeroed ones.) */
int haft_io_spawn_with(const haft_io_task_options_t *options, void *(*function)(void *),
                       void *argument);

/*
 * Waits for the end of the task and stores its result in `*result`, NULL if it was cancelled or has failed; `result`
 * may be NULL. Returns 0; -ECANCELED if the task was cancelled; or the code with which it failed. Releases the handle,
 * also when the caller is cancelled meanwhile. To join a task twice, or oneself, is an error.
 */
int haft_io_join(haft_io_task_t *task, void **result);

/*
 * Lets every other task that can run go first. For a long computation: a task that calls functions of this header again
 * and again, and never has to wait, does this by itself, after 64 operations on descriptors or 256 others in a row. So
 * do those that only try. What lets others go on (haft_io_mutex_unlock, haft_io_condition_signal and the like) and haft_io_spawn never do.
 */
static inline int haft_io_yield(void) {
    int code = HAFT_PERFORM(haft_io_yield);
    return code == 0 ? 0 : haft_io_unwind_cancelled();
}

/* The current task; NULL outside of a scheduler. */
static inline haft_io_task_t *haft_io_self(void) {
    return HAFT_PERFORM(haft_io_self);
}

const char *haft_io_task_name(const haft_io_task_t *task); /* "" when it has none */
void haft_io_task_set_name(const char *name);              /* of the current task; not copied */

/*
 * Values of a task by key, which the tasks that it spawns afterwards inherit. A key is the address of
 * any object. haft_io_local_get returns NULL for a key that was not set; setting a key to NULL removes it.
 * haft_io_local_set returns 0, or -ENOMEM, which removing or replacing a value that no other task has
 * inherited never does.
 */
void *haft_io_local_get(const void *key);
int haft_io_local_set(const void *key, void *value);

/* ---- Scopes --------------------------------------------------------------------------------- */

typedef struct haft_io_failure {
    int code;            /* negative */
    const char *message; /* as it was given */
    const char *task;    /* the name of the task that failed */
} haft_io_failure_t;

enum { HAFT_IO_FAILURES_KEPT = 8 };
typedef struct haft_io_failures {
    size_t count;                                      /* of all failures, kept or not */
    haft_io_failure_t failures[HAFT_IO_FAILURES_KEPT]; /* the first ones, in order */
} haft_io_failures_t;

/*
 * For code that looks at a flag of its own, and is to be told of a cancel before it waits. `done` is called once: with
 * true by who cancels the scope, on his thread, or by haft_io_scope_with, before the body, where the scope around it
 * has been cancelled; with false when the scope ends and was not. It may set what other threads wait for, and must
 * not wait itself. The object lives until then, which may be after the end of the scope if another thread cancels
 * it, and is its own from then on. (A deadline passes when the task's thread looks at its timers: its tasks wait, or
 * yield.)
 */
typedef struct haft_io_on_cancel {
    void (*done)(struct haft_io_on_cancel *self, bool cancelled);
    struct haft_io_on_cancel *next; /* the library's */
} haft_io_on_cancel_t;

/*
 * For a scope that goes on when one of its tasks fails, as that of a server whose tasks each serve a connection. `failed`
 * is called for each failure of a task of the scope, on the thread and stack of that task, and must not wait; the
 * failure neither cancels the scope nor is what the scope returns. A failure of the body still is.
 */
typedef struct haft_io_on_failure {
    void (*failed)(struct haft_io_on_failure *self, const haft_io_failure_t *failure);
} haft_io_on_failure_t;
/* Writes a line for each failure to standard error. */
extern haft_io_on_failure_t haft_io_print_failures;

typedef struct haft_io_scope_options {
    const char *name;             /* for the dump; not copied */
    int64_t deadline;             /* when the scope is cancelled, by haft_io_now(); 0: never */
    bool shielded;                /* a cancel from outside does not reach into the scope */
    haft_io_failures_t *failures; /* failures are written here; may be NULL */
    bool moves; /* the tasks that are spawned in the scope, and in scopes below, move */
    haft_io_on_cancel_t *on_cancel; /* may be NULL */
    haft_io_on_failure_t
        *on_failure; /* gets the failures of tasks; NULL: the first cancels the scope */
} haft_io_scope_options_t;

/*
 * A task that moves goes on, after a wait or a yield, on whichever thread of the run takes it first. So no thread
 * idles while another has tasks that could go on. But across a wait nothing may be kept that belongs to
 * the thread: thread-local variables and their addresses, which compilers keep, too; pthread_self(); a locked
 * mutex of threads; libraries that keep state for each thread. errno is the task's own. docs/io.md says when
 * to choose this.
 */

/*
 * Calls `body(argument)` in a new scope, under the handlers of the caller, and returns when the
 * body and all tasks that were spawned in the scope have ended: no task outlives its scope. Stores
 * the body's result in `*result`, NULL if the body was unwound; `result` may be NULL.
 *
 * If the body or a task of the scope fails (haft_io_fail), the body and the other tasks are
 * cancelled, unless the scope has `on_failure`; when they have ended, haft_io_scope returns the code of the first failure. It returns
 * 0 when nothing failed, -ECANCELED after haft_io_scope_cancel, and -ETIMEDOUT when the deadline has cut short the
 * body or a task, or was told to `on_cancel`: what was done just when it passed counts as done. A cancel
 * of the caller cancels the scope, too; if the scope still has tasks then, it reaches the caller here.
 * Tasks that have started on other threads are waited for like all others.
 *
 * The task that has opened a scope leaves it: another one that resumes or drops a fiber with the open scope
 * and so leaves it, or a task that ends before, is a mistake that is reported.
 */
int haft_io_scope(void *(*body)(void *), void *argument, void **result);
int haft_io_scope_with(const haft_io_scope_options_t *options, void *(*body)(void *),
                       void *argument, void **result);

/* The innermost scope that the caller is in, valid until that scope ends; NULL outside of a
   scheduler. */
haft_io_scope_t *haft_io_this_scope(void);

/*
 * Ends the current task, or the body of the innermost scope that it has opened, with an error: the
 * stack is unwound from here to the end of the task or body, and cleanups and destructors run.
 * `code` is negative, `message` is not copied. A failure that ends the run, and so nobody is told of but by the run's
 * code, is printed on standard error, with its message and its task.
 */
__attribute__((noreturn)) void haft_io_fail(int code, const char *message);
/* For cleanups that run while the stack is unwound: notes the failure and returns. */
void haft_io_note_failure(int code, const char *message);

typedef struct haft_io_call {
    void *(*function)(void *);
    void *argument;
    void *result; /* out: what the function returned, if it did */
} haft_io_call_t;

/* Runs the calls as tasks of one new scope, and waits for all. Returns 0, or the code of the first
   failure, which has cancelled the others. */
int haft_io_all(haft_io_call_t *calls, size_t count);
/* Runs the calls as tasks of one new scope, and returns the index of the call that returned first,
   or the code of a call that failed before. It has cancelled the others, and they have ended. */
int haft_io_first(haft_io_call_t *calls, size_t count);

/* ---- Cancellation --------------------------------------------------------------------------- */

/*
 * A cancel reaches a task where it waits, or lets others go first (haft_io_yield), and nowhere else:
 * any other operation that can be done at once is done. The wait is withdrawn, from the kernel too,
 * and the stack is unwound up to the body of the cancelled scope, so that cleanups and destructors
 * run (C: __attribute__((cleanup)), with -fexceptions). An operation that the kernel has finished by
 * then counts as done: its result is returned, and the cancel reaches the task at its next wait.
 *
 * In a cleanup that runs while the stack is unwound, a wait returns -ECANCELED, unless it is inside
 * haft_io_shield.
 */

/* Cancels the body and the tasks of the scope, also those that are spawned later, and the scopes
   below, except for shielded ones. The scope returns -ECANCELED. For the tasks of the run. */
void haft_io_scope_cancel(haft_io_scope_t *scope);

/* Calls `body(argument)` in a scope that no cancel from outside reaches: for cleanups that must wait. */
int haft_io_shield(void *(*body)(void *), void *argument);

/* With true, a cancelled wait of the current task returns -ECANCELED; with false it unwinds the
   task, as for a new task. Returns the setting before. */
bool haft_io_return_cancels(bool returns);

/* Does what a cancelled wait does: unwinds the stack to the innermost scope's body, or to the end
   of the task. Returns -ECANCELED if the task has asked for that, or if the stack is being unwound
   already. For operations of your own. */
int haft_io_unwind_cancelled(void);

/* ---- Time ----------------------------------------------------------------------------------- */

/* Times are in nanoseconds. Deadlines are times of haft_io_now(), whose zero is arbitrary, and
   which never goes back. */
#define HAFT_IO_MICROSECOND ((int64_t)1000)
#define HAFT_IO_MILLISECOND ((int64_t)1000000)
#define HAFT_IO_SECOND ((int64_t)1000000000)
#define HAFT_IO_FOREVER INT64_MAX

int64_t haft_io_now(void);

/* The clock of timers ticks every 65.5 microseconds: a wait ends at the first tick that is not
   before its time. One whose time has passed is no wait: the others run first only now and then. */
int haft_io_sleep(int64_t nanoseconds);
int haft_io_sleep_until(int64_t deadline);

/*
 * A deadline for a block of the task itself, which costs no scope and no stack: while it is set, what the task waits
 * for ends at that time at the latest, and the wait returns -ETIMEDOUT, whatever it is; further waits return that at
 * once. What can be done without waiting is done, unless the task, after many operations in a row, first has to let the
 * others go on: so a loop that never waits ends, too. A scope that is opened in the block, unless it is shielded, is
 * cancelled at that time, and returns -ETIMEDOUT.
 *
 *     HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t idle = {0};
 *     haft_io_deadline_set(&idle, haft_io_now() + 30 * HAFT_IO_SECOND);
 *     ssize_t got = haft_io_read(connection, buffer, sizeof buffer);
 *
 * The variable is zeroed at first, and declared as here: so the deadline ends where its block is left. Blocks nest; the
 * earliest time counts. Setting it anew begins anew, also when it has passed, and, unless the scope has been cancelled by
 * then, for a scope inside of the block whose body sets it. The task does not move meanwhile. To set one in another task,
 * to end one before those further in, or to set one for the first time in a scope further in than its variable, is a
 * mistake that is reported. A thread without a scheduler has no
 * deadlines: its waits go on.
 */
typedef struct haft_io_deadline {
    void *inside[8];
} haft_io_deadline_t;
#define HAFT_IO_SCOPED_DEADLINE __attribute__((cleanup(haft_io_deadline_end)))

/* `time` is one of haft_io_now(); HAFT_IO_FOREVER sets none. */
void haft_io_deadline_set(haft_io_deadline_t *deadline, int64_t time);
/* Whether its time has come since it was set; for who wants to know which deadline a -ETIMEDOUT is of. */
bool haft_io_deadline_passed(const haft_io_deadline_t *deadline);
/* Ends it before its block does. Nothing if it has not begun. */
void haft_io_deadline_end(haft_io_deadline_t *deadline);

/* ---- Descriptors ---------------------------------------------------------------------------- */

/*
 * Each of these waits until it can be done, and returns what the system call of that name returns,
 * or a negative error number. Descriptors made by this header close on exec, and its sockets and pipes are
 * non-blocking.
 * Other descriptors may be used, too, blocking or not, and are left as they are. A write to a pipe that nobody
 * reads any more sends SIGPIPE, as write(2) does: ignore that signal, and it is -EPIPE. (A write to a socket
 * sends none.)
 *
 * Two tasks of a run that read one stream at once, or write to it, would each get parts: the second call
 * returns -EBUSY, where it would wait. All are streams here but sockets of datagrams or packets; an eventfd is one.
 * Several tasks may accept from one socket.
 *
 * A read returns what there is: a low-water mark (SO_RCVLOWAT) is one for haft_io_wait_ready and haft_io_poll, after which
 * a read finds so much.
 */
ssize_t haft_io_read(int descriptor, void *buffer, size_t size);
ssize_t haft_io_write(int descriptor, const void *buffer, size_t size);
/* Writes everything, or fails. Returns 0 or an error. */
int haft_io_write_all(int descriptor, const void *buffer, size_t size);

/*
 * Reads as haft_io_read does, into memory that the library lends: up to HAFT_IO_LENT_SIZE bytes, of which it
 * returns how many there are; `*bytes` is where. A task that waits here for a connection that is idle has no
 * buffer. `*bytes` is given back first, so begin with NULL; it is NULL at the end (0) and after an error.
 *
 *     HAFT_IO_SCOPED_LENT const void *bytes = NULL;
 *     for (ssize_t size; (size = haft_io_read_lent(connection, &bytes)) > 0;)
 *         haft_io_write_all(connection, bytes, (size_t)size);
 *
 * Of a TCP connection io_uring is asked once for all that comes (multishot receive, in a run of one thread):
 * then the kernel may have given the library bytes that no task has asked for yet. Every function of this header
 * gets them first, if it is given the same number, but haft_io_splice, which returns -EBUSY while there are some. Who reads the socket in
 * another way, by a call of the system or in a process that it is passed to, does not get them.
 *
 * Errors are those of haft_io_read; -ENOMEM: there is no memory to lend.
 */
ssize_t haft_io_read_lent(int descriptor, const void **bytes);
/* 16 KiB, and room for a header: so a message of 16 KiB is seen to be all there was, and a TLS record fits. */
enum { HAFT_IO_LENT_SIZE = 16384 + 512 };

/*
 * Answers, and waits for what comes next: haft_io_write_all of the `size` bytes at `buffer`, then haft_io_read_lent,
 * of one descriptor. With io_uring, in a run of one thread, both are one wait, and a task that answers goes on once
 * a message, not twice. What `*bytes` is may be in what is written: it is given back afterwards. Returns what the
 * write, if that fails, or the read does; after -ECANCELED nobody knows how much was written.
 *
 *     HAFT_IO_SCOPED_LENT const void *bytes = NULL;
 *     ssize_t size = haft_io_read_lent(connection, &bytes);
 *     while (size > 0)
 *         size = haft_io_exchange(connection, bytes, (size_t)size, &bytes);
 */
ssize_t haft_io_exchange(int descriptor, const void *buffer, size_t size, const void **bytes);

/* Memory of HAFT_IO_LENT_SIZE bytes that is to be given back; NULL: no memory. For handlers of your own that
   imitate haft_io_read_lent. */
void *haft_io_lend(void);
/* For what haft_io_read_lent or haft_io_lend has given, by the same pointer; on any thread, in a run or not. Nothing
   for NULL. */
void haft_io_give_back(const void *bytes);
/* Declares a pointer for haft_io_read_lent; what it has is given back when the variable's block is left, also
   when the task is cancelled or fails. To keep the memory, set the pointer to NULL. */
#define HAFT_IO_SCOPED_LENT __attribute__((cleanup(haft_io_give_back_scoped)))
static inline void haft_io_give_back_scoped(const void *const *bytes) {
    haft_io_give_back(*bytes);
}

/* The lines of a stream, in memory of the caller. Who declares it sets the first three; the rest is zeroed, and the
   library's. */
typedef struct haft_io_reader {
    int descriptor;
    char *memory;
    size_t size; /* more than the longest line has, with its '\n' */
    size_t start, end;
    char under;
} haft_io_reader_t;

/*
 * Reads the next line: how many bytes it has with its '\n', which only the last line may be without, or 0 at the end.
 * `*line` is where, and a '\0' follows. It is the caller's, who may change it, until the next call.
 *
 *     char memory[1000], *line;
 *     haft_io_reader_t lines = {.descriptor = connection, .memory = memory, .size = sizeof memory};
 *     for (ssize_t size; (size = haft_io_reader_line(&lines, &line)) > 0;)
 *         haft_io_write_all(connection, line, (size_t)size);
 *
 * It reads ahead, so nobody else reads the descriptor until the end (but haft_io_reader_read). Nothing is lost by a
 * cancel, a deadline or another error in the middle of a line: the next call goes on. For one caller at a time. Errors
 * are those of haft_io_read, which this calls, and -EMSGSIZE: the line does not fit. Each further call returns the same,
 * unless `memory` and `size` are those of larger memory by then, which begins with all that was in the smaller.
 */
ssize_t haft_io_reader_line(haft_io_reader_t *lines, char **line);
/* Reads what comes after the last line that was read, as haft_io_read: the body of a message whose head is lines, or a line
   that did not fit. `*line` is not valid any more. Lines go on behind what was read. */
ssize_t haft_io_reader_read(haft_io_reader_t *lines, void *buffer, size_t size);

/* The same for parts that end with another byte than '\n', such as the '\0' of names. */
ssize_t haft_io_reader_until(haft_io_reader_t *lines, char last, char **part);
/* As haft_io_reader_read, but goes on until there are `size` bytes: so many, or fewer at the end of the stream. After
   an error nobody knows how many were read. */
ssize_t haft_io_reader_read_all(haft_io_reader_t *lines, void *buffer, size_t size);

/* Gathers what is written to a stream, in memory of the caller, who sets the first three; the rest is zeroed, and the
   library's. */
typedef struct haft_io_writer {
    int descriptor;
    char *memory;
    size_t size;
    size_t start, end;
} haft_io_writer_t;

/*
 * Gathers the bytes, and writes where they do not fit. 0, or an error of haft_io_write. What was gathered stays gathered
 * then, and after a cancel; of the bytes of the call itself nobody knows how many were taken.
 *
 *     char memory[4096];
 *     haft_io_writer_t out = {.descriptor = connection, .memory = memory, .size = sizeof memory};
 *     haft_io_writer_print(&out, "%d items\n", count);
 *     haft_io_writer_flush(&out);
 */
int haft_io_writer_write(haft_io_writer_t *writer, const void *bytes, size_t size);
/* As printf(3), into the memory; -EMSGSIZE: it does not fit even when nothing else is there. Errors are as above, but
   nothing of the call has been taken then. */
__attribute__((format(printf, 2, 3))) int haft_io_writer_print(haft_io_writer_t *writer,
                                                               const char *format, ...);
/* Writes what was gathered. 0, or an error; the next call goes on where this one ended. */
int haft_io_writer_flush(haft_io_writer_t *writer);

/* Reads until there are `size` bytes: so many, or fewer at the end of the stream. After an error nobody knows how many
   were read. */
ssize_t haft_io_read_all(int descriptor, void *buffer, size_t size);

struct iovec;
/* As readv(2) and writev(2). */
ssize_t haft_io_readv(int descriptor, const struct iovec *parts, size_t count);
ssize_t haft_io_writev(int descriptor, const struct iovec *parts, size_t count);

/*
 * Moves bytes without copying them through the program: up to `size` from a file, from `*offset` on, to a
 * socket, as sendfile(2); and between a pipe and any other descriptor, as splice(2). `offset` may be NULL:
 * the file's own position. How many; 0 at the end. A connection that is broken sends SIGPIPE, as those
 * calls do. While a task waits here, whoever closes either descriptor ends its wait with -EBADF. -EAGAIN:
 * haft_io_send_file is to send to a pipe from what does not block, and has nothing now. In a simulation
 * haft_io_send_file copies; haft_io_splice is not for the ends of one.
 */
ssize_t haft_io_send_file(int socket, int file, int64_t *offset, size_t size);
ssize_t haft_io_splice(int from, int to, size_t size);

/* Waits for one of `events`, as in poll(2); returns those that have come. */
int haft_io_wait_ready(int descriptor, short events);

struct pollfd;
/*
 * As poll(2), until a deadline of haft_io_now(): waits for the events of several descriptors and fills in
 * their `revents`. The number of those that have some; 0 after the deadline. With a deadline that
 * has passed it only looks. Unlike the other waits it takes descriptors that were closed by
 * something else than haft_io_close since a task last waited on them, and are other files by now.
 */
int haft_io_poll(struct pollfd *entries, size_t count, int64_t deadline);

/*
 * Closes the descriptor; on any thread, in a run or not. The operation of a task that waits on it, of whichever
 * run, returns -EBADF, and never data of another file that gets the same number. Where a thread of the task's run
 * has to end the wait first, this returns 0 at once, and the descriptor is closed after that thread's next poll.
 * A descriptor that a task has waited on must be closed by this function, or by way of haft_io_close_by, and no other.
 *
 * Only waits are ended. A task on another thread that is between two operations goes on with the number, which may be
 * another file's by then: who shares a descriptor with other threads cancels the tasks that use it, and closes when
 * these have ended.
 */
int haft_io_close(int descriptor);

/*
 * For what closes a descriptor, or gives its number to another file, and is not haft_io_close: dup2(2), freopen(3),
 * fclose(3), closedir(3). Ends the waits on the descriptor as haft_io_close does; then calls `function(argument)`, which
 * does the rest, and returns what that returns.
 *
 *     static int take_over(void *file) {
 *         return dup2(*(const int *)file, STDERR_FILENO) >= 0 ? 0 : -errno;
 *     }
 *     int code = haft_io_close_by(STDERR_FILENO, take_over, &file);
 *
 * The function is called on the caller's thread, when the operations on the descriptor have ended. The caller waits for
 * those of the pool, and for the next polls of the threads whose tasks wait; no cancel ends this wait, and a thread
 * without a scheduler sleeps meanwhile. Who begins to wait on the number then, to accept or to connect, gets -EBADF; who
 * does so on another thread while the function is called, goes on when it has returned. So the function must not wait itself, nor yield, and a thread of a run calls this
 * in a task only. The waits have ended also if it fails: find out before whether what dup2 is given is a descriptor.
 * -EBADF, without a call: the descriptor is of a simulation.
 */
int haft_io_close_by(int descriptor, int (*function)(void *), void *argument);

/*
 * Declares a descriptor that is closed when the variable's block is left, also when the task is cancelled
 * or fails; a negative one is not. To keep it open, set the variable to -1.
 *
 *     HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept(listener);
 */
#define HAFT_IO_SCOPED_DESCRIPTOR __attribute__((cleanup(haft_io_close_scoped)))
static inline void haft_io_close_scoped(const int *descriptor) {
    if (*descriptor >= 0)
        haft_io_close(*descriptor);
}

int haft_io_pipe(int ends[2]); /* as pipe(2): [0] to read from, [1] to write to */

/* ---- Sockets -------------------------------------------------------------------------------- */

/* `flags` are those of recv(2) and send(2): with MSG_DONTWAIT it is -EAGAIN if the task would have to wait. MSG_PEEK
   waits for something to look at, also with MSG_WAITALL, and not for more. A broken connection is -EPIPE, without a
   signal. */
ssize_t haft_io_receive(int socket, void *buffer, size_t size, int flags);
ssize_t haft_io_send(int socket, const void *buffer, size_t size, int flags);
ssize_t haft_io_receive_from(int socket, void *buffer, size_t size, int flags,
                             struct sockaddr *address, socklen_t *address_size);
ssize_t haft_io_send_to(int socket, const void *buffer, size_t size, int flags,
                        const struct sockaddr *address, socklen_t address_size);

/* As recvmsg(2) and sendmsg(2). Descriptors that come along close on exec; what comes after them, or after other
   control data, is for the next call, also with MSG_WAITALL. */
ssize_t haft_io_receive_message(int socket, struct msghdr *message, int flags);
ssize_t haft_io_send_message(int socket, const struct msghdr *message, int flags);

/*
 * Passes a descriptor over a Unix socket, along with one byte. The sender's stays its own; the receiver gets
 * one more of the same file, the first if several come, and closes the others. 0; or the descriptor, -EPIPE
 * at the end, -EBADMSG if a byte came without one, -EMFILE if the process had no number left for it, which is
 * lost then.
 */
int haft_io_send_descriptor(int socket, int descriptor);
int haft_io_receive_descriptor(int socket);

/*
 * Waits for the next connection. When the process has run out of descriptors, waits for one, too.
 *
 * In a run of several threads the first task that the caller spawns afterwards is taken to serve the connection, and
 * is spread: see haft_io_task_options_t.
 *
 * With io_uring, in a run of one thread, the kernel is asked once for all connections of a listener (multishot accept).
 * So it may have given the library some that no task has asked for yet. They are for haft_io_accept, and are closed
 * with the listener, or at the end of the run. Who accepts in another way, by a call of the system or in a process
 * that has the listener, too, does not get them.
 */
int haft_io_accept(int listener);
int haft_io_connect(int socket, const struct sockaddr *address, socklen_t address_size);

/*
 * A socket of TCP, also of the functions below, sends what it is given at once (TCP_NODELAY): an answer in two writes does
 * not wait for the peer's acknowledgement of the first, some 40 ms. What haft_io_accept returns has the option from its
 * listener, so to turn it off set it to 0 there, before connections come, or on the one connection, by setsockopt(2). A
 * socket or listener that another function has made is left as it is.
 */
int haft_io_socket(int domain, int type, int protocol);
int haft_io_socket_pair(int domain, int type, int protocol, int ends[2]);
/* As bind(2): for sockets of datagrams (the functions below bind theirs), in a simulation, too. */
int haft_io_bind(int socket, const struct sockaddr *address, socklen_t address_size);
/* Return a listening socket. `host` is a numeric address, "::" for all, or a name such as "localhost", which is resolved
   as by haft_io_resolve; of its addresses the first is taken at which this machine can listen. `port` 0: the system
   chooses (see haft_io_port). `backlog` 0: the system's maximum. */
int haft_io_listen_tcp(const char *host, uint16_t port, int backlog);
int haft_io_listen_unix(const char *path, int backlog);
/*
 * Resolves the name and connects to one of its addresses; returns the socket. They are tried in turn, each as soon as the
 * one before has failed or has not answered for 250 ms, those of IPv6 and IPv4 alternating (RFC 8305, "happy eyeballs");
 * the first that answers is connected to, and the other attempts are withdrawn. If all fail, returns the error of the
 * first address; where the name has none, that of haft_io_resolve. Several addresses are tried by tasks of their own, which have not
 * the handlers around the caller; outside of a run, one after another.
 */
int haft_io_connect_tcp(const char *host, uint16_t port);
int haft_io_connect_unix(const char *path);
/* As shutdown(2), and with its errors: -ENOTCONN where there is no connection. SHUT_WR: no more is sent, and the other end
   reads what was, and then the end of the stream. SHUT_RD: a read, also one that a task waits for, has what has come, and
   then the end of the stream. */
int haft_io_shutdown(int socket, int how);
/* The local port of a socket of an Internet protocol. */
int haft_io_port(int socket);

/* ---- Blocking work -------------------------------------------------------------------------- */

/*
 * Calls `function(argument)` on a thread of the pool, where it may block, and waits for it; with no
 * scheduler, and in a child of fork, calls it on the caller's thread. A cancel withdraws a call that has not begun, and
 * waits for one that has. Returns 0, or -ECANCELED; -EAGAIN or -ENOMEM where the pool has no thread, and the system
 * gives none. (So do the functions below.)
 */
int haft_io_call_blocking(void (*function)(void *), void *argument);
/*
 * The same, but a cancel does not wait for a call that has begun: for what may block for very long, as who asks a silent
 * server. The argument is in memory of its own, which `left(argument)` frees. That is called, once, unless this
 * returns 0: on the pool's thread, after `function` has returned, or at once if that has not begun. The pool may have
 * twice as many threads for calls that were left; the end of the run waits for them.
 */
int haft_io_call_or_leave(void (*function)(void *), void *argument, void (*left)(void *));

/*
 * Calls `function(argument)` on this thread; a signal interrupts a system call in it that waits, after some milliseconds:
 * it has then done a part, or fails with EINTR. For a call that waits as the descriptor's mode has it (accept(2), a
 * write to a terminal), inside haft_io_call_blocking, when poll(2) has told that it can be made: if another thread or
 * process has been there before, the call fails, and is made again when poll(2) tells so. The signal is SIGURG, or, where
 * the program catches that, a real-time signal that it does not.
 */
void haft_io_call_briefly(void (*function)(void *), void *argument);

/* Files, in the pool. As open(2), pread(2), pwrite(2), fsync(2). A FIFO that is opened for one direction is waited for by
   haft_io_open_fifo. */
int haft_io_open(const char *path, int flags, mode_t mode);
ssize_t haft_io_pread(int descriptor, void *buffer, size_t size, int64_t offset);
ssize_t haft_io_pwrite(int descriptor, const void *buffer, size_t size, int64_t offset);
int haft_io_fsync(int descriptor);
/* As openat(2), of a FIFO that is the system's, also in a simulation: waits until somebody has the other end open. Nothing
   tells that: it looks again after pauses of 1 to 32 milliseconds. `flags` are not O_RDWR. */
int haft_io_open_fifo(int directory, const char *path, int flags, mode_t mode);

struct addrinfo;
/* As getaddrinfo(3), in the pool, by haft_io_call_or_leave, and returns that function's errors, too. Those of getaddrinfo
   are HAFT_IO_ERROR_OF_RESOLVER plus the EAI_ code, but for EAI_SYSTEM, which is the error number, and EAI_MEMORY, which
   is -ENOMEM. */
int haft_io_resolve(const char *host, const char *service, const struct addrinfo *hints,
                    struct addrinfo **result);

struct stat;
struct dirent;
/* Directories and names, in the pool. As scandir(3), sorted by name: how many, and an array to free, each of
   whose elements is to be freed. As mkdir(2), remove(3), rename(2), stat(2). */
int haft_io_list_directory(const char *path, struct dirent ***entries);
int haft_io_mkdir(const char *path, mode_t mode);
int haft_io_remove(const char *path);
int haft_io_rename(const char *from, const char *to);
int haft_io_stat(const char *path, struct stat *status);

/* ---- Signals and processes ------------------------------------------------------------------ */

/*
 * Signals of the process are for the program's own threads: those that the library starts, for the tasks of a run and
 * for blocking work, block all but those of faults (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS). So kill(getpid(),
 * ...) reaches the program from everywhere; raise(3), which is for the calling thread, does nothing there. A child of
 * fork(2) from such a thread blocks what the program does.
 */

/* What the program's threads block; on one of its threads, what that blocks. For who starts a program by another function
   than haft_io_process_start, such as posix_spawn(3), which gives it what the calling thread blocks. */
void haft_io_signal_mask(sigset_t *mask);

/*
 * Waits for one of the signals of the set and returns its number. All threads of the process must block
 * them: block them before haft_io_run. One that comes while nobody waits is kept for the next wait. Where the process has
 * run out of descriptors, of which this takes one, it looks now and then; so does haft_io_process_wait.
 */
int haft_io_signal_wait(const sigset_t *signals);

/*
 * Starts a program, which is searched in PATH, with these arguments, the last of which is NULL. `streams`
 * are its standard input, output and error: -1, or NULL for all, leaves it the caller's. They are made to
 * block, as programs expect; the caller closes its own. The program begins with no signal blocked or
 * ignored. Its number, or an error: -EMFILE where there is no descriptor for a copy of each stream. Runs in the pool.
 */
pid_t haft_io_process_start(const char *const arguments[], const int streams[3]);

typedef struct haft_io_process_options {
    const int *streams; /* as above: three, or NULL */
    /* "NAME=value", the last of which is NULL; NULL: the caller's. The program is searched in the caller's PATH
       in any case. */
    const char *const *environment;
    /* In which it begins; NULL: the caller's. A program is looked for from there if its name has a '/' and begins with
       none. */
    const char *folder;
    /* It leads a process group of its own: kill(-number, ...) is for all that it starts, too; the signals of the
       caller's terminal are not. */
    bool group;
} haft_io_process_options_t;

pid_t haft_io_process_start_with(const haft_io_process_options_t *options,
                                 const char *const arguments[]);
/* Waits for the end of a child of this process; `*status`, which may be NULL, is that of waitpid(2). A cancel
   leaves the child running, and to be waited for. */
int haft_io_process_wait(pid_t process, int *status);

/* ---- Seeing inside -------------------------------------------------------------------------- */

/*
 * Writes to the descriptor, by blocking writes, which scopes the run of the calling task has, and its tasks:
 * name, state, what each waits for, and for how long by the last poll of its thread, to some milliseconds. Tasks that have not
 * waited yet are counted; of many descriptors that a task waits on, the first few are shown. The others go on
 * meanwhile, so what was written may have changed. 0, or an error; -ESRCH outside of a task.
 *
 *     scope 'main'
 *       task 'server' waits for: accept on descriptor 4, 1200 ms
 *       task 'resolver' waits for: poll on descriptors 6, 7, 80 ms
 *       scope 'connection'
 *         task 'server' waits for: the tasks of its scope, 3 ms
 */
int haft_io_dump(int descriptor);

typedef struct haft_io_dump_options {
    bool
        backtraces; /* of the tasks that wait: a line for each frame, with its function as far as it is
                         known (-rdynamic). In a run of several threads, of the kernel's membarrier(2) */
} haft_io_dump_options_t;
int haft_io_dump_with(const haft_io_dump_options_t *options, int descriptor);

/*
 * With haft_io_run_options_t.dump_signal the run writes this dump, with backtraces, on standard error whenever the
 * process gets the signal; the first of its threads that comes to poll writes it, so with one thread none
 * while a task holds that. The signal must not be blocked by all threads, and stays caught when the run
 * has ended.
 *
 * With haft_io_run_options_t.watchdog, in nanoseconds, a thread looks at the others every half of that time. A
 * task that has run for longer than the option says, without a wait or a yield, is named on standard error,
 * with the backtrace of where it is; and again after twice that time, four times, and so on, while it goes
 * on. The process's action for SIGURG, which the thread is interrupted by, is replaced; a call of the system in
 * which the task sleeps may end with EINTR.
 *
 *     haft-io: a task has held its thread for more than 100 ms: 'the miner'
 *     ./program(mine+0x12) [0x401234]
 */

typedef struct haft_io_counters {
    uint64_t tasks; /* that have started */
    uint64_t
        steals; /* tasks, new ones or such that move, that a thread took out of another's queue */
    uint64_t operations; /* on descriptors */
    uint64_t polls;      /* of the back ends */
    uint64_t wakes;      /* of threads that slept, by others */
    uint64_t
        polling; /* nanoseconds in polls, asleep or not; 0 without haft_io_run_options_t.times_polls,
                             since it costs one more look at the clock for each poll */
} haft_io_counters_t;

/* Since the run of the calling task began. 0; -ESRCH outside of a task. */
int haft_io_count(haft_io_counters_t *counters);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#include "io_sync.h"
#include "io_testing.h"

#endif
