/* Programs on libhaft. Every statement is what a C program would write by hand. */
#include "program.h"
#include "races.h"

#include <errno.h>
#include <haft.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct triple {
    int64_t words[3];
} triple_t;

HAFT_EFFECT(effect_0, int64_t, { int64_t number; });
HAFT_EFFECT(effect_1, void, { int64_t number; });
HAFT_EFFECT(effect_2, triple_t, { int64_t number; });
HAFT_EFFECT(effect_3, int64_t, { int64_t words[6]; });
HAFT_EFFECT(effect_4, double, { double number; });
HAFT_EFFECT(effect_5, int64_t, {});

/* What signals perform: one for each line of a scope's cache. */
HAFT_EFFECT(signal_0, int64_t, { int64_t number; });
HAFT_EFFECT(signal_1, int64_t, { int64_t number; });
HAFT_EFFECT(signal_2, int64_t, { int64_t number; });
HAFT_EFFECT(signal_3, int64_t, { int64_t number; });
enum { SIGNAL_EFFECTS = 4 };

/* The interpreter recurses; without optimisation, and with sanitizers, its frames are large. */
#ifndef __has_feature
#    define __has_feature(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { KIBIBYTE = 16 * 1024 };
#elif !defined(__OPTIMIZE__)
enum { KIBIBYTE = 2 * 1024 };
#else
enum { KIBIBYTE = 1024 };
#endif
enum { IDENTIFIERS = 4 * FUEL, FIXED_SIZE = 256 * KIBIBYTE, SMALL_SIZE = 256 * KIBIBYTE };
enum { BETWEEN_SIGNALS = 20000 };                      /* nanoseconds */
enum { WANTED_SIZE = 512 * 1024 * 1024, THREADS = 3 }; /* of such a size no other fiber is */

typedef struct instance {
    struct instance *next;
    const handler_t *handler;
} instance_t;

/* A function to run on a fiber. */
typedef struct task {
    struct task *next;
    const body_t *body;
    int64_t seed;
} task_t;

typedef struct memory {
    struct memory *next;
    char bytes[FIXED_SIZE];
} memory_t;

typedef struct slot {
    haft_fiber_t *fiber;
    int awaits;
    memory_t *memory;
} slot_t;

typedef struct table {
    haft_handler_t handler;
    haft_clause_t clauses[EFFECTS + SIGNAL_EFFECTS];
} table_t;

/* All of a run's state; threads of a program run one at a time. */
static struct {
    const program_t *program;
    int fuel;
    int fibers;
    slot_t slots[SLOTS];
    haft_resumption_t kept[KEPT];
    instance_t *instances;
    task_t *tasks;
    memory_t *memories; /* unused */
    table_t *tables;
} run;

static char names[IDENTIFIERS][16];
static haft_clause_t set_clauses[ALL_EFFECTS + 1][EFFECTS];
static haft_handles_t sets[ALL_EFFECTS + 1];
static haft_handles_t rewritten_sets[SLOTS];

static int64_t run_body(const body_t *body, int64_t value);

/* ---- One family of functions an effect ---- */

static haft_effect_t *const effects[EFFECTS] = {HAFT_ID(effect_0), HAFT_ID(effect_1),
                                                HAFT_ID(effect_2), HAFT_ID(effect_3),
                                                HAFT_ID(effect_4), HAFT_ID(effect_5)};

