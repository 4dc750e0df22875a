/* Tasks: spawning, joining, order, names, values, sleeping. */
#include "check_io.h"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/stat.h>

static char order[64];
static void note(const char *what) {
    strncat(order, what, sizeof order - strlen(order) - 1);
}

static void *note_argument(void *text) {
    note(text);
    return NULL;
}

BODY(spawn_three) {
    order[0] = '\0';
    haft_io_spawn(note_argument, "a");
    haft_io_spawn(note_argument, "b");
    haft_io_spawn(note_argument, "c");
    note("m");
    return NULL;
}
static void tasks_start_in_the_order_of_spawning_and_the_run_waits_for_them(void) {
    CHECK_RUNS(spawn_three);
    CHECK_SAME_TEXT(order, "mabc");
}

static void *double_it(void *argument) {
    haft_io_yield();
    return check_number((intptr_t)argument * 2);
}
BODY(join_three) {
    haft_io_task_t *tasks[3];
    for (intptr_t i = 0; i < 3; i++)
        tasks[i] = haft_io_async(double_it, check_number(i + 1));
    for (int i = 2; i >= 0; i--) {
        void *result = NULL;
        CHECK_EQUAL(haft_io_join(tasks[i], &result), 0);
        CHECK_EQUAL((intptr_t)result, (i + 1) * 2);
    }
    return NULL;
}
static void a_join_gives_the_result_whether_the_task_has_ended_or_not(void) {
    CHECK_RUNS(join_three);
}

static void *fail(void *argument) {
    haft_io_fail(-EIO, "in vain");
    return argument;
}
static void *join_it(void *task) {
    void *result = &result;
    CHECK_EQUAL(haft_io_join(task, &result), -EIO);
    CHECK(result == NULL);
    return NULL;
}
/* The failure cancels the scope. */
static void *join_who_fails(void *unused) {
    haft_io_shield(join_it, haft_io_async(fail, NULL));
    return unused;
}
BODY(join_what_could_not_be_started) {
    void *result = &result;
    CHECK_EQUAL(haft_io_join(NULL, &result), -ENOMEM);
    CHECK(result == NULL);
    CHECK_EQUAL(haft_io_join(NULL, NULL), -ENOMEM);
    return NULL;
}
static void a_join_of_none_says_that_there_was_no_memory(void) {
    CHECK_RUNS(join_what_could_not_be_started);
}

BODY(join_without_a_result) {
    CHECK_EQUAL(haft_io_scope(join_who_fails, NULL, NULL), -EIO);
    return NULL;
}
static void who_has_failed_has_no_result(void) {
    CHECK_RUNS(join_without_a_result);
}

static bool older_has_run;
static void *note_that_it_ran(void *argument) {
    older_has_run = true;
    return argument;
}
static void *return_it(void *argument) {
    return argument;
}
BODY(join_and_join) {
    older_has_run = false;
    haft_io_spawn(note_that_it_ran, NULL);
    for (int i = 0; i < 100000 && !older_has_run; i++)
        CHECK_EQUAL(haft_io_join(haft_io_async(return_it, NULL), NULL), 0);
    CHECK(older_has_run);
    return NULL;
}
static void who_spawns_and_joins_for_ever_does_not_keep_older_tasks_waiting(void) {
    CHECK_RUNS(join_and_join);
}

static int started_before_the_sleeper_ended, started;
BODY(sleep_a_tick) {
    haft_io_sleep_until(haft_io_now());
    started_before_the_sleeper_ended = started;
    return NULL;
}
static void *start_late(void *time) {
    while (haft_io_now() < *(const int64_t *)time)
        continue;
    started++;
    return NULL;
}
BODY(spawn_more_and_more) {
    started = 0;
    haft_io_spawn(sleep_a_tick, NULL);
    haft_io_yield();
    int64_t later = haft_io_now() + HAFT_IO_MILLISECOND;
    for (int i = 0; i < 1000; i++)
        haft_io_async(start_late, &later);
    haft_io_yield(); /* all others go first, also the sleeper */
    CHECK_EQUAL(started, 1000);
    return NULL;
}
static void a_task_that_a_timer_has_woken_goes_on_before_all_new_ones_have_started(void) {
    CHECK_RUNS(spawn_more_and_more);
    CHECK(started_before_the_sleeper_ended < 1000);
}

BODY(leave_unjoined) {
    for (int i = 0; i < check_times(1000); i++)
        haft_io_async(double_it, NULL);
    return NULL;
}
static void a_task_that_nobody_joins_is_released_with_its_scope(void) {
    CHECK_RUNS(leave_unjoined);
}

static void *count_up(void *counter) {
    for (int i = 0; i < 3; i++) {
        note(counter);
        haft_io_yield();
    }
    return NULL;
}
BODY(take_turns) {
    order[0] = '\0';
    haft_io_spawn(count_up, "x");
    haft_io_spawn(count_up, "y");
    return NULL;
}
static void tasks_that_yield_take_turns(void) {
    CHECK_RUNS(take_turns);
    CHECK_SAME_TEXT(order, "xyxyxy");
}

/* ---- Yields in a row ---- */

static atomic_bool turns_end;
static atomic_int last_turn, turns, turns_out_of_order;
static void *take_turns_until_the_end(void *number) {
    for (; !turns_end; turns++) {
        if (atomic_exchange(&last_turn, (int)(intptr_t)number) == (int)(intptr_t)number)
            turns_out_of_order++;
        errno = (int)(intptr_t)number;
        CHECK_EQUAL(haft_io_yield(), 0);
        CHECK_EQUAL(errno, (intptr_t)number);
    }
    return NULL;
}
static int turn_ends[2];
static void *write_one(void *unused) {
    CHECK_EQUAL(haft_io_write(turn_ends[1], "x", 1), 1);
    return unused;
}
/* Whatever a task may wait for comes while the others yield. */
static void *wait_beside_turns(void *with_another_thread) {
    char byte;
    turns_end = false;
    last_turn = turns = turns_out_of_order = 0;
    CHECK_EQUAL(pipe(turn_ends), 0);
    for (intptr_t i = 1; i <= 2; i++)
        haft_io_spawn(take_turns_until_the_end, check_number(i));
    for (int i = 0; i < 3; i++) {
        int before = turns;
        do
            haft_io_sleep(HAFT_IO_MILLISECOND);
        while (turns == before && with_another_thread == NULL); /* the time is over at once */
        haft_io_task_t *writer = haft_io_async(write_one, NULL);
        CHECK_EQUAL(haft_io_read(turn_ends[0], &byte, 1), 1);
        CHECK_EQUAL(haft_io_join(writer, NULL), 0);
    }
    turns_end = true;
    for (int i = 0; i < 2; i++)
        CHECK_EQUAL(haft_io_close(turn_ends[i]), 0);
    return NULL;
}
static void tasks_that_yield_in_turn_let_all_others_go_on(void) {
    CHECK_RUNS(wait_beside_turns);
    CHECK_EQUAL(turns_out_of_order, 0);
    const haft_io_run_options_t on_two = {.threads = 2};
    CHECK_EQUAL(haft_io_run_with(&on_two, wait_beside_turns, check_number(1)), 0);
}

