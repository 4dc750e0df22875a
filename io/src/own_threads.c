/* SPDX-License-Identifier: MIT */
/*
 * Tasks with thread-locals of their own (own_thread_locals). The scheduler writes the thread
 * pointer before it resumes the task, so that it leads to the task's block of storage
 * (own_storage.c draws it), and after:
 *
 *     loop, under the thread's pointer              the task, under its own
 *       hafti_io_stand_on(worker, own) ---------->    everything that its fiber runs: the program,
 *         carries the current handlers and              clauses in place, this library, core
 *         malloc's words over, writes the
 *         pointer
 *       hafti_io_stand_on(worker, &worker->home) <-   when the request has come
 *     Where tasks yield in turn, the one goes over to the other's at once.
 *
 * So this library's thread-locals are in the block, too, and are set when it is made and when it
 * comes to another thread: the worker, what signals the program blocks, core's state.
 */
#include "own_threads.h"
#include "own_storage.h"
#include "system_call.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>

/* NULL: the caller is under the pointer of its thread. */
static hafti_io_own_thread_t *this_own_thread(void) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    hafti_io_own_thread_t *thread = worker != NULL ? worker->stands_on : NULL;
    return thread != NULL && thread->id != 0 ? thread : NULL;
}

int haft_io_own_thread_id(void) {
    const hafti_io_own_thread_t *thread = this_own_thread();
    return thread != NULL ? thread->id : 0;
}

void *haft_io_own_thread_keep(void) {
    hafti_io_own_thread_t *thread = this_own_thread();
    if (thread != NULL)
        __atomic_fetch_add(&thread->holders, 1, __ATOMIC_RELAXED);
    return thread;
}

void haft_io_own_thread_release(void *kept) {
    hafti_io_own_thread_free(kept);
}

/* ---- Calls that all threads of the process make (setuid and its kin) ---- */

/* The C library sends a signal to each thread, whose handler makes the call, and notes it in what
   pthread_self() leads to. Under a task's pointer that would be the task's, and the caller that
   waits for the thread would send signals for ever. So the handler is called under the thread's. */
enum { SIGNAL_OF_LIBRARY = 33 };

typedef void handler_t(int number, siginfo_t *information, void *context);
static handler_t *of_library;

static void make_call(int number, siginfo_t *information, void *context) {
    const hafti_io_worker_t *worker = hafti_io_worker();
    char *own = hafti_io_own_pointer();
    /* (A child of fork has the one thread under whose pointer it was made.) */
    bool is_known = worker != NULL && worker->owns && !worker->forked;
    hafti_io_set_thread_pointer(is_known ? worker->home->pointer : own);
    of_library(number, information, context);
    hafti_io_set_thread_pointer(own);
}

/* The C library has its handler since the first thread was made, and refuses others. */
static void stand_before_library(void) {
    struct {
        handler_t *handler;
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action;
    if (hafti_io_system_call(SYS_rt_sigaction, SIGNAL_OF_LIBRARY, 0, (long)&action,
                             sizeof action.mask, 0, 0) != 0 ||
        action.handler == NULL || (action.flags & SA_SIGINFO) == 0)
        return;
    of_library = action.handler;
    action.handler = make_call;
    hafti_io_system_call(SYS_rt_sigaction, SIGNAL_OF_LIBRARY, (long)&action, 0, sizeof action.mask,
                         0, 0);
}

/* ---- Tasks ---- */

/* Records are never given back: each has a number and serials, which are not drawn again. */
static struct {
    uint32_t lock;
    int last_id; /* drawn so far, less 1 */
    hafti_io_own_thread_t *free;
} records = {.last_id = HAFTI_IO_FIRST_OWN_ID};

static HAFTI_IO_COLD hafti_io_own_thread_t *record_new(void) {
    hafti_io_own_thread_t *record = calloc(1, sizeof *record);
    if (record != NULL)
        record->id = __atomic_fetch_add(&records.last_id, 1, __ATOMIC_RELAXED);
    return record;
}

static hafti_io_own_thread_t *record_take(void) {
    hafti_io_guard(&records.lock);
    hafti_io_own_thread_t *record = records.free;
    if (record != NULL)
        records.free = record->next;
    hafti_io_unguard(&records.lock);
    return record != NULL ? record : record_new();
}

static void record_give(hafti_io_own_thread_t *record) {
    hafti_io_guard(&records.lock);
    record->next = records.free;
    records.free = record;
    hafti_io_unguard(&records.lock);
}

void hafti_io_own_threads_start(hafti_io_worker_t *worker) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, stand_before_library);
    _Static_assert(sizeof(hafti_io_own_thread_t) <= sizeof worker->place_of_home,
                   "a worker has room for its home");
    hafti_io_own_thread_t *home = (void *)worker->place_of_home;
    *home = (hafti_io_own_thread_t){
        .pointer = hafti_io_own_pointer(), .error = worker->error, .worker = worker};
    worker->home = worker->stands_on = home;
    worker->by_loop = worker->owns = true;
    __libc_single_threaded = 0; /* one task may use what another is changing, and waits in */
}

hafti_io_own_thread_t *hafti_io_own_thread_new(void) {
    hafti_io_own_thread_t *thread = record_take();
    if (thread == NULL)
        return NULL;
    thread->worker = NULL;
    thread->holders = 1;
    thread->pointer = hafti_io_storage_new(thread->id, NULL, 0);
    thread->error = hafti_io_at(thread->pointer, (size_t)hafti_io_known.error);
    if (thread->pointer != NULL && haft_thread_pointer_join(thread->pointer, &thread->serials))
        return thread;
    if (thread->pointer != NULL)
        hafti_io_storage_free(thread->pointer);
    record_give(thread);
    return NULL;
}

void hafti_io_own_thread_set_stack(hafti_io_own_thread_t *thread, char *stack, size_t size) {
    hafti_io_storage_set_stack(thread->pointer, stack, size);
}

void hafti_io_own_thread_free(hafti_io_own_thread_t *thread) {
    if (__atomic_sub_fetch(&thread->holders, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    haft_thread_pointer_leave(thread->pointer, &thread->serials);
    hafti_io_storage_free(thread->pointer);
    record_give(thread);
}

void hafti_io_own_thread_begin(void) {
    hafti_io_known.initialise_ctype();
    haft_thread_pointer_begin();
}

bool hafti_io_own_thread_has_destructors(const hafti_io_own_thread_t *thread) {
    return hafti_io_storage_has_destructors(thread->pointer);
}

void hafti_io_own_thread_end(hafti_io_own_thread_t *thread) {
    hafti_io_known.call_destructors();
    for (int round = 0; round < PTHREAD_DESTRUCTOR_ITERATIONS; round++)
        if (!hafti_io_storage_destroy_keys(thread->pointer))
            break;
    hafti_io_storage_leave_mutexes(thread->pointer);
}

void hafti_io_own_thread_moves(hafti_io_worker_t *worker, hafti_io_own_thread_t *thread) {
    const char *from = worker->home->pointer;
    if (thread->worker != NULL)
        haft_thread_pointer_join(thread->pointer, NULL);
    hafti_io_copy_worker(from, thread->pointer);
    hafti_io_copy_programs_mask(from, thread->pointer);
    thread->worker = worker;
}
