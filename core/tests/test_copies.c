/* SPDX-License-Identifier: MIT */
/* Copies of resumptions: a computation that goes on more than once. */
#include <haft/language.h>

#include "check.h"

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

HAFT_EFFECT(choose, int, { int count; });
HAFT_EFFECT(keep, int, { int number; });
HAFT_EFFECT(get, int, {});
HAFT_EFFECT(set, void, { int value; });
HAFT_EFFECT(tell, void, {});
typedef struct big {
    int64_t words[20];
} big_t;
HAFT_EFFECT(ask_big, big_t, {});

#define NUMBER(value) ((void *)(intptr_t)(value))
#define VALUE(pointer) ((int)(intptr_t)(pointer))

/* The stacks in use; none is to be left at the end of a test. */
static size_t stacks(void) {
    return haft_pool_report().stacks;
}

/* ---- A handler that keeps ---- */

static haft_resumption_t kept[64];
static int kept_count;
static haft_answer_t keep_it(void *state, HAFT_PAYLOAD(keep) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    kept[kept_count++] = k;
    return haft_answer(NUMBER(-1));
}
HAFT_HANDLER(keeping, NULL, HAFT_GENERAL(keep, keep_it));

static void *add_two(void *start) {
    int first = HAFT_PERFORM(keep, 1);
    int second = HAFT_PERFORM(keep, 2);
    return NUMBER(VALUE(start) + first * 10 + second);
}

static haft_resumption_t suspended(void *(*body)(void *), void *argument) {
    kept_count = 0;
    CHECK_EQUAL(VALUE(haft_handle(&keeping, NULL, body, argument)), -1);
    CHECK_EQUAL(kept_count, 1);
    return kept[0];
}
static int go_on(haft_resumption_t k, int value) {
    return VALUE(haft_resumption_resume(k, HAFT_REPLY(keep, value)));
}

static void a_copy_goes_on_beside_the_original(void) {
    size_t before = stacks();
    haft_resumption_t first = suspended(add_two, NUMBER(100));
    haft_resumption_t copy = haft_resumption_copy(first);
    CHECK_EQUAL(go_on(first, 1), -1);
    haft_resumption_t second = kept[1];
    CHECK_EQUAL(go_on(copy, 2), -1);
    haft_resumption_t second_of_copy = kept[2];
    CHECK_EQUAL(go_on(second, 3), 113);
    CHECK_EQUAL(go_on(second_of_copy, 4), 124);
    CHECK_EQUAL(stacks(), before);
}

static void copies_go_on_in_any_order(void) {
    size_t before = stacks();
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int order = 0; order < 6; order++) {
        haft_resumption_t k[3];
        k[0] = suspended(add_two, NUMBER(100));
        k[1] = haft_resumption_copy(k[0]);
        k[2] = haft_resumption_copy(k[order % 2]);
        for (int i = 0; i < 3; i++)
            CHECK_EQUAL(go_on(k[orders[order][i]], i), -1);
        CHECK_EQUAL(kept_count, 4);
        for (int i = 2; i >= 0; i--) {
            haft_resumption_t again = haft_resumption_copy(kept[1 + i]);
            CHECK_EQUAL(go_on(kept[1 + i], 7), 107 + i * 10);
            CHECK_EQUAL(go_on(again, 8), 108 + i * 10);
        }
    }
    CHECK_EQUAL(stacks(), before);
}

static void copies_of_copies_outlive_what_they_were_made_of(void) {
    size_t before = stacks();
    haft_resumption_t k = suspended(add_two, NUMBER(100));
    for (int i = 0; i < 1000; i++) {
        haft_resumption_t copy = haft_resumption_copy(k);
        if (i % 3 == 0) {
            kept_count = 0;
            CHECK_EQUAL(go_on(k, 1), -1);
            CHECK_EQUAL(go_on(kept[0], 2), 112);
        } else {
            haft_resumption_drop(k);
        }
        k = copy;
    }
    CHECK(haft_resumption_effect(k) == HAFT_ID(keep));
    haft_resumption_drop(k);
    CHECK(haft_resumption_effect(k) == NULL);
    CHECK_EQUAL(stacks(), before);
}

/* ---- Choosing ---- */

static haft_answer_t try_all(void *state, HAFT_PAYLOAD(choose) * payload, haft_resumption_t k) {
    (void)state;
    intptr_t sum = 0;
    int count = payload->count;
    for (int i = 0; i < count; i++) {
        haft_resumption_t next = i < count - 1 ? haft_resumption_copy(k) : k;
        sum += (intptr_t)haft_resumption_resume(next, HAFT_REPLY(choose, i));
    }
    return haft_answer((void *)sum);
}
static haft_answer_t try_all_from_the_original(void *state, HAFT_PAYLOAD(choose) * payload,
                                               haft_resumption_t k) {
    (void)state;
    intptr_t sum = 0;
    haft_resumption_t copies[8];
    int count = payload->count;
    for (int i = 1; i < count; i++)
        copies[i] = haft_resumption_copy(k);
    copies[0] = k;
    for (int i = 0; i < count; i++)
        sum += (intptr_t)haft_resumption_resume(copies[i], HAFT_REPLY(choose, i));
    return haft_answer((void *)sum);
}
HAFT_HANDLER(all, NULL, HAFT_GENERAL(choose, try_all));
HAFT_HANDLER(all_original_first, NULL, HAFT_GENERAL(choose, try_all_from_the_original));

static int digits(int depth) {
    volatile char room[200];
    room[depth] = (char)depth;
    int digit = HAFT_PERFORM(choose, 3);
    int rest = depth == 0 ? 0 : digits(depth - 1);
    return rest * 3 + digit + (room[depth] - depth);
}
static void *digits_body(void *depth) {
    return NUMBER(digits(VALUE(depth)));
}

static void a_clause_goes_on_with_every_choice(void) {
    size_t before = stacks();
    for (int depth = 0; depth < 6; depth++) {
        int numbers = 1;
        for (int i = 0; i <= depth; i++)
            numbers *= 3;
        CHECK_EQUAL(VALUE(haft_handle(&all, NULL, digits_body, NUMBER(depth))),
                    numbers * (numbers - 1) / 2);
        CHECK_EQUAL(VALUE(haft_handle(&all_original_first, NULL, digits_body, NUMBER(depth))),
                    numbers * (numbers - 1) / 2);
    }
    CHECK_EQUAL(stacks(), before);
}

/* ---- Handlers inside the copied chain ---- */