static int index_of(const haft_effect_t *effect) {
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

static int64_t run_tail(void *state, int effect, int64_t payload);
static haft_answer_t run_general(void *state, int effect, int64_t payload, haft_resumption_t k);
static void *run_never(void *state, int effect, int64_t payload);
static int64_t run_default(int effect, int variant, int64_t payload);

#define FAMILY(effect, name, result, make, read, give, unpack)                                     \
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
/* What a clause returns, and what a perform's result means. */
#define GIVE_WHOLE(value) return value
#define GIVE_NOTHING(value) (void)value
#define GIVE_TRIPLE(value) return make_triple(value)
#define GIVE_REAL(value) return (double)value
#define WHOLE(value) ((int64_t)(value))
#define ZERO(call) ((call), (int64_t)0)

FAMILY(0, effect_0, int64_t, FIELD, payload->number, GIVE_WHOLE, WHOLE)
FAMILY(1, effect_1, void, FIELD, payload->number, GIVE_NOTHING, ZERO)
FAMILY(2, effect_2, triple_t, FIELD, payload->number, GIVE_TRIPLE, untriple)
FAMILY(3, effect_3, int64_t, FIELDS, last_of(payload->words), GIVE_WHOLE, WHOLE)
FAMILY(4, effect_4, double, FIELD, (int64_t)payload->number, GIVE_REAL, WHOLE)
FAMILY(5, effect_5, int64_t, NO_FIELDS, 0, GIVE_WHOLE, WHOLE)

typedef struct family {
    int64_t (*perform)(int64_t value);
    int64_t (*yield)(haft_fiber_t *fiber, int64_t value);
    void (*throw)(int64_t value);
    void (*exit)(haft_fiber_t *fiber, int64_t value);
    int64_t (*payload)(const void *pointer);
    int (*set_default)(int variant); /* returns the one before */
    haft_function_t *clauses[CLAUSE_KINDS];
} family_t;

#define MEMBERS(effect)                                                                            \
    {                                                                                              \
        perform_##effect, yield_##effect, throw_##effect, exit_##effect, payload_##effect,         \
            set_default_##effect, {                                                                \
            NULL, (haft_function_t *)tail_##effect, (haft_function_t *)general_##effect,           \
                (haft_function_t *)never_##effect                                                  \
        }                                                                                          \
    }
static const family_t families[EFFECTS] = {MEMBERS(0), MEMBERS(1), MEMBERS(2),
                                           MEMBERS(3), MEMBERS(4), MEMBERS(5)};

/* Room for a reply of any effect. */
typedef union reply {
    int64_t whole;
    double real;
    triple_t triple;
} reply_t;

static haft_reply_t reply_to(int effect, int64_t value, reply_t *reply) {
    switch (effect) {
    case 1:
        return HAFT_NO_REPLY;
    case 2:
        reply->triple = make_triple(value);
        break;
    case 4:
        reply->real = (double)value;
        break;
    default:
        reply->whole = value;
    }
    return haft_reply(effects[effect], reply, effects[effect]->result_size);
}

/* ---- The untyped calls ---- */

typedef union payload {
    int64_t number, words[6];
    double real;
} payload_t;

static payload_t payload_of(int effect, int64_t value) {
    payload_t payload = {.words = {value}};
    if (effect == 3)
        payload.words[5] = value;
    if (effect == 4)
        payload.real = (double)value;
    return payload;
}

static int64_t value_of(int effect, const reply_t *reply) {
    switch (effect) {
    case 1:
        return 0;
    case 2:
        return untriple(reply->triple);
    case 4:
        return (int64_t)reply->real;
    default:
        return reply->whole;
    }
}

static int64_t perform(const statement_t *statement, int64_t value) {
    haft_effect_t *effect = effects[statement->effect];
    if (statement->form == TYPED)
        return families[statement->effect].perform(value);
    payload_t payload = payload_of(statement->effect, value);
    reply_t reply;
    haft_perform(effect, &payload, effect->payload_size + (statement->form == MISSIZED), &reply,
                 effect->result_size);
    return value_of(statement->effect, &reply);
}

static int64_t yield(const statement_t *statement, haft_fiber_t *fiber, int64_t value) {
    haft_effect_t *effect = effects[statement->effect];
    if (statement->form == TYPED)
        return families[statement->effect].yield(fiber, value);
    payload_t payload = payload_of(statement->effect, value);
    reply_t reply;
    haft_yield(fiber, effect, &payload, effect->payload_size, &reply,
               effect->result_size + (statement->form == MISSIZED));
    return value_of(statement->effect, &reply);
}

static __attribute__((noreturn)) void throw(const statement_t *statement, int64_t value) {
    haft_effect_t *effect = effects[statement->effect];
    if (statement->form == TYPED)
        families[statement->effect].throw(value);
    payload_t payload = payload_of(statement->effect, value);
    haft_throw(effect, &payload, effect->payload_size + (statement->form == MISSIZED));
}

static __attribute__((noreturn)) void leave(const statement_t *statement, haft_fiber_t *fiber,
                                            int64_t value) {
    haft_effect_t *effect = effects[statement->effect];
    if (statement->form == TYPED)
        families[statement->effect].exit(fiber, value);
    payload_t payload = payload_of(statement->effect, value);
    haft_exit(fiber, effect, &payload, effect->payload_size + (statement->form == MISSIZED));
}

/* ---- Errors ---- */

/* A place to which the error handler jumps: the innermost on the stack on which it runs. */
typedef struct guard {
    struct guard *next, **link;
    char *frame;
    jmp_buf jump;
    volatile int code;
} guard_t;