static void *yield_for_ever(void *unused) {
    while (haft_io_yield() == 0)
        turns++;
    return unused;
}
static void *yield_by_two(void *unused) {
    haft_io_spawn(yield_for_ever, NULL);
    return yield_for_ever(unused);
}
BODY(yield_for_a_moment) {
    const haft_io_scope_options_t options = {.deadline = haft_io_now() + HAFT_IO_MILLISECOND};
    CHECK_EQUAL(haft_io_scope_with(&options, yield_by_two, NULL, NULL), -ETIMEDOUT);
    return NULL;
}
static void a_cancel_reaches_tasks_that_yield_in_turn(void) {
    CHECK_RUNS(yield_for_a_moment);
}

static int answered;
static int answer_yield(void *unused, HAFT_PAYLOAD(haft_io_yield) * payload) {
    (void)unused, (void)payload;
    answered++;
    return 0;
}
HAFT_HANDLER(answers_yields, NULL, HAFT_TAIL(haft_io_yield, answer_yield));
static void *yield_ten_times(void *unused) {
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(haft_io_yield(), 0);
    return unused;
}
static void *yield_to_the_program(void *unused) {
    yield_ten_times(NULL);
    int before = turns;
    answered = 0;
    haft_handle(&answers_yields, NULL, yield_ten_times, NULL);
    CHECK_EQUAL(answered, 10);
    haft_io_block_thread(yield_ten_times, NULL);
    CHECK_EQUAL(turns, before);
    yield_ten_times(NULL);
    CHECK_EQUAL(turns, before + 10);
    turns_end = true;
    return unused;
}
BODY(yield_beside_one) {
    turns_end = false;
    turns = 0;
    haft_io_spawn(take_turns_until_the_end, check_number(1));
    yield_to_the_program(NULL);
    return NULL;
}
static void a_yield_that_the_program_handles_lets_no_other_task_go_on(void) {
    CHECK_RUNS(yield_beside_one);
}

static int64_t start; /* after all of them have begun to sleep, also under load */
static void *sleep_and_note(void *text) {
    haft_io_sleep_until(start + (((const char *)text)[0] - '0') * 3 * HAFT_IO_MILLISECOND);
    note(text);
    return NULL;
}
BODY(sleep_sort) {
    order[0] = '\0';
    start = haft_io_now() + 200 * HAFT_IO_MILLISECOND;
    haft_io_spawn(sleep_and_note, "3");
    haft_io_spawn(sleep_and_note, "1");
    haft_io_spawn(sleep_and_note, "2");
    return NULL;
}
static void sleepers_wake_in_the_order_of_their_times(void) {
    CHECK_RUNS(sleep_sort);
    CHECK_SAME_TEXT(order, "123");
}

BODY(sleep_a_little) {
    int64_t before = haft_io_now();
    CHECK_EQUAL(haft_io_sleep(2 * HAFT_IO_MILLISECOND), 0);
    CHECK(haft_io_now() - before >= 2 * HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_sleep(0), 0);
    CHECK_EQUAL(haft_io_sleep_until(-5), 0);
    return NULL;
}
static void nobody_wakes_early_with_a_scheduler_or_without(void) {
    CHECK_RUNS(sleep_a_little);
    sleep_a_little(NULL);
}

/* Very many timers at once, of which each second one is cancelled. */
static int sleepers, slept_well;
static int64_t time_of(intptr_t sleeper) {
    return start + (100 + sleeper * 7919 % 100) * HAFT_IO_MILLISECOND;
}
static void *sleep_one_of_many(void *sleeper) {
    haft_io_sleep_until(time_of((intptr_t)sleeper));
    slept_well += haft_io_now() >= time_of((intptr_t)sleeper) && (intptr_t)sleeper % 2 == 0;
    return NULL;
}
static void *start_each_second(void *first) {
    for (int i = (intptr_t)first != 0; i < sleepers; i += 2)
        haft_io_spawn(sleep_one_of_many, check_number(i));
    return NULL;
}
BODY(start_each_second_and_cancel) {
    start_each_second(check_number(1));
    haft_io_sleep_until(start + 50 * HAFT_IO_MILLISECOND);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(start_very_many_sleepers) {
    start = haft_io_now() + HAFT_IO_SECOND;
    sleepers = check_times(20000); /* fewer than an older kernel guards stacks */
    slept_well = 0;
    start_each_second(check_number(0));
    CHECK_EQUAL(haft_io_scope(start_each_second_and_cancel, NULL, NULL), -ECANCELED);
    return NULL;
}
static void very_many_sleepers_wake_in_time_or_are_cancelled(void) {
    CHECK_RUNS(start_very_many_sleepers);
    CHECK_EQUAL(slept_well, (sleepers + 1) / 2);
}

static void *sleep_until_the_past(void *text) {
    CHECK_EQUAL(haft_io_sleep_until(-5), 0);
    note(text);
    return NULL;
}
BODY(sleep_until_the_past_by_turns) {
    order[0] = '\0';
    haft_io_spawn(sleep_until_the_past, "x");
    haft_io_spawn(note_argument, "y");
    return NULL;
}
static void a_time_that_has_passed_is_not_waited_for(void) {
    CHECK_RUNS(sleep_until_the_past_by_turns);
    CHECK_SAME_TEXT(order, "xy");
}
BODY(sleep_until_the_past_for_ever) {
    older_has_run = false;
    haft_io_spawn(note_that_it_ran, NULL);
    for (int i = 0; i < 100000 && !older_has_run; i++)
        CHECK_EQUAL(haft_io_sleep_until(-5), 0);
    CHECK(older_has_run);
    return NULL;
}
static void who_sleeps_until_the_past_for_ever_does_not_keep_others_waiting(void) {
    CHECK_RUNS(sleep_until_the_past_for_ever);
}
BODY(sleep_until_the_past_when_cancelled) {
    haft_io_return_cancels(true);
    haft_io_scope_cancel(haft_io_this_scope());
    CHECK_EQUAL(haft_io_sleep_until(-5), -ECANCELED);
    return NULL;
}
BODY(open_and_sleep_until_the_past) {
    CHECK_EQUAL(haft_io_scope(sleep_until_the_past_when_cancelled, NULL, NULL), -ECANCELED);
    return NULL;
}
static void a_sleep_until_the_past_is_refused_like_any_other(void) {
    CHECK_RUNS(open_and_sleep_until_the_past);
}

static const char key, other_key;
BODY(see_inherited) {
    CHECK_SAME_TEXT(haft_io_task_name(haft_io_self()), "family");
    CHECK_EQUAL((intptr_t)haft_io_local_get(&key), 1);
    haft_io_local_set(&key, check_number(2));
    CHECK_EQUAL((intptr_t)haft_io_local_get(&key), 2);
    haft_io_task_set_name("child");
    return NULL;
}
BODY(pass_on) {
    CHECK(haft_io_local_get(&key) == NULL);
    haft_io_task_set_name("family");
    haft_io_local_set(&key, check_number(1));
    haft_io_local_set(&other_key, check_number(7));
    haft_io_task_t *task = haft_io_async(see_inherited, NULL);
    haft_io_local_set(&key, check_number(3));
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&key), 3);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&other_key), 7);
    CHECK_SAME_TEXT(haft_io_task_name(haft_io_self()), "family");
    return NULL;
}
static void names_and_values_are_inherited_and_changes_stay_with_the_task(void) {
    CHECK_RUNS(pass_on);
}

