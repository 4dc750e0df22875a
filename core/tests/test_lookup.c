/* Finding the handler: what a scope has cached never outlives the chain that it was found in. */
#include <haft.h>

#include <pthread.h>
#include <sys/mman.h>

#include "check.h"

HAFT_EFFECT(ask, int, { int question; });
/* Effects share the slots of a cache by the line of their declaration: these four share one. */
// clang-format off
HAFT_EFFECT(one, int, {}); HAFT_EFFECT(two, int, {}); HAFT_EFFECT(three, int, {}); HAFT_EFFECT(four, int, {});
// clang-format on
HAFT_EFFECT(yield, void, { int value; });
HAFT_EFFECT(pause, void, {});

#define NUMBER(value) ((void *)(intptr_t)(value))
#define VALUE(pointer) ((int)(intptr_t)(pointer))

static int answer(void *state, HAFT_PAYLOAD(ask) * payload) {
    return *(int *)state + payload->question;
}
HAFT_HANDLER(answering, NULL, HAFT_TAIL(ask, answer));

static int result_of(haft_request_t request) {
    CHECK(haft_finished(request));
    return VALUE(((HAFT_PAYLOAD(return ) *)request.payload)->result);
}

/* ---- Another parent ---- */

static void *ask_between_pauses(void *unused) {
    (void)unused;
    int sum = 0;
    for (int i = 0; i < 6; i++) {
        sum = 10 * sum + HAFT_PERFORM(ask, 0);
        HAFT_PERFORM(pause);
    }
    return NUMBER(sum);
}
static void *resume_body(void *fiber) {
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(pause));
    return NUMBER(haft_finished(request) ? result_of(request) : 0);
}
static int resume_under(haft_fiber_t *k, int number) {
    return VALUE(haft_handle(&answering, &number, resume_body, k));
}

static void a_fiber_resumed_under_other_handlers_finds_those(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(ask_between_pauses, NULL);
    for (int i = 1; i <= 6; i++)
        resume_under(k, i);
    CHECK_EQUAL(resume_under(k, 9), 123456);
}

static void *resume_on_a_fiber(void *fiber) {
    HAFT_SCOPED haft_fiber_t *between = haft_fiber_new(resume_body, fiber);
    return NUMBER(result_of(haft_resume(between, HAFT_NO_REPLY, HAFT_HANDLES(yield))));
}

/* The performer sits in a fiber inside the one that is re-parented. */
static void *ask_deeper(void *unused) {
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(ask_between_pauses, unused);
    return NUMBER(result_of(haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(one, two))));
}
static void a_chain_resumed_under_other_handlers_finds_those(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(ask_deeper, NULL);
    for (int i = 1; i <= 6; i++) {
        if (i % 2)
            resume_under(k, i);
        else
            haft_handle(&answering, &i, resume_on_a_fiber, k);
    }
    CHECK_EQUAL(resume_under(k, 9), 123456);
}

/* ---- Another handled set ---- */

static void *ask_six(void *unused) {
    (void)unused;
    int sum = 0;
    for (int i = 0; i < 6; i++)
        sum = 10 * sum + HAFT_PERFORM(ask, i);
    return NUMBER(sum);
}
static void *alternate_sets(void *unused) {
    (void)unused;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(ask_six, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
    /* The reply is given, and the next ask goes to the handler further out, which answers in place;
       then the one after it too, until the fiber is finished. */
    request = haft_resume(k, HAFT_REPLY(ask, 7), HAFT_HANDLES(one));
    return NUMBER(result_of(request));
}
static void a_changed_set_lets_effects_pass_that_it_held_before(void) {
    int state = 1;
    CHECK_EQUAL(VALUE(haft_handle(&answering, &state, alternate_sets, NULL)), 723456);
}

static void *ask_and_pause(void *unused) {
    (void)unused;
    int sum = HAFT_PERFORM(ask, 0);
    HAFT_PERFORM(pause);
    return NUMBER(10 * sum + HAFT_PERFORM(ask, 0));
}
static void *widen_set(void *unused) {
    (void)unused;
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(ask_and_pause, NULL);
    haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(pause));
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(pause, ask));
    CHECK(request.effect == HAFT_ID(ask));
    return NUMBER(result_of(haft_resume(k, HAFT_REPLY(ask, 8), HAFT_HANDLES(pause))));
}
static void a_changed_set_holds_effects_that_it_let_pass_before(void) {
    int state = 1;
    CHECK_EQUAL(VALUE(haft_handle(&answering, &state, widen_set, NULL)), 18);
}

