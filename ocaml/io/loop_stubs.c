/* SPDX-License-Identifier: MIT */
/*
 * The loop of OCaml's tasks runs in a task of libhaft-io: OCaml code that resumes one continuation
 * after the other (haft_io__loop.ml), and waits for an event of libhaft-io when there is none.
 * work_stubs.c begins the waits of OCaml tasks.
 *
 * The tasks of C that serve the loop belong to a scope that the first task of the run has opened,
 * which closes it when the loop has ended. The tasks in which the loop runs are in no body of a
 * scope: a task that waits there waits on an inner fiber's stack, and ocaml/lib then looks for it
 * among all that wait.
 *
 * A carrier is a task of C in which the loop runs. When an OCaml task has called a function of C
 * that waits in a blocking section (with libhaft-posix, Unix.read), its carrier waits, with the
 * frames of that function and of the loop on its stack, and another carrier goes on with the loop.
 * Code that keeps OCaml's lock keeps the loop, too: it may have addresses of values.
 *
 *   current  | runs the loop, or sleeps in it: one; none while another is begun
 *   away     | waits with an OCaml task on its stack. When that goes on, it runs until it waits or
 *            | ends, and its carrier comes to the head of its loop, where it parks
 *   parked   | waits until it is to be the current one, or the run is over
 *
 * A guest is an OCaml task in a task of C that has called OCaml code (run_in_c). It waits in C on
 * the stack of that task, which nobody but it needs.
 *
 * A cancel of an OCaml task that waits in C ends the wait of its task of C, if that is one that a
 * cancel may end; as long as the OCaml task is cancelled, its next waits there end as they begin.
 *
 * The thread holds OCaml's lock, but while the back end sleeps. A signal whose handler is in OCaml
 * ends that sleep, and wakes the loop, where the handler is called.
 *
 * No cancel unwinds a stack with frames of OCaml: its task has its cancels returned.
 */
#include "loop.h"

#include <haft/shown.h>

#include "sections.h"

#define CAML_INTERNALS
#include <caml/signals.h>
#undef CAML_INTERNALS

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef haft_ocaml_loop_t loop_t;
loop_t *haft_ocaml_the_loop;

typedef struct carrier {
    haft_io_gate_t gate; /* must be first: callbacks cast its address to the struct */
    loop_t *loop;
    haft_io_task_t *task;
    haft_io_event_t turn; /* ends the parking */
    value lane;           /* OCaml's record of it, a root */
    bool away;
    bool interrupted;     /* a wait of it: it does not park, but ends (haft_io_interrupt) */
    struct carrier *next; /* in the list of those that are parked; ended */
} carrier_t;

typedef struct guest {
    haft_io_gate_t gate;   /* must be first: callbacks cast its address to the struct */
    haft_io_gate_t *outer; /* that of its task of C; or NULL */
    haft_io_task_t *task;
    bool in_section; /* it waits in a blocking section */
} guest_t;

/* ---- OCaml's lock and signals ---- */

static bool release_lock(void) {
    if (caml_check_pending_actions()) {
        haft_io_event_set(&haft_ocaml_the_loop->woken);
        return false;
    }
    caml_enter_blocking_section_no_pending();
    return true;
}

static void take_lock(void) {
    caml_leave_blocking_section();
    if (caml_check_pending_actions())
        haft_io_event_set(&haft_ocaml_the_loop->woken);
}

/* ---- For debuggers ---- */

/* The reference `here` of haft_io__loop.ml, and `tasks` of haft_io__tasks.ml: they lead to all
   tasks. */
static value running, all_tasks = Val_unit;

/* The records of haft_io__tasks.ml, by the places of their fields. */
#define FIELD_OF_OCAML(name, place)                                                                \
    { name, (place) * sizeof(value) }
