/* Scopes: waiting, failing, cancelling, deadlines, shields; all of these and the first of these. */
#include "check_io.h"

static char order[256];
static void note(const char *what) {
    strncat(order, what, sizeof order - strlen(order) - 1);
}
static void note_end(char **text) {
    note(*text);
}
/* Notes the text when the frame is left, by unwinding too. */
#define NOTES __attribute__((cleanup(note_end), unused)) char *

static void *sleep_long(void *text) {
    NOTES end = text;
    haft_io_sleep(100 * HAFT_IO_SECOND);
    note("never");
    return NULL;
}

/* ---- Waiting ---- */

static void *sleep_short(void *text) {
    haft_io_sleep(HAFT_IO_MILLISECOND);
    note(text);
    return NULL;
}
BODY(spawn_short) {
    haft_io_spawn(sleep_short, "child ");
    note("body ");
    return check_number(7);
}
BODY(open_scope) {
    order[0] = '\0';
    void *result = NULL;
    CHECK_EQUAL(haft_io_scope(spawn_short, NULL, &result), 0);
    note("after");
    CHECK_EQUAL((intptr_t)result, 7);
    return NULL;
}
static void a_scope_is_left_when_its_tasks_have_ended(void) {
    CHECK_RUNS(open_scope);
    CHECK_SAME_TEXT(order, "body child after");
}

