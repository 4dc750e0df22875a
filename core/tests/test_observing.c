/* SPDX-License-Identifier: MIT */
/* Observing a thread: an observer is told of each resume, perform, clause, end and drop. */
#include <haft.h>
#include <haft/observe.h>

#include <pthread.h>

#include "check.h"

HAFT_EFFECT(ask, int, { int question; });
HAFT_EFFECT(note, void, {});
HAFT_EFFECT(stop, void, {});

static char told[4096];
static size_t told_size;

static void tell(const haft_observed_t *what) {
    static const char *const kinds[] = {[HAFT_OBSERVED_RESUME] = "resume",
                                        [HAFT_OBSERVED_PERFORM] = "perform",
                                        [HAFT_OBSERVED_HANDLE] = "handle",
                                        [HAFT_OBSERVED_FINISH] = "finish",
                                        [HAFT_OBSERVED_DROP] = "drop"};
    const char *name = what->name != NULL ? what->name : "-";
    const char *effect = what->effect != NULL ? what->effect->name : "-";
    CHECK((what->fiber == NULL) == (what->kind == HAFT_OBSERVED_HANDLE));
    int size =
        snprintf(told + told_size, sizeof told - told_size, "%s %s %s%s\n", kinds[what->kind],
                 effect, name, what->handles == NULL ? " by default" : "");
    if (size > 0 && told_size + (size_t)size < sizeof told)
        told_size += (size_t)size;
}

static void begin(void) {
    told_size = 0;
    told[0] = '\0';
    CHECK(haft_observe(tell) == NULL);
}
static void check_told(const char *expected) {
    CHECK(haft_observe(NULL) == tell);
    CHECK_SAME_TEXT(told, expected);
}

static void *ask_twice(void *unused) {
    HAFT_PERFORM(ask, 1);
    HAFT_PERFORM(ask, 2);
    return unused;
}

static haft_fiber_t *new_fiber(const char *name, void *(*function)(void *), void *argument) {
    haft_fiber_t *fiber = haft_fiber_new(function, argument);
    haft_fiber_set_name(fiber, name);
    return fiber;
}

static haft_request_t go_on(haft_fiber_t *fiber) {
    return haft_resume(fiber, HAFT_REPLY(ask, 10), HAFT_HANDLES(ask, stop));
}
static haft_request_t start(haft_fiber_t *fiber) {
    return haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(ask, stop));
}

static void requests_are_told_from_the_first_resume_to_the_end(void) {
    HAFT_SCOPED haft_fiber_t *fiber = new_fiber("asker", ask_twice, NULL);
    begin();
    start(fiber);
    go_on(fiber);
    go_on(fiber);
    check_told("resume - asker\n"
               "perform ask asker\n"
               "resume ask asker\n"
               "perform ask asker\n"
               "resume ask asker\n"
               "finish - asker\n");
}

static void a_fiber_that_was_suspended_before_is_told_from_its_next_resume(void) {
    HAFT_SCOPED haft_fiber_t *fiber = new_fiber("asker", ask_twice, NULL);
    start(fiber);
    begin();
    go_on(fiber);
    check_told("resume ask asker\n"
               "perform ask asker\n");
    go_on(fiber);
    CHECK_EQUAL(haft_fiber_state(fiber), HAFT_FIBER_FINISHED);
    CHECK_EQUAL(told_size, strlen(told)); /* nothing came after the end */
    CHECK_CONTAINS(told, "perform ask asker\n");
}

static haft_answer_t answer_general(void *unused, HAFT_PAYLOAD(ask) * payload,
                                    haft_resumption_t k) {
    (void)unused;
    return haft_answer(haft_resumption_resume(k, HAFT_REPLY(ask, payload->question)));
}
static haft_answer_t answer_last(void *unused, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)unused;
    return haft_tail_resume(k, HAFT_REPLY(ask, payload->question));
}
HAFT_HANDLER(by_resuming, NULL, HAFT_GENERAL(ask, answer_general));
HAFT_HANDLER(by_tail_resuming, NULL, HAFT_GENERAL(ask, answer_last));

static void general_clauses_are_told_with_the_name_of_their_handler(void) {
    begin();
    haft_handle(&by_resuming, NULL, ask_twice, NULL);
    check_told("resume - by_resuming\n"
               "perform ask by_resuming\n"
               "resume ask by_resuming\n"
               "perform ask by_resuming\n"
               "resume ask by_resuming\n"
               "finish - by_resuming\n");
    begin();
    haft_handle(&by_tail_resuming, NULL, ask_twice, NULL);
    CHECK_CONTAINS(told, "resume ask by_tail_resuming\nperform ask by_tail_resuming\n"
                         "resume ask by_tail_resuming\nfinish - by_tail_resuming\n");
    haft_observe(NULL);
}

static int answer_in_place(void *unused, HAFT_PAYLOAD(ask) * payload) {
    (void)unused;
    return payload->question;
}
HAFT_HANDLER(in_place, NULL, HAFT_TAIL(ask, answer_in_place));

static void *ask_before_and_while_it_is_observed(void *unused) {
    HAFT_PERFORM(ask, 1);
    HAFT_PERFORM(ask, 2);
    begin();
    HAFT_PERFORM(ask, 3);
    HAFT_PERFORM(ask, 4);
    check_told("handle ask -\n"
               "handle ask -\n");
    HAFT_PERFORM(ask, 5);
    HAFT_PERFORM(ask, 6);
    CHECK_SAME_TEXT(told, "handle ask -\nhandle ask -\n");
    return unused;
}

