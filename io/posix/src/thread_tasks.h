/* SPDX-License-Identifier: MIT */
/* Threads of the program that are tasks: see thread_tasks.c. */
#ifndef HAFTI_POSIX_THREAD_TASKS_H
#define HAFTI_POSIX_THREAD_TASKS_H

#include "internal.h"

/* A thread that the program has made, and which is a task; or the task of its `main`. */
typedef struct hafti_posix_thread {
    struct hafti_posix_thread *next; /* of its row */
    pthread_t self;
    void *kept; /* the storage whose address is `self`; NULL: of main */
    void *(*function)(void *);
    void *argument;
    void *result;
    int holders;    /* its creator until it has begun; its task; its handle */
    int code;       /* of its creation; set before `begun` */
    bool is_unheld; /* detached, or joined: nobody may join it any more */
    haft_io_event_t begun, ended;
    void *stack;
    size_t stack_size;
    haft_io_task_t *task; /* until it has ended */
    hafti_posix_cut_t cut;
    char name[16]; /* as the kernel's are; under the lock */
} hafti_posix_thread_t;

/* Whether the calling task's pthread_create makes tasks. */
bool hafti_posix_makes_tasks(void);
/* The thread that the calling task is; NULL: it is none. */
hafti_posix_thread_t *hafti_posix_this_thread(void);
/* The thread of that handle, as long as it may be joined, or runs; NULL: the handle is no
   task's. */
hafti_posix_thread_t *hafti_posix_find_thread(pthread_t handle);
/* The system's number of the thread of main, where that is a task; otherwise 0. */
int hafti_posix_main_number(void);
/* False: the handle is no task's. Otherwise waits for its end until the deadline, and stores what
   pthread_join returns. After the deadline that is EBUSY for a deadline of 0, otherwise
   ETIMEDOUT. */
bool hafti_posix_join(pthread_t handle, void **result, int64_t deadline, int *code);
/* Called by what a thread may call in a loop that never waits: an unlock, a post, a try. Threads of
   the system would take turns there; a task lets the others go first now and then, where it holds
   no mutex: one of an allocator's may be wanted by code that cannot wait as a task. */
void hafti_posix_let_others_run(void);
extern __thread int hafti_posix_mutexes_held __attribute__((tls_model("initial-exec")));
static inline void hafti_posix_take_part(void) {
    enum { CALLS_IN_A_ROW = 1024 };
    static __thread int calls __attribute__((tls_model("initial-exec")));
    if (__builtin_expect(++calls >= CALLS_IN_A_ROW, false) && hafti_posix_mutexes_held <= 0) {
        calls = 0;
        hafti_posix_let_others_run();
    }
}
/* Lock and unlock the table of threads. */
void hafti_posix_lock_threads(void);
void hafti_posix_unlock_threads(void);

#endif
