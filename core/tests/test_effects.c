/* Effects as values: payloads and results of every size, any number of effects, sets of any size.
 */
#include <haft.h>

#include "check.h"

typedef struct three_bytes {
    unsigned char bytes[3];
} three_bytes_t;
typedef struct line {
    int64_t words[8];
} line_t;
typedef struct page {
    unsigned char bytes[4096];
} page_t;

HAFT_EFFECT(give_bool, bool, { bool value; });
HAFT_EFFECT(give_char, signed char, { signed char value; });
HAFT_EFFECT(give_three, three_bytes_t, { three_bytes_t value; });
HAFT_EFFECT(give_float, float, { float value; });
HAFT_EFFECT(give_double, double, { double value; });
HAFT_EFFECT(give_long_double, long double, { long double value; });
HAFT_EFFECT(give_pointer, void *, { void *value; });
HAFT_EFFECT(give_line, line_t, { line_t value; });
HAFT_EFFECT(give_page, page_t, { page_t value; });
HAFT_EFFECT(take_nothing, void, {});
HAFT_EFFECT(take_many, int, {
    char a;
    double b;
    const char *c;
    int d[5];
});

/* Performs on a fiber, echoes the payload as the reply by the request loop, by a tail clause and by
   a general clause, and compares bytes. */