static void a_clause_in_place_is_told_each_time_though_its_place_was_known(void) {
    haft_handle(&in_place, NULL, ask_before_and_while_it_is_observed, NULL);
}

static void *ask_and_note(void *unused) {
    for (int i = 0; i < 3; i++) {
        HAFT_PERFORM(ask, i);
        HAFT_PERFORM(note);
    }
    return unused;
}
static void *resume_while_it_is_observed(void *fiber) {
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(note)); /* it knows where `ask` is handled */
    begin();
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(note));
    haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(note));
    check_told("resume note noter\nhandle ask -\nperform note noter\n"
               "resume note noter\nhandle ask -\nperform note noter\n");
    return NULL;
}

static void so_is_one_that_a_suspended_fiber_knew(void) {
    HAFT_SCOPED haft_fiber_t *fiber = new_fiber("noter", ask_and_note, NULL);
    haft_handle(&in_place, NULL, resume_while_it_is_observed, fiber);
}

static void *observe_inside(void *unused) {
    HAFT_PERFORM(ask, 1);
    return unused;
}
static int observe_in_clause(void *unused, HAFT_PAYLOAD(ask) * payload) {
    (void)unused;
    begin();
    return payload->question;
}
HAFT_HANDLER(observing, NULL, HAFT_TAIL(ask, observe_in_clause));
HAFT_HANDLER(noting, NULL, HAFT_TAIL(ask, answer_in_place));
static void *ask_through_both(void *unused) {
    HAFT_PERFORM(ask, 1); /* known from here on */
    haft_handle(&observing, NULL, observe_inside, NULL);
    HAFT_PERFORM(ask, 2);
    return unused;
}

static void it_may_begin_in_a_clause(void) {
    haft_handle(&noting, NULL, ask_through_both, NULL);
    check_told("handle ask -\n");
}

static int by_default(void *unused, HAFT_PAYLOAD(ask) * payload) {
    (void)unused;
    return payload->question;
}

static void a_default_is_told_as_one(void) {
    HAFT_SET_DEFAULT(ask, by_default);
    begin();
    CHECK_EQUAL(HAFT_PERFORM(ask, 7), 7);
    check_told("handle ask - by default\n");
    HAFT_SET_DEFAULT(ask, NULL);
}

static void count_cleanup(int *const *count) {
    ++**count;
}
static void *ask_with_cleanup(void *counted) {
    __attribute__((cleanup(count_cleanup))) int *count = counted;
    HAFT_PERFORM(ask, 1);
    return count;
}

static void a_drop_is_told_with_and_without_cleanups(void) {
    int count = 0;
    haft_fiber_t *plain = new_fiber("plain", ask_twice, NULL),
                 *cleaned = new_fiber("cleaned", ask_with_cleanup, &count);
    start(plain);
    start(cleaned);
    begin();
    haft_fiber_drop(plain);
    haft_fiber_drop(cleaned);
    CHECK_EQUAL(count, 1);
    CHECK(haft_observe(NULL) == tell);
    CHECK_CONTAINS(told, "drop ask plain\n");
    CHECK_CONTAINS(told, "drop ask cleaned\nfinish ");
}

static haft_answer_t forget(void *unused, HAFT_PAYLOAD(ask) * payload, haft_resumption_t k) {
    (void)unused, (void)payload;
    haft_resumption_drop(k);
    return haft_answer(NULL);
}
HAFT_HANDLER(forgetting, NULL, HAFT_GENERAL(ask, forget));

static void a_resumption_that_a_clause_drops_is_told(void) {
    begin();
    haft_handle(&forgetting, NULL, ask_twice, NULL);
    CHECK(haft_observe(NULL) == tell);
    CHECK_CONTAINS(told, "resume - forgetting\nperform ask forgetting\ndrop ask forgetting\n");
}

static void *throw_stop(void *unused) {
    HAFT_THROW(stop);
    return unused;
}

static void an_effect_that_is_thrown_is_told_as_the_end(void) {
    HAFT_SCOPED haft_fiber_t *fiber = new_fiber("thrower", throw_stop, NULL);
    begin();
    start(fiber);
    check_told("resume - thrower\nfinish stop thrower\n");
}

static void *ask_on_another_thread(void *unused) {
    HAFT_SCOPED haft_fiber_t *fiber = new_fiber("another", ask_twice, NULL);
    start(fiber);
    return unused;
}

static void only_the_thread_that_asked_is_observed(void) {
    pthread_t thread;
    begin();
    if (pthread_create(&thread, NULL, ask_on_another_thread, NULL) != 0)
        abort();
    pthread_join(thread, NULL);
    check_told("");
}

int main(void) {
    RUN(requests_are_told_from_the_first_resume_to_the_end);
    RUN(a_fiber_that_was_suspended_before_is_told_from_its_next_resume);
    RUN(general_clauses_are_told_with_the_name_of_their_handler);
    RUN(a_clause_in_place_is_told_each_time_though_its_place_was_known);
    RUN(so_is_one_that_a_suspended_fiber_knew);
    RUN(it_may_begin_in_a_clause);
    RUN(a_default_is_told_as_one);
    RUN(a_drop_is_told_with_and_without_cleanups);
    RUN(a_resumption_that_a_clause_drops_is_told);
    RUN(an_effect_that_is_thrown_is_told_as_the_end);
    RUN(only_the_thread_that_asked_is_observed);
    return check_end();
}