static const haft_shown_t tasks[] = {HAFT_SHOWN_ADDRESS("ocaml_running", running),
                                     HAFT_SHOWN_ADDRESS("ocaml_tasks", all_tasks),
                                     FIELD_OF_OCAML("ocaml_task.context", 0),
                                     FIELD_OF_OCAML("ocaml_task.next", 1),
                                     FIELD_OF_OCAML("ocaml_task.continuation", 3),
                                     FIELD_OF_OCAML("ocaml_task.waits_for", 4),
                                     FIELD_OF_OCAML("ocaml_context.state", 0),
                                     FIELD_OF_OCAML("ocaml_context.name", 1),
                                     FIELD_OF_OCAML("ocaml_context.parent", 3),
                                     FIELD_OF_OCAML("ocaml_context.fibers", 4),
                                     FIELD_OF_OCAML("ocaml_context.children", 5),
                                     FIELD_OF_OCAML("ocaml_context.next_child", 6),
                                     HAFT_SHOWN_END};
HAFT_SHOWN_TABLE(haft_ocaml_io_shown, tasks);

value haft_ocaml_io_show(value reference, value tasks_of_loop) {
    running = reference;
    all_tasks = tasks_of_loop;
    caml_register_generational_global_root(&running);
    caml_register_generational_global_root(&all_tasks);
    return Val_unit;
}

/* ---- The run ---- */

/* The fields of a lane (haft_io__loop.ml); of `tasks`, a task and a context (haft_io__tasks.ml). */
enum { RUNNING, LEFT };
enum { BY_ID };
enum { CONTEXT };
enum { STATE }; /* a block: Cancelling */

static carrier_t *carrier_of(value number) {
    return (carrier_t *)(number - 1);
}

static void hand_over(loop_t *loop) {
    carrier_t *next = loop->current = loop->parked;
    if (next == NULL) {
        haft_io_event_set(&loop->asked);
        return;
    }
    loop->parked = next->next;
    loop->parked_count--;
    haft_io_event_set(&next->turn);
}

/* Turns the number of the task that runs on a lane into the one that is stored while the task waits
   in C, and back: code in a task of C, which has no number, finds none of the loop's. (-1, of a
   signal handler that runs in the loop, stays -1.) */
static intnat hidden(intnat number) {
    return -2 - number;
}

static void hide_or_show(value lane) {
    Field(lane, RUNNING) = Val_long(hidden(Long_val(Field(lane, RUNNING))));
}

static bool is_cancelled(intnat number) {
    return Is_block(Field(Field(Field(Field(all_tasks, BY_ID), number), CONTEXT), STATE));
}

/* The OCaml task that is hidden on this lane waits in this task of C from now on. (Without memory
   no cancel ends that.) */
static void note_wait(haft_ocaml_loop_t *loop, value lane, haft_io_task_t *task) {
    intnat number = hidden(Long_val(Field(lane, RUNNING)));
    if (number < 0)
        return;
    if ((size_t)number >= loop->waiting_count) {
        size_t count = 2 * (size_t)number + 64;
        haft_io_task_t **waiting = realloc(loop->waiting, count * sizeof(haft_io_task_t *));
        if (waiting == NULL)
            return;
        memset(waiting + loop->waiting_count, 0,
               (count - loop->waiting_count) * sizeof(haft_io_task_t *));
        loop->waiting = waiting;
        loop->waiting_count = count;
    }
    loop->waiting[number] = task;
    if (is_cancelled(number)) /* a cancel that came first ends this wait, like OCaml's */
        (void)haft_io_interrupt(task);
}

/* It does not wait any more. Returns whether it is cancelled. */
static bool forget_wait(const haft_ocaml_loop_t *loop, value lane, const haft_io_task_t *task) {
    intnat number = hidden(Long_val(Field(lane, RUNNING)));
    if (number < 0)
        return false;
    if ((size_t)number < loop->waiting_count && loop->waiting[number] == task)
        loop->waiting[number] = NULL;
    return is_cancelled(number);
}

static void go_away(haft_io_gate_t *gate) {
    carrier_t *carrier = (carrier_t *)(void *)gate;
    if (!haft_ocaml_in_section())
        return;
    caml_leave_blocking_section();
    haft_ocaml_loop_t *loop = carrier->loop;
    carrier->away = true;
    hide_or_show(carrier->lane);
    Field(carrier->lane, LEFT) = Val_long(0);
    loop->away_count++;
    if (loop->current == carrier)
        hand_over(loop);
    else /* The task may have made others ready. */
        haft_io_event_set(&loop->woken);
    note_wait(loop, carrier->lane, carrier->task);
}