BODY(spawn_in_run) {
    CHECK_EQUAL(haft_io_spawn_with(&(haft_io_task_options_t){.scope = haft_io_run_scope()},
                                   sleep_short, "child "),
                0);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(scope_around_spawn) {
    return haft_io_scope(spawn_in_run, NULL, NULL) == -ECANCELED ? check_number(1) : NULL;
}
BODY(spawn_below) {
    order[0] = '\0';
    CHECK(haft_io_run_scope() == haft_io_this_scope());
    void *result = NULL;
    CHECK_EQUAL(haft_io_scope(scope_around_spawn, NULL, &result), 0);
    CHECK_EQUAL((intptr_t)result, 1);
    note("scopes-ended ");
    return NULL;
}
static void a_task_of_the_run_outlives_the_scopes_around_its_spawn(void) {
    CHECK_RUNS(spawn_below);
    CHECK_SAME_TEXT(order, "scopes-ended child ");
    CHECK(haft_io_run_scope() == NULL);
}

BODY(only_body) {
    return check_number(5);
}
BODY(only_fail) {
    haft_io_fail(-EPROTO, "bad");
}
static void a_scope_without_a_scheduler_runs_its_body_and_gives_its_failure(void) {
    void *result = NULL;
    CHECK_EQUAL(haft_io_scope(only_body, NULL, &result), 0);
    CHECK_EQUAL((intptr_t)result, 5);
    CHECK_EQUAL(haft_io_scope(only_fail, NULL, NULL), -EPROTO);
}

static void note_another(const int *unused) {
    (void)unused;
    haft_io_note_failure(-EDOM, "afterwards");
}
static void *fail_and_note(void *unused) {
    (void)unused;
    __attribute__((cleanup(note_another), unused)) int cleanup = 0;
    haft_io_fail(-EIO, "first");
}
BODY(spawn_fail_and_note) {
    haft_io_spawn(fail_and_note, NULL);
    return NULL;
}
BODY(fail_in_both_ways) {
    void *(*const bodies[])(void *) = {spawn_fail_and_note, fail_and_note};
    for (int i = 0; i < 2; i++) {
        haft_io_failures_t failures;
        haft_io_scope_options_t options = {.failures = &failures};
        CHECK_EQUAL(haft_io_scope_with(&options, bodies[i], NULL, NULL), -EIO);
        CHECK_EQUAL(failures.count, 2);
        CHECK_SAME_TEXT(failures.failures[0].message, "first");
        CHECK_SAME_TEXT(failures.failures[1].message, "afterwards");
    }
    return NULL;
}
static void a_failure_comes_before_those_of_its_cleanups(void) {
    CHECK_RUNS(fail_in_both_ways);
}

static void *fail_with_a_cancels_code(void *unused) {
    (void)unused;
    haft_io_fail(-ECANCELED, "what a join returned");
}
BODY(spawn_one_that_fails_so) {
    haft_io_spawn(sleep_long, "sibling ");
    haft_io_spawn(fail_with_a_cancels_code, NULL);
    return NULL;
}
BODY(fail_so_beside_one) {
    haft_io_spawn(sleep_long, "sibling ");
    return fail_with_a_cancels_code(NULL);
}
BODY(survive_such_failures) {
    void *(*const bodies[])(void *) = {spawn_one_that_fails_so, fail_so_beside_one};
    order[0] = '\0';
    for (int i = 0; i < 2; i++) {
        haft_io_failures_t failures;
        haft_io_scope_options_t options = {.failures = &failures};
        CHECK_EQUAL(haft_io_scope_with(&options, bodies[i], NULL, NULL), -ECANCELED);
        CHECK_EQUAL(failures.count, 1);
    }
    note("goes on");
    return NULL;
}
static void a_failure_with_the_code_of_a_cancel_is_a_failure(void) {
    CHECK_RUNS(survive_such_failures);
    CHECK(strstr(order, "goes on") != NULL && strstr(order, "never") == NULL);
}

HAFT_EFFECT(ask_around, int, {});
static int answer_around(void *state, HAFT_PAYLOAD(ask_around) * payload) {
    (void)payload;
    return *(int *)state;
}
HAFT_HANDLER(answering, NULL, HAFT_TAIL(ask_around, answer_around));
BODY(ask_in_body) {
    haft_io_yield();
    return check_number(HAFT_PERFORM(ask_around));
}
BODY(scope_under_handler) {
    void *result = NULL;
    haft_io_scope(ask_in_body, NULL, &result);
    return result;
}
BODY(handle_around_scope) {
    int answer = 42;
    CHECK_EQUAL((intptr_t)haft_handle(&answering, &answer, scope_under_handler, NULL), 42);
    return NULL;
}
static void a_body_sees_the_handlers_around_its_scope(void) {
    CHECK_RUNS(handle_around_scope);
}

/* ---- Failing ---- */

static void *fail_soon(void *text) {
    NOTES end = text;
    haft_io_yield();
    haft_io_fail(-ECONNRESET, "the peer is gone");
}
BODY(fail_among_others) {
    NOTES end = "body ";
    haft_io_spawn(sleep_long, "sibling ");
    haft_io_async_with(&(haft_io_task_options_t){.name = "failing"}, fail_soon, "failed ");
    haft_io_sleep(100 * HAFT_IO_SECOND);
    return NULL;
}
BODY(see_failure) {
    order[0] = '\0';
    haft_io_failures_t failures;
    CHECK_EQUAL(haft_io_scope_with(&(haft_io_scope_options_t){.failures = &failures},
                                   fail_among_others, NULL, NULL),
                -ECONNRESET);
    CHECK_EQUAL(failures.count, 1);
    CHECK_SAME_TEXT(failures.failures[0].message, "the peer is gone");
    CHECK_SAME_TEXT(failures.failures[0].task, "failing");
    CHECK_EQUAL(haft_io_sleep(HAFT_IO_MILLISECOND), 0);
    note("after");
    return NULL;
}
static void a_failure_cancels_siblings_and_body_and_each_unwinds(void) {
    CHECK_RUNS(see_failure);
    CHECK_CONTAINS(order, "failed ");
    CHECK_CONTAINS(order, "sibling ");
    CHECK_CONTAINS(order, "body ");
    CHECK_CONTAINS(order, "after");
    CHECK(strstr(order, "never") == NULL);
}

BODY(fail_before_sibling_ends) {
    haft_io_spawn(sleep_long, "sibling ");
    haft_io_yield();
    haft_io_fail(-ECONNRESET, "the peer is gone");
}
BODY(return_before_child_ends) {
    haft_io_spawn(sleep_short, "child ");
    haft_io_yield();
    return NULL;
}
BODY(leave_early) {
    order[0] = '\0';
    CHECK_EQUAL(haft_io_scope(fail_before_sibling_ends, NULL, NULL), -ECONNRESET);
    CHECK_EQUAL(haft_io_scope(return_before_child_ends, NULL, NULL), 0);
    return NULL;
}
static void a_body_that_fails_cancels_its_tasks_and_one_that_returns_waits_for_them(void) {
    CHECK_RUNS(leave_early);
    CHECK_SAME_TEXT(order, "sibling child ");
    CHECK_EQUAL(haft_io_run(fail_before_sibling_ends, NULL), -ECONNRESET);
}

static void note_trouble(__attribute__((unused)) int *unused) {
    haft_io_note_failure(-EIO, "could not flush");
}
static void *fail_while_unwound(void *argument) {
    (void)argument;
    __attribute__((cleanup(note_trouble), unused)) int guard;
    haft_io_sleep(100 * HAFT_IO_SECOND);
    return NULL;
}
BODY(fail_twice) {
    haft_io_spawn(fail_while_unwound, NULL);
    haft_io_yield();
    haft_io_fail(-EPROTO, "first");
}
BODY(see_both) {
    haft_io_failures_t failures;
    CHECK_EQUAL(haft_io_scope_with(&(haft_io_scope_options_t){.failures = &failures}, fail_twice,
                                   NULL, NULL),
                -EPROTO);
    CHECK_EQUAL(failures.count, 2);
    CHECK_EQUAL(failures.failures[1].code, -EIO);
    return NULL;
}
static void a_failure_while_unwinding_is_kept(void) {
    CHECK_RUNS(see_both);
}

static void fail_in_cleanup(__attribute__((unused)) int *unused) {
    haft_io_fail(-EIO, "could not flush");
}
BODY(fail_unwinding) {
    __attribute__((cleanup(fail_in_cleanup), unused)) int guard;
    haft_io_fail(-EPROTO, "first");
}
static void run_fail_unwinding(void) {
    haft_io_run(fail_unwinding, NULL);
}
static void a_cleanup_that_fails_is_a_mistake(void) {
    if (check_follows_children())
        CHECK_ABORTS(run_fail_unwinding, "A cleanup notes a failure with haft_io_note_failure");
}

BODY(fail_main) {
    haft_io_spawn(sleep_long, "");
    haft_io_yield();
    haft_io_fail(-EHOSTDOWN, "no");
}
static void a_failure_of_the_first_task_is_what_the_run_returns(void) {
    CHECK_EQUAL(haft_io_run(fail_main, NULL), -EHOSTDOWN);
}

static void *return_code(void *argument) {
    haft_io_fail(-EPIPE, argument);
}
BODY(join_failing) {
    haft_io_task_t *task = haft_io_async(return_code, "broken");
    haft_io_return_cancels(true);
    /* The failure of the one has cancelled the other. */
    CHECK_EQUAL(haft_io_join(task, NULL), -ECANCELED);
    return NULL;
}
BODY(join_failing_in_scope) {
    CHECK_EQUAL(haft_io_scope(join_failing, NULL, NULL), -EPIPE);
    return NULL;
}
static void a_task_that_fails_has_no_result(void) {
    CHECK_RUNS(join_failing_in_scope);
}

BODY(fail_at_once) {
    haft_io_fail(-EPIPE, "at once");
}
BODY(see_no_result) {
    void *result = check_number(7);
    CHECK_EQUAL(haft_io_scope(fail_at_once, NULL, &result), -EPIPE);
    CHECK(result == NULL);
    return NULL;
}
static void a_body_that_is_unwound_has_no_result(void) {
    CHECK_RUNS(see_no_result);
    see_no_result(NULL);
}

/* ---- Cancelling ---- */

BODY(cancel_this) {
    haft_io_spawn(sleep_long, "child ");
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    note("still here ");
    haft_io_sleep(HAFT_IO_MILLISECOND);
    note("never");
    return NULL;
}
BODY(see_cancel) {
    order[0] = '\0';
    CHECK_EQUAL(haft_io_scope(cancel_this, NULL, NULL), -ECANCELED);
    note("after");
    return NULL;
}
static void a_cancel_comes_with_the_next_wait_and_ends_at_its_scope(void) {
    CHECK_RUNS(see_cancel);
    CHECK_SAME_TEXT(order, "still here child after");
}

BODY(nest_deeper) {
    NOTES end = "inner ";
    haft_io_spawn(sleep_long, "grandchild ");
    haft_io_sleep(100 * HAFT_IO_SECOND);
    return NULL;
}
static void *nest(void *argument) {
    NOTES end = "outer ";
    haft_io_scope(nest_deeper, argument, NULL);
    note("never");
    return NULL;
}
BODY(cancel_nest) {
    haft_io_spawn(nest, NULL);
    haft_io_yield();
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(see_nest) {
    order[0] = '\0';
    CHECK_EQUAL(haft_io_scope(cancel_nest, NULL, NULL), -ECANCELED);
    return NULL;
}
static void a_cancel_goes_down_the_tree_and_inner_scopes_are_waited_for(void) {
    CHECK_RUNS(see_nest);
    CHECK_SAME_TEXT(order, "inner grandchild outer ");
}

BODY(return_instead) {
    CHECK(!haft_io_return_cancels(true));
    haft_io_scope_cancel(haft_io_this_scope());
    CHECK_EQUAL(haft_io_sleep(HAFT_IO_SECOND), -ECANCELED);
    CHECK_EQUAL(haft_io_yield(), -ECANCELED);
    note("returned ");
    return NULL;
}
BODY(see_returned) {
    order[0] = '\0';
    CHECK_EQUAL(haft_io_scope(return_instead, NULL, NULL), -ECANCELED);
    CHECK_EQUAL(haft_io_return_cancels(false), false);
    return NULL;
}
static void who_asked_for_it_gets_a_code_instead_of_unwinding(void) {
    CHECK_RUNS(see_returned);
    CHECK_SAME_TEXT(order, "returned ");
}

BODY(wait_shielded) {
    CHECK_EQUAL(haft_io_sleep(HAFT_IO_MILLISECOND), 0);
    note("shielded ");
    return NULL;
}
static void flush_in_cleanup(__attribute__((unused)) int *unused) {
    CHECK_EQUAL(haft_io_sleep(HAFT_IO_MILLISECOND), -ECANCELED);
    note("refused ");
    CHECK_EQUAL(haft_io_shield(wait_shielded, NULL), 0);
}
BODY(clean_up_waiting) {
    __attribute__((cleanup(flush_in_cleanup), unused)) int guard;
    haft_io_scope_cancel(haft_io_this_scope());
    haft_io_sleep(HAFT_IO_SECOND);
    return NULL;
}
BODY(see_shield) {
    order[0] = '\0';
    CHECK_EQUAL(haft_io_scope(clean_up_waiting, NULL, NULL), -ECANCELED);
    return NULL;
}
static void a_cleanup_that_waits_is_refused_unless_it_is_shielded(void) {
    CHECK_RUNS(see_shield);
    CHECK_SAME_TEXT(order, "refused shielded ");
}

BODY(too_late) {
    haft_io_sleep(100 * HAFT_IO_SECOND);
    return NULL;
}
BODY(limited) {
    CHECK_EQUAL(haft_io_scope_with(
                    &(haft_io_scope_options_t){.deadline = haft_io_now() + HAFT_IO_MILLISECOND},
                    too_late, NULL, NULL),
                -ETIMEDOUT);
    CHECK_EQUAL(haft_io_scope_with(
                    &(haft_io_scope_options_t){.deadline = haft_io_now() + 100 * HAFT_IO_SECOND},
                    only_body, NULL, NULL),
                0);
    return NULL;
}
static void a_deadline_cancels_a_scope_that_has_not_ended(void) {
    CHECK_RUNS(limited);
}

BODY(sleep_two) {
    haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    return NULL;
}
BODY(be_shielded) {
    haft_io_shield(sleep_two, NULL);
    return "done";
}
BODY(spawn_shielded) {
    haft_io_spawn(be_shielded, NULL);
    return "done";
}
BODY(be_shielded_and_sleep) {
    haft_io_spawn(too_late, NULL);
    return be_shielded(NULL);
}
BODY(be_shielded_and_cut_inside) {
    haft_io_scope(be_shielded_and_sleep, NULL, NULL);
    return "not cut, since it asks for cancels";
}
BODY(be_shielded_and_fail) {
    be_shielded(NULL);
    haft_io_fail(-EIO, "too late, and for nothing");
}
static int with_a_millisecond(void *(*body)(void *), void **result) {
    haft_io_scope_options_t soon = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
    return haft_io_scope_with(&soon, body, NULL, result);
}
BODY(be_late) {
    void *result = NULL;
    CHECK_EQUAL(with_a_millisecond(be_shielded, &result), 0);
    CHECK_SAME_TEXT(result, "done");
    result = NULL;
    CHECK_EQUAL(with_a_millisecond(spawn_shielded, &result), 0);
    CHECK_SAME_TEXT(result, "done");
    CHECK_EQUAL(with_a_millisecond(be_shielded_and_sleep, NULL), -ETIMEDOUT);
    haft_io_return_cancels(true);
    CHECK_EQUAL(with_a_millisecond(be_shielded_and_cut_inside, NULL), -ETIMEDOUT);
    CHECK_EQUAL(with_a_millisecond(be_shielded_and_fail, NULL), -EIO);
    return NULL;
}
static void a_deadline_is_no_error_where_it_cuts_nothing_short(void) {
    CHECK_EQUAL(haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 1}, be_late, NULL),
                0);
    CHECK_RUNS(be_late);
}

