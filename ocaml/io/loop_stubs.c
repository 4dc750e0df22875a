/* SPDX-License-Identifier: MIT */
/*
 * The loop of OCaml's tasks is one task of libhaft-io, in the body of a scope: OCaml code that
 * resumes one continuation after the other (haft_io__loop.ml), and waits for an event of
 * libhaft-io when there is none. What an OCaml task waits for is begun here, and takes no stack of
 * OCaml's:
 *
 *   readiness of a descriptor | a task of C that rests (haft_io_rest): 0.5 KiB, and no stack where
 *                             |   the back end can do without; under io_uring after 50 ms
 *   work that blocks          | a task of C on a stack: files, names, a connect
 *   time                      | nothing here: the loop's wait ends at the earliest of its times
 *   another OCaml task        | nothing here
 *
 * Such a task of C puts what it has done into the list `done`, and sets the event. It holds no
 * value of OCaml but a number, the slot, so that the collector need not know of it.
 *
 * The tasks of C that serve the loop belong to a scope that a task of its own has opened, which
 * cancels them when the loop has ended. The loop itself is the first task of the run, in no scope
 * but the run's: a task that waits in a scope waits on an inner fiber's stack, and ocaml/lib then
 * looks for it among all that wait.
 *
 * The thread holds OCaml's lock, but while the back end sleeps. A signal whose handler is in OCaml
 * ends that sleep, and wakes the loop, where the handler is called.
 *
 * No cancel unwinds a stack with frames of OCaml: its task has its cancels returned.
 */
#include "stubs.h"

#include <haft/shown.h>

#define CAML_INTERNALS
#include <caml/signals.h>
#undef CAML_INTERNALS

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

typedef struct loop {
    haft_io_event_t woken;
    haft_io_event_t serves, ended; /* for the task that has the scope */
    haft_io_scope_t *scope;        /* of the tasks that serve */
    haft_ocaml_work_t *done, **done_end;
    bool cancelled;
    bool rests_late;       /* see comes_soon */
    value *main;           /* a root */
    int set;               /* of epoll, for descriptors of others; -1: there is none yet */
    struct others *others; /* by their numbers */
    size_t others_count;
} loop_t;
static loop_t *the_loop;         /* NULL: there is no run; under OCaml's lock */
static haft_ocaml_work_t *taken; /* until the next is, or the run ends */

/* ---- OCaml's lock and signals ---- */

static bool release_lock(void) {
    if (caml_check_pending_actions()) {
        haft_io_event_set(&the_loop->woken);
        return false;
    }
    caml_enter_blocking_section_no_pending();
    return true;
}

static void take_lock(void) {
    caml_leave_blocking_section();
    if (caml_check_pending_actions())
        haft_io_event_set(&the_loop->woken);
}

/* ---- For debuggers ---- */

static value running; /* of haft_io__loop.ml: leads to all tasks */

/* The records of haft_io__loop.ml, by the places of their fields. */
#define FIELD_OF_OCAML(name, place)                                                                \
    { name, (place) * sizeof(value) }
static const haft_shown_t tasks[] = {
    HAFT_SHOWN_ADDRESS("ocaml_running", running),  FIELD_OF_OCAML("ocaml_task.context", 0),
    FIELD_OF_OCAML("ocaml_task.next", 1),          FIELD_OF_OCAML("ocaml_task.withdraw", 3),
    FIELD_OF_OCAML("ocaml_task.waits_for", 4),     FIELD_OF_OCAML("ocaml_context.state", 0),
    FIELD_OF_OCAML("ocaml_context.name", 1),       FIELD_OF_OCAML("ocaml_context.parent", 3),
    FIELD_OF_OCAML("ocaml_context.fibers", 4),     FIELD_OF_OCAML("ocaml_context.children", 5),
    FIELD_OF_OCAML("ocaml_context.next_child", 6), HAFT_SHOWN_END};
HAFT_SHOWN_TABLE(haft_ocaml_io_shown, tasks);

value haft_ocaml_io_show(value reference) {
    running = reference;
    caml_register_generational_global_root(&running);
    return Val_unit;
}

/* ---- The run ---- */

static void free_work(haft_ocaml_work_t *work) {
    if (work == NULL)
        return;
    if (work->free != NULL)
        work->free(work);
    else
        free(work);
}