static int get_in_place(void *state, HAFT_PAYLOAD(get) * payload) {
    (void)payload;
    return *(int *)state;
}
static void set_in_place(void *state, HAFT_PAYLOAD(set) * payload) {
    *(int *)state = payload->value;
}
HAFT_HANDLER(state_in_place, NULL, HAFT_TAIL(get, get_in_place), HAFT_TAIL(set, set_in_place));
static haft_answer_t get_general(void *state, HAFT_PAYLOAD(get) * payload, haft_resumption_t k) {
    (void)payload;
    return haft_tail_resume(k, HAFT_REPLY(get, *(int *)state));
}
static haft_answer_t set_general(void *state, HAFT_PAYLOAD(set) * payload, haft_resumption_t k) {
    *(int *)state = payload->value;
    return haft_tail_resume(k, HAFT_REPLY(set));
}
HAFT_HANDLER(state_general, NULL, HAFT_GENERAL(get, get_general), HAFT_GENERAL(set, set_general));

static void *count_choices(void *depth) {
    for (int i = 0; i < VALUE(depth); i++)
        HAFT_PERFORM(set, HAFT_PERFORM(get) * 3 + HAFT_PERFORM(choose, 3));
    return NUMBER(HAFT_PERFORM(get));
}
static const haft_handler_t *inner_handler;
static void *with_state(void *depth) {
    int state = 0; /* in a frame: each copy has its own */
    return haft_handle(inner_handler, &state, count_choices, depth);
}
static void *deeper(void *depth) {
    return haft_handle(&keeping, NULL, with_state, depth);
}

static void handlers_inside_are_copied_with_their_state(void) {
    size_t before = stacks();
    const haft_handler_t *inner[] = {&state_in_place, &state_general};
    for (int i = 0; i < 2; i++) {
        inner_handler = inner[i];
        CHECK_EQUAL(VALUE(haft_handle(&all, NULL, with_state, NUMBER(4))), 81 * 80 / 2);
        CHECK_EQUAL(VALUE(haft_handle(&all, NULL, deeper, NUMBER(3))), 27 * 26 / 2);
        CHECK_EQUAL(VALUE(haft_handle(&all_original_first, NULL, deeper, NUMBER(4))), 81 * 80 / 2);
    }
    CHECK_EQUAL(stacks(), before);
}

/* A choice inside a choice: the inner handler's clause is a frame of the outer computation. Copies
   of the outer one share the resumptions that its frames hold; here they always copy them. */
HAFT_EFFECT(pick, int, { int count; });
static haft_resumption_t shared[1000];
static int shared_count;
static haft_answer_t pick_all(void *state, HAFT_PAYLOAD(pick) * payload, haft_resumption_t k) {
    (void)state;
    intptr_t sum = 0;
    int count = payload->count;
    shared[shared_count++] = k;
    for (int i = 0; i < count; i++)
        sum += (intptr_t)haft_resumption_resume(haft_resumption_copy(k), HAFT_REPLY(pick, i));
    return haft_answer((void *)sum);
}
HAFT_HANDLER(picking, NULL, HAFT_GENERAL(pick, pick_all));
static void *choose_and_pick(void *unused) {
    (void)unused;
    int first = HAFT_PERFORM(pick, 2);
    int second = HAFT_PERFORM(choose, 2);
    int third = HAFT_PERFORM(pick, 2);
    return NUMBER(first + second * 10 + third * 100);
}
static void *pick_inside(void *argument) {
    return haft_handle(&picking, NULL, choose_and_pick, argument);
}

static void choices_nest_in_choices(void) {
    size_t before = stacks();
    haft_may_copy_frames((haft_function_t *)pick_all);
    shared_count = 0;
    /* The choice is between sums: the outer clause is called once for each first pick, and again
       for the second in each copy. */
    int sum = VALUE(haft_handle(&all, NULL, pick_inside, NULL));
    int expected = 0;
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) /* what was chosen for the picks 0 and 1 */
            for (int first = 0; first < 2; first++)
                for (int third = 0; third < 2; third++)
                    expected += first + (first == 0 ? a : b) * 10 + third * 100;
    CHECK_EQUAL(sum, expected);
    while (shared_count > 0)
        haft_resumption_drop(shared[--shared_count]);
    CHECK_EQUAL(stacks(), before);
}

/* ---- A fiber that is resumed inside ---- */

static void *two_choices(void *unused) {
    (void)unused;
    int first = HAFT_PERFORM(choose, 2);
    HAFT_PERFORM(set, first);
    return NUMBER(first * 2 + HAFT_PERFORM(choose, 2));
}
static void *by_requests(void *unused) {
    haft_fiber_t *inner = haft_fiber_new(two_choices, unused);
    int seen = 0;
    haft_request_t request = haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(set));
    while (!haft_finished(request)) {
        seen += ((HAFT_PAYLOAD(set) *)request.payload)->value;
        request = haft_resume(inner, HAFT_REPLY(set), HAFT_HANDLES(set));
    }
    int result = VALUE(((HAFT_PAYLOAD(return ) *)request.payload)->result);
    haft_fiber_drop(inner);
    return NUMBER(result * 100 + seen);
}

static void fibers_that_are_resumed_inside_are_copied(void) {
    size_t before = stacks();
    haft_may_copy_frames((haft_function_t *)by_requests);
    CHECK_EQUAL(VALUE(haft_handle(&all, NULL, by_requests, NULL)), 602);
    CHECK_EQUAL(VALUE(haft_handle(&all_original_first, NULL, by_requests, NULL)), 602);
    CHECK_EQUAL(stacks(), before);
}

/* ---- Handlers around ---- */

static void *get_after_keep(void *unused) {
    int sum = 0;
    (void)unused;
    for (int i = 0; i < 3; i++)
        sum = sum * 10 + HAFT_PERFORM(get) + HAFT_PERFORM(keep, i) + HAFT_PERFORM(get);
    return NUMBER(sum);
}
static void *start_keeping(void *argument) {
    return haft_handle(&keeping, NULL, get_after_keep, argument);
}
static void *resume_kept(void *k) {
    return NUMBER(go_on(*(haft_resumption_t *)k, 0));
}
static int resume_under(const haft_handler_t *around, int value, haft_resumption_t k) {
    return VALUE(haft_handle(around, &value, resume_kept, &k));
}

