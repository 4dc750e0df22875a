/*
 * Signal handlers that perform. Where the processor can trap after every instruction, a handler
 * performs between any two of a lookup, so that nothing here depends on chance or time; elsewhere a
 * timer interrupts.
 */
#include <haft.h>

#include <setjmp.h>
#include <sys/time.h>

#include "check.h"

/* On one line, so that they share a slot of the cache. */
#define EFFECTS                                                                                    \
    HAFT_EFFECT(one, int, {});                                                                     \
    HAFT_EFFECT(two, int, {});                                                                     \
    HAFT_EFFECT(three, int, {});                                                                   \
    HAFT_EFFECT(four, int, {});                                                                    \
    HAFT_EFFECT(suspending, int, {})
EFFECTS;
HAFT_EFFECT(pausing, void, {});

#define CLAUSE(name)                                                                               \
    static int on_##name(void *state, HAFT_PAYLOAD(name) * payload) {                              \
        (void)payload;                                                                             \
        return *(int *)state;                                                                      \
    }
CLAUSE(one)
CLAUSE(two)
CLAUSE(three)
HAFT_HANDLER(of_one_and_two, NULL, HAFT_TAIL(one, on_one), HAFT_TAIL(two, on_two));
HAFT_HANDLER(of_three, NULL, HAFT_TAIL(three, on_three));
static int default_of_four(void *unused, HAFT_PAYLOAD(four) * payload) {
    (void)unused, (void)payload;
    return 4;
}

/* ---- Interrupting ---- */

static void (*volatile in_handler)(void);
static volatile long signals;

static void handle_signal(int number) {
    (void)number;
    signals++;
    if (in_handler != NULL)
        in_handler();
}

static void on_signal(int number, int flags) {
    struct sigaction action = {.sa_handler = handle_signal, .sa_flags = flags};
    sigaction(number, &action, NULL);
}

static bool steps(void) {
#if defined(__x86_64__)
    return check_bare();
#else
    return false;
#endif
}

HAFTI_INLINE void interrupt_always(bool on) {
#if defined(__x86_64__)
    if (steps()) {
        if (on)
            __asm__ volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t"
                             "leaq 128(%%rsp), %%rsp"
                             :
                             :
                             : "memory", "cc");
        else
            __asm__ volatile(
                "leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\t"
                "leaq 128(%%rsp), %%rsp"
                :
                :
                : "memory", "cc");
        return;
    }
#endif
    suseconds_t period = on ? 100 : 0;
    setitimer(ITIMER_REAL, &(struct itimerval){{0, period}, {0, period}}, NULL);
}

static void interrupt_by(void (*handler)(void), int flags) {
    in_handler = handler;
    on_signal(steps() ? SIGTRAP : SIGALRM, flags);
}

/* ---- Answers ---- */

static volatile int wrong_outside, wrong_inside, which, every;

static void *perform_three(void *unused) {
    (void)unused;
    wrong_inside += HAFT_PERFORM(three) != 33;
    return NULL;
}
static void *perform_one(void *unused) {
    (void)unused;
    wrong_inside += HAFT_PERFORM(one) != 11;
    return NULL;
}

/* The action of the signal handler, one kind a round; only at times, so that the slot is not always
   its own. */
static void perform_there(void) {
    int inner_three = 33, inner_one = 11;
    if (signals % every != 0)
        return;
    switch (which) {
    case 0:
        wrong_inside += HAFT_PERFORM(three) != 3;
        break;
    case 1:
        wrong_inside += HAFT_PERFORM(four) != 4;
        break;
    case 2:
        wrong_inside += HAFT_PERFORM(three) != 3 || HAFT_PERFORM(four) != 4;
        break;
    case 3:
        haft_handle(&of_three, &inner_three, perform_three, NULL);
        break;
    default:
        haft_handle(&of_one_and_two, &inner_one, perform_one, NULL);
    }
}

static void *perform_one_and_two(void *state) {
    for (int i = 0; i < 2; i++)
        wrong_outside += HAFT_PERFORM(one) != *(int *)state;
    for (int i = 0; i < 2; i++)
        wrong_outside += HAFT_PERFORM(two) != *(int *)state;
    return NULL;
}