static void *reuse_memory_of_set(void *unused) {
    (void)unused;
    haft_clause_t clauses[2] = {HAFT_HANDLES(pause)->clauses[0], HAFT_HANDLES(ask)->clauses[0]};
    haft_handles_t set = {1, 0, HAFTI_SET_FIXED, clauses};
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(ask_and_pause, NULL);
    haft_resume(k, HAFT_NO_REPLY, &set);
    set.count = 2;
    haft_handles_changed(k);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, &set);
    CHECK(request.effect == HAFT_ID(ask));
    return NUMBER(result_of(haft_resume(k, HAFT_REPLY(ask, 8), &set)));
}
static void a_set_whose_memory_was_reused_holds_once_that_is_said(void) {
    int state = 1;
    CHECK_EQUAL(VALUE(haft_handle(&answering, &state, reuse_memory_of_set, NULL)), 18);
}

/* The set of a HAFT_HANDLES in a plugin that is closed. */
static void *outlive_a_set(void *unused) {
    (void)unused;
    struct {
        haft_handles_t set;
        haft_clause_t clauses[1];
    } *plugin = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK((void *)plugin != MAP_FAILED);
    const haft_handles_t *here = HAFT_HANDLES(pause, ask);
    memcpy(plugin->clauses, here->clauses, sizeof plugin->clauses);
    plugin->set = (haft_handles_t){1, 0, HAFTI_SET_UNNUMBERED, plugin->clauses};
    haft_fiber_t *fibers[] = {haft_fiber_new(ask_and_pause, NULL),
                              haft_fiber_new(ask_and_pause, NULL)};
    for (int i = 0; i < 2; i++)
        CHECK(haft_resume(fibers[i], HAFT_NO_REPLY, &plugin->set).effect == HAFT_ID(pause));
    munmap(plugin, 4096);
    haft_request_t request = haft_resume(fibers[0], HAFT_NO_REPLY, here);
    CHECK(request.effect == HAFT_ID(ask));
    int64_t result = result_of(haft_resume(fibers[0], HAFT_REPLY(ask, 8), here));
    haft_fiber_drop(fibers[0]);
    haft_fiber_drop(fibers[1]);
    return NUMBER(result);
}
static void a_fiber_outlives_the_set_of_a_closed_plugin(void) {
    int state = 1;
    CHECK_EQUAL(VALUE(haft_handle(&answering, &state, outlive_a_set, NULL)), 18);
}

/* ---- Sets without numbers ---- */

/* Takes what memory there is. False where a limit takes no effect, as in an emulator. */
static bool exhaust_memory(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    struct rlimit limit = {(rlim_t)pages * 4096, (rlim_t)pages * 4096};
    CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
    if (mmap(NULL, 1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        return false;
    for (size_t size = 1 << 20; size > 16; size -= size > 8192 ? size / 2 : 16)
        for (void *volatile taken = malloc(size); taken != NULL;)
            taken = malloc(size);
    return true;
}
static void *ask_pause_ask_pause(void *unused) {
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(HAFT_PERFORM(ask, 0), 5);
        HAFT_PERFORM(pause);
    }
    return unused;
}
/* The sets are those of the same places for every fiber, and used nowhere before. */
static void *resume_at_three_places(void *fibers) {
    if (!exhaust_memory())
        return NULL;
    for (int i = 0; i < 2; i++) {
        haft_fiber_t *k = ((haft_fiber_t **)fibers)[i];
        haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask, one));
        for (int turn = 0; turn < 2; turn++) {
            CHECK(request.effect == HAFT_ID(ask));
            request = haft_resume(k, HAFT_REPLY(ask, 5), HAFT_HANDLES(pause, one));
            CHECK(request.effect == HAFT_ID(pause));
            if (turn == 0)
                request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask, two));
        }
    }
    return NULL;
}
static void resume_without_memory(void) {
    int state = 1;
    haft_fiber_t *fibers[] = {haft_fiber_new(ask_pause_ask_pause, NULL),
                              haft_fiber_new(ask_pause_ask_pause, NULL)};
    haft_handle(&answering, &state, resume_at_three_places, fibers);
    if (check_failures != 0)
        _exit(1);
}
static void sets_that_could_not_be_numbered_are_told_apart(void) {
    if (check_bare())
        CHECK_SUCCEEDS(resume_without_memory);
}

