/*
 * Rules that hold for every race, whichever operation is refused:
 *
 * - An operation succeeds, or is refused with a code for the race. One that was refused has done
 * nothing.
 * - A resume that succeeded has woken its fiber once, with its reply: no two threads are on one
 * stack, and no reply is lost or used twice.
 * - A fiber is freed by at most one thread. One that nobody has freed can be used when all is
 * quiet, unless somebody was refused: it may then stay closed for ever, and counts as lost.
 * - Each start of a body ends, and its cleanup runs once.
 * - The handlers of each thread are what they were.
 *
 * Nobody makes fibers meanwhile, so that a freed one is recognised. The three threads stay, for the
 * next race.
 */
#include "races.h"
#include "program.h"

#include <haft.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, MOST_FIBERS = 2, MOST_OPERATIONS = 8, ROUNDS = 10, STEPS = 6 };
/* Numbers of the operations in the race, of the resumes before it, and of those at the end. */
enum {
    BEFORE = THREADS * MOST_OPERATIONS,
    AFTER = BEFORE + MOST_FIBERS * STEPS,
    IDENTIFIERS,
    FIXED_SIZE = 64 * 1024
};

HAFT_EFFECT(race_step, int64_t, {});
HAFT_EFFECT(race_done, void, {});
HAFT_EFFECT(race_default, int64_t, { int64_t number; });
HAFT_EFFECT(race_nobody, void, {});

typedef enum race_operation {
    RACE_RESUME,
    RACE_VISIT, /* discontinue by a function that returns */
    RACE_FREE,
    RACE_RESET,
    RACE_DETACH,
    RACE_CHANGED, /* haft_handles_changed */
    RACE_LOOK,
    RACE_PERFORM, /* what has a default, and what nobody handles */
    RACE_OPERATIONS
} race_operation_t;

static const char *const names[RACE_OPERATIONS] = {"resume", "visit",   "free", "reset",
                                                   "detach", "changed", "look", "perform"};

typedef struct step {
    race_operation_t operation;
    int fiber;
    bool inside; /* on a fiber of the thread */
    int delay;
} step_t;

/* Made from the choices. */
typedef struct plan {
    bool by_longjmp;
    int fiber_count;
    struct {
        bool fixed, nested; /* another fiber does the steps, inside of it */
        int owner, steps;   /* which thread has resumed it before, how often */
    } fibers[MOST_FIBERS];
    int counts[THREADS];
    step_t steps[THREADS][MOST_OPERATIONS];
} plan_t;

typedef struct shared {
    haft_fiber_t *fiber, *inner;
    atomic_int inside, started, ended, freed, refused;
    char *memory;
} shared_t;

static struct {
    plan_t plan;
    shared_t fibers[MOST_FIBERS];
    atomic_int woken[IDENTIFIERS]; /* by the reply of which operation */
    atomic_int resumed[IDENTIFIERS];
    char *verdict;
    size_t verdict_size;
    pthread_mutex_t lock;
} race = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int lost;

int fibers_lost_in_races(void) {
    return lost;
}

static void wrong(const char *what, int first, int second) {
    pthread_mutex_lock(&race.lock);
    if (race.verdict[0] == '\0')
        snprintf(race.verdict, race.verdict_size, "%s (%d, %d)\n", what, first, second);
    pthread_mutex_unlock(&race.lock);
}

/* ---- What the fibers do ---- */

static void come(shared_t *shared) {
    if (atomic_fetch_add(&shared->inside, 1) != 0)
        wrong("two threads are on the stack of one fiber", (int)(shared - race.fibers), 0);
}

static void go(shared_t *shared) {
    atomic_fetch_sub(&shared->inside, 1);
}

static void end(shared_t **shared) {
    come(*shared);
    atomic_fetch_add(&(*shared)->ended, 1);
    go(*shared);
}

static void *take_steps(void *argument) {
    shared_t *shared = argument;
    for (int i = 0; i < STEPS; i++) {
        int64_t reply = HAFT_PERFORM(race_step);
        come(shared);
        if (reply < 0 || reply >= IDENTIFIERS)
            wrong("a reply that nobody gave", (int)reply, i);
        else
            atomic_fetch_add(&race.woken[reply], 1);
        go(shared);
    }
    return shared;
}

static void *run_shared(void *argument) {
    __attribute__((unused, cleanup(end))) shared_t *shared = argument;
    come(shared);
    atomic_fetch_add(&shared->started, 1);
    go(shared);
    if (shared->inner == NULL || haft_fiber_state(shared->inner) != HAFT_FIBER_NEW)
        return take_steps(shared);
    (void)haft_resume(shared->inner, HAFT_NO_REPLY, HAFT_HANDLES());
    return shared;
}