static int released[3];
static void release(void *value) {
    released[(intptr_t)value]++;
}
BODY(wait_with_values) {
    haft_io_event_wait(argument);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&key), 1);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&other_key), 7);
    return NULL;
}
BODY(give_values) {
    haft_io_event_t ends = {0};
    CHECK_EQUAL(haft_io_local_give(&key, check_number(1), release), 0);
    haft_io_local_set(&other_key, check_number(7));
    haft_io_task_t *task = haft_io_async(wait_with_values, &ends);
    haft_io_local_set(&other_key, check_number(8)); /* what stands before it is copied */
    CHECK_EQUAL(haft_io_local_give(&key, check_number(2), release), 0);
    CHECK_EQUAL(released[1], 0);
    haft_io_event_set(&ends);
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    CHECK_EQUAL(released[1], 1);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&key), 2);
    haft_io_local_set(&key, NULL);
    CHECK_EQUAL(released[2], 1);
    CHECK_EQUAL(haft_io_local_give(&key, check_number(2), release), 0);
    haft_io_join(haft_io_async(check_nothing, NULL), NULL);
    CHECK_EQUAL(released[2], 1);
    return NULL;
}
static void a_value_that_was_given_is_released_with_the_last_task_that_has_it(void) {
    memset(released, 0, sizeof released);
    CHECK_RUNS(give_values);
    CHECK_EQUAL(released[1], 1);
    CHECK_EQUAL(released[2], 2);
}

static void *keep_errno(void *argument) {
    for (int i = 0; i < 10; i++) {
        errno = (int)(intptr_t)argument;
        if (i % 2 == 0)
            haft_io_sleep(HAFT_IO_MILLISECOND / 10);
        else
            haft_io_yield();
        CHECK_EQUAL(errno, (intptr_t)argument);
    }
    return NULL;
}
BODY(two_errnos) {
    haft_io_spawn(keep_errno, check_number(11));
    haft_io_spawn(keep_errno, check_number(22));
    return NULL;
}
static void errno_is_the_tasks_own(void) {
    CHECK_RUNS(two_errnos);
}

static void *spawn_tree(void *depth) {
    if ((intptr_t)depth == 0)
        return check_number(1);
    haft_io_task_t *left = haft_io_async(spawn_tree, check_number((intptr_t)depth - 1));
    haft_io_task_t *right = haft_io_async(spawn_tree, check_number((intptr_t)depth - 1));
    void *a, *b;
    haft_io_join(left, &a);
    haft_io_join(right, &b);
    return check_number((intptr_t)a + (intptr_t)b);
}
BODY(grow_tree) {
    intptr_t depth =
        check_bare() ? 10 : 5; /* Valgrind's time goes with the square of the stacks. */
    CHECK_EQUAL((intptr_t)spawn_tree(check_number(depth)), 1 << depth);
    return NULL;
}
static void a_tree_of_tasks_that_join_theirs_adds_up(void) {
    CHECK_RUNS(grow_tree);
}

static uint64_t numbers[3];
BODY(note_number) {
    numbers[0] = haft_io_run_number();
    return NULL;
}
BODY(note_numbers) {
    CHECK_EQUAL(haft_io_join(haft_io_async(note_number, NULL), NULL), 0);
    CHECK_EQUAL(haft_io_run_number(), numbers[0]);
    CHECK(numbers[0] != 0 && numbers[0] != numbers[1] && numbers[0] != numbers[2]);
    numbers[2] = numbers[1];
    numbers[1] = numbers[0];
    return NULL;
}
static void a_run_has_a_number_of_its_own(void) {
    CHECK_RUNS(note_numbers);
    CHECK_EQUAL(haft_io_simulate(note_numbers, NULL), 0);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, note_numbers, NULL), 0);
    CHECK_EQUAL(haft_io_run_number(), 0);
}

static haft_io_event_t before_sleep;
static int sleeps, wakes;
static bool note_sleep(void) {
    sleeps++;
    if (before_sleep.set)
        return true;
    haft_io_event_set(&before_sleep);
    return false;
}
static void note_wake(void) {
    wakes++;
}
BODY(sleep_with_notes) {
    static const haft_io_around_sleep_t around = {note_sleep, note_wake};
    CHECK_EQUAL(haft_io_set_around_sleep(&around), 0);
    CHECK_EQUAL(haft_io_event_wait(&before_sleep), 0);
    CHECK(sleeps == 1 && wakes == 0);
    CHECK_EQUAL(haft_io_sleep(HAFT_IO_MILLISECOND), 0);
    CHECK(sleeps >= 2 && wakes == sleeps - 1);
    CHECK_EQUAL(haft_io_set_around_sleep(NULL), 0);
    return NULL;
}
BODY(sleep_without_notes) {
    static const haft_io_around_sleep_t around = {note_sleep, note_wake};
    CHECK_EQUAL(haft_io_set_around_sleep(&around), -EINVAL);
    return NULL;
}
static void a_binding_is_told_before_and_after_each_sleep(void) {
    CHECK_EQUAL(haft_io_set_around_sleep(NULL), -ESRCH);
    CHECK_RUNS(sleep_with_notes);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, sleep_without_notes, NULL),
                0);
}

BODY(wait_twice) {
    haft_io_return_cancels(true);
    CHECK_EQUAL(haft_io_sleep(1000 * HAFT_IO_SECOND), -ECANCELED);
    CHECK_EQUAL(haft_io_sleep(HAFT_IO_MILLISECOND), 0);
    return NULL;
}
BODY(interrupt_another) {
    haft_io_task_t *task = haft_io_async(wait_twice, NULL);
    CHECK_EQUAL(haft_io_interrupt(task), -EAGAIN); /* it has not begun */
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK_EQUAL(haft_io_interrupt(haft_io_self()), -EAGAIN);
    CHECK_EQUAL(haft_io_interrupt(task), 0);
    CHECK_EQUAL(haft_io_interrupt(task), -EAGAIN); /* it is ready */
    CHECK_EQUAL(haft_io_join(task, NULL), 0);
    return NULL;
}
BODY(interrupt_in_a_shared_run) {
    CHECK_EQUAL(haft_io_interrupt(haft_io_self()), -EINVAL);
    return NULL;
}
static void a_binding_ends_one_wait_of_a_task(void) {
    CHECK_RUNS(interrupt_another);
    CHECK_EQUAL(haft_io_simulate(interrupt_another, NULL), 0);
    CHECK_EQUAL(
        haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, interrupt_in_a_shared_run, NULL),
        0);
}