/* ---- Slots ---- */

static void *ask_sharers(void *unused) {
    (void)unused;
    int sum = 0;
    for (int i = 0; i < 100; i++) {
        sum += HAFT_PERFORM(one);
        sum += HAFT_PERFORM(two) * 10;
        sum += HAFT_PERFORM(three) * 100;
        sum += HAFT_PERFORM(four) * 1000;
    }
    return NUMBER(sum);
}
static int give_one(void *state, HAFT_PAYLOAD(one) * payload) {
    (void)state, (void)payload;
    return 1;
}
static int give_two(void *state, HAFT_PAYLOAD(two) * payload) {
    (void)state, (void)payload;
    return 2;
}
HAFT_HANDLER(giving, NULL, HAFT_TAIL(one, give_one), HAFT_TAIL(two, give_two));
static void *under_giving(void *unused) {
    return haft_handle(&giving, NULL, ask_sharers, unused);
}

static void effects_that_share_a_slot_are_told_apart(void) {
    HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(under_giving, NULL);
    haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(three, four));
    for (int i = 0; i < 100; i++) {
        CHECK(request.effect == HAFT_ID(three));
        request = haft_resume(k, HAFT_REPLY(three, 3), HAFT_HANDLES(three, four));
        CHECK(request.effect == HAFT_ID(four));
        request = haft_resume(k, HAFT_REPLY(four, 4), HAFT_HANDLES(three, four));
    }
    CHECK_EQUAL(result_of(request), 432100);
}

/* ---- A generator with two consumers ---- */

static void *generate(void *unused) {
    for (int i = 0; i < 1000; i++)
        HAFT_PERFORM(yield, 100 * i + HAFT_PERFORM(ask, 0));
    return unused;
}
static haft_fiber_t *shared_generator;
static int next_value(void) {
    haft_request_t request = haft_resume(shared_generator, HAFT_NO_REPLY, HAFT_HANDLES(yield));
    CHECK(request.effect == HAFT_ID(yield));
    return ((HAFT_PAYLOAD(yield) *)request.payload)->value;
}
static void *consume(void *unused) {
    for (int i = 0; i < 10; i++) {
        CHECK_EQUAL(next_value() % 100, HAFT_PERFORM(ask, 0));
        HAFT_PERFORM(pause);
    }
    return unused;
}
static void *consumer(void *number) {
    int state = VALUE(number);
    return haft_handle(&answering, &state, consume, NULL);
}

static void a_generator_consumed_by_two_fibers_in_turn_finds_the_handlers_of_each(void) {
    shared_generator = haft_fiber_new(generate, NULL);
    haft_fiber_t *consumers[2] = {haft_fiber_new(consumer, NUMBER(1)),
                                  haft_fiber_new(consumer, NUMBER(2))};
    for (int i = 0; i < 11; i++)
        for (int j = 0; j < 2; j++)
            haft_resume(consumers[j], HAFT_NO_REPLY, HAFT_HANDLES(pause));
    for (int j = 0; j < 2; j++) {
        CHECK_EQUAL(haft_fiber_state(consumers[j]), HAFT_FIBER_FINISHED);
        haft_fiber_drop(consumers[j]);
    }
    haft_fiber_drop(shared_generator);
}

