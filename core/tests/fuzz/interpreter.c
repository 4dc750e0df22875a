/* Programs on libhaft. Every statement is what a C program would write by hand. */
#include "effects.h"
#include "races.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Effects that signals perform: one for each line of a scope's cache. */
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
static haft_handles_t rewritten_sets[SLOTS];

static int64_t run_body(const body_t *body, int64_t value);

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

HAFT_EFFECT(wanted, void, {});
static haft_answer_t never_taken(void *state, HAFT_PAYLOAD(wanted) * payload, haft_resumption_t k) {
    (void)payload;
    haft_resumption_drop(k);
    return haft_answer(state);
}
HAFT_HANDLER(wanting, NULL, HAFT_GENERAL(wanted, never_taken));

/* The handler of errors ends what is set here. */
static int64_t be_in_want(int how) {
    const haft_fiber_options_t options = {.stack_size = WANTED_SIZE};
    (void)
        haft_fiber_current(); /* the state of the thread needs memory, too: without it nothing can follow */
    errno = 0;
    tolerates_want = how % 2 == 0;
    nothing_is_mapped = true;
    bool refused =
        how < 2 ? haft_fiber_new_with(&options, never_run, NULL) == NULL
                : haft_handle_with(&options, &wanting, NULL, never_run, NULL) == HAFT_NO_ANSWER;
    nothing_is_mapped = false;
    return refused && errno == ENOMEM ? HAFT_ERROR_NO_MEMORY : 0;
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

/* ---- Sets ---- */

/* The places of one set; they stay, since what is numbered does not change. */
typedef struct written {
    struct written *next;
    unsigned effects;
    haft_handles_t at[REWRITTEN];
    haft_clause_t clauses[EFFECTS], backwards[EFFECTS];
} written_t;

static written_t *write_set(unsigned effects_handled) {
    static const uint16_t numbers[REWRITTEN] = {[HERE] = HAFTI_SET_UNNUMBERED,
                                                [THERE] = HAFTI_SET_UNNUMBERED,
                                                [BACKWARDS] = HAFTI_SET_UNNUMBERED,
                                                [BUILT] = HAFTI_SET_FIXED};
    written_t *written = calloc(1, sizeof *written);
    uint32_t count = 0;
    for (int effect = 0; effect < EFFECTS; effect++)
        if (effects_handled >> effect & 1)
            written->clauses[count++] = (haft_clause_t){effects[effect], NULL, HAFT_CLAUSE_REQUEST,
                                                        effects[effect]->default_clause.shape};
    for (uint32_t i = 0; i < count; i++)
        written->backwards[i] = written->clauses[count - 1 - i];
    for (int place = 0; place < REWRITTEN; place++)
        written->at[place] = (haft_handles_t){
            count, 0, numbers[place], place == BACKWARDS ? written->backwards : written->clauses};
    written->effects = effects_handled;
    return written;
}

static const haft_handles_t *set_at(unsigned effects_handled, place_t place) {
    static written_t *all;
    written_t *written = all;
    if (effects_handled == ALL_EFFECTS && place == HERE && !run.program->signals)
        return HAFT_HANDLES_ALL;
    while (written != NULL && written->effects != effects_handled)
        written = written->next;
    if (written == NULL) {
        written = write_set(effects_handled);
        written->next = all;
        all = written;
    }
    return &written->at[place];
}

/* Writes the set of a fiber in a slot where other sets of such fibers have been. */
static const haft_handles_t *rewrite(const slot_t *slot, unsigned effects_handled) {
    haft_handles_t *set = &rewritten_sets[slot - run.slots];
    *set = *set_at(effects_handled, BUILT);
    haft_handles_changed(slot->fiber);
    return set;
}

/* ---- Replies ---- */

/* A computation that is replied to: a fiber, or what is given to haft_resumption_resume or
   haft_tail_resume. */
typedef struct waiting {
    enum { BY_HAND, RESUMED, PROMISED } what;
    int awaits;
    haft_fiber_t *fiber;
    const haft_handles_t *set;
    haft_resumption_t k;
} waiting_t;

typedef union replied {
    haft_request_t request;
    void *answer;
    haft_answer_t promise;
} replied_t;

static haft_reply_t make_reply(reply_choice_t choice, int awaits, int64_t value, reply_t *room) {
    switch (choice.kind) {
    case REPLY_NOTHING:
        return HAFT_NO_REPLY;
    case REPLY_TO:
        return untyped_reply(choice.effect, value, room);
    case REPLY_MISSIZED:
        return missized_reply(awaits == NOT_STARTED ? choice.effect : awaits, room);
    default:
        return awaits == NOT_STARTED ? HAFT_NO_REPLY : untyped_reply(awaits, value, room);
    }
}

static replied_t reply_by_macro(const waiting_t *waiting, int64_t value) {
    const family_t *family = &families[waiting->awaits];
    switch (waiting->what) {
    case BY_HAND:
        return (replied_t){.request = family->resume(waiting->fiber, value, waiting->set)};
    case RESUMED:
        return (replied_t){.answer = family->resumption_resume(waiting->k, value)};
    default:
        return (replied_t){.promise = family->tail_resume(waiting->k, value)};
    }
}

static replied_t reply(const waiting_t *waiting, reply_choice_t choice, int64_t value) {
    if (choice.kind == REPLY_TYPED && waiting->awaits != NOT_STARTED)
        return reply_by_macro(waiting, value);
    reply_t room;
    haft_reply_t made = make_reply(choice, waiting->awaits, value, &room);
    switch (waiting->what) {
    case BY_HAND:
        return (replied_t){.request = haft_resume(waiting->fiber, made, waiting->set)};
    case RESUMED:
        return (replied_t){.answer = haft_resumption_resume(waiting->k, made)};
    default:
        return (replied_t){.promise = haft_tail_resume(waiting->k, made)};
    }
}

typedef struct attempt {
    const waiting_t *waiting;
    reply_choice_t choice;
    int64_t value;
} attempt_t;

static void make_attempt(void *argument) {
    const attempt_t *attempt = argument;
    (void)reply(attempt->waiting, attempt->choice, attempt->value);
}

/* Notes the error that this reply gives. */
static void observe_refusal(const waiting_t *waiting, reply_choice_t choice, int64_t value) {
    attempt_t attempt = {waiting, choice, value};
    observe(ERROR, guarded(make_attempt, &attempt), 0);
}

/* Replies rightly, after a wrong reply if that is chosen. */
static replied_t reply_in_the_end(const waiting_t *waiting, reply_choice_t choice, int64_t value) {
    if (is_wrong(choice, waiting->awaits)) {
        observe_refusal(waiting, choice, value);
        choice.kind = REPLY_UNTYPED;
    }
    return reply(waiting, choice, value);
}

/* ---- The loop of requests ---- */

static haft_reply_t return_reply(void *reply) {
    return *(const haft_reply_t *)reply;
}

static haft_reply_t raise_at(void *number) {
    raise_exception(*(const int64_t *)number);
}

static haft_request_t visit(const waiting_t *waiting, reply_choice_t choice, int64_t value) {
    reply_t room;
    /* There is no perform yet at which an error could be told. */
    if (waiting->awaits == NOT_STARTED && choice.kind != REPLY_MISSIZED)
        choice.kind = REPLY_NOTHING;
    haft_reply_t made = make_reply(choice, waiting->awaits, value, &room);
    return haft_discontinue(waiting->fiber, return_reply, &made, waiting->set);
}

static haft_request_t resume(slot_t *slot, const round_t *round, int64_t value) {
    haft_fiber_state_t state = haft_fiber_state(slot->fiber);
    bool waits = state == HAFT_FIBER_NEW || state == HAFT_FIBER_SUSPENDED;
    waiting_t waiting = {.what = BY_HAND, .fiber = slot->fiber};
    waiting.awaits = state == HAFT_FIBER_SUSPENDED ? slot->awaits : NOT_STARTED;
    waiting.set = round->place == REWRITTEN && waits
                      ? rewrite(slot, round->effects)
                      : set_at(round->effects, round->place % REWRITTEN);
    switch (round->action) {
    case DISCONTINUE:
        return haft_discontinue(slot->fiber, raise_at, &value, waiting.set);
    case VISIT:
        return visit(&waiting, round->reply, value);
    default:
        return (waits && round->again ? reply_in_the_end(&waiting, round->reply, value)
                                      : reply(&waiting, round->reply, value))
            .request;
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

int64_t run_tail(void *state, int effect, int64_t payload) {
    const handler_t *handler = ((const instance_t *)state)->handler;
    observe(CLAUSE, effect, payload);
    return run_body(&handler->clauses[effect].body, payload);
}

void *run_never(void *state, int effect, int64_t payload) {
    return (void *)(intptr_t)run_tail(state, effect, payload);
}

int64_t run_default(int effect, int variant, int64_t payload) {
    observe(DEFAULTED, effect * 2 + variant, payload);
    return run_body(&run.program->defaults[effect][variant], payload);
}

static int64_t continue_with(haft_resumption_t k, reply_choice_t choice, int64_t value) {
    const haft_effect_t *effect = haft_resumption_effect(k);
    if (effect == NULL)
        return (intptr_t)haft_resumption_resume(k, HAFT_NO_REPLY);
    waiting_t waiting = {.what = RESUMED, .awaits = index_of(effect), .k = k};
    return (intptr_t)reply_in_the_end(&waiting, choice, value).answer;
}

/* The reply is gone before the clause is. */
static haft_answer_t promise(haft_resumption_t k, reply_choice_t choice, int64_t value) {
    waiting_t waiting = {.what = PROMISED, .awaits = index_of(haft_resumption_effect(k)), .k = k};
    return reply_in_the_end(&waiting, choice, value).promise;
}

static void drop_resumption(void *k) {
    haft_resumption_drop(*(const haft_resumption_t *)k);
}

/* A promised computation is used already. */
static void misuse_promised(haft_resumption_t k, int awaits, int how) {
    static const reply_choice_t right = {REPLY_UNTYPED, 0};
    waiting_t waiting = {.what = how == 0 ? RESUMED : PROMISED, .awaits = awaits, .k = k};
    if (how == 1)
        observe(ERROR, guarded(drop_resumption, &k), 0);
    else
        observe_refusal(&waiting, right, 0);
}

/* Takes a deep handler's computation from it, for one request. */
static void snatch(haft_fiber_t *fiber, int awaits, int64_t value) {
    HAFT_SCOPED haft_fiber_t *snatched = fiber;
    haft_request_t request = families[awaits].resume(snatched, value, set_at(ALL_EFFECTS, HERE));
    HAFT_MATCH(request) {
        HAFT_RETURN(result) {
            observe(RETURNED, (intptr_t)result, 0);
        }
        HAFT_OTHERWISE(other) {
            bool thrown = haft_fiber_state(snatched) == HAFT_FIBER_FINISHED;
            int effect = index_of(other.effect);
            observe(thrown ? THROWN : REQUEST, effect, families[effect].payload(other.payload));
        }
    }
}

haft_answer_t run_general(void *state, int effect, int64_t payload, haft_resumption_t k) {
    const clause_t *clause = &((const instance_t *)state)->handler->clauses[effect];
    haft_resumption_t *kept = &run.kept[clause->slot], *next = &run.kept[(clause->slot + 1) % KEPT];
    int64_t value = run_tail(state, effect, payload);
    bool occupied = haft_resumption_effect(*kept) != NULL;
    haft_answer_t promised;
    switch (clause->ending) {
    case END_TAIL_CONTINUE:
        return promise(k, clause->reply, value);
    case END_EXCHANGE:
        if (occupied) {
            promised = promise(*kept, clause->reply, value);
            *kept = k;
            return promised;
        }
        __attribute__((fallthrough));
    case END_CONTINUE:
        value = mix(value, continue_with(k, clause->reply, value));
        break;
    case END_RAISE:
        value = mix(value, (intptr_t)haft_resumption_discontinue(k, raise_at, &value));
        break;
    case END_PROMISE:
        promised = promise(k, clause->reply, value);
        misuse_promised(k, effect, clause->slot);
        (void)run_body(&clause->after, value);
        return promised;
    case END_FREE_PROMISE:
        (void)promise(k, clause->reply, value);
        haft_fiber_drop(k.fiber);
        break;
    case END_FORGET:
        if (occupied && haft_resumption_effect(*next) != NULL) {
            haft_resumption_drop(k);
            break;
        }
        promised = promise(k, clause->reply, value);
        if (occupied)
            promised = promise(*kept, clause->reply, value);
        else
            promised = haft_answer(NULL);
        *(occupied ? next : kept) = k;
        return promised;
    case END_SNATCH:
        (void)promise(k, clause->reply, value);
        snatch(k.fiber, effect, value);
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
        return continue_with(k, statement->reply, value);
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

/* How many fibers there are, by the last line of the dump. */
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
        return be_in_want(statement->variant);
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