typedef struct counting_gate {
    haft_io_gate_t gate;
    haft_io_gate_t *outer;
    int left, entered;
} counting_gate_t;
static void count_leave(haft_io_gate_t *gate) {
    counting_gate_t *counting = (counting_gate_t *)(void *)gate;
    counting->left++;
    if (counting->outer != NULL)
        counting->outer->leave(counting->outer);
}
static haft_io_event_t *count_enter(haft_io_gate_t *gate) {
    counting_gate_t *counting = (counting_gate_t *)(void *)gate;
    counting->entered++;
    return counting->outer != NULL ? counting->outer->enter(counting->outer) : NULL;
}
BODY(set_gates) {
    counting_gate_t outer = {.gate = {count_leave, count_enter}}, inner = outer;
    CHECK(haft_io_gate_set(&outer.gate) == NULL);
    haft_io_sleep(1);
    inner.outer = haft_io_gate_set(&inner.gate);
    CHECK(inner.outer == &outer.gate);
    haft_io_sleep(1);
    CHECK(haft_io_gate_set(inner.outer) == &inner.gate);
    haft_io_sleep(1);
    CHECK(haft_io_gate_set(NULL) == &outer.gate);
    haft_io_sleep(1);
    CHECK(haft_io_gate_set(NULL) == NULL);
    CHECK_EQUAL(inner.left, 1);
    CHECK_EQUAL(inner.entered, 1);
    CHECK_EQUAL(outer.left, 3);
    CHECK_EQUAL(outer.entered, 3);
    return NULL;
}
static void a_gate_is_set_around_another(void) {
    CHECK_RUNS(set_gates);
}

static const char *awaited_backend;
BODY(check_backend_of_task) {
    CHECK_SAME_TEXT(haft_io_backend(), awaited_backend);
    return NULL;
}
static void check_backend_of(const haft_io_run_options_t *options) {
    awaited_backend = options->backend;
    CHECK_EQUAL(haft_io_run_with(options, check_backend_of_task, NULL), 0);
}
static void a_task_knows_the_back_end_of_its_thread(void) {
    check_everywhere(check_backend_of);
    awaited_backend = "simulation";
    CHECK_EQUAL(haft_io_simulate(check_backend_of_task, NULL), 0);
    CHECK(haft_io_backend() == NULL);
}

/* Libraries with handles of their own do so: each task leaves its sum, and sets an event. */
typedef struct node {
    intptr_t depth, sum;
    haft_io_event_t ended;
    haft_io_task_t *task;
} node_t;
enum { CHILDREN = 5 };
static int begun, most_begun; /* tasks that have not ended */

static void *sum_children(void *argument) {
    node_t *node = argument, children[CHILDREN];
    int now = __atomic_add_fetch(&begun, 1, __ATOMIC_RELAXED);
    if (now > __atomic_load_n(&most_begun, __ATOMIC_RELAXED))
        __atomic_store_n(&most_begun, now, __ATOMIC_RELAXED);
    node->sum = node->depth == 0;
    for (int i = 0; i < CHILDREN && node->depth != 0; i++) {
        children[i] = (node_t){.depth = node->depth - 1};
        children[i].task = haft_io_spawn_known(NULL, sum_children, &children[i]);
        CHECK(children[i].task != NULL);
    }
    for (int i = 0; i < CHILDREN && node->depth != 0; i++) {
        CHECK_EQUAL(haft_io_event_wait_for(&children[i].ended, children[i].task), 0);
        node->sum += children[i].sum;
    }
    __atomic_sub_fetch(&begun, 1, __ATOMIC_RELAXED);
    haft_io_event_set(&node->ended);
    return NULL;
}
BODY(sum_tree) {
    bool bare = check_bare();
    node_t root = {.depth = bare ? 5 : 3};
    most_begun = begun = 0;
    root.task = haft_io_spawn_known(NULL, sum_children, &root);
    CHECK_EQUAL(haft_io_event_wait_for(&root.ended, root.task), 0);
    CHECK_EQUAL(root.sum, bare ? 3125 : 125);
    return NULL;
}
/* Level by level, nearly all of the 3,906 would have begun before the first ends. */
static void a_tree_of_tasks_that_set_events_begins_a_branch_at_a_time(void) {
    CHECK_RUNS(sum_tree);
    CHECK(most_begun <= 40);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, sum_tree, NULL), 0);
    CHECK(most_begun <= 400);
}

static haft_io_event_t has_told;
BODY(tell) {
    haft_io_event_set(&has_told);
    return NULL;
}
static void *wait_for_teller(void *teller) {
    CHECK_EQUAL(haft_io_event_wait_for(&has_told, teller), 0);
    return NULL;
}
/* There the task is not the waiter's to start. */
static void *wait_elsewhere(void *teller) {
    wait_for_teller(teller);
    CHECK_EQUAL(haft_io_run(wait_for_teller, teller), 0);
    return NULL;
}
static void *wait_in_a_run_elsewhere(void *teller) {
    CHECK_EQUAL(haft_io_run(wait_for_teller, teller), 0);
    return NULL;
}
BODY(wait_for_tellers) {
    void *(*const others[])(void *) = {NULL, wait_elsewhere, wait_in_a_run_elsewhere};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        haft_io_event_clear(&has_told);
        haft_io_task_t *teller = haft_io_spawn_known(NULL, tell, NULL);
        if (others[i] != NULL)
            CHECK_EQUAL(pthread_create(&thread, NULL, others[i], teller), 0);
        for (int j = 0; j < 100 && others[i] != NULL; j++)
            sched_yield();
        wait_for_teller(teller);
        wait_for_teller(teller); /* which is not looked at */
        wait_for_teller(NULL);
        if (others[i] != NULL)
            CHECK_EQUAL(pthread_join(thread, NULL), 0);
    }
    return NULL;
}
static void a_wait_for_a_task_ends_with_its_event_wherever_the_task_is(void) {
    CHECK_RUNS(wait_for_tellers);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, wait_for_tellers, NULL),
                0);
}

/* The waiter keeps a place in the queue, and leaves it. */
static void *be_cancelled(void *never) {
    haft_io_task_t *idle = haft_io_spawn_known(NULL, check_nothing, NULL);
    haft_io_return_cancels(true);
    CHECK_EQUAL(haft_io_event_wait_for(never, idle), -ECANCELED);
    idle = haft_io_spawn_known(NULL, check_nothing, NULL);
    CHECK_EQUAL(haft_io_event_wait_for(never, idle), -ECANCELED); /* it does not wait */
    return NULL;
}
static void *cancel_waits(void *never) {
    for (int i = 0; i < 3; i++)
        haft_io_spawn(be_cancelled, never);
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return be_cancelled(never);
}
static void a_wait_for_a_task_is_cancelled(void) {
    CHECK_EQUAL(haft_io_run(cancel_waits, &(haft_io_event_t){0}), -ECANCELED);
}