static void a_copy_performs_to_the_handlers_around_its_resume(void) {
    size_t before = stacks();
    static const haft_handler_t *const arounds[] = {&state_in_place, &state_general};
    int one = 1;
    kept_count = 0;
    haft_handle(&state_in_place, &one, start_keeping, NULL);
    haft_resumption_t first = kept[0];
    for (int i = 0; i < 8; i++) { /* each of the three parts under handlers of its own */
        const haft_handler_t *around = arounds[i / 4];
        kept_count = 0;
        CHECK_EQUAL(resume_under(around, 2 + i % 2, haft_resumption_copy(first)), -1);
        haft_resumption_t second = kept[0];
        for (int j = 0; j < 3; j++) {
            kept_count = 0;
            CHECK_EQUAL(resume_under(arounds[j % 2], 4, haft_resumption_copy(second)), -1);
            CHECK_EQUAL(resume_under(around, 5, kept[0]),
                        (1 + 2 + i % 2) * 100 + (2 + i % 2 + 4) * 10 + 4 + 5);
        }
        haft_resumption_drop(second);
    }
    haft_resumption_drop(first);
    CHECK_EQUAL(stacks(), before);
}

/* The same scope resumes copies again after another one has: what the fiber's cache has since then
   is the other's. */
static void *get_once_after_keep(void *unused) {
    (void)unused;
    int kept_value = HAFT_PERFORM(keep, 0);
    return NUMBER(kept_value * 100 + HAFT_PERFORM(get));
}
static void *resume_by_turns(void *unused) {
    haft_resumption_t k = suspended(get_once_after_keep, unused);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(resume_under(&state_in_place, 2, haft_resumption_copy(k)), 2);
        CHECK_EQUAL(go_on(haft_resumption_copy(k), 1), 101);
        CHECK_EQUAL(resume_under(&state_general, 3, haft_resumption_copy(k)), 3);
        CHECK_EQUAL(go_on(haft_resumption_copy(k), 1), 101);
    }
    haft_resumption_drop(k);
    return unused;
}
static void copies_are_resumed_by_turns_from_two_scopes(void) {
    size_t before = stacks();
    int one = 1;
    haft_handle(&state_in_place, &one, resume_by_turns, NULL);
    CHECK_EQUAL(stacks(), before);
}

/* An inner fiber that its resumer resumes from a handler in place, and then from outside of it. */
static void *get_and_keep_twice(void *unused) {
    int sum = HAFT_PERFORM(get) + HAFT_PERFORM(keep, 1);
    (void)unused;
    sum = sum * 10 + HAFT_PERFORM(get);
    HAFT_PERFORM(tell);
    sum = sum * 10 + HAFT_PERFORM(get) + HAFT_PERFORM(keep, 2);
    return NUMBER(sum * 10 + HAFT_PERFORM(get));
}
static void *resume_first(void *inner) {
    CHECK(haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(tell)).effect == HAFT_ID(tell));
    return NULL;
}
static void *resume_inside_and_outside(void *unused) {
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(get_and_keep_twice, unused);
    int five = 5;
    haft_handle(&state_in_place, &five, resume_first, inner);
    haft_request_t request = haft_resume(inner, HAFT_REPLY(tell), HAFT_HANDLES(tell));
    return ((HAFT_PAYLOAD(return ) *)request.payload)->result;
}
static void *start_inside_and_outside(void *unused) {
    haft_resumption_t first = suspended(resume_inside_and_outside, unused);
    for (int i = 0; i < 3; i++) {
        kept_count = 0;
        CHECK_EQUAL(go_on(haft_resumption_copy(first), 0), -1);
        haft_resumption_t second = kept[0];
        for (int j = 0; j < 3; j++) {
            CHECK_EQUAL(go_on(haft_resumption_copy(second), 0), 5511);
            kept_count = 0;
            CHECK_EQUAL(go_on(haft_resumption_copy(first), 0), -1);
            CHECK_EQUAL(go_on(kept[0], 0), 5511);
        }
        haft_resumption_drop(second);
    }
    haft_resumption_drop(first);
    return unused;
}
static void inner_fibers_of_copies_have_the_handlers_of_their_resumers(void) {
    size_t before = stacks();
    int one = 1;
    haft_may_copy_frames((haft_function_t *)resume_inside_and_outside);
    haft_handle(&state_in_place, &one, start_inside_and_outside, NULL);
    CHECK_EQUAL(stacks(), before);
}

/* Copies whose frames lie differently on the same stack: a sanitizer that colours them sees each
   one's own. */
static __attribute__((noinline)) int keep_below_small_arrays(int depth) {
    volatile char small[24];
    small[0] = (char)depth;
    int got = depth > 0 ? keep_below_small_arrays(depth - 1) : HAFT_PERFORM(keep, 2);
    return got + small[0];
}
static __attribute__((noinline)) int fill_a_large_array(void) {
    volatile char large[6000];
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = 1;
    return large[17] + HAFT_PERFORM(keep, 3);
}
static void *lie_differently(void *unused) {
    int got = HAFT_PERFORM(keep, 1);
    (void)unused;
    return NUMBER(got == 1 ? keep_below_small_arrays(20) : fill_a_large_array());
}
static void copies_lie_differently_on_one_stack(void) {
    size_t before = stacks();
    haft_resumption_t k = suspended(lie_differently, NULL);
    for (int i = 0; i < 4; i++) {
        kept_count = 0;
        CHECK_EQUAL(go_on(haft_resumption_copy(k), 1), -1);
        CHECK_EQUAL(go_on(haft_resumption_copy(k), 2), -1);
        CHECK_EQUAL(go_on(kept[0], 5), 20 * 21 / 2 + 5);
        CHECK_EQUAL(go_on(kept[1], 5), 6);
    }
    haft_resumption_drop(k);
    CHECK_EQUAL(stacks(), before);
}

/* ---- Tail resumes ---- */

static haft_answer_t loop_over_copies(void *state, HAFT_PAYLOAD(keep) * payload,
                                      haft_resumption_t k) {
    int *left = state;
    (void)payload;
    if (--*left == 0)
        return haft_tail_resume(k, HAFT_REPLY(keep, 0));
    haft_resumption_t copy = haft_resumption_copy(k);
    if (*left % 2 != 0) {
        haft_resumption_drop(copy);
        return haft_tail_resume(k, HAFT_REPLY(keep, 1));
    }
    haft_resumption_drop(k);
    return haft_tail_resume(copy, HAFT_REPLY(keep, 1));
}
HAFT_HANDLER(looping, NULL, HAFT_GENERAL(keep, loop_over_copies));
static void *count_up(void *unused) {
    int count = 0;
    (void)unused;
    while (HAFT_PERFORM(keep, 0) != 0)
        count++;
    return NUMBER(count);
}
static haft_answer_t fill_big(void *state, HAFT_PAYLOAD(ask_big) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    big_t reply = {{1, 2, 3}};
    return haft_tail_resume(k, HAFT_REPLY(ask_big, reply));
}
HAFT_HANDLER(big_inside, NULL, HAFT_GENERAL(ask_big, fill_big));
static void *big_and_choice(void *unused) {
    (void)unused;
    int64_t sum = 0;
    for (int i = 0; i < 2; i++) {
        big_t got = HAFT_PERFORM(ask_big);
        int chosen = HAFT_PERFORM(choose, 3);
        sum = sum * 10 + got.words[chosen];
    }
    return NUMBER(sum);
}
static void *big_body(void *unused) {
    return haft_handle(&big_inside, NULL, big_and_choice, unused);
}