static void *call_main(void *argument) {
    loop_t *loop = argument;
    haft_io_return_cancels(true);
    (void)caml_callback_exn(*loop->main, Val_unit); /* which catches all */
    return NULL;
}

/* The scope of the tasks that serve, until the loop has ended. */
static void *hold_scope(void *argument) {
    loop_t *loop = argument;
    haft_io_return_cancels(true);
    loop->scope = haft_io_this_scope();
    haft_io_event_set(&loop->serves);
    haft_io_event_wait_to_the_end(&loop->ended);
    haft_io_scope_cancel(loop->scope);
    return NULL;
}

static void *serve_loop(void *argument) {
    haft_io_return_cancels(true);
    haft_io_scope_with(&(haft_io_scope_options_t){.name = "for OCaml"}, hold_scope, argument, NULL);
    return NULL;
}

static void *begin_loop(void *argument) {
    static const haft_io_around_sleep_t around_sleep = {release_lock, take_lock};
    loop_t *loop = argument;
    haft_io_set_around_sleep(&around_sleep);
    haft_io_task_set_name("OCaml");
    loop->rests_late = strcmp(haft_io_backend(), "io_uring") == 0;
    if (haft_io_spawn(serve_loop, loop) == 0) {
        haft_io_event_wait_to_the_end(&loop->serves);
        call_main(loop);
        haft_io_event_set(&loop->ended);
    }
    return NULL;
}

static void free_list(haft_ocaml_work_t *work) {
    while (work != NULL) {
        haft_ocaml_work_t *next = work->next;
        free_work(work);
        work = next;
    }
}

static void free_others(const loop_t *loop);

/* Calls `run` for the loop. */
static int run_loop(value *main, int (*run)(loop_t *loop, const void *options),
                    const void *options) {
    loop_t loop = {.main = main, .set = -1};
    loop.done_end = &loop.done;
    if (the_loop != NULL)
        return -EBUSY;
    the_loop = &loop;
    int code = run(&loop, options);
    the_loop = NULL;
    free_list(loop.done);
    free_others(&loop);
    free_work(taken);
    taken = NULL;
    return code;
}

static int run_for_real(loop_t *loop, const void *options) {
    return haft_io_run_with(options, begin_loop, loop);
}

static int run_simulated(loop_t *loop, const void *options) {
    return haft_io_simulate_with(options, begin_loop, loop);
}

value haft_ocaml_io_run(value backend, value dump_signal, value main);
/* Returns 0, or the error with which the run could not begin. */
value haft_ocaml_io_run(value backend, value dump_signal, value main) {
    CAMLparam1(main);
    char *name = caml_string_length(backend) == 0 ? NULL : caml_stat_strdup(String_val(backend));
    const haft_io_run_options_t options = {
        .threads = 1,
        .backend = name,
        .dump_signal = Long_val(dump_signal) == 0
                           ? 0
                           : caml_convert_signal_number((int)Long_val(dump_signal))};
    int code = run_loop(&main, run_for_real, &options);
    caml_stat_free(name);
    CAMLreturn(Val_long(code));
}

value haft_ocaml_io_simulate(value options, value main);
/* `options` are integers: seed, short counts, faults_one_in, switches_one_in. */
value haft_ocaml_io_simulate(value options, value main) {
    CAMLparam1(main);
    const haft_io_simulation_options_t simulation = {
        .seed = (uint64_t)Long_val(Field(options, 0)),
        .short_counts = Bool_val(Field(options, 1)),
        .network = true,
        .files = true,
        .faults_one_in = (unsigned)Long_val(Field(options, 2)),
        .switches_one_in = (unsigned)Long_val(Field(options, 3)),
    };
    CAMLreturn(Val_long(run_loop(&main, run_simulated, &simulation)));
}

static void *wait_once_more(void *deadline) {
    haft_io_event_wait_until(&the_loop->woken, *(const int64_t *)deadline);
    return NULL;
}

value haft_ocaml_io_wait(value deadline);
/* Until the loop is woken, or the time has come (max_int: there is none). Returns 0, or once
   -ECANCELED, after which the tasks clean up: no cancel ends the waits for that. Raises what a
   signal handler raises. */
