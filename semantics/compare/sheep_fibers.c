/* SPDX-License-Identifier: MIT */
/*
 * The calculus of appendix A on libhaft: reads a program a line, in the concrete syntax of
 * README.md, runs it with a fiber for every newcont, and prints a line with how it ended, as
 * Sheep_machine does in one-shot runs.
 *
 * A computation runs in direct style: `let` nests calls, so a pure continuation is what lies on a
 * fiber's stack. Everything that a program makes is in one arena, which the next program reuses;
 * its fibers are freed after it, the suspended ones by being dropped.
 */
#include <haft.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory --------------------------------------------------------------------------------- */

enum { ARENA_SIZE = 64 << 20 };
static char *arena;
static size_t arena_used;

static void *allocate(size_t size) {
    size = (size + 15) & ~(size_t)15;
    if (arena_used + size > ARENA_SIZE) {
        fprintf(stderr, "sheep_fibers: a program needs more than %d bytes\n", ARENA_SIZE);
        exit(2);
    }
    void *memory = arena + arena_used;
    arena_used += size;
    return memset(memory, 0, size);
}

static void *place(const void *made, size_t size) {
    return memcpy(allocate(size), made, size);
}

#define NEW(type, ...) place(&(const type){__VA_ARGS__}, sizeof(type))

/* ---- Terms ---------------------------------------------------------------------------------- */

typedef struct computation computation_t;

typedef enum { ADD, SUBTRACT, MULTIPLY, EQUAL, LESS, PRIMITIVES } primitive_t;
static const char *const primitive_names[PRIMITIVES] = {"add", "sub", "mul", "eq", "less"};

typedef struct term {
    enum {
        VARIABLE,
        NUMBER_TERM,
        PRIMITIVE_TERM,
        LAMBDA,
        REC,
        UNIT_TERM,
        PAIR_TERM,
        INJECT_TERM
    } kind;
    const char *name; /* the variable, the parameter, or the label */
    const char *self; /* of rec */
    int64_t number;   /* or the primitive */
    const computation_t *body;
    const struct term *left, *right;
} term_t;

struct computation {
    enum { APPLY, SPLIT, CASE, RETURN, LET, NEWCONT, RESUME, PERFORM } kind;
    const term_t *first, *second;
    const char *x, *y, *label;
    const computation_t *body, *other;
    unsigned labels; /* of resume: a bit for each */
};

typedef struct value value_t;
typedef struct environment {
    const char *name;
    const value_t *value;
    const struct environment *outer;
} environment_t;

typedef struct coroutine {
    struct coroutine *next;
    haft_fiber_t *fiber;
    const value_t *function; /* applied to `argument` when it starts */
    const value_t *argument;
    const haft_effect_t *waits; /* for the reply to this effect; NULL before the start */
    unsigned shot;              /* how often it was resumed */
    bool is_head;               /* suspended, and no part of another's chain: it can be resumed */
} coroutine_t;

struct value {
    enum { NUMBER, PRIMITIVE, CLOSURE, UNIT, PAIR, INJECT, CONTINUATION } kind;
    int64_t number; /* or the primitive */
    const term_t *function;
    const environment_t *environment;
    const char *label;
    const value_t *left, *right;
    coroutine_t *coroutine;
    unsigned shot;
};

/* ---- Effects -------------------------------------------------------------------------------- */

typedef const value_t *reply_t;
HAFT_EFFECT(sheep_0, reply_t, { const value_t *value; });
HAFT_EFFECT(sheep_1, reply_t, { const value_t *value; });
HAFT_EFFECT(sheep_2, reply_t, { const value_t *value; });
HAFT_EFFECT(sheep_3, reply_t, { const value_t *value; });
HAFT_EFFECT(sheep_4, reply_t, { const value_t *value; });
HAFT_EFFECT(sheep_5, reply_t, { const value_t *value; });
HAFT_EFFECT(sheep_end, void, {});

/* The effects of a program get these in the order in which it names them. */
enum { EFFECTS = 6 };
static haft_effect_t *const effects[EFFECTS] = {HAFT_ID(sheep_0), HAFT_ID(sheep_1),
                                                HAFT_ID(sheep_2), HAFT_ID(sheep_3),
                                                HAFT_ID(sheep_4), HAFT_ID(sheep_5)};