static haft_io_scope_t *around;
BODY(sleep_two_and_cancel_around) {
    haft_io_sleep(2 * HAFT_IO_MILLISECOND);
    haft_io_scope_cancel(around);
    return NULL;
}
BODY(cancel_around_in_a_shield) {
    haft_io_shield(sleep_two_and_cancel_around, NULL);
    return NULL;
}
BODY(spawn_who_cancels_around) {
    haft_io_spawn(cancel_around_in_a_shield, NULL);
    return NULL;
}
BODY(wait_for_who_cancels_around) {
    around = haft_io_this_scope();
    with_a_millisecond(spawn_who_cancels_around, NULL);
    CHECK(false);
    return NULL;
}
BODY(be_cancelled_when_late) {
    CHECK_EQUAL(haft_io_scope(wait_for_who_cancels_around, NULL, NULL), -ECANCELED);
    return NULL;
}
static void a_cancel_reaches_who_waits_for_tasks_that_are_late(void) {
    CHECK_RUNS(be_cancelled_when_late);
}

static int late_ends[2];
BODY(read_before_the_deadline) {
    char byte;
    return haft_io_read(late_ends[0], &byte, 1) == 1 ? "read" : NULL;
}
BODY(write_and_hold_the_thread) {
    haft_io_write_all(late_ends[1], "x", 1);
    for (int64_t start = haft_io_now(); haft_io_now() < start + 3 * HAFT_IO_MILLISECOND;)
        continue;
    return NULL;
}
BODY(read_at_the_deadline) {
    char byte;
    void *result = NULL;
    CHECK_EQUAL(haft_io_pipe(late_ends), 0);
    haft_io_spawn(write_and_hold_the_thread, NULL);
    int code = with_a_millisecond(read_before_the_deadline, &result);
    CHECK_EQUAL(code, result != NULL ? 0 : -ETIMEDOUT);
    if (result == NULL) /* then it is there still */
        CHECK_EQUAL(haft_io_read(late_ends[0], &byte, 1), 1);
    haft_io_close(late_ends[0]);
    haft_io_close(late_ends[1]);
    return NULL;
}
static void what_is_read_when_the_deadline_passes_is_not_lost(void) {
    CHECK_RUNS(read_at_the_deadline);
}

