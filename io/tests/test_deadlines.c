/* SPDX-License-Identifier: MIT */
/* Deadlines of blocks: what a task waits for ends in time, without a scope. And scopes that go on
   when a task fails. */
#include "check_io.h"

#include <poll.h>
#include <sys/socket.h>

enum { SHORT = 2 * HAFT_IO_MILLISECOND };

static void set_soon(haft_io_deadline_t *deadline) {
    haft_io_deadline_set(deadline, haft_io_now() + SHORT);
}

/* ---- Every wait ends ---- */

static int quiet, full; /* a socket that nothing comes on, and one that has no room */
static haft_io_channel_t *channel;
static haft_io_mutex_t held;
static haft_io_rwlock_t written;

static void *sleep_long(void *argument) {
    haft_io_sleep(1000 * HAFT_IO_SECOND);
    return argument;
}
static int wait_to_read(void) {
    char byte;
    return (int)haft_io_read(quiet, &byte, 1);
}
static int wait_to_lend(void) {
    HAFT_IO_SCOPED_LENT const void *bytes = NULL;
    return (int)haft_io_read_lent(quiet, &bytes);
}
static int wait_to_write(void) {
    static char much[1 << 22];
    return haft_io_write_all(full, much, sizeof much);
}
static int wait_to_accept(void) {
    HAFT_IO_SCOPED_DESCRIPTOR int listener = haft_io_listen_tcp("127.0.0.1", 0, 0);
    return haft_io_accept(listener);
}
static int wait_to_poll(void) {
    struct pollfd entries[2] = {{quiet, POLLIN, 0}, {quiet, POLLPRI, 0}};
    return haft_io_poll(entries, 2, HAFT_IO_FOREVER);
}
static int wait_for_events(void) {
    return haft_io_wait_ready(quiet, POLLIN);
}
static int wait_for_time(void) {
    return haft_io_sleep(1000 * HAFT_IO_SECOND);
}
static int wait_to_send(void) {
    int value = 1;
    return haft_io_channel_send(channel, &value);
}
static int wait_to_choose(void) {
    int value;
    haft_io_select_case_t choices[] = {{.channel = channel, .receive = &value}};
    return haft_io_select(choices, 1);
}
static int wait_to_lock(void) {
    return haft_io_mutex_lock(&held);
}
static int wait_to_read_lock(void) {
    return haft_io_rwlock_read_lock(&written);
}
static int wait_for_semaphore(void) {
    haft_io_semaphore_t none = {0};
    return haft_io_semaphore_acquire(&none);
}
static int wait_for_condition(void) {
    haft_io_mutex_t mutex = {0};
    haft_io_condition_t condition = {0};
    CHECK_EQUAL(haft_io_mutex_lock(&mutex), 0);
    int code = haft_io_condition_wait(&condition, &mutex);
    haft_io_mutex_unlock(&mutex);
    return code;
}
static int wait_for_event(void) {
    haft_io_event_t event = {0};
    return haft_io_event_wait(&event);
}
static int wait_for_promise(void) {
    haft_io_promise_t promise = {0};
    return haft_io_promise_wait(&promise, NULL);
}
static int wait_at_barrier(void) {
    haft_io_barrier_t barrier = {.needed = 2};
    return haft_io_barrier_wait(&barrier);
}
static int wait_for_task(void) {
    return haft_io_join(haft_io_async(sleep_long, NULL), NULL);
}
static int wait_for_signal(void) {
    sigset_t none;
    sigemptyset(&none);
    sigaddset(&none, SIGUSR2);
    return haft_io_signal_wait(&none);
}
BODY(spawn_one_that_sleeps) {
    haft_io_spawn(sleep_long, NULL);
    return NULL;
}
static int wait_for_scope(void) {
    return haft_io_scope(spawn_one_that_sleeps, NULL, NULL);
}
static int wait_in_body(void) {
    return haft_io_scope(sleep_long, NULL, NULL);
}
static int wait_for_all(void) {
    haft_io_call_t calls[] = {{.function = sleep_long}, {.function = sleep_long}};
    return haft_io_all(calls, 2);
}

typedef struct wait_kind {
    const char *name;
    int (*wait)(void);
} wait_kind_t;
static const wait_kind_t waits[] = {
    {"read", wait_to_read},
    {"read_lent", wait_to_lend},
    {"write_all", wait_to_write},
    {"accept", wait_to_accept},
    {"poll", wait_to_poll},
    {"wait_for", wait_for_events},
    {"sleep", wait_for_time},
    {"channel_send", wait_to_send},
    {"select", wait_to_choose},
    {"lock", wait_to_lock},
    {"read_lock", wait_to_read_lock},
    {"acquire", wait_for_semaphore},
    {"wait", wait_for_condition},
    {"wait_event", wait_for_event},
    {"await", wait_for_promise},
    {"arrive", wait_at_barrier},
    {"join", wait_for_task},
    {"wait_signal", wait_for_signal},
    {"scope", wait_for_scope},
    {"body", wait_in_body},
    {"all", wait_for_all},
};