static void copies_are_resumed_after_the_clause_in_constant_space(void) {
    size_t before = stacks();
    int left = check_times(200000);
    int turns = left;
    CHECK_EQUAL(VALUE(haft_handle(&looping, &left, count_up, NULL)), turns - 1);
    CHECK_EQUAL(VALUE(haft_handle(&all, NULL, big_body, NULL)), 3 * 66);
    CHECK_EQUAL(stacks(), before);
}

/* ---- Discontinuing and dropping ---- */

static haft_reply_t raise_to_five(void *unused) {
    (void)unused;
    return HAFT_REPLY(keep, 5);
}

static void a_copy_is_discontinued(void) {
    haft_resumption_t k = suspended(add_two, NUMBER(0));
    haft_resumption_t copy = haft_resumption_copy(k);
    CHECK_EQUAL(VALUE(haft_resumption_discontinue(copy, raise_to_five, NULL)), -1);
    CHECK_EQUAL(go_on(kept[1], 1), 51);
    CHECK_EQUAL(VALUE(haft_resumption_discontinue(k, raise_to_five, NULL)), -1);
    CHECK_EQUAL(go_on(kept[2], 2), 52);
}

static int cleaned;
static void clean(const int *by) {
    cleaned += *by;
}
static void *with_cleanup(void *start) {
    __attribute__((cleanup(clean))) int by = 1;
    by += HAFT_PERFORM(keep, 1);
    return NUMBER(VALUE(start) + by);
}

static void a_copy_whose_frames_may_be_copied_runs_its_cleanups(void) {
    size_t before = stacks();
    haft_may_copy_frames((haft_function_t *)with_cleanup);
    cleaned = 0;
    haft_resumption_t k = suspended(with_cleanup, NUMBER(100));
    haft_resumption_t copy = haft_resumption_copy(k);
    haft_resumption_t other = haft_resumption_copy(copy);
    CHECK_EQUAL(go_on(copy, 10), 111);
    CHECK_EQUAL(cleaned, 11);
    haft_resumption_drop(other);
    CHECK_EQUAL(cleaned, 12);
    haft_resumption_drop(k);
    CHECK_EQUAL(cleaned, 13);
    CHECK_EQUAL(stacks(), before);
}

static void dropping_copies_of_a_chain_gives_all_stacks_back(void) {
    size_t before = stacks();
    inner_handler = &state_general;
    haft_may_copy_frames((haft_function_t *)try_all);
    for (int i = 0; i < 100; i++) {
        kept_count = 0;
        haft_resumption_t copies[3];
        haft_resumption_t k = suspended(add_two, NULL);
        for (int j = 0; j < 3; j++)
            copies[j] = haft_resumption_copy(k);
        haft_resumption_drop(copies[i % 3]);
        haft_resumption_drop(k);
        haft_resumption_drop(copies[(i + 1) % 3]);
        CHECK_EQUAL(go_on(copies[(i + 2) % 3], 1), -1);
        haft_resumption_drop(kept[1]);
    }
    CHECK_EQUAL(stacks(), before);
}

/* ---- Many ---- */

HAFT_EFFECT(tick, void, {});
static haft_resumption_t *many;
static int many_count;
static size_t frames_of_tick;
static haft_answer_t keep_copy(void *state, HAFT_PAYLOAD(tick) * payload, haft_resumption_t k) {
    (void)state, (void)payload;
    frames_of_tick = (size_t)(k.fiber->high - (char *)k.fiber->context.sp);
    many[many_count++] = haft_resumption_copy(k);
    return haft_tail_resume(k, HAFT_REPLY(tick));
}
HAFT_HANDLER(copying, NULL, HAFT_GENERAL(tick, keep_copy));
static void *tick_often(void *times) {
    intptr_t left = 0;
    while (left < VALUE(times)) {
        left++;
        HAFT_PERFORM(tick);
    }
    return (void *)left;
}
static size_t resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1)
        abort();
    fclose(file);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The bytes of malloc that are in use. */
static size_t in_use(void) {
    struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

static void a_million_copies_take_their_frames_and_little_more(void) {
    size_t before = stacks();
    int times = check_times(1000000);
    many = calloc((size_t)times, sizeof *many);
    memset(many, 1, (size_t)times * sizeof *many);
    many_count = 0;
    size_t memory = resident();
    CHECK_EQUAL((intptr_t)haft_handle(&copying, NULL, tick_often, NUMBER(times)), times);
    memory = resident() - memory;
    CHECK_EQUAL(many_count, times);
    for (int i = 0; i < times; i++)
        haft_resumption_drop(many[i]);
    if (check_bare())
        CHECK((size_t)times * (frames_of_tick + 128) + (1 << 20) > memory);
    free(many);
    CHECK_EQUAL(stacks(), before);
}

static __attribute__((noinline)) intptr_t tick_over(volatile char *frame, intptr_t times) {
    frame[0] = 1;
    while (times-- > 0)
        HAFT_PERFORM(tick);
    return frame[0];
}
static size_t size_of_frame;
static void *tick_below_a_frame(void *times) {
    volatile char frame[size_of_frame];
    return NUMBER(tick_over(frame, VALUE(times)));
}
static void copies_of_frames_of_any_size_take_little_more(void) {
    size_t before = stacks();
    static const size_t sizes[] = {8, 200, 500, 900, 950, 1000, 1500, 3333, 5000, 20000};
    int times = check_times(3600); /* the table has just been doubled */
    many = calloc((size_t)times, sizeof *many);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_of_frame = sizes[i];
        many_count = 0;
        size_t memory = in_use();
        CHECK_EQUAL(VALUE(haft_handle(&copying, NULL, tick_below_a_frame, NUMBER(times))), 1);
        memory = in_use() - memory;
        for (int j = 0; j < times; j++)
            haft_resumption_drop(many[j]);
        if (check_bare() && memory > (size_t)times * (frames_of_tick + 128))
            CHECK_EQUAL(memory / (size_t)times, frames_of_tick + 128);
    }
    free(many);
    CHECK_EQUAL(stacks(), before);
}