BODY(join_long) {
    haft_io_task_t *task = haft_io_async(sleep_long, "joined ");
    haft_io_join(task, NULL);
    return NULL;
}
BODY(cancel_joiner) {
    order[0] = '\0';
    CHECK_EQUAL(haft_io_scope_with(
                    &(haft_io_scope_options_t){.deadline = haft_io_now() + HAFT_IO_MILLISECOND},
                    join_long, NULL, NULL),
                -ETIMEDOUT);
    return NULL;
}
static void a_cancelled_join_leaves_nothing_behind(void) {
    CHECK_RUNS(cancel_joiner);
    CHECK_SAME_TEXT(order, "joined ");
}

HAFT_EFFECT(get_out, void, {});
BODY(throw_out) {
    haft_io_spawn(sleep_long, "child ");
    haft_io_yield();
    HAFT_THROW(get_out);
}
BODY(scope_to_throw_from) {
    haft_io_scope(throw_out, NULL, NULL);
    return NULL;
}
BODY(throw_across) {
    order[0] = '\0';
    HAFT_SCOPED haft_fiber_t *fiber = haft_fiber_new(scope_to_throw_from, NULL);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(get_out));
    CHECK(request.effect == HAFT_ID(get_out));
    note("out ");
    CHECK_EQUAL(haft_io_sleep(HAFT_IO_MILLISECOND), 0);
    return NULL;
}
static void a_scope_that_another_effect_unwinds_ends_its_tasks_first(void) {
    CHECK_RUNS(throw_across);
    CHECK_SAME_TEXT(order, "child out ");
}