/* ---- Refusals ---- */

/* Where the error handler jumps to, or NULL: it throws. It also throws on another stack than that
   (a visit can be refused on the fiber's). One a thread, read on stacks that stay on it. */
static __thread jmp_buf *refuge;
static __thread const haft_fiber_t *refuge_on;
static __thread int refused;

static void refuse(const haft_error_t *error) {
    if (refuge == NULL || haft_fiber_current() != refuge_on)
        raise_error(error->code);
    refused = error->code;
    longjmp(*refuge, 1);
}

static int attempt(void (*call)(void *), void *argument) {
    if (!race.plan.by_longjmp)
        return guarded_by_catch(call, argument);
    jmp_buf here;
    refused = 0;
    refuge = &here;
    refuge_on = haft_fiber_current();
    if (setjmp(here) == 0)
        refused = guarded_by_catch(call, argument);
    refuge = NULL;
    return refused;
}

/* ---- What the threads do ---- */

typedef struct attempted {
    step_t step;
    int identifier;
} attempted_t;

static haft_reply_t wake(void *argument) {
    return *(haft_reply_t *)argument;
}

static void resume(shared_t *shared, int identifier, bool visits) {
    const haft_handles_t *set = HAFT_HANDLES(race_step);
    int64_t number = identifier;
    haft_reply_t reply = haft_fiber_state(shared->fiber) == HAFT_FIBER_NEW
                             ? HAFT_NO_REPLY
                             : HAFT_REPLY(race_step, number);
    haft_request_t request = visits ? haft_discontinue(shared->fiber, wake, &reply, set)
                                    : haft_resume(shared->fiber, reply, set);
    if (request.effect != HAFT_ID(race_step) && !haft_finished(request))
        wrong("a request of no effect of the fiber", identifier, 0);
    atomic_fetch_add(&race.resumed[identifier], 1);
}

static void try_operation(void *argument) {
    attempted_t *attempted = argument;
    shared_t *shared = &race.fibers[attempted->step.fiber];
    switch (attempted->step.operation) {
    case RACE_RESUME:
    case RACE_VISIT:
        resume(shared, attempted->identifier, attempted->step.operation == RACE_VISIT);
        break;
    case RACE_FREE:
        haft_fiber_drop(shared->fiber);
        if (atomic_fetch_add(&shared->freed, 1) != 0)
            wrong("a fiber was freed twice", attempted->step.fiber, 0);
        break;
    case RACE_RESET:
        haft_fiber_reset(shared->fiber, run_shared, shared);
        break;
    case RACE_DETACH:
        haft_fiber_detach(shared->fiber);
        break;
    case RACE_CHANGED:
        haft_handles_changed(shared->fiber);
        break;
    case RACE_LOOK:
        if (haft_fiber_state(shared->fiber) > HAFT_FIBER_DROPPED)
            wrong("no such state", attempted->step.fiber, 0);
        break;
    default:
        HAFT_PERFORM(race_nobody);
    }
}

static void check_handlers(const haft_fiber_t *here, int identifier) {
    if (haft_fiber_current() != here)
        wrong("the thread is on another fiber than it was", identifier, 0);
    if (HAFT_PERFORM(race_default, identifier) != identifier + 1)
        wrong("an effect was handled by another handler", identifier, 0);
}

static void do_step(attempted_t *attempted) {
    haft_fiber_t *here = haft_fiber_current();
    for (volatile int i = 0; i < attempted->step.delay; i = i + 1)
        continue;
    int code = attempt(try_operation, attempted);
    bool own = attempted->step.operation == RACE_PERFORM;
    /* Memory of the caller that another reset has taken meanwhile. */
    bool taken = code == HAFT_ERROR_BAD_ARGUMENT && attempted->step.operation == RACE_RESET;
    /* It was reset, or started, since its state was looked at. */
    bool other_reply = code == HAFT_ERROR_WRONG_TYPE || code == HAFT_ERROR_NO_REPLY;
    if (code != 0 && code != HAFT_ERROR_NOT_RESUMABLE && code != HAFT_ERROR_IN_USE && !own &&
        !taken && !other_reply)
        wrong("refused with a code that does not say why", code, (int)attempted->step.operation);
    if (code != 0 && !own)
        atomic_fetch_add(&race.fibers[attempted->step.fiber].refused, 1);
    if (own && code != HAFT_ERROR_UNHANDLED)
        wrong("an effect that nobody handles was handled", code, 0);
    check_handlers(here, attempted->identifier);
}