static const char *labels[EFFECTS];
static haft_handles_t sets[1 << EFFECTS];

static void make_sets(void) {
    const haft_handles_t *all = HAFT_HANDLES(sheep_0, sheep_1, sheep_2, sheep_3, sheep_4, sheep_5);
    static haft_clause_t clauses[1 << EFFECTS][EFFECTS];
    for (unsigned set = 0; set < 1 << EFFECTS; ++set) {
        sets[set].clauses = clauses[set];
        for (unsigned index = 0; index < EFFECTS; ++index)
            if (set & 1u << index)
                clauses[set][sets[set].count++] = all->clauses[index];
    }
}

static unsigned effect_of(const char *label) {
    unsigned index = 0;
    while (index < EFFECTS && labels[index] && strcmp(labels[index], label) != 0)
        ++index;
    if (index == EFFECTS) {
        fprintf(stderr, "sheep_fibers: a program has more than %d effects\n", EFFECTS);
        exit(2);
    }
    labels[index] = label;
    return index;
}

/* ---- Programs from text --------------------------------------------------------------------- */

static const char *text;

static void skip_space(void) {
    while (isspace((unsigned char)*text))
        ++text;
}

static __attribute__((noreturn)) void refuse(const char *wanted) {
    fprintf(stderr, "sheep_fibers: %s was expected at: %s\n", wanted, text);
    exit(2);
}

static bool is_inside(char character) {
    return isalnum((unsigned char)character) || character == '_' || character == '\'';
}

/* Whether the next token is this word, or symbol; if so it is taken. */
static bool accept(const char *token) {
    skip_space();
    size_t length = strlen(token);
    if (strncmp(text, token, length) != 0 || (is_inside(*token) && is_inside(text[length])))
        return false;
    text += length;
    return true;
}

static void expect(const char *token) {
    if (!accept(token))
        refuse(token);
}

static const char *word(void) {
    skip_space();
    size_t length = 0;
    while (is_inside(text[length]))
        ++length;
    if (length == 0)
        refuse("a name");
    char *copy = allocate(length + 1);
    memcpy(copy, text, length);
    text += length;
    return copy;
}

static const computation_t *parse_computation(void);

static const term_t *parse_value(void);

static const term_t *parse_atom(void) {
    skip_space();
    if (accept("(")) {
        if (accept(")"))
            return NEW(term_t, .kind = UNIT_TERM);
        const term_t *first = parse_value();
        if (accept(",")) {
            const term_t *second = parse_value();
            expect(")");
            return NEW(term_t, .kind = PAIR_TERM, .left = first, .right = second);
        }
        expect(")");
        return first;
    }
    if (isdigit((unsigned char)*text) || *text == '-') {
        char *behind;
        int64_t number = strtoll(text, &behind, 10);
        text = behind;
        return NEW(term_t, .kind = NUMBER_TERM, .number = number);
    }
    for (int primitive = 0; primitive < PRIMITIVES; ++primitive)
        if (accept(primitive_names[primitive]))
            return NEW(term_t, .kind = PRIMITIVE_TERM, .number = primitive);
    const char *name = word();
    return NEW(term_t, .kind = VARIABLE, .name = name);
}

static const term_t *parse_value(void) {
    skip_space();
    if (isupper((unsigned char)*text)) {
        const char *label = word();
        const term_t *value = parse_atom();
        return NEW(term_t, .kind = INJECT_TERM, .name = label, .left = value);
    }
    bool recursive = accept("rec");
    if (!recursive && !accept("fun"))
        return parse_atom();
    const char *self = recursive ? word() : NULL;
    const char *parameter = word();
    expect("->");
    const computation_t *body = parse_computation();
    return NEW(term_t, .kind = recursive ? REC : LAMBDA, .self = self, .name = parameter,
               .body = body);
}

static const computation_t *parse_let(void) {
    computation_t let = {0};
    if (accept("(")) {
        let.kind = SPLIT;
        let.x = word();
        expect(",");
        let.y = word();
        expect(")");
        expect("=");
        let.first = parse_value();
    } else {
        let.kind = LET;
        let.x = word();
        expect("=");
        let.other = parse_computation();
    }
    expect("in");
    let.body = parse_computation();
    computation_t *parsed = allocate(sizeof let);
    *parsed = let;
    return parsed;
}