static void *rounds(void *unused) {
    int count = steps() ? 20 : 20000; /* a step costs 1 to 20 microseconds */
    if (!steps())
        interrupt_always(true);
    for (int i = 0; i < count; i++) {
        int state = 100 + i;
        which = i % 5;
        every = steps() ? 1 + i / 5 % 4 : 1;
        if (steps())
            interrupt_always(true);
        haft_handle(&of_one_and_two, &state, perform_one_and_two, &state);
        if (steps())
            interrupt_always(false);
    }
    if (!steps())
        interrupt_always(false);
    return unused;
}

static void performing_in_a_handler_changes_no_answer(void) {
    int state = 3;
    every = 1;
    for (int alternate = 0; alternate < 2; alternate++) {
        interrupt_by(perform_there, alternate ? SA_ONSTACK : 0);
        haft_handle(&of_three, &state, rounds, NULL);
    }
    CHECK(signals > 0);
    CHECK_EQUAL(wrong_outside, 0);
    CHECK_EQUAL(wrong_inside, 0);
}

static volatile int steps_left;

static void perform_at_last_step(void) {
    if (--steps_left == 0)
        wrong_inside += HAFT_PERFORM(three) != 3;
}

static void *read_entries(void *state) {
    for (int n = 1; n < 80; n++) {
        wrong_outside += HAFT_PERFORM(one) != *(int *)state; /* the next one is in the slot */
        steps_left = n;
        interrupt_always(true);
        wrong_outside += HAFT_PERFORM(one) != *(int *)state;
        interrupt_always(false);
    }
    return NULL;
}
static void *read_entries_inside(void *unused) {
    int state = 1;
    haft_handle(&of_one_and_two, &state, read_entries, &state);
    return unused;
}

static void an_entry_that_a_handler_overwrites_is_not_half_read(void) {
    int state = 3;
    if (!steps())
        return;
    interrupt_by(perform_at_last_step, 0);
    haft_handle(&of_three, &state, read_entries_inside, NULL);
    CHECK_EQUAL(wrong_outside, 0);
    CHECK_EQUAL(wrong_inside, 0);
}

/* ---- While a scope is renewed ---- */

static volatile int level;
static haft_fiber_t *moved;

static void perform_one_at_last_step(void) {
    if (--steps_left == 0)
        wrong_inside += HAFT_PERFORM(one) != level;
}
static int suspend_in_place(void *unused, HAFT_PAYLOAD(suspending) * payload) {
    (void)unused, (void)payload;
    HAFT_PERFORM(pausing);
    interrupt_always(true);
    return 0;
}
HAFT_HANDLER(of_suspending, NULL, HAFT_TAIL(suspending, suspend_in_place));

/* On level 1 to the first pause, which is within the clause; on level 2 to the second; on level 3
   to the end. */
static void *perform_on_three_levels(void *remembers) {
    wrong_outside += HAFT_PERFORM(two) != 1;
    if (remembers != NULL)
        wrong_outside += HAFT_PERFORM(one) != 1;
    HAFT_PERFORM(suspending);
    interrupt_always(false);
    wrong_outside += HAFT_PERFORM(one) != 2;
    HAFT_PERFORM(pausing);
    wrong_outside += HAFT_PERFORM(one) != 3;
    wrong_outside += HAFT_PERFORM(two) != 3;
    return NULL;
}
static void *under_suspending(void *remembers) {
    return haft_handle(&of_suspending, NULL, perform_on_three_levels, remembers);
}
static void *resume_moved(void *unused) {
    haft_resume(moved, HAFT_NO_REPLY, HAFT_HANDLES(pausing));
    return unused;
}
/* By a handler that lies elsewhere on the stack for each level. */
static void *resume_on_level(void *depth) {
    static int no_level = -1;
    int left = (int)(intptr_t)depth, state = level;
    if (left == 0)
        return haft_handle(&of_one_and_two, &state, resume_moved, NULL);
    return haft_handle(&of_three, &no_level, resume_on_level, (void *)(intptr_t)(left - 1));
}

