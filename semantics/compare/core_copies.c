/* SPDX-License-Identifier: MIT */
/*
 * The core language on deep handlers of libhaft, with continuations that go on any number of times:
 * each use resumes a copy, or the resumption itself after a copy has taken its place. Reads a
 * program a line, in prefix notation (compare_copies.ml writes it), and prints a line with how it
 * ended, as Core_machine does with effects through C.
 *
 * Expressions are evaluated in direct style, so a continuation is what lies on the fibers' stacks.
 * Values and environments lie in one arena, which the next program reuses. A continuation is never
 * used up; those of a program are dropped after it. A program that resumes a continuation where
 * another copy of it runs, which the library refuses, is answered by `refused`.
 */
#include <haft.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct value value_t;
HAFT_EFFECT(core_0, void *, { value_t *value; });
HAFT_EFFECT(core_1, void *, { value_t *value; });
HAFT_EFFECT(core_2, void *, { value_t *value; });
HAFT_EFFECT(core_3, void *, { value_t *value; });
/* The labels of the program's effects, in the order in which they are met. */
enum { EFFECTS = 4 };
static const char *effect_names[EFFECTS];

static int effect_of(const char *label) {
    for (int effect = 0; effect < EFFECTS; effect++) {
        if (effect_names[effect] == NULL)
            effect_names[effect] = label;
        if (strcmp(label, effect_names[effect]) == 0)
            return effect;
    }
    fprintf(stderr, "core_copies: a program has more than %d effects\n", EFFECTS);
    exit(2);
}

/* ---- Memory ---- */

enum { ARENA_SIZE = 256 << 20 };
static char *arena;
static size_t arena_used;

static void *allocate(size_t size) {
    size = (size + 15) & ~(size_t)15;
    if (arena_used + size > ARENA_SIZE) {
        fprintf(stderr, "core_copies: a program needs more than %d bytes\n", ARENA_SIZE);
        exit(2);
    }
    void *memory = arena + arena_used;
    arena_used += size;
    return memset(memory, 0, size);
}

/* ---- Expressions ---- */

typedef struct expression expression_t;
typedef struct match_case {
    const char *label, *variable, *continuation;
    const expression_t *body;
    struct match_case *next;
} case_t;
struct expression {
    char kind; /* the letter that begins it */
    char letter;
    int64_t number;
    const char *name;
    const expression_t *first, *second;
    case_t *exceptions, *effects;
};

static char *next_word;
static const char *word(void) {
    char *begin = next_word, *end = strchr(begin, ' ');
    if (end == NULL) {
        fprintf(stderr, "core_copies: a program ends too early\n");
        exit(2);
    }
    *end = '\0';
    next_word = end + 1;
    return begin;
}

static const expression_t *parse(void);
static case_t *parse_cases(bool effects) {
    case_t *first = NULL, **last = &first;
    for (int64_t left = strtoll(word(), NULL, 10); left > 0; left--) {
        case_t *one = *last = allocate(sizeof *one);
        one->label = word();
        one->variable = word();
        one->continuation = effects ? word() : NULL;
        one->body = parse();
        last = &one->next;
    }
    return first;
}

static const expression_t *parse(void) {
    expression_t *e = allocate(sizeof *e);
    e->kind = *word();
    switch (e->kind) {
    case 'n':
        e->number = strtoll(word(), NULL, 10);
        break;
    case 'v':
        e->name = word();
        break;
    case 'f':
        e->letter = *word();
        e->name = word();
        e->first = parse();
        break;
    case 'o':
        e->letter = *word();
        e->first = parse();
        e->second = parse();
        break;
    case 'a':
        e->first = parse();
        e->second = parse();
        break;
    case 'r':
    case 'p':
        e->name = word();
        e->first = parse();
        break;
    case 'm':
        e->first = parse();
        e->name = word();
        e->second = parse();
        e->exceptions = parse_cases(false);
        e->effects = parse_cases(true);
        break;
    default:
        fprintf(stderr, "core_copies: no expression begins with '%c'\n", e->kind);
        exit(2);
    }
    return e;
}

/* ---- Values ---- */

typedef struct environment {
    const char *name;
    value_t *value;
    const struct environment *outer;
} environment_t;

typedef struct kept {
    haft_resumption_t k;
    struct kept *before;
} kept_t;

/* A continuation with its first argument waits for the second one as PARTIAL. */
enum value_kind { NUMBER, CLOSURE, CONTINUATION, PARTIAL };
struct value {
    enum value_kind kind;
    int64_t number;
    char language; /* of a closure; or where the first argument stands */
    const char *variable;
    const expression_t *body; /* or the first argument */
    const environment_t *scope;
    kept_t *kept;
};