static haft_io_event_t *come_back(haft_io_gate_t *gate) {
    carrier_t *carrier = (carrier_t *)(void *)gate;
    if (!carrier->away)
        return NULL;
    haft_ocaml_loop_t *loop = carrier->loop;
    carrier->away = false;
    if (forget_wait(loop, carrier->lane, carrier->task))
        carrier->interrupted = true;
    hide_or_show(carrier->lane);
    loop->away_count--;
    if (loop->current == NULL) /* no other has begun */
        loop->current = carrier;
    caml_enter_blocking_section_no_pending();
    return NULL;
}

static void *carry(void *argument) {
    carrier_t *carrier = argument;
    loop_t *loop = carrier->loop;
    carrier->task = haft_io_self();
    haft_io_return_cancels(true);
    haft_io_gate_set(&carrier->gate);
    /* A signal handler may raise here until the loop has begun; the loop catches all. */
    value raised = Val_unit;
    do {
        value result = caml_callback2_exn(*loop->carry, (value)carrier | 1, raised);
        raised = Is_exception_result(result) ? Extract_exception(result) : Val_unit;
    } while (raised != Val_unit);
    haft_io_gate_set(NULL);
    if (loop->current == carrier) {
        loop->ended = true;
        for (carrier_t *parked = loop->parked; parked != NULL; parked = parked->next)
            haft_io_event_set(&parked->turn);
    }
    carrier->next = loop->ended_carriers;
    loop->ended_carriers = carrier;
    haft_io_event_set(&loop->asked);
    return NULL;
}

static void end_carrier(carrier_t *carrier) {
    carrier->loop->carriers_count--;
    caml_remove_generational_global_root(&carrier->lane);
    free(carrier);
}

/* Begins another carrier. Without memory there is none: then a carrier that is away goes on with
   the loop when it comes back. */
static bool begin_carrier(loop_t *loop) {
    carrier_t *carrier = calloc(1, sizeof *carrier);
    if (carrier == NULL)
        return false;
    carrier->gate = (haft_io_gate_t){go_away, come_back};
    carrier->loop = loop;
    carrier->lane = Val_unit;
    caml_register_generational_global_root(&carrier->lane);
    loop->carriers_count++;
    loop->current = carrier;
    if (haft_io_spawn_with(&(haft_io_task_options_t){.name = "OCaml"}, carry, carrier) == 0)
        return true;
    loop->current = NULL;
    end_carrier(carrier);
    return false;
}

static void end_carriers(loop_t *loop) {
    while (loop->ended_carriers != NULL) {
        carrier_t *carrier = loop->ended_carriers;
        loop->ended_carriers = carrier->next;
        end_carrier(carrier);
    }
}

value haft_ocaml_io_enter_lane(value carrier, value lane);
/* Gives the lane to the carrier. */
value haft_ocaml_io_enter_lane(value carrier, value lane) {
    carrier_t *it = carrier_of(carrier);
    caml_modify_generational_global_root(&it->lane, lane);
    return Val_unit;
}

value haft_ocaml_io_is_current(value carrier);
value haft_ocaml_io_is_current(value carrier) {
    return Val_bool(haft_ocaml_the_loop->current == carrier_of(carrier));
}

enum { PARKED = 16 };

value haft_ocaml_io_park(value carrier);
/* Waits until the carrier is the current one. False: it has to end. */
value haft_ocaml_io_park(value carrier) {
    carrier_t *it = carrier_of(carrier);
    loop_t *loop = it->loop;
    if (it->interrupted || loop->ended || loop->parked_count >= PARKED)
        return Val_false;
    it->next = loop->parked;
    loop->parked = it;
    loop->parked_count++;
    haft_io_event_wait_to_the_end(&it->turn);
    haft_io_event_clear(&it->turn);
    return Val_bool(!loop->ended);
}

value haft_ocaml_io_away(value unit);
/* How many carriers are away. */
value haft_ocaml_io_away(value unit) {
    (void)unit;
    return Val_long(haft_ocaml_the_loop == NULL ? 0 : haft_ocaml_the_loop->away_count);
}

value haft_ocaml_io_cancel_wait(value number);
/* Ends the wait of the task with this number in a function of C, if it is in one that a cancel may
   end. */