/* ---- Several ---- */

static void *sleep_for(void *milliseconds) {
    haft_io_sleep((intptr_t)milliseconds * HAFT_IO_MILLISECOND);
    return milliseconds;
}
BODY(all_and_first) {
    haft_io_call_t all[] = {{sleep_for, check_number(3), NULL},
                            {sleep_for, check_number(1), NULL},
                            {sleep_for, check_number(2), NULL}};
    CHECK_EQUAL(haft_io_all(all, 3), 0);
    for (int i = 0; i < 3; i++)
        CHECK(all[i].result == all[i].argument);
    CHECK_EQUAL(haft_io_all(NULL, 0), 0);

    order[0] = '\0';
    haft_io_call_t first[] = {{sleep_long, "slow ", NULL}, {sleep_for, check_number(1), NULL}};
    CHECK_EQUAL(haft_io_first(first, 2), 1);
    CHECK_EQUAL((intptr_t)first[1].result, 1);
    CHECK_SAME_TEXT(order, "slow ");

    haft_io_call_t failing[] = {{sleep_long, "", NULL}, {return_code, "x", NULL}};
    CHECK_EQUAL(haft_io_all(failing, 2), -EPIPE);
    CHECK_EQUAL(haft_io_first(failing, 2), -EPIPE);
    return NULL;
}
static void all_of_these_and_the_first_of_these(void) {
    CHECK_RUNS(all_and_first);
}

/* The calls are cancelled with the caller, while it waits for them and not in its body. */
static bool went_on;
BODY(wait_for_all) {
    haft_io_call_t calls[] = {{sleep_long, "", NULL}, {sleep_long, "", NULL}};
    haft_io_all(calls, 2);
    went_on = true;
    return NULL;
}
BODY(wait_for_the_first) {
    haft_io_call_t calls[] = {{sleep_long, "", NULL}, {sleep_long, "", NULL}};
    haft_io_return_cancels(true);
    CHECK_EQUAL(haft_io_first(calls, 2), -ECANCELED);
    return NULL;
}
BODY(cancel_who_waits_for_several) {
    haft_io_scope_options_t limited = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&limited, wait_for_all, NULL, NULL), -ETIMEDOUT);
    CHECK(!went_on);
    limited.deadline = haft_io_now() + HAFT_IO_MILLISECOND;
    CHECK_EQUAL(haft_io_scope_with(&limited, wait_for_the_first, NULL, NULL), -ETIMEDOUT);
    return NULL;
}
static void who_is_cancelled_while_it_waits_for_calls_does_not_go_on(void) {
    CHECK_RUNS(cancel_who_waits_for_several);
}