/* ---- Threads ---- */

static void *resume_three(void *k) {
    return NUMBER(go_on(*(haft_resumption_t *)k, 3));
}

static void a_copy_goes_on_on_another_thread(void) {
    size_t before = stacks();
    haft_resumption_t k = suspended(add_two, NUMBER(100));
    haft_resumption_t copy = haft_resumption_copy(k);
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, NULL, resume_three, &copy) != 0)
        abort();
    pthread_join(thread, &result);
    CHECK_EQUAL(VALUE(result), -1);
    CHECK_EQUAL(go_on(k, 1), -1);
    CHECK_EQUAL(go_on(kept[1], 1), 131);
    CHECK_EQUAL(go_on(kept[2], 2), 112);
    CHECK_EQUAL(stacks(), before);
}

/* ---- Mistakes ---- */

static jmp_buf back;
static haft_error_code_t code;
static char message[700];
static void leave(const haft_error_t *error) {
    code = error->code;
    snprintf(message, sizeof message, "%s", error->message);
    longjmp(back, 1);
}
typedef void action_t(haft_resumption_t k);
static void copies(haft_resumption_t k) {
    (void)haft_resumption_copy(k);
}
static void drops(haft_resumption_t k) {
    haft_resumption_drop(k);
}
static void resumes(haft_resumption_t k) {
    (void)go_on(k, 2);
}
static void replies_to_get(haft_resumption_t k) {
    (void)haft_resumption_resume(k, HAFT_REPLY(get, 1));
}
static __attribute__((noinline)) void reported(action_t *action, haft_resumption_t k) {
    haft_error_handler_t *volatile before = haft_set_error_handler(leave);
    code = 0;
    message[0] = '\0';
    if (setjmp(back) == 0)
        action(k);
    haft_set_error_handler(before);
}
#define CHECK_REPORTS(expected, part, action, k)                                                   \
    do {                                                                                           \
        reported(action, k);                                                                       \
        CHECK_EQUAL(code, expected);                                                               \
        CHECK_CONTAINS(message, part);                                                             \
    } while (0)

static void a_copy_is_used_once(void) {
    size_t before = stacks();
    haft_resumption_t k = suspended(add_two, NUMBER(100)), copy, none = {NULL, 0};
    copy = haft_resumption_copy(k);
    CHECK_EQUAL(go_on(copy, 1), -1);
    CHECK_REPORTS(HAFT_ERROR_USED_RESUMPTION, "has been used already", resumes, copy);
    CHECK_REPORTS(HAFT_ERROR_USED_RESUMPTION, "has been used already", drops, copy);
    CHECK_REPORTS(HAFT_ERROR_USED_RESUMPTION, "cannot be copied: it has been used already", copies,
                  copy);
    CHECK_REPORTS(HAFT_ERROR_USED_RESUMPTION, "has been used already", copies, none);
    CHECK_EQUAL(go_on(k, 2), -1);
    CHECK_REPORTS(HAFT_ERROR_USED_RESUMPTION, "has been used already", resumes, k);
    haft_resumption_drop(kept[1]);
    haft_resumption_drop(kept[2]);
    CHECK_REPORTS(HAFT_ERROR_USED_RESUMPTION, "has been used already", resumes, copy);
    CHECK_EQUAL(stacks(), before);
}

static void a_wrong_reply_leaves_a_copy_as_it_was(void) {
    haft_resumption_t k = suspended(add_two, NUMBER(100));
    haft_resumption_t copy = haft_resumption_copy(k);
    CHECK_EQUAL(go_on(k, 1), -1);
    CHECK_REPORTS(HAFT_ERROR_WRONG_TYPE, "waits for a reply to the effect 'keep'", replies_to_get,
                  copy);
    CHECK_EQUAL(go_on(copy, 2), -1);
    CHECK_EQUAL(go_on(kept[2], 2), 122);
    haft_resumption_drop(kept[1]);
}

static void *with_another_cleanup(void *start) {
    __attribute__((cleanup(clean))) int by = 2;
    by += HAFT_PERFORM(keep, 1);
    return NUMBER(VALUE(start) + by);
}
static void *perform_below(void *start) {
    return NUMBER(VALUE(start) + HAFT_PERFORM(keep, 1));
}
static __attribute__((noinline)) void *call_with_cleanup(void *start) {
    __attribute__((cleanup(clean))) int by = 1;
    void *result = perform_below(start);
    by++;
    return result;
}

/* The cleanup is on the outer of two stacks, and the innermost function has one elsewhere. */
static void *perform_deep_inside(void *unused) {
    int got = 0;
    for (int i = 0; i < 2; i++) {
        if (i == 1) {
            __attribute__((cleanup(clean))) int by = 5;
            got += by;
        }
        got += HAFT_PERFORM(keep, i);
    }
    (void)unused;
    return NUMBER(got);
}
static void *cleanup_outside(void *unused) {
    __attribute__((cleanup(clean))) int by = 3;
    int state = by;
    return haft_handle(&state_general, &state, perform_deep_inside, unused);
}
static void *by_request_with_cleanup(void *unused) {
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(perform_deep_inside, unused);
    haft_request_t request = haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(get));
    return haft_finished(request) ? unused : NULL;
}
static void cleanups_on_outer_stacks_are_found(void) {
    size_t before = stacks();
    if (CHECK_ADDRESS_SANITIZER)
        return; /* whose own cleanups cannot be told from others */
    void *(*const bodies[])(void *) = {cleanup_outside, by_request_with_cleanup};
    for (int i = 0; i < 2; i++) {
        haft_resumption_t k = suspended(bodies[i], NULL);
        CHECK_REPORTS(HAFT_ERROR_NOT_COPYABLE, "in a frame with cleanups or destructors", copies,
                      k);
        CHECK_EQUAL(go_on(k, 1), -1);
        CHECK_REPORTS(HAFT_ERROR_NOT_COPYABLE, "in a frame with cleanups or destructors", copies,
                      kept[1]);
        haft_resumption_drop(kept[1]);
    }
    CHECK_EQUAL(stacks(), before);
}

static void frames_with_cleanups_are_not_copied(void) {
    if (CHECK_ADDRESS_SANITIZER)
        return; /* whose own cleanups cannot be told from others */
    size_t before = stacks();
    haft_resumption_t k = suspended(with_another_cleanup, NUMBER(100));
    CHECK_REPORTS(HAFT_ERROR_NOT_COPYABLE, "in a frame with cleanups or destructors", copies, k);
    CHECK_EQUAL(go_on(k, 2), 104);
    k = suspended(call_with_cleanup, NUMBER(100));
    CHECK_REPORTS(HAFT_ERROR_NOT_COPYABLE, "in a frame with cleanups or destructors", copies, k);
    CHECK_EQUAL(go_on(k, 2), 102);
    CHECK_EQUAL(stacks(), before);
}