static void check_timed_out(const wait_kind_t *kind, int code) {
    if (code != -ETIMEDOUT)
        printf("%s returned %d\n", kind->name, code);
    CHECK_EQUAL(code, -ETIMEDOUT);
}

BODY(wait_in_every_way) {
    int pair[2], other[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, other), 0);
    quiet = pair[0];
    full = other[0];
    channel = haft_io_channel_new(sizeof(int), 0);
    held = (haft_io_mutex_t){0};
    written = (haft_io_rwlock_t){0};
    CHECK_EQUAL(haft_io_mutex_lock(&held), 0);
    CHECK_EQUAL(haft_io_rwlock_write_lock(&written), 0);
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
        set_soon(&limit);
        check_timed_out(&waits[i], waits[i].wait());
        CHECK(haft_io_deadline_passed(&limit));
        /* It has passed: no wait begins. */
        check_timed_out(&waits[i], waits[i].wait());
    }
    haft_io_mutex_unlock(&held);
    haft_io_rwlock_unlock(&written);
    haft_io_channel_free(channel);
    for (int i = 0; i < 2; i++) {
        haft_io_close(pair[i]);
        haft_io_close(other[i]);
    }
    haft_io_scope_cancel(haft_io_this_scope()); /* those that were to be joined */
    return NULL;
}
BODY(wait_in_a_scope) {
    CHECK_EQUAL(haft_io_scope(wait_in_every_way, NULL, NULL), -ECANCELED);
    return NULL;
}
static void every_wait_of_a_block_ends_at_its_deadline(const haft_io_run_options_t *options) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    CHECK_EQUAL(haft_io_run_with(options, wait_in_a_scope, NULL), 0);
}
static void every_wait_ends_everywhere(void) {
    check_everywhere(every_wait_of_a_block_ends_at_its_deadline);
}

/* ---- Blocks ---- */

BODY(nest_blocks) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t outer = {0};
    haft_io_deadline_set(&outer, haft_io_now() + 1000 * HAFT_IO_SECOND);
    {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t inner = {0};
        set_soon(&inner);
        CHECK_EQUAL(wait_for_time(), -ETIMEDOUT);
        CHECK(haft_io_deadline_passed(&inner) && !haft_io_deadline_passed(&outer));
    }
    CHECK_EQUAL(haft_io_sleep(1), 0);
    set_soon(&outer);
    {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t inner = {0};
        haft_io_deadline_set(&inner, haft_io_now() + 1000 * HAFT_IO_SECOND);
        CHECK_EQUAL(wait_for_time(), -ETIMEDOUT);
        CHECK(haft_io_deadline_passed(&outer) && !haft_io_deadline_passed(&inner));
    }
    CHECK_EQUAL(wait_for_time(), -ETIMEDOUT);
    haft_io_deadline_set(&outer, HAFT_IO_FOREVER);
    CHECK_EQUAL(haft_io_sleep(1), 0);
    haft_io_deadline_set(&outer, haft_io_now() - 1000 * HAFT_IO_SECOND);
    CHECK_EQUAL(wait_for_time(), -ETIMEDOUT);
    haft_io_deadline_end(&outer);
    CHECK_EQUAL(haft_io_sleep(1), 0);
    return NULL;
}
static void blocks_nest_and_a_deadline_is_set_anew(void) {
    CHECK_RUNS(nest_blocks);
}

BODY(do_at_once_what_can_be) {
    int pair[2];
    char bytes[2];
    CHECK_EQUAL(haft_io_socket_pair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, 1);
    CHECK_EQUAL(haft_io_write(pair[0], "ab", 2), 2);
    CHECK_EQUAL(haft_io_close(pair[0]), 0);
    CHECK_EQUAL(haft_io_close(pair[1]), 0);
    haft_io_mutex_t mutex = {0};
    CHECK_EQUAL(haft_io_mutex_lock(&mutex), 0);
    haft_io_mutex_unlock(&mutex);
    (void)bytes;
    return NULL;
}
static void what_can_be_done_at_once_is_done_after_the_deadline(void) {
    CHECK_RUNS(do_at_once_what_can_be);
}