#define ECHO_TEST(name, type)                                                                      \
    static type name##_value;                                                                      \
    static void *name##_body(void *unused) {                                                       \
        (void)unused;                                                                              \
        type got = HAFT_PERFORM(give_##name, name##_value);                                        \
        CHECK(memcmp(&got, &name##_value, sizeof got) == 0);                                       \
        return NULL;                                                                               \
    }                                                                                              \
    static type name##_in_place(void *state, HAFT_PAYLOAD(give_##name) * payload) {                \
        ++*(int *)state;                                                                           \
        return payload->value;                                                                     \
    }                                                                                              \
    static haft_answer_t name##_general(void *state, HAFT_PAYLOAD(give_##name) * payload,          \
                                        haft_resumption_t k) {                                     \
        ++*(int *)state;                                                                           \
        return haft_answer(haft_resumption_resume(k, HAFT_REPLY(give_##name, payload->value)));    \
    }                                                                                              \
    HAFT_HANDLER(name##_tail_handler, NULL, HAFT_TAIL(give_##name, name##_in_place));              \
    HAFT_HANDLER(name##_general_handler, NULL, HAFT_GENERAL(give_##name, name##_general));         \
    static void name##_travels_there_and_back(void) {                                              \
        haft_fiber_t *fiber = haft_fiber_new(name##_body, NULL);                                   \
        haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(give_##name));     \
        CHECK(request.effect == HAFT_ID(give_##name));                                             \
        HAFT_PAYLOAD(give_##name) *payload = request.payload;                                      \
        request = haft_resume(fiber, HAFT_REPLY(give_##name, payload->value),                      \
                              HAFT_HANDLES(give_##name));                                          \
        CHECK(haft_finished(request));                                                             \
        haft_fiber_drop(fiber);                                                                    \
        int clauses = 0;                                                                           \
        haft_handle(&name##_tail_handler, &clauses, name##_body, NULL);                            \
        haft_handle(&name##_general_handler, &clauses, name##_body, NULL);                         \
        CHECK_EQUAL(clauses, 2);                                                                   \
    }

ECHO_TEST(bool, bool)
ECHO_TEST(char, signed char)
ECHO_TEST(three, three_bytes_t)
ECHO_TEST(float, float)
ECHO_TEST(double, double)
ECHO_TEST(pointer, void *)
ECHO_TEST(line, line_t)
ECHO_TEST(page, page_t)

static void *long_double_body(void *unused) {
    (void)unused;
    CHECK(HAFT_PERFORM(give_long_double, 1.0L / 3) == 1.0L / 3);
    return NULL;
}

static void a_long_double_travels_there_and_back(void) {
    HAFT_SCOPED haft_fiber_t *fiber = haft_fiber_new(long_double_body, NULL);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(give_long_double));
    HAFT_PAYLOAD(give_long_double) *payload = request.payload;
    haft_resume(fiber, HAFT_REPLY(give_long_double, payload->value), HAFT_HANDLES());
}

static void *nothing_body(void *unused) {
    HAFT_PERFORM(take_nothing);
    HAFT_PERFORM(take_nothing);
    return unused;
}

static void an_effect_without_payload_and_result_is_resumed_with_null(void) {
    HAFT_SCOPED haft_fiber_t *fiber = haft_fiber_new(nothing_body, &check_tests);
    CHECK(haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(take_nothing)).effect ==
          HAFT_ID(take_nothing));
    CHECK(haft_resume(fiber, HAFT_REPLY(take_nothing), HAFT_HANDLES(take_nothing)).effect ==
          HAFT_ID(take_nothing));
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(take_nothing));
    CHECK(haft_finished(request));
    CHECK(((HAFT_PAYLOAD(return ) *)request.payload)->result == &check_tests);
}

static void *many_body(void *unused) {
    (void)unused;
    CHECK_EQUAL(HAFT_PERFORM(take_many, 'x', 2.5, "text", {1, 2, 3, 4, 5}), 15);
    CHECK_EQUAL(HAFT_PERFORM(take_many, .d = {7}), 7);
    return NULL;
}

static int take_many_clause(void *state, HAFT_PAYLOAD(take_many) * payload) {
    if (++*(int *)state == 1) {
        CHECK(payload->a == 'x' && payload->b == 2.5);
        CHECK_SAME_TEXT(payload->c, "text");
    } else {
        CHECK(payload->a == 0 && payload->c == NULL);
    }
    int sum = 0;
    for (int i = 0; i < 5; i++)
        sum += payload->d[i];
    return sum;
}

HAFT_HANDLER(take_many_handler, NULL, HAFT_TAIL(take_many, take_many_clause));

static void fields_may_be_named_and_left_out(void) {
    int clauses = 0;
    haft_handle(&take_many_handler, &clauses, many_body, NULL);
    CHECK_EQUAL(clauses, 2);
}

static void an_effect_knows_its_name_and_where_it_is_declared(void) {
    CHECK_SAME_TEXT(HAFT_ID(take_many)->name, "take_many");
    CHECK_CONTAINS(HAFT_ID(take_many)->where, "test_effects.c:");
    CHECK_EQUAL(HAFT_ID(take_many)->payload_size, sizeof(HAFT_PAYLOAD(take_many)));
    CHECK_EQUAL(HAFT_ID(take_many)->result_size, sizeof(HAFT_RESULT(take_many)));
    CHECK_EQUAL(HAFT_ID(take_nothing)->payload_size, 0);
    CHECK_EQUAL(HAFT_ID(take_nothing)->result_size, 0);
}

/* ---- A thousand effects ---- */

#define TEN(macro, digits)                                                                         \
    macro(digits##0) macro(digits##1) macro(digits##2) macro(digits##3) macro(digits##4)           \
        macro(digits##5) macro(digits##6) macro(digits##7) macro(digits##8) macro(digits##9)
#define HUNDRED(macro, digits)                                                                     \
    TEN(macro, digits##0)                                                                          \
    TEN(macro, digits##1)                                                                          \
    TEN(macro, digits##2)                                                                          \
    TEN(macro, digits##3)                                                                          \
    TEN(macro, digits##4)                                                                          \
    TEN(macro, digits##5)                                                                          \
    TEN(macro, digits##6)                                                                          \
    TEN(macro, digits##7)                                                                          \
    TEN(macro, digits##8)                                                                          \
    TEN(macro, digits##9)
#define THREE_HUNDRED(macro) HUNDRED(macro, 0) HUNDRED(macro, 1) HUNDRED(macro, 2)
#define THOUSAND(macro)                                                                            \
    THREE_HUNDRED(macro)                                                                           \
    HUNDRED(macro, 3)                                                                              \
    HUNDRED(macro, 4)                                                                              \
    HUNDRED(macro, 5)                                                                              \
    HUNDRED(macro, 6)                                                                              \
    HUNDRED(macro, 7)                                                                              \
    HUNDRED(macro, 8)                                                                              \
    HUNDRED(macro, 9)

#define DECLARE(number) HAFT_EFFECT(numbered_##number, int, { int value; });
THOUSAND(DECLARE)

#define ID(number) HAFT_ID(numbered_##number),
static haft_effect_t *const numbered[] = {THOUSAND(ID)};

static void *perform_each(void *unused) {
    (void)unused;
    for (int i = 0; i < 1000; i++) {
        int result;
        haft_perform(numbered[i], &i, sizeof i, &result, sizeof result);
        CHECK_EQUAL(result, i + 1);
    }
    return NULL;
}

static void a_thousand_effects_are_told_apart(void) {
    HAFT_SCOPED haft_fiber_t *fiber = haft_fiber_new(perform_each, NULL);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES_ALL);
    for (int i = 0; i < 1000; i++) {
        CHECK(request.effect == numbered[i]);
        CHECK_EQUAL(*(int *)request.payload, i);
        int reply = i + 1;
        request =
            haft_resume(fiber, haft_reply(request.effect, &reply, sizeof reply), HAFT_HANDLES_ALL);
    }
    CHECK(haft_finished(request));
}

#define NAME(number) numbered_##number,

static void *perform_last_of_each_hundred(void *unused) {
    (void)unused;
    return (void *)(intptr_t)(HAFT_PERFORM(numbered_099, 1) + HAFT_PERFORM(numbered_199, 1) +
                              HAFT_PERFORM(numbered_299, 1) + HAFT_PERFORM(numbered_000, 1));
}

static void a_set_may_name_three_hundred_effects(void) {
    HAFT_SCOPED haft_fiber_t *fiber = haft_fiber_new(perform_last_of_each_hundred, NULL);
    const haft_handles_t *set = HAFT_HANDLES(THREE_HUNDRED(NAME) take_nothing);
    CHECK_EQUAL(set->count, 301);
    haft_request_t request = haft_resume(fiber, HAFT_NO_REPLY, set);
    CHECK(request.effect == HAFT_ID(numbered_099));
    request = haft_resume(fiber, HAFT_REPLY(numbered_099, 1), set);
    CHECK(request.effect == HAFT_ID(numbered_199));
    request = haft_resume(fiber, HAFT_REPLY(numbered_199, 2), set);
    CHECK(request.effect == HAFT_ID(numbered_299));
    request = haft_resume(fiber, HAFT_REPLY(numbered_299, 3), set);
    CHECK(request.effect == HAFT_ID(numbered_000));
    request = haft_resume(fiber, HAFT_REPLY(numbered_000, 4), set);
    CHECK_EQUAL((intptr_t)((HAFT_PAYLOAD(return ) *)request.payload)->result, 10);
}

static int default_of_numbered(void *unused, HAFT_PAYLOAD(numbered_999) * payload) {
    (void)unused;
    return payload->value * 2;
}

static void the_thousandth_effect_has_a_default_like_the_first(void) {
    HAFT_SET_DEFAULT(numbered_999, default_of_numbered);
    CHECK_EQUAL(HAFT_PERFORM(numbered_999, 21), 42);
    HAFT_SET_DEFAULT(numbered_999, NULL);
}

static void *perform_untyped(void *unused) {
    (void)unused;
    line_t sent = {{1, 2, 3, 4, 5, 6, 7, 8}}, got;
    haft_perform(HAFT_ID(give_line), &sent, sizeof sent, &got, sizeof got);
    CHECK(memcmp(&sent, &got, sizeof got) == 0);
    haft_perform(HAFT_ID(take_nothing), NULL, 0, NULL, 0);
    return NULL;
}

static void untyped_calls_carry_the_same_values(void) {
    HAFT_SCOPED haft_fiber_t *fiber = haft_fiber_new(perform_untyped, NULL);
    haft_request_t request =
        haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES(give_line, take_nothing));
    line_t copy = ((HAFT_PAYLOAD(give_line) *)request.payload)->value;
    request = haft_resume(fiber, haft_reply(request.effect, &copy, sizeof copy),
                          HAFT_HANDLES(give_line, take_nothing));
    CHECK(request.effect == HAFT_ID(take_nothing));
    CHECK(haft_finished(haft_resume(fiber, HAFT_NO_REPLY, HAFT_HANDLES())));
}

int main(void) {
    bool_value = true;
    char_value = -5;
    three_value = (three_bytes_t){{1, 2, 3}};
    float_value = 1.5f;
    double_value = -1e300;
    pointer_value = &check_tests;
    line_value = (line_t){{1, 2, 3, 4, 5, 6, 7, 8}};
    memset(&page_value, 0x5a, sizeof page_value);
    RUN(bool_travels_there_and_back);
    RUN(char_travels_there_and_back);
    RUN(three_travels_there_and_back);
    RUN(float_travels_there_and_back);
    RUN(double_travels_there_and_back);
    RUN(a_long_double_travels_there_and_back);
    RUN(pointer_travels_there_and_back);
    RUN(line_travels_there_and_back);
    RUN(page_travels_there_and_back);
    RUN(an_effect_without_payload_and_result_is_resumed_with_null);
    RUN(fields_may_be_named_and_left_out);
    RUN(an_effect_knows_its_name_and_where_it_is_declared);
    RUN(a_thousand_effects_are_told_apart);
    RUN(a_set_may_name_three_hundred_effects);
    RUN(the_thousandth_effect_has_a_default_like_the_first);
    RUN(untyped_calls_carry_the_same_values);
    return check_end();
}
/* SPDX-License-Identifier: MIT */