static void copies_after_a_look(haft_resumption_t k) {
    (void)haft_copy_looked_at(k);
}
static haft_resumption_t suspended_without_cleanups(void *(*body)(void *)) {
    const haft_fiber_options_t options = {.no_cleanups = true};
    kept_count = 0;
    CHECK_EQUAL(VALUE(haft_handle_with(&options, &keeping, NULL, body, NUMBER(100))), -1);
    return kept[0];
}
static void frames_that_promise_to_have_no_cleanups_are_looked_at_if_a_language_asks(void) {
    if (CHECK_ADDRESS_SANITIZER)
        return;
    size_t before = stacks();
    haft_know_frames_of((haft_function_t *)(uintptr_t)call_with_cleanup); /* C's are known */
    haft_resumption_t k = suspended_without_cleanups(call_with_cleanup);
    CHECK_REPORTS(HAFT_ERROR_NOT_COPYABLE, "in a frame with cleanups or destructors",
                  copies_after_a_look, k);
    CHECK_EQUAL(go_on(haft_resumption_copy(k), 2), 102);
    CHECK_EQUAL(go_on(k, 2), 102);
    k = suspended_without_cleanups(add_two);
    haft_resumption_t copy = haft_copy_looked_at(k);
    CHECK_EQUAL(go_on(k, 1), -1);
    haft_resumption_drop(kept[1]);
    CHECK_EQUAL(go_on(haft_copy_looked_at(copy), 2), -1);
    haft_resumption_drop(kept[2]);
    haft_resumption_drop(copy);
    CHECK_EQUAL(stacks(), before);
}

static _Alignas(64) char memory[65536];
static void stacks_of_other_kinds_are_not_copied(void) {
    haft_fiber_options_t options = {.memory = memory, .memory_size = sizeof memory};
    kept_count = 0;
    haft_handle_with(&options, &keeping, NULL, add_two, NULL);
    CHECK_REPORTS(HAFT_ERROR_NOT_COPYABLE, "memory of the caller", copies, kept[0]);
    haft_resumption_drop(kept[0]);
}

static void *with_memory_in_a_frame(void *unused) {
    _Alignas(64) char frame[32768];
    haft_fiber_options_t options = {.memory = frame, .memory_size = sizeof frame};
    haft_fiber_t *inner = haft_fiber_new_with(&options, add_two, unused);
    (void)haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(keep));
    int got = HAFT_PERFORM(keep, 1);
    haft_fiber_drop(inner);
    return NUMBER(got);
}
static void a_frame_with_a_fiber_in_it_is_not_copied(void) {
    if (RUNNING_ON_VALGRIND)
        return; /* which takes the inner stack for a part of the outer one */
    haft_resumption_t k = suspended(with_memory_in_a_frame, NULL);
    CHECK_REPORTS(HAFT_ERROR_NOT_COPYABLE, "hold memory in which another fiber runs", copies, k);
    CHECK_EQUAL(go_on(k, 4), 4);
}

/* A computation that resumes a copy of itself. */
static haft_resumption_t of_itself;
static void *resume_itself(void *unused) {
    (void)unused;
    int got = HAFT_PERFORM(keep, 1);
    if (got == 1)
        CHECK_REPORTS(HAFT_ERROR_NOT_RESUMABLE, "is running. A computation cannot go on", resumes,
                      of_itself);
    return NUMBER(got);
}
static void code_of_a_computation_cannot_resume_a_copy_of_it(void) {
    size_t before = stacks();
    haft_resumption_t k = suspended(resume_itself, NULL);
    of_itself = haft_resumption_copy(k);
    CHECK_EQUAL(go_on(k, 1), 1);
    CHECK_EQUAL(go_on(of_itself, 2), 2);
    CHECK_EQUAL(stacks(), before);
}

/* One thread at a time uses a computation and its copies. */
static int to_main[2], to_other[2];
static void *wait_for_main(void *unused) {
    (void)unused;
    int got = HAFT_PERFORM(keep, 1);
    char byte = 0;
    if (got == 1 && (write(to_main[1], &byte, 1) != 1 || read(to_other[0], &byte, 1) != 1))
        abort();
    return NUMBER(got);
}
static void *resume_one(void *k) {
    return NUMBER(go_on(*(haft_resumption_t *)k, 1));
}
static void copies_of_what_another_thread_runs_are_not_used(void) {
    size_t before = stacks();
    haft_resumption_t k = suspended(wait_for_main, NULL);
    haft_resumption_t other = haft_resumption_copy(k);
    pthread_t thread;
    char byte = 0;
    void *result;
    if (pipe(to_main) != 0 || pipe(to_other) != 0 ||
        pthread_create(&thread, NULL, resume_one, &other) != 0 || read(to_main[0], &byte, 1) != 1)
        abort();
    CHECK_REPORTS(HAFT_ERROR_NOT_RESUMABLE, "is running. A computation cannot go on", resumes, k);
    for (int i = 0; i < 2; i++)
        CHECK_REPORTS(HAFT_ERROR_NOT_RESUMABLE, "is run by another thread. One thread at a time",
                      i == 0 ? copies : drops, k);
    if (write(to_other[1], &byte, 1) != 1)
        abort();
    pthread_join(thread, &result);
    CHECK_EQUAL(VALUE(result), 1);
    CHECK_EQUAL(go_on(haft_resumption_copy(k), 2), 2);
    CHECK_EQUAL(go_on(k, 3), 3);
    for (int i = 0; i < 2; i++) {
        close(to_main[i]);
        close(to_other[i]);
    }
    CHECK_EQUAL(stacks(), before);
}