/* ---- Handlers that come and go ---- */

static void *ask_once(void *question) {
    return NUMBER(HAFT_PERFORM(ask, VALUE(question)));
}
static void *come_and_go(void *unused) {
    (void)unused;
    int sum = 0;
    for (int i = 0; i < 10; i++) {
        int state = 100;
        sum += HAFT_PERFORM(ask, i);
        sum += VALUE(haft_handle(&answering, &state, ask_once, NUMBER(i)));
        sum += HAFT_PERFORM(ask, i);
    }
    return NUMBER(sum);
}
static void an_inner_handler_shadows_the_outer_only_while_it_stands(void) {
    int state = 1;
    CHECK_EQUAL(VALUE(haft_handle(&answering, &state, come_and_go, NULL)), 3 * 45 + 1000 + 20);
}

/* ---- New fibers in old memory ---- */

static void a_new_fiber_in_the_memory_of_an_old_one_finds_its_own_handlers(void) {
    for (int i = 0; i < 100; i++) {
        HAFT_SCOPED haft_fiber_t *k = haft_fiber_new(ask_six, NULL);
        int state = i % 4;
        if (i % 2) {
            CHECK_EQUAL(VALUE(haft_handle(&answering, &state, resume_body, k)),
                        12345 + 111111 * state);
        } else {
            haft_request_t request = haft_resume(k, HAFT_NO_REPLY, HAFT_HANDLES(ask));
            for (int j = 0; j < 6; j++)
                request = haft_resume(k, HAFT_REPLY(ask, 5), HAFT_HANDLES(ask));
            CHECK_EQUAL(result_of(request), 555555);
        }
    }
}

static void a_reset_fiber_finds_its_own_handlers(void) {
    haft_fiber_t *k = haft_fiber_new(ask_six, NULL);
    for (int i = 0; i < 9; i++) {
        CHECK_EQUAL(VALUE(haft_handle(&answering, &i, resume_body, k)), 12345 + 111111 * i);
        haft_fiber_reset(k, ask_six, NULL);
    }
    haft_fiber_drop(k);
}

/* ---- Other threads ---- */

typedef struct visit {
    haft_fiber_t *fiber;
    int number;
    int result;
} visit_t;
static void *visit(void *argument) {
    visit_t *visiting = argument;
    visiting->result = resume_under(visiting->fiber, visiting->number);
    return NULL;
}
static void a_fiber_on_another_thread_finds_the_handlers_there(void) {
    visit_t visiting = {haft_fiber_new(ask_deeper, NULL), 0, 0};
    for (int i = 1; i <= 7; i++) {
        visiting.number = i;
        pthread_t thread;
        CHECK_EQUAL(pthread_create(&thread, NULL, visit, &visiting), 0);
        pthread_join(thread, NULL);
    }
    CHECK_EQUAL(visiting.result, 123456);
    haft_fiber_drop(visiting.fiber);
}

/* ---- A fiber that a clause in place suspends, resumed elsewhere ---- */

HAFT_EFFECT(moved_ask, int, {});
HAFT_EFFECT(moved_detour, int, {});
HAFT_EFFECT(moved_pause, int, {});

static int detour_by_pausing(void *state, HAFT_PAYLOAD(moved_detour) * payload) {
    (void)state, (void)payload;
    return HAFT_PERFORM(moved_pause);
}
static int answer_state(void *state, HAFT_PAYLOAD(moved_ask) * payload) {
    (void)payload;
    return *(int *)state;
}
HAFT_HANDLER(detours, NULL, HAFT_TAIL(moved_detour, detour_by_pausing));
HAFT_HANDLER(answers, NULL, HAFT_TAIL(moved_ask, answer_state));