/* How an evaluation ends. */
enum ending { RETURNED, RAISED, STUCK };
typedef struct outcome {
    enum ending ending;
    const char *label;
    value_t *value;
} outcome_t;
static const outcome_t stuck = {.ending = STUCK};

static outcome_t returned(value_t *value) {
    return (outcome_t){RETURNED, NULL, value};
}
static value_t *number(int64_t n) {
    value_t *value = allocate(sizeof *value);
    value->number = n;
    return value;
}
static const environment_t *bind(const environment_t *outer, const char *name, value_t *value) {
    environment_t *binding = allocate(sizeof *binding);
    *binding = (environment_t){name, value, outer};
    return binding;
}
static outcome_t *place(outcome_t outcome) {
    return memcpy(allocate(sizeof outcome), &outcome, sizeof outcome);
}

/* ---- Evaluation ---- */

/* The application with which a resumed performer goes on. */
typedef struct go_on {
    const value_t *function;
    value_t *argument;
} go_on_t;

static outcome_t evaluate(char language, const environment_t *scope, const expression_t *e);

/* A value that anything but an application may take. */
static outcome_t strictly(char language, const environment_t *scope, const expression_t *e) {
    outcome_t outcome = evaluate(language, scope, e);
    return outcome.ending == RETURNED && outcome.value->kind == PARTIAL ? stuck : outcome;
}

static const int64_t WRAP = INT64_C(1) << 62; /* OCaml's integers have 63 bits */
static int64_t wrapped(uint64_t n) {
    return (int64_t)((n & (2 * (uint64_t)WRAP - 1)) ^ (uint64_t)WRAP) - WRAP;
}

static outcome_t arithmetic(char language, const environment_t *scope, const expression_t *e) {
    outcome_t left = evaluate(language, scope, e->first);
    if (left.ending != RETURNED || left.value->kind != NUMBER)
        return left.ending != RETURNED ? left : stuck;
    outcome_t right = evaluate(language, scope, e->second);
    if (right.ending != RETURNED || right.value->kind != NUMBER)
        return right.ending != RETURNED ? right : stuck;
    int64_t n = left.value->number, m = right.value->number;
    uint64_t a = (uint64_t)n, b = (uint64_t)m;
    if (e->letter == '/' && m == 0)
        return stuck;
    return returned(number(wrapped(e->letter == '+'   ? a + b
                                   : e->letter == '-' ? a - b
                                   : e->letter == '*' ? a * b
                                                      : (uint64_t)(n / m))));
}

#define UNHANDLED(effect)                                                                          \
    static void *nobody_handles_##effect(void *state, HAFT_PAYLOAD(effect) * payload) {            \
        (void)state, (void)payload;                                                                \
        return NULL;                                                                               \
    }
UNHANDLED(core_0)
UNHANDLED(core_1)
UNHANDLED(core_2)
UNHANDLED(core_3)

static outcome_t perform(const expression_t *e, char language, const environment_t *scope) {
    outcome_t payload = strictly(language, scope, e->first);
    if (payload.ending != RETURNED)
        return payload;
    if (language != 'O')
        return stuck;
    int effect = effect_of(e->name);
    const go_on_t *go_on = effect == 0   ? HAFT_PERFORM(core_0, payload.value)
                           : effect == 1 ? HAFT_PERFORM(core_1, payload.value)
                           : effect == 2 ? HAFT_PERFORM(core_2, payload.value)
                                         : HAFT_PERFORM(core_3, payload.value);
    if (go_on == NULL)
        return (outcome_t){RAISED, "Unhandled", number(0)};
    const value_t *f = go_on->function;
    return strictly('O', bind(f->scope, f->variable, go_on->argument), f->body);
}

static haft_reply_t reply_there(void *reply) {
    return *(haft_reply_t *)reply;
}

static kept_t *all_kept;
static kept_t *keep(haft_resumption_t k) {
    kept_t *kept = allocate(sizeof *kept);
    *kept = (kept_t){k, all_kept};
    return all_kept = kept;
}

/* Each continuation is used in all ways: the copy or the original goes on, with a reply or by a
   call that gives it, alone or beside a further copy. (That is dropped at the end: a clause inside
   of it would drop the resumption that it shares with the clauses of other copies.) */