/* Cancelling or dumping scopes in scopes takes no more of the stack, which is a task's. */
static haft_io_scope_t *outermost;
static haft_io_event_t is_deep;
static int left;
static void count_left(const int *unused) {
    (void)unused;
    left++;
}
static void *open_more(void *more) {
    __attribute__((cleanup(count_left))) int here = 0;
    (void)here;
    if (more != NULL) {
        haft_io_scope(open_more, check_number((intptr_t)more - 1), NULL);
    } else {
        haft_io_event_set(&is_deep);
        haft_io_sleep(1000 * HAFT_IO_SECOND);
    }
    return NULL;
}
BODY(dump_and_cancel) {
    haft_io_event_wait(&is_deep);
    int nowhere = open("/dev/null", O_WRONLY);
    CHECK_EQUAL(haft_io_dump(nowhere), 0);
    haft_io_close(nowhere);
    haft_io_scope_cancel(outermost);
    return NULL;
}
static void *open_outermost(void *more) {
    outermost = haft_io_this_scope();
    return open_more(more);
}
BODY(cancel_deep_scopes) {
    const intptr_t deep = check_bare() ? 20000 : 500;
    left = 0;
    haft_io_event_clear(&is_deep);
    haft_io_spawn(dump_and_cancel, NULL);
    CHECK_EQUAL(haft_io_scope(open_outermost, check_number(deep), NULL), -ECANCELED);
    CHECK_EQUAL(left, deep + 1);
    return NULL;
}
static void scopes_may_be_as_deep_as_there_is_memory_for(void) {
    CHECK_RUNS(cancel_deep_scopes);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, cancel_deep_scopes, NULL),
                0);
}

/* ---- The tasks that are told of a cancel ---- */

typedef struct told {
    haft_io_on_cancel_t on_cancel;
    int cancels, ends;
} told_t;
static void tell(haft_io_on_cancel_t *self, bool cancelled) {
    told_t *told = (told_t *)self;
    *(cancelled ? &told->cancels : &told->ends) += 1;
    self->next = NULL; /* It is its own. */
}
static int scope_told(void *(*body)(void *), told_t *told, bool shielded) {
    *told = (told_t){.on_cancel.done = tell};
    haft_io_scope_options_t options = {.on_cancel = &told->on_cancel, .shielded = shielded};
    return haft_io_scope_with(&options, body, told, NULL);
}
static void *is_told_at_once(void *argument) {
    const told_t *told = argument;
    haft_io_scope_cancel(haft_io_this_scope());
    CHECK_EQUAL(told->cancels, 1);
    haft_io_scope_cancel(haft_io_this_scope());
    CHECK_EQUAL(told->cancels, 1);
    return NULL;
}
static void *was_told(void *argument) {
    CHECK_EQUAL(((const told_t *)argument)->cancels, 1);
    return NULL;
}
static void *was_not_told(void *argument) {
    CHECK_EQUAL(((const told_t *)argument)->cancels, 0);
    return NULL;
}
/* Without a wait the scope inside ends well: the cancel did not come from a task of its own. */
static void *is_told_of_outer(void *argument) {
    told_t *told = argument, inner, later;
    haft_io_scope_t *outer = haft_io_this_scope();
    CHECK_EQUAL(scope_told(check_nothing, &inner, false), 0);
    CHECK_EQUAL(inner.ends, 1);
    haft_io_scope_cancel(outer);
    CHECK_EQUAL(told->cancels, 1);
    CHECK_EQUAL(scope_told(was_told, &later, false), 0);
    CHECK_EQUAL(scope_told(was_not_told, &later, true), 0);
    CHECK_EQUAL(later.ends, 1);
    return NULL;
}
static void *yield_for_ever(void *unused) {
    while (haft_io_yield() == 0)
        continue;
    return unused;
}
BODY(tell_of_cancels) {
    told_t told;
    CHECK_EQUAL(scope_told(check_nothing, &told, false), 0);
    CHECK(told.ends == 1 && told.cancels == 0);
    CHECK_EQUAL(scope_told(is_told_at_once, &told, false), -ECANCELED);
    CHECK(told.ends == 0 && told.cancels == 1);
    CHECK_EQUAL(scope_told(is_told_of_outer, &told, false), -ECANCELED);
    CHECK(told.ends == 0 && told.cancels == 1);
    told = (told_t){.on_cancel.done = tell};
    haft_io_scope_options_t options = {.deadline = 1, .on_cancel = &told.on_cancel};
    CHECK_EQUAL(haft_io_scope_with(&options, yield_for_ever, NULL, NULL), -ETIMEDOUT);
    CHECK(told.ends == 0 && told.cancels == 1);
    return NULL;
}
static void a_cancel_is_told_at_once_to_who_wants_to_know(void) {
    told_t told;
    CHECK_RUNS(tell_of_cancels);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, tell_of_cancels, NULL), 0);
    CHECK_EQUAL(scope_told(check_nothing, &told, false), 0); /* without a scheduler */
    CHECK(told.ends == 1 && told.cancels == 0);
}

BODY(give_no_options) {
    void *result = NULL;
    CHECK_EQUAL(haft_io_scope_with(NULL, check_nothing, check_number(1), &result), 0);
    CHECK(result == check_number(1));
    CHECK_EQUAL(haft_io_spawn_with(NULL, check_nothing, NULL), 0);
    CHECK_EQUAL(haft_io_join(haft_io_async_with(NULL, check_nothing, check_number(2)), &result), 0);
    CHECK(result == check_number(2));
    int nowhere = open("/dev/null", O_WRONLY);
    CHECK_EQUAL(haft_io_dump_with(NULL, nowhere), 0);
    haft_io_close(nowhere);
    return NULL;
}
static void no_options_are_zeroed_ones(void) {
    CHECK_RUNS(give_no_options);
}

