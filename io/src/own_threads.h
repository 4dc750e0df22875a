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
    int holders;                      /* its runner, and who keeps it (haft_io_own_thread_keep) */
    hafti_io_runner_t *runner;        /* whose fiber has this as its argument */
    int unwound_with;                 /* the code, once its task's function was unwound */
    struct hafti_io_own_thread *next; /* of the free records */
} hafti_io_own_thread_t;

/* NULL: tasks can have thread-locals of their own; else why not. The first call of a process proves
   it, in threads that it makes for that. */
const char *hafti_io_own_threads_refused(void);

/* The same; if not, says why on standard error, once in a process. */
HAFTI_IO_COLD bool hafti_io_may_own_threads(void);

/* The storage for a task; NULL: no memory. */
hafti_io_own_thread_t *hafti_io_own_thread_new(void);
void hafti_io_own_thread_set_stack(hafti_io_own_thread_t *thread, char *stack, size_t size);
/* When the task has ended; not under its pointer. The last holder frees it. */
void hafti_io_own_thread_free(hafti_io_own_thread_t *thread);
/* Under its pointer: before the task's function, and when that has returned, or was unwound: calls
   the destructors of the storage's variables and keys, which may wait, if it has any. */
void hafti_io_own_thread_begin(void);
bool hafti_io_own_thread_has_destructors(const hafti_io_own_thread_t *thread);
void hafti_io_own_thread_end(hafti_io_own_thread_t *thread);

/* The worker's thread is the caller's, under its own pointer, from now on in a loop that writes
   thread pointers. */
void hafti_io_own_threads_start(hafti_io_worker_t *worker);
/* The storage gets to know the worker, on whose thread it is now. */
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

/* The code of the worker's thread goes on under this pointer. Nothing that is thread-local may be
   in use across it. */
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
