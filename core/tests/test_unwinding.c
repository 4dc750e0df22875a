/* SPDX-License-Identifier: MIT */
/*
 * A computation is unwound under its own handler, whatever ends it: what a cleanup performs comes
 * to the handler's clauses. Every way to end x every kind of clause. (The same in C++:
 * cpp/tests/test_unwinding.cpp; in OCaml: ocaml/tests/programs/unwinding.ml; in Rust:
 * rust/haft/tests/unwinding.rs.)
 */
#include "check.h"

#include <haft.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

HAFT_EFFECT(in_place, int, { int number; });
HAFT_EFFECT(resumed, int, { int number; });
HAFT_EFFECT(tail_resumed, int, { int number; });
HAFT_EFFECT(kept, int, { int number; });
HAFT_EFFECT(let_go, int, { int number; });
HAFT_EFFECT(stops, void, { int number; });
HAFT_EFFECT(leave, void, { char reason; });
HAFT_EFFECT(wait_here, void, {});

static char told[200];
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...) {
    size_t length = strlen(told);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(told + length, sizeof told - length, format, arguments);
    va_end(arguments);
}

typedef enum {
    RETURNS,
    PERFORMS_NEVER,
    THROWS,
    IS_DROPPED,
    IS_DROPPED_LATER,
    IS_DISCONTINUED
} way_t;
typedef enum { IN_PLACE, RESUMED, TAIL_RESUMED, KEPT, LET_GO, STOPS } kind_t;
typedef struct ending {
    way_t way;
    kind_t kind;
    haft_resumption_t kept;
} ending_t;

static void clean(const kind_t *kind) {
    tell("(");
    switch (*kind) {
    case IN_PLACE:
        tell("%d", HAFT_PERFORM(in_place, 1));
        break;
    case RESUMED:
        tell("%d", HAFT_PERFORM(resumed, 1));
        break;
    case TAIL_RESUMED:
        tell("%d", HAFT_PERFORM(tail_resumed, 1));
        break;
    case KEPT:
        tell("%d", HAFT_PERFORM(kept, 1));
        break;
    case LET_GO:
        tell("%d", HAFT_PERFORM(let_go, 1));
        break;
    case STOPS:
        HAFT_PERFORM(stops, 1);
        break;
    }
    tell(")");
}
static void clean_outermost(const int *unused) {
    (void)unused;
    tell(".");
}

static void *body(void *argument) {
    const ending_t *ending = argument;
    __attribute__((cleanup(clean_outermost), unused)) int outermost = 0;
    __attribute__((cleanup(clean), unused)) kind_t kind = ending->kind;
    if (ending->way == PERFORMS_NEVER)
        HAFT_PERFORM(leave, 'p');
    if (ending->way == THROWS)
        HAFT_THROW(leave, 't');
    if (ending->way != RETURNS)
        HAFT_PERFORM(wait_here);
    return (void *)"body";
}

static int in_place_clause(void *state, HAFT_PAYLOAD(in_place) * payload) {
    (void)state;
    return payload->number + 10;
}
static const char *text_of(const void *answer) {
    return answer == HAFT_NO_ANSWER ? "none" : answer;
}
static haft_answer_t resumed_clause(void *state, HAFT_PAYLOAD(resumed) * payload,
                                    haft_resumption_t k) {
    (void)state;
    int reply = payload->number + 20;
    void *answer = haft_resumption_resume(k, HAFT_REPLY(resumed, reply));
    tell("[%s]", text_of(answer));
    return haft_answer(answer);
}
static haft_answer_t tail_resumed_clause(void *state, HAFT_PAYLOAD(tail_resumed) * payload,
                                         haft_resumption_t k) {
    (void)state;
    return haft_tail_resume(k, HAFT_REPLY(tail_resumed, payload->number + 30));
}
static haft_answer_t kept_clause(void *state, HAFT_PAYLOAD(kept) * payload, haft_resumption_t k) {
    ((ending_t *)state)->kept = k;
    (void)payload;
    return haft_answer("keeps");
}
static haft_answer_t let_go_clause(void *state, HAFT_PAYLOAD(let_go) * payload,
                                   haft_resumption_t k) {
    (void)state, (void)payload;
    haft_resumption_drop(k);
    return haft_answer("lets go");
}
static void *stops_clause(void *state, HAFT_PAYLOAD(stops) * payload) {
    (void)state, (void)payload;
    tell("!");
    return (void *)"stops";
}
static void *leave_clause(void *state, HAFT_PAYLOAD(leave) * payload) {
    (void)state;
    tell("%c", payload->reason);
    return (void *)"leaves";
}
static haft_reply_t leave_from_here(void *unused) {
    (void)unused;
    HAFT_THROW(leave, 'd');
}
static haft_answer_t wait_clause(void *state, HAFT_PAYLOAD(wait_here) * payload,
                                 haft_resumption_t k) {
    ending_t *ending = state;
    (void)payload;
    if (ending->way == IS_DISCONTINUED)
        return haft_answer(haft_resumption_discontinue(k, leave_from_here, NULL));
    if (ending->way == IS_DROPPED)
        haft_resumption_drop(k);
    else
        ending->kept = k;
    return haft_answer("waits");
}
HAFT_HANDLER(handler, NULL, HAFT_TAIL(in_place, in_place_clause),
             HAFT_GENERAL(resumed, resumed_clause), HAFT_GENERAL(tail_resumed, tail_resumed_clause),
             HAFT_GENERAL(kept, kept_clause), HAFT_GENERAL(let_go, let_go_clause),
             HAFT_NEVER(stops, stops_clause), HAFT_NEVER(leave, leave_clause),
             HAFT_GENERAL(wait_here, wait_clause));

