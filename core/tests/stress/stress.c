/*
 * Fibers that are moved between threads for as long as one likes: HAFT_STRESS_SECONDS (default 2,
 * with HAFT_CAMPAIGN=long 10, and 60 under ThreadSanitizer).
 *
 *     test_stress [SEED]      the seed is printed
 *
 * Each thread has a queue of fibers and steals from the others when it has none. Fibers yield,
 * fork, hold cleanups, nest handlers and fibers of their own, throw, finish; the scheduler now and
 * then drops one instead of resuming it. Before a fiber goes to a queue it is detached, or not. The
 * random choices belong to the fiber and not to the thread, so that they do not depend on how the
 * threads run.
 *
 * These must hold: every fiber that was started ends exactly once; the cleanups that were entered
 * are run; a fiber's locals and the answers of its handlers are its own; at the end no stack is in
 * use.
 */
#include <haft.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

HAFT_EFFECT(stress_yield, void, {});
HAFT_EFFECT(stress_fork, int64_t, { uint64_t seed; });
HAFT_EFFECT(stress_ask, int64_t, { int64_t number; });
HAFT_EFFECT(stress_quit, void, { int64_t number; });
HAFT_EFFECT(stress_inner, int64_t, { int64_t number; });

enum { STRESS_SHORT = 2 };
#ifndef STRESS_LONG
#    define STRESS_LONG 10
#endif
enum { THREADS = 4, MOST_FIBERS = 2000, STEPS = 12, FIXED_SIZE = 96 * 1024 };

typedef struct job {
    struct job *next;
    haft_fiber_t *fiber;
    uint64_t random;
    int64_t number; /* what stress_ask is answered from */
    bool started;
    char *memory;
} job_t;

typedef struct queue {
    pthread_mutex_t lock;
    job_t *first, *last;
} queue_t;

static queue_t queues[THREADS];
static atomic_int live, started, ended, entered, left, wrong;
static atomic_bool stopping;
static uint64_t first_seed;