/* A clause in place, on the computation's own stack, gives up the other copies: Prolog's cut. */
static void drop_all_kept(void *state, HAFT_PAYLOAD(tell) * payload) {
    (void)state, (void)payload;
    while (kept_count > 0)
        haft_resumption_drop(kept[--kept_count]);
}
HAFT_HANDLER(cutting, NULL, HAFT_TAIL(tell, drop_all_kept));
static void *keep_and_cut(void *unused) {
    (void)unused;
    int got = HAFT_PERFORM(keep, 1);
    HAFT_PERFORM(tell);
    return NUMBER(got);
}
static void *keep_and_cut_here(void *unused) {
    return haft_handle(&cutting, NULL, keep_and_cut, unused);
}
static void *go_on_under_cutting(void *k) {
    CHECK_EQUAL(VALUE(haft_handle(&cutting, NULL, resume_three, k)), 3);
    return k;
}
static void a_computation_drops_copies_of_itself(void) {
    size_t before = stacks();
    if (CHECK_ADDRESS_SANITIZER)
        return; /* each of them would have to run the sanitizer's cleanups there */
    for (int i = 0; i < 4; i++) {
        haft_resumption_t k = suspended(i < 2 ? keep_and_cut_here : keep_and_cut, NULL);
        kept[1] = haft_resumption_copy(k);
        kept[2] = haft_resumption_copy(k);
        k = haft_resumption_copy(k);
        kept_count = 3;
        pthread_t thread;
        if (i % 2 == 0)
            (void)go_on_under_cutting(&k);
        else if (pthread_create(&thread, NULL, go_on_under_cutting, &k) != 0 ||
                 pthread_join(thread, NULL) != 0)
            abort();
        CHECK_EQUAL(kept_count, 0);
        CHECK_EQUAL(stacks(), before);
    }
}

static haft_answer_t promise_and_resume(void *state, HAFT_PAYLOAD(keep) * payload,
                                        haft_resumption_t k) {
    (void)state, (void)payload;
    if (kept_count++ != 0)
        return haft_tail_resume(k, HAFT_REPLY(keep, 0));
    kept[0] = haft_resumption_copy(k);
    haft_answer_t promise = haft_tail_resume(k, HAFT_REPLY(keep, 1));
    CHECK_REPORTS(HAFT_ERROR_NOT_RESUMABLE, "is promised by haft_tail_resume", resumes, kept[0]);
    return promise;
}
HAFT_HANDLER(promising, NULL, HAFT_GENERAL(keep, promise_and_resume));
static void a_promised_computation_is_not_set_aside(void) {
    size_t before = stacks();
    kept_count = 0;
    CHECK_EQUAL(VALUE(haft_handle(&promising, NULL, add_two, NULL)), 10);
    haft_resumption_drop(kept[0]);
    CHECK_EQUAL(stacks(), before);
}

/* The clause's own resumption, of a computation that goes on as a copy. */
static haft_answer_t promise_and_forget(void *state, HAFT_PAYLOAD(keep) * payload,
                                        haft_resumption_t k) {
    (void)state, (void)payload;
    kept[kept_count++] = k;
    if (kept_count == 1)
        return haft_answer(NUMBER(-1));
    haft_answer_t promise = haft_tail_resume(k, HAFT_REPLY(keep, 1));
    (void)promise;
    return haft_answer(NULL);
}
HAFT_HANDLER(forgetting, NULL, HAFT_GENERAL(keep, promise_and_forget));
static void a_promise_of_a_copy_that_is_not_returned_is_reported(void) {
    size_t before = stacks();
    kept_count = 0;
    CHECK_EQUAL(VALUE(haft_handle(&forgetting, NULL, add_two, NULL)), -1);
    haft_resumption_t copy = haft_resumption_copy(kept[0]);
    CHECK_REPORTS(HAFT_ERROR_BAD_ARGUMENT, "has called haft_tail_resume and returned something",
                  resumes, copy);
    CHECK_EQUAL(kept_count, 2);
    CHECK(haft_resumption_effect(kept[1]) == HAFT_ID(keep)); /* unused, as the report was left */
    haft_resumption_drop(kept[1]);
    haft_resumption_drop(kept[0]);
    CHECK_EQUAL(stacks(), before);
}

/* ---- Kinds of stacks ---- */

static void a_computation_on_a_dense_stack_is_copied(void) {
    size_t before = stacks();
    const haft_fiber_options_t options = {.dense = true, .stack_size = 8192};
    for (int i = 0; i < 3; i++) {
        kept_count = 0;
        haft_handle_with(&options, &keeping, NULL, add_two, NUMBER(100));
        haft_resumption_t k = kept[0], copy = haft_resumption_copy(k);
        for (int j = 1; j < 5; j++) {
            kept_count = 0;
            CHECK_EQUAL(go_on(haft_resumption_copy(j % 2 == 0 ? k : copy), j), -1);
            CHECK_EQUAL(go_on(haft_resumption_copy(kept[0]), 2), 102 + j * 10);
            CHECK_EQUAL(go_on(kept[0], 3), 103 + j * 10);
        }
        haft_resumption_drop(i % 2 == 0 ? k : copy);
        haft_resumption_drop(i % 2 == 0 ? copy : k);
        CHECK_EQUAL(stacks(), before);
    }
}

/* A computation whose inner fiber is then resumed by hand. */
static void *run_inner(void *start) {
    return NUMBER(VALUE(start) + HAFT_PERFORM(keep, 2));
}
static haft_fiber_t *inner_fiber;
static void *inner_by_hand(void *unused) {
    int result = 0;
    inner_fiber = haft_fiber_new(run_inner, unused);
    haft_request_t request = haft_resume(inner_fiber, HAFT_NO_REPLY, HAFT_HANDLES(get));
    if (haft_finished(request))
        result = VALUE(((HAFT_PAYLOAD(return ) *)request.payload)->result);
    haft_fiber_t *inner = inner_fiber;
    haft_fiber_reset(inner, run_inner, unused);
    (void)haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(keep));
    result += HAFT_PERFORM(keep, 3);
    haft_fiber_drop(inner);
    return NUMBER(result);
}
static void a_fiber_that_waits_for_a_resume_is_not_set_aside(void) {
    size_t before = stacks();
    haft_may_copy_frames((haft_function_t *)inner_by_hand);
    haft_resumption_t k = suspended(inner_by_hand, NULL);
    haft_resumption_t copy = haft_resumption_copy(k);
    CHECK_EQUAL(go_on(k, 1), -1);
    CHECK_REPORTS(HAFT_ERROR_NOT_RESUMABLE, "waits for a haft_resume", resumes, copy);
    CHECK_EQUAL(go_on(kept[1], 10), 11);
    CHECK_EQUAL(go_on(copy, 2), -1);
    CHECK_EQUAL(go_on(kept[2], 20), 22);
    CHECK_EQUAL(stacks(), before);
}