BODY(fail_as_main) {
    haft_io_task_set_name("main task");
    haft_io_fail(-ECONNREFUSED, "no database");
}
BODY(fail_inside) {
    CHECK_EQUAL(haft_io_scope(fail_as_main, NULL, NULL), -ECONNREFUSED);
    return NULL;
}
static void run_that_fails(void) {
    CHECK_EQUAL(haft_io_run(fail_as_main, NULL), -ECONNREFUSED);
}
static void run_that_does_not(void) {
    CHECK_RUNS(fail_inside);
}
static void what_ends_a_run_is_printed_with_its_message(void) {
    if (!check_follows_children())
        return;
    check_child_t child = check_child(run_that_fails);
    CHECK_SAME_TEXT(child.output, "haft-io: the run fails in the task 'main task': no database "
                                  "(Connection refused)\n");
    child = check_child(run_that_does_not);
    CHECK_SAME_TEXT(child.output, "");
}

/* ---- Scopes without a body ---- */

static int ended_outside;
static void *sleep_and_count(void *nanoseconds) {
    haft_io_sleep(*(int64_t *)nanoseconds);
    ended_outside++;
    return NULL;
}
static void *fail_in_vain(void *argument) {
    haft_io_fail(-EIO, "in vain");
    return argument;
}
static void spawn_into(haft_io_scope_t *scope, void *(*function)(void *), void *argument) {
    haft_io_task_options_t options = {.scope = scope};
    CHECK_EQUAL(haft_io_spawn_with(&options, function, argument), 0);
}
static int64_t moment = HAFT_IO_MILLISECOND, very_long = 1000 * HAFT_IO_SECOND;

BODY(open_and_close) {
    haft_io_scope_t *scope = haft_io_scope_open(NULL, NULL);
    CHECK(haft_io_scope_is_in(scope, haft_io_this_scope()));
    CHECK(!haft_io_scope_is_in(haft_io_this_scope(), scope));
    ended_outside = 0;
    for (int i = 0; i < 100; i++)
        spawn_into(scope, sleep_and_count, &moment);
    CHECK_EQUAL(haft_io_scope_close_until(scope, HAFT_IO_FOREVER), 0);
    CHECK_EQUAL(ended_outside, 100);
    scope = haft_io_scope_open(NULL, NULL);
    spawn_into(scope, sleep_and_count, &very_long);
    CHECK_EQUAL(haft_io_scope_close_until(scope, haft_io_now() + moment), -ETIMEDOUT);
    scope = haft_io_scope_open(NULL, NULL);
    spawn_into(scope, sleep_and_count, &very_long);
    CHECK_EQUAL(haft_io_scope_close_until(scope, 0), -ECANCELED);
    scope = haft_io_scope_open(NULL, NULL);
    spawn_into(scope, sleep_and_count, &very_long);
    spawn_into(scope, fail_in_vain, NULL);
    CHECK_EQUAL(haft_io_scope_close_until(scope, HAFT_IO_FOREVER), -EIO);
    CHECK_EQUAL(ended_outside, 100);
    CHECK_EQUAL(haft_io_scope_close_until(NULL, 0), 0);
    return NULL;
}
static void a_scope_without_a_body_waits_for_its_tasks_or_cancels_them(void) {
    CHECK_RUNS(open_and_close);
}

static void *open_around(void *scope) {
    return haft_io_scope_open(NULL, scope);
}
BODY(open_from_inside) {
    void *scope = NULL;
    CHECK_EQUAL(haft_io_scope(open_around, haft_io_this_scope(), &scope), 0);
    spawn_into(scope, sleep_and_count, &moment);
    CHECK_EQUAL(haft_io_scope_close_until(scope, HAFT_IO_FOREVER), 0);
    return NULL;
}
static void a_scope_without_a_body_may_be_opened_further_out(void) {
    CHECK_RUNS(open_from_inside);
}

static haft_io_scope_t *chosen;
static bool has_memory = true;
static bool choose(haft_io_scope_t **scope) {
    if (chosen != NULL)
        *scope = chosen;
    return has_memory;
}
static void *spawn_by_the_way(void *unused) {
    CHECK_EQUAL(haft_io_spawn(sleep_and_count, &very_long), 0);
    return unused;
}
BODY(choose_the_scope) {
    haft_io_scope_options_t options = {.scope_of_spawns = choose};
    chosen = haft_io_scope_open(NULL, NULL);
    CHECK_EQUAL(haft_io_scope_with(&options, spawn_by_the_way, NULL, NULL), 0);
    CHECK_EQUAL(haft_io_scope_close_until(chosen, 0), -ECANCELED);
    chosen = NULL;
    options.deadline = haft_io_now() + moment;
    CHECK_EQUAL(haft_io_scope_with(&options, spawn_by_the_way, NULL, NULL), -ETIMEDOUT);
    return NULL;
}
static void *spawn_without_memory(void *unused) {
    CHECK_EQUAL(haft_io_spawn(sleep_and_count, &very_long), -ENOMEM);
    CHECK(haft_io_async(sleep_and_count, &very_long) == NULL);
    return unused;
}
BODY(choose_without_memory) {
    has_memory = false;
    CHECK_EQUAL(haft_io_scope_with(&(haft_io_scope_options_t){.scope_of_spawns = choose},
                                   spawn_without_memory, NULL, NULL),
                0);
    has_memory = true;
    return NULL;
}
static void a_task_whose_scope_has_no_memory_is_not_spawned(void) {
    CHECK_RUNS(choose_without_memory);
}
static void a_scope_may_say_where_tasks_go_that_are_spawned_in_it(void) {
    CHECK_RUNS(choose_the_scope);
}