BODY(do_nothing) {
    return NULL;
}
BODY(run_inside) {
    CHECK_EQUAL(haft_io_run(do_nothing, NULL), -EBUSY);
    return NULL;
}
static void an_empty_choice_of_a_backend_is_none(void) {
    const char *given = getenv("HAFT_IO_BACKEND");
    char *before = given != NULL ? strdup(given) : NULL;
    setenv("HAFT_IO_BACKEND", "", 1);
    CHECK_EQUAL(haft_io_run(do_nothing, NULL), 0);
    if (before != NULL)
        setenv("HAFT_IO_BACKEND", before, 1);
    else
        unsetenv("HAFT_IO_BACKEND");
    free(before);
}
static void run_on_no_backend(void) {
    setenv("HAFT_IO_BACKEND", "carrier pigeon", 1);
    CHECK_EQUAL(haft_io_run(do_nothing, NULL), -EINVAL);
}
static void an_unknown_backend_of_the_environment_is_named(void) {
    check_child_t child = check_child(run_on_no_backend);
    CHECK_EQUAL(child.signal, 0);
    CHECK_EQUAL(child.status, 0);
    CHECK(strcmp(child.output,
                 "haft-io: no run begins with HAFT_IO_BACKEND=carrier pigeon: there is no such "
                 "back end. Set epoll, io_uring where the library has it, or nothing for the "
                 "best.\n") == 0);
}
static void a_run_inside_a_run_and_an_unknown_backend_are_refused(void) {
    CHECK_RUNS(run_inside);
    CHECK_EQUAL(
        haft_io_run_with(&(haft_io_run_options_t){.backend = "carrier pigeon"}, do_nothing, NULL),
        -EINVAL);
    CHECK_RUNS(do_nothing);
}

static void spawn_outside(void) {
    haft_io_spawn(do_nothing, NULL);
}
BODY(join_itself) {
    haft_io_join(haft_io_self(), NULL);
    return NULL;
}
static void run_join_itself(void) {
    haft_io_run(join_itself, NULL);
}
BODY(join_twice) {
    haft_io_task_t *task = haft_io_async(do_nothing, NULL);
    haft_io_join(task, NULL);
    haft_io_join(task, NULL);
    return NULL;
}
static void run_join_twice(void) {
    haft_io_run(join_twice, NULL);
}
BODY(wait_for_event) {
    haft_io_event_wait(argument);
    return NULL;
}
BODY(set_while_others_share) {
    static const char keys[4];
    haft_io_event_t ends = {0};
    for (int i = 0; i < 4; i++)
        haft_io_local_set(&keys[i], check_number(i + 1));
    haft_io_spawn(wait_for_event, &ends);
    size_t before = mallinfo2().uordblks;
    /* Each value is inherited by a task that ends, and the first ones by one that stays. */
    for (int i = 1; i <= 20000; i++) {
        haft_io_local_set(&keys[i % 4], check_number(i));
        haft_io_join(haft_io_async(check_nothing, NULL), NULL);
        if (i % 3 == 0)
            haft_io_local_set(&keys[i % 4], NULL);
    }
    CHECK(mallinfo2().uordblks < before + 4096);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&keys[0]), 20000);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&keys[3]), 19999);
    haft_io_event_set(&ends);
    return NULL;
}
static void values_that_are_set_again_and_again_take_no_more_memory(void) {
    CHECK_RUNS(set_while_others_share);
}

static const char first_key, second_key, third_key;
BODY(change_inherited) {
    haft_io_local_set(&first_key, check_number(10));
    haft_io_local_set(&second_key, NULL);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&first_key), 10);
    CHECK(haft_io_local_get(&second_key) == NULL);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&third_key), 3);
    return NULL;
}
BODY(let_change_inherited) {
    haft_io_local_set(&first_key, check_number(1));
    haft_io_local_set(&second_key, check_number(2));
    haft_io_local_set(&third_key, check_number(3));
    haft_io_join(haft_io_async(change_inherited, NULL), NULL);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&first_key), 1);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&second_key), 2);
    CHECK_EQUAL((intptr_t)haft_io_local_get(&third_key), 3);
    return NULL;
}
static void a_value_behind_others_is_changed_and_removed_for_one_task_only(void) {
    CHECK_RUNS(let_change_inherited);
}

BODY(wait_in_child) {
    if (fork() == 0) {
        haft_io_sleep(HAFT_IO_MILLISECOND);
        _exit(0);
    }
    int status;
    CHECK(wait(&status) > 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return NULL;
}
BODY(read_in_child) {
    int pipe_ends[2];
    char byte;
    CHECK_EQUAL(haft_io_pipe(pipe_ends), 0);
    if (fork() == 0) {
        haft_io_read(pipe_ends[0], &byte, 1);
        _exit(0);
    }
    int status;
    CHECK(wait(&status) > 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    haft_io_close(pipe_ends[0]);
    haft_io_close(pipe_ends[1]);
    return NULL;
}
static void run_read_in_child(void) {
    haft_io_run(read_in_child, NULL);
}

/* Operations that are done at once, and closes, in a child: none of them reaches a task that waits
   in the parent. */
static int between[2];
static void *read_a_byte(void *unused) {
    char byte = 0;
    CHECK_EQUAL(haft_io_read(between[0], &byte, 1), 1);
    CHECK_EQUAL(byte, 'x');
    return unused;
}
static void *accept_one(void *listener) {
    HAFT_IO_SCOPED_DESCRIPTOR int connection = haft_io_accept((int)(intptr_t)listener);
    CHECK(connection >= 0);
    return NULL;
}
static pid_t ready_has_run_in;
static void *run_when_ready(void *unused) {
    ready_has_run_in = getpid();
    return unused;
}
static void count_call(void *calls) {
    ++*(int *)calls;
}
static void use_in_child(int listener) {
    int own[2], calls = 0;
    char byte = 0;
    CHECK_EQUAL(haft_io_close(between[0]), 0);
    CHECK_EQUAL(haft_io_close(listener), 0);
    CHECK_EQUAL(haft_io_pipe(own), 0);
    CHECK_EQUAL(haft_io_write(own[1], "y", 1), 1);
    CHECK_EQUAL(haft_io_read(own[0], &byte, 1), 1);
    CHECK_EQUAL(haft_io_poll(&(struct pollfd){own[0], POLLIN, 0}, 1, 0), 0);
    for (int i = 0; i < 100; i++) /* the parent's tasks do not go on here in between */
        CHECK(haft_io_write(own[1], "z", 1) == 1 && haft_io_read(own[0], &byte, 1) == 1);
    CHECK_EQUAL(haft_io_yield(), 0);
    CHECK(ready_has_run_in != getpid());
    CHECK_EQUAL(haft_io_close(own[0]), 0);
    CHECK_EQUAL(haft_io_close(own[1]), 0);
    CHECK_EQUAL(haft_io_call_blocking(count_call, &calls), 0);
    CHECK_EQUAL(calls, 1);
    struct stat status;
    CHECK_EQUAL(haft_io_stat("/", &status), 0);
    int file = haft_io_open("/", O_RDONLY, 0);
    CHECK(file >= 0);
    CHECK_EQUAL(haft_io_close(file), 0);
    _exit(check_failures);
}
BODY(fork_beside_waits) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    CHECK_EQUAL(haft_io_pipe(between), 0);
    haft_io_task_t *reader = haft_io_async(read_a_byte, NULL);
    haft_io_task_t *acceptor = haft_io_async(accept_one, check_number(listener));
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_spawn(run_when_ready, NULL);
    pid_t child = fork();
    if (child == 0)
        use_in_child(listener);
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(haft_io_write(between[1], "x", 1), 1);
    CHECK_EQUAL(haft_io_join(reader, NULL), 0);
    HAFT_IO_SCOPED_DESCRIPTOR int connection =
        haft_io_connect_tcp("127.0.0.1", (uint16_t)haft_io_port(listener));
    CHECK(connection >= 0);
    CHECK_EQUAL(haft_io_join(acceptor, NULL), 0);
    haft_io_close(between[0]);
    haft_io_close(between[1]);
    return NULL;
}
static void a_child_of_fork_does_nothing_to_waits_of_its_parent(void) {
    if (RUNNING_ON_VALGRIND || !check_follows_children())
        return;
    CHECK_RUNS(fork_beside_waits);
    CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = 2}, fork_beside_waits, NULL),
                0);
}

