/* SPDX-License-Identifier: MIT */
/* Tasks with thread-locals of their own: see own_threads.c. */
#ifndef HAFTI_IO_OWN_THREADS_H
#define HAFTI_IO_OWN_THREADS_H

#include "own_ids.h"
#include "workers.h"

#include <haft/thread_pointers.h>

/* Set in haft_io_task_t.stack, beside the size. */
enum { HAFTI_IO_OWN_THREAD = 0x80 };
static inline bool hafti_io_has_own_thread(const haft_io_task_t *task) {
    return (task->stack & HAFTI_IO_OWN_THREAD) != 0;
}

/* Storage that a thread pointer leads to: a task's, or that of a worker's thread (`home`). */
typedef struct hafti_io_own_thread {
    char *pointer;
    int *error;                /* errno, in it */
    hafti_io_worker_t *worker; /* whose thread the storage knows; NULL: none yet */
    uint64_t serials;          /* haft/thread_pointers.h; 0: none yet */
    int id;
    int holders;                      /* its runner, and callers of haft_io_own_thread_keep */
    hafti_io_runner_t *runner;        /* whose fiber has this as its argument */
    int unwound_with;                 /* the code, once its task's function was unwound */
    struct hafti_io_own_thread *next; /* of the free records */
} hafti_io_own_thread_t;

/* NULL: tasks can have thread-locals of their own; otherwise the reason why not. The first call in
   a process finds out, in threads that it makes for that. */
const char *hafti_io_own_threads_refused(void);

/* Whether they can; if not, prints the reason on standard error, once in a process. */
HAFTI_IO_COLD bool hafti_io_may_own_threads(void);

/* The storage for a task; NULL: no memory. */
hafti_io_own_thread_t *hafti_io_own_thread_new(void);
void hafti_io_own_thread_set_stack(hafti_io_own_thread_t *thread, char *stack, size_t size);
/* To be called when the task has ended, not under its pointer. The last holder frees the
   storage. */
void hafti_io_own_thread_free(hafti_io_own_thread_t *thread);
/* To be called under the task's pointer, the first before the task's function, the second when that
   has returned or was unwound. The second calls the destructors of the storage's variables and
   keys, if it has any; they may wait. */
void hafti_io_own_thread_begin(void);
bool hafti_io_own_thread_has_destructors(const hafti_io_own_thread_t *thread);
void hafti_io_own_thread_end(hafti_io_own_thread_t *thread);

/* From now on the worker's loop writes thread pointers. The caller is the worker's thread, under
   its own pointer. */
void hafti_io_own_threads_start(hafti_io_worker_t *worker);
/* Stores the worker in the storage, which is on that worker's thread now. */
HAFTI_IO_COLD void hafti_io_own_thread_moves(hafti_io_worker_t *worker,
                                             hafti_io_own_thread_t *thread);

/* The words of the C library that stay with the thread: malloc's, of the thread's free memory, as
   distances from the thread pointer. */
enum { HAFTI_IO_KEPT_WORDS = 2 };
extern intptr_t hafti_io_kept_words[HAFTI_IO_KEPT_WORDS];
extern bool hafti_io_sets_pointer_by_call;
HAFTI_IO_COLD void hafti_io_set_pointer_by_call(char *pointer);

static inline void hafti_io_set_thread_pointer(char *pointer) {
#if defined(__x86_64__)
    if (HAFTI_IO_LIKELY(!hafti_io_sets_pointer_by_call)) {
        __asm__ volatile("wrfsbase %0" : : "r"(pointer) : "memory");
        return;
    }
#elif defined(__aarch64__)
    __asm__ volatile("msr tpidr_el0, %0" : : "r"(pointer) : "memory");
    return;
#endif
    hafti_io_set_pointer_by_call(pointer);
}

static inline void hafti_io_carry_kept_words(const char *from, char *to) {
    for (int i = 0; i < HAFTI_IO_KEPT_WORDS; i++)
        __builtin_memcpy(to + hafti_io_kept_words[i], from + hafti_io_kept_words[i],
                         sizeof(void *));
}

/* Lets the code of the worker's thread go on under this pointer. No thread-local variable may be in
   use across the call. */
static inline void hafti_io_stand_on(hafti_io_worker_t *worker, hafti_io_own_thread_t *to) {
    hafti_io_own_thread_t *from = worker->stands_on;
    if (from == to)
        return;
    if (HAFTI_IO_UNLIKELY(to->worker != worker))
        hafti_io_own_thread_moves(worker, to);
    haft_thread_pointer_carry(from->pointer, to->pointer);
    hafti_io_carry_kept_words(from->pointer, to->pointer);
    worker->stands_on = to;
    worker->error = to->error;
    hafti_io_set_thread_pointer(to->pointer);
}

#endif