static guard_t *guards;

static void remove_guard(const guard_t *guard) {
    *guard->link = guard->next;
    if (guard->next != NULL)
        guard->next->link = guard->link;
}

static int guarded_by_jump(void (*call)(void *), void *argument) {
    __attribute__((cleanup(remove_guard)))
    guard_t guard = {.next = guards, .link = &guards, .frame = __builtin_frame_address(0)};
    if (guards != NULL)
        guards->link = &guard.next;
    guards = &guard;
    if (setjmp(guard.jump) == 0)
        call(argument);
    return guard.code;
}

static void jump_out(const haft_error_t *error) {
    const char *here = __builtin_frame_address(0);
    guard_t *nearest = NULL;
    for (guard_t *guard = guards; guard != NULL; guard = guard->next)
        if (guard->frame > here && (nearest == NULL || guard->frame < nearest->frame))
            nearest = guard;
    if (nearest == NULL)
        abort();
    nearest->code = error->code;
    longjmp(nearest->jump, 1);
}

/* Calls and returns 0, or the code of the error in which it ended. */
static int guarded(void (*call)(void *), void *argument) {
    switch (run.program->escape) {
    case BY_EXCEPTION:
        return guarded_by_catch(call, argument);
    case BY_LONGJMP:
        return guarded_by_jump(call, argument);
    default:
        call(argument);
        return 0;
    }
}

static bool nothing_is_mapped, tolerates_want;

static void handle_error(const haft_error_t *error) {
    nothing_is_mapped = false;
    if (error->code == HAFT_ERROR_NO_MEMORY && tolerates_want)
        return;
    if (run.program->escape == BY_LONGJMP)
        jump_out(error);
    raise_error(error->code);
}

/* ---- Memory that the system does not give ---- */

void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset) {
    if (!nothing_is_mapped)
        return __real_mmap(address, size, protection, flags, file, offset);
    errno = ENOMEM;
    return MAP_FAILED;
}

static void *never_run(void *argument) {
    return argument;
}

/* The handler of errors ends what is set here. */
static int64_t be_in_want(bool leaves) {
    (void)
        haft_fiber_current(); /* the state of the thread needs memory, too: without it nothing can follow */
    errno = 0;
    tolerates_want = !leaves;
    nothing_is_mapped = true;
    haft_fiber_t *fiber =
        haft_fiber_new_with(&(haft_fiber_options_t){.stack_size = WANTED_SIZE}, never_run, NULL);
    nothing_is_mapped = false;
    return fiber == NULL && errno == ENOMEM ? HAFT_ERROR_NO_MEMORY : 0;
}

/* ---- Mistakes ---- */

static void make_mistake(int number) {
    static char too_small[64];
    switch (number) {
    case 0:
        haft_fiber_new(NULL, NULL);
        break;
    case 1:
        haft_fiber_new_with(
            &(haft_fiber_options_t){.memory = too_small, .memory_size = sizeof too_small},
            never_run, NULL);
        break;
    case 2:
        haft_fiber_reset(NULL, never_run, NULL);
        break;
    default:
        haft_set_stack_size((size_t)1 << 60);
    }
}

/* ---- Fibers in slots ---- */

static haft_reply_t return_reply(void *reply) {
    return *(const haft_reply_t *)reply;
}

static haft_reply_t raise_at(void *number) {
    raise_exception(*(const int64_t *)number);
}

static void *task_main(void *argument) {
    const task_t *task = argument;
    return (void *)(intptr_t)run_body(task->body, task->seed);
}

static task_t *make_task(const body_t *body, int64_t seed) {
    task_t *task = malloc(sizeof *task);
    *task = (task_t){run.tasks, body, seed};
    run.tasks = task;
    return task;
}

static memory_t *take_memory(void) {
    memory_t *memory = run.memories;
    if (memory == NULL)
        return malloc(sizeof *memory);
    run.memories = memory->next;
    return memory;
}

static void give_memory(slot_t *slot) {
    if (slot->memory == NULL)
        return;
    slot->memory->next = run.memories;
    run.memories = slot->memory;
}

static const char *next_name(void) {
    return names[run.fibers++ % IDENTIFIERS];
}

static int64_t identify(const haft_fiber_t *fiber) {
    return fiber == NULL ? 0 : strtol(haft_fiber_name(fiber) + 1, NULL, 10) + 1;
}