static void *take_a_detour(void *heard) {
    ((int *)heard)[1] = HAFT_PERFORM(moved_detour);
    ((int *)heard)[2] = HAFT_PERFORM(moved_ask);
    return NULL;
}
static void *ask_around_a_detour(void *heard) {
    ((int *)heard)[0] = HAFT_PERFORM(moved_ask);
    haft_handle(&answering, NULL, take_a_detour, heard);
    ((int *)heard)[3] = HAFT_PERFORM(moved_ask);
    return NULL;
}
static void *ask_under_detours(void *heard) {
    return haft_handle(&detours, NULL, ask_around_a_detour, heard);
}
static void *resume_moved(void *fiber) {
    bool is_new = haft_fiber_state(fiber) == HAFT_FIBER_NEW;
    haft_resume(fiber, is_new ? HAFT_NO_REPLY : HAFT_REPLY(moved_pause, 7),
                HAFT_HANDLES(moved_pause));
    return NULL;
}
/* Code that does not look again keeps the first handler. */
static void *resume_under_another(void *fiber) {
    int second = 2;
    resume_moved(fiber);
    return haft_handle(&answers, &second, resume_moved, fiber);
}

static void a_fiber_moved_while_a_clause_ran_in_place_finds_its_new_handlers(void) {
    int heard[4] = {0}, first = 1;
    HAFT_SCOPED haft_fiber_t *fiber = haft_fiber_new(ask_under_detours, heard);
    haft_handle(&answers, &first, resume_under_another, fiber);
    CHECK_EQUAL(heard[0], 1);
    CHECK_EQUAL(heard[1], 7);
    CHECK_EQUAL(heard[2], 2);
    CHECK_EQUAL(heard[3], 2);
}

/* ---- Nested deep ---- */

/* How many scopes a walk goes past before one has the effect in its slot. */
static int steps_to_one_that_knows(void) {
    hafti_scope_t *scope = hafti_here().current;
    hafti_found_t found;
    int steps = 0;
    for (; scope != NULL && scope->handles != &answering.handles &&
           !hafti_read_either(hafti_entry_in(scope, hafti_slot_ask()), HAFT_ID(ask), &found);
         scope = scope->outer)
        steps++;
    return steps;
}

typedef struct nested {
    int depth, most_steps;
} nested_t;

static void *nest_and_ask(void *argument) {
    nested_t *nested = argument;
    bool is_innermost = nested->depth == 0;
    if (!is_innermost) {
        nested->depth--;
        HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(nest_and_ask, nested);
        CHECK(haft_finished(haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(yield))));
    }
    int steps = steps_to_one_that_knows();
    if (!is_innermost && steps > nested->most_steps)
        nested->most_steps = steps;
    CHECK_EQUAL(HAFT_PERFORM(ask, 1), 8);
    return NULL;
}

static void what_nested_computations_perform_as_they_end_is_found_in_a_few_steps(void) {
    for (int depth = 10; depth <= 1000; depth *= 10) {
        nested_t nested = {depth, 0};
        haft_handle(&answering, &(int){7}, nest_and_ask, &nested);
        CHECK(nested.most_steps <= 8 || !check_bare());
    }
}

int main(void) {
    RUN(a_fiber_resumed_under_other_handlers_finds_those);
    RUN(a_chain_resumed_under_other_handlers_finds_those);
    RUN(a_changed_set_lets_effects_pass_that_it_held_before);
    RUN(a_changed_set_holds_effects_that_it_let_pass_before);
    RUN(a_set_whose_memory_was_reused_holds_once_that_is_said);
    RUN(a_fiber_outlives_the_set_of_a_closed_plugin);
    RUN(sets_that_could_not_be_numbered_are_told_apart);
    RUN(effects_that_share_a_slot_are_told_apart);
    RUN(a_generator_consumed_by_two_fibers_in_turn_finds_the_handlers_of_each);
    RUN(an_inner_handler_shadows_the_outer_only_while_it_stands);
    RUN(a_new_fiber_in_the_memory_of_an_old_one_finds_its_own_handlers);
    RUN(a_reset_fiber_finds_its_own_handlers);
    RUN(a_fiber_on_another_thread_finds_the_handlers_there);
    RUN(a_fiber_moved_while_a_clause_ran_in_place_finds_its_new_handlers);
    RUN(what_nested_computations_perform_as_they_end_is_found_in_a_few_steps);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