static void a_handler_that_performs_while_scopes_are_renewed_leaves_nothing_behind(void) {
    if (!steps())
        return;
    interrupt_by(perform_one_at_last_step, 0);
    for (int remembers = 0; remembers < 2; remembers++)
        for (int n = 1; n < 200; n++) {
            HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(under_suspending, remembers ? &n : NULL);
            moved = k;
            steps_left = n;
            for (level = 1; level <= 3; level++)
                resume_on_level((void *)(intptr_t)level);
        }
    CHECK_EQUAL(wrong_outside, 0);
    CHECK_EQUAL(wrong_inside, 0);
}

/* ---- Leaving a handler ---- */

static sigjmp_buf outside;
static hafti_scope_t *volatile interrupted_scope;

static void leave_at_last_step(void) {
    wrong_inside += HAFT_PERFORM(four) != 4;
    if (--steps_left <= 0 && hafti_here().current == interrupted_scope) {
        steps_left = 1 << 30;
        siglongjmp(outside, 1);
    }
}

static __attribute__((noinline)) void perform_both(const int *state) {
    wrong_outside += HAFT_PERFORM(one) != *state;
    wrong_outside += HAFT_PERFORM(two) != *state;
}

static void *leave_at_many_places(void *state) {
    interrupted_scope = hafti_here().current;
    volatile int unremembered = 0;
    for (volatile int n = 1; n < 350; n += 7) {
        if (sigsetjmp(outside, 1) == 0) {
            steps_left = n;
            interrupt_always(true);
            perform_both(state);
            interrupt_always(false);
        }
        perform_both(state);
        hafti_scope_t *current = hafti_here().current;
        uintptr_t key = (uintptr_t)HAFT_ID(two) + HAFTI_CLAUSE_MARK;
        unremembered += hafti_entry_in(current, hafti_slot_two())->key != key &&
                        hafti_second_entry(current, HAFT_ID(two))->key != key;
    }
    CHECK_EQUAL(unremembered, 0);
    return NULL;
}

static void a_handler_that_leaves_a_lookup_half_done_does_no_harm(void) {
    int state = 7;
    if (!steps())
        return;
    for (int alternate = 0; alternate < 2; alternate++) {
        interrupt_by(leave_at_last_step, alternate ? SA_ONSTACK : 0);
        haft_handle(&of_one_and_two, &state, leave_at_many_places, &state);
    }
    CHECK_EQUAL(wrong_outside, 0);
    CHECK_EQUAL(wrong_inside, 0);
}

/* ---- The first use ---- */

static int raises_left;

/* The library asks for C++'s exceptions in the middle of its start. */
void *__cxa_get_globals(void);
void *__cxa_get_globals(void) {
    static __thread hafti_exceptions_t none;
    if (raises_left > 0) {
        raises_left--;
        raise(SIGUSR1);
    }
    return &none;
}

static void perform_four(void) {
    wrong_inside += HAFT_PERFORM(four) != 4;
}
static void interrupted_start(void) {
    raises_left = 1;
    in_handler = perform_four;
    on_signal(SIGUSR1, 0);
    CHECK_EQUAL(HAFT_PERFORM(four), 4);
    CHECK_EQUAL(signals, 1);
    CHECK_EQUAL(wrong_inside, 0);
}
static void start_in_handler(void) {
    in_handler = perform_four;
    on_signal(SIGUSR1, 0);
    raise(SIGUSR1);
    CHECK_EQUAL(HAFT_PERFORM(four), 4);
    CHECK_EQUAL(signals, 1);
    CHECK_EQUAL(wrong_inside, 0);
}
static void the_first_use_may_be_in_a_handler_or_interrupted_by_one(void) {
    CHECK_SUCCEEDS(interrupted_start);
    CHECK_SUCCEEDS(start_in_handler);
}

/* ---- What cannot be done ---- */

static haft_fiber_t *waiting;