/* A deadline whose task does not wait gets its timer when it lets others go first. */
static bool has_yielded_enough;
BODY(yield_until_told) {
    while (!has_yielded_enough)
        haft_io_yield();
    return NULL;
}
BODY(yield_until_late) {
    for (int others = 0; others < 2; others++) {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t outer = {0}, inner = {0};
        has_yielded_enough = false;
        if (others)
            haft_io_spawn(yield_until_told, NULL);
        haft_io_deadline_set(&outer, haft_io_now() + 1000 * HAFT_IO_SECOND);
        set_soon(&inner);
        while (haft_io_yield() == 0)
            CHECK(!haft_io_deadline_passed(&inner));
        CHECK(haft_io_deadline_passed(&inner) && !haft_io_deadline_passed(&outer));
        has_yielded_enough = true;
    }
    return NULL;
}
static void yield_in_runs(const haft_io_run_options_t *options) {
    if (options->threads == 1)
        CHECK_EQUAL(haft_io_run_with(options, yield_until_late, NULL), 0);
}
static void a_deadline_passes_while_its_task_only_yields(void) {
    check_everywhere(yield_in_runs);
}

BODY(wait_behind_a_shield) {
    CHECK_EQUAL(haft_io_sleep(2 * SHORT), 0);
    return NULL;
}
BODY(open_scopes) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    set_soon(&limit);
    CHECK_EQUAL(haft_io_shield(wait_behind_a_shield, NULL), 0);
    CHECK(haft_io_deadline_passed(&limit));
    CHECK_EQUAL(haft_io_sleep(SHORT), -ETIMEDOUT);
    return NULL;
}
static void no_deadline_reaches_behind_a_shield(void) {
    CHECK_RUNS(open_scopes);
}

static void *set_soon_and_wait(void *deadline) {
    set_soon(deadline);
    haft_io_sleep(1000 * HAFT_IO_SECOND);
    return NULL;
}
static void *put_off_and_wait(void *deadline) {
    haft_io_deadline_set(deadline, haft_io_now() + 1000 * HAFT_IO_SECOND);
    CHECK_EQUAL(haft_io_sleep(4 * SHORT), 0);
    return NULL;
}
static void *set_soon_and_wait_behind_a_shield(void *deadline) {
    set_soon(deadline);
    CHECK_EQUAL(haft_io_sleep(2 * SHORT), 0);
    return NULL;
}
static void *set_both_soon(void *deadline) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t inner = {0};
    haft_io_deadline_set(&inner, haft_io_now() + 1000 * HAFT_IO_SECOND);
    haft_io_scope(set_soon_and_wait, deadline, NULL);
    CHECK(!"the scope around this one has the deadline");
    return NULL;
}
static int in_scope(void *(*body)(void *), haft_io_deadline_t *deadline, int64_t own) {
    return haft_io_scope_with(&(haft_io_scope_options_t){.deadline = own}, body, deadline, NULL);
}
BODY(set_anew_in_scopes) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t around = {0};
    haft_io_deadline_set(&around, haft_io_now() + 1000 * HAFT_IO_SECOND);
    CHECK_EQUAL(in_scope(set_soon_and_wait, &around, 0), -ETIMEDOUT);
    CHECK(haft_io_deadline_passed(&around));
    haft_io_deadline_set(&around, HAFT_IO_FOREVER);
    CHECK_EQUAL(in_scope(set_both_soon, &around, 0), -ETIMEDOUT);
    set_soon(&around);
    CHECK_EQUAL(in_scope(put_off_and_wait, &around, 0), 0);
    CHECK(!haft_io_deadline_passed(&around));
    CHECK_EQUAL(haft_io_shield(set_soon_and_wait_behind_a_shield, &around), 0);
    CHECK(haft_io_deadline_passed(&around));
    haft_io_deadline_set(&around, HAFT_IO_FOREVER);
    CHECK_EQUAL(in_scope(put_off_and_wait, &around, haft_io_now() + SHORT), -ETIMEDOUT);
    CHECK(!haft_io_deadline_passed(&around));
    return NULL;
}
static void set_anew_in_runs(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, set_anew_in_scopes, NULL), 0);
}
static void a_deadline_that_is_set_anew_inside_of_a_scope_counts_there(void) {
    check_everywhere(set_anew_in_runs);
    check_seeds(set_anew_in_scopes, 10, (haft_io_simulation_options_t){0});
}

