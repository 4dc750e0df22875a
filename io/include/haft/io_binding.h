/* SPDX-License-Identifier: MIT */
/*
 * Haft I/O: what bindings of other languages and libraries beside this one call, and programs do
 * not. haft/io.h does not include it. (haft_io_yield_or_cancelled and haft_io_return_cancels, which
 * bindings need most, are there, because inline functions of that header use them.)
 */
#ifndef HAFT_IO_BINDING_H
#define HAFT_IO_BINDING_H

#include "io.h"

#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- Runs ---- */

/*
 * Whether the calling thread is inside haft_io_run: in a task, or in the scheduler between tasks.
 * False in a child of fork. Meant for code that stands between a program and the system: unlike
 * haft_io_self() it performs no effect, so it may be called at any time, from anywhere.
 */
bool haft_io_runs_here(void);

/* The number of the run whose task the caller is, which no other run of the process has; 0: the
   caller is no task. Any thread may call this. */
uint64_t haft_io_run_number(void);

/* ---- Looking on ---- */

/* From now on the spans of tasks (haft/io_trace.h) that take longest are kept, for
   haft_io_summarize, until a second call with false for each with true. It takes two readings of
   the clock and 360 KiB. Returns 0 or -ENOMEM; any thread may call this. */
int haft_io_keep_spans(bool keep);

/* ---- Tasks whose results lie elsewhere ---- */

/* Like haft_io_spawn_with, for a task whose end is waited for by haft_io_event_wait_for. The
   returned task must not be joined, and is valid until it ends; with `.even_without_stack` it sets
   the event in any case. NULL: no memory. */
haft_io_task_t *haft_io_spawn_known(const haft_io_task_options_t *options,
                                    void *(*function)(void *), void *argument);

/* The name that a task gets which the caller spawns without one; NULL: the caller has none, or is
   no task. Performs no effect. */
const char *haft_io_inherited_name(void);

/* Like haft_io_spawn_with, for a task that runs on the caller's thread, and so never at the same
   time as the caller: both may change what has no lock between two waits. -ENOTSUP: the caller
   moves (haft_io_stays). */
int haft_io_spawn_here(const haft_io_task_options_t *options, void *(*function)(void *),
                       void *argument);
/* Whether the caller is a task that goes on, after each wait, on the thread that it is on. */
bool haft_io_stays(void);

/* Like haft_io_event_wait, for an event that the task sets before it ends: so the task is valid
   while the event is not set. Like haft_io_join, this lets a task that has not started go first.
   NULL: no task. For bindings whose tasks leave their results in objects of their own. */
int haft_io_event_wait_for(haft_io_event_t *event, haft_io_task_t *task);

/* Like haft_io_event_wait_until and haft_io_event_wait_to_the_end, for waits that dumps and traces
   call otherwise than "an event". The text is not copied. */
int haft_io_event_wait_as(haft_io_event_t *event, int64_t deadline, const char *waits_for);
void haft_io_event_wait_to_the_end_as(haft_io_event_t *event, const char *waits_for);

/* ---- Tasks whose cancels are another language's ---- */

/*
 * Ends the wait of `task`, a task of the caller's run, as a cancel of it would; its later waits are
 * as before. Returns 0; -EAGAIN if the task does not wait, or no cancel may end its wait; -EINVAL
 * in a run of several threads. A task whose waits were ended so 64 times and more is slowed down,
 * as one that goes on after a cancel.
 */
int haft_io_interrupt(haft_io_task_t *task);

/* ---- Tasks of which one at a time runs ---- */

/*
 * For libraries that let only one of several tasks run at a time. `leave` is called when the
 * current task is about to wait, or to let others go first, in any function of this header except
 * haft_io_yield. `enter` is called when the wait is over. The task continues once the event that
 * `enter` returns is set, and clears that event; if `enter` returns NULL, it continues at once.
 * Neither function may wait, nor call functions that are for tasks. A gate lasts until the task
 * ends and is not inherited; setting NULL removes it. haft_io_gate_set returns the gate that the
 * task had, or NULL: one that is set around another calls that, too.
 */
typedef struct haft_io_gate {
    void (*leave)(struct haft_io_gate *gate);
    haft_io_event_t *(*enter)(struct haft_io_gate *gate);
} haft_io_gate_t;
haft_io_gate_t *haft_io_gate_set(haft_io_gate_t *gate);

/* ---- Tasks that are threads to the program ---- */

/*
 * The storage of the calling task, if that has thread-locals of its own: the address that
 * pthread_self() returns there becomes no other task's before haft_io_own_thread_release has been
 * called with what this returns, and the task has ended. NULL: it has none of its own.
 */
void *haft_io_own_thread_keep(void);
/* Called once for each keep, by any task or thread but under the pointer of that storage only while
   its task goes on. */
void haft_io_own_thread_release(void *kept);
/* Calls the destructors of the calling task's thread-local variables and keys now, and not at its
   end, so that it can tell others that it has ended. They may wait, which no cancel cuts short. */
