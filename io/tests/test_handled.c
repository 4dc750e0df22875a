/* SPDX-License-Identifier: MIT */
/* Tasks with the handlers of their spawner: which they have, which they cannot have, and that those
   of other tasks have none. */
#include "check_io.h"

HAFT_EFFECT(user, const char *, {});
HAFT_EFFECT(add, int, { int number; });
HAFT_EFFECT(ask, int, {});

static int sum, done;

static const char *tell(void *name, HAFT_PAYLOAD(user) * asked) {
    (void)asked;
    return name;
}
/* A clause runs outside of its handler: in the task, too. */
static int add_up(void *state, HAFT_PAYLOAD(add) * asked) {
    int *total = state;
    haft_io_yield();
    return __atomic_add_fetch(total, asked->number, __ATOMIC_RELAXED); /* of two threads */
}
static haft_answer_t keep(void *state, HAFT_PAYLOAD(ask) * asked, haft_resumption_t k) {
    (void)state, (void)asked;
    return haft_tail_resume(k, HAFT_REPLY(ask, 7));
}
HAFT_HANDLER(users, NULL, HAFT_TAIL(user, tell));
HAFT_HANDLER(sums, NULL, HAFT_TAIL(add, add_up));
HAFT_HANDLER(asks, NULL, HAFT_GENERAL(ask, keep));

static void *use(void *expected) {
    CHECK(strcmp(HAFT_PERFORM(user), expected) == 0);
    haft_io_sleep(HAFT_IO_MILLISECOND);
    CHECK(strcmp(HAFT_PERFORM(user), expected) == 0);
    HAFT_PERFORM(add, 1);
    __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
    return expected;
}

static void *spawn_some(void *name) {
    for (int i = 0; i < 100; i++)
        CHECK(haft_io_spawn_handled(use, name) == 0);
    haft_io_task_t *task = haft_io_async_handled_with(NULL, use, name);
    void *result = NULL;
    CHECK(haft_io_join(task, &result) == 0 && result == name);
    return NULL;
}

/* A task with handlers spawns again in the same scope, and in one of its own under one more. */
static void *use_other(void *unused) {
    haft_io_scope(spawn_some, "Bob", NULL);
    return unused;
}
static void *spawn_on(void *unused) {
    (void)unused;
    CHECK(haft_io_spawn_handled(use, "Ada") == 0);
    haft_handle(&users, "Bob", use_other, NULL);
    CHECK(haft_io_spawn_handled(use, "Ada") == 0);
    return NULL;
}

static void *in_scope(void *unused) {
    spawn_some("Ada");
    CHECK(haft_io_spawn_handled(spawn_on, NULL) == 0);
    return unused;
}
static void *open_scope(void *unused) {
    CHECK(haft_io_scope(in_scope, NULL, NULL) == 0);
    return unused;
}
static void *under_two(void *unused) {
    haft_handle(&users, "Ada", open_scope, NULL);
    return unused;
}

static void *inherit(void *unused) {
    sum = done = 0;
    haft_handle(&sums, &sum, under_two, NULL);
    CHECK(done == 204 && sum >= 200); /* two threads may add at once */
    return unused;
}

/* ---- What is refused ---- */

static const char *expected_words;

static void check_refused(void *(*body)(void *), const char *words) {
    haft_io_failures_t failures;
    haft_io_scope_options_t how = {.failures = &failures};
    expected_words = words;
    CHECK(haft_io_scope_with(&how, body, NULL, NULL) == -ENOTSUP && failures.count == 1);
    if (strstr(failures.failures[0].message, words) == NULL) {
        fprintf(stderr, "no %s in %s\n", words, failures.failures[0].message);
        abort();
    }
}

static void *never(void *unused) {
    (void)unused;
    abort();
}
static void *spawn_never(void *unused) {
    haft_io_spawn_handled(never, NULL);
    return unused;
}
static void *handle_inside(void *unused) {
    return haft_handle(&users, "Ada", spawn_never, unused);
}
static void *scope_with_request(void *unused) {
    haft_io_scope_t *here = haft_io_this_scope();
    CHECK(here != NULL);
    int code = haft_io_scope(spawn_never, NULL, NULL);
    haft_io_fail(code, "that of 'ask' takes a resumption");
    return unused;
}
static void *handle_general(void *unused) {
    return haft_handle(&asks, NULL, scope_with_request, unused);
}
static void *spawn_in_bodyless(void *scope) {
    haft_io_spawn_handled_with(&(haft_io_task_options_t){.scope = scope}, never, NULL);
    return NULL;
}
static void *open_bodyless(void *unused) {
    haft_io_scope_t *opened = haft_io_scope_open(NULL, NULL);
    (void)unused;
    int code = haft_io_scope(spawn_in_bodyless, opened, NULL);
    CHECK(haft_io_scope_close_until(opened, HAFT_IO_FOREVER) == 0 && code == -ENOTSUP);
    return NULL;
}

static void *count_one(void *unused) {
    __atomic_add_fetch(&done, 1, __ATOMIC_RELAXED);
    return unused;
}
static void *spawn_without(void *unused) { /* there are no handlers: a task as any other */
    done = 0;
    CHECK(haft_io_spawn_handled(count_one, NULL) == 0);
    return unused;
}
static void *perform_in_task(void *unused) {
    HAFT_PERFORM(user);
    return unused;
}
static void *spawn_plainly(void *unused) {
    haft_io_spawn(perform_in_task, NULL);
    return unused;
}
static void *scope_of_plain(void *unused) {
    check_refused(spawn_plainly, "Nobody handles the effect 'user'");
    return unused;
}

static void *refuse(void *unused) {
    check_refused(handle_inside, "that of 'user' ends before the scope");
    check_refused(handle_general, "that of 'ask' takes a resumption");
    haft_handle(&users, "Ada", scope_of_plain, NULL);
    CHECK(haft_io_scope(spawn_without, NULL, NULL) == 0 && done == 1);
    haft_handle(&users, "Ada", open_bodyless, NULL);
    return unused;
}

/* A cancel before the task has begun, and while a clause waits. */
static void *cancel_at_once(void *unused) {
    haft_io_spawn_handled(use, "Ada");
    haft_io_scope_cancel(haft_io_this_scope());
    return unused;
}
static void *open_and_cancel(void *unused) {
    CHECK(haft_io_scope(cancel_at_once, NULL, NULL) == -ECANCELED);
    return unused;
}
static void *cancel(void *unused) {
    haft_handle(&users, "Ada", open_and_cancel, NULL);
    return unused;
}

int main(void) {
    void *(*const bodies[])(void *) = {inherit, refuse, cancel};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        for (int threads = 1; threads <= 2; threads++)
            CHECK(haft_io_run_with(&(haft_io_run_options_t){.threads = threads}, bodies[i], NULL) ==
                  0);
        CHECK(
            haft_io_simulate_with(&(haft_io_simulation_options_t){.seed = 1, .switches_one_in = 2},
                                  bodies[i], NULL) == 0);
    }
    return check_end();
}