static uint64_t draw(uint64_t *random) {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static void expect(bool holds) {
    if (!holds)
        atomic_fetch_add(&wrong, 1);
}

static void push(queue_t *queue, job_t *job) {
    pthread_mutex_lock(&queue->lock);
    job->next = NULL;
    if (queue->last != NULL)
        queue->last->next = job;
    else
        queue->first = job;
    queue->last = job;
    pthread_mutex_unlock(&queue->lock);
}

static job_t *pop(queue_t *queue) {
    pthread_mutex_lock(&queue->lock);
    job_t *job = queue->first;
    if (job != NULL) {
        queue->first = job->next;
        if (queue->first == NULL)
            queue->last = NULL;
    }
    pthread_mutex_unlock(&queue->lock);
    return job;
}

/* ---- What fibers do ---- */

static void leave_scope(int64_t *canary) {
    expect(*canary == 0x5c09e);
    atomic_fetch_add(&left, 1);
}
#define SCOPE(name)                                                                                \
    __attribute__((unused, cleanup(leave_scope))) int64_t name = 0x5c09e;                          \
    atomic_fetch_add(&entered, 1)

static int64_t tail_inner(void *state, HAFT_PAYLOAD(stress_inner) * payload) {
    (void)state;
    /* On the performer's stack, outside its handler: goes to the scheduler, perhaps elsewhere. */
    return HAFT_PERFORM(stress_ask, payload->number) + 1;
}
HAFT_HANDLER(in_place, NULL, HAFT_TAIL(stress_inner, tail_inner));

static haft_answer_t general_inner(void *state, HAFT_PAYLOAD(stress_inner) * payload,
                                   haft_resumption_t k) {
    (void)state;
    SCOPE(scope);
    int64_t answer = HAFT_PERFORM(stress_ask, payload->number);
    HAFT_PERFORM(stress_yield);
    return haft_answer(haft_resumption_resume(k, HAFT_REPLY(stress_inner, answer + 1)));
}
HAFT_HANDLER(general, NULL, HAFT_GENERAL(stress_inner, general_inner));

static void *handled(void *argument) {
    SCOPE(scope);
    int64_t number = *(int64_t *)argument;
    HAFT_PERFORM(stress_yield);
    expect(HAFT_PERFORM(stress_inner, number) == 2 * number + 1);
    HAFT_PERFORM(stress_yield);
    return argument;
}

/* A fiber inside the fiber: it handles one effect itself, and whatever else is performed suspends
 * both. */
static void nest(int64_t number) {
    HAFT_SCOPED haft_fiber_t *inner = haft_fiber_new(handled, &number);
    haft_request_t request = haft_resume(inner, HAFT_NO_REPLY, HAFT_HANDLES(stress_inner));
    while (!haft_finished(request)) {
        HAFT_MATCH(request) {
            HAFT_CASE(stress_inner, payload) {
                int64_t answer = 2 * payload->number + 1;
                request = haft_resume(inner, HAFT_REPLY(stress_inner, answer),
                                      HAFT_HANDLES(stress_inner));
            }
        }
    }
}

static void *work(void *argument) {
    job_t *job = argument;
    uint64_t random = job->random;
    int64_t number = (int64_t)(random % 1000);
    SCOPE(whole);
    for (int step = 0; step < STEPS; step++) {
        switch (draw(&random) % 10) {
        case 0:
        case 1:
            expect(HAFT_PERFORM(stress_ask, number + step) == 2 * (number + step));
            break;
        case 2:
            expect(haft_handle(&in_place, NULL, handled, &number) == &number);
            break;
        case 3:
            expect(haft_handle(&general, NULL, handled, &number) == &number);
            break;
        case 4:
            nest(number);
            break;
        case 5: {
            SCOPE(across);
            HAFT_PERFORM(stress_yield);
            break;
        }
        case 6:
            if (draw(&random) % 8 == 0) {
                SCOPE(thrown);
                HAFT_THROW(stress_quit, number);
            }
            break;
        case 7:
        case 8:
            HAFT_PERFORM(stress_fork, draw(&random));
            break;
        default:
            HAFT_PERFORM(stress_yield);
        }
    }
    return job;
}

/* ---- The scheduler ---- */

static void spawn(queue_t *queue, uint64_t seed) {
    job_t *job = calloc(1, sizeof *job);
    job->random = seed | 1;
    haft_fiber_options_t options = {.name = "job"};
    if (seed % 4 == 0) {
        job->memory = malloc(FIXED_SIZE);
        options.memory = job->memory;
        options.memory_size = FIXED_SIZE;
    }
    job->fiber = haft_fiber_new_with(&options, work, job);
    atomic_fetch_add(&live, 1);
    atomic_fetch_add(&started, 1);
    push(queue, job);
}

static void end(job_t *job) {
    haft_fiber_drop(job->fiber);
    free(job->memory);
    free(job);
    atomic_fetch_add(&ended, 1);
    atomic_fetch_sub(&live, 1);
}

static haft_request_t resume(job_t *job, haft_reply_t reply) {
    return haft_resume(job->fiber, reply,
                       HAFT_HANDLES(stress_yield, stress_fork, stress_ask, stress_quit));
}

/* Runs the job until it gives way or ends. */
static void run(queue_t *queue, job_t *job) {
    uint64_t random = job->random * 0x9e3779b97f4a7c15u ^ (uint64_t)job->number++;
    haft_request_t request = resume(job, HAFT_NO_REPLY);
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        HAFT_MATCH(request) {
            HAFT_CASE(stress_ask, payload) {
                request = resume(job, HAFT_REPLY(stress_ask, 2 * payload->number));
                goes_on = true;
            }
            HAFT_CASE(stress_fork, payload) {
                if (!atomic_load(&stopping) && atomic_load(&live) < MOST_FIBERS)
                    spawn(queue, payload->seed);
                request = resume(job, HAFT_REPLY(stress_fork, 0));
                goes_on = true;
            }
            HAFT_CASE(stress_yield, payload) {
                if (draw(&random) % 64 == 0) {
                    end(job);
                } else {
                    if (draw(&random) % 2 == 0)
                        haft_fiber_detach(job->fiber);
                    push(&queues[draw(&random) % THREADS], job);
                }
            }
            HAFT_CASE(stress_quit, payload) {
                expect(payload->number >= 0 && payload->number < 1000);
                expect(haft_fiber_state(job->fiber) == HAFT_FIBER_FINISHED);
                end(job);
            }
            HAFT_RETURN(result) {
                expect(result == job);
                end(job);
            }
        }
    }
}

static void *scheduler(void *argument) {
    queue_t *own = argument;
    for (int idle = 0;;) {
        job_t *job = pop(own);
        for (int i = 0; job == NULL && i < THREADS; i++)
            job = pop(&queues[i]);
        if (job != NULL) {
            idle = 0;
            run(own, job);
        } else if (atomic_load(&stopping) && atomic_load(&live) == 0) {
            return NULL;
        } else if (idle++ == 0 && !atomic_load(&stopping)) {
            spawn(own, first_seed + (uint64_t)atomic_load(&started) * 4 + 1);
        } else {
            nanosleep(&(struct timespec){0, 100000}, NULL);
        }
    }
}

int main(int count, char **arguments) {
    const char *seconds = getenv("HAFT_STRESS_SECONDS"), *campaign = getenv("HAFT_CAMPAIGN");
    bool is_long = campaign != NULL && strcmp(campaign, "long") == 0;
    time_t until =
        time(NULL) + (seconds != NULL ? atoi(seconds) : (is_long ? STRESS_LONG : STRESS_SHORT));
    first_seed = count > 1 ? strtoull(arguments[1], NULL, 0) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)first_seed);
    fflush(stdout);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_mutex_init(&queues[i].lock, NULL);
    for (int i = 0; i < 64; i++)
        spawn(&queues[i % THREADS], first_seed + (uint64_t)i);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, scheduler, &queues[i]) != 0)
            return 1;
    while (time(NULL) < until)
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    atomic_store(&stopping, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    size_t stacks = haft_pool_report().stacks;
    printf("%d fibers started, %d ended; %d scopes entered, %d left; %zu stacks in use; %d wrong\n",
           atomic_load(&started), atomic_load(&ended), atomic_load(&entered), atomic_load(&left),
           stacks, atomic_load(&wrong));
    return started == ended && entered == left && stacks == 0 && wrong == 0 ? 0 : 1;
}
/* SPDX-License-Identifier: MIT */
