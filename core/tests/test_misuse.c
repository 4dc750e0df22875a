/* The misuse table of docs/misuse.md: every row that ends in a message, held to that message. */
#undef NDEBUG
#include <haft.h>

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>

#include "check.h"

typedef struct four {
    int64_t words[4];
} four_t;

HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(wide, four_t, {});
HAFT_EFFECT(stop, void, { int code; });
HAFT_EFFECT(wait, void, {});

static void *wait_once(void *unused) {
    HAFT_PERFORM(wait);
    return unused;
}
static haft_fiber_t *named(const char *name, void *(*function)(void *)) {
    haft_fiber_t *fiber = haft_fiber_new(function, NULL);
    haft_fiber_set_name(fiber, name);
    return fiber;
}

/* ---- Effects ---- */

static void perform_on_thread(void) {
    HAFT_PERFORM(ask, 1);
}
static void *perform_ask(void *unused) {
    HAFT_PERFORM(ask, 1);
    return unused;
}
static void perform_on_fiber(void) {
    haft_resume(named("worker", perform_ask), HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void throw_on_thread(void) {
    HAFT_THROW(stop, 1);
}

static void an_effect_that_nobody_handles_is_named_with_its_place_and_fiber(void) {
    CHECK_ABORTS(perform_on_thread, "haft: Nobody handles the effect 'ask' (");
    CHECK_ABORTS(perform_on_thread, "test_misuse.c:15), performed on the thread's own stack at "
                                    "test_misuse+0x");
    CHECK_ABORTS(perform_on_thread, ". Handle it in a call around the perform, or give it a "
                                    "default with HAFT_SET_DEFAULT.");
    CHECK_ABORTS(perform_on_fiber, "performed on the fiber 'worker' at test_misuse+0x");
    CHECK_ABORTS(throw_on_thread, "Nobody handles the effect 'stop'");
}

static void *ask_untyped_payload(void *unused) {
    char payload = 0;
    int result;
    haft_perform(HAFT_ID(ask), &payload, sizeof payload, &result, sizeof result);
    return unused;
}
static void wrong_payload(void) {
    haft_resume(haft_fiber_new(ask_untyped_payload, NULL), HAFT_NO_REPLY, HAFT_HANDLES(ask));
}
static void wrong_result(void) {
    int payload = 0;
    double result;
    haft_perform(HAFT_ID(ask), &payload, sizeof payload, &result, sizeof result);
}
static void wrong_reply(void) {
    haft_reply(HAFT_ID(ask), "text", 8);
}
static void wrong_throw(void) {
    haft_throw(HAFT_ID(stop), "text", 5);
}
static void *exit_wrongly(void *unused) {
    (void)unused;
    haft_exit(haft_fiber_current(), HAFT_ID(stop), "text", 5);
}
static void wrong_exit(void) {
    haft_resume(haft_fiber_new(exit_wrongly, NULL), HAFT_NO_REPLY, HAFT_HANDLES(stop));
}

static void a_value_of_the_wrong_size_in_an_untyped_call_is_reported(void) {
    CHECK_ABORTS(wrong_payload, "The effect 'ask' (");
    CHECK_ABORTS(wrong_payload,
                 ") has a payload of 4 bytes and a result of 4; it was performed with "
                 "1 and 4.");
    CHECK_ABORTS(wrong_result, "it was performed with 4 and 8.");
    CHECK_ABORTS(wrong_reply, ") has a result of 4 bytes; the reply has 8.");
    CHECK_ABORTS(wrong_throw, "has a payload of 4 bytes; it was thrown with 5.");
    CHECK_ABORTS(wrong_exit, "has a payload of 4 bytes; it was thrown with 5.");
}

static void *perform_wide(void *unused) {
    HAFT_PERFORM(wide);
    return unused;
}
static void no_reply(void) {
    haft_fiber_t *k = haft_fiber_new(perform_wide, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wide));
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wide));
}

static void reply_to_another(void) {
    haft_fiber_t *k = named("worker", perform_wide);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wide));
    haft_resume(k, HAFT_REPLY(ask, 1), HAFT_HANDLES(wide));
}
static void reply_before_the_start(void) {
    haft_resume(named("worker", perform_wide), HAFT_REPLY(ask, 1), HAFT_HANDLES(wide));
}
static haft_reply_t reply_wrongly(void *unused) {
    (void)unused;
    return HAFT_REPLY(ask, 1);
}
static void reply_to_another_by_a_call(void) {
    haft_fiber_t *k = named("worker", perform_wide);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wide));
    haft_discontinue(k, reply_wrongly, NULL, HAFT_HANDLES(wide));
}
static haft_answer_t continue_wrongly(void *how, HAFT_PAYLOAD(wide) * payload,
                                      haft_resumption_t k) {
    (void)payload;
    switch (*(int *)how) {
    case 0:
        return haft_answer(haft_resumption_resume(k, HAFT_REPLY(ask, 1)));
    case 1:
        return haft_tail_resume(k, HAFT_REPLY(ask, 1));
    default:
        return haft_answer(haft_resumption_discontinue(k, reply_wrongly, NULL));
    }
}
HAFT_HANDLER(wrongly, NULL, HAFT_GENERAL(wide, continue_wrongly));
static void handle_wrongly(int how) {
    haft_handle(&wrongly, &how, perform_wide, NULL);
}
static void continue_with_another(void) {
    handle_wrongly(0);
}
static void tail_continue_with_another(void) {
    handle_wrongly(1);
}
static void continue_by_a_call_with_another(void) {
    handle_wrongly(2);
}