static int64_t new_fiber(const statement_t *statement, int64_t value) {
    slot_t *slot = &run.slots[statement->slot];
    if (slot->fiber != NULL) {
        observe(MISSING, statement->slot, 1);
        return 0;
    }
    haft_fiber_options_t options = {.name = next_name()};
    options.no_cleanups = statement->variant == CARELESS;
    if (statement->variant == SMALL)
        options.stack_size = SMALL_SIZE;
    if (statement->variant == FIXED) {
        slot->memory = take_memory();
        options.memory = slot->memory->bytes;
        options.memory_size = FIXED_SIZE;
    }
    slot->fiber = haft_fiber_new_with(&options, task_main, make_task(&statement->body, value));
    return identify(slot->fiber);
}

/* `again`: what to do with the freed fiber. */
static void free_fiber(int index, int again) {
    slot_t *slot = &run.slots[index];
    if (slot->fiber == NULL) {
        observe(MISSING, index, 0);
        return;
    }
    if (haft_fiber_state(slot->fiber) == HAFT_FIBER_RUNNING) {
        haft_fiber_drop(slot->fiber);
        return;
    }
    __attribute__((cleanup(give_memory))) slot_t taken = *slot;
    *slot = (slot_t){NULL, 0, NULL};
    haft_fiber_drop(taken.fiber);
    if (again == 0 || taken.memory != NULL)
        return;
    if (again == 1)
        haft_fiber_drop(taken.fiber);
    else
        (void)haft_resume(taken.fiber, HAFT_NO_REPLY, HAFT_HANDLES_ALL);
}

/* Writes the set of a fiber in a slot where other sets of such fibers have been. */
static const haft_handles_t *rewritten(const slot_t *slot, unsigned effects_handled) {
    haft_handles_t *set = &rewritten_sets[slot - run.slots];
    *set = sets[effects_handled];
    haft_handles_changed(slot->fiber);
    return set;
}

static haft_request_t resume(slot_t *slot, const round_t *round, int64_t value) {
    haft_fiber_state_t state = haft_fiber_state(slot->fiber);
    const haft_handles_t *set = &sets[round->effects];
    if (round->effects == ALL_EFFECTS && !run.program->signals)
        set = HAFT_HANDLES_ALL;
    else if (round->rewritten && (state == HAFT_FIBER_NEW || state == HAFT_FIBER_SUSPENDED))
        set = rewritten(slot, round->effects);
    reply_t reply;
    haft_reply_t given =
        state == HAFT_FIBER_SUSPENDED ? reply_to(slot->awaits, value, &reply) : HAFT_NO_REPLY;
    switch (round->action) {
    case DISCONTINUE:
        return haft_discontinue(slot->fiber, raise_at, &value, set);
    case VISIT:
        return haft_discontinue(slot->fiber, return_reply, &given, set);
    case NO_REPLY:
        return haft_resume(slot->fiber, HAFT_NO_REPLY, set);
    default:
        return haft_resume(slot->fiber, given, set);
    }
}

static int64_t run_loop(const statement_t *statement, int64_t value) {
    slot_t *slot = &run.slots[statement->slot];
    for (int i = 0; i < statement->round_count; i++) {
        const round_t *round = &statement->rounds[i];
        if (slot->fiber == NULL) {
            observe(MISSING, statement->slot, 0);
            return value;
        }
        haft_request_t request = resume(slot, round, value);
        HAFT_MATCH(request) {
            HAFT_RETURN(result) {
                observe(RETURNED, (intptr_t)result, 0);
                return mix(value, (intptr_t)result);
            }
            HAFT_OTHERWISE(other) {}
        }
        slot->awaits = index_of(request.effect);
        int64_t payload = families[slot->awaits].payload(request.payload);
        bool thrown = haft_fiber_state(slot->fiber) == HAFT_FIBER_FINISHED;
        observe(thrown ? THROWN : REQUEST, slot->awaits, payload);
        value = mix(value, payload);
        if (thrown)
            return value;
        value = mix(value, run_body(&round->body, value));
        if (round->action == DISMISS) {
            free_fiber(statement->slot, 0);
            return value;
        }
    }
    return value;
}

/* ---- Deep handlers ---- */

static int64_t run_tail(void *state, int effect, int64_t payload) {
    const handler_t *handler = ((const instance_t *)state)->handler;
    observe(CLAUSE, effect, payload);
    return run_body(&handler->clauses[effect].body, payload);
}

static void *run_never(void *state, int effect, int64_t payload) {
    return (void *)(intptr_t)run_tail(state, effect, payload);
}