/* A thread's own fiber: does what it is given. */
static void *help(void *argument) {
    attempted_t **given = argument;
    for (;;) {
        if (*given != NULL)
            do_step(*given);
        HAFT_PERFORM(race_done);
    }
    return NULL;
}

static void run_step(attempted_t *attempted, haft_fiber_t *helper, attempted_t **given) {
    if (!attempted->step.inside) {
        do_step(attempted);
        return;
    }
    *given = attempted;
    (void)haft_resume(helper, HAFT_NO_REPLY, HAFT_HANDLES(race_done));
}

/* Resumes the fibers that are this thread's before the race. */
static void prepare(int thread) {
    for (int i = 0; i < race.plan.fiber_count; i++)
        for (int step = 0; race.plan.fibers[i].owner == thread && step < race.plan.fibers[i].steps;
             step++)
            resume(&race.fibers[i], BEFORE + i * STEPS + step, false);
}

static void take_part(int thread, pthread_barrier_t *barrier) {
    attempted_t *given = NULL;
    HAFT_SCOPED haft_fiber_t *helper = haft_fiber_new(help, &given);
    (void)haft_resume(helper, HAFT_NO_REPLY, HAFT_HANDLES(race_done));
    prepare(thread);
    pthread_barrier_wait(barrier);
    for (int i = 0; i < race.plan.counts[thread]; i++) {
        attempted_t attempted = {race.plan.steps[thread][i], thread * MOST_OPERATIONS + i};
        run_step(&attempted, helper, &given);
    }
    /* Its stack may serve another fiber only when nobody has one to fear for. */
    pthread_barrier_wait(barrier);
}

/* ---- The threads ---- */

static struct {
    bool started;
    pthread_barrier_t begin, race, end;
} threads;

static void *thread_main(void *argument) {
    int thread = (int)(intptr_t)argument;
    for (;;) {
        pthread_barrier_wait(&threads.begin);
        take_part(thread, &threads.race);
        pthread_barrier_wait(&threads.end);
    }
    return NULL;
}

static void forget_threads(void) {
    threads.started = false;
}

static void start_threads(void) {
    static bool told;
    if (!told)
        pthread_atfork(NULL, NULL, forget_threads);
    told = true;
    pthread_barrier_init(&threads.begin, NULL, THREADS + 1);
    pthread_barrier_init(&threads.race, NULL, THREADS);
    pthread_barrier_init(&threads.end, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, thread_main, (void *)(intptr_t)i) != 0)
            abort();
        pthread_detach(thread);
    }
    threads.started = true;
}

/* ---- A race ---- */

static int64_t by_default(void *unused, HAFT_PAYLOAD(race_default) * payload) {
    (void)unused;
    return payload->number + 1;
}

static void set_up(void) {
    for (int i = 0; i < IDENTIFIERS; i++)
        race.woken[i] = race.resumed[i] = 0;
    for (int i = 0; i < race.plan.fiber_count; i++) {
        shared_t *shared = &race.fibers[i];
        memset(shared, 0, sizeof *shared);
        haft_fiber_options_t options = {.name = "raced"};
        if (race.plan.fibers[i].fixed) {
            options.memory = shared->memory = malloc(FIXED_SIZE);
            options.memory_size = FIXED_SIZE;
        }
        if (race.plan.fibers[i].nested)
            shared->inner = haft_fiber_new(take_steps, shared);
        shared->fiber = haft_fiber_new_with(&options, run_shared, shared);
    }
}

/* All is quiet: what is left is used to its end. */
static void finish(void *argument) {
    shared_t *shared = argument;
    if (shared->freed != 0)
        return;
    for (int i = 0; haft_fiber_state(shared->fiber) != HAFT_FIBER_FINISHED; i++) {
        if (i > STEPS) {
            wrong("a fiber goes on for ever", (int)(shared - race.fibers), i);
            return;
        }
        resume(shared, AFTER, false);
    }
    haft_fiber_drop(shared->fiber);
}