/* The threads for blocking work, which wait for more, are not there. */
static void work_for_a_moment(void *unused) {
    (void)unused;
}
BODY(leave_in_child) {
    CHECK_EQUAL(haft_io_call_blocking(work_for_a_moment, NULL), 0);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        return NULL;
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    return NULL;
}
static void a_child_of_fork_leaves_the_run_that_has_done_blocking_work(void) {
    /* Memory of the parent's threads and its back end is not freed in the child. */
    if (RUNNING_ON_VALGRIND || !check_follows_children())
        return;
    pid_t parent = getpid();
    CHECK_RUNS(leave_in_child);
    if (getpid() != parent)
        _exit(check_failures);
}
/* The thread of the watchdog is not there, either. */
static void a_child_of_fork_leaves_the_run_that_has_a_watchdog(void) {
    if (RUNNING_ON_VALGRIND || !check_follows_children())
        return;
    pid_t parent = getpid();
    haft_io_run_options_t options = {.watchdog = HAFT_IO_SECOND};
    CHECK_EQUAL(haft_io_run_with(&options, leave_in_child, NULL), 0);
    if (getpid() != parent)
        _exit(check_failures);
}

static void run_wait_in_child(void) {
    haft_io_run(wait_in_child, NULL);
}
static void mistakes_are_named(void) {
    CHECK_ABORTS(spawn_outside, "A task is spawned outside of a scheduler");
    if (!check_follows_children())
        return;
    CHECK_ABORTS(run_join_itself, "cannot be joined: it would wait for itself");
    CHECK_ABORTS(run_join_twice, "it has been joined, or its scope has ended");
    check_child_t child = check_child(run_wait_in_child);
    CHECK_EQUAL(child.status, 0);
    CHECK_CONTAINS(child.output, "waits in a child of fork");
    if (RUNNING_ON_VALGRIND)
        return;
    child = check_child(run_read_in_child);
    CHECK_EQUAL(child.status, 0);
    CHECK_CONTAINS(child.output, "waits in a child of fork");
}

static jmp_buf before_the_mistake;
static char told[128];
static void leave(const haft_error_t *error) {
    CHECK_EQUAL(error->code, HAFT_ERROR_OF_LIBRARY);
    snprintf(told, sizeof told, "%s", error->message);
    longjmp(before_the_mistake, 1);
}
BODY(go_on_after_a_mistake) {
    haft_io_mutex_t mutex = {0};
    if (setjmp(before_the_mistake) == 0)
        haft_io_mutex_unlock(&mutex);
    CHECK_CONTAINS(told, "A mutex that is not locked was unlocked.");
    CHECK(haft_io_mutex_try_lock(&mutex));
    haft_io_mutex_unlock(&mutex);
    if (setjmp(before_the_mistake) == 0)
        haft_io_spawn(NULL, NULL);
    CHECK_CONTAINS(told, "A task needs a function to run");
    return NULL;
}
static void mistakes_go_to_the_error_handler_which_may_leave(void) {
    haft_set_error_handler(leave);
    CHECK_EQUAL(haft_io_run(go_on_after_a_mistake, NULL), 0);
    haft_set_error_handler(NULL);
}

/* A wait in a child of fork leaves nothing in the list of waiters: the frame that it would lie in
   is gone. */
static struct {
    haft_io_mutex_t mutex;
    haft_io_semaphore_t semaphore;
    haft_io_condition_t condition;
    haft_io_event_t event, released;
    haft_io_rwlock_t rwlock;
    haft_io_barrier_t barrier;
    haft_io_channel_t *empty, *full;
    int quiet[2];
    haft_io_task_t *waiter;
} in_child;
static void wait_for_mutex(void) {
    haft_io_mutex_lock(&in_child.mutex);
}
static void wait_for_semaphore(void) {
    haft_io_semaphore_acquire(&in_child.semaphore);
}
static void wait_for_condition(void) {
    haft_io_condition_wait(&in_child.condition, &in_child.mutex);
}
static void await_event(void) {
    haft_io_event_wait(&in_child.event);
}
static void wait_for_rwlock(void) {
    haft_io_rwlock_write_lock(&in_child.rwlock);
}
static void wait_at_barrier(void) {
    haft_io_barrier_wait(&in_child.barrier);
}
static void wait_to_receive(void) {
    haft_io_channel_receive(in_child.empty, &(int){0});
}
static void wait_to_send(void) {
    haft_io_channel_send(in_child.full, &(int){2});
}
static void wait_to_choose(void) {
    haft_io_select((haft_io_select_case_t[]){{.channel = in_child.empty, .receive = &(int){0}},
                                             {.channel = in_child.full, .send = &(int){2}}},
                   2);
}
static void wait_to_choose_or_read(void) {
    haft_io_select((haft_io_select_case_t[]){{.channel = in_child.empty, .receive = &(int){0}},
                                             {.event = &in_child.event},
                                             {.descriptor = in_child.quiet[0], .events = POLLIN}},
                   3);
}
static void wait_to_join(void) {
    haft_io_join(in_child.waiter, NULL);
}
static void leave_all_waits(void) {
    static void (*const waits[])(void) = {
        wait_for_mutex,  wait_for_semaphore,     wait_for_condition, await_event,
        wait_for_rwlock, wait_at_barrier,        wait_to_receive,    wait_to_send,
        wait_to_choose,  wait_to_choose_or_read, wait_to_join};
    haft_set_error_handler(leave);
    for (volatile size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        told[0] = '\0';
        if (setjmp(before_the_mistake) == 0)
            waits[i]();
        CHECK_CONTAINS(told, "waits in a child of fork");
    }
    CHECK(!haft_io_mutex_try_lock(&in_child.mutex)); /* The condition has not given it back. */
    CHECK(in_child.mutex.waiting.first == NULL);
    CHECK(in_child.semaphore.waiting.first == NULL);
    CHECK(in_child.condition.waiting.first == NULL);
    CHECK(in_child.event.waiting.first == NULL);
    CHECK(in_child.rwlock.waiting.first == NULL);
    CHECK(in_child.barrier.waiting.first == NULL);
    CHECK_EQUAL(in_child.barrier.arrived, 0);
    told[0] = '\0';
    if (setjmp(before_the_mistake) == 0) {
        haft_io_channel_free(in_child.empty);
        haft_io_channel_free(in_child.full);
    }
    CHECK(told[0] == '\0');
    /* It can be joined still, if not here. */
    if (setjmp(before_the_mistake) == 0)
        wait_to_join();
    CHECK_CONTAINS(told, "waits in a child of fork");
    _exit(check_failures);
}
BODY(wait_for_release) {
    haft_io_event_wait(&in_child.released);
    return NULL;
}
BODY(fork_to_leave_waits) {
    in_child.empty = haft_io_channel_new(sizeof(int), 1);
    in_child.full = haft_io_channel_new(sizeof(int), 1);
    CHECK_EQUAL(haft_io_channel_send(in_child.full, &(int){1}), 0);
    CHECK_EQUAL(haft_io_pipe(in_child.quiet), 0);
    in_child.barrier.needed = 2;
    haft_io_mutex_lock(&in_child.mutex);
    haft_io_rwlock_read_lock(&in_child.rwlock);
    in_child.waiter = haft_io_async(wait_for_release, NULL);
    pid_t child = fork();
    if (child == 0)
        leave_all_waits();
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    haft_io_event_set(&in_child.released);
    haft_io_rwlock_unlock(&in_child.rwlock);
    haft_io_mutex_unlock(&in_child.mutex);
    haft_io_close(in_child.quiet[0]);
    haft_io_close(in_child.quiet[1]);
    haft_io_channel_free(in_child.empty);
    haft_io_channel_free(in_child.full);
    return NULL;
}
static void who_waits_in_a_child_of_fork_and_leaves_leaves_nothing(void) {
    if (check_follows_children())
        CHECK_RUNS(fork_to_leave_waits);
}