value haft_ocaml_io_wait(value deadline) {
    loop_t *loop = the_loop;
    int64_t until = deadline == Val_long(Max_long) ? HAFT_IO_FOREVER : Long_val(deadline);
    int code = 0;
    if (loop->cancelled)
        haft_io_shield(wait_once_more, &until);
    else
        code = haft_io_event_wait_until(&loop->woken, until);
    loop->cancelled |= code == -ECANCELED;
    haft_io_event_clear(&loop->woken);
    caml_process_pending_actions(); /* signals: the loop itself may allocate nothing */
    return Val_long(code == -ETIMEDOUT ? 0 : code);
}

static void *yield_once_more(void *unused) {
    haft_io_yield_or_cancelled();
    return unused;
}

value haft_ocaml_io_yield(value unit);
/* Lets the tasks of C go first, and looks for what has come. */
value haft_ocaml_io_yield(value unit) {
    (void)unit;
    int code = 0;
    if (the_loop->cancelled)
        haft_io_shield(yield_once_more, NULL);
    else
        code = haft_io_yield_or_cancelled();
    the_loop->cancelled |= code == -ECANCELED;
    caml_process_pending_actions();
    return Val_long(code);
}

value haft_ocaml_io_wake(value unit);
/* Any thread that has OCaml's lock. */
value haft_ocaml_io_wake(value unit) {
    if (the_loop != NULL)
        haft_io_event_set(&the_loop->woken);
    return unit;
}

value haft_ocaml_io_runs_here(value unit);
value haft_ocaml_io_runs_here(value unit) {
    (void)unit;
    return Val_bool(haft_io_runs_here());
}

value haft_ocaml_io_now(value unit);
value haft_ocaml_io_now(value unit) {
    (void)unit;
    return Val_long(haft_io_now());
}

value haft_ocaml_io_seed(value unit);
value haft_ocaml_io_seed(value unit) {
    (void)unit;
    return Val_long((intnat)haft_io_seed());
}

value haft_ocaml_io_error_text(value code);
value haft_ocaml_io_error_text(value code) {
    return caml_copy_string(haft_io_error_text((int)Long_val(code)));
}

value haft_ocaml_io_dump(value descriptor);
value haft_ocaml_io_dump(value descriptor) {
    return Val_long(haft_io_dump((int)Long_val(descriptor)));
}

/* ---- Work ---- */

static void finish(haft_ocaml_work_t *work) {
    work->next = NULL;
    *the_loop->done_end = work;
    the_loop->done_end = &work->next;
    haft_io_event_set(&the_loop->woken);
}

static void *do_work(void *argument) {
    haft_ocaml_work_t *work = argument;
    if (haft_io_self() == NULL) { /* there is no memory for a stack */
        work->result = -ENOMEM;
    } else {
        haft_io_return_cancels(true);
        work->result = work->work(work);
    }
    finish(work);
    return NULL;
}

static int begin(haft_ocaml_work_t *work, intptr_t slot, void *(*function)(void *)) {
    work->slot = slot;
    int code = haft_io_spawn_with(&(haft_io_task_options_t){.scope = the_loop->scope,
                                                            .name = "for OCaml",
                                                            .even_without_stack = true},
                                  function, work);
    if (code != 0)
        free_work(work);
    return code;
}

int haft_ocaml_io_begin(haft_ocaml_work_t *work, intptr_t slot) {
    return begin(work, slot, do_work);
}

value haft_ocaml_io_take_done(value unit);
/* The slot of what was done first, or -1: there is nothing. */
value haft_ocaml_io_take_done(value unit) {
    (void)unit;
    free_work(taken);
    taken = the_loop->done;
    if (taken == NULL)
        return Val_long(-1);
    the_loop->done = taken->next;
    if (taken->next == NULL)
        the_loop->done_end = &the_loop->done;
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

/* ---- Readiness ---- */

typedef struct {
    haft_ocaml_work_t work;
    int descriptor;
    short events;
    haft_io_rest_t rest; /* only for reading */
} watch_t;

static intptr_t wait_ready(haft_ocaml_work_t *work) {
    const watch_t *watch = (const watch_t *)(const void *)work;
    return haft_io_wait_ready(watch->descriptor, watch->events);
}

static void *wake_from_rest(void *argument) {
    haft_ocaml_work_t *work = argument;
    work->result = POLLIN; /* perhaps: it may have ended early, or not begun */
    finish(work);
    return NULL;
}

/*
 * Under io_uring a rest asks for all that will arrive, which takes 3 us more of the processor than
 * a wait: so only what is idle for a while rests there.
 */
static bool comes_soon(const watch_t *watch) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t deadline = {0};
    haft_io_return_cancels(true);
    haft_io_deadline_set(&deadline, haft_io_now_roughly() + 50 * HAFT_IO_MILLISECOND);
    return haft_io_wait_ready(watch->descriptor, watch->events) != -ETIMEDOUT;
}