static void clear_up(void) {
    int resumed = 0, woken = 0, started = 0;
    for (int i = 0; i < IDENTIFIERS; i++) {
        resumed += race.resumed[i];
        woken += race.woken[i];
        if (race.woken[i] > 1)
            wrong("one reply was given twice", i, race.woken[i]);
        if (race.woken[i] > race.resumed[i])
            wrong("a resume that was refused has woken the fiber", i, 0);
    }
    for (int i = 0; i < race.plan.fiber_count; i++)
        started += race.fibers[i].started;
    if (resumed != woken + started)
        wrong("resumes that have woken nobody", resumed, woken + started);
    for (int i = 0; i < race.plan.fiber_count; i++) {
        shared_t *shared = &race.fibers[i];
        int code = attempt(finish, shared);
        if (code == HAFT_ERROR_NOT_RESUMABLE && shared->refused > 0) {
            lost += shared->inner != NULL ? 2 : 1;
            continue;
        }
        if (code != 0)
            wrong("a fiber cannot be used any more", i, code);
        if (race.verdict[0] == '\0' && shared->started != shared->ended)
            wrong("cleanups that have not run", shared->started, shared->ended);
        haft_fiber_drop(race.verdict[0] == '\0' ? shared->inner : NULL);
        free(shared->memory);
    }
}

static int take(const uint16_t **choice, const uint16_t *end, int below) {
    return *choice < end ? *(*choice)++ % below : 0;
}

static void make_plan(plan_t *plan, const uint16_t *choice, size_t count) {
    const uint16_t *end = choice + count;
    memset(plan, 0, sizeof *plan);
    choice++; /* marks a race */
    plan->by_longjmp = take(&choice, end, 2);
    plan->fiber_count = 1 + take(&choice, end, MOST_FIBERS);
    for (int i = 0; i < plan->fiber_count; i++) {
        plan->fibers[i].fixed = take(&choice, end, 4) == 3;
        plan->fibers[i].nested = take(&choice, end, 4) == 3;
        plan->fibers[i].steps = take(&choice, end, STEPS);
        plan->fibers[i].owner = take(&choice, end, THREADS);
    }
    for (int thread = 0; thread < THREADS; thread++) {
        plan->counts[thread] = take(&choice, end, MOST_OPERATIONS + 1);
        for (int i = 0; i < plan->counts[thread]; i++) {
            static const race_operation_t often[] = {
                RACE_RESUME, RACE_RESUME, RACE_RESUME,  RACE_VISIT, RACE_FREE,
                RACE_RESET,  RACE_DETACH, RACE_CHANGED, RACE_LOOK,  RACE_PERFORM};
            step_t *step = &plan->steps[thread][i];
            step->operation = often[take(&choice, end, sizeof often / sizeof *often)];
            step->fiber = take(&choice, end, plan->fiber_count);
            step->inside = take(&choice, end, 3) == 2;
            step->delay = take(&choice, end, 4) == 3 ? take(&choice, end, 500) : 0;
            /* Nothing is known of the caller's memory once it is freed. */
            if (step->operation == RACE_FREE && plan->fibers[step->fiber].fixed)
                step->operation = RACE_LOOK;
        }
    }
}

void run_race(const uint16_t *choices, size_t count, char *verdict, size_t size) {
    make_plan(&race.plan, choices, count);
    race.verdict = verdict;
    race.verdict_size = size;
    verdict[0] = '\0';
    haft_set_error_handler(refuse);
    HAFT_SET_DEFAULT(race_default, by_default);
    if (!threads.started)
        start_threads();
    for (int round = 0; round < ROUNDS && verdict[0] == '\0'; round++) {
        set_up();
        pthread_barrier_wait(&threads.begin);
        pthread_barrier_wait(&threads.end);
        clear_up();
    }
}

void show_race(const uint16_t *choices, size_t count, char *text, size_t size) {
    plan_t plan;
    make_plan(&plan, choices, count);
    FILE *stream = fmemopen(text, size, "w");
    fprintf(stream, "race, errors by %s\n", plan.by_longjmp ? "longjmp" : "exceptions");
    for (int i = 0; i < plan.fiber_count; i++)
        fprintf(stream, "fiber %d%s%s, resumed %d times by thread %d\n", i,
                plan.fibers[i].fixed ? " fixed" : "", plan.fibers[i].nested ? " nested" : "",
                plan.fibers[i].steps, plan.fibers[i].owner);
    for (int thread = 0; thread < THREADS; thread++) {
        fprintf(stream, "thread %d:", thread);
        for (int i = 0; i < plan.counts[thread]; i++) {
            const step_t *step = &plan.steps[thread][i];
            fprintf(stream, " %s%s f%d", names[step->operation], step->inside ? " inside" : "",
                    step->fiber);
            if (step->delay != 0)
                fprintf(stream, " (after %d)", step->delay);
            fprintf(stream, ";");
        }
        fprintf(stream, "\n");
    }
    fclose(stream);
}
/* SPDX-License-Identifier: MIT */