static int64_t run_default(int effect, int variant, int64_t payload) {
    observe(DEFAULTED, effect * 2 + variant, payload);
    return run_body(&run.program->defaults[effect][variant], payload);
}

static int64_t continue_with(haft_resumption_t k, int64_t value) {
    const haft_effect_t *effect = haft_resumption_effect(k);
    reply_t reply;
    haft_reply_t given = effect == NULL ? HAFT_NO_REPLY : reply_to(index_of(effect), value, &reply);
    return (intptr_t)haft_resumption_resume(k, given);
}

/* The reply to a tail-continue is read when the clause is gone. */
static haft_answer_t tail_continue_with(haft_resumption_t k, int64_t value) {
    static reply_t reply;
    return haft_tail_resume(k, reply_to(index_of(haft_resumption_effect(k)), value, &reply));
}

static haft_answer_t run_general(void *state, int effect, int64_t payload, haft_resumption_t k) {
    const clause_t *clause = &((const instance_t *)state)->handler->clauses[effect];
    haft_resumption_t *kept = &run.kept[clause->slot];
    int64_t value = run_tail(state, effect, payload);
    bool occupied = haft_resumption_effect(*kept) != NULL;
    switch (clause->ending) {
    case END_TAIL_CONTINUE:
        return tail_continue_with(k, value);
    case END_EXCHANGE:
        if (occupied) {
            haft_resumption_t other = *kept;
            *kept = k;
            return tail_continue_with(other, value);
        }
        __attribute__((fallthrough));
    case END_CONTINUE:
        value = mix(value, continue_with(k, value));
        break;
    case END_RAISE:
        value = mix(value, (intptr_t)haft_resumption_discontinue(k, raise_at, &value));
        break;
    case END_KEEP:
        if (!occupied) {
            *kept = k;
            break;
        }
        __attribute__((fallthrough));
    default:
        haft_resumption_drop(k);
    }
    return haft_answer((void *)(intptr_t)mix(value, run_body(&clause->after, value)));
}

static void *on_return(void *state, void *result) {
    observe(RETURN_CLAUSE, (intptr_t)result, 0);
    return (void *)(intptr_t)run_body(&((const instance_t *)state)->handler->on_return,
                                      (intptr_t)result);
}

static int64_t handle(const statement_t *statement, int64_t value) {
    instance_t *instance = malloc(sizeof *instance);
    *instance = (instance_t){run.instances, statement->handler};
    run.instances = instance;
    haft_fiber_options_t options = {.name = next_name()};
    return (intptr_t)haft_handle_with(&options, &run.tables[statement->handler->index].handler,
                                      instance, task_main, make_task(&statement->body, value));
}

static int64_t use_kept(const statement_t *statement, int64_t value) {
    haft_resumption_t *kept = &run.kept[statement->slot];
    haft_resumption_t k = *kept;
    if (k.fiber == NULL) {
        observe(MISSING, statement->slot, 0);
        return 0;
    }
    if (statement->variant == 0 || statement->operation == DROP)
        kept->fiber = NULL;
    switch (statement->operation) {
    case CONTINUE:
        return continue_with(k, value);
    case CONTINUE_RAISE:
        return (intptr_t)haft_resumption_discontinue(k, raise_at, &value);
    default:
        haft_resumption_drop(k);
        return 0;
    }
}

/* ---- Statements ---- */

typedef struct call {
    const statement_t *statement;
    const body_t *body;
    int64_t value, result;
} call_t;

static void call_body(void *argument) {
    call_t *call = argument;
    call->result = run_body(call->body, call->value);
}

static void run_cleanup(call_t *call) {
    int64_t number;
    observe(CLEANUP, call->statement->number, 0);
    if (catching(call_body, call, &number))
        observe(CAUGHT, number, 0);
}

static int64_t run_scoped(const statement_t *statement, int64_t value) {
    __attribute__((unused, cleanup(run_cleanup)))
    call_t scope = {statement, &statement->other, value, 0};
    return run_body(&statement->body, value);
}

static int64_t try_body(const statement_t *statement, int64_t value) {
    call_t call = {statement, &statement->body, value, 0};
    int64_t number;
    if (!catching(call_body, &call, &number))
        return call.result;
    observe(CAUGHT, number, 0);
    return number;
}

/* ---- Threads ---- */

/* A thread that stays, and so keeps what it has cached and the stacks that it has freed. */
typedef struct worker {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started;
    call_t *call; /* NULL: idle */
} worker_t;

static worker_t workers[THREADS];