static unsigned uses;
static __attribute__((noinline)) outcome_t resume(kept_t *kept, go_on_t *go_on) {
    haft_resumption_t k = haft_resumption_copy(kept->k);
    unsigned use = uses++;
    if (use % 2 == 0) {
        haft_resumption_t original = kept->k;
        kept->k = k;
        k = original;
    }
    if (use % 3 == 0)
        keep(haft_resumption_copy(use % 6 < 3 ? k : kept->k));
    void *word = go_on;
    haft_reply_t reply = haft_reply(haft_resumption_effect(k), &word, sizeof word);
    outcome_t *outcome = use % 5 == 0 ? haft_resumption_discontinue(k, reply_there, &reply)
                                      : haft_resumption_resume(k, reply);
    return *outcome;
}

static outcome_t apply_partial(const value_t *partial, char language, const environment_t *scope,
                               const expression_t *second) {
    outcome_t f = evaluate(partial->language, partial->scope, partial->body);
    if (f.ending != RETURNED || f.value->kind != CLOSURE)
        return f.ending != RETURNED ? f : stuck;
    outcome_t argument = strictly(language, scope, second);
    if (argument.ending != RETURNED)
        return argument;
    if (partial->language == 'C' || f.value->language == 'C')
        return stuck;
    go_on_t *go_on = allocate(sizeof *go_on);
    *go_on = (go_on_t){f.value, argument.value};
    return resume(partial->kept, go_on);
}

static outcome_t apply(char language, const environment_t *scope, const expression_t *e) {
    outcome_t f = evaluate(language, scope, e->first);
    if (f.ending != RETURNED)
        return f;
    switch (f.value->kind) {
    case CLOSURE: {
        outcome_t argument = strictly(language, scope, e->second);
        if (argument.ending != RETURNED)
            return argument;
        const environment_t *inside = bind(f.value->scope, f.value->variable, argument.value);
        return f.value->language == language ? evaluate(f.value->language, inside, f.value->body)
                                             : strictly(f.value->language, inside, f.value->body);
    }
    case CONTINUATION: {
        value_t *partial = allocate(sizeof *partial);
        *partial = (value_t){.kind = PARTIAL,
                             .language = language,
                             .body = e->second,
                             .scope = scope,
                             .kept = f.value->kept};
        return returned(partial);
    }
    case PARTIAL:
        return apply_partial(f.value, language, scope, e->second);
    default:
        return stuck;
    }
}

/* ---- Handlers ---- */

typedef struct handling {
    const expression_t *match;
    const environment_t *scope;
    haft_handler_t handler;
    haft_clause_t clauses[EFFECTS];
} handling_t;

static haft_answer_t clause(handling_t *handling, int effect, value_t *payload,
                            haft_resumption_t k) {
    const case_t *one = handling->match->effects;
    while (effect_of(one->label) != effect)
        one = one->next;
    value_t *continuation = allocate(sizeof *continuation);
    continuation->kind = CONTINUATION;
    continuation->kept = keep(k);
    /* The machine binds the payload over the continuation. */
    const environment_t *scope = bind(handling->scope, one->continuation, continuation);
    scope = bind(scope, one->variable, payload);
    return haft_answer(place(evaluate('O', scope, one->body)));
}
#define CLAUSE(effect, index)                                                                      \
    static haft_answer_t clause_of_##effect(void *state, HAFT_PAYLOAD(effect) * payload,           \
                                            haft_resumption_t k) {                                 \
        return clause(state, index, payload->value, k);                                            \
    }
CLAUSE(core_0, 0)
CLAUSE(core_1, 1)
CLAUSE(core_2, 2)
CLAUSE(core_3, 3)
static const haft_clause_t clauses[EFFECTS] = {
    HAFT_GENERAL(core_0, clause_of_core_0), HAFT_GENERAL(core_1, clause_of_core_1),
    HAFT_GENERAL(core_2, clause_of_core_2), HAFT_GENERAL(core_3, clause_of_core_3)};

static void *handled(void *argument) {
    const handling_t *handling = argument;
    return place(strictly('O', handling->scope, handling->match->first));
}

/* Every other computation has a handler in place around it, which is asked for itself at the end:
   what copies have found before must not be the handler of another. */
HAFT_EFFECT(around, const handling_t *, {});
static const handling_t *give_around(void *state, HAFT_PAYLOAD(around) * payload) {
    (void)payload;
    return state;
}
HAFT_HANDLER(in_place, NULL, HAFT_TAIL(around, give_around));
static void *handled_and_asked(void *argument) {
    void *outcome = handled(argument);
    if (HAFT_PERFORM(around) != argument) {
        fprintf(stderr, "core_copies: an effect has found another copy's handler\n");
        exit(2);
    }
    return outcome;
}
static void *handled_in_place(void *argument) {
    return haft_handle(&in_place, argument, handled_and_asked, argument);
}