value haft_ocaml_io_cancel_wait(value number) {
    if ((size_t)Long_val(number) < haft_ocaml_the_loop->waiting_count &&
        haft_ocaml_the_loop->waiting[Long_val(number)] != NULL)
        (void)haft_io_interrupt(haft_ocaml_the_loop->waiting[Long_val(number)]);
    return Val_unit;
}

bool haft_ocaml_io_may_suspend(void) {
    return haft_ocaml_in_section() || haft_ocaml_the_loop == NULL ||
           haft_ocaml_last_frame() == haft_ocaml_the_loop->below;
}

value haft_ocaml_io_keep(value lane);
/* The lane that runs is in the first field of this block. */
value haft_ocaml_io_keep(value lane) {
    static value kept = Val_unit;
    caml_register_generational_global_root(&kept);
    caml_modify_generational_global_root(&kept, lane);
    haft_ocaml_kept = &kept;
    return Val_unit;
}

static void *begin_loop(void *argument) {
    static const haft_io_around_sleep_t around_sleep = {release_lock, take_lock};
    loop_t *loop = argument;
    haft_io_set_around_sleep(&around_sleep);
    haft_io_return_cancels(true);
    loop->rests_late = strcmp(haft_io_backend(), "io_uring") == 0;
    loop->scope = haft_io_scope_open(&(haft_io_scope_options_t){.name = "for OCaml"}, NULL);
    if (loop->scope == NULL)
        return NULL;
    loop->ended = !begin_carrier(loop);
    while (!loop->ended) {
        haft_io_event_wait_to_the_end(&loop->asked);
        haft_io_event_clear(&loop->asked);
        end_carriers(loop);
        if (!loop->ended && loop->current == NULL)
            begin_carrier(loop);
    }
    haft_io_scope_close_until(loop->scope, 0);
    for (end_carriers(loop); loop->carriers_count > 0; end_carriers(loop)) {
        haft_io_event_wait_to_the_end(&loop->asked);
        haft_io_event_clear(&loop->asked);
    }
    return NULL;
}

/* Calls `run` for the loop. */
static int run_loop(value *carry, int (*run)(loop_t *loop, const void *options),
                    const void *options) {
    loop_t loop = {.carry = carry, .below = haft_ocaml_last_frame(), .set = -1};
    loop.done_end = &loop.done;
    if (haft_ocaml_the_loop != NULL)
        return -EBUSY;
    haft_ocaml_the_loop = &loop;
    int code = run(&loop, options);
    haft_ocaml_end_work(&loop);
    haft_ocaml_free_others(&loop);
    free(loop.waiting);
    return code;
}

static int run_for_real(loop_t *loop, const void *options) {
    return haft_io_run_with(options, begin_loop, loop);
}

static int run_simulated(loop_t *loop, const void *options) {
    return haft_io_simulate_with(options, begin_loop, loop);
}

value haft_ocaml_io_run(value backend, value dump_signal, value carry_function);
/* Returns 0, or the error with which the run could not begin. */
value haft_ocaml_io_run(value backend, value dump_signal, value carry_function) {
    CAMLparam1(carry_function);
    char *name = caml_string_length(backend) == 0 ? NULL : caml_stat_strdup(String_val(backend));
    const haft_io_run_options_t options = {
        .threads = 1,
        .backend = name,
        .dump_signal = Long_val(dump_signal) == 0
                           ? 0
                           : caml_convert_signal_number((int)Long_val(dump_signal))};
    int code = run_loop(&carry_function, run_for_real, &options);
    caml_stat_free(name);
    CAMLreturn(Val_long(code));
}

value haft_ocaml_io_simulate(value options, value carry_function);
/* `options` are integers: seed, short counts, faults_one_in, switches_one_in. */
value haft_ocaml_io_simulate(value options, value carry_function) {
    CAMLparam1(carry_function);
    const haft_io_simulation_options_t simulation = {
        .seed = (uint64_t)Long_val(Field(options, 0)),
        .short_counts = Bool_val(Field(options, 1)),
        .network = true,
        .files = true,
        .faults_one_in = (unsigned)Long_val(Field(options, 2)),
        .switches_one_in = (unsigned)Long_val(Field(options, 3)),
    };
    CAMLreturn(Val_long(run_loop(&carry_function, run_simulated, &simulation)));
}

static void *wait_once_more(void *deadline) {
    haft_io_event_wait_until(&haft_ocaml_the_loop->woken, *(const int64_t *)deadline);
    return NULL;
}