/* Signals come to the thread that runs the program, not to those that wait. */
static void take_signals(int how) {
    sigset_t set;
    if (!run.program->signals)
        return;
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    pthread_sigmask(how, &set, NULL);
}

static void run_call(call_t *call) {
    take_signals(SIG_UNBLOCK);
    call->result = try_body(call->statement, call->value);
    take_signals(SIG_BLOCK);
}

static void *work(void *argument) {
    worker_t *worker = argument;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        while (worker->call == NULL)
            pthread_cond_wait(&worker->changed, &worker->lock);
        call_t *call = worker->call;
        pthread_mutex_unlock(&worker->lock);
        run_call(call);
        pthread_mutex_lock(&worker->lock);
        worker->call = NULL;
        pthread_cond_broadcast(&worker->changed);
    }
    return NULL;
}

static void start_thread(pthread_t *thread, void *(*function)(void *), void *argument) {
    if (pthread_create(thread, NULL, function, argument) != 0)
        abort();
}

static void *thread_main(void *argument) {
    run_call(argument);
    return NULL;
}

static int64_t run_thread(const statement_t *statement, int64_t value) {
    call_t call = {statement, &statement->body, value, 0};
    worker_t *worker = &workers[statement->target % THREADS];
    pthread_t thread;
    take_signals(SIG_BLOCK);
    pthread_mutex_lock(&worker->lock);
    bool busy = worker->call != NULL;
    if (!busy) {
        worker->call = &call;
        if (!worker->started)
            start_thread(&thread, work, worker);
        worker->started = true;
        pthread_cond_broadcast(&worker->changed);
        while (worker->call != NULL)
            pthread_cond_wait(&worker->changed, &worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    if (busy) {
        start_thread(&thread, thread_main, &call);
        pthread_join(thread, NULL);
    }
    take_signals(SIG_UNBLOCK);
    return call.result;
}

/* In a child of fork no other thread is left. */
static void forget_workers(void) {
    for (int i = 0; i < THREADS; i++)
        workers[i] = (worker_t){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, NULL};
}

__attribute__((constructor)) static void prepare_workers(void) {
    forget_workers();
    pthread_atfork(NULL, NULL, forget_workers);
}

static int64_t send_out(const statement_t *statement, int64_t value) {
    bool by_slot = statement->operation == YIELD_SLOT || statement->operation == EXIT_SLOT;
    bool for_good = statement->operation == EXIT || statement->operation == EXIT_SLOT;
    haft_fiber_t *fiber =
        by_slot ? run.slots[statement->slot].fiber : haft_locate(effects[statement->target]);
    if (fiber == NULL) {
        observe(MISSING, by_slot ? statement->slot : statement->target, 0);
        return 0;
    }
    if (for_good)
        leave(statement, fiber, value);
    return yield(statement, fiber, value);
}

/* ---- Looking ---- */

static int64_t look(const haft_fiber_t *fiber) {
    void *address;
    if (fiber == NULL)
        return -1;
    return (int64_t)haft_fiber_state(fiber) +
           (haft_fiber_backtrace(fiber, &address, 1) != 0 ? 8 : 0) +
           16 * identify(haft_fiber_parent(fiber));
}

/* How many fibers there are, as the last line of the dump says. */
static int64_t count_fibers(void) {
    FILE *stream = tmpfile();
    (void)haft_fibers_dump(fileno(stream));
    rewind(stream);
    char line[512] = "0";
    while (fgets(line, sizeof line, stream) != NULL)
        continue;
    fclose(stream);
    return strtol(line, NULL, 10) - fibers_lost_in_races();
}

static int64_t execute(const statement_t *statement, int64_t value) {
    switch (statement->operation) {
    case PERFORM:
        return perform(statement, value);
    case THROW:
        throw(statement, value);
    case YIELD:
    case YIELD_SLOT:
    case EXIT:
    case EXIT_SLOT:
        return send_out(statement, value);
    case HANDLE:
        return handle(statement, value);
    case LOOP:
        return run_loop(statement, value);
    case NEW:
        return new_fiber(statement, value);
    case FREE:
        free_fiber(statement->slot, statement->variant);
        return 0;
    case RESET:
        if (run.slots[statement->slot].fiber == NULL)
            observe(MISSING, statement->slot, 0);
        else
            haft_fiber_reset(run.slots[statement->slot].fiber, task_main,
                             make_task(&statement->body, value));
        return 0;
    case SCOPED:
        return run_scoped(statement, value);
    case REPEAT:
        for (int i = 0; i < statement->variant + 2; i++)
            value = mix(value, run_body(&statement->body, value));
        return value;
    case WHERE:
        return identify(haft_fiber_current()) * 1000 +
               identify(haft_locate(effects[statement->effect]));
    case LOOK:
        return look(run.slots[statement->slot].fiber);
    case RENAME:
    case DETACH:
        if (run.slots[statement->slot].fiber == NULL)
            observe(MISSING, statement->slot, 0);
        else if (statement->operation == RENAME)
            haft_fiber_set_name(run.slots[statement->slot].fiber, next_name());
        else
            haft_fiber_detach(run.slots[statement->slot].fiber);
        return 0;
    case COUNT:
        return count_fibers();
    case TRIM:
        (void)haft_pool_trim();
        return 0;
    case WANT:
        return be_in_want(statement->variant != 0);
    case MISTAKE:
        make_mistake(statement->variant);
        return 0;
    case WAITS_ON: {
        const haft_effect_t *effect = haft_resumption_effect(run.kept[statement->slot]);
        return effect == NULL ? -1 : index_of(effect);
    }
    case CONTINUE:
    case CONTINUE_RAISE:
    case DROP:
        return use_kept(statement, value);
    case TRY:
        return try_body(statement, value);
    case RAISE:
        raise_exception(value);
    case SET_DEFAULT:
        return families[statement->effect].set_default(statement->variant);
    case THREAD:
        return run_thread(statement, value);
    default:
        abort();
    }
}

static void call_statement(void *argument) {
    call_t *call = argument;
    call->result = execute(call->statement, call->value);
}

static int64_t run_body(const body_t *body, int64_t value) {
    for (int i = 0; i < body->count && run.fuel > 0; i++) {
        call_t call = {&body->statements[i], NULL, value, 0};
        run.fuel--;
        int error = guarded(call_statement, &call);
        if (error != 0) {
            observe(ERROR, error, 0);
            call.result = error;
        }
        observe(RESULT, call.statement->operation, call.result);
        value = mix(value, call.result);
    }
    return value;
}

/* ---- Signals ---- */

#define FOR_SIGNALS(macro) macro(0) macro(1) macro(2) macro(3)

static int64_t answer_to(int which, int64_t number) {
    return number * 5 + which;
}

#define SIGNAL_FAMILY(which)                                                                       \
    static int64_t signalled_default_##which(void *unused,                                         \
                                             HAFT_PAYLOAD(signal_##which) * payload) {             \
        (void)unused;                                                                              \
        return answer_to(which, payload->number);                                                  \
    }                                                                                              \
    static int64_t signalled_tail_##which(void *state, HAFT_PAYLOAD(signal_##which) * payload) {   \
        const handler_t *handler = ((const instance_t *)state)->handler;                           \
        bool known = handler == run.program->handlers[handler->index];                             \
        return known ? answer_to(which, payload->number) : -1;                                     \
    }
FOR_SIGNALS(SIGNAL_FAMILY)

static volatile bool signals_went_wrong;
static timer_t signal_timer;

/* The next signal; not before this one is done with, however slow the program is. */
static void arm(void) {
    struct itimerspec once = {{0, 0}, {0, BETWEEN_SIGNALS}};
    timer_settime(signal_timer, 0, &once, NULL);
}

static void on_signal(int signal) {
    static volatile int64_t number;
    int saved = errno;
    (void)signal;
    number = number + 1;
#define PERFORM_SIGNALLED(which)                                                                   \
    if (HAFT_PERFORM(signal_##which, number) != answer_to(which, number))                          \
        signals_went_wrong = true;
    FOR_SIGNALS(PERFORM_SIGNALLED)
    arm();
    errno = saved;
}

static void start_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGURG, &action, NULL);
#define SET_SIGNALLED(which) HAFT_SET_DEFAULT(signal_##which, signalled_default_##which);
    FOR_SIGNALS(SET_SIGNALLED)
    signals_went_wrong = false;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGURG};
    if (timer_create(CLOCK_MONOTONIC, &event, &signal_timer) != 0)
        abort();
    arm();
}