/* Handlers further out, which must not be reached. */
static int outer_int(void *state, HAFT_PAYLOAD(in_place) * payload) {
    (void)state, (void)payload;
    tell("OUTER");
    return 0;
}
HAFT_HANDLER(outer, NULL, HAFT_TAIL(in_place, outer_int));
static void *inside(void *argument) {
    ending_t *ending = argument;
    void *answer = haft_handle(&handler, ending, body, ending);
    if (ending->way == IS_DROPPED_LATER) {
        haft_resumption_t k = ending->kept;
        ending->kept = (haft_resumption_t){0};
        haft_resumption_drop(k);
    }
    if (ending->kept.fiber != NULL) {
        tell("...");
        tell("[%s]", text_of(haft_resumption_resume(ending->kept, HAFT_REPLY(kept, 41))));
    }
    return answer;
}

static const struct row {
    way_t way;
    kind_t kind;
    const char *told, *answer;
} rows[] = {
    {RETURNS, IN_PLACE, "(11).", "body"},
    {RETURNS, RESUMED, "(21).[body]", "body"},
    {RETURNS, TAIL_RESUMED, "(31).", "body"},
    {RETURNS, KEPT, "(...41).[body]", "keeps"},
    {RETURNS, LET_GO, "(.", "lets go"},
    {RETURNS, STOPS, "(.!", "stops"},
    {PERFORMS_NEVER, IN_PLACE, "(11).p", "leaves"},
    {PERFORMS_NEVER, RESUMED, "(21).p[leaves]", "leaves"},
    {PERFORMS_NEVER, TAIL_RESUMED, "(31).p", "leaves"},
    {PERFORMS_NEVER, KEPT, "(...41).p[leaves]", "keeps"},
    {PERFORMS_NEVER, LET_GO, "(.", "lets go"},
    {PERFORMS_NEVER, STOPS, "(.!", "stops"},
    {THROWS, IN_PLACE, "(11).t", "leaves"},
    {THROWS, RESUMED, "(21).t[leaves]", "leaves"},
    {THROWS, TAIL_RESUMED, "(31).t", "leaves"},
    {THROWS, KEPT, "(...41).t[leaves]", "keeps"},
    {THROWS, LET_GO, "(.", "lets go"},
    {THROWS, STOPS, "(.!", "stops"},
    {IS_DROPPED, IN_PLACE, "(11).", "waits"},
    {IS_DROPPED, RESUMED, "(21).[none]", "waits"},
    {IS_DROPPED, TAIL_RESUMED, "(31).", "waits"},
    {IS_DROPPED, KEPT, "(...41).[none]", "waits"},
    {IS_DROPPED, LET_GO, "(.", "waits"},
    {IS_DROPPED, STOPS, "(.!", "waits"},
    {IS_DROPPED_LATER, IN_PLACE, "(11).", "waits"},
    {IS_DROPPED_LATER, RESUMED, "(21).[none]", "waits"},
    {IS_DROPPED_LATER, TAIL_RESUMED, "(31).", "waits"},
    {IS_DROPPED_LATER, KEPT, "(...41).[none]", "waits"},
    {IS_DROPPED_LATER, LET_GO, "(.", "waits"},
    {IS_DROPPED_LATER, STOPS, "(.!", "waits"},
    {IS_DISCONTINUED, IN_PLACE, "(11).d", "leaves"},
    {IS_DISCONTINUED, RESUMED, "(21).d[leaves]", "leaves"},
    {IS_DISCONTINUED, TAIL_RESUMED, "(31).d", "leaves"},
    {IS_DISCONTINUED, KEPT, "(...41).d[leaves]", "keeps"},
    {IS_DISCONTINUED, LET_GO, "(.", "lets go"},
    {IS_DISCONTINUED, STOPS, "(.!", "stops"},
};

/* Where clang has compiled a cleanup, nothing may leave it while a stack is unwound
   (docs/misuse.md). */
static bool leaves_a_cleanup(const struct row *row) {
#ifdef __clang__
    return row->way != RETURNS && (row->kind == LET_GO || row->kind == STOPS);
#else
    return row == NULL;
#endif
}

static void what_a_cleanup_performs_comes_to_its_own_handler_however_the_computation_ends(void) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (leaves_a_cleanup(&rows[i]))
            continue;
        ending_t ending = {.way = rows[i].way, .kind = rows[i].kind};
        told[0] = '\0';
        void *answer = haft_handle(&outer, NULL, inside, &ending);
        if (strcmp(told, rows[i].told) != 0 || strcmp(text_of(answer), rows[i].answer) != 0)
            fprintf(stderr, "in row %zu:\n", i);
        CHECK_SAME_TEXT(told, rows[i].told);
        CHECK_SAME_TEXT(text_of(answer), rows[i].answer);
    }
}

int main(void) {
    RUN(what_a_cleanup_performs_comes_to_its_own_handler_however_the_computation_ends);
    return check_end();
}