static void *wait_once(void *unused) {
    HAFT_PERFORM(suspending);
    return unused;
}
static haft_reply_t raise_nothing(void *unused) {
    (void)unused;
    return HAFT_NO_REPLY;
}
static void suspend_there(void) {
    (void)HAFT_PERFORM(suspending);
}
static void make_there(void) {
    (void)haft_fiber_new_with(NULL, wait_once, NULL);
}
static void resume_there(void) {
    (void)haft_discontinue(waiting, raise_nothing, NULL, HAFT_HANDLES(suspending));
}
static void free_there(void) {
    haft_fiber_drop(waiting);
}
static void reset_there(void) {
    haft_fiber_reset(waiting, wait_once, NULL);
}
static void yield_there(void) {
    (void)HAFT_YIELD(haft_fiber_current(), suspending);
}

static void *raise_on_fiber(void *unused) {
    raise(SIGUSR1);
    return unused;
}
static void do_on_fiber(void (*there)(void)) {
    waiting = haft_fiber_new(wait_once, NULL);
    haft_fiber_set_name(waiting, "waiting");
    (void)haft_resume(waiting, HAFT_NO_REPLY, HAFT_HANDLES(suspending));
    in_handler = there;
    on_signal(SIGUSR1, SA_ONSTACK);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(raise_on_fiber, NULL);
    (void)haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(suspending));
}
static void suspend(void) {
    do_on_fiber(suspend_there);
}
static void yield(void) {
    do_on_fiber(yield_there);
}
static void make(void) {
    do_on_fiber(make_there);
}
static void resume(void) {
    do_on_fiber(resume_there);
}
static void drop(void) {
    do_on_fiber(free_there);
}
static void reset(void) {
    do_on_fiber(reset_there);
}

#define ADVICE                                                                                     \
    " in a signal handler: perform there only effects whose clauses run in place, and do the "     \
    "rest afterwards."

static void what_switches_stacks_in_a_handler_is_an_error(void) {
    CHECK_ABORTS(suspend, "suspends its performer, and was performed" ADVICE);
    CHECK_ABORTS(yield, "suspends its performer, and was performed" ADVICE);
    CHECK_ABORTS(make, "A fiber cannot be made" ADVICE);
    CHECK_ABORTS(resume, "the fiber 'waiting' cannot be resumed" ADVICE);
    CHECK_ABORTS(drop, "the fiber 'waiting' cannot be dropped" ADVICE);
    CHECK_ABORTS(reset, "the fiber 'waiting' cannot be reset" ADVICE);
}

static void leave_error(const haft_error_t *error) {
    CHECK_EQUAL(error->code, HAFT_ERROR_IN_SIGNAL_HANDLER);
    siglongjmp(outside, 1);
}
static __attribute__((noinline)) void raise_and_be_left(void) {
    if (sigsetjmp(outside, 1) == 0)
        raise(SIGUSR1);
}
static void *raise_and_go_on(void *unused) {
    raise_and_be_left();
    CHECK_EQUAL(HAFT_PERFORM(suspending), 5);
    return unused;
}
static void after_such_an_error_all_is_as_it_was(void) {
    in_handler = suspend_there;
    on_signal(SIGUSR1, SA_ONSTACK);
    haft_error_handler_t *before = haft_set_error_handler(leave_error);
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(raise_and_go_on, NULL);
    CHECK(haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(suspending)).effect == HAFT_ID(suspending));
    CHECK(haft_finished(haft_resume(k, HAFT_REPLY(suspending, 5), HAFT_HANDLES(suspending))));
    haft_set_error_handler(before);
}

int main(void) {
    HAFT_SET_DEFAULT(four, default_of_four);
    if (check_bare())
        RUN(the_first_use_may_be_in_a_handler_or_interrupted_by_one);
    RUN(performing_in_a_handler_changes_no_answer);
    RUN(an_entry_that_a_handler_overwrites_is_not_half_read);
    RUN(a_handler_that_performs_while_scopes_are_renewed_leaves_nothing_behind);
    RUN(a_handler_that_leaves_a_lookup_half_done_does_no_harm);
    if (!CHECK_THREAD_SANITIZER) { /* which calls handlers later, and elsewhere */
        RUN(what_switches_stacks_in_a_handler_is_an_error);
        RUN(after_such_an_error_all_is_as_it_was);
    }
    return check_end();
}
/* SPDX-License-Identifier: MIT */