BODY(wait_with_a_deadline) {
    HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
    haft_io_deadline_set(&limit, haft_io_now() + 1000 * HAFT_IO_SECOND);
    haft_io_sleep(100 * HAFT_IO_SECOND);
    CHECK(!"a cancel unwinds");
    return NULL;
}
BODY(cancel_one_that_has_a_deadline) {
    haft_io_spawn(wait_with_a_deadline, NULL);
    haft_io_yield();
    haft_io_sleep(1);
    haft_io_scope_cancel(haft_io_this_scope());
    return NULL;
}
BODY(look_at_the_cancel) {
    CHECK_EQUAL(haft_io_scope(cancel_one_that_has_a_deadline, NULL, NULL), -ECANCELED);
    return NULL;
}
static void a_cancel_unwinds_the_block(void) {
    CHECK_RUNS(look_at_the_cancel);
}

static void *have_a_deadline(void *count) {
    int *passed = count;
    for (int i = 0; i < 20; i++) {
        HAFT_IO_SCOPED_DEADLINE haft_io_deadline_t limit = {0};
        haft_io_deadline_set(&limit, haft_io_now() + HAFT_IO_MILLISECOND);
        if (haft_io_sleep(i % 2 != 0 ? 1000 * HAFT_IO_SECOND : 1) == -ETIMEDOUT)
            __atomic_fetch_add(passed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}
static void *spawn_many(void *count) {
    for (int i = 0; i < 500; i++)
        CHECK_EQUAL(haft_io_spawn(have_a_deadline, count), 0);
    return NULL;
}
static void many_tasks_have_deadlines(const haft_io_run_options_t *options) {
    int passed = 0;
    CHECK_EQUAL(haft_io_run_with(options, spawn_many, &passed), 0);
    CHECK(passed >= 5000);
}
static void many_have_deadlines_everywhere(void) {
    check_everywhere(many_tasks_have_deadlines);
}

/* ---- Scopes that go on ---- */

typedef struct told {
    haft_io_on_failure_t on_failure;
    int count, code;
} told_t;
static void be_told(haft_io_on_failure_t *self, const haft_io_failure_t *failure) {
    told_t *told = (told_t *)self;
    __atomic_fetch_add(&told->count, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&told->code, failure->code, __ATOMIC_RELAXED);
    CHECK_SAME_TEXT(failure->message, "broken");
    CHECK_SAME_TEXT(failure->task, "one");
}
BODY(fail_soon) {
    haft_io_task_set_name("one");
    haft_io_yield();
    haft_io_fail(-EPROTO, "broken");
}
static int completed;
BODY(go_on) {
    haft_io_sleep(SHORT);
    __atomic_fetch_add(&completed, 1, __ATOMIC_RELAXED);
    return NULL;
}
BODY(spawn_some_that_fail) {
    for (int i = 0; i < 100; i++) {
        haft_io_spawn(fail_soon, NULL);
        haft_io_spawn(go_on, NULL);
    }
    return NULL;
}
BODY(spawn_one_and_fail) {
    haft_io_spawn(sleep_long, NULL);
    haft_io_fail(-EIO, "the body");
}
BODY(supervise) {
    completed = 0;
    told_t told = {{be_told}, 0, 0};
    haft_io_failures_t failures;
    haft_io_scope_options_t options = {.on_failure = &told.on_failure, .failures = &failures};
    CHECK_EQUAL(haft_io_scope_with(&options, spawn_some_that_fail, NULL, NULL), 0);
    CHECK_EQUAL(told.count, 100);
    CHECK_EQUAL(told.code, -EPROTO);
    CHECK_EQUAL(failures.count, 100);
    CHECK_EQUAL(completed, 100);
    CHECK_EQUAL(haft_io_scope_with(&options, spawn_one_and_fail, NULL, NULL), -EIO);
    return NULL;
}
static void a_scope_goes_on_when_a_task_fails(const haft_io_run_options_t *options) {
    CHECK_EQUAL(haft_io_run_with(options, supervise, NULL), 0);
}
static void scopes_go_on_everywhere(void) {
    check_everywhere(a_scope_goes_on_when_a_task_fails);
}

int main(void) {
    check_backend();
    RUN(every_wait_ends_everywhere);
    RUN(blocks_nest_and_a_deadline_is_set_anew);
    RUN(what_can_be_done_at_once_is_done_after_the_deadline);
    RUN(a_deadline_passes_while_its_task_only_yields);
    RUN(no_deadline_reaches_behind_a_shield);
    RUN(a_deadline_that_is_set_anew_inside_of_a_scope_counts_there);
    RUN(a_cancel_unwinds_the_block);
    RUN(many_have_deadlines_everywhere);
    RUN(scopes_go_on_everywhere);
    return check_end();
}