static void end_signals(void) {
    timer_delete(signal_timer);
    signal(SIGURG, SIG_IGN);
    if (signals_went_wrong)
        observe(BROKEN, -1, 0);
}

/* Clauses for them, in every other handler. */
static uint32_t add_signal_clauses(haft_clause_t *clauses, uint32_t count, int index) {
#define ADD_CLAUSE(which)                                                                          \
    if (index % 2 == 0)                                                                            \
        clauses[count++] =                                                                         \
            (haft_clause_t){HAFT_ID(signal_##which), (haft_function_t *)signalled_tail_##which,    \
                            HAFT_CLAUSE_TAIL, HAFT_ID(signal_##which)->default_clause.shape};
    FOR_SIGNALS(ADD_CLAUSE)
    return count;
}

/* ---- A run ---- */

static void prepare(const program_t *program) {
    run.program = program;
    haft_set_stack_size(1024 * KIBIBYTE);
    run.fuel = FUEL;
    run.fibers = 0;
    haft_set_error_handler(program->escape == BY_ABORT ? NULL : handle_error);
    for (int i = 0; i < IDENTIFIERS; i++)
        snprintf(names[i], sizeof names[i], "f%d", i);
    for (int effect = 0; effect < EFFECTS; effect++)
        families[effect].set_default(effect < 4 ? 1 : 0);
    for (unsigned set = 0; set <= ALL_EFFECTS; set++) {
        uint32_t count = 0;
        for (int effect = 0; effect < EFFECTS; effect++)
            if (set >> effect & 1)
                set_clauses[set][count++] =
                    (haft_clause_t){effects[effect], NULL, HAFT_CLAUSE_REQUEST,
                                    effects[effect]->default_clause.shape};
        sets[set] = (haft_handles_t){count, 0, HAFTI_SET_FIXED, set_clauses[set]};
    }
    run.tables = calloc((size_t)program->handler_count + 1, sizeof *run.tables);
    for (int i = 0; i < program->handler_count; i++) {
        static const uint32_t kinds[CLAUSE_KINDS] = {0, HAFT_CLAUSE_TAIL, HAFT_CLAUSE_GENERAL,
                                                     HAFT_CLAUSE_NEVER};
        const handler_t *handler = program->handlers[i];
        table_t *table = &run.tables[i];
        uint32_t count = 0;
        for (int effect = 0; effect < EFFECTS; effect++) {
            clause_kind_t kind = handler->clauses[effect].kind;
            if (kind != ABSENT)
                table->clauses[count++] =
                    (haft_clause_t){effects[effect], families[effect].clauses[kind], kinds[kind],
                                    effects[effect]->default_clause.shape};
        }
        if (program->signals)
            count = add_signal_clauses(table->clauses, count, i);
        table->handler = (haft_handler_t){{count, 0, HAFTI_SET_FIXED, table->clauses},
                                          handler->returns ? on_return : NULL,
                                          "random"};
    }
}

/* Ends whatever the program has left; that may start more. A fiber that is suspended inside another
   ends with that one. */
static void end_all(void *unused) {
    (void)unused;
    for (int i = 0; i < SLOTS; i++)
        if (run.slots[i].fiber != NULL &&
            haft_fiber_state(run.slots[i].fiber) != HAFT_FIBER_RUNNING)
            free_fiber(i, 0);
    for (int i = 0; i < KEPT; i++)
        if (haft_resumption_effect(run.kept[i]) != NULL)
            haft_resumption_drop(run.kept[i]);
}

static bool anything_left(void) {
    for (int i = 0; i < SLOTS; i++)
        if (run.slots[i].fiber != NULL)
            return true;
    for (int i = 0; i < KEPT; i++)
        if (haft_resumption_effect(run.kept[i]) != NULL)
            return true;
    return false;
}

void run_on_haft(const program_t *program) {
    size_t stacks = haft_pool_report().stacks;
    memset(&run, 0, sizeof run);
    prepare(program);
    if (program->signals)
        start_signals();
    const statement_t whole = {.operation = TRY, .body = program->main};
    (void)try_body(&whole, 1);
    int error = 0;
    while (error == 0 && anything_left())
        error = guarded(end_all, NULL);
    if (error != 0)
        observe(BROKEN, error, 0);
    if (program->signals)
        end_signals();
    if (haft_pool_report().stacks != stacks)
        observe(LEAKED, (int64_t)(haft_pool_report().stacks - stacks), 0);
    for (instance_t *next; run.instances != NULL; run.instances = next) {
        next = run.instances->next;
        free(run.instances);
    }
    for (task_t *next; run.tasks != NULL; run.tasks = next) {
        next = run.tasks->next;
        free(run.tasks);
    }
    for (memory_t *next; run.memories != NULL; run.memories = next) {
        next = run.memories->next;
        free(run.memories);
    }
    free(run.tables);
}
/* SPDX-License-Identifier: MIT */