static void *rest(void *argument) {
    watch_t *watch = argument;
    if (haft_io_self() == NULL)
        return do_work(watch);
    if (the_loop->rests_late && comes_soon(watch))
        return wake_from_rest(watch);
    haft_io_rest(&watch->rest, watch->descriptor, HAFT_IO_FOREVER, wake_from_rest, watch);
    return NULL;
}

value haft_ocaml_io_watch(value descriptor, value kind, value slot);
/* Waits until the descriptor is ready: 0: for reading; 1: for writing; 2: may be so for reading,
   which takes no stack where the back end can do without. */
value haft_ocaml_io_watch(value descriptor, value kind, value slot) {
    bool rests = Long_val(kind) == 2;
    watch_t *watch = calloc(1, rests ? sizeof(watch_t) : offsetof(watch_t, rest));
    if (watch == NULL)
        return Val_long(-ENOMEM);
    watch->work.work = wait_ready;
    watch->descriptor = (int)Long_val(descriptor);
    watch->events = Long_val(kind) == 1 ? POLLOUT : POLLIN;
    return Val_long(begin(&watch->work, Long_val(slot), rests ? rest : do_work));
}

/*
 * The same for descriptors of others, who read and close them by the system's calls. libhaft-io
 * must not know of these, because it is not told when their numbers become those of other files: it
 * waits for an epoll set that has them, in a task of C that is there from the first of them on.
 */
typedef struct {
    haft_ocaml_work_t work;
    int descriptor;
    int direction; /* 0: reading; 1: writing */
} look_t;
typedef struct others {
    look_t *looks[2]; /* by the direction */
} others_t;
enum { AT_ONCE = 64 };

static uint32_t events_of(const others_t *others) {
    return (others->looks[0] != NULL ? EPOLLIN | EPOLLRDHUP : 0U) |
           (others->looks[1] != NULL ? EPOLLOUT : 0U);
}

/* Tells the set what is waited for now. 0, or an error. */
static int arm(const loop_t *loop, int descriptor) {
    struct epoll_event event = {.events = events_of(&loop->others[descriptor]),
                                .data.fd = descriptor};
    if (event.events == 0) { /* It may have been closed. */
        (void)epoll_ctl(loop->set, EPOLL_CTL_DEL, descriptor, NULL);
        return 0;
    }
    if (epoll_ctl(loop->set, EPOLL_CTL_MOD, descriptor, &event) == 0 ||
        (errno == ENOENT && epoll_ctl(loop->set, EPOLL_CTL_ADD, descriptor, &event) == 0))
        return 0;
    return -errno;
}

static void end_look(loop_t *loop, look_t *look, intptr_t result) {
    loop->others[look->descriptor].looks[look->direction] = NULL;
    look->work.result = result;
    finish(&look->work);
}

static void note_events(loop_t *loop, const struct epoll_event *event) {
    static const uint32_t ends[] = {EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR,
                                    EPOLLOUT | EPOLLHUP | EPOLLERR};
    others_t *others = &loop->others[event->data.fd];
    for (int direction = 0; direction < 2; direction++)
        if (others->looks[direction] != NULL && (event->events & ends[direction]) != 0)
            end_look(loop, others->looks[direction], (intptr_t)event->events);
    (void)arm(loop, event->data.fd);
}

static void *watch_others(void *argument) {
    loop_t *loop = argument;
    struct epoll_event events[AT_ONCE];
    haft_io_return_cancels(true);
    while (haft_io_wait_ready(loop->set, POLLIN) >= 0) {
        int count = epoll_wait(loop->set, events, AT_ONCE, 0);
        for (int i = 0; i < count; i++)
            note_events(loop, &events[i]);
    }
    haft_io_close(loop->set);
    loop->set = -1;
    return NULL;
}