static const computation_t *parse_case(void) {
    computation_t *parsed = allocate(sizeof *parsed);
    parsed->kind = CASE;
    parsed->first = parse_value();
    expect("of");
    expect("|");
    parsed->label = word();
    parsed->x = word();
    expect("->");
    parsed->body = parse_computation();
    expect("|");
    parsed->y = word();
    expect("->");
    parsed->other = parse_computation();
    expect("end");
    return parsed;
}

static const computation_t *parse_computation(void) {
    if (accept("let"))
        return parse_let();
    if (accept("case"))
        return parse_case();
    computation_t *parsed = allocate(sizeof *parsed);
    if (accept("return")) {
        parsed->kind = RETURN;
        parsed->first = parse_value();
    } else if (accept("newcont")) {
        parsed->kind = NEWCONT;
        parsed->first = parse_atom();
    } else if (accept("resume")) {
        parsed->kind = RESUME;
        expect("{");
        while (!accept("}")) {
            parsed->labels |= 1u << effect_of(word());
            accept(",");
        }
        parsed->first = parse_atom();
        parsed->second = parse_atom();
    } else if (accept("perform")) {
        parsed->kind = PERFORM;
        parsed->label = word();
        parsed->first = parse_atom();
    } else {
        parsed->kind = APPLY;
        parsed->first = parse_atom();
        parsed->second = parse_atom();
    }
    return parsed;
}

/* ---- Running -------------------------------------------------------------------------------- */

static haft_fiber_t *program;
static coroutine_t *coroutines;
static const char *ended; /* why, if the program did not return */

/* Gives up the whole program from wherever it is. */
static __attribute__((noreturn)) void end_program(const char *why) {
    ended = why;
    for (;;)
        HAFT_YIELD(program, sheep_end);
}

static const value_t *interpret(const term_t *term, const environment_t *environment) {
    switch (term->kind) {
    case VARIABLE:
        for (; environment; environment = environment->outer)
            if (strcmp(environment->name, term->name) == 0)
                return environment->value;
        end_program("stuck");
    case NUMBER_TERM:
        return NEW(value_t, .kind = NUMBER, .number = term->number);
    case PRIMITIVE_TERM:
        return NEW(value_t, .kind = PRIMITIVE, .number = term->number);
    case LAMBDA:
    case REC:
        return NEW(value_t, .kind = CLOSURE, .function = term, .environment = environment);
    case UNIT_TERM:
        return NEW(value_t, .kind = UNIT);
    case PAIR_TERM: {
        const value_t *left = interpret(term->left, environment);
        const value_t *right = interpret(term->right, environment);
        return NEW(value_t, .kind = PAIR, .left = left, .right = right);
    }
    case INJECT_TERM: {
        const value_t *value = interpret(term->left, environment);
        return NEW(value_t, .kind = INJECT, .label = term->name, .left = value);
    }
    }
    abort();
}

static const environment_t *bind(const char *name, const value_t *value,
                                 const environment_t *outer) {
    return NEW(environment_t, .name = name, .value = value, .outer = outer);
}

static const value_t *inject(const char *label, const value_t *value) {
    return NEW(value_t, .kind = INJECT, .label = label, .left = value);
}

/* The machine's integers are OCaml's, which have 63 bits and wrap. */
static const value_t *number(uint64_t wide) {
    return NEW(value_t, .kind = NUMBER, .number = (int64_t)(wide << 1) >> 1);
}

static const value_t *apply_primitive(primitive_t primitive, const value_t *argument) {
    if (argument->kind != PAIR || argument->left->kind != NUMBER || argument->right->kind != NUMBER)
        end_program("stuck");
    int64_t left = argument->left->number, right = argument->right->number;
    bool truth;
    switch (primitive) {
    case ADD:
        return number((uint64_t)left + (uint64_t)right);
    case SUBTRACT:
        return number((uint64_t)left - (uint64_t)right);
    case MULTIPLY:
        return number((uint64_t)left * (uint64_t)right);
    case EQUAL:
        truth = left == right;
        break;
    default:
        truth = left < right;
        break;
    }
    return inject(truth ? "True" : "False", NEW(value_t, .kind = UNIT));
}