void haft_io_own_thread_destroy(void);
/* Stores the lowest address and the size of the calling task's stack. False: the caller is no
   task. */
bool haft_io_task_stack(void **low, size_t *size);
/* Sets a function that the watchdog of a run (haft_io_run_options_t) calls before it reports a
   task; if it returns false, the task is not reported. The function is called in a signal handler.
   NULL: every task is reported. */
void haft_io_watchdog_ask(bool (*is_wanted)(void));
/* Whether the calling thread is about to make a thread of the library's own: for functions that
   stand before pthread_create and pthread_sigmask. */
bool haft_io_makes_thread(void);
/* ---- Mistakes ---- */

/*
 * Refuses a call of a library on top of this one because of a mistake of the program: reports
 * "FUNCTION: WORDS" to the error handler, with the name of the calling task behind it
 * (haft_refuse), and returns `number`, a negative error number. Where the default error handler is
 * set, each text is printed once. Any thread may call this; it must hold no lock.
 */
int haft_io_refuse(int number, const char *function, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));

/* ---- Runs that are recorded or replayed ---- */

/* Whether a call that the caller is about to make is only made (on a thread without a tape, and
   inside of libhaft-io), is made and kept, or is answered. Tasks have a tape, and threads of the
   pool while they work for one. */
enum haft_io_tape_use { HAFT_IO_TAPE_NONE, HAFT_IO_TAPE_KEEPS, HAFT_IO_TAPE_ANSWERS };
enum haft_io_tape_use haft_io_tape_use(void);
void haft_io_tape_keep(const char *name, int descriptor, int64_t result, const struct iovec *parts,
                       size_t count);
/* The result; and the bytes of all parts, one after the other, until the next call. */
int64_t haft_io_tape_ask(const char *name, int descriptor, const unsigned char **bytes,
                         size_t *size);
/* To be called in a replay for a descriptor that the tape has given, for those that a message has
   brought, and for one that is closed. */
void haft_io_tape_opened(int descriptor);
void haft_io_tape_opened_by(const struct msghdr *message);
void haft_io_tape_closed(int descriptor);
/* The function is called when a run with a tape begins. */
void haft_io_tape_set_beginning(void (*begins)(void));

/* ---- Requests that are kept (haft_io_run_options_t.keep_requests) ---- */

/* Whether the calling task's run keeps requests. */
bool haft_io_keeps_requests(void);
/* From now on what the calling task asks for is kept in memory, and what tasks that it spawns ask
   for. `*most` gets how many bytes that may take. NULL: the run keeps none, the task is in one
   already, or it moves; or there is no memory. For libraries of servers. */
typedef struct hafti_io_tape haft_io_kept_t;
haft_io_kept_t *haft_io_kept_begin(size_t *most);
/* Ends it, in the same task. With `request` and `answer` it is written to a new file in the run's
   folder, whose path `path` gets. 0; -ENOBUFS: it has taken more than haft_io_run_options_t allows;
   -EDQUOT: the process has written 100 such files; or an error of the system. */
int haft_io_kept_end(haft_io_kept_t *kept, const struct iovec *request, const struct iovec *answer,
                     char *path, size_t size);
/* Takes what the calling task asks for off the record, until haft_io_kept_resume. Returns whether
   it was on it before. */
bool haft_io_kept_pause(void);
void haft_io_kept_resume(bool was);
/* Like haft_io_tape_use, but HAFT_IO_TAPE_NONE unless the tape is a request's. */
enum haft_io_tape_use haft_io_kept_use(void);
/* The file of a request that HAFT_IO_REPLAY names; NULL: it names none, or one of a run. */
const char *haft_io_kept_file(void);
/* In a task of a run that replays such a file (haft_io_run_options_t.replay): stores the request
   and the answer that haft_io_kept_end was given. False: the run replays another file. */
bool haft_io_kept_found(struct iovec *request, struct iovec *answer);
/* At the end of such a replay: the next entry of the record, which the replay has not asked for;
   NULL: there is nothing left. */
const char *haft_io_kept_rest(void);

/* ---- Calls of the system ---- */

/*
 * Calls `function(argument)` on this thread, and interrupts a system call in it that blocks, by a
 * signal after some milliseconds: the system call then returns a partial count, or fails with
 * EINTR. It is meant for a system call that blocks if the descriptor's mode is blocking (accept(2),
 * a write to a terminal), inside haft_io_call_blocking, after poll(2) has reported the descriptor
 * ready. If another thread or process was faster, the call fails instead of blocking, and is
 * repeated when poll(2) reports the descriptor again. The signal is SIGURG, or, if the program
 * catches that, a real-time signal that it does not catch.
 */
void haft_io_call_briefly(void (*function)(void *), void *argument);

/* Stores the signals that the program's threads block; on one of those threads, the signals that
   this thread blocks. Needed to start a program without haft_io_process_start: posix_spawn(3), for
   example, hands down the mask of the calling thread. */
void haft_io_signal_mask(sigset_t *mask);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