/* Makes the set, and room for the descriptor. 0, or an error. */
static int begin_watch(loop_t *loop, int descriptor) {
    if ((size_t)descriptor >= loop->others_count) {
        size_t count = (size_t)descriptor + 64;
        others_t *others = realloc(loop->others, count * sizeof *others);
        if (others == NULL)
            return -ENOMEM;
        memset(others + loop->others_count, 0, (count - loop->others_count) * sizeof *others);
        loop->others = others;
        loop->others_count = count;
    }
    if (loop->set >= 0)
        return 0;
    loop->set = epoll_create1(EPOLL_CLOEXEC);
    if (loop->set < 0)
        return -errno;
    return haft_io_spawn_with(&(haft_io_task_options_t){.scope = loop->scope, .name = "for OCaml"},
                              watch_others, loop);
}

static void free_others(const loop_t *loop) {
    for (size_t i = 0; i < loop->others_count; i++) {
        free(loop->others[i].looks[0]);
        free(loop->others[i].looks[1]);
    }
    free(loop->others);
}

value haft_ocaml_io_look(value descriptor, value writes, value slot);
/* Returns what haft_ocaml_io_withdraw takes, or, as an integer, an error. */
value haft_ocaml_io_look(value descriptor, value writes, value slot) {
    loop_t *loop = the_loop;
    int number = (int)Long_val(descriptor);
    if (number < 0)
        return Val_long(-EBADF);
    int code = begin_watch(loop, number);
    look_t **place = code == 0 ? &loop->others[number].looks[Bool_val(writes)] : NULL;
    if (code == 0 && *place != NULL)
        code = -EBUSY;
    look_t *look = code == 0 ? calloc(1, sizeof *look) : NULL;
    if (look == NULL)
        return Val_long(code != 0 ? code : -ENOMEM);
    look->work.slot = Long_val(slot);
    look->descriptor = number;
    look->direction = Bool_val(writes);
    *place = look;
    code = arm(loop, number);
    if (code == 0)
        return (value)look | 1;
    if (code == -EPERM) { /* a file: it is always ready */
        end_look(loop, look, POLLIN | POLLOUT);
        return (value)look | 1;
    }
    *place = NULL;
    free(look);
    return Val_long(code);
}

value haft_ocaml_io_withdraw(value pointer);
/* If its end has not been taken. The set does not know of it any more. */
value haft_ocaml_io_withdraw(value pointer) {
    look_t *look = (look_t *)(pointer & ~(value)1);
    if (the_loop->others[look->descriptor].looks[look->direction] == look) {
        end_look(the_loop, look, -ECANCELED);
        (void)arm(the_loop, look->descriptor);
    }
    return Val_unit;
}

/* ---- OCaml code in a task of C ---- */

/* What such a task waits by while its OCaml code is suspended; in the memory of a bigarray. */
value haft_ocaml_io_event_size(value unit);
value haft_ocaml_io_event_size(value unit) {
    (void)unit;
    return Val_long(sizeof(haft_io_event_t));
}

static haft_io_event_t *event_in(value memory) {
    return (haft_io_event_t *)(void *)HAFT_OCAML_MEMORY(memory);
}

value haft_ocaml_io_event_set(value memory);
value haft_ocaml_io_event_set(value memory) {
    haft_io_event_set(event_in(memory));
    return Val_unit;
}

value haft_ocaml_io_event_wait(value memory);
/* Returns 0, or -ECANCELED. */
value haft_ocaml_io_event_wait(value memory) {
    CAMLparam1(memory);
    haft_io_event_t *event = event_in(memory);
    int code = haft_io_event_wait(event);
    haft_io_event_clear(event);
    CAMLreturn(Val_long(code));
}

value haft_ocaml_io_event_wait_to_the_end(value memory);
value haft_ocaml_io_event_wait_to_the_end(value memory) {
    CAMLparam1(memory);
    haft_io_event_t *event = event_in(memory);
    haft_io_event_wait_to_the_end(event);
    haft_io_event_clear(event);
    CAMLreturn(Val_unit);
}
