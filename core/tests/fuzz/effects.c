/* SPDX-License-Identifier: MIT */
#include "effects.h"

/* An effect's line gives it its entry of caches: here two effects share each of the eight. */
HAFT_EFFECT(effect_0, int64_t, { int64_t number; });
HAFT_EFFECT(effect_1, void, { int64_t number; });
HAFT_EFFECT(effect_2, triple_t, { int64_t number; });
HAFT_EFFECT(effect_3, int64_t, { int64_t words[6]; });
HAFT_EFFECT(effect_4, double, { double number; });
HAFT_EFFECT(effect_5, int64_t, {});
HAFT_EFFECT(effect_6, int64_t, { int64_t number; });
HAFT_EFFECT(effect_7, void, { int64_t number; });
HAFT_EFFECT(effect_8, triple_t, { int64_t number; });
HAFT_EFFECT(effect_9, int64_t, { int64_t words[6]; });
HAFT_EFFECT(effect_10, double, { double number; });
HAFT_EFFECT(effect_11, int64_t, {});
HAFT_EFFECT(effect_12, int64_t, { int64_t number; });
HAFT_EFFECT(effect_13, void, { int64_t number; });
HAFT_EFFECT(effect_14, triple_t, { int64_t number; });
HAFT_EFFECT(effect_15, int64_t, { int64_t words[6]; });

haft_effect_t *const effects[EFFECTS] = {
    HAFT_ID(effect_0),  HAFT_ID(effect_1),  HAFT_ID(effect_2),  HAFT_ID(effect_3),
    HAFT_ID(effect_4),  HAFT_ID(effect_5),  HAFT_ID(effect_6),  HAFT_ID(effect_7),
    HAFT_ID(effect_8),  HAFT_ID(effect_9),  HAFT_ID(effect_10), HAFT_ID(effect_11),
    HAFT_ID(effect_12), HAFT_ID(effect_13), HAFT_ID(effect_14), HAFT_ID(effect_15)};

int index_of(const haft_effect_t *effect) {
    int index = 0;
    while (effects[index] != effect)
        index++;
    return index;
}

static void check(bool intact) {
    if (!intact)
        observe(BROKEN, 0, 0);
}

static int64_t untriple(triple_t triple) {
    check(triple.words[1] == triple.words[0] + 1 && triple.words[2] == triple.words[0] + 2);
    return triple.words[0];
}
static triple_t make_triple(int64_t value) {
    return (triple_t){{value, value + 1, value + 2}};
}
static int64_t last_of(const int64_t *words) {
    check(words[0] == words[5]);
    return words[5];
}

/* ---- One family of functions an effect ---- */