static void *leave_open(void *unused) {
    haft_io_scope_open(&(haft_io_scope_options_t){.name = "inner"}, NULL);
    return unused;
}
BODY(leave_it_open) {
    return check_number(
        haft_io_scope_with(&(haft_io_scope_options_t){.name = "outer"}, leave_open, NULL, NULL));
}
static void *close_of_another(void *scope) {
    haft_io_scope_close_until(scope, 0);
    return NULL;
}
BODY(close_by_another) {
    haft_io_scope_t *scope = haft_io_scope_open(NULL, NULL);
    return haft_io_join(haft_io_async(close_of_another, scope), NULL) == 0 ? NULL : scope;
}
static void leave_open_in_a_run(void) {
    haft_io_run(leave_it_open, NULL);
}
static void close_by_another_in_a_run(void) {
    haft_io_run(close_by_another, NULL);
}
static void open_outside(void) {
    haft_io_scope_open(NULL, NULL);
}
/* (The thread sanitizer tells of the stacks that the child leaves when it aborts.) */
static void mistakes_with_scopes_without_a_body_are_named(void) {
#ifdef __SANITIZE_THREAD__
    return;
#endif
    CHECK_ABORTS(leave_open_in_a_run, "The scope 'outer' ends before the scope 'inner'");
    CHECK_ABORTS(close_by_another_in_a_run, "the task that opened a scope closes it");
    CHECK_ABORTS(open_outside, "A scope is opened outside of a scheduler");
}

int main(void) {
    check_backend();
    RUN(a_scope_is_left_when_its_tasks_have_ended);
    RUN(a_task_of_the_run_outlives_the_scopes_around_its_spawn);
    RUN(a_scope_without_a_scheduler_runs_its_body_and_gives_its_failure);
    RUN(a_body_sees_the_handlers_around_its_scope);
    RUN(a_failure_cancels_siblings_and_body_and_each_unwinds);
    RUN(a_body_that_fails_cancels_its_tasks_and_one_that_returns_waits_for_them);
    RUN(a_failure_while_unwinding_is_kept);
    RUN(a_failure_comes_before_those_of_its_cleanups);
    RUN(a_failure_with_the_code_of_a_cancel_is_a_failure);
    RUN(a_cleanup_that_fails_is_a_mistake);
    RUN(a_failure_of_the_first_task_is_what_the_run_returns);
    RUN(a_task_that_fails_has_no_result);
    RUN(a_body_that_is_unwound_has_no_result);
    RUN(a_cancel_comes_with_the_next_wait_and_ends_at_its_scope);
    RUN(a_cancel_goes_down_the_tree_and_inner_scopes_are_waited_for);
    RUN(who_asked_for_it_gets_a_code_instead_of_unwinding);
    RUN(a_cleanup_that_waits_is_refused_unless_it_is_shielded);
    RUN(a_deadline_cancels_a_scope_that_has_not_ended);
    RUN(a_deadline_is_no_error_where_it_cuts_nothing_short);
    RUN(a_cancel_reaches_who_waits_for_tasks_that_are_late);
    RUN(what_is_read_when_the_deadline_passes_is_not_lost);
    RUN(a_cancelled_join_leaves_nothing_behind);
    RUN(a_scope_that_another_effect_unwinds_ends_its_tasks_first);
    RUN(all_of_these_and_the_first_of_these);
    RUN(who_is_cancelled_while_it_waits_for_calls_does_not_go_on);
    RUN(scopes_may_be_as_deep_as_there_is_memory_for);
    RUN(a_cancel_is_told_at_once_to_who_wants_to_know);
    RUN(no_options_are_zeroed_ones);
    RUN(what_ends_a_run_is_printed_with_its_message);
    RUN(a_scope_without_a_body_waits_for_its_tasks_or_cancels_them);
    RUN(a_scope_without_a_body_may_be_opened_further_out);
    RUN(a_scope_may_say_where_tasks_go_that_are_spawned_in_it);
    RUN(a_task_whose_scope_has_no_memory_is_not_spawned);
    RUN(mistakes_with_scopes_without_a_body_are_named);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