static const value_t *run(const computation_t *computation, const environment_t *environment);

/* The body of a fiber. */
static void *start(void *argument) {
    const coroutine_t *coroutine = argument;
    static const term_t function = {.kind = VARIABLE, .name = "function"};
    static const term_t given = {.kind = VARIABLE, .name = "argument"};
    static const computation_t apply = {.kind = APPLY, .first = &function, .second = &given};
    const environment_t *environment = bind("function", coroutine->function, NULL);
    return (void *)(uintptr_t)run(&apply, bind("argument", coroutine->argument, environment));
}

static coroutine_t *new_coroutine(const value_t *function) {
    coroutine_t *coroutine =
        NEW(coroutine_t, .next = coroutines, .function = function, .is_head = true);
    coroutine->fiber = haft_fiber_new(start, coroutine);
    coroutines = coroutine;
    return coroutine;
}

static const value_t *continuation(coroutine_t *coroutine) {
    return NEW(value_t, .kind = CONTINUATION, .coroutine = coroutine, .shot = coroutine->shot);
}

static const value_t *resume(unsigned set, const value_t *k, const value_t *argument) {
    if (k->kind != CONTINUATION)
        end_program("stuck");
    coroutine_t *coroutine = k->coroutine;
    if (k->shot != coroutine->shot)
        end_program("resumed again");
    haft_fiber_state_t state = haft_fiber_state(coroutine->fiber);
    if (state != (coroutine->waits ? HAFT_FIBER_SUSPENDED : HAFT_FIBER_NEW))
        end_program("a resumable fiber in the wrong state");
    ++coroutine->shot;
    coroutine->is_head = false;
    haft_reply_t reply = HAFT_NO_REPLY;
    if (coroutine->waits)
        reply = haft_reply(coroutine->waits, &argument, sizeof argument);
    else
        coroutine->argument = argument;
    haft_request_t request = haft_resume(coroutine->fiber, reply, &sets[set]);
    if (haft_finished(request)) {
        HAFT_MATCH(request) {
            HAFT_RETURN(result) {
                return inject("Ret", result);
            }
        }
    }
    coroutine->waits = request.effect;
    coroutine->is_head = true;
    unsigned index = 0;
    while (effects[index] != request.effect)
        ++index;
    const value_t *payload = *(const value_t **)request.payload;
    const value_t *pair =
        NEW(value_t, .kind = PAIR, .left = payload, .right = continuation(coroutine));
    return inject(labels[index], pair);
}

/* Default clauses, for performs without a handler. */
#define NOBODY(effect)                                                                             \
    static reply_t nobody_##effect(void *unused, HAFT_PAYLOAD(effect) * payload) {                 \
        (void)unused, (void)payload;                                                               \
        return NULL;                                                                               \
    }
NOBODY(sheep_0)
NOBODY(sheep_1)
NOBODY(sheep_2)
NOBODY(sheep_3)
NOBODY(sheep_4)
NOBODY(sheep_5)

static void set_defaults(void) {
    HAFT_SET_DEFAULT(sheep_0, nobody_sheep_0);
    HAFT_SET_DEFAULT(sheep_1, nobody_sheep_1);
    HAFT_SET_DEFAULT(sheep_2, nobody_sheep_2);
    HAFT_SET_DEFAULT(sheep_3, nobody_sheep_3);
    HAFT_SET_DEFAULT(sheep_4, nobody_sheep_4);
    HAFT_SET_DEFAULT(sheep_5, nobody_sheep_5);
}

static const value_t *perform(unsigned index, const value_t *payload) {
    const value_t *reply = NULL;
    switch (index) {
    case 0:
        reply = HAFT_PERFORM(sheep_0, payload);
        break;
    case 1:
        reply = HAFT_PERFORM(sheep_1, payload);
        break;
    case 2:
        reply = HAFT_PERFORM(sheep_2, payload);
        break;
    case 3:
        reply = HAFT_PERFORM(sheep_3, payload);
        break;
    case 4:
        reply = HAFT_PERFORM(sheep_4, payload);
        break;
    default:
        reply = HAFT_PERFORM(sheep_5, payload);
        break;
    }
    if (!reply)
        end_program("stuck");
    return reply;
}