/* A computation that keeps an inner fiber after that has ended. */
static void *drop_later(void *unused) {
    haft_fiber_t *inner = haft_fiber_new(run_inner, unused);
    haft_request_t request = haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(get));
    int result = VALUE(((HAFT_PAYLOAD(return ) *)request.payload)->result);
    result = result * 10 + HAFT_PERFORM(keep, 3);
    haft_fiber_drop(inner);
    return NUMBER(result);
}
static void a_fiber_that_has_ended_is_dropped_before_a_copy_goes_on(void) {
    size_t before = stacks();
    haft_may_copy_frames((haft_function_t *)drop_later);
    haft_resumption_t k = suspended(drop_later, NULL);
    haft_resumption_t copy = haft_resumption_copy(k);
    CHECK_EQUAL(go_on(k, 1), -1);
    for (int i = 0; i < 2; i++)
        CHECK_REPORTS(HAFT_ERROR_NOT_RESUMABLE, "has ended and has not been dropped", resumes,
                      copy);
    CHECK_EQUAL(go_on(kept[1], 2), 12);
    CHECK_EQUAL(go_on(copy, 3), -1);
    CHECK_EQUAL(go_on(kept[2], 4), 34);
    CHECK_EQUAL(stacks(), before);
}

static void promise_many(void) {
    for (int i = 0; i < 65; i++)
        haft_may_copy_frames((haft_function_t *)promise_many);
}
static void so_many_functions_may_be_promised(void) {
    CHECK_ABORTS(promise_many, "haft_may_copy_frames has been called for more than 64 functions.");
}

static void clean_and_keep(const int *by) {
    cleaned += *by + HAFT_PERFORM(keep, 3);
}
static void *keep_while_cleaning(void *unused) {
    __attribute__((cleanup(clean_and_keep), unused)) int by = 1;
    HAFT_PERFORM(keep, 1);
    return unused;
}
static void what_is_being_unwound_is_not_copied(void) {
    size_t before = stacks();
    haft_resumption_t k = suspended(keep_while_cleaning, NULL);
    haft_resumption_drop(k);
    CHECK_EQUAL(kept_count, 2);
    CHECK_REPORTS(HAFT_ERROR_NOT_COPYABLE, "it is being unwound", copies, kept[1]);
    CHECK(haft_resumption_resume(kept[1], HAFT_REPLY(keep, 1)) == HAFT_NO_ANSWER);
    CHECK_EQUAL(stacks(), before);
}

static haft_resumption_t of_handler;
static void drop_there(int unused) {
    (void)unused;
    haft_resumption_drop(of_handler);
}
static void copy_there(int unused) {
    (void)unused;
    (void)haft_resumption_copy(of_handler);
}
static void in_signal_handler(void (*there)(int)) {
    of_handler = haft_resumption_copy(suspended(add_two, NULL));
    struct sigaction action = {.sa_handler = there, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}
static void drop_in_signal_handler(void) {
    in_signal_handler(drop_there);
}
static void copy_in_signal_handler(void) {
    in_signal_handler(copy_there);
}
static void copies_are_not_used_in_a_signal_handler(void) {
    CHECK_ABORTS(drop_in_signal_handler, "cannot be dropped in a signal handler");
    CHECK_ABORTS(copy_in_signal_handler, "cannot be copied in a signal handler");
}

/* ---- What tools do not know ---- */

static void copy_one(void) {
    (void)haft_resumption_copy(suspended(add_two, NULL));
}
static void the_thread_sanitizer_knows_no_copies(void) {
    CHECK_ABORTS(copy_one, "because the thread sanitizer knows no copies of stacks.");
}
static void copy_one_with_fake_stacks(void) {
    setenv("ASAN_OPTIONS", "detect_stack_use_after_return=1", 1);
    execl("/proc/self/exe", "copy_one", "copy_one", (char *)NULL);
}
static void frames_that_the_address_sanitizer_keeps_elsewhere_are_not_copied(void) {
    if (CHECK_ADDRESS_SANITIZER)
        CHECK_ABORTS(copy_one_with_fake_stacks,
                     "because the address sanitizer keeps frames elsewhere: set "
                     "ASAN_OPTIONS=detect_stack_use_after_return=0.");
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "copy_one") == 0) {
        copy_one();
        return 0;
    }
    if (CHECK_THREAD_SANITIZER) {
        RUN(the_thread_sanitizer_knows_no_copies);
        return check_end();
    }
    RUN(a_copy_goes_on_beside_the_original);
    RUN(copies_go_on_in_any_order);
    RUN(copies_of_copies_outlive_what_they_were_made_of);
    RUN(a_clause_goes_on_with_every_choice);
    RUN(handlers_inside_are_copied_with_their_state);
    RUN(choices_nest_in_choices);
    RUN(fibers_that_are_resumed_inside_are_copied);
    RUN(a_copy_performs_to_the_handlers_around_its_resume);
    RUN(copies_are_resumed_by_turns_from_two_scopes);
    RUN(inner_fibers_of_copies_have_the_handlers_of_their_resumers);
    RUN(copies_lie_differently_on_one_stack);
    RUN(copies_are_resumed_after_the_clause_in_constant_space);
    RUN(a_copy_is_discontinued);
    RUN(a_copy_whose_frames_may_be_copied_runs_its_cleanups);
    RUN(dropping_copies_of_a_chain_gives_all_stacks_back);
    RUN(a_million_copies_take_their_frames_and_little_more);
    RUN(copies_of_frames_of_any_size_take_little_more);
    RUN(a_copy_goes_on_on_another_thread);
    RUN(a_copy_is_used_once);
    RUN(a_wrong_reply_leaves_a_copy_as_it_was);
    RUN(frames_with_cleanups_are_not_copied);
    RUN(cleanups_on_outer_stacks_are_found);
    RUN(frames_that_promise_to_have_no_cleanups_are_looked_at_if_a_language_asks);
    RUN(stacks_of_other_kinds_are_not_copied);
    RUN(a_frame_with_a_fiber_in_it_is_not_copied);
    RUN(code_of_a_computation_cannot_resume_a_copy_of_it);
    RUN(a_computation_drops_copies_of_itself);
    RUN(a_promised_computation_is_not_set_aside);
    RUN(a_promise_of_a_copy_that_is_not_returned_is_reported);
    RUN(a_computation_on_a_dense_stack_is_copied);
    RUN(a_fiber_that_waits_for_a_resume_is_not_set_aside);
    RUN(a_fiber_that_has_ended_is_dropped_before_a_copy_goes_on);
    RUN(so_many_functions_may_be_promised);
    RUN(what_is_being_unwound_is_not_copied);
    RUN(copies_are_not_used_in_a_signal_handler);
    RUN(copies_of_what_another_thread_runs_are_not_used);
    RUN(frames_that_the_address_sanitizer_keeps_elsewhere_are_not_copied);
    return check_end();
}