value haft_ocaml_io_wait(value deadline);
/* Waits until the loop is woken, or the time has come (max_int: there is none). Returns 0, or once
   -ECANCELED, after which the tasks clean up: no cancel ends the waits for that. Raises what a
   signal handler raises. */
value haft_ocaml_io_wait(value deadline) {
    loop_t *loop = haft_ocaml_the_loop;
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
    if (haft_ocaml_the_loop->cancelled)
        haft_io_shield(yield_once_more, NULL);
    else
        code = haft_io_yield_or_cancelled();
    haft_ocaml_the_loop->cancelled |= code == -ECANCELED;
    caml_process_pending_actions();
    return Val_long(code);
}

value haft_ocaml_io_wake(value unit);
/* Wakes the loop; for any thread that has OCaml's lock. */
value haft_ocaml_io_wake(value unit) {
    if (haft_ocaml_the_loop != NULL)
        haft_io_event_set(&haft_ocaml_the_loop->woken);
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
    char words[400];
    bool is_refused = haft_take_refusal((int)Long_val(code), words, sizeof words);
    return caml_copy_string(is_refused ? words : haft_io_error_text((int)Long_val(code)));
}

value haft_ocaml_io_dump(value descriptor);
value haft_ocaml_io_dump(value descriptor) {
    return Val_long(haft_io_dump((int)Long_val(descriptor)));
}

/* ---- OCaml code in a task of C ---- */

/* Size of the event by which such a task waits while its OCaml code is suspended; it lies in the
   memory of a bigarray. */
value haft_ocaml_io_event_size(value unit);
value haft_ocaml_io_event_size(value unit) {
    (void)unit;
    return Val_long(sizeof(haft_io_event_t));
}

static haft_io_event_t *event_in(value memory) {
    return (haft_io_event_t *)(void *)HAFT_OCAML_MEMORY(memory);
}

/* The lane of the code that runs. */
static value this_lane(void) {
    return Field(*haft_ocaml_kept, 0);
}

/* In a blocking section it hides itself; elsewhere OCaml code has hidden it, if it waits in C
   (call_on_c_stack). */
static void guest_goes(haft_io_gate_t *gate) {
    guest_t *guest = (guest_t *)(void *)gate;
    guest->in_section = haft_ocaml_in_section();
    if (guest->in_section) {
        caml_leave_blocking_section();
        hide_or_show(this_lane());
    }
    note_wait(haft_ocaml_the_loop, this_lane(), guest->task);
    if (guest->outer != NULL)
        guest->outer->leave(guest->outer);
}

static haft_io_event_t *guest_comes(haft_io_gate_t *gate) {
    const guest_t *guest = (const guest_t *)(const void *)gate;
    haft_io_event_t *turn = guest->outer != NULL ? guest->outer->enter(guest->outer) : NULL;
    (void)forget_wait(haft_ocaml_the_loop, this_lane(), guest->task);
    if (guest->in_section) {
        hide_or_show(this_lane());
        caml_enter_blocking_section_no_pending();
    }
    return turn;
}

value haft_ocaml_io_begin_guest(value unit);
/* The calling task of C has a guest from now on. Returns what haft_ocaml_io_end_guest takes; 0: no
   cancel ends its waits in functions of C, for want of memory, or, on a carrier, the carrier's gate
   ends them. */
value haft_ocaml_io_begin_guest(value unit) {
    (void)unit;
    guest_t *guest = calloc(1, sizeof *guest);
    if (guest == NULL)
        return Val_long(0);
    guest->gate = (haft_io_gate_t){guest_goes, guest_comes};
    guest->task = haft_io_self();
    guest->outer = haft_io_gate_set(&guest->gate);
    if (guest->outer == NULL || guest->outer->leave != go_away)
        return (value)guest | 1;
    haft_io_gate_set(guest->outer);
    free(guest);
    return Val_long(0);
}

value haft_ocaml_io_end_guest(value pointer);
value haft_ocaml_io_end_guest(value pointer) {
    guest_t *guest = (guest_t *)(pointer & ~(value)1);
    if (guest != NULL) {
        haft_io_gate_set(guest->outer);
        free(guest);
    }
    return Val_unit;
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