static const value_t *run(const computation_t *m, const environment_t *environment) {
    for (;;) {
        const value_t *first = m->first ? interpret(m->first, environment) : NULL;
        switch (m->kind) {
        case RETURN:
            return first;
        case LET:
            environment = bind(m->x, run(m->other, environment), environment);
            m = m->body;
            break;
        case APPLY: {
            const value_t *argument = interpret(m->second, environment);
            if (first->kind == PRIMITIVE)
                return apply_primitive((primitive_t)first->number, argument);
            if (first->kind != CLOSURE)
                end_program("stuck");
            environment = first->environment;
            if (first->function->self)
                environment = bind(first->function->self, first, environment);
            environment = bind(first->function->name, argument, environment);
            m = first->function->body;
            break;
        }
        case SPLIT:
            if (first->kind != PAIR)
                end_program("stuck");
            environment = bind(m->x, first->left, environment);
            environment = bind(m->y, first->right, environment);
            m = m->body;
            break;
        case CASE:
            if (first->kind != INJECT)
                end_program("stuck");
            if (strcmp(first->label, m->label) == 0) {
                environment = bind(m->x, first->left, environment);
                m = m->body;
            } else {
                environment = bind(m->y, first, environment);
                m = m->other;
            }
            break;
        case NEWCONT:
            return continuation(new_coroutine(first));
        case RESUME:
            return resume(m->labels, first, interpret(m->second, environment));
        case PERFORM:
            return perform(effect_of(m->label), first);
        }
    }
}

static void print_value(const value_t *value) {
    switch (value->kind) {
    case NUMBER:
        printf("%" PRId64, value->number);
        break;
    case PRIMITIVE:
        fputs(primitive_names[value->number], stdout);
        break;
    case CLOSURE:
        fputs("<fun>", stdout);
        break;
    case UNIT:
        fputs("()", stdout);
        break;
    case PAIR:
        putchar('(');
        print_value(value->left);
        fputs(", ", stdout);
        print_value(value->right);
        putchar(')');
        break;
    case INJECT:
        printf("(%s ", value->label);
        print_value(value->left);
        putchar(')');
        break;
    case CONTINUATION:
        fputs("<continuation>", stdout);
        break;
    }
}

static void *run_program(void *computation) {
    return (void *)(uintptr_t)run(computation, NULL);
}

static void run_line(const char *line) {
    arena_used = 0;
    coroutines = NULL;
    ended = NULL;
    memset(labels, 0, sizeof labels);
    text = line;
    const computation_t *parsed = parse_computation();
    skip_space();
    if (*text != '\0')
        refuse("the end of the program");

    program = haft_fiber_new(run_program, (void *)(uintptr_t)parsed);
    haft_request_t request = haft_resume(program, HAFT_NO_REPLY, HAFT_HANDLES());
    if (ended) {
        puts(ended);
    } else {
        fputs("value ", stdout);
        HAFT_MATCH(request) {
            HAFT_RETURN(result) {
                print_value(result);
            }
        }
        putchar('\n');
    }
    fflush(stdout);

    /* A coroutine in the suspended chain of another ends with it. */
    haft_fiber_drop(program);
    for (coroutine_t *coroutine = coroutines; coroutine; coroutine = coroutine->next)
        if (coroutine->is_head) {
            haft_fiber_drop(coroutine->fiber);
            coroutine->fiber = NULL;
        }
    for (coroutine_t *coroutine = coroutines; coroutine; coroutine = coroutine->next)
        haft_fiber_drop(coroutine->fiber);
}

int main(void) {
    arena = malloc(ARENA_SIZE);
    if (!arena)
        return 2;
    make_sets();
    set_defaults();
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t length; (length = getline(&line, &capacity, stdin)) > 0;) {
        line[length - 1] = line[length - 1] == '\n' ? '\0' : line[length - 1];
        run_line(line);
    }
    free(line);
    free(arena);
    return 0;
}