#define FAMILY(effect, name, result, make, read, give, unpack, reply)                              \
    static int64_t perform_##effect(int64_t value) {                                               \
        (void)value;                                                                               \
        return unpack(HAFT_PERFORM(name make));                                                    \
    }                                                                                              \
    static int64_t yield_##effect(haft_fiber_t *fiber, int64_t value) {                            \
        (void)value;                                                                               \
        return unpack(HAFT_YIELD(fiber, name make));                                               \
    }                                                                                              \
    static __attribute__((noreturn)) void throw_##effect(int64_t value) {                          \
        (void)value;                                                                               \
        HAFT_THROW(name make);                                                                     \
    }                                                                                              \
    static __attribute__((noreturn)) void exit_##effect(haft_fiber_t *fiber, int64_t value) {      \
        (void)value;                                                                               \
        HAFT_EXIT(fiber, name make);                                                               \
    }                                                                                              \
    static haft_request_t resume_##effect(haft_fiber_t *fiber, int64_t value,                      \
                                          const haft_handles_t *set) {                             \
        (void)value;                                                                               \
        return haft_resume(fiber, HAFT_REPLY(name reply), set);                                    \
    }                                                                                              \
    static void *resumption_resume_##effect(haft_resumption_t k, int64_t value) {                  \
        (void)value;                                                                               \
        return haft_resumption_resume(k, HAFT_REPLY(name reply));                                  \
    }                                                                                              \
    static haft_answer_t tail_resume_##effect(haft_resumption_t k, int64_t value) {                \
        (void)value;                                                                               \
        return haft_tail_resume(k, HAFT_REPLY(name reply));                                        \
    }                                                                                              \
    static int64_t payload_##effect(const void *pointer) {                                         \
        const HAFT_PAYLOAD(name) *payload = pointer;                                               \
        (void)payload;                                                                             \
        return read;                                                                               \
    }                                                                                              \
    static result tail_##effect(void *state, HAFT_PAYLOAD(name) * payload) {                       \
        give(run_tail(state, effect, payload_##effect(payload)));                                  \
    }                                                                                              \
    static haft_answer_t general_##effect(void *state, HAFT_PAYLOAD(name) * payload,               \
                                          haft_resumption_t k) {                                   \
        return run_general(state, effect, payload_##effect(payload), k);                           \
    }                                                                                              \
    static void *never_##effect(void *state, HAFT_PAYLOAD(name) * payload) {                       \
        return run_never(state, effect, payload_##effect(payload));                                \
    }                                                                                              \
    static result first_default_##effect(void *unused, HAFT_PAYLOAD(name) * payload) {             \
        (void)unused;                                                                              \
        give(run_default(effect, 0, payload_##effect(payload)));                                   \
    }                                                                                              \
    static result second_default_##effect(void *unused, HAFT_PAYLOAD(name) * payload) {            \
        (void)unused;                                                                              \
        give(run_default(effect, 1, payload_##effect(payload)));                                   \
    }                                                                                              \
    static int set_default_##effect(int variant) {                                                 \
        haft_function_t *before = haft_default(HAFT_ID(name));                                     \
        if (variant == 0)                                                                          \
            HAFT_SET_DEFAULT(name, NULL);                                                          \
        else if (variant == 1)                                                                     \
            HAFT_SET_DEFAULT(name, first_default_##effect);                                        \
        else                                                                                       \
            HAFT_SET_DEFAULT(name, second_default_##effect);                                       \
        return before == NULL                                                   ? 0                \
               : before == (haft_function_t *)(uintptr_t)first_default_##effect ? 1                \
                                                                                : 2;               \
    }

/* Fields of a payload, as the arguments that follow the effect's name. */
#define FIELD , value
#define FIELDS                                                                                     \
    , {                                                                                            \
        value, 0, 0, 0, 0, value                                                                   \
    }
#define NO_FIELDS
/* The result of a clause, and the meaning of a perform's result. */
#define GIVE_WHOLE(value) return value
#define GIVE_NOTHING(value) (void)value
#define GIVE_TRIPLE(value) return make_triple(value)
#define GIVE_REAL(value) return (double)value
#define TAKE(value) ((int64_t)(value))
#define TAKE_NOTHING(call) ((call), (int64_t)0)
/* The value of a reply, as the argument that follows the effect's name. */
#define VALUE , value
#define VALUE_TRIPLE , make_triple(value)
#define VALUE_REAL , (double)value
#define NO_VALUE

#define WHOLE_FAMILY(effect)                                                                       \
    FAMILY(effect, effect_##effect, int64_t, FIELD, payload->number, GIVE_WHOLE, TAKE, VALUE)
#define SILENT_FAMILY(effect)                                                                      \
    FAMILY(effect, effect_##effect, void, FIELD, payload->number, GIVE_NOTHING, TAKE_NOTHING,      \
           NO_VALUE)
#define LARGE_FAMILY(effect)                                                                       \
    FAMILY(effect, effect_##effect, triple_t, FIELD, payload->number, GIVE_TRIPLE, untriple,       \
           VALUE_TRIPLE)
#define LONG_FAMILY(effect)                                                                        \
    FAMILY(effect, effect_##effect, int64_t, FIELDS, last_of(payload->words), GIVE_WHOLE, TAKE,    \
           VALUE)
#define REAL_FAMILY(effect)                                                                        \
    FAMILY(effect, effect_##effect, double, FIELD, (int64_t)payload->number, GIVE_REAL, TAKE,      \
           VALUE_REAL)
#define BARE_FAMILY(effect)                                                                        \
    FAMILY(effect, effect_##effect, int64_t, NO_FIELDS, 0, GIVE_WHOLE, TAKE, VALUE)

WHOLE_FAMILY(0)
SILENT_FAMILY(1)
LARGE_FAMILY(2)
LONG_FAMILY(3)
REAL_FAMILY(4)
BARE_FAMILY(5)
WHOLE_FAMILY(6)
SILENT_FAMILY(7)
LARGE_FAMILY(8)
LONG_FAMILY(9)
REAL_FAMILY(10)
BARE_FAMILY(11)
WHOLE_FAMILY(12)
SILENT_FAMILY(13)
LARGE_FAMILY(14)
LONG_FAMILY(15)

#define MEMBERS(effect)                                                                            \
    {                                                                                              \
        perform_##effect, yield_##effect, throw_##effect, exit_##effect, resume_##effect,          \
            resumption_resume_##effect, tail_resume_##effect, payload_##effect,                    \
            set_default_##effect, {                                                                \
            NULL, (haft_function_t *)tail_##effect, (haft_function_t *)general_##effect,           \
                (haft_function_t *)never_##effect                                                  \
        }                                                                                          \
    }
const family_t families[EFFECTS] = {MEMBERS(0),  MEMBERS(1),  MEMBERS(2),  MEMBERS(3),
                                    MEMBERS(4),  MEMBERS(5),  MEMBERS(6),  MEMBERS(7),
                                    MEMBERS(8),  MEMBERS(9),  MEMBERS(10), MEMBERS(11),
                                    MEMBERS(12), MEMBERS(13), MEMBERS(14), MEMBERS(15)};

/* ---- The untyped calls ---- */

typedef union payload {
    int64_t number, words[6];
    double real;
} payload_t;

static payload_t payload_of(int effect, int64_t value) {
    payload_t payload = {.words = {value}};
    if (shape_of(effect) == LONG)
        payload.words[5] = value;
    if (shape_of(effect) == REAL)
        payload.real = (double)value;
    return payload;
}

static int64_t value_of(int effect, const reply_t *reply) {
    switch (shape_of(effect)) {
    case SILENT:
        return 0;
    case LARGE:
        return untriple(reply->triple);
    case REAL:
        return (int64_t)reply->real;
    default:
        return reply->whole;
    }
}

int64_t perform(const statement_t *statement, int64_t value) {
    haft_effect_t *effect = effects[statement->effect];
    if (statement->form == TYPED)
        return families[statement->effect].perform(value);
    payload_t payload = payload_of(statement->effect, value);
    reply_t reply;
    haft_perform(effect, &payload, effect->payload_size + (statement->form == MISSIZED), &reply,
                 effect->result_size);
    return value_of(statement->effect, &reply);
}

int64_t yield(const statement_t *statement, haft_fiber_t *fiber, int64_t value) {
    haft_effect_t *effect = effects[statement->effect];
    if (statement->form == TYPED)
        return families[statement->effect].yield(fiber, value);
    payload_t payload = payload_of(statement->effect, value);
    reply_t reply;
    haft_yield(fiber, effect, &payload, effect->payload_size, &reply,
               effect->result_size + (statement->form == MISSIZED));
    return value_of(statement->effect, &reply);
}

__attribute__((noreturn)) void throw(const statement_t *statement, int64_t value) {
    haft_effect_t *effect = effects[statement->effect];
    if (statement->form == TYPED)
        families[statement->effect].throw(value);
    payload_t payload = payload_of(statement->effect, value);
    haft_throw(effect, &payload, effect->payload_size + (statement->form == MISSIZED));
}

__attribute__((noreturn)) void leave(const statement_t *statement, haft_fiber_t *fiber,
                                     int64_t value) {
    haft_effect_t *effect = effects[statement->effect];
    if (statement->form == TYPED)
        families[statement->effect].exit(fiber, value);
    payload_t payload = payload_of(statement->effect, value);
    haft_exit(fiber, effect, &payload, effect->payload_size + (statement->form == MISSIZED));
}

haft_reply_t untyped_reply(int effect, int64_t value, reply_t *room) {
    switch (shape_of(effect)) {
    case SILENT:
        break;
    case LARGE:
        room->triple = make_triple(value);
        break;
    case REAL:
        room->real = (double)value;
        break;
    default:
        room->whole = value;
    }
    return haft_reply(effects[effect], room, effects[effect]->result_size);
}

haft_reply_t missized_reply(int effect, reply_t *room) {
    return haft_reply(effects[effect], room, effects[effect]->result_size + 1);
}
