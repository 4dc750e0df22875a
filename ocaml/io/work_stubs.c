/* SPDX-License-Identifier: MIT */
/*
 * The waits of OCaml tasks, which take no stack of OCaml's:
 *
 *   readiness of a descriptor | a task of C that rests (haft_io_rest): 0.5 KiB, and no stack where
 *                             |   the back end can do without; under io_uring after 50 ms
 *                             |   (readiness_stubs.c)
 *   work that blocks          | a task of C on a stack: files, names, a connect (call_stubs.c)
 *   a thread of the system    | nothing but the work, which the thread has while it works
 *   time                      | nothing here: the loop's wait ends at the earliest of its times
 *   another OCaml task        | nothing here
 *
 * Such a task of C puts what it has done into the list `done`, and sets the event. It holds no
 * value of OCaml but a number, the slot, so that the collector need not know of it.
 */
#include "loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static haft_ocaml_work_t *taken; /* until the next is, or the run ends */

static void free_work(haft_ocaml_work_t *work) {
    if (work == NULL)
        return;
    if (work->free != NULL)
        work->free(work);
    else
        free(work);
}

static void free_list(haft_ocaml_work_t *work) {
    while (work != NULL) {
        haft_ocaml_work_t *next = work->next;
        free_work(work);
        work = next;
    }
}

void haft_ocaml_finish(haft_ocaml_work_t *work) {
    work->next = NULL;
    *haft_ocaml_the_loop->done_end = work;
    haft_ocaml_the_loop->done_end = &work->next;
    haft_io_event_set(&haft_ocaml_the_loop->woken);
}

void *haft_ocaml_do_work(void *argument) {
    haft_ocaml_work_t *work = argument;
    if (haft_io_self() == NULL) { /* there is no memory for a stack */
        work->result = -ENOMEM;
    } else {
        haft_io_return_cancels(true);
        work->result = work->work(work);
    }
    haft_ocaml_finish(work);
    return NULL;
}

int haft_ocaml_begin(haft_ocaml_work_t *work, intptr_t slot, void *(*function)(void *)) {
    work->slot = slot;
    int code = haft_io_spawn_with(&(haft_io_task_options_t){.scope = haft_ocaml_the_loop->scope,
                                                            .name = "for OCaml",
                                                            .even_without_stack = true},
                                  function, work);
    if (code != 0)
        free_work(work);
    return code;
}

int haft_ocaml_io_begin(haft_ocaml_work_t *work, intptr_t slot) {
    return haft_ocaml_begin(work, slot, haft_ocaml_do_work);
}

/* ---- Work on threads ---- */

/* A thread of the system that works for a task has this work, which the loop gets when the thread
   has done it, or has ended: Thread.exit of OCaml 4.13 is a longjmp that no code between sees. */
static pthread_key_t work_of_thread;
static pthread_once_t has_key = PTHREAD_ONCE_INIT;
/* `lock`: a thread that ends has not OCaml's. */
static struct {
    pthread_mutex_t lock;
    haft_ocaml_work_t *done;
} threads = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void finish_in_thread(void *work) {
    pthread_mutex_lock(&threads.lock);
    ((haft_ocaml_work_t *)work)->next = threads.done;
    threads.done = work;
    if (haft_ocaml_the_loop != NULL)
        haft_io_event_set(&haft_ocaml_the_loop->woken);
    pthread_mutex_unlock(&threads.lock);
}

static haft_ocaml_work_t *done_by_threads(void) {
    pthread_mutex_lock(&threads.lock);
    haft_ocaml_work_t *done = threads.done;
    threads.done = NULL;
    pthread_mutex_unlock(&threads.lock);
    return done;
}

static void take_what_threads_did(void) {
    haft_ocaml_work_t *done = done_by_threads();
    while (done != NULL) {
        haft_ocaml_work_t *next = done->next;
        haft_ocaml_finish(done);
        done = next;
    }
}

static void forget_threads(void) {
    pthread_mutex_lock(&threads.lock);
    haft_ocaml_the_loop = NULL;
    pthread_mutex_unlock(&threads.lock);
    free_list(done_by_threads());
}

static void make_key(void) {
    if (pthread_key_create(&work_of_thread, finish_in_thread) != 0)
        caml_fatal_error("haft: there are no keys for what belongs to a thread");
}

value haft_ocaml_io_thread_work(value slot);
/* Returns the work as a number; one of the next two ends it. */
value haft_ocaml_io_thread_work(value slot) {
    haft_ocaml_work_t *work = calloc(1, sizeof *work);
    if (work == NULL)
        caml_raise_out_of_memory();
    pthread_once(&has_key, make_key);
    work->slot = Long_val(slot);
    return (value)work | 1;
}

static haft_ocaml_work_t *work_of(value number) {
    return (haft_ocaml_work_t *)(number - 1);
}

value haft_ocaml_io_thread_forget(value number);
value haft_ocaml_io_thread_forget(value number) {
    free(work_of(number));
    return Val_unit;
}

value haft_ocaml_io_thread_ends(value number);
value haft_ocaml_io_thread_ends(value number) {
    (void)pthread_setspecific(work_of_thread, NULL);
    finish_in_thread(work_of(number));
    return Val_unit;
}

value haft_ocaml_io_thread_begins(value number);
/* (Without memory for this the end of the thread would not be seen.) */
value haft_ocaml_io_thread_begins(value number) {
    (void)pthread_setspecific(work_of_thread, work_of(number));
    return Val_unit;
}

value haft_ocaml_io_take_done(value unit);
/* The slot of what was done first, or -1: there is nothing. */
value haft_ocaml_io_take_done(value unit) {
    (void)unit;
    take_what_threads_did();
    free_work(taken);
    taken = haft_ocaml_the_loop->done;
    if (taken == NULL)
        return Val_long(-1);
    haft_ocaml_the_loop->done = taken->next;
    if (taken->next == NULL)
        haft_ocaml_the_loop->done_end = &haft_ocaml_the_loop->done;
    return Val_long(taken->slot);
}

value haft_ocaml_io_taken_result(value unit);
value haft_ocaml_io_taken_result(value unit) {
    (void)unit;
    return Val_long(taken->result);
}

haft_ocaml_work_t *haft_ocaml_io_taken(void) {
    return taken;
}

void haft_ocaml_end_work(haft_ocaml_loop_t *loop) {
    forget_threads();
    free_list(loop->done);
    free_work(taken);
    taken = NULL;
}