static void a_reply_to_another_effect_is_reported(void) {
    const char *given[] = {"to the effect 'wide' (", "with one to 'ask' (",
                           "Give it HAFT_REPLY(wide...)."};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        CHECK_ABORTS(reply_to_another, given[i]);
        CHECK_ABORTS(reply_to_another_by_a_call, given[i]);
        CHECK_ABORTS(continue_with_another, given[i]);
        CHECK_ABORTS(tail_continue_with_another, given[i]);
        CHECK_ABORTS(continue_by_a_call_with_another, given[i]);
    }
    CHECK_ABORTS(reply_to_another, "haft: the fiber 'worker' waits for a reply to the effect");
    CHECK_ABORTS(reply_before_the_start,
                 "the fiber 'worker' was resumed with a reply to the effect "
                 "'ask' (");
    CHECK_ABORTS(reply_before_the_start, "), but it has not started. Give it HAFT_NO_REPLY.");
}

static void a_missing_reply_is_reported(void) {
    CHECK_ABORTS(no_reply,
                 ") has a result of 32 bytes, but its handler resumed without one. Reply with "
                 "HAFT_REPLY(wide, value).");
}

static void match_nothing(void) {
    haft_request_t request =
        haft_resume(named("worker", perform_wide), HAFT_NO_REPLY, HAFT_HANDLES(wide));
    HAFT_MATCH(request) {
        HAFT_CASE(ask, payload) {
            (void)payload;
        }
        HAFT_RETURN(result) {
            (void)result;
        }
    }
}
static void *return_at_once(void *unused) {
    return unused;
}
static void match_no_return(void) {
    haft_request_t request =
        haft_resume(named("worker", return_at_once), HAFT_NO_REPLY, HAFT_HANDLES(wide));
    HAFT_MATCH(request) {
        HAFT_CASE(wide, payload) {
            (void)payload;
        }
    }
}

static void match_no_request(void) {
    haft_request_t request = {NULL, NULL};
    HAFT_MATCH(request) {
        HAFT_CASE(ask, payload) {
            CHECK(payload == NULL);
        }
    }
}
static void a_request_that_no_case_takes_is_reported(void) {
    CHECK_ABORTS(match_nothing, "haft: No case of a HAFT_MATCH takes the effect 'wide' (");
    CHECK_ABORTS(match_no_request, "haft: HAFT_MATCH was given no request (NULL).");
    CHECK_ABORTS(match_nothing,
                 "). Add HAFT_CASE(wide, payload) { ... }, or HAFT_OTHERWISE(request) "
                 "{ } to ignore the rest.");
    CHECK_ABORTS(match_no_return,
                 "takes the request 'return' (haft.h). Add HAFT_RETURN(result) { ... "
                 "}, or");
}

/* Two libraries that chose one name: made here by a clause that claims another shape. */
static void other_declaration(void) {
    static haft_clause_t clause = {HAFT_ID(ask), NULL, HAFT_CLAUSE_REQUEST,
                                   HAFTI_SHAPE(sizeof(double), 0)};
    static haft_handles_t handles = {1, 0, HAFTI_SET_FIXED, &clause};
    haft_resume(haft_fiber_new(perform_ask, NULL), HAFT_NO_REPLY, &handles);
}

static void one_name_declared_in_two_ways_is_reported(void) {
    CHECK_ABORTS(other_declaration,
                 ") is declared in two ways: its performer and its handler disagree on the size of "
                 "its payload or result. Two libraries may have chosen the same name: give each a "
                 "prefix.");
}

/* ---- Fibers ---- */