static void *handled_returned(void *state, void *result) {
    const handling_t *handling = state;
    outcome_t outcome = *(outcome_t *)result;
    if (outcome.ending == RETURNED)
        return place(evaluate('O', bind(handling->scope, handling->match->name, outcome.value),
                              handling->match->second));
    for (const case_t *one = handling->match->exceptions; one != NULL; one = one->next)
        if (outcome.ending == RAISED && strcmp(one->label, outcome.label) == 0)
            return place(
                evaluate('O', bind(handling->scope, one->variable, outcome.value), one->body));
    return result;
}

static outcome_t handle(const expression_t *match, const environment_t *scope) {
    handling_t *handling = allocate(sizeof *handling);
    handling->match = match;
    handling->scope = scope;
    uint32_t count = 0;
    for (const case_t *one = match->effects; one != NULL; one = one->next)
        handling->clauses[count++] = clauses[effect_of(one->label)];
    handling->handler =
        (haft_handler_t){{count, 0, 0, handling->clauses}, handled_returned, "match"};
    static unsigned handlings;
    return *(outcome_t *)haft_handle(&handling->handler, handling,
                                     handlings++ % 2 == 0 ? handled : handled_in_place, handling);
}

static outcome_t evaluate(char language, const environment_t *scope, const expression_t *e) {
    switch (e->kind) {
    case 'n':
        return returned(number(e->number));
    case 'v':
        for (; scope != NULL; scope = scope->outer)
            if (strcmp(scope->name, e->name) == 0)
                return returned(scope->value);
        return stuck;
    case 'f': {
        value_t *closure = allocate(sizeof *closure);
        *closure = (value_t){.kind = CLOSURE,
                             .language = e->letter,
                             .variable = e->name,
                             .body = e->first,
                             .scope = scope};
        return returned(closure);
    }
    case 'o':
        return arithmetic(language, scope, e);
    case 'a':
        return apply(language, scope, e);
    case 'r': {
        outcome_t outcome = strictly(language, scope, e->first);
        if (outcome.ending == RETURNED)
            outcome = (outcome_t){RAISED, e->name, outcome.value};
        return outcome;
    }
    case 'p':
        return perform(e, language, scope);
    default:
        return language == 'O' ? handle(e, scope) : stuck;
    }
}

/* ---- Programs ---- */

static void print_value(const value_t *value) {
    if (value->kind == NUMBER)
        printf(" %" PRId64, value->number);
    else
        printf(" %s", value->kind != CLOSURE   ? "<continuation>"
                      : value->language == 'O' ? "<fun>"
                                               : "<cfun>");
}

static void run(char *line) {
    next_word = line;
    outcome_t outcome = strictly('C', NULL, parse());
    switch (outcome.ending) {
    case RETURNED:
        printf("value");
        break;
    case RAISED:
        printf("uncaught exception %s", outcome.label);
        break;
    case STUCK:
        printf("stuck");
    }
    if (outcome.ending != STUCK)
        print_value(outcome.value);
    printf("\n");
    for (; all_kept != NULL; all_kept = all_kept->before)
        if (haft_resumption_effect(all_kept->k) != NULL) /* a dropped clause drops its own */
            haft_resumption_drop(all_kept->k);
    size_t stacks = haft_pool_report().stacks;
    if (stacks != 0) {
        printf("%zu stacks are left\n", stacks);
        exit(1);
    }
}

/* Reports that the library refuses code which goes on as a copy of a computation in which it
   runs. */
static void refused(const haft_error_t *error) {
    if (error->code != HAFT_ERROR_NOT_RESUMABLE) {
        fprintf(stderr, "core_copies: %s\n", error->message);
        return;
    }
    printf("refused\n");
    fflush(stdout);
    _exit(0);
}

int main(void) {
    static char line[1 << 20];
    arena = malloc(ARENA_SIZE);
    if (arena == NULL)
        return 2;
    HAFT_SET_DEFAULT(core_0, nobody_handles_core_0);
    HAFT_SET_DEFAULT(core_1, nobody_handles_core_1);
    HAFT_SET_DEFAULT(core_2, nobody_handles_core_2);
    HAFT_SET_DEFAULT(core_3, nobody_handles_core_3);
    haft_set_error_handler(refused);
    haft_may_copy_frames((haft_function_t *)resume);
    while (fgets(line, sizeof line, stdin) != NULL) {
        run(line);
        fflush(stdout);
        arena_used = 0;
        memset(effect_names, 0, sizeof effect_names);
    }
    return 0;
}