/* ---- Very many tasks ---- */

static atomic_int cleaned;
static void clean(__attribute__((unused)) const int *unused) {
    cleaned++;
}
BODY(wait_with_a_cleanup) {
    __attribute__((cleanup(clean), unused)) int guard = 0;
    haft_io_sleep(HAFT_IO_FOREVER);
    return NULL;
}
static void *start_many_and_cancel(void *count) {
    for (intptr_t i = 0; i < (intptr_t)count; i++)
        CHECK_EQUAL(haft_io_spawn(wait_with_a_cleanup, NULL), 0);
    haft_io_yield();
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void very_many_tasks_wait_and_are_unwound_on_stacks_of_either_kind(void) {
    intptr_t count = check_times(40000); /* more records than the smaller blocks hold */
    for (int dense = 0; dense < 2; dense++) {
        cleaned = 0;
        haft_io_run_options_t options = {.threads = 1, .dense = dense != 0};
        CHECK_EQUAL(haft_io_run_with(&options, start_many_and_cancel, check_number(count)),
                    -ECANCELED);
        CHECK_EQUAL(cleaned, (int)count);
    }
}

/* ---- Large stacks ---- */

/* Uses frames of 64 KiB and more each. */
static int use_frames(int count) {
    volatile char frame[64 << 10];
    frame[0] = (char)count;
    return count == 0 ? 0 : use_frames(count - 1) + (frame[0] != (char)count);
}
BODY(use_3_megabytes) {
    CHECK_EQUAL(use_frames(48), 0);
    return NULL;
}
BODY(use_3_megabytes_in_a_scope) {
    use_3_megabytes(NULL);
    CHECK_EQUAL(haft_io_scope(use_3_megabytes, NULL, NULL), 0);
    return NULL;
}
static void the_body_of_a_scope_has_as_large_a_stack_as_its_task(void) {
    const haft_io_run_options_t options = {.threads = 1, .stack_size = 16 << 20};
    CHECK_EQUAL(haft_io_run_with(&options, use_3_megabytes_in_a_scope, NULL), 0);
}

/* ---- Stacks of one task ---- */

static const haft_io_task_options_t with_large = {.stack_size = 16 << 20};
static const haft_io_task_options_t with_small = {.stack_size = 1};

static void *use_3_megabytes_between_waits(void *unused) {
    use_3_megabytes_in_a_scope(unused);
    haft_io_sleep(1);
    CHECK_EQUAL(haft_io_yield(), 0);
    use_3_megabytes(NULL);
    return check_number(3);
}
static void *wait_on_a_large_stack(void *argument) {
    use_3_megabytes(NULL);
    return wait_with_a_cleanup(argument);
}
BODY(fail_on_a_large_stack) {
    haft_io_fail(-EIO, "on a large stack");
    return NULL;
}
static void *mix_stacks(void *unused) {
    haft_io_task_t *small = NULL, *large = NULL;
    for (int i = 0; i < 50; i++) {
        haft_io_spawn(do_nothing, NULL);
        small = haft_io_async_with(&with_small, check_nothing, &small);
        large = haft_io_async_with(&with_large, use_3_megabytes_between_waits, NULL);
        haft_io_spawn(do_nothing, NULL);
        void *result = NULL;
        CHECK_EQUAL(haft_io_join(large, &result), 0);
        CHECK_EQUAL((intptr_t)result, 3);
        CHECK_EQUAL(haft_io_join(small, &result), 0);
        CHECK(result == &small);
    }
    return unused;
}
static void *cancel_on_stacks(void *count) {
    for (intptr_t i = 0; i < (intptr_t)count; i++)
        CHECK_EQUAL(haft_io_spawn_with(i % 2 == 0 ? &with_large : NULL,
                                       i % 2 == 0 ? wait_on_a_large_stack : wait_with_a_cleanup,
                                       NULL),
                    0);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
static void *fail_on_stacks(void *unused) {
    haft_io_spawn_with(&with_large, fail_on_a_large_stack, NULL);
    haft_io_sleep(HAFT_IO_FOREVER);
    return unused;
}
BODY(ask_for_too_large_a_stack) {
    haft_io_task_options_t options = {.stack_size = SIZE_MAX};
    CHECK_EQUAL(haft_io_spawn_with(&options, do_nothing, NULL), 0);
    haft_io_sleep(HAFT_IO_FOREVER);
    return NULL;
}
static void *use_own_stacks(void *count) {
    mix_stacks(NULL);
    CHECK_EQUAL(haft_io_scope(mix_stacks, NULL, NULL), 0);
    CHECK_EQUAL(haft_io_scope(cancel_on_stacks, count, NULL), -ECANCELED);
    CHECK_EQUAL(haft_io_scope(fail_on_stacks, NULL, NULL), -EIO);
    return NULL;
}
static void a_task_may_have_a_stack_of_its_own(void) {
    for (int i = 0; i < 4; i++) {
        const haft_io_run_options_t options = {
            .threads = 1 + i % 2, .dense = i / 2 != 0, .stack_size = 64 << 10};
        CHECK_EQUAL(haft_io_run_with(&options, use_own_stacks, check_number(check_times(100))), 0);
    }
}
/* Smaller than the guard. */
static int use_small_frames(int count) {
    volatile char frame[1024];
    frame[0] = (char)count;
    return count == 0 ? 0 : use_small_frames(count - 1) + frame[0];
}
BODY(overflow_stack) {
    haft_io_task_set_name("deep");
    use_small_frames(1 << 20);
    return NULL;
}
BODY(overflow_own_stack) {
    haft_io_spawn_with(&with_small, overflow_stack, NULL);
    return NULL;
}
static void overflow(void) {
    haft_io_run_with(&(haft_io_run_options_t){.dense = true}, overflow_own_stack, NULL);
}
static void an_overflow_of_a_stack_of_its_own_names_its_size(void) {
    if (check_bare())
        CHECK_FAULTS(
            overflow,
            "the fiber 'a task, see haft_io_task_options_t.stack_size' has overflowed its "
            "stack of 16 KiB: too deep a recursion, or too large a local variable. It was the "
            "task 'deep'.");
}
static void a_stack_that_is_too_large_fails_the_scope(void) {
    CHECK_EQUAL(haft_io_run(ask_for_too_large_a_stack, NULL), -ENOMEM);
}

static haft_io_event_t told_end;
static void *tell_end(void *unused) {
    CHECK(haft_io_self() == NULL);
    haft_io_event_set(&told_end);
    return unused;
}
BODY(await_end) {
    told_end = (haft_io_event_t){0};
    const haft_io_task_options_t options = {.stack_size = SIZE_MAX, .even_without_stack = true};
    haft_io_task_t *task = haft_io_spawn_known(&options, tell_end, NULL);
    CHECK_EQUAL(haft_io_event_wait_for(&told_end, task), 0);
    return NULL;
}
static void a_task_tells_its_end_even_without_a_stack(void) {
    for (int threads = 1; threads <= 2; threads++)
        CHECK_EQUAL(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, await_end, NULL),
                    -ENOMEM);
}

HAFT_EFFECT(forgotten, void, {});

static void *perform_forgotten(void *unused) {
    HAFT_PERFORM(forgotten);
    return unused;
}
static void *spawn_forgetful(void *unused) {
    haft_io_spawn(perform_forgotten, NULL);
    return unused;
}
BODY(meet_an_unhandled_effect) {
    haft_io_failures_t failures = {0};
    haft_io_scope_options_t options = {.failures = &failures};
    CHECK_EQUAL(haft_io_scope_with(&options, spawn_forgetful, NULL, NULL), -ENOTSUP);
    CHECK_EQUAL(failures.count, 1);
    CHECK(strstr(failures.failures[0].message, "Nobody handles the effect 'forgotten' (") != NULL);
    CHECK_EQUAL(haft_io_scope(perform_forgotten, NULL, NULL), -ENOTSUP); /* a body is no other */
    return NULL;
}
static void an_effect_that_nobody_handles_fails_its_task_and_nothing_else(void) {
    CHECK_RUNS(meet_an_unhandled_effect);
}

int main(void) {
    check_backend();
    /* Valgrind looks for leaks in each child, for minutes where the others have used much
       memory. */
    RUN(mistakes_are_named);
    RUN(a_child_of_fork_does_nothing_to_waits_of_its_parent);
    RUN(a_child_of_fork_leaves_the_run_that_has_done_blocking_work);
    RUN(a_child_of_fork_leaves_the_run_that_has_a_watchdog);
    RUN(who_waits_in_a_child_of_fork_and_leaves_leaves_nothing);
    RUN(tasks_start_in_the_order_of_spawning_and_the_run_waits_for_them);
    RUN(a_join_gives_the_result_whether_the_task_has_ended_or_not);
    RUN(a_join_of_none_says_that_there_was_no_memory);
    RUN(who_has_failed_has_no_result);
    RUN(a_task_that_nobody_joins_is_released_with_its_scope);
    RUN(who_spawns_and_joins_for_ever_does_not_keep_older_tasks_waiting);
    RUN(a_task_that_a_timer_has_woken_goes_on_before_all_new_ones_have_started);
    RUN(tasks_that_yield_take_turns);
    RUN(tasks_that_yield_in_turn_let_all_others_go_on);
    RUN(a_cancel_reaches_tasks_that_yield_in_turn);
    RUN(a_yield_that_the_program_handles_lets_no_other_task_go_on);
    RUN(sleepers_wake_in_the_order_of_their_times);
    RUN(nobody_wakes_early_with_a_scheduler_or_without);
    /* (Before the many: on a kernel that has no other, guards take mappings, of which a process has
       only so many.) */
    RUN(an_overflow_of_a_stack_of_its_own_names_its_size);
    RUN(very_many_sleepers_wake_in_time_or_are_cancelled);
    RUN(a_time_that_has_passed_is_not_waited_for);
    RUN(who_sleeps_until_the_past_for_ever_does_not_keep_others_waiting);
    RUN(a_sleep_until_the_past_is_refused_like_any_other);
    RUN(names_and_values_are_inherited_and_changes_stay_with_the_task);
    RUN(a_value_that_was_given_is_released_with_the_last_task_that_has_it);
    RUN(values_that_are_set_again_and_again_take_no_more_memory);
    RUN(a_value_behind_others_is_changed_and_removed_for_one_task_only);
    RUN(errno_is_the_tasks_own);
    RUN(a_tree_of_tasks_that_join_theirs_adds_up);
    RUN(a_run_has_a_number_of_its_own);
    RUN(a_binding_is_told_before_and_after_each_sleep);
    RUN(a_binding_ends_one_wait_of_a_task);
    RUN(a_gate_is_set_around_another);
    RUN(a_task_knows_the_back_end_of_its_thread);
    RUN(a_tree_of_tasks_that_set_events_begins_a_branch_at_a_time);
    RUN(a_wait_for_a_task_ends_with_its_event_wherever_the_task_is);
    RUN(a_wait_for_a_task_is_cancelled);
    RUN(an_unknown_backend_of_the_environment_is_named);
    RUN(a_run_inside_a_run_and_an_unknown_backend_are_refused);
    RUN(an_empty_choice_of_a_backend_is_none);
    RUN(very_many_tasks_wait_and_are_unwound_on_stacks_of_either_kind);
    RUN(the_body_of_a_scope_has_as_large_a_stack_as_its_task);
    RUN(a_task_may_have_a_stack_of_its_own);
    RUN(a_stack_that_is_too_large_fails_the_scope);
    RUN(a_task_tells_its_end_even_without_a_stack);
    RUN(mistakes_go_to_the_error_handler_which_may_leave);
    RUN(an_effect_that_nobody_handles_fails_its_task_and_nothing_else);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