static void *resume_self(void *unused) {
    haft_resume(haft_fiber_current(), HAFT_NO_REPLY, HAFT_HANDLES(wait));
    return unused;
}
static void resume_running(void) {
    haft_resume(named("worker", resume_self), HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static haft_fiber_t *outermost;
static void *resume_outermost(void *unused) {
    haft_resume(outermost, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    return unused;
}
static void *start_inner(void *unused) {
    haft_resume(haft_fiber_new(resume_outermost, NULL), HAFT_NO_REPLY, HAFT_HANDLES(wait));
    return unused;
}
static void resume_around(void) {
    outermost = named("outermost", start_inner);
    haft_resume(outermost, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void resume_finished(void) {
    haft_fiber_t *k = named("worker", wait_once);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void resume_freed(void) {
    haft_fiber_t *k = named("worker", wait_once);
    haft_fiber_drop(k);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
/* Not checked on the hot path: the fault is at address zero, where nothing is ever mapped. */
static void resume_null(void) {
    haft_fiber_t *volatile none = NULL;
    haft_resume(none, HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static haft_reply_t look_around(void *unused) {
    (void)unused;
    return HAFT_NO_REPLY;
}
static void discontinue_null(void) {
    haft_discontinue(NULL, look_around, NULL, HAFT_HANDLES(wait));
}
static void reset_null(void) {
    haft_fiber_reset(NULL, wait_once, NULL);
}

static void resuming_what_cannot_be_resumed_is_reported(void) {
    CHECK_ABORTS(resume_running,
                 "the fiber 'worker' cannot be resumed: it is running, here or on another thread.");
    CHECK_ABORTS(resume_around, "the fiber 'outermost' cannot be resumed: it is running");
    CHECK_ABORTS(resume_finished, "the fiber 'worker' cannot be resumed: it has finished.");
    CHECK_ABORTS(resume_freed, "cannot be resumed: it has been dropped.");
    check_child_t child = check_child(resume_null);
    CHECK(child.signal == SIGSEGV || child.signal == SIGABRT || !check_bare());
    CHECK_ABORTS(discontinue_null, "haft_discontinue was given no fiber (NULL).");
    CHECK_ABORTS(reset_null, "haft_fiber_reset was given no fiber (NULL).");
}

static void *free_self(void *unused) {
    haft_fiber_drop(haft_fiber_current());
    return unused;
}
static void free_running(void) {
    haft_resume(named("worker", free_self), HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void *reset_self(void *unused) {
    haft_fiber_reset(haft_fiber_current(), wait_once, NULL);
    return unused;
}
static void reset_running(void) {
    haft_resume(named("worker", reset_self), HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void free_twice(void) {
    haft_fiber_t *k = named("worker", wait_once);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    haft_fiber_drop(k);
    haft_fiber_drop(k);
}
static void reset_freed(void) {
    haft_fiber_t *k = named("worker", wait_once);
    haft_fiber_drop(k);
    haft_fiber_reset(k, wait_once, NULL);
}

static void freeing_what_cannot_be_freed_is_reported(void) {
    CHECK_ABORTS(free_running, "the fiber 'worker' cannot be dropped: it is running");
    CHECK_ABORTS(free_twice, "cannot be dropped: it has been dropped.");
    CHECK_ABORTS(reset_running, "the fiber 'worker' cannot be reset: it is running");
    CHECK_ABORTS(reset_freed, "cannot be reset: it has been dropped.");
}

static void no_function(void) {
    haft_fiber_new(NULL, NULL);
}
static void small_memory(void) {
    static char memory[1000];
    haft_fiber_new_with(&(haft_fiber_options_t){.memory = memory, .memory_size = sizeof memory},
                        wait_once, NULL);
}
static void no_memory_but_size(void) {
    haft_fiber_new_with(&(haft_fiber_options_t){.memory_size = 4096}, wait_once, NULL);
}
static void reset_to_nothing(void) {
    haft_fiber_reset(named("worker", wait_once), NULL, NULL);
}
static void huge_default(void) {
    haft_set_stack_size((size_t)1 << 60);
}

static void bad_arguments_are_reported(void) {
    CHECK_ABORTS(no_function, "A fiber needs a function to run (NULL).");
    CHECK_ABORTS(reset_to_nothing, "A fiber needs a function to run (NULL).");
    CHECK_ABORTS(small_memory,
                 "A fiber in memory of the caller needs at least 1152 bytes; it was given 1000.");
    CHECK_ABORTS(no_memory_but_size, "needs at least 1152 bytes; it was given 0.");
    CHECK_ABORTS(huge_default, "A stack size of 1152921504606846976 bytes is too large.");
}

/* Every function of haft.h, with NULL where there has to be something. */
static void *suspended_fiber(void) {
    haft_fiber_t *k = named("worker", wait_once);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    return k;
}
static int in_place(void *unused, HAFT_PAYLOAD(ask) * payload) {
    (void)unused;
    return payload->question;
}
static haft_answer_t raise_nothing(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    return haft_answer(haft_resumption_discontinue(k, NULL, NULL));
}
HAFT_HANDLER(raising, NULL, HAFT_GENERAL(ask, raise_nothing));
HAFT_HANDLER(answering, NULL, HAFT_TAIL(ask, in_place));
static void *return_it(void *it) {
    return it;
}
static int scratch;
static void *addresses[4];

#define MISSING(name, call)                                                                        \
    static void name(void) {                                                                       \
        (void)(call);                                                                              \
    }
MISSING(state_of_none, haft_fiber_state(NULL))
MISSING(name_of_none, haft_fiber_name(NULL))
MISSING(set_name_of_none, (haft_fiber_set_name(NULL, "x"), 0))
MISSING(parent_of_none, haft_fiber_parent(NULL))
MISSING(detach_none, (haft_fiber_detach(NULL), 0))
MISSING(handles_changed_of_none, (haft_handles_changed(NULL), 0))
MISSING(backtrace_of_none, haft_fiber_backtrace(NULL, addresses, 4))
MISSING(backtrace_to_nowhere, haft_fiber_backtrace(suspended_fiber(), NULL, 4))
MISSING(discontinue_by_nothing,
        haft_discontinue(suspended_fiber(), NULL, NULL, HAFT_HANDLES(wait)).effect)
MISSING(discontinue_under_nothing,
        haft_discontinue(suspended_fiber(), look_around, NULL, NULL).effect)
MISSING(start_under_nothing, haft_resume(named("worker", wait_once), HAFT_NO_REPLY, NULL).effect)
MISSING(resume_under_nothing, haft_resume(suspended_fiber(), HAFT_NO_REPLY, NULL).effect)
MISSING(continue_raising_nothing, haft_handle(&raising, NULL, perform_ask, NULL))
MISSING(handle_by_nothing, haft_handle(NULL, NULL, return_it, NULL))
MISSING(handle_nothing, haft_handle(&raising, NULL, NULL, NULL))
MISSING(handle_nothing_in_place, haft_handle(&answering, NULL, NULL, NULL))
MISSING(handle_with_nothing, haft_handle_with(NULL, NULL, NULL, return_it, NULL))
MISSING(perform_nothing, (haft_perform(NULL, &scratch, 4, &scratch, 4), 0))
MISSING(perform_no_payload, (haft_perform(HAFT_ID(ask), NULL, 4, &scratch, 4), 0))
MISSING(perform_no_result, (haft_perform(HAFT_ID(ask), &scratch, 4, NULL, 4), 0))
MISSING(yield_nothing, (haft_yield(suspended_fiber(), NULL, &scratch, 4, &scratch, 4), 0))
MISSING(throw_nothing, (haft_throw(NULL, &scratch, 4), 0))
MISSING(throw_no_payload, (haft_throw(HAFT_ID(stop), NULL, 4), 0))
MISSING(exit_nothing, (haft_exit(suspended_fiber(), NULL, &scratch, 4), 0))
MISSING(exit_no_payload, (haft_exit(suspended_fiber(), HAFT_ID(stop), NULL, 4), 0))
MISSING(locate_nothing, haft_locate(NULL))
MISSING(reply_to_nothing, haft_reply(NULL, &scratch, 4))
MISSING(reply_no_value, haft_reply(HAFT_ID(ask), NULL, 4))
MISSING(default_of_nothing, haft_default(NULL))
MISSING(set_default_of_nothing, haft_set_default(NULL, NULL))

static void null_is_reported_with_the_function_that_was_given_it(void) {
    static const struct {
        void (*function)(void);
        const char *message;
    } cases[] = {
        {state_of_none, "haft_fiber_state was given no fiber (NULL)."},
        {name_of_none, "haft_fiber_name was given no fiber (NULL)."},
        {set_name_of_none, "haft_fiber_set_name was given no fiber (NULL)."},
        {parent_of_none, "haft_fiber_parent was given no fiber (NULL)."},
        {detach_none, "haft_fiber_detach was given no fiber (NULL)."},
        {handles_changed_of_none, "haft_handles_changed was given no fiber (NULL)."},
        {backtrace_of_none, "haft_fiber_backtrace was given no fiber (NULL)."},
        {backtrace_to_nowhere, "haft_fiber_backtrace was given no array (NULL)."},
        {discontinue_by_nothing, "haft_discontinue was given no function to call (NULL)."},
        {discontinue_under_nothing, "haft_discontinue was given no set of effects (NULL)."},
        {start_under_nothing, "haft_resume was given no set of effects (NULL)."},
        {resume_under_nothing, "haft_resume was given no set of effects (NULL)."},
        {continue_raising_nothing,
         "haft_resumption_discontinue was given no function to call (NULL)."},
        {handle_by_nothing, "haft_handle was given no handler (NULL)."},
        {handle_nothing, "haft_handle was given no body (NULL)."},
        {handle_nothing_in_place, "haft_handle was given no body (NULL)."},
        {handle_with_nothing, "haft_handle was given no handler (NULL)."},
        {perform_nothing, "haft_perform was given no effect (NULL)."},
        {perform_no_payload, "haft_perform was given no payload (NULL)."},
        {perform_no_result, "haft_perform was given no place for the result (NULL)."},
        {yield_nothing, "haft_yield was given no effect (NULL)."},
        {throw_nothing, "haft_throw was given no effect (NULL)."},
        {throw_no_payload, "haft_throw was given no payload (NULL)."},
        {exit_nothing, "haft_exit was given no effect (NULL)."},
        {exit_no_payload, "haft_exit was given no payload (NULL)."},
        {locate_nothing, "haft_locate was given no effect (NULL)."},
        {reply_to_nothing, "haft_reply was given no effect (NULL)."},
        {reply_no_value, "haft_reply was given no value (NULL)."},
        {default_of_nothing, "haft_default was given no effect (NULL)."},
        {set_default_of_nothing, "haft_set_default was given no effect (NULL)."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_ABORTS(cases[i].function, cases[i].message);
}

static void more_memory_than_there_is(void) {
    static char memory[4096];
    haft_fiber_new_with(&(haft_fiber_options_t){.memory = memory, .memory_size = SIZE_MAX},
                        wait_once, NULL);
}
static void absurd_arguments_are_reported(void) {
    CHECK_ABORTS(more_memory_than_there_is,
                 "A fiber was given 18446744073709551615 bytes of memory: there are not as many "
                 "from there on.");
    static const int numbers[] = {-1, 0, 1 << 20, SIGKILL, SIGSTOP, SIGSEGV, SIGBUS};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        errno = 0;
        CHECK_EQUAL(haft_dump_on_signal(numbers[i]), -1);
        CHECK_EQUAL(errno, EINVAL);
    }
    CHECK_EQUAL(haft_fiber_backtrace(suspended_fiber(), addresses, -1), 0);
    CHECK_EQUAL(haft_fiber_backtrace(suspended_fiber(), NULL, 0), 0);
}

/* ---- Leaving ---- */

static haft_fiber_t *elsewhere;
static void *yield_elsewhere(void *unused) {
    HAFT_YIELD(elsewhere, wait);
    return unused;
}
static void yield_not_around(void) {
    elsewhere = named("elsewhere", wait_once);
    haft_resume(elsewhere, HAFT_NO_REPLY, HAFT_HANDLES(wait));
    haft_resume(haft_fiber_new(yield_elsewhere, NULL), HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void *exit_elsewhere(void *unused) {
    (void)unused;
    HAFT_EXIT(elsewhere, stop, 1);
}
static void exit_not_around(void) {
    elsewhere = named("elsewhere", wait_once);
    haft_resume(haft_fiber_new(exit_elsewhere, NULL), HAFT_NO_REPLY, HAFT_HANDLES(wait));
}
static void yield_null(void) {
    HAFT_YIELD((haft_fiber_t *)NULL, wait);
}
static void exit_null(void) {
    HAFT_EXIT((haft_fiber_t *)NULL, wait);
}

static void yield_and_exit_to_a_fiber_that_is_not_around_are_reported(void) {
    CHECK_ABORTS(yield_not_around,
                 "The effect 'wait' cannot be sent out of the fiber 'elsewhere': that "
                 "fiber is not around the current code.");
    CHECK_ABORTS(exit_not_around,
                 "The effect 'stop' cannot end the fiber 'elsewhere': that fiber is "
                 "not around the current code.");
    CHECK_ABORTS(yield_null, "'wait'");
    CHECK_ABORTS(exit_null, "'wait'");
}

static void come_back(void *unused, HAFT_PAYLOAD(stop) * payload) {
    (void)unused, (void)payload;
}
static haft_answer_t general(void *state, HAFT_PAYLOAD(stop) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    return haft_answer(haft_resumption_resume(k, HAFT_NO_REPLY));
}
HAFT_HANDLER(coming_back, NULL, HAFT_TAIL(stop, come_back));
HAFT_HANDLER(resuming, NULL, HAFT_GENERAL(stop, general));
static void *throw_stop(void *unused) {
    (void)unused;
    HAFT_THROW(stop, 1);
}
static void throw_to_tail(void) {
    haft_handle(&coming_back, NULL, throw_stop, NULL);
}
static void throw_to_general(void) {
    haft_handle(&resuming, NULL, throw_stop, NULL);
}
static void throw_to_default(void) {
    HAFT_SET_DEFAULT(stop, come_back);
    HAFT_THROW(stop, 1);
}

static void a_throw_to_a_clause_that_resumes_is_reported(void) {
    CHECK_ABORTS(throw_to_tail, ") was thrown, but its handler runs in place and came back. Throw "
                                "only effects whose handlers do not resume.");
    CHECK_ABORTS(throw_to_default, "was thrown, but its handler runs in place and came back.");
    CHECK_ABORTS(throw_to_general,
                 ") was thrown, but its clause in 'resuming' resumes. Perform it, "
                 "or handle it with HAFT_NEVER.");
}

/* ---- Resumptions ---- */

static haft_resumption_t kept;
static haft_answer_t keep(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    kept = k;
    return haft_answer(NULL);
}
HAFT_HANDLER(keeping, NULL, HAFT_GENERAL(ask, keep));

static void continue_twice(void) {
    haft_handle(&keeping, NULL, perform_ask, NULL);
    haft_resumption_resume(kept, HAFT_REPLY(ask, 1));
    haft_resumption_resume(kept, HAFT_REPLY(ask, 1));
}
static haft_answer_t twice_in_clause(void *state, HAFT_PAYLOAD(ask) * payload,
                                     haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_resume(k, HAFT_REPLY(ask, 1));
    return haft_answer(haft_resumption_resume(k, HAFT_REPLY(ask, 1)));
}
HAFT_HANDLER(continuing_twice, NULL, HAFT_GENERAL(ask, twice_in_clause));
static void *ask_twice(void *unused) {
    HAFT_PERFORM(ask, 1);
    HAFT_PERFORM(ask, 2);
    return unused;
}
static void continue_twice_in_clause(void) {
    haft_handle(&continuing_twice, NULL, ask_twice, NULL);
}
static void drop_twice(void) {
    haft_handle(&keeping, NULL, perform_ask, NULL);
    haft_resumption_drop(kept);
    haft_resumption_drop(kept);
}
static void continue_dropped(void) {
    haft_handle(&keeping, NULL, perform_ask, NULL);
    haft_resumption_drop(kept);
    haft_resumption_resume(kept, HAFT_REPLY(ask, 1));
}
static haft_answer_t tail_twice(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_resume(k, HAFT_REPLY(ask, 1));
    return haft_tail_resume(k, HAFT_REPLY(ask, 1));
}
HAFT_HANDLER(tail_continuing_twice, NULL, HAFT_GENERAL(ask, tail_twice));
static void tail_continue_used(void) {
    haft_handle(&tail_continuing_twice, NULL, ask_twice, NULL);
}
static void continue_what_was_resumed(void) {
    haft_handle(&keeping, NULL, ask_twice, NULL);
    haft_resume(kept.fiber, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask));
    haft_resumption_resume(kept, HAFT_REPLY(ask, 1));
}
static void continue_empty(void) {
    haft_resumption_resume((haft_resumption_t){NULL, 0}, HAFT_NO_REPLY);
}

/* ---- A forgotten return ---- */

static haft_answer_t forget_to_return(void *state, HAFT_PAYLOAD(ask) * payload,
                                      haft_resumption_t k) {
    (void)state, (void)payload;
    haft_answer_t forgotten =
        haft_tail_resume(k, HAFT_REPLY(ask, 1)); /* the compiler warns otherwise */
    (void)forgotten;
    return haft_answer(NULL);
}
HAFT_HANDLER(forgetful, NULL, HAFT_GENERAL(ask, forget_to_return));
static void forget_once(void) {
    haft_handle(&forgetful, NULL, perform_ask, NULL);
}
static void *forget_inside(void *unused) {
    forget_once();
    return unused;
}
static void forget_on_a_fiber(void) {
    haft_resume(haft_fiber_new(forget_inside, NULL), HAFT_NO_REPLY, HAFT_HANDLES(wait));
}

/* Returns what haft_tail_resume gave it for the perform before. */
static haft_answer_t answer_again(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    haft_answer_t *before = state;
    (void)payload;
    if (before->next == 0)
        *before = haft_tail_resume(k, HAFT_REPLY(ask, 1));
    return *before;
}
HAFT_HANDLER(answering_again, NULL, HAFT_GENERAL(ask, answer_again));
static void answer_twice(void) {
    haft_answer_t before = haft_answer(NULL);
    haft_handle(&answering_again, &before, ask_twice, NULL);
}
static void an_answer_returned_twice_is_reported(void) {
    CHECK_ABORTS(answer_twice,
                 "haft: A clause has returned what haft_tail_resume gave it a second time.");
}

static haft_answer_t right_within(void *state, HAFT_PAYLOAD(wait) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    return haft_tail_resume(k, HAFT_NO_REPLY);
}
HAFT_HANDLER(right, NULL, HAFT_GENERAL(wait, right_within));
static void handle_rightly(int *unused) {
    (void)unused;
    haft_handle(&right, NULL, wait_once, NULL);
}
static haft_answer_t continue_with_cleanup(void *state, HAFT_PAYLOAD(ask) * payload,
                                           haft_resumption_t k) {
    __attribute__((cleanup(handle_rightly))) int one = 1;
    (void)state, (void)payload;
    return haft_tail_resume(k, HAFT_REPLY(ask, one));
}
HAFT_HANDLER(cleaning, NULL, HAFT_GENERAL(ask, continue_with_cleanup));
static haft_answer_t drop_it(void *state, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_drop(k);
    return haft_answer(NULL);
}
HAFT_HANDLER(dropping, NULL, HAFT_GENERAL(ask, drop_it));
static void handle_and_drop(int *unused) {
    (void)unused;
    haft_handle(&dropping, NULL, perform_ask, NULL);
}
static haft_answer_t continue_with_a_drop(void *state, HAFT_PAYLOAD(ask) * payload,
                                          haft_resumption_t k) {
    __attribute__((cleanup(handle_and_drop))) int one = 1;
    (void)state, (void)payload;
    return haft_tail_resume(k, HAFT_REPLY(ask, one));
}
HAFT_HANDLER(dropping_within, NULL, HAFT_GENERAL(ask, continue_with_a_drop));
static void remember(void) {
    haft_handle(&cleaning, NULL, perform_ask, NULL);
    haft_handle(&dropping_within, NULL, perform_ask, NULL);
}

/* Promises its own computation, and returns what was promised of another. */
static haft_resumption_t waiting_elsewhere;
static haft_answer_t return_the_other(void *state, HAFT_PAYLOAD(wait) * payload,
                                      haft_resumption_t k) {
    (void)state, (void)payload;
    haft_answer_t own = haft_tail_resume(k, HAFT_NO_REPLY);
    (void)own;
    return haft_tail_resume(waiting_elsewhere, HAFT_REPLY(ask, 1));
}
HAFT_HANDLER(distracted, NULL, HAFT_GENERAL(wait, return_the_other));
static void forget_for_another(void) {
    haft_handle(&keeping, NULL, perform_ask, NULL);
    waiting_elsewhere = kept;
    haft_handle(&distracted, NULL, wait_once, NULL);
}
static jmp_buf after_error;
static void leave_by_jump(const haft_error_t *error) {
    (void)error;
    longjmp(after_error, 1);
}
static void forget_for_another_and_go_on(void) {
    haft_set_error_handler(leave_by_jump);
    if (setjmp(after_error) == 0)
        forget_for_another();
    haft_resumption_resume(waiting_elsewhere, HAFT_REPLY(ask, 1));
}

static haft_answer_t promise_and_jump(void *state, HAFT_PAYLOAD(ask) * payload,
                                      haft_resumption_t k) {
    (void)state, (void)payload;
    kept = k;
    haft_answer_t answer = haft_tail_resume(k, HAFT_REPLY(ask, 1));
    if (answer.next != 0)
        longjmp(after_error, 1);
    return answer;
}
HAFT_HANDLER(jumping, NULL, HAFT_GENERAL(ask, promise_and_jump));
static haft_answer_t continue_the_other(void *state, HAFT_PAYLOAD(wait) * payload,
                                        haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_drop(k);
    return haft_tail_resume(kept, HAFT_REPLY(ask, 1));
}
HAFT_HANDLER(replacing, NULL, HAFT_GENERAL(wait, continue_the_other));
static void free_what_was_promised(void) {
    if (setjmp(after_error) == 0)
        haft_handle(&jumping, NULL, perform_ask, NULL);
    haft_fiber_t *fiber = kept.fiber;
    haft_fiber_drop(fiber);
    haft_handle(&keeping, NULL, perform_ask, NULL);
    CHECK(kept.fiber == fiber);
    haft_handle(&replacing, NULL, wait_once, NULL);
}
static void a_stack_whose_fiber_was_freed_with_a_promise_serves_again(void) {
    CHECK_SUCCEEDS(free_what_was_promised);
}

typedef struct {
    char bytes[1000];
} large_t;
HAFT_EFFECT(ask_much, large_t, {});
static void *perform_ask_much(void *unused) {
    HAFT_PERFORM(ask_much);
    return unused;
}
static haft_answer_t promise_much_and_jump(void *state, HAFT_PAYLOAD(ask_much) * payload,
                                           haft_resumption_t k) {
    (void)state, (void)payload;
    static const large_t much;
    kept = k;
    haft_answer_t answer = haft_tail_resume(k, HAFT_REPLY(ask_much, much));
    if (answer.next != 0)
        longjmp(after_error, 1);
    return answer;
}
HAFT_HANDLER(jumping_with_much, NULL, HAFT_GENERAL(ask_much, promise_much_and_jump));
static void free_much_that_was_promised(void) {
    if (setjmp(after_error) == 0)
        haft_handle(&jumping_with_much, NULL, perform_ask_much, NULL);
    haft_fiber_drop(kept.fiber);
}
static void free_much_that_was_promised_often(void) {
    free_much_that_was_promised();
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 100; i++)
        free_much_that_was_promised();
    if (mallinfo2().uordblks != before)
        _exit(1);
}
static void a_promised_reply_goes_with_its_fiber(void) {
    CHECK_SUCCEEDS(free_much_that_was_promised_often);
}

static void a_forgotten_return_before_tail_continue_is_reported(void) {
    const char *message = "haft: A clause of 'forgetful' has called haft_tail_resume and "
                          "returned something else.";
    CHECK_ABORTS(forget_once, message);
    CHECK_ABORTS(forget_on_a_fiber, message);
    CHECK_ABORTS(forget_for_another, "haft: A clause of 'distracted' has called haft_tail_resume");
    CHECK_SUCCEEDS(forget_for_another_and_go_on);
    CHECK_SUCCEEDS(remember);
}

static void a_resumption_used_twice_is_reported(void) {
    CHECK_ABORTS(continue_twice_in_clause,
                 "A resumption of the effect 'ask' cannot be resumed: it has been used already.");
    CHECK_ABORTS(continue_twice, "cannot be resumed: it has been used already.");
    CHECK_ABORTS(drop_twice, "cannot be dropped: it has been used already.");
    CHECK_ABORTS(continue_dropped, "cannot be resumed: it has been used already.");
    CHECK_ABORTS(tail_continue_used, "cannot be resumed: it has been used already.");
    CHECK_ABORTS(continue_what_was_resumed, "cannot be resumed: it has been used already.");
    CHECK_ABORTS(continue_empty, "cannot be resumed: it has been used already.");
}

/* ---- Payloads ---- */

static void forget(int *value) {
    *value = 0;
}

/* This file is compiled without NDEBUG (see the top), however the library was. */
static void *ask_and_wait(void *unused) {
    HAFT_PERFORM(ask, 1);
    HAFT_PERFORM(wait);
    return unused;
}
static void *ask_and_wait_with_cleanup(void *unused) {
    __attribute__((cleanup(forget), unused)) int one = 1;
    return ask_and_wait(unused);
}
static int *waiting_payload(haft_fiber_t *k) {
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask, wait));
    int *payload = &((HAFT_PAYLOAD(ask) *)request.payload)->question;
    CHECK_EQUAL(*payload, 1);
    return payload;
}
/* The stack of a fiber stays mapped, so the read itself is sound here. */
static void check_spoiled(const volatile int *payload) {
    CHECK_EQUAL((unsigned)*payload, 0xdbdbdbdbu);
}

static void a_payload_read_too_late_holds_a_pattern_in_a_debug_build(void) {
    if (!check_bare())
        return; /* which finds it first */
    haft_fiber_t *k = haft_fiber_new(ask_and_wait, NULL);
    const int *payload = waiting_payload(k);
    haft_resume(k, HAFT_REPLY(ask, 1), HAFT_HANDLES(ask, wait));
    check_spoiled(payload);
    haft_fiber_drop(k);
    static void *(*const functions[])(void *) = {ask_and_wait, ask_and_wait_with_cleanup};
    for (int i = 0; i < 2; i++) {
        k = haft_fiber_new(functions[i], NULL);
        payload = waiting_payload(k);
        haft_fiber_drop(k);
        check_spoiled(payload);
    }
    static char memory[16 * 1024];
    k = haft_fiber_new_with(&(haft_fiber_options_t){.memory = memory,
                                                    .memory_size = sizeof memory,
                                                    .no_cleanups = true},
                            ask_and_wait, NULL);
    payload = waiting_payload(k);
    haft_fiber_drop(k);
    check_spoiled(payload);
}

/* ---- The error handler ---- */

static haft_error_t last_error;
static void exit_zero(const haft_error_t *error) {
    last_error = *error;
    CHECK_EQUAL(error->code, HAFT_ERROR_UNHANDLED);
    CHECK(error->effect == HAFT_ID(ask));
    CHECK(error->fiber == NULL);
    CHECK_CONTAINS(error->message, "Nobody handles the effect 'ask'");
    _exit(check_failures == 0 ? 0 : 1);
}
static void with_error_handler(void) {
    CHECK(haft_set_error_handler(exit_zero) == NULL);
    perform_on_thread();
}
static void ignore(const haft_error_t *error) {
    (void)error;
}
static void with_returning_error_handler(void) {
    haft_set_error_handler(ignore);
    fputs("before", stderr);
    perform_on_thread();
}

static void an_error_handler_is_told_code_effect_and_fiber(void) {
    CHECK_SUCCEEDS(with_error_handler);
}
static void the_process_aborts_when_an_error_handler_returns(void) {
    CHECK_ABORTS(with_returning_error_handler, "before");
}

int main(void) {
    RUN(an_effect_that_nobody_handles_is_named_with_its_place_and_fiber);
    RUN(a_value_of_the_wrong_size_in_an_untyped_call_is_reported);
    RUN(a_missing_reply_is_reported);
    RUN(a_reply_to_another_effect_is_reported);
    RUN(a_request_that_no_case_takes_is_reported);
    RUN(one_name_declared_in_two_ways_is_reported);
    RUN(resuming_what_cannot_be_resumed_is_reported);
    RUN(freeing_what_cannot_be_freed_is_reported);
    RUN(bad_arguments_are_reported);
    RUN(null_is_reported_with_the_function_that_was_given_it);
    RUN(absurd_arguments_are_reported);
    RUN(yield_and_exit_to_a_fiber_that_is_not_around_are_reported);
    RUN(a_throw_to_a_clause_that_resumes_is_reported);
    RUN(a_resumption_used_twice_is_reported);
    RUN(a_forgotten_return_before_tail_continue_is_reported);
    RUN(a_stack_whose_fiber_was_freed_with_a_promise_serves_again);
    RUN(a_promised_reply_goes_with_its_fiber);
    RUN(an_answer_returned_twice_is_reported);
    RUN(a_payload_read_too_late_holds_a_pattern_in_a_debug_build);
    RUN(an_error_handler_is_told_code_effect_and_fiber);
    RUN(the_process_aborts_when_an_error_handler_returns);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
